"""Numbers as people write them: ``$1,234.50``, ``12.5 %``, ``1.234,50 €``, ``80 kg``, ``(3.20)``.

A column of such texts is a measurement, not a list of names. It is kept as a categorical column of
the texts as written, like dates (``dates.py``), so that files, data frames and arrays look alike;
:func:`as_amounts` makes the numbers. There are two kinds:

- ``"amount"``: the decimal sign is a point, thousands are set apart by commas;
- ``"decimal-comma"``: the other way round, as in most of Europe.

A sign of currency may stand before or after the number, a unit or per cent sign after it: it must
be the same in the whole column, for kilograms and pounds do not compare. ``k``, ``M`` and ``B``
multiply. Brackets mean below zero, as accountants write. Per
cents count as written (12.5). A number with a leading zero is a code, and no amount.

Texts that both kinds can read (``1,234``) are amounts, unless another text of the column says
otherwise (``950,5``); of the kind that a column had in training all later ones are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, TypeGuard, get_args

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column, Kind, Scalar, WantedKind, is_code_like, parse_number
from marginbn.exceptions import InputError

AmountKind: TypeAlias = Literal["amount", "decimal-comma"]

MOST_WORDS = 0.05
"""Share of the values that may be words, such as "unknown": they count as missing."""

MOST_DIFFERENT_WORDS = 5
"""And how many of them at most: more are a list of names."""

_SPACE = " \u00a0\u202f\u2009"
_WHOLE = {
    "amount": rf"\d{{1,3}}(?:,\d{{3}})+|\d{{1,3}}(?:['’{_SPACE}]\d{{3}})+|\d+",
    "decimal-comma": rf"\d{{1,3}}(?:\.\d{{3}})+|\d{{1,3}}(?:['’{_SPACE}]\d{{3}})+|\d+",
}
_DECIMAL = {"amount": ".", "decimal-comma": ","}
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|BRL|SEK|NOK|DKK|PLN|CZK|Rs\\.?"
_UNIT = r"[^\W\d_][^\W_]*(?:[ ./-]?[^\W\d_][^\W_]*){0,2}"
_MULTIPLIERS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "bn": 1e9}  # m is for metres
_GLANCE = 100  # texts looked at first: names betray themselves here


def _pattern(kind: str) -> re.Pattern[str]:
    decimal = re.escape(_DECIMAL[kind])
    return re.compile(
        r"(?P<bracket>\()?\s*(?P<sign>[-+\u2212])?\s*"
        rf"(?P<before>[^\W\d_]{{0,3}}[\S]|{_CODES})??\s*(?P<minus>[-\u2212])?\s*"
        rf"(?P<whole>{_WHOLE[kind]})?(?P<fraction>{decimal}\d+|{decimal}(?=\D|$))?"
        rf"(?P<power>[eE][-+]?\d{{1,3}})?"
        rf"\s*(?P<after>{_UNIT}|[^\s)]{_UNIT}|[^\s)])?\s*(?P<closed>\))?"
    )


_PATTERNS = {kind: _pattern(kind) for kind in _DECIMAL}


class _Amount(NamedTuple):
    number: float
    before: str
    after: str


def read_as(kind: WantedKind | None) -> Kind | None:
    """The kind that a column is read as, None where it is inferred; all but numbers are texts."""
    return kind if kind is None or kind == "numeric" else "categorical"


def is_amount_kind(kind: object) -> TypeGuard[AmountKind]:
    """Whether a kind is one of the two."""
    return kind in get_args(AmountKind)


def _parse(text: str, kind: AmountKind) -> _Amount | None:
    """The number in a text with what stands before and after it; None if it is none."""
    found = _PATTERNS[kind].fullmatch(text.strip())
    if found is None or bool(found["bracket"]) != bool(found["closed"]):
        return None
    whole, fraction = found["whole"] or "", found["fraction"] or ""
    digits = "".join(c for c in whole if c.isdigit())
    is_code = len(digits) > 1 and digits.startswith("0")
    if is_code or not (digits or len(fraction) > 1) or not (digits + fraction).isascii():
        return None
    before, after = found["before"] or "", found["after"] or ""
    if not _is_currency(before) or (after and not _is_unit(after)):
        return None
    number = float(f"{digits or '0'}.{fraction[1:] or '0'}{found['power'] or ''}")
    if after in _MULTIPLIERS:
        number, after = number * _MULTIPLIERS[after], ""
    signs = sum(part in ("-", "\u2212") for part in (found["sign"], found["minus"]))
    below = signs + bool(found["bracket"])
    if below > 1 or not np.isfinite(number):
        return None
    return _Amount(-number if below else number, before.strip(), after.strip())


def _is_currency(text: str) -> bool:
    """Nothing, a sign of currency with at most three letters before it, or a known code."""
    if not text or re.fullmatch(_CODES, text):
        return True
    return unicodedata.category(text[-1]) == "Sc" and (len(text) == 1 or text[:-1].isalpha())


def _is_unit(text: str) -> bool:
    """A word, per cent, a plus for "at least", degrees, or a sign of currency."""
    return text[0].isalpha() or text[0] in "%‰+°" or unicodedata.category(text[0]) == "Sc"


def _numbers(texts: Sequence[str], kind: AmountKind) -> list[float | None]:
    """The number of every text, None where it is none; all None if units differ."""
    found = [_parse(text, kind) for text in texts]
    amounts = [amount for amount in found if amount is not None]
    before = {amount.before.casefold() for amount in amounts} - {""}
    after = {amount.after.casefold() for amount in amounts} - {""}
    if len(before) > 1 or len({unit.removesuffix("s") for unit in after}) > 1:
        return [None] * len(texts)
    return [None if amount is None else amount.number for amount in found]


def find_amounts(
    column: Column, counts: NDArray[np.integer] | None = None
) -> tuple[AmountKind, tuple[str, ...]] | None:
    """The kind of a column of texts that are amounts, and the few words among them, if any;
    ``counts`` are the rows of every category, if the column does not hold them all.

    None for plain numbers as text, which may well be codes, and where the numbers are so few that
    they would count as codes too.

    Examples
    --------
    >>> texts = [f"${1000 + i:,}.50" for i in range(30)] + ["unknown"]
    >>> find_amounts(Column.categorical("income", np.arange(31), texts))
    ('amount', ('unknown',))
    """
    counts = column.counts if counts is None else counts
    seen = [(c, n) for c, n in zip(column.categories, counts.tolist(), strict=True) if n]
    texts = [c for c, _ in seen if isinstance(c, str)]
    if not texts or len(texts) < len(seen) or all(parse_number(t) is not None for t in texts):
        return None
    best: tuple[AmountKind, tuple[str, ...]] | None = None
    for kind in get_args(AmountKind):
        glance = [_parse(text, kind) for text in texts[:_GLANCE]]
        if 2 * glance.count(None) > max(len(glance), 2 * MOST_DIFFERENT_WORDS):
            continue
        numbers = _numbers(texts, kind)
        words = [text for text, number in zip(texts, numbers, strict=True) if number is None]
        n_words = sum(n for (_, n), number in zip(seen, numbers, strict=True) if number is None)
        if len(words) > MOST_DIFFERENT_WORDS or n_words > MOST_WORDS * counts.sum():
            continue
        values = np.array([number for number in numbers if number is not None])
        if len(values) == 0 or is_code_like(values):
            continue
        if best is None or len(words) < len(best[1]):
            best = kind, tuple(words)
    return best


def as_amounts(column: Column, kind: AmountKind, words: Sequence[str] = ()) -> Column:
    """The numbers of a column of texts; `words` are missing, other texts are refused.

    Examples
    --------
    >>> prices = Column.categorical("price", [0, 1, 2, -1], ["1.234,50 €", "80 €", "sold"])
    >>> as_amounts(prices, "decimal-comma", ["sold"]).numbers.tolist()
    [1234.5, 80.0, nan, nan]
    """
    if column.kind == "numeric":
        return column
    values = np.full(len(column.categories) + 1, np.nan)  # the last is what code -1 points to
    texts = [i for i, c in enumerate(column.categories) if isinstance(c, str)]
    numbers = _numbers([str(column.categories[i]) for i in texts], kind)
    values[texts] = [np.nan if number is None else number for number in numbers]
    plain = [i for i, c in enumerate(column.categories) if not isinstance(c, str)]
    values[plain] = [float(column.categories[i]) for i in plain]
    _refuse_words(column, kind, values, frozenset(words))
    return Column.numeric(column.name, values[column.codes])


def _refuse_words(
    column: Column, kind: AmountKind, values: NDArray[np.float64], words: frozenset[Scalar]
) -> None:
    is_bad = np.isnan(values)
    is_bad[-1] = False
    is_bad[[i for i, c in enumerate(column.categories) if c in words]] = False
    rows = np.flatnonzero(is_bad[column.codes])
    if len(rows):
        example = "1,234.50" if kind == "amount" else "1.234,50"
        raise InputError(
            f"column {column.name!r} is of kind {kind!r}, but row {rows[0]} (the first row is 0) "
            f"holds {column.categories[column.codes[rows[0]]]!r}; write amounts as in {example}, "
            "with one unit or currency in the whole column, and leave what is missing empty"
        )
