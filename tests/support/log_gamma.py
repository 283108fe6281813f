"""The logarithm of the gamma function in decimal arithmetic.

By Spouge's formula,

    Gamma(z + 1) = (z + a)^(z + 1/2) e^-(z + a) (sqrt(2 pi) + sum_{0 < k < a} c_k / (z + k) + r),
    c_k = (-1)^(k - 1) / (k - 1)! (a - k)^(k - 1/2) e^(a - k),

whose relative error is below a^(-1/2) (2 pi)^(-a - 1/2): less than 1e-49 for a = 60.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

A = 60
PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534"
)


@cache
def spouge_coefficients() -> list[Decimal]:
    """sqrt(2 pi), c_1, ..., c_59."""
    with localcontext(prec=200):
        rest = [
            Decimal((-1) ** (k - 1)) / math.factorial(k - 1)
            * Decimal(A - k) ** (k - 1) * Decimal(A - k).sqrt() * Decimal(A - k).exp()
            for k in range(1, A)
        ]  # fmt: skip
        return [(2 * PI).sqrt(), *rest]


def log_gamma(x: Fraction, digits: int = 1000) -> Decimal:
    """By Spouge's formula, log Gamma(x) = log Gamma(x + 1) - log x."""
    with localcontext(prec=digits):
        z = Decimal(x.numerator) / Decimal(x.denominator)
        first, *rest = spouge_coefficients()
        series = first + sum(c / (z + k) for k, c in enumerate(rest, 1))
        far = z + A
        return (z + Decimal("0.5")) * far.ln() - far + series.ln() - z.ln()
