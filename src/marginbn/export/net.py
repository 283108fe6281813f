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

import re
from dataclasses import dataclass

import numpy as np

from marginbn.data.encode import Variable
from marginbn.export.assembly import Assembly, FloatArray, to_probabilities, write_row
from marginbn.export.scanner import Scanner, Word, quote
from marginbn.files import shorten
from marginbn.network.network import BayesianNetwork

SOFTWARE = "marginbn"
"""Marks files in which labels are the names of the variables."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset({"net", "class", "node", "discrete", "continuous", "potential"})


def network_to_net(network: BayesianNetwork) -> str:
    """NET text of a network; :func:`network_from_net` is the inverse."""
    network = network.without_groups()
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
    """A table before its names are resolved."""

    child: list[Word]
    parents: list[Word]
    values: FloatArray
    start: int


def network_from_net(text: str, path: str = "NET text") -> BayesianNetwork:
    """Read a network; a :class:`FormatError` names ``path``, line and reason."""
    return _Reader(text, path).read()


@dataclass(frozen=True)
class _Node:
    identifier: str
    label: str
    states: tuple[str, ...]
    line: int


class _Reader(Scanner):
    stops = "{}()=;|"
    line_comment = "%"
    software = ""

    def read(self) -> BayesianNetwork:
        nodes, potentials = [], []
        while self.peek():
            keyword = self.word()
            if keyword.text in ("net", "class"):
                self._header()
            elif keyword.text == "node":
                nodes.append(self._node())
            elif keyword.text == "discrete":
                self._expect_word("node")
                nodes.append(self._node())
            elif keyword.text == "potential":
                potentials.append(self._potential(keyword.start))
            else:
                reason = (
                    f"expected net, node or potential, got {shorten(keyword.text)}; only discrete "
                    "chance nodes are read"
                )
                raise self.error(reason, keyword.start)
        assembly = self._declare(nodes)
        for potential in potentials:
            self._add_table(assembly, potential)
        return assembly.build()

    def _expect_word(self, expected: str) -> None:
        word = self.word()
        if word.text != expected:
            raise self.error(f"expected {expected}, got {shorten(word.text)}", word.start)

    def _header(self) -> None:
        if self.peek() != "{":
            self.word()  # the name of a class
        for _ in self.block():
            if self._attribute() == "software":
                self.software = self._value()
            self.skip_statement()

    def _attribute(self) -> str:
        name = self.word().text
        self.expect("=")
        return name

    def _value(self) -> str:
        return "" if self.peek() == ";" else self.word().text

    def _node(self) -> _Node:
        name = self.word()
        label, states = name.text, None
        for _ in self.block():
            attribute = self._attribute()
            if attribute == "label":
                label = self._value()
            elif attribute == "states":
                self.expect("(")
                states = tuple(word.text for word in self.words(")")[0][0])
            self.skip_statement()
        if states is None:
            raise self.error(f"node {shorten(name.text)} has no states", name.start)
        return _Node(name.text, label, states, self.line(name.start))

    def _potential(self, start: int) -> _Potential:
        self.expect("(")
        (child,), stop = self.words(")|")
        parents = self.words(")")[0][0] if stop == "|" else []
        values = None
        for _ in self.block():
            if self._attribute() == "data" and values is None:
                values = self.nested_numbers()
            self.skip_statement()
        if values is None:
            raise self.error("the potential has no data", start)
        return _Potential(child, parents, values, start)

    def _declare(self, nodes: list[_Node]) -> Assembly:
        """Variables under their names; tables have them by identifier."""
        own = self.software == SOFTWARE
        declared = [(Variable(n.label if own else n.identifier, n.states), n.line) for n in nodes]
        index = {node.identifier: i for i, node in enumerate(nodes)}
        assembly = Assembly(self.path, declared, index)
        if len(index) < len(nodes):
            raise self.error("two nodes have the same name")
        return assembly

    def _add_table(self, assembly: Assembly, potential: _Potential) -> None:
        if len(potential.child) != 1:
            raise self.error("a potential must be of one node", potential.start)
        words = [*potential.parents, *potential.child]
        members = [assembly.find(word.text, self.line(word.start)) for word in words]
        assembly.add(members, potential.values, self.line(potential.start))
