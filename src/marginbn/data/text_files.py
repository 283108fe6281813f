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
from typing import Any, BinaryIO, NoReturn

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


def not_text(path: str, line: int | None, byte: int, encoding: str = "UTF-8") -> FormatError:
    """The error for a byte that is no text."""
    likely = "utf-16" if line == 1 and byte >= 0xFE else "latin-1"  # a mark of byte order
    reason = (
        f"byte 0x{byte:02x} is not {encoding}; save the file as UTF-8, or name its encoding, such "
        f"as encoding={likely!r}"
    )
    return format_error(path, line, reason)


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
    encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    text = _without_nul(decode_text(load_bytes(path), str(path), encoding), str(path))
    if not text.strip():
        raise format_error(str(path), None, "the file is empty")
    return text


def decode_text(data: bytes, path: str, encoding: str = "utf-8-sig") -> str:
    """The text, or an error that names the line of the first byte that is none."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        name = encoding.upper().removesuffix("-SIG")
        raise not_text(path, line, data[error.start], name) from None


# --- layout ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileLayout:
    """How a file is to be split: its name in messages, names of columns, lines up to the end of the
    header, and whether pyarrow splits it.
    """

    path: str
    encoding: str
    delimiter: str
    names: tuple[str, ...]
    skipped: int
    is_plain: bool


def find_layout(
    head: bytes, path: str, suffix: str, delimiter: str | None, encoding: str, *, is_all: bool
) -> FileLayout:
    """Layout by the first bytes of a file, which may end within a row unless they are all."""
    text = _decoded_head(head, path, encoding, is_all)
    if delimiter is None:
        header = re.sub(r'"[^"]*"', "", text.lstrip("\r\n ").partition("\n")[0])
        delimiter = next((c for c in DELIMITERS[suffix] if c in header), DELIMITERS[suffix][0])
    reader = csv.reader(
        _spaces_trimmed(io.StringIO(text, newline=""), delimiter),
        delimiter=delimiter,
        skipinitialspace=True,
    )
    names: tuple[str, ...] = ()
    try:
        while not names:
            line = reader.line_num + 1
            row = next(reader, None)
            if row is None:
                raise format_error(path, None, "the file is empty")
            if not is_blank(row):
                names = _checked_header(row, path, line)
    except csv.Error as error:
        raise format_error(path, reader.line_num, f"{error}; is a quote not closed?") from None
    is_plain = delimiter != " " and f'{delimiter} "' not in text and not text.startswith(' "')
    return FileLayout(path, encoding, delimiter, names, reader.line_num, is_plain)


def _decoded_head(head: bytes, path: str, encoding: str, is_all: bool) -> str:
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)()
    try:
        text = decoder.decode(head, final=is_all)
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        raise not_text(path, line, error.object[error.start], encoding.upper()) from None
    return _without_nul(text, path)


def _without_nul(text: str, path: str) -> str:
    """The text, refused if it has a NUL byte."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise format_error(path, line, "there is a NUL byte; this is not a text file")
    return text


def _spaces_trimmed(lines: Iterable[str], delimiter: str) -> Iterable[str]:
    """Spaces before a field are skipped by the csv module; those behind the last are no field."""
    if delimiter != " ":
        return lines
    return (re.sub(r" +([\r\n]*)$", r"\1", line) for line in lines)


def is_blank(row: Sequence[str]) -> bool:
    """Whether a row has nothing in it."""
    return not row or (len(row) == 1 and not row[0].strip())


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
    encoding, origin = checked_encoding(encoding), origin or str(path)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InputError(f"delimiter must be a single character such as ',', got {delimiter!r}")
    with opened(path) as stream:
        head = stream.read(HEAD_BYTES)
    layout = find_layout(head, origin, suffix, delimiter, encoding, is_all=len(head) < HEAD_BYTES)
    rows = partial(_read_rows, path, layout, missing)
    line_of = partial(_line_of_row, path, layout)
    return Source(layout.names, rows, origin, is_text=True, line_of=line_of)


def source_of_stream(stream: BinaryIO, **settings: Any) -> Source:
    """CSV from standard input or a pipe, by way of a temporary file."""
    folder = TemporaryFolder()
    path = folder.path / "table.csv"
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file)
    return replace(source_of_text(path, ".csv", origin="standard input", **settings), owner=folder)


def _read_rows(
    path: Path, layout: FileLayout, missing: frozenset[str], names: Sequence[str]
) -> Iterator[pa.Table]:
    """Tables of texts; for the line of an error the file is read again."""
    wrong: list[Any] = []

    def judge(row: Any) -> str:
        if (row.text or "").strip():
            wrong.append(row)
            return "error"
        return "skip"

    with opened(path) as stream:
        if not layout.is_plain:
            yield from _read_slowly(stream, layout, names)
            return
        try:
            yield from _read_quickly(stream, layout, names, missing, judge)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            _explain(path, layout, error, wrong)


class _Lent:
    """What Arrow calls of a stream."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self.read, self.close = stream.read, stream.close


def _read_quickly(
    stream: Any, layout: FileLayout, names: Sequence[str], missing: frozenset[str], judge: Any
) -> Iterator[pa.Table]:
    """By Arrow. A thread of it that lets go of a Python object while the interpreter shuts down
    ends the process with SIGABRT; so these threads are waited for, a second at most.
    """
    source, handler = _Lent(stream), partial(judge)
    lent: list[weakref.ref[Any]] = [weakref.ref(source), weakref.ref(handler)]
    arguments = [
        pa.PythonFile(source, mode="r"),
        arrow_csv.ReadOptions(
            use_threads=False,
            block_size=MAX_ROW_BYTES,
            column_names=list(layout.names),
            skip_rows=layout.skipped,
            encoding="utf8" if layout.encoding in ("utf-8", "utf-8-sig") else layout.encoding,
        ),
        arrow_csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=handler
        ),
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
        del source, handler, arguments
        reader = None
        end = time.monotonic() + 1.0
        while any(value() is not None for value in lent) and time.monotonic() < end:
            time.sleep(0.0002)


def _csv_rows(
    stream: Any, layout: FileLayout, *, strict: bool = True
) -> Generator[tuple[int, list[str]], None, None]:
    """Line and fields of every row below the header that is not blank, by the csv module; if it is
    ``strict``, errors name the line.
    """
    lines = io.TextIOWrapper(stream, layout.encoding, newline="", errors="surrogateescape")
    csv.field_size_limit(MAX_ROW_BYTES)
    reader = csv.reader(
        _spaces_trimmed(islice(lines, layout.skipped, None), layout.delimiter),
        delimiter=layout.delimiter,
        skipinitialspace=True,
        strict=strict,
    )
    line = layout.skipped + 1
    try:
        for row in reader:
            if not is_blank(row):
                if strict:
                    _check_row(row, line, layout)
                yield line, row
            line = layout.skipped + reader.line_num + 1
    except csv.Error as error:
        reason = f"{error}; is a quote not closed in a row that begins here?"
        raise format_error(layout.path, line, reason) from None
    finally:
        lines.detach()  # whoever opened the stream closes it


def _check_row(row: Sequence[str], line: int, layout: FileLayout) -> None:
    if len(row) != len(layout.names):
        raise format_error(layout.path, line, _unequal(layout, len(row)))
    if any(not text.isascii() and re.search("[\udc80-\udcff]", text) for text in row):
        byte = next(ord(c) - 0xDC00 for text in row for c in text if c >= "\udc80")
        raise not_text(layout.path, line, byte, layout.encoding.upper())


def _unequal(layout: FileLayout, n_fields: int) -> str:
    """What is wrong with a row of so many fields."""
    n_names = len(layout.names)
    reason = f"expected {n_names} field{'s'[: n_names != 1]}, got {n_fields}"
    if n_fields < n_names:
        return reason
    return (
        f"{reason}, more than line {layout.skipped} has names; quote fields that hold "
        f"{layout.delimiter!r}, and remove lines above the header"
    )


def _read_slowly(stream: Any, layout: FileLayout, names: Sequence[str]) -> Iterator[pa.Table]:
    places = {name: layout.names.index(name) for name in names}
    with closing(_csv_rows(stream, layout)) as rows:
        while batch := [row for _, row in islice(rows, SLOW_ROWS)]:
            columns = list(zip(*batch, strict=True))
            yield pa.table({n: pa.array(columns[i], pa.string()) for n, i in places.items()})


def _explain(path: Path, layout: FileLayout, error: Exception, wrong: Sequence[Any]) -> NoReturn:
    """The error of a file that pyarrow does not read, with its line: the file is read again."""
    text = " ".join(str(error).split())
    if isinstance(error, UnicodeDecodeError) or "UTF8" in text:
        name = "utf-8-sig" if layout.encoding == "utf-8" else layout.encoding
        decode_text(load_bytes(path), layout.path, name)
    with opened(path) as stream, closing(_csv_rows(stream, layout)) as rows:
        for _ in rows:
            pass
    if "straddling" in text:
        text = f"a row is longer than {MAX_ROW_BYTES >> 20} MB; is a quote not closed?"
    if wrong:
        text = _unequal(layout, wrong[0].actual_columns)
    raise format_error(layout.path, None, text) from None


def _line_of_row(path: Path, layout: FileLayout, row: int) -> int:
    """The line in which a row begins, counted from 1."""
    with opened(path) as stream, closing(_csv_rows(stream, layout, strict=False)) as rows:
        return next(islice(rows, row, None), (layout.skipped + 1, []))[0]


def other_delimiter(name: str, texts: Sequence[str]) -> str | None:
    """What splits the name and the texts of the only column of a file alike; None if nothing."""
    for delimiter in OTHER_DELIMITERS:
        sizes = {len(t.split() if delimiter == " " else t.split(delimiter)) for t in (name, *texts)}
        if texts and len(sizes) == 1 and sizes.pop() > 1:
            return delimiter
    return None
