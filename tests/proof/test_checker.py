"""The checker: true claims pass, everything else does not."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_certificate import tiny_certificate
from test_checker_bounds import best_of_leaf

from certificates import certified, sealed, verify_certificate
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
from marginbn.proof.checker.bounds import (
    NOTHING,
    Clusters,
    Forests,
    IntegerMajorant,
    best_arborescence,
    best_forest,
)
from marginbn.proof.checker.statement import Space
from marginbn.proof.checker.values import SHIFT, log_units
from marginbn.proof.definition import define_candidates, define_data
from oracles import arborescences
from problems import small_linear_problem, small_margin_problem

# ---------------------------------------------------------------------------------- by hand


def test_a_claim_one_can_check_by_hand() -> None:
    """18 rows of margin 2 make 36: verified, with a gap of next to nothing."""
    verdict = verify_certificate(tiny_certificate())
    assert verdict.verified
    assert verdict.reason == ""
    assert verdict.n_leaves == 1
    assert verdict.gap == pytest.approx(1e-9 / 36)


def test_the_tightest_bound_one_can_check_by_hand() -> None:
    """With gamma = 3 and all weight on the rival the bound is the score, 18 log 10."""
    score = 18 * math.log(10)
    close = tiny_certificate(3.0, share=2, objective=score - 1e-9, bound=score + 1e-9)
    assert verify_certificate(close)
    assert not verify_certificate(replace(close, bound=score - 1e-9))
    assert not verify_certificate(replace(close, objective=score + 1e-9))
    loose = tiny_certificate(3.0, share=0, objective=score - 1e-9, bound=53.9)
    assert not verify_certificate(loose)  # gamma alone proves 54
    assert verify_certificate(replace(loose, bound=54.1))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"objective": 35.8, "bound": 35.9}, "leaf 0: structures may score up to 36.0"),
        ({"objective": 36.1, "bound": 36.2}, "the incumbent scores 36.0, less than the claimed"),
        ({"bound": 35.9}, "objective 36.0 exceeds the claimed bound 35.9: both cannot hold"),
        ({"incumbent": ((1,), (0,))}, "directed cycle"),
        ({"incumbent": ((), (1,))}, "no candidate"),
        ({"incumbent": ((),)}, "every variable"),
        ({"fingerprint": "0" * 64}, "fingerprint"),
        ({"tree": np.array([], dtype=np.int32)}, "not complete"),
        ({"tree": np.array([EDGE, 0, 1, FOREST, 0], dtype=np.int32)}, "not complete"),
        ({"tree": np.array([CANDIDATE, 3], dtype=np.int32)}, "not complete"),
        ({"grid": -200}, "too fine"),
        ({"grid": 10**6}, "makes no sense"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, object], reason: str) -> None:
    verdict = verify_certificate(replace(tiny_certificate(), **change))
    assert not verdict
    assert re.search(reason, verdict.reason), verdict.reason


@pytest.mark.parametrize(
    ("object_", "failing"),
    [
        ([EDGE, 0, 1], "leaf 1:"),
        ([EDGE, 1, 0], "leaf 1:"),
        ([ARC, 1, 0], "leaf 1:"),
        ([CANDIDATE, 2], "leaf 1:"),
        ([CANDIDATE, 1], "leaf 0:"),
        ([ARC, 0, 1], "leaf 0:"),
        ([CANDIDATE, 0], "leaf 1:"),
    ],
)
@pytest.mark.parametrize("kind", [[FOREST, 0], [CLUSTERS, 0, 0]])
def test_each_side_holds_what_it_should(object_: list[int], failing: str, kind: list[int]) -> None:
    """The class has no parents here, so only structures with the arc 0 -> 1 score above 1: the
    side that holds them fails, the other one does not.
    """
    sets = Candidates(None, (((),), ((), (0,))))
    certificate = replace(
        tiny_certificate(3.0, share=2, objective=0.0, bound=1.0),
        candidates=sets,
        tree=np.array([*object_, *kind, *kind], dtype=np.int32),
        multipliers=((),),
    )
    assert failing in verify_certificate(certificate).reason
    assert verify_certificate(replace(certificate, bound=41.5))
    # no structure scores below 0, so the first side that is not empty fails
    first = "leaf 1:" if object_ == [CANDIDATE, 0] else "leaf 0:"
    assert first in verify_certificate(replace(certificate, objective=-2.0, bound=-1.0)).reason


def test_multipliers_by_hand() -> None:
    """Without rows both arcs count, 36 log 10; one cluster row makes it 18 log 10 again."""
    score = 18 * math.log(10)
    tree = np.array([CLUSTERS, 0, 0], dtype=np.int32)
    plain = replace(
        tiny_certificate(3.0, share=2, objective=score - 1e-9, bound=2 * score + 1e-6),
        tree=tree,
        multipliers=((),),
        rows=(NamedRow("cluster", (0, 1)), NamedRow("edge", (0, 1))),
        grid=-30,
    )
    assert verify_certificate(plain)
    assert not verify_certificate(replace(plain, bound=score + 1e-6))
    helped = replace(plain, bound=score + 1e-6, multipliers=(((0, score),),))
    assert verify_certificate(helped)
    for multipliers, reason in (
        (((0, -score),), "negative"),
        (((0, 1e300),), "too large"),
        (((1, score),), "may be absent"),
        (((2, score),), "does not exist"),
    ):
        verdict = verify_certificate(replace(helped, multipliers=(multipliers,)))
        assert reason in verdict.reason


def test_forests_bound_only_forests() -> None:
    problem = small_linear_problem(0, n_features=2, n_rows=10, max_parents=1)
    candidates = define_candidates(problem)
    assert problem.origin is not None
    data = define_data(problem.origin[0])
    certificate = Certificate(
        data.fingerprint(), data, Score("bdeu"), candidates, ((), (), ()), -1e6, 1e6, -10,
        np.array([FOREST, 0], dtype=np.int32),
    )  # fmt: skip
    assert "forests bound nothing here" in verify_certificate(certificate).reason


# ---------------------------------------------------------------------------------- arithmetic


@pytest.mark.parametrize("number", [1, 2, 3, 10, 12345, 2**60 + 1, 10**40])
def test_logarithms(number: int) -> None:
    """They agree with the processor's to its precision."""
    assert log_units(number) / 2**SHIFT == pytest.approx(math.log(number), rel=1e-15, abs=1e-13)


# ---------------------------------------------------------------------------------- forests


def brute_arborescence(weights: np.ndarray) -> int:
    trees = arborescences(len(weights))
    return max(sum(int(weights[v, parent]) for v, parent in enumerate(tree)) for tree in trees)


@pytest.mark.parametrize("seed", range(40))
def test_the_arborescence_is_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    weights = rng.integers(-9, 10, (n, n + 1)).astype(np.int64)
    weights[rng.random(weights.shape) < 0.2] = -(2**40)
    wanted = brute_arborescence(weights)
    found, to_root = best_arborescence(weights)
    assert found == wanted
    for v in range(n):  # what the prices say about an arc from the root is true
        forced = weights.copy()
        forced[v, :n] = -(2**50)
        forced[v, n] = weights[v, n]
        assert brute_arborescence(forced) <= wanted - (to_root[v] - weights[v, n])


@pytest.mark.parametrize("seed", range(30))
def test_the_forest_with_class_parents_is_the_best(seed: int) -> None:
    """Above what is enough the result is the maximum by brute force, else it is at most enough."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    penalty = 2**40
    arcs = rng.integers(-9, 10, (n, n)).astype(np.int64)
    class_only, empty = (rng.integers(-9, 10, n).astype(np.int64) for _ in range(2))
    class_only[rng.random(n) < 0.2] = -penalty
    tied = rng.random(n) < 0.3
    sets = [s for size in (0, 1, 2) for s in itertools.combinations(range(n), size)]
    sets = [s for s in sets if rng.random() < 0.8]
    own = rng.integers(-9, 10, len(sets)).astype(np.int64)
    class_sets = np.array([(*s, -1, -1)[:2] for s in sets], dtype=np.int64).reshape(-1, 2)
    wanted = -(10**18)
    for s, members in enumerate(sets):
        weights = np.column_stack([arcs, np.where(tied, class_only, np.maximum(class_only, empty))])
        for v in members:
            weights[v] = -penalty
            weights[v, n] = empty[v]
        wanted = max(wanted, brute_arborescence(weights) + int(own[s]))
    table = np.column_stack([arcs, class_only, empty])
    for enough in (-(2**50), wanted - 3, wanted, wanted + 3):
        found = best_forest(table, tied, class_sets, own, penalty, enough)
        if wanted > enough and wanted > -penalty:
            assert found == wanted
        else:
            assert found <= max(enough, wanted, -penalty // 2)


@pytest.mark.parametrize("seed", range(40))
def test_leaves_are_bounded_by_their_best_structure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    candidates = enumerate_candidates(n, 2)
    space = Space(n, candidates.child.astype(np.int64), list(candidates.parents))
    values = rng.integers(-50, 51, candidates.n_candidates).astype(np.int64)
    allowed = rng.random(candidates.n_candidates) < 0.85
    pairs = list(itertools.combinations(range(n), 2))
    present = frozenset(pair for pair in pairs if rng.random() < 0.25)
    best = best_of_leaf(space, values.tolist(), allowed, present)
    majorant = IntegerMajorant(7, values)
    found = Forests(space).bound(majorant, allowed, present, -(2**50))
    assert found == (NOTHING if best == NOTHING else best + 7)
    rows = (
        *(NamedRow("cluster", p) for p in pairs),
        *(NamedRow("edge", p) for p in sorted(present)),
    )
    multipliers = tuple(enumerate(rng.integers(0, 60, len(rows)) + 0.5))
    clusters = Clusters(space, replace(tiny_certificate(), grid=0, rows=rows))
    assert clusters.bound(majorant, multipliers, allowed, present) >= found


# ---------------------------------------------------------------------------------- extremes


def test_extreme_numbers_do_not_crash(tmp_path: Path) -> None:
    certificate = certified(small_margin_problem(0, n_features=3, n_rows=14, gamma=0.5), tmp_path)
    for scale in (1e-320, 1e-150, 1e-30, 1e30, 1e150, 1e300):
        weights = np.minimum(certificate.data.weights * scale, 1e308)
        verify_certificate(
            sealed(replace(certificate, data=replace(certificate.data, weights=weights)))
        )
        for name in ("gamma", "smoothing"):
            score = replace(certificate.score, **{name: scale})
            verify_certificate(replace(certificate, score=score))
