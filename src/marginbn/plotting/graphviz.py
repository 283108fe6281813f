"""Positions from Graphviz's ``dot`` through pygraphviz, where that is installed.

A pixel of ours is a point of Graphviz. It counts from the lower left corner, we from the upper.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from marginbn.exceptions import MissingDependencyError
from marginbn.network.layout import Box, Layout, Point, Route

_POINTS = 72.0  # per inch
_MARGIN = 14.0


def arrange(layout: Layout) -> Layout:
    """The same boxes where ``dot`` wants them; isolated ones stay below, as they were."""
    graph = _load_pygraphviz().AGraph(directed=True)
    graph.graph_attr.update(nodesep="0.25", ranksep="0.55")
    graph.node_attr.update(shape="box", fixedsize="true", label="")
    graph.edge_attr.update(arrowhead="none")
    for box in _connected(layout):
        size = f"{box.width / _POINTS:.4f}", f"{box.height / _POINTS:.4f}"
        graph.add_node(str(box.variable), width=size[0], height=size[1])
    for route in layout.routes:
        graph.add_edge(str(route.parent), str(route.child))
    graph.layout(prog="dot")
    return _read(layout, graph)


def _load_pygraphviz() -> Any:
    try:
        return import_module("pygraphviz")
    except ImportError as error:
        raise MissingDependencyError(
            f"engine='graphviz' needs pygraphviz ({error}): pip install pygraphviz"
        ) from error


def _connected(layout: Layout) -> list[Box]:
    return [box for box in layout.boxes if box.variable not in layout.isolated]


def _read(layout: Layout, graph: Any) -> Layout:
    _, _, width, height = (float(v) for v in graph.graph_attr["bb"].split(","))
    old_bottom = max(box.y + box.height / 2 for box in _connected(layout))
    drop = height + _MARGIN - old_bottom  # how far what is below moves down
    boxes = []
    for box in layout.boxes:
        if box.variable in layout.isolated:
            boxes.append(replace(box, y=box.y + drop))
        else:
            (x, y), *_ = _points(graph.get_node(str(box.variable)).attr["pos"], height)
            boxes.append(replace(box, x=x, y=y))
    routes = tuple(_reroute(route, graph, height) for route in layout.routes)
    separator = None if layout.separator is None else layout.separator + drop
    right = max([width + _MARGIN, *(box.x + box.width / 2 for box in boxes)])
    bottom = max(box.y + box.height / 2 for box in boxes)
    return replace(
        layout,
        boxes=tuple(boxes),
        routes=routes,
        separator=separator,
        width=right + _MARGIN,
        height=bottom + _MARGIN,
    )


def _reroute(route: Route, graph: Any, height: float) -> Route:
    edge = graph.get_edge(str(route.parent), str(route.child))
    return replace(route, curve=_points(edge.attr["pos"], height))


def _points(text: str, height: float) -> tuple[Point, ...]:
    """Graphviz writes ``x,y x,y ...``, with a + where a line was broken."""
    pairs = (pair.split(",") for pair in text.replace("\\\n", "").split())
    return tuple((float(x) + _MARGIN, height - float(y) + _MARGIN) for x, y in pairs)
