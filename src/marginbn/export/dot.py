"""Graphviz: the structure of a network as DOT text, the class highlighted.

Names appear only as quoted labels; what Graphviz would read as an escape is escaped, so a column
may be called anything.
"""

from __future__ import annotations

from marginbn.atomic import PathLike, write_text
from marginbn.network.network import BayesianNetwork

_CLASS_STYLE = 'shape=box, style="filled,rounded", fillcolor="#ffd166"'
_ISOLATED_STYLE = 'color="#999999", fontcolor="#999999"'


def network_to_dot(network: BayesianNetwork) -> str:
    r"""DOT text of the structure; render it with ``dot -Tsvg``.

    Variables that are connected to nothing are grey.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn.data.encode import Variable
    >>> from marginbn.problem.structure import Structure
    >>> half = np.log([0.5, 0.5])
    >>> network = BayesianNetwork(
    ...     Structure(((), (0,))),
    ...     (Variable("class", ("a", "b")), Variable("x", ("0", "1"))),
    ...     (half, np.array([half, half])),
    ... )
    >>> print(network_to_dot(network))
    digraph network {
      node [shape=ellipse];
      v0 [label="class", shape=box, style="filled,rounded", fillcolor="#ffd166"];
      v1 [label="x"];
      v0 -> v1;
    }
    <BLANKLINE>
    """
    connected = {v for arc in network.structure.arcs for v in arc}
    lines = ["digraph network {", "  node [shape=ellipse];"]
    for i, name in enumerate(network.names):
        style = _CLASS_STYLE if i == 0 else "" if i in connected else _ISOLATED_STYLE
        lines.append(f"  v{i} [label={quote(name)}{', ' if style else ''}{style}];")
    lines += [f"  v{parent} -> v{child};" for parent, child in network.structure.arcs]
    return "\n".join([*lines, "}", ""])


def quote(text: str) -> str:
    r"""A quoted DOT string that shows ``text`` as it is.

    Examples
    --------
    >>> print(quote('a "b" \\n'))
    "a \"b\" \\n"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\r", "\\r").replace("\n", "\\n").replace("\0", " ") + '"'


def save_dot(network: BayesianNetwork, path: PathLike) -> None:
    """Write :func:`network_to_dot` to a file."""
    write_text(path, network_to_dot(network))
