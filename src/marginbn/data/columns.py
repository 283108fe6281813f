"""One column of a table: numbers, or codes with the categories behind them.

A numeric column keeps float64 numbers, NaN where a value is missing. A categorical column keeps
int32 codes (-1 where missing) into a tuple of categories, so that everything later is array code
and the labels are touched once per category instead of once per cell.

How a kind is inferred (:func:`infer_kind` is the only place that decides):

- text, booleans, categorical and enum types are categorical;
- numbers are numeric, except that whole numbers with at most ten distinct values are
  categorical: these are nearly always codes, and the user can say otherwise with ``kinds``;
- a column without a single value is numeric.

How categories are written: numbers and booleans keep their type, whole numbers become ints
(1.0 reads "1"), a column that mixes text with other types is read as text. Categories are
sorted, unless the source declares an order of its own (pandas categories, enums, ARFF).

What may stand in a cell: text, numbers of any real type, booleans, and a sign for missing (None,
NaN, pandas NA and NaT). Dates, complex numbers and nested values are refused with a remedy.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError, MarginBNError
from marginbn.problem.encoded import frozen

Kind = Literal["numeric", "categorical"]
WantedKind: TypeAlias = Literal[
    "numeric", "categorical", "date", "day-first", "month-first", "amount", "decimal-comma"
]
"""What a user may want of a column; dates become categories of ISO text (``dates.py``), amounts
stay texts until they are prepared (``amounts.py``)."""

Scalar: TypeAlias = str | int | float | bool

MAX_CODE_VALUES = 10
"""Whole-numbered columns with more distinct values than this count as measurements."""

_SMALL_SPAN = 1 << 16  # integers within this range are coded by table look-up instead of sorting
_GLANCE = 256  # rows looked at first; nearly every measured column betrays itself here


@dataclass(frozen=True, eq=False)
class Column:
    """A named column; build it with :meth:`numeric` or :meth:`categorical`.

    Parameters
    ----------
    name
        Name of the column.
    kind
        ``"numeric"`` or ``"categorical"``.
    numbers
        float64 (n_rows,), NaN for missing; empty if categorical.
    codes
        int32 (n_rows,), index into `categories`, -1 for missing; empty if numeric.
    categories
        Distinct str, int, float or bool values with distinct labels; empty if numeric. May hold
        declared categories that no row uses.
    """

    name: str
    kind: Kind
    numbers: NDArray[np.float64]
    codes: NDArray[np.int32]
    categories: tuple[Scalar, ...]

    @classmethod
    def numeric(cls, name: str, values: NDArray[Any]) -> Column:
        """Numeric column of `values`; NaN is missing, infinities are refused."""
        floats = np.ascontiguousarray(values, dtype=np.float64)
        if np.isinf(floats).any():
            row = int(np.flatnonzero(np.isinf(floats))[0])
            raise InputError(
                f"column {name!r} holds {floats[row]} in row {row} (the first row is 0); numeric "
                "columns must be finite: replace inf, for instance by NaN for missing"
            )
        return cls(name, "numeric", frozen(floats), frozen(np.empty(0, np.int32)), ())

    @classmethod
    def categorical(cls, name: str, codes: NDArray[Any], categories: Iterable[Scalar]) -> Column:
        """Categorical column of `codes` (-1 for missing) into `categories`."""
        codes = np.ascontiguousarray(codes, dtype=np.int32)
        return cls(
            name, "categorical", frozen(np.empty(0, np.float64)), frozen(codes), tuple(categories)
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.numbers) if self.kind == "numeric" else len(self.codes)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """True where the value is missing, bool (n_rows,)."""
        return np.isnan(self.numbers) if self.kind == "numeric" else self.codes < 0

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories as text."""
        return tuple(str(category) for category in self.categories)

    @property
    def values(self) -> NDArray[Any]:
        """float64 numbers with NaN, or an object array of categories with None for missing."""
        if self.kind == "numeric":
            return self.numbers
        lookup = np.empty(len(self.categories) + 1, dtype=object)
        lookup[:-1] = self.categories
        lookup[-1] = None  # which is what code -1 points to
        return lookup[self.codes]

    def take(self, rows: NDArray[Any]) -> Column:
        """Only the given rows (indices or a mask), in that order."""
        if self.kind == "numeric":
            return replace(self, numbers=frozen(self.numbers[rows]))
        return replace(self, codes=frozen(self.codes[rows]))

    def renamed(self, name: str) -> Column:
        """Equal column under another name."""
        return self if name == self.name else replace(self, name=name)

    def as_kind(self, kind: Kind) -> Column:
        """Same values seen as `kind`; text that is no number cannot become numeric."""
        if kind == self.kind:
            return self
        if kind == "categorical":
            return column_from_numbers(self.name, self.numbers, kind)
        levels = np.array([parse_number(c) for c in self.categories] + [np.nan], dtype=np.float64)
        _require_numbers(self.name, levels[:-1], self.codes, self.categories)
        return Column.numeric(self.name, levels[self.codes])


def infer_kind(values: NDArray[Any]) -> Kind:
    """Kind of a one-dimensional array; the rule is in the module docstring.

    Objects that are all numbers are turned into a number array before they come here.

    Examples
    --------
    >>> infer_kind(np.array([0, 1, 2, 1])), infer_kind(np.array([0.5, 1.0]))
    ('categorical', 'numeric')
    >>> infer_kind(np.array(["a", "b"])), infer_kind(np.arange(11))
    ('categorical', 'numeric')
    """
    if values.dtype.kind not in "iuf":
        return "categorical"
    return "categorical" if _looks_like_codes(values) else "numeric"


def column_from_numbers(name: str, values: NDArray[Any], kind: Kind | None) -> Column:
    """Column of an integer or float array; `kind` None means inferred."""
    values = np.ascontiguousarray(values)
    if (kind or infer_kind(values)) == "numeric":
        return Column.numeric(name, values)
    codes, levels = _codes_of_numbers(values)
    return Column.categorical(name, codes, [whole_as_int(level) for level in levels.tolist()])


def parse_number(value: Scalar | Decimal | Fraction) -> float | None:
    """The number a value stands for, None if it is none.

    Stricter than ``float``: no underscores, no foreign digits, no text that spells NaN.
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


def whole_as_int(value: int | float) -> int | float:
    """Whole floats as ints, so that 1.0 and 1 are one category labelled "1"."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _looks_like_codes(values: NDArray[Any]) -> bool:
    """Whole numbers, at least one and at most MAX_CODE_VALUES distinct."""
    for part in (values[:_GLANCE], values):
        present = part if part.dtype.kind != "f" else part[~np.isnan(part)]
        if not _is_integral(present) or not _few_distinct(present):
            return False
    return len(present) > 0


def _is_integral(values: NDArray[Any]) -> bool:
    if values.dtype.kind != "f":
        return True
    return bool(np.isfinite(values).all() and (values == np.floor(values)).all())


def _few_distinct(values: NDArray[Any]) -> bool:
    if len(values) == 0:
        return True
    low, high = values.min(), values.max()
    if float(high) - float(low) < MAX_CODE_VALUES:
        return True
    shifted = _small_offsets(values, low, high)
    if shifted is None:
        return len(np.unique(values)) <= MAX_CODE_VALUES
    return int(np.count_nonzero(np.bincount(shifted))) <= MAX_CODE_VALUES


def _small_offsets(values: NDArray[Any], low: Any, high: Any) -> NDArray[np.int64] | None:
    """``values - low`` as int64 for whole numbers of a small span, else None."""
    if int(high) - int(low) >= _SMALL_SPAN or abs(float(low)) > 2.0**52:
        return None
    return values.astype(np.int64) - int(low)


def _codes_of_numbers(values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Codes into the sorted distinct values; NaN becomes -1."""
    if values.dtype.kind != "f":
        return _codes_of_present(values)
    missing = np.isnan(values)
    if not missing.any():
        return _codes_of_present(values)
    codes = np.full(len(values), -1, dtype=np.int32)
    codes[~missing], levels = _codes_of_present(values[~missing])
    return codes, levels


def _codes_of_present(values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    offsets = None
    if len(values) and _is_integral(values):
        low = values.min()
        offsets = _small_offsets(values, low, values.max())
    if offsets is None:
        levels, codes = np.unique(values, return_inverse=True)
        return codes.reshape(-1).astype(np.int32), levels
    used = np.flatnonzero(np.bincount(offsets))
    renumber = np.zeros(int(used[-1]) + 1, dtype=np.int32)
    renumber[used] = np.arange(len(used), dtype=np.int32)
    return renumber[offsets], used + int(low)


def _require_numbers(
    name: str,
    parsed: NDArray[np.float64],
    codes: NDArray[np.int32],
    categories: Sequence[Scalar],
) -> None:
    """Refuse the first row whose category is no number."""
    bad = np.isnan(parsed)
    rows = np.flatnonzero((codes >= 0) & np.append(bad, False)[codes])
    if len(rows):
        value = categories[codes[rows[0]]]
        raise InputError(
            f"column {name!r} is to be numeric, but row {rows[0]} (the first row is 0) holds "
            f"{value!r}, which is no number; correct it, make it missing, "
            "or declare the column categorical"
        )


class CellTypeError(InputError, TypeError):
    """A cell holds something that is neither text nor a number."""


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


def column_from_objects(
    name: str,
    values: Sequence[Any],
    kind: Kind | None,
    *,
    declared: Sequence[Any] | None = None,
) -> Column:
    """Column of Python values; `declared` categories keep their order, used or not."""
    families = _families(name, values)
    if len(families) > 1:  # a NaN among text or booleans is no number
        values = [None if _is_missing(v) else v for v in values]
        families = _families(name, values)
    if declared is None and kind is None and families <= {"number"}:
        return column_from_numbers(name, _array_of_numbers(values), None)
    if (len(families) > 1 or "other" in families) and declared is None:
        values = [None if v is None else str(tidy(v)) for v in values]
    codes, levels = factorize(values, missing=_is_missing)
    column = categorical_column(name, codes, levels, declared)
    return column.as_kind(kind or "categorical")


def factorize(
    values: Sequence[Any], missing: Callable[[Any], bool]
) -> tuple[NDArray[np.int64], list[Any]]:
    """Codes and distinct values in order of appearance; -1 where ``missing(value)``.

    `missing` is asked once per distinct value.
    """
    index = {value: code for code, value in enumerate(dict.fromkeys(values))}
    codes = np.fromiter(map(index.__getitem__, values), dtype=np.int64, count=len(values))
    return leave_out_missing(codes, list(index), missing)


def leave_out_missing(
    codes: NDArray[np.int64], values: Sequence[Any], missing: Callable[[Any], bool]
) -> tuple[NDArray[np.int64], list[Any]]:
    """Codes of distinct values where some of these are missing: they get -1, others follow up."""
    renumber = np.full(len(values) + 1, -1, dtype=np.int64)  # code -1 points to the last
    levels: list[Any] = []
    for code, value in enumerate(values):
        if not missing(value):
            renumber[code] = len(levels)
            levels.append(value)
    return renumber[codes], levels


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, Decimal)) and bool(value != value)


def _family(kind: type) -> str:
    """What values of a type are: a family that mixes with no other, or a reason for refusal."""
    if issubclass(kind, (str, bytes)):
        return "text"
    if issubclass(kind, (bool, np.bool_)):
        return "boolean"
    if kind is type(None) or kind.__name__ in ("NAType", "NaTType"):
        return "missing"
    if issubclass(kind, (datetime.date, datetime.time, datetime.timedelta)) or issubclass(
        kind, (np.datetime64, np.timedelta64)
    ):
        return "date"
    if issubclass(kind, (numbers.Real, Decimal)):
        return "number"
    if issubclass(kind, numbers.Complex):
        return "complex"
    if issubclass(kind, (list, tuple, dict, set, frozenset, np.ndarray)):
        return "nested"
    return "date" if kind.__name__ == "Period" else "other"


def _families(name: str, values: Sequence[Any]) -> set[str]:
    families = {_family(kind) for kind in set(map(type, values))} - {"missing"}
    for family in ("date", "complex", "nested"):
        if family in families:
            refuse(name, family)
    return families


def refuse(name: str, family: str) -> NoReturn:
    """Raise the error for a column of dates, complex numbers or nested values."""
    if family == "complex":
        raise InputError(
            f"Complex data not supported: column {name!r} holds complex numbers; "
            "give real and imaginary part as two columns"
        )
    if family == "date":
        raise InputError(
            f"column {name!r} holds dates, times or durations; column_kinds={{{name!r}: 'date'}} "
            "makes year, month and weekday of dates; convert others to numbers (days since a "
            "start) or leave the column out"
        )
    raise CellTypeError(
        f"column {name!r} holds lists, dicts or other nested values; "
        "every cell given in this argument must be a string or a number"
    )


def _array_of_numbers(values: Sequence[Any]) -> NDArray[Any]:
    """Integers stay exact where int64 holds them; anything else becomes float64."""
    if all(issubclass(kind, (int, np.integer)) for kind in set(map(type, values))):
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    floats = (np.nan if _is_missing(v) else parse_number(v) for v in values)
    return np.fromiter(floats, dtype=np.float64, count=len(values))


def tidy(value: Any) -> Scalar:
    """Plain Python scalar; whole floats become ints, unknown objects their text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (Decimal, Fraction)):
        value = parse_number(value)
    if isinstance(value, float):
        return whole_as_int(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if type(value) in (str, int, bool):
        return value  # type: ignore[no-any-return]
    return str(value)


def categorical_column(
    name: str, codes: NDArray[np.int64], levels: Sequence[Any], declared: Sequence[Any] | None
) -> Column:
    """Column whose categories are sorted, or in declared order; equal ones are merged."""
    used = [tidy(level) for level in levels]
    known = [tidy(value) for value in declared or ()]
    if len({_family(type(value)) for value in used + known}) > 1:
        used, known = [str(value) for value in used], [str(value) for value in known]
    # Without a declaration there is one family only, so the values compare.
    order = list(dict.fromkeys(known + used)) if declared is not None else sorted(set(used))
    position = {level: i for i, level in enumerate(order)}
    renumber = np.array([position[level] for level in used] + [-1], dtype=np.int32)
    return Column.categorical(name, renumber[codes], order)
