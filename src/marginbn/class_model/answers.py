"""The one answer to P(class | what is known), for any evidence.

With k of d features known, x_K their values and u = (k - 1) / (d - 1),

    P(c | x_K)  proportional to  G(c | x_K)^(1 - u) * E(c | x_K)^u,       u = 0 for k = 0.

G is the posterior of the counted network, E the mean of the class model p(c | x) over 64 draws of
the unknown features from the counted network given x_K. With everything known the answer is the
class model. With one feature or none known it is the network, whose P(c | x_i) is the share of the
training rows (smoothing aside): with at most one feature parent each,

    P(c, x_i) = sum over x_p of P(x_i | c, x_p) P(c, x_p)

carries the shares down the tree. Nothing is fitted.

**Draws** are exact, by messages up the tree and choices down again (``kernels/evidence.py``): the
class, then each unknown feature, its bin by the network, its cell in the bin by the share of the
training rows. Draw m chooses the class by the point in column 0, feature i by that in column 1 + i.
A column holds the points (q + 1/2) / 64 in an order of its own: 0..63 shuffled by Fisher and Yates
(for k = 63, ..., 1 swap the entries k and r mod (k + 1)), where r <- 48271 r mod (2^31 - 1) runs on
from column to column, from r = 20120627. All rows share the points, so an answer does not depend on
the rows next to it, and any language reproduces it.

**Contributions** start at the base rate, the answer with nothing known. In an order of the known
features each contributes the change of the log-odds when its value becomes known too. The mean over
a few orders and their reverses is the contribution of a feature; their sum leads to the answer
exactly, whatever the evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from marginbn.class_model.basis import TINY, FeatureCells, flat, starts_of
from marginbn.class_model.kernels.inputs import Buckets, Codes
from marginbn.class_model.trainer import ClassModel
from marginbn.data.columns import is_missing
from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.network.elimination import plan_elimination
from marginbn.network.explain import Explanations, explain_codes
from marginbn.network.network import BayesianNetwork
from marginbn.network.observed import number_of, state_of
from marginbn.problem.array_types import CodeArray, FloatArray, IndexArray, IntArray
from marginbn.problem.structure import CLASS, Structure
from marginbn.solvers.interpreted import interpreting

N_DRAWS = 64
"""Draws of the unknown features; twice as many changed no figure by more than its noise."""

ROWS_AT_A_TIME = 500
"""Rows whose draws are held at once."""

SEED, MULTIPLIER, MODULUS = 20120627, 48271, 2**31 - 1
"""Of the Lehmer generator that spreads the points."""

N_ORDERS = 8
"""Orders of the known features whose contributions are averaged; each comes with its reverse."""

FEW_CODES = 1000
"""Codes of incomplete rows that are answered in Python before a compiler would be ready (1.4 s)."""

MOST_CELLS = 2**24
"""Table cells of all buckets of a network; one with more features per family may need more."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of a counted network and a class model over the same features."""

    network: BayesianNetwork
    model: ClassModel

    def posterior(self, codes: NDArray[np.integer[Any]]) -> FloatArray:
        """P(class | what is known), (rows, classes), of cells (rows, features).

        -1 is unknown; the number of cells plus a bin means that only the bin is known.
        """
        cells = self.model.design.cells
        counts = np.array([feature.n_cells for feature in cells.features])
        n_known = (codes[:, counts > 1] >= 0).sum(axis=1)  # one cell: no information
        answers = np.empty((len(codes), self.network.n_classes))
        complete = ((codes >= 0) & (codes < counts) | (counts <= 1)).all(axis=1)
        answers[complete] = softmax(self.model.scores(codes[complete]), axis=1)
        rest = np.flatnonzero(~complete)
        for start in range(0, len(rest), ROWS_AT_A_TIME):
            rows = rest[start : start + ROWS_AT_A_TIME]
            u = np.maximum(n_known[rows] - 1, 0) / max(1, (counts > 1).sum() - 1)
            answers[rows] = self._blend(cells.compact(codes[rows]), u[:, np.newaxis])
        return answers

    def _blend(self, codes: Codes, u: FloatArray) -> FloatArray:
        """G^(1 - u) E^u of rows that are not complete, normalised."""
        from marginbn.class_model.kernels.evidence import draw_rows  # loads the compiler
        from marginbn.solvers.compile import is_at_hand

        n_rows, n_classes = codes.shape[1], self.network.n_classes
        network, drawn = np.empty((n_rows, n_classes)), np.repeat(codes, N_DRAWS, axis=1)
        with interpreting(codes.size <= FEW_CODES and not is_at_hand(draw_rows)):
            draw_rows(self.buckets, spread_points(1 + len(codes)), codes, network, drawn)
        posteriors = softmax(self.model.gather(drawn), axis=0)
        mean = posteriors.reshape(n_classes, n_rows, -1).mean(axis=2).T
        logs = [np.log(np.maximum(part, TINY)) for part in (network, mean)]
        return np.asarray(softmax((1.0 - u) * logs[0] + u * logs[1], axis=1))

    def log_posterior(self, codes: NDArray[np.integer[Any]]) -> FloatArray:
        """Log posteriors (rows, classes) of rows to predict, cells (rows, features)."""
        return np.log(np.maximum(self.posterior(self._without_lone_missing(codes)), TINY))

    def _without_lone_missing(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
        """Codes in which missing values of rows that lack more than training ever did are unknown.

        A missing value is a state of its own where training had such rows. That a value is missing
        is evidence only in rows like these: a row that also lacks a value which training always had
        is incomplete for another reason.
        """
        is_open = (codes < 0).any(axis=1)
        if not is_open.any():
            return codes
        codes = codes.copy()
        for column, feature in zip(codes.T, self.model.design.cells.features, strict=True):
            if feature.coding.missing_state:
                column[is_open & (column == feature.n_cells - 1)] = -1
        return codes

    def encode_evidence(self, evidence: Mapping[str | int, Any]) -> CodeArray:
        """Codes (1, features) of known values by column name; everything else is unknown.

        A number has its cell; the label of a bin stands for all cells of the bin.
        """
        features = self.model.design.cells.features
        codes = np.full((1, len(features)), -1, dtype=np.int32)
        for name, value in self.network.plain_evidence(evidence):
            place = self.network.variable_index(name) - 1
            if place < 0:
                raise InputError(f"{name!r} is the class; give values of other columns")
            variable = self.network.variables[place + 1]
            state, feature = state_of(variable, value), features[place]
            number = None if is_missing(value) else number_of(value)
            if number is not None and feature.coding.kind == "numeric":
                codes[0, place] = np.searchsorted(feature.coding.cuts, number)
            else:
                codes[0, place] = feature.code_of_bin(state)
        return codes

    def explain(
        self, classes: NDArray[Any], codes: NDArray[np.integer[Any]], y: Any
    ) -> Explanations:
        """Explanations of rows of cells: from the base rate, each known value takes a step."""
        codes = self._without_lone_missing(codes)

        def contribute(labels: IndexArray, rivals: IndexArray) -> FloatArray:
            values = np.zeros((len(codes), self.network.n_variables))
            for own, row, label, rival in zip(values, codes, labels, rivals, strict=True):
                own[0], own[1:] = self.contributions(row, int(label), int(rival))
            return values

        bins = self.model.design.cells.to_bins(codes)
        return explain_codes(self.network, classes, bins, y, self.log_posterior(codes), contribute)

    @cached_property
    def buckets(self) -> Buckets:
        """The counted network, laid out for the compiled loops."""
        return lay_out_buckets(self.network, self.model.design.cells.features)

    def contributions(
        self, codes: NDArray[np.integer[Any]], label: int, rival: int
    ) -> tuple[float, FloatArray]:
        """Log-odds of a class to its rival with nothing known, and what each feature adds to it.

        ``codes`` is a single row, (features,); what is unknown adds nothing.
        """
        known = np.flatnonzero(codes >= 0)
        order = _shuffles(len(known), N_ORDERS)
        orders = known[np.concatenate([order, order[:, ::-1]])]
        rows = np.full((len(orders), len(known) + 1, len(codes)), -1, dtype=np.int32)
        for path, order in zip(rows, orders, strict=True):
            for step, feature in enumerate(order):
                path[step + 1 :, feature] = codes[feature]
        found = np.maximum(self.posterior(rows.reshape(-1, len(codes))), TINY)
        odds = np.log(found[:, label] / found[:, rival]).reshape(len(orders), -1)
        total = np.bincount(orders.ravel(), np.diff(odds, axis=1).ravel(), len(codes))
        return float(odds[0, 0]), total / len(orders)


# ------------------------------------------------------------------------------------ points


def _shuffles(n: int, count: int) -> IntArray:
    """Shuffles (count, n) of 0..n-1, by the generator of the module's docstring."""
    state, found = SEED, []
    for _ in range(count):
        order = list(range(n))
        for k in range(n - 1, 0, -1):
            state = state * MULTIPLIER % MODULUS
            other = state % (k + 1)
            order[k], order[other] = order[other], order[k]
        found.append(order)
    return np.array(found, dtype=np.int64).reshape(count, n)


@lru_cache(maxsize=8)
def spread_points(n_columns: int) -> FloatArray:
    """Points (draws, columns) of the unit cube; each column has one in each 64th of the unit."""
    return np.ascontiguousarray((_shuffles(N_DRAWS, n_columns).T + 0.5) / N_DRAWS)


# ----------------------------------------------------------------------------------- buckets


@dataclass(frozen=True)
class _Bucket:
    """A feature with the variables above it and the families whose tables it multiplies."""

    variable: int
    above: tuple[int, ...]
    families: tuple[int, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        """Variables of its table."""
        return (CLASS, *self.above, self.variable)


def _find_buckets(structure: Structure, arities: Sequence[int]) -> list[_Bucket]:
    """Buckets in an order in which features are summed out; trees from the leaves up."""
    scopes = {v: {v, *parents} - {CLASS} for v, parents in enumerate(structure.parents)}
    if not scopes[CLASS]:
        del scopes[CLASS]  # a class without parents is the root
    if all(len(scope) <= 2 for scope in scopes.values()):
        order = [v for v in reversed(structure.order) if v != CLASS]
    else:
        families = [(*parents, v) for v, parents in enumerate(structure.parents)]
        order = list(plan_elimination(families, arities, (CLASS,)).order)
    turn = {v: k for k, v in enumerate(order)}
    members: dict[int, list[int]] = {v: [] for v in order}
    for v, scope in scopes.items():
        members[min(scope, key=turn.__getitem__)].append(v)
    received: dict[int, set[int]] = {v: set() for v in order}
    buckets = []
    for v in order:
        above = received[v].union(*(scopes[f] for f in members[v])) - {v}
        if above:
            received[min(above, key=turn.__getitem__)] |= above
        buckets.append(_Bucket(v, tuple(sorted(above)), tuple(members[v])))
    return buckets


def _bucket_table(network: BayesianNetwork, bucket: _Bucket) -> FloatArray:
    """Product of the tables of its families, with the axes of the bucket."""
    axes = bucket.axes
    table = np.ones([network.arities[v] for v in axes])
    for v in bucket.families:
        members = (*network.structure.parents[v], v)
        order = sorted(range(len(members)), key=lambda k: axes.index(members[k]))
        factor = np.exp(network.log_tables[v]).transpose(order)
        table *= factor.reshape([network.arities[u] if u in members else 1 for u in axes])
    return table


def lay_out_buckets(network: BayesianNetwork, features: Sequence[FeatureCells]) -> Buckets:
    """Lay out a counted network over the bins of the features."""
    eliminated = _find_buckets(network.structure, network.arities)
    turn = {bucket.variable: k for k, bucket in enumerate(eliminated)}
    buckets = sorted(eliminated, key=lambda bucket: bucket.variable)
    n_cells = sum(math.prod(network.arities[v] for v in bucket.axes) for bucket in buckets)
    if n_cells > MOST_CELLS:
        raise ProblemTooLargeError(
            f"answers to incomplete rows need tables of {n_cells} cells, more than the limit of "
            f"{MOST_CELLS}; give complete rows, or fit with a smaller max_parents"
        )
    tables = [_bucket_table(network, bucket) for bucket in buckets]
    steps = [np.array(t.strides[1:-1], dtype=np.int64) // t.itemsize for t in tables]
    below: list[list[int]] = [[] for _ in buckets]
    for bucket in buckets:
        if bucket.above:
            receiver = min(bucket.above, key=turn.__getitem__)
            below[receiver - 1].append(bucket.variable - 1)
    class_is_root = not network.structure.parents[CLASS]  # else its table is that of a bucket
    first_cells = [np.searchsorted(f.bin, np.arange(f.n_bins + 1)) for f in features]
    return Buckets(
        prior=np.exp(network.log_tables[CLASS]) if class_is_root else np.ones(network.n_classes),
        order=np.array([bucket.variable - 1 for bucket in reversed(eliminated)], dtype=np.int64),
        n_bins=np.array([feature.n_bins for feature in features], dtype=np.int64),
        tables=flat(tables),
        table_start=starts_of([table.size for table in tables]),
        above=flat([np.array(bucket.above) - 1 for bucket in buckets]).astype(np.int64),
        strides=flat(steps).astype(np.int64),
        above_start=starts_of([len(bucket.above) for bucket in buckets]),
        below=flat(below).astype(np.int64),
        below_start=starts_of([len(children) for children in below]),
        bin_of=flat([feature.bin for feature in features]).astype(np.int64),
        cell_start=starts_of([feature.n_cells for feature in features]),
        first_cell=flat(first_cells).astype(np.int64),
        bin_start=starts_of([len(cells) for cells in first_cells]),
        reach=flat([_reach(feature) for feature in features]),
    )


def _reach(feature: FeatureCells) -> FloatArray:
    """Share of each cell and of those before it in the weight of its bin."""
    weights, bins = np.array(feature.weights), np.array(feature.bin)
    total = np.bincount(bins, weights)
    before = np.cumsum(total) - total
    reached: FloatArray = (np.cumsum(weights) - before[bins]) / np.maximum(total[bins], TINY)
    return reached
