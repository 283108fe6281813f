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
from collections.abc import Sequence, Sized
from itertools import pairwise
from typing import Annotated, Literal

import msgspec
import numpy as np

from marginbn.exceptions import InputError
from marginbn.files import (
    Count,
    MisfitError,
    PathLike,
    Shape,
    decode,
    naming_file,
    read_bytes,
    shorten,
)
from marginbn.network.elimination import MAX_AXES, MAX_CELLS, describe_cells
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure


class _VariableShape(Shape, frozen=True):
    name: str
    states: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class _FormatHeader(msgspec.Struct):
    format: str
    version: int


def read_format(content: bytes) -> str:
    """The format that a JSON file claims; other versions than 1 are refused."""
    header = decode(content, _FormatHeader)
    if header.version != 1:
        found = f"got {shorten(header.version)}: the file is of another version of marginbn"
        raise MisfitError(f"$.version: must be 1, {found}")
    return header.format


class NetworkShape(Shape, frozen=True):
    """A network in a file."""

    format: Literal["marginbn-network"]
    version: Literal[1]
    variables: tuple[_VariableShape, ...]
    parents: tuple[tuple[Count, ...], ...]
    log_tables: tuple[list[float | None], ...]


def network_to_dict(network: BayesianNetwork) -> dict[str, object]:
    """The network as plain JSON values; :func:`load_json` reads them."""
    tables = [table.ravel().tolist() for table in network.log_tables]
    return {
        "format": "marginbn-network",
        "version": 1,
        "variables": [{"name": v.name, "states": list(v.states)} for v in network.variables],
        "parents": [list(p) for p in network.structure.parents],
        "log_tables": [[None if v == -math.inf else v for v in table] for table in tables],
    }


def build_network(shape: NetworkShape, place: str = "$") -> BayesianNetwork:
    """The network at a place of a file; raises :class:`MisfitError` where parts do not fit."""
    variables = tuple(Variable(v.name, v.states) for v in shape.variables)
    check_length(shape.parents, len(variables), f"{place}.parents")
    for i, parents in enumerate(shape.parents):
        if any(a >= b for a, b in pairwise(parents)):
            reason = f"parents must be increasing, got {shorten(parents)}"
            raise MisfitError(f"{place}.parents[{i}]: {reason}")
    try:
        structure = Structure(shape.parents)
    except InputError as error:
        raise MisfitError(f"{place}.parents: {error}") from None
    check_length(shape.log_tables, len(variables), f"{place}.log_tables")
    tables = []
    for i, values in enumerate(shape.log_tables):
        sizes = tuple(variables[v].arity for v in (*shape.parents[i], i))
        if reason := describe_size(sizes):
            raise MisfitError(f"{place}.log_tables[{i}]: {reason}")
        check_length(values, math.prod(sizes), f"{place}.log_tables[{i}]")
        tables.append(np.array([-math.inf if v is None else v for v in values]).reshape(sizes))
    try:
        return BayesianNetwork(structure, variables, tuple(tables))
    except InputError as error:  # the network's own checks, such as rows that sum to one
        raise MisfitError(f"{place}: {error}") from None


def check_length(items: Sized, length: int, place: str) -> None:
    """Refuse an array that has not so many entries."""
    if len(items) != length:
        raise MisfitError(f"{place}: must have {length} entries, got {len(items)}")


def describe_size(arities: Sequence[int]) -> str:
    """Why a table over variables with these arities is too large; empty if it is not."""
    cells = math.prod(arities)
    if cells <= MAX_CELLS and len(arities) <= MAX_AXES:
        return ""
    return (
        f"a table over {len(arities)} variables with {describe_cells(cells)} cells is too large; "
        f"the limits are {MAX_AXES} variables and {MAX_CELLS} cells"
    )


def network_to_json(network: BayesianNetwork) -> str:
    """The text of the file."""
    return json.dumps(network_to_dict(network), allow_nan=False, ensure_ascii=False) + "\n"


def load_json(path: PathLike) -> BayesianNetwork:
    """Read a network; other than in text formats, a byte order mark is refused."""
    content = read_bytes(path)
    with naming_file(path):
        read_format(content)
        return build_network(decode(content, NetworkShape))
