r"""What to decide where errors cost differently: the class of least expected cost.

With C[c, d] the cost of deciding d where c is true, and P(c | x) the posterior, a row is given

    argmin_d  sum_c P(c | x) C[c, d]                                                           (1)

which is the most probable class where every error costs the same. With two classes 0 and 1 this is
a threshold: 1 is decided where P(1 | x) exceeds

    t = (C[0, 1] - C[0, 0]) / (C[0, 1] - C[0, 0] + C[1, 0] - C[1, 1])                          (2)

(Elkan, 2001). Costs change decisions only; structure, parameters and probabilities stay as they
are, so a fitted classifier may be asked with other costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginbn.exceptions import InputError
from marginbn.network.wording import listing, percent

FloatArray = NDArray[np.float64]

EXAMPLE = "{'sick': {'healthy': 5}}"
_TIE = 1e-12
"""Expected costs that differ by less, as a part of the largest cost, are equal."""


@dataclass(frozen=True, eq=False)
class CostMatrix:
    """What each decision costs; build it with :meth:`of`.

    Parameters
    ----------
    classes
        Labels as text.
    costs
        float64 (n_classes, n_classes): rows are true classes, columns decisions.

    Examples
    --------
    >>> costs = CostMatrix.of(["healthy", "sick"], {"sick": {"healthy": 5}})
    >>> costs.costs.tolist()
    [[0.0, 1.0], [5.0, 0.0]]
    >>> round(costs.threshold, 4)
    0.1667
    >>> costs.decide([[0.9, 0.1], [0.8, 0.2]]).tolist()
    [0, 1]
    """

    classes: tuple[str, ...]
    costs: FloatArray

    @classmethod
    def of(cls, classes: Sequence[Any], given: Any) -> CostMatrix:
        """The matrix that ``given`` names.

        ``given`` is a mapping from true classes to mappings from decisions to costs, in which
        what is not named costs 0 if it is right and 1 if it is wrong; or a whole matrix in the
        order of the classes; or another :class:`CostMatrix`, whose classes may be others.
        """
        names = tuple(map(str, classes))
        if isinstance(given, CostMatrix):
            return given.for_classes(names)
        if isinstance(given, Mapping):
            return cls(names, _named_costs(names, given))
        check_cost("cost", given)
        costs = np.array(given, dtype=np.float64)
        if costs.shape != (len(names), len(names)):
            raise InputError(
                f"cost must have a row and a column for each of the {len(names)} classes "
                f"({listing(names)}, in this order), got the shape {costs.shape}"
            )
        return cls(names, costs)

    def for_classes(self, classes: Sequence[Any]) -> CostMatrix:
        """The same for other classes; with one that is new, an error costs 1 as by default."""
        names = tuple(map(str, classes))
        places = {name: i for i, name in enumerate(self.classes)}
        costs = 1.0 - np.eye(len(names))
        known = [i for i, name in enumerate(names) if name in places]
        own = [places[names[i]] for i in known]
        costs[np.ix_(known, known)] = self.costs[np.ix_(own, own)]
        return CostMatrix(names, costs)

    def expected(self, probabilities: ArrayLike) -> FloatArray:
        """Expected cost of every decision, float64 (n_rows, n_classes), of posteriors like that."""
        return np.asarray(probabilities, dtype=np.float64) @ self.costs

    def decide(self, probabilities: ArrayLike) -> NDArray[np.intp]:
        """Index of the decision of least expected cost; of equal ones the most probable class."""
        shares = np.asarray(probabilities, dtype=np.float64)
        expected = self.expected(shares)
        room = _TIE * max(1.0, float(np.abs(self.costs).max(initial=0.0)))
        near = expected <= expected.min(axis=1, keepdims=True) + room
        chosen: NDArray[np.intp] = np.where(near, shares, -np.inf).argmax(axis=1)
        return chosen

    def mean(self, labels: ArrayLike, decided: ArrayLike) -> float:
        """Cost per row of decisions, both compared with the classes as text."""
        places = {name: i for i, name in enumerate(self.classes)}
        true = [places[str(label)] for label in np.asarray(labels).tolist()]
        made = [places[str(label)] for label in np.asarray(decided).tolist()]
        return float(self.costs[true, made].mean())

    @property
    def threshold(self) -> float | None:
        """Probability of the second class above which it is decided (2).

        None with more classes, and where the probability does not matter.
        """
        if len(self.classes) != 2:
            return None
        wrong_second = float(self.costs[0, 1] - self.costs[0, 0])
        wrong_first = float(self.costs[1, 0] - self.costs[1, 1])
        if wrong_second < 0 or wrong_first < 0 or wrong_second + wrong_first == 0:
            return None
        return wrong_second / (wrong_second + wrong_first)

    def sentence(self) -> str:
        """What the costs do, in a sentence."""
        if self.threshold is None:
            return "The class of least expected cost is decided."
        first, second = self.classes
        if self.threshold > 0.5:  # from the side of the class that is decided early
            first, second, share = second, first, 1.0 - self.threshold
        else:
            share = self.threshold
        return f"By cost, {second} is decided where its probability is above {percent(share)}."

    def to_dict(self) -> dict[str, Any]:
        """As JSON values: classes, matrix, and the threshold where there is one."""
        return {
            "classes": list(self.classes),
            "matrix": self.to_list(),
            "threshold": self.threshold,
        }

    def to_list(self) -> list[list[float]]:
        """The matrix as lists; also a value of the parameter ``cost``."""
        rows: list[list[float]] = self.costs.tolist()
        return rows


def costs_of(classifier: Any) -> CostMatrix | None:
    """The costs that a fitted classifier decides by; None if every error costs the same.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> clf = NaiveBayesClassifier(cost={"b": {"a": 3}}).fit([["x"], ["x"], ["z"]], ["a", "a", "b"])
    >>> costs_of(clf).sentence()
    'By cost, b is decided where its probability is above 25.00 %.'
    """
    cost = getattr(classifier, "cost", None)
    return None if cost is None else CostMatrix.of(classifier.classes_.tolist(), cost)


def check_cost(name: str, value: Any) -> None:
    """Refuse anything but None, a nested mapping of numbers, or a square matrix of them."""
    if value is None or isinstance(value, CostMatrix):
        return
    if isinstance(value, Mapping):
        for true, row in value.items():
            if not isinstance(row, Mapping):
                raise InputError(
                    f"{name}[{true!r}] must map decisions to costs, as in {EXAMPLE}, got {row!r}"
                )
            for decided, cost in row.items():
                _check_number(f"{name}[{true!r}][{decided!r}]", cost)
        return
    try:
        costs = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        costs = np.empty(0)
    if costs.ndim != 2 or costs.shape[0] != costs.shape[1] or not np.isfinite(costs).all():
        raise InputError(
            f"{name} must be None, a mapping like {EXAMPLE} (true class, then decision) or a "
            f"square matrix of numbers in the order of the classes, got {value!r}"
        )


def _check_number(name: str, value: Any) -> None:
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    if not is_number or isinstance(value, bool) or not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, got {value!r}")


def _named_costs(names: tuple[str, ...], given: Mapping[Any, Any]) -> FloatArray:
    check_cost("cost", given)
    places = {name: i for i, name in enumerate(names)}
    costs = 1.0 - np.eye(len(names))
    for true, row in given.items():
        for decided, cost in row.items():
            for label in (true, decided):
                if str(label) not in places:
                    raise InputError(
                        f"cost names {label!r}, which is no class; use {listing(names)}"
                    )
            costs[places[str(true)], places[str(decided)]] = float(cost)
    return costs
