"""Fields of delimited text (CSV and its kin), as a whole or block by block.

One reader decides: the csv module of the standard library, strict. pyarrow or polars, where one is
installed, splits what both surely split alike, ten times as fast
(:mod:`~marginbn.data.splitting`). A block of whole rows is *plain* if

* it is UTF-8 without NUL and without byte order mark, and every carriage return belongs to a line
  end;
* every quote opens a field, closes one, or is one of two that stand for a quote in a field;
* no row is longer than the longest field that the csv module reads.

From the first block on that is not plain, or has rows of a wrong length, the csv module reads; so
errors are always its own, and the line of a row is counted when asked for.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import zlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from marginbn.data.splitting import find_splitter
from marginbn.data.text import Origin, Texts, format_error, load_text, not_text
from marginbn.exceptions import FormatError, InputError

DELIMITERS = {".csv": ",;\t|", ".tsv": "\t", ".txt": "\t,;|"}
"""Delimiters by file extension; the first that occurs in the header is taken."""

OTHER_DELIMITERS = ",;\t|:~^ "
"""Those that are not looked for, because names and texts hold them too; they can be given."""

BLOCK_BYTES = 1 << 23
"""Text that is looked at in one piece; a block ends with a row, so it may be longer."""

BATCH_ROWS = 20_000
"""Rows that the csv module reads at a time."""

_MOST_BYTES = 1 << 26  # a row that is longer is none: a quote was not closed


@dataclass(frozen=True)
class TextTable:
    """Header and fields of a delimited file, all still text as written."""

    names: tuple[str, ...]
    columns: tuple[Texts, ...]
    origin: Origin
    n_rows: int


def read_delimited(
    path: Path, suffix: str, *, delimiter: str | None = None, encoding: str = "utf-8"
) -> TextTable:
    """Fields of a whole .csv, .tsv or .txt file, checked to be rectangular, by the csv module."""
    text = load_text(path, encoding)
    delimiter = checked_delimiter(delimiter) or _sniff_delimiter(text, suffix)
    rows = _Rows(io.StringIO(text, newline=""), delimiter, str(path))
    batches = list(rows.batches())
    if not batches:
        raise format_error(str(path), None, "there are no rows below the header")
    columns = zip(*chain.from_iterable(batch for batch, _ in batches), strict=True)
    lines = list(chain.from_iterable(lines for _, lines in batches))
    return TextTable(rows.names, tuple(columns), Origin(str(path), lines), len(lines))


def open_delimited(
    stream: BinaryIO,
    path: str,
    suffix: str = ".csv",
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> TextBlocks:
    """Read the header; the rows are read block by block when they are asked for."""
    checked_delimiter(delimiter)
    source = _Source(stream, path, encoding)
    begun = b""
    while True:
        added = source.block()
        begun += added
        is_over = not added or len(begun) > _MOST_BYTES
        try:
            blocks = _split_header(source, begun, suffix, delimiter)
        except FormatError:
            if is_over:
                raise
        else:
            if blocks.begun or is_over:  # otherwise the header may go on
                return blocks


def _split_header(source: _Source, begun: bytes, suffix: str, delimiter: str | None) -> TextBlocks:
    """The names of the columns, and what is left of the text below them."""
    if not begun.strip():
        raise format_error(source.path, None, "the file is empty")
    text = begun.decode("utf-8", errors="surrogateescape")
    delimiter = delimiter or _sniff_delimiter(text, suffix)
    lines = io.StringIO(text, newline="")
    checked = (source.checked(line, number) for number, line in enumerate(lines, start=1))
    rows = _Rows(checked, delimiter, source.path)
    rows.header()
    left = text[lines.tell() :].encode("utf-8", errors="surrogateescape")
    return TextBlocks(rows.names, source, left, rows.next_line, delimiter)


def checked_delimiter(delimiter: str | None) -> str | None:
    """The delimiter, if it can be one; a space stands for any number of them. None stays None."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InputError(f"delimiter must be a single character such as ',', got {delimiter!r}")
    return delimiter


def check_separated(path: str, name: str, texts: Sequence[str]) -> None:
    """Refuse the only column of a file whose name and texts another delimiter splits alike."""
    for delimiter in OTHER_DELIMITERS:
        sizes = {len(t.split() if delimiter == " " else t.split(delimiter)) for t in (name, *texts)}
        if texts and len(sizes) == 1 and sizes.pop() > 1:
            raise format_error(
                path,
                None,
                f"there is one column, {name!r}, and {delimiter!r} seems to separate fields in it: "
                f"say delimiter={delimiter!r}, or any other one if it is one column indeed",
            )


def checked_encoding(encoding: str) -> str:
    """The name of an encoding of text that Python knows."""
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise InputError(
            f"encoding must be one that Python knows, such as utf-8, latin-1, cp1252 or utf-16, "
            f"got {encoding!r}"
        ) from None


def _sniff_delimiter(text: str, suffix: str) -> str:
    header = re.sub(r'"[^"]*"', "", text.lstrip().partition("\n")[0])
    candidates = DELIMITERS[suffix]
    return next((c for c in candidates if c in header), candidates[0])


# --- the csv module -------------------------------------------------------------------------------


class _Rows:
    """Rows of text lines in batches; ``names`` is the header, found on the way if not given."""

    def __init__(
        self,
        lines: Iterable[str],
        delimiter: str,
        path: str,
        *,
        names: tuple[str, ...] = (),
        first_line: int = 1,
    ) -> None:
        self.names = names
        self._path, self._before = path, first_line - 1
        if delimiter == " ":  # spaces before a field are skipped; those behind the last are none
            lines = map(_without_last_spaces, lines)
        self._reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)

    @property
    def next_line(self) -> int:
        """The line after those that were read."""
        return self._before + self._reader.line_num + 1

    def header(self) -> None:
        """Read on until the names of the columns are known, or the text ends."""
        for row, line in self._rows():
            if not _is_blank(row):
                self.names = _checked_header(row, self._path, line)
                return

    def batches(self) -> Iterator[tuple[list[list[str]], list[int]]]:
        """Rows, and the line on which each begins; never an empty batch."""
        if not self.names:
            self.header()
        rows: list[list[str]] = []
        lines: list[int] = []
        for row, line in self._rows():
            if len(row) == len(self.names):
                rows.append(row)
                lines.append(line)
            elif not _is_blank(row):
                reason = f"expected {len(self.names)} fields, got {len(row)}"
                raise format_error(self._path, line, reason)
            if len(rows) == BATCH_ROWS:
                yield rows, lines
                rows, lines = [], []
        if rows:
            yield rows, lines

    def _rows(self) -> Iterator[tuple[list[str], int]]:
        line = self.next_line
        try:
            for row in self._reader:
                yield row, line
                line = self.next_line
        except csv.Error as error:
            reason = f"{error}; is a quote not closed in a row that begins here?"
            raise format_error(self._path, line, reason) from error


def _without_last_spaces(line: str) -> str:
    content = line.rstrip("\r\n")
    return content.rstrip(" ") + line[len(content) :]


def _is_blank(row: Sequence[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())


def _checked_header(row: Sequence[str], path: str, line: int) -> tuple[str, ...]:
    names = _named([name.strip() for name in row])
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        listed = ", ".join(map(repr, repeated))
        reason = (
            f"column names must be distinct, these repeat: {listed}; rename them, or add a first "
            "line with names if the file has none"
        )
        raise format_error(path, line, reason)
    return names


def _named(names: Sequence[str]) -> tuple[str, ...]:
    """A column without a name, as pandas and R write for the row index, is named as pandas does."""
    found = []
    for place, name in enumerate(names):
        own = name or f"Unnamed: {place}"
        while not name and own in names:
            own += "_"
        found.append(own)
    return tuple(found)


# --- blocks ---------------------------------------------------------------------------------------


class _Source:
    """A stream as UTF-8, block by block, without byte order mark."""

    def __init__(self, stream: BinaryIO, path: str, encoding: str) -> None:
        self.path = path
        self._stream, self._is_first = stream, True
        name = checked_encoding(encoding)
        self.encoding = "utf-8" if name == "utf-8-sig" else name
        self._decoder = None
        if self.encoding != "utf-8":
            self._decoder = codecs.getincrementaldecoder(self.encoding)()

    def block(self) -> bytes:
        """The next bytes; none at the end."""
        try:
            data = self._stream.read(BLOCK_BYTES)
        except (EOFError, OSError, zlib.error) as error:
            raise format_error(self.path, None, f"cannot be read to its end: {error}") from error
        if self._decoder is not None:
            data = self._recode(data)
        if self._is_first:
            self._is_first, data = False, data.removeprefix(codecs.BOM_UTF8)
        return data

    def _recode(self, data: bytes) -> bytes:
        assert self._decoder is not None
        try:
            text: str = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise not_text(self.path, None, byte, self.encoding.upper()) from None
        recoded = text.encode("utf-8", errors="surrogatepass")
        return recoded if recoded or not data else self.block()

    def rest(self) -> bytes:
        """All that is left."""
        return b"".join(iter(self.block, b""))

    def lines(self, begun: bytes, line: int) -> Iterator[str]:
        """Lines of what was read already and of the rest, the first of them counted ``line``."""
        chunks = io.BufferedReader(_Joined(chain([begun], iter(self.block, b""))))
        text = io.TextIOWrapper(chunks, "utf-8", errors="surrogateescape", newline="")
        for number, content in enumerate(text, start=line):
            yield self.checked(content, number)

    def checked(self, content: str, line: int) -> str:
        """A line of text, or the error of what is none."""
        if "\0" in content:
            reason = "there is a NUL byte; this is not a text file"
            raise format_error(self.path, line, reason)
        strange = None if content.isascii() else re.search("[\udc80-\udcff]", content)
        if strange:
            raise not_text(self.path, line, ord(strange[0]) - 0xDC00)
        return content


class _Joined(io.RawIOBase):
    """Chunks of bytes as one stream."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._left = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = next((chunk for chunk in self._chunks if chunk), b"")
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


@dataclass
class TextBlocks:
    """The rows of a stream, to be gone through once."""

    names: tuple[str, ...]
    source: _Source
    begun: bytes  # read, but not yet split
    line: int  # the first of it
    delimiter: str

    def tables(self, wanted: Container[str] | None = None) -> Iterator[TextTable]:
        """Tables of some rows each, in order, of the wanted columns; at least one row in all."""
        if wanted is None:
            wanted = self.names
        positions = [i for i, name in enumerate(self.names) if name in wanted]
        n_rows = 0
        for columns, lines in chain(self._quick_blocks(positions), self._batches(positions)):
            n_rows += len(lines)
            names = tuple(self.names[i] for i in positions)
            yield TextTable(names, columns, Origin(self.source.path, lines), len(lines))
        if not n_rows:
            raise format_error(self.source.path, None, "there are no rows below the header")

    def quick_table(self) -> TextTable | None:
        """All rows at once if there is a quick reader for all of them; origins are not told."""
        blocks = [columns for columns, _ in self._quick_blocks(range(len(self.names)))]
        if self.begun or not blocks:
            return None
        columns = tuple(type(parts[0]).join(parts) for parts in zip(*blocks, strict=True))
        n_rows = len(columns[0])
        return TextTable(self.names, columns, Origin(self.source.path, range(n_rows)), n_rows)

    def _quick_blocks(self, positions: Sequence[int]) -> Iterator[_Block]:
        """Blocks by pyarrow or polars for as long as they are plain."""
        split_quickly = find_splitter(self.delimiter)
        is_over = split_quickly is None
        while split_quickly is not None and not is_over:
            added = self.source.block()
            is_over = not added
            self.begun += added
            if not self.begun:
                return
            block = _plain_rows(self.begun, self.delimiter, is_last=is_over)
            if block is None or (not block and len(self.begun) > _MOST_BYTES):
                return
            split = split_quickly(block, len(self.names), positions, self.delimiter)
            if split is None:
                return
            columns, n_rows = split
            lines = _Lines(block, self.delimiter, self.source.path, self.names, self.line, n_rows)
            self.begun = self.begun[len(block) :]
            self.line += block.count(b"\n")
            if n_rows:
                yield columns, lines

    def _batches(self, positions: Sequence[int]) -> Iterator[_Block]:
        """What is left, by the csv module."""
        lines = self.source.lines(self.begun, self.line)
        path, first = self.source.path, self.line
        rows = _Rows(lines, self.delimiter, path, names=self.names, first_line=first)
        for batch, lines_of_batch in rows.batches():
            columns = list(zip(*batch, strict=True))
            yield tuple(columns[i] for i in positions), lines_of_batch


_Block: TypeAlias = tuple[tuple[Texts, ...], Sequence[int]]
"""Columns, and the line on which each row begins."""


def _plain_rows(data: bytes, delimiter: str, *, is_last: bool) -> bytes | None:
    """The whole rows at the beginning, maybe none; None if the csv module should look at them."""
    codes = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    quotes = np.flatnonzero(codes == ord('"')) if b'"' in data else ends[:0]
    if len(quotes):
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]  # others stand in a quoted field
    stop = len(data) if is_last else int(ends[-1]) + 1 if len(ends) else 0
    quotes = quotes[quotes < stop]
    longest = np.diff(ends[ends < stop], prepend=-1, append=stop).max()
    block = data[:stop]
    if longest > csv.field_size_limit() or not _quotes_are_plain(codes, quotes, stop, delimiter):
        return None
    if b"\0" in block or block.count(b"\r") != block.count(b"\r\n"):
        return None
    if block.startswith(codecs.BOM_UTF8):  # it would be taken for a mark
        return None
    return block if _is_utf8(block) else None


def _is_utf8(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _quotes_are_plain(codes: Any, quotes: Any, stop: int, delimiter: str) -> bool:
    """Whether quotes stand where fields begin or end, or in pairs inside a field."""
    if len(quotes) == 0:
        return True
    if len(quotes) % 2:
        return False
    borders = np.isin(np.arange(256), [*b'\r\n"', ord(delimiter)])
    opening, closing = quotes[::2], quotes[1::2]
    before = borders[codes[np.maximum(opening - 1, 0)]] | (opening == 0)
    after = borders[codes[np.minimum(closing + 1, stop - 1)]] | (closing == stop - 1)
    return bool(before.all() and after.all())


class _Lines(Sequence[int]):
    """The line on which each row of a plain block begins, counted when the first is asked for."""

    def __init__(
        self,
        body: bytes,
        delimiter: str,
        path: str,
        names: tuple[str, ...],
        first_line: int,
        n_rows: int,
    ) -> None:
        self._arguments, self._n_rows = (body, delimiter, path, names, first_line), n_rows

    def __len__(self) -> int:
        return self._n_rows

    def __getitem__(self, row: Any) -> Any:
        return self._lines[row]

    @cached_property
    def _lines(self) -> list[int]:
        body, delimiter, path, names, first = self._arguments
        text = io.StringIO(body.decode("utf-8"), newline="")
        rows = _Rows(text, delimiter, path, names=names, first_line=first)
        return [line for _, lines in rows.batches() for line in lines]
