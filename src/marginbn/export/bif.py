"""BIF, the interchange format: read and written as text.

::

    network unknown {
    }
    variable rain { type discrete [ 2 ] { no, yes }; }
    variable wet_grass { type discrete [ 2 ] { dry, wet }; }
    probability ( rain ) { table 0.8, 0.2; }
    probability ( wet_grass | rain ) {
      ( no ) 0.9, 0.1;
      ( yes ) 0.25, 0.75;
    }
    // name: ["wet_grass", "wet grass", ["dry", "wet"]]

Names and states are written as identifiers, with what they stand for in comments at the end
(:mod:`marginbn.export.portable`). The reader also accepts names in quotes, rows in any order, a
``default`` row for the others, ``table`` with parents (the child's states run slowest), commas or
spaces between names and numbers, names with spaces without quotes, properties, comments, and
rounded rows (see :mod:`marginbn.export.assembly`). The first variable is the class.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from marginbn.export.assembly import Assembly, to_probabilities, write_row
from marginbn.export.portable import (
    name_comments,
    read_name_comments,
    restore_names,
    to_portable,
)
from marginbn.export.scanner import Scanner, Word, read_text
from marginbn.files import PathLike, shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.array_types import FloatArray
from marginbn.problem.encoded import Variable

MAX_DEFAULT_CELLS = 2**22
"""Cells that ``default`` rows may fill in one file: a short file must not fill the memory."""


def network_to_bif(network: BayesianNetwork) -> str:
    """BIF text of a network; :func:`network_from_bif` is the inverse."""
    network, changed = to_portable(network)
    lines = ["network unknown {", "}"]
    for variable in network.variables:
        states = ", ".join(variable.states)
        lines.append(f"variable {variable.name} {{")
        lines += [f"  type discrete [ {variable.arity} ] {{ {states} }};", "}"]
    for i in range(network.n_variables):
        lines += _probability_lines(network, i)
    return "\n".join([*lines, *name_comments(changed), ""])


def _probability_lines(network: BayesianNetwork, i: int) -> list[str]:
    parents = [network.variables[p] for p in network.structure.parents[i]]
    table = to_probabilities(network.log_tables[i])
    given = f" | {', '.join(p.name for p in parents)}" if parents else ""
    head = f"probability ( {network.names[i]}{given} ) {{"
    if not parents:
        return [head, f"  table {write_row(table)};", "}"]
    labels = product(*(p.states for p in parents))
    rows = table.reshape(-1, table.shape[-1])
    body = [
        f"  ( {', '.join(label)} ) {write_row(row)};"
        for label, row in zip(labels, rows, strict=True)
    ]
    return [head, *body, "}"]


@dataclass(frozen=True)
class _Row:
    """Numbers for one combination of parents' states."""

    labels: list[Word]
    values: FloatArray
    start: int


@dataclass
class _Block:
    """A ``probability`` block before its names are resolved."""

    child: list[list[Word]]
    given: list[list[Word]] | None
    start: int
    rows: list[_Row] = field(default_factory=list)
    table: FloatArray | None = None
    default: FloatArray | None = None


def load_bif(path: PathLike) -> BayesianNetwork:
    """Read a network from a file."""
    return network_from_bif(read_text(path), os.fspath(path))


def network_from_bif(text: str, path: str = "BIF text") -> BayesianNetwork:
    """Read a network; a :class:`FormatError` names ``path``, line and reason."""
    network = _BifReader(text, path).read()
    return restore_names(network, read_name_comments(text, path), path)


class _BifReader(Scanner):
    def read(self) -> BayesianNetwork:
        declared, blocks = [], []
        while self.peek():
            keyword = self.word()
            if keyword.text == "network":
                self.skip_statement("{")
                while not self.accept("}"):
                    self.skip_statement()
            elif keyword.text == "variable":
                declared.append(self._variable())
            elif keyword.text == "probability":
                blocks.append(self._block(keyword.start))
            else:
                reason = f"expected network, variable or probability, got {shorten(keyword.text)}"
                raise self.error(reason, keyword.start)
        self.assembly = Assembly(self.path, declared)
        self.states = [
            {state: code for code, state in enumerate(v.states)} for v in self.assembly.variables
        ]
        self.default_cells = 0
        for block in blocks:
            self._add_table(block)
        return self.assembly.build()

    def _variable(self) -> tuple[Variable, int]:
        (group,), _ = self.words("{")
        if not group:
            raise self.error("a variable must have a name")
        name = self.joined(group)
        states: tuple[str, ...] = ()
        while not self.accept("}"):
            keyword = self.word()
            if keyword.text == "type":
                states = self._states(name.text)
            else:
                self.skip_statement()
        return Variable(name.text, states), self.line(name.start)

    def _states(self, name: str) -> tuple[str, ...]:
        kind = self.word()
        if kind.text != "discrete":
            raise self.error(f"variable {shorten(name)} must be discrete", kind.start)
        self.expect("[")
        count = self.word()
        self.expect("]")
        self.expect("{")
        start = self.pos
        names = self._names(self.words("}", ",")[0], count.text)
        self.accept(";")
        if str(len(names)) != count.text:
            reason = (
                f"variable {shorten(name)} is to have {shorten(count.text)} states, but "
                f"{len(names)} are listed; a name with commas needs quotes"
            )
            raise self.error(reason, start)
        return tuple(n.text for n in names)

    def _names(self, groups: list[list[Word]], count: str = "") -> list[Word]:
        """Names between commas; without commas, between spaces if that gives ``count`` of them."""
        if len(groups) == 1 and (str(len(groups[0])) == count or not groups[0]):
            return groups[0]
        if not groups[-1]:
            groups = groups[:-1]  # a comma after the last one
        if not all(groups):
            raise self.error("there is no name between two commas")
        return [self.joined(group) for group in groups]

    def _block(self, start: int) -> _Block:
        self.expect("(")
        child, stop = self.words(")|", ",")
        given = self.words(")", ",")[0] if stop == "|" else None
        block = _Block(child, given, start)
        for _ in self.block():
            self._entry(block)
        return block

    def _entry(self, block: _Block) -> None:
        start = self.pos
        if self.accept("("):
            labels = self._names(self.words(")", ",")[0])
            block.rows.append(_Row(labels, self.numbers(";"), start))
            return
        keyword = self.word()
        if keyword.text == "table" and block.table is None:
            block.table = self.numbers(";")
        elif keyword.text == "default" and block.default is None:
            block.default = self.numbers(";")
        elif keyword.text == "property":
            self.skip_statement()
        else:
            reason = f"expected one table, one default or a row, got {shorten(keyword.text)}"
            raise self.error(reason, keyword.start)

    def _add_table(self, block: _Block) -> None:
        words = self._members(block)
        child, *parents = [self.assembly.find(w.text, self.line(w.start)) for w in words]
        line = self.line(block.start)
        shape = self.assembly.shape((*parents, child), line)
        self.assembly.add((*parents, child), self._values(block, parents, shape), line)

    def _members(self, block: _Block) -> list[Word]:
        """Child and parents; the oldest files list them all without a bar."""
        members = self._split(block.child)
        if not members or (block.given is not None and len(members) > 1):
            raise self.error("a probability must be of one variable", block.start)
        return members if block.given is None else members + self._split(block.given)

    def _split(self, groups: list[list[Word]]) -> list[Word]:
        """Names between commas; without commas, one declared name with spaces, or several."""
        if len(groups) > 1 or not groups[0]:
            return self._names(groups)
        whole = self.joined(groups[0])
        return [whole] if whole.text in self.assembly.index else groups[0]

    def _values(self, block: _Block, parents: Sequence[int], shape: tuple[int, ...]) -> FloatArray:
        """Probabilities, the child's states last."""
        if block.table is not None:
            if block.rows or block.default is not None:
                raise self.error("give either a table or rows, not both", block.start)
            self._check_length(block.table, math.prod(shape), block.start)
            return np.moveaxis(block.table.reshape(shape[-1], *shape[:-1]), 0, -1)
        codes = [self._row_code(row, parents, shape) for row in block.rows]
        n_rows = math.prod(shape[:-1])
        if len(set(codes)) < len(codes):
            raise self.error("a row is listed twice", block.start)
        values = self._background(block, n_rows - len(codes), (n_rows, shape[-1]))
        for code, row in zip(codes, block.rows, strict=True):
            self._check_length(row.values, shape[-1], row.start)
            values[code] = row.values
        return values.reshape(shape)

    def _background(self, block: _Block, missing: int, shape: tuple[int, int]) -> FloatArray:
        """Rows before the listed ones are filled in: the default."""
        if missing and block.default is None:
            reason = f"{missing} of the {shape[0]} rows are missing and there is no default"
            raise self.error(reason, block.start)
        if block.default is None:
            return np.empty(shape)
        self._check_length(block.default, shape[1], block.start)
        self.default_cells += missing * shape[1]
        if self.default_cells > MAX_DEFAULT_CELLS:
            reason = f"default rows fill more than {MAX_DEFAULT_CELLS} cells"
            raise self.error(reason, block.start)
        return np.tile(block.default, (shape[0], 1))

    def _row_code(self, row: _Row, parents: Sequence[int], shape: tuple[int, ...]) -> int:
        """Flat index of the parents' states that the row is for."""
        if len(row.labels) != len(parents):
            reason = f"the row must name {len(parents)} states, got {len(row.labels)}"
            raise self.error(reason, row.start)
        code = 0
        for label, parent, arity in zip(row.labels, parents, shape[:-1], strict=True):
            states = self.states[parent]
            if label.text not in states:
                name = self.assembly.variables[parent].name
                reason = f"{shorten(label.text)} is no state of {shorten(name)}"
                raise self.error(reason, label.start)
            code = code * arity + states[label.text]
        return code

    def _check_length(self, values: FloatArray, expected: int, start: int) -> None:
        if len(values) != expected:
            raise self.error(f"expected {expected} numbers, got {len(values)}", start)
