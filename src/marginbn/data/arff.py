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
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from marginbn.data.columns import Kind
from marginbn.data.profile import numbers_of_fields
from marginbn.data.source import Source, check_distinct_names, source_of_table
from marginbn.data.text_files import format_error
from marginbn.exceptions import InputError

# Possessive quantifiers (*+) keep the matching linear in the length of a hostile line.
_QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_ATTRIBUTE = re.compile(rf"@attribute\s++({_QUOTED}|[^\s{{'\"][^\s{{]*+)\s*+(.*)", re.I | re.S)
_VALUE = re.compile(rf"\s*+({_QUOTED}|[^\s,%{{'\"][^,%]*+|)\s*+(,|%|$)", re.S)
_STATE = re.compile(rf"\s*+({_QUOTED}|[^\s,%}}'\"][^,%}}]*+)\s*+(,|}}\s*+(?:%|$))", re.S)
_ESCAPE = re.compile(r"\\(.)", re.S)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


Declared = tuple[str, ...] | Kind | None
"""What is declared of an attribute: states, "numeric", or None for a string."""


class _BadLineError(Exception):
    """Reason why a line, that at hand if no other is given, cannot be read."""


def source_of_arff(text: str, path: str) -> Source:
    """Rows of an ARFF text; `path` serves error messages only."""
    declared: dict[str, Declared] = {}
    rows: list[list[str | None]] = []
    lines: list[int] = []
    in_data, line = False, None
    try:
        for line, raw in enumerate(io.StringIO(text, newline=None), start=1):
            content = raw.strip()
            if not content or content.startswith("%"):
                continue
            if in_data:
                reason = "quotes do not match, or the row is sparse or has a weight"
                row = _split(_VALUE, content, reason)
                if len(row) != len(declared):
                    raise _BadLineError(f"expected {len(declared)} values, got {len(row)}")
                rows.append([None if t.strip() in ("?", "") else _unquote(t) for t in row])
                lines.append(line)
            else:
                in_data = _parse_declaration(content, declared)
        if not rows:
            line = None
            start = "there are no rows after @data" if in_data else "there is no @data line"
            raise _BadLineError(start)
        table = _build_table(declared, rows, lines)
    except _BadLineError as error:
        reason, *place = error.args
        raise format_error(path, place[0] if place else line, reason) from None
    kinds: dict[str, Kind] = {n: "numeric" for n, kind in declared.items() if kind == "numeric"}
    return replace(source_of_table(table), origin=path, kinds=kinds, line_of=lines.__getitem__)


def _build_table(
    declared: dict[str, Declared], rows: Sequence[list[str | None]], lines: Sequence[int]
) -> pa.Table:
    """Fields as texts, nominal ones as dictionaries of their declared states."""
    columns = {}
    for (name, kind), texts in zip(declared.items(), zip(*rows, strict=True), strict=True):
        column = pa.array(texts, pa.large_string())
        if kind == "numeric":
            numbers = numbers_of_fields(column)
            column = column if numbers is None else pa.array(numbers)  # a text is refused later
        elif kind:
            states = pa.array(kind, pa.large_string())
            codes = pc.index_in(column, states)
            if codes.null_count > column.null_count:
                row = pc.and_(codes.is_null(), column.is_valid()).index(True).as_py()
                reason = f"{texts[row]!r} is not a declared state of {name!r}"
                raise _BadLineError(reason, lines[row])
            column = pa.DictionaryArray.from_arrays(codes, states, ordered=True)
        columns[name] = column
    return pa.table(columns)


def _parse_declaration(content: str, declared: dict[str, Declared]) -> bool:
    """Add the attribute a header line declares; true when the line opens the data."""
    keyword = content.split(maxsplit=1)[0].lower()
    if keyword == "@data":
        if not declared:
            raise _BadLineError("@data comes before any @attribute")
        return True
    if keyword == "@attribute":
        match = _ATTRIBUTE.fullmatch(content)
        if match is None:
            raise _BadLineError("expected @attribute, a name and a type; is a quote not closed?")
        name = _unquote(match[1])
        try:
            check_distinct_names([*declared, name])
        except InputError as error:
            raise _BadLineError(str(error)) from None
        declared[name] = _parse_type(name, match[2])
    elif keyword != "@relation":
        raise _BadLineError(f"expected @relation, @attribute or @data, got {content[:40]!r}")
    return False


def _parse_type(name: str, text: str) -> Declared:
    if text.startswith("{"):
        states = [_unquote(t) for t in _split(_STATE, text[1:], "the list of states is malformed")]
        if len(set(states)) < len(states):
            raise _BadLineError("a state is declared twice")
        return tuple(states)
    kind = text.partition("%")[0].strip().lower()
    if kind not in ("numeric", "real", "integer", "string"):
        raise _BadLineError(
            f"attribute {name!r} must be numeric, real, integer, string or {{states}}, "
            f"got {kind!r}; convert it with Weka, or write a CSV file"
        )
    return None if kind == "string" else "numeric"


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
