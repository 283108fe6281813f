"""Order and positions inside the rows of a layered drawing; see ``layout.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

_SWEEPS = 12
"""Sweeps down and up; more hardly ever remove another crossing."""


@dataclass(frozen=True)
class Graph:
    """Nodes in rows, linked between neighbouring rows only.

    Parameters
    ----------
    rows
        Nodes of each row from top to bottom, in some order.
    widths
        Width of each node.
    links
        (upper node, lower node).
    chains
        The nodes that each arc (parent, child) passes, both ends included.
    """

    rows: tuple[tuple[int, ...], ...]
    widths: tuple[float, ...]
    links: tuple[tuple[int, int], ...]
    chains: Mapping[tuple[int, int], tuple[int, ...]]

    @cached_property
    def above(self) -> tuple[tuple[int, ...], ...]:
        """Linked nodes of the row above each node."""
        found: list[list[int]] = [[] for _ in self.widths]
        for upper, lower in self.links:
            found[lower].append(upper)
        return tuple(map(tuple, found))

    @cached_property
    def below(self) -> tuple[tuple[int, ...], ...]:
        """Linked nodes of the row below each node."""
        found: list[list[int]] = [[] for _ in self.widths]
        for upper, lower in self.links:
            found[upper].append(lower)
        return tuple(map(tuple, found))


Rows = list[list[int]]
Links = tuple[tuple[int, ...], ...]
"""For each node the nodes it is linked with."""


def sort_rows(graph: Graph) -> Rows:
    """The rows in an order with few crossings; the best one that the sweeps meet."""
    rows = [list(row) for row in graph.rows]
    best, fewest = [list(row) for row in rows], count_crossings(graph, rows)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        for r in range(len(rows)) if downwards else range(len(rows) - 1, -1, -1):
            rows[r] = _sorted_by_neighbours(rows, r, graph.above if downwards else graph.below)
        crossings = count_crossings(graph, rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def count_crossings(graph: Graph, rows: Sequence[Sequence[int]]) -> int:
    """How many pairs of links cross, all rows together."""
    place = {node: p for row in rows for p, node in enumerate(row)}
    total = 0
    for row in rows:
        # links sorted by their upper end; every earlier lower end further right is a crossing
        lower = [q for node in row for q in sorted(place[v] for v in graph.below[node])]
        total += sum(lower[i] > lower[j] for j in range(len(lower)) for i in range(j))
    return total


def place_rows(graph: Graph, rows: Sequence[Sequence[int]], gap: float) -> list[float]:
    """x of every node, near its neighbours, without overlap and in the given order."""
    x = [0.0] * len(graph.widths)
    nothing: Links = ((),) * len(x)
    both: Links = tuple(a + b for a, b in zip(graph.above, graph.below, strict=True))
    _sweep(x, rows, graph, gap, nothing)  # next to one another, around zero
    for _ in range(_SWEEPS // 2):
        _sweep(x, rows, graph, gap, graph.above)
        _sweep(x, rows[::-1], graph, gap, graph.below)
    _sweep(x, rows, graph, gap, both)
    return x


def spread(wishes: Sequence[float], distances: Sequence[float]) -> list[float]:
    """Positions closest to the wishes with at least the given distance to the next one.

    Minimises sum_i (x_i - wish_i)^2 subject to x_{i+1} - x_i >= distance_i. With the distances
    taken off the wishes it is isotonic regression, solved by pooling adjacent violators.

    Examples
    --------
    >>> spread([0.0, 0.0, 10.0], [2.0, 2.0])
    [-1.0, 1.0, 10.0]
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    pools: list[tuple[float, int]] = []  # sum of wishes and size of each pool
    for wish, offset in zip(wishes, offsets, strict=False):
        total, size = wish - offset, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / size:
            previous, count = pools.pop()
            total, size = total + previous, size + count
        pools.append((total, size))
    levels = [total / size for total, size in pools for _ in range(size)]
    return [level + offset for level, offset in zip(levels, offsets, strict=False)]


def _sweep(
    x: list[float],
    rows: Sequence[Sequence[int]],
    graph: Graph,
    gap: float,
    neighbours: Links,
) -> None:
    """Move the nodes, row by row, as near to their neighbours as the others of the row allow."""
    for row in rows:
        distances = [(graph.widths[a] + graph.widths[b]) / 2 + gap for a, b in pairwise(row)]
        wishes = [_mean([x[n] for n in neighbours[v]], x[v]) for v in row]
        for node, position in zip(row, spread(wishes, distances), strict=True):
            x[node] = position


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _sorted_by_neighbours(rows: Rows, r: int, neighbours: Links) -> list[int]:
    """Row ``r`` by the mean relative place of its nodes' neighbours; without any they stay."""
    place = {node: (p + 0.5) / len(row) for row in rows for p, node in enumerate(row)}

    def barycentre(node: int) -> float:
        return _mean([place[v] for v in neighbours[node]], place[node])

    return sorted(rows[r], key=barycentre)
