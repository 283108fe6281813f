"""A decomposable score as sorted lists of parent sets.

Every variable has its candidates in the order of falling score, so the best parent set among some
variables is the first one in the list that lies within them. Sets of variables are bit masks, one
word of 64 variables after the other.

The kernels minimise: the cost of a candidate is what it loses against the best of its variable, so
costs are at least zero and the first of every list costs nothing. With t_i the best score of
variable i, the score of a structure is sum_i t_i minus its costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.problem.candidates import CandidateSets
from marginbn.solvers.orders.kernels.word_sets import Lists


@dataclass(frozen=True, eq=False)
class ParentLists:
    """Candidates sorted by score, with their way back."""

    lists: Lists
    index: IntArray  # (K,) number of each candidate in the problem
    top: FloatArray  # (n,) best score of each variable
    size: float  # sum over variables of the largest absolute score

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.top)

    @property
    def n_words(self) -> int:
        """Words of a set of variables."""
        return int(self.lists.masks.shape[1])

    @classmethod
    def of(
        cls, candidates: CandidateSets, scores: FloatArray, keep: BoolArray | None = None
    ) -> ParentLists:
        """Sort the candidates of a problem, or those of them to ``keep``; equal scores by number.

        Every variable must keep its best candidate.
        """
        offsets = candidates.offsets
        top = np.maximum.reduceat(scores, offsets[:-1])
        size = float(np.maximum.reduceat(np.abs(scores), offsets[:-1]).sum())
        order = np.lexsort((-scores, candidates.child))
        if keep is not None:
            order = order[keep[order]]
            offsets = np.concatenate([[0], np.cumsum(keep)])[offsets]
        child = candidates.child[order]
        lists = Lists(
            np.array(offsets, dtype=np.int64),
            np.ascontiguousarray(candidates.masks[order]),
            np.ascontiguousarray(top[child] - scores[order]),  # rounded once, exact at zero
        )
        return cls(lists, order.astype(np.int64), top, size)
