"""Sets that a rule allows and a certificate does not list: both checkers against plain counting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import oracles
from certificates import second_opinion
from marginbn import EncodedData, Variable, local_scores, solve_structure, verify_certificate
from marginbn.proof.certificate import Certificate, read_certificate

SCORES = ("mdl", "aic", "bdeu", "k2", "loglik")
ARITIES = (2, 3, 2, 2, 4, 2)


def table(seed: int, weighted: bool) -> EncodedData:
    rng = np.random.default_rng(seed)
    codes = np.array([rng.integers(0, r, 60) for r in ARITIES])
    for j in range(1, len(ARITIES)):
        copied = rng.random(60) < rng.choice([0.2, 0.6, 0.9])
        codes[j] = np.where(copied, codes[rng.integers(j)] % ARITIES[j], codes[j])
    weights = rng.choice([0.5, 1.25, 3.0], 60) if weighted else np.ones(60)
    states = [tuple(map(str, range(r))) for r in ARITIES]
    return EncodedData(codes.T, weights, tuple(Variable(f"v{j}", s) for j, s in enumerate(states)))


def plain_score(c: Certificate, child: int, parents: tuple[int, ...]) -> float:
    """By counting rows."""
    raw = c.data.codes.tolist(), c.data.weights.tolist(), c.data.arities
    table = oracles.local_terms(*raw, child, parents)
    return oracles.local_score(c.score.name, table, sum(raw[1]), c.score.equivalent_sample_size)


def every_set(c: Certificate, child: int) -> Iterator[tuple[int, ...]]:
    """All sets that the rule allows, for rules without required and forbidden arcs."""
    rule = c.candidates.rule
    assert rule is not None
    others = [v for v in range(len(c.data.names)) if v != child]
    for size in range(rule.max_parents + 1):
        for found in itertools.combinations(others, size):
            if not found or child == 0 or 0 in found or not rule.class_restricted:
                yield found


def is_complete(c: Certificate) -> bool | None:
    """Whether listed subsets dominate all others; None where it is close."""
    close = False
    for i, listed in enumerate(c.candidates.listed):
        scores = {s: plain_score(c, i, s) for s in every_set(c, i)}
        for s, value in scores.items():
            if s not in listed:
                below = [scores[t] for t in listed if set(t) < set(s)]
                excess = value - max(below, default=-math.inf) - c.candidates.loss
                close |= abs(excess) < 1e-6
                if excess >= 1e-6:
                    return False
    return None if close else True


def certificate_of(
    data: EncodedData, score: str, folder: Path, most: int | None = 3, restricted: bool = False
) -> Certificate:
    problem = local_scores(data, score, most, class_restricted=restricted)
    solve_structure(problem, certificate=folder / "proof")
    return read_certificate(folder / "proof")


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_lists_of_the_scorer_are_complete(
    score: str, weighted: bool, seed: int, tmp_path: Path
) -> None:
    """Both checkers accept, and counting finds no other set that matters."""
    c = certificate_of(table(seed, weighted), score, tmp_path, restricted=seed == 2)
    assert c.candidates.rule is not None
    assert c.candidates.listed or score == "loglik"  # of which nothing may be dominated
    assert verify_certificate(c).reason == ""
    assert second_opinion(c) == ""
    assert is_complete(c) is not False


@pytest.mark.parametrize("score", ["mdl", "aic", "bdeu", "k2"])
def test_any_number_of_parents(score: str, tmp_path: Path) -> None:
    """The rules close all large sets."""
    c = certificate_of(table(4, False), score, tmp_path, most=None)
    assert c.candidates.rule is not None
    assert c.candidates.rule.max_parents == len(ARITIES) - 1
    assert (verify_certificate(c).reason, second_opinion(c)) == ("", "")
    assert is_complete(c) is not False


@pytest.mark.parametrize("score", ["mdl", "aic", "bdeu", "k2"])
@pytest.mark.parametrize("seed", range(2))
def test_a_set_that_matters_must_be_listed(score: str, seed: int, tmp_path: Path) -> None:
    """Each listed set is taken away in turn: both checkers refuse what counting refuses."""
    c = certificate_of(table(seed, False), score, tmp_path)
    low = replace(c, objective=c.objective - 1e3, bound=c.bound + 1e3, incumbent=((),) * 6)
    refused = 0
    for i, own in enumerate(c.candidates.listed):
        for k in range(len(own)):
            lists = list(c.candidates.listed)
            lists[i] = own[:k] + own[k + 1 :]
            one_less = replace(c.candidates, listed=tuple(lists), loss=1e-9)
            tree = np.array([4, 0, 0], dtype=np.int32)
            forged = replace(low, candidates=one_less, bound=1e6, tree=tree)
            wanted = is_complete(forged)
            if wanted is None:
                continue
            told = verify_certificate(forged).reason
            if wanted and own[k]:
                assert (told, second_opinion(forged)) == ("", "")
            else:
                assert told, (i, own[k])
                assert second_opinion(forged), (i, own[k])
                refused += 1
    assert refused >= len(ARITIES)


def test_supersets_of_a_set_that_is_left_out_are_found(tmp_path: Path) -> None:
    """An exclusive or: no single parent helps, both together do, and only they are left out."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (80, 4))
    codes[:, 0] = codes[:, 1] ^ codes[:, 2] ^ (rng.random(80) < 0.02)
    data = EncodedData(codes, np.ones(80), tuple(Variable(n, ("0", "1")) for n in "abcd"))
    for score in ("mdl", "bdeu"):
        c = certificate_of(data, score, tmp_path)
        assert (1, 2) in c.candidates.listed[0]
        lists = (((),), *c.candidates.listed[1:])
        forged = replace(
            c,
            candidates=replace(c.candidates, listed=lists),
            incumbent=((),) * 4,
            objective=c.objective - 1e3,
            bound=c.bound + 1e3,
        )
        assert "the parents (1, 2)" in verify_certificate(forged).reason
        assert "the parents (1, 2)" in second_opinion(forged)


def test_the_loss_is_part_of_the_bound(tmp_path: Path) -> None:
    """A larger one would excuse any list."""
    c = certificate_of(table(1, False), "mdl", tmp_path)
    lossy = replace(c, candidates=replace(c.candidates, loss=1.0))
    assert "structures may score up to" in verify_certificate(lossy).reason
    assert second_opinion(lossy)
    assert verify_certificate(replace(lossy, bound=c.bound + 6.0))
    assert second_opinion(replace(lossy, bound=c.bound + 6.0)) == ""
