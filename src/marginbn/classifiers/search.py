"""Classifiers whose structure comes out of a search with a bound.

The generative baseline maximises a decomposable score, the classifier of the paper the soft margin.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from marginbn.class_model.basis import encode_cells
from marginbn.class_model.choose import SEARCHING
from marginbn.classifiers.base import BaseBNClassifier, Evidence, Fitted, TableEstimator
from marginbn.classifiers.budget import FOR_SCORES, part_used, reporting_phases, time_for_search
from marginbn.classifiers.validation import (
    check_count,
    check_jobs,
    check_path,
    check_positive,
    check_seed,
    one_of,
    optional,
    parameter,
    seed_of,
)
from marginbn.data.encode import EncodedTraining, IsLate
from marginbn.data.training import TrainingRows
from marginbn.exceptions import InputError, OptimalityWarning, warn_user
from marginbn.files import PathLike
from marginbn.problem.candidates import Arc, ClassArcs, enumerate_candidates, resolve_arcs
from marginbn.problem.encoded import EncodedData
from marginbn.problem.margins import MarginKind
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.problem.scores import ScoreName
from marginbn.problem.structure import Structure
from marginbn.scoring.local_scores import ScoringListener, local_scores
from marginbn.solvers import solve_structure
from marginbn.solvers.result import MORE_WORK, SolveResult, Status
from marginbn.solvers.solve import Search


def check_search(name: str, value: Any) -> None:
    """Refuse anything but None or a :class:`Search` that makes sense."""
    if value is None:
        return
    if not isinstance(value, Search):
        raise InputError(f"{name} must be a marginbn.Search or None, got {value!r}")
    value.check()


VALIDATION_WORK = 3.0
"""Seconds of work, counted by operations, of a search inside a fold of a validation."""


@dataclass(kw_only=True, eq=False, repr=False)
class SearchingEstimator(TableEstimator):
    """What searches for a structure, of classifiers and of networks without a class."""

    required_arcs: Any = None
    forbidden_arcs: Any = None
    time_limit: float | None = parameter(10.0, optional(check_positive))
    certificate: PathLike | None = parameter(None, check_path)
    random_state: Any = parameter(None, check_seed)
    n_jobs: int | None = parameter(None, check_jobs)
    search: Search | None = parameter(None, check_search)

    def search_settings(self) -> Search:
        """How this estimator searches."""
        return self.search or Search()

    def arcs(self, names: Sequence[str]) -> tuple[tuple[Arc, ...], tuple[Arc, ...]]:
        """Arcs that are required and forbidden, by index."""
        return resolve_arcs(names, self.required_arcs, self.forbidden_arcs)

    def _how_to_search(
        self, time_limit: float | None, start: Structure | None = None
    ) -> dict[str, Any]:
        """Arguments of :func:`~marginbn.solvers.solve.solve_structure` besides the problem."""
        return {
            "solver": self.search_settings(),
            "time_limit": time_limit,
            "start": start,
            "seed": seed_of(self.random_state),
            "n_jobs": self.n_jobs,
            "certificate": self.certificate,
        }

    def _evidence(
        self, result: SolveResult, data: EncodedData, before: tuple[int, int] | None
    ) -> Evidence:
        """What a certificate of this search can be compared with; a warning where the search ended
        early. ``before`` is the stamp of the certificate's file before the search.
        """
        from marginbn.proof.definition import define_data  # slow to import

        warn_if_open(result)
        digest = None
        if self.certificate is not None and stamp_of(self.certificate) != before:
            with open(self.certificate, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Evidence("search", define_data(data).fingerprint(), float(data.total_weight), digest)

    def _local_scores(self, data: EncodedData, **options: Any) -> StructureProblem:
        """The problem of a decomposable score, the parameter ``score``; a warning where not all
        parent sets are scored.
        """
        required, forbidden = self.arcs(data.names)
        problem = local_scores(
            data,
            self.__dict__["score"],
            self.max_parents,
            equivalent_sample_size=self.equivalent_sample_size,
            required=required,
            forbidden=forbidden,
            n_jobs=self.n_jobs,
            progress=ScoringListener() if self.search_settings().verbose else None,
            **options,
        )
        if problem.unscored:
            warn_user(
                "time_limit ended the scoring: not all parent sets are compared, and the bound "
                "counts what the others may add; a larger time_limit compares them all",
                OptimalityWarning,
            )
        return problem


def stamp_of(path: PathLike | None) -> tuple[int, int] | None:
    """Changes when a file is written again; None where there is none."""
    if path is None or not os.path.isfile(path):
        return None
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


def warn_if_open(result: SolveResult) -> None:
    """Say what is known when the search ended before the proof."""
    if result.status in (Status.OPTIMAL, Status.GAP_LIMIT):
        return
    remedy = "a larger time_limit narrows the gap"
    if result.status is Status.WORK_LIMIT:
        remedy = f"its budget of work is used up: {MORE_WORK} searches for longer"
    if result.status is Status.ROUNDING:
        remedy = "the scores cannot be computed more exactly: use smaller weights"
    warn_user(
        f"the search ended after {result.seconds:.1f} s ({result.status.replace('_', ' ')}) "
        f"before optimality was proved: objective {result.objective:.6g}, bound "
        f"{result.bound:.6g}, gap {100 * result.gap:.2g} %. The structure is the best found; "
        f"{remedy}",
        OptimalityWarning,
    )


@dataclass(kw_only=True, eq=False, repr=False)
class SearchingBNClassifier(SearchingEstimator, BaseBNClassifier):
    """A classifier that builds a problem and has it solved."""

    max_parents: int = parameter(2, check_count)
    _compares_classes: ClassVar[bool] = True
    """Whether a single class leaves nothing to maximise."""

    @abstractmethod
    def build_problem(self, data: EncodedData, is_late: IsLate | None = None) -> StructureProblem:
        """What is maximised over which structures; scores end where it is late."""

    def _learn(self, rows: TrainingRows) -> Fitted:
        training = self._encode(rows, part_used(self.time_limit, rows.elapsed))
        if self._compares_classes and training.data.n_classes == 1:
            return self._count(rows, training, no_arcs(training.data))
        limit = self.time_limit
        if limit is not None and self.parameters == "trained":
            limit *= SEARCHING
        is_late = None if limit is None else part_used(limit, rows.elapsed, FOR_SCORES)
        problem = self.build_problem(training.data, is_late)
        how = self._how_to_search(time_for_search(limit, rows.elapsed()))
        before = stamp_of(self.certificate)
        result = solve_structure(problem, **how)
        evidence = self._evidence(result, training.data, before)
        return self._count(rows, training, result.structure, result, evidence)

    def _train(self, *given: Any) -> Any:
        with self._showing_phases():
            return super()._train(*given)

    def _showing_phases(self) -> AbstractContextManager[None]:
        """Lines on stderr where progress is asked for."""
        if not self.search_settings().verbose:
            return nullcontext()
        return reporting_phases(lambda phase: sys.stderr.write(f"{phase}\n"))

    def _learn_again(self, data: EncodedData) -> Structure:
        if self._compares_classes and data.n_classes == 1:
            return no_arcs(data)
        brake, seed = self.time_limit and self.time_limit / 10, seed_of(self.random_state)
        search = Search(work_limit=VALIDATION_WORK)
        found = solve_structure(self.build_problem(data), search, time_limit=brake, seed=seed)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # a validation must not go on by itself
        return found.structure


def no_arcs(data: EncodedData) -> Structure:
    """The structure of independent variables."""
    return Structure(((),) * data.n_variables)


class ScoreParameter:
    """The parameter ``score``, which has the name of a method of scikit-learn.

    Setting the attribute stores the parameter, reading it gives the method; ``get_params`` gives
    the parameter.
    """

    def __init__(self, default: ScoreName) -> None:
        self._default = default

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        return self._default if estimator is None else estimator.mean_score

    def __set__(self, estimator: Any, name: ScoreName) -> None:
        estimator.__dict__["score"] = name


@dataclass(kw_only=True, eq=False, repr=False)
class GenerativeBNClassifier(SearchingBNClassifier):
    """Bayesian network of maximal decomposable score, used as a classifier.

    Parameters
    ----------
    score : str, default="mdl"
        The score to maximise, a name in ``marginbn.problem.scores.SCORES``.
        (``clf.score(X, y)`` is scikit-learn's accuracy all the same.)
    max_parents : int, default=2
        Parents per variable, the class counted.
    class_restricted : bool, default=True
        Features have no parents or the class among them; ``False`` learns a general network.
    equivalent_sample_size : float, default=1.0
        Strength of the prior of ``score="bdeu"``.
    parameters : {"counted", "trained"}, default="counted"
        As in :class:`MaxMarginBNClassifier`.
    smoothing : float, default=1.0
        Added to every count for the parameters (not for the score).
    missing, column_kinds, class_weight
        As in :class:`NaiveBayesClassifier`.
    required_arcs, forbidden_arcs, time_limit, certificate, random_state, n_jobs, search
        As in :class:`MaxMarginBNClassifier`.

    Examples
    --------
    >>> from marginbn import GenerativeBNClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GenerativeBNClassifier(score="mdl", max_parents=1).fit(X, y).status_
    'optimal'
    """

    score: ScoreParameter = ScoreParameter("mdl")
    class_restricted: bool = True
    equivalent_sample_size: float = parameter(1.0, check_positive)
    _compares_classes = False

    def mean_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, as in every scikit-learn classifier: ``score(X, y, sample_weight=None)``."""
        return float(super().score(X, y, sample_weight))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name."""
        return {**super().get_params(deep), "score": self.__dict__["score"]}

    def build_problem(self, data: EncodedData, is_late: IsLate | None = None) -> StructureProblem:
        return self._local_scores(data, class_restricted=self.class_restricted, is_late=is_late)


def gamma_from_probability(p: float) -> float:
    """gamma = log(p / (1 - p)): the log margin at which a sample counts as safe enough."""
    if isinstance(p, bool | str) or not 0.5 < p < 1:
        raise InputError(f"p must lie strictly between 0.5 and 1, got {p}")
    return math.log(p / (1 - p))


DEFAULT_GAMMA = gamma_from_probability(0.9)


@dataclass(kw_only=True, eq=False, repr=False)
class MaxMarginBNClassifier(SearchingBNClassifier):
    """Bayesian network whose structure maximises the soft margin, found exactly.

    The structure maximises sum_m w_m min(gamma, log margin of sample m). A feature has no parents,
    or the class among them; the class may have features as parents. Parameters are smoothed maximum
    likelihood, so the network stays a generative one.

    Parameters
    ----------
    margin : {"multiclass", "binary"}, default="multiclass"
        Soft margin against the strongest rival class (SM), or sample-wise one against all (SBM).
    gamma : float, default=log(9)
        Desired log margin; log(p / (1 - p)) for a posterior ratio of p to 1 - p.
    max_parents : int, default=2
        Parents per variable, the class counted.
    class_arcs : {"free", "all"}, default="free"
        "free" is the paper's family: a feature has no parents, or the class among them. With "all"
        the class is a parent of every feature.
    parameters : {"counted", "trained"}, default="counted"
        Tables that predict: counted as in the paper, or trained on the structure for the class (see
        :class:`BNClassifier`).
    smoothing : float, default=1.0
        Added to every count (Laplace).
    time_limit : float or None, default=10.0
        Seconds for the whole fit, compiling left out. Reading and counting are never cut short;
        binning continues with fewer rows when it has taken half of the time, with a
        :class:`DataWarning`. The search gets the rest, at least half a second or a tenth of the
        limit. If it ends early the best structure is used, ``gap_`` bounds its distance to the
        optimum, and an :class:`OptimalityWarning` is given.
    random_state : int, RandomState or None, default=None
        Seed of the search heuristics; None means 0.
    n_jobs : int or None, default=None
        Workers of the search, where the solver can use them; None means 1.
    required_arcs, forbidden_arcs : list of (parent, child), optional
        Arcs every (no) structure must have, by name; the class has the name of ``y`` or "class".
    missing, column_kinds, class_weight
        As in :class:`NaiveBayesClassifier`.
    certificate : str, path or None, default=None
        File for a proof of the result that ``marginbn verify`` can check; part of the time limit
        goes into writing it down. Every fit writes it again.
    search : Search or None, default=None
        Solver, gap, memory, checkpoint, progress and the like; see :class:`marginbn.Search`.

    Attributes
    ----------
    gamma_ : float
        The desired log margin, however it was given.

    Examples
    --------
    >>> from marginbn import MaxMarginBNClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginBNClassifier(max_parents=1).fit(X, y)
    >>> clf.status_, clf.gap_ <= 1e-6
    ('optimal', True)
    """

    margin: MarginKind = parameter("multiclass", one_of(*get_args(MarginKind)))
    gamma: float = parameter(DEFAULT_GAMMA, check_positive)
    class_arcs: ClassArcs = parameter("free", one_of(*get_args(ClassArcs)))

    @property
    def gamma_(self) -> float:
        """The desired log margin."""
        return float(self.gamma)

    def _encode(self, rows: TrainingRows, is_late: IsLate = lambda: False) -> EncodedTraining:
        """Where the class points at every feature, a number without a cut has quartiles: in a
        single bin no interaction with it could be found.
        """
        return encode_cells(rows) if self.class_arcs == "all" else super()._encode(rows, is_late)

    def build_problem(self, data: EncodedData, is_late: IsLate | None = None) -> StructureProblem:
        """The soft margin over all structures that are allowed, however late it is."""
        required, forbidden = self.arcs(data.names)
        candidates = enumerate_candidates(
            data.n_variables,
            self.max_parents,
            class_arcs=self.class_arcs,
            required=required,
            forbidden=forbidden,
            constant=data.constant,
            names=data.names,
        )
        problem = margin_problem(
            data, candidates, margin=self.margin, gamma=self.gamma_, smoothing=self.smoothing
        )
        if self.search_settings().verbose:
            size = f"{candidates.n_candidates} candidate parent sets, {problem.n_rows} margin rows"
            sys.stderr.write(f"{size}\n")
        return problem
