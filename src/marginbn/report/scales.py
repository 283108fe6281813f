"""Axes of a chart: from values to places, with ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """An axis from ``start`` to ``end`` (in pixels) with the ticks on it.

    Parameters
    ----------
    place
        From a value to its pixel.
    ticks
        Values with their labels.
    """

    place: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]


def linear_scale(low: float, high: float, start: float, end: float, most: int = 5) -> Scale:
    """Equal steps; the ends are the values themselves, widened where they are equal."""
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        low, high = low - 0.5, high + 0.5
    step = round_step((high - low) / most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = tuple((k * step, f"{k * step:.{digits}f}") for k in range(first, last + 1))
    return Scale(lambda value: start + (value - low) / (high - low) * (end - start), ticks)


def log_scale(low: float, high: float, start: float, end: float, most: int = 5) -> Scale:
    """Equal ratios; both ends must be positive. Ticks are powers of ten."""
    lower, upper = math.log10(low), math.log10(max(high, low * 1.001))

    def place(value: float) -> float:
        return start + (math.log10(max(value, low)) - lower) / (upper - lower) * (end - start)

    exponents = range(math.ceil(lower - 1e-9), math.floor(upper + 1e-9) + 1)
    every = max(1, -(-len(exponents) // most))
    ticks = tuple((10.0**k, f"{10.0**k:g}") for k in exponents[::every])
    return Scale(place, ticks)


def round_step(width: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least so wide.

    Examples
    --------
    >>> round_step(0.3), round_step(7), round_step(20)
    (0.5, 10.0, 20.0)
    """
    power = 10.0 ** math.floor(math.log10(width))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-9))
