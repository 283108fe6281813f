"""The checker's steps one by one: definition, incumbent, tree."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from test_certificate import tiny_certificate

from certificates import sealed, verify_certificate
from marginbn.problem.candidates import enumerate_candidates
from marginbn.proof.certificate import (
    ARC,
    CANDIDATE,
    CLUSTERS,
    EDGE,
    FOREST,
    Candidates,
    Certificate,
    NamedRow,
    Score,
)
from marginbn.proof.checker import Verdict
from marginbn.proof.checker.statement import RefutedError, Space, build_space
from marginbn.proof.checker.values import SHIFT, SLACK
from marginbn.proof.checker.verdict import Checker, check_definition, children

# ---------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [
        (99.0, 100.0, 0.01),
        (-100.0, -99.0, 0.01),
        (0.25, 0.5, 0.25),
        (2.0, 1.0, 0.0),
        (0.5, 2.0, 0.75),
    ],
)
def test_gaps_by_hand(objective: float, bound: float, gap: float) -> None:
    """Relative to the larger number, to one at least, and never negative."""
    assert Verdict(True, "", objective, bound).gap == gap


def test_a_refused_claim_proves_nothing() -> None:
    """No leaves are counted, the numbers of the claim are reported."""
    verdict = verify_certificate(replace(tiny_certificate(), fingerprint=""))
    assert verdict == Verdict(False, verdict.reason, 36.0, 36.0 + 1e-9)


# ---------------------------------------------------------------------------------- definition


def weighted(low: float, high: float) -> Certificate:
    """The tiny certificate with these two weights."""
    certificate = tiny_certificate()
    data = replace(certificate.data, weights=np.array([low, high]))
    return sealed(replace(certificate, data=data))


@pytest.mark.parametrize("low", [1e-100, 1.0])
@pytest.mark.parametrize("high", [1.0, 1e100])
def test_numbers_up_to_the_limits_are_looked_at(low: float, high: float) -> None:
    """1e-100 and 1e100 themselves are fine, for weights and for the numbers of the score."""
    check_definition(weighted(low, high))
    check_definition(replace(tiny_certificate(), score=Score("binary", low, high, low)))
    check_definition(replace(tiny_certificate(), score=Score("binary", high, low, high)))


@pytest.mark.parametrize("wrong", [9e-101, 2e100])
def test_numbers_beyond_the_limits_are_refused(wrong: float) -> None:
    """One weight is enough, wherever it stands; and each number of the score."""
    for pair in ((wrong, 1.0), (1.0, wrong)):
        with pytest.raises(RefutedError, match="too small or too large"):
            check_definition(weighted(*pair))
    for name in ("gamma", "smoothing", "equivalent_sample_size"):
        score = replace(tiny_certificate().score, **{name: wrong})
        with pytest.raises(RefutedError, match=f"{name} must be positive"):
            check_definition(replace(tiny_certificate(), score=score))


@pytest.mark.parametrize("grid", [-300, 64])
def test_grids_of_any_sense_are_looked_at(grid: int) -> None:
    """2^-300 to 2^64, no further."""
    check_definition(replace(tiny_certificate(), grid=grid))
    with pytest.raises(RefutedError, match="makes no sense"):
        check_definition(replace(tiny_certificate(), grid=grid + (1 if grid > 0 else -1)))


def test_margins_need_two_classes_and_scores_do_not() -> None:
    """Whatever the number of states of the features is."""
    certificate = tiny_certificate()
    data = replace(
        certificate.data,
        states=(("a",), *certificate.data.states[1:]),
        codes=np.array([[0, 0], [0, 1]], dtype=np.int32),
    )
    single = sealed(replace(certificate, data=data))
    with pytest.raises(RefutedError, match="two classes"):
        check_definition(single)
    check_definition(replace(single, score=Score("mdl")))


# ---------------------------------------------------------------------------------- incumbent


def test_the_objective_is_refused_as_soon_as_it_is_too_large() -> None:
    """18 log 10 is rounded down: 1e-12 more is too much, 2e-11 less is proven; and gamma is
    rounded down as well where it is no multiple of 2^-44.
    """
    score = 18 * math.log(10)
    certificate = tiny_certificate(3.0, share=2, objective=score + 1e-12, bound=score + 1e-9)
    assert "the incumbent scores" in verify_certificate(certificate).reason
    assert verify_certificate(replace(certificate, objective=score - 2e-11))
    capped = tiny_certificate(0.1, objective=1.8 + 2e-13, bound=1.9)
    assert "the incumbent scores" in verify_certificate(capped).reason
    assert verify_certificate(replace(capped, objective=1.8 - 2e-12))


@pytest.mark.parametrize("sign", [-1, 1])
def test_margins_of_the_incumbent_do_not_overflow(
    sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One margin of 2^61 units is too large, on either side; one unit less is not."""
    units = np.zeros((2, 1), dtype=np.int64)
    values = SimpleNamespace(units=lambda *_: units)
    monkeypatch.setattr("marginbn.proof.checker.bounds.MarginValues", lambda *_: values)
    certificate = tiny_certificate(1e30, objective=-1e30, bound=1e30)
    checker = Checker(certificate, build_space(certificate.data, certificate.candidates))
    units[1, 0] = sign * 2**60 + SLACK  # twice, and the slack is subtracted
    with pytest.raises(RefutedError, match="too large to be checked"):
        checker.check_incumbent()
    units[1, 0] -= sign
    checker.check_incumbent()


# ---------------------------------------------------------------------------------- dropping


def checker_of_scores(scores: list[tuple[int, int]], **fields: object) -> Checker:
    """Three variables, the last one with all parent sets; scores are lower and upper ends."""
    sets = (((),), ((),), ((), (0,), (1,), (0, 1)))
    data = replace(
        tiny_certificate().data,
        names=("c", "x", "y"),
        states=(("a", "b"),) * 3,
        codes=np.array([[0, 0, 0], [1, 1, 1]], dtype=np.int32),
    )
    candidates = Candidates(None, sets)
    certificate = replace(
        tiny_certificate(), data=data, score=Score("loglik"), candidates=candidates, **fields
    )
    checker = Checker(certificate, build_space(data, candidates))
    checker.majorants.__dict__["scores"] = [(0, 0), (0, 0), *scores]
    return checker


SCORES = [(10, 12), (20, 22), (13, 17), (30, 33)]


def test_the_incumbent_has_the_lower_end_of_its_scores() -> None:
    """Between the two ends nothing is proven."""
    scores = [(low * 2**SHIFT, high * 2**SHIFT) for low, high in SCORES]
    incumbent = ((), (), (0,))
    checker_of_scores(scores, incumbent=incumbent, objective=20.0).check_incumbent()
    with pytest.raises(RefutedError, match=r"scores 20\.0, less than the claimed objective 20\.1"):
        checker_of_scores(scores, incumbent=incumbent, objective=20.1).check_incumbent()


# ---------------------------------------------------------------------------------- the tree


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ([CANDIDATE, -1, FOREST, 0, FOREST, 0], "candidate -1 does not exist"),
        ([CANDIDATE, 4, FOREST, 0, FOREST, 0], "candidate 4 does not exist"),
        ([EDGE, -1, 0, FOREST, 0, FOREST, 0], "cannot be joined"),
        ([EDGE, 0, -1, FOREST, 0, FOREST, 0], "cannot be joined"),
        ([EDGE, 2, 0, FOREST, 0, FOREST, 0], "cannot be joined"),
        ([ARC, 0, 2, FOREST, 0, FOREST, 0], "cannot be joined"),
        ([EDGE, 1, 1, FOREST, 0, FOREST, 0], "cannot be joined"),
        ([FOREST, -1], "dual weights -1 do not exist"),
        ([FOREST, 1], "dual weights 1 do not exist"),
        ([CLUSTERS, 0, -1], "multipliers -1 do not exist"),
        ([CLUSTERS, 0, 1], "multipliers 1 do not exist"),
        ([-1, 0], "kind -1 does not exist"),
        ([EDGE, 0], "cut off"),
        ([EDGE, 0, 1, FOREST, 0, FOREST, 0, FOREST], "ends at entry 7, 8 are given"),
    ],
)
def test_trees_that_are_none_are_refused(tree: list[int], reason: str) -> None:
    """Numbers run from zero to one less than there are; nothing may be missing or left over."""
    certificate = replace(
        tiny_certificate(), tree=np.array(tree, dtype=np.int32), multipliers=((),)
    )
    assert reason in verify_certificate(certificate).reason


def test_the_claimed_bound_is_rounded_down() -> None:
    """On a grid of whole numbers the constant, a little more than 36, is 37, and two values of
    next to nothing are 1 each: 38.9 does not reach that.
    """
    certificate = replace(tiny_certificate(), grid=0)
    assert not verify_certificate(replace(certificate, bound=38.9))
    assert verify_certificate(replace(certificate, bound=39.0))


def test_progress_is_told_after_every_leaf() -> None:
    tree = np.array([EDGE, 0, 1, FOREST, 0, FOREST, 0], dtype=np.int32)
    seen: list[tuple[int, int]] = []
    verify_certificate(
        replace(tiny_certificate(), tree=tree), progress=lambda a, b: seen.append((a, b))
    )
    assert seen == [(5, 7), (7, 7)]


@pytest.mark.parametrize("seed", range(20))
def test_every_structure_is_in_exactly_one_leaf(seed: int) -> None:
    """Random decisions on four variables against the definition of the objects."""
    rng = np.random.default_rng(seed)
    candidates = enumerate_candidates(4, 2)
    space = Space(4, candidates.child.astype(np.int64), list(candidates.parents))
    waiting = [(np.ones(len(space.parents), dtype=bool), frozenset[tuple[int, int]]())]
    chosen = [
        [int(rng.choice(np.flatnonzero(space.child == i))) for i in range(4)] for _ in range(60)
    ]
    homes = [0] * len(chosen)
    splits = 0
    while waiting:
        node = waiting.pop()
        if splits < 25 and rng.random() < 0.7:
            kind = int(rng.choice([EDGE, ARC, CANDIDATE]))
            pair = tuple(int(v) for v in rng.permutation(4)[:2])
            place = (int(rng.integers(len(space.parents))),) if kind == CANDIDATE else pair
            waiting += children(space, node, kind, place)
            splits += 1
            continue
        for number, own in enumerate(chosen):
            joined = {(min(i, p), max(i, p)) for i, k in enumerate(own) for p in space.parents[k]}
            homes[number] += bool(node[0][own].all() and node[1] <= joined)
    assert homes == [1] * len(chosen)


def test_a_leaf_names_its_weights_and_its_multipliers() -> None:
    """The second dual weights and the second multipliers prove 18 log 10, no other pair does."""
    score = 18 * math.log(10)
    certificate = tiny_certificate(3.0, share=2, objective=score - 1e-9, bound=score + 1e-6)
    certificate = replace(
        certificate,
        grid=-30,
        rows=(NamedRow("cluster", (0, 1)),),
        duals=(*tiny_certificate(share=0).duals, *certificate.duals),
        multipliers=((), ((0, score),)),
    )
    for dual, multiplier in itertools.product((0, 1), repeat=2):
        tree = np.array([CLUSTERS, dual, multiplier], dtype=np.int32)
        verdict = verify_certificate(replace(certificate, tree=tree))
        assert verdict.verified == ((dual, multiplier) == (1, 1))
