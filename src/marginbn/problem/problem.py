"""The waist of the package: one optimisation problem for every score.

    maximise   sum_i linear[k_i]  +  sum_m w_m min(gamma, min_r alpha_{m,r} . eta)

over one candidate k_i per variable such that the graph is acyclic. Decomposable scores have no
margin rows; the soft margin has one row per rival class and the binary margin one row per
sample, both with a zero linear part. Code above this file handles data and no solver, code
below handles matrices and graphs and no data.

**What small means.** Units of weight are the user's: a gap is small, or a difference rounding, only
compared with what the objective can be (:attr:`StructureProblem.scale`). Margins can reach
W min(gamma, 1) with total weight W: the cap, or one nat where the cap is out of reach. Linear
scores lie between those of the smallest parent sets and of the best ones. A hundredth of that
counts as the size of any objective near zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from marginbn.exceptions import InputError
from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.encoded import (
    MAX_JOINT_STATES,
    EncodedData,
    Variable,
    check_joint_states,
)
from marginbn.problem.margins import MarginKind, MarginRows
from marginbn.problem.masks import dominated_sets
from marginbn.problem.scores import LocalScore
from marginbn.problem.structure import Structure

NEAR_ZERO = 0.01
"""Objectives below this part of what they can be are taken for so large."""


@dataclass(frozen=True, eq=False)
class StructureProblem:
    """Choose one candidate per variable, acyclic, maximising linear score plus capped margins.

    Parameters
    ----------
    candidates
        The candidate parent sets.
    linear
        float64 (K,), score of each candidate.
    variables
        Names and states, carried along for messages and exports.
    margins
        Margin rows, or ``None`` for a purely linear problem.
    weights
        float64 (M,), weight of each sample. With margins of :func:`margin_problem` these are the
        weights of its data; margins of one's own need not have data.
    gamma
        Cap of each sample's log margin (eq. 9).
    origin
        Data and score behind ``linear`` where it comes from a decomposable score: a certificate
        states both, and its checker makes the numbers again. Solvers do not look at it.
    error
        How far rounding can have moved the linear score of a structure; counted in every bound.
    unscored
        How much parent sets that are allowed, but were not scored in time, may add to the best
        structure of the candidates; counted in every bound.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import EncodedData, Variable, enumerate_candidates
    >>> from marginbn import linear_problem, margin_problem, solve_structure
    >>> from marginbn.problem.scores import get_local_score
    >>> variables = (Variable("class", ("0", "1")), Variable("x", ("0", "1")))
    >>> data = EncodedData(np.array([[0, 0], [1, 1]] * 9), np.ones(18), variables)
    >>> candidates = enumerate_candidates(2, 1)  # of the class: {}, {x}; of x: {}, {class}
    >>> scores = linear_problem(data, candidates, get_local_score("bic"))
    >>> scores.linear.round(3).tolist()
    [-13.922, -2.89, -13.922, -2.89]
    >>> solve_structure(scores).structure.arcs
    ((0, 1),)
    >>> problem = margin_problem(data, candidates, gamma=2.0)
    >>> problem.n_samples, problem.n_rows  # equal rows are merged
    (2, 2)
    >>> problem.evaluate([0, 3])  # x has the class: every one of the 18 rows reaches gamma
    36.0
    >>> problem.score(Structure(((), ())))  # no arcs, equal classes: all margins are zero
    0.0
    >>> solve_structure(problem).structure.arcs
    ((0, 1),)
    >>> solve_structure(problem.with_gamma(1.0)).objective
    18.0
    """

    candidates: CandidateSets
    linear: FloatArray
    variables: tuple[Variable, ...]
    margins: MarginRows | None = None
    weights: FloatArray | None = None
    gamma: float = math.inf
    origin: tuple[EncodedData, LocalScore] | None = None
    error: float = 0.0
    unscored: float = 0.0

    def __post_init__(self) -> None:
        if self.linear.shape != (self.candidates.n_candidates,):
            raise InputError("linear must hold one score per candidate")
        if not np.isfinite(self.linear).all():
            raise InputError("linear scores must be finite")
        for name in ("error", "unscored"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise InputError(f"{name} must be a number of at least 0, got {value}")
        if self.margins is not None:
            if not (self.gamma > 0 and math.isfinite(self.gamma)):
                raise InputError(f"gamma must be a positive finite number, got {self.gamma}")
            if self.weights is None or len(self.weights) != self.margins.n_samples:
                raise InputError("weights must hold one number per sample")

    @property
    def is_linear(self) -> bool:
        """Whether there are no margin rows."""
        return self.margins is None

    @property
    def n_variables(self) -> int:
        """Number of variables, class included."""
        return self.candidates.n_variables

    @property
    def n_samples(self) -> int:
        """Number of samples with margin rows."""
        return 0 if self.margins is None else self.margins.n_samples

    @property
    def n_rows(self) -> int:
        """Number of margin rows."""
        return 0 if self.margins is None else self.margins.n_samples * self.margins.n_rivals

    @property
    def sample_weights(self) -> FloatArray:
        """Weights of the samples; empty for a linear problem."""
        return np.zeros(0) if self.weights is None else self.weights

    @cached_property
    def scale(self) -> float:
        """What a small objective is measured by, see the module text; proportional to weights."""
        first = self.candidates.offsets[:-1]  # the smallest parent set of each variable
        best = math.fsum(np.maximum.reduceat(self.linear, first))
        size = max(abs(best), abs(math.fsum(self.linear[first])))
        return NEAR_ZERO * (size + min(self.gamma, 1.0) * self._total_weight)

    @cached_property
    def rounding(self) -> float:
        """How far two sums of one objective may be apart where the objective is small."""
        return 1e-9 * max(self.scale, 1e-3 * self._total_weight)

    @cached_property
    def undominated(self) -> BoolArray:
        """bool (K,): candidates that :func:`drop_dominated` keeps."""
        if not self.is_linear:
            return np.ones(self.candidates.n_candidates, dtype=bool)
        masks, offsets = self.candidates.masks, self.candidates.offsets.tolist()
        groups = [slice(first, last) for first, last in pairwise(offsets)]
        return ~np.concatenate([dominated_sets(masks[g], self.linear[g]) for g in groups])

    @cached_property
    def _total_weight(self) -> float:
        return math.fsum(self.sample_weights)

    def with_gamma(self, gamma: float) -> StructureProblem:
        """The same problem with another cap; everything else is shared."""
        return replace(self, gamma=float(gamma))

    def evaluate(self, selection: Sequence[int] | IntArray) -> float:
        """Objective of a selection from the definition, without looking at cycles."""
        chosen = np.asarray(selection, dtype=np.int64)
        value = math.fsum(self.linear[chosen])
        if self.margins is None:
            return value
        pieces = (part.min(axis=1, initial=self.gamma) for part in self.margins.pieces_at(chosen))
        return value + math.fsum(self.sample_weights * np.concatenate([np.zeros(0), *pieces]))

    def score(self, structure: Structure) -> float:
        """Objective of a structure."""
        return self.evaluate(self.candidates.selection(structure))


def margin_problem(
    data: EncodedData,
    candidates: CandidateSets,
    *,
    margin: MarginKind = "multiclass",
    gamma: float = 1.0,
    smoothing: float = 1.0,
) -> StructureProblem:
    """Soft margin (equation 9 of the paper) or binary soft margin (its section 5).

    There is an example in :class:`StructureProblem`.
    """
    if margin not in ("multiclass", "binary"):
        raise InputError(f"margin must be 'multiclass' or 'binary', got {margin!r}")
    if not (smoothing > 0 and math.isfinite(smoothing)):
        raise InputError(f"smoothing must be a positive number, got {smoothing}")
    check_match(data, candidates.n_variables)
    if data.n_classes < 2:
        raise InputError("margins need at least two classes; the data has a single one")
    merged = data.merged()
    widest = np.sort(merged.arities)[-2 - candidates.max_parents :].tolist()
    if math.prod(widest) > MAX_JOINT_STATES:  # else no set can have too many
        for child, parents in zip(candidates.child, candidates.parents, strict=True):
            check_joint_states(merged, sorted({0, int(child), *parents}))
    return StructureProblem(
        candidates=candidates,
        linear=np.zeros(candidates.n_candidates),
        variables=merged.variables,
        margins=MarginRows(merged, candidates, margin, smoothing),
        weights=merged.weights,
        gamma=float(gamma),
    )


def check_match(data: EncodedData, n_variables: int) -> None:
    """Refuse data without rows, and candidates that were made for other variables."""
    if data.n_samples == 0:
        raise InputError("the data has no rows; a structure can be learned from one row or more")
    if data.n_variables != n_variables:
        raise InputError(
            f"candidates must be over the {data.n_variables} variables of the data, "
            f"got candidates over {n_variables}"
        )


def drop_dominated(problem: StructureProblem) -> StructureProblem:
    """Leave out candidates that a subset of theirs beats: no optimum needs them.

    Exchanging a parent set for a subset never closes a cycle, so in a linear problem a candidate
    whose score is not above that of one of its subsets can go. Problems with margin rows are
    returned as they are: there a candidate's worth depends on all the others.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import StructureProblem, Variable, enumerate_candidates
    >>> from marginbn.problem.problem import drop_dominated
    >>> variables = (Variable("class", ("0", "1")), Variable("x", ("0", "1")))
    >>> problem = StructureProblem(
    ...     enumerate_candidates(2, 1), np.array([-3.0, -3.5, -5.0, -1.0]), variables
    ... )
    >>> drop_dominated(problem).candidates.parents  # the class is better off without parents
    ((), (), (0,))
    """
    keep = problem.undominated
    if keep.all():
        return problem
    return replace(problem, candidates=problem.candidates.keep(keep), linear=problem.linear[keep])


def count_table_cells(data: EncodedData, max_parents: int) -> int:
    """Cells of the look-up tables of all candidates with the class and at most two parents.

    A feature alone is in two families with the class (as its child and as its parent), a pair of
    features in three.
    """
    arities = [int(arity) for arity in data.arities[1:]]
    total = sum(arities)
    pairs = (total**2 - sum(arity**2 for arity in arities)) // 2 if max_parents > 1 else 0
    return data.n_classes * (1 + 2 * total + 3 * pairs)
