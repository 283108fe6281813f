"""Python values, one per cell, made into a column.

What may stand in a cell: text, numbers of any real type, booleans, and a sign for missing (None,
NaN, pandas NA and NaT). Dates, complex numbers and nested values are refused with a remedy.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import (
    Column,
    Kind,
    Scalar,
    column_from_numbers,
    parse_number,
    whole_as_int,
)
from marginbn.exceptions import InputError, MarginBNError


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
    renumber = np.full(len(index), -1, dtype=np.int64)
    levels: list[Any] = []
    for value, code in index.items():
        if not missing(value):
            renumber[code] = len(levels)
            levels.append(value)
    return (renumber[codes] if len(codes) else codes), levels


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
            f"column {name!r} holds dates, times or durations; convert them to numbers "
            "(days since a start) or to text (month names) first"
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
