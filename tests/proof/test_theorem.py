"""Statements of certificates: read off, put in words, compared with what was wanted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from test_checker import tiny_certificate

import certificates
from certificates import sealed
from marginbn import Statement, verify_certificate
from marginbn.cli.verify import (
    Checked,
    candidate_text,
    record_statement,
    score_text,
    statement_lines,
)
from marginbn.problem.candidates import CandidateRule
from marginbn.proof.certificate import Candidates, Certificate, Score
from marginbn.proof.checker import Verdict
from marginbn.proof.theorem import probability, shown


def with_rule(certificate: Certificate, **changes: object) -> Certificate:
    rule = CandidateRule(1, True, (), (), ())
    rule = replace(rule, **changes)  # type: ignore[arg-type]
    return replace(certificate, candidates=Candidates(rule, ()))


def lines_of(said: Statement) -> list[tuple[str, str]]:
    """As ``marginbn verify`` prints it, without table and model."""
    verdict = Verdict(True, "", 0.0, 0.0)
    return list(statement_lines(Checked(said, said, None, None, None, [], [], [], verdict)))


def test_a_certificate_meets_its_own_statement() -> None:
    """And every field that is changed is a difference."""
    certificate = tiny_certificate()
    own = Statement.of(certificate)
    assert verify_certificate(certificate, expect=own)
    changed = {
        "score": "k2",
        "gamma": 17.0,
        "smoothing": 17.0,
        "target": "?",
        "classes": ("?",),
        "features": ("?",),
        "data": "?",
        "distinct_rows": 17,
        "total_weight": 17.5,
        "structure": (("?", ()),),
        "equivalent_sample_size": 17.0,
    }
    for name, value in changed.items():
        verdict = verify_certificate(certificate, expect=Statement(**{name: value}))
        assert not verdict, name
        assert "proves another statement" in verdict.reason


def test_several_statements_are_all_asked_for() -> None:
    """One that is not met is enough; what both miss is told once."""
    certificate = tiny_certificate()
    right, wrong = Statement.of(certificate), Statement(gamma=17.0)
    assert verify_certificate(certificate, expect=[right, Statement()])
    verdict = verify_certificate(certificate, expect=[right, wrong, wrong])
    assert verdict.reason.count("gamma") == 1


def test_numbers_that_only_a_proof_can_meet() -> None:
    """The objective lies between what is proven, the gap is small enough."""
    certificate = tiny_certificate()
    verdict = verify_certificate(certificate)
    middle = (verdict.objective + verdict.bound) / 2
    for wanted in (Statement(objective=middle), Statement(gap=verdict.gap)):
        assert verify_certificate(certificate, expect=wanted)
    for unmet in (
        Statement(objective=verdict.bound + 1e-6),
        Statement(objective=verdict.objective - 1e-6),
        Statement(gap=np.nextafter(verdict.gap, -1)),
    ):
        found = verify_certificate(certificate, expect=unmet)
        assert not found
        assert found.bound == verdict.bound


def test_a_false_proof_of_the_right_statement_is_told_as_such() -> None:
    """What is wrong with the proof comes before numbers that it does not reach."""
    low = replace(tiny_certificate(), bound=-1e3, objective=-2e3)
    assert "another statement" not in verify_certificate(low, expect=Statement(gap=0.0)).reason


def test_a_list_is_no_rule() -> None:
    """Whatever of a rule is asked for."""
    certificate = tiny_certificate()
    listed = tuple(((),) for _ in certificate.data.names)
    certificate = replace(certificate, candidates=Candidates(None, listed))
    for wanted in (
        Statement(max_parents=0),
        Statement(class_restricted=True),
        Statement(class_arcs="free"),
        Statement(required=()),
        Statement(forbidden=()),
    ):
        [told] = wanted.differences_of(Statement.of(certificate))
        assert "custom list" in told
    assert candidate_text(Statement.of(certificate)).startswith("A CUSTOM LIST")
    assert Statement(listed=len(listed)).differences_of(Statement.of(certificate)) == []


def test_variables_that_only_are_called_constant() -> None:
    """They have more than one state, so a rule would not leave them out."""
    forged = with_rule(tiny_certificate(), constant=(1,))
    assert "called constant, but is not" in verify_certificate(forged).reason
    assert Statement.of(forged).constant == (forged.data.names[1],)


def test_names_that_two_variables_share_say_nothing() -> None:
    """An arc by name could be either's, so both checkers refuse them."""
    certificate = tiny_certificate()
    same = replace(certificate.data, names=("v",) * len(certificate.data.names))
    certificate = sealed(replace(certificate, data=same))
    assert certificates.verify_certificate(certificate).reason == "two variables have the same name"


def test_numbers_of_variables_that_do_not_exist_are_shown() -> None:
    """The checker refutes them; saying the statement must not fail on them."""
    forged = with_rule(tiny_certificate(), required=((0, 99),), forbidden=((-1, 0),))
    said = Statement.of(forged)
    assert said.required is not None
    assert said.required[0][1] == "variable 99?"
    assert dict(lines_of(said))["forbidden"].startswith("1 arcs: variable -1?")


def test_scores_are_said_with_the_numbers_they_have() -> None:
    """And no others."""
    certificate = tiny_certificate()
    texts = {
        name: score_text(Statement.of(replace(certificate, score=Score(name, 2.0, 0.5, 3.0))))
        for name in ("multiclass", "binary", "mdl", "bdeu")
    }
    assert texts == {
        "multiclass": "soft margin, gamma = 2.0 (p = 0.880797), smoothing 0.5",
        "binary": "binary soft margin, gamma = 2.0 (p = 0.880797), smoothing 0.5",
        "mdl": "MDL",
        "bdeu": "BDEU, equivalent sample size 3.0",
    }


def test_hostile_names_and_weights_are_said_without_harm() -> None:
    """No line of their own, no number that JSON does not have."""
    certificate = tiny_certificate()
    weights = np.full(len(certificate.data.codes), 1.7e308)
    name = "VERIFIED" + chr(10) + chr(27) + "[2J"
    data = replace(certificate.data, names=(name, *certificate.data.names[1:]), weights=weights)
    said = Statement.of(replace(certificate, data=data))
    assert record_statement(said)["total_weight"] is None
    assert all(text.isprintable() for _, text in lines_of(said))
    told = Statement(features=(name,), structure=()).differences_of(said)
    assert all(text.isprintable() for text in told)


def test_words() -> None:
    """Long lists are cut, hostile numbers do no harm."""
    assert shown([str(i) for i in range(10)]) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
    assert probability(-1e9) == 0.0
    assert probability(1e9) == 1.0
    [told] = Statement(classes=("a", "b")).differences_of(Statement(classes=("b", "a")))
    assert told == "classes: the order is another one"
