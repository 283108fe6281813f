"""HTML and SVG in which every name is harmless, and the chart of the calibration.

:func:`element` escapes everything that is not :class:`Markup`, and only :func:`element` and the few
functions next to it make markup. The chart has the width of a phone, so that its text stays
readable there; its colours come from the style sheet by the classes of the elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from marginbn.classifiers.evaluation import accuracy_interval
from marginbn.classifiers.measures import CalibrationBin
from marginbn.network.svg import escaped
from marginbn.network.wording import counted, one_line, share


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Markup

_WIDTH, _HEIGHT = 380.0, 230.0
"""Units of the drawing: as wide as a phone, so that text stays readable there."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 12.0, 14.0, 38.0
"""Margins in the same units, with room for the numbers and titles of the axes."""


def element(tag: str, *children: Child, **attributes: object) -> Markup:
    """An element with its children; ``class_`` and ``data_row`` are ``class`` and ``data-row``.

    Attributes that are None are left out.

    Examples
    --------
    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{named}>{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Several pieces one after the other."""
    return Markup("".join(c if isinstance(c, Markup) else escaped(c) for c in children))


def name(text: str) -> Markup:
    """A name from the data, on its own in right-to-left text."""
    return element("bdi", text if one_line(text).strip() else "(blank)")


def table(header: list[Child], rows: list[list[Child]], **attributes: object) -> Markup:
    """A table whose first column holds the heads of the rows."""
    head = element("tr", *(element("th", cell, scope="col") for cell in header))
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", c) for c in others))
        for first, *others in rows
    ]
    content = element("table", element("thead", head), element("tbody", *body), **attributes)
    return element("div", content, class_="scroll", tabindex="0", role="group", aria_label="Table")


def definitions(pairs: list[tuple[str, Child]], **attributes: object) -> Markup:
    """A list of terms with their values."""
    entries = [element("div", element("dt", term), element("dd", value)) for term, value in pairs]
    return element("dl", *entries, **attributes)


def draw_calibration(bins: Sequence[CalibrationBin]) -> Markup:
    """How often predictions of each confidence are right, over the number of rows."""
    most = max((b.n_rows for b in bins), default=1)
    parts = _axes("stated probability, %", "right, %")
    for b in bins:
        height = 0.3 * (_up(0) - _up(1)) * b.n_rows / most
        column = {"x": _across(b.confidence) - 7, "y": _up(0) - height}
        size = {"width": 14.0, "height": height}
        parts.append(element("rect", class_="rows", **_pixels(column | size)))
    parts.append(_path([(_across(0), _up(0)), (_across(1), _up(1))], "diagonal"))
    for b in bins:
        half, px = accuracy_interval(b.accuracy, b.n_rows), _across(b.confidence)
        low, high = max(b.accuracy - half, 0.0), min(b.accuracy + half, 1.0)
        parts.append(_line(px, _up(low), px, _up(high), "whisker"))
    parts.append(_path([(_across(b.confidence), _up(b.accuracy)) for b in bins], "measured"))
    for b in bins:
        shares = f"stated {share(b.confidence)}, right {share(b.accuracy)}"
        at = _pixels({"cx": _across(b.confidence), "cy": _up(b.accuracy)})
        dot = element("title", f"{shares}, {counted(b.n_rows, 'row')}")
        parts.append(element("circle", dot, r="4", class_="dot measured", **at))
    return element(
        "svg",
        element("title", "Calibration: how often predictions of each probability are right"),
        *parts,
        viewBox=f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}",
        role="img",
        class_="chart",
    )


def _across(share: float) -> float:
    return _LEFT + share * (_WIDTH - _RIGHT - _LEFT)


def _up(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)


def _axes(x_label: str, y_label: str) -> list[Markup]:
    """Lines, numbers and titles of both axes, which go from 0 to 100 %."""
    parts = []
    for k in range(5):
        label, x, y = str(25 * k), _across(k / 4), _up(k / 4)
        parts.append(_line(_across(0), y, _across(1), y, "grid" if k else "axis"))
        parts.append(_text(label, _LEFT - 7, y + 4, text_anchor="end"))
        parts.append(_text(label, x, _up(0) + 17, text_anchor="middle"))
    parts.append(_text(x_label, _across(0.5), _up(0) + 33, text_anchor="middle"))
    turned = f"translate(11 {_up(0.5):.0f}) rotate(-90)"
    return [*parts, element("text", y_label, transform=turned, text_anchor="middle")]


def _text(text: str, x: float, y: float, **attributes: str) -> Markup:
    return element("text", text, **_pixels({"x": x, "y": y}), **attributes)


def _path(line: Sequence[tuple[float, float]], kind: str) -> Markup:
    text = "M" + " L".join(f"{px:.1f},{py:.1f}" for px, py in line) if line else None
    return element("path", d=text, class_=f"line {kind}")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return element("line", class_=kind, **_pixels({"x1": x1, "y1": y1, "x2": x2, "y2": y2}))


def _pixels(numbers: dict[str, float]) -> dict[str, str]:
    return {key: f"{value:.1f}" for key, value in numbers.items()}
