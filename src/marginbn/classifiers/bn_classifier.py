"""The classifier to reach for: several networks are tried, the best is kept, or all are averaged.

Parameters are trained for the class posterior on fine bins. Every structure of the list is a
candidate: naive (no arcs between features), trees of pairs of features, the tree of TAN, the
structure of maximal soft margin. Bins, structure and ridge are learned anew in every part of the
validation, so that what is compared is what will be done.

**The choice.** Candidates stand from simple to complex. The first is taken whose validated log loss
is within half a standard error of the best one's, the error being that of the difference, row by
row. Log loss is the judge in place of accuracy because it also counts how sure a prediction was, so
that differences show with fewer rows.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any, ClassVar, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from marginbn.classifiers import validation
from marginbn.classifiers.base import (
    RAW_TABLE_CHECKS,
    BaseBNClassifier,
    fixed_structure_result,
)
from marginbn.classifiers.choosing import SCORINGS, HeldOutAnswers, check_scoring, scorer_of
from marginbn.classifiers.progress import StepProgress
from marginbn.classifiers.search import seed_of
from marginbn.data.labelled import (
    LabelledTable,
    Split,
    stratified_folds,
    stratified_holdout,
)
from marginbn.data.ordinal import OrdinalData, OrdinalTraining, encode_ordinal
from marginbn.data.preparation import MAX_STATES
from marginbn.exceptions import InputError, OptimalityWarning
from marginbn.parameters.design import STEPS, Design, Interaction
from marginbn.parameters.marrying import plan_marrying
from marginbn.parameters.pairs import (
    Pairs,
    best_tree,
    choose_interactions,
    find_pairs,
    tree_bound,
)
from marginbn.parameters.pooling import Judges, Part, ValidatedModel, held_out
from marginbn.parameters.trained import (
    FindInteractions,
    PooledModels,
    TrainedNetwork,
    main_posterior,
    model_tasks,
    no_interactions,
    structure_interactions,
)
from marginbn.parameters.training import ITERATIONS, LOSSES, Trainer
from marginbn.problem.augmented_tree import augmented_tree
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.margins import MarginKind
from marginbn.problem.problem import margin_problem
from marginbn.problem.structure import Structure
from marginbn.solvers import solve_structure
from marginbn.solvers.result import (
    PROOF_TOLERANCE,
    SolveResult,
    Status,
    TracePoint,
    relative_gap,
)

FOLDS = 5
MOST_FOLD_WORK = 300_000
"""Rows x features x classes up to which there are five folds; above, one part of a fifth."""

RARE_CLASS = 100
RARE_PATIENCE = 5
"""A class of fewer rows than this would be judged by a handful in one part; folds then take so many
times the work.
"""

MARGIN_SECONDS = 2.0
"""For each search of the structure of maximal soft margin."""

MARGIN_GAMMA = float(np.log(0.9 / 0.1))

UNVALIDATED_RIDGE = 3.0
"""Where there are too few rows to validate one."""

SHARPNESS = 40.0
"""Weight of a candidate in the average: exp(-SHARPNESS times its log loss above the best one's)."""

Found = TypeVar("Found")


def remembered(find: Callable[[OrdinalData], Found]) -> Callable[[OrdinalData], Found]:
    """Find something once for the same rows: all profiles and widths ask for it."""
    known: WeakKeyDictionary[OrdinalData, Found] = WeakKeyDictionary()

    @wraps(find)
    def recall(rows: OrdinalData) -> Found:
        if rows not in known:
            known[rows] = find(rows)
        return known[rows]

    return recall


@remembered
def pairs_of(rows: OrdinalData) -> Pairs:
    """Gains of all pairs of features on top of the main effects."""
    return find_pairs(rows, main_posterior(rows))


@remembered
def margin_search(rows: OrdinalData) -> SolveResult:
    """The structure of maximal soft margin with two parents, p = 0.9, within a short limit."""
    data = rows.coarse().merged()
    candidates = enumerate_candidates(data.n_variables, 2, constant=data.constant)
    margin: MarginKind = "multiclass" if data.n_classes <= 7 else "binary"
    problem = margin_problem(data, candidates, gamma=MARGIN_GAMMA, margin=margin)
    return solve_structure(problem, time_limit=MARGIN_SECONDS)


def tree_interactions(rows: OrdinalData, width: int) -> Sequence[Interaction]:
    """The best tree of pairs."""
    return choose_interactions(rows, pairs_of(rows), width)


def tan_interactions(rows: OrdinalData) -> Sequence[Interaction]:
    """The tree of TAN."""
    return structure_interactions(rows, augmented_tree(rows.coarse()))


def margin_interactions(rows: OrdinalData) -> Sequence[Interaction]:
    """The structure of maximal soft margin, as far as it is found in a short time."""
    return structure_interactions(rows, margin_search(rows).structure)


STRUCTURES: dict[str, FindInteractions] = {
    "naive": no_interactions,
    "forest": partial(tree_interactions, width=1),
    "tan": tan_interactions,
    "margin": margin_interactions,
    "2-tree": partial(tree_interactions, width=2),
    "3-tree": partial(tree_interactions, width=3),
}
"""From simple to complex."""

RULES = ("half_se", "best")

DEFAULT_STRUCTURES = ("naive", "2-tree")


def check_structures(name: str, value: Any) -> None:
    """Refuse anything but names of structures."""
    if isinstance(value, str):
        raise InputError(f"{name} must be a list of names, got {value!r}")
    for entry in validation.as_grid(name, value):
        validation.one_of(*STRUCTURES)(f"every entry of {name}", entry)


class BNClassifier(BaseBNClassifier):
    """Bayesian network trained for the class posterior, chosen among several by validation.

    Parameters
    ----------
    structures : list of str, default=("naive", "2-tree")
        Candidates: "naive", "forest", "tan", "margin" (maximal soft margin), "2-tree" and "3-tree"
        (pairs of features such that every feature joins at most 2 or 3 that are joined already).
    average : bool, default=False
        Predict with the weighted average of all candidates; ``network_`` stays the chosen one, for
        reading. It gains little, because every candidate is a pool of models already.
    rule : {"half_se", "best"}, default="half_se"
        The simplest candidate within half a standard error of the best, or the best.
    scoring : str or callable, default="log_loss"
        What is best: "log_loss", "accuracy", "ramp_margin" or "one_standard_error" (the simplest
        within one standard error of the best accuracy), as in :class:`MaxMarginBNClassifierCV`; or
        a scorer of scikit-learn, by name or as it is. Scorers know no standard error, so that the
        best one wins, and of equals the simplest.
    parameters : {"conditional", "margin"}, default="conditional"
        What the parameters maximise: the likelihood of the class given the features, or margins.
    bins : {"mdlp", "ordinal"}, default="ordinal"
        The entropy cuts alone, or fine bins that know their order.
    time_limit : float or None, default=10.0
        Seconds for the whole fit, from reading on. Naive is trained with fewer iterations if it
        would take longer; another candidate that is not validated in time is left out; both with an
        :class:`OptimalityWarning`. None tries all, whatever it takes.
    n_jobs : int or None, default=None
        Models trained in parallel (joblib).
    random_state : int, RandomState or None, default=None
        Of the validation splits.
    verbose : int, default=0
        1 tells on stderr what is tried.
    missing, unseen, column_kinds, identifiers, max_states, min_count, class_weight, cost
        As in :class:`NaiveBayesClassifier`.

    Attributes
    ----------
    chosen_ : str
        The structure of ``network_``.
    cv_results_ : dict of arrays
        ``structure``, ``log_loss``, ``standard_error`` (of the difference to the best),
        ``accuracy`` and ``calibration_error``, one entry per candidate, on rows not seen; and
        ``score``, larger being better, where ``scoring`` is not the log loss.
    training_ : list of dict
        The models pooled in ``network_``: profile, ridge, log loss, weight.
    trained_, weights_
        What predicts: one network, or all candidates with their weights.

    Examples
    --------
    >>> from marginbn import BNClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = BNClassifier().fit(X, y)
    >>> clf.chosen_
    'naive'
    >>> clf.predict([[5.1, 3.5, None, 0.2]]).tolist()
    [0]
    """

    _CHECKS: ClassVar[dict[str, validation.Check]] = {
        **{name: BaseBNClassifier._CHECKS[name] for name in ("missing", "unseen", "bins")},
        **RAW_TABLE_CHECKS,
        "structures": check_structures,
        "average": validation.check_flag,
        "rule": validation.one_of(*RULES),
        "scoring": check_scoring,
        "parameters": validation.one_of("conditional", "margin"),
        "time_limit": validation.optional(validation.check_positive),
    }

    def __init__(
        self,
        *,
        structures: Sequence[str] = DEFAULT_STRUCTURES,
        average: bool = False,
        rule: str = "half_se",
        scoring: Any = "log_loss",
        parameters: str = "conditional",
        bins: str = "ordinal",
        time_limit: float | None = 10.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        missing: str = "auto",
        unseen: str = "missing",
        column_kinds: Any = "auto",
        identifiers: str = "ignore",
        max_states: int | None = MAX_STATES,
        min_count: int = 1,
        class_weight: Any = None,
        cost: Any = None,
    ) -> None:
        self._store(locals())

    def _seed(self) -> int:
        return seed_of(self.random_state)

    def _choose_smoothing(self, rows: LabelledTable) -> float:
        return 1.0  # nothing is counted but the twin for missing features

    def _learn_structure(self, data: EncodedData) -> SolveResult:
        parents = tuple(() if i == 0 else (0,) for i in range(data.n_variables))
        return fixed_structure_result(data, parents, "naive_bayes")

    def _learn_again(self, rows: OrdinalTraining, time_limit: float) -> Structure:
        """The arcs that the chosen interactions of other rows need; nothing is trained."""
        fine = rows.fine.merged()
        naive = self._learn_structure(fine.data).structure
        if self.structure_ == naive:  # nothing was chosen, or it had no weight in the pool
            return naive
        design = Design(fine, STEPS, STRUCTURES[self.chosen_](fine))
        any_numbers = np.random.default_rng(0).normal(
            size=(design.n_parameters, fine.data.n_classes)
        )
        scores = design.class_scores(any_numbers, np.zeros(fine.data.n_classes))
        return plan_marrying(scores, naive).structure

    # --- choosing ---

    def _choose_settings(self, rows: LabelledTable) -> None:
        """Validate the candidates; sets chosen_ and cv_results_."""
        begin = time.monotonic() - self._elapsed()
        classes = np.unique(rows.labels)
        splits = self._splits(rows)
        self._candidates: dict[str, PooledModels] = {}
        self.chosen_ = "naive"
        self.cv_results_: dict[str, NDArray[Any]] = {}
        if len(classes) < 2 or not splits:
            return
        parts = [self._part(rows.take(a), rows.take(b), classes) for a, b in splits]
        judges = held_out(parts)
        # the last training takes as long as that of one part, whose rows are all but a fold
        share = len(parts) / (len(parts) + FOLDS / (FOLDS - 1.0))
        deadline = begin + share * (self.time_limit or math.inf)
        self._candidates = self._validate(parts, judges, deadline)
        self._compare(judges, rows.take(np.concatenate([b for _, b in splits])))

    def _splits(self, rows: LabelledTable) -> list[Split]:
        """Five folds where that is quick or a class is rare, else one part of a fifth; none of
        fewer than ten rows.
        """
        if rows.n_rows < 2 * FOLDS:
            return []
        sizes = np.unique(rows.labels, return_counts=True)[1]
        work = rows.n_rows * rows.features.n_columns * len(sizes)
        if work <= MOST_FOLD_WORK * (RARE_PATIENCE if sizes.min() < RARE_CLASS else 1):
            return stratified_folds(rows.labels, FOLDS, self._seed())
        return [stratified_holdout(rows.labels, 1.0 / FOLDS, self._seed())]

    def _part(self, rows: LabelledTable, others: LabelledTable, classes: NDArray[Any]) -> Part:
        """Bins learned from some rows, and the others in these bins."""
        training = encode_ordinal(rows, self.missing, self.bins, classes)
        labels = np.searchsorted(classes, others.labels)
        codes = np.column_stack([labels, training.coding.encode(others.features)])
        return Part(training.fine.merged(), codes, others.weights)

    def _validate(
        self, parts: Sequence[Part], judges: Judges, deadline: float
    ) -> dict[str, PooledModels]:
        """All candidates, or those that time and the user allow for."""
        names = sorted({"naive", *self.structures}, key=list(STRUCTURES).index)
        found: dict[str, PooledModels] = {}
        naive: list[ValidatedModel] = []
        progress = StepProgress("candidates", len(names)) if self.verbose else None
        begin, least = time.monotonic(), 0.0
        for name in names:
            try:
                if naive and time.monotonic() + least > deadline:  # all others are more work
                    raise TimeoutError(name)
                models = self._validate_structure(name, parts, deadline)
            except TimeoutError:
                self._tell_stopped("time_limit", names, found)
                break
            except KeyboardInterrupt:
                if not found:
                    raise
                self._tell_stopped("an interrupt", names, found)
                break
            if not naive:
                naive, least = models, time.monotonic() - begin
                self._tell_cut_short(naive)
            pooled = PooledModels.of(models if name == "naive" else [*naive, *models], judges)
            found[name] = pooled
            if progress is not None:
                progress.step(f"{name}: log loss {pooled.pool.loss:.4f}")
        return {name: model for name, model in found.items() if name in self.structures} or found

    def _validate_structure(
        self, name: str, parts: Sequence[Part], deadline: float
    ) -> list[ValidatedModel]:
        """Every profile of one structure, in parallel if asked to."""
        loss = LOSSES[self.parameters]
        needed = name == "naive"
        tasks = model_tasks(name, STRUCTURES[name], parts, loss, deadline, needed=needed)
        return list(Parallel(n_jobs=self.n_jobs)(delayed(task)() for task in tasks))

    def _tell_cut_short(self, models: Sequence[ValidatedModel]) -> None:
        if not any(model.cut_short for model in models):
            return
        least = min(min(model.iterations) for model in models)
        warnings.warn(
            f"time_limit={self.time_limit:g} is short for these rows: the parameters are trained "
            f"with as few as {least} iterations a step instead of up to {ITERATIONS}; a larger "
            "time_limit trains them to the end",
            OptimalityWarning,
            stacklevel=6,  # the caller of fit
        )

    def _tell_stopped(self, why: str, names: Sequence[str], found: dict[str, PooledModels]) -> None:
        left = [name for name in names if name not in found]
        warnings.warn(
            f"{why} ended the validation before {', '.join(left)}: the network is chosen among "
            f"{', '.join(found)}",
            OptimalityWarning,
            stacklevel=6,  # the caller of fit
        )

    def _compare(self, judges: Judges, rows: LabelledTable) -> None:
        """The table of candidates and the choice; ``rows`` are those held out, in their order."""
        names, candidates = list(self._candidates), list(self._candidates.values())
        losses = np.array([candidate.losses for candidate in candidates])
        known = [log_softmax(candidate.pool.scores, axis=1) for candidate in candidates]
        if isinstance(self.scoring, str) and self.scoring in SCORINGS:
            rule = SCORINGS[self.scoring]
            worth = -losses
            if self.scoring != "log_loss":
                worth = np.array([rule.of_rows(own, judges.classes) for own in known])
            means = np.average(worth, axis=1, weights=judges.weights)
            gains = worth[int(means.argmax())] - worth
            errors = np.array([standard_error(row, judges.weights) for row in gains])
        else:
            rule = SCORINGS["accuracy"]
            means = np.array([score_answers(self.scoring, own, rows) for own in known])
            errors = np.zeros(len(names))
        room = rule.standard_errors or (0.5 if self.rule == "half_se" else 0.0)
        self.chosen_ = names[int(np.argmax(means.max() - means <= room * errors))]
        score = {} if self.scoring == "log_loss" else {"score": means}
        self.cv_results_ = {
            "structure": np.array(names),
            "log_loss": np.average(losses, axis=1, weights=judges.weights),
            "standard_error": errors,
            "accuracy": np.array([accuracy_of(c.pool.scores, judges) for c in candidates]),
            "calibration_error": np.array(
                [calibration_error(c.pool.scores, judges) for c in candidates]
            ),
            **score,
        }

    # --- the network ---

    def _finish(self, training: OrdinalTraining, result: SolveResult) -> Self:
        merged = replace(training, fine=training.fine.merged())
        super()._finish(merged, result)
        candidates = self.__dict__.pop("_candidates")
        if not hasattr(self, "trained_"):
            return self
        if self.average and candidates:
            self._average(candidates, merged.fine, result.structure)
        return self._set_result(self._describe_search(merged.fine, result))

    def _train(self, rows: OrdinalData, structure: Structure) -> TrainedNetwork:
        if not self._candidates:  # too few rows to validate anything
            self.training_ = []
            trainer = Trainer(Design(rows, STEPS))
            trainer.step(UNVALIDATED_RIDGE)
            return TrainedNetwork.of(trainer.class_scores(), structure, rows)
        chosen = self._candidates[self.chosen_]
        self.training_ = chosen.describe()
        return TrainedNetwork.of(chosen.refit(rows), structure, rows)

    def _average(
        self, candidates: dict[str, PooledModels], rows: OrdinalData, structure: Structure
    ) -> None:
        """All candidates as members, the chosen one first."""
        losses = {name: candidate.pool.loss for name, candidate in candidates.items()}
        names = sorted(candidates, key=lambda name: name != self.chosen_)
        others = (TrainedNetwork.of(candidates[n].refit(rows), structure, rows) for n in names[1:])
        above = np.array([losses[name] for name in names]) - min(losses.values())
        weights = np.exp(-SHARPNESS * above)
        self._set_trained([self.trained_[0], *others], (weights / weights.sum()).tolist())

    def _describe_search(self, rows: OrdinalData, naive: SolveResult) -> SolveResult:
        """How good the structure is among its kind, as far as anything was searched."""
        structure, name = self.network_.structure, self.chosen_
        if all(0 in arc for arc in structure.arcs):  # interactions have no weight in the pool
            name = "naive"
        if name == "margin":
            return replace(margin_search(rows), structure=structure)
        if not name.endswith(("forest", "-tree")):
            return replace(naive, structure=structure, solver=name)
        width = 1 if name == "forest" else int(name[0])
        pairs = pairs_of(rows)
        objective = sum(float(pairs.gains[pair]) for pair in best_tree(pairs.gains, width))
        bound = objective if width == 1 else max(tree_bound(pairs, width), objective)
        is_proved = relative_gap(objective, bound) <= PROOF_TOLERANCE
        return SolveResult(
            structure=structure,
            selection=np.zeros(rows.data.n_variables, dtype=np.int64),
            objective=objective,
            bound=bound,
            status=Status.OPTIMAL if is_proved else Status.HEURISTIC,
            trace=(TracePoint(0.0, objective, bound),),
            seconds=0.0,
            solver=name,
        )


def score_answers(scoring: Any, log_posterior: NDArray[np.float64], rows: LabelledTable) -> float:
    """What a scorer of scikit-learn makes of the posteriors of rows that were held out."""
    weighted = bool((rows.weights != rows.weights[0]).any())
    weights = {"sample_weight": rows.weights} if weighted else {}
    answers = HeldOutAnswers(np.unique(rows.labels), log_posterior)
    return float(scorer_of(scoring)(answers, rows.features, rows.labels, **weights))


def standard_error(differences: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Of the weighted mean of differences, row by row."""
    total = weights.sum()
    mean = differences @ weights / total
    variance = (differences - mean) ** 2 @ weights / max(total - 1.0, 1.0)
    return float(np.sqrt(variance / total))


def accuracy_of(scores: NDArray[np.float64], judges: Judges) -> float:
    """Share of rows whose class has the highest score, by weight."""
    return float(np.average(scores.argmax(axis=1) == judges.classes, weights=judges.weights))


def calibration_error(scores: NDArray[np.float64], judges: Judges, n_bins: int = 10) -> float:
    """Expected calibration error: how far confidence and accuracy differ, in bins of confidence."""
    posterior = softmax(scores, axis=1)
    confidence = posterior.max(axis=1)
    right = posterior.argmax(axis=1) == judges.classes
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    excess = np.bincount(bins, judges.weights * (right - confidence), n_bins)
    return float(np.abs(excess).sum() / judges.weights.sum())
