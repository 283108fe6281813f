"""Trained tables of a classifier: smoothing chosen on held-out rows, tables trained on all rows.

The class model is compiled code, which is loaded where tables are trained, not with the estimators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from marginbn.classifiers.budget import report_phase
from marginbn.classifiers.measures import Quality
from marginbn.data.encode import EncodedTraining
from marginbn.data.training import TrainingRows
from marginbn.exceptions import OptimalityWarning, warn_user
from marginbn.network.wording import counted
from marginbn.problem.array_types import FloatArray
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure

if TYPE_CHECKING:
    from marginbn.class_model.basis import TableCells
    from marginbn.class_model.choose import LearnStructure
    from marginbn.class_model.trainer import ClassModel

ParameterKind = Literal["counted", "trained"]

SEARCHING, CHOOSING, TRAINING = 0.5, 0.7, 0.9
"""Parts of a time limit after which the search, the choice of the smoothing, and the training end;
a first choice and :data:`~marginbn.class_model.trainer.LEAST_STEPS` steps are made in any case.
"""

QUICK_VALUES = 2_000_000
"""Values (rows x features) of a table for which a first choice takes about a second; of a larger
one none is made if it would end late: a usual amount of smoothing is taken, and nothing is held
out.
"""


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
    weights: FloatArray
    probabilities: FloatArray

    def quality(self, classes: NDArray[Any]) -> Quality:
        """All measures of the predictions."""
        return Quality.measure(classes.tolist(), self.labels, self.probabilities)

    def where(self, n_samples: int) -> str:
        """Which rows of a training set of this size."""
        n_rows = len(self.labels)
        kind = "rows, each held out once" if n_rows == n_samples else "held-out rows"
        return f"{n_rows} {kind}"


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
    searched: float = 0.0,
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
    time_limit, searched
        Seconds for the whole fit (None for no limit), and those that the search took.
    is_stopped
        The user wants to stop: a usual amount of smoothing is taken, and nothing is held out. So it
        is when Ctrl-C ends the choice.
    """
    from marginbn.class_model.choose import START, choose_precisions
    from marginbn.class_model.trainer import CERTIFIED, train_class_model

    def has_passed(share: float) -> bool:
        return time_limit is not None and rows.elapsed() > share * time_limit

    table, choice, given = rows.sample(), None, (training.cells, structure, training.rows)
    # a first choice takes up to 1.5 times as long as everything before it but the search
    expected = 2.5 * rows.elapsed() - 1.5 * searched
    is_large = training.rows.codes.size > QUICK_VALUES
    is_too_late = is_large and time_limit is not None and expected > TRAINING * time_limit
    if is_too_late and not is_stopped:
        warn_user(
            "time_limit left no time to choose the smoothing: a usual amount is taken, and the "
            "quality on held-out rows is not known; a larger time_limit chooses it",
            OptimalityWarning,
        )
    try:
        if not (is_stopped or is_too_late):
            choice = choose_precisions(
                table,
                training.classes,
                learn_structure,
                missing=rows.settings.missing,
                seed=seed,
                is_late=lambda: has_passed(CHOOSING),
                tell=report_phase,
            )
    except KeyboardInterrupt:
        warn_user(
            "the choice of the smoothing was interrupted: a usual amount is taken, and the quality "
            "on held-out rows is not known",
            OptimalityWarning,
        )
    if choice is None:
        is_late = (lambda: has_passed(TRAINING)) if is_too_late else (lambda: False)
        return train_class_model(*given, START, is_late), None
    report_phase("training the probabilities")
    model = train_class_model(*given, choice.precisions, lambda: has_passed(TRAINING))
    if not choice.is_complete or (has_passed(TRAINING) and model.gap > CERTIFIED):
        warn_user(
            f"time_limit cut the training short: {counted(choice.n_fits, 'amount')} of smoothing "
            f"tried, tables {model.nearness}. The probabilities are less exact than they could be "
            f"(log loss {choice.log_loss:.3g} on held-out rows); a larger time_limit, or none, "
            "trains them as intended",
            OptimalityWarning,
        )
    judged = choice.rows
    return model, HeldOut(table.labels[judged], table.weights[judged], np.exp(choice.log_posterior))
