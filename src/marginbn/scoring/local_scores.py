"""The undominated parent sets of every variable, ready to be solved or written to a file."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from joblib import effective_n_jobs

from marginbn.exceptions import InputError
from marginbn.problem.array_types import EPS, FloatArray, WordArray
from marginbn.problem.candidates import (
    Arc,
    CandidateRule,
    CandidateSets,
    check_arcs,
    enumerate_candidates,
    refuse_without_candidates,
)
from marginbn.problem.encoded import EncodedData
from marginbn.problem.masks import ParentSets, dominated_sets, sorting_order
from marginbn.problem.problem import StructureProblem, check_match, drop_dominated
from marginbn.problem.scores import (
    SCORES,
    LocalScore,
    ScoreName,
    candidate_score,
    get_local_score,
)

if TYPE_CHECKING:
    from marginbn.scoring.climbing import KeptSets, Progress
    from marginbn.scoring.sums import IsLate

COMPILED = ("mdl", "bic", "aic", "loglik", "bdeu", "k2")
"""Scores that are differences of sums over sets."""


class ScoringListener:
    """A line on stderr now and then while parent sets are scored."""

    SECONDS = 2.0
    """Between two lines."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, size: int, looked_at: int) -> None:
        """Say how far the scores are."""
        if time.monotonic() - self._last >= self.SECONDS:
            self._last = time.monotonic()
            sys.stderr.write(f"scored {looked_at} parent sets, now those of {size} members\n")


def local_scores(
    data: EncodedData,
    score: ScoreName = "bic",
    max_parents: int | None = None,
    *,
    equivalent_sample_size: float = 1.0,
    class_restricted: bool = False,
    required: Collection[Arc] = (),
    forbidden: Collection[Arc] = (),
    n_jobs: int | None = None,
    progress: Progress | None = None,
    is_late: IsLate | None = None,
) -> StructureProblem:
    """The undominated parent sets of every variable with their scores.

    Parameters
    ----------
    data
        Encoded rows; with ``class_restricted=False`` the first variable is like all others.
    score
        "bic" ("mdl"), "aic", "bdeu", "k2" or "loglik"; a score that was added to
        ``marginbn.problem.scores.SCORES`` has all its parent sets enumerated.
    max_parents
        None allows any number. If that takes too much work or memory, the limit is the largest
        that fits: ``candidates.rule.max_parents`` of the result, the number of variables less one
        if there is no limit.
    equivalent_sample_size
        Of "bdeu".
    class_restricted
        Features have no parents or the class (variable 0) among them.
    required, forbidden
        Arcs (parent, child) that every (no) structure has.
    n_jobs
        Threads that count; None means 1, -1 all cores.
    progress
        Called with the size of the newest parent sets and the number of all looked at so far.
    is_late
        Whether the scores have taken as long as they may. If it is given, the limit of parents of a
        general network is the largest for which all sets are scored in time, and at least one.
        Where even these sets are not all scored, ``unscored`` of the result is positive.

    Returns
    -------
    StructureProblem
        Ready for :func:`marginbn.solve_structure` and :func:`marginbn.save_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import EncodedData, Variable, local_scores
    >>> variables = tuple(Variable(name, ("0", "1")) for name in "abc")
    >>> codes = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]] * 5)
    >>> problem = local_scores(EncodedData(codes, np.ones(20), variables), "bic")
    >>> problem.candidates.parents
    ((), (1,), (), (0,), ())
    """
    formula = get_local_score(score, equivalent_sample_size)
    if max_parents is not None and max_parents < 0:
        raise InputError(f"max_parents must be an integer of at least 0 or None, got {max_parents}")
    if max_parents is None and (score == "loglik" or score not in COMPILED):
        why = "every parent helps it" if score == "loglik" else "no bound is known for it"
        raise InputError(f"max_parents must be given for score={score!r}: {why}")
    check_arcs(required, forbidden, data.names)
    most = data.n_variables - 1 if max_parents is None else max_parents
    arcs = tuple(sorted(set(required))), tuple(sorted(set(forbidden)))
    rule = CandidateRule(most, class_restricted, *arcs, data.constant)
    if score not in COMPILED:
        candidates = enumerate_candidates(
            data.n_variables,
            most,
            class_restricted=class_restricted,
            required=required,
            forbidden=forbidden,
            constant=data.constant,
            names=data.names,
        )
        return drop_dominated(linear_problem(data, candidates, formula))
    # these load numba
    from marginbn.scoring.climbing import climb_lattices, find_lattices
    from marginbn.scoring.sums import SetSums

    check_match(data, data.n_variables)
    merged = data.merged()
    sums = SetSums(merged, score, equivalent_sample_size, effective_n_jobs(n_jobs))
    lattices = find_lattices(data, class_restricted, frozenset(required), frozenset(forbidden))
    for lattice in lattices:
        if lattice.n_base > most and not lattice.empty:
            refuse_without_candidates(lattice.child, rule, data.names)
    may_stop = max_parents is None or (is_late is not None and not class_restricted)
    least = min(most, max(1, *(own.n_base for own in lattices))) if may_stop else most
    climbs, limit, unscored = climb_lattices(
        sums, lattices, least, most, progress, is_late or (lambda: False)
    )
    rule = replace(rule, max_parents=limit)
    parts = [_kept_sets(climb.kept) for climb in climbs]
    masks, linear, errors = (np.concatenate(part) for part in zip(*parts, strict=True))
    child = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part[1]) for part in parts])
    candidates = CandidateSets(len(parts), child, ParentSets(masks), rule)
    problem = _problem_of(merged, candidates, formula, linear, errors)
    return replace(problem, unscored=unscored)


def _kept_sets(levels: list[KeptSets]) -> tuple[WordArray, FloatArray, FloatArray]:
    """The parent sets of one child, their scores and what rounding can have done to these; compared
    again where they were in doubt.
    """
    masks, doubtful, values, errors = map(np.concatenate, zip(*levels, strict=True))
    keep = np.ones(len(masks), dtype=bool)
    if doubtful.any():
        keep = ~dominated_sets(masks, values, doubtful)
    order = np.flatnonzero(keep)[sorting_order(masks[keep])]
    return masks[order], values[order], errors[order]


def linear_problem(
    data: EncodedData, candidates: CandidateSets, score: LocalScore
) -> StructureProblem:
    """Decomposable score over given candidates: a problem without margin rows.

    The formula of a user is taken at its word: its error is zero. There is an example in
    :class:`~marginbn.problem.problem.StructureProblem`.
    """
    check_match(data, candidates.n_variables)
    merged = data.merged()
    return _problem_of(merged, candidates, score, *scores_with_errors(merged, candidates, score))


def scores_with_errors(
    data: EncodedData, candidates: CandidateSets, score: LocalScore
) -> tuple[FloatArray, FloatArray]:
    """Score of every candidate, and how far rounding can have moved it (both (K,))."""
    from marginbn.scoring.sums import SetSums, exact_values  # loads numba

    function, options = score, {}
    if isinstance(score, partial):
        function, options = score.func, score.keywords
    name = next((name for name, own in SCORES.items() if own.function is function), None)
    sums = SetSums(data, name or "", options.get("equivalent_sample_size", 1.0))
    if name not in COMPILED:
        values = np.array(
            [candidate_score(data, candidates, k, score) for k in range(candidates.n_candidates)]
        )
        return values, EPS * sums.roundings * np.abs(values) * (name is not None)
    groups = [candidates.group(i) for i in range(candidates.n_variables)]
    masks = [candidates.masks[group.start : group.stop] for group in groups]
    parts = [exact_values(sums, i, own) for i, own in enumerate(masks)]
    values, errors = (np.concatenate(part) for part in zip(*parts, strict=True))
    return values, errors


def _problem_of(
    data: EncodedData,
    candidates: CandidateSets,
    score: LocalScore,
    values: FloatArray,
    errors: FloatArray,
) -> StructureProblem:
    """The problem of candidates with their scores; an error for each variable counts."""
    return StructureProblem(
        candidates,
        values,
        data.variables,
        origin=(data, score),
        error=math.fsum(np.maximum.reduceat(errors, candidates.offsets[:-1])),
    )
