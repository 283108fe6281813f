"""Numbers, lists and tables in words, and names as labels: one line, not too long, of known width.

Widths are counted in columns, as in a terminal: one for most characters, two for East Asian wide
ones and emoji, none for marks that combine with the character before.
"""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Sequence

from marginbn.problem import ANY_NUMBER

ELLIPSIS = "…"
_GLUE = "\0"  # stands for a space at which no line may end
_JOINERS = "\u200c\u200d"
_NARROW = frozenset(" !'(),.:;I[]fijlt|/\\")
_BROAD = frozenset("MWmw@%#&+<=>~")
_NUMBER = r"[-+]?(?:[\d.]+(?:e[-+]?\d+)?|inf)"
_HALF_LINE = re.compile(rf"(?:<=|>) {_NUMBER}")  # bins of a discretised column
_INTERVAL = re.compile(rf"\({_NUMBER}, {_NUMBER}\]")
_OR = " or "
_LISTED_STATES = 4
"""States of a group that are listed one by one."""


def number(value: float, digits: int = 4) -> str:
    """A score, with four decimals as the literature prints it."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "unknown"


def percent(fraction: float) -> str:
    """A fraction in per cent; tiny but positive ones do not read as zero, nor as powers of ten.

    Examples
    --------
    >>> percent(0.00404), percent(0.0), percent(1e-6), percent(1e-7), percent(float("inf"))
    ('0.40 %', '0 %', '0.0001 %', '< 0.0001 %', 'unknown')
    """
    if not math.isfinite(fraction):
        return "unknown"
    if 0 < fraction < 5e-5:
        return "< 0.0001 %" if fraction < 1e-6 else f"{100 * fraction:.2g} %"
    return f"{100 * fraction:.2f} %" if fraction else "0 %"


def share(value: float, half_width: float | None = None) -> str:
    """A share of rows, with half the width of its 95 % interval: more digits tell nothing.

    Examples
    --------
    >>> share(0.9398, 0.0317), share(0.735)
    ('94.0 % ± 3.2', '73.5 %')
    """
    interval = "" if half_width is None else f" ± {100 * half_width:.1f}"
    return f"{100 * value:.1f} %{interval}"


def seconds(value: float) -> str:
    """A duration: two significant digits below ten seconds, then whole seconds and minutes."""
    if value < 10:
        return f"{value:.2f} s" if value >= 0.005 else "less than 0.01 s"
    return f"{value:.0f} s" if value < 120 else f"{value // 60:.0f} min {value % 60:.0f} s"


def counted(count: int, noun: str) -> str:
    """``1 row`` or ``2 rows``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listing(names: Sequence[str], most: int = 12, more: str = "") -> str:
    """The first names; where some are left out, dots and what is said of the rest."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ...{more}"


def assignment(variable: str, state: str | None) -> str:
    """A state, or a group of states, of a variable.

    Examples
    --------
    >>> assignment("colour", "red"), assignment("age", "> 40"), assignment("age", "(20, 40]")
    ('colour = red', 'age > 40', 'age in (20, 40]')
    >>> assignment("age", "any number"), assignment("age", None)
    ('age known', 'age missing')
    """
    if state is None:
        return f"{variable} missing"
    if state == ANY_NUMBER:
        return f"{variable} known"
    first = state.partition(_OR)[0]
    if _HALF_LINE.fullmatch(first):
        return f"{variable} {state}"
    return f"{variable} {'in' if _INTERVAL.fullmatch(first) else '='} {state}"


def name_group(states: Sequence[str]) -> str:
    """One label for several states: neighbouring bins by their outer limits, others listed.

    Examples
    --------
    >>> name_group(["(20, 35]", "(35, 40]", "(40, 50]"]), name_group(["(35, 50]", "> 50"])
    ('(20, 50]', '> 35')
    >>> name_group(["<= 5", "> 5", "(missing)"]), name_group(["red", "blue"])
    ('any number or (missing)', 'red or blue')
    >>> name_group(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"])
    'Monday … Friday (5 states)'
    """
    pieces: list[str | tuple[str, str]] = []
    for state in states:
        limits = bin_limits(state)
        last = pieces[-1] if pieces else None
        if limits and isinstance(last, tuple) and limits[0] == last[1] != "":
            pieces[-1] = (last[0], limits[1])
        else:
            pieces.append(limits or state)
    if len(pieces) > _LISTED_STATES:
        return f"{states[0]} {ELLIPSIS} {states[-1]} ({len(states)} states)"
    return _OR.join(piece if isinstance(piece, str) else _name_bin(*piece) for piece in pieces)


def bin_limits(state: str) -> tuple[str, str] | None:
    """Lower and upper limit of a bin, empty where there is none; None if it is no bin."""
    if _HALF_LINE.fullmatch(state):
        sign, _, limit = state.partition(" ")
        return (limit, "") if sign == ">" else ("", limit)
    if _INTERVAL.fullmatch(state):
        low, _, high = state[1:-1].partition(", ")
        return low, high
    return None


def _name_bin(low: str, high: str) -> str:
    if low and high:
        return f"({low}, {high}]"
    return f"> {low}" if low else f"<= {high}" if high else ANY_NUMBER


def align(table: Sequence[Sequence[str]], indent: int = 2) -> list[str]:
    """Lines of a text table: first column left, all others right; control characters escaped."""
    table = [[visible(cell) for cell in row] for row in table]
    widths = column_widths(table)
    lines = []
    for row in table:
        room = [" " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [row[0] + room[0], *map(str.__add__, room[1:], row[1:])]
        lines.append(" " * indent + "  ".join(cells).rstrip())
    return lines


def column_widths(table: Sequence[Sequence[str]]) -> list[int]:
    """Width of the widest cell of each column."""
    return [max(map(columns, column)) for column in zip(*table, strict=True)]


def hanging(label: str, parts: str | Sequence[str], width: int) -> list[str]:
    """Wrapped text with the label in front and the rest below its beginning.

    Text is wrapped at any space; of a sequence of parts every part stays in one piece. Control
    characters are escaped.
    """
    if isinstance(parts, str):
        pieces = [visible(parts)]
    else:
        pieces = [visible(part).replace(" ", _GLUE) for part in parts]
    lines = textwrap.wrap(
        " ".join(pieces),
        max(width, 40),
        initial_indent="  " + label,
        subsequent_indent=" " * (2 + max(len(label), 2)),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]


def visible(text: str) -> str:
    """The text with control characters as escapes: what a terminal may show of names and labels.

    Line ends are among them, and so are the marks that change the direction of writing: nothing in
    a name may look like something we say. Only the two joiners of letters stay, which some scripts
    need.

    Examples
    --------
    >>> print(visible("red" + chr(27) + "[2J" + chr(10) + "Proved: all"))
    red\\x1b[2J\\nProved: all
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode() if _is_control(c) and c not in _JOINERS else c
        for c in text
    )


def one_line(text: str) -> str:
    """The text without line ends and other control characters; each becomes a space.

    Examples
    --------
    >>> one_line("petal\\nlength")
    'petal length'
    """
    return "".join(" " if _is_control(c) else c for c in text)


def columns(text: str) -> int:
    """Width of a text in columns."""
    return sum(_width(character) for character in text)


def shorten(text: str, most: int) -> str:
    """The text on one line; if it is wider than ``most`` columns its middle is left out.

    Both ends are kept, because columns of a table often differ at one of them only.

    Examples
    --------
    >>> shorten("word_freq_telnet_total", 15)
    'word_fr…t_total'
    >>> shorten("short", 15)
    'short'
    """
    line = one_line(text)
    if columns(line) <= most:
        return line
    room = max(most - 1, 2)
    head = _fitting(line, (room + 1) // 2)
    tail = _fitting(line[::-1], room // 2)[::-1]
    return f"{head.rstrip()}{ELLIPSIS}{tail.lstrip()}"


def text_width(text: str) -> float:
    """Estimated width in a sans-serif font, in units of the font size, on the safe side.

    Measured on DejaVu Sans, which is wider than what most systems show.
    """
    return sum(_letter_width(character) for character in text)


def _letter_width(character: str) -> float:
    if not _width(character):
        return 0.0
    if _width(character) == 2:
        return 1.3
    if character in _NARROW:
        return 0.42
    if character in _BROAD or not character.isascii():
        return 1.02
    return 0.8 if character.isupper() else 0.66


def _fitting(text: str, most: int) -> str:
    """The longest beginning of a text that is at most so wide."""
    used = 0
    for place, character in enumerate(text):
        used += _width(character)
        if used > most:
            return text[:place]
    return text


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _is_control(character: str) -> bool:
    # Cc, Cf (such as direction marks, which reorder what follows), Cs, Zl, Zp
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
