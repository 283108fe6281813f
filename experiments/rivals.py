"""The methods that are not Bayesian networks, all from scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from experiments.encoding import MixedMatrix, StateIndicators
from experiments.outcome import Classifier, Outcome, Stopwatch, best_setting, short
from experiments.protocol import RowSplit, Task, subsample

LOGISTIC_PENALTIES = (1.0, 0.1, 10.0, 0.01, 100.0)
"""The default first: ties go to the earlier entry."""
KERNEL_CACHE_MEGABYTES = 500


def support_vectors(task: Task) -> Outcome:
    """sigma and C validated on the paper's grid; the width enters as gamma = 1 / (2 sigma^2)."""
    settings, watch = task.settings, Stopwatch()
    grid = [{"sigma": s, "C": c} for s in settings.sigmas for c in settings.penalties]
    scores: list[list[float]] = [[] for _ in grid]
    notes: list[str] = []
    for split in task.inner:
        fit_rows, held_out = cut_for_svm(task, split, notes)
        indicators = StateIndicators().fit(task.train.take(fit_rows), task.labels[fit_rows])
        seen, unseen = (
            indicators.transform(task.train.take(rows)) for rows in (fit_rows, held_out)
        )
        for setting, its_scores in zip(grid, scores, strict=True):
            machine = _machine(**setting).fit(seen, task.labels[fit_rows])
            its_scores.append(short(np.mean(machine.predict(unseen) == task.labels[held_out])))
    watch.lap("validate")
    entries = [{**g, "scores": s} for g, s in zip(grid, scores, strict=True)]
    best = best_setting(sorted(entries, key=smoothness))
    indicators = StateIndicators().fit(task.train, task.labels)
    machine = _machine(best["sigma"], best["C"])
    machine.fit(indicators.transform(task.train), task.labels)
    watch.lap("fit")
    predicted = machine.predict(indicators.transform(task.test))
    watch.lap("predict")
    chosen = {"sigma": best["sigma"], "C": best["C"]}
    return Outcome(predicted, chosen, entries, {}, watch.seconds, notes)


def _machine(sigma: float, C: float) -> SVC:
    return SVC(C=C, gamma=1 / (2 * sigma**2), cache_size=KERNEL_CACHE_MEGABYTES)


def smoothness(entry: dict[str, Any]) -> tuple[float, float]:
    """Ties go to the wider kernel, then to the smaller C."""
    return -entry["sigma"], entry["C"]


def cut_for_svm(task: Task, split: RowSplit, notes: list[str]) -> RowSplit:
    """The split, or random rows of it where fitting 99 machines to all would take hours."""
    settings, most = task.settings, task.settings.svm_rows
    cut = tuple(subsample(rows, task.labels, most, settings.seed) for rows in split)
    if any(len(c) < len(rows) for c, rows in zip(cut, split, strict=True)):
        notes.append(
            f"the grid was validated with {len(cut[0])} of {len(split[0])} training rows and "
            f"{len(cut[1])} of {len(split[1])} validation rows; the final machine has all rows"
        )
    return cut[0], cut[1]


def boosting(task: Task) -> Outcome:
    """Gradient boosting as scikit-learn sets it up; numbers raw, categories declared."""
    matrix = MixedMatrix().fit(task.train)
    classifier = HistGradientBoostingClassifier(
        categorical_features=matrix.categorical_, random_state=task.settings.seed
    )
    return _fit_matrix(classifier, matrix, task, Stopwatch())


def logistic(task: Task) -> Outcome:
    """Numbers standardised, categories as indicators, penalty validated."""
    matrix, watch, entries = MixedMatrix().fit(task.train), Stopwatch(), []
    values = matrix.transform(task.train)
    for penalty in LOGISTIC_PENALTIES:
        scores = []
        for fit_rows, held_out in task.inner:
            pipeline = _logistic_pipeline(matrix, penalty).fit(
                values[fit_rows], task.labels[fit_rows]
            )
            hits = pipeline.predict(values[held_out]) == task.labels[held_out]
            scores.append(short(np.mean(hits)))
        entries.append({"C": penalty, "scores": scores})
    watch.lap("validate")
    best = best_setting(entries)["C"]
    return _fit_matrix(_logistic_pipeline(matrix, best), matrix, task, watch, {"C": best}, entries)


def _logistic_pipeline(matrix: MixedMatrix, penalty: float) -> Any:
    is_code = matrix.categorical_
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), np.flatnonzero(~is_code)),
            ("codes", OneHotEncoder(handle_unknown="ignore"), np.flatnonzero(is_code)),
        ]
    )
    return make_pipeline(columns, LogisticRegression(C=penalty, max_iter=1000))


def _fit_matrix(
    classifier: Classifier,
    matrix: MixedMatrix,
    task: Task,
    watch: Stopwatch,
    chosen: dict[str, Any] | None = None,
    validation: list[dict[str, Any]] | None = None,
) -> Outcome:
    classifier.fit(matrix.transform(task.train), task.labels)
    watch.lap("fit")
    predicted = classifier.predict(matrix.transform(task.test))
    watch.lap("predict")
    return Outcome(predicted, chosen or {}, validation or [], {}, watch.seconds)
