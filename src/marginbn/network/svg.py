"""Pictures for notebooks and pages: a structure as SVG text, numbers as a table with bars.

Self-contained: no script, no font, no link.

Colours are chosen to be readable on white and on black: boxes bring their own background, arcs are
a middle grey, and captions take the colour of the surrounding text. Every name is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from marginbn.network.layout import LabelBox, Layout, Point, Route, lay_out
from marginbn.network.wording import one_line, shorten
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import CLASS, Structure

FONT = "font-family:system-ui,sans-serif;font-size:12px"
_ARC = "#767c85"
_ISOLATED = "no arcs: without influence"
_INK = "#1a1a1a"
_TOOLTIP = 400
"""Columns of a tooltip; states of a variable can be many."""


def _box_colours(variable: int, layout: Layout, has_class: bool) -> tuple[str, str]:
    """Fill and border of a variable's box."""
    if variable == CLASS and has_class:
        return "#f4b942", "#8a5a00"
    return ("#ececec", "#8f8f8f") if variable in layout.isolated else ("#e8eef7", "#4a6fa5")


def draw_structure(
    structure: Structure, variables: Sequence[Variable], *, has_class: bool = True
) -> str:
    """SVG text of a structure, the class highlighted, isolated features set apart.

    Long names are shortened; pointing at a variable shows its name, parents and states. Without a
    class all variables are alike, and reversible arcs have no head.
    """
    names = [v.name for v in variables]
    layout = lay_out(structure, names, has_class=has_class)
    compelled = structure.arcs if has_class else structure.cpdag().directed
    texts = []
    for variable, parents in zip(variables, structure.parents, strict=True):
        given = f" given {', '.join(names[p] for p in parents)}" if parents else ""
        texts.append(f"{variable.name}{given}: {' | '.join(variable.states)}")
    size = f"{layout.width:.0f} {layout.height:.0f}"
    target = f"class {shorten(names[CLASS], 60)}, " if has_class else ""
    title = f"Bayesian network, {target}{len(structure.arcs)} arcs"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" '
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" style="{FONT}">',
        f"<title>{escaped(title)}</title>",
        *(
            _draw_route(route, (route.parent, route.child) in compelled)
            for route in sorted(layout.routes, key=lambda r: not r.faint)
        ),
        *_draw_separator(layout, _ISOLATED if has_class else "no arcs"),
        *(_draw_box(b, texts[b.variable], layout, has_class) for b in layout.boxes),
        "</svg>",
    ]
    return "\n".join(parts)


def draw_figure(
    structure: Structure, variables: Sequence[Variable], caption: str, *, has_class: bool = True
) -> str:
    """The drawing in an HTML figure with a caption."""
    svg = draw_structure(structure, variables, has_class=has_class)
    return (
        f'<figure style="margin:0;overflow-x:auto">\n{svg}\n'
        f'<figcaption style="{FONT};opacity:.85">{escaped(caption)}</figcaption>\n</figure>'
    )


def _draw_route(route: Route, has_head: bool) -> str:
    """A curve with its arrow head; heads are drawn, not markers, whose ids could clash."""
    start, *rest = route.curve
    path = f"M{_pair(start)} C{' '.join(_pair(p) for p in rest)}"
    x, y = route.curve[-1]
    arc = f'data-arc="{route.parent} {route.child}"'  # for pages that bring the picture to life
    if route.faint:
        return (
            f'<path {arc} d="{path}" fill="none" stroke="{_ARC}" stroke-opacity=".45"/>'
            f'<circle {arc} cx="{x:.1f}" cy="{y - 1.5:.1f}" r="2.5" fill="{_ARC}"/>'
        )
    head = f'<path {arc} d="M{x:.1f},{y:.1f} l-3.5,-8 h7 z" fill="{_ARC}"/>' if has_head else ""
    return f'<path {arc} d="{path}" fill="none" stroke="{_ARC}" stroke-width="1.3"/>{head}'


def _draw_box(box: LabelBox, tooltip: str, layout: Layout, has_class: bool) -> str:
    fill, border = _box_colours(box.variable, layout, has_class)
    weight = ' font-weight="bold"' if box.variable == CLASS and has_class else ""
    return (
        f'<g data-variable="{box.variable}"><title>{escaped(shorten(tooltip, _TOOLTIP))}</title>'
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="6" '
        f'fill="{fill}" stroke="{border}"/>'
        f'<text x="{box.x:.1f}" y="{box.y + 4:.1f}" text-anchor="middle" fill="{_INK}"{weight}>'
        f"{escaped(box.label)}</text></g>"
    )


def _draw_separator(layout: Layout, caption: str) -> list[str]:
    if layout.separator is None:
        return []
    y = layout.separator
    return [
        f'<path d="M0,{y:.1f} H{layout.width:.1f}" stroke="{_ARC}" stroke-dasharray="4 4"/>',
        f'<text x="14" y="{y + 16:.1f}" fill="currentColor">{caption}</text>',
    ]


def _pair(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


def escaped(text: str) -> str:
    """Escaped for text and attributes; characters that XML and HTML forbid are gone."""
    return escape("".join(c for c in one_line(text) if c not in "\ufffe\uffff"))


# --- signed numbers as a table with bars ---

_FOR, _AGAINST = "#3b82c4", "#d9702b"
_BAR = 120  # pixels of the largest value, to each side
_CELL = "text-align:left;padding:1px 8px;background:none"


def bar_table(title: str, rows: Sequence[tuple[str, float]]) -> str:
    """Signed numbers with names and bars, to the right if positive."""
    largest = max((abs(value) for _, value in rows), default=0.0) or 1.0
    lines = "".join(_bar_row(name, value, largest) for name, value in rows)
    return (
        f'<div style="{FONT};overflow-x:auto"><div style="padding:4px 8px">'
        f"<strong>{escaped(title)}</strong></div>"
        f'<table style="border-collapse:collapse;border:none">{lines}</table></div>'
    )


def _bar_row(name: str, value: float, largest: float) -> str:
    size = _BAR * abs(value) / largest
    start = _BAR if value >= 0 else _BAR - size
    colour = _FOR if value >= 0 else _AGAINST
    return (
        f'<tr style="background:none"><td style="{_CELL}">{escaped(name)}</td>'
        f'<td style="{_CELL};text-align:right">{value:+.4f}</td>'
        f'<td style="{_CELL}"><svg width="{2 * _BAR}" height="12" role="presentation">'
        f'<rect x="{start:.1f}" width="{size:.1f}" height="12" fill="{colour}"/>'
        f'<path d="M{_BAR},0 v12" stroke="currentColor" stroke-opacity=".5"/></svg></td></tr>'
    )
