"""A checkpoint and a certificate of the same solve do not get in each other's way."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from certificates import verify_certificate
from marginbn.exceptions import CertificateWarning
from marginbn.solvers import solve_structure
from problems import small_margin_problem

HARD = {"n_rows": 150, "n_features": 7, "n_classes": 3, "gamma": 1.5}


@pytest.mark.parametrize("max_parents", [2, 3])
def test_a_solve_in_two_sittings_is_certified(tmp_path: Path, max_parents: int) -> None:
    """Stopped after a few nodes, gone on later: both certificates are accepted, the second proves
    the optimum of an undisturbed solve.
    """
    features = 7 if max_parents == 2 else 4
    problem = small_margin_problem(3, **{**HARD, "n_features": features}, max_parents=max_parents)
    files = {"checkpoint": tmp_path / "solve.ckpt", "certificate": tmp_path / "solve.cert"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)  # its gap may be the wider one
        first = solve_structure(problem, node_limit=3, **files)
    early = verify_certificate(files["certificate"])
    assert early
    assert early.bound >= first.objective
    second = solve_structure(problem, **files)
    proof = verify_certificate(files["certificate"])
    assert proof
    assert second.is_optimal
    assert second.objective == pytest.approx(solve_structure(problem).objective, rel=2e-6)
    assert proof.bound == pytest.approx(second.objective, rel=2e-6)


def test_a_finished_checkpoint_still_gives_a_certificate(tmp_path: Path) -> None:
    """The optimum is known from the file alone; its proof is made all the same."""
    problem = small_margin_problem(4)
    checkpoint, certificate = tmp_path / "solve.ckpt", tmp_path / "solve.cert"
    before = solve_structure(problem, checkpoint=checkpoint)
    after = solve_structure(problem, checkpoint=checkpoint, certificate=certificate)
    assert after.objective == before.objective
    assert verify_certificate(certificate)
