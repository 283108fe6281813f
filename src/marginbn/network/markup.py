"""Small tables in HTML for notebooks: no script, no style sheet, readable on white and on black."""

from __future__ import annotations

from collections.abc import Sequence

from marginbn.network.svg import FONT, escaped

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
