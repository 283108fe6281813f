"""The residual score against its formula row by row, and against one Newton step."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from marginbn.exceptions import InputError
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.residuals import pair_gains, residual_gain, residual_score
from marginbn.problem.scores import LOCAL_SCORES, SCORES, get_local_score
from problems import residual_case


def gain_by_rows(
    data: EncodedData, residuals: np.ndarray, curvatures: np.ndarray, family: tuple[int, ...]
) -> Fraction:
    """The formula in fractions, cell by cell and row by row: ridge 3, price 1/2."""
    n_classes, ridge = data.n_classes, 3
    total = Fraction(0)
    for cell in itertools.product(*(range(int(data.arities[v])) for v in family)):
        for c in range(n_classes):
            g = h = Fraction(0)
            for m, row in enumerate(data.codes.tolist()):
                if tuple(row[v] for v in family) == cell:
                    g += Fraction(float(data.weights[m])) * Fraction(float(residuals[m, c]))
                    h += Fraction(float(data.weights[m])) * Fraction(float(curvatures[m, c]))
            total += g * g * (h + 2 * ridge) / (2 * (h + ridge) ** 2)
            total -= Fraction(1, 2) * Fraction(n_classes - 1, n_classes) * h / (h + ridge)
    return total / 2 if n_classes == 2 else total


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_gains_are_those_of_the_formula(n_classes: int) -> None:
    """Merged rows, weights, pairs and triples; the error covers the difference."""
    case = residual_case(n_classes, n_rows=30, n_classes=n_classes)
    merged, score = residual_score(*case)
    assert merged.n_samples <= case[0].n_samples
    for family in [(1, 2), (2, 4), (1, 3, 4), (1, 2, 3, 4)]:
        expected = float(gain_by_rows(*case, family))
        gain, error = score.gain_and_error(merged, family)
        assert gain == pytest.approx(expected, rel=1e-12, abs=1e-12)
        columns = EncodedData(merged.codes, np.ones(merged.n_samples), merged.variables)
        exact = gain_by_rows(columns, score.gradients, score.curvatures, family)
        assert abs(Fraction(gain) - exact) <= Fraction(error)
        assert error < 1e-12 * max(1.0, abs(gain))


def test_pair_gains_are_all_gains() -> None:
    """The function for others has the numbers of the score."""
    data, residuals, curvatures = residual_case(5)
    merged, score = residual_score(data, residuals, curvatures)
    gains = pair_gains(data.codes[:, 1:], data.arities[1:], data.weights, residuals, curvatures)
    assert (gains == gains.T).all()
    assert (np.diag(gains) == 0).all()
    for i, j in itertools.combinations(range(1, 5), 2):
        assert gains[i - 1, j - 1] == pytest.approx(score.gain_and_error(merged, (i, j))[0])


def test_the_reward_is_what_a_newton_step_gains() -> None:
    """g t - h t^2 / 2 at t = g / (h + l), and the price of the degrees of freedom."""
    g, h = np.array([[3.0, -1.0, -2.0]]), np.array([[2.0, 0.5, 1.0]])
    step = g / (h + 3.0)
    reward = (g * step - h * step**2 / 2).sum()
    assert residual_gain(g, h) == pytest.approx(reward - 0.5 * (2 / 3) * (h / (h + 3)).sum())
    assert residual_gain(g, h, price=0.0) == pytest.approx(reward)
    assert residual_gain(np.zeros((4, 3)), np.zeros((4, 3))) == 0.0  # empty cells


def test_a_real_newton_step_reduces_the_log_loss_by_about_the_reward() -> None:
    """The table of one pair, fitted: a second opinion on what the score promises."""
    rng = np.random.default_rng(0)
    codes = np.column_stack([np.zeros(4000, int), rng.integers(0, 2, (4000, 2))])
    pair = codes[:, 1] ^ codes[:, 2]
    codes[:, 0] = rng.random(4000) < np.where(pair, 0.55, 0.45)
    variables = tuple(Variable(n, ("0", "1")) for n in "cxy")
    data = EncodedData(codes, np.ones(4000), variables)
    posterior = np.full((4000, 2), 0.5)
    residuals = np.eye(2)[codes[:, 0]] - posterior
    merged, score = residual_score(data, residuals, posterior * (1 - posterior), price=0.0)
    gain, _ = score.gain_and_error(merged, (1, 2))
    cell = 2 * codes[:, 1] + codes[:, 2]
    shares = np.array([[np.mean(codes[cell == v, 0] == c) for c in (0, 1)] for v in range(4)])
    before, after = 4000 * np.log(0.5), np.log(shares[cell, codes[:, 0]]).sum()
    assert gain == pytest.approx(after - before, rel=0.05)


def test_merging_rows_and_their_order_change_nothing() -> None:
    """Sums are exact: every order has the same bits; a weight of two is two rows."""
    data, residuals, curvatures = residual_case(1, weighted=False)
    order = np.random.default_rng(0).permutation(data.n_samples)
    shuffled = EncodedData(data.codes[order], data.weights, data.variables)
    merged, score = residual_score(data, residuals, curvatures)
    other, same = residual_score(shuffled, residuals[order], curvatures[order])
    assert score.gain_and_error(merged, (1, 2)) == same.gain_and_error(other, (1, 2))
    twice = EncodedData(np.tile(data.codes, (2, 1)), np.ones(2 * data.n_samples), data.variables)
    double = EncodedData(data.codes, 2 * data.weights, data.variables)
    a = residual_score(twice, np.tile(residuals, (2, 1)), np.tile(curvatures, (2, 1)))
    b = residual_score(double, residuals, curvatures)
    assert a[1].gain_and_error(a[0], (1, 3)) == b[1].gain_and_error(b[0], (1, 3))


def test_columns_are_rounded_so_that_sums_are_exact() -> None:
    """Tiny and large numbers together: adding up in any order gives the same."""
    rng = np.random.default_rng(3)
    data, residuals, curvatures = residual_case(3, n_rows=200)
    residuals = residuals * 10.0 ** rng.uniform(-30, 0, residuals.shape)
    _, score = residual_score(data, residuals, curvatures)
    for column in np.hstack([score.gradients, score.curvatures]).T:
        total = sum(Fraction(v) for v in column.tolist())
        for _ in range(5):
            assert Fraction(float(np.add.reduce(rng.permutation(column)))) == total


def test_many_states_do_not_need_memory_for_every_cell() -> None:
    """Three features of a thousand states have a billion cells, of which fifty occur."""
    rng = np.random.default_rng(0)
    variables = (Variable("c", ("a", "b")), *(
        Variable(f"x{i}", tuple(map(str, range(1000)))) for i in range(3)
    ))  # fmt: skip
    codes = np.column_stack([rng.integers(0, 2, 50), rng.integers(0, 1000, (50, 3))])
    data = EncodedData(codes, np.ones(50), variables)
    p = np.full((50, 2), 0.5)
    merged, score = residual_score(data, np.eye(2)[codes[:, 0]] - p, p * (1 - p))
    expected = 50 * residual_gain(np.array([[0.5, -0.5]]), np.array([[0.25, 0.25]]))
    assert score.gain_and_error(merged, (1, 2, 3))[0] == pytest.approx(expected)


def test_the_registry_says_that_it_is_no_function_of_counts() -> None:
    """It is listed once, and asking for it as a function of counts names the remedy."""
    assert SCORES["residual"].function is residual_gain
    assert "residual" not in LOCAL_SCORES
    with pytest.raises(InputError, match="residual_problem"):
        get_local_score("residual")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"residuals": np.zeros((3, 2))}, r"residuals must have shape \(60, 3\)"),
        ({"curvatures": np.full((60, 3), np.nan)}, "curvatures must be finite"),
        ({"curvatures": np.full((60, 3), -1.0)}, "curvatures must not be negative"),
        ({"ridge": 0.0}, "ridge must be a positive number"),
        ({"price": -0.5}, "price must be a number of at least 0"),
    ],
)
def test_wrong_arguments_are_named(change: dict[str, object], message: str) -> None:
    """With the remedy."""
    data, residuals, curvatures = residual_case(0)
    arguments = {"residuals": residuals, "curvatures": curvatures} | change
    with pytest.raises(InputError, match=message):
        residual_score(data, **arguments)  # type: ignore[arg-type]
