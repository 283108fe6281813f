"""Weighted counts of pairs of coded features by class: by numpy where few are wanted, else by one
compiled pass that threads share.

The engine of branch and bound counts the families of its columns, TAN the pairs of its tree. A
*key* names one feature set: ``(a, b, radix, start, states)`` stands for the joint state
``code_a radix + code_b`` (-1: no such feature) out of ``states``, whose counts
``N[state, class]`` begin at ``start``.

A thread counts whole sets, so every sum is added up in the order of the samples, whatever the
number of threads.

Other sums over rows are other operations: ``scoring/sums.py`` merges the rows of a set before the
next member divides them, ``class_model/kernels/gather.py`` scatters derivatives to the entries it
has just gathered, and groups of samples (``kernels/coded.py``) are lists of rows.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.encoded import count_states

MANY_ADDITIONS, MANY_SETS = 20_000_000, 5_000
"""Additions from which the compiled pass is quicker though it must be loaded, and sets from which
it is, however few the samples.
"""

PIECES = 8
"""Parts of a pass for every thread; the clock is read between them."""

BLOCK = 16_384
"""Samples that all sets of a part are counted on before the next ones: they stay in the cache."""

Poll = Callable[[], None]


def never() -> None:
    """Poll nothing."""


def threads_for(n_jobs: int) -> int:
    """Threads of a pass: a pass is shared by all workers, which wait for it."""
    return max(1, min(n_jobs, os.cpu_count() or 1))


def spread(work: Callable[[int, int], None], count: int, threads: int, poll: Poll = never) -> None:
    """Call ``work`` for the parts of ``range(count)``, several at a time; ``poll`` is called
    between them and may raise.
    """
    ends = np.unique(np.linspace(0, count, PIECES * threads + 1).astype(np.int64))
    parts = [(int(lo), int(hi)) for lo, hi in itertools.pairwise(ends)]
    if threads == 1:
        for lo, hi in parts:
            poll()
            work(lo, hi)
        return
    with ThreadPoolExecutor(threads) as pool:
        for begin in range(0, len(parts), threads):
            poll()
            list(pool.map(lambda part: work(*part), parts[begin : begin + threads]))


def add_states(
    codes: NDArray[np.unsignedinteger],
    classes: NDArray[np.unsignedinteger],
    keys: IntArray,
    lo: int,
    hi: int,
    values: FloatArray,
    n_classes: int,
    counts: FloatArray,
) -> None:
    """Add up one value per sample by joint state and class, for keys ``lo`` to ``hi - 1``; codes
    are (n, M).
    """
    for begin in range(0, values.size, BLOCK):
        end = min(begin + BLOCK, values.size)
        for k in range(lo, hi):
            key, out = keys[k], counts[keys[k, 3] :]
            if key[1] >= 0:
                first, second, radix = codes[key[0]], codes[key[1]], key[2]
                for m in range(begin, end):
                    state = np.int64(first[m]) * radix + np.int64(second[m])
                    out[state * n_classes + np.int64(classes[m])] += values[m]
            elif key[0] >= 0:
                first = codes[key[0]]
                for m in range(begin, end):
                    out[np.int64(first[m]) * n_classes + np.int64(classes[m])] += values[m]
            else:
                for m in range(begin, end):
                    out[np.int64(classes[m])] += values[m]


@cache
def compiled() -> Callable[..., None]:
    """The same as machine code; the first call loads the compiler."""
    from marginbn.solvers.compile import entry

    return entry(add_states)


def count_sets(
    codes: NDArray[np.unsignedinteger],
    classes: NDArray[np.unsignedinteger],
    sets: IntArray,
    values: FloatArray,
    n_classes: int,
    threads: int = 1,
    poll: Poll = never,
) -> FloatArray:
    """Values of the samples added up by state and class, for consecutive sets; the counts of the
    first one come first.
    """
    sets = sets - sets[0, 3] * (np.arange(5) == 3)
    counts = np.zeros(int(sets[-1, 3] + sets[-1, 4] * n_classes))
    if len(sets) < MANY_SETS and len(sets) * values.size < MANY_ADDITIONS:
        for first, second, radix, start, states in sets.tolist():
            poll()
            own = [codes[i] for i in (first, second) if i >= 0]
            arities = (states // radix, radix)[: len(own)]
            table = count_states((*own, classes), (*arities, n_classes), values)
            counts[start : start + table.size] = table.ravel()
        return counts
    add = compiled()
    spread(
        lambda lo, hi: add(codes, classes, sets, lo, hi, values, n_classes, counts),
        len(sets),
        threads,
        poll,
    )
    return counts


def blocks_of(sets: IntArray, most: int) -> list[tuple[int, int]]:
    """Ranges of sets whose counts begin within ``most`` cells of one another."""
    grid = np.arange(0, sets[-1:, 3].sum() + most + 1, most)
    return list(itertools.pairwise(np.unique(np.searchsorted(sets[:, 3], grid)).tolist()))
