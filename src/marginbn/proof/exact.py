"""A second checker of certificates: one file, the standard library, no floating point in a bound.

    python -m marginbn.proof.exact FILE         or, without marginbn,  python exact.py FILE

Written from ``docs/theory`` (``certificate_format`` above all) and not from ``proof/checker``, so
that an error in one of them is unlikely to be in the other. Slow and terse: the first one is for
daily use. Exit codes: 0 verified, 1 not verified, 2 unreadable or too large to be checked here.

**Arithmetic.** Weights, shares and claims are binary fractions and stay exact. Only logarithms are
irrational: ``log`` and ``log_gamma`` give integers with lo <= SCALE log x <= hi, and every sum takes
the end that is worse for the claim.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from itertools import chain, combinations
from pathlib import Path
from typing import Any

MAGIC, MAX_BYTES, MAX_CELLS = b"marginbn certificate 1\n", 2**30, 5 * 10**7
SCALE = 10**40
EDGE, ARC, CANDIDATE, FOREST, CLUSTERS = range(5)
ARGUMENTS = (2, 2, 1, 1, 2)
TOO_LARGE = "too large for this checker"

Interval = tuple[int, int]
Sets = tuple[int, ...]


class Refuted(Exception):  # noqa: N818
    """The claim does not follow from the file; a file that cannot be read is a ValueError."""


def need(condition: object, reason: str, error: type[Exception] = Refuted) -> None:
    """Go on only if the condition holds."""
    if not condition:
        raise error(reason)


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


def stirling(count: int) -> Iterator[Fraction]:
    """B_2k / (2k (2k - 1)), with Bernoulli's numbers, for k = 1, ..., count."""
    numbers: list[Fraction] = []
    for m in range(2 * count + 1):
        rest = sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers)), Fraction(0))
        numbers.append((m == 0) - rest / (m + 1))
    return (numbers[m] / (m * (m - 1)) for m in range(2, 2 * count + 1, 2))


SERIES = tuple(stirling(20))
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
    series = sum((c / y ** (2 * k + 1) for k, c in enumerate(SERIES)), HALF_LOG_2PI)
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


# ------------------------------------------------------------------------------- the file

COUNT = "count"
RULE = {
    "max_parents": COUNT, "class_restricted": bool, "constant": [COUNT],
    "required": [(COUNT, COUNT)], "forbidden": [(COUNT, COUNT)],
}  # fmt: skip
HEADER = {
    "fingerprint": str, "variables": [(str, [str])], "n_samples": COUNT,
    "score": {"name": str, "gamma": float, "smoothing": float, "equivalent_sample_size": float},
    "candidates": {"rule": object, "listed": [[[COUNT]]], "dropped": COUNT},
    "incumbent": [[COUNT]], "objective": float, "bound": float, "grid": int, "tree": COUNT,
    "duals": [(int, int)], "rows": [(str, [COUNT])], "multipliers": COUNT,
}  # fmt: skip


def read(value: Any, form: Any, place: str) -> Any:
    """The value if it has the form; doubles become fractions, lists tuples."""
    if isinstance(form, dict) and isinstance(value, dict) and value.keys() == form.keys():
        return {k: read(value[k], f, f"{place}.{k}") for k, f in form.items()}
    if isinstance(form, list) and isinstance(value, list):
        return tuple(read(v, form[0], place) for v in value)
    if isinstance(form, tuple) and isinstance(value, list) and len(value) == len(form):
        return tuple(read(v, f, place) for v, f in zip(value, form, strict=True))
    if form is float and type(value) in (int, float) and math.isfinite(float(value)):
        return Fraction(float(value))
    if form is str and type(value) is str:
        return value.encode().decode()  # refuses half a surrogate pair
    if form is object or (form in (bool, int) and type(value) is form):
        return value
    need(form == COUNT and type(value) is int and 0 <= value < 2**63, f"{place}: wrong", ValueError)
    return value


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without repeated keys."""
    need(len(dict(pairs)) == len(pairs), "header: a key stands twice", ValueError)
    return dict(pairs)


class Content:
    """The unfolded content: a header, then array after array."""

    def __init__(self, packed: bytes) -> None:
        need(packed.startswith(MAGIC), "the first line is not that of a certificate", ValueError)
        unpacker = zlib.decompressobj()
        self.rest = memoryview(unpacker.decompress(packed[len(MAGIC) :], MAX_BYTES))
        whole = unpacker.eof and not unpacker.unused_data
        need(whole, "the content is too large or does not end where the file ends", ValueError)
        text = bytes(self.take("B", self.take("Q", 1)[0]))
        self.header = read(json.loads(text.decode(), object_pairs_hook=once), HEADER, "header")

    def take(self, code: str, count: int) -> tuple[Any, ...]:
        """The next numbers, little-endian; letters as in ``struct``."""
        size = count * struct.calcsize("<" + code)
        need(size <= len(self.rest), "the content ends too early", ValueError)
        found, self.rest = struct.unpack(f"<{count}{code}", self.rest[:size]), self.rest[size:]
        return found

    def take_duals(self, size: int) -> list[Sequence[int]]:
        """Parts of the dual weights: each the difference to an earlier vector modulo 2^width."""
        codes, found = [], list[Sequence[int]]()
        need(len(self.header["duals"]) * size <= MAX_CELLS, TOO_LARGE, ValueError)
        for number, (bits, before) in enumerate(self.header["duals"]):
            need(1 <= bits <= 24 and -1 <= before < number, "duals: out of range", ValueError)
            codes.append("B" if bits < 8 else "H" if bits < 16 else "I")
            parts: Sequence[int] = self.take(codes[-1], size)
            if before >= 0:
                need(codes[before] == codes[-1], "duals: a reference of other width", ValueError)
                modulus = 256 ** struct.calcsize("<" + codes[-1])
                parts = [(a + b) % modulus for a, b in zip(parts, found[before], strict=True)]
            found.append(parts)
        return found


# ------------------------------------------------------------------------------- the problem


class Problem:
    """Data, score and candidates of a certificate; counts in units of 1 / ``unit``."""

    def __init__(self, content: Content) -> None:
        h = content.header
        self.names, self.labels = ([v[a] for v in h["variables"]] for a in (0, 1))
        self.arities, size, n = [len(own) for own in self.labels], h["n_samples"], len(self.names)
        need(n > 0 and size > 0, "there are no data", ValueError)
        need(size * (n + self.arities[0]) <= MAX_CELLS, TOO_LARGE, ValueError)
        self.rows = list(zip(*(content.take("i", size) for _ in range(n)), strict=True))
        inside = all(0 <= v < r for x in self.rows for v, r in zip(x, self.arities, strict=True))
        need(inside, "codes: outside the states", ValueError)
        weights = content.take("d", size)
        positive = all(math.isfinite(w) and w > 0 for w in weights)
        need(positive, "weights: must be positive and finite", ValueError)
        need(self.fingerprint(weights) == h["fingerprint"], "the fingerprint is not of these data")
        self.set_score(h["score"])
        self.unit = math.lcm(*(Fraction(x).denominator for x in (*weights, self.smoothing)))
        self.weights = [int(Fraction(w) * self.unit) for w in weights]
        self.by_class = [
            [w * (x[0] == c) for x, w in zip(self.rows, self.weights, strict=True)]
            for c in range(self.arities[0])
        ]
        self.candidates = list(self.list_candidates(h["candidates"]))
        self.groups: list[list[int]] = [[] for _ in self.names]
        for k, (i, _) in enumerate(self.candidates):
            self.groups[i].append(k)
        need(all(self.groups), "a variable has no candidate")

    def fingerprint(self, weights: Sequence[float]) -> str:
        """SHA-256 of names, labels, rows and weights, the rows in lexicographic order."""
        order = sorted(range(len(self.rows)), key=self.rows.__getitem__)
        about = [self.names, self.labels, [len(self.rows), len(self.names)]]
        digest = hashlib.sha256(json.dumps(about).encode())
        for m in order:
            digest.update(struct.pack(f"<{len(self.names)}i", *self.rows[m]))
        digest.update(struct.pack(f"<{len(order)}d", *(weights[m] for m in order)))
        return digest.hexdigest()

    def set_score(self, score: dict[str, Any]) -> None:
        """Refuse scores that mean nothing; the smoothing is 1 where there is none."""
        self.name, self.gamma, size = score["name"], score["gamma"], score["equivalent_sample_size"]
        self.prior = Fraction(size)
        self.is_margin = self.name in ("multiclass", "binary")
        self.smoothing = score["smoothing"] if self.is_margin else Fraction(1)
        need(self.is_margin or self.name in ("mdl", "aic", "loglik", "bdeu", "k2"), "unknown score")
        need(not self.is_margin or min(self.gamma, self.smoothing) > 0, "gamma, smoothing: not > 0")
        need(not self.is_margin or self.arities[0] > 1, "a margin needs two classes")
        need(self.name != "bdeu" or self.prior > 0, "equivalent_sample_size: not > 0")

    def list_candidates(self, source: dict[str, Any]) -> Iterator[tuple[int, Sets]]:
        """(child, parents), child by child."""
        n, listed, rule = len(self.names), source["listed"], source["rule"]
        if rule is not None:
            need(not listed, "candidates: both a rule and a list")
            rule = read(rule, RULE, "header.candidates.rule")
            arcs = [*rule["required"], *rule["forbidden"]]
            need(all(max(a) < n and a[0] != a[1] for a in arcs), "candidates: arcs out of range")
            single = all(v < n and self.arities[v] == 1 for v in rule["constant"])
            need(single, "candidates: a constant variable with several states")
            yield from ((i, s) for i in range(n) for s in self.follow(rule, i))
            return
        need(len(listed) == n, "candidates: not one list per variable")
        for i, own in enumerate(listed):
            fine = all(s == tuple(sorted(set(s) - {i})) and max(s, default=0) < n for s in own)
            need(fine and len(set(own)) == len(own), f"candidates of {i}: no sets, or one twice")
            yield from ((i, s) for s in own)

    def follow(self, rule: dict[str, Any], i: int) -> Iterator[Sets]:
        """The parent sets of variable i by a rule: by size, then lexicographically."""
        n, largest, first = len(self.names), rule["max_parents"], Sets()
        must, never = ({p for p, c in rule[r] if c == i} for r in ("required", "forbidden"))
        if i in rule["constant"] and not must:
            largest = 0
        pool = [v for v in range(n) if v != i and (v not in rule["constant"] or v in must)]
        if rule["class_restricted"] and i > 0:
            largest, first, pool = largest - 1, (0,), [v for v in pool if v > 0]
        sizes = range(min(largest, len(pool)) + 1)
        number = n * self.arities[0] * sum(math.comb(len(pool), size) for size in sizes)
        need(number <= MAX_CELLS, TOO_LARGE, ValueError)
        sets: Iterable[Sets] = ((*first, *s) for size in sizes for s in combinations(pool, size))
        return (
            s
            for s in chain([()] if first else [], sets)
            if must.issubset(s) and never.isdisjoint(s)
        )

    @cache  # noqa: B019
    def places(self, variables: Sets) -> dict[Sets, list[int]]:
        """The samples of every joint state that occurs."""
        found: dict[Sets, list[int]] = {}
        for m, x in enumerate(self.rows):
            found.setdefault(tuple(x[v] for v in variables), []).append(m)
        return found

    def sums(self, variables: Sets, by_class: list[list[int]]) -> dict[Sets, list[int]]:
        """The sum of numbers of the samples, for every joint state and class."""
        return {
            f: [sum(map(own.__getitem__, group)) for own in by_class]
            for f, group in self.places(variables).items()
        }

    def family(self, k: int) -> Sets:
        """The features of a candidate, its child included."""
        i, parents = self.candidates[k]
        return tuple(v for v in sorted((i, *parents)) if v > 0)

    @cache  # noqa: B019
    def factors(self, k: int) -> dict[Sets, list[Interval]]:
        """s_k[f, c] of the margins: the log factor of a candidate at features f and class c."""
        (i, parents), s = self.candidates[k], int(self.smoothing * self.unit)
        if i > 0 and 0 not in parents:
            return {}  # the same for all classes
        family, found = self.family(k), {}
        above = self.sums(tuple(v for v in family if v != i), self.by_class)
        for f, own in self.sums(family, self.by_class).items():
            h = above[tuple(x for x, v in zip(f, family, strict=True) if v != i)]
            r, total = self.arities[i], sum(h)
            for n, m in zip(own, h, strict=True):
                down = m if i else total  # the class is among the parents, or it is the child
                value = log(n + s, down + s * r)
                if self.name == "binary":  # against all other classes together
                    rest = log(sum(own) - n + s, total - m + s * r if i else total + s * r)
                    value = add([(1, value), (-1, rest)])
                found.setdefault(f, []).append(value)
        return found

    @cache  # noqa: B019
    def local_score(self, k: int) -> Interval:
        """A decomposable score in units of 1 / (2 unit SCALE); absent states add nothing."""
        (i, parents), u = self.candidates[k], self.unit
        r, q = self.arities[i], math.prod(self.arities[p] for p in parents)
        prior = self.prior / (q * r) if self.name == "bdeu" else Fraction(1)
        terms = {
            "mdl": [(-q * (r - 1) * u, log(sum(self.weights), u))],
            "aic": [(-2 * q * (r - 1) * u, (SCALE, SCALE))],
        }.get(self.name, [])
        table: dict[Sets, list[int]] = {}
        for x, [n] in self.sums((*parents, i), [self.weights]).items():
            table.setdefault(x[:-1], []).append(n)
        for cells in table.values():
            if self.name in ("bdeu", "k2"):
                for n, a, f in [
                    (sum(cells), r * prior, -2 * u),
                    *((n, prior, 2 * u) for n in cells),
                ]:
                    terms += [(f, log_gamma(a + Fraction(n, u))), (-f, log_gamma(a))]
            else:
                terms += [(2 * n, log(n, sum(cells))) for n in cells]
        return add(terms)


# ------------------------------------------------------------------------------- the proof


def best_arborescence(arcs: dict[int, dict[int, int]]) -> tuple[int, dict[int, int]] | None:
    """Edmonds: the largest weight of an arborescence from the root 0, and for every node the sum of
    the prices of the sets around it. ``arcs[v][u]`` is the weight of u -> v. None if there is none.
    """
    arcs = {v: dict(own) for v, own in arcs.items()}
    members, prices = {v: [v] for v in arcs}, dict.fromkeys(arcs, 0)
    value, label, todo, chosen = 0, max(arcs, default=0), list(arcs), dict[int, int]()
    while todo:
        v = todo.pop()
        if not arcs[v]:
            return None
        chosen[v] = max(arcs[v], key=arcs[v].__getitem__)
        price = arcs[v][chosen[v]]
        value += price
        prices.update({a: prices[a] + price for a in members[v]})
        arcs[v] = {u: w - price for u, w in arcs[v].items()}
        cycle, u = [v], chosen[v]
        while u in chosen and u != v:
            cycle.append(u)
            u = chosen[u]
        if u != v:
            continue
        label += 1  # the cycle becomes one node; what enters it costs what it displaces
        members[label] = [a for x in cycle for a in members[x]]
        entering = [(u, w) for x in cycle for u, w in arcs.pop(x).items() if u not in cycle]
        arcs[label] = {}
        for u, w in entering:
            arcs[label][u] = max(w, arcs[label].get(u, w))
        for own in arcs.values():
            leaving = [own.pop(x) for x in cycle if x in own]
            if leaving:
                own[label] = max(leaving)
        chosen = {x: label if u in cycle else u for x, u in chosen.items() if x not in cycle}
        todo.append(label)
    return value, prices


class Proof:
    """The claim of a certificate and the tree that is to prove it."""

    def __init__(self, packed: bytes) -> None:
        content = Content(packed)
        self.h = content.header
        self.problem = p = Problem(content)
        dropped, n_candidates = self.h["candidates"]["dropped"], len(p.candidates)
        bits = content.take("B", -(-dropped // 8))
        self.dropped = {k for k in range(dropped) if bits[k // 8] >> (7 - k % 8) & 1}
        need(dropped in (0, n_candidates), "dropped: not one bit per candidate")
        need(not (self.dropped and p.is_margin), "dropped: candidates matter to a margin")
        self.tree = content.take("i", self.h["tree"])
        self.rivals = {"multiclass": p.arities[0] - 1, "binary": 1}.get(p.name, 0)
        self.duals = content.take_duals(len(p.rows) * self.rivals)
        lengths = content.take("i", self.h["multipliers"])
        need(min(lengths, default=0) >= 0, "multipliers: negative lengths", ValueError)
        rows = iter(content.take("i", sum(lengths)))
        values = iter(content.take("d", sum(lengths)))
        self.multipliers = [[(next(rows), next(values)) for _ in range(n)] for n in lengths]
        need(not content.rest, "bytes follow the last array", ValueError)
        need(
            all(kind in ("cluster", "edge") for kind, _ in self.h["rows"]), "rows: kind", ValueError
        )
        self.majorant = lru_cache(64)(self.make_majorant)

    def check(self) -> tuple[Fraction, Fraction, Fraction, int]:
        """Ends of the incumbent's score, the largest bound of a leaf, and the number of leaves."""
        lo, hi = self.score_incumbent()
        need(self.h["objective"] <= lo, f"the incumbent scores at most {show(hi, ROUND_CEILING)}")
        need(self.h["objective"] <= self.h["bound"], "the objective is above the bound")
        most, leaves = self.walk()
        return lo, hi, most, leaves

    def score_incumbent(self) -> tuple[Fraction, Fraction]:
        """The incumbent is a structure of the problem; what it scores."""
        p, incumbent = self.problem, self.h["incumbent"]
        numbers = {candidate: k for k, candidate in enumerate(p.candidates)}
        need(len(incumbent) == len(p.names), "incumbent: not one set per variable")
        need(all(c in numbers for c in enumerate(incumbent)), "incumbent: no candidate")
        left = dict(enumerate(incumbent))
        while left:
            free = [i for i, parents in left.items() if not any(v in left for v in parents)]
            need(free, "incumbent: a cycle")
            left = {i: parents for i, parents in left.items() if i not in free}
        chosen = [numbers[c] for c in enumerate(incumbent)]
        if not p.is_margin:
            lo, hi = add((1, p.local_score(k)) for k in chosen)
            return Fraction(lo, 2 * p.unit * SCALE), Fraction(hi, 2 * p.unit * SCALE)
        ends = [Fraction(0), Fraction(0)]
        for x, w in zip(p.rows, p.weights, strict=True):
            at = [p.factors(k)[tuple(x[v] for v in p.family(k))] for k in chosen if p.factors(k)]
            rivals = [c for c in range(p.arities[0]) if c != x[0]] if p.name == "multiclass" else []
            margins = [
                add(chain(((1, s[x[0]]) for s in at), ((-1, s[c]) for s in at))) for c in rivals
            ] or [add((1, s[x[0]]) for s in at)]
            for a in (0, 1):
                ends[a] += w * min(p.gamma * SCALE, *(margin[a] for margin in margins))
        return ends[0] / (p.unit * SCALE), ends[1] / (p.unit * SCALE)

    def make_majorant(self, d: int) -> tuple[int, Fraction, list[int]]:
        """Unit, constant and values of the candidates, rounded up: f <= constant + values."""
        p = self.problem
        if not p.is_margin:
            need(d == 0 and not self.duals, "a decomposable score has no dual weights")
            return (
                2 * p.unit * SCALE,
                self.loss(),
                [p.local_score(k)[1] for k in range(len(p.candidates))],
            )
        need(0 <= d < len(self.duals), f"dual weights {d} do not exist")
        whole, spare, classes = 1 << self.h["duals"][d][0], 0, range(p.arities[0])
        net = [[0] * len(p.rows) for _ in classes]
        for m, (x, w) in enumerate(zip(p.rows, p.weights, strict=True)):
            shares = self.duals[d][m * self.rivals : (m + 1) * self.rivals]
            need(sum(shares) <= whole, f"dual weights {d}: sample {m} gives more than it has")
            spare += w * (whole - sum(shares))
            net[x[0]][m] = w * sum(shares)
            if p.name == "multiclass":
                for c, share in zip((c for c in classes if c != x[0]), shares, strict=True):
                    net[c][m] = -w * share
        sums = cache(lambda family: p.sums(family, net))
        values = []
        for k in range(len(p.candidates)):
            of = sums(p.family(k)) if p.factors(k) else {}
            values.append(
                add(chain(*(zip(of[f], s, strict=True) for f, s in p.factors(k).items())))[1]
            )
        return p.unit * whole * SCALE, p.gamma * spare * SCALE, values

    def loss(self) -> Fraction:
        """How much dropped candidates may be better than their best kept subsets, summed up."""
        p, total = self.problem, 0
        for group in p.groups:
            kept = {p.candidates[k][1]: p.local_score(k)[0] for k in group if k not in self.dropped}
            losses = [0]
            for k in self.dropped.intersection(group):
                parents = p.candidates[k][1]
                subsets = chain(*(combinations(parents, size) for size in range(len(parents))))
                below = [kept[s] for s in subsets if s in kept]
                need(below, f"dropped: candidate {k} has no subset that is kept")
                losses.append(p.local_score(k)[1] - max(below))
            total += max(losses)
        return Fraction(total)

    def walk(self) -> tuple[Fraction, int]:
        """Every leaf of the tree; sets of candidates are the bits of an integer."""
        p, place, leaves, most = self.problem, 0, 0, self.h["objective"]
        masks = [sum(1 << k for k in group) for group in p.groups]
        holds = cache(lambda i, j: sum(1 << k for k in p.groups[i] if j in p.candidates[k][1]))
        everything = sum(masks) - sum(1 << k for k in self.dropped)
        todo: list[tuple[int, frozenset[Sets]]] = [(everything, frozenset())]
        while todo:
            allowed, present = todo.pop()
            need(place < len(self.tree), "the tree is not complete")
            kind = self.tree[place]
            need(0 <= kind < 5, f"entry {place} of the tree: no kind of node")
            a = self.tree[place + 1 : place + 1 + ARGUMENTS[kind]]
            place += 1 + ARGUMENTS[kind]
            need(len(a) == ARGUMENTS[kind] and min(a) >= 0, "the tree is cut off, or negative")
            if kind in (FOREST, CLUSTERS):
                bound = self.bound_leaf(kind, a, allowed, present)
                reason = f"leaf {leaves}: structures may score up to {show(bound, ROUND_CEILING)}"
                need(bound <= self.h["bound"], reason)
                leaves, most = leaves + 1, max(most, bound)
                continue
            without, joined = allowed, present
            if kind == CANDIDATE:
                need(a[0] < len(p.candidates), f"candidate {a[0]} does not exist")
                i = p.candidates[a[0]][0]
                without, allowed = allowed & ~(1 << a[0]), allowed & (~masks[i] | 1 << a[0])
            else:
                need(a[0] != a[1] and max(a) < len(p.names), f"{a} cannot be joined")
                without = allowed & ~holds(*a)
                if kind == EDGE:
                    without, joined = without & ~holds(a[1], a[0]), present | {tuple(sorted(a))}
                else:
                    allowed &= ~masks[a[0]] | holds(*a)
            todo += [(allowed, joined), (without, present)]
            need(len(todo) * len(p.candidates) <= 100 * MAX_CELLS, TOO_LARGE, ValueError)
        need(place == len(self.tree), "something follows the tree")
        return most, leaves

    def bound_leaf(self, kind: int, a: Sets, allowed: int, present: frozenset[Sets]) -> Fraction:
        """No structure of the leaf scores more; the claimed objective if there is none in it."""
        unit, constant, values = self.majorant(a[0])
        on = bin(allowed)[:1:-1].ljust(len(values), "0")
        open_ = [[k for k in group if on[k] == "1"] for group in self.problem.groups]
        if not all(open_):
            return Fraction(self.h["objective"])
        if kind == FOREST:
            limit = math.floor(self.h["bound"] * unit - constant)
            most: int | Fraction | None = self.bound_forests(values, open_, present, limit)
        else:
            most = self.bound_clusters(a[1], unit, values, open_, present)
        return Fraction(self.h["objective"]) if most is None else (most + constant) / unit

    def bound_clusters(
        self,
        number: int,
        unit: int,
        values: list[int],
        open_: list[list[int]],
        present: frozenset[Sets],
    ) -> Fraction:
        """Rows that hold, with multipliers >= 0, then the best candidate of every variable."""
        need(number < len(self.multipliers), f"multipliers {number} do not exist")
        need(-1100 <= self.h["grid"] <= 1100, "the grid makes no sense")
        p, step, constant = self.problem, Fraction(2) ** self.h["grid"], Fraction(0)
        raised: list[int | Fraction] = list(values)
        for number, y in self.multipliers[number]:
            need(0 <= number < len(self.h["rows"]), f"row {number} does not exist")
            need(math.isfinite(y) and y >= 0, f"row {number}: the multiplier must be >= 0")
            kind, members = self.h["rows"][number]
            inside = set(members)
            need(inside and max(inside) < len(p.names), f"row {number}: no variables")
            need(kind == "cluster" or members in present, f"row {number}: the edge may be absent")
            price = Fraction(y) // step * step * unit
            constant -= price
            for k in chain(*(open_[i] for i in inside)):
                if inside.isdisjoint(p.candidates[k][1]) == (kind == "cluster"):
                    raised[k] += price
        return constant + sum(max(raised[k] for k in own) for own in open_)

    def bound_forests(
        self, values: list[int], open_: list[list[int]], present: frozenset[Sets], limit: int
    ) -> int | None:
        """The largest value of a structure, or a number up to ``limit`` that is at least that.

        An edge that must be present earns a reward either way round; the rewards of all such edges
        are taken off at the end. So every reward gives a true bound, and a large one the maximum.
        """
        p, reward = self.problem, 4 * sum(map(abs, values)) + 1
        shapes = all(len(s) <= 2 and (i == 0 or not s or s[0] == 0) for i, s in p.candidates)
        need(shapes, "forests bound nothing here")
        slots = [{p.candidates[k][1]: values[k] for k in own} for own in open_]

        def best(members: Sets, tied: set[int]) -> tuple[int, dict[int, int]] | None:
            """Members of the class set have no parents; those tied to the class have some."""
            graph: dict[int, dict[int, int]] = {}
            for i, own in enumerate(slots[1:], 1):
                hanging = [s for s in ((), (0,)) if s in own and (s or i not in tied)]
                hanging = [()] if i in members and () in own else hanging
                graph[i] = {0: max(own[s] for s in hanging)} if hanging else {}
                for s, w in own.items():
                    if len(s) == 2 and i not in members:
                        forced = (min(i, s[1]), max(i, s[1])) in present
                        graph[i][s[1]] = w + reward * forced
            return best_arborescence(graph)

        relaxed, found = best((), set()), []
        taken = reward * sum(a > 0 for a, _ in present)
        for members, value in slots[0].items():
            if relaxed is None or any(() not in slots[j] for j in members):
                continue
            price = sum(relaxed[1][j] - slots[j][()] for j in members)
            bound = value + relaxed[0] - price - taken
            if bound > limit:
                exact = best(members, {b for a, b in present if a == 0} - set(members))
                if exact is None:
                    continue
                bound = value + exact[0] - taken
            found.append(bound)
        return max(found, default=None)


# ------------------------------------------------------------------------------- the report


def show(number: Fraction, rounding: str) -> str:
    """30 digits, rounded in the direction asked for."""
    own = Context(prec=30, rounding=rounding)
    return str(own.divide(Decimal(number.numerator), Decimal(number.denominator)))


def main(arguments: Sequence[str]) -> int:
    """Check the file that is named; see the module's docstring."""
    try:
        proof = Proof(Path(arguments[0]).read_bytes())
        lo, hi, most, leaves = proof.check()
    except Refuted as reason:
        print(f"NOT VERIFIED\n{reason}")  # noqa: T201
        return 1
    except (OSError, ValueError, OverflowError, RecursionError, MemoryError, zlib.error) as error:
        print(f"UNREADABLE\n{error}")  # noqa: T201
        return 2
    h = proof.h
    print(  # noqa: T201
        f"VERIFIED\nstructure: {show(lo, ROUND_FLOOR)} <= score <= {show(hi, ROUND_CEILING)}, "
        f"claimed at least {h['objective']}\n"
        f"all structures: score <= {show(most, ROUND_CEILING)}, claimed at most {h['bound']} ({leaves} leaves)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
