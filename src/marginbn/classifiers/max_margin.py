"""The classifier of the paper: the structure of maximal soft margin, with a proven bound."""

from __future__ import annotations

import math
from typing import Any, ClassVar, get_args

from marginbn.classifiers.base import fixed_structure_result
from marginbn.classifiers.search import SearchingBNClassifier
from marginbn.classifiers.validation import Check, check_positive, one_of
from marginbn.data.encode import EncodedData
from marginbn.exceptions import InputError
from marginbn.problem.margins import MarginKind
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers.result import SolveResult


def gamma_from_probability(p: float) -> float:
    """gamma = log(p / (1 - p)): the log margin at which a sample counts as safe enough."""
    if not 0.5 < p < 1:
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
    max_parents : int, default=2
        Parents per variable, the class counted.
    smoothing : float, default=1.0
        Added to every count (Laplace).
    solver : str, default="auto"
        ``"auto"`` or a name from :func:`marginbn.available_solvers`.
    time_limit : float or None, default=60.0
        Seconds for the search. When it ends early the best structure is used, ``gap_`` tells how
        far it can be from the optimum, and an :class:`OptimalityWarning` is given.
    gap_tolerance : float, default=1e-6
        Relative gap at which the search stops.
    random_state : int, RandomState or None, default=None
        Seed of the search heuristics; None stands for 0.
    n_jobs : int or None, default=None
        Workers of the search, where the solver can use them; None stands for 1.
    verbose : int, default=0
        1 prints progress to stderr.
    required_arcs, forbidden_arcs : list of (parent, child), optional
        Arcs every (no) structure must have, by name; the class has the name of ``y`` or "class".
    missing, unseen, column_kinds
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

    Examples
    --------
    >>> from marginbn import MaxMarginBNClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MaxMarginBNClassifier(max_parents=1).fit(X, y)
    >>> clf.status_, clf.gap_ <= 1e-6
    ('optimal', True)
    """

    _CHECKS: ClassVar[dict[str, Check]] = {
        **SearchingBNClassifier._CHECKS,
        "gamma": check_positive,
        "margin": one_of(*get_args(MarginKind)),
    }

    def __init__(
        self,
        *,
        margin: Any = "multiclass",
        gamma: float = DEFAULT_GAMMA,
        max_parents: int = 2,
        smoothing: float = 1.0,
        solver: str = "auto",
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

    def _problem(self, data: EncodedData) -> StructureProblem:
        return margin_problem(
            data,
            self._candidates(data),
            margin=self.margin,
            gamma=self.gamma,
            smoothing=self.smoothing,
        )

    def _learn_structure(self, data: EncodedData) -> SolveResult:
        return single_class_result(data) or self._search(self._problem(data))


def single_class_result(data: EncodedData) -> SolveResult | None:
    """With one class there is no rival and nothing to separate: the empty structure, else None."""
    if data.n_classes > 1:
        return None
    return fixed_structure_result(data, [()] * data.n_variables, "single_class")
