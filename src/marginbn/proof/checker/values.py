"""Logarithms that can be trusted, and scores from the encoded data with a proven side of rounding.

:func:`log_units` and :func:`log_gamma_units` return whole numbers that differ from the true value
times 2^44 by less than one. They rest on the decimal arithmetic of the standard library, whose
logarithm is correctly rounded, and on nothing the processor or a mathematical library does.

Weights are floating-point numbers, hence whole numbers of some power of two, and counts are exact
sums of them. ``docs/theory/certificate_format.rst`` (Scores) has the formulas of all numbers here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import mul

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import Data, Score
from marginbn.proof.checker.statement import RefutedError

FEW_STATES = 256
"""Joint states up to so many are counted whether they occur or not."""

MOST_LOGARITHMS = 200_000
"""So many of each kind are remembered."""

SHIFT = 44
"""Values are whole numbers of 2^-44."""

_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
_UNIT = Decimal(2**SHIFT)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")

_BERNOULLI = [Fraction(b) for b in (
    "1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510", "43867/798",
    "-174611/330", "854513/138",
)]  # fmt: skip
"""B_2, B_4, ..., B_22."""

_STIRLING = [b / (2 * j * (2 * j - 1)) for j, b in enumerate(_BERNOULLI, 1)]


@lru_cache(maxsize=MOST_LOGARITHMS)
def log_units(number: int) -> int:
    """The natural logarithm of a positive whole number, in units of 2^-44."""
    return _in_units(_EXACT.ln(Decimal(number)), _EXACT)


@lru_cache(maxsize=MOST_LOGARITHMS)
def log_gamma_units(x: Fraction) -> int:
    """The logarithm of the gamma function of a positive number, in units of 2^-44.

    With x >= 40 after Gamma(x) = Gamma(x + N) / (x (x + 1) ... (x + N - 1)), Stirling's series

        log Gamma(x) = (x - 1/2) log x - x + log(2 pi) / 2 + sum_j B_2j / (2j (2j - 1) x^(2j - 1))

    alternates, and its error is less than the first term left out, 1e-30. The terms are as large as
    x log x, so the precision grows with x: with d digits before the point and 60 more, a hundred
    terms and factors err by less than 100 x log x 10^(-59 - d) < 1e-50 for all x below 10^1000.
    """
    context = Context(prec=60 + len(str(int(x))), rounding=ROUND_HALF_EVEN)
    near = _decimal(x, context)
    with localcontext(context):
        product, far = Decimal(1), near
        for _ in range(max(0, 40 - int(x))):
            product *= far
            far += 1
        value = (far - Decimal("0.5")) * far.ln() - far + (2 * _PI).ln() / 2 - product.ln()
        for j, coefficient in enumerate(_STIRLING, 1):
            value += _decimal(coefficient, context) / far ** (2 * j - 1)
        return _in_units(value, context)


def _decimal(number: Fraction, context: Context = _EXACT) -> Decimal:
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def _in_units(value: Decimal, context: Context) -> int:
    """The nearest whole number of 2^-44."""
    return int(context.multiply(value, _UNIT).to_integral_value(ROUND_HALF_EVEN))


LIMB = 26
"""Bits of a piece of a weight: sums of fewer than 2^27 of them are exact in double precision."""

SLACK = 4
"""A coefficient is the sum of at most four logarithms, each off by less than one unit."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """Exact weighted counts of the data; ``scale`` turns them into numbers of rows."""

    data: Data

    @cached_property
    def scale(self) -> int:
        """The power of two that makes all weights whole numbers."""
        return max(Fraction(w).denominator for w in self.data.weights.tolist())

    @cached_property
    def weights(self) -> list[int]:
        """Weights as whole numbers."""
        return [int(Fraction(w) * self.scale) for w in self.data.weights.tolist()]

    @cached_property
    def _limbs(self) -> list[NDArray[np.float64]]:
        n_limbs = -(-max(w.bit_length() for w in self.weights) // LIMB)
        parts = ([w >> LIMB * a & 2**LIMB - 1 for w in self.weights] for a in range(n_limbs))
        return [np.array(own, dtype=np.float64) for own in parts]

    def group(self, columns: Sequence[int], before: Integers | None = None) -> Integers:
        """Number of the joint state of some variables, and of groups before, in every sample.

        Few states are numbered as they come; many are numbered as they occur.
        """
        ids = np.zeros(len(self.data.codes), dtype=np.int64) if before is None else before
        states = 1 if before is None else int(before.max()) + 1
        for column in columns:
            arity = self.data.arities[column]
            ids, states = ids * arity + self.data.codes[:, column], states * arity
            if states > FEW_STATES:
                occurring, ids = np.unique(ids, return_inverse=True)
                ids, states = ids.reshape(-1).astype(np.int64), len(occurring)
        return ids

    def count(self, ids: Integers, size: int) -> list[int]:
        """Total weight of each group, exact."""
        totals = [0] * size
        for place, limb in enumerate(self._limbs):
            for group, part in enumerate(np.bincount(ids, limb, size).tolist()):
                totals[group] += int(part) << LIMB * place
        return totals

    def by_class(self, ids: Integers) -> list[list[int]]:
        """Total weight of each group and class."""
        classes, groups = self.data.arities[0], int(ids.max()) + 1
        flat = self.count(ids * classes + self.data.codes[:, 0], groups * classes)
        return [flat[g * classes : (g + 1) * classes] for g in range(groups)]


# ---------------------------------------------------------------------------------- margins


@dataclass(frozen=True, eq=False)
class MarginValues:
    """Coefficients of a margin problem."""

    counts: ExactCounts
    score: Score

    @cached_property
    def _rivals(self) -> Integers:
        """(n_samples, n_rivals): the other classes in increasing order."""
        n_classes = self.counts.data.arities[0]
        others = [[c for c in range(n_classes) if c != own] for own in range(n_classes)]
        by_class = np.array(others, dtype=np.int64).reshape(n_classes, -1)
        return np.asarray(by_class[self.counts.data.codes[:, 0]])

    def units(self, child: int, parents: tuple[int, ...]) -> Integers:
        """Coefficients of a candidate in units, (n_samples, n_rivals); each off by less than 4."""
        data = self.counts.data
        if child != 0 and 0 not in parents:
            shape = (len(data.codes), self.score.n_rivals(data.arities[0]))
            return np.zeros(shape, dtype=np.int64)
        features = [v for v in parents if v != 0]
        above = self.counts.group(features)
        here = self.counts.group([*features, child]) if child != 0 else above
        table = np.array(self._table(child, above, here), dtype=np.int64)[here]
        own = np.take_along_axis(table, data.codes[:, :1].astype(np.int64), axis=1)
        if self.score.name == "binary":
            return own
        return own - np.take_along_axis(table, self._rivals, axis=1)

    def _table(self, child: int, above: Integers, here: Integers) -> list[list[int]]:
        """The number of each state and class, in units."""
        numerator, denominator = Fraction(self.score.smoothing).as_integer_ratio()
        scale = self.counts.scale
        unit = max(1, denominator // math.gcd(denominator, scale))  # both are powers of two
        smooth = numerator * (scale * unit // denominator)
        first = np.zeros(int(here.max()) + 1, dtype=np.int64)
        first[here] = above  # the state of the parents that belongs to each joint state
        of_state, of_parents = self.counts.by_class(here), self.counts.by_class(above)
        arity = self.counts.data.arities[child]

        def factor(n: int, total: int) -> int:
            return log_units(n + smooth) - log_units(total + smooth * arity)

        rows = []
        for state, parent in enumerate(first.tolist()):
            inside = [unit * n for n in of_state[state]]
            totals = [unit * n for n in of_parents[parent]]
            every, whole = sum(inside), sum(totals)
            rests = [whole - total for total in totals]  # any class but the one at hand
            if child == 0:
                totals = rests = [whole] * len(totals)
            row = [factor(n, total) for n, total in zip(inside, totals, strict=True)]
            if self.score.name == "binary":
                own = zip(row, inside, rests, strict=True)
                row = [value - factor(every - n, rest) for value, n, rest in own]
            rows.append(row)
        return rows


# ---------------------------------------------------------------------------------- decomposable

PENALTIES: dict[str, Callable[[Decimal], Decimal]] = {
    "loglik": lambda total: Decimal(0),
    "aic": lambda total: Decimal(1),
    "mdl": lambda total: total.ln() / 2,
}
"""Log likelihood minus so many nats per free parameter, a function of the total weight."""

PRIORS: dict[str, Callable[[Score, int], Fraction]] = {
    "bdeu": lambda score, n_cells: Fraction(score.equivalent_sample_size) / n_cells,
    "k2": lambda score, n_cells: Fraction(1),
}
"""Log marginal likelihood with this prior count in every cell of a table of so many."""


def decomposable_scores() -> tuple[str, ...]:
    """Names of the decomposable scores that can be checked."""
    return (*PENALTIES, *PRIORS)


def local_score(
    counts: ExactCounts, score: Score, child: int, parents: tuple[int, ...]
) -> tuple[int, int]:
    """Score of a candidate as (lower, upper) in units of 2^-44."""
    arities = counts.data.arities
    above = counts.group(parents)
    here = counts.group([child], above)
    rows = [n for n in counts.count(above, int(above.max()) + 1) if n]
    cells = [n for n in counts.count(here, int(here.max()) + 1) if n]
    states = math.prod(arities[p] for p in parents)
    scale = counts.scale
    if score.name in PRIORS:  # states that do not occur contribute nothing
        prior = PRIORS[score.name](score, states * arities[child])
        above_prior = prior * arities[child]
        value = len(rows) * log_gamma_units(above_prior) - len(cells) * log_gamma_units(prior)
        for sign, own, totals in ((1, prior, cells), (-1, above_prior, rows)):
            times = Counter(totals).items()
            value += sign * sum(k * log_gamma_units(own + Fraction(n, scale)) for n, k in times)
        error = 2 * (len(rows) + len(cells))
        return value - error, value + error
    # value and error are whole numbers of 1 / scale, which cancels in differences of n log n
    parameters = states * (arities[child] - 1)
    penalty, off = penalty_units(score.name, sum(rows), scale)
    value = sum(map(mul, cells, map(log_units, cells))) - scale * parameters * penalty
    value -= sum(map(mul, rows, map(log_units, rows)))
    error = sum(cells) + sum(rows) + scale * parameters * off
    return (value - error) // scale, -(-(value + error) // scale)


@lru_cache
def penalty_units(name: str, weight: int, scale: int) -> tuple[int, int]:
    """Penalty of a free parameter in units, and by how many it may be off."""
    if name not in PENALTIES:
        raise RefutedError(f"the score {name!r} is not known")
    try:
        with localcontext(_EXACT):
            exact = PENALTIES[name](_decimal(Fraction(weight, scale))) * _UNIT
            units = int(exact.to_integral_value())
            return units, int(exact != units)
    except ArithmeticError:  # say, the logarithm of a logarithm that is negative
        total = weight / scale
        raise RefutedError(f"{name!r} is not defined for the total weight {total}") from None


@lru_cache(MOST_LOGARITHMS)
def entropy_units(n: Fraction, shift: int) -> int:
    """The nearest whole number of 2^-shift to n log n."""
    exact = _EXACT.multiply(_EXACT.ln(_decimal(n)), _decimal(n * 2**shift))
    return int(exact.to_integral_value(ROUND_HALF_EVEN))
