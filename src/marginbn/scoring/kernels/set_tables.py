"""Sets of variables as keys: bits, and a table that finds them by hashing.

A table is an array of places, a power of two of them; each holds the number of a set in an array of
sets, or -1. A set is sought from the place that its words are mixed to, onwards.
"""

from __future__ import annotations

import numpy as np

from marginbn.problem.array_types import IntArray, WordArray
from marginbn.solvers.compile import entry, kernel


@kernel
def has(mask: WordArray, v: int) -> bool:
    """Whether v is a member."""
    return bool((mask[v >> 6] >> np.uint64(v & 63)) & np.uint64(1) != np.uint64(0))


@kernel
def toggle(mask: WordArray, v: int) -> None:
    """Put v in or take it out."""
    mask[v >> 6] ^= np.uint64(1) << np.uint64(v & 63)


@kernel
def mix(mask: WordArray) -> int:
    """A number in which every word has a share, not negative."""
    number = np.uint64(0)
    for w in range(len(mask)):
        number = (number ^ mask[w]) * np.uint64(0x9E3779B97F4A7C15)
        number ^= number >> np.uint64(29)
    number *= np.uint64(0xBF58476D1CE4E5B9)
    return int((number ^ (number >> np.uint64(32))) >> np.uint64(1)) & 0x3FFFFFFFFFFFFFFF


@kernel
def find(places: IntArray, sets: WordArray, mask: WordArray) -> int:
    """The number of a set, -1 if it is not there."""
    last = len(places) - 1
    place = mix(mask) & last
    while places[place] >= 0:
        number = int(places[place])
        same = True
        for w in range(len(mask)):
            if sets[number, w] != mask[w]:
                same = False
                break
        if same:
            return number
        place = (place + 1) & last
    return -1


@kernel
def insert(places: IntArray, sets: WordArray, number: int) -> None:
    """Put a set that is not there yet into a table with an empty place."""
    last = len(places) - 1
    place = mix(sets[number]) & last
    while places[place] >= 0:
        place = (place + 1) & last
    places[place] = number


@entry
def new_table(sets: WordArray, room: int) -> IntArray:
    """A table of different sets, at most half full with so many of them."""
    size = 8
    while size < 2 * room:
        size *= 2
    places = np.full(size, -1)
    for number in range(len(sets)):
        insert(places, sets, number)
    return places


@entry
def enrol(places: IntArray, sets: WordArray, size: int, asked: WordArray) -> IntArray:
    """The number of each set that is asked for; new ones get the numbers from ``size`` on.

    ``sets`` has room for them, and the table stays at most half full.
    """
    numbers = np.empty(len(asked), np.int64)
    for k in range(len(asked)):
        number = find(places, sets, asked[k])
        if number < 0:
            sets[size] = asked[k]
            insert(places, sets, size)
            number = size
            size += 1
        numbers[k] = number
    return numbers
