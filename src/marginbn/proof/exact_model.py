"""From a table to its model, for the second checker: the standard library and nothing else.

``exact.py`` checks that a certificate proves its claim about coded rows. This file checks that the
rows are those of a table and that a model is the model of these rows:

1. The states that the coding of the model makes, those of its network and those of the certificate
   are equal, and so are the class labels.
2. The table, read here and encoded by the coding of the model, has the rows and weights of the
   certificate. Rows without a class, and rows that miss a value of a column without a state for
   missing values, are left out.
3. The counted tables are those of the rows.

Written from the documentation and not from the package, as ``exact.py`` is. What it cannot read (a
table that is no text file, dates, amounts) or compute again (trained tables) it refuses.
"""

from __future__ import annotations

import csv
import io
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

MISSING = {"", "?", "NA", "N/A", "n/a", "NaN", "nan"}
DELIMITERS = {".csv": ",;\t|", ".tsv": "\t", ".txt": "\t,;|"}
SMOOTHING = {"BNClassifier": 0.1}
"""Of the counted tables, where no parameter of the estimator says it."""

SAME = 1e-9
"""Numbers that another order of sums may make of the same numbers differ by less, relatively."""

Vector = list[float]
Row = tuple[int, ...]


class DifferentError(Exception):
    """Model, table and certificate do not belong together."""


def agree(condition: object, reason: str) -> None:
    """Go on only if the condition holds."""
    if not condition:
        raise DifferentError(reason)


# ------------------------------------------------------------------------------- the table


def read_table(path: str) -> tuple[list[str], list[list[str]]]:
    """Names of the columns, and the fields of every row without surrounding spaces."""
    suffix = Path(path).suffix.lower()
    if suffix not in DELIMITERS:
        raise ValueError(f"only {', '.join(DELIMITERS)} files are read here, got {path!a}")
    text = Path(path).read_bytes().decode("utf-8-sig")
    header = re.sub(r'"[^"]*"', "", text.lstrip("\r\n ").partition("\n")[0])
    known = DELIMITERS[suffix]
    delimiter = next((c for c in known if c in header), known[0])
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    every = [[field.strip() for field in row] for row in reader]
    names, *rows = [row for row in every if row and row != [""]]
    names = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    if len(set(names)) < len(names) or any(len(row) != len(names) for row in rows):
        raise ValueError("columns of the same name, or rows of another number of fields")
    return names, rows


def number_of(text: str) -> float | None:
    """The finite number that a text is, None if it is none."""
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def codes_of(values: list[Any]) -> dict[str, int]:
    """Code of every label."""
    return {str(value): code for code, value in enumerate(values)}


def find_code(text: str, values: list[Any], codes: dict[str, int]) -> int | None:
    """Code of a field: by its text, and by its number among values that are numbers."""
    if text in codes:
        return codes[text]
    number = number_of(text)
    is_plain = re.fullmatch(r"-?(?:0|[1-9][0-9]{0,17})(?:\.0+)?", text)
    if number is None or not (is_plain or any(type(v) is float for v in values)):
        return None
    equal = (c for c, v in enumerate(values) if type(v) in (int, float) and v == number)
    return next(equal, None)


class Column(NamedTuple):
    """How the fields of a column become states."""

    name: str
    coding: dict[str, Any]
    merged: frozenset[str]
    other: str

    @property
    def labels(self) -> list[str]:
        """Names of the states."""
        cuts = [repr(float(cut)).removesuffix(".0") for cut in self.coding["cuts"]]
        if self.coding["kind"] != "numeric":
            labels = [str(value) for value in self.coding["categories"]]
        elif cuts:
            inner = [f"({low}, {high}]" for low, high in pairwise(cuts)]
            labels = [f"<= {cuts[0]}", *inner, f"> {cuts[-1]}"]
        else:
            labels = ["any number"]
        missing = "(missing)"
        while missing in labels:
            missing += "_"
        return labels + [missing] * self.coding["missing_state"]

    def encode(self, text: str) -> tuple[int | None, float | None]:
        """State of a field, None if a missing value has none; the number that it is."""
        if text in MISSING:
            return (len(self.labels) - 1 if self.coding["missing_state"] else None), None
        if self.coding["kind"] == "numeric":
            number = number_of(text)
            agree(number is not None, f"{self.name!a}: {text!a} is no number")
            return bisect_left(self.coding["cuts"], number), number
        values = self.coding["categories"]
        plain = text.partition(".")[0] if find_code(text, values, {}) is None else text
        text = self.other if {text, plain} & self.merged else text
        code = find_code(text, values, codes_of(values))
        return (-1 if code is None else code), None


def columns_of(model: dict[str, Any]) -> list[Column]:
    """The columns that the model uses, in its order."""
    codings = model["coding"]
    plans = model["preparation"] or [{"name": c["name"], "kind": c["kind"]} for c in codings]
    used = [plan for plan in plans if not plan.get("left_out")]
    kinds = [(plan["name"], plan["kind"]) for plan in used]
    if kinds != [(c["name"], c["kind"]) for c in codings]:
        raise ValueError("columns of dates or amounts cannot be encoded here")
    return [
        Column(c["name"], c, frozenset(plan.get("merged", ())), plan.get("other", "other"))
        for c, plan in zip(codings, used, strict=True)
    ]


class Rows(NamedTuple):
    """Rows of a table that are used: states, class first, numbers of the features, weights."""

    states: list[Row]
    numbers: list[tuple[float | None, ...]]
    weights: Vector
    n_left_out: int
    left_out: list[str]


def encode_table(model: dict[str, Any], names: list[str], rows: list[list[str]]) -> Rows:
    """The rows of a table as the model sees them."""
    columns, classes = columns_of(model), model["classes"]
    target = None if classes is None else model["network"]["variables"][0]["name"]
    used = [*([] if target is None else [target]), *(column.name for column in columns)]
    agree(set(used) <= set(names), f"the table lacks columns: {sorted({*used} - {*names})}")
    places = [names.index(column.name) for column in columns]
    memory: list[dict[str, tuple[int | None, float | None]]] = [{} for _ in columns]
    states, numbers = [], []
    labels = codes_of(classes["labels"]) if classes else {}
    for number, row in enumerate(rows):
        found = []
        for column, place, known in zip(columns, places, memory, strict=True):
            text = row[place]
            if text not in known:
                known[text] = column.encode(text)
            found.append(known[text])
        own = row[names.index(target)] if target is not None else ""
        if any(code is None for code, _ in found) or (target is not None and own in MISSING):
            continue
        first: list[Any] = [] if target is None else [find_code(own, classes["labels"], labels)]
        coded = (*first, *(code for code, _ in found))
        is_known = all(code is not None and code >= 0 for code in coded)
        agree(is_known, f"row {number}: a value that the coding of the model has no state for")
        states.append(coded)
        numbers.append(tuple(value for _, value in found))
    weights = weights_of(model, states)
    left_out = [name for name in names if name not in used]
    return Rows(states, numbers, weights, len(rows) - len(states), left_out)


def weights_of(model: dict[str, Any], states: list[Row]) -> Vector:
    """Weights of the rows by their classes."""
    wanted = model["params"].get("class_weight")
    if wanted is None or model["classes"] is None:
        return [1.0] * len(states)
    labels, counts = list(map(str, model["classes"]["labels"])), Counter(x[0] for x in states)
    if wanted == "balanced":
        by_class = {c: len(states) / (len(counts) * n) for c, n in counts.items()}
    else:
        said = {str(label): float(weight) for label, weight in wanted["dict"]}
        by_class = {c: said.get(label, 1.0) for c, label in enumerate(labels)}
    return [by_class[x[0]] for x in states]


# ------------------------------------------------------------------------------- the model


def bind(
    model: dict[str, Any],
    variables: Any,
    rows: list[Row],
    weights: Sequence[Fraction | float],
    path: str,
) -> dict[str, Any]:
    """Bind a model, and a table if a path is given, to the rows of a certificate; returns columns
    and number of rows that are left out.
    """
    check_states(model, [(name, [*states]) for name, states in variables])
    floats = [float(w) for w in weights]
    check_counts(model, rows, floats)
    if not path:
        return {}
    found = encode_table(model, *read_table(path))
    check_rows(found, rows, floats)
    told: dict[str, Any] = {"left_out": found.left_out, "rows_left_out": found.n_left_out}
    if model["class_model"] is not None:
        raise ValueError("trained tables are not computed again here: use marginbn verify")
    return told


def check_rows(found: Rows, states: list[Row], weights: Vector) -> None:
    """The rows of a table are those of the certificate, with their weights."""
    ours, theirs = dict[Row, float](), dict[Row, float]()
    for total, rows, own in ((theirs, found.states, found.weights), (ours, states, weights)):
        for x, w in zip(rows, own, strict=True):
            total[x] = total.get(x, 0.0) + w
    more, fewer = len(theirs.keys() - ours.keys()), len(ours.keys() - theirs.keys())
    agree(
        not (more or fewer),
        f"the table, encoded by the model, has other rows than the certificate: {more} states of "
        f"rows that the certificate has not, {fewer} that it has besides",
    )
    differ = [x for x, w in ours.items() if abs(theirs[x] - w) > 1e-12 * w]
    agree(not differ, f"rows have other weights than in the certificate: {differ[:1]}")


def check_states(model: dict[str, Any], variables: list[tuple[str, list[str]]]) -> None:
    """Names and states of coding, classes and network are those of the certificate."""
    made = [(column.name, column.labels) for column in columns_of(model)]
    if model["classes"] is not None:
        name = model["network"]["variables"][0]["name"]
        made.insert(0, (name, list(map(str, model["classes"]["labels"]))))
    own = [(v["name"], v["states"]) for v in model["network"]["variables"]]
    for whose, found in (("coding", made), ("network", own)):
        differ = [a for a, b in zip(found, variables, strict=False) if a != b]
        agree(len(found) == len(variables), f"the {whose} has another number of variables")
        agree(not differ, f"states by the {whose} of the model are others: {str(differ[:1])[:200]}")


def check_counts(model: dict[str, Any], rows: list[Row], weights: Vector) -> None:
    """Counted tables are those of the rows."""
    arities = [len(v["states"]) for v in model["network"]["variables"]]
    usual = SMOOTHING.get(model["estimator"], 1.0)
    smoothing, network = float(model["params"].get("smoothing", usual)), model["network"]
    for i, (parents, table) in enumerate(
        zip(network["parents"], network["log_tables"], strict=True)
    ):
        cells: dict[Row, Vector] = {}
        for x, w in zip(rows, weights, strict=True):
            own = cells.setdefault(tuple(x[p] for p in parents), [0.0] * arities[i])
            own[x[i]] += w
        wanted: list[float | None] = []
        for h in product(*(range(arities[p]) for p in parents)):
            n = cells.get(h, [0.0] * arities[i])
            total = math.fsum(n) + smoothing * arities[i]
            wanted += [math.log((v + smoothing) / total) if v + smoothing else None for v in n]
        fine = len(table) == len(wanted) and all(
            a is b if a is None or b is None else abs(a - b) <= SAME * max(1.0, abs(b))
            for a, b in zip(table, wanted, strict=True)
        )
        agree(fine, f"the counted table of variable {i} is not that of the rows")
