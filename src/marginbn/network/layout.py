"""Where to draw the variables and arcs of a structure: layers from top to bottom, no Graphviz.

1. Layers. A variable's layer is the length of the longest path that leads to it, so arcs point
   down. Variables without any arc are set apart below; the class never is.
2. Rows. A layer wider than the picture is cut into several rows. Nothing inside a layer is
   connected, so arcs still point down.
3. Order in a row. Sweeps down and up sort each row by the mean position of the neighbours
   (barycentre), the order with the fewest crossings wins. An arc that crosses rows is a chain of
   thin waypoints that take part in this and keep it away from the boxes.
4. Positions. Each box wants to be at the mean of its neighbours; the positions closest to these
   wishes (least squares) that keep the order and the gaps come from pooling adjacent violators.

In a Bayesian-network classifier nearly every feature is a child of the class. Many arcs out of the
class would be the whole picture, so they are ``faint``: straight lines meant to be drawn pale and
behind the boxes, which neither order the rows nor have waypoints. Where there is no class, variable
0 is like all others.

Everything is a function of the structure and the labels; ties are broken by index.
Lengths are in pixels at font size 12 (``FONT_SIZE``), y grows downwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from marginbn.exceptions import InputError
from marginbn.network.wording import shorten, text_width
from marginbn.problem.structure import CLASS, Structure

Point = tuple[float, float]
Size = tuple[float, float]
"""Width and height."""
Span = tuple[float, float]
"""Upper and lower side of a row."""

Rows = list[list[int]]
Links = tuple[tuple[int, ...], ...]
"""For each node the nodes it is linked with."""

_LABEL_COLUMNS = 22
"""Longer names are shortened to this many columns."""

FONT_SIZE = 12.0  # pixels, as all lengths here
_BOLD = 0.12  # how much wider the class is written
BOX_HEIGHT = 26.0  # one line of text
_PADDING = 9.0  # between text and the sides of its box
_LEAST_WIDTH = 40.0  # of a box, however short its name
_GAP = 16.0  # between neighbouring boxes
_WAYPOINT = 4.0  # width of an arc between boxes
_ROW_GAP = 40.0  # between the boxes of a row and those of the next
_MARGIN = 14.0  # around the picture
_ASPECT = 1.7  # width to height that wide layers are cut for
_CORNER = 10.0  # from the side of a box to where a faint arc ends
_WIDE = 640.0  # narrower rows are never cut
_SEPARATOR = 20.0  # from the lowest row to the line above the isolated variables
_CAPTION = 200.0  # room for the caption of the isolated variables
_FEW_ARCS = 9
"""Up to so many arcs out of the class are drawn like all others."""

_SWEEPS = 12
"""Sweeps down and up; more hardly ever remove another crossing."""


@dataclass(frozen=True)
class LabelBox:
    """A variable with its shortened label; (x, y) is the centre."""

    variable: int
    label: str
    x: float
    y: float
    width: float
    height: float = BOX_HEIGHT


@dataclass(frozen=True)
class Route:
    """An arc from the lower side of the parent to the upper side of the child.

    ``curve`` holds its start and then three points (two controls, one end) per cubic piece.
    """

    parent: int
    child: int
    curve: tuple[Point, ...]
    faint: bool = False


@dataclass(frozen=True)
class Layout:
    """A drawn structure; the picture begins at (0, 0)."""

    boxes: tuple[LabelBox, ...]  # one per variable, by index
    routes: tuple[Route, ...]  # one per arc
    isolated: tuple[int, ...]  # variables without arcs, below the separator
    separator: float | None  # its y
    width: float
    height: float


@dataclass(frozen=True)
class LayeredGraph:
    """Nodes in rows, linked between neighbouring rows only."""

    rows: tuple[tuple[int, ...], ...]  # from top to bottom, each in some order
    widths: tuple[float, ...]  # of each node
    links: tuple[tuple[int, int], ...]  # (upper node, lower node)
    chains: Mapping[tuple[int, int], tuple[int, ...]]  # all nodes that an arc passes, ends included

    @cached_property
    def above(self) -> Links:
        """Linked nodes of the row above each node."""
        return self._linked((lower, upper) for upper, lower in self.links)

    @cached_property
    def below(self) -> Links:
        """Linked nodes of the row below each node."""
        return self._linked(self.links)

    def _linked(self, links: Iterable[tuple[int, int]]) -> Links:
        found: list[list[int]] = [[] for _ in self.widths]
        for node, other in links:
            found[node].append(other)
        return tuple(map(tuple, found))


def lay_out(
    structure: Structure,
    names: Sequence[str],
    sizes: Sequence[tuple[float, float]] | None = None,
    has_class: bool = True,
) -> Layout:
    """Place the variables of a structure; long names are shortened.

    ``sizes`` are width and height of each box; by default it is as wide as its label and one line
    high.
    """
    if len(names) != structure.n_variables:
        raise InputError(
            f"names must have one entry per variable, {structure.n_variables}, got {len(names)}"
        )
    labels = [shorten(name, _LABEL_COLUMNS) for name in names]
    if sizes is None:  # one line of text each; the class is written bold
        widths = [max(_LEAST_WIDTH, text_width(t) * FONT_SIZE + 2 * _PADDING) for t in labels]
        widths[CLASS] += _BOLD * (widths[CLASS] - 2 * _PADDING)
        sizes = [(width, BOX_HEIGHT) for width in widths]
    isolated = isolated_features(structure, has_class)
    faint = set(_faint_arcs(structure)) if has_class else set()
    graph = _with_waypoints(structure, sizes, isolated, faint)
    x = place_rows(graph, sort_rows(graph), _GAP)
    return _assemble(structure, labels, sizes, graph, x, isolated, faint)


def layers(structure: Structure) -> list[int]:
    """Length of the longest path to each variable."""
    depth = [0] * structure.n_variables
    for v in structure.order:
        depth[v] = max((depth[p] + 1 for p in structure.parents[v]), default=0)
    return depth


def isolated_features(structure: Structure, has_class: bool = True) -> tuple[int, ...]:
    """Features without any arc: they have no influence on predictions. Without a class, variables
    without any arc, if there are arcs.
    """
    connected = {v for arc in structure.arcs for v in arc}
    first = int(has_class)
    apart = tuple(v for v in range(first, structure.n_variables) if v not in connected)
    return apart if has_class or connected else ()


def _faint_arcs(structure: Structure) -> tuple[tuple[int, int], ...]:
    arcs = tuple((parent, child) for parent, child in structure.arcs if parent == CLASS)
    return arcs if len(arcs) > _FEW_ARCS else ()


def _rows(structure: Structure, sizes: Sequence[Size], isolated: Sequence[int]) -> list[int]:
    """Row of each connected variable: layers, cut where they are too wide; -1 if isolated.

    A class of many faint arcs stands alone above all others, in the middle of the picture.
    """
    depth = layers(structure)
    if _faint_arcs(structure) and not structure.parents[CLASS]:
        depth = [d + (v != CLASS) for v, d in enumerate(depth)]
    members = [v for v in structure.order if v not in isolated]
    limit = _width_limit([sizes[v] for v in members])
    row_of, row = [-1] * structure.n_variables, -1
    for layer in range(max(depth) + 1):
        group = [v for v in members if depth[v] == layer]
        # leaves first: those with children of their own end up next to their children
        group.sort(key=lambda v: bool(structure.children(v)))
        for part in _cut(group, [width for width, _ in sizes], limit):
            row += 1
            for v in part:
                row_of[v] = row
    return row_of


def _width_limit(sizes: Sequence[Size]) -> float:
    """Width at which rows filled with these boxes make a picture of the wanted shape."""
    area = sum((width + _GAP) * (height + _ROW_GAP) for width, height in sizes)
    return max(math.sqrt(area * _ASPECT), _WIDE)


def _cut(group: Sequence[int], widths: Sequence[float], limit: float) -> list[list[int]]:
    """Consecutive parts of nearly equal width, none much wider than the limit."""
    total = sum(widths[v] + _GAP for v in group)
    n_parts = max(1, math.ceil(total / limit - 0.25)) if group else 0
    parts: list[list[int]] = [[] for _ in range(n_parts)]
    used = 0.0
    for v in group:
        middle = used + (widths[v] + _GAP) / 2
        parts[min(int(middle / total * n_parts), n_parts - 1)].append(v)
        used += widths[v] + _GAP
    return [part for part in parts if part]


def _with_waypoints(
    structure: Structure,
    sizes: Sequence[Size],
    isolated: Sequence[int],
    faint: set[tuple[int, int]],
) -> LayeredGraph:
    """Rows of nodes, where long arcs have been replaced by chains of waypoints."""
    row_of = _rows(structure, sizes, isolated)
    rows: list[list[int]] = [[] for _ in range(max(row_of) + 1)]
    for v in structure.order:
        if row_of[v] >= 0:
            rows[row_of[v]].append(v)
    node_widths, chains = [width for width, _ in sizes], {}
    links: list[tuple[int, int]] = []
    for parent, child in structure.arcs:
        if (parent, child) in faint:
            continue
        chain = [parent]
        for row in range(row_of[parent] + 1, row_of[child]):
            chain.append(len(node_widths))
            rows[row].append(len(node_widths))
            node_widths.append(_WAYPOINT)
        chains[parent, child] = (*chain, child)
        links += pairwise(chains[parent, child])
    return LayeredGraph(tuple(map(tuple, rows)), tuple(node_widths), tuple(links), chains)


def sort_rows(graph: LayeredGraph) -> Rows:
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


def count_crossings(graph: LayeredGraph, rows: Sequence[Sequence[int]]) -> int:
    """How many pairs of links cross, all rows together."""
    place = {node: p for row in rows for p, node in enumerate(row)}
    total = 0
    for row in rows:
        # links sorted by their upper end; every earlier lower end further right is a crossing
        lower = [q for node in row for q in sorted(place[v] for v in graph.below[node])]
        total += sum(lower[i] > lower[j] for j in range(len(lower)) for i in range(j))
    return total


def place_rows(graph: LayeredGraph, rows: Sequence[Sequence[int]], gap: float) -> list[float]:
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
    taken off the wishes it is isotonic regression.

    Examples
    --------
    >>> spread([0.0, 0.0, 10.0], [2.0, 2.0])
    [-1.0, 1.0, 10.0]
    """
    from scipy.optimize import isotonic_regression  # slow to import

    offsets = np.concatenate([[0.0], np.cumsum(distances)])
    lowered = np.array(wishes) - offsets
    return [float(x) for x in isotonic_regression(lowered).x + offsets]


def _sweep(
    x: list[float],
    rows: Sequence[Sequence[int]],
    graph: LayeredGraph,
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


def _assemble(
    structure: Structure,
    labels: Sequence[str],
    sizes: Sequence[Size],
    graph: LayeredGraph,
    x: Sequence[float],
    isolated: tuple[int, ...],
    faint: set[tuple[int, int]],
) -> Layout:
    """Boxes, routes and the block of isolated variables, moved so that all begins at the margin."""
    spans = _row_spans(graph, sizes)
    row_of = {node: row for row, nodes in enumerate(graph.rows) for node in nodes}
    left = min(x[v] - graph.widths[v] / 2 for v in row_of)
    width = max(x[v] + graph.widths[v] / 2 for v in row_of) - left
    across = {v: x[v] - left + _MARGIN for v in row_of}
    centre = {
        v: (across[v], spans[row][0] + sizes[v][1] / 2)
        for v, row in row_of.items()
        if v < structure.n_variables
    }
    bottom = spans[-1][1]
    apart, width, height = _block(isolated, sizes, width, bottom)
    places = {**centre, **apart}
    boxes = tuple(
        LabelBox(v, labels[v], *places[v], *sizes[v]) for v in range(structure.n_variables)
    )
    routes = tuple(
        _route(
            boxes,
            arc,
            [(across[v], spans[row_of[v]]) for v in graph.chains.get(arc, arc)],
            arc in faint,
        )
        for arc in structure.arcs
    )
    separator = bottom + _SEPARATOR if isolated else None
    return Layout(boxes, routes, isolated, separator, width + 2 * _MARGIN, height + _MARGIN)


def _row_spans(graph: LayeredGraph, sizes: Sequence[Size]) -> list[Span]:
    """Where each row begins and ends; it is as high as its highest box."""
    spans, top = [], _MARGIN
    for row in graph.rows:
        height = max(sizes[v][1] for v in row if v < len(sizes))
        spans.append((top, top + height))
        top += height + _ROW_GAP
    return spans


def _block(
    isolated: Sequence[int], sizes: Sequence[Size], width: float, bottom: float
) -> tuple[dict[int, Point], float, float]:
    """Places of the isolated variables, row by row below the others, and the new size."""
    if not isolated:
        return {}, width, bottom
    own = [sizes[v] for v in isolated]
    filled = sum(w for w, _ in own) + _GAP / 2 * len(own)
    width = max(width, _CAPTION, min(_width_limit(own), filled))
    places: dict[int, Point] = {}
    used, top, highest = 0.0, bottom + _ROW_GAP, 0.0
    for v in isolated:
        if used and used + sizes[v][0] > width:
            used, top, highest = 0.0, top + highest + _GAP, 0.0
        places[v] = (_MARGIN + used + sizes[v][0] / 2, top + sizes[v][1] / 2)
        used += sizes[v][0] + _GAP / 2
        highest = max(highest, sizes[v][1])
    return places, width, top + highest


def _route(
    boxes: Sequence[LabelBox],
    arc: tuple[int, int],
    chain: Sequence[tuple[float, Span]],
    faint: bool,
) -> Route:
    """From the parent to the lower side of its row, past the rows between, to the child."""
    parent, child = boxes[arc[0]], boxes[arc[1]]
    points: list[Point] = [(parent.x, parent.y + parent.height / 2)]
    top = child.y - child.height / 2
    if faint:  # ends at the corner that is nearer, the middle belongs to the other arcs
        corner = math.copysign(child.width / 2 - _CORNER, parent.x - child.x)
        (x, y), dx, dy = points[0], (child.x + corner - parent.x) / 3, (top - points[0][1]) / 3
        line = tuple((x + k * dx, y + k * dy) for k in range(4))  # a line as one cubic piece
        return Route(*arc, line, faint)
    row_bottom = chain[0][1][1]
    if row_bottom > points[0][1]:
        points.append((parent.x, row_bottom))
    for x, (row_top, row_bottom) in chain[1:-1]:
        points += [(x, row_top), (x, row_bottom)]
    return Route(*arc, _bend([*points, (child.x, top)]), faint)


def _bend(points: Sequence[Point]) -> tuple[Point, ...]:
    """Cubic pieces through the points, vertical at each."""
    curve = [points[0]]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        curve += [(x0, middle), (x1, middle), (x1, y1)]
    return tuple(curve)
