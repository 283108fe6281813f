"""Choosing gamma and the number of parents by validation, as section 6 of the paper does."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import ShuffleSplit, check_cv

from marginbn.classifiers import search, validation
from marginbn.classifiers.search import MaxMarginBNClassifier, SearchingBNClassifier
from marginbn.data.encode import EncodedData, EncodedTraining, encode_training, with_class_column
from marginbn.data.labelled import LabelledTable, Split, stratified_folds
from marginbn.exceptions import InputError, OptimalityWarning
from marginbn.interrupts import REQUESTS, in_deaf_children
from marginbn.network.network import BayesianNetwork
from marginbn.problem.problem import StructureProblem
from marginbn.solvers import solve_structure
from marginbn.solvers.result import SolveResult, Status

PAPER_PROBABILITIES = (0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
LARGE_TRAINING_SET = 1000
"""Above this many rows a single 20 % validation split replaces the five folds (section 6)."""


@dataclass(frozen=True)
class FoldPath:
    """Validation scores of one fold and one max_parents, along the whole gamma grid."""

    max_parents: int
    fold: int
    scores: tuple[float, ...]
    gaps: tuple[float, ...]


class MaxMarginBNClassifierCV(SearchingBNClassifier):
    """:class:`MaxMarginBNClassifier` with gamma and ``max_parents`` chosen by validation.

    Everything that does not depend on gamma is computed once per fold, and each solve starts
    from the answer of the neighbouring gamma. After the choice, the structure is learned again on
    all rows.

    Parameters
    ----------
    margin : {"multiclass", "binary"}, default="multiclass"
        As in :class:`MaxMarginBNClassifier`.
    gammas : sequence of float, optional
        Grid; default log(p / (1 - p)) for p in 0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999.
    max_parents : sequence of int, default=(1, 2)
        Grid.
    cv : int, splitter, iterable or None, default=None
        None follows the paper: 20 % of the rows if there are more than 1000, else 5 folds.
    inner_time_limit : float or None, default=5.0
        Seconds for each validation solve.
    time_limit : float or None, default=60.0
        Seconds for the final solve.
    n_jobs : int or None, default=None
        Folds and parent limits solved in parallel (joblib).

        Ctrl-C ends the validation: the folds that are complete decide, with an
        :class:`OptimalityWarning`; before the first fold is complete there is nothing to decide by
        and ``KeyboardInterrupt`` is raised. A second Ctrl-C ends the final solve.
    smoothing, solver, gap_tolerance, random_state, verbose, required_arcs, forbidden_arcs, \
missing, unseen, column_kinds, callback, memory_limit
        As in :class:`MaxMarginBNClassifier`.
    checkpoint : str, path or None, default=None
        As in :class:`MaxMarginBNClassifier`, for the final solve on all rows. The many short solves
        of the validation are repeated; they are deterministic unless a time limit ends them.
    certificate : str, path or None, default=None
        As in :class:`MaxMarginBNClassifier`, for the final solve on all rows.

    Attributes
    ----------
    gamma_, max_parents_
        The choice: highest mean validation accuracy, ties to fewer parents, then larger gamma.
    best_score_ : float
        Its mean validation accuracy.
    cv_results_ : dict of arrays
        ``gamma``, ``max_parents``, ``mean_test_score``, ``std_test_score``, ``max_gap`` and
        ``split<k>_test_score``, one entry per setting.

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
        "gammas": validation.optional(validation.each(validation.check_positive)),
        "max_parents": validation.each(validation.check_count),
        "inner_time_limit": validation.optional(validation.check_positive),
    }

    def __init__(
        self,
        *,
        margin: Any = "multiclass",
        gammas: Sequence[float] | None = None,
        max_parents: Sequence[int] = (1, 2),
        cv: Any = None,
        smoothing: float = 1.0,
        solver: str = "auto",
        inner_time_limit: float | None = 5.0,
        time_limit: float | None = 60.0,
        gap_tolerance: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        required_arcs: Any = None,
        forbidden_arcs: Any = None,
        missing: str = "drop",
        unseen: str = "missing",
        column_kinds: Any = "auto",
        callback: Any = None,
        memory_limit: Any = None,
        checkpoint: Any = None,
        certificate: Any = None,
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
        self, data: EncodedData, max_parents: int
    ) -> Iterator[tuple[float, SolveResult]]:
        """Solve for every gamma, the largest (easiest) first, each from its neighbour's answer."""
        grid = sorted(self._gamma_grid(), reverse=True)
        without_rivals = search.single_class_result(data)
        if without_rivals is not None:  # nothing to choose in such a fold
            yield from ((gamma, without_rivals) for gamma in grid)
            return
        problem = self._with_setting(max_parents, grid[0])._problem(data)
        start: SolveResult | None = None
        for gamma in grid:
            result = solve_structure(
                problem.with_gamma(gamma),
                self.solver,
                time_limit=self.inner_time_limit,
                gap_tolerance=self.gap_tolerance,
                start=start,
                seed=search.seed_of(self.random_state),
                memory_limit=self.memory_limit,
            )
            if result.status is Status.INTERRUPTED:
                raise KeyboardInterrupt  # a fold with half a grid is no basis for a choice
            start = result
            yield gamma, result

    def _validate(self, rows: LabelledTable) -> list[FoldPath]:
        """All folds and parent limits, in parallel if asked to; Ctrl-C keeps the folds that are
        complete, if there are any.
        """
        if self.cv is None:
            splits = paper_splits(rows, search.seed_of(self.random_state))
        else:
            splits = given_splits(rows, self.cv)
        tasks = [(k, fold) for fold in range(len(splits)) for k in self._parent_grid()]
        paths: list[FoldPath] = []
        worker = copy(self)
        worker.callback = None  # for the last search; it need not be fit for another process
        try:
            answers = in_deaf_children(
                Parallel(n_jobs=self.n_jobs, return_as="generator"),
                (delayed(worker._validate_fold)(rows, *splits[fold], k, fold) for k, fold in tasks),
            )
            with REQUESTS.heeding():
                for path in answers:
                    paths.append(path)
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

    def _validate_fold(
        self,
        rows: LabelledTable,
        train: NDArray[np.intp],
        test: NDArray[np.intp],
        max_parents: int,
        fold: int,
    ) -> FoldPath:
        """Validation accuracy along the gamma grid on one training part."""
        grid = self._gamma_grid()
        training, held_out = encode_training(rows.take(train), self.missing), rows.take(test)
        scores, gaps = dict.fromkeys(grid, 0.0), dict.fromkeys(grid, 0.0)
        for gamma, result in self._solve_path(training.data, max_parents):
            network = BayesianNetwork.fit(training.data, result.structure, self.smoothing)
            scores[gamma] = weighted_accuracy(training, network, held_out)
            gaps[gamma] = result.gap
        path = FoldPath(max_parents, fold, tuple(scores.values()), tuple(gaps.values()))
        if self.verbose:
            sys.stderr.write(
                f"validation fold {fold}, max_parents {max_parents}: "
                f"best accuracy {max(path.scores):.4f}\n"
            )
        return path

    def _choose_settings(self, rows: LabelledTable) -> None:
        """Set gamma_, max_parents_, best_score_ and cv_results_."""
        paths = self._validate(rows)
        gammas, parents = self._gamma_grid(), self._parent_grid()
        settings = [(k, gamma) for k in parents for gamma in gammas]
        by_limit = [[path for path in paths if path.max_parents == k] for k in parents]
        scores = np.array([[path.scores for path in group] for group in by_limit])
        gaps = np.array([[path.gaps for path in group] for group in by_limit])
        table = scores.transpose(0, 2, 1).reshape(len(settings), -1)  # (settings, folds)
        mean = table.mean(axis=1)
        best = max(range(len(settings)), key=lambda s: (mean[s], -settings[s][0], settings[s][1]))
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


def complete_folds(paths: list[FoldPath], n_limits: int) -> list[FoldPath]:
    """The paths of the folds on which every parent limit was tried: a fair comparison."""
    tried = Counter(path.fold for path in paths)
    return [path for path in paths if tried[path.fold] == n_limits]


def paper_splits(rows: LabelledTable, seed: int) -> list[Split]:
    """Section 6: 20 % for validation if there are more than 1000 rows, else five folds."""
    if rows.n_rows < 2:
        raise InputError("choosing by validation needs at least 2 rows, got n_samples = 1")
    if rows.n_rows > LARGE_TRAINING_SET:
        splitter = ShuffleSplit(1, test_size=0.2, random_state=seed)
        return list(splitter.split(rows.labels))
    return stratified_folds(rows.labels, 5, seed)


def given_splits(rows: LabelledTable, cv: Any) -> list[Split]:
    """Splits of all rows that the user gave, counted in those that take part in training."""
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


def weighted_accuracy(
    training: EncodedTraining, network: BayesianNetwork, rows: LabelledTable
) -> float:
    """Accuracy of a network on held-out rows, by weight."""
    codes = with_class_column(training.coding.encode(rows.features))
    predicted = training.classes[network.log_joint_per_class(codes).argmax(axis=1)]
    return float(np.average(predicted == rows.labels, weights=rows.weights))
