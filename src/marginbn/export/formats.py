"""Graphviz: the structure of a network as DOT text, the class highlighted.

Names appear only as quoted labels; what Graphviz would read as an escape is escaped, so a column
may be called anything.

Mermaid: the structure of a network as a flow chart in text, the class highlighted.

Web pages and Markdown viewers draw it. Names appear only as quoted labels in which everything that
Mermaid or HTML would interpret is a character code, so a column may be called anything.

A network as a picture in SVG, on its own or in HTML; any name is harmless.

Networks in files of any format: the format is told by the name of the file.

======== ============================== ==========================================
format   names that end in              holds
======== ============================== ==========================================
json     .json                          everything, bit for bit (native)
bif      .bif                           everything, probabilities as text
xmlbif   .xmlbif .bifxml .xml           everything, probabilities as text
net      .net                           everything, probabilities as text (Hugin)
uai      .uai (and .uai.names)          numbers; the names in the file beside it
dot      .dot .gv                       the structure, written only (Graphviz)
mermaid  .mmd .mermaid                  the structure, written only
======== ============================== ==========================================

What "probabilities as text" means for exactness, and how rounded files are read, stands in
:mod:`marginbn.export.assembly`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from marginbn.exceptions import InputError
from marginbn.export import native, uai
from marginbn.export.assembly import put_first
from marginbn.export.bif import network_from_bif, network_to_bif
from marginbn.export.net import network_from_net, network_to_net
from marginbn.export.scanner import read_bytes, read_text
from marginbn.export.xmlbif import decode_xml, network_from_xmlbif, network_to_xmlbif
from marginbn.files import PathLike, write_text
from marginbn.network.network import BayesianNetwork
from marginbn.network.svg import draw_structure

_DOT_CLASS = 'shape=box, style="filled,rounded", fillcolor="#ffd166"'
_DOT_ISOLATED = 'color="#999999", fontcolor="#999999"'


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
        style = _DOT_CLASS if i == 0 else "" if i in connected else _DOT_ISOLATED
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


_MERMAID_CLASS = "fill:#ffd166,stroke:#333333,color:#000000"
_MERMAID_ISOLATED = "stroke:#999999,color:#999999"
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
    lines.append(f"  style v0 {_MERMAID_CLASS}")
    lines += [
        f"  style v{i} {_MERMAID_ISOLATED}"
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


def network_to_svg(network: BayesianNetwork) -> str:
    """SVG text of the structure; pointing at a variable shows its name, parents and states.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn.data.encode import Variable
    >>> from marginbn.problem.structure import Structure
    >>> network = BayesianNetwork(
    ...     Structure(((),)), (Variable("<class>", ("a", "b")),), (np.log([0.5, 0.5]),)
    ... )
    >>> "<class>" in network_to_svg(network), "&lt;class&gt;" in network_to_svg(network)
    (False, True)
    """
    return draw_structure(network.structure, network.variables)


def network_to_html(network: BayesianNetwork) -> str:
    """The picture with a caption, as notebooks show a network."""
    return network._repr_html_()


def save_svg(network: BayesianNetwork, path: PathLike) -> None:
    """Write :func:`network_to_svg` to a file."""
    write_text(path, f"{network_to_svg(network)}\n")


@dataclass(frozen=True)
class NetworkFormat:
    """How networks get into one kind of file and out of it."""

    name: str
    suffixes: tuple[str, ...]
    to_text: Callable[[BayesianNetwork], str]
    save: Callable[[BayesianNetwork, PathLike], None]
    load: Callable[[PathLike], BayesianNetwork] | None


def _text_format(
    name: str,
    suffixes: tuple[str, ...],
    to_text: Callable[[BayesianNetwork], str],
    from_text: Callable[[str, str], BayesianNetwork] | None = None,
) -> NetworkFormat:
    """A format of one UTF-8 file."""

    def save(network: BayesianNetwork, path: PathLike) -> None:
        write_text(path, to_text(network))

    if from_text is None:
        return NetworkFormat(name, suffixes, to_text, save, None)
    return NetworkFormat(
        name, suffixes, to_text, save, lambda path: from_text(read_text(path), os.fspath(path))
    )


def _native_text(network: BayesianNetwork) -> str:
    return json.dumps(native.network_to_dict(network), allow_nan=False, ensure_ascii=False) + "\n"


def _save_xmlbif(network: BayesianNetwork, path: PathLike) -> None:
    write_text(path, network_to_xmlbif(network))


def _load_xmlbif(path: PathLike) -> BayesianNetwork:
    name = os.fspath(path)
    return network_from_xmlbif(decode_xml(read_bytes(path), name), name)


NETWORK_FORMATS: dict[str, NetworkFormat] = {
    form.name: form
    for form in (
        NetworkFormat("json", (".json",), _native_text, native.save_network, native.load_network),
        _text_format("bif", (".bif",), network_to_bif, network_from_bif),
        NetworkFormat(
            "xmlbif",
            (".xmlbif", ".bifxml", ".xml"),
            network_to_xmlbif,
            _save_xmlbif,
            _load_xmlbif,
        ),
        _text_format("net", (".net",), network_to_net, network_from_net),
        NetworkFormat("uai", (".uai",), uai.network_to_uai, uai.save_uai, uai.load_uai),
        _text_format("dot", (".dot", ".gv"), network_to_dot),
        _text_format("mermaid", (".mmd", ".mermaid"), network_to_mermaid),
    )
}
"""All formats by name."""


def save_network(network: BayesianNetwork, path: PathLike, format: str | None = None) -> None:
    """Write a network; an existing file is replaced only when all is written.

    Parameters
    ----------
    network
        What to write.
    path
        The file.
    format
        ``"json"``, ``"bif"``, ``"xmlbif"``, ``"net"``, ``"uai"``, ``"dot"`` or ``"mermaid"``; by
        default the name of the file tells.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginbn import NaiveBayesClassifier, save_network
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_network(clf.network_, os.path.join(folder, "colours.bif"))
    ...     os.listdir(folder)
    ['colours.bif']
    """
    found = find_format(path, format)
    if found.load is not None:
        native.check_writable(network)
    found.save(network, path)


def load_network(
    path: PathLike, format: str | None = None, *, target: str | None = None
) -> BayesianNetwork:
    """Read a network from any format that holds its tables.

    Parameters
    ----------
    path
        The file.
    format
        ``"json"``, ``"bif"``, ``"xmlbif"``, ``"net"`` or ``"uai"``; by default the name of the
        file tells.
    target
        Name of the class, which becomes variable 0; by default the first variable of the file.

    Raises
    ------
    FormatError
        If the file is malformed; the message has path, line and reason.
    InputError
        If it cannot be read at all, or the format is unknown.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginbn import NaiveBayesClassifier, load_network, save_network
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "colours.net")
    ...     save_network(clf.network_, path)
    ...     load_network(path, target="class").names
    ('class', 'x0')
    """
    found = find_format(path, format)
    if found.load is None:
        raise InputError(
            f"format {found.name!r} holds the structure only and cannot be read; use one of "
            f"{', '.join(n for n, f in NETWORK_FORMATS.items() if f.load)}"
        )
    network = found.load(path)
    return network if target is None else put_first(network, target)


def find_format(path: PathLike, format: str | None = None) -> NetworkFormat:
    """The format by its name, or by that of the file."""
    if format is not None:
        if format not in NETWORK_FORMATS:
            known = ", ".join(NETWORK_FORMATS)
            raise InputError(f"format must be one of {known}, got {format!r}")
        return NETWORK_FORMATS[format]
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    for form in NETWORK_FORMATS.values():
        if suffix in form.suffixes:
            return form
    known = ", ".join(s for form in NETWORK_FORMATS.values() for s in form.suffixes)
    raise InputError(
        f"the name of the file must end in one of {known}, or give the format; "
        f"got {os.fspath(path)!r}"
    )
