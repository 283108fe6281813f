"""Rules that make no sense, and claims that contradict themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_certificate import tiny_certificate

from certificates import sealed, verify_certificate
from marginbn.problem.candidates import CandidateRule
from marginbn.proof.certificate import Candidates, Certificate


def ruled(certificate: Certificate, **changes: object) -> Certificate:
    """With all sets of at most one parent, and changes to that rule."""
    rule = replace(CandidateRule(1, True, (), (), ()), **changes)
    return replace(certificate, candidates=Candidates(rule, ()))


def test_what_varies_cannot_be_called_constant() -> None:
    """x has two states; where it has one, it may be."""
    certificate = tiny_certificate()
    assert verify_certificate(ruled(certificate))
    without = replace(ruled(certificate, constant=(1,)), incumbent=((), ()), objective=-1.0)
    assert "variable 1 is called constant, but is not" in verify_certificate(without).reason
    assert "but is not" in verify_certificate(ruled(certificate, constant=(2,))).reason
    codes = np.array([[0, 0], [1, 0]], dtype=np.int32)
    data = replace(certificate.data, states=(("a", "b"), ("0",)), codes=codes)
    assert verify_certificate(sealed(replace(without, data=data)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"required": ((0, 2),)}, "which cannot be"),
        ({"forbidden": ((1, 1),)}, "which cannot be"),
        ({"forbidden": ((-1, 0),)}, "which cannot be"),
        ({"class_arcs": "all", "class_restricted": False}, "class-restricted"),
    ],
)
def test_rules_that_say_nothing_are_refused(changes: dict[str, object], reason: str) -> None:
    assert reason in verify_certificate(ruled(tiny_certificate(), **changes)).reason


def test_a_margin_needs_all_sets_of_a_rule() -> None:
    listed = tiny_certificate().candidates.listed
    both = replace(ruled(tiny_certificate()).candidates, listed=listed)
    verdict = verify_certificate(replace(tiny_certificate(), candidates=both))
    assert "a margin needs all candidates" in verdict.reason
