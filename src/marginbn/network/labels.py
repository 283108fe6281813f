"""Names and states as labels in pictures: one line, not too long, of a known width.

Widths are counted in columns, as in a terminal: one for most characters, two for East Asian wide
ones and emoji, none for marks that combine with the character before.
"""

from __future__ import annotations

import unicodedata

ELLIPSIS = "…"
_NARROW = frozenset(" !'(),.:;I[]fijlt|/\\")
_BROAD = frozenset("MWmw@%#&+<=>~")


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
