"""Codes and tables of a problem: everything its coefficients say, in a small part of their room.

A million rows of 30 features are 60 MB of codes, and 11 GB of coefficients. What passes over the
codes can tell is in ``kernels/coded.py``; here the tables are made, and passes are divided among
threads. A pass goes feature pair by feature pair, so that every sum is added up in the order of
the samples whatever the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.margins import MarginRows, counts_over
from marginbn.problem.scores import log_likelihood
from marginbn.solvers.branch_bound.kernels import coded
from marginbn.solvers.branch_bound.kernels.coded import CodeArray
from marginbn.solvers.branch_bound.kernels.records import Instance, count_rows
from marginbn.solvers.counts import Poll, blocks_of, count_sets, never, spread

BLOCK_CELLS = 4_000_000
"""Cells of counts held at a time while tables are made."""


@dataclass(frozen=True)
class Families:
    """The features behind every column.

    Columns over the same features share their counts: ``sets`` lists each such set once.
    """

    sets: IntArray  # (P, 5) keys of ``kernels/coded.py``; start: first cell of its counts
    set_of: IntArray  # (K,) set of every column, -1 where all coefficients are zero
    cells: int  # of the counts of all sets
    table_cells: int  # of the tables of all columns

    @property
    def ordered(self) -> IntArray:
        """Columns with coefficients, those over the same features after each other."""
        columns = np.flatnonzero(self.set_of >= 0)
        return columns[np.argsort(self.set_of[columns], kind="stable")]


def families_of(margins: MarginRows, candidate_of: IntArray, poll: Poll = never) -> Families:
    """Which features every column looks at; by shapes alone, nothing is counted."""
    data, n_classes = margins.data, margins.data.n_classes
    numbers: dict[tuple[int, ...], int] = {}
    keys: list[tuple[int, int, int, int, int]] = []
    set_of = np.full(candidate_of.size, -1, dtype=np.int64)
    cells = table_cells = 0
    for v in np.flatnonzero(candidate_of >= 0):
        poll()
        k = int(candidate_of[v])
        if int(margins.candidates.child[k]) != 0 and 0 not in margins.candidates.parents[k]:
            continue  # the factor does not depend on the class
        features = tuple(margins.features(k))
        if features not in numbers:
            radices = [int(data.arities[f]) for f in features]
            states = int(np.prod(radices, dtype=np.int64))
            first, second = [*(f - 1 for f in features), -1, -1][:2]
            numbers[features] = len(keys)
            keys.append((first, second, radices[1] if second >= 0 else 1, cells, states))
            cells += states * n_classes
        set_of[v] = numbers[features]
        table_cells += keys[numbers[features]][4] * n_classes
    return Families(np.array(keys, dtype=np.int64).reshape(-1, 5), set_of, cells, table_cells)


@dataclass(frozen=True)
class Coded:
    """The coefficients of a problem as codes and tables."""

    codes: CodeArray  # (n + 1, M), class last
    tables: FloatArray
    keys: IntArray  # (K, 5)
    families: Families
    magnitude: FloatArray  # (K,) sum_m w_m max_c |A_mc,v|
    likelihood: FloatArray  # (K,) log-likelihood of the column's family, 0 where none is counted
    class_sums: FloatArray  # (n_classes x rivals, K) sum_m w_m A_mr of every class
    threads: int


def build_coded(
    margins: MarginRows,
    candidate_of: IntArray,
    weights: FloatArray,
    threads: int = 1,
    poll: Poll = never,
) -> Coded:
    """Count all feature sets, and make the tables of all columns from the counts; ``weights`` of
    the margins may be others than those that are counted.
    """
    families, codes = families_of(margins, candidate_of, poll), margins.data.by_column
    codes = np.concatenate([codes[1:], codes[:1]], dtype=np.uint16, casting="unsafe")
    counted, of_margins = margins.data.weights, weights
    is_same = np.array_equal(counted, of_margins)
    of_margins = as_writeable(of_margins)
    counted = of_margins if is_same else as_writeable(counted)
    tables = np.zeros(families.table_cells)
    keys = np.full((candidate_of.size, 5), -1, dtype=np.int64)
    magnitude, likelihood = np.zeros(candidate_of.size), np.zeros(candidate_of.size)
    class_sums = np.zeros((margins.data.n_classes * margins.n_rivals, candidate_of.size))
    ordered, place = families.ordered, 0
    for lo, hi in blocks_of(families.sets, BLOCK_CELLS):
        first = int(families.sets[lo, 3])
        block, n_classes = families.sets[lo:hi], margins.data.n_classes
        counts = count_sets(codes, codes[-1], block, counted, n_classes, threads, poll)
        weighted = counts
        if not is_same:
            weighted = count_sets(codes, codes[-1], block, of_margins, n_classes, threads, poll)
        own = ordered[(families.set_of[ordered] >= lo) & (families.set_of[ordered] < hi)]
        for v in own:
            poll()
            number = families.set_of[v]
            begin, states = int(families.sets[number, 3]) - first, int(families.sets[number, 4])
            cells = states * n_classes
            by_state = counts[begin : begin + cells].reshape(states, -1)
            k = int(candidate_of[v])
            table = margins.table_from_counts(k, by_state)
            if margins.kind != "binary" and margins.n_rivals == 1:
                table = table - table[:, ::-1]
            tables[place : place + cells] = table.reshape(-1)
            keys[v] = families.sets[number]
            keys[v, 3] = place
            likelihood[v] = _likelihood(margins, k, by_state)
            by_state = weighted[begin : begin + cells].reshape(states, -1)
            magnitude[v] = (by_state * _largest(margins, table)).sum()
            class_sums[:, v] = _class_sums(margins, table, by_state)
            place += cells
    return Coded(codes, tables, keys, families, magnitude, likelihood, class_sums, threads)


def as_writeable(weights: FloatArray) -> FloatArray:
    """The same numbers in an array that is not read-only, which is another type to numba; nobody
    writes to it. What a read-only view shows need not be copied.
    """
    base = weights.base
    is_whole = isinstance(base, np.ndarray) and base.shape == weights.shape
    for same in (weights, base if is_whole else None):
        if isinstance(same, np.ndarray) and same.flags.writeable and same.flags.c_contiguous:
            return np.asarray(same, dtype=np.float64)
    return np.array(weights)


def _largest(margins: MarginRows, table: FloatArray) -> FloatArray:
    """max_r |alpha_r| of every state and class."""
    if margins.n_rivals == 1:
        return np.abs(table)
    low, high = table.min(axis=1, keepdims=True), table.max(axis=1, keepdims=True)
    return np.asarray(np.maximum(high - table, table - low))


def _class_sums(margins: MarginRows, table: FloatArray, by_state: FloatArray) -> FloatArray:
    """sum_m w_m alpha_mr by class and rival."""
    if margins.n_rivals == 1:
        return np.asarray((by_state * table).sum(axis=0))
    sums = by_state.T @ table  # of the scores of every class, over the samples of every class
    own = np.diagonal(sums)[:, None]
    return np.asarray(own - np.take_along_axis(sums, margins.rivals, axis=1)).reshape(-1)


def _likelihood(margins: MarginRows, k: int, by_state: FloatArray) -> float:
    """Log-likelihood of a feature's family."""
    child = int(margins.candidates.child[k])
    if child == 0:
        return 0.0
    family = counts_over(by_state, (*margins.candidates.parents[k], child), margins.data)
    return log_likelihood(family.reshape(-1, family.shape[-1]), 0.0)


# ---------------------------------------------------------------------- passes


def fill_columns(
    inst: Instance, rows: IntArray, out: FloatArray, threads: int, poll: Poll = never
) -> None:
    """Write the coefficients of some rows to ``out`` (K, number of rows)."""
    spread(lambda lo, hi: coded.fill_columns(inst, rows, lo, hi, out), len(out), threads, poll)


def sum_rows(
    inst: Instance, rows: IntArray, weights: FloatArray, threads: int, poll: Poll = never
) -> FloatArray:
    """Weighted sums of the coefficients of some rows, (K,)."""
    out = np.zeros(inst.linear.size)
    spread(lambda lo, hi: coded.sum_rows(inst, rows, weights, lo, hi, out), out.size, threads, poll)
    return out


def group_rows(
    inst: Instance, made: Coded, members: IntArray, starts: IntArray, poll: Poll = never
) -> FloatArray:
    """Mean coefficients of groups of samples, (groups x rivals, K); see ``kernels/coded.py``."""
    rivals = count_rows(inst) // inst.weights.size
    out = np.zeros(((starts.size - 1) * rivals, inst.linear.size))
    columns = made.families.ordered
    largest = int(made.families.sets[:, 4].max(initial=1))

    def work(lo: int, hi: int) -> None:
        coded.sum_groups(inst, columns, lo, hi, members, starts, np.empty(largest), out)

    spread(work, columns.size, made.threads, poll)
    return out
