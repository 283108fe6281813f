"""From a structure problem to the arrays of the compiled Frank-Wolfe relaxation, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_bound.kernels import records
from marginbn.solvers.branch_bound.kernels.bound import structure_magnitude
from marginbn.solvers.branch_bound.kernels.records import Instance
from marginbn.solvers.branch_bound.pair_tables import Coded, as_writeable, build_coded
from marginbn.solvers.counts import Poll
from marginbn.solvers.memory import BranchBoundShape, free_features


@dataclass(frozen=True)
class Encoding:
    """A problem as kernel arrays."""

    instance: Instance
    constant: float  # what the objective adds to the kernels' value (samples without rivals)
    candidate_of: IntArray  # (K,) candidate of every column, -1 where the column does not exist
    magnitude: FloatArray  # (K,) G of every column, see ``kernels/bound.py``
    structure_magnitude: float  # the same of structures
    features: IntArray  # (n,) their variables
    alone: IntArray  # (n_variables,) first candidate of every variable, which is the only one of
    # variables that are no features here
    places: int  # of the smallest store of open nodes
    coded: Coded | None = None  # codes and tables instead of coefficients

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.instance.n_features

    @property
    def slots(self) -> BoolArray:
        """(n, n + 2): which slots exist."""
        n, skipped = self.n_features, self.instance.skipped
        slots = np.zeros((n, n + 2), dtype=np.bool_)
        own = self.candidate_of[: records.column_of(self.instance, n, 0)] >= 0
        slots[:, skipped:] = own.reshape(n, n + 2 - skipped)
        return slots

    def vertex(self, selection: IntArray) -> IntArray:
        """A selection as a vertex."""
        column = np.empty(self.candidate_of.max() + 1, dtype=np.int64)  # of every candidate
        existing = np.flatnonzero(self.candidate_of >= 0)
        column[self.candidate_of[existing]] = existing
        chosen = np.take(selection, np.append(self.features, 0))
        nothing = np.zeros(self.n_features + 1, dtype=np.int64)
        return np.asarray(column[chosen] - records.columns_of(self.instance, nothing))

    def selection(self, vertex: IntArray) -> IntArray:
        """A vertex as a selection (class first)."""
        chosen = self.alone.copy()
        chosen[np.append(self.features, 0)] = self.candidate_of[
            records.columns_of(self.instance, vertex)
        ]
        return chosen


def encode(problem: StructureProblem, threads: int = 0, poll: Poll = lambda: None) -> Encoding:
    """Arrays of a class-restricted problem with at most two parents per variable. Features that no
    structure joins to anything, such as constant ones, have no columns.

    With ``threads`` there are no coefficients, but codes and tables. ``poll`` is called on the way
    and may raise.
    """
    features = free_features(problem.candidates)
    alone = problem.candidates.offsets[:-1].copy()
    candidate_of, first, second = _columns(problem, features)
    existing = np.flatnonzero(candidate_of >= 0)
    linear = np.zeros(candidate_of.size)
    linear[existing] = problem.linear[candidate_of[existing]]
    rivals = 1 if problem.margins is None else problem.margins.n_rivals
    weights = as_writeable(problem.sample_weights if rivals else np.zeros(0))
    decided = problem.linear[np.delete(alone, np.append(features, 0))]
    constant = 0.0 if rivals else float(problem.gamma * problem.sample_weights.sum())
    constant = math.fsum([constant, *decided])
    n = features.size
    if threads and problem.margins is not None and weights.size:
        coded = build_coded(problem.margins, candidate_of, weights, threads, poll)
        columns, magnitude = np.zeros((candidate_of.size, 0)), np.abs(linear) + coded.magnitude
    else:
        coded = None
        made = _coefficients(problem, candidate_of, weights, poll)
        columns, magnitude = made.columns, np.abs(linear) + made.magnitude
    instance = Instance(
        n,
        float(problem.gamma) if weights.size else 1.0,
        0.0,
        0.0,
        np.zeros((0, 0)),
        columns,
        linear,
        float(max(magnitude.max(initial=0.0), np.abs(decided).max(initial=0.0))),
        weights,
        np.arange(weights.size + 1, dtype=np.int64) * max(rivals, 1),
        first,
        second,
        problem.scale,
        0 if problem.candidates.max_parents > 1 else n,
    )
    if coded is not None and problem.margins is not None:
        instance = instance._replace(
            n_classes=problem.margins.data.n_classes,
            codes=coded.codes,
            tables=coded.tables,
            keys=coded.keys,
        )
    return Encoding(
        instance,
        constant,
        candidate_of,
        magnitude,
        structure_magnitude(magnitude, n, first.size),
        features,
        alone,
        BranchBoundShape.of(problem).smallest_places,
        coded,
    )


@dataclass(frozen=True)
class Coefficients:
    """All margin coefficients A, and what their columns add to the magnitudes G."""

    columns: FloatArray  # (K, R)
    magnitude: FloatArray  # (K,) sum_m w_m max_c |A_mc,v|, see ``kernels/bound.py``


def _coefficients(
    problem: StructureProblem, candidate_of: IntArray, weights: FloatArray, poll: Poll
) -> Coefficients:
    """Every coefficient, column by column from look-up tables; nothing is held twice. They stay
    with the margin rows, for the next problem with another gamma.
    """
    margins, magnitude = problem.margins, np.zeros(candidate_of.size)
    if margins is None or weights.size == 0:
        return Coefficients(np.zeros((candidate_of.size, 0)), magnitude)
    is_usual = problem.weights is margins.data.weights and problem.candidates is margins.candidates
    kept: Coefficients | None = margins.derived.get(Coefficients)
    if kept is not None and is_usual:
        return kept
    columns = np.zeros((candidate_of.size, weights.size * margins.n_rivals))
    for v in np.flatnonzero(candidate_of >= 0):
        poll()
        table, samples = margins.lookup(int(candidate_of[v]))
        place = columns[v].reshape(weights.size, margins.n_rivals)
        np.take(table, samples, axis=0, out=place, mode="clip")  # other modes copy once more
        largest = np.abs(table).max(axis=1)[samples]
        magnitude[v] = (weights * largest).sum()  # small dot products pay dearly for threads
    made = Coefficients(columns, magnitude)
    if is_usual:
        margins.derived[Coefficients] = made
    return made


def _columns(problem: StructureProblem, features: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Candidate of every column, and the members of the class sets."""
    candidates = problem.candidates
    n = features.size
    number = np.full(candidates.n_variables, -1, dtype=np.int64)  # of every variable
    number[features] = np.arange(n)
    skipped = 0 if candidates.max_parents > 1 else n
    width = n + 2 - skipped
    class_sets = candidates.group(0)
    candidate_of = np.full(n * width + len(class_sets), -1, dtype=np.int64)
    first = np.full(len(class_sets), -1, dtype=np.int64)
    second = np.full(len(class_sets), -1, dtype=np.int64)
    for s, k in enumerate(class_sets):
        candidate_of[n * width + s] = k
        members = candidates.parents[k]
        first[s] = number[members[0]] if members else -1
        second[s] = number[members[1]] if len(members) > 1 else -1
    for i, variable in enumerate(features):
        for k in candidates.group(variable):
            parents = candidates.parents[k]
            slot = (n + 1, n, -1)[len(parents)]
            slot = number[parents[1]] if slot < 0 else slot
            candidate_of[i * width + slot - skipped] = k
    return candidate_of, first, second
