"""Boxes from outside into a store."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from marginbn.solvers.branch_bound.kernels.box import propagate
from marginbn.solvers.branch_bound.kernels.records import (
    Box,
    FloatArray,
    Instance,
    IntArray,
    new_box,
)
from marginbn.solvers.branch_bound.kernels.store import Pool, push, unpack_box
from marginbn.solvers.compile import entry


@entry
def push_all(
    pool: Pool,
    inst: Instance,
    root: Box,
    words: npt.NDArray[np.uint64],
    bound: FloatArray,
    spent: IntArray,
    family: IntArray,
) -> None:
    """Cut boxes to the root, tighten them and add those that are not empty."""
    n = inst.n_features
    box = new_box(n, inst.first.size)
    for node in range(bound.size):
        unpack_box(words[node], box)
        for i in range(n):
            for s in range(n + 2):
                box.allowed[i, s] = box.allowed[i, s] and root.allowed[i, s]
            box.edges[i, i] = False
            for j in range(i):
                either = box.edges[i, j] or box.edges[j, i]
                box.edges[i, j] = either
                box.edges[j, i] = either
        for s in range(box.classes.size):
            box.classes[s] = box.classes[s] and root.classes[s]
        if propagate(inst, box):
            push(pool, box, bound[node], family[node], spent[node])
