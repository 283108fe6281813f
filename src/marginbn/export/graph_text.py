r"""The structure of a network as text that other programs draw: DOT (Graphviz), SVG.

The class is highlighted, variables that are connected to nothing are grey. A column may be called
anything: names appear only as quoted labels in which whatever the drawing program would interpret
is escaped.

Examples
--------
>>> import numpy as np
>>> from marginbn.problem.encoded import Variable
>>> from marginbn.problem.structure import Structure
>>> half = np.log([0.5, 0.5])
>>> variables = (Variable("class", ("a", "b")), Variable("x < 3", ("0", "1")))
>>> tables = (half, np.array([half, half]))
>>> network = BayesianNetwork(Structure(((), (0,))), variables, tables)
>>> print(network_to_dot(network))
digraph network {
  node [shape=ellipse];
  v0 [label="class", shape=box, style="filled,rounded", fillcolor="#ffd166"];
  v1 [label="x < 3"];
  v0 -> v1;
}
<BLANKLINE>
>>> "x < 3" in network_to_svg(network), "x &lt; 3" in network_to_svg(network)
(False, True)
"""

from __future__ import annotations

from marginbn.network.network import BayesianNetwork
from marginbn.network.svg import draw_structure

_DOT_CLASS = ', shape=box, style="filled,rounded", fillcolor="#ffd166"'
_DOT_ISOLATED = ', color="#999999", fontcolor="#999999"'


def network_to_dot(network: BayesianNetwork) -> str:
    """DOT text of the structure; render it with ``dot -Tsvg``."""
    nodes = zip(network.names, _styles(network), strict=True)
    lines = ["digraph network {", "  node [shape=ellipse];"]
    lines += [f"  v{i} [label={quote_dot(n)}{style}];" for i, (n, style) in enumerate(nodes)]
    lines += [f"  v{parent} -> v{child};" for parent, child in network.structure.arcs]
    return "\n".join([*lines, "}", ""])


def network_to_svg(network: BayesianNetwork) -> str:
    """SVG text of the structure; pointing at a variable shows its name, parents and states."""
    return draw_structure(network.structure, network.variables)


def _styles(network: BayesianNetwork) -> list[str]:
    """The style of every variable, empty for those that have nothing special."""
    connected = {v for arc in network.structure.arcs for v in arc}
    others = ["" if i in connected else _DOT_ISOLATED for i in range(1, network.n_variables)]
    return [_DOT_CLASS, *others]


def quote_dot(text: str) -> str:
    r"""A quoted DOT string that shows ``text`` as it is.

    Examples
    --------
    >>> print(quote_dot('a "b" \\n'))
    "a \"b\" \\n"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\r", "\\r").replace("\n", "\\n").replace("\0", " ") + '"'
