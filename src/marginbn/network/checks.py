"""What a network and its questions are refused for: wrong shapes, repeated names, huge tables."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from marginbn.exceptions import InputError
from marginbn.network.observed import quoted
from marginbn.problem.array_types import FloatArray
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure

_ROW_SUM_TOLERANCE = 1e-9
"""How far a row of probabilities may be from one; log and exp of a float cost about 1e-16."""


def check_lengths(
    structure: Structure, variables: Sequence[Variable], tables: Sequence[FloatArray]
) -> None:
    """Refuse a structure, variables and tables of different numbers, and none at all."""
    if not variables:
        raise InputError("a network needs at least one variable, the class")
    if not structure.n_variables == len(variables) == len(tables):
        raise InputError(
            f"structure, variables and log_tables must agree in length, got "
            f"{structure.n_variables}, {len(variables)} and {len(tables)}"
        )


def check_labels(variables: Sequence[Variable]) -> None:
    """Refuse names, or states of a variable, that repeat; and variables without states."""
    _refuse_repeats("variable names", (v.name for v in variables))
    for variable in variables:
        if not variable.states:
            raise InputError(f"variable {variable.name!r} must have at least one state")
        _refuse_repeats(f"state labels of {variable.name!r}", variable.states)


def _refuse_repeats(what: str, labels: Iterable[str]) -> None:
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        raise InputError(f"{what} must be unique, repeated: {quoted(repeated)}")


def check_table(name: str, table: FloatArray, shape: tuple[int, ...]) -> None:
    """Refuse a table that is no conditional distribution of the given shape."""
    if table.shape != shape:
        raise InputError(f"log table of {name!r} must have shape {shape}, got {table.shape}")
    if np.isnan(table).any() or np.isposinf(table).any():
        raise InputError(f"log table of {name!r} must hold log probabilities, got NaN or inf")
    with np.errstate(over="ignore"):
        excess = np.abs(np.exp(table).sum(axis=-1) - 1.0).max()
    if excess > _ROW_SUM_TOLERANCE:
        raise InputError(
            f"each row of the table of {name!r} must sum to 1; the largest error is {excess:.3g}"
        )


def as_count(n: int, least: int = 0) -> int:
    """A number of rows that a user asks for."""
    try:
        count = operator.index(n)
    except TypeError:
        count = -1
    if count < least:
        raise InputError(f"n must be a whole number >= {least}, got {n!r}")
    return count


def as_generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """What a user gives as ``random_state``, as a generator."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state must be None, a whole number >= 0 or a numpy Generator, "
            f"got {random_state!r}"
        ) from None
