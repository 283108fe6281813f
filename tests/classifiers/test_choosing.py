"""Scores of held-out rows, and the rules that choose by them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss

from marginbn import InputError
from marginbn.classifiers.choosing import (
    RAMP,
    SCORINGS,
    SMALLEST_LOG,
    HeldOut,
    check_scoring,
    choose,
    class_codes,
    log_posterior_of_truth,
    ramp_margin,
)

SETTINGS = [(1, 0.5), (1, 2.0), (2, 0.5), (2, 2.0)]


def test_row_scores_agree_with_scikit_learn() -> None:
    """Accuracy and log loss of random posteriors."""
    rng = np.random.default_rng(0)
    posterior, truth = rng.dirichlet(np.ones(4), 50), rng.integers(4, size=50)
    hits = SCORINGS["accuracy"].of_rows(np.log(posterior), truth)
    assert hits.mean() == accuracy_score(truth, posterior.argmax(axis=1))
    gain = SCORINGS["log_loss"].of_rows(np.log(posterior), truth).mean()
    assert gain == pytest.approx(-log_loss(truth, posterior, labels=range(4)), rel=1e-12)


def test_ramp_margins_by_hand() -> None:
    """0.6 against 0.3 is log 2; certainty counts no more than 0.9 against 0.1, right or wrong."""
    posterior = np.log([[0.6, 0.3, 0.1], [0.98, 0.01, 0.01], [0.98, 0.01, 0.01]])
    found = ramp_margin(posterior, np.array([0, 0, 1]))
    assert found == pytest.approx([math.log(2), RAMP, -RAMP])


def test_a_class_that_was_never_learned() -> None:
    """Its rows are wrong, and cost no more than the worst that can be said."""
    classes = np.array(["a", "c"])
    codes = class_codes(np.array(["a", "b", "c", "d"]), classes)
    assert codes.tolist() == [0, -1, 1, -1]
    posterior = np.log(np.full((4, 2), 0.5))
    assert log_posterior_of_truth(posterior, codes)[1] == SMALLEST_LOG
    assert ramp_margin(posterior, codes)[3] == -RAMP
    assert SCORINGS["accuracy"].of_rows(posterior, codes)[1] == 0


def held_out(*scores: list[float], weights: list[float] | None = None) -> HeldOut:
    table = np.array(scores)
    return HeldOut(table, np.array(weights or [10.0] * table.shape[1]), 20)


def test_ties_go_to_fewer_parents_then_to_larger_gamma() -> None:
    """The same folds in another order are a tie, whatever rounding makes of their means."""
    folds = [0.1, 0.7, 0.3]
    table = held_out(folds[::-1], folds, folds, folds)
    assert choose(table, SCORINGS["accuracy"], SETTINGS) == 1


def test_pooling_counts_rows_and_not_folds() -> None:
    """Mean 0.75 against 0.70 turns round when the second part is four times as large."""
    table = held_out([1.0, 0.5], [0.6, 0.8], [0.0, 0.0], [0.0, 0.0], weights=[10.0, 40.0])
    assert choose(table, SCORINGS["accuracy"], SETTINGS) == 0
    assert choose(table, SCORINGS["pooled_accuracy"], SETTINGS) == 1
    assert table.means(pooled=True)[0] == pytest.approx((10 * 1.0 + 40 * 0.5) / 50)


def test_one_standard_error_by_hand() -> None:
    """Best 0.8 with folds 0.7 and 0.9: the error of the mean is 0.1, so 0.7 is good enough."""
    table = held_out([0.69, 0.69], [0.7, 0.71], [0.8, 0.75], [0.7, 0.9])
    assert choose(table, SCORINGS["accuracy"], SETTINGS) == 3
    assert table.standard_error(3) == pytest.approx(0.1)
    assert choose(table, SCORINGS["one_standard_error"], SETTINGS) == 1


def test_one_standard_error_of_a_single_part() -> None:
    """0.8 of 20 rows has the error sqrt(0.8 * 0.2 / 20) = 0.089."""
    table = held_out([0.70], [0.72], [0.8], [0.8])
    assert table.standard_error(2) == pytest.approx(math.sqrt(0.16 / 20))
    assert choose(table, SCORINGS["one_standard_error"], SETTINGS) == 1


@pytest.mark.parametrize("scoring", [*SCORINGS, "balanced_accuracy", lambda clf, X, y: 0.0])
def test_known_scorings(scoring: object) -> None:
    """Ours, scikit-learn's and callables."""
    check_scoring("scoring", scoring)


@pytest.mark.parametrize("scoring", ["acuracy", None, 3])
def test_unknown_scorings_are_refused(scoring: object) -> None:
    """The message lists what there is."""
    with pytest.raises(InputError, match=r"scoring must be one of \['accuracy'.*got"):
        check_scoring("scoring", scoring)
