"""No forged certificate is accepted by any checker, and no honest one refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forgeries
from forgeries import COUNT, FORGERS, KINDS, PER_SEED, STATEMENTS, Wanted, accepted_by, judge, make


def check(records: list[dict[str, Any]]) -> None:
    assert [fault for record in records for fault in record["accepted"]] == []
    assert [record["seed"] for record in records if record["refused"]] == []


def test_there_are_enough_of_them() -> None:
    """More than forty kinds and more than five thousand forgeries, every score and engine."""
    assert len(set(KINDS)) == len(KINDS) >= 80
    assert COUNT * (PER_SEED - 3) >= 5000  # some kinds need dual weights or a rule
    assert 90 * len(FORGERS) <= PER_SEED * COUNT
    pairs = {(make(seed).score, make(seed).solver) for seed in range(48)}
    assert len({score for score, _ in pairs}) == 8
    assert {solver for _, solver in pairs} == {"branch_bound", "branch_cut"}


@pytest.mark.parametrize("seed", [0, 3, 5, 9, 14, 16])
def test_forgeries_are_refused_and_honest_certificates_accepted(seed: int, tmp_path: Path) -> None:
    """A few seeds: margins and scores, forests and clusters, a fifth of all kinds each."""
    check([judge(seed, tmp_path)])


@pytest.mark.parametrize("seed", [1, 2])
def test_every_kind_of_forgery_is_refused(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All kinds of claims and files on certificates by forests and by clusters."""
    monkeypatch.setattr(forgeries, "PER_SEED", len(FORGERS))
    record = judge(seed, tmp_path)
    check([record])
    assert len(record["tried"]) >= len(FORGERS) - 14  # type: ignore[arg-type]


def test_a_checker_that_believes_everything_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgeries are about the statement that was asked for, or they are not a file at all."""
    monkeypatch.setattr(forgeries, "CHECKERS", {"gullible": lambda path, asked: True})
    record = judge(0, tmp_path)
    tried = sum(record["tried"].values())  # type: ignore[attr-defined]
    assert len(record["accepted"]) >= 0.8 * tried  # type: ignore[arg-type]


def test_another_statement_is_not_the_one_asked_for(tmp_path: Path) -> None:
    """An honest proof of it is verified, and still not an answer: so says every checker."""
    case, path = make(0), tmp_path / "proof.cert"
    honest, other = case.certify(), forgeries.other_gamma(case, None).certify()  # type: ignore
    every = ["checker, in memory", "checker", "exact"]
    assert accepted_by(other, None, path) == every
    assert accepted_by(other, Wanted.of(other), path) == every
    assert accepted_by(other, Wanted.of(honest), path) == []
    assert accepted_by(case.certify(), Wanted.of(honest), path) == every


@pytest.mark.parametrize("restate", STATEMENTS, ids=lambda restate: restate.__name__)
def test_every_other_statement_is_refused(restate: Any, tmp_path: Path) -> None:
    """Verified for what it says, refused for what was asked."""
    case = make(4 if restate is forgeries.other_sample_size else 0)
    case = replace(case, score="bdeu") if restate is forgeries.other_sample_size else case
    other = restate(case, np.random.default_rng(0)).certify()
    path = tmp_path / "proof.cert"
    assert len(accepted_by(other, None, path)) == 3
    assert accepted_by(other, Wanted.of(case.certify()), path) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, COUNT, 50))
def test_thousands_of_forgeries_are_refused(first: int, tmp_path: Path) -> None:
    check([judge(seed, tmp_path) for seed in range(first, first + 50)])
