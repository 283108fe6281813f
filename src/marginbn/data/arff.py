"""ARFF files, the format of Weka.

Read are numeric (also real, integer), nominal and string attributes, quoted names and values,
comments after ``%``, missing values ``?``, and sparse rows ``{index value, ...}`` whose other
entries are 0 or the first declared state. Declarations are believed: a numeric attribute is
numeric however few values it has, a nominal one keeps its declared states in their order, used or
not. Dates, relational attributes and instance weights are refused.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from marginbn.data.amounts import read_as
from marginbn.data.columns import Column, WantedKind, categorical_column, factorize
from marginbn.data.dates import as_dates, is_date_kind
from marginbn.data.table import Kinds, Table, check_distinct_names, resolve_kinds
from marginbn.data.text import Origin, column_from_text, exact_text_column, format_error
from marginbn.exceptions import InputError

# Possessive quantifiers (*+) keep the matching linear in the length of a hostile line.
_QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_ATTRIBUTE = re.compile(rf"@attribute\s++({_QUOTED}|[^\s{{'\"][^\s{{]*+)\s*+(.*)", re.I | re.S)
_VALUE = re.compile(rf"\s*+({_QUOTED}|[^\s,%'\"][^,%]*+|)\s*+(,|%|$)", re.S)
_STATE = re.compile(rf"\s*+({_QUOTED}|[^\s,%}}'\"][^,%}}]*+)\s*+(,|}})", re.S)
_ENTRY = re.compile(rf"\s*+([0-9]{{1,9}})\s++({_QUOTED}|[^\s,%}}'\"][^,%}}]*+)\s*+(,|}})", re.S)
_ESCAPE = re.compile(r"\\(.)", re.S)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_NEEDS_CARE = re.compile(r"['\"%{\t]")

Fields: TypeAlias = list[str | None]


@dataclass(frozen=True)
class Attribute:
    """Declared column: `type` is numeric, nominal or string; `states` only if nominal."""

    name: str
    type: str
    states: tuple[str, ...] = ()


class _BadLineError(Exception):
    """Reason why the line at hand cannot be read; the caller adds path and number."""


def parse_arff(text: str, path: str, kinds: Kinds = "auto") -> Table:
    """Table of an ARFF text; `path` serves error messages only."""
    attributes: list[Attribute] = []
    rows: list[Fields] = []
    lines: list[int] = []
    in_data = False
    for line, content in _meaningful_lines(text):
        try:
            if in_data:
                rows.append(_parse_row(content, attributes))
                lines.append(line)
            else:
                in_data = _parse_declaration(content, attributes)
        except _BadLineError as error:
            raise format_error(path, line, str(error)) from None
    if not rows:
        reason = "there are no rows after @data" if in_data else "there is no @data line"
        raise format_error(path, None, reason)
    return _build_table(attributes, rows, Origin(path, lines), kinds)


def _build_table(
    attributes: Sequence[Attribute], rows: Sequence[Fields], origin: Origin, kinds: Kinds
) -> Table:
    names = [attribute.name for attribute in attributes]
    wanted = resolve_kinds(kinds, names)
    fields = zip(*rows, strict=True)
    return Table(
        tuple(
            _build_column(attribute, texts, kind, origin)
            for attribute, texts, kind in zip(attributes, fields, wanted, strict=True)
        )
    )


def _build_column(
    attribute: Attribute, texts: Sequence[str | None], kind: WantedKind | None, origin: Origin
) -> Column:
    name = attribute.name
    if is_date_kind(kind):
        return as_dates(exact_text_column(name, texts, frozenset({None})), kind)
    if attribute.type == "numeric" or (attribute.type == "string" and kind == "numeric"):
        return column_from_text(name, texts, kind or "numeric", origin)
    if attribute.type == "string":
        return exact_text_column(name, texts, frozenset({None}))
    codes, levels = factorize(texts, missing=lambda text: text is None)
    strange = np.array([level not in attribute.states for level in levels] + [False])
    if strange.any():
        row = int(np.flatnonzero(strange[codes])[0])
        raise origin.error(row, f"{texts[row]!r} is not a declared state of {name!r}")
    column = categorical_column(name, codes, levels, attribute.states)
    return column.as_kind(read_as(kind) or "categorical")


def _meaningful_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        content = line.strip()
        if content and not content.startswith("%"):
            yield number, content


# --- header ---------------------------------------------------------------------------------------


def _parse_declaration(content: str, attributes: list[Attribute]) -> bool:
    """Add the attribute a header line declares; true when the line opens the data."""
    keyword = content.split(maxsplit=1)[0].lower()
    if keyword == "@attribute":
        attributes.append(_parse_attribute(content))
        _require_distinct(attributes)
    elif keyword == "@data":
        if not attributes:
            raise _BadLineError("@data comes before any @attribute")
        return True
    elif keyword != "@relation":
        raise _BadLineError(f"expected @relation, @attribute or @data, got {content[:40]!r}")
    return False


def _parse_attribute(content: str) -> Attribute:
    match = _ATTRIBUTE.fullmatch(content)
    if match is None:
        raise _BadLineError("expected @attribute, a name and a type; is a quote not closed?")
    name, declared = _unquote(match[1]), match[2]
    if declared.startswith("{"):
        return Attribute(name, "nominal", _parse_states(declared))
    type_name = declared.partition("%")[0].strip().lower()
    if type_name in ("numeric", "real", "integer"):
        return Attribute(name, "numeric")
    if type_name == "string":
        return Attribute(name, "string")
    if type_name.startswith(("date", "relational")):
        raise _BadLineError(
            f"attribute {name!r} is of type {type_name.split()[0]}, which is not supported; "
            "convert it to numbers or to nominal states"
        )
    raise _BadLineError(
        f"attribute {name!r} must be numeric, real, integer, string or {{states}}, "
        f"got {type_name!r}"
    )


def _parse_states(declared: str) -> tuple[str, ...]:
    states, position, end = [], 1, ""
    while end != "}":
        match = _STATE.match(declared, position)
        if match is None:
            raise _BadLineError("the list of states is empty, not closed by }, or badly quoted")
        states.append(_unquote(match[1]))
        position, end = match.end(), match[2]
    _require_nothing_more(declared[position:])
    if len(set(states)) < len(states):
        raise _BadLineError("a state is declared twice")
    return tuple(states)


def _require_distinct(attributes: Sequence[Attribute]) -> None:
    try:
        check_distinct_names([attribute.name for attribute in attributes])
    except InputError as error:
        raise _BadLineError(str(error)) from None


# --- rows -----------------------------------------------------------------------------------------


def _parse_row(content: str, attributes: Sequence[Attribute]) -> Fields:
    if content.startswith("{"):
        return _parse_sparse_row(content, attributes)
    if _NEEDS_CARE.search(content) is None:
        texts = [text.strip() for text in content.split(",")]
        fields: Fields = [None if text in ("?", "") else text for text in texts]
    else:
        fields = _split_carefully(content)
    if len(fields) == len(attributes) + 1 and (fields[-1] or "").startswith("{"):
        raise _BadLineError("instance weights in braces are not supported; drop them")
    if len(fields) != len(attributes):
        raise _BadLineError(f"expected {len(attributes)} values, got {len(fields)}")
    return fields


def _split_carefully(content: str) -> Fields:
    """Fields of a row with quotes, comments or tabs."""
    if "," not in content and _NEEDS_CARE.search(content.replace("\t", "")) is None:
        content = content.replace("\t", ",")  # tabs may separate the values instead
    fields: Fields = []
    position, end = 0, ","
    while end == ",":
        match = _VALUE.match(content, position)
        if match is None:
            raise _BadLineError("a quote is not closed, or text follows a closing quote")
        fields.append(_field(match[1]))
        position, end = match.end(), match[2]
    return fields


def _parse_sparse_row(content: str, attributes: Sequence[Attribute]) -> Fields:
    entries, position = _sparse_entries(content)
    _require_nothing_more(content[position:])
    fields: Fields = []
    for index, attribute in enumerate(attributes):
        if index not in entries and attribute.type == "string":
            raise _BadLineError(f"a sparse row must give the string attribute {attribute.name!r}")
        default = attribute.states[0] if attribute.states else "0"
        fields.append(entries.get(index, default))
    if entries and max(entries) >= len(attributes):
        raise _BadLineError(f"index {max(entries)} is beyond the {len(attributes)} attributes")
    return fields


def _sparse_entries(content: str) -> tuple[dict[int, str | None], int]:
    """Entries by index, and the position after the closing brace."""
    entries: dict[int, str | None] = {}
    if content[1:].lstrip().startswith("}"):
        return entries, content.index("}") + 1
    position, end = 1, ","
    while end == ",":
        match = _ENTRY.match(content, position)
        if match is None:
            raise _BadLineError("expected a sparse row {index value, index value, ...}")
        if int(match[1]) in entries:
            raise _BadLineError(f"index {match[1]} occurs twice in a sparse row")
        entries[int(match[1])] = _field(match[2])
        position, end = match.end(), match[3]
    return entries, position


def _require_nothing_more(rest: str) -> None:
    rest = rest.strip()
    if rest and not rest.startswith("%"):
        raise _BadLineError(f"nothing may follow the closing brace, got {rest[:40]!r}")


def _field(text: str) -> str | None:
    """A value as written in a row: bare ? and nothing at all are missing."""
    return None if text.strip() in ("?", "") else _unquote(text)


def _unquote(text: str) -> str:
    if text[:1] not in ("'", '"'):
        return text.strip()
    return _ESCAPE.sub(lambda match: _CONTROLS.get(match[1], match[1]), text[1:-1])
