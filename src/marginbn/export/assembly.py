"""From declared variables and tables to a network, and from a network to the numbers of a file.

BIF files and the objects of pgmpy and pyAgrum hold the same: variables, and for each a
family (its parents in their own order) with a table of probabilities. This module checks the rest
once for all of them: sizes, one family per variable, no cycle, rows that sum to one.

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

from collections import Counter
from collections.abc import Sequence

import numpy as np

from marginbn.data.text_files import format_error
from marginbn.exceptions import FormatError, InputError
from marginbn.export.native import describe_size
from marginbn.files import shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.array_types import FloatArray
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure

ROUNDING_TOLERANCE = 1e-2
"""How far the sum of a row may be from one: 20 states with three digits each stay inside."""

EXACT_TOLERANCE = 5e-10
"""Rows this close to one are not touched; half of what a network allows."""

_NEIGHBOURS = 2
"""Floats on each side of exp(x) that are tried; exp and log err by less than one."""


class Assembly:
    """The variables that a file (or an object of another package) has, and tables as they come.

    Parameters
    ----------
    path
        Where they come from, for messages.
    declared
        Every variable with the line that declares it, or None if there are no lines.
    """

    def __init__(self, path: str, declared: Sequence[tuple[Variable, int | None]]) -> None:
        self.path = path
        self.variables = tuple(variable for variable, _ in declared)
        self._declared = declared
        self._parents: dict[int, tuple[int, ...]] = {}
        self._tables: dict[int, FloatArray] = {}
        self.index = self._check_variables()

    def find(self, name: str, line: int | None) -> int:
        """Index of a variable that a table names."""
        if name not in self.index:
            raise self._error(line, f"variable {shorten(name)} is not declared")
        return self.index[name]

    def shape(self, members: Sequence[int], line: int | None) -> tuple[int, ...]:
        """Arities of a table's variables; too large ones are refused before memory is taken."""
        if len(set(members)) < len(members):
            raise self._error(line, "the table names a variable twice")
        arities = tuple(self.variables[v].arity for v in members)
        if reason := describe_size(arities):
            raise self._error(line, reason)
        return arities

    def add(self, members: Sequence[int], values: FloatArray, line: int | None = None) -> None:
        """A table of probabilities over parents and, last, their child, which varies fastest."""
        shape = self.shape(members, line)
        *parents, child = members
        if child in self._tables:
            name = self.variables[child].name
            raise self._error(line, f"a second table for variable {shorten(name)}")
        self._parents[child] = tuple(parents)
        self._tables[child] = self._log_table(child, values.reshape(shape), line)

    def build(self) -> BayesianNetwork:
        """The network, once every variable has its table."""
        for i, (variable, line) in enumerate(self._declared):
            if i in self._tables:
                continue
            if variable.arity > 1:
                reason = f"there is no table for variable {shorten(variable.name)}"
                raise self._error(line, reason)
            self.add((i,), np.ones(1))  # there is no other
        places = range(len(self.variables))
        tables = tuple(self._tables[i] for i in places)
        try:
            structure = Structure(tuple(self._parents[i] for i in places))
            return BayesianNetwork(structure, self.variables, tables)
        except InputError as error:
            raise self._error(None, str(error)) from None

    def _error(self, line: int | None, reason: str) -> FormatError:
        return format_error(self.path, line, reason)

    def _check_variables(self) -> dict[str, int]:
        """Index of each name; names and the states of each variable must be unique."""
        if not self._declared:
            raise self._error(None, "the file declares no variables")
        index: dict[str, int] = {}
        for i, (variable, line) in enumerate(self._declared):
            name, states = variable.name, variable.states
            if not states:
                raise self._error(line, f"variable {shorten(name)} must have at least one state")
            if name in index:
                raise self._error(line, f"variable {shorten(name)} is declared twice")
            if len(set(states)) < len(states):
                repeated = shorten(Counter(states).most_common(1)[0][0])
                raise self._error(line, f"variable {shorten(name)} has the state {repeated} twice")
            index[name] = i
        return index

    def _log_table(self, child: int, values: FloatArray, line: int | None) -> FloatArray:
        """Normalised log table with the parents in increasing order."""
        if not (values >= 0).all():
            raise self._error(line, "probabilities must not be negative")
        with np.errstate(over="ignore"):
            sums = values.sum(axis=-1)
        off = np.abs(sums - 1.0)
        parents = self._parents[child]
        if (off > ROUNDING_TOLERANCE).any():
            row = np.unravel_index(int(np.argmax(off)), off.shape) if off.ndim else ()
            states = zip((self.variables[p] for p in parents), row, strict=True)
            given = ", ".join(f"{parent.name}={parent.states[s]}" for parent, s in states)
            what = f"{self.variables[child].name}{' | ' + given if given else ''}"
            reason = f"the probabilities P({what[:200]}) sum to {sums[row]:.6g}, not to one"
            raise self._error(line, reason)
        divisors = np.where(off > EXACT_TOLERANCE, sums, 1.0)
        return sort_parents(parents, to_logs(values / divisors[..., None]))


def sort_parents(parents: Sequence[int], table: FloatArray) -> FloatArray:
    """The table with its parents' axes in increasing order of the parents."""
    axes = np.argsort(np.array(parents, dtype=np.int64), kind="stable")
    return np.ascontiguousarray(table.transpose(*axes, len(parents)))


def to_logs(probabilities: FloatArray) -> FloatArray:
    """Logarithms, zero becoming minus infinity; what is negative becomes no number."""
    with np.errstate(divide="ignore", invalid="ignore"):
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


def write_row(probabilities: FloatArray) -> str:
    """Plain decimals with the fewest digits that read back to the same floats.

    Some readers know no exponents: 0.00001 is not written 1e-05.
    """
    texts = map(repr, probabilities.tolist())
    return ", ".join(
        np.format_float_positional(float(text), trim="0") if "e" in text else text for text in texts
    )


def put_first(network: BayesianNetwork, target: str | None) -> BayesianNetwork:
    """The same network with ``target``, if there is one, as variable 0, the class."""
    if target is None:
        return network
    first = network.variable_index(target)
    order = [first, *(i for i in range(network.n_variables) if i != first)]
    place = {old: new for new, old in enumerate(order)}
    parents = [tuple(place[p] for p in network.structure.parents[old]) for old in order]
    tables = [sort_parents(parents[new], network.log_tables[old]) for new, old in enumerate(order)]
    variables = tuple(network.variables[old] for old in order)
    return BayesianNetwork(Structure(tuple(parents)), variables, tuple(tables))
