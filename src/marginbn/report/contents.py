"""What a report says, gathered before a line of HTML is written."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginbn.classifiers import BaseBNClassifier
from marginbn.classifiers.arc_strength import ArcStrength, arc_strength
from marginbn.classifiers.decisions import CostMatrix, costs_of
from marginbn.classifiers.measures import Quality
from marginbn.data.inspection import DataReport, inspect_data
from marginbn.data.labelled import LabelledTable
from marginbn.exceptions import DataWarning, ProblemTooLargeError
from marginbn.network import explain
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import counted
from marginbn.report.comparison import Comparison, measure_seen
from marginbn.report.effects import Effect, measure_effects

N_SAMPLES = 6
"""Rows with the smallest margins that are shown."""

REPLICATES = 100
BOOTSTRAP_SECONDS = 8.0
"""The arcs of small tables are learned again so often, within so many seconds of computing."""

LEAST_REPLICATES = 20
"""Fewer say too little."""

_AT_A_TIME = 5
_SMALL = 4_000_000
"""Rows times squared features beyond which arcs are not learned again by default."""

_REPLICATE_SECONDS = 2.0

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Contributions:
    """What decides on some rows: importance of the variables, and the closest decisions."""

    importance: explain.MeanContributions
    closest: tuple[explain.Explanation, ...]
    source: str


@dataclass(frozen=True, eq=False)
class Report:
    """Everything on the page.

    Parameters
    ----------
    classifier
        Fitted.
    title
        Heading of the page.
    information
        Mutual information of each variable with the class, in nats (0 for the class itself);
        None where it is too much to compute.
    effects
        What each state does to the log odds; None with one class, or where it is too much.
    comparison
        Quality next to other methods on rows that were not learned; None if not measured.
    seen
        Quality on the rows given, which may have been learned from; None without rows.
    contributions
        None without rows, or with a single class.
    strength
        How sure the arcs are; None where that was not asked.
    data
        What the rows given hold; None without rows.
    notes
        What could not be done, in sentences.
    """

    classifier: BaseBNClassifier
    title: str
    information: tuple[float, ...] | None = None
    effects: tuple[Effect, ...] | None = None
    comparison: Comparison | None = None
    seen: Quality | None = None
    contributions: Contributions | None = None
    strength: ArcStrength | None = None
    data: DataReport | None = None
    notes: tuple[str, ...] = ()

    @property
    def network(self) -> BayesianNetwork:
        """The network of the classifier."""
        return self.classifier.network_

    @property
    def costs(self) -> CostMatrix | None:
        """What errors cost, where the classifier decides by that."""
        return costs_of(self.classifier)

    @property
    def order(self) -> list[int]:
        """Features with a choice of states, the most informative first."""
        ordered = order_by_information(self.information, self.network.n_variables)
        return [i for i in ordered if self.network.arities[i] > 1]

    def deciding(self, most: int) -> list[int]:
        """The features that decide most: on the rows given, or by what the network says."""
        if self.contributions is None:
            return self.order[:most]
        names = self.contributions.importance.variables
        places = (self.network.variable_index(name) for name in names)
        return [i for i in places if i > 0 and self.network.arities[i] > 1][:most]


def gather_rows(
    report: Report, X: Any, y: Any, rows: LabelledTable, test: LabelledTable | None
) -> Report:
    """Add what labelled rows say, but for the measures that need learning again."""
    shown, kind = (test, "test row") if test is not None else (rows, "row")
    source = f"the {counted(shown.n_rows, kind)} given"
    classifier = report.classifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the page says it
        return replace(
            report,
            contributions=gather_contributions(classifier, shown, source),
            effects=measure_effects(classifier, rows),
            seen=measure_seen(classifier, rows),
            data=inspect_as_fitted(classifier, X, y),
        )


def gather_contributions(
    classifier: BaseBNClassifier, rows: LabelledTable, source: str
) -> Contributions | None:
    """Contributions on some rows; None where there is only one class to argue for."""
    if len(classifier.classes_) < 2:
        return None
    importance = explain.mean_contributions(classifier, rows.features, rows.labels)
    n = min(N_SAMPLES, rows.n_rows)
    closest = explain.smallest_margins(classifier, rows.features, rows.labels, n)
    return Contributions(importance, tuple(closest), source)


def inspect_as_fitted(classifier: BaseBNClassifier, X: Any, y: Any) -> DataReport:
    """The table as the classifier would have it."""
    return inspect_data(
        X,
        y,
        column_kinds=classifier.column_kinds,
        missing=classifier.missing,
        identifiers="ignore" if classifier.identifiers == "error" else classifier.identifiers,
        max_states=classifier.max_states,
        min_count=classifier.min_count,
    )


def gather_strength(
    classifier: BaseBNClassifier, X: Any, y: Any, n_rows: int, n: int | None, say: Say
) -> ArcStrength | None:
    """How sure the arcs are by ``n`` replicates; None asks for what small tables allow."""
    if n == 0 or not has_arcs_to_doubt(classifier):
        return None
    if n is None and n_rows * classifier.network_.n_variables**2 > _SMALL:
        return None
    say("learning the arcs again from resampled rows" + (f", {n} times" if n is not None else ""))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the page says it
        if n is None:
            return _within_time(classifier, X, y)
        return arc_strength(classifier, X, y, n=n)


def has_arcs_to_doubt(classifier: BaseBNClassifier) -> bool:
    """Whether other rows could have had other arcs; those of naive Bayes are given."""
    solver = classifier.result_.solver
    return len(classifier.classes_) > 1 and solver not in ("naive_bayes", "a1de")


def _within_time(classifier: BaseBNClassifier, X: Any, y: Any) -> ArcStrength | None:
    begin, parts = time.process_time(), []
    for place in range(REPLICATES // _AT_A_TIME):
        parts.append(
            arc_strength(
                classifier,
                X,
                y,
                n=_AT_A_TIME,
                random_state=place,
                time_limit=_REPLICATE_SECONDS,
            )
        )
        if time.process_time() - begin > BOOTSTRAP_SECONDS:
            break
    n = _AT_A_TIME * len(parts)
    if n < LEAST_REPLICATES:
        return None
    mean = np.mean([part.frequencies for part in parts], axis=0)
    return replace(parts[0], frequencies=mean, n=n)


def class_information(network: BayesianNetwork) -> tuple[float, ...] | None:
    """Mutual information of every variable with the class under the network, in nats.

    I(C; X) = sum_{c, x} P(c, x) log (P(c, x) / (P(c) P(x))): how much one learns of the class from
    X alone.
    """
    try:
        joints = [network.posterior_array([0, i]) for i in range(1, network.n_variables)]
    except ProblemTooLargeError:
        return None
    return (0.0, *(_information(joint) for joint in joints))


def _information(joint: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    positive = joint > 0
    ratio = np.log(joint[positive] / independent[positive])
    return max(0.0, float((joint[positive] * ratio).sum()))


def order_by_information(information: Sequence[float] | None, n_variables: int) -> list[int]:
    """Features, the most informative first; in the order of the table where that is unknown."""
    features = range(1, n_variables)
    if information is None:
        return list(features)
    return sorted(features, key=lambda i: (-information[i], i))
