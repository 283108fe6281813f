"""Why a classifier decided as it did: the log margin as a sum over variables, eq. 12 and 13.

The log margin of a class c against a rival c' is a sum with one term, or contribution, per
variable. A positive term speaks for the class, a negative one for the rival; a term of log 2
doubles the odds. For a complete row with features z it is

    log P(c, z) - log P(c', z) = sum_i [ log P(x_i | pa_i, c) - log P(x_i | pa_i, c') ],

one entry of the table of each variable i per class. The class has a term of its own, and a variable
without the class in its family has the term zero.

Where features are missing they are summed out, and the sum over variables is another one. Put
the variables in a topological order and let o_<i be what is known of those before i. By the
chain rule

    term of an observed feature i after the class    log P(x_i | c, o_<i) - log P(x_i | c', o_<i)
    term of the class                                log P(c | o_<class) - log P(c' | o_<class)
    term of a missing feature, or one before it      0

which again adds up to log P(c, known) - log P(c', known). If all parents of i are known, o_<i may
be replaced by them (i is independent of other earlier variables given its parents), so the term is
the one from above; on a complete row both definitions agree. Only an observed variable with
a missing parent needs elimination: what its parent would have said is said by the other known
variables. These terms depend on the order (``structure.order``, ties by index); all others do not.

First the values (one contribution, one row, many rows), then the algorithm, then the
questions that users ask.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbn.data.columns import Column
from marginbn.exceptions import InputError
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import align, assignment, counted, shorten, visible
from marginbn.problem.array_types import CodeArray, FloatArray, IndexArray
from marginbn.problem.encoded import with_class_column
from marginbn.problem.structure import CLASS

_LINES = 12
"""Contributions printed before the rest is added up in one line."""

_SHOWN = 5
"""Explanations printed of many."""

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
    >>> from marginbn.network.explain import Contribution
    >>> part = Contribution("grass", "wet", 0.7, (("sprinkler", "off"),))
    >>> part.condition
    'grass = wet given sprinkler = off'
    """

    variable: str
    state: str | None
    value: float
    parents: tuple[tuple[str, str | None], ...] = ()

    @property
    def condition(self) -> str:
        """As in ``grass = wet given sprinkler = off``."""
        given = ", ".join(assignment(*parent) for parent in self.parents)
        return assignment(self.variable, self.state) + (f" given {given}" if given else "")


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
        Posterior of ``label``, as ``predict_proba`` gives it.
    log_margin
        log P(label | known) - log P(rival | known) by the network; negative if the rival wins.
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
        >>> sorted(explanation.to_dict())[:3]
        ['contributions', 'label', 'log_margin']
        """
        parts = [asdict(c) | {"parents": dict(c.parents)} for c in self.contributions]
        return asdict(self) | {"contributions": parts}

    def text(self, most: int = _LINES) -> str:
        """A small table: the ``most`` largest contributions, the rest in one line, the sum.

        Examples
        --------
        >>> print(explanation.text(most=1))
        row 0: class stay (p = 0.7826) against leave, odds 3.6 : 1
          class = stay      +0.6931
          1 other variable  +0.5878
          log-odds          +1.2809
        """
        rows = [[name, f"{value:+.4f}"] for name, value in self._terms(most)]
        return "\n".join([visible(self._title()), *align(rows)])

    def _title(self) -> str:
        asked = f"class {self.label} (p = {self.probability:.4g}) against {self.rival}"
        title = f"row {self.row}: {asked}"
        if self.label != self.predicted:
            title += f", predicted {self.predicted}"
        return f"{title}, odds {_odds(self.log_margin)}"

    def _terms(self, most: int) -> list[tuple[str, float]]:
        """The lines of the table: contributions, then zeros and what exceeds ``most`` in one line,
        the sum.
        """
        if most < 1:
            raise InputError(f"most must be at least 1, got {most}")
        # sorted by size: zeros are last
        cut = min(sum(c.value != 0 for c in self.contributions), most)
        shown, rest = self.contributions[:cut], self.contributions[cut:]
        terms = [(shorten(c.condition, _LINE), c.value) for c in shown]
        if rest:
            n_missing = sum(c.state is None for c in rest)
            parts = (len(rest) - n_missing, "other variable"), (n_missing, "missing feature")
            name = ", ".join(counted(count, noun) for count, noun in parts if count)
            terms.append((name, math.fsum(c.value for c in rest)))
        return [*terms, ("log-odds", self.log_margin)]

    def _repr_html_(self) -> str:
        """The table with bars that notebooks show."""
        from marginbn.network.svg import bar_table

        return bar_table(self._title(), self._terms(_LINES))

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
    values
        float64 (n, n_variables): all contributions.
    log_posterior
        float64 (n, n_classes): log P(c | known features).
    names_parents
        Whether a contribution is one given the parents of its variable, which it then names.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> X, y = [["sun"], ["sun"], ["rain"], ["rain"]], ["stay", "stay", "stay", "leave"]
    >>> clf = NaiveBayesClassifier().fit(X, y)
    >>> explanations = clf.explain(X)
    >>> len(explanations), explanations[0].label
    (4, 'stay')
    >>> explanations.log_margins.round(3).tolist()
    [1.281, 1.281, 0.182, 0.182]
    >>> clf.explain(X, y).log_margins.round(3).tolist()  # the last row is misclassified
    [1.281, 1.281, 0.182, -0.182]
    >>> abs(explanations.values).mean(axis=0).round(3).tolist()  # how much each variable matters
    [0.693, 0.549]
    """

    network: BayesianNetwork
    classes: NDArray[Any]
    codes: CodeArray
    rows: IndexArray
    labels: IndexArray
    rivals: IndexArray
    values: FloatArray
    log_posterior: FloatArray
    names_parents: bool = True

    @property
    def log_margins(self) -> FloatArray:
        """Log margin of every row, (n,)."""
        return margins_between(self.log_posterior, self.labels, self.rivals)

    def columns(self) -> dict[str, list[Any]]:
        """All explanations as columns by name, for a data frame of any library.

        There is a row for each explanation: ``row``, ``label``, ``rival``, ``predicted``,
        ``probability``, ``log_margin`` and the contribution of every variable under its name.

        Examples
        --------
        >>> explanations.columns()["x0"][0].__round__(3)
        0.588
        """
        columns: dict[str, list[Any]] = {
            "row": self.rows.tolist(),
            "label": self.classes[self.labels].tolist(),
            "rival": self.classes[self.rivals].tolist(),
            "predicted": self.classes[self.log_posterior.argmax(axis=1)].tolist(),
            "probability": np.exp(self.log_posterior[np.arange(len(self)), self.labels]).tolist(),
            "log_margin": self.log_margins.tolist(),
        }
        names = [f"contribution of {n}" if n in columns else n for n in self.network.names]
        return columns | dict(zip(names, self.values.T.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> Explanations: ...
    def __getitem__(self, index: int | slice) -> Explanation | Explanations:
        if isinstance(index, slice):
            by_row = ("codes", "rows", "labels", "rivals", "values", "log_posterior")
            return replace(self, **{name: getattr(self, name)[index] for name in by_row})
        place = range(len(self))[index]  # refuses what is out of range
        posterior = self.log_posterior[place]
        label, rival = int(self.labels[place]), int(self.rivals[place])
        return Explanation(
            row=int(self.rows[place]),
            label=plain_label(self.classes[label]),
            rival=plain_label(self.classes[rival]),
            predicted=plain_label(self.classes[posterior.argmax()]),
            probability=math.exp(posterior[label]),
            log_margin=float(posterior[label] - posterior[rival]),
            contributions=tuple(self._contributions(place)),
        )

    def _contributions(self, place: int) -> Iterator[Contribution]:
        values, structure = self.values[place], self.network.structure
        for i in np.argsort(-np.abs(values), kind="stable").tolist():
            parents = [p for p in structure.parents[i] if p != CLASS and self.names_parents]
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

    def _repr_html_(self) -> str:
        """The first explanations as notebooks show them."""
        shown = "".join(self[i]._repr_html_() for i in range(min(len(self), _SHOWN)))
        more = f"<p>… ({counted(len(self), 'row')} in all)</p>" if len(self) > _SHOWN else ""
        return shown + more

    def __str__(self) -> str:
        shown = "\n\n".join(str(self[i]) for i in range(min(len(self), _SHOWN)))
        more = f"\n\n... ({counted(len(self), 'row')} in all)" if len(self) > _SHOWN else ""
        return shown + more


def plain_label(label: Any) -> Any:
    """A class label without numpy around it."""
    return label.item() if isinstance(label, np.generic) else label


def _odds(log_margin: float) -> str:
    """As in ``3.6 : 1`` or ``1 : 20``."""
    size = abs(log_margin) / math.log(10)
    ratio = f"{10**size:.3g}" if size <= _MOST_EXPONENT else f"1e{size:.0f}"
    return f"{ratio} : 1" if log_margin >= 0 else f"1 : {ratio}"


def log_posteriors(log_joint: FloatArray) -> FloatArray:
    """log P(c | known features) of log P(c, known features), both (n_rows, n_classes)."""
    normalised: FloatArray = log_joint - logsumexp(log_joint, axis=1, keepdims=True)
    return normalised


Contribute = Callable[[IndexArray, IndexArray], FloatArray]
"""Contributions (n, n_variables) of codes of labels and rivals, both (n,)."""


def influence(joint: FloatArray) -> float:
    """How far knowing a variable alone moves the probabilities of the classes on average, up to 1.

    1/2 sum |P(c, s) - P(c) P(s)| of its joint distribution with the class (classes, states).

    Examples
    --------
    >>> round(influence(np.array([[0.4, 0.1], [0.1, 0.4]])), 2)
    0.3
    """
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return float(np.abs(joint - apart).sum() / 2)


def explain_codes(
    network: BayesianNetwork,
    classes: NDArray[Any],
    features: CodeArray,
    y: Any = None,
    posterior: FloatArray | None = None,
    contribute: Contribute | None = None,
) -> Explanations:
    """Explanations of encoded features (n, n_features), -1 = missing, for the labels ``y``.

    Where not the network answers, ``posterior`` are the log posteriors (n, n_classes), and
    ``contribute`` gives the parts of their log margins, each given everything else that is known.
    """
    if len(classes) < 2:
        raise InputError(
            f"explain needs a class and a rival, but the only class is {plain_label(classes[0])!r}"
        )
    codes = with_class_column(features)
    if posterior is None:
        posterior = log_posteriors(network.log_joint_per_class(codes))
    labels = posterior.argmax(axis=1) if y is None else _codes_of_labels(classes, y, len(codes))
    rivals = nearest_rivals(posterior, labels)
    if contribute is None:
        values = _split_log_margins(network, codes, labels, rivals)
    else:
        values = contribute(labels, rivals)
    about = (np.arange(len(codes)), labels, rivals, values, posterior)
    return Explanations(network, classes, codes, *about, names_parents=contribute is None)


def _codes_of_labels(classes: NDArray[Any], y: Any, n_rows: int) -> IndexArray:
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


def _split_log_margins(
    network: BayesianNetwork,
    codes: NDArray[np.integer],
    labels: IndexArray,
    rivals: IndexArray,
) -> FloatArray:
    """Contribution of every variable to the log margin of each row, float64 (n, n_variables).

    The tables must hold no zero probability, as those of a fitted classifier.
    """
    missing = np.asarray(codes) < 0
    missing[:, CLASS] = False
    order = network.structure.order
    values = np.zeros(missing.shape)
    for position, i in enumerate(order):
        family = (*network.structure.parents[i], i)
        unclear = missing[:, family[:-1]].any(axis=1)
        if CLASS in family:
            known = np.flatnonzero(~missing[:, i] & ~unclear)
            of_label, of_rival = (
                network.log_tables[i][
                    tuple(c[known] if v == CLASS else codes[known, v] for v in family)
                ]
                for c in (labels, rivals)
            )
            values[known, i] = of_label - of_rival
        blurred = np.flatnonzero(~missing[:, i] & unclear)
        if len(blurred) and CLASS in order[: position + 1]:
            arguments = codes[blurred], labels[blurred], rivals[blurred]
            values[blurred, i] = _eliminate(network, position, *arguments)
    return values


def margins_between(log_joint: FloatArray, labels: IndexArray, rivals: IndexArray) -> FloatArray:
    """Log margins from the log joint of every class, float64 (n, n_classes)."""
    rows = np.arange(len(log_joint))
    return np.asarray(log_joint[rows, labels] - log_joint[rows, rivals])


def nearest_rivals(log_joint: FloatArray, labels: IndexArray) -> IndexArray:
    """The most probable class other than ``labels``, ties by index; needs two classes."""
    others = log_joint.copy()
    others[np.arange(len(others)), labels] = -np.inf
    return np.asarray(others.argmax(axis=1))


def _eliminate(
    network: BayesianNetwork,
    position: int,
    codes: NDArray[np.integer],
    labels: IndexArray,
    rivals: IndexArray,
) -> FloatArray:
    """Term of the variable at a position of the order, by hiding all that comes later.

    Hidden variables at the end of the order are barren, so hiding them costs nothing.
    """
    *earlier, i = network.structure.order[: position + 1]
    seen = np.full(codes.shape, -1, dtype=np.int32)
    seen[:, earlier] = codes[:, earlier]
    before = margins_between(network.log_joint_per_class(seen), labels, rivals)
    if i == CLASS:
        return before  # log P(c, o_<class): the other class has the same P(o_<class)
    seen[:, i] = codes[:, i]
    return margins_between(network.log_joint_per_class(seen), labels, rivals) - before


def as_rows(X: Any) -> Any:
    """A single row (list, array, data-frame row) as a table of one row; tables as they are."""
    if getattr(X, "ndim", None) == 1 and hasattr(X, "to_frame"):  # a pandas row keeps its names
        return X.to_frame().T
    if isinstance(X, np.ndarray) and X.ndim == 1:
        return X.reshape(1, -1)
    is_list = isinstance(X, list | tuple) and bool(X)
    if is_list and not any(isinstance(cell, (Mapping, list, tuple, np.ndarray)) for cell in X):
        row = np.empty((1, len(X)), dtype=object)  # numbers and text side by side
        row[0] = X
        return row
    return X
