"""The open nodes of a search tree as arrays: in a checkpoint and on the way between processes.

A node is its box, as bits that only its engine can read, and its bound, which was proved. What the
relaxation of a node started from (vertices, bases, cuts) is found again when the node is visited:
that costs a few iterations once, and would take most of the room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.checkpoint import Arrays, BrokenFileError


@dataclass(frozen=True, eq=False)
class OpenNodes:
    """N nodes of W bytes each."""

    boxes: NDArray[np.uint8]  # (N, W)
    bound: FloatArray  # (N,)
    numbers: (
        FloatArray  # (2,) largest bound of anything ever discarded; bound of the root, infinite
    )
    # while it is not done

    @property
    def arrays(self) -> Arrays:
        """By name."""
        return {"boxes": self.boxes, "bound": self.bound, "numbers": self.numbers}

    @property
    def floor(self) -> float:
        """Largest bound of anything ever discarded."""
        return float(self.numbers[0])

    @property
    def bytes_per_node(self) -> int:
        """Bytes of a box and its bound."""
        return int(self.boxes.shape[1]) + 8

    def some(self, chosen: IntArray) -> OpenNodes:
        """Some of the nodes; the numbers go with every part."""
        return OpenNodes(self.boxes[chosen], self.bound[chosen], self.numbers)


def join(parts: Sequence[OpenNodes]) -> OpenNodes:
    """Several trees of the same problem as one."""
    floors, roots = np.array([part.numbers for part in parts]).T
    return OpenNodes(
        np.concatenate([part.boxes for part in parts]),
        np.concatenate([part.bound for part in parts]),
        np.array([floors.max(), roots.min()]),
    )


def parse(arrays: Arrays, width: int) -> OpenNodes:
    """Arrays of a file as open nodes with boxes of so many bytes.

    Raises
    ------
    BrokenFileError
        If they are not the open nodes of such a problem.
    """
    count = len(arrays.get("bound", ()))
    expected = {
        "boxes": ((count, width), np.uint8),
        "bound": ((count,), np.float64),
        "numbers": ((2,), np.float64),
    }
    for name, (shape, dtype) in expected.items():
        if name not in arrays or arrays[name].shape != shape or arrays[name].dtype != dtype:
            raise BrokenFileError(f"its array {name!r} does not fit the problem")
    nodes = OpenNodes(*(arrays[name] for name in expected))
    if np.isnan(nodes.bound).any() or np.isnan(nodes.numbers).any():
        raise BrokenFileError("its tree holds impossible values")
    return nodes
