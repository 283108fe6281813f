"""From a table on the command line to features and labels, and from answers to a file.

Answers are written a chunk of rows at a time, as CSV or Parquet, whole or not at all. A chunk is an
Arrow table; all chunks have the same columns.
"""

from __future__ import annotations

import gzip
import io
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, TextIO, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.validation import check_shape
from marginbn.cli.options import STDIN, RowOptions, TableOptions, in_options
from marginbn.cli.running import note
from marginbn.data import labelled
from marginbn.data.columns import Column, WantedKind
from marginbn.data.inspection import RARE_COUNT, DataReport, inspect_rows
from marginbn.data.labelled import CLASS_NAME, LabelledTable
from marginbn.data.preparation import TableSettings, coded_blocks
from marginbn.data.source import ARROW_SUFFIXES, Source
from marginbn.data.table import (
    Table,
    as_kind,
    as_table,
    format_of,
    open_file,
    source_of_typed,
    suggestion,
)
from marginbn.data.text_files import DELIMITERS, PACKED, other_delimiter, source_of_stream
from marginbn.data.training import TrainingRows, survey_rows
from marginbn.datasets import Dataset, load_dataset
from marginbn.exceptions import DataWarning, InputError
from marginbn.files import open_new, replacing
from marginbn.network.wording import listing
from marginbn.problem.array_types import CodeArray
from marginbn.problem.encoded import EncodedData, with_class_column


def load_rows(options: TableOptions) -> LabelledTable:
    """The rows to learn from that the command line names."""
    source = load_source(options)
    return labelled_rows(source.train, source.target, options.drop)


def load_source(options: TableOptions) -> Dataset:
    """Read what the command line names; an existing file wins over a data set of that name."""
    kinds = parse_kinds(options.kind)
    if is_file_name(options.table):
        target = options.named_target()
        table = read_file(options.table, options.encoding, kinds)
        return Dataset(options.table, table, None, target)
    known = load_dataset(options.table)
    test = None if known.test is None else as_table(known.test, kinds=kinds)
    train, target = as_table(known.train, kinds=kinds), options.target or known.target
    return Dataset(known.name, train, test, target)


def long_stream(name: str, drop: Sequence[str] | None) -> Source | None:
    """A Parquet file or folder that is too long to be read as a whole; None for anything else."""
    path = Path(name)
    if not (path.is_dir() or (path.suffix == ".parquet" and path.is_file())):
        return None
    source = open_file(path)
    if (source.count() or 0) <= labelled.SAMPLE_ROWS:
        return None
    return source.without(drop or ())


def load_features(options: TableOptions) -> Table:
    """The table of a file, or the training part of a data set, where no column is a class."""
    table = load_table(options.table, options.encoding, parse_kinds(options.kind))
    for name in options.drop or ():
        table = table.drop(name)
    return table


def load_table(name: str, encoding: str, kinds: Any = "auto") -> Table:
    """The table of a file, or the training part of a data set."""
    if is_file_name(name):
        return read_file(name, encoding, kinds)
    return as_table(load_dataset(name).train, kinds=kinds)


def read_file(name: str, encoding: str, kinds: Any = "auto") -> Table:
    """The table of a file; fields may be separated by spaces, too."""
    table = as_table(open_file(name, encoding=encoding), kinds=kinds)
    if format_of(Path(name)) in DELIMITERS and len(table.columns) == 1:
        (column,) = table.columns
        delimiter = other_delimiter(column.name, column.labels[:100])
        if delimiter is not None:
            source = open_file(name, encoding=encoding, delimiter=delimiter)
            return as_table(source, kinds=kinds)
    return table


@contextmanager
def open_rows(options: RowOptions) -> Iterator[Source]:
    """The rows that a command asks about: of a file, of stdin, or of a data set."""
    settings: dict[str, Any] = {"delimiter": options.delimiter, "encoding": options.encoding}
    if options.table == STDIN:
        yield source_of_stream(sys.stdin.buffer, **settings)
    elif options.is_stream:
        with open(options.table, "rb") as stream:
            yield source_of_stream(stream, **settings)
    elif is_file_name(options.table):
        yield open_file(options.table, **settings)
    else:
        yield source_of_typed(load_dataset(options.table).train)


def check_columns(classifier: BaseBNClassifier, names: Sequence[str], allow_missing: bool) -> None:
    """Refuse a table that lacks features, unless that is allowed; one feature must be there."""
    features = classifier.preparation_.used_names
    absent = [name for name in features if name not in names]
    if absent and not allow_missing:
        raise InputError(
            "the table lacks columns that the classifier was trained with: "
            f"{listing([repr(name) for name in absent], 10)}; with --allow-missing-columns they "
            f"are summed out{suggestion(absent[0], names) if len(names) == 1 else ''}"
        )
    if len(absent) == len(features):
        raise InputError("the table has none of the columns that the classifier was trained with")


def find_kept(asked: Sequence[str], names: Sequence[str]) -> list[str]:
    """Columns named by ``--keep``, each a name or several with commas between them."""
    kept: dict[str, None] = {}
    for text in asked:
        parts = [text] if text in names else [part.strip() for part in text.split(",")]
        for name in parts:
            if name not in names:
                raise InputError(f"--keep: there is no column {name!r}{suggestion(name, names)}")
            kept[name] = None
    return list(kept)


def encoded_chunks(
    classifier: BaseBNClassifier, source: Source, kept: Sequence[str] = ()
) -> Iterator[tuple[pa.Table, CodeArray]]:
    """Every block of rows and its codes, class column included; -1 is summed out."""
    preparation, coding = classifier.preparation_, classifier.row_coding
    for block, codes in coded_blocks(preparation, coding, source, kept, may_lack=True):
        yield block, with_class_column(codes)


def is_file_name(name: str) -> bool:
    """Whether a name on the command line means a file rather than a data set."""
    path = Path(name)
    return path.exists() or len(path.parts) > 1 or path.suffix.lower() in _SUFFIXES


_SUFFIXES = {*DELIMITERS, *ARROW_SUFFIXES, *PACKED, ".arff"}


def parse_kinds(texts: list[str] | None) -> Any:
    """``COL=numeric`` and the like as a mapping; ``"auto"`` if there are none."""
    kinds: dict[str, str] = {}
    for text in texts or ():
        name, equals, kind = text.rpartition("=")
        if not (name and equals and kind in get_args(WantedKind)):
            known = ", ".join(get_args(WantedKind))
            raise typer.BadParameter(
                f"write COL=numeric or the like; kinds are {known}; got {text!r}",
                param_hint="--kind",
            )
        kinds[name] = kind
    return kinds or "auto"


def feature_kinds(options: TableOptions) -> Any:
    """The kinds that the options ask for, of the columns that a classifier sees."""
    kinds = parse_kinds(options.kind)
    left = set(options.drop or ()) | {options.target}
    asked = {} if kinds == "auto" else kinds
    return {name: kind for name, kind in asked.items() if name not in left} or "auto"


def labelled_rows(table: Table, target: str, drop: Iterable[str] | None = None) -> LabelledTable:
    """Rows without the columns `drop`; those without a class are left out with a warning."""
    column = _class_column(table.column(target))
    features = table.drop(target)
    for name in drop or ():
        features = features.drop(name)
    if not features.columns:
        raise InputError(f"there is no column besides the target {target!r}")
    known = ~column.missing
    if not known.any():
        raise InputError(f"the target {target!r} is missing in every row")
    if not known.all():
        warnings.warn(
            f"{(~known).sum()} of {table.n_rows} rows have no {target!r} and are left out",
            DataWarning,
            stacklevel=2,
        )
        features, column = features.take(known), column.take(known)
    labels = np.asarray(column.values.tolist())
    return LabelledTable.of(features, labels, target or CLASS_NAME)


MOST_NUMBERS = 20
"""Whole numbers up to which a target may have few rows of each: more are a measurement."""


def _class_column(column: Column) -> Column:
    """The target as categories; a measurement is no class, whole numbers stay in order."""
    if column.kind == "numeric":
        present = column.numbers[~column.missing]
        parts, n_different = present[present != np.floor(present)], len(np.unique(present))
        held = f"measured numbers such as {parts[0]:g}" if len(parts) else ""
        if n_different > MOST_NUMBERS and n_different * RARE_COUNT > len(present):
            held = held or f"{n_different} different numbers in {len(present)} rows"
        if held:
            raise InputError(
                f"the target {column.name!r} holds {held}; choose a column of classes, or write "
                f"--kind '{column.name}=categorical' to make every number a class"
            )
    classes = as_kind(column, "categorical")
    categories = classes.categories
    if any(isinstance(c, float) for c in categories):  # 1.5 is a class only as a text
        categories = classes.labels
    elif all(isinstance(c, str) and c.isdecimal() and str(int(c)) == c for c in categories):
        categories = tuple(int(c) for c in categories)
    return Column.categorical(classes.name, classes.codes, categories)


def prepare(
    classifier: BaseBNClassifier, rows: LabelledTable, began: float | None = None
) -> TrainingRows:
    """The rows as the classifier learns from them; warnings say what is done."""
    classifier.check_parameters()
    return TrainingRows.of(survey_rows(rows), classifier.table_settings(), began)


def print_hints(rows: TrainingRows, quiet: bool) -> DataReport:
    """Print what should give pause and is not in the warnings of a fit, on stderr."""
    report = inspect_rows(rows)
    for hint in report.hints:
        note(f"data: {in_options(hint)}", quiet)
    return report


def encode_rows(rows: LabelledTable, settings: TableSettings) -> EncodedData:
    """Prepared, discretised and encoded, as a classifier does before its search."""
    check_shape(rows.features.n_rows, rows.features.n_columns)
    return TrainingRows.of(survey_rows(rows), settings).encode().data


# --- answers ---

QUOTE_NEEDED = r'[,"\r\n]'


def write_csv_chunks(target: str | PathLike[str] | TextIO, chunks: Iterable[pa.Table]) -> None:
    """Write a CSV file, packed if its name ends in .gz, or to an open stream; what is missing
    becomes an empty field.
    """
    texts = _csv_texts(chunks)
    if not isinstance(target, (str, PathLike)):
        target.writelines(texts)
        return
    is_packed = str(target).lower().endswith(".gz")
    with (
        replacing(target) as temporary,
        open_new(temporary) as file,
        gzip.GzipFile("", "wb", fileobj=file) if is_packed else nullcontext(file) as plain,
        io.TextIOWrapper(plain, encoding="utf-8", newline="") as stream,
    ):
        stream.writelines(texts)


def _csv_texts(chunks: Iterable[pa.Table]) -> Iterator[str]:
    """The header not before there are rows: they may be unusable."""
    for position, chunk in enumerate(chunks):
        if position == 0:
            yield _csv_text(pa.table({str(i): [n] for i, n in enumerate(chunk.column_names)}))
        yield _csv_text(chunk)


def _csv_text(rows: pa.Table) -> str:
    fields = [_csv_fields(column) for column in rows.columns]
    if len(fields) == 1:  # an empty line would be no row at all
        fields = [pc.if_else(pc.equal(fields[0], ""), '""', fields[0])]
    lines = pc.binary_join_element_wise(*fields, ",").to_pylist()
    return "".join(f"{line}\n" for line in lines)


def _csv_fields(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as they stand in a line, in quotes if need be; empty if they are missing."""
    texts = pc.fill_null(column.cast(pa.string()), "")
    doubled = pc.replace_substring(texts, '"', '""')
    quoted = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(pc.match_substring_regex(texts, QUOTE_NEEDED), quoted, texts)


def write_parquet_chunks(path: str | PathLike[str], chunks: Iterable[pa.Table]) -> None:
    """Write a Parquet file; all chunks have the types of the first."""
    parquet: Any = import_module("pyarrow.parquet")  # without types
    with replacing(path) as temporary:
        writer = None
        for chunk in chunks:
            writer = writer or parquet.ParquetWriter(temporary, chunk.schema)
            writer.write_table(chunk.cast(writer.schema))
        if writer is not None:
            writer.close()
