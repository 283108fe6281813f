"""Choosing gamma and the number of parents by validation, as section 6 of the paper does."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from time import monotonic
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from marginbn.classifiers import choosing, search, validation
from marginbn.classifiers.base import log_posteriors
from marginbn.classifiers.budget import Budget, Work, task_budgets, work_per_solve
from marginbn.classifiers.choosing import SCORINGS
from marginbn.classifiers.progress import StepProgress
from marginbn.classifiers.search import MaxMarginBNClassifier, SearchingBNClassifier
from marginbn.data.encode import EncodedTraining, encode_training
from marginbn.data.labelled import LabelledTable, Split, validation_splits
from marginbn.data.preparation import MAX_STATES
from marginbn.exceptions import DataWarning, InputError, OptimalityWarning
from marginbn.interrupts import REQUESTS, in_deaf_children
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import EncodedData, with_class_column
from marginbn.problem.problem import StructureProblem
from marginbn.solvers import solve_structure
from marginbn.solvers.result import SolveResult, Status

PAPER_PROBABILITIES = (0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class FoldPath:
    """Validation scores of one fold and one max_parents, along the whole gamma grid."""

    max_parents: int
    fold: int
    scores: tuple[float, ...]
    gaps: tuple[float, ...]

    def describe(self) -> str:
        """What came out, in a few words."""
        setting = f"fold {self.fold}, max_parents {self.max_parents}"
        return f"validation {setting}: best score {max(self.scores):.4f}"


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
    scoring : str or callable, default="accuracy"
        What is best, larger being better. "accuracy": mean accuracy of the folds. "log_loss": mean
        log posterior of the true class. Or a scorer of scikit-learn, by name or as it is.
    inner_time_limit : float or None, default=5.0
        Seconds of work for each validation solve, and for each solve on the path to the final one.
        Work is counted by operations (with up to two parents; else by the clock), so that scores
        depend neither on ``n_jobs`` nor on what else the machine does.
    time_limit : float or None, default=10.0
        Seconds for the final solve.
    total_time_limit : float or None, default=60.0
        Seconds for the whole fit, from reading on. Validation takes at most half of what reading
        leaves, the path to the final solve at most half of the rest.
    n_jobs : int or None, default=None
        Folds and parent limits solved in parallel (joblib).

        Ctrl-C ends the validation: the folds that are complete decide, with an
        :class:`OptimalityWarning`; before the first fold is complete there is nothing to decide by
        and ``KeyboardInterrupt`` is raised. A second Ctrl-C ends the final solve.
    smoothing, solver, gap_tolerance, random_state, verbose, required_arcs, forbidden_arcs, \
tiers, missing, unseen, column_kinds, identifiers, max_states, \
class_weight, callback, memory_limit, rows
        As in :class:`MaxMarginBNClassifier`.
    dask : str, distributed.Client or None, default=None
        As in :class:`MaxMarginBNClassifier`, for folds and parent limits, which go to the workers
        of the cluster, and for the final solve.
    checkpoint : str, path or None, default=None
        As in :class:`MaxMarginBNClassifier`, for the final solve on all rows. The many short solves
        of the validation are repeated; they are deterministic unless a time limit ends them.
    certificate : str, path or None, default=None
        As in :class:`MaxMarginBNClassifier`, for the final solve on all rows.

    Attributes
    ----------
    gamma_, max_parents_
        The choice: the highest score, ties to fewer parents, then larger gamma.
    best_score_ : float
        Its score.
    cv_results_ : dict of arrays
        ``gamma``, ``max_parents``, ``mean_test_score``, ``std_test_score``, ``max_gap`` and
        ``split<k>_test_score``, one entry per setting. Larger scores are better: of a loss, the
        negative.

    Examples
    --------
    >>> from marginbn import MaxMarginBNClassifierCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginBNClassifierCV(gammas=[0.5, 2.0], max_parents=(1,)).fit(X, y)
    >>> clf.max_parents_
    1
    """

    _CHECKS: ClassVar[dict[str, validation.Check]] = {
        **SearchingBNClassifier._CHECKS,
        "margin": MaxMarginBNClassifier._CHECKS["margin"],
        "rows": MaxMarginBNClassifier._CHECKS["rows"],
        "gammas": validation.optional(validation.each(validation.check_positive)),
        "max_parents": validation.each(validation.check_count),
        "inner_time_limit": validation.optional(validation.check_positive),
        "total_time_limit": validation.optional(validation.check_positive),
        "scoring": choosing.check_scoring,
    }

    def __init__(
        self,
        *,
        margin: Any = "multiclass",
        gammas: Sequence[float] | None = None,
        max_parents: Sequence[int] = (1, 2),
        cv: Any = None,
        scoring: Any = "accuracy",
        smoothing: float = 1.0,
        solver: str = "auto",
        inner_time_limit: float | None = 5.0,
        time_limit: float | None = 10.0,
        total_time_limit: float | None = 60.0,
        gap_tolerance: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        required_arcs: Any = None,
        forbidden_arcs: Any = None,
        tiers: Any = None,
        missing: str = "auto",
        unseen: str = "missing",
        column_kinds: Any = "auto",
        identifiers: str = "ignore",
        max_states: int | None = MAX_STATES,
        class_weight: Any = None,
        callback: Any = None,
        memory_limit: Any = None,
        checkpoint: Any = None,
        certificate: Any = None,
        rows: Any = "auto",
        dask: Any = None,
    ) -> None:
        self._store(locals())

    def _gamma_grid(self) -> tuple[float, ...]:
        if self.gammas is None:
            return tuple(search.gamma_from_probability(p) for p in PAPER_PROBABILITIES)
        return validation.as_grid("gammas", self.gammas)

    def _parent_grid(self) -> tuple[int, ...]:
        return validation.as_grid("max_parents", self.max_parents)

    def _with_setting(self, max_parents: int, gamma: float) -> MaxMarginBNClassifier:
        """The unfitted classifier of one setting of the grid, equal to this one in all else."""
        own, known = self.get_params(deep=False), MaxMarginBNClassifier().get_params(deep=False)
        shared = {name: own[name] for name in known if name in own}
        return MaxMarginBNClassifier(**{**shared, "max_parents": max_parents, "gamma": gamma})

    def _problem(self, data: EncodedData) -> StructureProblem:
        return self._with_setting(self.max_parents_, self.gamma_)._problem(data)

    def _solve_path(
        self,
        problem: StructureProblem,
        gammas: Sequence[float],
        budget: Budget,
        per_solve: float | None = None,
    ) -> Iterator[tuple[float, SolveResult]]:
        """Solve for every gamma, the largest (easiest) first, each from its neighbour's answer.

        ``per_solve`` seconds of work for each, where it is counted; see ``budget.py``.
        """
        start: SolveResult | None = None
        work = Work.of(per_solve, len(gammas), self.inner_time_limit)
        counts = self.solver in ("auto", "branch_bound") and problem.candidates.max_parents <= 2
        by_clock = None if counts else self.inner_time_limit
        for i, gamma in enumerate(sorted(gammas, reverse=True)):
            result = solve_structure(
                problem.with_gamma(gamma),
                self.solver,
                time_limit=budget.share(len(gammas) - i, by_clock),
                work_limit=work.share(len(gammas) - i),
                gap_tolerance=self._tolerance(),
                start=start,
                seed=search.seed_of(self.random_state),
                memory_limit=self.memory_limit,
                rows=self.rows,
            )
            if result.status is Status.INTERRUPTED:
                raise KeyboardInterrupt  # a fold with half a grid is no basis for a choice
            start = result
            work.spend(result.work)
            yield gamma, result

    # --- validation ---

    def _validate(self, rows: LabelledTable, budget: Budget) -> list[FoldPath]:
        """All folds and parent limits, in parallel if asked to; Ctrl-C keeps the folds that are
        complete, if there are any.
        """
        if self.dask is None:
            return self._validate_with(rows, budget, None)
        from marginbn.solvers import cluster  # loads the engine

        with cluster.connected(self.dask, effective_n_jobs(self.n_jobs)) as client:
            return self._validate_with(rows, budget, client)

    def _validate_with(self, rows: LabelledTable, budget: Budget, client: Any) -> list[FoldPath]:
        """The same on the workers of a cluster, if there is one."""
        splits = self._splits(rows)
        tasks = [(k, fold) for fold in range(len(splits)) for k in self._parent_grid()]
        n_jobs = effective_n_jobs(self.n_jobs)
        if client is not None:
            from marginbn.solvers import cluster

            n_jobs = cluster.count_workers(client)
        n_gammas = len(self._gamma_grid())
        ends = task_budgets(len(tasks), n_gammas, n_jobs, budget)
        limit = None if self.total_time_limit is None else 0.5 * self.total_time_limit
        left = math.inf if limit is None else limit
        work = work_per_solve(len(tasks) * n_gammas, left, self.inner_time_limit)
        paths: list[FoldPath] = []
        worker = copy(self)
        worker.callback = None  # for the last search; it need not be fit for another process
        worker.dask = None
        calls = [
            (*splits[fold], k, fold, end, work) for (k, fold), end in zip(tasks, ends, strict=True)
        ]
        try:
            if client is None:
                answers = in_deaf_children(
                    Parallel(n_jobs=self.n_jobs, return_as="generator"),
                    (delayed(worker._validate_fold)(rows, *call) for call in calls),
                )
            else:
                from marginbn.solvers import cluster

                answers = cluster.map_on_cluster(client, worker._validate_fold, rows, calls)
            progress = StepProgress("validation", len(tasks)) if self.verbose else None
            with REQUESTS.heeding():
                for path in answers:
                    paths.append(path)
                    if progress is not None:
                        progress.step(path.describe())
                    if complete_folds(paths, len(self._parent_grid())):
                        REQUESTS.has_result = True  # workers may have searched in other processes
        except KeyboardInterrupt:
            paths = complete_folds(paths, len(self._parent_grid()))
            if not paths:
                raise
            n_complete = len({path.fold for path in paths})
            warnings.warn(
                f"the validation was interrupted: gamma and max_parents are chosen by {n_complete} "
                f"of {len(splits)} folds",
                OptimalityWarning,
                stacklevel=5,  # the caller of fit
            )
        return sorted(paths, key=lambda path: (path.max_parents, path.fold))

    def _splits(self, rows: LabelledTable) -> list[Split]:
        if self.cv is None:
            return validation_splits(rows.labels, search.seed_of(self.random_state))
        return given_splits(rows, self.cv)

    def _validate_fold(
        self,
        rows: LabelledTable,
        train: NDArray[np.intp],
        test: NDArray[np.intp],
        max_parents: int,
        fold: int,
        budget: Budget,
        work: float | None = None,
    ) -> FoldPath:
        """Validation scores along the gamma grid on one training part."""
        grid = self._gamma_grid()
        training, held_out = encode_training(rows.take(train), self.missing), rows.take(test)
        score = self._scorer(training, held_out, max_parents)
        scores, gaps = dict.fromkeys(grid, 0.0), dict.fromkeys(grid, 0.0)
        for gamma, result in self._fold_results(training.data, max_parents, budget, work):
            scores[gamma], gaps[gamma] = score(gamma, result), result.gap
        return FoldPath(max_parents, fold, tuple(scores.values()), tuple(gaps.values()))

    def _fold_results(
        self, data: EncodedData, max_parents: int, budget: Budget, work: float | None
    ) -> Iterator[tuple[float, SolveResult]]:
        without_rivals = search.single_class_result(data)
        if without_rivals is not None:  # nothing to choose in such a fold
            return iter([(gamma, without_rivals) for gamma in self._gamma_grid()])
        grid = self._gamma_grid()
        problem = self._with_setting(max_parents, grid[0])._problem(data)
        return self._solve_path(problem, grid, budget, work)

    def _scorer(
        self, training: EncodedTraining, held_out: LabelledTable, max_parents: int
    ) -> Callable[[float, SolveResult], float]:
        """What judges the structure of a gamma on the rows that were held out."""
        if not isinstance(self.scoring, str) or self.scoring not in SCORINGS:
            return self._scikit_learn_scorer(training, held_out, max_parents)
        of_rows = SCORINGS[self.scoring]
        codes = with_class_column(training.coding.encode(held_out.features))
        truth = choosing.class_codes(held_out.labels, training.classes)

        def score(gamma: float, result: SolveResult) -> float:
            network = BayesianNetwork.fit(training.data, result.structure, self.smoothing)
            posterior = log_posteriors(network.log_joint_per_class(codes))
            return float(np.average(of_rows(posterior, truth), weights=held_out.weights))

        return score

    def _scikit_learn_scorer(
        self, training: EncodedTraining, held_out: LabelledTable, max_parents: int
    ) -> Callable[[float, SolveResult], float]:
        """The same with a scorer of scikit-learn, which wants a fitted classifier."""
        scorer = choosing.scorer_of(self.scoring)
        weighted = bool((held_out.weights != held_out.weights[0]).any())
        weights = {"sample_weight": held_out.weights} if weighted else {}

        def score(gamma: float, result: SolveResult) -> float:
            fitted = self._with_setting(max_parents, gamma)
            validation.set_feature_names(fitted, held_out.features)
            fitted.n_dropped_ = 0
            fitted._finish(training, result)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # a fold lacks a rare category
                return float(scorer(fitted, held_out.features, held_out.labels, **weights))

        return score

    @property
    def _limit_of_fit(self) -> float | None:
        limit: float | None = self.total_time_limit
        return limit

    def _choose_settings(self, rows: LabelledTable) -> None:
        """Set gamma_, max_parents_, best_score_ and cv_results_."""
        limit = self.total_time_limit
        self._budget = Budget(None if limit is None else monotonic() - self._elapsed() + limit)
        paths = self._validate(rows, self._budget.part(0.5))
        gammas, parents = self._gamma_grid(), self._parent_grid()
        settings = [(k, gamma) for k in parents for gamma in gammas]
        by_limit = [[path for path in paths if path.max_parents == k] for k in parents]
        scores = np.array([[path.scores for path in group] for group in by_limit])
        gaps = np.array([[path.gaps for path in group] for group in by_limit])
        table = scores.transpose(0, 2, 1).reshape(len(settings), -1)  # (settings, folds)
        mean = table.mean(axis=1)
        best = choosing.choose(mean, settings)
        self.max_parents_, self.gamma_ = settings[best]
        self.best_score_ = float(mean[best])
        self.cv_results_ = {
            "max_parents": np.array([k for k, _ in settings]),
            "gamma": np.array([gamma for _, gamma in settings]),
            "mean_test_score": mean,
            "std_test_score": table.std(axis=1),
            "max_gap": gaps.max(axis=1).reshape(-1),
            **{f"split{f}_test_score": table[:, f] for f in range(table.shape[1])},
        }

    # --- the network ---

    def _learn_structure(self, data: EncodedData) -> SolveResult:
        without_rivals = search.single_class_result(data)
        if without_rivals is not None:
            return without_rivals
        start = self._solve_above(data, self._budget.part(0.5))
        problem = self._problem(data)
        return self._search(problem, start, self._budget.share(1, self.time_limit))

    def _solve_above(self, data: EncodedData, budget: Budget) -> SolveResult | None:
        """All rows at the gammas above the chosen one: the answer of the last one, the nearest, is
        where the final search starts. Ctrl-C ends this stage: what is there is used.
        """
        gammas = [gamma for gamma in self._gamma_grid() if gamma > self.gamma_]
        nearest: SolveResult | None = None
        if gammas:
            problem = self._with_setting(self.max_parents_, gammas[0])._problem(data)
            with suppress(KeyboardInterrupt):
                for _, result in self._solve_path(problem, gammas, budget):
                    nearest = result
        return nearest

    def _finish(self, training: EncodedTraining, result: SolveResult) -> Self:
        del self._budget
        return super()._finish(training, result)


def complete_folds(paths: list[FoldPath], n_limits: int) -> list[FoldPath]:
    """The paths of the folds on which every parent limit was tried: a fair comparison."""
    tried = Counter(path.fold for path in paths)
    return [path for path in paths if tried[path.fold] == n_limits]


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
