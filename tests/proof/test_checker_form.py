"""Certificates made in memory: what a file could not hold is refused there too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_format import tiny_certificate

from certificates import sealed
from marginbn.problem.candidates import CandidateRule
from marginbn.proof.certificate import (
    CLUSTERS,
    FOREST,
    Candidates,
    Certificate,
    DualWeights,
    Multipliers,
    NamedRow,
    Score,
)
from marginbn.proof.checker import verify_certificate
from marginbn.proof.checker.statement import RefutedError, check_form
from marginbn.proof.checker.verdict import check_order

NO_MARK = np.zeros(0, dtype=bool)


def test_negative_parts_prove_nothing() -> None:
    """A sample that gives away less than nothing would push the bound below the optimum: with
    gamma = 3 all structures with an arc score 18 log 10 = 41.4, and the bound 30 would pass.
    """
    parts = np.array([[2], [2]], dtype=np.int64)
    certificate = tiny_certificate(3.0, share=2, objective=0.0, bound=41.5)
    assert verify_certificate(certificate)
    for dtype in (np.int8, np.int64, np.float64):
        forged = DualWeights(1, -parts.astype(dtype))
        verdict = verify_certificate(replace(certificate, bound=30.0, duals=(forged,)))
        assert "parts must be unsigned" in verdict.reason


def test_an_objective_above_the_bound_is_a_contradiction() -> None:
    """Both numbers are looked at side by side, even if nothing else was wrong."""
    check_order(tiny_certificate(objective=36.0, bound=36.0))
    with pytest.raises(RefutedError, match=r"objective 701\.25 exceeds the claimed bound 580\.0"):
        check_order(tiny_certificate(objective=701.25, bound=580.0))
    assert not verify_certificate(tiny_certificate(objective=701.25, bound=580.0))


def ruled(certificate: Certificate, **changes: object) -> Certificate:
    """With all sets of at most one parent, and changes to that rule."""
    rule = replace(CandidateRule(1, True, (), (), ()), **changes)
    return replace(certificate, candidates=Candidates(rule, (), NO_MARK))


def test_what_varies_cannot_be_called_constant() -> None:
    """x has two states; where it has one, it may be."""
    certificate = tiny_certificate()
    assert verify_certificate(ruled(certificate))
    without = replace(ruled(certificate, constant=(1,)), incumbent=((), ()), objective=-1.0)
    assert "variable 1 is called constant, but has 2 states" in verify_certificate(without).reason
    assert "does not exist" in verify_certificate(ruled(certificate, constant=(2,))).reason
    codes = np.array([[0, 0], [1, 0]], dtype=np.int32)
    data = replace(certificate.data, states=(("a", "b"), ("0",)), codes=codes)
    assert verify_certificate(sealed(replace(without, data=data)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"required": ((0, 2),)}, "which cannot be"),
        ({"forbidden": ((1, 1),)}, "which cannot be"),
        ({"forbidden": ((-1, 0),)}, "which cannot be"),
        ({"forbidden": ((0,),)}, "which cannot be"),
        ({"max_parents": -1}, "must hold whole numbers"),
        ({"max_parents": 1.5}, "must hold whole numbers"),
        ({"constant": (0.0,)}, "must hold whole numbers"),
        ({"class_restricted": 1}, "must be true or false"),
        ({"class_arcs": "some"}, "must be free or all"),
        ({"class_arcs": 1}, "must be free or all"),
        ({"class_arcs": "all", "class_restricted": False}, "class-restricted"),
    ],
)
def test_rules_that_say_nothing_are_refused(changes: dict[str, object], reason: str) -> None:
    """Arcs between variables that do not exist, numbers that are none."""
    assert reason in verify_certificate(ruled(tiny_certificate(), **changes)).reason


def test_a_rule_and_a_list_are_one_too_many() -> None:
    """Another reader could take the other one."""
    listed = tiny_certificate().candidates.listed
    both = replace(ruled(tiny_certificate()).candidates, listed=listed)
    verdict = verify_certificate(replace(tiny_certificate(), candidates=both))
    assert "which one holds" in verdict.reason


class Liar(float):
    """Is below everything and above everything."""

    def __lt__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return False


def with_data(**changes: object) -> Certificate:
    certificate = tiny_certificate()
    return replace(certificate, data=replace(certificate.data, **changes))


def with_dual(bits: Any, parts: Any) -> Certificate:
    return replace(tiny_certificate(), duals=(DualWeights(bits, parts),))


def with_clusters(row: NamedRow, multipliers: Multipliers) -> Certificate:
    tree = np.array([CLUSTERS, 0, 0], dtype=np.int32)
    return replace(tiny_certificate(), tree=tree, rows=(row,), multipliers=(multipliers,))


PARTS = np.zeros((2, 1), dtype=np.uint8)
CODES = np.array([[0, 0], [1, 1]], dtype=np.int32)
PAIR = NamedRow("cluster", (0, 1))

IMPOSSIBLE: dict[str, Callable[[], Certificate]] = {
    "gamma must be a finite number": lambda: tiny_certificate(math.nan),
    "gamma must be a finite": lambda: tiny_certificate("2"),  # type: ignore[arg-type]
    "objective must be a finite number": lambda: tiny_certificate(objective=math.nan),
    "objective must be a finite": lambda: tiny_certificate(objective=-math.inf),
    "objective must be": lambda: tiny_certificate(objective=Liar(99.0)),
    "bound must be a finite number": lambda: tiny_certificate(bound=math.inf),
    "bound must be": lambda: tiny_certificate(bound=Liar(0.0)),
    "given by its name": lambda: replace(tiny_certificate(), score=Score(7)),  # type: ignore[arg-type]
    "grid must be a whole number": lambda: replace(tiny_certificate(), grid=-36.0),  # type: ignore[arg-type]
    "tree must be an array": lambda: replace(tiny_certificate(), tree=[FOREST, 0]),  # type: ignore[arg-type]
    "of 32-bit integers": lambda: replace(tiny_certificate(), tree=np.array([3.0, 0.0])),
    "incumbent must hold": lambda: replace(tiny_certificate(), incumbent=((), (0.0,))),  # type: ignore[arg-type]
    "every variable needs": lambda: with_data(states=(("a", "b"),)),
    "must be texts": lambda: with_data(names=("c", 1)),
    "codes must be 32-bit": lambda: with_data(codes=CODES.astype(np.int64)),
    "at least one row of 2": lambda: with_data(codes=CODES[:0], weights=np.ones(0)),
    "codes must lie": lambda: with_data(codes=CODES + 1),
    "codes must lie between": lambda: with_data(codes=-CODES),
    "weights must be one": lambda: with_data(weights=np.ones(3)),
    "double-precision": lambda: with_data(weights=np.ones(2, dtype=np.float32)),
    "weights must be positive": lambda: with_data(weights=np.array([1.0, -1.0])),
    "positive and finite": lambda: with_data(weights=np.array([1.0, np.inf])),
    "marked by bits": lambda: replace(
        tiny_certificate(),
        candidates=Candidates(None, (((), (1,)), ((), (0,))), np.zeros(0)),  # type: ignore[arg-type]
    ),
    "listed candidates must": lambda: replace(
        tiny_certificate(),
        candidates=Candidates(None, (((), (1,)), ((), (0.5,))), NO_MARK),  # type: ignore[arg-type]
    ),
    "bits must lie": lambda: with_dual(0, PARTS),
    "between 1 and 24": lambda: with_dual(25, PARTS),
    "bits must": lambda: with_dual(1.0, PARTS),
    "parts must be unsigned": lambda: with_dual(1, PARTS.astype(np.int8)),
    "unsigned whole numbers": lambda: with_dual(1, PARTS.astype(np.uint64)),
    "parts must have the shape (2, 1)": lambda: with_dual(1, PARTS[:1]),
    "must have the shape": lambda: with_dual(1, np.zeros((2, 2), dtype=np.uint8)),
    "row 0 must be": lambda: with_clusters(NamedRow(1, (0, 1)), Multipliers((0,), (1.0,))),  # type: ignore[arg-type]
    "a kind and variables": lambda: with_clusters(
        NamedRow("cluster", (0.0, 1.0)),  # type: ignore[arg-type]
        Multipliers((0,), (1.0,)),
    ),
    "multipliers 0 make": lambda: with_clusters(PAIR, Multipliers((0,), (1.0, 2.0))),
    "make no sense": lambda: with_clusters(PAIR, Multipliers((0,), (Liar(1.0),))),
}


@pytest.mark.parametrize("reason", IMPOSSIBLE)
def test_what_no_file_could_hold_is_refused(reason: str) -> None:
    """By its own message, and without looking at anything else."""
    verdict = verify_certificate(IMPOSSIBLE[reason]())
    assert not verdict
    assert reason in verdict.reason


def test_the_form_of_an_honest_certificate_is_fine() -> None:
    """All that the tests above change is what makes the difference."""
    check_form(tiny_certificate())
    check_form(with_clusters(PAIR, Multipliers((0,), (1.0,))))
    check_form(with_dual(24, PARTS.astype(np.uint32)))
