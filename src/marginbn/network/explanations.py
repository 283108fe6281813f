"""Values that explain decisions: contributions, one row taken apart, many rows, means.

``explain.py`` makes them; they only hold, print and hand over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbn.exceptions import InputError
from marginbn.network.contributions import CLASS, FloatArray, IntArray, margins_between
from marginbn.network.labels import shorten
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import align, counted

_NUMBER = r"[-+]?[\d.]+(?:e[-+]?\d+)?"
_HALF_LINE = re.compile(rf"(?:<=|>) {_NUMBER}")  # bins of a discretised column
_INTERVAL = re.compile(rf"\({_NUMBER}, {_NUMBER}\]")

_LINES = 12
"""Contributions printed before the rest is added up in one line."""

_LINE = 96
"""Columns of a printed condition; only very long names need more."""

_MOST_EXPONENT = 12
"""Odds beyond ten to this power are printed as a power of ten."""


@dataclass(frozen=True)
class Contribution:
    """What one variable adds to a log margin.

    ``state`` is the label of its observed state, None if it is missing; for the class variable
    it is the class argued for. ``parents`` holds name and state of its parents other than the
    class, which is compared in two states.

    Examples
    --------
    >>> from marginbn import Contribution
    >>> part = Contribution("grass", "wet", 0.7, (("sprinkler", "off"),))
    >>> part.condition
    'grass = wet given sprinkler = off'
    """

    variable: str
    state: str | None
    value: float
    parents: tuple[tuple[str, str | None], ...] = ()

    @property
    def assignment(self) -> str:
        """As in ``grass = wet``."""
        return _assignment(self.variable, self.state)

    @property
    def given(self) -> str:
        """As in ``sprinkler = off, rain = no``; empty without parents."""
        return ", ".join(_assignment(*parent) for parent in self.parents)

    @property
    def condition(self) -> str:
        """As in ``grass = wet given sprinkler = off``."""
        return f"{self.assignment} given {self.given}" if self.parents else self.assignment


@dataclass(frozen=True)
class Explanation:
    """The log margin of one row, taken apart.

    Parameters
    ----------
    row
        Its position in what was explained.
    label, rival
        The class that is argued for (the predicted one unless labels were given), and the most
        probable of the others.
    predicted
        The predicted class.
    probability
        Posterior of ``label``.
    log_margin
        log P(label | known) - log P(rival | known); negative if the rival wins.
    contributions
        One per variable, class included, largest in size first (ties by index); they sum to
        ``log_margin`` up to rounding.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> explanation = NaiveBayesClassifier().fit(X, y).explain(["sun"])[0]
    >>> explanation.label, explanation.rival, round(explanation.log_margin, 3)
    ('stay', 'leave', 1.281)
    >>> [(c.variable, round(c.value, 3)) for c in explanation.contributions]
    [('class', 0.693), ('x0', 0.588)]
    """

    row: int
    label: Any
    rival: Any
    predicted: Any
    probability: float
    log_margin: float
    contributions: tuple[Contribution, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values.

        Examples
        --------
        >>> from marginbn import NaiveBayesClassifier
        >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
        >>> sorted(NaiveBayesClassifier().fit(X, y).explain(["sun"])[0].to_dict())
        ['contributions', 'label', 'log_margin', 'predicted', 'probability', 'rival', 'row']
        """
        result = asdict(self)
        for entry in result["contributions"]:
            entry["parents"] = dict(entry["parents"])
        result["contributions"] = list(result["contributions"])
        return result

    def text(self, most: int = _LINES) -> str:
        """A small table: the ``most`` largest contributions, the rest in one line, the sum.

        Examples
        --------
        >>> from marginbn import NaiveBayesClassifier
        >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
        >>> print(NaiveBayesClassifier().fit(X, y).explain(["sun"])[0].text(most=1))
        row 0: stay (p = 0.7826) against leave, odds 3.6 : 1
          class = stay      +0.6931
          1 other variable  +0.5878
          log margin        +1.2809
        """
        shown, rest = split_largest(self.contributions, most)
        rows = [[shorten(c.condition, _LINE), f"{c.value:+.4f}"] for c in shown]
        if rest:
            rows.append([name_rest(rest), f"{math.fsum(c.value for c in rest):+.4f}"])
        rows.append(["log margin", f"{self.log_margin:+.4f}"])
        title = f"row {self.row}: {self.label} (p = {self.probability:.4g}) against {self.rival}"
        if self.label != self.predicted:
            title += f", predicted {self.predicted}"
        return "\n".join([f"{title}, odds {_odds(self.log_margin)}", *align(rows)])

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(Sequence[Explanation]):
    """Explanations of many rows: a list that makes its entries when they are looked at.

    Parameters
    ----------
    network, classes
        The network, and the class labels as the classifier knows them.
    codes
        int32 (n, n_variables); -1 is missing, column 0 is not used.
    rows
        Position of each row in what was explained.
    labels, rivals
        Codes of the class argued for and of its nearest rival, (n,).
    log_joint
        float64 (n, n_classes): log P(c, known features).
    values
        float64 (n, n_variables): all contributions.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> explanations = NaiveBayesClassifier().fit(X, y).explain(X)
    >>> len(explanations), explanations[0].label
    (4, 'stay')
    >>> explanations.log_margins.round(3).tolist()
    [1.281, 1.281, 0.182, 0.182]
    """

    network: BayesianNetwork
    classes: NDArray[Any]
    codes: NDArray[np.int32]
    rows: IntArray
    labels: IntArray
    rivals: IntArray
    log_joint: FloatArray
    values: FloatArray

    @property
    def log_margins(self) -> FloatArray:
        """Log margin of every row, (n,)."""
        return margins_between(self.log_joint, self.labels, self.rivals)

    def take(self, places: IntArray) -> Explanations:
        """Only some of the explanations, in the given order.

        Examples
        --------
        >>> import numpy as np
        >>> from marginbn import NaiveBayesClassifier
        >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
        >>> NaiveBayesClassifier().fit(X, y).explain(X).take(np.array([3, 0])).rows.tolist()
        [3, 0]
        """
        return replace(
            self,
            codes=self.codes[places],
            rows=self.rows[places],
            labels=self.labels[places],
            rivals=self.rivals[places],
            log_joint=self.log_joint[places],
            values=self.values[places],
        )

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> Explanations: ...
    def __getitem__(self, index: int | slice) -> Explanation | Explanations:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        place = range(len(self))[index]  # refuses what is out of range
        joint = self.log_joint[place]
        label, rival = int(self.labels[place]), int(self.rivals[place])
        return Explanation(
            row=int(self.rows[place]),
            label=plain_label(self.classes[label]),
            rival=plain_label(self.classes[rival]),
            predicted=plain_label(self.classes[joint.argmax()]),
            probability=math.exp(joint[label] - logsumexp(joint)),
            log_margin=float(joint[label] - joint[rival]),
            contributions=tuple(self._contributions(place)),
        )

    def _contributions(self, place: int) -> Iterator[Contribution]:
        values, structure = self.values[place], self.network.structure
        for i in np.argsort(-np.abs(values), kind="stable").tolist():
            parents = [p for p in structure.parents[i] if p != CLASS]
            yield Contribution(
                self.network.names[i],
                self._state(place, i),
                float(values[i]),
                tuple((self.network.names[p], self._state(place, p)) for p in parents),
            )

    def _state(self, place: int, i: int) -> str | None:
        code = self.labels[place] if i == CLASS else self.codes[place, i]
        return None if code < 0 else self.network.variables[i].states[code]

    def __repr__(self) -> str:
        return f"Explanations({counted(len(self), 'row')})"

    def __str__(self) -> str:
        shown = "\n\n".join(str(self[i]) for i in range(min(len(self), 5)))
        return shown if len(self) <= 5 else f"{shown}\n\n... ({counted(len(self), 'row')} in all)"


@dataclass(frozen=True)
class MeanContributions:
    """Importance of the variables over a data set, most important first.

    Parameters
    ----------
    variables
        Names, ordered by ``mean_absolute``, ties by index.
    mean
        Mean contribution of each: how much it speaks for the class argued for, in nats.
    mean_absolute
        Mean size of its contribution: how much it moves decisions either way.
    n_samples
        Rows averaged over.
    argued_for
        ``"true class"`` or ``"predicted class"``.

    Examples
    --------
    >>> from marginbn import MeanContributions
    >>> mean = MeanContributions(("hue", "class"), (0.8, -0.1), (1.2, 0.4), 60, "true class")
    >>> print(mean)
    contributions for the true class, 60 rows
                mean  mean size
      hue    +0.8000     1.2000
      class  -0.1000     0.4000
    """

    variables: tuple[str, ...]
    mean: tuple[float, ...]
    mean_absolute: tuple[float, ...]
    n_samples: int
    argued_for: str

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {**asdict(self), **{k: list(getattr(self, k)) for k in _MEAN_LISTS}}

    def __str__(self) -> str:
        header = ["", "mean", "mean size"]
        rows = [
            [name, f"{mean:+.4f}", f"{size:.4f}"]
            for name, mean, size in zip(*(getattr(self, k) for k in _MEAN_LISTS), strict=True)
        ]
        title = f"contributions for the {self.argued_for}, {counted(self.n_samples, 'row')}"
        return "\n".join([title, *align([header, *rows])])


_MEAN_LISTS = ("variables", "mean", "mean_absolute")


def split_largest(
    contributions: Sequence[Contribution], most: int
) -> tuple[Sequence[Contribution], Sequence[Contribution]]:
    """Contributions to show one by one, and the rest: zeros, and what exceeds ``most``."""
    if most < 1:
        raise InputError(f"most must be at least 1, got {most}")
    n_moving = sum(c.value != 0 for c in contributions)  # sorted by size: zeros are last
    cut = min(n_moving, most)
    return contributions[:cut], contributions[cut:]


def name_rest(rest: Sequence[Contribution]) -> str:
    """As in ``3 other variables, 1 missing feature``."""
    n_missing = sum(c.state is None for c in rest)
    parts = (len(rest) - n_missing, "other variable"), (n_missing, "missing feature")
    return ", ".join(counted(count, noun) for count, noun in parts if count)


def plain_label(label: Any) -> Any:
    """A class label without numpy around it."""
    return label.item() if isinstance(label, np.generic) else label


def _assignment(variable: str, state: str | None) -> str:
    """As in ``colour = red``, ``age > 40`` or ``age in (20, 40]``."""
    if state is None:
        return f"{variable} missing"
    if _HALF_LINE.fullmatch(state):
        return f"{variable} {state}"
    return f"{variable} {'in' if _INTERVAL.fullmatch(state) else '='} {state}"


def _odds(log_margin: float) -> str:
    """As in ``3.6 : 1`` or ``1 : 20``."""
    size = abs(log_margin) / math.log(10)
    ratio = f"{10**size:.3g}" if size <= _MOST_EXPONENT else f"1e{size:.0f}"
    return f"{ratio} : 1" if log_margin >= 0 else f"1 : {ratio}"
