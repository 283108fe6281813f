"""The comparison of rules that choose gamma: the same choice as the classifier, and its table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from experiments import choices
from experiments import settings as presets
from experiments.protocol import Task

from marginbn import MaxMarginBNClassifierCV
from marginbn.data.labelled import stratified_folds
from marginbn.data.table import as_table


def small_task() -> Task:
    """Three features of two states that know a little of two classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=80)
    X = np.where(rng.random((80, 3)) < 0.5, y[:, None], rng.integers(2, size=(80, 3))).astype(str)
    labels, rows = np.array(["a", "b"])[y], as_table(X)
    train, test = np.arange(60), np.arange(60, 80)
    inner = stratified_folds(labels[train], 3, seed=0)
    parts = rows.take(train), labels[train], rows.take(test), labels[test]
    return Task(*parts, inner, presets.full())


def test_rules_measure_what_the_classifier_does() -> None:
    """Accuracy of the default rule and of the average on the test rows, two ways."""
    task = small_task()
    found = choices.measure(task, np.array(["a", "b"]))
    for average, rule in ((False, "accuracy"), (True, "average, p >= 0.7")):
        clf = MaxMarginBNClassifierCV(
            cv=task.inner, average=average, inner_time_limit=None, time_limit=None
        ).fit(task.train, task.labels)
        posterior = clf.predict_proba(task.test)
        truth = (task.test_labels == "b").astype(int)
        loss = -np.log(posterior[np.arange(20), truth]).mean()
        assert found["rules"][rule]["accuracy"] == clf.score(task.test, task.test_labels)
        assert found["rules"][rule]["log_loss"] == pytest.approx(loss, rel=1e-9)
    assert found["max_gap"] <= 1e-6


def record(name: str, seed: int, accuracy: float, averaged: float) -> dict[str, Any]:
    rules = {
        "accuracy": {"accuracy": accuracy, "log_loss": 0.5},
        "average, p >= 0.7": {"accuracy": averaged, "log_loss": 0.25},
    }
    return {"set": name, "seed": seed, "fold": 0, "rules": rules, "max_gap": 0.0}


def test_table_by_hand() -> None:
    """Gains of 4 and 0 points: mean 2, standard error 2; one set up, none down."""
    made = [record("u", 1, 0.8, 0.82), record("u", 2, 0.8, 0.86), record("v", 1, 0.9, 0.9)]
    lines = list(choices.table(made))
    assert lines[-1] == (
        "| average, p >= 0.7 | 87.00 | +2.00 (2.00) | 1/0 | 0.250 | -0.250 (0.000) | 2/0 |"
    )
    assert lines[1].startswith("1 seeds each")
