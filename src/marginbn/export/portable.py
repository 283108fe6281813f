r"""Networks under names that other programs read, and the way back.

A column may be called anything and have states such as ``(2.45, 4.75]``. Other readers of BIF
accept less: pgmpy and pyAgrum want plain identifiers, each has words of its own that a name must
not be (or hold), pgmpy does not tell ``Age`` from ``age``, and pyAgrum refuses variables with one
state. So a network is written as a *portable* one:

- names and states become identifiers of ASCII letters, digits and ``_``, the nearest that are
  unique: ``petal length (cm)`` is ``petal_length_cm``, ``(2.45, 4.75]`` is ``from_2_45_to_4_75``;
- a variable with one state gets a second one of probability zero, ``never``. The children's rows
  for it, which can never matter, repeat those of the first state.

A comment line per changed variable keeps what it was called::

    // name: ["petal_length_cm", "petal length (cm)", ["<= 2.45", "> 2.45"]]

From these lines our own reader restores names and states exactly; others skip them. Keywords and
slashes have an escaped letter there, so that no reader mistakes a comment for a declaration. If
another program has rewritten the file, the lines are gone and the identifiers stay.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from marginbn.data.text_files import format_error
from marginbn.exceptions import FormatError, InputError
from marginbn.files import shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable

NEVER = "never"
"""The second state of a variable that has only one."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_MAX_LENGTH = 60
"""Characters of a name, at most; of longer ones the beginning is kept."""

KEYWORDS = frozenset(
    {"network", "variable", "probability", "property", "type", "discrete", "table", "default"}
)
"""Words of BIF that cannot be names."""

# pgmpy's reader takes "table1" and "default5" for the start of a row of numbers.
_MISREAD = re.compile(r"(?:table|default)(?=[0-9eE])")

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_WORDS_IN_COMMENTS = re.compile("network|variable|probability|/")


@dataclass(frozen=True)
class OwnNames:
    """What a variable of a portable network is really called; one state if ``NEVER`` was added."""

    identifier: str
    name: str
    states: tuple[str, ...]


def to_portable(network: BayesianNetwork) -> tuple[BayesianNetwork, tuple[OwnNames, ...]]:
    """The network under portable names, and the names that were changed."""
    names = unique_identifiers(network.names, "v", ignore_case=True)
    states = []
    for variable in network.variables:
        padded = (*variable.states, NEVER) if variable.arity == 1 else variable.states
        kept = unique_identifiers(padded, "s", is_kept=lambda text: bool(_WHOLE.fullmatch(text)))
        states.append(tuple(kept))
    variables = tuple(Variable(n, s) for n, s in zip(names, states, strict=True))
    tables = []
    for i, parents in enumerate(network.structure.parents):
        table = network.log_tables[i]
        for axis, parent in enumerate(parents):
            if network.arities[parent] == 1:
                table = np.repeat(table, 2, axis=axis)
        if network.arities[i] == 1:
            table = np.concatenate([table, np.full_like(table, -np.inf)], axis=-1)
        tables.append(table)
    pairs = zip(variables, network.variables, strict=True)
    changed = tuple(OwnNames(new.name, v.name, v.states) for new, v in pairs if new != v)
    return BayesianNetwork(network.structure, variables, tuple(tables)), changed


def unique_identifiers(
    texts: Sequence[str],
    prefix: str,
    *,
    ignore_case: bool = False,
    is_kept: Callable[[str], bool] = lambda _: False,
) -> list[str]:
    """An identifier for every text, the text itself wherever that is one.

    Examples
    --------
    >>> unique_identifiers(["age", "Age (years)", "table", "(-0.5, 2]"], "s")
    ['age', 'Age_years', 'table_', 'from_minus_0_5_to_2']
    """
    key = str.lower if ignore_case else str
    result: dict[int, str] = {}
    used: set[str] = set()
    for i, text in enumerate(texts):
        if (is_kept(text) or _is_safe(text)) and key(text) not in used:
            result[i] = text
            used.add(key(text))
    suffixes: dict[str, int] = {}
    for i, text in enumerate(texts):
        if i in result:
            continue
        wanted = _nearest_identifier(text, prefix) or f"{prefix}{i}"
        found = wanted
        while key(found) in used:
            suffixes[wanted] = suffixes.get(wanted, 1) + 1
            found = f"{wanted}_{suffixes[wanted]}"
        result[i] = found
        used.add(key(found))
    return [result[i] for i in range(len(texts))]


def _is_safe(text: str) -> bool:
    if len(text) > _MAX_LENGTH or not _IDENTIFIER.fullmatch(text):
        return False
    return text.lower() not in KEYWORDS and not _MISREAD.search(text)


def _nearest_identifier(text: str, prefix: str) -> str:
    """What a reader recognises, or nothing if no letter or digit can be kept."""
    text = unicodedata.normalize("NFKD", text[: 4 * _MAX_LENGTH])
    text = re.sub(r"^\((.+), (.+)\]$", r"from \1 to \2", text)
    for sign, word in (("<=", "le"), (">=", "ge"), ("<", "lt"), (">", "gt")):
        text = text.replace(sign, f" {word} ")
    text = re.sub(r"(?<![0-9A-Za-z])-(?=[0-9.])", " minus ", text)
    text = text.encode("ascii", "ignore").decode()
    text = re.sub(r"[^A-Za-z0-9]+", "_", text)[:_MAX_LENGTH].strip("_")
    text = _MISREAD.sub(lambda match: f"{match[0]}_", text)
    if text.lower() in KEYWORDS:
        text += "_"
    return f"{prefix}_{text}" if text[:1].isdigit() else text


def name_comments(changed: Iterable[OwnNames]) -> list[str]:
    """Lines that keep the names."""
    return [f"// name: {_hide_words(own)}" for own in changed]


def _hide_words(own: OwnNames) -> str:
    """The names as JSON in which no word is one that a reader could look for."""
    for text in (own.name, *own.states):
        if _HALF_PAIR.search(text):
            raise InputError(f"cannot write the name {text!r}: half a surrogate pair is no text")
    record = json.dumps([own.identifier, own.name, own.states])
    return _WORDS_IN_COMMENTS.sub(lambda match: f"\\u{ord(match[0][0]):04x}{match[0][1:]}", record)


def read_name_comments(text: str, path: str) -> tuple[OwnNames, ...]:
    """The names that a file keeps in its comments; none in files of other programs."""
    found = []
    for match in re.finditer(r"^// name: (\[.*)$", text, re.MULTILINE):
        try:
            own = _parse_names(match[1])
        except (ValueError, RecursionError):
            line = text.count("\n", 0, match.start()) + 1
            reason = "the comment must hold an identifier, a name and a list of states as JSON"
            raise format_error(path, line, f"{reason}; delete it if it is not needed") from None
        found.append(own)
    return tuple(found)


def _parse_names(text: str) -> OwnNames:
    values = json.loads(text)
    identifier, name, states = values
    if not (isinstance(states, list) and all(isinstance(s, str) for s in (identifier, name))):
        raise ValueError
    if not all(isinstance(state, str) for state in states):
        raise ValueError
    if any(_HALF_PAIR.search(text) for text in (name, *states)):
        raise ValueError
    return OwnNames(identifier, name, tuple(states))


def restore_names(
    network: BayesianNetwork, changed: Iterable[OwnNames], path: str
) -> BayesianNetwork:
    """The network under its own names; what comments say must fit it."""
    own = {names.identifier: names for names in changed}
    if not own:
        return network
    unknown = own.keys() - set(network.names)
    if unknown:
        raise _misfit(path, min(unknown), "is not declared")
    variables, padded = [], set()
    for i, variable in enumerate(network.variables):
        names = own.get(variable.name, OwnNames(variable.name, variable.name, variable.states))
        if len(names.states) == 1 < variable.arity:
            _check_never(network, i, path)
            padded.add(i)
        elif len(names.states) != variable.arity:
            reason = f"has {variable.arity} states, not {len(names.states)}"
            raise _misfit(path, variable.name, reason)
        variables.append(Variable(names.name, names.states))
    tables = []
    for i, parents in enumerate(network.structure.parents):
        wanted = tuple(slice(1) if v in padded else slice(None) for v in (*parents, i))
        tables.append(network.log_tables[i][wanted])
    try:
        return BayesianNetwork(network.structure, tuple(variables), tuple(tables))
    except InputError as error:  # names or states that are not unique
        raise format_error(path, None, f"in its comments: {error}") from None


def _check_never(network: BayesianNetwork, i: int, path: str) -> None:
    if not np.isneginf(network.log_tables[i][..., 1:]).all():
        reason = "has a single state by the comments, but a second state has a probability"
        raise _misfit(path, network.names[i], reason)


def _misfit(path: str, identifier: str, reason: str) -> FormatError:
    remedy = "delete the comments with names if they belong to another network"
    return format_error(path, None, f"variable {shorten(identifier)} {reason}; {remedy}")
