"""Logarithms that can be trusted, as whole numbers of 2^-44.

:func:`log_units` and :func:`log_gamma_units` return whole numbers that differ from the true value
times 2^44 by less than one. They rest on the decimal arithmetic of the standard library, whose
logarithm is correctly rounded, and on nothing the processor or a mathematical library does.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache

SHIFT = 44
"""Values are whole numbers of 2^-44."""

_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
_UNIT = Decimal(2**SHIFT)

_STIRLING = [Fraction(b) for b in (
    "1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510", "43867/798",
    "-174611/330", "854513/138",
)]  # fmt: skip
"""Bernoulli numbers B_2, B_4, ..., B_22."""

_LARGE = 40
"""From here on the series below is exact to far more digits than needed."""

_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


@lru_cache(maxsize=1_000_000)
def log_units(number: int) -> int:
    """The natural logarithm of a positive whole number, in units of 2^-44."""
    return int((_EXACT.multiply(_EXACT.ln(Decimal(number)), _UNIT)).to_integral_value())


@lru_cache(maxsize=1_000_000)
def log_gamma_units(x: Fraction) -> int:
    """The logarithm of the gamma function of a positive number, in units of 2^-44.

    With x >= 40 after Gamma(x) = Gamma(x + N) / (x (x + 1) ... (x + N - 1)), Stirling's series

        log Gamma(x) = (x - 1/2) log x - x + log(2 pi) / 2 + sum_j B_2j / (2j (2j - 1) x^(2j - 1))

    alternates, and its error is smaller than the first term left out: less than 1e-30 here.
    """
    steps = max(0, _LARGE - int(x))
    product = Fraction(1)
    for step in range(steps):
        product *= x + step
    far = x + steps
    rest = sum(
        (b / (2 * j * (2 * j - 1) * far ** (2 * j - 1)) for j, b in enumerate(_STIRLING, 1)),
        Fraction(0),
    )
    value = _EXACT.multiply(_decimal(far - Fraction(1, 2)), _EXACT.ln(_decimal(far)))
    value = _EXACT.add(value, _decimal(rest - far))
    value = _EXACT.add(
        value, _EXACT.divide(_EXACT.ln(_EXACT.multiply(Decimal(2), _PI)), Decimal(2))
    )
    value = _EXACT.subtract(value, _EXACT.ln(_decimal(product)))
    return int(_EXACT.multiply(value, _UNIT).to_integral_value())


def _decimal(number: Fraction) -> Decimal:
    return _EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))
