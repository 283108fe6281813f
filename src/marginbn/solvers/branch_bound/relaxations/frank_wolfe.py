"""From a structure problem to the arrays of the compiled Frank-Wolfe relaxation, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginbn.problem import StructureProblem
from marginbn.solvers.branch_bound.kernels.layout import BoolArray, Instance, IntArray
from marginbn.solvers.branch_bound.kernels.rounding import column_magnitudes, structure_magnitude


@dataclass(frozen=True)
class Encoding:
    """A problem as kernel arrays.

    Attributes
    ----------
    instance : the arrays
    constant : what the objective adds to the kernels' value (samples without rivals)
    candidate_of : (K,) flat candidate of every column, -1 where the column does not exist
    structure_magnitude : see ``kernels/rounding.py``
    slot_discount : how much less a slot is worth as a split than its drop says
    """

    instance: Instance
    constant: float
    candidate_of: IntArray
    structure_magnitude: float
    slot_discount: float

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.instance.n_features

    @property
    def slots(self) -> BoolArray:
        """(n, n + 2): which slots exist."""
        n = self.n_features
        return np.ascontiguousarray(self.candidate_of[: n * (n + 2)].reshape(n, n + 2) >= 0)

    def vertex(self, selection: IntArray) -> IntArray:
        """A selection as a vertex."""
        n = self.n_features
        column_of = np.empty(self.candidate_of.max() + 1, dtype=np.int64)
        existing = np.flatnonzero(self.candidate_of >= 0)
        column_of[self.candidate_of[existing]] = existing
        columns = column_of[np.asarray(selection, dtype=np.int64)]
        offsets = np.arange(n) * (n + 2)
        return np.append(columns[1:] - offsets, columns[0] - n * (n + 2)).astype(np.int64)

    def selection(self, vertex: IntArray) -> IntArray:
        """A vertex as a selection (class first)."""
        n = self.n_features
        columns = vertex + np.arange(n + 1) * (n + 2)
        return self.candidate_of[np.roll(columns, 1)]


def encode(problem: StructureProblem) -> Encoding:
    """Arrays of a class-restricted problem with at most two parents per variable."""
    candidate_of, first, second = _columns(problem)
    existing = np.flatnonzero(candidate_of >= 0)
    linear = np.zeros(candidate_of.size)
    linear[existing] = problem.linear[candidate_of[existing]]
    rivals = 1 if problem.margins is None else problem.margins.n_rivals
    weights = problem.sample_weights if rivals else np.zeros(0)
    constant = 0.0 if rivals else float(problem.gamma * problem.sample_weights.sum())
    columns = np.zeros((candidate_of.size, weights.size * max(rivals, 1)))
    if weights.size and problem.margins is not None:
        for v in existing:
            columns[v] = problem.margins.column(int(candidate_of[v])).ravel()
    magnitude = column_magnitudes(columns, linear, weights, max(rivals, 1))
    n = problem.n_variables - 1
    instance = Instance(
        n,
        max(rivals, 1),
        float(problem.gamma) if weights.size else 1.0,
        np.ascontiguousarray(columns.T),
        columns,
        linear,
        magnitude,
        np.array(
            weights, dtype=np.float64
        ),  # a copy: a read-only array would be another type to numba
        first,
        second,
    )
    return Encoding(
        instance, constant, candidate_of, structure_magnitude(magnitude, n), _slot_discount(problem)
    )


def _slot_discount(problem: StructureProblem) -> float:
    """0.03, but 1 for one-against-all margins of several classes (measured: discounting slots hurts
    there).
    """
    margins = problem.margins
    if margins is None or margins.kind != "binary" or margins.data.n_classes <= 2:
        return 0.03
    return 1.0


def _columns(problem: StructureProblem) -> tuple[IntArray, IntArray, IntArray]:
    """Candidate of every column, and the members of the class sets."""
    candidates = problem.candidates
    n = candidates.n_variables - 1
    class_sets = candidates.group(0)
    candidate_of = np.full(n * (n + 2) + len(class_sets), -1, dtype=np.int64)
    first = np.full(len(class_sets), -1, dtype=np.int64)
    second = np.full(len(class_sets), -1, dtype=np.int64)
    for number, k in enumerate(class_sets):
        candidate_of[n * (n + 2) + number] = k
        members = candidates.parents[k]
        first[number] = members[0] - 1 if members else -1
        second[number] = members[1] - 1 if len(members) > 1 else -1
    for i in range(n):
        for k in candidates.group(i + 1):
            candidate_of[i * (n + 2) + _slot(candidates.parents[k], n)] = k
    return candidate_of, first, second


def _slot(parents: tuple[int, ...], n: int) -> int:
    """Slot number of a feature's parent set."""
    if not parents:
        return n + 1
    return n if len(parents) == 1 else parents[1] - 1
