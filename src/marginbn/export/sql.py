"""A classifier as one SQL query that needs nothing but CASE and EXP.

::

    WITH codes AS (SELECT ..., CASE WHEN "age" <= 30e0 THEN 0 ... END AS c0, ... FROM "data"),
    scores AS (SELECT ..., 0.5e0 + CASE c0 WHEN 0 THEN ... END + ... AS s1, ... FROM codes),
    shares AS (SELECT ..., 1e0 / (1e0 + EXP(s1)) AS p0, ... FROM scores)
    SELECT ..., CASE ... END AS "prediction", ... AS "P(yes)" FROM ...

It runs in SQLite, DuckDB, PostgreSQL and whatever else knows common table expressions. Numbers are
doubles: literals have an exponent, because without one DuckDB and PostgreSQL take them for
decimals. Missing is NULL. Where a value is asked for and missing, all answers are NULL
(:mod:`marginbn.export.score_model`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marginbn.exceptions import InputError
from marginbn.export.score_model import Feature, ScoreModel, Term
from marginbn.problem.array_types import FloatArray

_LARGEST_EXPONENT = 600.0
"""EXP of more than about 709 is no double any more."""


def to_sql(model: ScoreModel, table: str = "data", keep: Sequence[str] | None = None) -> str:
    """Text of the query.

    Parameters
    ----------
    model
        What to compute.
    table
        Name of the table with the features.
    keep
        Columns of it that the result has, too; by default the features that matter.
    """
    used = [model.features[i].name for i in model.used]
    kept = [quote_name(name) for name in (used if keep is None else keep)]
    answers = ["prediction", *(f"P({label})" for label in model.classes)]
    clash = {name.lower() for name in keep or ()} & {name.lower() for name in answers}
    if clash:
        raise InputError(f"keep must not name {min(clash)!r}, a column of the answer")
    codes = [f"{_code(model.features[i])} AS {_own('c', i)}" for i in model.used]
    scores = []
    for c, bias in enumerate(model.bias):
        parts = [number(bias), *(_look_up(term, term.table[..., c]) for term in model.terms)]
        scores.append("\n    + ".join(parts) + f" AS {_own('s', c + 1)}")
    shares = [f"{_softmax(model, c)} AS {_own('p', c)}" for c in range(model.n_classes)]
    final = [f"{_prediction(model)} AS {quote_name('prediction')}"]
    final += [f"{_own('p', c)} AS {quote_name(name)}" for c, name in enumerate(answers[1:])]
    steps = [
        f"marginbn_codes AS (\n{_select([*kept, *codes], quote_name(table))}\n)",
        f"marginbn_scores AS (\n{_select([*kept, *scores], 'marginbn_codes')}\n)",
        f"marginbn_shares AS (\n{_select([*kept, *shares], 'marginbn_scores')}\n)",
    ]
    notes = "".join(f"-- {note}\n" for note in model.notes)
    return f"{notes}WITH {', '.join(steps)}\n{_select([*kept, *final], 'marginbn_shares')}\n"


def _own(letter: str, number: int) -> str:
    """The name of a column of ours, which no table is likely to have."""
    return f'"marginbn_{letter}{number}"'


def _select(columns: Sequence[str], source: str) -> str:
    listed = ",\n  ".join(columns or ['1 AS "one"'])
    return f"SELECT\n  {listed}\nFROM {source}"


def quote_name(name: str) -> str:
    """A name of a table or column."""
    _refuse_nul(name)
    return '"' + name.replace('"', '""') + '"'


def quote_value(value: object) -> str:
    """A value as a literal; numbers that are no integers are doubles."""
    if isinstance(value, bool | np.bool_):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return number(float(value))
    text = str(value)
    _refuse_nul(text)
    return "'" + text.replace("'", "''") + "'"


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise InputError(f"SQL holds no NUL character, got the name {text[:40]!r}")


def number(value: float) -> str:
    """A double."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _code(feature: Feature) -> str:
    """The code of a value; NULL where a value is asked for."""
    name = quote_name(feature.name)
    cases = [f"WHEN {name} IS NULL THEN {_or_null(feature.missing_code)}"]
    if feature.coding.kind == "numeric":
        cuts = feature.coding.cuts
        cases += [f"WHEN {name} <= {number(cut)} THEN {code}" for code, cut in enumerate(cuts)]
        return _case(cases, str(len(cuts)))
    by_code: dict[int, list[str]] = {}
    for category, code in feature.category_codes.items():
        by_code.setdefault(code, []).append(quote_value(category))
    for code, values in by_code.items():
        test = f"= {values[0]}" if len(values) == 1 else f"IN ({', '.join(values)})"
        cases.append(f"WHEN {name} {test} THEN {code}")
    return _case(cases, _or_null(feature.unseen_code))


def _or_null(code: int | None) -> str:
    return "NULL" if code is None else str(code)


def _case(cases: Sequence[str], otherwise: str = "NULL") -> str:
    return f"CASE {' '.join(cases)} ELSE {otherwise} END"


def _look_up(term: Term, table: FloatArray, axis: int = 0) -> str:
    """Nested CASEs, one level per feature, in which each entry is written once."""
    if axis == len(term.members):
        return number(float(table))
    name, cases = _own("c", term.members[axis]), []
    for row in range(table.shape[0]):
        codes = np.flatnonzero(term.groups[axis] == row).tolist()
        if not codes:  # such as the row of missing values where they have no code
            continue
        if len(codes) == 1:
            condition = f"{name} = {codes[0]}"
        elif codes[-1] - codes[0] == len(codes) - 1:
            condition = f"{name} BETWEEN {codes[0]} AND {codes[-1]}"
        else:
            condition = f"{name} IN ({', '.join(map(str, codes))})"
        cases.append(f"WHEN {condition} THEN {_look_up(term, table[row], axis + 1)}")
    return _case(cases)


def _softmax(model: ScoreModel, c: int) -> str:
    """1 / sum of EXP(score of another class - own score), the exponents kept in range."""
    tables = (model.bias, *(term.table for term in model.terms))
    largest = sum(np.abs(table).max(initial=0.0) for table in tables)  # no score is larger
    others = ["1e0"]
    for d in range(model.n_classes):
        if d == c:
            continue
        other = _own("s", d) if d else "0e0"
        own = _own("s", c) if c else "0e0"
        exponent = f"{other} - {own}"
        if largest >= _LARGEST_EXPONENT / 2:
            most = number(_LARGEST_EXPONENT)
            exponent = (
                f"CASE WHEN {exponent} > {most} THEN {most} WHEN {exponent} < -{most} THEN -{most} "
                f"ELSE {exponent} END"
            )
        others.append(f"EXP({exponent})")
    return f"(1e0 / ({' + '.join(others)}))"


def _prediction(model: ScoreModel) -> str:
    """The most probable class, the first of equals; NULL without an answer."""
    cases = [f"WHEN {_own('p', 0)} IS NULL THEN NULL"]
    shares = [_own("p", c) for c in range(model.n_classes)]
    for c in range(model.n_classes - 1):
        largest = " AND ".join(f"{shares[c]} >= {other}" for other in shares[c + 1 :])
        cases.append(f"WHEN {largest} THEN {quote_value(model.classes[c])}")
    return _case(cases, quote_value(model.classes[-1]))
