"""What the class scores are linear in: a basis for every main effect and every interaction.

A table over states (an effect, an interaction) is T v: a row of T per cell, a column per parameter.
All parameters v have the same ridge prior, so the scale of a column says how easily it is used.

**Categories**: one parameter per state.

**Numbers** in fine bins f at positions z_f (in standard deviations), with K knots at quantiles:

    effect(f) = steps sqrt(2/K) sum_{knots k <= f} v_k  +  3 line z_f v_0  +  coarse v_{bin(f)}

The steps under the ridge prior are a random walk: neighbouring bins get similar scores. Columns are
centred, so the level stays with the bias. No single scaling suits all data: ``LINES`` bends a line,
``STEPS`` adds plateaus.

**Interactions** of a family: one parameter per cell of its groups, times ``CELLS``; for two numeric
features also the product of their positions, so that a smooth interaction needs one parameter only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginbn.data.ordinal import OrdinalData
from marginbn.parameters.class_scores import ClassScores, weighted_sum
from marginbn.problem.encoded import EncodedData

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

KNOTS = 15
CELLS = 0.5


@dataclass(frozen=True)
class Profile:
    """How easily an effect is a line, a walk of small steps, or a step at each coarse bin, and an
    interaction a product.
    """

    name: str
    line: float
    steps: float
    coarse: float
    product: float


LINES = Profile("lines", line=4.0, steps=0.5, coarse=0.0, product=1.0)
STEPS = Profile("steps", line=0.3, steps=2.0, coarse=1.0, product=0.3)


@dataclass(frozen=True, eq=False)
class Interaction:
    """A table over groups of states of some features.

    ``family`` are the variables, increasing; ``groups`` holds for each of them the group of every
    state. Where ``product`` is given it has an entry per cell, for the product of the positions.
    """

    family: tuple[int, ...]
    groups: tuple[IntArray, ...]
    product: FloatArray | None = None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of groups of each member."""
        return tuple(int(groups.max()) + 1 for groups in self.groups)

    @property
    def n_cells(self) -> int:
        """Number of cells of the table."""
        return math.prod(self.shape)

    def cells(self, codes: NDArray[np.integer]) -> IntArray:
        """Cell of every row of codes (n, n_variables), last member fastest; -1 where unknown."""
        columns = [codes[:, variable] for variable in self.family]
        known = np.logical_and.reduce([column >= 0 for column in columns])
        pairs = zip(columns, self.groups, strict=True)
        index = tuple(groups[np.where(known, column, 0)] for column, groups in pairs)
        return np.where(known, np.ravel_multi_index(index, self.shape), -1)

    def basis(self, profile: Profile) -> sp.csr_matrix:
        """The matrix T above, (cells, parameters)."""
        cells = CELLS * sp.identity(self.n_cells, format="csr")
        if self.product is None:
            return cells
        product = sp.csr_matrix(profile.product * self.product[:, np.newaxis])
        return sp.hstack([cells, product], format="csr")


def coarse_interaction(rows: OrdinalData, family: Sequence[int]) -> Interaction:
    """The interaction of a family over its coarse bins."""
    members = tuple(sorted(family))
    return Interaction(members, tuple(coarse_groups(rows, v) for v in members))


def coarse_groups(rows: OrdinalData, variable: int) -> IntArray:
    """Coarse bin of every state of a variable."""
    groups = rows.groups[variable]
    return np.arange(rows.data.arities[variable]) if groups is None else groups


def pair_interaction(
    rows: OrdinalData, pair: tuple[int, int], groups: tuple[IntArray, IntArray]
) -> Interaction:
    """The interaction of two features over given groups, with a product if both are numbers."""
    first, second = (_group_positions(rows, v, g) for v, g in zip(pair, groups, strict=True))
    if first is None or second is None:
        return Interaction(pair, groups)
    return Interaction(pair, groups, np.multiply.outer(first, second).ravel())


def _group_positions(rows: OrdinalData, variable: int, groups: IntArray) -> FloatArray | None:
    """Mean position of each group, 0 for missing values; None for categories."""
    positions = rows.positions[variable]
    if positions is None:
        return None
    weight = _state_weights(rows.data, variable)
    known = np.where(np.isnan(positions), 0.0, positions)
    total = np.bincount(groups, weight)
    return np.bincount(groups, weight * known) / np.where(total > 0, total, 1.0)


def _state_weights(data: EncodedData, variable: int) -> FloatArray:
    arity = int(data.arities[variable])
    return np.bincount(data.codes[:, variable], data.weights, arity).astype(np.float64)


def effect_basis(rows: OrdinalData, variable: int, profile: Profile) -> FloatArray:
    """The matrix T of a main effect, (states, parameters)."""
    positions, arity = rows.positions[variable], int(rows.data.arities[variable])
    if positions is None or arity <= 2:
        return np.eye(arity)
    number = ~np.isnan(positions)
    share = np.where(number, _state_weights(rows.data, variable), 0.0)
    share /= share.sum() or 1.0  # a part of the rows may have no number at all
    columns = [
        profile.steps * _steps(share),
        3.0 * profile.line * np.where(number, positions, 0.0)[:, np.newaxis],
    ]
    groups = rows.groups[variable]
    if profile.coarse and groups is not None and groups.max() > 0:
        columns.append(profile.coarse * np.eye(int(groups.max()) + 1)[groups])
    basis = np.hstack(columns)
    basis = np.where(number[:, np.newaxis], basis - share @ basis, 0.0)
    return basis if number.all() else np.column_stack([basis, ~number])


def _steps(share: FloatArray) -> FloatArray:
    """A column per knot, one from there on; knots lie where the shares come next to quantiles."""
    reached = np.cumsum(share)[:-1]
    quantiles = np.arange(1, KNOTS + 1) / (KNOTS + 1)
    if len(reached) < KNOTS:
        quantiles = np.arange(1, len(share)) / len(share)
    knots = np.unique(np.abs(reached[:, np.newaxis] - quantiles).argmin(axis=0)) + 1
    steps = (np.arange(len(share))[:, np.newaxis] >= knots).astype(np.float64)
    return steps * math.sqrt(2.0 / len(knots))


class Design:
    """The matrix from parameters to scores, as a product of two sparse ones.

    ``cells`` (rows, cells of all tables) says in which cell of each table a row lies, ``basis``
    (cells, parameters) is block-diagonal. The first table has one cell: the bias.
    """

    def __init__(
        self, rows: OrdinalData, profile: Profile, interactions: Iterable[Interaction] = ()
    ) -> None:
        self.rows = rows
        self.interactions = tuple(interactions)
        arities = rows.data.arities
        self.features = [v for v in range(1, rows.data.n_variables) if arities[v] > 1]
        blocks = [
            sp.identity(1),  # sparse, all of them: a dense block would keep its zeros
            *(sp.csr_matrix(effect_basis(rows, v, profile)) for v in self.features),
            *(interaction.basis(profile) for interaction in self.interactions),
        ]
        self.starts = np.cumsum([0, *(block.shape[0] for block in blocks)])
        self.basis = sp.block_diag(blocks, format="csr")
        self.transposed_basis = self.basis.T.tocsr()
        self.cells = self.encode(rows.data.codes)
        self.transposed_cells = self.cells.T.tocsr()

    def encode(self, codes: NDArray[np.integer]) -> sp.csr_matrix:
        """The cells of rows of codes (n, n_variables)."""
        columns = [
            np.zeros(len(codes), dtype=np.intp),
            *(codes[:, v] for v in self.features),
            *(interaction.cells(codes) for interaction in self.interactions),
        ]
        index = np.column_stack(columns)
        known = index >= 0
        index = np.where(known, index, 0) + self.starts[:-1]
        ends = np.arange(0, index.size + 1, len(columns))
        shape = (len(codes), int(self.starts[-1]))
        values = known.astype(np.float64).ravel()
        return sp.csr_matrix((values, index.ravel(), ends), shape=shape)

    @property
    def n_parameters(self) -> int:
        """Parameters per class."""
        return int(self.basis.shape[1])

    @cached_property
    def curvature(self) -> FloatArray:
        """Diagonal of the second derivative where all classes are equally probable."""
        n_classes = self.rows.data.n_classes
        squares = self.cells @ self.basis
        squares.data **= 2
        weights = self.rows.data.weights / n_classes * (1.0 - 1.0 / n_classes)
        return np.asarray(squares.T @ weights)

    def second_derivative(self, curvature: FloatArray, ridge: float) -> FloatArray:
        """T' X' diag(curvature) X T + ridge, (parameters, parameters)."""
        between_cells = (
            self.transposed_cells @ self.cells.multiply(curvature[:, np.newaxis]).tocsr()
        )
        matrix = (self.transposed_basis @ between_cells @ self.basis).toarray()
        matrix[np.diag_indices_from(matrix)] += ridge
        return np.asarray(matrix)

    def tables(self, parameters: FloatArray) -> FloatArray:
        """All tables below each other, (cells of all tables, n_classes)."""
        tables: FloatArray = self.basis @ parameters
        return tables

    def class_scores(self, parameters: FloatArray, offset: FloatArray) -> ClassScores:
        """The tables apart from each other; ``offset`` (n_classes,) is added to the bias."""
        parts = np.split(self.tables(parameters), self.starts[1:-1])
        data, n_features = self.rows.data, len(self.features)
        effects = [np.zeros((data.n_classes, v.arity)) for v in data.variables[1:]]
        for v, part in zip(self.features, parts[1:], strict=False):
            effects[v - 1] = part.T
        own = ClassScores(
            data.variables, (None,) * data.n_variables, offset + parts[0][0], tuple(effects), {}
        )
        interactions = zip(self.interactions, parts[1 + n_features :], strict=True)
        return weighted_sum([own, *(_alone(own, i, part) for i, part in interactions)])


def _alone(like: ClassScores, interaction: Interaction, part: FloatArray) -> ClassScores:
    """Scores that consist of one interaction table."""
    groups: list[IntArray | None] = [None] * len(like.variables)
    for variable, own in zip(interaction.family, interaction.groups, strict=True):
        groups[variable] = own
    table = np.moveaxis(part.reshape(*interaction.shape, -1), -1, 0)
    zeros = tuple(np.zeros_like(effect) for effect in like.effects)
    tables = {interaction.family: table}
    return ClassScores(like.variables, tuple(groups), np.zeros_like(like.bias), zeros, tables)
