"""Hugin NET: read and written as text.

::

    net {
      software = "marginbn";
    }
    node rain {
      label = "rain";
      states = ("no" "yes");
    }
    node wet_grass {
      label = "wet grass";
      states = ("dry" "wet");
    }
    potential ( wet_grass | rain ) {
      data = ((0.9 0.1)
              (0.25 0.75));
    }
    % name: ["wet_grass", "wet grass", ["dry", "wet"]]

Names and states are written as identifiers, with what they stand for in comments at the end
(:mod:`marginbn.export.portable`); labels, where they can say it, are for the eye. Files that name
``marginbn`` itself as ``software`` are of its first version, in which labels are the names; in all
others the identifiers are. In a table the child's states run fastest, then the parents, the last
one first. Comments start with ``%``. Only discrete chance nodes are read; other attributes are read
past. The first node is the class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from marginbn.export.assembly import Assembly, FloatArray, to_probabilities, write_row
from marginbn.export.portable import (
    name_comments,
    read_name_comments,
    restore_names,
    to_portable,
)
from marginbn.export.scanner import Scanner, Word
from marginbn.files import shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable

SOFTWARE = "marginbn 2"
LABELLING_SOFTWARE = "marginbn"
"""Marks files in which labels are the names of the variables: those of the first version."""

KEYWORDS = frozenset(
    {"net", "class", "node", "discrete", "continuous", "potential", "data"}
    | {"decision", "utility", "function"}
)
"""Words that cannot be names."""

_COMMENT = "%"

# pgmpy looks for its keywords inside of labels, too.
_LABEL = re.compile(r"(?!.*(?:node|net|potential|states|data|name))[A-Za-z0-9 _.,:<>+*()\[\]-]+")


def network_to_net(network: BayesianNetwork) -> str:
    """NET text of a network; :func:`network_from_net` is the inverse."""
    labels = [name if _LABEL.fullmatch(name) else "" for name in network.names]
    network, changed = to_portable(network, KEYWORDS)
    names = network.names
    lines = ["net {", f'  software = "{SOFTWARE}";', "}"]
    for label, variable in zip(labels, network.variables, strict=True):
        states = " ".join(f'"{state}"' for state in variable.states)
        lines += [f"node {variable.name} {{", f'  label = "{label or variable.name}";']
        lines += [f"  states = ({states});", "}"]
    for i, parents in enumerate(network.structure.parents):
        given = f" | {' '.join(names[p] for p in parents)}" if parents else ""
        lines.append(f"potential ( {names[i]}{given} ) {{")
        lines += [f"  data = {_nested(to_probabilities(network.log_tables[i]))};", "}"]
    return "\n".join([*lines, *name_comments(changed, _COMMENT), ""])


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
    network = _Reader(text, path).read()
    return restore_names(network, read_name_comments(text, _COMMENT, path), path)


@dataclass(frozen=True)
class _Node:
    identifier: str
    label: str
    states: tuple[str, ...]
    line: int


class _Reader(Scanner):
    stops = "{}()=;|"
    line_comment = _COMMENT
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
        own = self.software == LABELLING_SOFTWARE
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
