"""Delimited text (CSV and its kin) as a stream of Arrow tables of texts, by pyarrow.

The first line that is not blank names the columns. All fields are texts here; pyarrow makes those
null that mean missing (:data:`~marginbn.data.columns.MISSING_TEXTS`). Two layouts that pyarrow
does not split are split by the csv module: fields separated by any number of spaces, and quotes
that follow a space. Errors name the file, the line and the remedy; lines are counted only then.

Nothing in a file is ever evaluated. A packed file may not unpack to more than
:data:`MAX_EXPANSION` times its size, and a row may not be longer than :data:`MAX_ROW_BYTES`.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import shutil
import time
import weakref
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as arrow_csv

from marginbn.data.columns import MISSING_TEXTS
from marginbn.data.source import Source, TemporaryFolder, check_distinct_names
from marginbn.exceptions import FormatError, InputError

DELIMITERS = {".csv": ",;\t|", ".tsv": "\t", ".txt": "\t,;|"}
"""Delimiters by file extension; the first that occurs in the header is taken."""

OTHER_DELIMITERS = ",;\t|:~^ "
"""Those that are not looked for, because names and texts hold them too; they can be given."""

PACKED = {".gz": "gzip", ".zst": "zstd"}
"""Codecs of pyarrow by the last suffix of a file."""

MAX_ROW_BYTES = 1 << 22
"""A longer row is none: a quote was not closed. It is also what pyarrow reads at a time."""

HEAD_BYTES = 1 << 20
"""Bytes in which header and delimiter are looked for."""

MAX_SAFE_BYTES = 2**28
"""What a packed file of any size may unpack to."""

MAX_EXPANSION = 200
"""Beyond that, the bytes a packed byte may become; tables have 3 to 30, bombs a thousand."""

SLOW_ROWS = 20_000
"""Rows that the csv module reads at a time."""


def format_error(path: str, line: int | None, reason: str) -> FormatError:
    """A malformed file: path, line (None if unknown) and reason."""
    place = path if line is None else f"{path}, line {line}"
    return FormatError(f"{place}: {reason}")


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


# --- bytes ----------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A file to read from its beginning, unpacked on the way if its name says so."""
    try:
        file = path.open("rb")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {str(path)!r}: {reason}") from error
    codec = PACKED.get(path.suffix.lower())
    with file:
        yield file if codec is None else io.BufferedReader(_Unpacked(file, path, codec))


class _Unpacked(io.RawIOBase):
    """A packed file as the bytes in it; a small file that unpacks to gigabytes is refused."""

    def __init__(self, file: BinaryIO, path: Path, codec: str) -> None:
        self._stream, self._path, self._codec = pa.CompressedInputStream(file, codec), path, codec
        self._limit = max(MAX_SAFE_BYTES, MAX_EXPANSION * path.stat().st_size)
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Put the next bytes into a buffer; their number is 0 at the end."""
        try:
            data: bytes = self._stream.read(len(buffer))
        except (OSError, EOFError, pa.ArrowInvalid) as error:
            reason = f"the {self._codec} file is damaged: {error}"
            raise format_error(str(self._path), None, reason) from error
        buffer[: len(data)] = data
        self._count += len(data)
        if self._count > self._limit:
            reason = (
                f"the {self._codec} file unpacks to more than {self._limit} bytes, "
                f"{MAX_EXPANSION} times its size; unpack it yourself if it is no attack"
            )
            raise format_error(str(self._path), None, reason)
        return len(data)


def load_bytes(path: Path) -> bytes:
    """Content of a file, unpacked if its name says so."""
    with opened(path) as stream:
        data: bytes = stream.read()
    return data


def load_text(path: Path, encoding: str = "utf-8") -> str:
    """Text of a file, unpacked if its name says so, without byte order mark."""
    text = decode_text(load_bytes(path), str(path), encoding)
    if not text.strip():
        raise format_error(str(path), None, "the file is empty")
    return text


def decode_text(data: bytes, path: str, encoding: str = "utf-8", *, is_all: bool = True) -> str:
    """The text of a file, or of its first bytes; an error names the line of a byte that is none."""
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)()
    try:
        text = decoder.decode(data, final=is_all)
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, error.object[error.start]
        likely = "utf-16" if line == 1 and byte >= 0xFE else "latin-1"  # a mark of byte order
        reason = (
            f"byte 0x{byte:02x} is not {encoding.upper()}; save the file as UTF-8, or name its "
            f"encoding, such as encoding={likely!r}"
        )
        raise format_error(path, line, reason) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise format_error(path, line, "there is a NUL byte; this is not a text file")
    return text


# --- layout ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileLayout:
    """How a file is to be split: where it is and its name in messages, names of columns, lines up
    to the end of the header, and whether pyarrow splits it.
    """

    file: Path
    origin: str
    encoding: str
    delimiter: str
    names: tuple[str, ...]
    skipped: int
    is_plain: bool


def _split(lines: Iterable[str], delimiter: str, strict: bool = False) -> Any:
    """Rows of the csv module, which skips spaces before a field; those behind the last of fields
    separated by spaces are no field.
    """
    if delimiter == " ":
        lines = (re.sub(r" +([\r\n]*)$", r"\1", line) for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)


def _is_blank(row: Sequence[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())


def find_layout(
    file: Path, origin: str, suffix: str, delimiter: str | None, encoding: str
) -> FileLayout:
    """Layout by the first bytes of a file."""
    with opened(file) as stream:
        head = stream.read(HEAD_BYTES)
    text = decode_text(head, origin, encoding, is_all=len(head) < HEAD_BYTES)
    if delimiter is None:
        header = re.sub(r'"[^"]*"', "", text.lstrip("\r\n ").partition("\n")[0])
        delimiter = next((c for c in DELIMITERS[suffix] if c in header), DELIMITERS[suffix][0])
    reader = _split(io.StringIO(text, newline=""), delimiter)
    line, row = 1, next(reader, None)
    try:
        while row is not None and _is_blank(row):
            line, row = reader.line_num + 1, next(reader, None)
    except csv.Error as error:
        raise format_error(origin, reader.line_num, f"{error}; is a quote not closed?") from None
    if row is None:
        raise format_error(origin, None, "the file is empty")
    names = _checked_header(row, origin, line)
    is_plain = delimiter != " " and f'{delimiter} "' not in text and not text.startswith(' "')
    return FileLayout(file, origin, encoding, delimiter, names, reader.line_num, is_plain)


def _checked_header(row: Sequence[str], path: str, line: int) -> tuple[str, ...]:
    """Names of the columns; one without a name, as of a row index, is named as pandas does."""
    given, names = [name.strip() for name in row], []
    for place, name in enumerate(given):
        own = name or f"Unnamed: {place}"
        while not name and own in given:
            own += "_"
        names.append(own)
    try:
        check_distinct_names(names)
    except InputError as error:
        remedy = "rename them, or add a first line with names if the file has none"
        raise format_error(path, line, f"{error}; {remedy}") from None
    return tuple(names)


# --- rows -----------------------------------------------------------------------------------------


def source_of_text(
    path: Path,
    suffix: str,
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    missing: frozenset[str] = MISSING_TEXTS,
    origin: str = "",
) -> Source:
    """A delimited file; ``suffix`` is its format, ``missing`` the texts that become null, and
    ``origin`` its name in messages.
    """
    encoding = checked_encoding(encoding)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InputError(f"delimiter must be a single character such as ',', got {delimiter!r}")
    layout = find_layout(path, origin or str(path), suffix, delimiter, encoding)
    rows, line_of = partial(_read_rows, layout, missing), partial(_line_of_row, layout)
    return Source(layout.names, rows, layout.origin, is_text=True, line_of=line_of)


def source_of_stream(stream: BinaryIO, **settings: Any) -> Source:
    """CSV from standard input or a pipe, by way of a temporary file."""
    folder = TemporaryFolder()
    path = folder.path / "table.csv"
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file)
    return replace(source_of_text(path, ".csv", origin="standard input", **settings), owner=folder)


def _read_rows(
    layout: FileLayout, missing: frozenset[str], names: Sequence[str]
) -> Iterator[pa.Table]:
    """Tables of texts: by pyarrow, and from a row that it cannot split on by the csv module, which
    splits it or says what is wrong with it.
    """
    n_rows = 0
    if layout.is_plain:
        try:
            for table in _read_quickly(layout, names, missing):
                yield table
                n_rows += table.num_rows
            return
        except (pa.ArrowInvalid, UnicodeDecodeError):
            pass
    places = {name: layout.names.index(name) for name in names}
    with closing(_csv_rows(layout)) as rows:
        own = islice(rows, n_rows, None)
        while batch := [row for _, row in islice(own, SLOW_ROWS)]:
            columns = list(zip(*batch, strict=True))
            yield pa.table({n: pa.array(columns[i], pa.string()) for n, i in places.items()})


class _Lent:
    """What Arrow calls of a stream."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self.read, self.close = stream.read, stream.close


def _read_quickly(
    layout: FileLayout, names: Sequence[str], missing: frozenset[str]
) -> Iterator[pa.Table]:
    """By Arrow. A thread of it that lets go of a Python object while the interpreter shuts down
    ends the process with SIGABRT; so these threads are waited for, a second at most.
    """
    with opened(layout.file) as stream:
        source = _Lent(stream)
        lent = weakref.ref(source)
        arguments = [
            pa.PythonFile(source, mode="r"),
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=MAX_ROW_BYTES,
                column_names=list(layout.names),
                skip_rows=layout.skipped,
                encoding="utf8" if layout.encoding in ("utf-8", "utf-8-sig") else layout.encoding,
            ),
            arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=list(names),
                null_values=sorted(missing),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        ]
        try:
            with arrow_csv.open_csv(*arguments) as reader:
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        finally:
            del source, arguments
            reader = None
            end = time.monotonic() + 1.0
            while lent() is not None and time.monotonic() < end:
                time.sleep(0.0002)


def _csv_rows(
    layout: FileLayout, *, strict: bool = True
) -> Generator[tuple[int, list[str]], None, None]:
    """Line and fields of every row below the header that is not blank, by the csv module; if it is
    ``strict``, errors name the line.
    """
    csv.field_size_limit(MAX_ROW_BYTES)
    with opened(layout.file) as stream:
        lines = io.TextIOWrapper(stream, layout.encoding, newline="")
        reader = _split(islice(lines, layout.skipped, None), layout.delimiter, strict)
        line, n_names = layout.skipped + 1, len(layout.names)
        try:
            for row in reader:
                if not _is_blank(row):
                    if strict and len(row) != n_names:
                        reason = f"expected {n_names} field{'s'[: n_names != 1]}, got {len(row)}"
                        if len(row) > n_names:
                            reason += (
                                f", more than line {layout.skipped} has names; quote fields that "
                                f"hold {layout.delimiter!r}, and remove lines above the header"
                            )
                        raise format_error(layout.origin, line, reason)
                    yield line, row
                line = layout.skipped + reader.line_num + 1
        except csv.Error as error:
            reason = f"{error}; is a quote not closed in a row that begins here?"
            raise format_error(layout.origin, line, reason) from None
        except UnicodeDecodeError:
            decode_text(load_bytes(layout.file), layout.origin, layout.encoding)
            raise


def _line_of_row(layout: FileLayout, row: int) -> int:
    """The line in which a row begins, counted from 1."""
    with closing(_csv_rows(layout, strict=False)) as rows:
        return next(islice(rows, row, None), (layout.skipped + 1, []))[0]


def other_delimiter(name: str, texts: Sequence[str]) -> str | None:
    """What splits the name and the texts of the only column of a file alike; None if nothing."""
    for delimiter in OTHER_DELIMITERS:
        sizes = {len(t.split() if delimiter == " " else t.split(delimiter)) for t in (name, *texts)}
        if texts and len(sizes) == 1 and sizes.pop() > 1:
            return delimiter
    return None
