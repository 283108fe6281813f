"""Tables from files: CSV and its kin, ARFF, Parquet; the text formats also gzipped.

In CSV files the first line names the columns. An empty field and ``?``, ``NA``, ``N/A``, ``n/a``,
``NaN``, ``nan`` mean missing, in quotes too; everything else (``null``, ``None``, ``-``) is a
value. Surrounding spaces are dropped. Numbers have a decimal point. Nothing in a file is ever
evaluated.
"""

from __future__ import annotations

import gzip
import importlib
import io
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from marginbn.data.arff import parse_arff
from marginbn.data.delimited import (
    DELIMITERS,
    TextTable,
    checked_encoding,
    open_delimited,
    read_delimited,
)
from marginbn.data.splitting import find_splitter
from marginbn.data.table import Kinds, Table, as_table, resolve_kinds
from marginbn.data.text import column_from_text, format_error, load_bytes, load_text, opened
from marginbn.exceptions import FormatError, InputError, MarginBNError, MissingDependencyError
from marginbn.files import open_new, replacing

BATCH_ROWS = 65_536
"""Rows of a Parquet file that are read at a time."""

QUICK_BYTES = 1 << 18
"""Smaller text files are read by the csv module: loading a library would take longer."""

_QUOTE_NEEDED = re.compile(r'[,"\r\n]')


def read_table(
    path: str | PathLike[str],
    *,
    kinds: Kinds = "auto",
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Table:
    """Read a table from a file.

    Parameters
    ----------
    path
        A .csv, .tsv, .txt or .arff file, each also with .gz appended, or a .parquet file.
    kinds
        As in :func:`marginbn.data.table.as_table`.
    delimiter
        What separates the fields of a .csv, .tsv or .txt file; the default is a tab for .tsv,
        and otherwise the first of comma (tab for .txt), semicolon, tab, bar in the header. A
        space stands for any number of spaces.
    encoding
        Of the text, such as ``"latin-1"`` or ``"cp1252"``.

    Raises
    ------
    FormatError
        If the file is malformed; the message gives path, line and reason.
    InputError
        If the file is not there or of no known format.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginbn import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "table.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("colour,size\\nred,1.5\\nblue,?\\n")
    ...     table = read_table(path)
    >>> table.kinds, table.complete.tolist()
    ({'colour': 'categorical', 'size': 'numeric'}, [True, False])
    """
    path = Path(path)
    suffix = format_of(path)
    if suffix == ".parquet":
        return _read_parquet(path, kinds)
    encoding = checked_encoding(encoding)
    if suffix == ".arff":
        return parse_arff(load_text(path, encoding), str(path), kinds)
    quick = _read_quickly(path, suffix, kinds, delimiter, encoding)
    if quick is not None:
        return quick
    return _typed(read_delimited(path, suffix, delimiter=delimiter, encoding=encoding), kinds)


def _typed(text: TextTable, kinds: Kinds) -> Table:
    wanted = resolve_kinds(kinds, text.names)
    columns = zip(text.names, text.columns, wanted, strict=True)
    return Table(tuple(column_from_text(*column, text.origin) for column in columns))


def _read_quickly(
    path: Path, suffix: str, kinds: Kinds, delimiter: str | None, encoding: str
) -> Table | None:
    """The table of a long file by a quick reader; None if there is none, or anything is amiss."""
    try:
        if find_splitter(",") is None or path.stat().st_size < QUICK_BYTES:
            return None
        packed = path.suffix.lower() == ".gz"
        with io.BytesIO(load_bytes(path)) if packed else path.open("rb") as stream:
            blocks = open_delimited(
                stream, str(path), suffix, delimiter=delimiter, encoding=encoding
            )
            table = blocks.quick_table()
        return None if table is None else _typed(table, kinds)
    except (FormatError, OSError, ValueError):
        return None  # the csv module says it better


@dataclass(frozen=True)
class RowChunks:
    """The rows of a file, some at a time; ``read`` takes the names of the columns that are needed.

    A chunk is a :class:`TextTable`, a :class:`Table` or a table of pyarrow, by the format.
    """

    names: tuple[str, ...]
    read: Callable[[Container[str]], Iterator[Any]]


@contextmanager
def open_chunks(
    path: str | PathLike[str] | BinaryIO,
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Iterator[RowChunks]:
    """Read a file in constant memory: its header now, its rows when they are asked for.

    A stream of bytes is taken for CSV. ARFF files, and Parquet without pyarrow, are read as a
    whole.
    """
    if not isinstance(path, (str, PathLike)):
        yield _text_chunks(path, "standard input", ".csv", delimiter, encoding)
        return
    path = Path(path)
    suffix = format_of(path)
    if suffix == ".parquet" and find_spec("pyarrow") is not None:
        with _parquet_chunks(path) as chunks:
            yield chunks
    elif suffix in DELIMITERS:
        with opened(path) as stream:
            yield _text_chunks(stream, str(path), suffix, delimiter, encoding)
    else:
        table = read_table(path, encoding=encoding)
        yield RowChunks(table.names, lambda _: iter([table]))


def _text_chunks(
    stream: BinaryIO, path: str, suffix: str, delimiter: str | None, encoding: str
) -> RowChunks:
    blocks = open_delimited(stream, path, suffix, delimiter=delimiter, encoding=encoding)
    return RowChunks(blocks.names, blocks.tables)


def write_csv(
    target: str | PathLike[str] | TextIO,
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    for_spreadsheets: bool = False,
) -> None:
    """Write a CSV file (or to an open text stream); None and NaN become empty fields.

    With ``for_spreadsheets`` a text that a spreadsheet could take for a formula gets an apostrophe
    in front (:func:`as_plain_text`), in the header too.
    """
    if for_spreadsheets:
        names = [as_plain_text(name) for name in names]
        rows = ([as_plain_text(value) for value in row] for row in rows)
    write_lines(target, chain([csv_line(names)], map(csv_line, rows)))


def write_lines(target: str | PathLike[str] | TextIO, lines: Iterable[str]) -> None:
    """Write pieces of text to a file, packed if its name ends in .gz, or to an open stream."""
    if not isinstance(target, (str, PathLike)):
        target.writelines(lines)
        return
    with (
        replacing(target) as temporary,
        open_new(temporary) as file,
        _packed(file) if str(target).lower().endswith(".gz") else nullcontext(file) as plain,
        io.TextIOWrapper(plain, encoding="utf-8", newline="") as stream,
    ):
        stream.writelines(lines)


def _packed(file: io.BufferedWriter) -> gzip.GzipFile:
    return gzip.GzipFile("", "wb", fileobj=file)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What spreadsheets take for the beginning of a formula, or skip before one."""


_NEGATIVE_NUMBER = re.compile(r"-[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?")


def as_plain_text(value: Any) -> Any:
    """A text as a spreadsheet shows it without computing anything; numbers stay numbers, those
    that a text file holds too.

    Examples
    --------
    >>> as_plain_text("=1+1"), as_plain_text("red"), as_plain_text(-1), as_plain_text("-1.5")
    ("'=1+1", 'red', -1, '-1.5')
    """
    is_risky = isinstance(value, str) and value.startswith(FORMULA_STARTS)
    return f"'{value}" if is_risky and not _NEGATIVE_NUMBER.fullmatch(value) else value


def csv_line(values: Sequence[Any]) -> str:
    """One line; csv.writer would leave a lone carriage return unquoted in some versions."""
    if len(values) == 1 and csv_field(values[0]) == "":
        return '""\n'  # an empty line would be no row at all
    return ",".join(map(csv_field, values)) + "\n"


def csv_field(value: Any) -> str:
    """A value as it stands in a line, in quotes if need be; empty if it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    text = str(value)
    if not _QUOTE_NEEDED.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def format_of(path: Path) -> str:
    """The suffix that tells the format, without .gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    suffix = (suffixes[:-1] if packed else suffixes)[-1:]
    if suffix and (suffix[0] in DELIMITERS or suffix[0] == ".arff"):
        return suffix[0]
    if suffix == [".parquet"] and not packed:
        return ".parquet"
    raise InputError(
        f"cannot tell the format of {str(path)!r}; the name must end in .csv, .tsv, .txt or .arff "
        "(also with .gz appended), or in .parquet"
    )


# --- Parquet --------------------------------------------------------------------------------------


def _read_parquet(path: Path, kinds: Kinds) -> Table:
    """The table of a Parquet file; a damaged one can be found out as late as at its cells."""
    read = _parquet_reader(path)
    with _parquet_errors(path):
        return as_table(read(path), kinds=kinds)


def _parquet_reader(path: Path) -> Callable[[Path], Any]:
    """A function that gives a pyarrow or polars table, whichever package is there."""
    if not path.is_file():
        raise InputError(f"cannot read {str(path)!r}: there is no such file")
    for package, read in (("pyarrow", _read_with_pyarrow), ("polars", _read_with_polars)):
        if find_spec(package) is not None:
            return read
    raise MissingDependencyError(
        'reading Parquet needs pyarrow; install it with: pip install "marginbn[parquet]"'
    )


@contextmanager
def _parquet_chunks(path: Path) -> Iterator[RowChunks]:
    arrow = importlib.import_module("pyarrow")
    if not path.is_file():
        raise InputError(f"cannot read {str(path)!r}: there is no such file")

    def read(file: Any, wanted: Container[str]) -> Iterator[Any]:
        columns = [name for name in file.schema_arrow.names if name in wanted]
        if file.metadata.num_rows == 0:
            raise format_error(str(path), None, "there are no rows")
        with _parquet_errors(path):
            for batch in file.iter_batches(BATCH_ROWS, columns=columns):
                yield arrow.Table.from_batches([batch])

    with _parquet_errors(path):
        file = importlib.import_module("pyarrow.parquet").ParquetFile(path)
    with file:
        yield RowChunks(tuple(file.schema_arrow.names), partial(read, file))


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    """Errors of pyarrow and polars, which have their own family each, as ours."""
    try:
        yield
    except MarginBNError:
        raise
    except Exception as error:
        reason = f"not a readable Parquet file: {error}"
        raise format_error(str(path), None, reason) from error


def _read_with_pyarrow(path: Path) -> Any:
    """In batches: pyarrow takes memory for all rows that a file promises to have in one piece."""
    arrow = importlib.import_module("pyarrow")
    with importlib.import_module("pyarrow.parquet").ParquetFile(path) as file:
        batches = list(file.iter_batches(BATCH_ROWS))
        return arrow.Table.from_batches(batches, schema=file.schema_arrow)


def _read_with_polars(path: Path) -> Any:
    return importlib.import_module("polars").read_parquet(path)
