"""From a structure problem to the definition that a certificate carries."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from marginbn.exceptions import InputError
from marginbn.problem.array_types import IntArray
from marginbn.problem.candidates import count_candidates, enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.margins import MarginRows
from marginbn.problem.problem import StructureProblem, drop_dominated
from marginbn.problem.scores import SCORES
from marginbn.proof.certificate import Candidates, Data, Score
from marginbn.proof.checker.pruning import MOST_TOTAL
from marginbn.proof.checker.values import decomposable_scores
from marginbn.proof.record import score_slack


def given_scores(problem: StructureProblem) -> Data:
    """The local scores of a problem without rows."""
    own, values = problem.candidates, problem.linear.tolist()
    scores = tuple(
        tuple((own.parents[k], values[k]) for k in own.group(i)) for i in range(own.n_variables)
    )
    names, states = zip(*((v.name, v.states) for v in problem.variables), strict=True)
    return Data(names, states, np.zeros((0, own.n_variables), np.int32), np.zeros(0), scores)


def define_data(data: EncodedData) -> Data:
    """Merged data in the terms of a certificate."""
    merged = data.merged()
    states = tuple(variable.states for variable in merged.variables)
    return Data(merged.names, states, merged.codes, merged.weights)


def data_behind(problem: StructureProblem) -> EncodedData | None:
    """The data that a problem was made of, None for given scores."""
    if problem.margins is not None:
        if np.any(problem.linear != 0):
            raise InputError("a certificate needs a margin problem without additional scores")
        if not np.array_equal(problem.sample_weights, problem.margins.data.weights):
            raise InputError(
                "a certificate needs the weights of the data: make the problem with margin_problem"
            )
        return problem.margins.data
    return None if problem.origin is None else problem.origin[0]


def define_score(problem: StructureProblem) -> Score:
    """The score by name and numbers."""
    if problem.margins is not None:
        return Score(problem.margins.kind, problem.gamma, problem.margins.smoothing)
    if problem.origin is None:
        return Score("given")
    score = problem.origin[1]
    size = 1.0
    if isinstance(score, partial):
        size = float(score.keywords.get("equivalent_sample_size", 1.0))
        score = score.func
    return Score(_formula_of(score), equivalent_sample_size=size)


def _formula_of(score: Callable[..., float]) -> str:
    """The checker's name of a score; refused where the checker has no formula for it."""
    own = {n: e.certificate for n, e in SCORES.items() if e.function is score}
    for formula in own.values():
        if formula in decomposable_scores():
            return str(formula)
    name = next(iter(own), None) or getattr(inspect.unwrap(score), "__name__", repr(score))
    known = sorted(n for n, e in SCORES.items() if e.certificate in decomposable_scores())
    raise InputError(
        f"a certificate needs one of the scores {known}, got {name}: "
        "solve without a certificate, or give the checker its formula (docs, 'Add a score')"
    )


LONGEST_RULE = 2_000_000
"""Candidates of a margin problem that a checker is asked to enumerate; of more they are listed."""

MOST_COMPARED = 20_000
"""Sets of a rule that are made to see whether all are candidates; of more they are listed."""


def define_candidates(problem: StructureProblem) -> Candidates:
    """The rule alone where it makes the same list, and with a list where it makes more; of a list
    of one's own, and of one for which time was too short, the list.
    """
    own, rule = problem.candidates, problem.candidates.rule
    if problem.is_linear and problem.origin is None:
        return Candidates(None)
    listed = tuple(tuple(own.parents[k] for k in own.group(i)) for i in range(own.n_variables))
    if rule is None or problem.unscored:
        return Candidates(None, listed)
    if any(problem.variables[v].arity > 1 for v in rule.constant):
        return Candidates(None, listed)
    kinds: Any = {"class_restricted": rule.class_restricted, "class_arcs": rule.class_arcs}
    most = count_candidates(own.n_variables, rule.max_parents, **kinds)
    if most <= (MOST_COMPARED if problem.is_linear else LONGEST_RULE):
        made = enumerate_candidates(own.n_variables, **vars(rule))
        if made.n_candidates == own.n_candidates:
            return Candidates(rule)
    if problem.margins is not None:
        return Candidates(None, listed)
    return Candidates(rule, listed, 2.0 * problem.error + score_slack(problem))


@dataclass(frozen=True, eq=False)
class Definition:
    """Everything of a certificate that is known before the search."""

    problem: StructureProblem
    data: Data
    score: Score
    candidates: Candidates
    numbers: IntArray  # of the problem's candidates in the certificate, -1 for dominated
    is_forest: bool  # structures are forests with class parents

    @classmethod
    def of(cls, problem: StructureProblem) -> Definition:
        """The definition of a problem; refused where data or score are not known.

        Its problem has the samples of the certificate: equal rows merged.
        """
        behind, margins = data_behind(problem), problem.margins
        data = given_scores(problem) if behind is None else define_data(behind)
        if behind is not None and margins and not np.array_equal(data.codes, behind.codes):
            merged = behind.merged()
            rows = MarginRows(merged, problem.candidates, margins.kind, margins.smoothing)
            problem = replace(problem, margins=rows, weights=merged.weights)
        shape = problem.candidates
        has_class = shape.is_class_restricted and shape.max_parents <= 2
        is_forest = has_class and not problem.is_linear
        # the few sets of a class are all kept where rows are so heavy that a checker cannot tell
        # equal scores
        is_whole = has_class and float(data.weights.sum()) > MOST_TOTAL
        kept = problem if is_forest or is_whole else drop_dominated(problem)
        candidates = define_candidates(kept)
        numbers = shape.places_in(kept.candidates)
        return cls(problem, data, define_score(problem), candidates, numbers, is_forest)
