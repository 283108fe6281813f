"""Where rows come from: a stream of Arrow tables that can be read again.

Everything tabular becomes a :class:`Source`: data frames of any library through the Arrow C stream
interface, arrays and nested lists column by column, files and folders through pyarrow. From there
on a table in memory, a file and a partition of a cluster are treated alike. A dictionary column
declares the order of its categories if it is ordered, as enums and all categoricals of pandas are;
any other is a way to store texts.

Files of text are read by :mod:`~marginbn.data.text_files`; what a column holds is decided by
:mod:`~marginbn.data.profile`.
"""

from __future__ import annotations

import numbers
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from marginbn.data.columns import (
    CellError,
    Kind,
    is_missing,
    parse_number,
    refuse,
    tidy,
    why_refused,
)
from marginbn.data.profile import encoded_texts, may_be_numbers, plain_array
from marginbn.exceptions import FormatError, InputError

BLOCK_ROWS = 131_072
"""Rows that are looked at together: columns of a block stay in the cache, and small files and row
groups are joined up to it."""

Read = Callable[[Sequence[str]], Iterator[Any]]
"""What begins a pass over some columns."""

Work = Callable[[pa.Table, int], Any]
"""A function of a block and of the number of its first row."""

KEPT_BYTES = 1 << 29
"""Rows that are kept between two passes, in the types of Arrow."""

AT_A_TIME = 16
"""Partitions of a cluster whose answers are waited for together."""


@dataclass(frozen=True)
class Source:
    """A table that can be read several times, block by block.

    Parameters
    ----------
    names, read
        Of all columns, and what begins a new pass over some of them: Arrow tables or batches.
    origin
        What it was made of, for messages; empty for a table in memory.
    is_text, kinds
        Whether fields are texts of a file, where spaces do not count, some texts mean missing and
        numbers are to be found out; and kinds that the source declares, as ARFF files do.
    line_of, count
        The line of a file in which a row begins, counted when an error needs it, and the number of
        rows if it is known without reading them.
    elsewhere, owner
        Answers of a function to all blocks, where these are in other processes; and what must not
        be removed before the source.
    """

    names: tuple[str, ...]
    read: Read
    origin: str = ""
    is_text: bool = False
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    line_of: Callable[[int], int] | None = None
    count: Callable[[], int | None] = field(default=lambda: None)
    elsewhere: Callable[[Work, Sequence[str]], Iterator[Any]] | None = None
    owner: object = None

    def blocks(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """A new pass: tables of about :data:`BLOCK_ROWS` rows with the named columns."""
        waiting: list[pa.Table] = []
        n_waiting = 0
        for table in map(_as_table, self.read(self.names if names is None else list(names))):
            for begin in range(0, table.num_rows, BLOCK_ROWS):
                waiting.append(table.slice(begin, BLOCK_ROWS))
                n_waiting += waiting[-1].num_rows
                if n_waiting >= BLOCK_ROWS:
                    yield _joined(waiting)
                    waiting, n_waiting = [], 0
        if n_waiting:
            yield _joined(waiting)

    def each(self, work: Work, names: Sequence[str] | None = None) -> Iterator[Any]:
        """The answer of a function to every block and the number of its first row, where the block
        is: the function and its answers must be fit for another process.
        """
        wanted = self.names if names is None else names
        if self.elsewhere is not None:
            yield from (answer for answer in self.elsewhere(work, wanted) if answer is not None)
            return
        first_row = 0
        for block in self.blocks(wanted):
            yield self.answer(work, block, first_row)
            first_row += block.num_rows

    def answer(self, work: Work, block: pa.Table, first_row: int = 0) -> Any:
        """The answer of a function to a block; errors name the line of a file, or the row."""
        try:
            return work(block, first_row)
        except CellError as error:
            row, begin, reason = first_row + error.row, error.begin, error.reason
        if self.line_of is None:
            raise InputError(f"{begin} row {row} (the first row is 0) {reason}")
        raise FormatError(f"{self.origin}, line {self.line_of(row)}: {begin} {reason}")

    def remembering(self) -> Source:
        """The same table with texts as dictionaries. Rows of the first pass that ends are kept, if
        they take no more than :data:`KEPT_BYTES`, and serve later passes over the same columns or
        some of them.
        """
        kept: list[pa.Table] = []

        def read(names: Sequence[str]) -> Iterator[Any]:
            if kept and set(names) <= set(kept[0].schema.names):
                yield from (part.select(list(names)) for part in kept)
                return
            parts: list[pa.Table] = []
            n_bytes = 0
            texts: Sequence[str] | None = None  # as the first block has it, alike in all
            for block in self.blocks(names):
                if texts is None:
                    texts = [n for n in names if not (self.is_text and may_be_numbers(block[n]))]
                joined = (encoded_texts if n in texts else plain_array for n in names)
                columns = [join(n, block[n]) for n, join in zip(names, joined, strict=True)]
                part = pa.Table.from_arrays(columns, names=list(names))
                n_bytes += part.nbytes
                parts.append(part)
                if n_bytes > KEPT_BYTES:
                    parts.clear()
                yield part
            kept.extend(parts if n_bytes <= KEPT_BYTES and not kept else ())

        return replace(self, read=read)

    def whole(self, names: Sequence[str] | None = None) -> pa.Table:
        """All rows at once."""
        parts = map(_as_table, self.read(self.names if names is None else list(names)))
        if not (tables := [part for part in parts if part.num_rows]):
            raise self.empty()
        return pa.concat_tables(tables, promote_options="permissive")

    def empty(self) -> InputError:
        """The error for a table without rows."""
        if self.is_text:
            return FormatError(f"{self.origin}: there are no rows below the header")
        return FormatError(f"{self.origin or 'the table'}: there are no rows")

    def renamed(self, names: Sequence[str]) -> Source:
        """The same columns under other names."""
        if len(names) != len(self.names):
            raise InputError(
                f"names must have {len(self.names)} entries, one per column, got {len(names)}"
            )
        new = [*map(str, names)]
        check_distinct_names(new)
        own, read = dict(zip(new, self.names, strict=True)), self.read

        def read_renamed(wanted: Sequence[str]) -> Iterator[Any]:
            for part in read([own[name] for name in wanted]):
                yield part.rename_columns(list(wanted))

        return replace(self, names=tuple(new), read=read_renamed)

    def without(self, names: Iterable[str]) -> Source:
        """The table without some of its columns."""
        left_out = [*names]
        absent = [name for name in left_out if name not in self.names]
        if absent:
            raise InputError(
                f"{self.origin or 'the table'} has no column {absent[0]!r} to leave out"
            )
        return replace(self, names=tuple(n for n in self.names if n not in left_out))


def _as_table(part: pa.Table | pa.RecordBatch) -> pa.Table:
    return part if isinstance(part, pa.Table) else pa.Table.from_batches([part])


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """One table; string views, of which pyarrow can take no rows, become strings."""
    table = pa.concat_tables(tables, promote_options="permissive")
    for i, kind in enumerate(table.schema.types):
        if kind in (pa.string_view(), pa.binary_view()):
            column = table.column(i).cast(pa.large_string())
            table = table.set_column(i, table.schema.names[i], column)
    return table


# --- tables in memory -----------------------------------------------------------------------------


def source_of_table(table: pa.Table) -> Source:
    """A table in memory, whose blocks are views of it."""
    return Source(
        tuple(table.column_names),
        lambda names: iter([table.select(list(names))]),
        count=lambda: int(table.num_rows),
    )


def source_of_memory(X: Any) -> Source:
    """A source of an array, a list of rows or of dicts, or a data frame; columns become Arrow
    arrays when they are read.
    """
    if isinstance(X, (list, tuple)):
        return _source_of_columns(_columns_of_rows(X), len(X))
    kind = type(X)  # it is asked instead of X: a lazy frame would compute
    if hasattr(kind, "iloc") and hasattr(kind, "columns"):  # pandas and what copies it
        names = [str(name) for name in X.columns]
        check_distinct_names(names)
        return _source_of_columns({n: X.iloc[:, i] for i, n in enumerate(names)}, len(X))
    if hasattr(kind, "__arrow_c_stream__"):
        if hasattr(kind, "get_columns"):  # polars
            return _source_of_columns({n: X[n] for n in X.columns}, len(X))
        table = X if isinstance(X, pa.Table) else pa.table(X)
        check_distinct_names(table.column_names)
        require_columns(table.num_columns, table.shape)
        return source_of_table(table)
    if hasattr(kind, "columns"):
        raise InputError(
            f"X must be an array, a list of rows or a data frame in memory, got {kind}; collect a "
            "lazy frame first"
        )
    if hasattr(X, "tocsr"):
        raise InputError("Sparse data is not supported; use X.toarray() to give a dense array")
    array = unmasked(X)
    if array.dtype.names:
        return _source_of_columns({n: array[n] for n in array.dtype.names}, len(array))
    if array.ndim != 2:
        refuse_shape(array.ndim)
    return _source_of_columns({f"x{i}": array[:, i] for i in range(array.shape[1])}, len(array))


def _source_of_columns(columns: Mapping[str, Any], n_rows: int) -> Source:
    require_columns(len(columns), (n_rows, len(columns)))

    def read(names: Sequence[str]) -> Iterator[pa.Table]:
        arrays = [array_of(name, columns[name]) for name in names]
        yield pa.Table.from_arrays(arrays, names=list(names))

    return Source(tuple(columns), read, count=lambda: n_rows)


def _columns_of_rows(rows: Sequence[Any]) -> dict[str, Any]:
    """Columns of rows or, in the order in which their names turn up, of dicts; what a dict lacks is
    missing.
    """
    if not rows:
        raise InputError("X is an empty list; give at least one row")
    if all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        return {str(name): [row.get(name) for row in rows] for name in names}
    if not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        refuse_shape(np.ndim(rows[0]) + 1)
    width = len(rows[0])
    for i, row in enumerate(rows):
        if len(row) != width:
            raise InputError(
                f"the rows of X must be of equal length: row 0 has {width}, "
                f"row {i} has {len(row)} values"
            )
    return {f"x{i}": list(column) for i, column in enumerate(zip(*rows, strict=True))}


def array_of(name: str, values: Any) -> Any:
    """Arrow array of one column: a list, a numpy array, or a series of any library."""
    if isinstance(values, (list, tuple)):
        return array_of_objects(name, values)
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    shape = np.shape(values)
    if len(shape) != 1:
        raise InputError(f"{name} must be one-dimensional, got an array of shape {shape}")
    if hasattr(values, "iloc"):
        return _array_of_series(name, values)
    if hasattr(values, "__arrow_c_stream__"):
        try:
            return pa.chunked_array(values)
        except pa.ArrowInvalid:  # a type that only its library has, such as integers of 128 bits
            return array_of_objects(name, values.to_list())
    array = unmasked(values)
    family = array.dtype.kind
    if family in "iuf":
        return pa.array(np.ascontiguousarray(array, array.dtype.newbyteorder("=")))
    if family == "M":
        return pa.array(array.astype("datetime64[s]"))
    return array_of_objects(name, array.tolist())


def _array_of_series(name: str, series: Any) -> Any:
    """Arrow array of a pandas series; categories keep their order, objects that differ in type
    become texts.
    """
    if hasattr(series, "cat"):
        codes = np.asarray(series.cat.codes)
        values = array_of_objects(name, list(series.cat.categories))
        indices = pa.array(codes, mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, values, ordered=True)
    if str(series.dtype).startswith("period"):
        refuse(name, "time")
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return array_of_objects(name, series.tolist())


def unmasked(X: Any) -> Any:
    """Plain numpy array; masked cells become missing."""
    if not isinstance(X, np.ma.MaskedArray):
        return np.asarray(X)
    array = np.ma.getdata(X).astype(np.float64 if X.dtype.kind == "f" else object)
    array[np.ma.getmaskarray(X)] = None  # NaN among floats
    return array


def refuse_shape(ndim: int) -> None:
    """Refuse what is no table."""
    raise InputError(
        f"Expected 2D array, got {ndim}D array instead: X must have one row per sample and one "
        "column per feature. Reshape your data with X.reshape(-1, 1) if it is a single feature, "
        "or X.reshape(1, -1) if it is a single sample."
    )


def require_columns(n_columns: int, shape: tuple[int, ...]) -> None:
    """Refuse a table without columns."""
    if n_columns == 0:
        raise InputError(f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def check_distinct_names(names: Sequence[str]) -> None:
    """Refuse names that occur twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        listed = ", ".join(map(repr, repeated))
        raise InputError(f"column names must be distinct, but these occur twice: {listed}")


# --- cells of Python ------------------------------------------------------------------------------


def array_of_objects(name: str, values: Sequence[Any]) -> pa.Array:
    """Arrow array of Python values; of values that Arrow does not combine it has numbers if all are
    numbers, and texts otherwise.
    """
    kinds = set(map(type, values)) - {type(None)}
    try:
        if len(kinds) == 1 or bool not in kinds:  # Arrow takes booleans for numbers among floats
            return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    present = [None if is_missing(value) else value for value in values]
    kinds = set(map(type, present)) - {type(None)}
    for refused in filter(None, map(why_refused, kinds)):
        refuse(name, refused)
    if kinds <= {bool}:
        return pa.array(present, pa.bool_())
    if bool not in kinds and all(issubclass(kind, (numbers.Real, Decimal)) for kind in kinds):
        whole = all(issubclass(kind, (int, np.integer)) for kind in kinds)
        if whole and all(abs(int(value or 0)) < 10**38 for value in present):
            return pa.array([v if v is None else Decimal(int(v)) for v in present])
        return pa.array([v if v is None else parse_number(v) for v in present], pa.float64())
    texts = [None if value is None else str(tidy(value)) for value in present]
    halves = "backslashreplace"  # of a pair of surrogates
    plain = [None if t is None else t.encode(errors=halves).decode() for t in texts]
    return pa.array(plain, pa.large_string())


# --- tables that are read in blocks ---------------------------------------------------------------


ARROW_SUFFIXES = {".parquet": "parquet", ".arrow": "ipc", ".ipc": "ipc", ".feather": "feather"}
"""Formats of pyarrow.dataset by the suffix of a file."""


def source_of_path(path: Path) -> Source:
    """A Parquet or Arrow file, or a folder of Parquet files; the names of folders such as
    ``year=2024`` are a column.
    """
    datasets: Any = import_module("pyarrow.dataset")
    if not path.exists():
        raise InputError(f"cannot read {str(path)!r}: there is no such file or folder")
    kind = ARROW_SUFFIXES.get(path.suffix.lower(), "parquet")
    with _arrow_errors(f"{path}: not a readable {kind.title()} file"):
        layout = "hive" if path.is_dir() else None
        dataset = datasets.dataset(path, format=kind, partitioning=layout)
        source = source_of_dataset(dataset, str(path))
        if kind != "parquet":
            return source
        fragments = list(dataset.get_fragments())
        schemas = [dataset.schema, *(part.physical_schema for part in fragments)]
        try:
            schema = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowTypeError:  # perhaps categories in one file and texts in another
            plain = [pa.schema((f.name, _plain_type(f.type)) for f in own) for own in schemas]
            schema = pa.unify_schemas(plain, promote_options="permissive")
    read = partial(_read_parquet, fragments, schema, str(path))
    return replace(source, names=tuple(schema.names), read=read)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


@contextmanager
def _arrow_errors(what: str) -> Iterator[None]:
    """Errors of pyarrow, which has several families of them, as ours."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise FormatError(f"{what}: {' '.join(str(error).split())}") from None


def _read_parquet(
    fragments: Sequence[Any], schema: pa.Schema, origin: str, names: Sequence[str]
) -> Iterator[pa.Table]:
    """File by file: a scanner takes memory for all rows that a row group promises to have.

    Texts are read as dictionaries, which is how Parquet mostly stores them.
    """
    datasets: Any = import_module("pyarrow.dataset")
    parquet: Any = import_module("pyarrow.parquet")
    texts = pa.dictionary(pa.int32(), pa.string())
    kinds = {name: schema.field(name).type for name in names}
    kinds = {name: texts if kind == pa.string() else kind for name, kind in kinds.items()}
    for fragment in fragments:
        known = datasets.get_partition_keys(fragment.partition_expression)
        own = [name for name in fragment.physical_schema.names if name in kinds]
        with ExitStack() as stack:
            stack.enter_context(_arrow_errors(f"{origin}: cannot be read to its end"))
            file = parquet.ParquetFile(
                fragment.path,
                filesystem=fragment.filesystem,
                metadata=fragment.metadata,
                read_dictionary=[name for name in own if kinds[name] == texts],
            )
            for batch in stack.enter_context(file).iter_batches(
                BLOCK_ROWS, columns=own, use_threads=file.metadata.num_rows > BLOCK_ROWS
            ):
                columns = []
                for name, kind in kinds.items():
                    value = pa.scalar(known.get(name))
                    column = batch[name] if name in own else pa.repeat(value, batch.num_rows)
                    if column.type != kind and kind == texts:
                        column = column.cast(pa.string()).dictionary_encode()
                    columns.append(column if column.type == kind else column.cast(kind))
                yield pa.Table.from_arrays(columns, names=list(names))


def source_of_dataset(dataset: Any, origin: str) -> Source:
    """A dataset of pyarrow."""

    def read(names: Sequence[str]) -> Iterator[Any]:
        with _arrow_errors(f"{origin}: cannot be read to its end"):
            yield from dataset.to_batches(
                columns=list(names),
                batch_size=BLOCK_ROWS,
                batch_readahead=2,
                fragment_readahead=1,
            )

    names = tuple(dataset.schema.names)
    check_distinct_names(names)
    return Source(names, read, origin, count=lambda: int(dataset.count_rows()))


def source_of_duckdb(relation: Any) -> Source:
    def read(names: Sequence[str]) -> Iterator[Any]:
        begin = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        for batch in begin(BLOCK_ROWS):
            if batch.num_rows:
                yield batch.select(list(names))

    return Source(tuple(relation.columns), read, "DuckDB relation")


class TemporaryFolder:
    """A folder that is removed with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="marginbn-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def source_of_lazy_frame(frame: Any) -> Source:
    """The query runs once, into a temporary file, block by block by polars itself."""
    folder = TemporaryFolder()
    frame.sink_parquet(folder.path / "frame.parquet")
    return replace(source_of_path(folder.path), owner=folder, origin="polars LazyFrame")


def source_of_dask(frame: Any) -> Source:
    """Every partition is a block; work on it is done by the worker that has it. A pass reads the
    wanted columns only, and rows are counted once.
    """
    check_distinct_names([str(name) for name in frame.columns])
    own = {str(name): name for name in frame.columns}
    first_rows: list[int] = []  # of the partitions, as soon as they are counted

    def read(names: Sequence[str]) -> Iterator[Any]:
        wanted = frame[[own[name] for name in names]]
        for k in range(frame.npartitions):
            part = wanted.partitions[k].compute()
            if len(part):
                yield source_of_memory(part).whole(names)

    def elsewhere(work: Work, names: Sequence[str]) -> Iterator[Any]:
        dask: Any = import_module("dask")
        parts = frame[[own[name] for name in names]].to_delayed()
        if not first_rows:
            lengths = dask.compute(*[dask.delayed(len)(part) for part in parts])
            first_rows.extend(np.cumsum([0, *lengths[:-1]]).tolist())
        asked = zip(parts, first_rows, strict=True)
        answers = [dask.delayed(_answer)(work, part, list(names), row) for part, row in asked]
        for begin in range(0, len(answers), AT_A_TIME):
            yield from dask.compute(*answers[begin : begin + AT_A_TIME])

    return Source(tuple(own), read, "Dask DataFrame", elsewhere=elsewhere)


def _answer(work: Work, part: Any, names: list[str], first_row: int) -> Any:
    """The answer to a partition, a pandas frame."""
    if not len(part):
        return None
    source = source_of_memory(part)
    return source.answer(work, source.whole(names), first_row)
