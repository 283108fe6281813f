"""XMLBIF, the interchange format in XML: read and written as text.

::

    <?xml version="1.0" encoding="UTF-8"?>
    <BIF VERSION="0.3">
    <NETWORK>
    <NAME>network</NAME>
    <VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
    <DEFINITION><FOR>rain</FOR><TABLE>0.8 0.2</TABLE></DEFINITION>
    </NETWORK>
    </BIF>

In a table the child's states run fastest, then the parents, the last ``GIVEN`` first. Names are XML
text; what XML cannot hold has the escape of :mod:`marginbn.export.scanner`. The usual document type
at the top is read past, but no entity is ever defined or expanded and nothing outside the file is
looked at: a file that declares an entity is refused. The first variable is the class.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import escape as escape_xml

from marginbn.data.text import decode_text, format_error
from marginbn.export.assembly import Assembly, to_probabilities, write_row
from marginbn.export.scanner import UNPRINTABLE_XML, escape, parse_numbers, unescape
from marginbn.files import PathLike, read_bytes, shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable

MAX_DEPTH = 32
"""Elements inside one another; XMLBIF itself has five."""

MAX_ATTRIBUTE_DECLARATIONS = 100
"""In a document type; each costs time at every element, and XMLBIF's own has three."""

_ENCODING = re.compile(rb"""encoding\s{0,9}=\s{0,9}["']([A-Za-z0-9._-]{1,40})["']""")
_LATIN = {"iso-8859-1": "latin-1", "latin1": "latin-1", "windows-1252": "cp1252"}


def network_to_xmlbif(network: BayesianNetwork) -> str:
    """XMLBIF text of a network; :func:`network_from_xmlbif` is the inverse."""
    network = network.without_groups()
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>"]
    lines.append("<NAME>network</NAME>")
    names = [_text(name) for name in network.names]
    for variable in network.variables:
        lines += ['<VARIABLE TYPE="nature">', f"  <NAME>{_text(variable.name)}</NAME>"]
        lines += [f"  <OUTCOME>{_text(state)}</OUTCOME>" for state in variable.states]
        lines.append("</VARIABLE>")
    for i, parents in enumerate(network.structure.parents):
        table = to_probabilities(network.log_tables[i])
        lines += ["<DEFINITION>", f"  <FOR>{names[i]}</FOR>"]
        lines += [f"  <GIVEN>{names[p]}</GIVEN>" for p in parents]
        rows = "\n    ".join(map(write_row, table.reshape(-1, table.shape[-1])))
        lines += [f"  <TABLE>\n    {rows}\n  </TABLE>", "</DEFINITION>"]
    return "\n".join([*lines, "</NETWORK>", "</BIF>", ""])


def _text(name: str) -> str:
    return escape_xml(escape(name, UNPRINTABLE_XML))


def load_xmlbif(path: PathLike) -> BayesianNetwork:
    """Read a file: UTF-8, UTF-16 with its mark, or Latin letters if it says so."""
    data, name = read_bytes(path), os.fspath(path)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return network_from_xmlbif(decode_text(data, name, "utf-16"), name)
    declared = _ENCODING.search(data[:200])
    encoding = _LATIN.get(declared[1].decode("ascii").lower() if declared else "", "utf-8-sig")
    return network_from_xmlbif(decode_text(data, name, encoding), name)


def network_from_xmlbif(text: str, path: str = "XMLBIF text") -> BayesianNetwork:
    """Read a network; a :class:`FormatError` names ``path``, line and reason."""
    root = _parse(text, path)
    networks = [e for e in root.children if e.tag == "NETWORK"]
    if root.tag != "BIF" or len(networks) != 1:
        raise format_error(path, root.line, "the file must be a BIF element with one NETWORK")
    parts = networks[0].children
    assembly = Assembly(path, [_variable(e, path) for e in parts if e.tag == "VARIABLE"])
    for element in parts:
        if element.tag in ("DEFINITION", "PROBABILITY"):
            _add_table(assembly, element)
    return assembly.build()


@dataclass
class _Element:
    tag: str
    attributes: dict[str, str]
    line: int
    texts: list[str] = field(default_factory=list)
    children: list[_Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text directly inside, without the white space around it."""
        return "".join(self.texts).strip(" \t\r\n")

    def names(self, tag: str) -> list[str]:
        """Texts of the children with this tag."""
        return [unescape(child.text) for child in self.children if child.tag == tag]


class _Builder:
    """Collects the elements that the parser meets, and refuses what could be an attack."""

    def __init__(self, parser: Any, path: str) -> None:
        self.path = path
        self.root: _Element | None = None
        self._parser = parser
        self._open: list[_Element] = []
        self._declarations = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        element = _Element(tag.upper(), attributes, self._parser.CurrentLineNumber)
        if self._open:
            self._open[-1].children.append(element)
        elif self.root is None:
            self.root = element
        if len(self._open) == MAX_DEPTH:
            self._refuse(f"elements are nested more than {MAX_DEPTH} deep")
        self._open.append(element)

    def end(self, _tag: str) -> None:
        self._open.pop()

    def data(self, text: str) -> None:
        self._open[-1].texts.append(text)

    def entity(self, name: str, *_: object) -> None:
        self._refuse(f"the file declares the entity {shorten(name)}; entities are not read")

    def skipped(self, name: str, *_: object) -> None:
        self._refuse(f"the entity {shorten(name)} is not defined")

    def attribute(self, *_: object) -> None:
        self._declarations += 1
        if self._declarations > MAX_ATTRIBUTE_DECLARATIONS:
            self._refuse("the document type declares too many attributes")

    def _refuse(self, reason: str) -> NoReturn:
        raise format_error(self.path, self._parser.CurrentLineNumber, reason)


def _parse(text: str, path: str) -> _Element:
    """The elements of the document; expat itself needs no recursion."""
    parser = expat.ParserCreate("utf-8")  # whatever encoding the declaration names
    builder = _Builder(parser, path)
    parser.buffer_text = True
    parser.specified_attributes = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = builder.entity
    parser.SkippedEntityHandler = builder.skipped
    parser.AttlistDeclHandler = builder.attribute
    try:
        parser.Parse(text.encode(), True)
    except UnicodeEncodeError:
        raise format_error(path, None, "half a surrogate pair is no text") from None
    except expat.ExpatError as error:
        reason = f"not well-formed XML, {expat.ErrorString(error.code)}"
        raise format_error(path, error.lineno, reason) from None
    assert builder.root is not None  # a document without element is not well-formed
    return builder.root


def _variable(element: _Element, path: str) -> tuple[Variable, int]:
    kind = element.attributes.get("TYPE", "nature")
    if kind != "nature":
        reason = f"variables must be of type nature, got {shorten(kind)}"
        raise format_error(path, element.line, reason)
    states = tuple(element.names("OUTCOME") or element.names("VALUE"))
    return Variable(_only(element, "NAME", path), states), element.line


def _only(element: _Element, tag: str, path: str) -> str:
    """Text of the one child with this tag."""
    names = element.names(tag)
    if len(names) != 1:
        reason = f"{element.tag[:40]} must hold one {tag}, got {len(names)}"
        raise format_error(path, element.line, reason)
    return names[0]


def _add_table(assembly: Assembly, element: _Element) -> None:
    names = [*element.names("GIVEN"), _only(element, "FOR", assembly.path)]
    members = [assembly.find(name, element.line) for name in names]
    assembly.shape(members, element.line)  # refused before its numbers are read
    _only(element, "TABLE", assembly.path)
    table = next(child for child in element.children if child.tag == "TABLE")
    values = parse_numbers(
        table.text.split(), lambda why, _: format_error(assembly.path, table.line, why)
    )
    assembly.add(members, values, element.line)
