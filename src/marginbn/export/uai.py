"""UAI: the format of the inference competitions, numbers only; names go to a second file.

::

    BAYES           kind of network
    2               number of variables
    2 2             their arities
    2               number of tables
    1 0             variables of each table, the child last
    2 0 1

    2               numbers of the first table, the last variable runs fastest
     0.8 0.2
    4
     0.9 0.1
     0.25 0.75

``grass.uai`` has its names in ``grass.uai.names``, a JSON file with the names and states of the
variables in order. Without it the variables are called ``x0``, ``x1``, ... and their states ``0``,
``1``, ... Text after ``#`` is a comment. Variable 0 is the class.

A variable with one state is written with a second one of probability zero, because pyAgrum refuses
it otherwise; the file of names tells our reader (:mod:`marginbn.export.portable`).

Two packages lay tables out in their own way (``LAYOUTS``), so that a file which is right for the
one is wrong for the other and for everybody else:

- pyAgrum has the child fastest and then the first parent, not the last. Its files are known by the
  comment with the variable's name behind each list of variables; the names are taken from there.
  The format ``uai-pyagrum`` is written like that.
- pgmpy writes the first variable fastest. A file whose tables are not distributions as the format
  has it, but all are in this layout, is read in this layout. What it *reads* as ``BAYES`` has the
  parents in the order of a Python set, another one in every process: no file can be right. As
  ``MARKOV`` it reads the standard layout. The format ``uai-pgmpy`` is such a file: a Markov network
  whose factors are the tables, with the same posteriors.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from marginbn import files
from marginbn.data.text import format_error
from marginbn.exceptions import FormatError, InputError
from marginbn.export import assembly
from marginbn.export.assembly import Assembly, FloatArray
from marginbn.export.native import NamesShape, names_to_dict
from marginbn.export.portable import OwnNames, restore_names, to_portable
from marginbn.export.scanner import parse_numbers, parse_whole, read_text
from marginbn.files import PathLike, shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable

Layout = Literal["standard", "pyagrum", "pgmpy"]

LAYOUTS: dict[Layout, Callable[[int], list[int]]] = {
    "standard": lambda n: list(range(n)),
    "pyagrum": lambda n: [*range(n - 2, -1, -1), n - 1],
    "pgmpy": lambda n: list(range(n - 1, -1, -1)),
}
"""Positions of the variables of a table, the child's being the last, from slowest to fastest."""

NAMES_FORMAT = "marginbn-names"
NAMES_VERSION = 1

_MAX_VARIABLES = 10_000_000


def names_path(path: PathLike) -> str:
    """The file with the names that belong to a UAI file."""
    return f"{os.fspath(path)}.names"


def save_uai(network: BayesianNetwork, path: PathLike) -> None:
    """Write the network and, in a second file, its names."""
    _save(network, path, network_to_uai(network))


def save_uai_pyagrum(network: BayesianNetwork, path: PathLike) -> None:
    """Write the network as pyAgrum reads it and, in a second file, its names."""
    _save(network, path, network_to_uai_pyagrum(network))


def save_uai_pgmpy(network: BayesianNetwork, path: PathLike) -> None:
    """Write the network as pgmpy reads it and, in a second file, its names."""
    _save(network, path, network_to_uai_pgmpy(network))


def _save(network: BayesianNetwork, path: PathLike, text: str) -> None:
    files.write_json_atomic(names_path(path), names_to_dict(network, NAMES_FORMAT, NAMES_VERSION))
    files.write_text(path, text)


def load_uai(path: PathLike) -> BayesianNetwork:
    """Read a network, with its names if there is a file of them."""
    text, names = read_text(path), names_path(path)
    variables = _read_names(names) if os.path.exists(names) else None
    return network_from_uai(text, os.fspath(path), variables)


load_uai_pyagrum = load_uai  # the file tells how it is laid out


def _read_names(path: str) -> tuple[Variable, ...]:
    data = files.read_json(path)
    with files.naming_file(path):
        shape: NamesShape = files.read_document(NamesShape, data, NAMES_FORMAT, NAMES_VERSION)
    Assembly(path, [(v, None) for v in shape.declared])  # names and states must be unique
    return shape.declared


def network_to_uai(network: BayesianNetwork, layout: Layout = "standard") -> str:
    """UAI text of a network, without its names."""
    network, _ = to_portable(network, ())
    scopes = [(*parents, i) for i, parents in enumerate(network.structure.parents)]
    tables = [assembly.to_probabilities(table) for table in network.log_tables]
    laid_out = [table.transpose(LAYOUTS[layout](table.ndim)) for table in tables]
    return _text("BAYES", network, scopes, laid_out, with_names=layout == "pyagrum")


def network_to_uai_pyagrum(network: BayesianNetwork) -> str:
    """UAI text as pyAgrum reads it, with identifiers as comments."""
    return network_to_uai(network, "pyagrum")


def network_to_uai_pgmpy(network: BayesianNetwork) -> str:
    """The tables as factors of a Markov network, which pgmpy reads as they are meant.

    It finds variables by the pairs that stand together in a factor: one that has no arcs is put
    together with another, which changes nothing.
    """
    network, _ = to_portable(network, ())
    if network.n_variables == 1:
        raise InputError("pgmpy reads no UAI file of a single variable; use the format 'bif'")
    scopes, tables = [], []
    in_arcs = {v for arc in network.structure.arcs for v in arc}
    for i, parents in enumerate(network.structure.parents):
        table = assembly.to_probabilities(network.log_tables[i])
        beside: tuple[int, ...] = ()
        if i not in in_arcs:
            beside = (0 if i else 1,)
            table = np.tile(table, (network.arities[beside[0]], 1))
        scopes.append((*beside, *parents, i))
        tables.append(table)
    return _text("MARKOV", network, scopes, tables)


def _text(
    kind: str,
    network: BayesianNetwork,
    scopes: Sequence[tuple[int, ...]],
    tables: Sequence[FloatArray],
    with_names: bool = False,
) -> str:
    lines = [kind, str(network.n_variables), " ".join(map(str, network.arities))]
    lines.append(str(network.n_variables))
    for scope in scopes:
        comment = f"   # {network.names[scope[-1]]}" if with_names else ""
        lines.append(" ".join(map(str, (len(scope), *scope))) + comment)
    for table in tables:
        rows = table.reshape(-1, table.shape[-1])
        lines += ["", str(table.size), *(f" {assembly.write_row(row)}" for row in rows)]
    return "\n".join([*lines, ""])


def network_from_uai(
    text: str,
    path: str = "UAI text",
    variables: Sequence[Variable] | None = None,
    layout: Layout | None = None,
) -> BayesianNetwork:
    """Read a network; a :class:`FormatError` names ``path``, line and reason.

    ``variables`` have the names and states, and must have the arities of the file, where a second
    state of probability zero may stand beside an only one. The file tells how its tables are laid
    out, unless ``layout`` does.
    """
    reader = _Reader(text, path)
    arities, tables = reader.read()
    comments = reader.scope_comments(tables)
    names = comments or [f"x{i}" for i in range(len(arities))]
    if variables is not None:
        names = [f"x{i}" for i in range(len(arities))]  # whatever comments say
        if [max(2, v.arity) for v in variables] != [max(2, arity) for arity in arities]:
            raise format_error(path, None, "the file with the names belongs to another network")
    declared = [
        Variable(name, tuple(str(s) for s in range(arity)))
        for name, arity in zip(names, arities, strict=True)
    ]
    builder = Assembly(path, [(v, None) for v in declared])
    chosen = layout or ("pyagrum" if comments else _guess_layout(tables))
    for table in tables:
        builder.add(table.members, table.arrange(chosen), table.line)
    network = builder.build()
    if variables is None:
        return network
    pairs = zip(names, variables, strict=True)
    return restore_names(network, [OwnNames(name, v.name, v.states) for name, v in pairs], path)


@dataclass(frozen=True)
class _Table:
    """Numbers in the order of the file, over the members in the order of the file."""

    members: list[int]
    shape: tuple[int, ...]
    values: FloatArray
    line: int

    def arrange(self, layout: Layout) -> FloatArray:
        """The numbers with one axis per member."""
        axes = LAYOUTS[layout](len(self.shape))
        return self.values.reshape([self.shape[a] for a in axes]).transpose(np.argsort(axes))


def _guess_layout(tables: Sequence[_Table]) -> Layout:
    """The standard, unless only the other layout makes every table a distribution."""
    if all(_is_distribution(table.arrange("standard")) for table in tables):
        return "standard"
    other = all(_is_distribution(table.arrange("pgmpy")) for table in tables)
    return "pgmpy" if other else "standard"


def _is_distribution(values: FloatArray) -> bool:
    with np.errstate(over="ignore"):
        return bool((np.abs(values.sum(axis=-1) - 1.0) <= assembly.ROUNDING_TOLERANCE).all())


class _Reader:
    """The words of the file, one after the other."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        parts = [line.partition("#") for line in text.split("\n")]
        self._comments = [comment.strip() for _, _, comment in parts]
        lines = [part[0].split() for part in parts]
        self.words = [word for line in lines for word in line]
        self._ends = np.cumsum([len(line) for line in lines])
        self.pos = 0

    def read(self) -> tuple[list[int], list[_Table]]:
        if self._word("the kind of network") != "BAYES":
            raise self._error("the file must begin with BAYES; only Bayesian networks are read")
        n_variables = self._count("the number of variables", _MAX_VARIABLES)
        arities = [self._count("an arity", 2**62) for _ in range(n_variables)]
        for i, arity in enumerate(arities):
            assembly.check_states(self.path, None, f"x{i}", arity)
        n_tables = self._count("the number of tables", _MAX_VARIABLES)
        if n_tables != n_variables or not n_variables:
            raise self._error(f"expected a table for each of {n_variables} variables")
        scopes = self._scopes(n_variables)
        tables = [self._table(scope, line, arities) for scope, line in scopes]
        if self.pos < len(self.words):
            self.pos += 1
            raise self._error("there is text after the last table")
        return arities, tables

    def scope_comments(self, tables: Sequence[_Table]) -> list[str] | None:
        """Names of the variables if every table has one as a comment."""
        names = {t.members[-1]: self._comments[t.line - 1] for t in tables}
        return [names[i] for i in sorted(names)] if all(names.values()) else None

    def _scopes(self, n_variables: int) -> list[tuple[list[int], int]]:
        """Variables of every table; then each arity is backed by numbers that the file holds."""
        scopes: list[tuple[list[int], int]] = []
        children: set[int] = set()
        for _ in range(n_variables):
            members, line = self._scope(n_variables)
            if members[-1] in children:
                raise self._error(f"a second table for variable {members[-1]}")
            children.add(members[-1])
            scopes.append((members, line))
        return scopes

    def _scope(self, n_variables: int) -> tuple[list[int], int]:
        size = self._count("the number of variables of a table", n_variables)
        line = self._line()
        members = [self._count("a variable", n_variables - 1) for _ in range(size)]
        if not members or len(set(members)) < size:
            raise self._error("a table must be over different variables, the child last")
        return members, line

    def _table(self, members: list[int], line: int, arities: list[int]) -> _Table:
        shape = assembly.checked_shape(self.path, line, [arities[v] for v in members])
        size = self._count("the length of a table", 2**62)
        if size != math.prod(shape):
            raise self._error(f"expected a table of {math.prod(shape)} numbers, got {size}")
        words = self.words[self.pos : self.pos + size]
        if len(words) < size:
            self.pos = len(self.words)
            raise self._error("the file ends inside a table")
        values = parse_numbers(words, self._number_error)
        self.pos += size
        return _Table(members, shape, values, line)

    def _word(self, what: str) -> str:
        if self.pos == len(self.words):
            raise self._error(f"the file ends where {what} should be")
        self.pos += 1
        return self.words[self.pos - 1]

    def _count(self, what: str, largest: int) -> int:
        word = self._word(what)
        number = parse_whole(word, largest)
        if number is None:
            limit = f"0 to {largest}" if largest < 2**62 else "0 or more"
            raise self._error(f"{what} must be a whole number, {limit}, got {shorten(word)}")
        return number

    def _line(self) -> int:
        """Line of the last word read."""
        return min(int(np.searchsorted(self._ends, max(self.pos, 1))) + 1, len(self._ends))

    def _error(self, reason: str) -> FormatError:
        return format_error(self.path, self._line(), reason)

    def _number_error(self, reason: str, word: str) -> FormatError:
        self.pos = self.words.index(word, self.pos) + 1
        return self._error(reason)
