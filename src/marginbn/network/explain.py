"""Why a classifier decided as it did: contributions of the variables, and what-if questions.

The log margin of the predicted class against its nearest rival is a sum over variables
(``contributions.py``). A positive term speaks for the class, a negative one for the rival; a term
of log 2 doubles the odds. Missing features are summed out and have the term zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column
from marginbn.exceptions import InputError
from marginbn.network.contributions import FloatArray, IntArray, nearest_rivals, split_log_margins
from marginbn.network.explanations import Explanation, Explanations, MeanContributions, plain_label
from marginbn.network.network import BayesianNetwork


class Explainable(Protocol):
    """What is asked of a classifier; those of this package have it."""

    def explain(self, X: Any, y: Any = None) -> Explanations: ...


class HasNetwork(Protocol):
    """A fitted classifier, as far as what-if questions are concerned."""

    @property
    def network_(self) -> BayesianNetwork: ...


def explain(classifier: Explainable, X: Any, y: Any = None) -> Explanations:
    """Take apart the log margin of each row; the same as ``classifier.explain(X, y)``.

    Parameters
    ----------
    classifier
        Fitted, with at least two classes.
    X
        Rows as for ``predict``, or one row on its own (a list, an array, a data-frame row).
    y
        Labels to argue for, one per row; by default the predicted classes.

    Returns
    -------
    Explanations
        A list of :class:`Explanation`, one per row.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> clf = NaiveBayesClassifier().fit(X, y)
    >>> print(explain(clf, ["sun"])[0])
    row 0: stay (p = 0.7826) against leave, odds 3.6 : 1
      class = stay  +0.6931
      x0 = sun      +0.5878
      log margin    +1.2809
    """
    return classifier.explain(X, y)


def log_margins(classifier: Explainable, X: Any, y: Any = None) -> FloatArray:
    """Log margin of every row, for the labels ``y`` or for the predicted classes.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier, log_margins
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> clf = NaiveBayesClassifier().fit(X, y)
    >>> log_margins(clf, X, y).round(3).tolist()  # the last row is misclassified
    [1.281, 1.281, 0.182, -0.182]
    """
    return classifier.explain(X, y).log_margins


def mean_contributions(classifier: Explainable, X: Any, y: Any = None) -> MeanContributions:
    """Importance of each variable over a data set.

    With labels ``y`` the contributions argue for the true class, so a variable that misleads more
    than it helps has a negative mean; without they argue for the predicted class.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier, mean_contributions
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> print(mean_contributions(NaiveBayesClassifier().fit(X, y), X, y))
    contributions for the true class, 4 rows
                mean  mean size
      class  +0.3466     0.6931
      x0     +0.2939     0.5493
    """
    explanations = classifier.explain(X, y)
    mean, size = explanations.values.mean(axis=0), np.abs(explanations.values).mean(axis=0)
    order = np.argsort(-size, kind="stable")
    return MeanContributions(
        variables=tuple(explanations.network.names[i] for i in order),
        mean=tuple(mean[order].tolist()),
        mean_absolute=tuple(size[order].tolist()),
        n_samples=len(explanations),
        argued_for="predicted class" if y is None else "true class",
    )


def smallest_margins(classifier: Explainable, X: Any, y: Any, n: int = 10) -> list[Explanation]:
    """The ``n`` rows whose true class has the smallest log margin, worst first.

    Misclassified rows have negative margins and come first; ties are broken by row.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier, smallest_margins
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> worst = smallest_margins(NaiveBayesClassifier().fit(X, y), X, y, n=1)[0]
    >>> worst.row, worst.label, worst.predicted
    (3, 'leave', 'stay')
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n must be a whole number >= 1, got {n!r}")
    explanations = classifier.explain(X, y)
    order = np.argsort(explanations.log_margins, kind="stable")
    return list(explanations.take(order[:n]))


def what_if(
    network: BayesianNetwork | HasNetwork, evidence: Mapping[str, Any] | None = None
) -> dict[str, dict[str, float]]:
    """Posterior of every variable given some observed states, as {name: {state: probability}}.

    Parameters
    ----------
    network
        A network or a fitted classifier.
    evidence
        State label by variable name, class included if its label is known; labels that are not
        text are taken as their text, so that ``{"class": 1}`` works.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> clf = NaiveBayesClassifier().fit(X, y)
    >>> {k: round(p, 3) for k, p in what_if(clf, {"x0": "sun"})["class"].items()}
    {'leave': 0.217, 'stay': 0.783}
    """
    asked = network if isinstance(network, BayesianNetwork) else network.network_
    marginals = asked.marginals(_as_labels(evidence))
    return {
        variable.name: dict(zip(variable.states, marginals[variable.name].tolist(), strict=True))
        for variable in asked.variables
    }


def explain_codes(
    network: BayesianNetwork, classes: NDArray[Any], features: NDArray[np.int32], y: Any = None
) -> Explanations:
    """Explanations of encoded features (n, n_features), -1 = missing; see :func:`explain`."""
    if len(classes) < 2:
        raise InputError(
            f"explain needs a class and a rival, but the only class is {plain_label(classes[0])!r}"
        )
    codes = np.column_stack([np.zeros(len(features), dtype=np.int32), features])
    log_joint = network.log_joint_per_class(codes)
    labels = log_joint.argmax(axis=1) if y is None else label_codes(classes, y, len(codes))
    rivals = nearest_rivals(log_joint, labels)
    values = split_log_margins(network, codes, labels, rivals)
    rows = np.arange(len(codes))
    return Explanations(network, classes, codes, rows, labels, rivals, log_joint, values)


def label_codes(classes: NDArray[Any], y: Any, n_rows: int) -> IntArray:
    """Index of each label among the classes; labels are matched by value, then by their text."""
    labels = np.asarray(y.values if isinstance(y, Column) else y)
    if labels.shape != (n_rows,):
        raise InputError(f"y must have one label per row, {n_rows}, got shape {labels.shape}")
    by_value = {plain_label(c): k for k, c in enumerate(classes)}
    by_text = {str(c): k for c, k in by_value.items()}
    codes = [by_value.get(label, by_text.get(str(label), -1)) for label in labels.tolist()]
    if -1 in codes:
        strange = labels[codes.index(-1)]
        raise InputError(
            f"y holds {plain_label(strange)!r}, which is none of the classes {list(by_value)[:20]}"
        )
    return np.array(codes, dtype=np.intp)


def as_rows(X: Any) -> Any:
    """A single row (list, array, data-frame row) as a table of one row; tables as they are."""
    if getattr(X, "ndim", None) == 1 and hasattr(X, "to_frame"):  # a pandas row keeps its names
        return X.to_frame().T
    if isinstance(X, np.ndarray) and X.ndim == 1:
        return X.reshape(1, -1)
    if isinstance(X, list | tuple) and X and all(_is_cell(cell) for cell in X):
        row = np.empty((1, len(X)), dtype=object)  # numbers and text side by side
        row[0] = X
        return row
    return X


def _is_cell(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float | np.generic)


def _as_labels(evidence: Mapping[str, Any] | None) -> Mapping[str | int, str] | None:
    if not isinstance(evidence, Mapping):
        return evidence  # None, or something that the network refuses with a reason
    return {k: label if isinstance(label, str) else str(label) for k, label in evidence.items()}
