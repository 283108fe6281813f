"""Values of a table as states of a variable, by what the labels of the states say.

A bin is named by its limits, and these are written so that they read back as exactly the cuts
(``discretize.name_bins``): the labels alone tell where a number falls, also for networks that came
from a file. In this order a value is

1. the state whose label it is, as text, as a number (3, 3.0 and "3" are one) or as an ISO date;
2. a number: the state that is an equal number, then the bin in which it lies;
3. missing (None, NaN, NA): the state for missing values, if there is one.

Everything else is refused with the states that there are.
"""

from __future__ import annotations

import datetime
import difflib
import math
import numbers
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from marginbn.data.columns import is_missing, parse_number, tidy
from marginbn.exceptions import InputError
from marginbn.network.wording import bin_limits, listing
from marginbn.problem import ANY_NUMBER, MISSING_LABEL
from marginbn.problem.encoded import Variable

_LISTED = 20
"""Labels shown in an error message before the rest is left out."""


def state_of(variable: Variable, value: Any) -> int:
    """Index of the state in which a value of the table falls.

    Examples
    --------
    >>> age = Variable("age", ("<= 20", "(20, 40]", "> 40", "(missing)"))
    >>> [state_of(age, value) for value in (20, 53, "53", "(20, 40]", None)]
    [0, 2, 2, 1, 3]
    >>> state_of(Variable("smokes", ("False", "True")), True)
    1
    """
    if is_missing(value):
        return _missing_state(variable)
    places = {label: k for k, label in enumerate(variable.states)}
    for text in _texts(value):
        if text in places:
            return places[text]
    number = number_of(value)
    found = None if number is None else _state_of_number(variable, number)
    if found is None:
        close = difflib.get_close_matches(str(value), variable.states, n=1)
        listed = f"its states are {quoted(variable.states)}"
        hint = f"did you mean {close[0]!r}?" if close else listed
        raise InputError(f"unknown state {value!r} of variable {variable.name!r}; {hint}")
    return found


def quoted(names: tuple[str, ...] | list[str]) -> str:
    """Names in quotes, the first of them if there are many."""
    return listing([repr(name) for name in names], _LISTED, f" ({len(names)} in all)")


def _missing_state(variable: Variable) -> int:
    """The last state, where it stands for missing values."""
    last = variable.states[-1]
    if last.startswith(MISSING_LABEL) and not last.removeprefix(MISSING_LABEL).strip("_"):
        return variable.arity - 1
    raise InputError(
        f"the evidence has no value for variable {variable.name!r}, and no state means "
        "missing: leave the variable out of the evidence"
    )


def _texts(value: Any) -> Iterator[str]:
    """What the label of a value may look like."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        yield value.date().isoformat()
    if isinstance(value, datetime.date):
        yield value.isoformat()
    yield str(value)
    yield str(tidy(value))


def number_of(value: Any) -> float | None:
    """The number that a value is; a truth value is none."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, str | numbers.Real | Decimal):
        return parse_number(value if isinstance(value, str) else tidy(value))
    return None


def _state_of_number(variable: Variable, number: float) -> int | None:
    for k, label in enumerate(variable.states):
        if bin_limits(label) is None and parse_number(label) == number:
            return k
    for k, label in enumerate(variable.states):
        limits = bin_limits(label)
        if limits is None and label != ANY_NUMBER:
            continue
        low, high = limits or ("", "")
        if float(low or -math.inf) < number <= float(high or math.inf):
            return k
    return None
