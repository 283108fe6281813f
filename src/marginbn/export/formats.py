"""Networks in files of any format: the format is told by the name of the file.

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
from collections.abc import Callable
from dataclasses import dataclass

from marginbn.atomic import PathLike, write_text
from marginbn.exceptions import InputError
from marginbn.export import native, uai
from marginbn.export.assembly import put_first
from marginbn.export.bif import network_from_bif, network_to_bif
from marginbn.export.dot import network_to_dot
from marginbn.export.mermaid import network_to_mermaid
from marginbn.export.net import network_from_net, network_to_net
from marginbn.export.scanner import read_bytes, read_text
from marginbn.export.xmlbif import decode_xml, network_from_xmlbif, network_to_xmlbif
from marginbn.network.network import BayesianNetwork


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
