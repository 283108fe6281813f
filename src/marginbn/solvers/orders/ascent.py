"""Bounds of decomposable scores by dual ascent, safe in floating point.

:func:`dual_ascent` runs some passes of ``kernels/raising.py`` and returns the best of them. Its
numbers also bound what is left when some variables come first: once the variables W are placed, a
cluster within the others still needs a member without parents in it, so that the others cost at
least the sum of y_K over clusters K outside W, because every r_k is at least zero and leaving
clusters out only makes it larger.

**Rounding.** Multipliers are what they are, floating-point numbers; only reduced costs err. They
are computed once more from the costs, in one sum of C terms; a candidate's error is at most
2 (C + 2) eps (cost + sum of y), and n of them make a structure. Everything is doubled and
subtracted, with the most negative reduced costs, if there are any: ``slack``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marginbn.problem.array_types import EPS, BoolArray, FloatArray, WordArray
from marginbn.solvers.orders.kernels.raising import charge_all, improve
from marginbn.solvers.orders.parent_lists import ParentLists

TINY = 1e-10
"""Reduced costs up to this share of the scores' size count as zero while multipliers rise."""

GIVEN_BACK = 0.3
"""Share of the clusters that an improvement gives back."""


@dataclass(frozen=True, eq=False)
class Ascent:
    """Clusters with positive multipliers, and what they prove."""

    clusters: WordArray  # (C, words)
    multipliers: FloatArray  # (C,)
    reduced: FloatArray  # (K,) reduced costs, in the order of the lists
    cost: float  # every structure costs at least this
    bound: float  # no structure scores more than this
    slack: float  # rounding allowance that both contain
    seen: WordArray  # (S, words) all clusters of all passes


def dual_ascent(
    parents: ParentLists,
    *,
    passes: int = 12,
    rounds: int = 0,
    seed: int = 0,
    allowed: BoolArray | None = None,
    enough: float = np.inf,
    is_late: Callable[[], bool] = lambda: False,
) -> Ascent:
    """The best bound of some random ``passes``, ascents from zero; ``rounds`` improvements of the
    best follow, up to a cost that is ``enough`` or until it is late after the first. ``allowed``
    candidates (all by default) are in the order of the lists.
    """
    lists, room = parents.lists, 40 * parents.n_variables + 1000
    tiny = TINY * max(parents.size, 1e-300)
    state = np.array([2 * seed + 4_101_842_887_655_102_017], dtype=np.int64)
    cost = lists.cost if allowed is None else np.where(allowed, lists.cost, np.inf)
    best, best_gain = (np.zeros((0, parents.n_words), dtype=np.uint64), np.zeros(0)), -1.0
    best_count = 0
    seen: list[WordArray] = []
    for _ in range(passes):
        reduced = cost.copy()
        clusters, y = np.zeros((room, parents.n_words), dtype=np.uint64), np.zeros(room)
        gain, count = improve(lists, reduced, tiny, enough, 0, 0.0, state, clusters, y, 0)
        seen.append(clusters[:count].copy())
        if gain > best_gain:
            best, best_gain, best_reduced = (clusters, y), gain, reduced
            best_count = count
        if gain >= enough or is_late():
            break
    if rounds and passes and best_gain < enough and not is_late():
        best_gain, best_count = improve(
            lists, best_reduced, tiny, enough, rounds, GIVEN_BACK, state, *best, best_count
        )
        seen.append(best[0][:best_count].copy())
    clusters, multipliers = best[0][:best_count].copy(), best[1][:best_count].copy()
    pool = np.unique(np.concatenate([*seen, clusters]), axis=0)
    if best_gain == np.inf:
        return Ascent(clusters, multipliers, cost, np.inf, -np.inf, 0.0, pool)
    reduced = cost.copy()  # once more, and the bound that they prove
    charge_all(lists, clusters, multipliers, reduced)
    least = np.minimum.reduceat(reduced, lists.offsets[:-1])
    total, n = float(multipliers.sum()), parents.n_variables
    slack = 4.0 * EPS * (best_count + n + 8) * (2.0 * parents.size + (n + 1) * total)
    slack -= float(np.minimum(least, 0.0).sum())
    lower = total + float(np.maximum(least, 0.0).sum()) - slack
    bound = float(parents.top.sum()) - lower
    return Ascent(clusters, multipliers, reduced, lower, bound, slack, pool)
