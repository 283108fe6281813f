"""HTML and SVG in which every name is harmless, and the charts of the page.

:func:`element` escapes whatever is not :class:`Markup`, and only :func:`element` and the few
functions next to it make markup. Charts show how the bound closed, accuracies with intervals, and
contributions. Their sizes are those of a phone's width, so that the text stays readable there;
colours come from the style sheet by the classes of the elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from marginbn.classifiers.evaluation import told_interval
from marginbn.classifiers.measures import CalibrationBin
from marginbn.network.svg import escaped
from marginbn.network.wording import columns, one_line, percent, shorten, text_width
from marginbn.solvers.result import TracePoint


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Markup
Point = tuple[float, float]

_WIDTH, _HEIGHT = 380.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 12.0, 14.0, 38.0
_NARROW = 340.0  # width of bars with their labels
_LABELS, _NUMBERS = 158.0, 44.0  # room for labels and for numbers
_FONT = 12.0
_MOST_POINTS = 400
"""Points of a curve that are drawn; more would not be seen."""

_DECADES = 1.5
"""Spans of more decades than this are drawn on a logarithmic axis of time."""

_LEAST_GAP = 1e-8
"""Gaps below are drawn there: a logarithm has no zero."""


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
    return element("bdi", visible(text))


def visible(text: str) -> str:
    """A name that can be seen, even where there is nothing to see."""
    return text if one_line(text).strip() else "(blank)"


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


def draw_trace(trace: Sequence[TracePoint]) -> Markup:
    """Best objective and proven bound over time, the optimum between them."""
    points = _thinned(trace)
    known = [v for p in points for v in (p.objective, p.bound) if math.isfinite(v)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    margin = 0.04 * (high - low) or 0.5
    x = _time_scale(points)
    y = linear_scale(low - margin, high + margin, _HEIGHT - _BOTTOM, _TOP, 4)
    bound = _steps([(p.seconds, p.bound) for p in points], x, y)
    objective = _steps([(p.seconds, p.objective) for p in points], x, y)
    return _chart(
        f"Objective and bound over time; the gap at the end is {percent(trace[-1].gap)}",
        *_axes(x, y, "seconds", "nats"),
        _path(bound, "bound"),
        _path(objective, "objective"),
        *(_end_dot(line, kind) for line, kind in ((bound, "bound"), (objective, "objective"))),
    )


def draw_gap(trace: Sequence[TracePoint]) -> Markup:
    """Relative gap over time in per cent, both axes logarithmic where that helps."""
    points = [p for p in _thinned(trace) if math.isfinite(p.gap)]
    gaps = [100 * max(p.gap, _LEAST_GAP) for p in points]
    x = _time_scale(_thinned(trace))
    low, high = 10 ** math.floor(math.log10(min(gaps, default=1.0))), max(gaps, default=1.0)
    y = log_scale(low, max(high * 1.2, 10 * low), _HEIGHT - _BOTTOM, _TOP)
    line = _steps([(p.seconds, g) for p, g in zip(points, gaps, strict=True)], x, y)
    return _chart(
        f"Gap over time, {percent(trace[-1].gap)} at the end",
        *_axes(x, y, "seconds", "gap, %"),
        _path(line, "gap"),
        _end_dot(line, "gap"),
    )


def draw_intervals(rows: Sequence[tuple[str, float, float]]) -> Markup:
    """Accuracies with their intervals, one line each: (name, accuracy, half width)."""
    low = min(value - half for _, value, half in rows)
    high = max(value + half for _, value, half in rows)
    margin = max(0.08 * (high - low), 0.005)
    low, high = max(0.0, low - margin), min(1.0, high + margin)
    height = _TOP + 34 * len(rows) + _BOTTOM
    x = linear_scale(100 * low, 100 * high, 136.0, _WIDTH - _RIGHT)
    lines = [_interval(row, _TOP + 34 * i + 17, x) for i, row in enumerate(rows)]
    axis = _bottom_axis(x, height - _BOTTOM, "accuracy, %", 136.0)
    return _chart("Accuracy of each method with its 95 % interval", *axis, *lines, height=height)


def _interval(row: tuple[str, float, float], y: float, x: Scale) -> Markup:
    name, value, half = row
    left, right = x.place(100 * max(value - half, 0.0)), x.place(100 * min(value + half, 1.0))
    return element(
        "g",
        element("text", name, x="128", y=f"{y + 4:.1f}", text_anchor="end"),
        _line(left, y, right, y, "whisker"),
        _line(left, y - 5, left, y + 5, "whisker"),
        _line(right, y - 5, right, y + 5, "whisker"),
        element("circle", cx=f"{x.place(100 * value):.1f}", cy=f"{y:.1f}", r="4.5"),
        class_="interval",
    )


def draw_calibration(bins: Sequence[CalibrationBin]) -> Markup:
    """How often predictions of each confidence are right, over the number of rows."""
    x = linear_scale(0.0, 100.0, _LEFT, _WIDTH - _RIGHT)
    y = linear_scale(0.0, 100.0, _HEIGHT - _BOTTOM, _TOP, 4)
    most = max((b.n_rows for b in bins), default=1)
    points = [(x.place(100 * b.confidence), y.place(100 * b.accuracy)) for b in bins]
    parts = _axes(x, y, "stated probability, %", "right, %")
    parts += [_count_column(b, most, x) for b in bins]
    parts.append(_path([(x.place(0), y.place(0)), (x.place(100), y.place(100))], "diagonal"))
    parts += [_calibration_whisker(b, x, y) for b in bins]
    parts.append(_path(points, "objective"))
    for (px, py), b in zip(points, bins, strict=True):
        text = f"said {percent(b.confidence)}, right {percent(b.accuracy)}, {b.n_rows} rows"
        dot = {"cx": f"{px:.1f}", "cy": f"{py:.1f}", "r": "4"}
        parts.append(element("circle", element("title", text), class_="dot objective", **dot))
    return _chart("Calibration: how often predictions of each probability are right", *parts)


def _count_column(b: CalibrationBin, most: int, x: Scale) -> Markup:
    """Rows of a bin as a pale column from the axis."""
    height = (_HEIGHT - _BOTTOM - _TOP) * 0.3 * b.n_rows / most
    box = {"x": x.place(100 * b.confidence) - 7, "y": _HEIGHT - _BOTTOM - height}
    size = {"width": 14.0, "height": height}
    return element("rect", class_="rows", **{k: f"{v:.1f}" for k, v in (box | size).items()})


def _calibration_whisker(b: CalibrationBin, x: Scale, y: Scale) -> Markup:
    half = told_interval(b.accuracy, b.n_rows)
    px = x.place(100 * b.confidence)
    ends = (y.place(100 * max(b.accuracy - half, 0.0)), y.place(100 * min(b.accuracy + half, 1.0)))
    return _line(px, ends[0], px, ends[1], "whisker")


def draw_bars(rows: Sequence[tuple[str, float]]) -> Markup:
    """Bars of values that are not negative, each behind its label."""
    scale = linear_scale(0.0, max(max(v for _, v in rows), 1e-9), _LABELS + 8, _NARROW - _NUMBERS)
    bars = [
        _bar(row, fit_label(row[0], _LABELS), (_LABELS - 2, 21.0 * i + 16), 21.0 * i + 12, scale)
        for i, row in enumerate(rows)
    ]
    zero = scale.place(0.0)
    height = 21.0 * len(rows) + 4
    return _bars(rows, [*bars, _line(zero, 0, zero, height, "zero")], height)


def draw_signed_bars(rows: Sequence[tuple[str, float]]) -> Markup:
    """Bars to both sides of zero, each under its label, with signed numbers."""
    low, high = min(0.0, *(v for _, v in rows)), max(0.0, *(v for _, v in rows))
    start, end = (_NUMBERS if low < 0 else 1.0), (_NARROW - _NUMBERS if high > 0 else _NARROW - 1)
    scale = linear_scale(low, high, start, end)
    bars = [
        _bar(row, fit_label(row[0], _NARROW), (0.0, 37.0 * i + 13), 37.0 * i + 25, scale)
        for i, row in enumerate(rows)
    ]
    return _bars(rows, bars, 37.0 * len(rows))


def _bars(rows: Sequence[tuple[str, float]], bars: Sequence[Markup], height: float) -> Markup:
    title = ", ".join(f"{label} {value:.2f}" for label, value in rows[:3])
    return _chart(title, *bars, width=_NARROW, height=height)


def _bar(row: tuple[str, float], label: str, label_place: Point, y: float, scale: Scale) -> Markup:
    """A bar of height 13 around y; the label ends left of the bars or starts at the margin."""
    name, value = row
    left, right = sorted((scale.place(0.0), scale.place(value)))
    number = f"{value:+.2f}" if label_place[0] == 0 else f"{value:.2f}"
    after = {"x": f"{right + 5:.1f}", "text_anchor": "start"}
    if value < 0:
        after = {"x": f"{left - 5:.1f}", "text_anchor": "end"}
    anchor = "end" if label_place[0] > 0 else "start"
    at = {"x": f"{label_place[0]:.1f}", "y": f"{label_place[1]:.1f}", "text_anchor": anchor}
    box = {"x": left, "y": y - 6.5, "width": right - left, "height": 13.0}
    return element(
        "g",
        element("title", f"{name}: {number}"),
        element("rect", rx="2", **{k: f"{v:.1f}" for k, v in box.items()}),
        element("text", label, class_="label", **at),
        element("text", number, y=f"{y + 4:.1f}", class_="value", **after),
        class_="for" if value >= 0 else "against",
    )


def fit_label(label: str, room: float) -> str:
    """The label, with its middle left out until it fits."""
    shown = visible(label)
    most = columns(shown)
    while most > 3 and text_width(shorten(shown, most)) * _FONT > room:
        most -= 1
    return shorten(shown, most)


def _chart(title: str, *parts: Markup, width: float = _WIDTH, height: float = _HEIGHT) -> Markup:
    return element(
        "svg",
        element("title", title),
        *parts,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        class_="chart",
    )


def _thinned(trace: Sequence[TracePoint]) -> list[TracePoint]:
    """Not too many points, the first and the last always among them."""
    step = -(-len(trace) // _MOST_POINTS)
    kept = list(trace[::step])
    return kept if kept[-1] is trace[-1] else [*kept, trace[-1]]


def _time_scale(points: Sequence[TracePoint]) -> Scale:
    end = max(points[-1].seconds, 1e-3)
    first = min((p.seconds for p in points if p.seconds > 0), default=end)
    span = (_LEFT, _WIDTH - _RIGHT)
    if end / first > 10**_DECADES:
        return log_scale(10 ** math.floor(math.log10(first)), end, *span)
    return linear_scale(0.0, end, *span)


def _steps(points: Sequence[Point], x: Scale, y: Scale) -> list[Point]:
    """A value holds until the next one; unknown ones are left out."""
    line: list[Point] = []
    for seconds, value in points:
        if math.isfinite(value):
            if line:
                line.append((x.place(seconds), line[-1][1]))
            line.append((x.place(seconds), y.place(value)))
    return line


def _path(line: Sequence[Point], kind: str) -> Markup:
    text = "M" + " L".join(f"{px:.1f},{py:.1f}" for px, py in line) if line else None
    return element("path", d=text, class_=f"line {kind}")


def _end_dot(line: Sequence[Point], kind: str) -> Markup:
    if not line:
        return Markup("")
    px, py = line[-1]
    return element("circle", cx=f"{px:.1f}", cy=f"{py:.1f}", r="3.5", class_=f"dot {kind}")


def _axes(x: Scale, y: Scale, x_label: str, y_label: str) -> list[Markup]:
    parts = _bottom_axis(x, _HEIGHT - _BOTTOM, x_label, _LEFT)
    for value, label in y.ticks:
        py = y.place(value)
        parts.append(_line(_LEFT, py, _WIDTH - _RIGHT, py, "grid"))
        parts.append(
            element("text", label, x=f"{_LEFT - 7:.1f}", y=f"{py + 4:.1f}", text_anchor="end")
        )
    turned = f"translate(11 {(_TOP + _HEIGHT - _BOTTOM) / 2:.0f}) rotate(-90)"
    parts.append(element("text", y_label, transform=turned, text_anchor="middle", class_="unit"))
    return parts


def _bottom_axis(x: Scale, y: float, label: str, left: float) -> list[Markup]:
    parts = [_line(left, y, _WIDTH - _RIGHT, y, "axis")]
    for value, text in x.ticks:
        px = x.place(value)
        parts.append(_line(px, y, px, y + 4, "axis"))
        parts.append(element("text", text, x=f"{px:.1f}", y=f"{y + 17:.1f}", text_anchor="middle"))
    middle = (left + _WIDTH - _RIGHT) / 2
    place = {"x": f"{middle:.0f}", "y": f"{y + 33:.1f}"}
    return [*parts, element("text", label, text_anchor="middle", class_="unit", **place)]


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return element("line", class_=kind, **{k: f"{v:.1f}" for k, v in ends.items()})


@dataclass(frozen=True)
class Scale:
    """An axis from ``start`` to ``end`` (in pixels) with the ticks on it.

    Parameters
    ----------
    place
        From a value to its pixel.
    ticks
        Values with their labels.
    """

    place: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]


def linear_scale(low: float, high: float, start: float, end: float, most: int = 5) -> Scale:
    """Equal steps; the ends are the values themselves, widened where they are equal."""
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        low, high = low - 0.5, high + 0.5
    step = round_step((high - low) / most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = tuple((k * step, f"{k * step:.{digits}f}") for k in range(first, last + 1))
    return Scale(lambda value: start + (value - low) / (high - low) * (end - start), ticks)


def log_scale(low: float, high: float, start: float, end: float, most: int = 5) -> Scale:
    """Equal ratios; both ends must be positive. Ticks are powers of ten."""
    lower, upper = math.log10(low), math.log10(max(high, low * 1.001))

    def place(value: float) -> float:
        return start + (math.log10(max(value, low)) - lower) / (upper - lower) * (end - start)

    exponents = range(math.ceil(lower - 1e-9), math.floor(upper + 1e-9) + 1)
    every = max(1, -(-len(exponents) // most))
    ticks = tuple((10.0**k, f"{10.0**k:g}") for k in exponents[::every])
    return Scale(place, ticks)


def round_step(width: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least so wide.

    Examples
    --------
    >>> round_step(0.3), round_step(7), round_step(20)
    (0.5, 10.0, 20.0)
    """
    power = 10.0 ** math.floor(math.log10(width))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-9))
