"""Cells of a feature, and the functions of them that span the tables of the class model.

The class model is a sum of tables: an *effect* of every feature, and a *family table* for every arc
between two features. A feature has one code per row, its *cell*: a category, or an interval between
the 48-quantiles and Fayyad-Irani cuts of the training values. Family tables and the counted network
see coarser cells:

    family tables    24-quantiles and Fayyad-Irani cuts; the 11 largest categories and the rest
    counted network  Fayyad-Irani bins, quartiles of a number without such a cut; all categories

(Without a cut a number would be constant in the network, and no arc could show how it interacts
with another.)

**Effect of a number** with cells j = 1..b of training shares w: a *line* (mean value of each cell,
clipped to the central 98 %, standardised), a *walk*

    S[j, k] = 1(j > k), centred by w and scaled to mean variance 1,

whose independent coefficients make neighbouring cells similar, *atoms* (centred indicators of cells
with three times the median share), and the indicator of a missing value. A category has its centred
identity.

**Family table** of two features: the svd sqrt(w) S = U D V' gives each number the functions
b_k = U_k D_k / sqrt(w), k = 1..16, from smooth to rough; a category has its centred identity,
scaled to variance 1, all of order 1. The table is spanned by the products b_k(x) b_l(y) with
k l <= 16, about 50 for two numbers.

Every table is A V B': the rows of A and B are the functions of either feature in its cells, V holds
the parameters. B of an effect is the number 1. What is unknown contributes nothing: its row of A or
B is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import ArrayLike, NDArray

from marginbn.class_model.kernels.inputs import Codes, TableLayout
from marginbn.data.columns import Column
from marginbn.data.discretize import quantile_cuts
from marginbn.data.encode import Coding, EncodedTraining, TableCoding, learn_coding
from marginbn.data.labelled import LabelledTable, MissingPolicy
from marginbn.data.training import TrainingRows
from marginbn.exceptions import InputError
from marginbn.problem.array_types import CodeArray, FloatArray, IntArray
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.structure import Structure

EFFECT_CELLS, FAMILY_CELLS, BINS_WITHOUT_CUT = 48, 24, 4
"""Quantile cells of effects and of family tables; bins of a number without a Fayyad-Irani cut."""

MOST_CATEGORIES = 12
"""Categories that a family table tells apart; the rarest of more are one."""

MOST_PRODUCT = 16
"""Largest product k l of the orders of two functions in a family table."""

ATOM, LEAST_ATOM_CELLS = 3.0, 8
"""A cell of so many times the median share is an atom, where there are more cells than that."""

CLIPPED = 0.01
"""Share of the values at either end that a line does not tell apart."""

TINY = 1e-300
"""In place of zero, where a quotient or a logarithm needs one."""

LINE, EFFECT, FAMILY = 0, 1, 2
"""Groups of parameters; each has one precision."""


class TableSide(NamedTuple):
    """Functions of one feature in a table.

    ``cell_of`` is the row of ``basis`` for each code, the last one for unknown; ``orders`` and
    ``groups`` belong to the columns.
    """

    cell_of: IntArray
    basis: FloatArray
    orders: IntArray
    groups: IntArray

    @classmethod
    def of(
        cls, cells: Sequence[int], basis: FloatArray, orders: ArrayLike, groups: ArrayLike
    ) -> TableSide:
        """With a row of zeros for unknown."""
        cell_of = np.append(np.array(cells, dtype=np.int64), len(basis))
        n = basis.shape[1]
        wide = [np.broadcast_to(np.array(per_column), n) for per_column in (orders, groups)]
        return cls(cell_of, np.pad(basis, ((0, 1), (0, 0))), *wide)


@dataclass(frozen=True)
class FeatureCells:
    """Cells of one feature."""

    coding: Coding  # intervals or categories, and a last cell for missing values if there were any
    bins: Coding  # states of the feature in the counted network
    weights: tuple[float, ...]  # training weight of each cell
    positions: tuple[float, ...]  # mean of each interval, standardised; empty for categories
    family: tuple[int, ...]  # family cell of each cell

    @property
    def n_cells(self) -> int:
        """Number of cells, which is also the code of unknown in compiled loops."""
        return len(self.weights)

    @cached_property
    def bin(self) -> tuple[int, ...]:
        """Bin of each cell."""
        if self.coding.kind != "numeric":
            return tuple(range(self.n_cells))
        return _group(self.coding.cuts, self.bins.cuts, self.coding.missing_state)

    @property
    def n_bins(self) -> int:
        """Number of states in the counted network."""
        return self.bin[-1] + 1

    def code_of_bin(self, state: int) -> int:
        """Code of a bin of which no cell is known; of a bin with one cell that cell."""
        own = [cell for cell, bin_ in enumerate(self.bin) if bin_ == state]
        return own[0] if len(own) == 1 else self.n_cells + state

    @cached_property
    def effect(self) -> TableSide:
        """Functions of the effect."""
        cells = range(self.n_cells)
        weights, numbers = np.array(self.weights), self._numbers(cells)
        if np.count_nonzero(weights) < 2:
            return TableSide.of(cells, np.zeros((self.n_cells, 0)), 1, EFFECT)
        if not numbers:
            return TableSide.of(cells, _centred_identity(weights), 1, EFFECT)
        shares = weights[:numbers] / weights[:numbers].sum()
        parts = [np.array(self.positions)[:, np.newaxis], _walk(shares)]
        if numbers > LEAST_ATOM_CELLS:
            is_atom = shares >= ATOM * np.median(shares)
            parts.append(_centred_identity(shares)[:, is_atom])
        basis = _with_missing(np.concatenate(parts, axis=1), self.n_cells > numbers)
        return TableSide.of(cells, basis, 1, [LINE, *[EFFECT] * (basis.shape[1] - 1)])

    @cached_property
    def side(self) -> TableSide:
        """Functions in family tables."""
        numbers, weights = self._numbers(self.family), _total(self.family, self.weights)
        if np.count_nonzero(weights) < 2:
            return TableSide.of(self.family, np.zeros((len(weights), 0)), 1, FAMILY)
        if numbers:
            shares = weights[:numbers] / weights[:numbers].sum()
            smooth = _smooth_functions(_walk(shares), shares)
            basis = _with_missing(smooth, len(weights) > numbers)
            orders = [*range(1, smooth.shape[1] + 1), *[1] * (basis.shape[1] - smooth.shape[1])]
            return TableSide.of(self.family, basis, orders, FAMILY)
        basis = _centred_identity(weights)
        basis = basis[:, :1] if len(weights) == 2 else basis
        basis /= np.sqrt((weights @ basis**2).sum() / weights.sum())
        return TableSide.of(self.family, basis, 1, FAMILY)

    def _numbers(self, cells: Sequence[int]) -> int:
        """How many of the cells are ordered intervals; 0 if these are at most two."""
        n = max(cells) + 1 - self.coding.missing_state
        return n if self.coding.kind == "numeric" and n > 2 else 0


def _centred_identity(weights: FloatArray) -> FloatArray:
    centred: FloatArray = np.eye(len(weights)) - weights / weights.sum()
    return centred


def _walk(shares: FloatArray) -> FloatArray:
    """Steps between neighbouring cells, centred and scaled to mean variance 1."""
    steps = np.tri(len(shares), len(shares) - 1, -1)
    steps -= shares @ steps
    steps /= np.sqrt((shares @ steps**2).sum())
    return steps


def _smooth_functions(steps: FloatArray, shares: FloatArray) -> FloatArray:
    """Functions of a walk from smooth to rough; each is positive in its last cell."""
    root = np.sqrt(shares)[:, np.newaxis]
    left, sizes, _ = np.linalg.svd(root * steps, full_matrices=False)
    basis = (left * sizes / root)[:, :MOST_PRODUCT]
    return np.asarray(basis * np.where(basis[-1] < 0.0, -1.0, 1.0))


def _with_missing(basis: FloatArray, has_missing: bool) -> FloatArray:
    """One more cell with a function of its own, if some values are missing."""
    if has_missing:
        basis = np.pad(basis, ((0, 1), (0, 1)))
        basis[-1, -1] = 1.0
    return basis


# ------------------------------------------------------------------------------ learning cells


def _learn_feature(
    column: Column,
    classes: NDArray[np.integer[Any]],
    weights: FloatArray,
    n_classes: int,
    missing: MissingPolicy,
) -> FeatureCells:
    """Cells of a training column."""
    has_state = missing in ("state", "auto") and bool(column.missing.any())
    bins = learn_coding(column, classes, weights, n_classes, has_state)
    if bins.kind != "numeric":
        counts = _total(bins.encode(column), weights, bins.variable.arity)
        family = _most_frequent(counts, bins.missing_state)
        return FeatureCells(bins, bins, tuple(counts.tolist()), (), family)
    known = ~column.missing
    values, place = np.unique(column.numbers[known], return_inverse=True)
    own_weights = _total(place, weights[known])
    fine, coarse, few = (
        quantile_cuts(values, own_weights, n)
        for n in (EFFECT_CELLS, FAMILY_CELLS, BINS_WITHOUT_CUT)
    )
    family_cuts = np.union1d(bins.cuts, coarse)
    bins = bins if bins.cuts else structs.replace(bins, cuts=tuple(few.tolist()))
    cuts = np.unique(np.concatenate([bins.cuts, family_cuts, fine]))
    codes = np.searchsorted(cuts, values)
    counts = _total(codes, own_weights, len(cuts) + 1)
    positions = _total(codes, own_weights * _standardise(values, own_weights), len(cuts) + 1)
    positions /= np.maximum(counts, TINY)
    counts = np.append(counts, [weights[~known].sum()] * bins.missing_state)
    coding = structs.replace(bins, cuts=tuple(cuts.tolist()))
    family = _group(cuts, family_cuts, bins.missing_state)
    return FeatureCells(coding, bins, tuple(counts.tolist()), tuple(positions.tolist()), family)


def _total(cells: ArrayLike, weights: ArrayLike, n_cells: int = 0) -> FloatArray:
    """Total weight of each cell."""
    return np.bincount(np.asarray(cells), np.asarray(weights), n_cells).astype(np.float64)


def _standardise(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Increasing values clipped to the central 98 %, with mean 0 and variance 1."""
    if not len(values):
        return values
    reached = np.cumsum(weights)
    ends = np.searchsorted(reached, np.array([CLIPPED, 1.0 - CLIPPED]) * reached[-1])
    low, high = values[np.minimum(ends, len(values) - 1)]
    clipped = np.clip(values, low, high) if high > low else values
    clipped = clipped / (np.abs(clipped).max() or 1.0)  # squares neither overflow nor vanish
    centred = clipped - np.average(clipped, weights=weights)
    return np.asarray(centred / (np.sqrt(np.average(centred**2, weights=weights)) or 1.0))


def _group(cuts: ArrayLike, coarser: ArrayLike, has_missing: bool) -> tuple[int, ...]:
    """Coarser cell of each cell; the one for missing values stays on its own."""
    groups = np.searchsorted(coarser, np.append(cuts, np.inf)).tolist()
    return (*groups, np.size(coarser) + 1) if has_missing else tuple(groups)


def _most_frequent(counts: FloatArray, has_missing: bool) -> tuple[int, ...]:
    """Family cell of each category: the rank of its weight if there are many, ties by index."""
    n = len(counts) - has_missing
    cells = np.arange(n)
    if n > MOST_CATEGORIES:
        cells[np.argsort(-counts[:n], kind="stable")] = np.arange(n)
        cells = np.minimum(cells, MOST_CATEGORIES - 1)
    return (*cells.tolist(), *[min(n, MOST_CATEGORIES)] * has_missing)


@dataclass(frozen=True)
class TableCells:
    """Cells of all features of a table."""

    features: tuple[FeatureCells, ...]

    @cached_property
    def coding(self) -> TableCoding:
        """From values to cells."""
        return TableCoding(tuple(feature.coding for feature in self.features))

    @cached_property
    def bins(self) -> TableCoding:
        """From values to states of the counted network."""
        return TableCoding(tuple(feature.bins for feature in self.features))

    def compact(self, codes: NDArray[np.integer[Any]]) -> Codes:
        """Cells (rows, features) as compiled loops want them: unknown follows the last cell, and
        bins of which no cell is known follow that.
        """
        limits = [feature.n_cells + feature.n_bins for feature in self.features]
        if codes.shape[1:] != (len(limits),) or (codes >= limits).any():
            raise InputError(f"codes must be (rows, {len(limits)}) with entries below {limits}")
        compacted = np.empty(codes.shape[::-1], dtype=np.min_scalar_type(max(limits, default=0)))
        for column, code, feature in zip(compacted, codes.T, self.features, strict=True):
            column[:] = np.where(code < 0, feature.n_cells, code + (code >= feature.n_cells))
        return compacted

    def to_bins(self, codes: NDArray[np.integer[Any]]) -> CodeArray:
        """Bins (rows, features) of cells, -1 for unknown."""
        bins = np.empty(codes.shape, dtype=np.int32)
        for column, code, feature in zip(bins.T, codes.T, self.features, strict=True):
            column[:] = np.array([*feature.bin, *range(feature.n_bins), -1])[code]
        return bins

    def count(self, data: EncodedData) -> EncodedData:
        """Rows of cells as the counted network sees them."""
        columns = [data.by_column[0]]
        for feature, column in zip(self.features, data.by_column[1:], strict=True):
            columns.append(np.array(feature.bin)[column])
        return _encoded(columns, data.weights, (data.variables[0], *self.bins.variables))


def learn_cells(
    rows: LabelledTable, classes: NDArray[Any], missing: MissingPolicy = "auto"
) -> tuple[TableCells, EncodedData]:
    """Cells of the columns of training rows, and the rows in these cells, class first.

    ``classes`` are all labels that there are, sorted.
    """
    columns: list[NDArray[Any]] = [np.searchsorted(classes, rows.labels)]
    features = []
    for column in rows.features.columns:
        feature = _learn_feature(column, columns[0], rows.weights, len(classes), missing)
        features.append(feature)
        columns.append(feature.coding.encode(column))
    cells = TableCells(tuple(features))
    variables = (Variable(rows.target, tuple(map(str, classes))), *cells.coding.variables)
    return cells, _encoded(columns, rows.weights, variables)


@dataclass(frozen=True, eq=False)
class CellTraining(EncodedTraining):
    """Training rows in bins, and in the cells of the tables to train."""

    cells: TableCells
    rows: EncodedData


def encode_cells(rows: TrainingRows) -> CellTraining:
    """Training rows in cells and in bins; a number without a cut has quartiles for bins."""
    table = rows.sample()
    classes = np.unique(table.labels)
    cells, data = learn_cells(table, classes, rows.settings.missing)
    return CellTraining(cells.bins, classes, cells.count(data), cells, data)


def _encoded(
    columns: Sequence[NDArray[Any]], weights: FloatArray, variables: tuple[Variable, ...]
) -> EncodedData:
    """In as few bytes as hold the codes, each column in one piece."""
    most = max(variable.arity for variable in variables) - 1
    codes = np.empty((len(columns), len(weights)), dtype=np.min_scalar_type(most))
    for own, column in zip(codes, columns, strict=True):
        own[:] = column
    return EncodedData(codes.T, weights, variables)


# ---------------------------------------------------------------------------------- designs


def family_pairs(structure: Structure) -> tuple[tuple[int, int], ...]:
    """Pairs of features, counted from 0, that share a family with the class.

    With at most one feature parent each these are the arcs between features.
    """
    families = ((v, *parents) for v, parents in enumerate(structure.parents) if 0 in parents)
    members = (sorted(u - 1 for u in family if u) for family in families)
    return tuple(sorted({pair for family in members for pair in combinations(family, 2)}))


@dataclass(frozen=True, eq=False)
class Design:
    """Tables of a class model: the effect of each feature, then a family table per pair.

    The parameters of a score are the offset, then those of each table in turn.
    """

    cells: TableCells
    pairs: tuple[tuple[int, int], ...]

    @cached_property
    def without_pairs(self) -> Design:
        """The effects alone; their parameters keep their places."""
        return Design(self.cells, ())

    @cached_property
    def tables(self) -> tuple[tuple[tuple[int, TableSide], tuple[int, TableSide]], ...]:
        """Of each table the two features and their sides."""
        features = self.cells.features
        most = max((feature.n_cells for feature in features), default=0)
        one = TableSide(
            np.zeros(most + 1, dtype=np.int64), np.ones((1, 1)), *np.ones((2, 1), np.int64)
        )
        effects = [((i, feature.effect), (i, one)) for i, feature in enumerate(features)]
        families = [((i, features[i].side), (j, features[j].side)) for i, j in self.pairs]
        return (*effects, *families)

    @cached_property
    def products(self) -> tuple[IntArray, ...]:
        """Of each table the columns (parameters, 2) of its sides that are multiplied."""
        return tuple(
            np.argwhere(np.multiply.outer(a.orders, b.orders) <= MOST_PRODUCT)
            for (_, a), (_, b) in self.tables
        )

    @cached_property
    def groups(self) -> IntArray:
        """Group of each parameter after the offset."""
        columns = zip(self.tables, self.products, strict=True)
        groups = [first.groups[product[:, 0]] for ((_, first), _), product in columns]
        return flat(groups).astype(np.int64)

    @property
    def n_parameters(self) -> int:
        """Parameters of a score."""
        return 1 + len(self.groups)

    @cached_property
    def layout(self) -> TableLayout:
        """Everything in flat arrays, for the compiled loops."""
        sides = [side for table in self.tables for _, side in table]
        return TableLayout(
            features=np.array([(i, j) for (i, _), (j, _) in self.tables]).reshape(-1, 2),
            sides=np.arange(len(sides)).reshape(-1, 2),
            cell_of=flat([side.cell_of for side in sides]).astype(np.int64),
            cell_start=starts_of([len(side.cell_of) for side in sides]),
            bases=flat([side.basis for side in sides]),
            base_start=starts_of([side.basis.size for side in sides]),
            shapes=np.array([side.basis.shape for side in sides]).reshape(-1, 2),
            products=np.vstack([np.zeros((1, 2), dtype=np.int64), *self.products]).copy(order="C"),
            first_parameter=starts_of([len(columns) for columns in self.products], 1),
            first_entry=starts_of([len(a.basis) * len(b.basis) for (_, a), (_, b) in self.tables]),
        )

    def table_rows(self, codes: Codes, t: int) -> FloatArray:
        """Values (rows, parameters) of the functions of one table."""
        ((i, a), (j, b)), columns = self.tables[t], self.products[t]
        left, right = a.basis[:, columns[:, 0]], b.basis[:, columns[:, 1]]
        return np.asarray(left[a.cell_of[codes[i]]] * right[b.cell_of[codes[j]]])


def starts_of(sizes: Sequence[int], first: int = 0) -> IntArray:
    """Where consecutive pieces start, and the end of the last."""
    return np.cumsum([first, *sizes], dtype=np.int64)


def flat(arrays: Sequence[ArrayLike]) -> FloatArray:
    """All entries in a row."""
    return np.concatenate([*(np.ravel(array) for array in arrays), []]).astype(np.float64)
