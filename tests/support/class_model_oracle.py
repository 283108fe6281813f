"""The class model and its answers from their definitions, slowly; uses nothing of the package."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


# ------------------------------------------------------------------------------------ training


def walk(shares: FloatArray) -> FloatArray:
    """S[j, k] = 1(j > k), centred by the shares, scaled to mean variance 1."""
    n = len(shares)
    steps = np.array([[float(j > k) for k in range(n - 1)] for j in range(n)])
    for k in range(n - 1):
        steps[:, k] -= sum(shares[j] * steps[j, k] for j in range(n))
    variance = sum(shares[j] * steps[j, k] ** 2 for j in range(n) for k in range(n - 1))
    return steps / math.sqrt(variance)


def objective(
    functions: FloatArray,
    classes: NDArray[np.integer],
    weights: FloatArray,
    n_classes: int,
    precision: FloatArray,
    parameters: FloatArray,
) -> tuple[float, FloatArray]:
    """J and its gradient with all functions (rows, parameters) written out.

    The first function is the constant. Parameters are (scores, parameters).
    """
    counts = np.array([weights[classes == c].sum() + 0.5 for c in range(n_classes)])
    shares = np.log(counts / counts.sum())
    scores = functions @ parameters.T
    if n_classes == 2:
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    value, residuals = 0.0, np.zeros_like(scores)
    for n, (row, own) in enumerate(zip(scores + shares, classes, strict=True)):
        total = sum(math.exp(s) for s in row)
        value += weights[n] * (math.log(total) - row[own])
        for c in range(n_classes):
            residuals[n, c] = weights[n] * (math.exp(row[c]) / total - (c == own))
    if n_classes == 2:
        residuals = residuals[:, 1:]
    value += 0.5 * float((precision * parameters**2).sum())
    return value, residuals.T @ functions + precision * parameters


# ------------------------------------------------------------------------------------- answers


class CountedNetwork:
    """A network over bins by its tables: ``tables[v]`` is P(v | parents), parents' axes first."""

    def __init__(self, parents: Sequence[Sequence[int]], tables: Sequence[FloatArray]) -> None:
        self.parents = parents
        self.tables = tables
        self.arities = [table.shape[-1] for table in tables]

    def joint(self, states: Sequence[int]) -> float:
        """P of a state of all variables, class first."""
        value = 1.0
        for v, table in enumerate(self.tables):
            value *= table[(*(states[p] for p in self.parents[v]), states[v])]
        return value

    def weight(self, known: dict[int, int]) -> float:
        """P of the known states, by adding up all states of the others."""
        choices = [[known[v]] if v in known else range(n) for v, n in enumerate(self.arities)]
        return sum(self.joint(states) for states in product(*choices))

    def posterior(self, known: dict[int, int], variable: int = 0) -> FloatArray:
        weights = [self.weight({**known, variable: s}) for s in range(self.arities[variable])]
        return np.array(weights) / sum(weights)


Cells = Sequence[Sequence[tuple[int, float]]]
"""Per bin of a feature its cells, each with its share of the bin."""


def drawn_mean(
    network: CountedNetwork,
    cells: Sequence[Cells],
    class_model: Callable[[Sequence[int]], FloatArray],
    known_cells: dict[int, int],
    order: Sequence[int],
    points: FloatArray,
) -> FloatArray:
    """E as documented: each unknown feature from its conditional given all that is fixed so far.

    Features count from 0; feature i is variable i + 1. ``order`` has parents first.
    """
    bins = {i: _bin_of(cells[i], cell) for i, cell in known_cells.items()}
    evidence = {i + 1: b for i, b in bins.items()}
    total = np.zeros(network.arities[0])
    for point in points:
        c = _choose(network.posterior(evidence), point[0])[0]
        fixed, drawn = {**evidence, 0: c}, dict(known_cells)
        for i in order:
            if i not in known_cells:
                b, rest = _choose(network.posterior(fixed, i + 1), point[i + 1])
                fixed[i + 1] = b
                inside, _ = _choose(np.array([share for _, share in cells[i][b]]), rest)
                drawn[i] = cells[i][b][inside][0]
        total += class_model([drawn[i] for i in range(len(cells))])
    return total / len(points)


def expected_mean(
    network: CountedNetwork,
    cells: Sequence[Cells],
    class_model: Callable[[Sequence[int]], FloatArray],
    known_cells: dict[int, int],
) -> FloatArray:
    """The exact expectation that E estimates, over all cells of the unknown features."""
    total, weights = np.zeros(network.arities[0]), 0.0
    choices = [
        [(b, cell, share) for b, inside in enumerate(feature) for cell, share in inside]
        for feature in cells
    ]
    for combination in product(*choices):
        if any(combination[i][1] != cell for i, cell in known_cells.items()):
            continue
        weight = math.prod(s for i, (_, _, s) in enumerate(combination) if i not in known_cells)
        weight *= network.weight({i + 1: b for i, (b, _, _) in enumerate(combination)})
        total += weight * class_model([cell for _, cell, _ in combination])
        weights += weight
    return total / weights


def _bin_of(feature: Cells, cell: int) -> int:
    return next(b for b, inside in enumerate(feature) if cell in [k for k, _ in inside])


def _choose(shares: FloatArray, point: float) -> tuple[int, float]:
    """The state at a point of the unit, and where between its borders the point lies."""
    below = 0.0
    for state, share in enumerate(shares):
        if state == len(shares) - 1 or point < below + share:
            return state, (point - below) / share
        below += share
    raise AssertionError


def lehmer_points(n_draws: int, n_columns: int) -> FloatArray:
    """The documented points."""
    r, columns = 20120627, []
    for _ in range(n_columns):
        order = list(range(n_draws))
        for k in range(n_draws - 1, 0, -1):
            r = (48271 * r) % (2**31 - 1)
            j = r % (k + 1)
            order[k], order[j] = order[j], order[k]
        columns.append([(q + 0.5) / n_draws for q in order])
    return np.array(columns).T
