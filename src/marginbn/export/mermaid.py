"""Mermaid: the structure of a network as a flow chart in text, the class highlighted.

Web pages and Markdown viewers draw it. Names appear only as quoted labels in which everything that
Mermaid or HTML would interpret is a character code, so a column may be called anything.
"""

from __future__ import annotations

import re

from marginbn.network.network import BayesianNetwork

_CLASS_STYLE = "fill:#ffd166,stroke:#333333,color:#000000"
_ISOLATED_STYLE = "stroke:#999999,color:#999999"
_SPECIAL = re.compile(r"""[\x00-\x1f\x7f"#&;<>`\\*_~{}\[\]()|$%]""")


def network_to_mermaid(network: BayesianNetwork) -> str:
    """Mermaid text of the structure.

    Variables that are connected to nothing are grey.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn.data.encode import Variable
    >>> from marginbn.problem.structure import Structure
    >>> half = np.log([0.5, 0.5])
    >>> network = BayesianNetwork(
    ...     Structure(((), (0,))),
    ...     (Variable("class", ("a", "b")), Variable("x < 3", ("0", "1"))),
    ...     (half, np.array([half, half])),
    ... )
    >>> print(network_to_mermaid(network))
    flowchart TD
      v0["class"]
      v1["x #60; 3"]
      v0 --> v1
      style v0 fill:#ffd166,stroke:#333333,color:#000000
    <BLANKLINE>
    """
    connected = {v for arc in network.structure.arcs for v in arc}
    lines = ["flowchart TD"]
    lines += [f"  v{i}[{label(name)}]" for i, name in enumerate(network.names)]
    lines += [f"  v{parent} --> v{child}" for parent, child in network.structure.arcs]
    lines.append(f"  style v0 {_CLASS_STYLE}")
    lines += [
        f"  style v{i} {_ISOLATED_STYLE}"
        for i in range(1, network.n_variables)
        if i not in connected
    ]
    return "\n".join([*lines, ""])


def label(name: str) -> str:
    """A quoted Mermaid string that shows the name as it is; line ends are shown as spaces.

    Examples
    --------
    >>> print(label('a "b"'))
    "a #34;b#34;"
    """
    return f'"{_SPECIAL.sub(_character_code, name) or " "}"'


def _character_code(match: re.Match[str]) -> str:
    code = ord(match[0])
    return " " if code < 32 or code == 127 else f"#{code};"
