"""Trained tables from a model file and a table, with the standard library alone.

An oracle: cells, class shares and basis are computed again (``docs/theory/class_model``), then the
penalised loss J and its gradient g, which bounds J - min J by sum g^2 / (2 lam). Written from the
documentation; of the package it uses how ``proof/exact_model.py`` encodes a table.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import combinations
from operator import mul
from statistics import median
from typing import Any, NamedTuple

from marginbn.proof.exact_model import SAME, Row, Rows, Vector, agree

MOST_PRODUCT, ATOM, LEAST_ATOM_CELLS, CLIPPED, OFFSET_PRECISION = 16, 3.0, 8, 0.01, 1 / 900


class Side(NamedTuple):
    """Functions of a feature: values in every cell, order and group of each; cells of codes."""

    basis: list[Vector]
    orders: list[int]
    groups: list[int]
    cell_of: list[int]


LINE, EFFECT, FAMILY = range(3)


def centred(weights: Vector) -> list[Vector]:
    """Indicators of the cells minus their shares."""
    total = math.fsum(weights)
    return [[(i == j) - w / total for j, w in enumerate(weights)] for i in range(len(weights))]


def walk(shares: Vector) -> list[Vector]:
    """Steps between neighbouring cells, centred, of mean variance 1."""
    n = len(shares)
    above = [math.fsum(shares[k + 1 :]) for k in range(n - 1)]
    steps = [[(j > k) - above[k] for k in range(n - 1)] for j in range(n)]
    size = math.sqrt(
        math.fsum(w * v * v for w, own in zip(shares, steps, strict=True) for v in own)
    )
    return [[v / size for v in own] for own in steps]


def smooth(shares: Vector) -> list[Vector]:
    """Left singular vectors of sqrt(w) S times singular values over sqrt(w), from smooth to rough,
    positive in the last cell: columns of S sqrt(w) are rotated in pairs until all are orthogonal.
    """
    roots = [math.sqrt(w) for w in shares]
    rows = [[r * v for v in own] for r, own in zip(roots, walk(shares), strict=True)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    squares = [sum(map(mul, c, c)) for c in columns]
    for _ in range(60):
        rest = 0.0
        for p, q in combinations(range(len(columns)), 2):
            a, b = columns[p], columns[q]
            product = sum(map(mul, a, b))
            size = math.sqrt(squares[p] * squares[q])
            rest = max(rest, abs(product) / size)
            if abs(product) <= 1e-16 * size:
                continue
            tau = (squares[q] - squares[p]) / (2 * product)
            t = math.copysign(1.0, tau) / (abs(tau) + math.hypot(1.0, tau))
            c = 1 / math.hypot(1.0, t)
            s = c * t
            columns[p] = [c * x - s * y for x, y in zip(a, b, strict=True)]
            columns[q] = [s * x + c * y for x, y in zip(a, b, strict=True)]
            squares[p] = sum(map(mul, columns[p], columns[p]))
            squares[q] = sum(map(mul, columns[q], columns[q]))
        if rest < 1e-14:
            break
    columns.sort(key=lambda column: -sum(map(mul, column, column)))
    columns = [[v / r for v, r in zip(c, roots, strict=True)] for c in columns[:MOST_PRODUCT]]
    signed = [[-v for v in c] if c[-1] < 0 else c for c in columns]
    return [list(row) for row in zip(*signed, strict=True)]


def with_missing(basis: list[Vector], has_missing: bool) -> list[Vector]:
    """One more cell with a function of its own."""
    if not has_missing:
        return basis
    return [*([*row, 0.0] for row in basis), [0.0] * len(basis[0]) + [1.0]]


def effect_side(cells: dict[str, Any], coding: dict[str, Any]) -> Side:
    """Functions of the effect of a feature."""
    weights, n = cells["weights"], len(cells["weights"])
    numbers = n - coding["missing_state"]
    own = list(range(n))
    if sum(w > 0 for w in weights) < 2:
        return Side([[] for _ in own], [], [], own)
    if coding["kind"] != "numeric" or numbers <= 2:
        return Side(centred(weights), [1] * n, [EFFECT] * n, own)
    total = math.fsum(weights[:numbers])
    shares = [w / total for w in weights[:numbers]]
    basis = [[z, *v] for z, v in zip(cells["positions"], walk(shares), strict=True)]
    if numbers > LEAST_ATOM_CELLS:
        atoms = [j for j, w in enumerate(shares) if w >= ATOM * median(shares)]
        identity = centred(shares)
        basis = [[*row, *(identity[i][j] for j in atoms)] for i, row in enumerate(basis)]
    basis = with_missing(basis, n > numbers)
    size = len(basis[0])
    return Side(basis, [1] * size, [LINE] + [EFFECT] * (size - 1), own)


def family_side(cells: dict[str, Any], coding: dict[str, Any]) -> Side:
    """Functions of a feature in family tables."""
    family = cells["family"]
    n = max(family) + 1
    numbers = n - coding["missing_state"]
    weights = [0.0] * n
    for cell, w in zip(family, cells["weights"], strict=True):
        weights[cell] += w
    if sum(w > 0 for w in weights) < 2:
        return Side([[] for _ in weights], [], [], family)
    if coding["kind"] == "numeric" and numbers > 2:
        total = math.fsum(weights[:numbers])
        functions = smooth([w / total for w in weights[:numbers]])
        orders = [*range(1, len(functions[0]) + 1)]
        basis = with_missing(functions, n > numbers)
        orders += [1] * (len(basis[0]) - len(orders))
        return Side(basis, orders, [FAMILY] * len(orders), family)
    basis = centred(weights)
    basis = [row[:1] for row in basis] if n == 2 else basis
    squares = (w * v * v for w, row in zip(weights, basis, strict=True) for v in row)
    size = math.sqrt(math.fsum(squares) / math.fsum(weights))
    basis = [[v / size for v in row] for row in basis]
    return Side(basis, [1] * len(basis[0]), [FAMILY] * len(basis[0]), family)


class Table(NamedTuple):
    """An effect or a family table: two features and sides, products of functions, parameters."""

    features: tuple[int, int]
    sides: tuple[Side, Side]
    products: list[tuple[int, int]]
    first: int

    def entries(self, parameters: Vector) -> list[Vector]:
        """The table of some parameters: A V B'."""
        (a, b), n = self.sides, len(self.sides[1].basis[0])
        found = []
        for row in a.basis:
            by_column = [0.0] * n
            for place, (k, m) in enumerate(self.products, self.first):
                by_column[m] += row[k] * parameters[place]
            found.append([sum(map(mul, by_column, other)) for other in b.basis])
        return found

    def gradient(self, by_entry: list[Vector]) -> Vector:
        """Derivatives by the parameters from those by the entries."""
        a, b = self.sides
        columns = list(zip(*b.basis, strict=True))
        half = [[sum(map(mul, own, column)) for column in columns] for own in by_entry]
        left = list(zip(*a.basis, strict=True))
        across = list(zip(*half, strict=True))
        return [sum(map(mul, left[k], across[m])) for k, m in self.products]


def make_tables(model: dict[str, Any]) -> list[Table]:
    """Effects of all features, then a family table per pair."""
    trained, codings = model["class_model"], model["coding"]
    own = list(zip(trained["cells"], codings, strict=True))
    effects = [effect_side(*pair) for pair in own]
    families = {i: family_side(*own[i]) for i in sorted({v for p in trained["pairs"] for v in p})}
    tables, first = [], 1
    for i, side in enumerate(effects):
        one = Side([[1.0]], [1], [EFFECT], [0] * len(side.cell_of))
        products = [(k, 0) for k in range(len(side.orders))]
        tables.append(Table((i, i), (side, one), products, first))
        first += len(products)
    for i, j in trained["pairs"]:
        a, b = families[i], families[j]
        products = [
            (k, m)
            for k, x in enumerate(a.orders)
            for m, y in enumerate(b.orders)
            if x * y <= MOST_PRODUCT
        ]
        tables.append(Table((i, j), (a, b), products, first))
        first += len(products)
    return tables


def check_training(model: dict[str, Any], rows: Rows) -> float:
    """Certified gap of the trained tables; J and the gap are those that the model claims."""
    trained = model["class_model"]
    codes = cell_codes(model, rows)
    n_classes = len(model["classes"]["labels"])
    counts = [0.5] * n_classes
    for x, w in zip(rows.states, rows.weights, strict=True):
        counts[x[0]] += w
    shares = [math.log(n / math.fsum(counts)) for n in counts]
    wanted = [shares[1] - shares[0]] if n_classes == 2 else shares
    agree(close(trained["log_shares"], wanted), "the class shares are not those of the rows")
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
    groups = [g for t in tables for g in ([t.sides[0].groups[k] for k, _ in t.products])]
    lam = [OFFSET_PRECISION, *(precisions[g] for g in groups)]
    agree(all(len(v) == len(lam) for v in parameters), "another number of parameters")
    loss, gradient = evaluate(tables, codes, rows, wanted, parameters)
    pull = [[a * b for a, b in zip(lam, v, strict=True)] for v in parameters]
    flat = [
        (a, b) for p, v in zip(pull, parameters, strict=True) for a, b in zip(p, v, strict=True)
    ]
    value = loss + 0.5 * math.fsum(a * b for a, b in flat)
    bound = math.fsum(
        (g + a) ** 2 / (2 * weight)
        for own_gradient, p in zip(gradient, pull, strict=True)
        for g, a, weight in zip(own_gradient, p, lam, strict=True)
    )
    gap = bound / value if bound else 0.0
    is_loss = abs(value - trained["objective"]) <= SAME * value
    agree(is_loss, f"the penalised loss is {value!r}, the model says {trained['objective']!r}")
    is_gap = gap <= trained["gap"] * 1.001 + 1e-12
    agree(is_gap, f"the trained tables are within {gap:.3g}, the model says {trained['gap']:.3g}")
    return gap


def cell_codes(model: dict[str, Any], rows: Rows) -> list[Row]:
    """Cells of all features, by row; their weights and positions must be those of the model."""
    by_feature = []
    for i, (cells, coding) in enumerate(
        zip(model["class_model"]["cells"], model["coding"], strict=True)
    ):
        last = len(cells["weights"]) - 1
        states = [x[i + 1] for x in rows.states]
        numbers = [x[i] for x in rows.numbers]
        codes = states
        if coding["kind"] == "numeric":
            codes = [last if v is None else bisect_left(cells["cuts"], v) for v in numbers]
            values = positions([v for v in numbers if v is not None], rows, numbers, cells["cuts"])
            agree(close(cells["positions"], values), f"cells of feature {i}: other positions")
        found = [0.0] * (last + 1)
        for code, w in zip(codes, rows.weights, strict=True):
            found[code] += w
        agree(close(cells["weights"], found), f"cells of feature {i}: other weights")
        by_feature.append(codes)
    return list(zip(*by_feature, strict=True))


def positions(present: Vector, rows: Rows, numbers: list[Any], cuts: Vector) -> Vector:
    """Mean of the standardised values in each cell."""
    heavy: dict[float, float] = {}
    for v, w in zip(numbers, rows.weights, strict=True):
        if v is not None:
            heavy[v] = heavy.get(v, 0.0) + w
    values = sorted(heavy)
    reached, total = [], 0.0
    for v in values:
        total += heavy[v]
        reached.append(total)
    ends = [bisect_left(reached, share * total) for share in (CLIPPED, 1.0 - CLIPPED)]
    low, high = (values[min(end, len(values) - 1)] for end in ends)
    clipped = {v: min(max(v, low), high) if high > low else v for v in values}
    largest = max(map(abs, clipped.values())) or 1.0
    mean = math.fsum(heavy[v] * clipped[v] / largest for v in values) / total
    z = {v: clipped[v] / largest - mean for v in values}
    size = math.sqrt(math.fsum(heavy[v] * z[v] ** 2 for v in values) / total) or 1.0
    sums, weights = [0.0] * (len(cuts) + 1), [0.0] * (len(cuts) + 1)
    for v in values:
        cell = bisect_left(cuts, v)
        sums[cell] += heavy[v] * z[v] / size
        weights[cell] += heavy[v]
    return [s / w if w else 0.0 for s, w in zip(sums, weights, strict=True)]


def close(found: Vector, wanted: Vector) -> bool:
    """Whether numbers agree but for the order of sums."""
    pairs = zip(found, wanted, strict=False)
    return len(found) == len(wanted) and all(
        abs(a - b) <= SAME * max(1.0, abs(b)) for a, b in pairs
    )


def evaluate(
    tables: list[Table], codes: list[Row], rows: Rows, shares: Vector, parameters: list[Vector]
) -> tuple[float, list[Vector]]:
    """Weighted log loss and its gradient by the parameters, without the penalty."""
    merged: dict[tuple[int, Row], float] = {}
    for x, own, w in zip(rows.states, codes, rows.weights, strict=True):
        merged[x[0], own] = merged.get((x[0], own), 0.0) + w
    first = 1 if len(parameters) == 1 else 0  # of two classes the first has the score 0
    entries = [[t.entries(v) for v in parameters] for t in tables]
    slopes = [[[[0.0] * len(row) for row in e] for e in one] for one in entries]
    offsets = [share + v[0] for share, v in zip(shares, parameters, strict=True)]
    by_offset, losses = [0.0] * len(parameters), []
    lookups = [(t.features, t.sides[0].cell_of, t.sides[1].cell_of) for t in tables]
    for (label, own), w in merged.items():
        places = [(a[own[i]], b[own[j]]) for (i, j), a, b in lookups]
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
    gradient = [
        [by_offset[c], *(v for t, s in zip(tables, slopes, strict=True) for v in t.gradient(s[c]))]
        for c in range(len(parameters))
    ]
    return math.fsum(losses), gradient
