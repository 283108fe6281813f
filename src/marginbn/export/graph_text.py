r"""The structure of a network as text that other programs draw: DOT (Graphviz), Mermaid, SVG.

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
>>> print(network_to_mermaid(network))
flowchart TD
  v0["class"]
  v1["x #60; 3"]
  v0 --> v1
  style v0 fill:#ffd166,stroke:#333333,color:#000000
<BLANKLINE>
>>> "x < 3" in network_to_svg(network), "x &lt; 3" in network_to_svg(network)
(False, True)
"""

from __future__ import annotations

import re

from marginbn.network.network import BayesianNetwork
from marginbn.network.svg import draw_structure

_DOT_CLASS = ', shape=box, style="filled,rounded", fillcolor="#ffd166"'
_DOT_ISOLATED = ', color="#999999", fontcolor="#999999"'
_MERMAID_CLASS = "fill:#ffd166,stroke:#333333,color:#000000"
_MERMAID_ISOLATED = "stroke:#999999,color:#999999"
_MERMAID_SPECIAL = re.compile(r"""[\x00-\x1f\x7f"#&;<>`\\*_~{}\[\]()|$%]""")


def network_to_dot(network: BayesianNetwork) -> str:
    """DOT text of the structure; render it with ``dot -Tsvg``."""
    nodes = zip(network.names, _styles(network, _DOT_CLASS, _DOT_ISOLATED), strict=True)
    lines = ["digraph network {", "  node [shape=ellipse];"]
    lines += [f"  v{i} [label={quote_dot(n)}{style}];" for i, (n, style) in enumerate(nodes)]
    lines += [f"  v{parent} -> v{child};" for parent, child in network.structure.arcs]
    return "\n".join([*lines, "}", ""])


def network_to_mermaid(network: BayesianNetwork) -> str:
    """Mermaid text of the structure, which web pages and Markdown viewers draw."""
    styles = _styles(network, _MERMAID_CLASS, _MERMAID_ISOLATED)
    lines = ["flowchart TD"]
    lines += [f"  v{i}[{quote_mermaid(name)}]" for i, name in enumerate(network.names)]
    lines += [f"  v{parent} --> v{child}" for parent, child in network.structure.arcs]
    lines += [f"  style v{i} {style}" for i, style in enumerate(styles) if style]
    return "\n".join([*lines, ""])


def network_to_svg(network: BayesianNetwork) -> str:
    """SVG text of the structure; pointing at a variable shows its name, parents and states."""
    return draw_structure(network.structure, network.variables)


def _styles(network: BayesianNetwork, of_class: str, of_isolated: str) -> list[str]:
    """The style of every variable, empty for those that have nothing special."""
    connected = {v for arc in network.structure.arcs for v in arc}
    others = ["" if i in connected else of_isolated for i in range(1, network.n_variables)]
    return [of_class, *others]


def quote_dot(text: str) -> str:
    r"""A quoted DOT string that shows ``text`` as it is.

    Examples
    --------
    >>> print(quote_dot('a "b" \\n'))
    "a \"b\" \\n"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\r", "\\r").replace("\n", "\\n").replace("\0", " ") + '"'


def quote_mermaid(name: str) -> str:
    """A quoted Mermaid string that shows the name as it is; line ends are shown as spaces.

    Examples
    --------
    >>> print(quote_mermaid('a "b"'))
    "a #34;b#34;"
    """
    return f'"{_MERMAID_SPECIAL.sub(_character_code, name) or " "}"'


def _character_code(match: re.Match[str]) -> str:
    code = ord(match[0])
    return " " if code < 32 or code == 127 else f"#{code};"
