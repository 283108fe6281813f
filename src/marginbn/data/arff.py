"""ARFF files, the format of Weka.

Read are numeric (also real, integer), nominal and string attributes, quoted names and values,
comments after ``%`` and missing values ``?``. Declarations are believed: a numeric attribute is
numeric however few values it has, a nominal one keeps its declared states in their order, used or
not. Dates, relational attributes, sparse rows and instance weights are refused.

``scipy.io.arff`` does not serve: it knows neither text beyond ASCII nor string attributes, ignores
values beyond the last column and reads ``'it\\'s'`` as another word.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
_VALUE = re.compile(rf"\s*+({_QUOTED}|[^\s,%{{'\"][^,%]*+|)\s*+(,|%|$)", re.S)
_STATE = re.compile(rf"\s*+({_QUOTED}|[^\s,%}}'\"][^,%}}]*+)\s*+(,|}}\s*+(?:%|$))", re.S)
_ESCAPE = re.compile(r"\\(.)", re.S)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


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
    rows: list[list[str | None]] = []
    lines: list[int] = []
    in_data = False
    for line, content in _meaningful_lines(text):
        try:
            if in_data:
                rows.append(_parse_row(content, len(attributes)))
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
    attributes: Sequence[Attribute], rows: Sequence[list[str | None]], origin: Origin, kinds: Kinds
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


def _parse_declaration(content: str, attributes: list[Attribute]) -> bool:
    """Add the attribute a header line declares; true when the line opens the data."""
    keyword = content.split(maxsplit=1)[0].lower()
    if keyword == "@attribute":
        attributes.append(_parse_attribute(content))
        try:
            check_distinct_names([attribute.name for attribute in attributes])
        except InputError as error:
            raise _BadLineError(str(error)) from None
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
    raise _BadLineError(
        f"attribute {name!r} must be numeric, real, integer, string or {{states}}, "
        f"got {type_name!r}; convert it with Weka, or write a CSV file"
    )


def _parse_states(declared: str) -> tuple[str, ...]:
    states = tuple(map(_unquote, _split(_STATE, declared[1:], "the list of states is malformed")))
    if len(set(states)) < len(states):
        raise _BadLineError("a state is declared twice")
    return states


def _parse_row(content: str, n_attributes: int) -> list[str | None]:
    texts = _split(_VALUE, content, "quotes do not match, or the row is sparse or has a weight")
    if len(texts) != n_attributes:
        raise _BadLineError(f"expected {n_attributes} values, got {len(texts)}")
    return [None if text.strip() in ("?", "") else _unquote(text) for text in texts]


def _split(token: re.Pattern[str], text: str, reason: str) -> list[str]:
    """Texts between commas, quotes kept, up to a comment or a closing brace."""
    found, position, end = [], 0, ","
    while end == ",":
        match = token.match(text, position)
        if match is None:
            raise _BadLineError(reason)
        found.append(match[1])
        position, end = match.end(), match[2]
    return found


def _unquote(text: str) -> str:
    if text[:1] not in ("'", '"'):
        return text.strip()
    return _ESCAPE.sub(lambda match: _CONTROLS.get(match[1], match[1]), text[1:-1])
