"""Lists of parent sets, sets of variables as words of bits, and random numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray, WordArray
from marginbn.solvers.compile import kernel

ONE, LOW = np.uint64(1), np.uint64(63)
"""One bit, and the bits of a variable's number that are its place in a word of 64."""


class Lists(NamedTuple):
    """The lists as kernels take them."""

    offsets: IntArray  # (n + 1,) the candidates of i are offsets[i]:offsets[i + 1]
    masks: WordArray  # (K, words) parent sets
    cost: FloatArray  # (K,) at least zero, rising within each variable


@kernel
def has(words: WordArray, v: int) -> bool:
    """Whether the set holds a variable."""
    return bool((words[v >> 6] >> (np.uint64(v) & LOW)) & ONE)


@kernel
def add(words: WordArray, v: int) -> None:
    """Put a variable in."""
    words[v >> 6] |= ONE << (np.uint64(v) & LOW)


@kernel
def remove(words: WordArray, v: int) -> None:
    """Take a variable out."""
    words[v >> 6] &= ~(ONE << (np.uint64(v) & LOW))


@kernel
def is_within(masks: WordArray, k: int, words: WordArray) -> bool:
    """Whether parent set k lies within a set."""
    for w in range(words.size):  # noqa: SIM110 - compiled
        if masks[k, w] & ~words[w] != 0:
            return False
    return True


@kernel
def meets(masks: WordArray, k: int, words: WordArray) -> bool:
    """Whether parent set k and a set have a common member."""
    for w in range(words.size):  # noqa: SIM110 - compiled
        if masks[k, w] & words[w] != 0:
            return True
    return False


@kernel
def next_random(state: IntArray) -> int:
    """A non-negative number from a xorshift generator; ``state`` (1,) must not be zero."""
    x: int = state[0]
    x ^= (x << 13) & 0x7FFFFFFFFFFFFFFF
    x ^= x >> 7
    x ^= (x << 17) & 0x7FFFFFFFFFFFFFFF
    state[0] = x
    return x & 0x3FFFFFFFFFFFFFFF


@kernel
def shuffle(order: IntArray, state: IntArray) -> None:
    """Bring the entries into random order."""
    for a in range(order.size - 1, 0, -1):
        b = next_random(state) % (a + 1)
        order[a], order[b] = order[b], order[a]
