"""A structure problem as the arrays that branch and cut works on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.formulation import Poll
from marginbn.problem.margins import MarginRows
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.memory import BranchCutShape


class Coefficients:
    """The margin matrix A, R = samples x rivals rows and one column per candidate."""

    dense: FloatArray | None
    """(R, K), or ``None`` where it would be too large."""

    def __init__(
        self,
        margins: MarginRows | None,
        n_candidates: int,
        dense_bytes: int = BranchCutShape.LARGEST_DENSE,
        poll: Poll = lambda: None,
        cache_bytes: int = BranchCutShape.LARGEST_CACHE,
    ) -> None:
        self._margins = margins
        self._n_candidates = n_candidates
        self.dense = None
        if margins is None:
            self.dense = np.zeros((0, n_candidates))
        elif margins.nbytes_dense() <= dense_bytes:
            self.dense = np.empty((self.n_rows, n_candidates))
            for k in range(n_candidates):
                poll()
                self.dense[:, k] = margins.column(k).ravel()
        kept = max(1, cache_bytes // (8 * self.n_rows)) if self.dense is None else 0
        self._column = lru_cache(kept)(self._make_column)

    @property
    def n_rows(self) -> int:
        """R."""
        return 0 if self._margins is None else self._margins.n_samples * self._margins.n_rivals

    def column(self, k: int) -> FloatArray:
        """Coefficients of one candidate, (R,)."""
        return self._column(k) if self.dense is None else self.dense[:, k]

    def _make_column(self, k: int) -> FloatArray:
        assert self._margins is not None  # without margins the matrix is dense and empty
        return self._margins.column(k).ravel()

    def columns(self, first: int, last: int) -> FloatArray:
        """Coefficients of neighbouring candidates, (R, last - first)."""
        if self.dense is not None:
            return self.dense[:, first:last]
        return np.column_stack([self.column(k) for k in range(first, last)])

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """The entries of some rows and columns."""
        if self.dense is not None:
            return self.dense[np.ix_(rows, columns)]
        block = np.empty((len(rows), len(columns)))
        for place, k in enumerate(columns):
            block[:, place] = self.column(int(k))[rows]
        return block

    def margins_at(self, columns: IntArray, mass: FloatArray) -> FloatArray:
        """A eta for a point given by its support, (R,)."""
        if self.dense is not None:
            return np.asarray(self.dense[:, columns] @ mass)
        total = np.zeros(self.n_rows)
        for k, share in zip(columns, mass, strict=True):
            total += share * self.column(int(k))
        return total

    def combine(self, rows: IntArray, multipliers: FloatArray) -> FloatArray:
        """The combination of some rows, (K,)."""
        if self.dense is not None:
            return np.asarray(multipliers @ self.dense[rows])
        everything = np.arange(self._n_candidates)
        return np.array([multipliers @ self.column(int(k))[rows] for k in everything])

    def magnitudes(self, weights: FloatArray, poll: Poll = lambda: None) -> FloatArray:
        """sum_m w_m max_c |A_mc,k| for every candidate k, (K,)."""
        sizes = np.zeros(self._n_candidates)
        if len(weights) == 0:
            return sizes
        if self.dense is not None:
            rows = self.dense.reshape(len(weights), -1, self._n_candidates)
            for weight, of_sample in zip(weights, rows, strict=True):
                sizes += weight * np.abs(of_sample).max(axis=0)
            return sizes
        for k in range(self._n_candidates):
            poll()
            sizes[k] = weights @ np.abs(self.column(k).reshape(len(weights), -1)).max(axis=1)
        return sizes


@dataclass(frozen=True)
class Instance:
    """A problem as arrays."""

    candidates: CandidateSets
    offsets: IntArray  # (n + 1,) the candidates of i are offsets[i]:offsets[i + 1]
    child: IntArray  # (K,)
    members: IntArray  # (K, P) parents of each candidate, padded with -1
    linear: FloatArray  # (K,)
    weights: FloatArray  # (M,)
    gamma: float
    n_rivals: int
    constant: float  # samples without rivals: they have no row
    coefficients: Coefficients
    magnitude: float  # G of ``bound.py``
    scale: float = 1.0  # of the problem: what values near zero are measured by

    @property
    def unit(self) -> float:
        """The power of two below the scale: for numbers that cannot do without a unit."""
        return math.ldexp(1.0, math.frexp(self.scale)[1] - 1) if self.scale > 0 else 1.0

    @property
    def n_variables(self) -> int:
        """Number of variables, class included."""
        return len(self.offsets) - 1

    @property
    def n_candidates(self) -> int:
        """K."""
        return len(self.linear)

    @property
    def n_samples(self) -> int:
        """Number of samples with margin rows."""
        return len(self.weights)

    @cached_property
    def holders(self) -> dict[tuple[int, int], IntArray]:
        """(child, parent) -> flat indices of the child's candidates that contain the parent."""
        lists: dict[tuple[int, int], list[int]] = {}
        for k, row in enumerate(self.members):
            for parent in row[row >= 0]:
                lists.setdefault((int(self.child[k]), int(parent)), []).append(k)
        return {arc: np.array(found, dtype=np.int64) for arc, found in lists.items()}

    def holding(self, child: int, parent: int) -> IntArray:
        """Candidates of ``child`` that contain ``parent``."""
        return self.holders.get((child, parent), np.zeros(0, dtype=np.int64))

    def value(self, chosen: IntArray) -> float:
        """Objective of a selection, up to rounding."""
        rows = self.coefficients.margins_at(chosen, np.ones(len(chosen)))
        least = rows.reshape(self.n_samples, self.n_rivals).min(axis=1, initial=self.gamma)
        return float(self.linear[chosen].sum() + self.weights @ least) + self.constant

    def group(self, variable: int) -> slice:
        """Candidates of a variable."""
        return slice(int(self.offsets[variable]), int(self.offsets[variable + 1]))

    def group_maxima(self, values: FloatArray) -> FloatArray:
        """Largest value of each variable, (n,)."""
        return np.maximum.reduceat(values, self.offsets[:-1])


def build_instance(
    problem: StructureProblem,
    dense_bytes: int = BranchCutShape.LARGEST_DENSE,
    poll: Poll = lambda: None,
    cache_bytes: int = BranchCutShape.LARGEST_CACHE,
) -> Instance:
    """Write a problem out as arrays."""
    candidates = problem.candidates
    width = max(candidates.max_parents, 1)
    members = np.full((candidates.n_candidates, width), -1, dtype=np.int64)
    for k, parents in enumerate(candidates.parents):
        members[k, : len(parents)] = parents
    has_rows = problem.n_rows > 0
    weights = problem.sample_weights if has_rows else np.zeros(0)
    idle = 0.0 if problem.is_linear or has_rows else problem.gamma * problem.sample_weights.sum()
    coefficients = Coefficients(
        problem.margins if has_rows else None,
        candidates.n_candidates,
        dense_bytes,
        poll,
        cache_bytes,
    )
    sizes = np.abs(problem.linear) + coefficients.magnitudes(weights, poll)
    return Instance(
        candidates=candidates,
        offsets=candidates.offsets,
        child=candidates.child.astype(np.int64),
        members=members,
        linear=problem.linear,
        weights=np.ascontiguousarray(weights, dtype=np.float64),
        gamma=float(problem.gamma) if has_rows else 1.0,
        n_rivals=problem.n_rows // problem.n_samples if has_rows else 1,
        constant=float(idle),
        coefficients=coefficients,
        magnitude=float(np.maximum.reduceat(sizes, candidates.offsets[:-1]).sum()),
        scale=problem.scale,
    )


def arc_mass(n_variables: int, child: IntArray, members: IntArray, mass: FloatArray) -> FloatArray:
    """Mass of the candidates that make each arc, [parent, child]; (n, n)."""
    arcs = np.zeros((n_variables, n_variables))
    for parents in members.T:
        real = parents >= 0
        np.add.at(arcs, (parents[real], child[real]), mass[real])
    return arcs
