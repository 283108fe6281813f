"""From what a file says to a network, and from a network to the numbers a file holds.

Formats differ in their grammar; what they say is the same: variables, and for each variable a
family (its parents in the file's order) with a table of probabilities. This module checks the
rest once for all formats: sizes, one family per variable, no cycle, rows that sum to one.

**Rounded files.** Programs write three to seven digits, so rows need not sum to one. A row whose
sum is within ``ROUNDING_TOLERANCE`` of one is divided by its sum; farther away it is an error, not
a rounding. A row that sums to one within ``EXACT_TOLERANCE`` is left as it is, bit for bit.

**Exactness.** A network keeps log p, files hold p. Every p is written with the digits that read
back to the same float (17 at most), and among the floats nearest to exp(log p) one is written
whose logarithm is log p again, if there is one. There is one for every network that was read from
a file or whose tables are logarithms of floats, so these come back bit for bit. Otherwise (log p
between -0.7 and 0 is finer than any p) the first trip rounds p to the nearest float, once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbn.data.encode import Variable
from marginbn.data.text import format_error
from marginbn.exceptions import InputError
from marginbn.export.native import MAX_STATES
from marginbn.files import shorten
from marginbn.network.elimination import MAX_AXES, MAX_CELLS, describe_cells
from marginbn.network.network import BayesianNetwork
from marginbn.problem.structure import Structure, is_acyclic

FloatArray = NDArray[np.float64]

ROUNDING_TOLERANCE = 1e-2
"""How far the sum of a row may be from one: 20 states with three digits each stay inside."""

EXACT_TOLERANCE = 5e-10
"""Rows this close to one are not touched; half of what a network allows."""

_NEIGHBOURS = 2
"""Floats on each side of exp(x) that are tried; exp and log err by less than one."""


@dataclass(frozen=True)
class Declaration:
    """A variable as a file declares it, and the line where it does."""

    variable: Variable
    line: int | None


@dataclass(frozen=True)
class Family:
    """The table of one variable as a file gives it.

    Parameters
    ----------
    child, parents
        Indices of declared variables; parents in the order of the file.
    values
        Probabilities, float64 (*arities of the parents in this order, arity of the child).
    line
        Where the table is, for messages.
    """

    child: int
    parents: tuple[int, ...]
    values: FloatArray
    line: int | None


def family_shape(
    path: str, line: int | None, declared: Sequence[Declaration], members: Sequence[int]
) -> tuple[int, ...]:
    """Arities of the members, refused before anything is allocated if the table is too large."""
    if len(set(members)) < len(members):
        raise format_error(path, line, "the table names a variable twice")
    return checked_shape(path, line, [declared[v].variable.arity for v in members])


def checked_shape(path: str, line: int | None, arities: Sequence[int]) -> tuple[int, ...]:
    """The shape of a table over variables with these arities, if it is not too large."""
    cells = math.prod(arities)
    if cells > MAX_CELLS or len(arities) > MAX_AXES:
        reason = (
            f"a table over {len(arities)} variables with {describe_cells(cells)} cells is too "
            f"large; the limits are {MAX_AXES} variables and {MAX_CELLS} cells"
        )
        raise format_error(path, line, reason)
    return tuple(arities)


def check_states(path: str, line: int | None, name: str, n_states: int) -> None:
    """Refuse variables without states and with absurdly many."""
    if not 1 <= n_states <= MAX_STATES:
        reason = f"variable {shorten(name)} must have 1 to {MAX_STATES} states, got {n_states}"
        raise format_error(path, line, reason)


def index_variables(path: str, declared: Sequence[Declaration]) -> dict[str, int]:
    """Index of each name; names and the states of each variable must be unique."""
    if not declared:
        raise format_error(path, None, "the file declares no variables")
    index: dict[str, int] = {}
    for i, declaration in enumerate(declared):
        name, states = declaration.variable.name, declaration.variable.states
        check_states(path, declaration.line, name, len(states))
        if name in index:
            reason = f"variable {shorten(name)} is declared twice"
            raise format_error(path, declaration.line, reason)
        if len(set(states)) < len(states):
            repeated = Counter(states).most_common(1)[0][0]
            reason = f"variable {shorten(name)} has the state {shorten(repeated)} twice"
            raise format_error(path, declaration.line, reason)
        index[name] = i
    return index


def build_network(
    path: str, declared: Sequence[Declaration], families: Sequence[Family]
) -> BayesianNetwork:
    """Check everything that formats have in common and build the network."""
    variables = tuple(d.variable for d in declared)
    by_child: dict[int, Family] = {}
    for family in families:
        if family.child in by_child:
            reason = f"a second table for variable {shorten(variables[family.child].name)}"
            raise format_error(path, family.line, reason)
        by_child[family.child] = family
    for i, declaration in enumerate(declared):
        if i not in by_child and variables[i].arity == 1:
            by_child[i] = Family(i, (), np.ones(1), declaration.line)  # there is no other
        elif i not in by_child:
            reason = f"there is no table for variable {shorten(variables[i].name)}"
            raise format_error(path, declaration.line, reason)
    ordered = [by_child[i] for i in range(len(variables))]
    if not is_acyclic([family.parents for family in ordered]):
        raise format_error(path, None, "the graph has a directed cycle")
    tables = [_log_table(path, variables, family) for family in ordered]
    structure = Structure(tuple(family.parents for family in ordered))
    try:
        return BayesianNetwork(structure, variables, tuple(tables))
    except InputError as error:
        raise format_error(path, None, str(error)) from None


def _log_table(path: str, variables: Sequence[Variable], family: Family) -> FloatArray:
    """Normalised log table with the parents in increasing order."""
    if not (family.values >= 0).all():
        raise format_error(path, family.line, "probabilities must not be negative")
    with np.errstate(over="ignore"):
        sums = family.values.sum(axis=-1)
    off = np.abs(sums - 1.0)
    if (off > ROUNDING_TOLERANCE).any():
        row = np.unravel_index(int(np.argmax(off)), off.shape) if off.ndim else ()
        given = ", ".join(
            f"{variables[p].name}={variables[p].states[s]}"
            for p, s in zip(family.parents, row, strict=True)
        )
        what = f"{variables[family.child].name}{' | ' + given if given else ''}"
        reason = f"the probabilities P({what[:200]}) sum to {sums[row]:.6g}, not to one"
        raise format_error(path, family.line, reason)
    divisors = np.where(off > EXACT_TOLERANCE, sums, 1.0)
    return sort_parents(family.parents, to_logs(family.values / divisors[..., None]))


def sort_parents(parents: Sequence[int], table: FloatArray) -> FloatArray:
    """The table with its parents' axes in increasing order of the parents."""
    axes = np.argsort(np.array(parents, dtype=np.int64), kind="stable")
    return np.ascontiguousarray(table.transpose(*axes, len(parents)))


def to_logs(probabilities: FloatArray) -> FloatArray:
    """Logarithms, zero becoming minus infinity."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(np.ascontiguousarray(probabilities))
    return logs


def to_probabilities(log_table: FloatArray) -> FloatArray:
    """Floats at exp(x) whose logarithm is x again wherever there is one, short ones first.

    Many floats may share a logarithm: of 0.1 and 0.10000000000000002 the first is taken.
    """
    nearest: FloatArray = np.exp(log_table)
    candidates = [nearest.round(15), nearest]
    for direction in (np.inf, 0.0):
        for _ in range(_NEIGHBOURS):
            candidates.append(np.nextafter(candidates[-1], direction))
        candidates.append(nearest)
    result = nearest
    for candidate in reversed(candidates):
        result = np.where(to_logs(candidate) == log_table, candidate, result)
    return result


def write_row(probabilities: FloatArray, separator: str = " ") -> str:
    """Numbers with the fewest digits that read back to the same floats."""
    return separator.join(map(repr, probabilities.tolist()))


def put_first(network: BayesianNetwork, target: str) -> BayesianNetwork:
    """The same network with ``target`` as variable 0, the class."""
    first = network.variable_index(target)
    order = [first, *(i for i in range(network.n_variables) if i != first)]
    place = {old: new for new, old in enumerate(order)}
    parents = [tuple(place[p] for p in network.structure.parents[old]) for old in order]
    tables = [sort_parents(parents[new], network.log_tables[old]) for new, old in enumerate(order)]
    variables = tuple(network.variables[old] for old in order)
    return BayesianNetwork(Structure(tuple(parents)), variables, tuple(tables))
