"""Trained tables of a classifier: smoothing chosen on held-out rows, tables trained on all rows.

The class model is compiled code, which is loaded where tables are trained or asked, not with the
estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from marginbn.classifiers.measures import Quality
from marginbn.classifiers.progress import tell_phase
from marginbn.data.encode import EncodedTraining
from marginbn.data.preparation import Preparation
from marginbn.data.training import TrainingRows
from marginbn.exceptions import InputError, OptimalityWarning, warn_user
from marginbn.network.explain import Explanations, explain_codes
from marginbn.network.observed import number_of, state_of
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure

if TYPE_CHECKING:
    from marginbn.class_model.answers import Answers
    from marginbn.class_model.basis import TableCells
    from marginbn.class_model.choose import LearnStructure
    from marginbn.class_model.trainer import ClassModel
    from marginbn.network.network import BayesianNetwork

ParameterKind = Literal["counted", "trained"]

CHOOSING, TRAINING = 0.7, 0.9
"""Parts of a time limit after which the choice of the smoothing, and the training, end."""


@dataclass(frozen=True, eq=False)
class CellTraining(EncodedTraining):
    """Training rows in bins, and in the cells of the tables to train."""

    cells: TableCells
    rows: EncodedData


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that were predicted without having been learned from.

    Parameters
    ----------
    labels, weights
        Their classes and weights.
    probabilities
        float64 (rows, classes).
    """

    labels: NDArray[Any]
    weights: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    def quality(self, classes: NDArray[Any]) -> Quality:
        """All measures of the predictions."""
        return Quality.measure(classes.tolist(), self.labels, self.probabilities)


def encode_cells(rows: TrainingRows) -> CellTraining:
    """Training rows in cells and in bins; a number without a cut has quartiles for bins."""
    from marginbn.class_model.basis import learn_cells

    table = rows.sample()
    classes = np.unique(table.labels)
    cells, data = learn_cells(table, classes, rows.settings.missing)
    return CellTraining(cells.bins, classes, cells.count(data), cells, data)


def train_tables(
    rows: TrainingRows,
    training: CellTraining,
    structure: Structure,
    learn_structure: LearnStructure,
    *,
    seed: int,
    time_limit: float | None,
    is_stopped: bool = False,
) -> tuple[ClassModel, HeldOut | None]:
    """Choose the amount of smoothing by validation, then train the tables of the structure.

    Parameters
    ----------
    rows, training
        Rows to learn from, as a table and as codes.
    structure
        Of all rows.
    learn_structure
        Finds the structure of the training rows of a fold.
    seed
        Of the folds.
    time_limit
        Seconds for the whole fit; None for none.
    is_stopped
        The user wants to stop: a usual amount of smoothing is taken, and nothing is held out. So it
        is when Ctrl-C ends the choice.
    """
    from marginbn.class_model.choose import START, choose_precisions
    from marginbn.class_model.trainer import train_class_model

    table = rows.sample()
    if is_stopped:
        return train_class_model(training.cells, structure, training.rows, START), None
    late = _after(rows, time_limit, CHOOSING)
    try:
        choice = choose_precisions(
            table,
            training.classes,
            learn_structure,
            missing=rows.settings.missing,
            seed=seed,
            is_late=late,
            tell=tell_phase,
        )
    except KeyboardInterrupt:
        warn_user(
            "the choice of the smoothing was interrupted: a usual amount is taken, and the quality "
            "on held-out rows is not known",
            OptimalityWarning,
        )
        return train_class_model(training.cells, structure, training.rows, START), None
    late = _after(rows, time_limit, TRAINING)
    tell_phase("training the tables on all rows")
    model = train_class_model(training.cells, structure, training.rows, choice.precisions, late)
    if not choice.is_complete or late():
        warn_user(
            f"time_limit ended the training: {choice.n_fits} amounts of smoothing were tried, the "
            f"tables are within {model.gap:.1g} of their optimum; a larger time_limit, or none, "
            "trains them as intended",
            OptimalityWarning,
        )
    judged = choice.rows
    return model, HeldOut(table.labels[judged], table.weights[judged], np.exp(choice.log_posterior))


def _after(rows: TrainingRows, time_limit: float | None, share: float) -> Callable[[], bool]:
    """Whether so much of the limit has passed."""
    if time_limit is None:
        return lambda: False
    return lambda: rows.elapsed() > share * time_limit


def make_answers(network: BayesianNetwork, model: ClassModel) -> Answers:
    """What answers for the class."""
    from marginbn.class_model.answers import Answers

    return Answers(network, model)


def log_answers(answers: Answers, codes: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Log posteriors (rows, classes) of rows of cells, -1 for unknown."""
    posterior = answers.posterior(without_lone_missing(answers.model.design.cells, codes))
    return np.log(np.maximum(posterior, 1e-300))  # in place of zero


def without_lone_missing(
    cells: TableCells, codes: NDArray[np.integer[Any]]
) -> NDArray[np.integer[Any]]:
    """Codes in which missing values of rows that lack more than training ever did are unknown.

    A missing value is a state of its own where training had such rows. That a value is missing
    tells something only in rows like these: a row that also lacks a value which training always
    had is incomplete for another reason.
    """
    is_open = (codes < 0).any(axis=1)
    if not is_open.any():
        return codes
    codes = codes.copy()
    for column, feature in zip(codes.T, cells.features, strict=True):
        if feature.coding.missing_state:
            column[is_open & (column == feature.n_cells - 1)] = -1
    return codes


def encode_evidence(
    answers: Answers, evidence: Mapping[str | int, Any], preparation: Preparation
) -> NDArray[np.int32]:
    """Codes (1, features) of known values by column name; everything else is unknown.

    A number has its cell; the label of a bin stands for all cells of the bin.
    """
    network, features = answers.network, answers.model.design.cells.features
    plans = {plan.name: plan for plan in preparation.columns}
    codes = np.full((1, len(features)), -1, dtype=np.int32)
    for name, value in evidence.items():
        place = network.variable_index(name) - 1
        if place < 0:
            raise InputError(f"{name!r} is the class; give values of other columns")
        variable = network.variables[place + 1]
        plan = plans.get(variable.name)
        if plan is not None and str(value) in plan.merged:
            value = plan.other
        state, number = state_of(variable, value), number_of(value)
        feature = features[place]
        if number is not None and feature.coding.kind == "numeric":
            codes[0, place] = np.searchsorted(feature.coding.cuts, number)
        else:
            codes[0, place] = feature.code_of_bin(state)
    return codes


def explain_cells(
    answers: Answers, classes: NDArray[Any], codes: NDArray[np.integer[Any]], y: Any
) -> Explanations:
    """Explanations of rows of cells: from the base rate, each known value takes a step."""
    codes = without_lone_missing(answers.model.design.cells, codes)

    def contribute(labels: NDArray[np.intp], rivals: NDArray[np.intp]) -> NDArray[np.float64]:
        values = np.zeros((len(codes), answers.network.n_variables))
        for own, row, label, rival in zip(values, codes, labels, rivals, strict=True):
            own[0], own[1:] = answers.contributions(row, int(label), int(rival))
        return values

    bins = answers.model.design.cells.to_bins(codes)
    return explain_codes(answers.network, classes, bins, y, log_answers(answers, codes), contribute)
