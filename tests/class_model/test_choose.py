"""Choice of the precisions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from class_model_cases import CHAIN, mixed_rows
from marginbn.class_model import choose
from marginbn.class_model.choose import GRID, START, choose_precisions
from marginbn.data.labelled import LabelledTable
from marginbn.data.table import as_table
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure


def chain(data: EncodedData) -> Structure:
    """The features as a chain below the class, whatever the rows."""
    return Structure(((), *((0, v) if v else (0,) for v in range(data.n_variables - 1))))


def naive(data: EncodedData) -> Structure:
    return Structure(((), *(((0,),) * (data.n_variables - 1))))


def sign_products(n_rows: int) -> LabelledTable:
    """The class is the sign of a product of two normal numbers, but for one row in ten."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 3))
    labels = (x[:, 0] * x[:, 1] > 0) ^ (rng.random(n_rows) < 0.1)
    return LabelledTable.of(as_table(x), labels.astype(int))


def test_an_interaction_needs_its_family_table() -> None:
    """Sign products: nothing without the table, most of it with it."""
    chosen = choose_precisions(sign_products(1000), np.arange(2), chain)
    assert math.isfinite(chosen.precisions.family)
    alone = choose_precisions(sign_products(1000), np.arange(2), naive)
    assert alone.log_loss > 0.68
    assert chosen.log_loss < 0.5
    accuracy = np.mean(chosen.log_posterior.argmax(1) == sign_products(1000).labels[chosen.rows])
    assert accuracy > 0.8


def test_noise_has_no_family_tables() -> None:
    """Labels that depend on nothing: strong precisions, and no tables."""
    rng = np.random.default_rng(1)
    rows = LabelledTable.of(as_table(rng.normal(size=(400, 3))), rng.integers(0, 2, 400))
    chosen = choose_precisions(rows, np.arange(2), chain)
    assert min(chosen.precisions) >= START.line
    assert chosen.log_loss < 0.71


def test_what_is_chosen_is_the_best_of_what_was_tried() -> None:
    """The loss is that of the held-out posteriors; precisions lie on the grid."""
    rows = mixed_rows(300, 3)
    chosen = choose_precisions(rows, np.arange(3), chain)
    own = chosen.log_posterior[np.arange(300), rows.labels[chosen.rows]]
    assert chosen.log_loss == pytest.approx(-own.mean())
    assert sorted(chosen.rows) == list(range(300))
    assert set(chosen.precisions) <= {*GRID, math.inf}
    assert chosen.is_complete


def test_structures_never_see_the_rows_that_judge_them() -> None:
    rows, seen = mixed_rows(200), []

    def learn(data: EncodedData) -> Structure:
        seen.append(data)
        return CHAIN

    choose_precisions(rows, np.arange(2), learn)
    assert [data.n_samples for data in seen] == [160] * 5
    assert len({data.codes.tobytes() for data in seen}) == 5


def test_from_1500_rows_on_a_fifth_is_held_out() -> None:
    """One structure instead of five."""
    seen = []

    def learn(data: EncodedData) -> Structure:
        seen.append(data.n_samples)
        return CHAIN

    chosen = choose_precisions(mixed_rows(1500), np.arange(2), learn)
    assert seen == [1200]
    assert len(chosen.rows) == 300


def test_many_rows_are_judged_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same one for a seed, spread over all rows."""
    monkeypatch.setattr(choose, "ENOUGH_ROWS", 200)
    rows = mixed_rows(1000)
    first, second = (choose_precisions(rows, np.arange(2), chain, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.rows, second.rows)
    assert len(set(first.rows.tolist())) == 200
    assert first.rows.max() > 900
    other = choose_precisions(rows, np.arange(2), chain, seed=4)
    assert set(other.rows.tolist()) != set(first.rows.tolist())


def test_the_choice_is_deterministic() -> None:
    first, second = (choose_precisions(mixed_rows(250), np.arange(2), chain) for _ in range(2))
    assert first.precisions == second.precisions
    np.testing.assert_array_equal(first.log_posterior, second.log_posterior)


def test_an_emergency_limit_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marginbn.class_model.trainer.LEAST_STEPS", 0)
    looks = iter([False] * 60 + [True] * 10_000)
    chosen = choose_precisions(mixed_rows(300), np.arange(2), chain, is_late=lambda: next(looks))
    assert not chosen.is_complete
    assert 1 <= chosen.n_fits < 5
    assert math.isfinite(chosen.log_loss)
    late = choose_precisions(mixed_rows(300), np.arange(2), chain, is_late=lambda: True)
    assert late.precisions == START
    assert late.n_fits == 1


@pytest.mark.parametrize("n_rows", [2, 3, 7])
def test_very_few_rows(n_rows: int) -> None:
    chosen = choose_precisions(mixed_rows(n_rows), np.arange(2), chain)
    assert math.isfinite(chosen.log_loss)
    assert len(chosen.rows) == n_rows


def test_a_class_of_one_row() -> None:
    """Folds without it know it as a class that no row has."""
    rows = mixed_rows(60)
    labels = rows.labels.copy()
    labels[7] = 2
    chosen = choose_precisions(LabelledTable.of(rows.features, labels), np.arange(3), chain)
    assert chosen.log_posterior.shape == (60, 3)
    assert np.isfinite(chosen.log_posterior).all()


def test_categories_alone_have_no_lines_to_choose() -> None:
    rng = np.random.default_rng(2)
    table = [["ab"[a], "cd"[b]] for a, b in rng.integers(0, 2, (200, 2))]
    rows = LabelledTable.of(as_table(table), rng.integers(0, 2, 200))
    assert choose_precisions(rows, np.arange(2), chain).precisions.line == START.line
