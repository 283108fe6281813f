"""Support vector machines with an RBF kernel, on three codings of the inputs.

sigma and C are validated by accuracy on the paper's grid; the width enters as
exp(-d^2 / (2 sigma^2)). Ties go to the wider kernel, then to the smaller C.

A machine gives labels. For log loss and Brier score its decision values d become a posterior,
softmax(a d + b) with one slope and one shift per class, fitted to the decision values of rows that
were held out in validation (with two classes this is Platt's method). Accuracy is that of the
machine's own labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.svm import SVC

from experiments.encoding import MixedMatrix, StateIndicators, StateNumbers
from experiments.fitted import Fitted, Labels, Matrix, short
from experiments.protocol import RowSplit, Task, subsample
from experiments.rivals import standardised
from marginbn.data.table import Table

KERNEL_CACHE_MEGABYTES = 500

Encoder = Callable[[Table, Labels], Callable[[Table], Matrix]]
"""Learns from a table and its labels how tables become matrices."""


def state_numbers(table: Table, labels: Labels) -> Callable[[Table], Matrix]:
    """What the networks see, as numbers: bins keep their order, categories get one."""
    return StateNumbers().fit(table, labels).transform


def state_indicators(table: Table, labels: Labels) -> Callable[[Table], Matrix]:
    """What the networks see, one indicator per state."""
    return StateIndicators().fit(table, labels).transform


def raw_inputs(table: Table, labels: Labels) -> Callable[[Table], Matrix]:
    """Standardised numbers and indicators of categories."""
    matrix = MixedMatrix().fit(table)
    scale = standardised(matrix).fit(matrix.transform(table))
    return lambda new: _dense(scale.transform(matrix.transform(new)))


def _dense(values: Any) -> Matrix:
    dense: Matrix = values.toarray() if hasattr(values, "toarray") else values
    return dense


def support_vectors(encode: Encoder) -> Callable[[Task], Fitted]:
    """The paper's grid on the matrices of `encode`."""

    def fit(task: Task) -> Fitted:
        grid = [(s, c) for s in task.settings.sigmas for c in task.settings.penalties]
        notes: list[str] = []
        splits = [cut_for_svm(task, split, notes) for split in task.inner]
        scores = np.mean([_grid_scores(task, split, encode) for split in splits], axis=0)
        ties = [g for g, score in zip(grid, scores, strict=True) if score == scores.max()]
        sigma, penalty = min(ties, key=lambda setting: (-setting[0], setting[1]))
        posterior = _calibrated(task, splits, encode, sigma, penalty)
        classes = np.unique(task.labels)
        to_matrix = encode(task.train, task.labels)
        machine = _machine(sigma, penalty).fit(to_matrix(task.train), task.labels)
        return Fitted(
            classes,
            lambda table: posterior(_decisions(machine, to_matrix(table), classes)),
            lambda table: machine.predict(to_matrix(table)),
            {"sigma": sigma, "C": penalty, "validated": short(scores.max())},
            notes=notes,
            model=machine,
        )

    return fit


def cut_for_svm(task: Task, split: RowSplit, notes: list[str]) -> RowSplit:
    """The split, or random rows of it where fitting 99 machines to all would take hours."""
    most = task.settings.svm_rows
    cut = tuple(subsample(rows, task.labels, most, task.seed) for rows in split)
    if any(len(c) < len(rows) for c, rows in zip(cut, split, strict=True)):
        notes.append(
            f"the grid was validated with {len(cut[0])} of {len(split[0])} training rows and "
            f"{len(cut[1])} of {len(split[1])} validation rows; the final machine has all rows"
        )
    return cut[0], cut[1]


def _grid_scores(task: Task, split: RowSplit, encode: Encoder) -> list[float]:
    """Accuracy of every machine on one inner split; distances are computed once for all."""
    fit_rows, held_out = split
    labels, truth = task.labels[fit_rows], task.labels[held_out]
    seen, unseen = _encoded(task, split, encode)
    inside, across = squared_distances(seen, seen), squared_distances(unseen, seen)
    scores = []
    for sigma in task.settings.sigmas:
        kernels = [np.exp(-d / (2 * sigma**2)) for d in (inside, across)]
        for penalty in task.settings.penalties:
            machine = SVC(C=penalty, kernel="precomputed", cache_size=KERNEL_CACHE_MEGABYTES)
            machine.fit(kernels[0], labels)
            scores.append(float(np.mean(machine.predict(kernels[1]) == truth)))
    return scores


def squared_distances(left: Matrix, right: Matrix) -> Matrix:
    """Between all rows of the two, (n_left, n_right)."""
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :]
    distances: Matrix = np.maximum(squares - 2 * left @ right.T, 0.0)
    return distances


def _encoded(task: Task, split: RowSplit, encode: Encoder) -> tuple[Matrix, Matrix]:
    fit_rows, held_out = split
    to_matrix = encode(task.train.take(fit_rows), task.labels[fit_rows])
    return to_matrix(task.train.take(fit_rows)), to_matrix(task.train.take(held_out))


def _calibrated(
    task: Task, splits: list[RowSplit], encode: Encoder, sigma: float, penalty: float
) -> Callable[[Matrix], Matrix]:
    """The posterior as a function of decision values."""
    every, values, truths = np.unique(task.labels), [], []
    for split in splits:
        seen, unseen = _encoded(task, split, encode)
        machine = _machine(sigma, penalty).fit(seen, task.labels[split[0]])
        values.append(_decisions(machine, unseen, every))
        truths.append(np.searchsorted(every, task.labels[split[1]]))
    slope, shifts = calibrate(np.vstack(values), np.concatenate(truths))
    return lambda decisions: softmax(slope * decisions + shifts, axis=1)


def calibrate(decisions: Matrix, truth: NDArray[np.intp]) -> tuple[float, Matrix]:
    """a and b that maximise the likelihood of softmax(a d + b) on these rows.

    A weak ridge on b keeps it finite where a class is absent. a stays positive: a = exp(s).
    """
    rows = np.arange(len(truth))

    def loss(parameters: Matrix) -> float:
        scores = np.exp(parameters[0]) * decisions + parameters[1:]
        gains = scores[rows, truth] - logsumexp(scores, axis=1)
        return float(-gains.sum() + 0.5 * (parameters[1:] ** 2).sum())

    def gradient(parameters: Matrix) -> Matrix:
        slope = np.exp(parameters[0])
        excess = softmax(slope * decisions + parameters[1:], axis=1)
        excess[rows, truth] -= 1
        of_slope = slope * (excess * decisions).sum()
        return np.concatenate([[of_slope], excess.sum(axis=0) + parameters[1:]])

    start = np.zeros(1 + decisions.shape[1])
    found = minimize(loss, start, jac=gradient, method="L-BFGS-B", bounds=_bounds(len(start))).x
    return float(np.exp(found[0])), found[1:]


def _bounds(n_parameters: int) -> list[tuple[float | None, float | None]]:
    """Where all rows are right the slope would grow without end."""
    return [(-5.0, 5.0), *[(None, None)] * (n_parameters - 1)]


def _decisions(machine: SVC, values: Matrix, classes: Labels) -> Matrix:
    """One column per class; classes it never saw get the least value."""
    decisions = machine.decision_function(values)
    if decisions.ndim == 1:
        decisions = np.column_stack([-decisions, decisions]) / 2
    wide = np.repeat(decisions.min(axis=1)[:, None], len(classes), axis=1)
    wide[:, np.searchsorted(classes, machine.classes_)] = decisions
    return wide


def _machine(sigma: float, penalty: float) -> SVC:
    return SVC(C=penalty, gamma=1 / (2 * sigma**2), cache_size=KERNEL_CACHE_MEGABYTES)
