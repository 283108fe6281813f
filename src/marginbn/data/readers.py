"""Tables from files: CSV and its kin, ARFF, Parquet; the text formats also gzipped.

In CSV files the first line names the columns. An empty field and ``?``, ``NA``, ``NaN``, ``nan``
mean missing, in quotes too; everything else (``null``, ``None``, ``-``) is a value. Surrounding
spaces are dropped. Numbers have a decimal point. Nothing in a file is ever evaluated.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

from marginbn.data.arff import parse_arff
from marginbn.data.table import Kinds, Table, as_table, resolve_kinds
from marginbn.data.text import Origin, column_from_text, format_error, load_text
from marginbn.exceptions import InputError, MarginBNError, MissingDependencyError
from marginbn.files import open_new, replacing

_DELIMITERS = {".csv": ",;\t|", ".tsv": "\t", ".txt": "\t,;|"}
"""Delimiters by file extension; the first that occurs in the header is taken."""

BATCH_ROWS = 65_536
"""Rows of a Parquet file that are read at a time."""

_QUOTE_NEEDED = re.compile(r'[,"\r\n]')


@dataclass(frozen=True)
class TextTable:
    """Header and fields of a delimited file, all still text as written."""

    names: tuple[str, ...]
    columns: tuple[Sequence[str], ...]
    origin: Origin


def read_table(
    path: str | PathLike[str], *, kinds: Kinds = "auto", delimiter: str | None = None
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
        and otherwise the first of comma (tab for .txt), semicolon, tab, bar in the header.

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
    suffix = _format_of(path)
    if suffix == ".parquet":
        return _read_parquet(path, kinds)
    if suffix == ".arff":
        return parse_arff(load_text(path), str(path), kinds)
    text = read_delimited(path, delimiter=delimiter)
    wanted = resolve_kinds(kinds, text.names)
    columns = zip(text.names, text.columns, wanted, strict=True)
    return Table(tuple(column_from_text(*column, text.origin) for column in columns))


def read_delimited(path: Path, *, delimiter: str | None = None) -> TextTable:
    """Fields of a .csv, .tsv or .txt file, checked to be rectangular."""
    text = load_text(path)
    delimiter = _checked_delimiter(delimiter) or _sniff_delimiter(text, _format_of(path))
    names, rows, lines = _split_rows(text, delimiter, str(path))
    return TextTable(names, tuple(zip(*rows, strict=True)), Origin(str(path), lines))


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
    if not isinstance(target, (str, PathLike)):
        target.write(_csv_line(names))
        target.writelines(map(_csv_line, rows))
        return
    with (
        replacing(target) as temporary,
        open_new(temporary) as file,
        _packed(file) if str(target).lower().endswith(".gz") else nullcontext(file) as plain,
        io.TextIOWrapper(plain, encoding="utf-8", newline="") as stream,
    ):
        write_csv(stream, names, rows)


PARQUET_SUFFIXES = (".parquet", ".pq")


def write_parquet(
    target: str | PathLike[str], names: Sequence[str], columns: Sequence[Sequence[Any]]
) -> None:
    """Write a Parquet file with pyarrow or polars, whichever is there; all or nothing."""
    write = find_parquet_writer()
    with replacing(target) as temporary, open_new(temporary) as file:
        write(dict(zip(names, columns, strict=True)), file)


def find_parquet_writer() -> Callable[[dict[str, Sequence[Any]], Any], None]:
    """A function that writes columns; an error says what to install."""
    for package, write in (("pyarrow", _write_with_pyarrow), ("polars", _write_with_polars)):
        if find_spec(package) is not None:
            return write
    raise MissingDependencyError(
        'writing Parquet needs pyarrow; install it with: pip install "marginbn[parquet]", or '
        "write CSV"
    )


def _write_with_pyarrow(columns: dict[str, Sequence[Any]], file: Any) -> None:
    arrow = importlib.import_module("pyarrow")
    table = arrow.table(list(map(arrow.array, columns.values())), names=list(columns))
    importlib.import_module("pyarrow.parquet").write_table(table, file)


def _write_with_polars(columns: dict[str, Sequence[Any]], file: Any) -> None:
    importlib.import_module("polars").DataFrame(columns).write_parquet(file)


def _packed(file: io.BufferedWriter) -> gzip.GzipFile:
    return gzip.GzipFile("", "wb", fileobj=file)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What spreadsheets take for the beginning of a formula, or skip before one."""


def as_plain_text(value: Any) -> Any:
    """A text as a spreadsheet shows it without computing anything; numbers stay numbers.

    Examples
    --------
    >>> as_plain_text("=1+1"), as_plain_text("red"), as_plain_text(-1)
    ("'=1+1", 'red', -1)
    """
    is_risky = isinstance(value, str) and value.startswith(FORMULA_STARTS)
    return f"'{value}" if is_risky else value


def _csv_line(values: Sequence[Any]) -> str:
    """One line; csv.writer would leave a lone carriage return unquoted in some versions."""
    if len(values) == 1 and _csv_field(values[0]) == "":
        return '""\n'  # an empty line would be no row at all
    return ",".join(map(_csv_field, values)) + "\n"


def _csv_field(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    text = str(value)
    if not _QUOTE_NEEDED.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def _format_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    suffix = (suffixes[:-1] if packed else suffixes)[-1:]
    if suffix and (suffix[0] in _DELIMITERS or suffix[0] == ".arff"):
        return suffix[0]
    if suffix == [".parquet"] and not packed:
        return ".parquet"
    raise InputError(
        f"cannot tell the format of {str(path)!r}; the name must end in .csv, .tsv, .txt or .arff "
        "(also with .gz appended), or in .parquet"
    )


# --- delimited text -------------------------------------------------------------------------------


def _checked_delimiter(delimiter: str | None) -> str | None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n '):
        raise InputError(f"delimiter must be a single character such as ',', got {delimiter!r}")
    return delimiter


def _sniff_delimiter(text: str, suffix: str) -> str:
    header = re.sub(r'"[^"]*"', "", text.lstrip().partition("\n")[0])
    candidates = _DELIMITERS[suffix]
    return next((c for c in candidates if c in header), candidates[0])


def _split_rows(
    text: str, delimiter: str, path: str
) -> tuple[tuple[str, ...], list[list[str]], list[int]]:
    """Header, rows, and the line on which each row begins."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    rows: list[list[str]] = []
    lines: list[int] = []
    names: tuple[str, ...] = ()
    line = 1
    try:
        for row in reader:
            if names and len(row) == len(names):
                rows.append(row)
                lines.append(line)
            elif not names and not _is_blank(row):
                names = _checked_header(row, path, line)
            elif not _is_blank(row):
                raise format_error(path, line, f"expected {len(names)} fields, got {len(row)}")
            line = reader.line_num + 1
    except csv.Error as error:
        reason = f"{error}; is a quote not closed in a row that begins here?"
        raise format_error(path, line, reason) from error
    if not rows:
        raise format_error(path, None, "there are no rows below the header")
    return names, rows, lines


def _is_blank(row: Sequence[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())


def _checked_header(row: Sequence[str], path: str, line: int) -> tuple[str, ...]:
    names = tuple(name.strip() for name in row)
    if "" in names:
        position = names.index("") + 1
        raise format_error(
            path, line, f"column {position} has no name; if it is a row index, leave it out"
        )
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        listed = ", ".join(map(repr, repeated))
        raise format_error(path, line, f"column names must be distinct, these repeat: {listed}")
    return names


# --- Parquet --------------------------------------------------------------------------------------


def _read_parquet(path: Path, kinds: Kinds) -> Table:
    """The table of a Parquet file; a damaged one can be found out as late as at its cells."""
    read = _parquet_reader(path)
    try:
        return as_table(read(path), kinds=kinds)
    except MarginBNError:
        raise
    except Exception as error:  # pyarrow and polars have their own family of errors each
        reason = f"not a readable Parquet file: {error}"
        raise format_error(str(path), None, reason) from error


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


def _read_with_pyarrow(path: Path) -> Any:
    """In batches: pyarrow takes memory for all rows that a file promises to have in one piece."""
    arrow = importlib.import_module("pyarrow")
    with importlib.import_module("pyarrow.parquet").ParquetFile(path) as file:
        batches = list(file.iter_batches(BATCH_ROWS))
        return arrow.Table.from_batches(batches, schema=file.schema_arrow)


def _read_with_polars(path: Path) -> Any:
    return importlib.import_module("polars").read_parquet(path)
