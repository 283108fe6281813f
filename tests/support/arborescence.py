"""Edmonds' maximum arborescence on a dense weight matrix, with its dual solution.

Nodes are ``0 .. n-1`` and a root ``n``. ``weights[i, j]`` is the weight of the arc ``j -> i`` and
``weights[i, n]`` the weight of hanging ``i`` on the root; ``-inf`` forbids an arc. Every node gets
exactly one parent and the arcs form a tree that leaves the root.

The dual of the arborescence polytope (Edmonds 1967) has one price ``y_U <= 0`` for every node set
``U`` that is contracted and a free price for every single node:

    maximise   sum_a w_a x_a          x(arcs into U) >= 1 for all U,   x(arcs into i) = 1
    minimise   sum_U y_U              sum over the sets U entered by a of y_U >= w_a

so ``reduced_cost(j -> i) = (sum of y_U over U containing i, not j) - w_ij >= 0`` and the value of
*any* arborescence is ``sum_U y_U`` minus the prices of its arcs, at most. This is the readable
version, kept as the oracle of the compiled one in ``solvers/branch_bound/kernels/edmonds.py``. Ties
are broken by the smallest tail index.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from marginbn.exceptions import InputError
from marginbn.problem.array_types import FloatArray, IntArray


@dataclass(frozen=True)
class Arborescence:
    """A maximum arborescence and the prices that prove it."""

    parent: IntArray  # (n,) the chosen tail of every node, ``n`` for the root
    value: float  # sum of the chosen weights
    prices: dict[frozenset[int], float]  # y_U of every node of some contracted graph


def maximum_arborescence(weights: npt.ArrayLike) -> tuple[IntArray, float]:
    """Parents, ``n`` where a node hangs on the root, and value of a maximum arborescence.

    Raises
    ------
    InputError
        If the matrix has the wrong shape, holds NaN or ``+inf``, or allows no arborescence.
    """
    result = solve_arborescence(weights)
    return result.parent, result.value


def solve_arborescence(weights: npt.ArrayLike) -> Arborescence:
    """Return a maximum arborescence together with its dual prices."""
    matrix = _check(weights)
    n = matrix.shape[0]
    contraction = _Contraction.of(matrix)
    for node in range(n):
        if contraction.is_unvisited(node):
            contraction.grow_path(node)
    parent = contraction.expand()
    value = float(sum(matrix[i, parent[i]] for i in range(n)))
    return Arborescence(parent, value, contraction.prices())


def _check(weights: npt.ArrayLike) -> FloatArray:
    matrix = np.asarray(weights, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != matrix.shape[0] + 1:
        raise InputError(f"weights must have shape (n, n + 1), got {matrix.shape}")
    if np.isnan(matrix).any() or np.isposinf(matrix).any():
        raise InputError("weights must be finite or -inf (forbidden arc), got NaN or +inf")
    return matrix


@dataclass
class _Contraction:
    """The growing family of contracted nodes: ``0 .. n-1`` are the original ones.

    ``arcs[h]`` maps every outside top-level tail to ``(adjusted weight, original tail, original
    head)``.
    """

    n: int
    arcs: list[dict[int, tuple[float, int, int]]]
    members: list[frozenset[int]]
    above: list[int] = field(default_factory=list)
    price: list[float] = field(default_factory=list)
    entering: list[tuple[int, int]] = field(default_factory=list)
    state: list[int] = field(default_factory=list)

    UNVISITED, ON_PATH, DONE, ROOT = 0, 1, 2, -1

    @classmethod
    def of(cls, matrix: FloatArray) -> _Contraction:
        n = matrix.shape[0]
        arcs = [
            {
                (j if j < n else cls.ROOT): (float(matrix[i, j]), j, i)
                for j in range(n + 1)
                if j != i and matrix[i, j] > -np.inf
            }
            for i in range(n)
        ]
        singles = [frozenset([i]) for i in range(n)]
        return cls(n, arcs, singles, [-1] * n, [0.0] * n, [(-1, -1)] * n, [cls.UNVISITED] * n)

    def is_unvisited(self, node: int) -> bool:
        return self.state[node] == self.UNVISITED and self.above[node] < 0

    def grow_path(self, start: int) -> None:
        """Follow the best entering arcs back to something finished, contracting every cycle."""
        path = [start]
        self.state[start] = self.ON_PATH
        while True:
            tail = self._choose(path[-1])
            if tail == self.ROOT or self.state[tail] == self.DONE:
                break
            if self.state[tail] == self.ON_PATH:
                position = path.index(tail)
                path[position:] = [self._contract(path[position:])]
            else:
                self.state[tail] = self.ON_PATH
                path.append(tail)
        for node in path:
            self.state[node] = self.DONE

    def _choose(self, head: int) -> int:
        if not self.arcs[head]:
            raise InputError(
                f"weights allow no arborescence: no arc enters nodes {sorted(self.members[head])}"
            )
        tail = max(self.arcs[head], key=lambda u: (self.arcs[head][u][0], -self.arcs[head][u][1]))
        weight, original_tail, original_head = self.arcs[head][tail]
        self.price[head] = weight
        self.entering[head] = (original_tail, original_head)
        return tail

    def _contract(self, cycle: list[int]) -> int:
        """Merge a cycle: an arc into it replaces the cycle arc of its head, hence ``w - price``."""
        new = len(self.arcs)
        inside = set(cycle)
        merged: dict[int, tuple[float, int, int]] = {}
        for node in cycle:
            for tail, (weight, source, head) in self.arcs[node].items():
                candidate = (weight - self.price[node], source, head)
                if tail not in inside and (tail not in merged or candidate[0] > merged[tail][0]):
                    merged[tail] = candidate
            self.above[node] = new
        self._append(merged, frozenset().union(*(self.members[c] for c in cycle)))
        self._redirect_tails(cycle, new)
        return new

    def _append(self, arcs: dict[int, tuple[float, int, int]], members: frozenset[int]) -> None:
        self.arcs.append(arcs)
        self.members.append(members)
        self.above.append(-1)
        self.price.append(0.0)
        self.entering.append((-1, -1))
        self.state.append(self.ON_PATH)

    def _redirect_tails(self, cycle: list[int], new: int) -> None:
        for head in range(new):
            if self.above[head] < 0:
                leaving = [self.arcs[head].pop(c) for c in cycle if c in self.arcs[head]]
                if leaving:
                    self.arcs[head][new] = max(leaving, key=lambda arc: (arc[0], -arc[1]))

    def expand(self) -> IntArray:
        """Undo contractions, the last one first: an entering arc breaks the cycle at its head."""
        parent = np.full(self.n, -1, dtype=np.int64)
        resolved = [False] * len(self.arcs)
        for node in reversed(range(len(self.arcs))):
            if not resolved[node]:
                tail, head = self.entering[node]
                parent[head] = tail
                inner = head
                while inner != node:
                    resolved[inner] = True
                    inner = self.above[inner]
        return parent

    def prices(self) -> dict[frozenset[int], float]:
        return dict(zip(self.members, self.price, strict=True))
