"""Hugin NET: read and written as text.

::

    net {
      software = "marginbn";
    }
    node rain {
      label = "rain";
      states = ("no" "yes");
    }
    node v1 {
      label = "wet grass";
      states = ("dry" "wet");
    }
    potential ( v1 | rain ) {
      data = ((0.9 0.1)
              (0.25 0.75));
    }

The name of a node is an identifier in this format and its label is free text. A variable whose
name is an identifier keeps it; others are called ``v1`` after their index, and their name is the
label. In a file whose ``software`` is ``marginbn`` labels are the names, in other files the
identifiers are. In a table the child's states run fastest, then the parents, the last one first.
Comments start with ``%``. Only discrete chance nodes are read; other attributes are read past. The
first node is the class.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from marginbn.data.encode import Variable
from marginbn.export.assembly import (
    Declaration,
    Family,
    FloatArray,
    build_network,
    family_shape,
    index_variables,
    to_probabilities,
    write_row,
)
from marginbn.export.scanner import Scanner, Word, quote
from marginbn.files import shorten
from marginbn.network.network import BayesianNetwork

SOFTWARE = "marginbn"
"""Marks files in which labels are the names of the variables."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset({"net", "class", "node", "discrete", "continuous", "potential"})
_STOPS = "{}()=;|"


def network_to_net(network: BayesianNetwork) -> str:
    """NET text of a network; :func:`network_from_net` is the inverse."""
    names = _identifiers(network.names)
    lines = ["net {", f'  software = "{SOFTWARE}";', "}"]
    for name, variable in zip(names, network.variables, strict=True):
        states = " ".join(quote(state) for state in variable.states)
        lines += [f"node {name} {{", f"  label = {quote(variable.name)};"]
        lines += [f"  states = ({states});", "}"]
    for i, parents in enumerate(network.structure.parents):
        given = f" | {' '.join(names[p] for p in parents)}" if parents else ""
        lines.append(f"potential ( {names[i]}{given} ) {{")
        lines += [f"  data = {_nested(to_probabilities(network.log_tables[i]))};", "}"]
    return "\n".join([*lines, ""])


def _identifiers(names: tuple[str, ...]) -> list[str]:
    """One identifier per variable, its name wherever that is one."""
    kept = {n for n in names if _IDENTIFIER.fullmatch(n) and n not in _KEYWORDS}
    result = []
    for i, name in enumerate(names):
        identifier = name
        if name not in kept:
            identifier = f"v{i}"
            while identifier in kept:
                identifier += "_"
        result.append(identifier)
    return result


def _nested(table: FloatArray) -> str:
    """Rows in brackets, one pair more around every parent's states."""
    blocks = np.cumprod(table.shape[-2::-1]) if table.ndim > 1 else np.zeros(0, dtype=np.int64)
    lines = []
    for r, row in enumerate(table.reshape(-1, table.shape[-1])):
        opened = sum(r % block == 0 for block in blocks.tolist())
        closed = sum((r + 1) % block == 0 for block in blocks.tolist())
        lines.append(f"{'(' * opened}({write_row(row)}){')' * closed}")
    return "\n    ".join(lines)


@dataclass(frozen=True)
class _Potential:
    """A table before its names are looked up."""

    child: list[Word]
    parents: list[Word]
    values: FloatArray
    start: int


def network_from_net(text: str, path: str = "NET text") -> BayesianNetwork:
    """Read a network; ``path`` is named in messages.

    Raises
    ------
    FormatError
        If the text is malformed; the message has path, line and reason.
    """
    return _Reader(Scanner(path, text, "%")).read()


class _Reader:
    def __init__(self, scanner: Scanner) -> None:
        self.scan = scanner
        self.software = ""
        self.identifiers: list[str] = []
        self.labels: list[str] = []
        self.states: list[tuple[str, ...]] = []
        self.lines: list[int] = []

    def read(self) -> BayesianNetwork:
        potentials = []
        while self.scan.peek():
            keyword = self.scan.word(_STOPS)
            if keyword.text in ("net", "class"):
                self._header()
            elif keyword.text == "node":
                self._node()
            elif keyword.text == "discrete":
                self._expect_word("node")
                self._node()
            elif keyword.text == "potential":
                potentials.append(self._potential(keyword.start))
            else:
                reason = (
                    f"expected net, node or potential, got {shorten(keyword.text)}; only discrete "
                    "chance nodes are read"
                )
                raise self.scan.error(reason, keyword.start)
        declared, index = self._declarations()
        families = [self._family(p, declared, index) for p in potentials]
        return build_network(self.scan.path, declared, families)

    def _expect_word(self, expected: str) -> None:
        word = self.scan.word(_STOPS)
        if word.text != expected:
            raise self.scan.error(f"expected {expected}, got {shorten(word.text)}", word.start)

    def _header(self) -> None:
        if self.scan.peek() != "{":
            self.scan.word(_STOPS)  # the name of a class
        self.scan.expect("{")
        while not self.scan.accept("}"):
            if self._attribute() == "software":
                self.software = self._text()
            self.scan.skip_statement()

    def _attribute(self) -> str:
        name = self.scan.word(_STOPS).text
        self.scan.expect("=")
        return name

    def _text(self) -> str:
        return "" if self.scan.peek() == ";" else self.scan.word(_STOPS).text

    def _node(self) -> None:
        name = self.scan.word(_STOPS)
        label, states = name.text, None
        self.scan.expect("{")
        while not self.scan.accept("}"):
            attribute = self._attribute()
            if attribute == "label":
                label = self._text()
            elif attribute == "states":
                self.scan.expect("(")
                states = tuple(word.text for word in self.scan.words(")")[0][0])
            self.scan.skip_statement()
        if states is None:
            raise self.scan.error(f"node {shorten(name.text)} has no states", name.start)
        self.identifiers.append(name.text)
        self.labels.append(label)
        self.states.append(states)
        self.lines.append(self.scan.line(name.start))

    def _potential(self, start: int) -> _Potential:
        self.scan.expect("(")
        (child,), stop = self.scan.words(")|")
        parents = self.scan.words(")")[0][0] if stop == "|" else []
        values = None
        self.scan.expect("{")
        while not self.scan.accept("}"):
            if self._attribute() == "data" and values is None:
                values = self.scan.nested_numbers()
            self.scan.skip_statement()
        if values is None:
            raise self.scan.error("the potential has no data", start)
        return _Potential(child, parents, values, start)

    def _declarations(self) -> tuple[list[Declaration], dict[str, int]]:
        """Variables under their names, and their index by identifier."""
        names = self.labels if self.software == SOFTWARE else self.identifiers
        parts = zip(names, self.states, self.lines, strict=True)
        declared = [Declaration(Variable(n, s), line) for n, s, line in parts]
        index_variables(self.scan.path, declared)
        by_identifier = {name: i for i, name in enumerate(self.identifiers)}
        if len(by_identifier) < len(declared):
            raise self.scan.error("two nodes have the same name")
        return declared, by_identifier

    def _family(
        self, potential: _Potential, declared: list[Declaration], index: dict[str, int]
    ) -> Family:
        if len(potential.child) != 1:
            raise self.scan.error("a potential must be of one node", potential.start)
        words = [*potential.parents, *potential.child]
        for word in words:
            if word.text not in index:
                raise self.scan.error(f"node {shorten(word.text)} is not declared", word.start)
        members = [index[word.text] for word in words]
        line = self.scan.line(potential.start)
        shape = family_shape(self.scan.path, line, declared, members)
        if potential.values.size != math.prod(shape):
            reason = f"expected {math.prod(shape)} numbers, got {potential.values.size}"
            raise self.scan.error(reason, potential.start)
        return Family(members[-1], tuple(members[:-1]), potential.values.reshape(shape), line)
