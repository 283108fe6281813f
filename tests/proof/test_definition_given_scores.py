"""Certificates of given scores: the numbers are the problem, and there are no rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certificates import certified, sealed
from marginbn.exceptions import InputError
from marginbn.problem.candidates import CandidateRule, enumerate_candidates
from marginbn.problem.encoded import Variable
from marginbn.problem.problem import StructureProblem
from marginbn.proof import exact
from marginbn.proof.certificate import Candidates, Certificate, Score, encode_certificate
from marginbn.proof.checker import verify_certificate
from marginbn.proof.checker.statement import best_sets

Scored = list[list[tuple[tuple[int, ...], float]]]


def random_problem(seed: int) -> StructureProblem:
    """Three or four variables, any parents; scores of few digits, so that many are equal."""
    rng = np.random.default_rng(seed)
    n = 3 + seed % 2
    candidates = enumerate_candidates(n, n - 1, class_restricted=False)
    sizes = np.array([len(parents) for parents in candidates.parents])
    scores = np.round(2.0 * sizes + rng.normal(0.0, 3.0, len(sizes)) - 10.0, seed % 3)
    return StructureProblem(candidates, scores, tuple(Variable(f"v{i}", ()) for i in range(n)))


def best_score(scored: Scored) -> float:
    """The largest sum of one set of each variable without a directed cycle, one by one."""

    def is_acyclic(parents: list[tuple[int, ...]]) -> bool:
        left = set(range(len(parents)))
        while free := {v for v in left if left.isdisjoint(parents[v])}:
            left -= free
        return not left

    choices = product(*scored)
    return max(sum(v for _, v in own) for own in choices if is_acyclic([s for s, _ in own]))


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_proved(seed: int, tmp_path: Path) -> None:
    certificate = certified(random_problem(seed), tmp_path)
    assert verify_certificate(certificate)
    best = best_score([list(own) for own in certificate.data.scores])
    assert certificate.objective <= best <= certificate.bound
    assert certificate.bound - certificate.objective <= 1e-6 * abs(best)


@pytest.mark.parametrize("seed", range(20))
def test_sets_with_a_subset_that_scores_as_much_are_no_candidates(seed: int) -> None:
    """Against all pairs."""
    rng = np.random.default_rng(seed)
    sets = [(), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3)]
    scored = [(s, float(rng.integers(4))) for s in sets if rng.random() < 0.8]
    beaten = {s for s, v in scored for t, w in scored if set(t) < set(s) and w >= v}
    assert best_sets(scored) == [s for s, _ in scored if s not in beaten]


def with_scores(c: Certificate, change: Callable[[list[Any]], None]) -> Certificate:
    """The scores of the first variable are others, and the fingerprint is theirs."""
    first = list(c.data.scores[0])
    change(first)
    return sealed(replace(c, data=replace(c.data, scores=(tuple(first), *c.data.scores[1:]))))


RULE = CandidateRule(3, False, (), (), ())

FORGERIES: dict[str, Callable[[Certificate], Certificate]] = {
    "a lower bound": lambda c: replace(c, bound=c.objective),
    "a higher objective": lambda c: replace(c, objective=c.bound),
    "a score changes, the fingerprint does not": lambda c: replace(
        with_scores(c, lambda own: own.append((own.pop()[0], -1.0))), fingerprint=c.fingerprint
    ),
    "the empty set scores more": lambda c: with_scores(
        c, lambda own: own.__setitem__(0, ((), 5.0 + abs(c.bound)))
    ),
    "a set twice": lambda c: with_scores(c, lambda own: own.append(own[0])),
    "a variable is its own parent": lambda c: with_scores(c, lambda own: own.append(((0,), 9.0))),
    "no set is left": lambda c: with_scores(c, lambda own: own.clear()),
    "an infinite score": lambda c: with_scores(c, lambda own: own.append(((1,), 1e300))),
    "a set with 2^60 subsets": lambda c: with_scores(
        c, lambda own: own.append((tuple(range(1, 61)), 0.0))
    ),
    "another formula": lambda c: replace(c, score=Score("loglik")),
    "a rule": lambda c: replace(c, candidates=Candidates(RULE)),
    "a list": lambda c: replace(c, candidates=Candidates(None, (((),),) * len(c.incumbent))),
    "a variable without scores": lambda c: sealed(
        replace(c, data=replace(c.data, scores=c.data.scores[:-1]))
    ),
    "no scores": lambda c: sealed(replace(c, data=replace(c.data, scores=()))),
    "a cycle": lambda c: replace(c, incumbent=((1,), (0,), *c.incumbent[2:])),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "forged"
    forged = FORGERIES[name](certified(random_problem(1), tmp_path))
    path.write_bytes(encode_certificate(forged))
    with contextlib.suppress(InputError):
        assert not verify_certificate(path)
    assert exact.main([str(path)]) != 0
