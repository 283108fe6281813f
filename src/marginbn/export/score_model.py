"""A classifier as sums of table entries: what runs without this library.

The class posterior of a Bayesian network needs only the families that hold the class. Their log
tables, as differences to the first class 0, are added up:

    s_c(x) = bias_c + sum_F T_F[x_F, c],      s_0 = 0
    P(c | x) = softmax_c s(x)

That is all that SQL and ONNX have to do (``sql.py``, ``onnx_graph.py``).

**Missing values.** A value that is missing (or a category that training never saw) is summed out.
That stays a table entry for two kinds of features, whatever else is missing:

- a *leaf*, a feature without children: its family sums to one for every class, so its entry is 0;
- a feature in no family with the class: it says nothing at all and is left out.

Of all others an export asks for a value: without it there is no answer (SQL: NULL, ONNX: NaN). A
column that was fitted with ``missing="state"`` has a state for missing values and always an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marginbn.data.columns import Scalar, parse_number, whole_as_int
from marginbn.data.encode import Coding
from marginbn.exceptions import InputError
from marginbn.network.network import BayesianNetwork
from marginbn.problem.array_types import FloatArray, IndexArray


@dataclass(frozen=True)
class Feature:
    """A column and what becomes of its values: codes 0, 1, ...; None where a value is asked for.

    ``n_codes`` counts the states and, if a missing value is one more table entry, that.
    ``merged`` are labels of rare categories, which share the state called ``other``.
    """

    coding: Coding
    n_codes: int
    missing_code: int | None
    unseen_code: int | None
    merged: tuple[str, ...] = ()
    other: str = ""

    @property
    def category_codes(self) -> dict[Scalar, int]:
        """The code of every category, rare ones included, each of the type that its column has."""
        codes: dict[Scalar, int] = {c: k for k, c in enumerate(self.coding.categories)}
        if not self.merged:
            return codes
        shared = codes[self.other]
        own = [category for category in codes if category != self.other]
        if any(isinstance(category, (int, float)) for category in own):
            numbers = {whole_as_int(parse_number(label) or 0.0): shared for label in self.merged}
            return {category: codes[category] for category in own} | numbers
        return codes | dict.fromkeys(self.merged, shared)

    @property
    def name(self) -> str:
        """Of the column."""
        return self.coding.name


@dataclass(frozen=True, eq=False)
class Term:
    """A table that is looked up: an axis per member (a feature by index), classes 1, 2, ... last.

    ``groups`` has for each member the row of its axis that each of its codes has.
    """

    members: tuple[int, ...]
    groups: tuple[IndexArray, ...]
    table: FloatArray


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """Features, classes and the sum of terms; ``target`` is the name of the class.

    ``bias`` is of classes 1, 2, ... The most probable class is predicted; ties go to the first.
    ``notes`` tell what columns must hold.
    """

    target: str
    classes: tuple[object, ...]
    features: tuple[Feature, ...]
    bias: FloatArray
    terms: tuple[Term, ...]
    notes: tuple[str, ...] = ()

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def used(self) -> tuple[int, ...]:
        """Features that some term looks at."""
        return tuple(sorted({i for term in self.terms for i in term.members}))

    @property
    def refuses_rows(self) -> bool:
        """Whether a missing value or a new category can leave a row without an answer."""
        used = [self.features[i] for i in self.used]
        return any(
            f.missing_code is None or (f.coding.kind == "categorical" and f.unseen_code is None)
            for f in used
        )


def score_model(
    network: BayesianNetwork,
    codings: Sequence[Coding],
    classes: Sequence[object],
    merged: Mapping[str, tuple[tuple[str, ...], str]] | None = None,
) -> ScoreModel:
    """The model of a network; ``merged`` has the rare categories of a column and the state that
    they share.
    """
    for variable, table in zip(network.variables, network.log_tables, strict=True):
        if np.isneginf(table).any() and variable.arity > 1:
            raise InputError(
                f"the table of {variable.name!r} has probabilities of zero, whose logarithms no "
                "sum of points holds; fit with smoothing > 0"
            )
    with_children = {p for parents in network.structure.parents for p in parents}
    features = []
    for i, coding in enumerate(codings, 1):
        n_states, is_leaf = coding.variable.arity, i not in with_children
        summed_out = n_states if is_leaf else None
        missing = n_states - 1 if coding.missing_state else summed_out
        unseen = summed_out if coding.kind == "categorical" else None
        names = (merged or {}).get(coding.name, ((), ""))
        features.append(Feature(coding, n_states + is_leaf, missing, unseen, *names))
    bias = np.zeros(network.n_classes - 1)
    terms: list[Term] = []
    for i, parents in enumerate(network.structure.parents):
        table = network.log_tables[i]
        if i == 0:
            axes = parents
        elif 0 in parents:
            axes = (*(p for p in parents if p), i)
            table = np.moveaxis(table, 0, -1)  # the class last
        else:
            continue
        table = table[..., 1:] - table[..., :1]
        if not axes:
            bias = bias + table
        elif np.any(table):
            if i and features[i - 1].n_codes > table.shape[-2]:  # 0 where a leaf is missing
                table = np.concatenate([table, np.zeros_like(table[..., :1, :])], axis=-2)
            groups = tuple(map(np.arange, table.shape[:-1]))
            terms.append(Term(tuple(v - 1 for v in axes), groups, table))
    target = network.names[0]
    return ScoreModel(target, tuple(classes), tuple(features), bias, tuple(terms))
