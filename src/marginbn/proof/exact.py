"""A second checker of certificates: one file, the standard library, no floating point in a bound.

    python -m marginbn.proof.exact FILE [--model MODEL [--data TABLE]] [--statement S] [--strict]

or, without marginbn, ``python exact.py FILE``. The statement that must be proved is a file, or JSON
such as ``{"gamma": 2.0, "max_parents": 2}``; with a model and a table the whole way from the fields
of the table to the tables of the model is computed again (``exact_model.py``).

Written from ``docs/theory/certificate_format.rst`` and not from ``proof/checker``, so that an error
in one of them is unlikely to be in the other. Slow: the first one is for daily use. Exit codes: 0
verified, 1 not verified, 2 unreadable or too large; 4 with ``--strict`` if anything is unsaid.

**Arithmetic.** Weights, shares and claims are binary fractions and stay exact. Only
logarithms are irrational: ``log`` and ``log_gamma`` give integers with lo <= SCALE log x <= hi, and
sums take the end that is worse for the claim.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib
import json
import math
import re
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Any

MAGIC, SCALE = b"marginbn certificate 1\n", 10**40
MAX_BYTES, MAX_HEADER, MAX_CELLS, MAX_TABLE = 2**30, 2**25, 5 * 10**7, 10**8
MAX_TREE, MAX_MULTIPLIERS, MAX_COUNTED = 2**22, 2 * 10**7, 2 * 10**10
EDGE, ARC, CANDIDATE, FOREST, CLUSTERS = range(5)
ARGUMENTS = (2, 2, 1, 1, 2)
LANES = 32  # dual weights that are handled at a time
SET_COST = 10_000  # a set of variables takes memory, and the time of many rows
RULE = {"max_parents": int, "class_restricted": bool, "class_arcs": str, "constant": [int],
        "required": [[int, int]], "forbidden": [[int, int]]}  # fmt: skip
SCORE = {"name": str, "gamma": float, "smoothing": float, "equivalent_sample_size": float}
HEADER = {
    "fingerprint": str, "variables": [[str, [str]]], "n_samples": int, "score": SCORE,
    "candidates": {"rule": RULE, "listed": [[[int]]], "loss": float}, "incumbent": [[int]],
    "objective": float, "bound": float, "grid": int, "tree": int, "duals": [int],
    "rows": [[str, [int]]], "multipliers": int,
}  # fmt: skip
MORE = {"groups": int, "scores": [[[[int], float]]]}  # keys that may be absent
Interval = tuple[int, int]
Set = tuple[int, ...]
Open = tuple[int, int, int]  # best score of a listed subset, sums without and with the child


class Refuted(Exception):  # noqa: N818
    """The claim does not follow from the file; a file that cannot be read is a ValueError."""


def need(condition: object, reason: str, error: type[Exception] = Refuted) -> None:
    """Go on only if the condition holds."""
    if not condition:
        raise error(reason)


def readable(condition: object, reason: str = "too large for this checker") -> None:
    """Go on only if the condition holds: the format demands it, or the memory at hand."""
    need(condition, reason, ValueError)


# ------------------------------------------------------------------------------- logarithms


@cache
def ln(n: int, digits: int = 60) -> int:
    """10^digits log n within two units: ``decimal`` rounds correctly, and log n < 10^6."""
    own = Context(prec=digits + 8)
    return int(own.scaleb(own.ln(Decimal(n)), digits))


@cache
def log(a: int, b: int) -> Interval:
    """Integers around SCALE log(a / b)."""
    floor = (ln(a) - ln(b)) // 10**20
    return (0, 0) if a == b else (floor - 1, floor + 2)


def bernoulli(count: int) -> list[Fraction]:
    """The numbers B_0, B_1, ... of Bernoulli."""
    found: list[Fraction] = []
    for m in range(count):
        rest = sum((math.comb(m + 1, k) * b for k, b in enumerate(found)), Fraction(0))
        found.append((m == 0) - rest / (m + 1))
    return found


STIRLING = {m - 1: b / (m * (m - 1)) for m, b in enumerate(bernoulli(41)) if m > 0 and m % 2 == 0}
HALF_LOG_2PI = Fraction("0.91893853320467274178032973640561763986139747363778341281715154")


@cache
def log_gamma(x: Fraction) -> Interval:
    """Integers around SCALE log Gamma(x), x > 0, by Stirling's series at y = x + shift >= 40.

    The series errs by less than its first term left out, B_42 / (42 41 40^41) < 10^-50. Logarithms
    get as many more digits as y has before the point, so y log y errs by less than that as well.
    """
    shift = max(0, 40 - math.floor(x))
    y, digits = x + shift, 60 + len(str(math.floor(x) + shift))
    log_y = Fraction(ln(y.numerator, digits) - ln(y.denominator, digits), 10**digits)
    series = sum((c / y**power for power, c in STIRLING.items()), HALF_LOG_2PI)
    floor = math.floor(((y - Fraction(1, 2)) * log_y - y + series) * SCALE)
    product = math.prod((x + i for i in range(shift)), start=Fraction(1))
    below = log(product.numerator, product.denominator)
    return floor - 1 - below[1], floor + 2 - below[0]


def add(terms: Iterable[tuple[int, Interval]]) -> Interval:
    """Integers around the sum of factors times numbers."""
    lo = hi = 0
    for factor, (low, high) in terms:
        lo += factor * (low if factor > 0 else high)
        hi += factor * (high if factor > 0 else low)
    return lo, hi


def show(number: Fraction, rounding: str) -> str:
    """Thirty digits, rounded in the direction asked for."""
    own = Context(prec=30, rounding=rounding)
    return str(own.divide(Decimal(number.numerator), Decimal(number.denominator)))


# ------------------------------------------------------------------------------- the checker


def best_arborescence(arcs: dict[int, list[Set]]) -> tuple[int, dict[int, int]] | None:
    """Edmonds: the largest weight of an arborescence from the root 0 and, for every node, the sum
    of the prices of the sets around it; ``arcs[v]`` has (weight, u) for u -> v. None if none is.
    """
    home, prices = {v: v for v in (0, *arcs)}, dict.fromkeys(arcs, 0)  # home: the set around a node
    value, todo, entered = 0, list(arcs), dict[int, int]()
    while todo:
        v = todo.pop()
        arcs[v] = [(w, u) for w, u in arcs[v] if home[u] != v]
        if not arcs[v]:
            return None
        price, entered[v] = max(arcs[v])
        value += price
        prices.update({a: prices[a] + price for a in prices if home[a] == v})
        cycle, u = [v], home[entered[v]]
        while u in entered and u != v:
            cycle.append(u)
            u = home[entered[u]]
        if u == v:  # contract: entering at x saves what x has paid
            new = max(arcs) + 1
            paid = {x: max(arcs[x])[0] for x in cycle}
            arcs[new] = [(w - paid[x], t) for x in cycle for w, t in arcs[x]]
            home.update({a: new for a in home if home[a] in cycle})
            todo.append(new)
    return value, prices


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without repeated keys."""
    readable(len(dict(pairs)) == len(pairs), "a key occurs twice")
    return dict(pairs)


def read(value: Any, form: Any) -> Any:
    """The value, if it has the form: [a] is any number of a, [a, b] a pair; doubles are exact."""
    if (form is RULE and value is None) or (form is float and type(value) in (int, float)):
        return value if value is None else Fraction(float(value))
    kind = form if isinstance(form, type) else type(form)
    readable(type(value) is kind, f"header: {str(value)[:40]!a} is no {kind.__name__}")
    if kind is dict:
        readable(value.keys() == form.keys(), f"header: the keys must be {list(form)}")
        return {key: read(value[key], form[key]) for key in form}
    if kind is list:
        readable(len(form) in (1, len(value)), f"header: {str(value)[:40]!a} is no pair")
        return tuple(map(read, value, form * max(1, len(value))))
    return value.encode().decode() if kind is str else value  # half a surrogate pair is no text


class Checker:
    """The claim of a certificate and its proof; counts in units of 1 / ``unit``."""

    def __init__(self, packed: bytes) -> None:
        readable(packed.startswith(MAGIC), "the first line is not that of a certificate")
        unpacker = zlib.decompressobj()
        self.rest = memoryview(unpacker.decompress(packed[len(MAGIC) :], MAX_BYTES))
        whole = unpacker.eof and not unpacker.unused_data
        readable(whole, "the content is too large or does not end where the file ends")
        [length] = self.take("Q", 1)
        readable(length <= min(MAX_HEADER, len(self.rest)), "the header is cut off or too long")
        text, self.rest = bytes(self.rest[:length]).decode(), self.rest[length:]
        found = json.loads(text, object_pairs_hook=unique)
        more = {key: MORE[key] for key in MORE if key in found}
        self.h = read(found, HEADER | more)
        self.objective: Fraction = self.h["objective"]
        self.bound: Fraction = self.h["bound"]
        self.read_data()
        self.candidates = [(i, s) for i in range(self.n) for s in self.sets_of(i)]
        self.groups: list[list[int]] = [[] for _ in range(self.n)]
        for k, (i, _) in enumerate(self.candidates):
            self.groups[i].append(k)
        need(all(self.groups), "a variable has no candidate")
        self.read_proof()

    def take(self, code: str, count: int) -> tuple[Any, ...]:
        """The next numbers, little-endian; letters as in ``struct``."""
        size = count * struct.calcsize("<" + code)
        readable(0 <= size <= len(self.rest), "the content ends too early")
        readable(count <= MAX_CELLS)
        found, self.rest = struct.unpack(f"<{count}{code}", self.rest[:size]), self.rest[size:]
        return found

    def read_data(self) -> None:
        """Variables, rows, weights and the score."""
        names, labels = ([v[a] for v in self.h["variables"]] for a in (0, 1))
        self.n, size, self.arities = len(names), self.h["n_samples"], [len(own) for own in labels]
        given = self.h.get("scores", ())
        self.given = {(i, s): value for i, own in enumerate(given) for s, value in own}
        is_given = self.h["score"]["name"] == "given"
        whole = len(given) == self.n * is_given and is_given != (size > 0)
        readable(self.n > 0 and whole, "there are no data, or rows and scores")
        readable(sum(2 ** min(len(s), 64) for own in given for s, _ in own) <= MAX_CELLS)
        readable(size * (self.n + self.arities[0]) <= MAX_CELLS)
        self.rows = list(zip(*(self.take("i", size) for _ in names), strict=True))
        inside = all(0 <= v < r for x in self.rows for v, r in zip(x, self.arities, strict=True))
        weights = self.take("d", size)
        readable(inside and all(0 < w < math.inf for w in weights), "codes, weights: out of range")
        order = sorted(range(size), key=self.rows.__getitem__)
        digest = hashlib.sha256(json.dumps([names, labels, [size, self.n]]).encode())
        digest.update(b"".join(struct.pack(f"<{self.n}i", *self.rows[m]) for m in order))
        digest.update(struct.pack(f"<{size}d", *(weights[m] for m in order)))
        plain = [[(s, float(value)) for s, value in own] for own in given]
        digest.update(json.dumps(plain).encode() if given else b"")
        self.score, *numbers = self.h["score"].values()
        self.is_margin = self.score in ("multiclass", "binary")
        known = self.is_margin or self.score in ("mdl", "aic", "loglik", "bdeu", "k2", "given")
        need(known, f"the score {self.score!a} is not known")
        self.gamma, smoothing, self.sample_size = numbers
        least, most = Fraction("1e-100"), Fraction("1e100")
        need(digest.hexdigest() == self.h["fingerprint"], "the fingerprint is not that of the data")
        need(len(set(names)) == self.n, "two variables have the same name")
        need(-300 <= self.h["grid"] <= 64, "the grid makes no sense")
        ranged = all(least <= x <= most for x in (*map(Fraction, weights), *numbers))
        ranged &= all(abs(value) <= most for value in self.given.values())
        need(ranged, "score, weights: numbers must be positive, from 1e-100 to 1e100")
        need(self.arities[0] > 1 or not self.is_margin, "a margin needs two classes")
        self.unit = math.lcm(*(Fraction(x).denominator for x in (*weights, smoothing)))
        self.weights = [int(Fraction(w) * self.unit) for w in weights]
        self.smoothing, self.total = int(smoothing * self.unit), sum(self.weights)
        self.is_dirichlet = self.score in ("bdeu", "k2")
        self.wrong = 20 * self.unit * size if self.is_dirichlet else 6 * self.total
        self.known, self.counted = dict[tuple[Set, Fraction], tuple[int, int]](), 0
        rows_of = {w: [x for x, v in zip(self.rows, self.weights, strict=True) if v == w]
                   for w in set(self.weights)}  # fmt: skip
        self.columns_by_weight = {w: list(zip(*own, strict=True)) for w, own in rows_of.items()}

    def allowed(self, i: int) -> tuple[frozenset[int], Set, bool]:
        """By the rule the sets of variable i are the first with any of the second, at most
        ``max_parents`` in all; and the empty set, if it is not among these but is allowed.
        """
        rule = self.h["candidates"]["rule"]
        arcs = {*rule["required"], *rule["forbidden"]}
        need(all(a != b and {a, b} <= set(range(self.n)) for a, b in arcs), "candidates: arcs")
        single = all(v in range(self.n) and self.arities[v] == 1 for v in rule["constant"])
        need(single, "candidates: a constant variable has several states")
        kinds = (rule["class_restricted"], rule["class_arcs"])
        need(kinds in ((True, "all"), (True, "free"), (False, "free")), "candidates: class arcs")
        must, never = ({p for p, c in rule[r] if c == i} for r in ("required", "forbidden"))
        alone = {*rule["constant"]} - {c for _, c in rule["required"]}  # constant, no parents
        if i in alone:
            return frozenset(), (), False
        pool = {v for v in range(self.n) if v != i and (v not in rule["constant"] or v in must)}
        empty = False
        if rule["class_restricted"] and i > 0:
            empty = rule["class_arcs"] == "free" and not must
            pool, must = pool | {0}, must | {0}
        elif rule["class_arcs"] == "all":
            pool &= alone
        if must <= pool - never and len(must) <= rule["max_parents"]:
            return frozenset(must), tuple(sorted(pool - never - must)), empty
        need(empty, "a variable has no candidate")
        return frozenset(), (), False

    def sets_of(self, i: int) -> Iterable[Set]:
        """The candidate parent sets of variable i, listed or by a rule."""
        rule, listed, loss = self.h["candidates"].values()
        need(0 <= loss <= 10**100, "candidates: a loss without sense")
        base, free, empty, most = frozenset[int](), tuple(range(self.n)), False, self.n
        if rule is not None:
            most = rule["max_parents"]
            base, free, empty = self.allowed(i)
        if "scores" in self.h:
            need(rule is None and not listed, "candidates: given scores have their own")
            listed = [[s for s, _ in own] for own in self.h["scores"]]
        if rule is None or listed:
            need(not (rule and self.is_margin), "to a margin every candidate of a rule matters")
            need(len(listed) == self.n, "candidates: not one list for every variable")
            for s in listed[i]:
                inside = base <= {*s} <= base | {*free} and len(s) <= most
                proper = s == tuple(sorted({*s} - {i})) and (inside or (empty and not s))
                need(proper, f"candidates of {i}: no sets")
            need(len(set(listed[i])) == len(listed[i]), f"candidates of {i}: no sets")
            return self.best_sets(i) if "scores" in self.h else tuple(listed[i])
        sizes = range(min(most - len(base), len(free)) + 1)
        readable(sum(math.comb(len(free), size) for size in sizes) * self.n <= MAX_TABLE)
        chosen = chain(*(combinations(free, size) for size in sizes))
        sets = sorted(tuple(sorted({*base, *s})) for s in chosen)
        return sorted([()] * empty + sets, key=len)

    def best_sets(self, i: int) -> list[Set]:
        """Of the parent sets with a score those that score more than each of their subsets."""
        value = dict(self.h["scores"][i])
        subsets = {s: chain(*(combinations(s, k) for k in range(len(s)))) for s in value}
        return [s for s, v in value.items() if all(value.get(t, v - 1) < v for t in subsets[s])]

    def read_proof(self) -> None:
        """Tree, dual weights and multipliers."""
        duals, rows = self.h["duals"], self.h["rows"]
        readable(self.h["tree"] <= MAX_TREE)
        self.tree = self.take("i", self.h["tree"])
        rivals = {"multiclass": self.arities[0] - 1, "binary": 1}.get(self.score, 0)
        count: int = self.h.get("groups", len(self.rows))
        self.group_of: Sequence[int] = range(len(self.rows))
        if "groups" in self.h:  # samples of a group have the same parts
            self.group_of = self.take("i", len(self.rows))
            readable(all(0 <= g < count for g in self.group_of), "groups: out of range")
        readable(len(duals) * count * rivals <= MAX_CELLS)
        readable(all(1 <= bits <= 24 for bits in duals), "duals: out of range")
        codes = ["BHI"[(bits >= 8) + (bits >= 16)] for bits in duals]
        self.duals = [self.take(code, count * rivals) for code in codes]
        lengths = self.take("i", self.h["multipliers"])
        readable(min(lengths, default=0) >= 0, "multipliers: negative lengths")
        readable(sum(lengths) <= MAX_MULTIPLIERS)
        entries = zip(*(self.take(code, sum(lengths)) for code in "id"), strict=True)
        self.multipliers = [tuple(islice(entries, length)) for length in lengths]
        readable(not self.rest, "bytes follow the last array")
        readable({kind for kind, _ in rows} <= {"cluster", "packing", "edge"}, "rows: other kinds")

    # what candidates are worth

    @cache  # noqa: B019
    def places(self, variables: Set) -> dict[Set, list[int]]:
        """The samples of every joint state that occurs."""
        found: dict[Set, list[int]] = {}
        for m, x in enumerate(self.rows):
            found.setdefault(tuple(x[v] for v in variables), []).append(m)
        return found

    def sums(self, variables: Set, by_class: list[list[int]]) -> dict[Set, list[int]]:
        """Sums of numbers of the samples, for every joint state that occurs and every class."""
        places = self.places(variables).items()
        return {x: [sum(map(own.__getitem__, group)) for own in by_class] for x, group in places}

    def family(self, k: int) -> Set:
        """The features of a candidate, its child included."""
        i, parents = self.candidates[k]
        return tuple(v for v in sorted((i, *parents)) if v > 0)

    def margin_rows(self, own: int) -> list[dict[int, int]]:
        """The rows of a sample: class by class the sign of s_k[f, c]."""
        if self.score == "binary":
            return [{own: 1}]
        return [{own: 1, c: -1} for c in range(self.arities[0]) if c != own]

    @cache  # noqa: B019
    def factors(self, k: int) -> dict[Set, list[Interval]]:
        """s_k[f, c] of a margin: the log factor of a candidate at features f and class c."""
        (i, parents), family, s = self.candidates[k], self.family(k), self.smoothing
        if i > 0 and 0 not in parents:
            return {}  # the same for all classes
        classes, found = range(self.arities[0]), dict[Set, list[Interval]]()
        samples = list(zip(self.rows, self.weights, strict=True))
        own = [[w * (x[0] == c) for x, w in samples] for c in classes]
        above = self.sums(tuple(v for v in family if v != i), own)
        for f, n in self.sums(family, own).items():
            h = above[tuple(x for x, v in zip(f, family, strict=True) if v != i)]
            for c in classes:  # the class is a parent, or it is the child
                under, rest = (h[c], sum(h) - h[c]) if i else (sum(h), sum(h))
                value = log(n[c] + s, under + s * self.arities[i])
                if self.score == "binary":  # against all other classes together
                    other = log(sum(n) - n[c] + s, rest + s * self.arities[i])
                    value = add([(1, value), (-1, other)])
                found.setdefault(f, []).append(value)
        return found

    @cache  # noqa: B019
    def local_score(self, k: int) -> Interval:
        """A decomposable score in units of 1 / (unit SCALE); absent states add nothing."""
        if self.given:
            exact = self.given[self.candidates[k]] * self.unit * SCALE
            return math.floor(exact), -math.floor(-exact)
        (i, parents), r = self.candidates[k], self.arities[self.candidates[k][0]]
        penalties = {"mdl": log(self.total, self.unit), "aic": (2 * SCALE, 2 * SCALE)}
        low, high = penalties.get(self.score, (0, 0))
        twice = (r - 1) * math.prod(self.arities[p] for p in parents) * self.unit
        value = self.sum_of(tuple(sorted((*parents, i))), Fraction(1))[0]
        value -= self.sum_of(parents, self.prior_above(i))[0]
        return value - self.wrong + -twice * high // 2, value + self.wrong - twice * low // 2

    def prior_above(self, i: int) -> Fraction:
        """The prior count of a state of the parents of a variable, where it is not of BDeu."""
        return Fraction(self.arities[i] if self.score == "k2" else 1)

    def score_incumbent(self) -> tuple[Fraction, Fraction]:
        """What the incumbent scores, a structure of the problem."""
        left, lo, hi = dict(enumerate(self.h["incumbent"])), Fraction(0), Fraction(0)
        need(len(left) == self.n, "incumbent: not one set for every variable")
        numbers = {candidate: k for k, candidate in enumerate(self.candidates)}
        need(all(c in numbers for c in left.items()), "incumbent: no candidate")
        chosen = [numbers[c] for c in left.items()]
        while left:
            free = [i for i in left if left.keys().isdisjoint(left[i])]
            need(free, "incumbent: a directed cycle")
            left = {i: left[i] for i in left if i not in free}
        if not self.is_margin:
            low, high = add((1, self.local_score(k)) for k in chosen)
            return Fraction(low, self.unit * SCALE), Fraction(high, self.unit * SCALE)
        used = [(self.family(k), self.factors(k)) for k in chosen if self.factors(k)]
        for x, w in zip(self.rows, self.weights, strict=True):
            at = [table[tuple(x[v] for v in family)] for family, table in used]
            rows = self.margin_rows(x[0])
            margins = [add((sign, s[c]) for s in at for c, sign in row.items()) for row in rows]
            lo += w * min(self.gamma * SCALE, *(margin[0] for margin in margins))
            hi += w * min(self.gamma * SCALE, *(margin[1] for margin in margins))
        return lo / (self.unit * SCALE), hi / (self.unit * SCALE)

    @lru_cache(4)  # noqa: B019
    def majorants(self, block: int) -> list[tuple[int, Fraction, list[int]]]:
        """Unit, constant and values of the candidates, rounded up: f <= constant + their sum. Some
        dual weights at once are side by side in the lanes of large whole numbers.

        Lanes hold sums of products that are not negative: shares of the own class, and shares of
        rivals, each times a logarithm that was made positive by adding ``shift``.
        """
        if not self.is_margin:
            local = [self.local_score(k)[1] for k in range(len(self.candidates))]
            unit = self.unit * SCALE
            return [(unit, self.h["candidates"]["loss"] * self.n * unit, local)]
        numbers = range(block * LANES, min(len(self.duals), (block + 1) * LANES))
        logs = chain(*chain(*(self.factors(k).values() for k in range(len(self.candidates)))))
        shift = max((max(-lo, hi) for lo, hi in logs), default=0)
        lane = (self.total << 25).bit_length() + (2 * shift).bit_length()
        spare, every = [0] * len(numbers), range(self.arities[0])
        plus, minus = ([[0] * len(self.rows) for _ in every] for _ in range(2))
        for m, (x, w) in enumerate(zip(self.rows, self.weights, strict=True)):
            rows = self.margin_rows(x[0])
            begin = self.group_of[m] * len(rows)
            packed = [0] * len(rows)
            for place, d in enumerate(numbers):
                shares = self.duals[d][begin : begin + len(rows)]
                unused = (1 << self.h["duals"][d]) - sum(shares)
                need(unused >= 0, f"dual weights {d}: sample {m} gives away more than it has")
                spare[place] += w * unused
                for rival, share in enumerate(shares):
                    packed[rival] += share << lane * place
            for row, share in zip(rows, packed, strict=True):
                for c, sign in row.items():
                    (plus if sign > 0 else minus)[c][m] += w * share
        sums = cache(lambda family: (self.sums(family, plus), self.sums(family, minus)))
        given = sum(map(sum, plus)) - sum(map(sum, minus))
        values = []
        for k in range(len(self.candidates)):
            up = down = 0
            own, others = sums(self.family(k))
            for f, s in self.factors(k).items():
                up += sum(n * (hi + shift) for n, (_, hi) in zip(own[f], s, strict=True))
                down += sum(n * (lo + shift) for n, (lo, _) in zip(others[f], s, strict=True))
            down += shift * given * bool(self.factors(k))
            values.append((up, down))
        mask, found = (1 << lane) - 1, []
        for place, d in enumerate(numbers):
            unit = self.unit * SCALE << self.h["duals"][d]
            at = lane * place
            own_values = [(up >> at & mask) - (down >> at & mask) for up, down in values]
            found.append((unit, self.gamma * spare[place] * SCALE, own_values))
        return found

    # the sets of a rule that are not listed

    @cache  # noqa: B019
    def f(self, prior: Fraction) -> Callable[[int], int]:
        """By a number of units: n log n, or log Gamma(prior + n) - log Gamma(prior), at least."""
        if not self.is_dirichlet:
            return cache(lambda n: n * log(n, 1)[0])
        first, unit = log_gamma(prior)[1], self.unit
        return cache(lambda n: unit * (log_gamma(prior + Fraction(n, unit))[0] - first))

    @lru_cache(4096)  # noqa: B019
    def states(self, members: Set) -> list[int]:
        """The joint state of some variables in every row, rows of equal weight together."""
        if not members:
            return [0] * len(self.rows)
        columns = [own[members[-1]] for own in self.columns_by_weight.values()]
        r = self.arities[members[-1]]
        return [r * x + y for x, y in zip(self.states(members[:-1]), chain(*columns), strict=True)]

    def sum_of(self, members: Set, prior: Fraction) -> tuple[int, int]:
        """The sum of f over the states of some variables, at least, and how many states occur."""
        if (members, prior) not in self.known:
            self.counted += len(self.rows) + SET_COST
            readable(self.counted <= MAX_COUNTED, "too many sets are not listed for this checker")
            states, found, begin = self.states(members), Counter[int](), 0
            for w, columns in self.columns_by_weight.items():
                part = Counter(islice(states, begin, begin + len(columns[0])))
                begin += len(columns[0])
                if not found and w == 1:
                    found = part
                else:
                    found.update({x: w * n for x, n in part.items()})
            own = self.sample_size / math.prod(self.arities[v] for v in members)
            f = self.f(own if self.score == "bdeu" else prior)
            self.known[members, prior] = sum(map(f, found.values())), len(found)
        return self.known[members, prior]

    def check_unlisted(self) -> None:
        """By size: a listed subset is as good as a set, or as all sets that contain it."""
        rule, listed, loss = self.h["candidates"].values()
        if rule is None or not listed:
            return
        scale, families = self.unit * SCALE, [self.allowed(i) for i in range(self.n)]
        self.margin = math.floor(loss * scale)
        best, open_sets = list[dict[Set, int]](), list[dict[Set, Open]]()
        for i, (base, free, empty) in enumerate(families):
            need(all(self.arities[v] > 1 for v in free), "a parent with one state is not constant")
            own = {self.candidates[k][1]: self.local_score(k)[0] for k in self.groups[i]}
            need(not empty or () in own, f"variable {i} lacks the empty set")
            best.append(own)
            open_sets.append({})
            self.look_at(i, base, (), {}, own, open_sets[i])
        for size in range(1, rule["max_parents"] + 1):
            self.known = {key: v for key, v in self.known.items() if len(key[0]) >= size - 1}
            for i, (base, free, _) in enumerate(families):
                found = dict[Set, Open]()
                if size + len(base) <= rule["max_parents"]:
                    for s in self.larger(open_sets[i], free):
                        self.look_at(i, base, s, open_sets[i], best[i], found)
                open_sets[i] = found

    def larger(self, level: dict[Set, Open], free: Set) -> Iterator[Set]:
        """Sets of one more member, all of whose subsets of one less are there."""
        for s in level:
            for v in free:
                if not s or v > s[-1]:
                    rest = ((*s[:j], *s[j + 1 :], v) for j in range(len(s)))
                    if all(t in level for t in rest):
                        yield (*s, v)

    def look_at(
        self, i: int, base: frozenset[int], s: Set, level: dict[Set, Open], listed: dict[Set, int],
        found: dict[Set, Open],
    ) -> None:  # fmt: skip
        """Refute a set that may matter; add it to the open ones unless all larger ones are bad."""
        rests = [s[:j] + s[j + 1 :] for j in range(len(s))]
        below = max((level[t][0] for t in rests), default=listed.get((), -(10**400)))
        whole, r = tuple(sorted({*base, *s})), self.arities[i]
        q = math.prod(self.arities[v] for v in whole)
        price, ahead = 0, 10**400
        if self.score in ("mdl", "aic"):
            each = log(self.total, self.unit)[0] if self.score == "mdl" else 2 * SCALE
            price = (r - 1) * self.unit * each // 2
            need(price >= 0, "a penalty is negative")
            if -price * q <= below:
                return
        above = self.sum_of(whole, self.prior_above(i))[0]
        for v, t in zip(s, rests, strict=True) if price else ():
            _, before, own = level[t]
            least = price * (q // self.arities[v]) * (self.arities[v] - 1) - self.wrong
            if before - above <= least or before - own <= least:
                return
            ahead = min(ahead, own)
        room = below + self.margin
        if price and max(-2 * price * q, ahead - above + self.wrong - price * q) <= room:
            return
        value, cells = self.sum_of(tuple(sorted((*whole, i))), Fraction(1))
        score = value - above + self.wrong - price * q
        if whole in listed:
            below = max(below, listed[whole])
        else:
            need(score <= below + self.margin, f"variable {i} may have the parents {whole}")
        limit = -2 * price * q
        if self.is_dirichlet and all(w % self.unit == 0 for w in self.columns_by_weight):
            limit = -cells * log(r, 1)[0] * self.unit
        if limit > below + self.margin:
            found[s] = below, above, value

    # the tree

    def leaves(self) -> Iterator[tuple[int, Set, frozenset[int], frozenset[Set]]]:
        """Kind, arguments, allowed candidates and present edges of every leaf."""
        numbered, place = list(enumerate(self.candidates)), 0
        todo = [(frozenset(range(len(numbered))), frozenset[Set]())]
        while todo:
            allowed, present = todo.pop()
            kind = self.tree[place] if place < len(self.tree) else -1
            need(0 <= kind < 5, f"entry {place} of the tree: not complete, or no such kind")
            a = self.tree[place + 1 : place + 1 + ARGUMENTS[kind]]
            need(len(a) == ARGUMENTS[kind] and min(a) >= 0, "the tree is cut off, or negative")
            place += 1 + len(a)
            if kind in (FOREST, CLUSTERS):
                yield kind, a, allowed, present
                continue
            if kind == CANDIDATE:
                need(a[0] < len(numbered), f"candidate {a[0]} does not exist")
                child, having = self.candidates[a[0]][0], {a[0]}
            else:
                need(a[0] != a[1] and max(a) < self.n, f"{a} cannot be joined")
                arcs = (a, a[::-1]) if kind == EDGE else (a,)
                child = a[0]
                having = {k for k, (i, s) in numbered if any(i == x and y in s for x, y in arcs)}
            others = allowed if kind == EDGE else allowed.difference(self.groups[child])
            joined = {(min(a), max(a))} if kind == EDGE else set()
            todo.append((others | allowed & having, present | joined))
            todo.append((allowed - having, present))
            readable(len(todo) * len(numbered) <= MAX_TABLE)
        need(place == len(self.tree), f"the tree ends at entry {place}, but more follows")

    def bound_leaf(
        self, kind: int, a: Set, allowed: frozenset[int], present: frozenset[Set]
    ) -> Fraction:
        """A number that no structure of the leaf exceeds; the claimed objective if it is empty."""
        known = a[0] < (len(self.duals) if self.is_margin else 1)
        need(known, f"dual weights {a[0]} do not exist")
        need(self.is_margin or not self.duals, "a decomposable score has no dual weights")
        unit, constant, values = self.majorants(a[0] // LANES)[a[0] % LANES]
        usable = [[k for k in group if k in allowed] for group in self.groups]
        if kind == CLUSTERS:
            fine = 1 << max(0, -self.h["grid"])  # multipliers are whole numbers of 1 / fine
            lifted = {k: fine * values[k] for k in chain(*usable)}
            for kind_of_row, members, y in self.priced_rows(a[1], present):
                constant -= y * unit * (-1 if kind_of_row == "packing" else 1)
                step = int(y * fine) * unit
                for k, factor in self.entries(kind_of_row, members):
                    if k in lifted:
                        lifted[k] += step * factor
            best = [max(lifted[k] for k in own) for own in usable] if all(usable) else []
            found = [Fraction(sum(best), fine)] if best else []
        else:
            slots = [{self.candidates[k][1]: values[k] for k in own} for own in usable]
            limit = self.bound * unit - constant
            found = [Fraction(value) for value in self.bound_forests(slots, present, limit)]
        return max([self.objective, *((value + constant) / unit for value in found)])

    @cache  # noqa: B019
    def entries(self, kind: str, members: Set) -> list[tuple[int, int]]:
        """The candidates in a row, with coefficients that are not zero."""
        inside = set(members)
        every = [(k, *self.candidates[k]) for i in inside for k in self.groups[i]]
        if kind == "packing":
            return [(k, -1) for k, i, parents in every if inside <= {i, *parents}]
        has_none = kind == "cluster"
        return [(k, 1) for k, _, parents in every if inside.isdisjoint(parents) == has_none]

    def priced_rows(self, y: int, present: frozenset[Set]) -> Iterator[tuple[str, Set, Fraction]]:
        """Kind, members and multiplier of rows that hold in a leaf."""
        need(y < len(self.multipliers), f"multipliers {y} do not exist")
        step = Fraction(2) ** self.h["grid"]
        for number, value in self.multipliers[y]:
            need(0 <= number < len(self.h["rows"]), f"row {number} does not exist")
            need(0 <= value < math.inf, f"row {number}: the multiplier is negative or not finite")
            kind, members = self.h["rows"][number]
            need(members and {*members} <= {*range(self.n)}, f"row {number}: no variables")
            need(kind != "edge" or members in present, f"row {number}: the edge may be absent")
            yield kind, members, Fraction(value) // step * step

    def bound_forests(
        self, slots: list[dict[Set, int]], present: frozenset[Set], limit: Fraction
    ) -> Iterator[int]:
        """For every class set the largest value of a structure, or a larger one within the limit.

        An edge that must be present earns a reward either way round, and the rewards of all such
        edges are taken off at the end: every reward gives a true bound, a large one the maximum.
        """
        shaped = all(len(s) < 3 and (i == 0 or s[:1] in ((), (0,))) for i, s in self.candidates)
        need(shaped, "forests bound nothing here")
        reward = 4 * sum(abs(w) for own in slots for w in own.values())
        rewards, tied = reward * sum(a > 0 for a, _ in present), {b for a, b in present if a == 0}

        def best(parents: Set, tied: set[int]) -> tuple[int, dict[int, int]] | None:
            """Parents of the class have none; other features tied to the class have some."""
            arcs: dict[int, list[Set]] = {i: [] for i in range(1, self.n)}
            for i, own in enumerate(slots):
                for s, w in own.items():
                    edge = tuple(sorted((i, s[1]))) if len(s) == 2 else (0, 0)
                    if i > 0 and (i not in parents if s else i in parents or i not in tied):
                        arcs[i].append((w + reward * (edge in present), max(s, default=0)))
            return best_arborescence(arcs)

        free = best((), set())
        for parents, value in slots[0].items() if free else ():
            if free and all(() in slots[j] for j in parents):
                bound = value + free[0] - sum(free[1][j] - slots[j][()] for j in parents)
                if bound - rewards > limit:
                    exact = best(parents, tied)
                    if exact is None:
                        continue
                    bound = value + exact[0]
                yield bound - rewards

    def check(self) -> tuple[Fraction, Fraction, Fraction, int]:
        """Ends of the incumbent's score, the largest bound of a leaf, and the number of leaves."""
        (lo, hi), bounds = self.score_incumbent(), list[Fraction]()
        need(self.objective <= lo, f"the incumbent scores at most {show(hi, ROUND_CEILING)}")
        need(self.objective <= self.bound, "the objective is above the bound")
        self.check_unlisted()
        for number, leaf in enumerate(self.leaves()):
            bounds.append(self.bound_leaf(*leaf))
            most = show(bounds[-1], ROUND_CEILING)
            need(bounds[-1] <= self.bound, f"leaf {number}: structures may score up to {most}")
        return lo, hi, max(bounds), len(bounds)


# ------------------------------------------------------------------------------- the statement

ARCS = [[str, str]]
SAID = {
    "score": str, "gamma": float, "smoothing": float, "equivalent_sample_size": float,
    "p": float, "target": str, "classes": [str], "features": [str], "data": str,
    "distinct_rows": int, "total_weight": float, "max_parents": int, "class_restricted": bool,
    "class_arcs": str, "listed": int, "required": ARCS, "forbidden": ARCS, "constant": [str],
    "structure": [[str, [str]]], "objective": float, "gap": float, "coding": [Any],
    "left_out": [str], "rows_left_out": int,
}  # fmt: skip
NUMBERS = ("score", "gamma", "smoothing", "equivalent_sample_size")
RULES = ("max_parents", "class_restricted", "class_arcs", "required", "forbidden")
GAP, FIXED = Fraction(1, 10**6), ("NaiveBayesClassifier", "TANClassifier")


def read_statement(text: str) -> dict[str, Any]:
    """What must be proved, from a file or from JSON."""
    text = text if text.lstrip().startswith("{") else Path(text).read_text("utf-8")
    found = json.loads(text, object_pairs_hook=unique)
    readable(found.keys() <= SAID.keys(), f"statement: the keys are {', '.join(SAID)}")
    said = {k: v if k == "coding" else read(v, SAID[k]) for k, v in found.items()}
    if "p" in said:
        p = said.pop("p")
        readable(1 < 2 * p < 2 and "gamma" not in said, "statement: p or gamma, 1/2 < p < 1")
        odds = p / (1 - p)
        said["gamma"] = Fraction(log(odds.numerator, odds.denominator)[0], SCALE)
    return said


def facts(checker: Checker) -> dict[str, Any]:
    """What a certificate says of its problem, by the keys of a statement."""
    h, names = checker.h, [name for name, _ in checker.h["variables"]]
    rule, listed, _ = h["candidates"].values()
    has_class = checker.is_margin or bool(rule and rule["class_restricted"])
    parents = zip(names, h["incumbent"], strict=False)
    found = {"score": checker.score, "data": h["fingerprint"], "features": names[has_class:],
             "distinct_rows": len(checker.rows), "listed": sum(map(len, h.get("scores", listed))),
             "total_weight": Fraction(checker.total, checker.unit),
             "structure": [(v, sorted(names[p] for p in own)) for v, own in parents]}  # fmt: skip
    keys = NUMBERS[1:3] if checker.is_margin else NUMBERS[3:] if checker.score == "bdeu" else ()
    found |= {key: h["score"][key] for key in keys}
    if has_class:
        found |= {"target": names[0], "classes": [*h["variables"][0][1]]}
    if rule:
        del found["listed"]
        found |= {key: rule[key] for key in RULES[:3]}
        found |= {key: sorted((names[p], names[c]) for p, c in rule[key]) for key in RULES[3:]}
        found["constant"] = sorted(names[v] for v in rule["constant"])
    return found


def same(key: str, wanted: Any, found: Any) -> bool:
    """Whether a part of a statement is what is wanted."""
    if isinstance(wanted, Fraction):
        return isinstance(found, Fraction) and abs(wanted - found) <= abs(wanted) / 10**12
    if key in ("required", "forbidden", "constant"):
        return found is not None and sorted(wanted) == found
    if key == "structure":
        return sorted((v, sorted(own)) for v, own in wanted) == sorted(found)
    return bool((list(wanted) if isinstance(wanted, tuple) else wanted) == found)


def relative_gap(checker: Checker) -> Fraction:
    """Bound minus objective, over the larger of both and a hundredth of what a margin can be."""
    most = Fraction(checker.total, checker.unit) * min(checker.gamma, Fraction(1)) / 100
    size = max(abs(checker.bound), abs(checker.objective), most if checker.is_margin else 0)
    return (checker.bound - checker.objective) / size if size else Fraction(0)


def claims_of(model: dict[str, Any]) -> dict[str, Any]:
    """What the parameters of a model say of its problem, by the keys of a statement."""
    usual = '{"margin": "multiclass", "p": 0.9, "class_arcs": "all", "smoothing": 1}'
    params = json.loads(usual if model["estimator"] == "BNClassifier" else "{}") | model["params"]
    score = params.get("margin", params.get("score"))
    found = {**params, **(model["validation"] or {}), "score": "mdl" if score == "bic" else score}
    for key in ("required", "forbidden")[: 1 if params.get("tiers") else 2]:  # tiers forbid more
        found[key] = params.get(f"{key}_arcs") or []
    return {key: part for key, part in found.items() if key in (*SAID, "p") and part is not None}


def check_model(checker: Checker, said: dict[str, Any], model: str, data: str) -> list[str]:
    """Bind model and table to the certificate; what was left out and not said to be."""
    home = f"{__package__}." if __package__ else ""
    binding, told = importlib.import_module(f"{home}exact_model"), list[str]()
    fitted = json.loads(Path(model).read_bytes(), object_pairs_hook=unique)
    need(fitted["estimator"] not in FIXED, "nothing is searched by such a model")
    need(fitted["network"]["parents"] == [[*own] for own in checker.h["incumbent"]], "other arcs")
    value = read(fitted["result"]["objective"], float)
    inside = checker.objective <= value <= checker.bound
    need(inside, "the objective of the model is not the score of its structure")
    own = [{k: v for k, v in c.items() if k != "values"} for c in fitted["coding"]]
    need(said.get("coding", own) == own, "the coding of the model is not the one asked for")
    known, claims = facts(checker), read_statement(json.dumps(claims_of(fitted)))
    claims = {key: part for key, part in claims.items() if key in (*known, *RULES)}
    other = [key for key, part in claims.items() if not same(key, part, known.get(key))]
    need(not other, f"the settings of the model are others: {', '.join(other)} differ")
    digest = fitted["evidence"] and fitted["evidence"]["data_sha256"]
    need(digest in (None, checker.h["fingerprint"]), "the model is one of other data")
    weights = [Fraction(w, checker.unit) for w in checker.weights]
    try:
        bound = binding.bind(fitted, checker.h["variables"], checker.rows, weights, data)
    except binding.DifferentError as reason:
        raise Refuted(str(reason)) from None
    gap = bound.pop("trained_gap")
    told += ["the trained tables are not checked without --data"] * (gap == math.inf)
    told += [f"the trained tables are within {gap:.2g} of their optimum"] * (GAP < gap < math.inf)
    for key, part in bound.items():
        need(key not in said or same(key, said[key], part), f"{key} is {part}")
        told += [f"{key} is {part}"] * (key not in said and bool(part))
    return told


def check_scores(checker: Checker, path: str) -> None:
    """The numbers in a file of local scores are those of the certificate."""
    packed = Path(path).read_bytes()
    text = (gzip.decompress(packed) if path.lower().endswith(".gz") else packed).decode()
    lines = [line.split() for line in text.splitlines() if line.strip()[:1] not in ("", "#")]
    place, found = 1, dict[str, dict[frozenset[str], float]]()
    for _ in range(int(lines[0][0])):
        name, count = lines[place][0], int(lines[place][1])
        own = lines[place + 1 : place + 1 + count]
        found[name] = {frozenset(parents): float(value) for value, _, *parents in own}
        readable(len(found[name]) == count, f"score file: the sets of {name!a}")
        place += 1 + count
    escaped = r"\\u\{([0-9a-f]+)\}"
    names = [re.sub(escaped, lambda code: chr(int(code[1], 16)), name) for name in found]
    own_names = [name for name, _ in checker.h["variables"]]
    need(names == own_names and place == len(lines), "the score file has other variables")
    words = list(found)
    for (name, values), scores in zip(found.items(), checker.h["scores"], strict=True):
        claimed = {frozenset(words[p] for p in s): value for s, value in scores}
        need(values == claimed, f"the scores of {name!a} are others than in the score file")


def main(arguments: list[str]) -> int:
    """Check what the command line names and print what was found."""
    parser = argparse.ArgumentParser("exact", description="Check a certificate.")
    parser.add_argument("certificate")
    for option in ("--statement", "--model", "--data"):
        parser.add_argument(option, default="")
    parser.add_argument("--strict", action="store_true")
    try:
        asked = parser.parse_args(arguments)
    except SystemExit as end:
        return 2 if end.code else 0
    told: list[str] = []
    try:
        said = read_statement(asked.statement) if asked.statement else {}
        needs = {"coding": asked.model, "left_out": asked.data, "rows_left_out": asked.data}
        readable(all(needs.get(key, True) for key in said), "statement: needs --model and --data")
        checker = Checker(Path(asked.certificate).read_bytes())
        one = not asked.data or bool(asked.model) != bool(checker.given)
        readable(one, "--data needs --model, which has the coding, or is a score file alone")
        found = facts(checker)
        later = ("objective", "gap", "coding", "left_out", "rows_left_out")
        now = [key for key in said if key not in later]
        other = [key for key in now if not same(key, said[key], found.get(key))]
        need(not other, f"another statement than the one asked for: {', '.join(other)} differ")
        lo, hi, most, leaves = checker.check()
        gap = relative_gap(checker)
        need(gap <= said.get("gap", gap), f"the gap is {show(gap, ROUND_CEILING)}")
        inside = checker.objective <= said.get("objective", checker.objective) <= checker.bound
        need(inside, "the structure has another score")
        if asked.data and checker.given:
            check_scores(checker, asked.data)
            said |= {key: found[key] for key in ("score", "listed")}
        if asked.model:
            told += check_model(checker, said, asked.model, asked.data)
        said |= {"data": found["data"]} if asked.data else {}
        told += [f"the gap is {show(gap, ROUND_CEILING)}"] * (gap > GAP)
        keys = (key for key in (*NUMBERS, "data", "listed", *RULES) if key in found)
        told += [f"not in the statement: {key}" for key in keys if key not in said]
    except Refuted as reason:
        print(f"NOT VERIFIED\n{reason}")  # noqa: T201
        return 4 if asked.strict else 1
    except Exception as error:  # whatever the content makes fail cannot be read
        print(f"UNREADABLE\n{error!r}")  # noqa: T201
        return 2
    rule = {key: found[key] for key in RULES if found.get(key) not in (None, False, [], "free")}
    lines = (
        "VERIFIED",
        ", ".join(f"{key} {found[key]}" for key in NUMBERS if key in found),
        f"data: {len(checker.rows)} rows, {checker.n} variables",
        f"candidates: {len(checker.candidates)}, {'listed' if 'listed' in found else rule}",
        f"structure: {show(lo, ROUND_FLOOR)} <= score <= {show(hi, ROUND_CEILING)}",
        f"any structure: score <= {show(most, ROUND_CEILING)} ({leaves} leaves)",
        f"claimed: objective {checker.objective}, bound {checker.bound}",
        *(f"reservation: {text}" for text in told if asked.strict),
    )
    print("\n".join(lines))  # noqa: T201
    return 4 if asked.strict and told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
