"""Sets of variables as bit masks, many of them in one array.

A set over n variables is a row of ceil(n / 64) words of 64 bits; bit v % 64 of word v // 64 says
whether v is a member. A million sets are a few megabytes this way, where as many tuples are some
hundred. A set becomes a tuple when it is read (:class:`ParentSets`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray, WordArray

BITS = 64
"""Variables per word."""

BLOCK = 1 << 14
"""Sets that are unpacked at a time."""


def n_words(n_variables: int) -> int:
    """Words of a mask."""
    return max(1, -(-n_variables // BITS))


def masks_of(sets: Sequence[Sequence[int]], n_variables: int) -> WordArray:
    """Masks of sets that are given by their members.

    Examples
    --------
    >>> masks_of([(), (0, 2), (65,)], 66).tolist()
    [[0, 0], [5, 0], [0, 2]]
    """
    row = np.repeat(np.arange(len(sets)), [len(s) for s in sets])
    member = np.fromiter((v for s in sets for v in s), dtype=np.int64, count=len(row))
    return masks_from_members(row, member, len(sets), n_variables)


def masks_from_members(row: IntArray, member: IntArray, n_sets: int, n_variables: int) -> WordArray:
    """Masks of sets from pairs of a set's number and a member."""
    masks = np.zeros((n_sets, n_words(n_variables)), dtype=np.uint64)
    bits = np.uint64(1) << (member % BITS).astype(np.uint64)
    np.bitwise_or.at(masks, (row, member // BITS), bits)
    return masks


def set_sizes(masks: WordArray) -> IntArray:
    """Number of members of each set."""
    return np.asarray(np.bitwise_count(masks).sum(axis=1, dtype=np.int64))


def members_of(masks: WordArray) -> tuple[IntArray, IntArray]:
    """All members, set after set and increasing, and the size of each set."""
    little = np.ascontiguousarray(masks).astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(little.reshape(len(masks), -1), axis=1, bitorder="little")
    return np.nonzero(bits)[1].astype(np.int64), bits.sum(axis=1, dtype=np.int64)


def sorting_order(masks: WordArray) -> IntArray:
    """The order by size and then by members, as tuples are compared.

    Of two sets of one size the one with the smallest member that the other has not comes first:
    the larger one, if bits are read from the lowest.
    """
    return np.lexsort([*_member_keys(masks), set_sizes(masks)])


def member_order(masks: WordArray) -> IntArray:
    """The order by members alone: of two sets the one that has the first member in which they
    differ comes first.
    """
    return np.lexsort(_member_keys(masks))


_REVERSED_BYTES = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], dtype=np.uint8)
"""Every byte with its bits in reverse."""


def _member_keys(masks: WordArray) -> list[WordArray]:
    """Words with their bits in reverse, complemented, the last word first."""
    mirrored = _REVERSED_BYTES[np.ascontiguousarray(masks.T[::-1]).view(np.uint8)]
    keys = mirrored.reshape(masks.shape[1], -1, 8)[:, :, ::-1].copy().view(np.uint64)
    return list(~keys[:, :, 0])


class SetTable:
    """Finds sets among many, all different, that are sorted by their words."""

    def __init__(self, masks: WordArray) -> None:
        self.masks = masks
        keys = _sortable(masks)
        self.order = np.argsort(keys)
        self.keys = keys[self.order]
        if (self.keys[1:] == self.keys[:-1]).any():
            raise ValueError("a set occurs twice in the list")

    def find(self, masks: WordArray) -> IntArray:
        """Where each set stands, -1 if it does not."""
        place = np.searchsorted(self.keys, _sortable(masks))
        found = self.order[np.minimum(place, len(self.order) - 1)]
        return np.where((self.masks[found] == masks).all(axis=1), found, -1)


def _sortable(masks: WordArray) -> NDArray[Any]:
    """One value for the words of each set: a number, or bytes where there are several words."""
    kind = np.uint64 if masks.shape[1] == 1 else f"S{8 * masks.shape[1]}"
    return np.ascontiguousarray(masks).view(kind)[:, 0]


class ParentSets(Sequence[tuple[int, ...]]):
    """Sets as tuples of their members, made when they are looked at.

    Examples
    --------
    >>> sets = ParentSets(masks_of([(), (0, 2)], 3))
    >>> len(sets), sets[1], sets == ((), (0, 2))
    (2, (0, 2), True)
    """

    def __init__(self, masks: WordArray) -> None:
        self.masks = masks

    def __len__(self) -> int:
        return len(self.masks)

    @overload
    def __getitem__(self, index: SupportsIndex) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[int, ...], ...]: ...
    def __getitem__(
        self, index: SupportsIndex | slice
    ) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        if isinstance(index, slice):
            return tuple(ParentSets(self.masks[index]))
        found = []
        for word, mask in enumerate(self.masks[index].tolist()):
            while mask:
                low = mask & -mask
                found.append(word * BITS + low.bit_length() - 1)
                mask ^= low
        return tuple(found)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        for first in range(0, len(self.masks), BLOCK):
            members, sizes = members_of(self.masks[first : first + BLOCK])
            flat, start = members.tolist(), 0
            for size in sizes.tolist():
                yield tuple(flat[start : start + size])
                start += size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(self.masks.tobytes())

    def __repr__(self) -> str:
        return repr(tuple(self))


# --- parent sets that a subset outdoes ---

COMPARED = 1 << 20
"""Comparisons at a time."""

LOOK_UP = 16
"""Comparisons that cost as much as looking one set up."""


def dominated_sets(
    masks: WordArray, scores: FloatArray, asked: BoolArray | None = None
) -> BoolArray:
    """Whether a proper subset, among the sets, scores at least as well; False if not ``asked``.

    A set of m members is compared either with its 2^m - 1 proper subsets, which are looked up, or
    with all sets of its variable that score at least as well, whichever are fewer.

    Examples
    --------
    >>> sets = masks_of([(), (1,), (2,), (1, 2)], 3)
    >>> dominated_sets(sets, np.array([-5.0, -4.0, -6.0, -4.0])).tolist()
    [False, False, True, True]
    """
    sizes = set_sizes(masks)
    best_first = np.argsort(-scores, kind="stable")
    ahead = np.searchsorted(-scores[best_first], -scores, side="right")
    table = SetTable(masks)
    result = np.zeros(len(masks), dtype=bool)
    sought = sizes > 0 if asked is None else (sizes > 0) & asked
    for size in np.unique(sizes[sought]).tolist():
        own = np.flatnonzero(sought & (sizes == size))
        by_subsets = ahead[own] > LOOK_UP * 2.0**size
        looked = own[by_subsets]
        result[looked] = _best_subsets(masks[looked], size, table, scores) >= scores[looked]
        result[own[~by_subsets]] = _outdone(masks, own[~by_subsets], best_first, ahead)
    return result


def _best_subsets(masks: WordArray, size: int, table: SetTable, scores: FloatArray) -> FloatArray:
    """The best score of any listed proper subset of sets of one size, -inf where there is none."""
    best = np.full(len(masks), -np.inf)
    step = max(1, COMPARED >> size)
    for first in range(0, len(masks), step):
        block = masks[first : first + step]
        found = table.find(_proper_subsets(block, size))
        values = np.where(found >= 0, scores[found], -np.inf)
        best[first : first + step] = values.reshape(-1, len(block)).max(axis=0)
    return best


def _proper_subsets(masks: WordArray, size: int) -> WordArray:
    """Every proper subset of each set, ((2^size - 1) sets, words)."""
    members = members_of(masks)[0].reshape(len(masks), size)
    subsets = np.zeros((1 << size, *masks.shape), dtype=np.uint64)
    rows = np.arange(len(masks))
    for place in range(size):
        member = members[:, place]
        bit = np.zeros(masks.shape, dtype=np.uint64)
        bit[rows, member // BITS] = np.uint64(1) << (member % BITS).astype(np.uint64)
        subsets[1 << place : 2 << place] = subsets[: 1 << place] | bit
    return subsets[:-1].reshape(-1, masks.shape[1])


def _outdone(masks: WordArray, own: IntArray, best_first: IntArray, ahead: IntArray) -> BoolArray:
    """Whether a set that scores at least as well is a proper subset, for each of ``own``."""
    result = np.zeros(len(own), dtype=bool)
    ranked = masks[best_first]
    for k, index in enumerate(own.tolist()):
        better = ranked[: ahead[index]]
        inside = ((better & ~masks[index]) == 0).all(axis=1)
        result[k] = int(inside.sum()) > 1  # the set itself is one
    return result
