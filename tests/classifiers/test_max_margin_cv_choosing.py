"""Scores of held-out rows, and the rules that choose by them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss

from marginbn.classifiers.max_margin_cv import (
    SCORINGS,
    SMALLEST_LOG,
    choose,
    class_codes,
    log_posterior_of_truth,
)

SETTINGS = [(1, 0.5), (1, 2.0), (2, 0.5), (2, 2.0)]


def test_row_scores_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    posterior, truth = rng.dirichlet(np.ones(4), 50), rng.integers(4, size=50)
    hits = SCORINGS["accuracy"](np.log(posterior), truth)
    assert hits.mean() == accuracy_score(truth, posterior.argmax(axis=1))
    gain = SCORINGS["log_loss"](np.log(posterior), truth).mean()
    assert gain == pytest.approx(-log_loss(truth, posterior, labels=range(4)), rel=1e-12)


def test_a_class_that_was_never_learned() -> None:
    """Its rows are wrong, and cost no more than the worst that can be said."""
    classes = np.array(["a", "c"])
    codes = class_codes(np.array(["a", "b", "c", "d"]), classes)
    assert codes.tolist() == [0, -1, 1, -1]
    posterior = np.log(np.full((4, 2), 0.5))
    assert log_posterior_of_truth(posterior, codes)[1] == SMALLEST_LOG
    assert SCORINGS["accuracy"](posterior, codes)[1] == 0


def test_ties_go_to_fewer_parents_then_to_larger_gamma() -> None:
    """The same folds in another order are a tie, whatever rounding makes of their means."""
    folds = [0.1, 0.7, 0.3]
    means = np.array([folds[::-1], folds, folds, folds]).mean(axis=1)
    assert choose(means, SETTINGS) == 1


def test_the_best_mean_is_chosen() -> None:
    """Whatever it costs in parents."""
    assert choose(np.array([0.69, 0.7, 0.8, 0.75]), SETTINGS) == 2
