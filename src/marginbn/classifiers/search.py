"""Classifiers whose structure comes out of a search with a bound.

The generative baseline maximises a decomposable score, the classifier of the paper the soft margin.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, get_args

import numpy as np
from sklearn.utils import check_random_state

from marginbn.classifiers import validation
from marginbn.classifiers.base import BaseBNClassifier, Evidence, fixed_structure_result
from marginbn.classifiers.budget import time_for_search
from marginbn.classifiers.progress import SearchProgress
from marginbn.data.columns import as_input_errors
from marginbn.data.preparation import MAX_STATES
from marginbn.exceptions import InputError, OptimalityWarning
from marginbn.files import PathLike
from marginbn.problem.candidates import (
    Arc,
    CandidateSets,
    arcs_against_tiers,
    enumerate_candidates,
)
from marginbn.problem.encoded import EncodedData
from marginbn.problem.margins import MarginKind
from marginbn.problem.problem import StructureProblem, estimate_size, margin_problem
from marginbn.problem.structure import Structure
from marginbn.proof.definition import define_data
from marginbn.scoring.local_scores import ScoringListener, local_scores
from marginbn.solvers import solve_structure, solver_names
from marginbn.solvers.memory import parse_memory
from marginbn.solvers.result import PROOF_TOLERANCE, SolveResult, Status, TracePoint
from marginbn.solvers.run import Callback
from marginbn.solvers.solve import check_rows

DEFAULT_GAP = 1e-4
"""Relative gap at which a search stops that nobody asked for a proof."""


def check_solver(name: str, value: Any) -> None:
    """Refuse names that no solver has."""
    known = ["auto", *solver_names()]
    if value not in known:
        raise InputError(f"{name} must be one of {known}, got {value!r}")


class SearchingBNClassifier(BaseBNClassifier):
    """A classifier that builds a problem and has it solved.

    Besides the parameters below, subclasses take ``random_state``, ``n_jobs``, ``verbose``,
    ``required_arcs``, ``forbidden_arcs``, ``tiers`` and ``callback``.
    """

    _CHECKS: ClassVar[dict[str, validation.Check]] = {
        **BaseBNClassifier._CHECKS,
        "max_parents": validation.check_count,
        "solver": check_solver,
        "time_limit": validation.optional(validation.check_positive),
        "gap_tolerance": validation.optional(validation.check_not_negative),
        "memory_limit": lambda _, value: parse_memory(value),
        "checkpoint": validation.check_path,
        "certificate": validation.check_path,
    }

    rows: Any = "auto"
    """Margin rows to work with, where there are any."""

    dask: Any = None
    """The cluster to search on, if any."""

    def _tolerance(self) -> float:
        """The gap at which a search may stop; whoever wants a certificate wants a proof."""
        if self.gap_tolerance is not None:
            return float(self.gap_tolerance)
        return DEFAULT_GAP if self.certificate is None else PROOF_TOLERANCE

    @abstractmethod
    def _problem(self, data: EncodedData) -> StructureProblem:
        """What is maximised over which structures."""

    def _learn_structure(self, data: EncodedData) -> SolveResult:
        return single_class_result(data) or self._search(self._problem(data))

    def _candidates(self, data: EncodedData) -> CandidateSets:
        """Candidate parent sets under the required and forbidden arcs."""
        if self.verbose:
            size = estimate_size(data, self.max_parents, margin=self.margin)
            sys.stderr.write(f"{size}\n")  # before anything large is allocated
        return enumerate_candidates(
            data.n_variables,
            self.max_parents,
            required=resolve_arcs(self.required_arcs, data.names, "required_arcs"),
            forbidden=resolve_forbidden(self.get_params(deep=False), data.names),
            constant=data.constant,
            names=data.names,
        )

    def _search(
        self,
        problem: StructureProblem,
        start: Structure | SolveResult | None = None,
        time_limit: float | None = None,
    ) -> SolveResult:
        """Solve within the limits; a limit is a normal ending, reported by a warning."""
        before = _stamp(self.certificate)
        limit = time_limit or self._time_left()
        progress = SearchProgress(limit) if self.verbose else None
        result = solve_structure(
            problem,
            self.solver,
            time_limit=limit,
            gap_tolerance=self._tolerance(),
            start=start,
            callback=self._listener(progress),
            seed=seed_of(self.random_state),
            n_jobs=self.n_jobs,
            memory_limit=self.memory_limit,
            checkpoint=self.checkpoint,
            certificate=self.certificate,
            rows=self.rows,
            dask=self.dask,
        )
        if progress is not None:
            progress.close(result)
        if (
            _stamp(self.certificate) != before
        ):  # else it is the file of another fit, or there is none
            self._written = sha256_of(self.certificate)
        warn_if_open(result, stacklevel=5)  # the caller of fit
        return result

    @property
    def _limit_of_fit(self) -> float | None:
        limit: float | None = self.time_limit
        return limit

    def _time_left(self) -> float | None:
        """Seconds for the search."""
        return time_for_search(self.time_limit, self._elapsed())

    def _evidence(self, data: EncodedData) -> Evidence:
        return replace(
            super()._evidence(data),
            data_sha256=define_data(data).fingerprint(),
            certificate_sha256=self.__dict__.pop("_written", None),
        )

    def _listener(self, progress: SearchProgress | None) -> Callback | None:
        """The user's callback and the progress that is shown, whichever are wanted."""
        if progress is None or self.callback is None:
            return progress or self.callback

        def both(point: TracePoint) -> bool | None:
            progress(point)
            return self.callback(point)  # type: ignore[no-any-return]

        return both


def sha256_of(path: PathLike) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(path: PathLike | None) -> tuple[int, int] | None:
    """Changes when a file is written again; None where there is none."""
    if path is None or not os.path.isfile(path):
        return None
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


def resolve_arcs(arcs: Any, names: Sequence[str], name: str) -> tuple[Arc, ...]:
    """Arcs given as (parent, child) by name, or by index with the class at 0."""
    if arcs is None:
        return ()
    try:
        pairs = [(parent, child) for parent, child in arcs]
    except (TypeError, ValueError):
        raise InputError(f"{name} must be pairs (parent, child), got {arcs!r}") from None
    return tuple((_resolve(p, names, name), _resolve(c, names, name)) for p, c in pairs)


def resolve_forbidden(params: Mapping[str, Any], names: Sequence[str]) -> tuple[Arc, ...]:
    """Arcs that are forbidden by name or run against the tiers."""
    forbidden = {*resolve_arcs(params["forbidden_arcs"], names, "forbidden_arcs")}
    if params.get("tiers") is not None:
        forbidden.update(arcs_against_tiers(resolve_tiers(params["tiers"], names)))
    clash = forbidden & set(resolve_arcs(params["required_arcs"], names, "required_arcs"))
    if clash:
        parent, child = (names[v] for v in min(clash))
        raise InputError(
            f"the arc from {parent!r} to {child!r} is among required_arcs, but forbidden_arcs "
            "or tiers exclude it"
        )
    return tuple(sorted(forbidden))


def resolve_tiers(tiers: Any, names: Sequence[str]) -> list[list[int]]:
    """Tiers given as lists of names, or of indices with the class at 0."""
    try:
        listed = [list(tier) for tier in tiers]
    except TypeError:
        listed = None
    if listed is None or any(isinstance(tier, str) for tier in tiers):
        raise InputError(f"tiers must be lists of variables, first to last, got {tiers!r}")
    return [[_resolve(v, names, "tiers") for v in tier] for tier in listed]


def _resolve(variable: Any, names: Sequence[str], name: str) -> int:
    if isinstance(variable, str) and variable in names:
        return names.index(variable)
    if isinstance(variable, (int, np.integer)) and 0 <= variable < len(names):
        return int(variable)
    raise InputError(
        f"{name} names the variable {variable!r}; known are {list(names)} "
        f"and the indices 0 (the class) to {len(names) - 1}"
    )


def seed_of(random_state: Any) -> int:
    """A seed for the solver's heuristics; None means 0, so that fits are reproducible."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        return int(random_state) % 2**31
    with as_input_errors():
        return int(check_random_state(random_state).randint(2**31 - 1))


def warn_if_open(result: SolveResult, stacklevel: int) -> None:
    """Say what is known when the search ended before the proof."""
    if result.status in (Status.OPTIMAL, Status.GAP_LIMIT):
        return
    remedy = "a larger time_limit narrows the gap"
    if result.status is Status.ROUNDING:
        remedy = "the scores cannot be computed more exactly: use smaller weights"
    warnings.warn(
        f"the search ended after {result.seconds:.1f} s ({result.status.replace('_', ' ')}) "
        f"before optimality was proven: objective {result.objective:.6g}, bound "
        f"{result.bound:.6g}, gap {100 * result.gap:.2g} %. The structure is the best found; "
        f"{remedy}",
        OptimalityWarning,
        stacklevel=stacklevel,
    )


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
    smoothing : float, default=1.0
        Added to every count for the parameters (not for the score).
    solver, time_limit, gap_tolerance, random_state, n_jobs, verbose, callback, memory_limit, \
checkpoint, certificate
        As in :class:`MaxMarginBNClassifier`.
    required_arcs, forbidden_arcs : list of (parent, child), optional
        Arcs every (no) structure must have, by name; the class has the name of ``y`` or "class".
    tiers : list of lists of variables, optional
        Temporal order: no arc leads from a later tier to an earlier one. Variables that no tier
        names are free.
    missing, unseen, column_kinds, identifiers, max_states, class_weight
        As in :class:`NaiveBayesClassifier`.

    Examples
    --------
    >>> from marginbn import GenerativeBNClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GenerativeBNClassifier(score="mdl", max_parents=1).fit(X, y).status_
    'optimal'
    """

    def __init__(
        self,
        *,
        score: str = "mdl",
        max_parents: int = 2,
        class_restricted: bool = True,
        equivalent_sample_size: float = 1.0,
        smoothing: float = 1.0,
        solver: str = "auto",
        time_limit: float | None = 10.0,
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
    ) -> None:
        self._store(locals())

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

    def _problem(self, data: EncodedData) -> StructureProblem:
        return local_scores(
            data,
            self.__dict__["score"],
            self.max_parents,
            equivalent_sample_size=self.equivalent_sample_size,
            class_restricted=self.class_restricted,
            required=resolve_arcs(self.required_arcs, data.names, "required_arcs"),
            forbidden=resolve_forbidden(self.get_params(deep=False), data.names),
            n_jobs=self.n_jobs,
            progress=ScoringListener() if self.verbose else None,
        )

    def _learn_structure(self, data: EncodedData) -> SolveResult:
        return self._search(self._problem(data))


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
    features as parents, and nobody has more than ``max_parents`` parents. Parameters are
    smoothed maximum likelihood, so the network stays a generative one.

    Parameters
    ----------
    margin : {"multiclass", "binary"}, default="multiclass"
        Soft margin against the strongest rival class (SM), or sample-wise one against all (SBM).
    gamma : float, default=log(9)
        Desired log margin; log(p / (1 - p)) for a posterior ratio of p to 1 - p.
    p : float or None, default=None
        The same as a probability, in place of ``gamma``: ``p=0.9`` stands for log(9).
    max_parents : int, default=2
        Parents per variable, the class counted.
    smoothing : float, default=1.0
        Added to every count (Laplace).
    solver : str, default="auto"
        ``"auto"`` or a name from :func:`marginbn.available_solvers`.
    time_limit : float or None, default=10.0
        Seconds for the whole fit: on most tables the structure hardly changes after the first ones,
        and a proof that takes longer should be asked for. Reading and counting are never cut short,
        binning goes on with fewer rows when it has taken half of the time, with a
        :class:`DataWarning`; the search gets what they leave, and where they leave nothing a tenth
        of the limit or half a second. Compiling, once per machine, does not count. When it ends
        early the best structure is used, ``gap_`` tells how far it can be from the optimum, and an
        :class:`OptimalityWarning` is given.
    gap_tolerance : float or None, default=None
        Relative gap at which the search stops. None stands for 1e-4: 0.01 %, as in most solvers of
        integer programs, is less than what any prediction depends on; and for 1e-6, a proof of
        optimality, if there is a ``certificate``.
    random_state : int, RandomState or None, default=None
        Seed of the search heuristics; None stands for 0.
    n_jobs : int or None, default=None
        Workers of the search, where the solver can use them; None stands for 1.
    verbose : int, default=0
        1 shows progress: lines on stderr, in a notebook a bar.
    required_arcs, forbidden_arcs : list of (parent, child), optional
        Arcs every (no) structure must have, by name; the class has the name of ``y`` or "class".
    tiers : list of lists of variables, optional
        Temporal order: no arc leads from a later tier to an earlier one. Variables that no tier
        names are free.
    missing, unseen, column_kinds, identifiers, max_states, class_weight
        As in :class:`NaiveBayesClassifier`.
    callback : callable, optional
        Called with a :class:`TracePoint` at every improvement; a true return value stops.
    memory_limit : int, str or None, default=None
        Bytes that the search may take, or text like "2 GB"; None stands for most of what the
        machine has left. A full store of open nodes is searched depth first.
    checkpoint : str, path or None, default=None
        File in which the search is kept, now and then and at its end; fitting the same data again
        goes on from it. A file of another problem is refused, so cross-validation, which fits many
        problems, cannot share one.
    certificate : str, path or None, default=None
        File for a proof of the result that ``marginbn verify`` can check; part of the time limit
        goes into writing it down. Every fit writes it again.
    rows : {"auto", "all", "groups"}, default="auto"
        Margin rows that the search works with; objective, bound and gap are those of all rows in
        any case; see *Large data* in the guide.
    dask : str, distributed.Client or None, default=None
        Search on a Dask cluster: the address of its scheduler, a client, or "local" for processes
        on this machine; not together with ``certificate``. Needs ``marginbn[dask]``.

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
        "p": validation.optional(lambda _, value: gamma_from_probability(value)),
        "margin": validation.one_of(*get_args(MarginKind)),
        "rows": lambda _, value: check_rows(value),
    }

    def __init__(
        self,
        *,
        margin: Any = "multiclass",
        gamma: float = DEFAULT_GAMMA,
        p: float | None = None,
        max_parents: int = 2,
        smoothing: float = 1.0,
        solver: str = "auto",
        time_limit: float | None = 10.0,
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

    @property
    def gamma_(self) -> float:
        """The desired log margin, as ``gamma`` or as ``p`` says."""
        return float(self.gamma) if self.p is None else gamma_from_probability(self.p)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.p is not None and self.gamma != DEFAULT_GAMMA:
            raise InputError(
                f"give either gamma or p, got gamma={self.gamma!r} and p={self.p!r}; "
                f"p={self.p!r} stands for gamma={self.gamma_:.6g}"
            )

    def _problem(self, data: EncodedData) -> StructureProblem:
        return margin_problem(
            data,
            self._candidates(data),
            margin=self.margin,
            gamma=self.gamma_,
            smoothing=self.smoothing,
        )


def single_class_result(data: EncodedData) -> SolveResult | None:
    """With one class there is no rival and nothing to separate: the empty structure, else None."""
    if data.n_classes > 1:
        return None
    return fixed_structure_result(data, [()] * data.n_variables, "single_class")
