"""States of a parent seen in groups.

A numeric feature may have many fine bins of its own, of which its children see only a few coarse
ones: P(x_i | x_p) depends on x_p through its group g(x_p) alone. The table of a child then has one
entry per *group* of each parent, where a plain table repeats it for every state of the group:

    table of i       one axis per parent p of length "groups of p", then the states of i
    expanded         one axis per parent p of length "states of p"; equal inside every group
    collapsed        own states joined as well: P(group of i | ...) = sum of its states

Collapsed tables are all that summing out a variable needs, because none of its children can tell
two states of a group apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginbn.exceptions import InputError
from marginbn.problem.encoded import Groups, Variable

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def check_groups(
    groups: Sequence[ArrayLike | None] | None, variables: Sequence[Variable]
) -> Groups | None:
    """The groups as read-only arrays, None where they join nothing; refuses what is no grouping."""
    if groups is None:
        return None
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise InputError(
            f"groups must be None or hold one entry per variable, got {type(groups).__name__}"
        )
    if len(groups) != len(variables):
        raise InputError(
            f"groups must hold one entry per variable, {len(variables)}, got {len(groups)}"
        )
    checked = tuple(_check_one(g, v) for g, v in zip(groups, variables, strict=True))
    return None if all(g is None for g in checked) else checked


def _check_one(groups: ArrayLike | None, variable: Variable) -> IntArray | None:
    if groups is None:
        return None
    array = np.asarray(groups)
    if array.shape != (variable.arity,) or not np.issubdtype(array.dtype, np.integer):
        raise InputError(
            f"groups of {variable.name!r} must be whole numbers, one for each of its "
            f"{variable.arity} states, got dtype {array.dtype} and shape {array.shape}"
        )
    used = np.unique(array)
    if not np.array_equal(used, np.arange(len(used))):
        raise InputError(
            f"groups of {variable.name!r} must be numbered 0, 1, ... and all be used, "
            f"got {used[:10].tolist()}"
        )
    if np.array_equal(array, np.arange(len(array))):
        return None
    result = array.astype(np.intp)
    result.flags.writeable = False
    return result


def count_groups(groups: Groups | None, arities: Sequence[int]) -> tuple[int, ...]:
    """How many values each variable has as a parent: its groups, or its states without any."""
    if groups is None:
        return tuple(arities)
    return tuple(a if g is None else int(g.max()) + 1 for g, a in zip(groups, arities, strict=True))


def expand(table: FloatArray, axis_groups: Sequence[IntArray | None]) -> FloatArray:
    """The table with axes over states in place of groups; None leaves an axis as it is."""
    # The shortest lists of states first, so that what is copied repeatedly stays small.
    todo = [(len(g), axis, g) for axis, g in enumerate(axis_groups) if g is not None]
    for _, axis, groups in sorted(todo, key=lambda entry: entry[:2]):
        table = np.take(table, groups, axis=axis)
    return table


def collapse(log_table: FloatArray, groups: IntArray, maximum: bool = False) -> FloatArray:
    """The last axis over groups: log of the sum of each group's states, or their maximum."""
    order = np.argsort(groups, kind="stable")
    by_group = log_table[..., order]
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    peak = np.maximum.reduceat(by_group, starts, axis=-1)
    if maximum:
        return np.asarray(peak)
    # Where a whole group has probability zero, -inf - (-inf) would be no number.
    shift = np.where(np.isneginf(peak), 0.0, peak)
    sums = np.add.reduceat(np.exp(by_group - shift[..., groups[order]]), starts, axis=-1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sums) + shift)


def equal_groups(a: Groups | None, b: Groups | None) -> bool:
    """Whether two networks see their parents in the same groups."""
    if a is None or b is None:
        return a is b
    return len(a) == len(b) and all(
        x is y if x is None or y is None else np.array_equal(x, y)
        for x, y in zip(a, b, strict=True)
    )
