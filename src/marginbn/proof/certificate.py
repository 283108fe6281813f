"""What a certificate says: a problem, a structure, two numbers and a tree that proves them.

**The claim.** The *incumbent* is one of the structures of the problem and its score is at least
``objective``; no structure of the problem has a score above ``bound``.

**The problem.** Encoded data, a score (a soft margin, or a decomposable score) and the candidate
parent sets, given by a rule or listed, numbered child by child. With a rule and a list a listed
subset dominates every other set of the rule, but for ``loss``. Instead of rows the data may be
local scores (``given``); the candidates are the sets that score more than each proper subset.

**The tree.** A node is a set of structures; the root holds all. An inner node has one of the
*objects*

    EDGE i j       i is a parent of j or j of i
    ARC i j        j is a parent of i
    CANDIDATE k    the child of candidate k has exactly these parents

and two children: the structures without it, then those with it. A leaf names what bounds its
structures: FOREST d or CLUSTERS d m, with dual weights number d and multipliers number m.
``docs/theory/certificate_format.rst`` says how, and has the arithmetic. ``tree`` is one stream of
integers in preorder: the number of the kind, then its arguments.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.candidates import CandidateRule

EDGE, ARC, CANDIDATE, FOREST, CLUSTERS = 0, 1, 2, 3, 4
"""Kinds of nodes in the stream."""

ARGUMENTS = {EDGE: 2, ARC: 2, CANDIDATE: 1, FOREST: 1, CLUSTERS: 2}

LARGEST_BITS = 24
"""Bits of the widest dual weights; the format allows no wider ones."""

RowKind = Literal["cluster", "packing", "edge"]
"""Kinds of rows; ``checker.bounds.ROW_RULES`` says what each of them means."""


@dataclass(frozen=True)
class Score:
    """What is maximised: ``multiclass`` or ``binary`` margins, a decomposable score by name, or the
    sum of local scores that are ``given``.
    """

    name: str
    gamma: float = 1.0
    smoothing: float = 1.0
    equivalent_sample_size: float = 1.0

    def n_rivals(self, n_classes: int) -> int:
        """Parts that a sample has in dual weights."""
        return {"binary": 1, "multiclass": n_classes - 1}.get(self.name, 0)

    @property
    def is_margin(self) -> bool:
        """Whether there are margin rows."""
        return self.name in ("multiclass", "binary")


@dataclass(frozen=True, eq=False)
class Data:
    """Encoded data, class first, as in :class:`marginbn.problem.encoded.EncodedData`; or no rows,
    and for every variable the parent sets that have a score.
    """

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    codes: NDArray[np.integer]
    weights: NDArray[np.float64]
    scores: tuple[tuple[tuple[tuple[int, ...], float], ...], ...] = ()

    @cached_property
    def arities(self) -> tuple[int, ...]:
        """Number of states of each variable."""
        return tuple(len(labels) for labels in self.states)

    def fingerprint(self) -> str:
        """SHA-256 of names, labels, rows in the order of their codes, weights and given scores."""
        order = row_order(self.codes)
        digest = hashlib.sha256()
        digest.update(json.dumps([self.names, self.states, self.codes.shape]).encode())
        for begin in range(0, len(order), PIECE):  # never a second table
            part = self.codes[order[begin : begin + PIECE]]
            digest.update(np.ascontiguousarray(part, dtype="<i4").tobytes())
        digest.update(np.ascontiguousarray(self.weights[order], dtype="<f8").tobytes())
        digest.update(json.dumps(self.scores).encode() if self.scores else b"")
        return digest.hexdigest()


PIECE = 65_536
"""Rows that are hashed at a time."""


def row_order(codes: NDArray[np.integer]) -> NDArray[np.int64]:
    """Rows in lexicographic order, equal ones as they stand. Rows that are in order already, as
    those of merged data are, are only compared with their neighbours.
    """
    differ = codes[1:] != codes[:-1]
    if not differ.size:
        return np.arange(len(codes))
    first = differ.argmax(axis=1)[:, None]
    steps = np.take_along_axis(codes[1:], first, 1) >= np.take_along_axis(codes[:-1], first, 1)
    return np.arange(len(codes)) if steps.all() else np.lexsort(codes.T[::-1])


@dataclass(frozen=True, eq=False)
class Candidates:
    """A rule, every child's parent sets, or a rule and the sets that no listed subset dominates."""

    rule: CandidateRule | None
    listed: tuple[tuple[tuple[int, ...], ...], ...] = ()
    loss: float = 0.0


@dataclass(frozen=True, eq=False)
class DualWeights:
    """``parts`` is unsigned, (n_samples, n_rivals), or (n_groups, n_rivals)."""

    bits: int
    parts: NDArray[np.unsignedinteger]


class NamedRow(NamedTuple):
    """A row that multipliers refer to, by its kind and its variables."""

    kind: RowKind
    members: tuple[int, ...]


@dataclass(frozen=True)
class Multipliers:
    """Numbers of rows with their multipliers."""

    rows: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Certificate:
    """See the module's docstring."""

    fingerprint: str
    data: Data
    score: Score
    candidates: Candidates
    incumbent: tuple[tuple[int, ...], ...]
    objective: float
    bound: float
    grid: int
    tree: NDArray[np.int32]
    duals: tuple[DualWeights, ...] = ()
    rows: tuple[NamedRow, ...] = ()
    multipliers: tuple[Multipliers, ...] = ()
    groups: NDArray[np.int32] | None = None
    n_groups: int = 0

    def parts_of(self, dual: DualWeights) -> NDArray[np.unsignedinteger]:
        """Parts of every sample, (n_samples, n_rivals)."""
        return dual.parts if self.groups is None else dual.parts[self.groups]
