"""Parent sets that a subset outdoes.

A set of m members is compared either with its 2^m - 1 proper subsets, which are looked up, or with
all sets of its variable that score at least as well, whichever are fewer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.masks import BITS, Masks, SetTable, members_of, set_sizes

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

BLOCK = 1 << 20
"""Comparisons at a time."""

LOOK_UP = 16
"""Comparisons that cost as much as looking one set up."""


def dominated_sets(masks: Masks, scores: FloatArray, asked: BoolArray | None = None) -> BoolArray:
    """Whether a proper subset, among the sets, scores at least as well; False if not ``asked``.

    Examples
    --------
    >>> from marginbn.problem.masks import masks_of
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


def _best_subsets(masks: Masks, size: int, table: SetTable, scores: FloatArray) -> FloatArray:
    """The best score of any listed proper subset of sets of one size, -inf where there is none."""
    best = np.full(len(masks), -np.inf)
    step = max(1, BLOCK >> size)
    for first in range(0, len(masks), step):
        block = masks[first : first + step]
        found = table.find(_proper_subsets(block, size))
        values = np.where(found >= 0, scores[found], -np.inf)
        best[first : first + step] = values.reshape(-1, len(block)).max(axis=0)
    return best


def _proper_subsets(masks: Masks, size: int) -> Masks:
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


def _outdone(
    masks: Masks, own: NDArray[np.int64], best_first: NDArray[np.int64], ahead: NDArray[np.int64]
) -> BoolArray:
    """Whether a set that scores at least as well is a proper subset, for each of ``own``."""
    result = np.zeros(len(own), dtype=bool)
    ranked = masks[best_first]
    for k, index in enumerate(own.tolist()):
        better = ranked[: ahead[index]]
        inside = ((better & ~masks[index]) == 0).all(axis=1)
        result[k] = int(inside.sum()) > 1  # the set itself is one
    return result
