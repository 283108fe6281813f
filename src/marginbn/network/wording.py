"""Numbers, lists and tables as plain text for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

_GLUE = "\0"  # stands for a space at which no line may end


def number(value: float) -> str:
    """A score with four decimals, as the literature prints it."""
    return f"{value:.4f}" if math.isfinite(value) else "unknown"


def percent(fraction: float) -> str:
    """A fraction in per cent; tiny but positive ones do not read as zero.

    Examples
    --------
    >>> percent(0.00404), percent(0.0), percent(1e-7), percent(float("inf"))
    ('0.40 %', '0 %', '1e-05 %', 'unknown')
    """
    if not math.isfinite(fraction):
        return "unknown"
    if 0 < fraction < 5e-5:
        return f"{100 * fraction:.0e} %"
    return f"{100 * fraction:.2f} %" if fraction else "0 %"


def seconds(value: float) -> str:
    """A duration: two significant digits below ten seconds, then whole seconds and minutes."""
    if value < 10:
        return f"{value:.2f} s"
    return f"{value:.0f} s" if value < 120 else f"{value // 60:.0f} min {value % 60:.0f} s"


def counted(count: int, noun: str) -> str:
    """``1 row`` or ``2 rows``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listing(title: str, names: Sequence[str], most: int = 12) -> str:
    """A title and the first names, as in ``3: red, green, blue``."""
    shown = ", ".join(names[:most])
    return f"{title}: {shown}" + (", ..." if len(names) > most else "")


def align(table: Sequence[Sequence[str]], indent: int = 2) -> list[str]:
    """Lines of a text table: first column left, all others right."""
    widths = column_widths(table)
    lines = []
    for row in table:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        cells[0] = row[0].ljust(widths[0])
        lines.append(" " * indent + "  ".join(cells).rstrip())
    return lines


def column_widths(table: Sequence[Sequence[str]]) -> list[int]:
    """Width of the widest cell of each column."""
    return [max(map(len, column)) for column in zip(*table, strict=True)]


def hanging(label: str, parts: str | Sequence[str], width: int) -> list[str]:
    """Wrapped text with the label in front and the rest below its beginning.

    Text is wrapped at any space; of a sequence of parts every part stays in one piece.
    """
    pieces = [parts] if isinstance(parts, str) else [p.replace(" ", _GLUE) for p in parts]
    lines = textwrap.wrap(
        " ".join(pieces),
        max(width, 40),
        initial_indent="  " + label,
        subsequent_indent=" " * (2 + max(len(label), 2)),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]
