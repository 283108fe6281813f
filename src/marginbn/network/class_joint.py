"""The log joint of every class with a row of features, for many rows at once.

For features z and class c the quantity is

    log P(c, z) = sum_i log P(x_i | parents of i),        x = (c, z).

A complete row needs one lookup per variable: the table of a family is laid out as a matrix with a
row per class and a column per joint state of its features, so a whole column of data is answered
by a single gather. Missing features are summed out exactly, in two stages:

1. A missing feature whose children are all missing and barren too is barren: the sum of its table
   over its own states is one. Its lookup is directed to an extra column of zeros. In naive Bayes
   nothing else is needed.
2. What remains hidden has an observed descendant. Rows that hide the same features are one batch
   for variable elimination, which keeps the class. Rare patterns are pooled: a feature hidden in
   some rows of the pool stays a variable in all, and rows that do observe it multiply by the
   indicator of their state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import ProblemTooLargeError
from marginbn.network import elimination
from marginbn.network.elimination import Factor
from marginbn.problem.array_types import BoolArray, FloatArray, IndexArray
from marginbn.problem.structure import CLASS, Structure

_CHUNK = 8192  # rows at a time: columns and accumulator stay in the second-level cache
_BATCH_CELLS = 2**21  # cells of all cases of a batch together: 16 MiB per factor
_OWN_BATCH = 64  # a pattern with this many rows in a chunk pays for its own elimination
_POOL_CELLS = 2**12  # pooling rare patterns must not build larger products than this per row


@dataclass(frozen=True)
class FamilyTable:
    """Lookup of log P(variable | parents) with the class as rows.

    ``members`` are the parents and the variable itself, and ``log_table`` has an axis for each.
    ``columns`` are the features among them, ``strides`` turn their codes into a joint code, and
    ``table`` is float64 (n_classes or 1, joint states + 1); its last column is zero.
    """

    members: tuple[int, ...]
    log_table: FloatArray
    columns: tuple[int, ...]
    strides: tuple[int, ...]
    table: FloatArray

    @property
    def variable(self) -> int:
        """Whose table it is."""
        return self.members[-1]


@dataclass(frozen=True)
class ClassJoint:
    """Lookup tables of a whole network; call :meth:`evaluate` with rows of codes."""

    structure: Structure
    arities: tuple[int, ...]
    families: tuple[FamilyTable, ...]

    @classmethod
    def build(
        cls, structure: Structure, arities: Sequence[int], log_tables: Sequence[FloatArray]
    ) -> ClassJoint:
        """Lay out all tables once; they are as large as the network's own."""
        families = tuple(
            _lay_out((*parents, i), log_tables[i]) for i, parents in enumerate(structure.parents)
        )
        return cls(structure, tuple(arities), families)

    def evaluate(self, codes: NDArray[np.integer]) -> FloatArray:
        """Log P(c, z) as float64 (n, n_classes) for codes (n, n_variables), -1 = missing.

        Column 0, the class, is ignored.
        """
        result = np.empty((len(codes), self.arities[CLASS]))
        buffer = np.empty((len(self.arities), min(_CHUNK, len(codes))), dtype=np.intp)
        for start in range(0, len(codes), _CHUNK):
            rows = codes[start : start + _CHUNK]
            columns = buffer[:, : len(rows)]
            columns[:] = rows.T
            columns[CLASS] = 0
            missing = columns < 0
            if missing.any():
                log_joint = self._with_missing(columns, missing)
            else:
                log_joint = _gather(self.families, columns, self.arities[CLASS], missing)
            result[start : start + _CHUNK] = log_joint.T
        return result

    def _with_missing(self, columns: IndexArray, missing: BoolArray) -> FloatArray:
        barren = missing.copy()
        for child in reversed(self.structure.order):
            for parent in self.structure.parents[child]:
                barren[parent] &= barren[child]
        hidden = missing & ~barren
        result = np.empty((self.arities[CLASS], columns.shape[1]))
        for rows in _batches(hidden, self._is_poolable):
            free = np.asarray(hidden[:, rows].any(axis=1))
            result[:, rows] = self._sum_out(columns[:, rows], barren[:, rows], free)
        return result

    def _is_poolable(self, free: BoolArray) -> bool:
        try:
            return self._plan(free).largest <= _POOL_CELLS
        except ProblemTooLargeError:  # together too many variables; one by one may be few
            return False

    def _plan(self, free: BoolArray) -> elimination.Plan:
        open_variables = {CLASS, *np.flatnonzero(free).tolist()}
        scopes = (
            tuple(v for v in (*parents, i) if v in open_variables)
            for i, parents in enumerate(self.structure.parents)
        )
        return elimination.plan_elimination(scopes, self.arities, (CLASS,))

    def _sum_out(self, columns: IndexArray, barren: BoolArray, free: BoolArray) -> FloatArray:
        """Log joint of rows that hide no feature outside ``free``, which is summed out."""
        closed = [f for f in self.families if not free[list(f.members)].any()]
        result = _gather(closed, columns, self.arities[CLASS], barren)
        if free.any():
            plan = self._plan(free)
            elimination.check_cells(plan.largest)
            size = max(1, _BATCH_CELLS // plan.largest)
            for start in range(0, columns.shape[1], size):
                part = slice(start, start + size)
                factors = self._factors(columns[:, part], barren[:, part], free)
                result[:, part] += elimination.eliminate(factors, plan.order).values
        return result

    def _factors(self, columns: IndexArray, barren: BoolArray, free: BoolArray) -> Iterator[Factor]:
        for family in self.families:
            i = family.variable
            if not free[list(family.members)].any():
                continue
            factor = _restrict(family, columns, free)
            if barren[i].any() and not free[i]:
                factor.values[..., barren[i]] = 0.0
            yield factor
        for v in np.flatnonzero(free).tolist():
            states = np.arange(self.arities[v])[:, np.newaxis]
            agrees = (columns[v] < 0) | (columns[v] == states)
            if not agrees.all():
                yield Factor((v,), np.where(agrees, 0.0, -np.inf))


def _lay_out(members: tuple[int, ...], log_table: FloatArray) -> FamilyTable:
    """Move the class axis to the front, flatten the others, append the column of zeros."""
    features = [axis for axis, v in enumerate(members) if v != CLASS]
    lengths = [log_table.shape[axis] for axis in features]
    strides = tuple(math.prod(lengths[position + 1 :]) for position in range(len(lengths)))
    n_classes = 1
    by_class = log_table
    if CLASS in members:
        by_class = np.moveaxis(log_table, members.index(CLASS), 0)
        n_classes = len(by_class)
    matrix = by_class.reshape(n_classes, -1)
    table = np.concatenate([matrix, np.zeros((len(matrix), 1))], axis=1)
    columns = tuple(members[axis] for axis in features)
    return FamilyTable(members, log_table, columns, strides, table)


def _gather(
    families: Sequence[FamilyTable], columns: IndexArray, n_classes: int, barren: BoolArray
) -> FloatArray:
    """Sum of the families' lookups, float64 (n_classes, n_rows); barren entries add nothing."""
    n_rows = columns.shape[1]
    total = np.zeros((n_classes, n_rows))
    buffers = {rows: np.empty((rows, n_rows)) for rows in (1, n_classes)}
    for family in families:
        joint = _joint_codes(family, columns)
        skipped = barren[family.variable]
        if skipped.any():
            joint = np.where(skipped, family.table.shape[1] - 1, joint)
        looked_up = buffers[len(family.table)]
        # The codes were checked, so clipping never happens; it lets take write into the buffer.
        np.take(family.table, joint, axis=1, out=looked_up, mode="clip")
        total += looked_up
    return total


def _joint_codes(family: FamilyTable, columns: IndexArray) -> IndexArray:
    if len(family.columns) == 1:
        return np.asarray(columns[family.columns[0]])
    joint = np.zeros(columns.shape[1], dtype=np.intp)
    for column, stride in zip(family.columns, family.strides, strict=True):
        joint += columns[column] * stride
    return joint


def _restrict(family: FamilyTable, columns: IndexArray, free: BoolArray) -> Factor:
    """The family's table at each row's observed codes, as a factor of the class and free features.

    A parent that is barren has code -1 and selects the last state; then the child is barren too,
    and its table sums to one in every state of its parents.
    """
    members = family.members
    scope = tuple(sorted(v for v in members if free[v] or v == CLASS))
    observed = [axis for axis, v in enumerate(members) if v not in scope]
    axes = [*observed, *(members.index(v) for v in scope)]
    codes = tuple(columns[members[axis]] for axis in observed)
    rows = np.transpose(family.log_table, axes)[codes]
    if not observed:
        return Factor(scope, rows[..., np.newaxis].copy())
    return Factor(scope, np.ascontiguousarray(np.moveaxis(rows, 0, -1)))


def _batches(hidden: BoolArray, is_poolable: Callable[[BoolArray], bool]) -> Iterator[IndexArray]:
    """Row indices that are summed out together: equal patterns, the rare ones pooled."""
    packed = np.ascontiguousarray(np.packbits(hidden, axis=0).T)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
    _, pattern, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    rare = np.flatnonzero(sizes[pattern] < _OWN_BATCH)
    if len(rare) and is_poolable(np.asarray(hidden[:, rare].any(axis=1))):
        yield rare
        sizes[pattern[rare]] = 0
    by_pattern = np.argsort(pattern, kind="stable")
    for rows in np.split(by_pattern, np.cumsum(np.bincount(pattern))[:-1]):
        if sizes[pattern[rows[0]]]:
            yield rows
