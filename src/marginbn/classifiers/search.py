"""Classifiers whose structure comes out of a search with a bound.

The generative baseline maximises a decomposable score, the classifier of the paper the soft margin.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

from marginbn.classifiers import validation
from marginbn.classifiers.base import BaseBNClassifier, Fitted
from marginbn.classifiers.budget import half_used, time_for_search
from marginbn.classifiers.progress import SearchProgress, hearing_phases
from marginbn.classifiers.trained import SEARCHING, ParameterKind, encode_cells
from marginbn.classifiers.validation import seed_of
from marginbn.data.encode import EncodedTraining, IsLate
from marginbn.data.labelled import ClassWeight, MissingPolicy
from marginbn.data.training import TrainingRows
from marginbn.exceptions import InputError, OptimalityWarning, warn_user
from marginbn.files import PathLike
from marginbn.problem.candidates import Arcs, ClassArcs, enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.margins import MarginKind
from marginbn.problem.problem import StructureProblem, estimate_size, margin_problem
from marginbn.problem.scores import ScoreName
from marginbn.problem.structure import Structure
from marginbn.proof.definition import define_data
from marginbn.scoring.local_scores import ScoringListener, local_scores
from marginbn.solvers import solve_structure
from marginbn.solvers.result import SolveResult, Status, TracePoint
from marginbn.solvers.run import Callback
from marginbn.solvers.solve import Search

DEFAULT_SEARCH = Search()


def check_search(name: str, value: Any) -> None:
    """Refuse anything but None or a :class:`Search` that makes sense."""
    if value is None:
        return
    if not isinstance(value, Search):
        raise InputError(f"{name} must be a marginbn.Search or None, got {value!r}")
    value.check()


VALIDATION_WORK = 3.0
"""Seconds of work, counted by operations, of a search inside a fold of a validation."""


@dataclass(frozen=True)
class SearchOutcome:
    """What a search found, and the SHA-256 of the certificate if one was written."""

    result: SolveResult
    certificate_sha256: str | None = None


def run_search(
    problem: StructureProblem,
    search: Search,
    *,
    time_limit: float | None,
    certificate: PathLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    start: Structure | None = None,
) -> SearchOutcome:
    """Solve within the limits; a limit is a normal ending, reported by a warning."""
    before = _stamp(certificate)
    limits = [limit for limit in (time_limit, search.time_limit) if limit is not None]
    limit = min(limits, default=None)
    progress = SearchProgress(limit) if search.verbose else None
    result = solve_structure(
        problem,
        search.solver,
        time_limit=limit,
        gap_tolerance=search.gap_tolerance,
        start=start,
        callback=_listener(progress, search.callback),
        seed=seed_of(random_state),
        n_jobs=n_jobs,
        memory_limit=search.memory_limit,
        checkpoint=search.checkpoint,
        certificate=certificate,
        rows=search.rows,
        dask=search.dask,
        work_limit=search.work_limit,
    )
    if progress is not None:
        progress.close(result)
    warn_if_open(result)
    if certificate is None or _stamp(certificate) == before:  # none, or the file of another fit
        return SearchOutcome(result)
    with open(certificate, "rb") as file:
        return SearchOutcome(result, hashlib.file_digest(file, "sha256").hexdigest())


def _listener(progress: SearchProgress | None, callback: Callback | None) -> Callback | None:
    """The user's callback and the progress that is shown, whichever are wanted."""
    if progress is None or callback is None:
        return progress or callback

    def both(point: TracePoint) -> bool | None:
        progress(point)
        return callback(point)

    return both


def _stamp(path: PathLike | None) -> tuple[int, int] | None:
    """Changes when a file is written again; None where there is none."""
    if path is None or not os.path.isfile(path):
        return None
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


MORE_WORK = "search=Search(work_limit=...)"
"""What raises the budget of work; the command line has max-margin, which has none, in its place."""


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


class SearchingBNClassifier(BaseBNClassifier):
    """A classifier that builds a problem and has it solved.

    Subclasses take ``max_parents``, ``required_arcs``, ``forbidden_arcs``, ``time_limit``,
    ``certificate``, ``random_state``, ``n_jobs`` and ``search``.
    """

    _CHECKS: ClassVar[dict[str, validation.Check]] = {
        **BaseBNClassifier._CHECKS,
        "max_parents": validation.check_count,
        "time_limit": validation.optional(validation.check_positive),
        "certificate": validation.check_path,
        "search": check_search,
    }
    _compares_classes: ClassVar[bool] = True
    """Whether a single class leaves nothing to maximise."""

    def search_settings(self) -> Search:
        """How this classifier searches."""
        return self.search or DEFAULT_SEARCH

    def arcs(self) -> Arcs:
        """Arcs that are required and forbidden."""
        return Arcs(self.required_arcs, self.forbidden_arcs)

    @abstractmethod
    def build_problem(self, data: EncodedData) -> StructureProblem:
        """What is maximised over which structures."""

    def _learn(self, rows: TrainingRows) -> Fitted:
        training = self._encode(rows, half_used(self.time_limit, rows.elapsed))
        if self._compares_classes and training.data.n_classes == 1:
            return self._count(rows, training, no_arcs(training.data))
        limit = self.time_limit
        if limit is not None and self.parameters == "trained":
            limit *= SEARCHING
        found = run_search(
            self.build_problem(training.data),
            self.search_settings(),
            time_limit=time_for_search(limit, rows.elapsed()),
            certificate=self.certificate,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        return self._count_found(rows, training, found)

    def _train(self, *given: Any) -> Any:
        if not self.search_settings().verbose:
            return super()._train(*given)
        with hearing_phases(lambda phase: sys.stderr.write(f"{phase}\n")):
            return super()._train(*given)

    def _learn_again(self, data: EncodedData) -> Structure:
        if self._compares_classes and data.n_classes == 1:
            return no_arcs(data)
        brake, seed = self.time_limit and self.time_limit / 10, seed_of(self.random_state)
        found = solve_structure(
            self.build_problem(data), work_limit=VALIDATION_WORK, time_limit=brake, seed=seed
        )
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # a validation must not go on by itself
        return found.structure

    def _count_found(
        self, rows: TrainingRows, training: EncodedTraining, found: SearchOutcome
    ) -> Fitted:
        """What was searched for, with its tables and what a certificate can be compared with."""
        counted = self._count(rows, training, found.result.structure, found.result)
        evidence = replace(
            counted.evidence,
            data_sha256=define_data(training.data).fingerprint(),
            certificate_sha256=found.certificate_sha256,
        )
        return replace(counted, evidence=evidence)


def no_arcs(data: EncodedData) -> Structure:
    """The structure of independent variables."""
    return Structure(((),) * data.n_variables)


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

    _compares_classes = False

    def __init__(
        self,
        *,
        score: ScoreName = "mdl",
        max_parents: int = 2,
        class_restricted: bool = True,
        equivalent_sample_size: float = 1.0,
        parameters: ParameterKind = "counted",
        smoothing: float = 1.0,
        missing: MissingPolicy = "auto",
        column_kinds: Any = "auto",
        class_weight: ClassWeight = None,
        required_arcs: Any = None,
        forbidden_arcs: Any = None,
        time_limit: float | None = 10.0,
        certificate: PathLike | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        search: Search | None = None,
    ) -> None:
        super().__init__(
            parameters=parameters,
            smoothing=smoothing,
            missing=missing,
            column_kinds=column_kinds,
            class_weight=class_weight,
        )
        self.score = score
        self.max_parents = max_parents
        self.class_restricted = class_restricted
        self.equivalent_sample_size = equivalent_sample_size
        self.required_arcs = required_arcs
        self.forbidden_arcs = forbidden_arcs
        self.time_limit = time_limit
        self.certificate = certificate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.search = search

    # The parameter "score" has the name of scikit-learn's accuracy method. Reading the attribute
    # gives the method, setting it stores the parameter, and get_params gives the parameter.
    @property
    def score(self) -> Any:
        """Accuracy, as in every scikit-learn classifier: ``score(X, y, sample_weight=None)``."""
        return super().score

    @score.setter
    def score(self, name: str) -> None:
        self.__dict__["score"] = name

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name."""
        return {**super().get_params(deep), "score": self.__dict__["score"]}

    def build_problem(self, data: EncodedData) -> StructureProblem:
        required, forbidden = self.arcs().resolve(data.names)
        return local_scores(
            data,
            self.__dict__["score"],
            self.max_parents,
            equivalent_sample_size=self.equivalent_sample_size,
            class_restricted=self.class_restricted,
            required=required,
            forbidden=forbidden,
            n_jobs=self.n_jobs,
            progress=ScoringListener() if self.search_settings().verbose else None,
        )


def gamma_from_probability(p: float) -> float:
    """gamma = log(p / (1 - p)): the log margin at which a sample counts as safe enough."""
    if isinstance(p, bool | str) or not 0.5 < p < 1:
        raise InputError(f"p must lie strictly between 0.5 and 1, got {p}")
    return math.log(p / (1 - p))


DEFAULT_GAMMA = gamma_from_probability(0.9)


class MaxMarginBNClassifier(SearchingBNClassifier):
    """Bayesian network whose structure maximises the soft margin, found exactly.

    The structure maximises sum_m w_m min(gamma, log margin of sample m) over all networks in
    which every feature has no parents or the class among its parents, the class may have
    features as parents, and no variable has more than ``max_parents``. Parameters are
    smoothed maximum likelihood, so the network stays a generative one.

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
        Seconds for the whole fit: on most tables the structure hardly changes after the first ones,
        and a proof that takes longer should be asked for. Reading and counting are never cut short,
        binning continues with fewer rows when it has taken half of the time, with a
        :class:`DataWarning`; the search gets what they leave, and where they leave nothing a tenth
        of the limit or half a second. Compiling, once per machine, does not count. When it ends
        early the best structure is used, ``gap_`` bounds its distance to the optimum, and an
        :class:`OptimalityWarning` is given.
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

    _CHECKS: ClassVar[dict[str, validation.Check]] = {
        **SearchingBNClassifier._CHECKS,
        "gamma": validation.check_positive,
        "margin": validation.one_of(*get_args(MarginKind)),
        "class_arcs": validation.one_of(*get_args(ClassArcs)),
    }

    def __init__(
        self,
        *,
        margin: MarginKind = "multiclass",
        gamma: float = DEFAULT_GAMMA,
        max_parents: int = 2,
        class_arcs: ClassArcs = "free",
        parameters: ParameterKind = "counted",
        smoothing: float = 1.0,
        missing: MissingPolicy = "auto",
        column_kinds: Any = "auto",
        class_weight: ClassWeight = None,
        required_arcs: Any = None,
        forbidden_arcs: Any = None,
        time_limit: float | None = 10.0,
        certificate: PathLike | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        search: Search | None = None,
    ) -> None:
        super().__init__(
            parameters=parameters,
            smoothing=smoothing,
            missing=missing,
            column_kinds=column_kinds,
            class_weight=class_weight,
        )
        self.margin = margin
        self.gamma = gamma
        self.max_parents = max_parents
        self.class_arcs = class_arcs
        self.required_arcs = required_arcs
        self.forbidden_arcs = forbidden_arcs
        self.time_limit = time_limit
        self.certificate = certificate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.search = search

    @property
    def gamma_(self) -> float:
        """The desired log margin."""
        return float(self.gamma)

    def _encode(self, rows: TrainingRows, is_late: IsLate = lambda: False) -> EncodedTraining:
        """Where the class points at every feature, a number without a cut has quartiles: in a
        single bin no interaction with it could be found.
        """
        return encode_cells(rows) if self.class_arcs == "all" else super()._encode(rows, is_late)

    def build_problem(self, data: EncodedData) -> StructureProblem:
        """The soft margin over all structures that are allowed."""
        if self.search_settings().verbose:
            size = estimate_size(
                data, self.max_parents, margin=self.margin, class_arcs=self.class_arcs
            )
            sys.stderr.write(f"{size}\n")  # before anything large is allocated
        required, forbidden = self.arcs().resolve(data.names)
        candidates = enumerate_candidates(
            data.n_variables,
            self.max_parents,
            class_arcs=self.class_arcs,
            required=required,
            forbidden=forbidden,
            constant=data.constant,
            names=data.names,
        )
        return margin_problem(
            data, candidates, margin=self.margin, gamma=self.gamma_, smoothing=self.smoothing
        )
