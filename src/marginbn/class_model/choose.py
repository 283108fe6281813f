"""Choice of the three precisions by validated log loss.

Structure, cuts and bases are learned again inside every fold, so no held-out row judges a structure
that has seen it. A coordinate search on a grid starts with the effects alone. Then family tables
are added, all three precisions move, and the tables are kept only if they lower the loss. The
choice depends on rows and seed, never on the clock; an emergency limit may end it, and is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from marginbn.class_model.basis import (
    EFFECT,
    FAMILY,
    LINE,
    CellTraining,
    Design,
    family_pairs,
    learn_cells,
)
from marginbn.class_model.trainer import (
    CERTIFIED,
    ClassModel,
    Precisions,
    Trainer,
    train_class_model,
)
from marginbn.data.encode import IsLate
from marginbn.data.labelled import (
    LabelledTable,
    MissingPolicy,
    Split,
    stratified_folds,
    stratified_holdout,
)
from marginbn.data.training import TrainingRows
from marginbn.exceptions import OptimalityWarning, warn_user
from marginbn.network.wording import counted
from marginbn.problem.array_types import CodeArray, FloatArray, IndexArray
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure

LearnStructure = Callable[[EncodedData], Structure]
"""Learns a structure from rows of bins, class first."""

GRID = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Precisions to choose from, each about three times the one before."""

START, START_FAMILY = Precisions(line=1.0, effect=3.0, family=math.inf), 10.0
"""Where the search begins: without family tables, which are tried last, from their own start."""

LEAST_PER_ROW = 10.0
"""Least precision times the number of rows: few rows that chance tells apart would want none."""

SWEEPS = 3
"""Rounds over the precisions, at most; the last one rarely changes anything."""

N_FOLDS, ONE_SPLIT, HELD_OUT = 5, 1500, 0.2
"""Folds; from so many rows on, one stratified part of the rows is held out instead."""

ENOUGH_ROWS = 20_000
"""Rows that the precisions are chosen by; of more, so many are drawn."""


@dataclass(frozen=True, eq=False)
class PrecisionChoice:
    """The chosen precisions, and how well they do on held-out rows."""

    precisions: Precisions  # with family=inf the model has no family tables
    log_loss: float  # validated
    rows: IndexArray  # held out
    log_posterior: FloatArray  # log P(class | row) of these rows, (rows, classes)
    n_fits: int  # precisions tried, one fit per fold each
    is_complete: bool  # no emergency limit ended the search


@dataclass(frozen=True, eq=False)
class _Fold:
    """A trainer, and the held-out rows that judge it."""

    trainer: Trainer
    weights: FloatArray
    codes: CodeArray
    classes: IndexArray

    def validate(self, precisions: Precisions, is_late: IsLate) -> tuple[float, FloatArray]:
        """Log loss of the held-out rows after a fit, and their log posteriors."""
        scores = self.trainer.fit(precisions, is_late=is_late).scores(self.codes)
        log_posterior = np.asarray(log_softmax(scores, axis=1))
        own = log_posterior[np.arange(len(self.classes)), self.classes]
        return -float(self.weights @ own), log_posterior


@dataclass(eq=False)
class _ValidatedLoss:
    """Log losses and log posteriors of held-out rows, by precisions; each is tried once."""

    folds: Sequence[_Fold]
    least: float
    is_late: IsLate
    tell: Callable[[str], None]
    tried: dict[Precisions, tuple[float, FloatArray]] = field(default_factory=dict)
    is_complete: bool = True

    def loss(self, precisions: Precisions) -> float:
        """Mean log loss; infinite for what is not tried because it is late."""
        if precisions not in self.tried:
            if self.tried and self.is_late():
                self.is_complete = False
                return math.inf
            self.tell(f"validation, trial {len(self.tried) + 1} of the smoothing")
            results = [fold.validate(precisions, self.is_late) for fold in self.folds]
            losses, answers = zip(*results, strict=True)
            weight = sum(float(fold.weights.sum()) for fold in self.folds)
            self.tried[precisions] = sum(losses) / weight, np.concatenate(answers)
        return self.tried[precisions][0]

    def descend(self, start: Precisions, groups: Sequence[int]) -> Precisions:
        """Coordinate descent over the precisions of the given groups."""
        best = start
        for _ in range(SWEEPS):
            before = best
            for group in groups:
                down = self._move(best, group, -1)
                best = down if down != best else self._move(best, group, 1)
            if best == before:
                break
        return best

    def _move(self, best: Precisions, group: int, step: int) -> Precisions:
        """Move one precision along the grid as long as that lowers the loss."""
        while 0 <= (place := GRID.index(best[group]) + step) < len(GRID):
            tried = best._replace(**{best._fields[group]: GRID[place]})
            if tried[group] < self.least or self.loss(best) <= self.loss(tried):
                break
            best = tried
        return best


def split_rows(labels: NDArray[Any], seed: int = 0) -> tuple[IndexArray, list[Split]]:
    """Rows to choose by, and which of these to learn from and to hold out, in turn."""
    drawn = np.arange(len(labels))
    if len(labels) > ENOUGH_ROWS:
        drawn = np.sort(np.random.default_rng(seed).permutation(len(labels))[:ENOUGH_ROWS])
    if len(drawn) >= ONE_SPLIT:
        return drawn, [stratified_holdout(labels[drawn], HELD_OUT, seed)]
    return drawn, stratified_folds(labels[drawn], N_FOLDS, seed)


def choose_precisions(
    rows: LabelledTable,
    classes: NDArray[Any],
    learn_structure: LearnStructure,
    *,
    missing: MissingPolicy = "auto",
    seed: int = 0,
    is_late: IsLate = lambda: False,
    tell: Callable[[str], None] = lambda text: None,
) -> PrecisionChoice:
    """Choose precisions for training rows.

    ``classes`` are all labels, sorted; ``learn_structure`` is called with the rows of each fold;
    ``seed`` is that of the folds, and of the rows drawn from many; ``tell`` hears what is done.
    """
    drawn, splits = split_rows(rows.labels, seed)
    rows = rows if len(drawn) == rows.n_rows else rows.take(drawn)
    folds = []
    for fold, (train, test) in enumerate(splits, start=1):
        tell(f"validation, fold {fold} of {len(splits)}")
        cells, data = learn_cells(rows.take(train), classes, missing)
        design = Design(cells, family_pairs(learn_structure(cells.count(data))))
        held_out = rows.take(test)
        codes = cells.coding.encode(held_out.features)
        labels = np.searchsorted(classes, held_out.labels)
        folds.append(_Fold(Trainer(design, data), held_out.weights, codes, labels))
    validation = _ValidatedLoss(folds, LEAST_PER_ROW / rows.n_rows, is_late, tell)
    groups = {group for fold in folds for group in fold.trainer.design.groups.tolist()}
    effects = [group for group in (EFFECT, LINE) if group in groups]
    alone = chosen = validation.descend(START, effects)
    if FAMILY in groups:
        with_pairs = validation.descend(alone._replace(family=START_FAMILY), [FAMILY, *effects])
        chosen = min(alone, with_pairs, key=validation.loss)
    return PrecisionChoice(
        precisions=chosen,
        log_loss=validation.loss(chosen),
        rows=drawn[np.concatenate([test for _, test in splits])],
        log_posterior=validation.tried[chosen][1],
        n_fits=len(validation.tried),
        is_complete=validation.is_complete,
    )


# ----------------------------------------------------------------- within a limit of time

SEARCHING, CHOOSING, TRAINING = 0.5, 0.7, 0.9
"""Parts of a time limit after which the search, the choice of the smoothing, and the training end;
a first choice and :data:`~marginbn.class_model.trainer.LEAST_STEPS` steps are made in any case.
"""

QUICK_VALUES = 2_000_000
"""Values (rows x features) of a table for which a first choice takes about a second; of a larger
one none is made if it would end late: a usual amount of smoothing is taken, and nothing is held
out.
"""


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
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[ClassModel, tuple[NDArray[Any], FloatArray, FloatArray] | None]:
    """Choose the amount of smoothing by validation, then train the tables of the structure.

    ``learn_structure`` finds the structure of the rows of a fold, ``seed`` is that of the folds.
    ``time_limit`` is for the whole fit, of which the search took ``searched`` seconds. If the user
    wants to stop (``is_stopped``, or Ctrl-C during the choice), a usual amount of smoothing is
    taken, and nothing is held out. ``tell`` is called with every phase that begins. Returns labels,
    weights and probabilities of the held-out rows, too.
    """

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
                tell=tell,
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
    tell("training the probabilities")
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
    return model, (table.labels[judged], table.weights[judged], np.exp(choice.log_posterior))
