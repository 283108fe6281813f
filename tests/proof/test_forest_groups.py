"""Certificates over groups of rows: proofs for all rows that both checkers accept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from certificates import rebuild, second_opinion, verify_certificate
from marginbn import StructureProblem
from marginbn.files import MisfitError
from marginbn.proof.certificate import (
    Certificate,
    decode_certificate,
    encode_certificate,
    read_certificate,
)
from marginbn.proof.write import solve_with_certificate
from marginbn.solvers import solve_structure
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.run import Limits, Run
from problems import small_margin_problem


def certified(problem: StructureProblem, folder: Path, limits: Limits | None = None) -> Certificate:
    """The certificate of a search with groups."""
    path = folder / "groups.proof"
    run = Run(problem, limits or Limits(gap=1e-6))
    solve_with_certificate(BranchBoundSolver(rows="groups"), run, path)
    return read_certificate(path)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("margin", ["multiclass", "binary"])
def test_groups_are_certified_for_all_rows(seed: int, margin: str, tmp_path: Path) -> None:
    """There are fewer groups than rows, both checkers accept, and the optimum is that of a search
    without groups.
    """
    problem = small_margin_problem(seed, n_features=4, n_rows=60, margin=margin)
    certificate = certified(problem, tmp_path)
    assert certificate.groups is not None
    assert certificate.n_groups < len(certificate.data.codes) == problem.n_samples
    verdict = verify_certificate(certificate)
    assert verdict, verdict.reason
    assert verdict.gap <= 1e-6
    assert second_opinion(certificate) == ""
    optimum = solve_structure(rebuild(certificate)).objective
    assert certificate.objective <= optimum <= certificate.bound


@pytest.mark.filterwarnings("ignore::marginbn.exceptions.CertificateWarning")
def test_a_stopped_search_proves_its_gap(tmp_path: Path) -> None:
    """Open nodes are leaves with the weights of whatever grouping they were made with."""
    problem = small_margin_problem(1, n_features=6, n_rows=80)
    certificate = certified(problem, tmp_path, Limits(nodes=3))
    verdict = verify_certificate(certificate)
    assert verdict, verdict.reason
    assert second_opinion(certificate) == ""


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    problem = small_margin_problem(2, n_features=4, n_rows=60)
    return certified(problem, tmp_path_factory.mktemp("groups"))


def test_a_file_holds_groups(honest: Certificate) -> None:
    again = decode_certificate(encode_certificate(honest))
    assert again.n_groups == honest.n_groups
    np.testing.assert_array_equal(again.groups, honest.groups)
    assert encode_certificate(again) == encode_certificate(honest)


def test_other_groups_prove_something_else(honest: Certificate) -> None:
    """Samples in other groups have other weights: both checkers find that the bound is not reached.
    Of groups that keep every sample's weights nothing is said.
    """
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(10):
        groups = rng.permutation(honest.groups).astype(np.int32)
        forged = replace(honest, groups=groups)
        first = bool(verify_certificate(forged))
        assert first == (second_opinion(forged) == "")
        refused += not first
    assert refused == 10
    moved = np.zeros_like(honest.groups)
    assert not verify_certificate(replace(honest, groups=moved))
    assert second_opinion(replace(honest, groups=moved))


def test_one_sample_in_another_group_is_noticed_where_it_matters(honest: Certificate) -> None:
    """Both checkers agree on every sample moved to another group, and some are refused."""
    verdicts = []
    for sample in range(0, len(honest.groups), 5):
        groups = honest.groups.copy()
        groups[sample] = (groups[sample] + 1) % honest.n_groups
        forged = replace(honest, groups=groups)
        verdicts.append((bool(verify_certificate(forged)), second_opinion(forged) == ""))
    assert all(first == second for first, second in verdicts)
    assert (False, False) in verdicts


@pytest.mark.parametrize("number", [-1, 10**6])
def test_groups_that_do_not_exist_are_refused(honest: Certificate, number: int) -> None:
    groups = honest.groups.copy()
    groups[3] = number
    forged = replace(honest, groups=groups)
    assert "groups" in second_opinion(forged)
    with pytest.raises(MisfitError, match="groups"):
        decode_certificate(encode_certificate(forged))
