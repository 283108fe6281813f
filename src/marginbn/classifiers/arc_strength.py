"""How sure is an arc? The structure learned again from resampled rows, many times.

A proof of optimality says that no other structure scores higher *on these rows*. Whether other rows
of the same kind would have the same arcs is another question, answered by the bootstrap (Friedman,
Goldszmidt and Wyner, 1999): draw as many rows with replacement as there are, learn the structure
again, and count. Of n replicates

    frequency(a -> b)  = share of the structures with the arc a -> b
    strength(a, b)     = frequency(a -> b) + frequency(b -> a)
    direction(a -> b)  = frequency(a -> b) / strength(a, b)

Bins and the settings that a validation chose are kept: what is asked is how sure the structure is,
given these. Each search begins with the structure of the classifier, which is mostly nearly the
best one for the replicate too. Parameters are not learned. A replicate without one of the classes
is drawn again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginbn.classifiers import validation
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.search import VALIDATION_LIMIT, seed_of
from marginbn.data.encode import encode_training
from marginbn.data.frames import chosen_library, frame_library, make_frame
from marginbn.data.labelled import LabelledTable
from marginbn.exceptions import InputError
from marginbn.network.svg import draw_figure
from marginbn.network.wording import align, counted
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.structure import Structure, is_acyclic

_LINES = 20
"""Arcs printed before the rest is counted in one line."""


class ArcFrequency(NamedTuple):
    """How often two variables were joined, and how often in this direction."""

    parent: str
    child: str
    strength: float
    direction: float
    in_network: bool
    """Whether the classifier's network has this arc, in this direction."""

    @property
    def frequency(self) -> float:
        """Share of the structures with the arc in this direction."""
        return self.strength * self.direction


@dataclass(frozen=True, eq=False, repr=False)
class ArcStrength:
    """Arcs of the structures of resampled rows.

    Parameters
    ----------
    variables
        The class first, then the features.
    structure
        That of the classifier.
    frequencies
        float64 (n_variables, n_variables): the share of replicates with the arc from row to column.
    n
        Number of replicates.
    frames
        Library of data frames for :meth:`to_frame`; None for the one that is loaded.

    Examples
    --------
    >>> from marginbn import TANClassifier, arc_strength
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> strength = arc_strength(TANClassifier().fit(X, y), X, y, n=20)
    >>> strength.strength("class", "x2")
    1.0
    >>> strength.averaged().parents[1][0]  # the first feature has the class among its parents
    0
    """

    variables: tuple[Variable, ...]
    structure: Structure
    frequencies: NDArray[np.float64]
    n: int
    frames: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(v.name for v in self.variables)

    def strength(self, one: str, other: str) -> float:
        """Share of the replicates in which two variables are joined by an arc."""
        a, b = self._place(one), self._place(other)
        return float(self.frequencies[a, b] + self.frequencies[b, a])

    def frequency(self, parent: str, child: str) -> float:
        """Share of the replicates with this arc in this direction."""
        return float(self.frequencies[self._place(parent), self._place(child)])

    @property
    def arcs(self) -> tuple[ArcFrequency, ...]:
        """One entry per pair that was ever joined or is joined in the network, strongest first.

        Each is in its more frequent direction; where both are as frequent, in that of the network.
        """
        pairs = self._directed_pairs()
        own = set(self.structure.arcs)
        entries = []
        for parent, child in pairs:
            both = float(self.frequencies[parent, child] + self.frequencies[child, parent])
            share = float(self.frequencies[parent, child]) / both if both else 1.0
            names = self.names[parent], self.names[child]
            entries.append(ArcFrequency(*names, both, share, (parent, child) in own))
        return tuple(sorted(entries, key=lambda arc: -arc.strength))

    def averaged(self, threshold: float = 0.5) -> Structure:
        """The averaged network: all pairs joined in at least this share of the replicates.

        Arcs enter in their more frequent direction, the most frequent first. One that would close a
        cycle is turned around, or left out if that closes one too.
        """
        if not 0 < threshold <= 1:
            raise InputError(f"threshold must lie in (0, 1], got {threshold}")
        total = self.frequencies + self.frequencies.T
        kept = [pair for pair in self._directed_pairs() if total[pair] >= threshold]
        parents: list[list[int]] = [[] for _ in self.variables]
        for parent, child in sorted(kept, key=lambda pair: -self.frequencies[pair]):
            for p, c in ((parent, child), (child, parent)):
                parents[c].append(p)
                if is_acyclic(parents):
                    break
                parents[c].remove(p)
        return Structure(tuple(tuple(p) for p in parents))

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {"n": self.n, "arcs": [arc._asdict() for arc in self.arcs]}

    def to_frame(self, as_frame: str | bool | None = True) -> Any:
        """A data frame of :attr:`arcs`, of the library that ``X`` came in; or one by name."""
        arcs = self.arcs
        columns = {name: [getattr(arc, name) for arc in arcs] for name in ArcFrequency._fields}
        library = chosen_library(as_frame, self.frames)
        return columns if library is None else make_frame(columns, library)

    def widths(self) -> dict[tuple[int, int], float]:
        """Strength by arc (parent, child) of the classifier's network, for pictures."""
        total = self.frequencies + self.frequencies.T
        return {arc: float(total[arc]) for arc in self.structure.arcs}

    def __repr__(self) -> str:
        return f"ArcStrength({counted(self.n, 'replicate')}, {counted(len(self.arcs), 'pair')})"

    def __str__(self) -> str:
        rows = [["arc", "strength", "direction", "in the network"]]
        own = {(self.names[p], self.names[c]) for p, c in self.structure.arcs}
        for arc in self.arcs[:_LINES]:
            numbers = f"{arc.strength:.2f}", f"{arc.direction:.2f}"
            turned = (arc.child, arc.parent) in own
            found = "yes" if arc.in_network else "turned around" if turned else "no"
            rows.append([f"{arc.parent} -> {arc.child}", *numbers, found])
        left = len(self.arcs) - _LINES
        more = [f"  {counted(left, 'weaker pair')} not shown"] if left > 0 else []
        return "\n".join([f"arcs of {counted(self.n, 'replicate')}", *align(rows), *more])

    def _repr_html_(self) -> str:
        """The network with its arcs as thick as they are sure."""
        caption = f"Thick arcs were found in most of {counted(self.n, 'replicate')}, thin in few."
        return draw_figure(self.structure, self.variables, caption, self.widths())

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise InputError(f"unknown variable {name!r}; known are {list(self.names)}")
        return self.names.index(name)

    def _directed_pairs(self) -> list[tuple[int, int]]:
        own = set(self.structure.arcs)
        pairs = []
        for b in range(len(self.variables)):
            for a in range(b):
                there, back = self.frequencies[a, b], self.frequencies[b, a]
                if not there and not back and not {(a, b), (b, a)} & own:
                    continue
                turned = back > there or (back == there and (b, a) in own)
                pairs.append((b, a) if turned else (a, b))
        return pairs


def arc_strength(
    classifier: BaseBNClassifier,
    X: Any,
    y: Any,
    *,
    n: int = 100,
    n_jobs: int | None = None,
    random_state: Any = None,
    time_limit: float = VALIDATION_LIMIT,
) -> ArcStrength:
    """How often each arc is found when the structure is learned from resampled rows.

    Parameters
    ----------
    classifier
        Fitted; its settings are used, chosen ones included.
    X, y
        The rows it was trained with, or others of the same kind.
    n
        Number of replicates. A share of 0.5 has a standard error of 0.05 with 100 of them.
    n_jobs
        Replicates learned in parallel (joblib); the numbers are the same.
    random_state
        Seed; None stands for 0.
    time_limit
        Seconds for each search, where there is one.

    Returns
    -------
    ArcStrength

    Examples
    --------
    >>> from marginbn import GenerativeBNClassifier, arc_strength
    >>> X = [["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]] * 8
    >>> y = ["yes", "yes", "no", "no"] * 8
    >>> print(arc_strength(GenerativeBNClassifier(max_parents=1).fit(X, y), X, y, n=10))
    arcs of 10 replicates
      arc          strength  direction  in the network
      class -> x0      1.00       1.00             yes
    """
    check_is_fitted(classifier)
    validation.check_count("n", n, least=1)
    validation.check_positive("time_limit", time_limit)
    data = _encode(classifier, X, y)
    replicates = _replicates(data, n, seed_of(random_state))
    structures = Parallel(n_jobs=n_jobs)(
        delayed(_learn)(classifier, replicate, time_limit) for replicate in replicates
    )
    counts = np.zeros((data.n_variables,) * 2)
    for structure in structures:
        for arc in structure.arcs:
            counts[arc] += 1
    return ArcStrength(
        classifier.network_.variables,
        classifier.structure_,
        counts / n,
        n,
        frame_library(X),
    )


def _encode(classifier: BaseBNClassifier, X: Any, y: Any) -> EncodedData:
    """The rows in bins, as ``fit`` has them."""
    table = classifier._read_features(X)
    labels, _ = validation.read_target(y)
    if len(labels) != table.n_rows:
        raise InputError(f"X and y must be equally long, got {table.n_rows} and {len(labels)} rows")
    target = classifier.network_.names[0]
    rows = LabelledTable.of(table, labels, target).without_missing(classifier.missing, stacklevel=4)
    return encode_training(rows, classifier.missing).data


def _replicates(data: EncodedData, n: int, seed: int) -> Iterator[EncodedData]:
    """Rows drawn with replacement, as weights."""
    classes = data.codes[:, 0]
    n_rows, n_classes = len(classes), data.n_classes
    for own in np.random.SeedSequence(seed).spawn(n):
        rng = np.random.default_rng(own)
        drawn = np.zeros(n_rows)
        while np.count_nonzero(np.bincount(classes, drawn, n_classes)) < n_classes:
            drawn = rng.multinomial(n_rows, np.full(n_rows, 1.0 / n_rows)).astype(np.float64)
        yield _weighted(data, drawn)


def _weighted(data: EncodedData, drawn: NDArray[np.float64]) -> EncodedData:
    rows = np.flatnonzero(drawn)
    part = EncodedData(data.codes[rows], data.weights[rows] * drawn[rows], data.variables)
    return part.merged()


def _learn(classifier: BaseBNClassifier, data: EncodedData, time_limit: float) -> Structure:
    if data.n_classes < 2:
        return classifier.structure_  # nothing to tell apart
    return classifier._learn_again(data, time_limit)
