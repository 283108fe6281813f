"""The measures are scikit-learn's."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics

from marginbn.classifiers.measures import Quality
from marginbn.exceptions import InputError


def random_case(n_classes: int, seed: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    classes = [f"c{i}" for i in range(n_classes)]
    labels = np.array(classes)[rng.integers(n_classes, size=80)]
    return classes, labels, rng.dirichlet(np.ones(n_classes), 80)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_measures_agree_with_scikit_learn(n_classes: int) -> None:
    classes, labels, given = random_case(n_classes, n_classes)
    quality = Quality.measure(classes, labels, given)
    predicted = np.array(classes)[given.argmax(axis=1)]
    assert quality.accuracy == pytest.approx(metrics.accuracy_score(labels, predicted))
    balanced = metrics.balanced_accuracy_score(labels, predicted)
    assert quality.balanced_accuracy == pytest.approx(balanced)
    assert quality.log_loss == pytest.approx(metrics.log_loss(labels, given, labels=classes))
    found = given[:, 1] if n_classes == 2 else given
    area = metrics.roc_auc_score(labels, found, multi_class="ovr", labels=classes)
    assert quality.auc == pytest.approx(area)
    precision, recall, _, support = metrics.precision_recall_fscore_support(
        labels, predicted, labels=classes, zero_division=0
    )
    assert [c.precision or 0.0 for c in quality.classes] == pytest.approx(precision)
    assert [c.recall for c in quality.classes] == pytest.approx(recall)
    assert [c.n_rows for c in quality.classes] == support.tolist()
    confusion = metrics.confusion_matrix(labels, predicted, labels=classes)
    assert [list(row) for row in quality.confusion] == confusion.tolist()
    if n_classes == 2:
        brier = metrics.brier_score_loss(labels, given[:, 1], pos_label="c1")
    else:
        brier = np.mean(((labels[:, None] == np.array(classes)) - given) ** 2) * n_classes
    assert quality.brier == pytest.approx(brier)
    json.dumps(quality.to_dict())
    assert "balanced accuracy" in quality.lines()[0]


def test_calibration_by_hand() -> None:
    """Four rows in two bins: 0.9 sure and always right, 0.6 sure and half right."""
    given = [[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]]
    quality = Quality.measure(["a", "b"], ["a", "a", "a", "b"], given)
    bins = [[b.confidence, b.accuracy, b.n_rows] for b in quality.calibration]
    np.testing.assert_allclose(bins, [[0.6, 0.5, 2], [0.9, 1.0, 2]])
    assert quality.calibration_error == pytest.approx(0.1)


def test_classes_that_training_never_saw_count_as_wrong() -> None:
    """And are listed, without a probability of their own."""
    quality = Quality.measure([0, 1], ["0", "2"], [[1.0, 0.0], [0.5, 0.5]])
    assert quality.accuracy == 0.5
    assert [(c.label, c.n_rows, c.recall) for c in quality.classes] == [
        ("0", 1, 1.0),
        ("1", 0, None),
        ("2", 1, 0.0),
    ]
    assert quality.log_loss > 10


def test_one_class_has_no_area() -> None:
    """None where a measure has no meaning; wrong shapes are refused."""
    assert Quality.measure(["a", "b"], ["a", "a"], [[1, 0], [0, 1]]).auc is None
    with pytest.raises(InputError, match="shape"):
        Quality.measure(["a"], ["a"], [[1, 0]])


def test_two_classes_have_one_auc() -> None:
    """That of the second against the first, whatever the last digits of p and 1 - p."""
    rng = np.random.default_rng(0)
    second = rng.integers(1, 8, size=400) / 10 + rng.normal(0, 1e-14, size=400)
    labels = np.where(rng.random(400) < second, "b", "a")
    quality = Quality.measure(["a", "b"], labels, np.column_stack([1 - second, second]))
    area = metrics.roc_auc_score(labels == "b", second)
    assert quality.classes[0].auc == quality.classes[1].auc == quality.auc == pytest.approx(area)


def test_small_probabilities_are_no_ties() -> None:
    """1e-13 is less than 1e-12, also where 1 - p is rounded to 1."""
    second = np.array([1e-17, 1e-16, 1e-13, 1e-12])
    given = np.column_stack([1 - second, second])
    assert Quality.measure(["a", "b"], ["a", "b", "a", "b"], given).auc == 0.75


def test_rows_above_each_threshold_by_hand() -> None:
    """Of the second class and of the first; at 50 % they are the confusion."""
    second = np.array([0.2, 0.5, 0.505, 0.9])
    labels = ["a", "b", "b", "a"]
    quality = Quality.measure(["a", "b"], labels, np.column_stack([1 - second, second]))
    assert len(quality.above) == 101
    assert (quality.above[0], quality.above[50], quality.above[90]) == ((2, 2), (1, 1), (0, 0))
    assert quality.above[50] == (quality.confusion[1][1], quality.confusion[0][1])
    assert Quality.measure(["a", "b", "c"], ["a"], [[1, 0, 0]]).above == ()
    assert "above" not in quality.to_dict()
