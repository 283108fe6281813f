"""Choosing gamma and the number of parents by validation, as section 6 of the paper does.

Every setting is judged on every held-out part by the weighted mean of a number per row (larger is
better). With p_c the posterior of class c and y the true class:

    accuracy      1 if p_y is the largest posterior, else 0
    log_loss      log p_y, that is: the negative log loss

The best mean over the parts is chosen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Literal, Self, get_args

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from marginbn.classifiers.base import Fitted, GridChoice, ParameterKind
from marginbn.classifiers.budget import RESERVE, part_used, report_phase, share_of
from marginbn.classifiers.search import (
    MaxMarginBNClassifier,
    SearchingBNClassifier,
    gamma_from_probability,
    no_arcs,
    stamp_of,
)
from marginbn.classifiers.validation import (
    as_grid,
    check_count,
    check_positive,
    each,
    one_of,
    optional,
    parameter,
    seed_of,
)
from marginbn.data.columns import as_input_errors
from marginbn.data.encode import IsLate
from marginbn.data.labelled import LabelledTable, Split, validation_splits
from marginbn.data.training import TrainingRows, encode_training
from marginbn.exceptions import InputError, OptimalityWarning, warn_user
from marginbn.interrupts import INTERRUPTS, without_interrupting_children
from marginbn.network.explain import log_posteriors
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import seconds
from marginbn.problem.array_types import FloatArray, IndexArray
from marginbn.problem.candidates import ClassArcs
from marginbn.problem.encoded import EncodedData, with_class_column
from marginbn.problem.margins import MarginKind
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import Structure
from marginbn.solvers import solve_structure
from marginbn.solvers.result import SolveResult, Status

RowScore = Callable[[FloatArray, IndexArray], FloatArray]
"""(log posteriors (n, n_classes), true class or -1 for one never learned) -> (n,)"""

SMALLEST_LOG = math.log(np.finfo(np.float64).eps)
"""Log posteriors count no less than this, as in scikit-learn: one row must not outweigh all."""
_TIE = 1e-12  # scores that differ by less are equal: they are means of the same numbers


def accuracy_of_rows(log_posterior: FloatArray, truth: IndexArray) -> FloatArray:
    """1 where the most probable class (the first of equals) is the true one."""
    hits: FloatArray = (log_posterior.argmax(axis=1) == truth).astype(np.float64)
    return hits


def log_posterior_of_truth(log_posterior: FloatArray, truth: IndexArray) -> FloatArray:
    """log p_y of every row."""
    values = log_posterior[np.arange(len(truth)), truth]
    return np.maximum(np.where(truth < 0, -np.inf, values), SMALLEST_LOG)


SCORINGS: dict[str, RowScore] = {
    "accuracy": accuracy_of_rows,
    "log_loss": log_posterior_of_truth,
}


def class_codes(labels: NDArray[Any], classes: NDArray[Any]) -> IndexArray:
    """Place of each label among the sorted classes, -1 where it is none of them."""
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[place] == labels, place, -1).astype(np.intp)


def choose(means: FloatArray, settings: Sequence[tuple[int, float]]) -> int:
    """Index of the setting (max_parents, gamma) of largest mean score.

    Ties go to fewer parents, then to the larger gamma.
    """
    best = means.max()
    near = np.flatnonzero(means >= best - _TIE * max(1.0, abs(best)))
    return min(map(int, near), key=lambda s: (settings[s][0], -settings[s][1]))


PAPER_PROBABILITIES = (0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
"""p of the grid of the paper; gamma is log(p / (1 - p))."""


@dataclass(frozen=True)
class FoldPath:
    """Validation scores of one fold and one max_parents, along the whole gamma grid."""

    max_parents: int
    fold: int
    scores: tuple[float, ...]
    gaps: tuple[float, ...]


@dataclass(kw_only=True, eq=False, repr=False)
class MaxMarginBNClassifierCV(SearchingBNClassifier):
    """:class:`MaxMarginBNClassifier` with gamma and ``max_parents`` chosen by validation.

    Everything that does not depend on gamma is computed once per fold, and each solve starts
    from the answer of the neighbouring gamma. After the choice, the structure is learned again on
    all rows, along the same path: from the largest gamma down to the chosen one.

    Parameters
    ----------
    margin : {"multiclass", "binary"}, default="multiclass"
        As in :class:`MaxMarginBNClassifier`.
    gammas : sequence of float, optional
        Grid; default log(p / (1 - p)) for p in 0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999.
    max_parents : sequence of int, default=(1, 2)
        Grid.
    cv : int, splitter, iterable or None, default=None
        None follows the paper: 20 % of the rows if there are more than 1000, else 5 folds, every
        class in proportion. The only row of a class is never held out.
    scoring : {"accuracy", "log_loss"}, default="accuracy"
        What is best, larger being better: mean accuracy of the folds, or mean log posterior of the
        true class.
    time_limit : float or None, default=60.0
        Seconds for the whole fit, from reading on. Validation takes at most half of what reading
        leaves, the path to the final search at most half of the rest.
    n_jobs : int or None, default=None
        Folds and parent limits solved in parallel (joblib).

        Ctrl-C ends the validation: the folds that are complete decide, with an
        :class:`OptimalityWarning`; before the first fold is complete there is nothing to decide by
        and ``KeyboardInterrupt`` is raised. A second Ctrl-C ends the final search.
    certificate : str, path or None, default=None
        As in :class:`MaxMarginBNClassifier`, for the final search on all rows.
    search : Search or None, default=None
        As in :class:`MaxMarginBNClassifier`. A checkpoint is that of the final search: the many
        short searches of the validation are repeated. They never run on a Dask cluster.
    class_arcs, missing, column_kinds, class_weight, required_arcs, forbidden_arcs, random_state
        As in :class:`MaxMarginBNClassifier`.

    Attributes
    ----------
    gamma_, max_parents_
        The choice: the highest score, ties to fewer parents, then larger gamma.
    best_score_ : float
        Its score.
    cv_results_ : dict of arrays
        ``gamma``, ``max_parents``, ``mean_test_score``, ``std_test_score``, ``max_gap`` and
        ``split<k>_test_score``, one entry per setting. Larger scores are better: of a loss, the
        negative. NaN for what ``time_limit`` left no time to try, with an
        :class:`OptimalityWarning`.

    Examples
    --------
    >>> from marginbn import MaxMarginBNClassifierCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginBNClassifierCV(gammas=[0.5, 2.0], max_parents=(1,)).fit(X, y)
    >>> clf.max_parents_
    1
    """

    margin: MarginKind = parameter("multiclass", one_of(*get_args(MarginKind)))
    gammas: Sequence[float] | None = parameter(None, optional(each(check_positive)))
    max_parents: Sequence[int] = parameter((1, 2), each(check_count))  # type: ignore[assignment]
    cv: Any = None
    scoring: Literal["accuracy", "log_loss"] = parameter("accuracy", one_of(*SCORINGS))
    class_arcs: ClassArcs = parameter("free", one_of(*get_args(ClassArcs)))
    time_limit: float | None = parameter(60.0, optional(check_positive))

    # What a user does not choose here:
    parameters: ParameterKind = field(default="counted", init=False)
    smoothing: float = field(default=1.0, init=False)

    def _gamma_grid(self) -> tuple[float, ...]:
        if self.gammas is None:
            return tuple(gamma_from_probability(p) for p in PAPER_PROBABILITIES)
        return as_grid("gammas", self.gammas)

    def _parent_grid(self) -> tuple[int, ...]:
        return as_grid("max_parents", self.max_parents)

    def with_setting(self, max_parents: int, gamma: float) -> MaxMarginBNClassifier:
        """The unfitted classifier of one setting of the grid, equal to this one in all else."""
        own, known = self.get_params(deep=False), MaxMarginBNClassifier().get_params(deep=False)
        shared = {name: own[name] for name in known if name in own}
        return MaxMarginBNClassifier(**{**shared, "max_parents": max_parents, "gamma": gamma})

    def build_problem(self, data: EncodedData, is_late: IsLate | None = None) -> StructureProblem:
        """That of the setting that was chosen."""
        return self.with_setting(self.max_parents_, self.gamma_).build_problem(data)

    def restore(self, fitted: Fitted) -> Self:
        """Become the classifier that was fitted, with what its validation chose."""
        if fitted.choice is None:
            raise InputError("a classifier with validation cannot be restored without its choice")
        self.max_parents_, self.gamma_ = fitted.choice.max_parents, fitted.choice.gamma
        self.best_score_, self.cv_results_ = fitted.choice.score, fitted.choice.results
        return super().restore(fitted)

    def _learn(self, rows: TrainingRows) -> Fitted:
        limit = math.inf if self.time_limit is None else self.time_limit
        choice = self._choose(rows.sample(), 0.5 * (limit - rows.elapsed()))
        training = rows.encode(part_used(self.time_limit, rows.elapsed))
        data = training.data
        if data.n_classes == 1:
            return replace(self._count(rows, training, no_arcs(data)), choice=choice)
        problem = self.with_setting(choice.max_parents, choice.gamma).build_problem(data)
        start = self._solve_above(problem, choice.gamma, 0.5 * (limit - rows.elapsed()))
        how = self._how_to_search(share_of(limit - rows.elapsed(), 1, None), start)
        before = stamp_of(self.certificate)
        result = solve_structure(problem, **how)
        evidence = self._evidence(result, data, before)
        counted = self._count(rows, training, result.structure, result, evidence)
        return replace(counted, choice=choice)

    def _solve_above(
        self, problem: StructureProblem, gamma: float, left: float
    ) -> Structure | None:
        """The structure at the nearest of the larger gammas, where the final search starts; each is
        solved from the one above it. Ctrl-C ends this stage: what is there is used.
        """
        gammas = [larger for larger in self._gamma_grid() if larger > gamma]
        nearest: Structure | None = None
        with suppress(KeyboardInterrupt):
            end = monotonic() + left
            for _, result in self._solve_path(problem, gammas, left, lambda: monotonic() > end):
                nearest = result.structure
        return nearest

    def _solve_path(
        self,
        problem: StructureProblem,
        gammas: Sequence[float],
        left: float,
        is_late: IsLate,
        per_solve: float | None = None,
    ) -> Iterator[tuple[float, SolveResult]]:
        """Solve for every gamma, the largest (easiest) first, each from the structure before it,
        until it is late.

        They have ``left`` seconds together, and ``per_solve`` seconds of work each where it is
        counted; see ``budget.py``.
        """
        end = monotonic() + left
        start: Structure | None = None
        search = self.search_settings()
        alone = replace(search, time_limit=None, checkpoint=None, callback=None, dask=None)
        work_left = math.inf if per_solve is None else per_solve * len(gammas)
        counts = search.solver in ("auto", "branch_bound") and problem.candidates.max_parents <= 2
        by_clock = None if counts else search.inner_time_limit
        for i, gamma in enumerate(sorted(gammas, reverse=True)):
            if is_late():
                return
            work = share_of(work_left, len(gammas) - i, search.inner_time_limit)
            result = solve_structure(
                problem.with_gamma(gamma),
                replace(alone, work_limit=work, verbose=0),
                time_limit=share_of(end - monotonic(), len(gammas) - i, by_clock),
                start=start,
                seed=seed_of(self.random_state),
            )
            if result.status is Status.INTERRUPTED:
                raise KeyboardInterrupt  # a fold with half a grid is no basis for a choice
            start = result.structure
            work_left -= result.work
            yield gamma, result

    # --- validation ---

    def _validate(self, rows: LabelledTable, left: float) -> list[FoldPath]:
        """All folds and parent limits, in parallel if asked to; Ctrl-C keeps the folds that are
        complete, if there are any. They have ``left`` seconds, and half as many seconds of work;
        when these are over, no solve begins but the first of all.
        """
        if self.cv is None:
            splits = validation_splits(rows.labels, seed_of(self.random_state))
        else:
            splits = given_splits(rows, self.cv)
        end = monotonic() + left
        tasks = [(k, fold) for fold in range(len(splits)) for k in self._parent_grid()]
        search, n_gammas = self.search_settings(), len(self._gamma_grid())
        rounds = math.ceil(len(tasks) / effective_n_jobs(self.n_jobs))
        work_left = math.inf if self.time_limit is None else 0.5 * self.time_limit / RESERVE
        work = share_of(work_left, len(tasks) * n_gammas, search.inner_time_limit)
        paths: list[FoldPath] = []
        worker = copy(self)  # a callback is for the last search; it need not be fit for a process
        worker.search = replace(search, callback=None, dask=None)
        try:
            answers = without_interrupting_children(
                Parallel(n_jobs=self.n_jobs, return_as="generator"),
                (
                    delayed(worker._validate_fold)(rows, splits[f], k, f, left / rounds, end, work)
                    for k, f in tasks
                ),
            )
            began = monotonic()
            with INTERRUPTS.raising(), self._showing_phases():
                for path in answers:
                    paths.append(path)
                    rest = (monotonic() - began) / len(paths) * (len(tasks) - len(paths))
                    report_phase(
                        f"validation, {len(paths)} of {len(tasks)} steps done, about "
                        f"{seconds(rest)} left"
                    )
                    if complete_folds(paths, len(self._parent_grid())):
                        INTERRUPTS.has_result = True  # workers may have searched in other processes
        except KeyboardInterrupt:
            paths = complete_folds(paths, len(self._parent_grid()))
            if not paths:
                raise
            n_complete = len({path.fold for path in paths})
            warn_user(
                f"the validation was interrupted: gamma and max_parents are chosen by {n_complete} "
                f"of {len(splits)} folds",
                OptimalityWarning,
            )
        return sorted(paths, key=lambda path: (path.max_parents, path.fold))

    def _validate_fold(
        self,
        rows: LabelledTable,
        split: Split,
        max_parents: int,
        fold: int,
        left: float,
        end: float,
        work: float | None,
    ) -> FoldPath:
        """Validation scores along the gamma grid on one training part; NaN where it was late."""
        grid = self._gamma_grid()
        scores, gaps = dict.fromkeys(grid, math.nan), dict.fromkeys(grid, math.nan)
        is_first = (fold, max_parents) == (0, self._parent_grid()[0])  # there must be a choice

        def is_late() -> bool:
            is_enough = not (is_first and all(map(math.isnan, scores.values())))
            return is_enough and monotonic() > end

        if is_late():
            return FoldPath(max_parents, fold, tuple(scores.values()), tuple(gaps.values()))
        (train, test), of_rows = split, SCORINGS[self.scoring]
        training, held_out = encode_training(rows.take(train), self.missing), rows.take(test)
        codes = with_class_column(training.coding.encode(held_out.features))
        truth = class_codes(held_out.labels, training.classes)

        def score(structure: Structure) -> float:
            network = BayesianNetwork.fit(training.data, structure, self.smoothing)
            posterior = log_posteriors(network.log_joint_per_class(codes))
            return float(np.average(of_rows(posterior, truth), weights=held_out.weights))

        if training.data.n_classes == 1:  # nothing to choose in such a fold
            scores = dict.fromkeys(grid, score(no_arcs(training.data)))
            gaps = dict.fromkeys(grid, 0.0)
        else:
            problem = self.with_setting(max_parents, grid[0]).build_problem(training.data)
            for gamma, result in self._solve_path(problem, grid, left, is_late, work):
                scores[gamma], gaps[gamma] = score(result.structure), result.gap
        return FoldPath(max_parents, fold, tuple(scores.values()), tuple(gaps.values()))

    def _choose(self, rows: LabelledTable, left: float) -> GridChoice:
        """The setting of best score on held-out rows."""
        paths = self._validate(rows, left)
        gammas, parents = self._gamma_grid(), self._parent_grid()
        settings = [(k, gamma) for k in parents for gamma in gammas]
        by_limit = [[path for path in paths if path.max_parents == k] for k in parents]
        scores = np.array([[path.scores for path in group] for group in by_limit])
        gaps = np.array([[path.gaps for path in group] for group in by_limit])
        table = scores.transpose(0, 2, 1).reshape(len(settings), -1)  # (settings, folds)
        tried = ~np.isnan(table)
        complete = tried.all(axis=0)
        if not complete.any():
            complete[tried.sum(axis=0).argmax()] = True
        mean = table[:, complete].mean(axis=1)
        if not tried.all():
            warn_user(
                f"time_limit ended the validation: {np.isfinite(mean).sum()} of {len(settings)} "
                f"settings are compared, on {complete.sum()} of {len(complete)} folds; a larger "
                "time_limit compares them all",
                OptimalityWarning,
            )
        best = choose(np.where(np.isnan(mean), -np.inf, mean), settings)
        results = {
            "max_parents": np.array([k for k, _ in settings]),
            "gamma": np.array([gamma for _, gamma in settings]),
            "mean_test_score": mean,
            "std_test_score": table[:, complete].std(axis=1),
            "max_gap": gaps[:, complete].max(axis=1).reshape(-1),
            **{f"split{f}_test_score": table[:, f] for f in range(table.shape[1])},
        }
        return GridChoice(*settings[best], float(mean[best]), results)


def complete_folds(paths: list[FoldPath], n_limits: int) -> list[FoldPath]:
    """The paths of the folds on which every parent limit was tried: a fair comparison."""
    tried = Counter(path.fold for path in paths)
    return [path for path in paths if tried[path.fold] == n_limits]


@as_input_errors()
def given_splits(rows: LabelledTable, cv: Any) -> list[Split]:
    """Splits of all rows that the user gave, counted in those that take part in training."""
    from sklearn.model_selection import check_cv  # slow to load, and not needed to predict

    labels = rows.given_labels
    place = np.full(len(labels), -1, dtype=np.intp)
    place[rows.positions] = np.arange(rows.n_rows)
    splits = []
    for train, test in check_cv(cv, labels, classifier=True).split(labels, labels):
        kept = [part[part >= 0] for part in (place[train], place[test])]
        if min(map(len, kept)) == 0:
            raise InputError("cv has a split without a usable training or validation row")
        splits.append((kept[0], kept[1]))
    return splits
