"""What a report says, gathered before a line of HTML is written."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginbn.classifiers import BaseBNClassifier
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
    data: DataReport | None = None
    notes: tuple[str, ...] = ()

    @property
    def network(self) -> BayesianNetwork:
        """The network of the classifier."""
        return self.classifier.network_

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
    explanations = classifier.explain(rows.features, rows.labels)
    closest = np.argsort(explanations.log_margins, kind="stable")[:N_SAMPLES]
    return Contributions(importance, tuple(explanations.take(closest)), source)


def inspect_as_fitted(classifier: BaseBNClassifier, X: Any, y: Any) -> DataReport:
    """The table as the classifier would have it."""
    return inspect_data(
        X,
        y,
        column_kinds=classifier.column_kinds,
        missing=classifier.missing,
    )


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
