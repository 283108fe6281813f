"""What is known of sets of placed variables, in a table of fixed size.

Under the key U stands a number that the other variables cost at least when U comes first. A set has
a few places in a row; where they are all taken, the entry of the largest set gives way: least is
left to search behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.compile import kernel
from marginbn.solvers.orders.kernels.word_sets import ONE, FloatArray, WordArray

WAYS = 4
"""Places of a set."""

FACTOR = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(31)


class KnownSets(NamedTuple):
    """The table; zero marks an empty place."""

    keys: WordArray  # (places, words), places a power of two
    values: FloatArray  # (places,)


@kernel
def _first_place(known: KnownSets, words: WordArray) -> int:
    """Where the places of a set begin."""
    number = np.uint64(0)
    for w in range(words.size):
        number = (number ^ words[w]) * FACTOR
        number ^= number >> HALF
    return int(np.int64(number & np.uint64(known.values.size - WAYS)))


@kernel
def _is_key(known: KnownSets, place: int, words: WordArray) -> bool:
    for w in range(words.size):  # noqa: SIM110 - compiled
        if known.keys[place, w] != words[w]:
            return False
    return True


@kernel
def count_members(words: WordArray) -> int:
    """Size of a set."""
    count = 0
    for w in range(words.size):
        left = words[w]
        while left != 0:
            left &= left - ONE
            count += 1
    return count


@kernel
def recall(known: KnownSets, words: WordArray) -> float:
    """What the others cost at least when a set comes first; zero if nothing is known."""
    first = _first_place(known, words)
    for place in range(first, first + WAYS):
        if known.values[place] > 0 and _is_key(known, place, words):
            return float(known.values[place])
    return 0.0


@kernel
def remember(known: KnownSets, words: WordArray, value: float) -> None:
    """Keep the larger of what is known and the value."""
    if value <= 0:
        return
    first = _first_place(known, words)
    worst, worst_size = first, -1
    for place in range(first, first + WAYS):
        if known.values[place] == 0:
            worst = place
            break
        if _is_key(known, place, words):
            known.values[place] = max(known.values[place], value)
            return
        size = count_members(known.keys[place])
        if size > worst_size:
            worst, worst_size = place, size
    known.keys[worst] = words
    known.values[worst] = value
