"""The native file format: JSON, lossless, versioned, and nothing in it is ever executed.

::

    {"format": "marginbn-network", "version": 1,
     "variables": [{"name": "rain", "states": ["no", "yes"]}, ...],
     "parents": [[], [0], ...],                 indices, increasing
     "log_tables": [[-0.223, -1.609], ...]}     row-major: parents' axes first, own states last

A network whose children see the states of a parent in groups is written as version 2, with the key
``"groups": [null, [0, 0, 1], ...]``: for each variable the group of each state, null where there
are none. The axis of a parent in a table is over its groups. All others are written as version 1.

Tables that a program has trained may have a million cells with all their digits. Version 3, which
model files use for these, has each table as one text: its floats, 8 bytes each with the lowest
first, in base64. There ``groups`` is always there, and log 0 is the float minus infinity.

Floats are written with the shortest digits that read back to the same float. JSON has no infinity,
so log 0 is written ``null``. A reader trusts nothing: every key, type, index and size is checked
before it is used, and an error names the file and the place in it.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from marginbn import files
from marginbn.exceptions import InputError
from marginbn.files import MisfitError, PathLike, shorten
from marginbn.network.elimination import MAX_AXES, MAX_CELLS, describe_cells
from marginbn.network.groups import check_groups, count_groups
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Groups, Variable
from marginbn.problem.structure import Structure, is_acyclic

FORMAT = "marginbn-network"
PLAIN_VERSION = 1
GROUPED_VERSION = 2
"""That of networks with groups; what needs no groups is written without."""
VERSION = 3
"""The newest version: tables as bytes."""
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
class NamesShape:
    """The names and states of variables in a file."""

    format: str
    version: int
    variables: tuple[_VariableShape, ...]

    @property
    def declared(self) -> tuple[Variable, ...]:
        """The variables."""
        return tuple(Variable(variable.name, variable.states) for variable in self.variables)


@dataclass(frozen=True)
class _NetworkShape(NamesShape):
    parents: tuple[tuple[int, ...], ...]
    log_tables: tuple[list, ...]  # type: ignore[type-arg]  # may be long: checked as a whole


@dataclass(frozen=True)
class _GroupedShape(_NetworkShape):
    groups: tuple[tuple[files.Count, ...] | None, ...]


@dataclass(frozen=True)
class PackedTables:
    """Parents, groups and tables of a network whose variables stand elsewhere."""

    parents: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[files.Count, ...] | None, ...]
    log_tables: tuple[str, ...]


@dataclass(frozen=True)
class _PackedShape(PackedTables, NamesShape):
    pass


def names_to_dict(network: BayesianNetwork, format_name: str, version: int) -> dict[str, object]:
    """Names and states as plain JSON values, under the header of a format."""
    check_writable(network)
    variables = [{"name": v.name, "states": list(v.states)} for v in network.variables]
    return {"format": format_name, "version": version, "variables": variables}


def network_to_dict(network: BayesianNetwork) -> dict[str, object]:
    """The network as plain JSON values; :func:`network_from_dict` is the inverse."""
    tables = [table.ravel().tolist() for table in network.log_tables]
    version = PLAIN_VERSION if network.groups is None else GROUPED_VERSION
    record = names_to_dict(network, FORMAT, version) | {
        "parents": [list(p) for p in network.structure.parents],
        "log_tables": [[None if v == -math.inf else v for v in table] for table in tables],
    }
    if network.groups is not None:
        record["groups"] = _write_groups(network)
    return record


def network_to_packed_dict(network: BayesianNetwork) -> dict[str, object]:
    """The same with tables as bytes, for networks with many cells."""
    return names_to_dict(network, FORMAT, VERSION) | packed_tables(network)


def packed_tables(network: BayesianNetwork) -> dict[str, object]:
    """Parents, groups and tables as :class:`PackedTables` has them."""
    return {
        "parents": [list(p) for p in network.structure.parents],
        "groups": _write_groups(network),
        "log_tables": [
            base64.b64encode(table.astype("<f8").tobytes()).decode("ascii")
            for table in network.log_tables
        ],
    }


def _write_groups(network: BayesianNetwork) -> list[object]:
    groups = network.groups or (None,) * network.n_variables
    return [None if g is None else g.tolist() for g in groups]


def network_from_dict(
    data: object, *, path: PathLike | None = None, location: str = "$"
) -> BayesianNetwork:
    """Check and build a network from JSON values; errors name ``path`` and the place in it.

    ``location`` is where in the file ``data`` stands. Whatever is not as the format demands is a
    :class:`FormatError`.
    """
    with files.naming_file(path):
        version = data.get("version") if isinstance(data, dict) else None
        known: dict[object, type] = {GROUPED_VERSION: _GroupedShape, VERSION: _PackedShape}
        kind = known.get(version, _NetworkShape) if isinstance(version, int) else _NetworkShape
        shape = files.read_document(kind, data, FORMAT, VERSION, location)
        return _build(shape, shape.declared, location)


def network_from_packed(
    shape: PackedTables, variables: tuple[Variable, ...], location: str
) -> BayesianNetwork:
    """The network of these tables and variables; raises :class:`MisfitError` with the place."""
    return _build(shape, variables, location)


def _build(
    shape: _NetworkShape | PackedTables, variables: tuple[Variable, ...], location: str
) -> BayesianNetwork:
    check_parents(shape.parents, len(variables), f"{location}.parents")
    files.check_length(shape.log_tables, len(variables), f"{location}.log_tables")
    groups = _parse_groups(shape, variables, f"{location}.groups")
    seen = count_groups(groups, [v.arity for v in variables])
    tables = []
    for i, values in enumerate(shape.log_tables):
        sizes = (*(seen[p] for p in shape.parents[i]), variables[i].arity)
        tables.append(_parse_table(values, sizes, f"{location}.log_tables[{i}]"))
    try:
        return BayesianNetwork(Structure(shape.parents), variables, tuple(tables), groups)
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


def _parse_groups(
    shape: _NetworkShape | PackedTables, variables: Sequence[Variable], place: str
) -> Groups | None:
    if not isinstance(shape, _GroupedShape | PackedTables):
        return None
    try:
        return check_groups(shape.groups, variables)
    except InputError as error:
        raise MisfitError(f"{place}: {error}") from None


def _parse_table(
    values: Sequence[object], shape: tuple[int, ...], place: str
) -> NDArray[np.float64]:
    if reason := describe_size(shape):
        raise MisfitError(f"{place}: {reason}")
    if isinstance(values, str):
        return _unpack_table(values, shape, place)
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


def _unpack_table(text: str, shape: tuple[int, ...], place: str) -> NDArray[np.float64]:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise MisfitError(f"{place}: must be bytes in base64") from None
    files.check_length(content, 8 * math.prod(shape), place)
    return np.frombuffer(content, dtype="<f8").astype(np.float64).reshape(shape)
