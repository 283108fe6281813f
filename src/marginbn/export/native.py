"""The native file format: JSON, lossless, versioned, and nothing in it is ever executed.

::

    {"format": "marginbn-network", "version": 1,
     "variables": [{"name": "rain", "states": ["no", "yes"]}, ...],
     "parents": [[], [0], ...],                 indices, increasing
     "log_tables": [[-0.223, -1.609], ...]}     row-major: parents' axes first, own states last

Floats are written with the shortest digits that read back to the same float. JSON has no infinity,
so log 0 is written ``null``. A reader trusts nothing: every key, type, index and size is checked
before it is used, and an error names the file and the place in it.
"""

from __future__ import annotations

import math
import os
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from marginbn.data.encode import Variable
from marginbn.exceptions import FormatError, InputError
from marginbn.files import (
    MisfitError,
    PathLike,
    as_int,
    as_list,
    as_record,
    as_text,
    check_header,
    read_json,
    shorten,
    write_json_atomic,
)
from marginbn.network.elimination import MAX_AXES, MAX_CELLS, describe_cells
from marginbn.network.network import BayesianNetwork
from marginbn.problem.structure import Structure, is_acyclic

__all__ = [
    "load_network",
    "network_from_dict",
    "network_to_dict",
    "read_json",
    "save_network",
    "write_json_atomic",
]

FORMAT = "marginbn-network"
VERSION = 1
MAX_STATES = 100_000
"""Most states of one variable that a file may declare; no writer makes more."""

_KEYS = ("format", "version", "variables", "parents", "log_tables")


def network_to_dict(network: BayesianNetwork) -> dict[str, object]:
    """The network as plain JSON values; :func:`network_from_dict` is the inverse."""
    check_writable(network)
    return {
        "format": FORMAT,
        "version": VERSION,
        "variables": [{"name": v.name, "states": list(v.states)} for v in network.variables],
        "parents": [list(p) for p in network.structure.parents],
        "log_tables": [_table_to_list(table) for table in network.log_tables],
    }


def network_from_dict(
    data: object, *, path: PathLike | None = None, location: str = "$"
) -> BayesianNetwork:
    """Check and build a network from JSON values.

    Parameters
    ----------
    data
        What :func:`network_to_dict` returned, or what was read from a file.
    path, location
        File and place in it where ``data`` comes from, for error messages.

    Raises
    ------
    FormatError
        If anything in ``data`` is not as the format demands.
    """
    try:
        return _parse_network(data, location)
    except MisfitError as misfit:
        raise FormatError(f"{_prefix(path)}{misfit}") from None
    except InputError as error:  # the network's own checks, such as rows that do not sum to one
        raise FormatError(f"{_prefix(path)}{location}: {error}") from None


def check_writable(network: BayesianNetwork) -> None:
    """Refuse to write what no reader would accept."""
    for variable in network.variables:
        if variable.arity > MAX_STATES:
            raise InputError(
                f"variable {shorten(variable.name)} has {variable.arity} states, files hold at "
                f"most {MAX_STATES}; merge states, or leave the variable out if it is an identifier"
            )


def save_network(network: BayesianNetwork, path: PathLike) -> None:
    """Write the network as JSON; an existing file is replaced only when all is written."""
    write_json_atomic(path, network_to_dict(network))


def load_network(path: PathLike) -> BayesianNetwork:
    """Read a network from JSON written by :func:`save_network`."""
    return network_from_dict(read_json(path), path=path)


def _prefix(path: PathLike | None) -> str:
    return "" if path is None else f"{os.fspath(path)}: "


def _table_to_list(table: NDArray[np.float64]) -> list[float | None]:
    return [None if value == -math.inf else value for value in table.ravel().tolist()]


def _parse_network(data: object, location: str) -> BayesianNetwork:
    record = as_record(data, location)
    check_header(record, FORMAT, VERSION, location)
    as_record(data, location, _KEYS)
    variables = parse_variables(record["variables"], f"{location}.variables")
    parents = _parse_parents(record["parents"], len(variables), f"{location}.parents")
    place = f"{location}.log_tables"
    entries = as_list(record["log_tables"], place, len(variables))
    tables = []
    for i, entry in enumerate(entries):
        shape = tuple(variables[v].arity for v in (*parents[i], i))
        tables.append(_parse_table(entry, shape, f"{place}[{i}]"))
    return BayesianNetwork(Structure(parents), variables, tuple(tables))


def parse_variables(data: object, place: str) -> tuple[Variable, ...]:
    """Names and states of variables; :class:`MisfitError` if they are not as they must be."""
    variables = []
    for i, entry in enumerate(as_list(data, place)):
        record = as_record(entry, f"{place}[{i}]", ("name", "states"))
        states = as_list(record["states"], f"{place}[{i}].states")
        if not 1 <= len(states) <= MAX_STATES:
            raise MisfitError(
                f"{place}[{i}].states: a variable has 1 to {MAX_STATES} states, got {len(states)}"
            )
        labels = tuple(as_text(s, f"{place}[{i}].states[{j}]") for j, s in enumerate(states))
        variables.append(Variable(as_text(record["name"], f"{place}[{i}].name"), labels))
    return tuple(variables)


def _parse_parents(data: object, n_variables: int, place: str) -> tuple[tuple[int, ...], ...]:
    result = []
    for i, entry in enumerate(as_list(data, place, n_variables)):
        here = f"{place}[{i}]"
        parents = tuple(as_int(p, f"{here}[{j}]") for j, p in enumerate(as_list(entry, here)))
        if any(not 0 <= p < n_variables or p == i for p in parents):
            raise MisfitError(
                f"{here}: parents must be indices of other variables, 0 to {n_variables - 1}, "
                f"got {shorten(parents)}"
            )
        if any(a >= b for a, b in pairwise(parents)):
            raise MisfitError(f"{here}: parents must be increasing, got {shorten(parents)}")
        result.append(parents)
    if not is_acyclic(result):
        raise MisfitError(f"{place}: the graph has a directed cycle")
    return tuple(result)


def _parse_table(data: object, shape: tuple[int, ...], place: str) -> NDArray[np.float64]:
    cells = math.prod(shape)
    if cells > MAX_CELLS or len(shape) > MAX_AXES:
        raise MisfitError(
            f"{place}: a table over {len(shape)} variables with {describe_cells(cells)} cells "
            f"is too large; the limits are {MAX_AXES} variables and {MAX_CELLS} cells"
        )
    values = as_list(data, place, cells)
    if not set(map(type, values)) <= {float, int, type(None)}:
        raise MisfitError(f"{place}: entries must be numbers, or null for the logarithm of zero")
    try:
        table = np.array([-math.inf if v is None else v for v in values], dtype=np.float64)
    except OverflowError:
        raise MisfitError(f"{place}: an integer is too large for a float") from None
    if np.isinf(table).sum() > values.count(None):  # 1e999 reads as infinity
        raise MisfitError(f"{place}: a number is too large for a float")
    return table.reshape(shape)
