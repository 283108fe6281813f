"""What a report says, gathered before a line of HTML is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marginbn.classifiers import BaseBNClassifier
from marginbn.exceptions import ProblemTooLargeError
from marginbn.network.explain import mean_contributions, smallest_margins
from marginbn.network.explanations import Explanation, MeanContributions
from marginbn.network.network import BayesianNetwork
from marginbn.report.comparison import Comparison, LabelledRows

N_SAMPLES = 6
"""Rows with the smallest margins that are shown."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """What decides on some rows: importance of the variables, and the closest decisions."""

    importance: MeanContributions
    closest: tuple[Explanation, ...]
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
    comparison
        Accuracy beside other methods, None without rows.
    contributions
        None without rows, or with a single class.
    notes
        What could not be done, in sentences.
    """

    classifier: BaseBNClassifier
    title: str
    information: tuple[float, ...] | None = None
    comparison: Comparison | None = None
    contributions: Contributions | None = None
    notes: tuple[str, ...] = ()

    @property
    def network(self) -> BayesianNetwork:
        """The network of the classifier."""
        return self.classifier.network_


def gather_contributions(
    classifier: BaseBNClassifier, rows: LabelledRows, source: str
) -> Contributions | None:
    """Contributions on some rows; None where there is only one class to argue for."""
    if len(classifier.classes_) < 2:
        return None
    importance = mean_contributions(classifier, rows.features, rows.labels)
    n = min(N_SAMPLES, rows.n_rows)
    closest = smallest_margins(classifier, rows.features, rows.labels, n)
    return Contributions(importance, tuple(closest), source)


def class_information(network: BayesianNetwork) -> tuple[float, ...] | None:
    """Mutual information of every variable with the class under the network, in nats.

    I(C; X) = sum_{c, x} P(c, x) log (P(c, x) / (P(c) P(x))): how much one learns of the class on
    being told X alone.
    """
    try:
        joints = [network.posterior([0, i]) for i in range(1, network.n_variables)]
    except ProblemTooLargeError:
        return None
    return (0.0, *(_information(joint) for joint in joints))


def _information(joint: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    positive = joint > 0
    ratio = np.log(joint[positive] / independent[positive])
    return max(0.0, float((joint[positive] * ratio).sum()))


def evidence_of(explanation: Explanation, network: BayesianNetwork) -> dict[int, int]:
    """The known features of an explained row as codes, for the page to set."""
    known: dict[int, int] = {}
    for part in explanation.contributions:
        i = network.variable_index(part.variable)
        if i > 0 and part.state is not None:
            known[i] = network.variables[i].states.index(part.state)
    return known


def order_by_information(information: Sequence[float] | None, n_variables: int) -> list[int]:
    """Features, the most informative first; in the order of the table where that is unknown."""
    features = range(1, n_variables)
    if information is None:
        return list(features)
    return sorted(features, key=lambda i: (-information[i], i))
