"""Solves killed at random moments: nothing is lost, and the end is the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from killing import Patient, Tally, torment

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

PATIENTS = (
    Patient(11, 320, 13, 5),
    Patient(13, 360, 12, 4),
    Patient(14, 380, 13, 5, n_jobs=2),
    Patient(15, 300, 11, 3),
    Patient(18, 360, 11, 3, n_jobs=2),
    Patient(19, 380, 12, 4),
    Patient(21, 320, 11, 3, n_jobs=2),
    Patient(16, 320, 12, 4, margin="binary"),
    Patient(31, 60, 6, 3, solver="branch_cut"),
    Patient(34, 60, 5, 3, max_parents=3, solver="branch_cut"),
)


@pytest.mark.parametrize(
    "patient",
    [
        Patient(3, 200, 9, 4),
        Patient(3, 200, 9, 4, n_jobs=2),
        Patient(33, 60, 6, 3, solver="branch_cut"),
    ],
    ids=["branch_bound", "two workers", "branch_cut"],
)
def test_a_killed_solve_goes_on(patient: Patient, tmp_path: Path) -> None:
    """After every kill the newest checkpoint is complete and no worse than the one before."""
    tally = torment(patient, tmp_path, 4, np.random.default_rng(patient.seed))
    assert tally == Tally(tally.kills, tally.resumed, tally.finished, lost=0, different=0)


@pytest.mark.slow
@pytest.mark.parametrize("patient", PATIENTS, ids=str)
def test_twenty_kills_of_each_lose_nothing(patient: Patient, tmp_path: Path) -> None:
    """200 kills over ten problems: no checkpoint is lost and every end is the optimum."""
    rng = np.random.default_rng(1000 + patient.seed)
    tally = torment(patient, tmp_path, 20, rng, lambda line: sys.stderr.write(f"{line}\n"))
    assert tally.kills == 20
    assert tally.lost == 0
    assert tally.different == 0
