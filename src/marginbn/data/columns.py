"""One column of a table: numbers, or codes with the categories behind them; and what may be a cell.

A numeric column keeps float64 numbers, NaN where a value is missing. A categorical column keeps
int32 codes (-1 where missing) into a tuple of categories. How kinds are found is in
:mod:`~marginbn.data.profile`.

Cells hold text, numbers of any real type, booleans, dates, or a sign for missing (None, NaN, pandas
NA and NaT). Times, durations, complex numbers and nested values are refused with a remedy. A column
that mixes text with other types is read as text.
"""

from __future__ import annotations

import datetime
import numbers
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from marginbn.exceptions import InputError, MarginBNError
from marginbn.problem.array_types import BoolArray, CodeArray, FloatArray, IntArray
from marginbn.problem.encoded import frozen

Kind = Literal["numeric", "categorical"]
WantedKind: TypeAlias = Literal[
    "numeric", "categorical", "date", "day-first", "month-first", "amount", "decimal-comma"
]
"""What a user may want of a column; dates become categories of ISO text (``texts.py``), amounts
stay texts until they are prepared (``texts.py``)."""

Scalar: TypeAlias = str | int | float | bool

MISSING_TEXTS = frozenset({"", "?", "NA", "N/A", "n/a", "NaN", "nan"})
"""Fields of a text file that mean missing, once surrounding spaces are gone."""

MAX_CODE_VALUES = 10
"""Whole-numbered columns with more distinct values than this count as measurements."""

GLANCE = 256
"""Rows that are looked at first; nearly every measured column betrays itself here."""

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.0+)?")


@dataclass(frozen=True, eq=False)
class Column:
    """A named column; build it with :meth:`numeric` or :meth:`categorical`.

    Parameters
    ----------
    name, kind
        Of the column.
    numbers
        float64 (n_rows,), NaN for missing; empty if categorical.
    codes, categories
        int32 (n_rows,), -1 for missing, into distinct values with distinct labels, of which some
        may be declared and not used; empty if numeric.
    all_counts
        Where these rows are a sample, the rows of every category in the whole table; empty if there
        were too many categories to count.
    """

    name: str
    kind: Kind
    numbers: FloatArray
    codes: CodeArray
    categories: tuple[Scalar, ...]
    all_counts: IntArray | None = None

    @classmethod
    def numeric(cls, name: str, values: NDArray[Any]) -> Column:
        """Numeric column of `values`; NaN is missing, infinities are refused."""
        floats = np.ascontiguousarray(values, dtype=np.float64)
        is_infinite = np.isinf(floats)
        if is_infinite.any():
            row = int(is_infinite.argmax())
            reason = f"holds {floats[row]:g}, but numbers must be finite; make it missing, or "
            raise CellError(row, f"column {name!r}", f"{reason}declare the column categorical")
        return cls(name, "numeric", frozen(floats), frozen(np.empty(0, np.int32)), ())

    @classmethod
    def categorical(cls, name: str, codes: NDArray[Any], categories: Iterable[Scalar]) -> Column:
        """Categorical column of `codes` (-1 for missing) into `categories`."""
        own = frozen(np.ascontiguousarray(codes, dtype=np.int32))
        return cls(name, "categorical", frozen(np.empty(0, np.float64)), own, tuple(categories))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.numbers) if self.kind == "numeric" else len(self.codes)

    @property
    def missing(self) -> BoolArray:
        """True where the value is missing, bool (n_rows,)."""
        return np.isnan(self.numbers) if self.kind == "numeric" else self.codes < 0

    @property
    def counts(self) -> IntArray:
        """Rows of every category, in the whole table if these are a sample; empty if numeric."""
        if self.all_counts is not None:
            return self.all_counts
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.categories))

    @property
    def used(self) -> list[Scalar]:
        """The categories that a row has."""
        return [c for c, n in zip(self.categories, self.counts.tolist(), strict=True) if n]

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories as text."""
        return tuple(str(category) for category in self.categories)

    @property
    def values(self) -> NDArray[Any]:
        """float64 numbers with NaN, or an object array of categories with None for missing."""
        if self.kind == "numeric":
            return self.numbers
        lookup = np.full(len(self.categories) + 1, None)  # code -1 points to the last
        lookup[:-1] = self.categories
        return lookup[self.codes]

    def take(self, rows: NDArray[Any]) -> Column:
        """Only the given rows (indices or a mask), in that order."""
        if self.kind == "numeric":
            return replace(self, numbers=frozen(self.numbers[rows]))
        return replace(self, codes=frozen(self.codes[rows]), all_counts=None)

    def renamed(self, name: str) -> Column:
        """Equal column under another name."""
        return self if name == self.name else replace(self, name=name)

    @property
    def arrow(self) -> pa.Array:
        """The column for Arrow: numbers, or a dictionary of all categories in their order."""
        if self.kind == "numeric":
            return pa.array(self.numbers)
        indices = pa.array(self.codes, mask=self.codes < 0)
        return pa.DictionaryArray.from_arrays(indices, pa.array(self.categories), ordered=True)


def few_values(present: FloatArray, known: set[float]) -> set[float] | None:
    """The distinct values with those known before; None once one is no whole number or there are
    too many.
    """
    found = known
    for part in (present[:GLANCE], present):
        if not (np.isfinite(part).all() and (part == np.floor(part)).all()):
            return None
        distinct = pc.unique(pa.array(part + 0.0))  # 0.0 and -0.0 are one
        found = known | set(distinct[: MAX_CODE_VALUES + 1].to_pylist())
        if len(found) > MAX_CODE_VALUES:
            return None
    return found


SHOWN = 8
"""Names in a message, at most."""


def listed(values: Sequence[Any]) -> str:
    """The first values as they are written in Python, and how many more there are."""
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return ", ".join(map(repr, values[:SHOWN])) + more


# --- cells ----------------------------------------------------------------------------------------


class CellTypeError(InputError, TypeError):
    """A cell holds something that is neither text nor a number."""


class CellError(InputError):
    """A value that cannot be used, by its row in the block; ``begin`` names the column."""

    def __init__(self, row: int, begin: str, reason: str) -> None:
        super().__init__(f"{begin} row {row} (the first row is 0) {reason}")
        self.row, self.begin, self.reason = row, begin, reason


@contextmanager
def as_input_errors() -> Iterator[None]:
    """Errors of other packages' checks of arguments become ours, with the same message."""
    try:
        yield
    except MarginBNError:
        raise
    except TypeError as error:
        raise CellTypeError(str(error)) from error
    except (ValueError, OverflowError) as error:
        raise InputError(str(error)) from error


def parse_number(value: Scalar | Decimal | Fraction) -> float | None:
    """The number a value stands for, None if it is none: as ``float``, but without underscores,
    foreign digits and texts that spell NaN.
    """
    if isinstance(value, str):
        if "_" in value or not value.isascii():
            return None
        try:
            number = float(value)
        except ValueError:
            return None
        return None if number != number else number
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def whole_number(text: str) -> int | None:
    """A plain whole number (no leading zero, ``2`` and ``2.0`` alike); None if it is none."""
    return int(text.partition(".")[0]) if _WHOLE.fullmatch(text) else None


def whole_as_int(value: int | float) -> int | float:
    """Whole floats as ints, so that 1.0 and 1 are one category labelled "1"."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def tidy(value: Any) -> Scalar:
    """Plain Python scalar; whole numbers become ints, unknown objects their text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (Decimal, Fraction)):
        value = int(value) if value == int(value) else parse_number(value)
    if isinstance(value, float):
        return whole_as_int(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if type(value) in (str, int, bool):
        return value  # type: ignore[no-any-return]
    return str(value)


def is_missing(value: Any) -> bool:
    """Whether a cell of Python has no value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating, Decimal)) and bool(value != value)


def why_refused(kind: type) -> str:
    """Why values of a type are refused: "time", "complex" or "nested"; empty if they are not."""
    if issubclass(kind, (list, tuple, dict, set, frozenset, np.ndarray)):
        return "nested"
    if issubclass(kind, numbers.Complex) and not issubclass(kind, numbers.Real):
        return "complex"
    times = (datetime.time, datetime.timedelta, np.timedelta64)
    return "time" if issubclass(kind, times) or kind.__name__ == "Period" else ""


def refuse(name: str, family: str) -> NoReturn:
    """Raise the error for a column of times, complex numbers or nested values."""
    if family == "complex":
        raise InputError(
            f"Complex data not supported: column {name!r} holds complex numbers; "
            "give real and imaginary part as two columns"
        )
    if family == "time":
        raise InputError(
            f"column {name!r} holds times, durations or periods; convert them to numbers (hours "
            "since a start) or dates, or leave the column out"
        )
    raise CellTypeError(
        f"column {name!r} holds lists, dicts or other nested values; "
        "every cell given in this argument must be a string or a number"
    )
