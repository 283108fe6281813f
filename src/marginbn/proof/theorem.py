"""What a certificate proves in words, and compared with what somebody wants to be proved.

A certificate carries its own problem: score, rows, candidates. A proof about one listed structure
or a smaller gamma is a proof too. So the statement is read off the certificate, and it can be given
from outside: every field of a :class:`Statement` that is not None must be met. In a file it is a
JSON object with these fields as keys (:meth:`Statement.read`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from marginbn.files import MisfitError, decode, shorten
from marginbn.proof.certificate import Certificate, Data, refuse_repeated_keys

NamedArcs = tuple[tuple[str, str], ...]
NamedParents = tuple[tuple[str, tuple[str, ...]], ...]

SAME_NUMBER = 1e-12
"""Relative difference of two numbers that mean the same, as log 9 and log(0.9 / 0.1) do."""

MOST_SHOWN = 8
"""Names that a sentence of the theorem lists; of more it tells how many."""

_RULE = ("max_parents", "class_restricted", "class_arcs", "required", "forbidden")

ASKED = ("objective", "gap", "coding", "left_out", "rows_left_out")
"""Fields that no certificate says of itself."""


@dataclass(frozen=True)
class Statement:
    """What is proved. None means: nothing is asked for, or nothing is there.

    Parameters
    ----------
    score
        ``multiclass`` or ``binary`` for soft margins, else ``mdl`` (also called BIC), ``aic``,
        ``loglik``, ``bdeu``, ``k2`` or, for the numbers of a score file, ``given``.
    gamma, smoothing, equivalent_sample_size
        Of a soft margin; of BDeu.
    target, classes, features
        Name and labels of the class, names of the features in order. Where the score treats all
        variables alike, ``features`` are all of them and there is no class.
    data
        SHA-256 of names, labels, rows and weights.
    distinct_rows, total_weight
        Rows that differ from one another, and the sum of all weights.
    max_parents, class_restricted
        The rule of the candidate parent sets: all sets of so many parents at most; if restricted,
        features have no parents or the class among them.
    class_arcs
        ``all`` where the class is a parent of every feature that is not constant and has no parents
        itself, else ``free``.
    listed
        Instead of a rule: the number of parent sets in a custom list.
    required, forbidden
        Arcs (parent, child) by name.
    constant
        Features that the rule leaves without parents and children for having one state.
    structure
        Every variable's name with the names of its parents.
    objective, gap
        Only asked for: a score that the structure may have by the proof, and the largest gap.
    coding
        Only asked for: how values become states, an entry as in a model file for every feature.
    left_out, rows_left_out
        Only asked for: columns and number of rows of the table that the proof is not about.

    Examples
    --------
    >>> from marginbn import Statement
    >>> wanted = Statement(score="multiclass", gamma=2.0, max_parents=2)
    >>> wanted.differences_of(Statement(score="multiclass", gamma=0.01, max_parents=2))
    ['gamma is 0.01, not 2.0']
    """

    score: str | None = None
    gamma: float | None = None
    smoothing: float | None = None
    equivalent_sample_size: float | None = None
    target: str | None = None
    classes: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    data: str | None = None
    distinct_rows: int | None = None
    total_weight: float | None = None
    max_parents: int | None = None
    class_restricted: bool | None = None
    class_arcs: str | None = None
    listed: int | None = None
    required: NamedArcs | None = None
    forbidden: NamedArcs | None = None
    constant: tuple[str, ...] | None = None
    structure: NamedParents | None = None
    objective: float | None = None
    gap: float | None = None
    coding: tuple[dict[str, Any], ...] | None = None
    left_out: tuple[str, ...] | None = None
    rows_left_out: int | None = None

    @classmethod
    def of(cls, certificate: Certificate) -> Statement:
        """The statement of a certificate, before anything about it is checked."""
        data, score, rule = certificate.data, certificate.score, certificate.candidates.rule
        has_class = score.is_margin or (rule is not None and rule.class_restricted)
        parents = zip(data.names, certificate.incumbent, strict=False)
        try:
            total = math.fsum(data.weights.tolist())
        except OverflowError:  # the checker refutes such weights
            total = math.inf
        found = cls(
            score=score.name,
            gamma=score.gamma if score.is_margin else None,
            smoothing=score.smoothing if score.is_margin else None,
            equivalent_sample_size=score.equivalent_sample_size if score.name == "bdeu" else None,
            target=data.names[0] if has_class else None,
            classes=data.states[0] if has_class else None,
            features=data.names[has_class:],
            data=certificate.fingerprint,
            distinct_rows=len(data.codes),
            total_weight=total,
            structure=tuple((name, _names(data, own)) for name, own in parents),
        )
        if rule is None:
            lists = data.scores or certificate.candidates.listed
            return replace(found, listed=sum(map(len, lists)))
        said: dict[str, Any] = {key: getattr(rule, key) for key in _RULE}
        for key in ("required", "forbidden"):
            said[key] = tuple(_names(data, arc) for arc in said[key])
        return replace(found, constant=_names(data, rule.constant), **said)

    @classmethod
    def read(cls, content: bytes) -> Self:
        """The statement of a file; p stands for gamma = log(p / (1 - p))."""
        found = decode(content, dict[str, Any], "statement")
        json.loads(content, object_pairs_hook=refuse_repeated_keys)
        p = found.pop("p", None)
        unknown = [key for key in found if key not in {f.name for f in fields(cls)}]
        if unknown:
            raise MisfitError(f"statement: there is no key {shorten(unknown[0])}")
        said: Self = decode(json.dumps(found).encode(), cls, "statement")
        if p is None:
            return said
        if said.gamma is not None or type(p) is not float or not 0.5 < p < 1.0:
            raise MisfitError("statement: p must lie between 0.5 and 1, and gamma must be absent")
        return replace(said, gamma=math.log(p / (1.0 - p)))

    def write(self) -> dict[str, Any]:
        """What is stated, as JSON values that :meth:`read` understands."""
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: value for name, value in pairs if value is not None}

    def differences_of(self, found: Statement) -> list[str]:
        """Where a statement that was found is not the one that is wanted here."""
        parts = [(name, part, getattr(found, name)) for name, part in self.write().items()]
        return [_difference(*own) for own in parts if own[0] not in ASKED and not _same(*own)]

    def unsaid_in(self, said: Statement) -> list[str]:
        """Settings of this statement that another one does not mention."""
        numbers = ("score", "gamma", "smoothing", "equivalent_sample_size")
        names = [n for n in (*numbers, "data", *_RULE) if getattr(self, n) is not None]
        return [name for name in names if getattr(said, name) is None]

    def unmet_by(self, objective: float, bound: float, gap: float) -> list[str]:
        """Where the proved numbers are not those that are wanted here."""
        told = []
        if self.objective is not None and not objective <= self.objective <= bound:
            told.append(
                f"the score of the structure lies between {objective!r} and {bound!r}, "
                f"it is not {self.objective!r}"
            )
        if self.gap is not None and not gap <= self.gap:
            told.append(f"the proved gap is {100 * gap:.2g} %, larger than {100 * self.gap:g} %")
        return told


def probability(gamma: float) -> float:
    """The posterior ratio p : 1 - p that gamma = log(p / (1 - p)) stands for."""
    return 1 / (1 + math.exp(-gamma)) if gamma > -700 else 0.0


def _names(data: Data, variables: Iterable[int]) -> tuple[str, ...]:
    """Names; a number that no variable has is shown, for the checker to refute."""
    n = len(data.names)
    return tuple(data.names[i] if 0 <= i < n else f"variable {i}?" for i in variables)


def _same(name: str, wanted: Any, found: Any) -> bool:
    if name in ("required", "forbidden", "constant"):
        return found is not None and set(wanted) == set(found)
    if name == "structure":
        own, other = ({v: frozenset(s) for v, s in structure} for structure in (wanted, found))
        return own == other
    if isinstance(wanted, float) and found is not None:
        return math.isclose(wanted, found, rel_tol=SAME_NUMBER)
    return bool(wanted == found)


_WORDS = {
    "data": "fingerprint of the data",
    "class_restricted": "class restriction (features without parents or with the class)",
    "required": "required arcs",
    "forbidden": "forbidden arcs",
}


def _difference(name: str, wanted: Any, found: Any) -> str:
    words = _WORDS.get(name, name.replace("_", " "))
    if found is None and name in _RULE:
        return f"the candidates are a custom list, {words} {wanted!r} was asked for"
    if found is None:
        return f"{words} is no part of the statement, {wanted!r} was asked for"
    if name == "structure":
        words, wanted, found = "the structure is another one", _arcs(wanted), _arcs(found)
    if isinstance(wanted, tuple):
        pairs = ((found, wanted, "not asked for"), (wanted, found, "missing"))
        lists = ((_texts(x for x in a if x not in b), what) for a, b, what in pairs)
        told = [f"{shown(texts)} {what}" for texts, what in lists if texts]
        return f"{words}: {'; '.join(told) or 'the order is another one'}"
    return f"{words} is {found!r}, not {wanted!r}"


def _arcs(structure: NamedParents) -> NamedArcs:
    return tuple((parent, name) for name, parents in structure for parent in parents)


def _texts(items: Iterable[Any]) -> list[str]:
    return [" -> ".join(item) if isinstance(item, tuple) else str(item) for item in items]


def shown(names: Sequence[str] | None) -> str:
    """The first names, and how many more there are."""
    names = names or ()
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(printable(name) for name in names[:MOST_SHOWN]) + more


def printable(name: str) -> str:
    """A name on one line: a certificate must not write lines of a verdict of its own."""
    return name if name.isprintable() else name.encode("unicode_escape").decode("ascii")
