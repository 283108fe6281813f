"""From a table to its model, for the second checker: the standard library and nothing else.

``exact.py`` checks that a certificate proves its claim about coded rows. This file checks that the
rows are those of a table and that a model is the model of these rows:

1. The states that the coding of the model makes, those of its network and those of the certificate
   are equal, and so are the class labels.
2. The table, read here and encoded by the coding of the model, has the rows and weights of the
   certificate. Rows without a class, and rows that miss a value of a column without a state for
   missing values, are left out. Amounts become numbers, and dates year, month and weekday.
3. The counted tables are those of the rows.
4. The trained tables (``docs/theory/class_model``): class shares, cells and basis are computed
   again, then the penalised loss J and its gradient g, which bounds J - min J by
   sum g^2 / (2 lam). The cuts of the cells and the precisions lam are those of the model.

Written from the documentation and not from the package, as ``exact.py`` is. Cells and basis are
the double-precision numbers found here; the gap includes the error of everything that follows, as
the page ``certificate_format`` says.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate, chain, combinations, pairwise, product
from operator import mul
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

MISSING = {"", "?", "NA", "N/A", "n/a", "NaN", "nan"}
DELIMITERS = {".csv": ",;\t|", ".tsv": "\t", ".txt": "\t,;|"}

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


def find_code(text: str, values: list[Any], by_text: bool = True) -> int | None:
    """Code of a field: by its text, and by its number among values that are numbers."""
    codes = {str(value): code for code, value in enumerate(values) if by_text}
    if text in codes:
        return codes[text]
    number = number_of(text)
    is_plain = re.fullmatch(r"-?(?:0|[1-9][0-9]{0,17})(?:\.0+)?", text)
    if number is None or not (is_plain or any(type(v) is float for v in values)):
        return None
    equal = (c for c, v in enumerate(values) if type(v) in (int, float) and v == number)
    return next(equal, None)


AMOUNT = re.compile(
    r"(\(?)\s*([^\d.,()]*)((?:\d[\d.,'\u2019\s]*|[.,]\d+)(?:[eE][-+]?\d+)?)\s*([^\d()]*?)\s*(\)?)"
)
FACTORS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "bn": 1e9}
DATES = {"date": (0, 1, 2), "day-first": (2, 1, 0), "month-first": (2, 0, 1)}
DATE = re.compile(r"(\d+)([-/.])(\d+)\2(\d+)(?:[ T].*)?")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PARTS = ("year", "month", "weekday")


def read_amount(text: str, kind: str) -> tuple[float, str, str] | None:
    """The number of an amount, and the units before and after it."""
    found = AMOUNT.fullmatch(text)
    if found is None or bool(found[1]) != bool(found[5]):
        return None
    marks = "," if kind == "amount" else "."
    number = number_of(re.sub(rf"[{marks}'\u2019\s]", "", found[3]).replace(",", "."))
    before, after = re.sub(r"[-+\u2212\s]", "", found[2]).casefold(), found[4]
    if number is None:
        return None
    number *= FACTORS.get(after, 1.0)
    unit = "" if after in FACTORS or after == "+" else after.casefold().removesuffix("s")
    return -number if found[1] or re.search(r"[-\u2212]", found[2]) else number, before, unit


def read_date(text: str, kind: str) -> tuple[str, str, str] | None:
    """Year, month and weekday of a date; one that begins with the year is read by every kind."""
    try:
        if found := DATE.fullmatch(text):
            numbers = [int(found[place]) for place in (1, 3, 4)]
            order = DATES["date"] if len(found[1]) == 4 else DATES[kind]
            day = datetime.date(*(numbers[place] for place in order))
        else:
            day = datetime.datetime.fromisoformat(text).date()
    except ValueError:
        return None
    return str(day.year), str(day.month), WEEKDAYS[day.weekday()]


class Column(NamedTuple):
    """How the fields of a column become states; ``plan`` is what the preparation does with it."""

    plan: dict[str, Any]
    coding: dict[str, Any]
    part: int  # of a date
    units: dict[int, str]  # of the amounts so far, before and after the number

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
        kind, merged = self.plan["kind"], self.plan.get("merged", ())
        is_amount = kind in ("amount", "decimal-comma")
        if text in MISSING or (is_amount and text in merged):
            return (len(self.labels) - 1 if self.coding["missing_state"] else None), None
        if kind in DATES:
            parts = read_date(text, kind)
            agree(parts, f"{self.plan['name']!a}: {text!a} is no date")
            text = parts[self.part] if parts else ""
        if self.coding["kind"] == "numeric":
            found = read_amount(text, kind) if is_amount else (number_of(text), "", "")
            agree(found and found[0] is not None, f"{self.plan['name']!a}: {text!a} is no number")
            number, *units = found or (0.0,)
            for i, unit in enumerate(units):
                same = not unit or self.units.setdefault(i, unit) == unit
                agree(same, f"{self.plan['name']!a}: {text!a} has another unit")
            return bisect_left(self.coding["cuts"], number), number
        values = self.coding["categories"]
        plain = text.partition(".")[0] if find_code(text, values, False) is None else text
        text = self.plan.get("other", "other") if not {text, plain}.isdisjoint(merged) else text
        code = find_code(text, values)
        return (-1 if code is None else code), None


def columns_of(model: dict[str, Any]) -> list[Column]:
    """The columns that the model uses, in its order."""
    codings = model["coding"]
    plans = model["preparation"] or [{"name": c["name"], "kind": c["kind"]} for c in codings]
    used = [plan for plan in plans if not plan.get("left_out")]
    made = [
        (plan, part, f"{plan['name']} {name}" if name else plan["name"])
        for plan in used
        for part, name in enumerate(PARTS if plan["kind"] in DATES else [""])
    ]
    if [name for _, _, name in made] != [c["name"] for c in codings]:
        raise ValueError("the columns of the preparation are not those of the coding")
    pairs = zip(made, codings, strict=True)
    return [Column(plan, coding, part, {}) for (plan, part, _), coding in pairs]


class Rows(NamedTuple):
    """Rows of a table that are used: states, class first, numbers of the features, weights."""

    states: list[Row]
    numbers: list[tuple[float | None, ...]]
    weights: Vector
    n_left_out: int
    left_out: list[str]

    @property
    def n_rows(self) -> int:
        """Of the table."""
        return len(self.states) + self.n_left_out


def encode_table(model: dict[str, Any], names: list[str], rows: list[list[str]]) -> Rows:
    """The rows of a table as the model sees them."""
    columns, classes = columns_of(model), model["classes"]
    target = None if classes is None else model["network"]["variables"][0]["name"]
    used = [*([] if target is None else [target]), *(c.plan["name"] for c in columns)]
    agree(set(used) <= set(names), f"the table lacks columns: {sorted({*used} - {*names})}")
    places = [names.index(column.plan["name"]) for column in columns]
    encoders = list(zip((cache(column.encode) for column in columns), places, strict=True))
    class_of = cache(lambda text: find_code(text, classes["labels"]))
    states, numbers = [], []
    for number, row in enumerate(rows):
        found = [encode(row[place]) for encode, place in encoders]
        own = row[names.index(target)] if target is not None else ""
        if any(code is None for code, _ in found) or (target is not None and own in MISSING):
            continue
        first: list[Any] = [] if target is None else [class_of(own)]
        coded = (*first, *(code for code, _ in found))
        is_known = all(code is not None and code >= 0 for code in coded)
        agree(is_known, f"row {number}: a value that the coding of the model has no state for")
        states.append(coded)
        numbers.append(tuple(value for _, value in found))
    n_used = model["n_samples"]
    agree(n_used == len(states), f"the table has {len(states)} rows to learn from, not {n_used}")
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
    and number of rows that are left out, and the gap of trained tables (infinite without a table).
    """
    check_states(model, [(name, [*states]) for name, states in variables])
    floats = [float(w) for w in weights]
    check_counts(model, rows, floats)
    if not path:
        return {"trained_gap": math.inf if model.get("class_model") else 0.0}
    found = encode_table(model, *read_table(path))
    check_rows(found, rows, floats)
    return {
        "left_out": found.left_out,
        "rows_left_out": found.n_left_out,
        "trained_gap": check_training(model, found),
    }


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
        f"rows that the certificate has not, {fewer} that only it has",
    )
    differ = [x for x, w in ours.items() if not abs(theirs[x] - w) <= 1e-12 * w]
    agree(not differ, f"rows have other weights than in the certificate: {differ[:1]}")


def check_states(model: dict[str, Any], variables: list[tuple[str, list[str]]]) -> None:
    """Names and states of coding, classes and network are those of the certificate."""
    made = [(column.coding["name"], column.labels) for column in columns_of(model)]
    if model["classes"] is not None:
        name = model["network"]["variables"][0]["name"]
        made.insert(0, (name, list(map(str, model["classes"]["labels"]))))
    own = [(v["name"], v["states"]) for v in model["network"]["variables"]]
    for whose, found in (("coding", made), ("network", own)):
        agree(len(found) == len(variables), f"the {whose} has another number of variables")
        for a, b in zip(found, variables, strict=True):
            told = f"{str(a)[:200]} instead of {str(b)[:200]}"
            agree(a == b, f"states by the {whose} of the model are others: {told}")


def check_counts(model: dict[str, Any], rows: list[Row], weights: Vector) -> None:
    """Counted tables are those of the rows."""
    arities = [len(v["states"]) for v in model["network"]["variables"]]
    usual = 0.1 if model["estimator"] == "BNClassifier" else 1.0
    smoothing, network = float(model["params"].get("smoothing", usual)), model["network"]
    pairs = zip(network["parents"], network["log_tables"], strict=True)
    for i, (parents, table) in enumerate(pairs):
        cells: dict[Row, Vector] = {}
        for x, w in zip(rows, weights, strict=True):
            own = cells.setdefault(tuple(x[p] for p in parents), [0.0] * arities[i])
            own[x[i]] += w
        wanted: list[float | None] = []
        for h in product(*(range(arities[p]) for p in parents)):
            n = cells.get(h, [0.0] * arities[i])
            total = math.fsum(n) + smoothing * arities[i]
            wanted += [math.log((v + smoothing) / total) if v + smoothing else None for v in n]
        agree(close(table, wanted), f"the counted table of variable {i} is not that of the rows")


# ------------------------------------------------------------------------------- trained tables

MOST_PRODUCT, ATOM, LEAST_ATOM_CELLS, CLIPPED, OFFSET_PRECISION = 16, 3.0, 8, 0.01, 1 / 900
LINE, EFFECT, FAMILY = range(3)
ROUNDING = 2.0**-53
"""Largest relative error of one rounded operation in double precision."""


class Side(NamedTuple):
    """Functions of a feature: values in every cell, order and group of each; cells of codes."""

    basis: list[Vector]
    orders: list[int]
    groups: list[int]
    cell_of: list[int]


class Table(NamedTuple):
    """An effect or a family table: two features and sides, products of functions, parameters."""

    features: tuple[int, int]
    sides: tuple[Side, Side]
    products: list[tuple[int, int]]
    first: int

    def entries(self, parameters: Vector) -> list[Vector]:
        """The table of some parameters: A V B'."""
        a, b = (side.basis for side in self.sides)
        found = []
        for row in a:
            by_column = [0.0] * len(b[0])
            for place, (k, m) in enumerate(self.products, self.first):
                by_column[m] += row[k] * parameters[place]
            found.append([sum(map(mul, by_column, other)) for other in b])
        return found

    def gradient(self, by_entry: list[Vector]) -> Vector:
        """Derivatives by the parameters from those by the entries."""
        left, right = (list(zip(*side.basis, strict=True)) for side in self.sides)
        half = [[sum(map(mul, own, column)) for column in right] for own in by_entry]
        across = list(zip(*half, strict=True))
        return [sum(map(mul, left[k], across[m])) for k, m in self.products]

    @property
    def sizes(self) -> Vector:
        """Largest size of every product of functions."""
        left, right = ([max(map(abs, c)) for c in zip(*s.basis, strict=True)] for s in self.sides)
        return [left[k] * right[m] for k, m in self.products]


def centred(weights: Vector) -> list[Vector]:
    """Indicators of the cells minus their shares."""
    total = math.fsum(weights)
    return [[(i == j) - w / total for j, w in enumerate(weights)] for i in range(len(weights))]


def walk(shares: Vector) -> list[Vector]:
    """Steps between neighbouring cells, centred, of mean variance 1."""
    n = len(shares)
    above = [math.fsum(shares[k + 1 :]) for k in range(n - 1)]
    steps = [[(j > k) - above[k] for k in range(n - 1)] for j in range(n)]
    squares = (w * v * v for w, own in zip(shares, steps, strict=True) for v in own)
    size = math.sqrt(math.fsum(squares))
    return [[v / size for v in own] for own in steps]


def smooth(shares: Vector) -> list[Vector]:
    """Left singular vectors of sqrt(w) S times singular values over sqrt(w), from smooth to rough,
    positive in the last cell: columns of S sqrt(w) are rotated in pairs until all are orthogonal.
    """
    roots = [math.sqrt(w) for w in shares]
    columns = [
        [r * v for r, v in zip(roots, c, strict=True)] for c in zip(*walk(shares), strict=True)
    ]
    for _ in range(60):  # sweeps of Jacobi's method, which needs about ten
        rest = 0.0
        for p, q in combinations(range(len(columns)), 2):
            a, b = columns[p], columns[q]
            square, other, both = sum(map(mul, a, a)), sum(map(mul, b, b)), sum(map(mul, a, b))
            size = math.sqrt(square * other)
            rest = max(rest, abs(both) / size)
            if abs(both) > 1e-16 * size:
                tau = (other - square) / (2 * both)
                t = math.copysign(1.0, tau) / (abs(tau) + math.hypot(1.0, tau))
                c = 1 / math.hypot(1.0, t)
                s = c * t
                columns[p] = [c * x - s * y for x, y in zip(a, b, strict=True)]
                columns[q] = [s * x + c * y for x, y in zip(a, b, strict=True)]
        if rest < 1e-14:
            break
    columns.sort(key=lambda column: -sum(map(mul, column, column)))
    columns = [[v / r for v, r in zip(c, roots, strict=True)] for c in columns[:MOST_PRODUCT]]
    signed = [[math.copysign(1.0, c[-1]) * v for v in c] for c in columns]
    return [list(row) for row in zip(*signed, strict=True)]


def side_of(cells: dict[str, Any], coding: dict[str, Any], group: int) -> Side:
    """Functions of a feature for its effect (``EFFECT``) or for family tables (``FAMILY``)."""
    cell_of = cells["family"] if group == FAMILY else [*range(len(cells["weights"]))]
    agree(min(cell_of) >= 0, "a negative cell")
    weights = [0.0] * (max(cell_of) + 1)
    for cell, w in zip(cell_of, cells["weights"], strict=True):
        weights[cell] += w
    n = len(weights)
    numbers = n - coding["missing_state"]
    if sum(w > 0 for w in weights) < 2:
        return Side([[] for _ in weights], [], [], cell_of)
    if coding["kind"] != "numeric" or numbers <= 2:
        basis = centred(weights)
        if group == FAMILY:
            basis = [row[:1] for row in basis] if n == 2 else basis
            squares = (w * v * v for w, row in zip(weights, basis, strict=True) for v in row)
            size = math.sqrt(math.fsum(squares) / math.fsum(weights))
            basis = [[v / size for v in row] for row in basis]
        return Side(basis, [1] * len(basis[0]), [group] * len(basis[0]), cell_of)
    total = math.fsum(weights[:numbers])
    shares = [w / total for w in weights[:numbers]]
    if group == FAMILY:
        basis = smooth(shares)
        orders = [*range(1, len(basis[0]) + 1)]
    else:
        heavy = ATOM * median(shares) if numbers > LEAST_ATOM_CELLS else math.inf
        atoms = [j for j, w in enumerate(shares) if w >= heavy]
        own = zip(cells["positions"], walk(shares), centred(shares), strict=True)
        basis = [[z, *steps, *(each[j] for j in atoms)] for z, steps, each in own]
        orders = [1] * len(basis[0])
    if n > numbers:  # the missing value has a function of its own
        basis = [*([*row, 0.0] for row in basis), [0.0] * len(orders) + [1.0]]
        orders.append(1)
    first = LINE if group == EFFECT else group
    return Side(basis, orders, [first, *[group] * (len(orders) - 1)], cell_of)


def make_tables(model: dict[str, Any]) -> list[Table]:
    """Effects of all features, then a family table per pair."""
    trained, tables = model["class_model"], list[Table]()
    own = list(zip(trained["cells"], model["coding"], strict=True))
    effects = [side_of(cells, coding, EFFECT) for cells, coding in own]
    families = {
        i: side_of(own[i][0], own[i][1], FAMILY)
        for i in {v for pair in trained["pairs"] for v in pair}
    }
    ones = [Side([[1.0]], [1], [EFFECT], [0] * len(side.cell_of)) for side in effects]
    pairs = [(i, i, a, one) for i, (a, one) in enumerate(zip(effects, ones, strict=True))]
    pairs += [(i, j, families[i], families[j]) for i, j in trained["pairs"]]
    first = 1
    for i, j, a, b in pairs:
        every = product(enumerate(a.orders), enumerate(b.orders))
        products = [(k, m) for (k, x), (m, y) in every if x * y <= MOST_PRODUCT]
        tables.append(Table((i, j), (a, b), products, first))
        first += len(products)
    return tables


def check_training(model: dict[str, Any], rows: Rows) -> float:
    """Certified gap of the trained tables, 0 if there are none; J and the gap are as claimed."""
    trained = model.get("class_model")
    if trained is None:
        return 0.0
    codes = cell_codes(model, rows)
    n_classes, weight = len(model["classes"]["labels"]), math.fsum(rows.weights)
    counts = [0.5] * n_classes
    for x, w in zip(rows.states, rows.weights, strict=True):
        counts[x[0]] += w
    shares = [math.log(n / math.fsum(counts)) for n in counts]
    shares = [shares[1] - shares[0]] if n_classes == 2 else shares
    agree(close(trained["log_shares"], shares), "the class shares are not those of the rows")
    families = (
        sorted(v - 1 for v in (i, *parents) if v)
        for i, parents in enumerate(model["network"]["parents"])
        if 0 in parents
    )
    pairs = sorted({pair for family in families for pair in combinations(family, 2)})
    precisions = [math.inf if p == "inf" else float(p) for p in trained["precisions"]]
    pairs = pairs if math.isfinite(precisions[FAMILY]) else []
    agree(list(map(tuple, trained["pairs"])) == pairs, "family tables are not those of the arcs")
    tables, parameters = make_tables(model), trained["parameters"]
    groups = [t.sides[0].groups[k] for t in tables for k, _ in t.products]
    lam = [OFFSET_PRECISION, *(precisions[g] for g in groups)]
    agree(all(p > 0 for p in lam), "a precision is not positive")
    right = len(parameters) == len(shares) and all(len(v) == len(lam) for v in parameters)
    agree(right, "another number of parameters")
    loss, gradient = evaluate(tables, codes, rows, shares, parameters)
    sizes = [1.0, *(size for t in tables for size in t.sizes)]
    largest = max(
        abs(share) + math.fsum(abs(a * b) for a, b in zip(sizes, v, strict=True))
        for share, v in zip(shares, parameters, strict=True)
    )
    cells = max((len(a.basis) + len(b.basis) for _, (a, b), _, _ in tables), default=0)
    r = 8 * ROUNDING * ((len(lam) + 8) * (largest + 1) + len(codes) + cells)
    squares, plain, safe = list[float](), list[float](), list[float]()
    for v, g in zip(parameters, gradient, strict=True):
        for a, b, weight_of, size in zip(v, g, lam, sizes, strict=True):
            slope, pull = b + weight_of * a, weight_of * a
            squares.append(pull * a)
            plain.append(slope**2 / (2 * weight_of))
            error = r * weight * size + 4 * ROUNDING * abs(pull)
            safe.append((abs(slope) + error) ** 2 / (2 * weight_of))
    value = loss + 0.5 * math.fsum(squares)
    is_loss = abs(value - trained["objective"]) <= SAME * value
    agree(is_loss, f"the penalised loss is {value!r}, the model claims {trained['objective']!r}")
    gap = math.fsum(plain) / value if any(plain) else 0.0
    is_gap = gap <= trained["gap"] * 1.001 + 1e-12
    agree(is_gap, f"the trained tables are within {gap:.3g}, the model claims {trained['gap']:.3g}")
    smallest = value * (1 - 8 * ROUNDING) - r * weight
    agree(smallest > 0, "the penalised loss is too small to distinguish from rounding")
    return math.fsum(safe) / smallest * (1 + 1e-12)


def cell_codes(model: dict[str, Any], rows: Rows) -> list[Row]:
    """Cells of all features, by row; their weights and positions must be those of the model."""
    by_feature = []
    pairs = zip(model["class_model"]["cells"], model["coding"], strict=True)
    for i, (cells, coding) in enumerate(pairs):
        codes, cuts = [x[i + 1] for x in rows.states], cells["cuts"]
        last = len(cells["weights"]) - 1
        if coding["kind"] == "numeric":
            numbers = [x[i] for x in rows.numbers]
            agree(all(a < b for a, b in pairwise(cuts)), f"cells of feature {i}: no order")
            codes = [last if v is None else bisect_left(cuts, v) for v in numbers]
            values = positions(zip(numbers, rows.weights, strict=True), cuts)
            agree(close(cells["positions"], values), f"cells of feature {i}: other positions")
            agree({*coding["cuts"]} <= {*cuts}, f"cells of feature {i}: no parts of the bins")
        found = [0.0] * (last + 1)
        for code, w in zip(codes, rows.weights, strict=True):
            found[code] += w
        agree(close(cells["weights"], found), f"cells of feature {i}: other weights")
        by_feature.append(codes)
    return list(zip(*by_feature, strict=True))


def positions(pairs: Iterable[tuple[float | None, float]], cuts: Vector) -> Vector:
    """Mean in each cell of the values, clipped to the central 98 % and standardised."""
    heavy: dict[float, float] = {}
    for number, w in pairs:
        if number is not None:
            heavy[number] = heavy.get(number, 0.0) + w
    values, weights = sorted(heavy), [heavy[v] for v in sorted(heavy)]
    reached = list(accumulate(weights))
    ends = [bisect_left(reached, share * reached[-1]) for share in (CLIPPED, 1.0 - CLIPPED)]
    low, high = (values[min(end, len(values) - 1)] for end in ends)
    clipped = [min(max(v, low), high) for v in values] if high > low else values
    largest = max(map(abs, clipped)) or 1.0
    clipped = [v / largest for v in clipped]
    mean = math.fsum(map(mul, weights, clipped)) / reached[-1]
    z = [v - mean for v in clipped]
    size = math.sqrt(math.fsum(w * v * v for w, v in zip(weights, z, strict=True)) / reached[-1])
    sums, counts = [0.0] * (len(cuts) + 1), [0.0] * (len(cuts) + 1)
    for v, w, own in zip(values, weights, z, strict=True):
        cell = bisect_left(cuts, v)
        sums[cell] += w * own / (size or 1.0)
        counts[cell] += w
    return [s / w if w else 0.0 for s, w in zip(sums, counts, strict=True)]


def close(found: Sequence[float | None], wanted: Sequence[float | None]) -> bool:
    """Whether numbers agree but for the order of sums; None equals None alone."""
    return len(found) == len(wanted) and all(
        a is b if a is None or b is None else abs(a - b) <= SAME * max(1.0, abs(b))
        for a, b in zip(found, wanted, strict=True)
    )


def evaluate(
    tables: list[Table], codes: list[Row], rows: Rows, shares: Vector, parameters: list[Vector]
) -> tuple[float, list[Vector]]:
    """Weighted log loss and its gradient by the parameters, without the penalty."""
    merged: dict[tuple[int, Row], float] = {}
    for (label, *_), own, w in zip(rows.states, codes, rows.weights, strict=True):
        merged[label, own] = merged.get((label, own), 0.0) + w
    first = 1 if len(parameters) == 1 else 0  # of two classes the first has the score 0
    entries = [[t.entries(v) for v in parameters] for t in tables]
    slopes = [[[[0.0] * len(row) for row in e] for e in one] for one in entries]
    offsets = [share + v[0] for share, v in zip(shares, parameters, strict=True)]
    by_offset, losses = [0.0] * len(parameters), []
    lookups = [(t.features, t.sides[0].cell_of, t.sides[1].cell_of) for t in tables]
    for (label, cells), w in merged.items():
        places = [(a[cells[i]], b[cells[j]]) for (i, j), a, b in lookups]
        scores = [0.0] * first + [
            offsets[c] + math.fsum([e[c][x][y] for e, (x, y) in zip(entries, places, strict=True)])
            for c in range(len(parameters))
        ]
        peak = max(scores)
        powers = [math.exp(s - peak) for s in scores]
        total = math.fsum(powers)
        losses.append(w * (math.log(total) - (scores[label] - peak)))
        for c in range(len(parameters)):
            slope = w * (powers[c + first] / total - (label == c + first))
            by_offset[c] += slope
            for own_slopes, (x, y) in zip(slopes, places, strict=True):
                own_slopes[c][x][y] += slope
    gradient = []
    for c, slope in enumerate(by_offset):
        by_table = (t.gradient(each[c]) for t, each in zip(tables, slopes, strict=True))
        gradient.append([slope, *chain.from_iterable(by_table)])
    return math.fsum(losses), gradient
