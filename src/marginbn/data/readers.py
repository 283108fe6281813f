"""Tables from files: CSV and its kin, ARFF, Parquet and Arrow; the text formats also packed.

In CSV files the first line names the columns. An empty field and ``?``, ``NA``, ``N/A``, ``n/a``,
``NaN``, ``nan`` mean missing, in quotes too; everything else (``null``, ``None``, ``-``) is a
value. Surrounding spaces are dropped. Numbers have a decimal point. Nothing in a file is ever
evaluated.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from marginbn.data.arff import source_of_arff
from marginbn.data.source import (
    ARROW_SUFFIXES,
    Source,
    source_of_dask,
    source_of_dataset,
    source_of_duckdb,
    source_of_lazy_frame,
    source_of_path,
)
from marginbn.data.table import Kinds, Table, as_table
from marginbn.data.text_files import (
    DELIMITERS,
    PACKED,
    checked_encoding,
    load_text,
    source_of_text,
)
from marginbn.exceptions import InputError


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
        A .csv, .tsv, .txt or .arff file, each also with .gz or .zst appended; a .parquet, .arrow or
        .feather file; or a folder of Parquet files, where the names of folders such as
        ``year=2024`` are a column.
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
    return as_table(open_file(path, delimiter=delimiter, encoding=encoding), kinds=kinds)


def open_file(
    path: str | PathLike[str], *, delimiter: str | None = None, encoding: str = "utf-8"
) -> Source:
    """The rows of a file as a source: only its header or schema is read now."""
    path = Path(path)
    suffix = format_of(path)
    if suffix in DELIMITERS:
        return source_of_text(path, suffix, delimiter=delimiter, encoding=encoding)
    if suffix == ".arff":
        return source_of_arff(load_text(path, checked_encoding(encoding)), str(path))
    return source_of_path(path)


def as_stream(X: Any) -> Source | None:
    """A table that is read in blocks, because it need not fit into memory; None for anything else.

    These are paths of files and folders, pyarrow datasets, DuckDB relations, polars LazyFrames and
    Dask DataFrames.
    """
    if isinstance(X, Source):
        return X
    if isinstance(X, (str, PathLike)):
        return open_file(X)
    library = type(X).__module__.partition(".")[0].lstrip("_")
    if library == "pyarrow" and hasattr(X, "to_batches") and hasattr(X, "scanner"):
        return source_of_dataset(X, "pyarrow dataset")
    if library == "duckdb" and hasattr(X, "columns"):
        return source_of_duckdb(X)
    if library == "polars" and hasattr(X, "sink_parquet"):
        return source_of_lazy_frame(X)
    if library in ("dask", "dask_expr") and hasattr(X, "partitions"):
        return source_of_dask(X)
    return None


def format_of(path: Path) -> str:
    """The suffix that tells the format, without that of a packed file."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in PACKED
    suffix = (suffixes[:-1] if packed else suffixes)[-1:]
    if suffix and (suffix[0] in DELIMITERS or suffix[0] == ".arff"):
        return suffix[0]
    if suffix and suffix[0] in ARROW_SUFFIXES and not packed:
        return suffix[0]
    if path.is_dir():
        return ".parquet"
    raise InputError(
        f"cannot tell the format of {str(path)!r}; the name must end in .csv, .tsv, .txt or .arff "
        "(also with .gz or .zst appended), in .parquet, .arrow or .feather, or be a folder of "
        "Parquet files"
    )
