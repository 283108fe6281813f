"""What a relaxation tells the tree, and the tree as it goes into a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import (
    CLUSTERS,
    FOREST,
    DualWeights,
    Multipliers,
    Row,
)

Split = tuple[int, ...]
"""Kind and arguments of an object, in the numbers of the certificate."""


@dataclass(frozen=True, eq=False)
class Proof:
    """Weights that bound a node; ``multipliers`` is ``None`` for a bound by forests."""

    dual: DualWeights | None = None
    multipliers: tuple[tuple[Row, float], ...] | None = None

    @property
    def nbytes(self) -> int:
        """Memory, roughly."""
        own = 0 if self.dual is None else self.dual.parts.nbytes
        return own + 40 * len(self.multipliers or ()) + 100


@dataclass(frozen=True, eq=False)
class Claim:
    """A set of structures (``state`` is known to the relaxation alone), a bound and its proof."""

    state: Any
    bound: float
    proof: Proof


@dataclass(frozen=True, eq=False)
class Visit:
    """A node after its visit: a better claim, and its two sides unless it is a leaf."""

    bound: float
    proof: Proof
    split: Split | None = None
    sides: tuple[Claim, Claim] | None = None


class Relaxation(Protocol):
    """What the tree search needs of a relaxation."""

    @property
    def grid(self) -> int:
        """Power of two that a checker rounds to."""

    @property
    def slack(self) -> float:
        """What a claim must allow for a checker's rounding."""

    def root(self) -> Claim:
        """All structures."""

    def visit(self, claim: Claim) -> Visit:
        """Tighten the bound of a node that is above the cutoff, and split it if need be."""

    def interrupt(self) -> None:
        """End the visit at hand soon; called from another thread."""


@dataclass(eq=False)
class TreeNode:
    """A node of the recorded tree: a leaf with a proof until it is split."""

    bound: float
    proof: Proof
    split: Split | None = None
    sides: tuple[TreeNode, TreeNode] | None = None


@dataclass
class Written:
    """Tree, weights and rows in the order of their first use."""

    tree: list[int] = field(default_factory=list)
    duals: list[DualWeights] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    multipliers: list[Multipliers] = field(default_factory=list)

    def stream(self) -> NDArray[np.int32]:
        """The tree as an array."""
        return np.array(self.tree, dtype=np.int32)


def leaves(root: TreeNode) -> Iterator[TreeNode]:
    """All leaves in preorder."""
    return (node for node in _preorder(root) if node.sides is None)


def _preorder(root: TreeNode) -> Iterator[TreeNode]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        if node.sides is not None:
            waiting += [node.sides[1], node.sides[0]]


def write_tree(root: TreeNode) -> Written:
    """Number everything that leaves refer to."""
    written = Written()
    dual_number: dict[int, int] = {}
    row_number: dict[Row, int] = {}
    set_number: dict[int, int] = {}
    for node in _preorder(root):
        if node.split is not None:
            written.tree += node.split
            continue
        dual, multipliers = node.proof.dual, node.proof.multipliers
        number = 0
        if dual is not None:
            number = dual_number.setdefault(id(dual), len(written.duals))
            if number == len(written.duals):
                written.duals.append(dual)
        if multipliers is None:
            written.tree += (FOREST, number)
            continue
        place = set_number.setdefault(id(multipliers), len(written.multipliers))
        if place == len(written.multipliers):
            written.multipliers.append(_numbered(multipliers, row_number))
        written.tree += (CLUSTERS, number, place)
    written.rows = list(row_number)
    return written


def _numbered(
    multipliers: tuple[tuple[Row, float], ...], row_number: dict[Row, int]
) -> Multipliers:
    used = [(row, y) for row, y in multipliers if y > 0]
    numbers = tuple(row_number.setdefault(row, len(row_number)) for row, _ in used)
    return Multipliers(numbers, tuple(float(y) for _, y in used))
