"""Where the page draws the network: boxes with room for the probabilities of their states.

The boxes themselves are HTML that the scripts fill; here are their places and the arcs. A box has a
line per state, of many states the most probable ones. Large networks have small boxes.
"""

from __future__ import annotations

from typing import Any

from marginbn.network.layout import Point, lay_out
from marginbn.network.network import BayesianNetwork

LINES = 5
"""States that a box shows; of more the most probable ones."""

_SMALL_NETWORK = 80
"""Larger networks show the most probable state alone."""

_WIDTH, _HEAD, _LINE, _FOOT = 196.0, 26.0, 19.0, 6.0
"""Sizes of a box in pixels, which the style sheet repeats: its width, head, lines and foot."""


def lines_of(network: BayesianNetwork) -> list[int]:
    """States that each box shows."""
    most = LINES if network.n_variables <= _SMALL_NETWORK else 1
    return [min(arity, most) for arity in network.arities]


def picture_values(network: BayesianNetwork) -> dict[str, Any]:
    """Places of boxes (left, top, width, height) and arcs for the scripts of the page."""
    lines = lines_of(network)
    sizes = [(_WIDTH, _HEAD + _LINE * n + _FOOT) for n in lines]
    layout = lay_out(network.structure, network.names, sizes=sizes)
    return {
        "width": round(layout.width, 1),
        "height": round(layout.height, 1),
        "separator": layout.separator,
        "boxes": [
            [round(b.x - b.width / 2, 1), round(b.y - b.height / 2, 1), b.width, b.height]
            for b in layout.boxes
        ],
        "lines": lines,
        "arcs": [
            {
                "parent": r.parent,
                "child": r.child,
                "path": _path(r.curve),
                "faint": r.faint,
            }
            for r in sorted(layout.routes, key=lambda r: not r.faint)
        ],
    }


def _path(curve: tuple[Point, ...]) -> str:
    start, *rest = (f"{x:.1f},{y:.1f}" for x, y in curve)
    return f"M{start} C{' '.join(rest)}"
