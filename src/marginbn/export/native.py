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

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from marginbn import files
from marginbn.exceptions import InputError
from marginbn.files import MisfitError, PathLike, shorten
from marginbn.network.elimination import MAX_AXES, MAX_CELLS, describe_cells
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure, is_acyclic

FORMAT = "marginbn-network"
VERSION = 1
MAX_STATES = 100_000
"""Most states of one variable that a file may declare; no writer makes more."""


_States = Annotated[
    tuple[str, ...],
    files.Must(f"be 1 to {MAX_STATES} states", lambda states: 1 <= len(states) <= MAX_STATES),
]


@dataclass(frozen=True)
class _VariableShape:
    name: str
    states: _States


@dataclass(frozen=True)
class _NetworkShape:
    format: str
    version: int
    variables: tuple[_VariableShape, ...]
    parents: tuple[tuple[int, ...], ...]
    log_tables: tuple[list, ...]  # type: ignore[type-arg]  # may be long: checked as a whole


def network_to_dict(network: BayesianNetwork) -> dict[str, object]:
    """The network as plain JSON values; :func:`network_from_dict` is the inverse."""
    check_writable(network)
    tables = [table.ravel().tolist() for table in network.log_tables]
    return {
        "format": FORMAT,
        "version": VERSION,
        "variables": [{"name": v.name, "states": list(v.states)} for v in network.variables],
        "parents": [list(p) for p in network.structure.parents],
        "log_tables": [[None if v == -math.inf else v for v in table] for table in tables],
    }


def network_from_dict(
    data: object, *, path: PathLike | None = None, location: str = "$"
) -> BayesianNetwork:
    """Check and build a network from JSON values; errors name ``path`` and the place in it.

    ``location`` is where in the file ``data`` stands. Whatever is not as the format demands is a
    :class:`FormatError`.
    """
    with files.naming_file(path):
        shape: _NetworkShape = files.read_document(_NetworkShape, data, FORMAT, VERSION, location)
        return _build(shape, location)


def _build(shape: _NetworkShape, location: str) -> BayesianNetwork:
    variables = tuple(Variable(v.name, v.states) for v in shape.variables)
    check_parents(shape.parents, len(variables), f"{location}.parents")
    files.check_length(shape.log_tables, len(variables), f"{location}.log_tables")
    tables = []
    for i, values in enumerate(shape.log_tables):
        sizes = tuple(variables[v].arity for v in (*shape.parents[i], i))
        tables.append(_parse_table(values, sizes, f"{location}.log_tables[{i}]"))
    try:
        return BayesianNetwork(Structure(shape.parents), variables, tuple(tables))
    except InputError as error:  # the network's own checks, such as rows that sum to one
        raise MisfitError(f"{location}: {error}") from None


def describe_size(arities: Sequence[int]) -> str:
    """Why a table over variables with these arities is too large; empty if it is not."""
    cells = math.prod(arities)
    if cells <= MAX_CELLS and len(arities) <= MAX_AXES:
        return ""
    return (
        f"a table over {len(arities)} variables with {describe_cells(cells)} cells is too large; "
        f"the limits are {MAX_AXES} variables and {MAX_CELLS} cells"
    )


def check_writable(network: BayesianNetwork) -> None:
    """Refuse to write what no reader would accept."""
    for variable in network.variables:
        if variable.arity > MAX_STATES:
            raise InputError(
                f"variable {shorten(variable.name)} has {variable.arity} states, files hold at "
                f"most {MAX_STATES}; merge states, or leave the variable out if it is an identifier"
            )


def network_to_json(network: BayesianNetwork) -> str:
    """The text of the file."""
    return json.dumps(network_to_dict(network), allow_nan=False, ensure_ascii=False) + "\n"


def load_json(path: PathLike) -> BayesianNetwork:
    """Read a network; other than in text formats, a byte order mark is refused."""
    return network_from_dict(files.read_json(path), path=path)


def check_parents(parents: tuple[tuple[int, ...], ...], n_variables: int, place: str) -> None:
    """Refuse parents that are no acyclic graph over so many variables."""
    files.check_length(parents, n_variables, place)
    for i, own in enumerate(parents):
        if any(not 0 <= p < n_variables or p == i for p in own):
            raise MisfitError(
                f"{place}[{i}]: parents must be indices of other variables, "
                f"0 to {n_variables - 1}, got {shorten(own)}"
            )
        if any(a >= b for a, b in pairwise(own)):
            raise MisfitError(f"{place}[{i}]: parents must be increasing, got {shorten(own)}")
    if not is_acyclic(parents):
        raise MisfitError(f"{place}: the graph has a directed cycle")


def _parse_table(values: list[Any], shape: tuple[int, ...], place: str) -> NDArray[np.float64]:
    if reason := describe_size(shape):
        raise MisfitError(f"{place}: {reason}")
    files.check_length(values, math.prod(shape), place)
    if not set(map(type, values)) <= {float, int, type(None)}:
        raise MisfitError(f"{place}: entries must be numbers, or null for the logarithm of zero")
    try:
        table = np.array([-math.inf if v is None else v for v in values], dtype=np.float64)
    except OverflowError:
        raise MisfitError(f"{place}: an integer is too large for a float") from None
    if np.isinf(table).sum() > values.count(None):  # 1e999 reads as infinity
        raise MisfitError(f"{place}: a number is too large for a float")
    return table.reshape(shape)
