r"""Reading text formats: the statements of BIF, numbers, escaped names, errors that name the line.

A :class:`Scanner` walks once over the text. Comments are blanked out beforehand (they keep their
length, so positions stay true), every step is one match of a pattern that never goes back, and
nothing is recursive. So the time is linear in the length of the file, whatever it holds.

**Escaped names.** A column may be called anything; words of ``.jkl`` files and names of pyAgrum are
not so free. A character that cannot be written becomes ``\u{HEX}``, its code point in hexadecimal
digits, and the backslash itself becomes ``\u{5c}``. So every ``\u{`` in a file we wrote is an
escape, and reading it back is exact. The empty name is ``\u{}``. Half a surrogate pair is no text
and is refused when the file is encoded.
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from marginbn.data.columns import parse_number
from marginbn.data.text_files import decode_text, format_error, load_bytes
from marginbn.exceptions import FormatError
from marginbn.files import PathLike, shorten
from marginbn.problem.array_types import FloatArray

_ESCAPED = re.compile(r"\\u\{([0-9a-fA-F]{0,6})\}")

NO_WORD = re.compile(r'[\s\x00-\x1f\x7f\\"#]')
"""What does not go into a word of a file whose words are separated by white space."""


def escape(text: str, unsafe: re.Pattern[str]) -> str:
    r"""The name with every character that ``unsafe`` matches escaped.

    Examples
    --------
    >>> print(escape("a b", NO_WORD))
    a\u{20}b
    >>> unescape(escape("a b", NO_WORD))
    'a b'
    """
    return unsafe.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", text) if text else "\\u{}"


def unescape(text: str) -> str:
    r"""The name behind an escaped one; ``\u{`` that is no escape stays as it is."""
    return _ESCAPED.sub(_unescape_match, text)


def _unescape_match(match: re.Match[str]) -> str:
    if not match[1]:
        return ""
    code = int(match[1], 16)
    return match[0] if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)


_QUOTED = r'"(?:[^"\\]|\\.)*+(?P<quote>")?'
_COMMENT = re.compile(rf"{_QUOTED}|//[^\n]*|/\*.*?(?:(?P<end>\*/)|\Z)", re.DOTALL)
_NOT_LINE_END = re.compile(r"[^\n]")
_SPACE = re.compile(r"[ \t\r\n\f\v]*")
_KEYWORD = re.compile(r'[^ \t\r\n\f\v"{}()\[\];,|]+')
_NAME = re.compile(rf'{_QUOTED}|[^ \t\r\n\f\v"]+', re.DOTALL)


@dataclass(frozen=True)
class Word:
    """A piece of the file and where it is written."""

    text: str
    start: int
    end: int


class Scanner:
    """A position in a text that only moves forward; the base of the reader of BIF.

    Parameters
    ----------
    text
        All of it. Comments start with ``//`` or stand between ``/*`` and ``*/``; quoted strings
        hold no comments.
    path
        Where it comes from, for messages.
    """

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.pos = 0
        self._text = text
        self._text = _COMMENT.sub(self._blank, text)

    def _blank(self, match: re.Match[str]) -> str:
        """Spaces for a comment; its line ends stay."""
        if match[0].startswith('"'):
            return match[0]
        if match[0].startswith("/*") and not match["end"]:
            raise self.error("there is no '*/' to this comment", match.start())
        return _NOT_LINE_END.sub(" ", match[0])

    def line(self, pos: int) -> int:
        """Line of a position, counted from 1."""
        return bisect_left(self._line_ends, pos) + 1

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self._text)]

    def error(self, reason: str, pos: int | None = None) -> FormatError:
        """The error for a position, by default the current one."""
        return format_error(self.path, self.line(self.pos if pos is None else pos), reason)

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        match = _SPACE.match(self._text, self.pos)
        assert match is not None  # it matches nothing at least
        self.pos = match.end()
        return self._text[self.pos : self.pos + 1]

    def accept(self, mark: str) -> bool:
        """Step over the character if it comes next."""
        if self.peek() != mark:
            return False
        self.pos += 1
        return True

    def keyword(self) -> str:
        """The next word that is not in quotes."""
        ahead = self.peek()
        match = _KEYWORD.match(self._text, self.pos)
        if match is None:
            raise self.error(f"expected a name, got {repr(ahead) if ahead else 'the end'}")
        self.pos = match.end()
        return match[0]

    def skip(self, stops: str) -> str:
        """Step over everything up to the first of the stops that is not in quotes, and over it."""
        start = self.pos
        marks = re.compile(f"{_QUOTED}|[{re.escape(stops)}]", re.DOTALL)
        for match in marks.finditer(self._text, start):
            if not match[0].startswith('"'):
                self.pos = match.end()
                return match[0]
            if not match["quote"]:
                raise self.error("there is no closing quote to this one", match.start())
        raise self.error(f"the file ends where {stops[0]!r} is missing", start)

    def names(self, stops: str, separator: str = ",") -> tuple[list[list[Word]], str]:
        """Words up to one of the stops, which is stepped over; a new list after each separator."""
        groups: list[list[Word]] = []
        while True:
            start, stop = self.pos, self.skip(stops + separator)
            group = []
            for match in _NAME.finditer(self._text, start, self.pos - 1):
                text = match[0][1:-1] if match[0].startswith('"') else match[0]
                group.append(Word(text, match.start(), match.end()))
            groups.append(group)
            if stop != separator:
                return groups, stop

    def joined(self, group: list[Word]) -> Word:
        """Words without quotes that form one name, with the spaces between them."""
        if len(group) == 1:
            return group[0]
        start, end = group[0].start, group[-1].end
        return Word(self._text[start:end], start, end)

    def numbers(self, stop: str) -> FloatArray:
        """Numbers up to the stop, which is stepped over; commas are white space."""
        start = self.pos
        self.skip(stop)
        texts = self._text[start : self.pos - 1].replace(",", " ").split()
        return parse_numbers(texts, lambda why, text: self.error(why, self._text.find(text, start)))


def parse_numbers(texts: list[str], error: Callable[[str, str], FormatError]) -> FloatArray:
    """The texts as finite numbers; ``error(reason, text)`` makes the error for one that is none."""
    numbers = [parse_number(text) for text in texts]
    for text, number in zip(texts, numbers, strict=True):
        if number is None or not math.isfinite(number):
            raise error(f"{shorten(text)} is not a number", text)
    return np.array(numbers, dtype=np.float64)


def read_text(path: PathLike) -> str:
    """Text of a UTF-8 file without byte order mark, unpacked if its name says so."""
    return decode_text(load_bytes(Path(path)), os.fspath(path))
