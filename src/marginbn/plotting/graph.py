"""The structure of a network as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marginbn.exceptions import MissingDependencyError
from marginbn.network.layout import CLASS, FONT_SIZE, LABEL_COLUMNS, Box, Layout, Route, lay_out
from marginbn.network.network import BayesianNetwork
from marginbn.network.svg import ISOLATED, box_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]

_POINTS = 72.0  # per inch, the unit of fonts
_PIXELS = 80.0  # per inch of a new figure: text of size 12 pixels is 10.8 points
_LARGEST = 30.0  # inches

_GREY = "#808690"
"""Of arcs: a contrast of at least three to one on white and on black."""

_INK = "#1a1a1a"
"""Of labels, on light boxes."""


def plot_network(
    network: BayesianNetwork,
    *,
    label_columns: int = LABEL_COLUMNS,
    ax: Axes | None = None,
) -> Axes:
    """Draw the structure: arcs point down, the class is highlighted.

    Features without arcs are set apart below a dashed line. Where the class has many children
    its arcs are pale and end in a dot.

    Parameters
    ----------
    network
        The network, such as ``network_`` of a classifier.
    label_columns
        Longer names are shortened to so many columns.
    ax
        Axes to draw on; by default a figure that is as large as the network needs.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> from marginbn.plotting import plot_network
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> ax = plot_network(clf.network_)
    >>> sorted(text.get_text() for text in ax.texts)
    ['class', 'x0']
    """
    layout = lay_out(network.structure, network.names, label_columns)
    scale = min(1.0, _LARGEST * _PIXELS / max(layout.width, layout.height)) / _PIXELS
    ax = _axes(ax, (layout.width * scale, layout.height * scale))
    ax.set_xlim(0, layout.width)
    ax.set_ylim(layout.height, 0)
    ax.set_aspect("equal")
    ax.set_axis_off()
    size = _font_size(ax, layout)
    for route in layout.routes:
        _draw_route(ax, route, min(1.0, size / FONT_SIZE))
    _draw_separator(ax, layout, size)
    for box in layout.boxes:
        _draw_box(ax, box, box_colours(box.variable, layout), size)
    return ax


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure of a size in inches, which they fill."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            f'plotting needs matplotlib ({error}): pip install "marginbn[plot]"'
        ) from error
    return plt.figure(figsize=size).add_axes((0.0, 0.0, 1.0, 1.0)) if ax is None else ax


def _font_size(ax: Axes, layout: Layout) -> float:
    """Font size in points at which labels fit their boxes on these axes."""
    corners = ax.get_window_extent()
    dpi = ax.figure.dpi
    per_pixel = min(corners.width / layout.width, corners.height / layout.height)
    return float(max(FONT_SIZE * per_pixel * _POINTS / dpi, 1.0))


def _draw_route(ax: Axes, route: Route, thickness: float) -> None:
    from matplotlib.patches import Circle, PathPatch, Polygon
    from matplotlib.path import Path

    curve = Path(route.curve, [Path.MOVETO] + [Path.CURVE4] * (len(route.curve) - 1))
    width, opacity, layer = (0.9, 0.45, 1) if route.faint else (1.3, 1.0, 2)
    style = {"linewidth": width * thickness, "alpha": opacity, "zorder": layer}
    ax.add_patch(PathPatch(curve, fill=False, edgecolor=_GREY, **style))
    x, y = route.curve[-1]
    if route.faint:
        ax.add_patch(Circle((x, y - 1.5), 2.5, color=_GREY, linewidth=0, zorder=4))
    else:
        head = _arrow_head(route.curve[-2], (x, y))
        ax.add_patch(Polygon(head, closed=True, color=_GREY, linewidth=0, zorder=2))


def _arrow_head(before: Point, tip: Point) -> list[Point]:
    """A triangle of length 8 and width 7 that points along the end of a curve."""
    dx, dy = tip[0] - before[0], tip[1] - before[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1e-9)
    ux, uy = 8 * dx / length, 8 * dy / length
    wx, wy = -uy * 3.5 / 8, ux * 3.5 / 8
    x, y = tip
    return [tip, (x - ux + wx, y - uy + wy), (x - ux - wx, y - uy - wy)]


def _draw_box(ax: Axes, box: Box, colours: tuple[str, str], size: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    fill, border = colours
    corner = (box.x - box.width / 2, box.y - box.height / 2)
    style = "round,pad=0,rounding_size=6"
    ax.add_patch(
        FancyBboxPatch(
            corner, box.width, box.height, style, facecolor=fill, edgecolor=border, zorder=3
        )
    )
    weight = "bold" if box.variable == CLASS else "normal"
    text = box.label.replace("$", r"\$")  # a dollar sign is no mathematics
    ax.text(
        box.x,
        box.y,
        text,
        color=_INK,
        fontsize=size,
        weight=weight,
        ha="center",
        va="center_baseline",
        zorder=4,
    )


def _draw_separator(ax: Axes, layout: Layout, size: float) -> None:
    if layout.separator is None:
        return
    y = layout.separator
    ax.plot([0, layout.width], [y, y], color=_GREY, linestyle="--", linewidth=0.8)
    ax.text(14, y + 6, ISOLATED, fontsize=size, va="top")
