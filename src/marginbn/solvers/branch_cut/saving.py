"""The open nodes as arrays for a checkpoint, and back.

Of a node its bound, its depth, the allowed candidates and the present edges are kept (N nodes):

    bound (N,), depth (N,), allowed (N, A), present (N, P)    the last two as bits
    discarded (1,)                                            largest bound ever given up

What a node inherited from its parent (labels, rows, basis) and what scores have learned is found
again on the way; bounds are kept, because they were proved.
"""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_cut.tree import Node
from marginbn.solvers.branch_cut.warm import Warm
from marginbn.solvers.checkpoint import Arrays
from marginbn.solvers.framing import BrokenFileError


def save_nodes(nodes: list[Node], discarded: float, n_candidates: int, n_variables: int) -> Arrays:
    """Arrays of some nodes."""
    allowed, present = _widths(n_candidates, n_variables)
    return {
        "bound": np.array([node.bound for node in nodes], dtype=np.float64),
        "depth": np.array([node.depth for node in nodes], dtype=np.int64),
        "allowed": np.array([n.allowed_bits for n in nodes], dtype=np.uint8).reshape(-1, allowed),
        "present": np.array([n.present_bits for n in nodes], dtype=np.uint8).reshape(-1, present),
        "discarded": np.array([discarded]),
    }


def load_nodes(
    arrays: Arrays, n_candidates: int, n_variables: int, warm: Warm
) -> tuple[list[Node], float]:
    """Nodes of a file, and the largest bound given up before.

    Raises
    ------
    BrokenFileError
        If they are not the open nodes of such a problem.
    """
    count = len(arrays.get("bound", ()))
    allowed, present = _widths(n_candidates, n_variables)
    expected = {
        "bound": ((count,), np.float64),
        "depth": ((count,), np.int64),
        "allowed": ((count, allowed), np.uint8),
        "present": ((count, present), np.uint8),
        "discarded": ((1,), np.float64),
    }
    for name, (shape, dtype) in expected.items():
        if name not in arrays or arrays[name].shape != shape or arrays[name].dtype != dtype:
            raise BrokenFileError(f"its array {name!r} does not fit the problem")
    if np.isnan(arrays["bound"]).any() or np.isnan(arrays["discarded"][0]):
        raise BrokenFileError("its tree holds impossible values")
    columns = (arrays[name] for name in ("bound", "depth", "allowed", "present"))
    nodes = [
        Node(float(bound), max(int(depth), 1), bits, edges, warm, None)
        for bound, depth, bits, edges in zip(*columns, strict=True)
    ]
    return nodes, float(arrays["discarded"][0])


def _widths(n_candidates: int, n_variables: int) -> tuple[int, int]:
    """Bytes of the two sets of bits."""
    return (n_candidates + 7) // 8, (n_variables**2 + 7) // 8
