"""Networks in files: the list of formats, and the two functions that use it.

The suffix of a file selects its format. A format is one line in ``NETWORK_FORMATS`` and a module of
this folder with functions named after it: ``network_to_NAME(network)`` returns the text and
``load_NAME(path)`` reads a file. Modules are imported when they are needed, so that the list itself
costs nothing (the command line shows it). The two formats of pictures are at the end of this file.

:mod:`marginbn.export.assembly` describes how exact probabilities are as text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from marginbn.exceptions import InputError
from marginbn.files import PathLike, write_text

if TYPE_CHECKING:
    from marginbn.network.network import BayesianNetwork

_DOT_CLASS = ', shape=box, style="filled,rounded", fillcolor="#ffd166"'
_DOT_ISOLATED = ', color="#999999", fontcolor="#999999"'


@dataclass(frozen=True)
class NetworkFormat:
    """How networks get into one kind of file and out of it.

    Functions of ``module`` have the ``name`` in their own, the usual one of the ``suffixes`` is
    first, and a format is ``readable`` if it ``holds`` the tables.
    """

    name: str
    suffixes: tuple[str, ...]
    holds: str
    module: str
    readable: bool = True

    def to_text(self, network: BayesianNetwork) -> str:
        """The network as text."""
        return str(self.function("network_to")(network))

    def function(self, verb: str) -> Any:
        """``network_to_NAME`` or ``load_NAME`` of the format's module."""
        return getattr(import_module(f"marginbn.export.{self.module}"), f"{verb}_{self.name}")


NETWORK_FORMATS: dict[str, NetworkFormat] = {
    form.name: form
    for form in (
        NetworkFormat("json", (".json",), "everything, bit for bit", "native"),
        NetworkFormat("bif", (".bif",), "everything; probabilities as text", "bif"),
        NetworkFormat("dot", (".dot", ".gv"), "the structure, written only", "formats", False),
        NetworkFormat("svg", (".svg",), "the structure, written only", "formats", False),
    )
}
"""All formats by name."""


def save_network(network: BayesianNetwork, path: PathLike, format: str | None = None) -> None:
    """Write a network; an existing file is replaced only when all is written.

    There is an example in :func:`load_network`.

    Parameters
    ----------
    network
        What to write.
    path
        The file.
    format
        ``"json"``, ``"bif"``, ``"dot"`` or ``"svg"``; by default the suffix of ``path`` selects it.
    """
    write_text(path, find_format(path, format).to_text(network))


def load_network(
    path: PathLike, format: str | None = None, *, target: str | None = None
) -> BayesianNetwork:
    """Read a network from a format that holds its tables: JSON or BIF.

    Parameters
    ----------
    path
        The file.
    format
        ``"json"`` or ``"bif"``; by default the suffix of ``path`` selects it.
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
    ...     path = os.path.join(folder, "colours.bif")
    ...     save_network(clf.network_, path)
    ...     load_network(path, target="class").names
    ('class', 'x0')
    """
    found = find_format(path, format)
    if not found.readable:
        raise InputError(
            f"format {found.name!r} cannot be read: {found.holds}; use one of "
            f"{', '.join(n for n, f in NETWORK_FORMATS.items() if f.readable)}"
        )
    from marginbn.export.assembly import put_first

    return put_first(found.function("load")(path), target)


def find_format(path: PathLike, format: str | None = None) -> NetworkFormat:
    """The format by its name, or by that of the file."""
    endings = {name: form.suffixes for name, form in NETWORK_FORMATS.items()}
    return NETWORK_FORMATS[choose_format(path, format, endings)]


def choose_format(
    path: PathLike, format: str | None, endings: Mapping[str, tuple[str, ...]]
) -> str:
    """The format that is named, or that has the end of the file's name."""
    if format is not None:
        if format not in endings:
            raise InputError(f"format must be one of {', '.join(endings)}, got {format!r}")
        return format
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    for name, suffixes in endings.items():
        if suffix in suffixes:
            return name
    known = ", ".join(s for suffixes in endings.values() for s in suffixes)
    raise InputError(
        f"the name of the file must end in one of {known}, or give the format; "
        f"got {os.fspath(path)!r}"
    )


def network_to_dot(network: BayesianNetwork) -> str:
    """DOT text of the structure; render it with ``dot -Tsvg``.

    The class is highlighted, variables without arcs are grey.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import BayesianNetwork, Structure, Variable
    >>> half = np.log([0.5, 0.5])
    >>> variables = (Variable("class", ("a", "b")), Variable("x < 3", ("0", "1")))
    >>> tables = (half, np.array([half, half]))
    >>> print(network_to_dot(BayesianNetwork(Structure(((), (0,))), variables, tables)))
    digraph network {
      node [shape=ellipse];
      v0 [label="class", shape=box, style="filled,rounded", fillcolor="#ffd166"];
      v1 [label="x < 3"];
      v0 -> v1;
    }
    <BLANKLINE>
    """
    connected = {v for arc in network.structure.arcs for v in arc}
    others = ["" if i in connected else _DOT_ISOLATED for i in range(1, network.n_variables)]
    nodes = zip(network.names, [_DOT_CLASS, *others], strict=True)
    lines = ["digraph network {", "  node [shape=ellipse];"]
    lines += [f"  v{i} [label={quote_dot(n)}{style}];" for i, (n, style) in enumerate(nodes)]
    lines += [f"  v{parent} -> v{child};" for parent, child in network.structure.arcs]
    return "\n".join([*lines, "}", ""])


def network_to_svg(network: BayesianNetwork) -> str:
    """SVG text of the structure; pointing at a variable shows its name, parents and states."""
    from marginbn.network.svg import draw_structure

    return draw_structure(network.structure, network.variables)


def quote_dot(text: str) -> str:
    r"""A quoted DOT string that shows ``text`` as it is.

    Examples
    --------
    >>> print(quote_dot('a "b" \\n'))
    "a \"b\" \\n"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\r", "\\r").replace("\n", "\\n").replace("\0", " ") + '"'
