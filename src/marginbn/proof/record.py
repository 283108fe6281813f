"""What a search that keeps its proof shares with the relaxations that bound its nodes.

* The *recorded tree* of nodes that goes into a certificate.
* *Dual weights*, rounded to as few bits as keep the bound good enough.
* The *allowance* for a checker's rounding. It rounds the values of candidates up to multiples of
  2^grid in 64-bit integers, which leave 54 - 3 b bits for a value where the number of variables has
  b bits. The claimed bound lies above everything that rounding can add (:attr:`Relaxation.slack`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from marginbn.problem.array_types import CodeArray, FloatArray
from marginbn.problem.problem import StructureProblem
from marginbn.problem.scores import is_dirichlet
from marginbn.proof.certificate import DualWeights, NamedRow, part_type
from marginbn.solvers.run import Run

Decision = tuple[int, ...]
"""Kind and arguments of the object that a node is split on, in the numbers of the certificate."""


@dataclass(frozen=True, eq=False)
class Proof:
    """Weights that bound a node; ``multipliers`` is ``None`` for a bound by forests."""

    dual: DualWeights | None = None
    multipliers: tuple[tuple[NamedRow, float], ...] | None = None


@dataclass(eq=False)
class TreeNode:
    """A set of structures (``state`` is known to the relaxation alone) with a proof of its bound:
    a leaf of the recorded tree until it is split.
    """

    bound: float
    proof: Proof
    split: Decision | None = None
    sides: tuple[TreeNode, TreeNode] | None = None
    state: Any = None


def smooth_shares(margins: FloatArray, gamma: float, smoothing: float) -> FloatArray:
    """Shares of the rivals in the minimum of margins and gamma, smoothed; (M, rivals).

    With s = (margins, gamma) of a sample, p minimises p . s + (smoothing / 2) |p|^2 over the
    simplex: p_c = max(0, (nu - s_c) / smoothing) with sum p = 1.
    """
    capped = np.column_stack([margins, np.full(len(margins), gamma)])
    ordered = np.sort(capped, axis=1)
    sums = np.cumsum(ordered, axis=1)
    counts = np.arange(1, ordered.shape[1] + 1)
    levels = (smoothing + sums) / counts
    support = (ordered < levels).sum(axis=1)  # a prefix of the sorted entries
    nu = levels[np.arange(len(levels)), support - 1]
    return np.asarray(np.maximum(0.0, (nu[:, None] - margins) / smoothing))


def quantise(shares: FloatArray, bits: int) -> DualWeights:
    """Shares to the nearest multiples of 2^-bits, none in all above one."""
    whole = 2**bits
    parts = np.floor(np.clip(shares, 0.0, 1.0) * whole + 0.5).astype(np.int64)
    for _ in range(parts.shape[1]):  # rounding adds at most half a part per rival
        excess = np.maximum(parts.sum(axis=1) - whole, 0)
        if not excess.any():
            break
        largest = parts.argmax(axis=1)
        rows = np.arange(len(parts))
        parts[rows, largest] -= np.minimum(excess, parts[rows, largest])
    return DualWeights(bits, parts.astype(part_type(bits)))


def exact_shares(margins: FloatArray, gamma: float) -> FloatArray:
    """All to the smallest margin, nothing where it exceeds gamma: tight for one structure."""
    shares = np.zeros_like(margins)
    smallest = margins.argmin(axis=1)
    rows = np.flatnonzero(margins[np.arange(len(margins)), smallest] < gamma)
    shares[rows, smallest[rows]] = 1.0
    return shares


def weights_of(dual: DualWeights, weights: FloatArray) -> tuple[FloatArray, float]:
    """u of every margin row, and sum_m (w_m - sum_c u_mc)."""
    shares = dual.parts * 2.0**-dual.bits
    return (weights[:, None] * shares).reshape(-1), float(weights @ (1.0 - shares.sum(axis=1)))


def score_slack(problem: StructureProblem) -> float:
    """How far a checker's decomposable local score may be off: it has up to four logarithms or
    log-gammas per distinct row, each off by a unit of 2^-44 (in likelihoods times its count), and a
    penalty for every cell.
    """
    if problem.origin is None:  # margins, or scores of a file
        return 2.0**-44 if problem.margins is None else 0.0
    data, score = problem.origin
    candidates = problem.candidates
    cells = max(
        math.prod(int(data.arities[v]) for v in {int(child), *parents})
        for child, parents in zip(candidates.child, candidates.parents, strict=True)
    )
    weight = 0.0 if is_dirichlet(score) else data.total_weight
    return (8.0 * data.n_samples + 4.0 * weight + cells + 8.0) * 2.0**-44


SMALLEST_GAP = 1e-9
"""Relative gap that a cutoff leaves at least, so that rounding cannot prune the best structure."""


@dataclass(frozen=True, eq=False)
class RoundedMajorant:
    """Rounded weights with what they give: f <= constant + values . eta.

    ``bound`` is the largest value of the right-hand side over the node they were made for, or more.
    """

    proof: Proof
    constant: float
    values: FloatArray
    bound: float


class Relaxation(ABC):
    """Bounds the nodes of a search that keeps its proof, and splits them. ``largest`` is the
    largest value of a candidate that a proof may need.
    """

    LEAF_BITS: ClassVar[tuple[int, ...]]
    """Tried one after the other until the rounded weights still prune."""

    INNER_BITS: ClassVar[int]
    """For nodes that are split."""

    def __init__(self, run: Run, largest: float) -> None:
        self.run = run
        self.problem = run.problem
        self.largest = largest
        self.most_rows = 0  # that a proof has used
        bits = 54 - 3 * self.problem.n_variables.bit_length()  # that a checker leaves for a value
        self.grid = math.frexp(2.0 * largest)[1] - bits if largest > 0 else -bits
        self.gap = max(run.limits.gap, SMALLEST_GAP)  # to which the proof goes
        self.stop = np.zeros(1, dtype=np.int64)  # flag that compiled code looks at
        self._level = 1  # where the bits of the last leaf stand in LEAF_BITS

    @property
    def cutoff(self) -> float:
        """Nodes with a bound up to this are leaves; a fifth of the gap is left for rounding."""
        objective = self.run.objective
        return objective + 0.8 * self.gap * max(self.problem.scale, abs(objective))

    @property
    def slack(self) -> float:
        """How much a checker's bound can exceed the same bound in exact arithmetic, and ours fall
        short of it: a unit of the grid for every variable, for the constant and for every
        multiplier; 8 units of 2^-44 for every coefficient, times the weights; the rest.
        """
        problem, n = self.problem, self.problem.n_variables + 1
        weight = float(problem.sample_weights.sum())
        gamma = problem.gamma if problem.margins is not None else 0.0
        units = (2 * n + self.most_rows + 4) * 2.0**self.grid
        coefficients = 8.0 * n * weight * 2.0**-44
        sums = 2.0**-49 * (problem.n_rows + 64) * (n * self.largest + gamma * weight)
        return units + coefficients + sums + n * (3.0 * score_slack(problem) + 4.0 * problem.error)

    @abstractmethod
    def root(self) -> TreeNode:
        """All structures, with the trivial bound."""

    @abstractmethod
    def visit(self, claim: TreeNode) -> TreeNode:
        """A node that is above the cutoff with a better bound, and split if need be."""

    def grouped(self, duals: Iterable[DualWeights]) -> tuple[list[DualWeights], CodeArray | None]:
        """Dual weights as they are written, and the group of every sample if these share them."""
        return list(duals), None

    def fewest_bits(self, prunes: bool, weigh: Callable[[int], RoundedMajorant]) -> RoundedMajorant:
        """As few bits as still prune where unrounded weights do, otherwise those of a split."""
        if prunes:
            for level in range(max(0, self._level - 1), len(self.LEAF_BITS)):
                majorant = weigh(self.LEAF_BITS[level])
                if majorant.bound <= self.cutoff:
                    self._level = level
                    return majorant
        return weigh(self.INNER_BITS)
