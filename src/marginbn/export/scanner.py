r"""Reading text formats: the words of BIF, numbers, escaped names, errors that name the line.

A :class:`Scanner` walks once over the text. Comments are blanked out beforehand (they keep their
length, so positions stay true), every step is a match of one character class or a search for one
character, and nothing is ever tried twice: the time is linear in the length of the file, whatever
it holds. Nothing is recursive.

**Escaped names.** A column may be called anything; words of ``.jkl`` files and names of pyAgrum are
not so free. A character that cannot be written becomes ``\u{HEX}``, its code point in hexadecimal
digits, and the backslash itself becomes ``\u{5c}``. So every ``\u{`` in a file we wrote is an
escape, and reading it back is exact. The empty name is ``\u{}``. Half a surrogate pair is no text
and is refused when the file is encoded.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from marginbn.data.columns import numbers_of_texts
from marginbn.data.text_files import decode_text, format_error
from marginbn.exceptions import FormatError
from marginbn.files import PathLike, read_bytes, shorten
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


_SPACE = re.compile(r"[ \t\r\n\f\v]*")
_NUMBER_WORD = re.compile(r"[^ \t\r\n\f\v,]+")
_NOT_LINE_END = re.compile(r"[^\n]")
_QUOTE_OR_COMMENT = re.compile(r'"|//|/\*')
_STOPS = "{}()[];,|"


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
        self._text = self._without_comments()

    def line(self, pos: int) -> int:
        """Line of a position, counted from 1."""
        return bisect_left(self._line_ends, pos) + 1

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

    def expect(self, mark: str) -> None:
        """Step over the character, which must come next."""
        if not self.accept(mark):
            raise self.error(f"expected {mark!r}, got {self._ahead()}")

    def block(self) -> Iterator[None]:
        """Once for every statement of a block in braces, which the caller reads."""
        self.expect("{")
        while not self.accept("}"):
            yield

    def word(self, stops: str = _STOPS) -> Word:
        """The next word: in quotes, or up to white space, a quote or one of the stops."""
        ahead = self.peek()
        start = self.pos
        if ahead == '"':
            self.pos = self._closing_quote(start)
            return Word(self._text[start + 1 : self.pos - 1], start, self.pos)
        match = _word_pattern(stops).match(self._text, start)
        if match is None:
            raise self.error(f"expected a name, got {self._ahead()}")
        self.pos = match.end()
        return Word(match[0], start, self.pos)

    def words(self, stops: str, separator: str = "") -> tuple[list[list[Word]], str]:
        """Words up to one of the stops, which is stepped over; a new list after each separator."""
        groups: list[list[Word]] = [[]]
        while (ahead := self.peek()) not in stops or not ahead:
            if not ahead:
                raise self.error(f"the file ends where {stops[0]!r} is missing")
            if ahead == separator:
                self.pos += 1
                groups.append([])
            else:
                groups[-1].append(self.word(stops + separator))
        self.pos += 1
        return groups, ahead

    def joined(self, group: list[Word]) -> Word:
        """Words without quotes that form one name, with the spaces between them."""
        if len(group) == 1:
            return group[0]
        start, end = group[0].start, group[-1].end
        return Word(self._text[start:end], start, end)

    def numbers(self, stop: str) -> FloatArray:
        """Numbers up to the stop, which is stepped over; commas are white space."""
        start, end = self.pos, self._find(stop)
        self.pos = end + 1
        texts = self._text[start:end].replace(",", " ").split()
        return parse_numbers(texts, lambda why, text: self.error(why, self._text.find(text, start)))

    def skip_statement(self, stop: str = ";") -> None:
        """Step over everything up to the stop that is not in quotes, and over it."""
        marks = re.compile(f'[{re.escape(stop)}"]')
        start = self.pos
        while match := marks.search(self._text, self.pos):
            if match[0] != '"':
                self.pos = match.end()
                return
            self.pos = self._closing_quote(match.start())
        raise self.error(f"the file ends where {stop!r} is missing", start)

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self._text)]

    def _find(self, stop: str) -> int:
        end = self._text.find(stop, self.pos)
        if end < 0:
            raise self.error(f"the file ends where {stop!r} is missing")
        return end

    def _ahead(self) -> str:
        if not self.peek():
            return "the end of the file"
        match = _NUMBER_WORD.match(self._text, self.pos, self.pos + 40)
        return repr(match[0] if match else self.peek())

    def _closing_quote(self, start: int) -> int:
        r"""Position after the quote that closes the one at ``start``; ``\"`` does not."""
        end = start
        while True:
            before, end = end + 1, self._text.find('"', end + 1)
            if end < 0:
                raise self.error("there is no closing quote to this one", start)
            inside = self._text[before:end]
            if (len(inside) - len(inside.rstrip("\\"))) % 2 == 0:
                return end + 1

    def _without_comments(self) -> str:
        """The text with spaces for comments; line ends stay."""
        if "//" not in self._text and "/*" not in self._text:
            return self._text
        pieces, done, pos = [], 0, 0
        while match := _QUOTE_OR_COMMENT.search(self._text, pos):
            if match[0] == '"':
                pos = self._closing_quote(match.start())
                continue
            pos = self._comment_end(match, "\n" if match[0] == "//" else "*/")
            comment = _NOT_LINE_END.sub(" ", self._text[match.start() : pos])
            pieces += [self._text[done : match.start()], comment]
            done = pos
        return "".join([*pieces, self._text[done:]])

    def _comment_end(self, match: re.Match[str], stop: str) -> int:
        end = self._text.find(stop, match.end())
        if end < 0 and stop != "\n":
            raise self.error(f"there is no {stop!r} to this comment", match.start())
        return len(self._text) if end < 0 else end + len(stop)


@cache
def _word_pattern(stops: str) -> re.Pattern[str]:
    return re.compile(f'[^ \t\r\n\f\v"{re.escape(stops)}]+')


def parse_numbers(texts: list[str], error: Callable[[str, str], FormatError]) -> FloatArray:
    """The texts as finite numbers; ``error(reason, text)`` makes the error for one that is none."""
    numbers = numbers_of_texts(texts)
    if numbers is None or not np.isfinite(numbers).all():
        wrong = next(text for text in texts if not _is_finite_number(text))
        raise error(f"{shorten(wrong)} is not a number", wrong)
    return numbers


def parse_whole(text: str, largest: int) -> int | None:
    """A whole number from 0 to ``largest`` in plain digits; None for anything else."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        return None
    return int(text) if int(text) <= largest else None


def _is_finite_number(text: str) -> bool:
    numbers = numbers_of_texts([text])
    return numbers is not None and bool(np.isfinite(numbers).all())


def read_text(path: PathLike) -> str:
    """Text of a UTF-8 file of sane size, without byte order mark."""
    return decode_text(read_bytes(path), os.fspath(path))
