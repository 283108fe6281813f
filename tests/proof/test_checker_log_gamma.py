"""The logarithm of the gamma function in the checker, for every weight a certificate may have."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_UP, Decimal, getcontext, localcontext
from fractions import Fraction

import numpy as np
import pytest

from certificates import sealed
from log_gamma import PI, log_gamma
from marginbn.proof.certificate import FOREST, Candidates, Certificate, Data, Score
from marginbn.proof.checker import verify_certificate
from marginbn.proof.checker.values import SHIFT, ExactCounts, local_score, log_gamma_units


def error_of(x: Fraction) -> float:
    """How far the checker's value is off, in its units."""
    with localcontext(prec=1000):
        return float(abs(log_gamma(x) * 2**SHIFT - log_gamma_units(x)))


def test_the_independent_value_is_right() -> None:
    """Factorials, and Gamma(1/2) = sqrt(pi)."""
    with localcontext(prec=60):
        for n in (1, 2, 3, 10, 50, 300):
            wanted = Decimal(math.factorial(n - 1)).ln()
            assert abs(log_gamma(Fraction(n)) - wanted) < Decimal("1e-45")
        assert abs(log_gamma(Fraction(1, 2)) - PI.ln() / 2) < Decimal("1e-45")


@pytest.mark.parametrize("exponent", range(-300, 301, 20))
def test_the_promised_error_is_kept_for_every_weight(exponent: int) -> None:
    """Less than one unit of 2^-44 from 1e-300 to 1e300, where the value has 300 digits."""
    rng = np.random.default_rng(exponent + 1000)
    for x in (10.0**exponent, 10.0 ** (exponent + rng.uniform(-0.5, 0.5))):
        assert error_of(Fraction(x)) < 1
        assert error_of(Fraction(x) + 1) < 1  # a prior count and a weight


@pytest.mark.parametrize("x", [7.181977842906551e60, 1e80, 39.0, 39.999, 40.0, 40.001, 1.0, 2.0])
def test_the_promised_error_is_kept_where_it_was_not(x: float) -> None:
    """The weights of two forged certificates that were once accepted; both sides of the shift."""
    assert error_of(Fraction(x)) < 1


def test_the_caller_s_decimal_arithmetic_does_not_matter() -> None:
    """Three digits, always up: as exact as ever."""
    wanted = {x: log_gamma_units(Fraction(x)) for x in (0.3, 7.5, 1e50)}
    log_gamma_units.cache_clear()
    with localcontext() as context:
        context.prec, context.rounding = 3, ROUND_UP
        assert {x: log_gamma_units(Fraction(x)) for x in wanted} == wanted
    assert getcontext().prec > 3


# ---------------------------------------------------------------------------------- certificates


def one_row(weight: float, score: str, objective: float, bound: float) -> Certificate:
    """One row of two binary variables. For K2 a structure scores Gamma(2) / Gamma(2 + W) times
    Gamma(1 + W) / Gamma(1) twice, so -2 log(1 + W), whatever its arcs.
    """
    codes = np.zeros((1, 2), dtype=np.int32)
    data = Data(("c", "x"), (("a", "b"), ("0", "1")), codes, np.array([weight]))
    return Certificate(
        fingerprint=data.fingerprint(),
        data=data,
        score=Score(score),
        candidates=Candidates(None, (((), (1,)), ((), (0,)))),
        incumbent=((), (0,)),
        objective=objective,
        bound=bound,
        grid=-30,
        tree=np.array([FOREST, 0], dtype=np.int32),
    )


@pytest.mark.parametrize("weight", [7.181977842906551e60, 1e80])
@pytest.mark.parametrize("score", ["k2", "bdeu"])
def test_forged_claims_about_huge_weights_are_refuted(weight: float, score: str) -> None:
    """Bounds far below the optimum, objectives far above it; the truth is verified."""
    best = -2 * math.log1p(weight) if score == "k2" else bdeu_of_one_row(weight, joined=True)
    honest = one_row(weight, score, best - 1e-6, best + 1e-6)
    assert verify_certificate(honest)
    low = replace(honest, objective=-1e6, bound=-22737.36)
    assert "structures may score up to" in verify_certificate(low).reason
    for objective in (-0.000001, best + 1e-6):
        high = replace(honest, objective=objective, bound=1.0)
        assert "less than the claimed objective" in verify_certificate(high).reason
    near = replace(honest, objective=best - 1e-3, bound=best - 1e-6)
    assert "structures may score up to" in verify_certificate(near).reason


def bdeu_of_one_row(weight: float, joined: bool) -> float:
    """Two binary variables and one equivalent row, with an arc, which scores more, or without."""
    w, prior = Fraction(weight), Fraction(1, 4 if joined else 2)
    with localcontext(prec=1000):
        gain = log_gamma(prior + w) - log_gamma(prior) - log_gamma(1 + w)
        return float(gain if joined else 2 * gain)


@pytest.mark.parametrize("score", ["k2", "bdeu"])
@pytest.mark.parametrize("exponent", range(-100, 101, 20))
def test_scores_of_any_admitted_weight_are_enclosed(score: str, exponent: int) -> None:
    """Within 1e-11 of the formula; 1e-100 to 1e100 is what a certificate may have."""
    weight = 10.0**exponent
    certificate = sealed(one_row(weight, score, 0.0, 0.0))
    counts = ExactCounts(certificate.data)
    enclosed = [local_score(counts, certificate.score, v, ()) for v in (0, 1)]
    low, high = (sum(end) / 2**SHIFT for end in zip(*enclosed, strict=True))
    wanted = -2 * math.log1p(weight) if score == "k2" else bdeu_of_one_row(weight, joined=False)
    assert low - 1e-12 * abs(wanted) <= wanted <= high + 1e-12 * abs(wanted)
    assert high - low < 1e-11
