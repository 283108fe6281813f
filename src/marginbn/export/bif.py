"""BIF, the interchange format: read and written as text.

::

    network unknown {
    }
    variable rain { type discrete [ 2 ] { no, yes }; }
    variable wet_grass { type discrete [ 2 ] { dry, wet }; }
    probability ( rain ) { table 0.8, 0.2; }
    probability ( wet_grass | rain ) {
      ( no ) 0.9, 0.1;
      ( yes ) 0.25, 0.75;
    }
    // name: ["wet_grass", "wet grass", ["dry", "wet"]]

The reader also accepts names in quotes, rows in any order, a ``default`` row for the others,
``table`` with parents (the child's states run slowest), commas or spaces between names and numbers,
names with spaces without quotes, properties, comments, and rounded rows (see
:mod:`marginbn.export.assembly`). The first variable is the class.

**Portable names.** A column may be called anything and have states such as ``(2.45, 4.75]``. Other
readers accept less: pgmpy and pyAgrum want plain identifiers and refuse some words, pgmpy does not
tell ``Age`` from ``age``, pyAgrum refuses variables with one state. So a network is written with
names that all of them read:

- names and states become the nearest unique identifiers of ASCII letters, digits and ``_``:
  ``petal length (cm)`` is ``petal_length_cm``, ``(2.45, 4.75]`` is ``from_2_45_to_4_75``;
- a variable with one state gets a second one of probability zero, ``never``. The children's rows
  for it repeat those of the first state.

A comment per changed variable at the end keeps the real names and states for our reader. Keywords
and slashes have an escaped letter there, so that no reader mistakes a comment for a declaration.
"""

from __future__ import annotations

import json
import math
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from marginbn.data.text_files import format_error
from marginbn.exceptions import FormatError, InputError
from marginbn.export.assembly import Assembly, to_probabilities, write_row
from marginbn.export.scanner import Scanner, Word, read_text
from marginbn.files import MisfitError, PathLike, decode, shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.array_types import FloatArray
from marginbn.problem.encoded import Variable

MAX_DEFAULT_CELLS = 2**22
"""Cells that ``default`` rows may fill in one file: a short file must not fill the memory."""

NEVER = "never"
"""The second state of a variable that has only one."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE = re.compile(r"discrete\s*\[\s*([^\s\]]*)\s*\]\s*")
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


def network_to_bif(network: BayesianNetwork) -> str:
    """BIF text of a network; :func:`network_from_bif` is the inverse."""
    network, changed = to_portable(network)
    lines = ["network unknown {", "}"]
    for variable in network.variables:
        states = ", ".join(variable.states)
        lines.append(f"variable {variable.name} {{")
        lines += [f"  type discrete [ {variable.arity} ] {{ {states} }};", "}"]
    for i, parents in enumerate(network.structure.parents):
        own = [network.variables[p] for p in parents]
        given = f" | {', '.join(p.name for p in own)}" if own else ""
        lines.append(f"probability ( {network.names[i]}{given} ) {{")
        rows = to_probabilities(network.log_tables[i]).reshape(-1, network.arities[i])
        for labels, row in zip(product(*(p.states for p in own)), rows, strict=True):
            start = f"( {', '.join(labels)} )" if own else "table"
            lines.append(f"  {start} {write_row(row)};")
        lines.append("}")
    return "\n".join([*lines, *_name_comments(changed), ""])


def load_bif(path: PathLike) -> BayesianNetwork:
    """Read a network from a file."""
    return network_from_bif(read_text(path), os.fspath(path))


def network_from_bif(text: str, path: str = "BIF text") -> BayesianNetwork:
    """Read a network; a :class:`FormatError` names ``path``, line and reason."""
    network = _BifReader(text, path).read()
    return _restore_names(network, _read_name_comments(text, path), path)


class _BifReader(Scanner):
    """Variables first; their tables are read when all names are known."""

    def read(self) -> BayesianNetwork:
        declared, tables = [], []
        while self.peek():
            start, keyword = self.pos, self.keyword()
            if keyword == "variable":
                declared.append(self._variable())
                continue
            if keyword == "probability":
                tables.append((start, self.pos))
            elif keyword != "network":
                reason = f"expected network, variable or probability, got {shorten(keyword)}"
                raise self.error(reason, start)
            self.skip("{")
            self.skip("}")
        self.assembly = Assembly(self.path, declared)
        self.states = [
            {state: code for code, state in enumerate(v.states)} for v in self.assembly.variables
        ]
        self.default_cells = 0
        for start, self.pos in tables:
            line = self.line(start)
            members = self._members(start)
            child, *parents = [self.assembly.find(w.text, self.line(w.start)) for w in members]
            shape = self.assembly.shape((*parents, child), line)
            self.assembly.add((*parents, child), self._values(parents, shape, start), line)
        return self.assembly.build()

    def _variable(self) -> tuple[Variable, int]:
        (group,), _ = self.names("{", "")
        if not group:
            raise self.error("a variable must have a name")
        name = self.joined(group)
        states: tuple[str, ...] = ()
        while not self.accept("}"):
            if self.keyword() == "type":
                states = self._states(name.text)
            else:
                self.skip(";")
        return Variable(name.text, states), self.line(name.start)

    def _states(self, name: str) -> tuple[str, ...]:
        self.peek()
        start = self.pos
        self.skip("{")
        match = _TYPE.fullmatch(self._text, start, self.pos - 1)
        if match is None:
            wanted = "must be discrete, as in: type discrete [ 2 ] { a, b };"
            raise self.error(f"variable {shorten(name)} {wanted}", start)
        start, count = self.pos, match[1]
        names = self._names(self.names("}")[0], count)
        self.accept(";")
        if str(len(names)) != count:
            reason = (
                f"variable {shorten(name)} is to have {shorten(count)} states, but "
                f"{len(names)} are listed; a name with commas needs quotes"
            )
            raise self.error(reason, start)
        return tuple(n.text for n in names)

    def _names(self, groups: list[list[Word]], count: str = "") -> list[Word]:
        """Names between commas; without commas, between spaces if that gives ``count`` of them."""
        if len(groups) == 1 and (str(len(groups[0])) == count or not groups[0]):
            return groups[0]
        if not groups[-1]:
            groups = groups[:-1]  # a comma after the last one
        if not all(groups):
            raise self.error("there is no name between two commas")
        return [self.joined(group) for group in groups]

    def _members(self, start: int) -> list[Word]:
        """Child and parents; the oldest files list them all without a bar."""
        if not self.accept("("):
            raise self.error("expected '(' and the name of a variable")
        groups, stop = self.names(")|")
        members = self._split(groups)
        if not members or (stop == "|" and len(members) > 1):
            raise self.error("a probability must be of one variable", start)
        return members if stop == ")" else members + self._split(self.names(")")[0])

    def _split(self, groups: list[list[Word]]) -> list[Word]:
        """Names between commas; without commas, one declared name with spaces, or several."""
        if len(groups) > 1 or not groups[0]:
            return self._names(groups)
        whole = self.joined(groups[0])
        return [whole] if whole.text in self.assembly.index else groups[0]

    def _values(self, parents: Sequence[int], shape: tuple[int, ...], start: int) -> FloatArray:
        """Probabilities, the child's states last."""
        rows: dict[int, FloatArray] = {}
        table = default = None
        self.skip("{")
        while not self.accept("}"):
            entry = self.pos
            if self.accept("("):
                code = self._row_code(self._names(self.names(")")[0]), parents, entry)
                if code in rows:
                    raise self.error("a row is listed twice", entry)
                rows[code] = self._numbers(shape[-1], entry)
                continue
            keyword = self.keyword()
            if keyword == "table" and table is None:
                table = self._numbers(math.prod(shape), entry)
            elif keyword == "default" and default is None:
                default = self._numbers(shape[-1], entry)
            elif keyword == "property":
                self.skip(";")
            else:
                reason = f"expected one table, one default or a row, got {shorten(keyword)}"
                raise self.error(reason, entry)
        if table is None:
            return self._from_rows(rows, default, shape, start)
        if rows or default is not None:
            raise self.error("give either a table or rows, not both", start)
        return np.moveaxis(table.reshape(shape[-1], *shape[:-1]), 0, -1)

    def _numbers(self, count: int, start: int) -> FloatArray:
        values = self.numbers(";")
        if len(values) != count:
            raise self.error(f"expected {count} numbers, got {len(values)}", start)
        return values

    def _row_code(self, labels: list[Word], parents: Sequence[int], start: int) -> int:
        """Flat index of the parents' states that a row is for."""
        if len(labels) != len(parents):
            raise self.error(f"the row must name {len(parents)} states, got {len(labels)}", start)
        code = 0
        for label, parent in zip(labels, parents, strict=True):
            states = self.states[parent]
            if label.text not in states:
                name = self.assembly.variables[parent].name
                reason = f"{shorten(label.text)} is no state of {shorten(name)}"
                raise self.error(reason, label.start)
            code = code * len(states) + states[label.text]
        return code

    def _from_rows(
        self,
        rows: dict[int, FloatArray],
        default: FloatArray | None,
        shape: tuple[int, ...],
        start: int,
    ) -> FloatArray:
        """The listed rows, and the default for the others."""
        n_rows = math.prod(shape[:-1])
        missing = n_rows - len(rows)
        if missing and default is None:
            reason = f"{missing} of the {n_rows} rows are missing and there is no default"
            raise self.error(reason, start)
        self.default_cells += missing * shape[-1]
        if self.default_cells > MAX_DEFAULT_CELLS:
            raise self.error(f"default rows fill more than {MAX_DEFAULT_CELLS} cells", start)
        values = np.empty((n_rows, shape[-1]))
        if default is not None:
            values[:] = default
        for code, row in rows.items():
            values[code] = row
        return values.reshape(shape)


def to_portable(network: BayesianNetwork) -> tuple[BayesianNetwork, dict[str, Variable]]:
    """The network under portable names, and by these names the variables that were changed."""
    variables = []
    for name, own in zip(unique_identifiers(network.names, "v"), network.variables, strict=True):
        padded = (*own.states, NEVER) if own.arity == 1 else own.states
        variables.append(Variable(name, tuple(unique_identifiers(padded, "s"))))
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
    changed = {new.name: own for new, own in pairs if new != own}
    return BayesianNetwork(network.structure, tuple(variables), tuple(tables)), changed


def unique_identifiers(texts: Sequence[str], prefix: str) -> list[str]:
    """An identifier for every text, the text itself wherever that is one.

    The prefix is that of variables (``v``), which must differ in more than case, or of states
    (``s``), which may be whole numbers.

    Examples
    --------
    >>> unique_identifiers(["age", "Age (years)", "table", "(-0.5, 2]"], "s")
    ['age', 'Age_years', 'table_', 'from_minus_0_5_to_2']
    """
    of_states = prefix == "s"
    key = str if of_states else str.lower
    result: dict[int, str] = {}
    used: set[str] = set()
    for i, text in enumerate(texts):
        is_short = len(text) <= _MAX_LENGTH and _IDENTIFIER.fullmatch(text) is not None
        is_safe = is_short and text.lower() not in KEYWORDS and not _MISREAD.search(text)
        is_kept = is_safe or (of_states and _WHOLE.fullmatch(text))
        if is_kept and key(text) not in used:
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


def _name_comments(changed: Mapping[str, Variable]) -> list[str]:
    """Lines with the names as JSON, in which no word is one that a reader could look for."""
    lines = []
    for identifier, variable in changed.items():
        if _HALF_PAIR.search("".join((variable.name, *variable.states))):
            raise InputError(f"cannot write {shorten(variable)}: half a surrogate pair is no text")
        record = json.dumps([identifier, variable.name, variable.states])
        hidden = _WORDS_IN_COMMENTS.sub(lambda m: f"\\u{ord(m[0][0]):04x}{m[0][1:]}", record)
        lines.append(f"// name: {hidden}")
    return lines


def _read_name_comments(text: str, path: str) -> dict[str, Variable]:
    """The names that a file keeps in its comments; none in files of other programs."""
    found = {}
    for match in re.finditer(r"^// name: (\[.*)$", text, re.MULTILINE):
        try:
            content = match[1].encode(errors="surrogatepass")
            identifier, name, states = decode(content, tuple[str, str, tuple[str, ...]])
        except (MisfitError, RecursionError):
            line = text.count("\n", 0, match.start()) + 1
            reason = "the comment must hold an identifier, a name and a list of states as JSON"
            raise format_error(path, line, f"{reason}; delete it if it is not needed") from None
        found[identifier] = Variable(name, states)
    return found


def _restore_names(
    network: BayesianNetwork, changed: Mapping[str, Variable], path: str
) -> BayesianNetwork:
    """The network under its own names; what comments say must fit it."""
    if not changed:
        return network
    unknown = changed.keys() - set(network.names)
    if unknown:
        raise _misfit(path, min(unknown), "is not declared")
    variables = tuple(changed.get(v.name, v) for v in network.variables)
    padded = set()
    for i, (own, variable) in enumerate(zip(variables, network.variables, strict=True)):
        if own.arity == 1 < variable.arity:
            if not np.isneginf(network.log_tables[i][..., 1:]).all():
                reason = "has a single state by the comments, but a second state has a probability"
                raise _misfit(path, variable.name, reason)
            padded.add(i)
        elif own.arity != variable.arity:
            raise _misfit(path, variable.name, f"has {variable.arity} states, not {own.arity}")
    tables = []
    for i, parents in enumerate(network.structure.parents):
        wanted = tuple(slice(1) if v in padded else slice(None) for v in (*parents, i))
        tables.append(network.log_tables[i][wanted])
    try:
        return BayesianNetwork(network.structure, variables, tuple(tables))
    except InputError as error:  # names or states that are not unique
        raise format_error(path, None, f"in its comments: {error}") from None


def _misfit(path: str, identifier: str, reason: str) -> FormatError:
    remedy = "delete the comments with names if they belong to another network"
    return format_error(path, None, f"variable {shorten(identifier)} {reason}; {remedy}")
