"""Dirichlet scores with huge counts or priors: their error is in the bound."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from log_gamma import log_gamma
from marginbn import (
    EncodedData,
    StructureProblem,
    Variable,
    enumerate_candidates,
    linear_problem,
    solve_structure,
    verify_certificate,
)
from marginbn.classifiers.search import warn_if_open
from marginbn.exceptions import OptimalityWarning
from marginbn.problem.scores import LocalScore, get_local_score
from marginbn.scoring.local_scores import scores_with_errors
from marginbn.scoring.sums import counts_are_exact
from marginbn.solvers import Status

DIGITS = 110


def exact_score(counts: NDArray[np.float64], prior: Fraction) -> Decimal:
    whole = prior * counts.shape[1]
    with localcontext(prec=DIGITS):
        total = Decimal(0)
        for row in counts.tolist():
            exact = [Fraction(n) for n in row]
            total += log_gamma(whole, DIGITS) - log_gamma(whole + sum(exact), DIGITS)
            alone = log_gamma(prior, DIGITS)
            total += sum((log_gamma(prior + n, DIGITS) - alone for n in exact), Decimal(0))
        return total


def one_row(weight: float) -> EncodedData:
    variables = (Variable("class", ("0", "1")), Variable("x", ("0", "1")))
    return EncodedData(np.array([[0, 0]], dtype=np.int32), np.array([weight]), variables)


def two_hundred_rows() -> EncodedData:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, (200, 4))
    codes[:, 1] = np.where(rng.random(200) < 0.6, codes[:, 0], codes[:, 1])
    variables = tuple(Variable(f"v{i}", ("0", "1", "2")) for i in range(4))
    return EncodedData(codes.astype(np.int32), np.ones(200), variables)


@pytest.mark.parametrize("weight", [1e9, 1e12, 1e14, 1e16, 1e18])
@pytest.mark.parametrize("solver", ["branch_bound", "dp"])
def test_k2_of_one_heavy_row(weight: float, solver: str) -> None:
    """The optimum is exactly -2 log(1 + W); no bound lies below it."""
    problem = linear_problem(one_row(weight), enumerate_candidates(2, 1), get_local_score("k2"))
    result = solve_structure(problem, solver)
    optimum = -2.0 * math.log1p(weight)
    assert result.is_optimal
    assert result.objective == pytest.approx(optimum, rel=1e-14)
    assert optimum <= result.bound <= optimum + 1e-10


@pytest.mark.parametrize("size", [1e8, 1e10, 1e12, 1e14, 1e16])
def test_bdeu_with_a_huge_equivalent_sample_size(size: float) -> None:
    """Ordinary rows, a prior that outweighs them."""
    data, candidates = two_hundred_rows(), enumerate_candidates(4, 2)
    score = get_local_score("bdeu", size)
    problem = linear_problem(data, candidates, score)
    result = solve_structure(problem)
    exact = sum((exact_of(data, problem, int(k), size) for k in result.selection), Decimal(0))
    assert result.is_optimal
    assert abs(Decimal(result.objective) - exact) <= Decimal(problem.error)
    assert Decimal(result.bound) >= exact
    assert problem.error < 1e-9


def exact_of(data: EncodedData, problem: StructureProblem, k: int, size: float) -> Decimal:
    child, parents = int(problem.candidates.child[k]), problem.candidates.parents[k]
    counts = np.zeros((3,) * (len(parents) + 1))
    np.add.at(counts, tuple(data.codes[:, [*parents, child]].T), 1.0)
    return exact_score(counts.reshape(-1, 3), Fraction(size) / counts.size)


@pytest.mark.parametrize("seed", range(40))
def test_the_error_of_a_score_covers_its_rounding(seed: int) -> None:
    """Counts from 1e-8 to 1e18, priors from 1e-12 to 1e17, one table each."""
    rng = np.random.default_rng([seed, 4])
    r = int(rng.integers(2, 5))
    weights = 10.0 ** rng.uniform(-8, 18 if seed % 2 else 3, 6)
    size = 1.0 if seed % 4 == 0 else float(10.0 ** rng.uniform(-12, 17))
    codes = np.column_stack([rng.integers(0, 2, 6), rng.integers(0, r, 6)])
    variables = (Variable("class", ("0", "1")), Variable("x", tuple(map(str, range(r)))))
    data = EncodedData(codes.astype(np.int32), weights, variables).merged()
    candidates = enumerate_candidates(2, 1)
    score: LocalScore = get_local_score("bdeu", size)
    values, errors = scores_with_errors(data, candidates, score)
    k = candidates.index(1, (0,))
    counts = np.zeros((2, r))
    np.add.at(counts, tuple(data.codes.T), data.weights)
    exact = exact_score(counts, Fraction(size) / counts.size)
    assert abs(Decimal(float(values[k])) - exact) <= Decimal(float(errors[k]))
    assert errors[k] <= 1e-10 + 1e-12 * max(abs(values[k]), float(counts.sum()))


def test_scores_of_users_are_taken_at_their_word() -> None:
    """Nobody knows the rounding of a formula that is not ours."""
    data, candidates = two_hundred_rows(), enumerate_candidates(4, 1)

    def formula(counts: NDArray[np.float64], total: float) -> float:
        return -float(counts.size)

    assert linear_problem(data, candidates, formula).error == 0.0
    assert linear_problem(data, candidates, partial(formula)).error == 0.0
    for name in ("mdl", "aic", "loglik", "bdeu", "k2"):
        problem = linear_problem(data, candidates, get_local_score(name))
        assert 0.0 < problem.error < 1e-12 * 64 * abs(solve_structure(problem).objective)


@pytest.mark.parametrize("solver", ["branch_bound", "dp", "branch_cut", "highs"])
def test_an_error_beyond_the_tolerance_is_said(solver: str) -> None:
    """Nothing is left to search, and still nobody may say optimal."""
    data = two_hundred_rows()
    exact = linear_problem(data, enumerate_candidates(4, 1), get_local_score("k2"))
    coarse = replace(exact, error=0.5)
    best, result = solve_structure(exact), solve_structure(coarse, solver)
    assert result.status is Status.ROUNDING
    assert not result.is_optimal
    assert result.structure == best.structure
    assert best.objective + 1.0 <= result.bound <= best.bound + 1.01
    with pytest.warns(OptimalityWarning, match="smaller weights"):
        warn_if_open(result)


def test_an_error_survives_a_checkpoint_once(tmp_path: Path) -> None:
    """A saved bound counts it already."""
    problem = linear_problem(two_hundred_rows(), enumerate_candidates(4, 1), get_local_score("k2"))
    path = tmp_path / "search"
    first = solve_structure(replace(problem, error=0.5), checkpoint=path)
    again = solve_structure(replace(problem, error=0.5), checkpoint=path)
    assert again.bound == first.bound
    assert again.status is Status.ROUNDING


@pytest.mark.parametrize("weight", [1e9, 1e14, 1e18])
def test_certificates_of_heavy_rows_are_tight(weight: float, tmp_path: Path) -> None:
    """The checker's log-gammas are exact to a unit, whatever the weight."""
    problem = linear_problem(one_row(weight), enumerate_candidates(2, 1), get_local_score("k2"))
    solve_structure(problem, certificate=tmp_path / "proof")
    verdict = verify_certificate(tmp_path / "proof")
    assert verdict
    assert verdict.gap < 1e-9


def test_counts_are_exact_where_no_order_of_adding_rounds() -> None:
    """Fractions never round; the sums of floats agree with them if the counts are called exact."""
    verdicts = set()
    for seed in range(60):
        random = np.random.default_rng(seed)
        whole = random.integers(1, 2 ** int(random.integers(1, 53)), 6).astype(np.float64)
        weights = np.ldexp(whole, random.integers(-8, 8, 6))
        sums = {float(np.cumsum(random.permutation(weights))[-1]) for _ in range(20)}
        own = EncodedData(np.zeros((6, 1)), weights, (Variable("class", ("0",)),))
        verdicts.add(counts_are_exact(own))
        if counts_are_exact(own):
            assert {Fraction(total) for total in sums} == {sum(map(Fraction, weights.tolist()))}
    assert verdicts == {True, False}


@pytest.mark.parametrize(("smallest", "is_exact"), [(2.0**-52, True), (2.0**-53, False)])
def test_a_double_has_fifty_three_digits(smallest: float, is_exact: bool) -> None:
    data = EncodedData(np.zeros((2, 1)), np.array([1.0, smallest]), (Variable("class", ("0",)),))
    assert (Fraction(1.0 + smallest) == 1 + Fraction(smallest)) == is_exact
    assert counts_are_exact(data) == is_exact
