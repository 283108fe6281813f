"""A table that does not fit into memory becomes codes, in two passes.

1. Kinds, states, missing values and values by class of every column (``sketches.py``). They give
   what is left out or merged (``preparation.py``) and the codings (``encode.py``): the same as for
   a table in memory, except that a numeric column of very many distinct values is cut by a sketch.
2. Every piece is encoded, with the code that encodes rows to predict, and written to a nameless
   temporary file that is mapped into memory.

A column is numeric or categorical as its first piece says, or as the caller does. Without a class
(``target`` None) numbers are cut at quantiles, and there is no class column.

What is chosen by validation is chosen on a random sample of the rows, drawn in one more pass.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.data import sketches
from marginbn.data.amounts import find_amounts, is_amount_kind
from marginbn.data.columns import Column
from marginbn.data.dates import is_date_kind
from marginbn.data.encode import Coding, EncodedTraining, TableCoding, learn_coding
from marginbn.data.labelled import refuse_measured
from marginbn.data.missing_values import MissingPolicy
from marginbn.data.preparation import ColumnPlan, Preparation, PreparationSettings
from marginbn.data.quantile_bins import learn_plain_codings
from marginbn.data.sketches import ClassCounts, ColumnSummary
from marginbn.data.stream import Stream
from marginbn.data.table import Table, as_table, resolve_kinds
from marginbn.exceptions import DataWarning, InputError
from marginbn.problem.encoded import EncodedData, Variable

IN_MEMORY = 250_000
"""A table of no more rows is read as a whole."""


@dataclass(frozen=True, eq=False)
class LongRows:
    """What is learned from a long table before its structure."""

    coding: TableCoding
    data: EncodedData
    preparation: Preparation
    names: tuple[str, ...]  # of the features
    n_rows: int
    sketched: tuple[str, ...]  # numeric columns whose cuts are approximate
    amounts: tuple[str, ...]  # columns of texts that a short table would have as numbers
    fingerprint: str

    @property
    def n_dropped(self) -> int:
        """Rows left out because a value is missing."""
        return self.n_rows - self.data.n_samples


@dataclass(frozen=True, eq=False)
class LongTraining(LongRows):
    """The same of a table with a class."""

    labels: NDArray[Any]

    @property
    def training(self) -> EncodedTraining:
        """Codings, classes and codes."""
        return EncodedTraining(self.coding, self.labels, self.data)


def whole_table(stream: Stream, target: Any) -> tuple[Table, NDArray[Any]] | None:
    """Features and labels of a short table; None if there are more rows than that."""
    target = check_target(stream, target)
    table = _read_short(stream)
    if table is None:
        return None
    return as_table(table.drop_columns([target])), labels_of(table, target)


def whole_plain_table(stream: Stream) -> Table | None:
    """A short table without a class; None if there are more rows than that."""
    table = _read_short(stream)
    return None if table is None else as_table(table)


def _read_short(stream: Stream) -> Any:
    """All pieces together, or None if there are too many rows."""
    pieces, n_rows = [], 0
    for piece in stream:
        pieces.append(piece)
        n_rows += piece.num_rows
        if n_rows > IN_MEMORY:
            return None
    return _joined(stream, pieces)


def _joined(stream: Stream, pieces: list[Any]) -> Any:
    if not pieces:
        raise InputError(f"{stream.origin} has no rows")
    import pyarrow

    return pyarrow.concat_tables(pieces, promote_options="permissive")


def sampled_table(stream: Stream, target: str, seed: int) -> tuple[Table, NDArray[Any]]:
    """Features and labels of as many rows as a short table has, drawn at random in one pass.

    Every row gets a random number, and those of the smallest numbers stay, in their order.
    """
    rng = np.random.default_rng(seed)
    pieces: list[Any] = []
    keys: list[NDArray[np.float64]] = []
    limit, kept = 1.0, 0
    for piece in stream:
        own = rng.random(piece.num_rows)
        pieces.append(piece.filter(own < limit))
        keys.append(own[own < limit])
        kept += len(keys[-1])
        if kept > 2 * IN_MEMORY:
            limit = float(np.partition(np.concatenate(keys), IN_MEMORY)[IN_MEMORY])
            pieces = [p.filter(k < limit) for p, k in zip(pieces, keys, strict=True)]
            keys = [k[k < limit] for k in keys]
            kept = sum(map(len, keys))
    table, drawn = _joined(stream, pieces), np.concatenate(keys)
    if len(drawn) > IN_MEMORY:
        table = table.filter(drawn < np.partition(drawn, IN_MEMORY)[IN_MEMORY])
    return as_table(table.drop_columns([target])), labels_of(table, target)


def check_target(stream: Stream, target: Any) -> str:
    """The name of the class column."""
    if not isinstance(target, str) or target not in stream.names:
        listed = ", ".join(map(repr, stream.names[:20]))
        raise InputError(
            f"y must be the name of the class column of {stream.origin}, one of {listed}; "
            f"got {target if isinstance(target, str) else type(target).__name__!r}"
        )
    return target


def labels_of(piece: Any, target: str) -> NDArray[Any]:
    """Class labels of a piece."""
    column = piece.column(target)
    if column.null_count:
        raise InputError(f"column {target!r}, the class, must not have missing values")
    labels = np.asarray(column.to_pylist()) if _is_text(column) else column.to_numpy()
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError(f"column {target!r}, the class, must not have NaN or infinity")
    refuse_measured(labels, f"column {target!r}, the class,")
    return labels


def _is_text(column: Any) -> bool:
    import pyarrow.types as types

    return not (types.is_integer(column.type) or types.is_floating(column.type))


def encode_stream(
    stream: Stream,
    target: Any,
    settings: PreparationSettings,
    missing: MissingPolicy,
    class_weight: Any = None,
) -> LongTraining:
    """Two passes over a table; see above.

    Parameters
    ----------
    stream, target
        The table, and the name of its class column.
    settings
        What becomes of columns.
    missing
        ``"drop"`` leaves rows with a missing value out, ``"state"`` and ``"auto"`` give columns
        with missing values a state for them, ``"error"`` refuses them.
    class_weight
        None, ``"balanced"``, or a mapping from class to weight.
    """
    target = check_target(stream, target)
    summaries, classes = _summarise(stream, target, settings)
    ranks, labels = classes.ranks, classes.labels

    def learn(column: Column, own: NDArray[np.int64], rows: NDArray[np.float64]) -> Coding:
        return learn_coding(column, ranks[own], rows, labels.size, missing)

    preparation, coding = _learn(summaries, settings, learn)
    variable = Variable(target, tuple(str(c) for c in labels))
    pieces = _encoded(stream, target, preparation, coding, labels)
    data, digest = _collect(pieces, classes.n_rows, missing, (variable, *coding.variables), coding)
    data = _weighted(data, labels, class_weight)
    names, sketched = _names(summaries, preparation)
    amounts, n_rows = _amounts(summaries, settings), classes.n_rows
    made = coding, data, preparation, names, n_rows, sketched, amounts, digest
    return LongTraining(*made, labels)


def encode_plain_stream(
    stream: Stream, settings: PreparationSettings, missing: MissingPolicy, n_bins: int
) -> LongRows:
    """The same for a table without a class: numbers are cut at quantiles."""
    summaries, classes = _summarise(stream, None, settings)

    def learn(column: Column, _: NDArray[np.int64], rows: NDArray[np.float64]) -> Coding:
        return learn_plain_codings(Table((column,)), rows, n_bins, missing).columns[0]

    preparation, coding = _learn(summaries, settings, learn)
    pieces = _encoded(stream, None, preparation, coding, np.zeros(1))
    data, digest = _collect(pieces, classes.n_rows, missing, coding.variables, coding)
    names, sketched = _names(summaries, preparation)
    amounts = _amounts(summaries, settings)
    return LongRows(coding, data, preparation, names, classes.n_rows, sketched, amounts, digest)


LearnCoding = Callable[[Column, NDArray[np.int64], NDArray[np.float64]], Coding]
"""States of a column of which every row has a class and stands for so many."""


def _learn(
    summaries: list[ColumnSummary], settings: PreparationSettings, learn: LearnCoding
) -> tuple[Preparation, TableCoding]:
    """What becomes of every column, and the states of those that are used."""
    plans: list[ColumnPlan] = []
    codings: list[Coding] = []
    for summary in summaries:
        column, own, rows = summary.condensed()
        plan = _plan(summary, column, rows, settings)
        plans.append(plan)
        if not plan.left_out:
            (used,) = plan.apply(column)
            codings.append(learn(used, own, rows))
    if not codings:
        raise InputError(
            "every column would be left out: "
            + ", ".join(f"{plan.name!r} ({plan.left_out})" for plan in plans)
        )
    return Preparation(tuple(plans)), TableCoding(tuple(codings))


def _names(
    summaries: list[ColumnSummary], preparation: Preparation
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of all columns, and of those that are used and cut by a sketch."""
    inexact = {s.name for s in summaries if not s.is_exact}
    sketched = tuple(name for name in preparation.used_names if name in inexact)
    return tuple(s.name for s in summaries), sketched


def _amounts(summaries: list[ColumnSummary], settings: PreparationSettings) -> tuple[str, ...]:
    """Names of the columns whose texts are amounts, where nobody asked for categories."""
    wanted = resolve_kinds(settings.column_kinds, [s.name for s in summaries])
    found = []
    for summary, kind in zip(summaries, wanted, strict=True):
        if kind is None and summary.kind == "categorical":
            texts = summary.categories
            if find_amounts(Column.categorical(summary.name, np.arange(len(texts)), texts)):
                found.append(summary.name)
    return tuple(found)


def warn_if_approximate(made: LongRows, stacklevel: int) -> None:
    """Say which cuts are approximate, and which texts a short table would have as numbers."""
    if made.amounts:
        warnings.warn(
            f"{', '.join(map(repr, made.amounts[:10]))} hold amounts such as $1,234.50 or 80 kg as "
            "texts, which are categories in a table that is read in pieces; make them numbers "
            "there, or say column_kinds={"
            f"{made.amounts[0]!r}: 'categorical'}} if they are meant so",
            DataWarning,
            stacklevel=stacklevel + 1,
        )
    if made.sketched:
        listed = ", ".join(map(repr, made.sketched[:10]))
        warnings.warn(
            f"the bins of {len(made.sketched)} numeric columns ({listed}) are approximate: their "
            f"cuts come from {sketches.POINTS} quantiles of {made.n_rows} rows",
            DataWarning,
            stacklevel=stacklevel + 1,
        )


def _summarise(
    stream: Stream, target: str | None, settings: PreparationSettings
) -> tuple[list[ColumnSummary], ClassCounts]:
    """The first pass: pieces are summarised where they are, and summaries added up."""
    first = next(iter(stream), None)
    if first is None:
        raise InputError(f"{stream.origin} has no rows")
    _refuse_texts(settings)
    known = as_table(_divided(first, target)[0], kinds=settings.column_kinds)
    kinds = tuple(known.kinds.values())
    summaries = [ColumnSummary(c.name, c.kind) for c in known.columns]
    classes = ClassCounts()
    for parts, counts in stream.each(partial(_summary_of_piece, target=target, kinds=kinds)):
        numbers = classes.absorb(counts, target or "")
        for summary, part in zip(summaries, parts, strict=True):
            summary.absorb(part, numbers)
    return summaries, classes


def _summary_of_piece(
    piece: Any, target: str | None, kinds: tuple[Any, ...]
) -> tuple[list[ColumnSummary], ClassCounts]:
    """Columns and classes of one piece."""
    features, own = _divided(piece, target)
    classes = ClassCounts()
    numbers = classes.add(own, target or "")
    table = as_table(features, kinds=list(kinds))
    parts = [ColumnSummary(c.name, c.kind) for c in table.columns]
    for part, column in zip(parts, table.columns, strict=True):
        part.add(column, numbers)
    return parts, classes


def _divided(piece: Any, target: str | None) -> tuple[Any, NDArray[Any]]:
    """Features and labels of a piece; all labels are the same where there is no class."""
    if target is None:
        return piece, np.zeros(piece.num_rows, dtype=np.int64)
    return piece.drop_columns([target]), labels_of(piece, target)


def _refuse_texts(settings: PreparationSettings) -> None:
    kinds = settings.column_kinds
    wanted = kinds.values() if isinstance(kinds, Mapping) else [kinds]
    if any(map(is_date_kind, wanted)):
        raise InputError(
            "column_kinds must not name dates for a table that is read in pieces; take year, month "
            "and weekday as columns of their own"
        )
    if any(map(is_amount_kind, wanted)):
        raise InputError(
            "column_kinds must not name amounts for a table that is read in pieces; make the "
            "columns numbers first"
        )


def _plan(
    summary: ColumnSummary,
    column: Column,
    rows: NDArray[np.float64],
    settings: PreparationSettings,
) -> ColumnPlan:
    if summary.is_overfull:
        return ColumnPlan(summary.name, summary.kind, "it has too many categories to count")
    return settings.plan_condensed(column, rows)


def _encoded(
    stream: Stream,
    target: str | None,
    preparation: Preparation,
    coding: TableCoding,
    labels: NDArray[Any],
) -> Iterator[NDArray[np.signedinteger]]:
    """The second pass: codes of every piece, -1 where missing; the class first, if there is one."""
    work = partial(
        _codes_of_piece, target=target, preparation=preparation, coding=coding, labels=labels
    )
    return stream.each(work)


def _codes_of_piece(
    piece: Any,
    target: str | None,
    preparation: Preparation,
    coding: TableCoding,
    labels: NDArray[Any],
) -> NDArray[np.signedinteger]:
    """Codes of one piece, in as few bytes as they need."""
    features, own = _divided(piece, target)
    table = as_table(features, kinds=preparation.kinds, only=preparation.used)
    codes = coding.encode(preparation.apply(table))
    if target is not None:
        codes = np.column_stack([np.searchsorted(labels, own).astype(np.int32), codes])
    largest = int(codes.max(initial=0))
    return codes.astype(np.int8 if largest < 128 else np.int16 if largest < 2**15 else np.int32)


def _collect(
    pieces: Iterator[NDArray[np.signedinteger]],
    n_rows: int,
    missing: MissingPolicy,
    variables: tuple[Variable, ...],
    coding: TableCoding,
) -> tuple[EncodedData, str]:
    """All codes in a file that is mapped into memory, one column after the other in as few bytes as
    hold them, and a fingerprint of them.
    """
    digest = hashlib.sha256(repr((variables, coding)).encode("utf-8", errors="surrogatepass"))
    shape = (len(variables), n_rows)
    dtype = np.min_scalar_type(max(variable.arity for variable in variables) - 1)
    with tempfile.TemporaryFile(prefix="marginbn-") as file:
        codes = np.memmap(file, dtype=dtype, mode="w+", shape=shape).view(np.ndarray)
    end = 0
    for piece in pieces:
        known = (piece >= 0).all(axis=1)
        if not known.all():
            if missing == "error":
                raise InputError(
                    "the table has missing values; set missing='drop', 'state' or 'auto'"
                )
            piece = piece[known]
        codes[:, end : end + len(piece)] = piece.T
        digest.update(np.ascontiguousarray(piece, dtype=np.int32).tobytes())
        end += len(piece)
    if end == 0:
        raise InputError("every row has a missing value; set missing='state'")
    return EncodedData(codes[:, :end].T, np.ones(end), variables), digest.hexdigest()


def _weighted(data: EncodedData, labels: NDArray[Any], class_weight: Any) -> EncodedData:
    """Rows weighed by their class."""
    if class_weight is None:
        return data
    own = data.by_column[0]
    counts = np.bincount(own, minlength=labels.size)
    if isinstance(class_weight, Mapping):
        by_text = {str(label): float(weight) for label, weight in class_weight.items()}
        texts = [str(label) for label in labels]
        unknown = [label for label in by_text if label not in texts]
        if unknown:
            raise InputError(f"class_weight names classes that no row has: {unknown}; use {texts}")
        factors = np.array([by_text.get(text, 1.0) for text in texts])
    else:
        factors = data.n_samples / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return EncodedData(data.codes, factors[own], data.variables)
