"""The default classifier: a proved structure, counted tables, tables trained for the class."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from marginbn.classifiers.base import ParameterKind
from marginbn.classifiers.search import DEFAULT_GAMMA, MaxMarginBNClassifier
from marginbn.classifiers.validation import check_count, check_positive, one_of, optional, parameter
from marginbn.data.preparation import TableSettings
from marginbn.problem.candidates import ClassArcs
from marginbn.problem.margins import MarginKind
from marginbn.solvers import Search

TABLE_SMOOTHING = 0.1
"""Added to every count of the counted tables. So little keeps P(class | one value) at its share in
the data: on adult a rare value was off by .27 with 1 and by .03 with .1. The search counts with 1,
as the paper does: with .1 rare values promise margins that are hard to refute (german, to the
proof: 38 s instead of 5).
"""

WORK = 40.0
"""Seconds of work of the search, counted by operations: the same structure on every machine."""


@dataclass(kw_only=True, eq=False, repr=False)
class BNClassifier(MaxMarginBNClassifier):
    """One network: structure of largest margin, proved; probabilities trained on it.

    The structure has the largest soft margin of all networks in which the class is a parent of
    every feature. ``network_`` has counted tables: it describes the data, is drawn, sampled and
    exported. For the class, tables on the same structure are trained to give good probabilities.
    One formula answers for any evidence: with all features known the trained tables, with one
    feature known its share in the training rows. See *How the default model works* in the guide.

    The result depends on table, settings and seed, not on the clock.

    Parameters
    ----------
    max_parents : int, default=2
        Parents per feature, the class counted.
    class_weight : None, "balanced" or dict, default=None
        Weight of the rows of each class; "balanced" gives all classes the same total.
    missing, column_kinds
        As in :class:`NaiveBayesClassifier`.
    identifiers : {"ignore", "use"}, default="ignore"
        Whether columns in which nearly every row has its own value are left out.
    required_arcs, forbidden_arcs : list of (parent, child), optional
        Arcs every (no) structure must have, by name; the class has the name of ``y`` or "class".
    random_state : int, RandomState or None, default=None
        Seed of folds, samples and heuristics; None means 0.
    n_jobs : int or None, default=None
        Workers of the search; None means 1.
    time_limit : float or None, default=None
        Emergency brake, in seconds for the whole fit. If it ends the fit, a warning is given.
    certificate : str, path or None, default=None
        File for a proof of the structure that ``marginbn verify`` can check.
    verbose : int, default=0
        1 shows progress: lines on stderr.
    search : Search or None, default=None
        Gap, checkpoint, cluster and the like; see :class:`marginbn.Search`.

    Attributes
    ----------
    class_model_ : ClassModel
        The trained tables, with their certified gap.
    held_out_ : HeldOut
        Labels and probabilities of the rows that chose the amount of smoothing, each predicted
        without having been learned from.

    Examples
    --------
    >>> from marginbn import BNClassifier
    >>> from sklearn.datasets import load_iris
    >>> iris = load_iris()
    >>> clf = BNClassifier().fit(iris.data, iris.target_names[iris.target])
    >>> clf.status_
    'optimal'
    >>> {name: round(p, 2) for name, p in clf.posterior({"x3": 0.2}).items()}
    {'setosa': 0.99, 'versicolor': 0.01, 'virginica': 0.01}
    """

    identifiers: Literal["ignore", "use"] = parameter("ignore", one_of("ignore", "use"))
    time_limit: float | None = parameter(None, optional(check_positive))
    verbose: int = parameter(0, check_count)

    # What a user does not choose here:
    margin: MarginKind = field(default="multiclass", init=False)
    gamma: float = field(default=DEFAULT_GAMMA, init=False)
    class_arcs: ClassArcs = field(default="all", init=False)
    parameters: ParameterKind = field(default="trained", init=False)
    smoothing: float = field(default=1.0, init=False)

    @property
    def table_smoothing(self) -> float:
        """Added to every count of the tables of ``network_``."""
        return TABLE_SMOOTHING

    def table_settings(self) -> TableSettings:
        """How this classifier makes rows to learn from of a raw table."""
        return replace(super().table_settings(), keep_identifiers=self.identifiers == "use")

    def search_settings(self) -> Search:
        """A search that stops after a fixed amount of work."""
        asked = self.search or Search()
        verbose = asked.verbose or self.verbose
        return replace(asked, work_limit=asked.work_limit or WORK, verbose=verbose)
