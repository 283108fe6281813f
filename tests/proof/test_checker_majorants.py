"""The checker's majorants, in exact rational arithmetic: dual weights, constants, values."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from test_certificate import tiny_certificate

from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import margin_problem
from marginbn.proof.certificate import Certificate, DualWeights, Score
from marginbn.proof.checker.bounds import Majorants, _checked, room
from marginbn.proof.checker.statement import RefutedError, build_space
from marginbn.proof.checker.values import SHIFT, SLACK, ExactCounts, MarginValues
from marginbn.proof.definition import define_candidates, define_data
from problems import random_table


def dual_certificate(seed: int, grid: int) -> Certificate:
    """Three classes, odd weights, and sixty dual weights of several widths: samples give away
    some of their weight, or all of it to both rivals, or most or all of them all of it to one, or
    nearly all of it to one.
    """
    rng = np.random.default_rng(seed)
    encoded = random_table(rng, 25, 3, 3, weighted=True).encoded()
    data = define_data(encoded)
    duals = []
    for number, bits in enumerate(rng.choice([1, 7, 8, 15, 16, 24], 60).tolist()):
        shares = rng.dirichlet([0.5, 0.5, 0.5], len(data.codes))[:, :2]
        parts = np.floor(shares * 2**bits).astype(np.uint32)
        if number % 4 in (1, 2):
            parts[:, 1] = 2**bits - parts[:, 0]
        if number % 4 == 2:
            parts[number // 4 % 4 :] = (0, 2**bits)
        if number % 4 == 3:
            parts[:] = (2**bits - 1, 0)
        duals.append(DualWeights(bits, parts))
    return replace(
        tiny_certificate(gamma=1.7),
        data=data,
        fingerprint=data.fingerprint(),
        candidates=define_candidates(margin_problem(encoded, enumerate_candidates(4, 2))),
        duals=tuple(duals),
        grid=grid,
    )


def majorants_of(certificate: Certificate) -> Majorants:
    space = build_space(certificate.data, certificate.candidates)
    return Majorants(certificate, space, ExactCounts(certificate.data))


def upper_columns(certificate: Certificate) -> list[list[int]]:
    """Upper coefficients of every candidate in units, row by row."""
    space = build_space(certificate.data, certificate.candidates)
    margins = MarginValues(ExactCounts(certificate.data), certificate.score)
    columns = []
    for child, parents in zip(space.child.tolist(), space.parents, strict=True):
        matters = child == 0 or 0 in parents
        columns.append((margins.units(child, parents) + SLACK * matters).reshape(-1).tolist())
    return columns


def unused_weights(certificate: Certificate, number: int) -> list[Fraction]:
    """w_m - sum_c u_mc of the dual weights that are used, exactly."""
    weighed, _ = majorants_of(certificate)._weigh(number, certificate.duals[number])
    u = [Fraction(v) for v in weighed.tolist()]
    assert min(u) >= 0
    weights = enumerate(certificate.data.weights.tolist())
    return [Fraction(w) - sum(u[2 * m : 2 * m + 2]) for m, w in weights]


@pytest.mark.parametrize("seed", range(2))
def test_constants_hold_in_exact_arithmetic(seed: int) -> None:
    """u >= 0 and sum_c u_mc <= w_m; gamma times what is left is not above the constant, nor far
    below it, and zero is exact.
    """
    certificate = dual_certificate(seed, -100)
    gamma, total = Fraction(certificate.score.gamma), certificate.data.weights.sum()
    majorants, exact_zeros = majorants_of(certificate), 0
    for number, dual in enumerate(certificate.duals):
        unused = unused_weights(certificate, number)
        assert min(unused) >= 0
        constant, found = gamma * sum(unused), majorants._weigh(number, dual)[1]
        assert constant <= found
        assert found <= constant * (1 + Fraction(1, 2**40)) + gamma * Fraction(total) / 2**48
        assert (found == 0) == (constant == 0)
        exact_zeros += constant == 0
    assert exact_zeros >= 3


@pytest.mark.parametrize("seed", range(2))
def test_values_hold_in_exact_arithmetic(seed: int) -> None:
    certificate = dual_certificate(seed, -37)
    majorants, columns = majorants_of(certificate), upper_columns(certificate)
    unit = Fraction(1, 2**37)
    for number, dual in enumerate(certificate.duals):
        u = [Fraction(v) for v in majorants._weigh(number, dual)[0].tolist()]
        found = majorants[number].values
        for k, column in enumerate(columns):
            value = sum(a * b for a, b in zip(u, column, strict=True)) / 2**SHIFT
            assert value <= int(found[k]) * unit <= value + 2 * unit * any(column)


@pytest.mark.parametrize(("parts", "sample"), [([[3], [0]], 0), ([[2], [3]], 1)])
def test_a_single_sample_that_gives_away_too_much_is_named(
    parts: list[list[int]], sample: int
) -> None:
    """The whole is two parts here: two are fine, three are not."""
    dual = DualWeights(1, np.array(parts, dtype=np.uint8))
    certificate = replace(tiny_certificate(), duals=(*tiny_certificate().duals, dual))
    with pytest.raises(RefutedError, match=f"dual weights 1: sample {sample} gives away more"):
        majorants_of(certificate)[1]


def test_the_allowances_are_the_documented_ones() -> None:
    """Values that cancel exactly leave (R + 8) 2^-51 sum_m w_m max_c |a_mc|; the constant of
    weights that nobody gets is enlarged by (M + 8) 2^-51 of itself.
    """
    shares = (DualWeights(1, np.ones((2, 1), dtype=np.uint8)),)
    certificate = replace(tiny_certificate(gamma=1.7), duals=(*shares, *tiny_certificate().duals))
    certificate = replace(certificate, grid=-70)
    majorants = majorants_of(certificate)
    size = 3 * 2**47
    units = np.array([[size], [-size]]) - SLACK
    majorants.__dict__["margins"] = SimpleNamespace(units=lambda *_: units)
    allowance = (2 + 8) * 2.0**-51 * (9 + 9) * size / 2**SHIFT
    found = majorants[0].values.tolist()
    assert found[1] == found[3] == math.ceil(allowance * 2.0**70)
    unused = Fraction(1.7) * 18 * (1 + Fraction(2 + 8, 2**51))
    assert majorants[1].constant == math.ceil(unused * 2**70)


def test_the_largest_rival_decides_on_the_allowance() -> None:
    """Three classes: one rival has all the coefficients, the other one none."""
    certificate = dual_certificate(0, -60)
    weights = np.ones(len(certificate.data.weights))
    n = len(weights) // 2 * 2
    weights[n:] = 2.0**-30
    data = replace(certificate.data, weights=weights)
    parts = np.array([[1, 0]] * n + [[0, 0]] * (len(weights) - n), dtype=np.uint8)
    majorants = majorants_of(replace(certificate, data=data, duals=(DualWeights(1, parts),)))
    units = np.zeros((len(weights), 2), dtype=np.int64) - SLACK
    units[:n, 0] += 2**47 * np.resize([1, -1], n)
    majorants.__dict__["margins"] = SimpleNamespace(units=lambda *_: units)
    allowance = (2 * len(weights) + 8) * 2.0**-51 * n * 8
    assert majorants[0].values[1] == math.ceil(allowance * 2.0**60)


def test_blocks_only_save_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One dual weight and one candidate at a time, nothing kept: the same but for rounding."""
    certificate = dual_certificate(0, -37)
    together = majorants_of(certificate)
    assert together.count == 60
    found = [together[number] for number in range(60)]
    monkeypatch.setattr("marginbn.proof.checker.bounds.BLOCK_BYTES", 1)
    monkeypatch.setattr("marginbn.proof.checker.bounds.DENSE_BYTES", 0)
    apart = majorants_of(certificate)
    for number, majorant in enumerate(found):
        assert apart[number].constant == majorant.constant
        np.testing.assert_allclose(apart[number].values, majorant.values, rtol=0, atol=1)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 100, 5000])
def test_there_is_room_for_bonuses_and_penalties(n: int) -> None:
    """A bonus outweighs twice all values, a penalty twice all bonuses, and 64 bits hold them."""
    values, bonus, penalty = room(n)
    assert values >= 15
    assert 2**bonus > 4 * n * 2**values
    assert 2**penalty > 4 * n * 2**bonus
    assert n * 2 ** (penalty + 3) < 2**63


def test_values_without_room_are_refused() -> None:
    """From 2^bits on, on either side; infinity and NaN are no numbers."""
    largest = 2.0 ** room(3)[0] - 1
    assert _checked(np.array([largest, 0.0]), 3).tolist() == [int(largest), 0]
    assert _checked([-int(largest), 5], 3).tolist() == [-int(largest), 5]
    for wrong in (largest + 1, -largest - 1, np.inf, -np.inf, np.nan):
        with pytest.raises(RefutedError, match="too fine"):
            _checked(np.array([0.0, wrong]), 3)
        with pytest.raises(RefutedError, match="too fine"):
            _checked(np.array([wrong, 0.0]), 3)


@pytest.mark.parametrize("sign", [-1, 1])
def test_coefficients_are_exact_in_double_precision(sign: int) -> None:
    """One whole number from 2^53 on, the slack included, is one too many."""
    majorants = majorants_of(dual_certificate(0, -37))
    units = np.zeros((25, 2), dtype=np.int64)
    majorants.__dict__["margins"] = SimpleNamespace(units=lambda *_: units)
    units[7, 1] = sign * (2**53 - 1) - SLACK
    assert majorants._make_columns(0, 1)[15, 0] == sign * (2**53 - 1) * 2.0**-SHIFT
    units[7, 1] += sign
    with pytest.raises(RefutedError, match="too large"):
        majorants._make_columns(0, 1)


def test_a_decomposable_score_is_its_own_majorant() -> None:
    """Upper ends, rounded up, and there is no constant."""
    certificate = replace(tiny_certificate(), score=Score("loglik"), duals=(), grid=-3)
    space = build_space(certificate.data, certificate.candidates)
    majorants = Majorants(certificate, space, ExactCounts(certificate.data))
    unit = 2**SHIFT // 8
    majorants.__dict__["scores"] = [(0, 9 * unit), (0, 9 * unit + 1), (0, -9 * unit - 1), (0, unit)]
    assert majorants.count == 1
    assert majorants[0].constant == 0
    assert majorants[0].values.tolist() == [9, 10, -9, 1]
