"""From a structure problem to the definition that a certificate carries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError
from marginbn.problem.candidates import (
    CandidateRule,
    CandidateSets,
    count_candidates,
    enumerate_candidates,
)
from marginbn.problem.encoded import EncodedData
from marginbn.problem.margins import MarginRows
from marginbn.problem.problem import StructureProblem, drop_dominated
from marginbn.problem.scores import SCORES
from marginbn.proof.certificate import Candidates, Data, Score
from marginbn.proof.checker.values import decomposable_scores


def define_data(data: EncodedData) -> Data:
    """Merged data in the terms of a certificate."""
    merged = data.merged()
    states = tuple(variable.states for variable in merged.variables)
    return Data(merged.names, states, merged.codes, merged.weights)


def data_behind(problem: StructureProblem) -> EncodedData:
    """The data that a problem was made of; refused where it is not known."""
    if problem.margins is not None:
        if np.any(problem.linear != 0):
            raise InputError("a certificate needs a margin problem without additional scores")
        if not np.array_equal(problem.sample_weights, problem.margins.data.weights):
            raise InputError(
                "a certificate needs the weights of the data: make the problem with margin_problem"
            )
        return problem.margins.data
    if problem.origin is None:
        raise InputError(
            "a certificate needs the data behind the scores: make the problem with linear_problem"
        )
    return problem.origin[0]


def define_score(problem: StructureProblem) -> Score:
    """The score by name and numbers."""
    if problem.margins is not None:
        return Score(problem.margins.kind, problem.gamma, problem.margins.smoothing)
    assert problem.origin is not None  # asked for by data_behind
    score = problem.origin[1]
    size = 1.0
    if isinstance(score, partial):
        size = float(score.keywords.get("equivalent_sample_size", 1.0))
        score = score.func
    return Score(_formula_of(score), equivalent_sample_size=size)


def _formula_of(score: Callable[..., float]) -> str:
    """The checker's name of a score; refused where the checker has no formula for it."""
    known = {n: e.certificate for n, e in SCORES.items() if e.certificate in decomposable_scores()}
    own = [name for name, entry in SCORES.items() if entry.function is score]
    for formula in (known.get(name) for name in own):
        if formula is not None:
            return formula
    name = own[0] if own else getattr(inspect.unwrap(score), "__name__", repr(score))
    raise InputError(
        f"a certificate needs one of the scores {sorted(known)}, got {name}: "
        "solve without a certificate, or give the checker its formula (docs, 'Add a score')"
    )


def define_candidates(problem: StructureProblem) -> tuple[Candidates, NDArray[np.int64]]:
    """The candidates, and the number that each candidate of the problem has in the certificate.

    A rule describes them where it makes the same list, apart from candidates that a kept subset
    dominates, and calls nothing constant that has several states; everything else is listed. Of a
    rule with too many sets for a checker, those as large as the kept ones are left.
    """
    own, rule = problem.candidates, problem.candidates.rule
    if rule is not None and problem.is_linear and not _is_short(rule, problem):
        rule = replace(rule, max_parents=own.max_parents)
    if rule is not None and _is_short(rule, problem):
        full = enumerate_candidates(own.n_variables, **vars(rule))
        places = own.places_in(full)
        dropped = np.ones(full.n_candidates, dtype=bool)
        dropped[places] = False
        if not dropped.any():
            return Candidates(rule, (), np.zeros(0, dtype=bool)), places
        if problem.is_linear and _have_subsets(full, dropped):
            return Candidates(rule, (), dropped), places
    listed = tuple(tuple(own.parents[k] for k in own.group(i)) for i in range(own.n_variables))
    return Candidates(None, listed, np.zeros(0, dtype=bool)), np.arange(own.n_candidates)


LONGEST_RULE = 2_000_000
"""Candidates that a checker is asked to enumerate; of more, those that matter are listed."""


def _is_short(rule: CandidateRule, problem: StructureProblem) -> bool:
    """Whether a checker can enumerate what a rule describes, and would call the same constant."""
    kinds: Any = {"class_restricted": rule.class_restricted, "class_arcs": rule.class_arcs}
    whole = count_candidates(problem.n_variables, rule.max_parents, **kinds)
    constant = all(problem.variables[v].arity == 1 for v in rule.constant)
    return constant and whole <= LONGEST_RULE


def _have_subsets(full: CandidateSets, dropped: NDArray[np.bool_]) -> bool:
    """Whether every dropped candidate has a kept subset; that it scores less is not looked at."""
    for variable in range(full.n_variables):
        group = full.group(variable)
        kept = {full.parents[k] for k in group if not dropped[k]}
        for k in group:
            if dropped[k] and kept.isdisjoint(_proper_subsets(full.parents[k])):
                return False
    return True


def _proper_subsets(parents: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return (s for size in range(len(parents)) for s in combinations(parents, size))


def _over_merged_rows(problem: StructureProblem, data: EncodedData) -> StructureProblem:
    """The same problem, with a sample for each row of the merged data, in the same order: that is
    what dual weights refer to.
    """
    merged = data.merged()
    if problem.margins is None or np.array_equal(merged.codes, data.codes):
        return problem
    margins = problem.margins
    rows = MarginRows(merged, problem.candidates, margins.kind, margins.smoothing)
    return replace(problem, margins=rows, weights=merged.weights)


@dataclass(frozen=True, eq=False)
class Definition:
    """Everything of a certificate that is known before the search."""

    problem: StructureProblem
    data: Data
    score: Score
    candidates: Candidates
    numbers: NDArray[np.int64]  # of the problem's candidates in the certificate

    @classmethod
    def of(cls, problem: StructureProblem) -> Definition:
        """The definition of a problem; refused where data or score are not known.

        Its problem has the samples of the certificate: equal rows merged.
        """
        behind = data_behind(problem)
        problem = _over_merged_rows(problem, behind)
        data = define_data(behind)
        data = replace(data, codes=np.ascontiguousarray(data.codes, dtype=np.int32))
        candidates, numbers = define_candidates(problem)
        definition = cls(problem, data, define_score(problem), candidates, numbers)
        return definition if definition.is_forest else definition._without_dominated()

    def _without_dominated(self) -> Definition:
        """Candidates that the relaxation does not look at are dropped."""
        own, kept = self.problem.candidates, drop_dominated(self.problem).candidates
        if kept is own:
            return self
        dropped = self.candidates.dropped.copy()
        if len(dropped) == 0:
            dropped = np.zeros(own.n_candidates, dtype=bool)
        dropped[self.numbers] = own.places_in(kept) < 0
        return replace(self, candidates=replace(self.candidates, dropped=dropped))

    @property
    def is_forest(self) -> bool:
        """Whether structures are forests with class parents."""
        candidates = self.problem.candidates
        return candidates.is_class_restricted and candidates.max_parents <= 2
