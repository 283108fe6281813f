"""The Frank-Wolfe relaxation as the tree of a certificate needs it.

The only module here that knows the kernels of ``branch_bound``. A visit runs the compiled bounding
of a box: margins and smoothing of the point reached give dual weights, which are rounded to few
bits. The bound, the split and the bounds of both children all come from the rounded weights, so
what is recorded is what was used. There is no reduced-cost fixing: a fixed slot would be a leaf of
its own in the proof.

**Groups of samples** have equal shares: a choice of dual weights like any other, so the bound of
the groups (``row_groups.py``) is a bound of the whole problem. The certificate holds the last
grouping. Groups are only ever split: the weights of an earlier one are given to all its parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.array_types import CodeArray, FloatArray, IntArray
from marginbn.proof import record
from marginbn.proof.certificate import ARC, CANDIDATE, EDGE, DualWeights
from marginbn.proof.record import Proof, Relaxation, RoundedMajorant, TreeNode
from marginbn.solvers.branch_bound.arrays import Encoding, encode
from marginbn.solvers.branch_bound.kernels import branching, records
from marginbn.solvers.branch_bound.kernels.bound import PRUNED, Context, Incumbent, bound_box
from marginbn.solvers.branch_bound.kernels.box import propagate
from marginbn.solvers.branch_bound.kernels.children import contains, worth_of
from marginbn.solvers.branch_bound.kernels.combination import Bounding, load_margins, new_bounding
from marginbn.solvers.branch_bound.kernels.node_pool import copy_box
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import Box, Instance
from marginbn.solvers.branch_bound.kernels.tree import ROOT_ACCURACY
from marginbn.solvers.branch_bound.pair_tables import Coded
from marginbn.solvers.branch_bound.row_groups import Groups, wants_groups
from marginbn.solvers.branch_bound.rows import RAREST_CHECK, WORTH, with_all_rows
from marginbn.solvers.branch_bound.schedule import iteration_time, settings_for
from marginbn.solvers.counts import Poll
from marginbn.solvers.memory import ACTIVE_VERTICES, KEPT_VERTICES, BranchBoundShape
from marginbn.solvers.run import RowsInUse, Run

TIED = 5000
"""Samples from which on groups prove more in the same time: with 60 s on adult (19 469 of them) a
gap of .34 % instead of .98 %, and nursery (12 960) in a third of the time."""

COPIES = 6
"""Coefficients of a group are held so many times: by row and column, and while it is split."""

ITERATIONS_OF_A_VISIT = 10
"""What the rest of a visit takes, in iterations of the bound: rounded weights and trials."""

LEAST_LOSS = 1e-13
"""What groups lose beside gamma and all weights where they lose nothing but rounding."""


class TiedRows:
    """Groups of samples, split where tying their weights costs too much."""

    def __init__(self, encoding: Encoding, coded: Coded, budget: int, poll: Poll) -> None:
        self.full = encoding.instance
        self.groups = Groups(encoding, coded, budget // (8 * COPIES * self.full.linear.size))
        self._poll = poll
        self._origin: IntArray = np.arange(self.groups.n_groups)
        self._visits, self._next_look, self._interval = 0, 1, 1

    def look(self, b: Bounding, gap: float) -> bool:
        """Split groups that lose more than a small part of the gap at the relaxed solution; whether
        any was. Less and less often while none is.
        """
        self._visits += 1
        if self._visits < self._next_look:
            return False
        found = self._split_at(b, WORTH * gap)
        self._interval = 1 if found else min(2 * self._interval, RAREST_CHECK)
        self._next_look = self._visits + self._interval
        load_margins(self.groups.instance, b)
        return found

    def margins_of(self, b: Bounding, vertex: IntArray) -> FloatArray:
        """Margins of the groups at a structure (groups, rivals), once they lose nothing there that
        more groups would win back; the relaxed solution is forgotten.
        """
        b.vertices[0], b.share[0], b.state.n_active = vertex, 1.0, 1
        little = LEAST_LOSS * self.full.gamma * float(self.full.weights.sum())
        while self._split_at(b, little):
            pass
        load_margins(self.groups.instance, b)
        count = self.groups.n_groups
        return b.t[: records.count_rows(self.groups.instance)].reshape(count, -1)

    def _split_at(self, b: Bounding, tolerated: float) -> bool:
        load_margins(self.full, b)
        losses, before = self.groups.losses(b.t), self.groups.n_groups
        if losses.total <= tolerated or not self.groups.split(losses, self._poll):
            return False
        self._origin = np.append(self._origin, self.groups.origin[before:])
        return True

    def spread(self, dual: DualWeights) -> DualWeights:
        """Weights of an earlier grouping for the present one."""
        known, heir = len(dual.parts), np.arange(self.groups.n_groups)
        while (heir >= known).any():
            heir = np.where(heir >= known, self._origin[heir], heir)
        return DualWeights(dual.bits, dual.parts[heir])


@dataclass(frozen=True, eq=False)
class BoxState:
    """A box, what its relaxation starts from, and the majorant behind its bound."""

    box: Box
    vertices: NDArray[np.int16]
    share: FloatArray
    smoothing: float
    majorant: RoundedMajorant
    # row in ``branching.py``, child, degradation, midpoint of the parent's bracket
    origin: tuple[int, int, float, float] | None = None


class ForestRelaxation(Relaxation):
    """Boxes of a class-restricted margin problem with at most two parents per variable."""

    LEAF_BITS = (2, 3, 5, 7, 11, 15, 20)
    INNER_BITS = 7

    def __init__(self, run: Run, numbers: IntArray, rows: RowsInUse) -> None:
        problem = run.problem
        division = BranchBoundShape.of(problem).divide(run.memory)
        if rows == "auto" and problem.n_samples >= TIED:
            rows = "groups"
        is_tied = wants_groups(rows, problem, division)
        self.encoding = encode(problem, int(is_tied), run.look)
        self.tied: TiedRows | None = None
        self.full = self.encoding.instance
        if self.encoding.coded is None:
            self.full = with_all_rows(self.full)
        else:
            budget = division.rows or BranchBoundShape.LARGEST_ROWS
            self.tied = TiedRows(self.encoding, self.encoding.coded, budget, run.look)
        inst = self.inst
        super().__init__(run, inst.magnitude)
        self._n_rivals = records.count_rows(inst) // inst.weights.size
        self._numbers = numbers  # candidate of the problem -> candidate of the certificate
        settings = settings_for(run.limits)
        # a little beyond the cutoff, so that rounded weights still reach it
        self.settings = settings._replace(stale=0.0, gap=0.7 * self.gap)
        n, n_sets = inst.n_features, inst.first.size
        self.box, self.child = records.new_box(n, n_sets), records.new_box(n, n_sets)
        self.oracle = records.new_oracle(n, n_sets)
        self.bounding = new_bounding(self.full, ACTIVE_VERTICES, self.encoding.structure_magnitude)
        self.incumbent = Incumbent(
            np.zeros(n + 1, dtype=np.int64), np.array([-np.inf]), np.zeros(1, dtype=np.int64)
        )
        self._is_root = True  # until the first visit is over
        self._gains = branching.new_pseudocosts(n)

    @property
    def inst(self) -> Instance:
        """The samples, or the means of the groups."""
        return self.full if self.tied is None else self.tied.groups.instance

    @property
    def slack(self) -> float:
        """Rounding of the means of groups besides."""
        return super().slack + float(self.inst.error)

    def grouped(self, duals: Iterable[DualWeights]) -> tuple[list[DualWeights], CodeArray | None]:
        """Weights for the groups as they are at the end, if there are groups."""
        if self.tied is None:
            return super().grouped(duals)
        return list(map(self.tied.spread, duals)), self.tied.groups.group_of

    # ------------------------------------------------------------------ the root

    def root(self) -> TreeNode:
        """Everything allowed; the trivial bound."""
        inst = self.inst
        self.box.allowed[:] = self.encoding.slots
        self.box.classes[:] = True
        assert propagate(inst, self.box)  # the first selection proves that the root is not empty
        mean = np.repeat(inst.weights / self._n_rivals, self._n_rivals)
        maximise(inst, self.box, inst.linear + inst.columns @ mean, self.oracle)
        vertices = self.oracle.vertex[None, :].astype(np.int16)
        smoothing = self.settings.smoothing_start * inst.gamma
        majorant = self._majorant(np.zeros((inst.weights.size, self._n_rivals)), 1)
        state = BoxState(deepcopy(self.box), vertices, np.ones(1), smoothing, majorant)
        return TreeNode(majorant.bound, majorant.proof, state=state)

    # ------------------------------------------------------------------ one node

    def visit(self, claim: TreeNode) -> TreeNode:
        """Bound by Frank-Wolfe; a leaf if the rounded weights prune."""
        box, state = self.box, claim.state
        copy_box(state.box, box)
        if not propagate(self.inst, box):
            return TreeNode(-math.inf, claim.proof)
        if (box.allowed.sum(axis=1) == 1).all() and box.classes.sum() == 1:
            return self._single()
        if not self._load_vertices(state):
            return TreeNode(-math.inf, claim.proof)
        majorant = self._tighten()
        while majorant.bound > self.cutoff and self.tied is not None:
            if not self.tied.look(self.bounding, majorant.bound - self.run.objective):
                break
            majorant = min(self._tighten(), majorant, key=lambda known: known.bound)
        self._is_root = False
        if claim.bound < majorant.bound:
            majorant = replace(state.majorant, bound=claim.bound)
        is_leaf = majorant.bound <= self.cutoff
        if state.origin is not None:
            row, side, degradation, before = state.origin
            reached = branching.midpoint(self.bounding.state, self._cutoff())
            reached = self._cutoff() if is_leaf else reached
            branching.observe(
                self._gains, self.inst.n_features, row, side, before - reached, degradation
            )
        if is_leaf:
            return TreeNode(majorant.bound, majorant.proof)
        return self._split(majorant)

    def _cutoff(self) -> float:
        """The value that leaves are pruned at, as the kernels count."""
        return self.cutoff - self.encoding.constant

    def _single(self) -> TreeNode:
        """One structure: its own score, proven by the weights that are tight for it."""
        slots = self.box.allowed.argmax(axis=1)
        vertex = np.append(slots, self.box.classes.argmax()).astype(np.int64)
        self.run.offer(self.encoding.selection(vertex))
        if self.tied is None:
            chosen = self.inst.columns[records.columns_of(self.inst, vertex)]
            margins = np.asarray(chosen.sum(axis=0).reshape(-1, self._n_rivals))
        else:
            margins = self.tied.margins_of(self.bounding, vertex)
        majorant = self._majorant(record.exact_shares(margins, self.inst.gamma), 1)
        return TreeNode(majorant.bound, majorant.proof)

    def _load_vertices(self, state: BoxState) -> bool:
        """Inherited vertices that lie in the box, or the best one; False if the box is empty."""
        b = self.bounding
        every = state.vertices.astype(np.int64)
        inside = [contains(self.inst, self.box, vertex) for vertex in every]
        vertices, share = state.vertices[inside], state.share[inside]
        if len(vertices) == 0:
            upper, _ = maximise(self.inst, self.box, state.majorant.values, self.oracle)
            if upper == -np.inf:
                return False
            vertices, share = self.oracle.vertex[None, :].astype(np.int16), np.ones(1)
        b.vertices[: len(vertices)] = vertices
        b.share[: len(share)] = share / share.sum()
        b.state.n_active = len(vertices)
        largest = self.settings.smoothing_start * self.inst.gamma
        b.state.smoothing = min(largest, state.smoothing)
        return True

    def _tighten(self) -> RoundedMajorant:
        """Run the compiled bounding and round the weights it ends with."""
        self.incumbent.value[0] = self.run.objective - self.encoding.constant
        found = int(self.incumbent.found[0])
        is_root, settings = self._is_root, self.settings
        outcome = bound_box(
            self.inst,
            Context(self.full, self.inst, settings, self.incumbent, self.stop),
            self.box,
            self.bounding,
            self.oracle,
            ROOT_ACCURACY if is_root else settings.accuracy,
            math.inf if is_root else worth_of(settings, self._gains),
            settings.root_iterations if is_root else settings.iterations,
        )
        if self.incumbent.found[0] != found:
            self.run.offer(self.encoding.selection(self.incumbent.vertex))
        done = int(self.bounding.state.iterations) + ITERATIONS_OF_A_VISIT
        self.run.work += 1e-9 * done * iteration_time(self.inst)
        margins = self.bounding.t[: records.count_rows(self.inst)].reshape(-1, self._n_rivals)
        smoothing = float(self.bounding.state.smoothing)
        shares = record.smooth_shares(margins, self.inst.gamma, smoothing)
        return self.fewest_bits(outcome == PRUNED, lambda bits: self._majorant(shares, bits))

    def _majorant(self, shares: FloatArray, bits: int) -> RoundedMajorant:
        """Shares of (M, rivals) rounded, and their bound over the present box."""
        inst, dual = self.inst, record.quantise(shares, bits)
        u, unused = record.weights_of(dual, inst.weights)
        constant = inst.gamma * unused
        # a threaded product waits for other processes; this one does not
        gradient = inst.linear + np.einsum("vr,r->v", inst.columns, u)
        upper, _ = maximise(inst, self.box, gradient, self.oracle)
        bound = constant + float(upper) + self.encoding.constant
        return RoundedMajorant(Proof(dual), constant + self.encoding.constant, gradient, bound)

    # ------------------------------------------------------------------ splitting

    def _split(self, majorant: RoundedMajorant) -> TreeNode:
        inst, b = self.inst, self.bounding
        middle = branching.midpoint(b.state, self._cutoff())
        ranking = branching.rank_candidates(inst, self.box, b, self._gains, middle - self._cutoff())
        kind, i, j, degradations = branching.NONE, 0, 0, np.zeros(2)
        if ranking.score.size:
            best = int(ranking.score.argmax())
            kind, i, j = (int(part) for part in ranking.candidates[best])
            degradations = ranking.degradations[best]
        heaviest = np.argsort(-b.share[: b.state.n_active], kind="stable")[:KEPT_VERTICES]
        vertices, share = b.vertices[heaviest].astype(np.int16), b.share[heaviest].copy()
        if kind == branching.NONE:  # all features are decided: split on the first class set
            j = int(np.flatnonzero(self.box.classes)[0])
        sides = []
        for with_it in (False, True):
            copy_box(self.box, self.child)
            if kind == branching.NONE:
                self.child.classes[:] &= (np.arange(self.child.classes.size) == j) == with_it
            else:
                first = with_it != (kind == branching.RELEVANCE)
                branching.restrict(inst, self.child, kind, i, j, first)
            bound = -math.inf
            if propagate(inst, self.child):
                upper, _ = maximise(inst, self.child, majorant.values, self.oracle)
                bound = min(majorant.bound, majorant.constant + float(upper))
            child, smoothing = deepcopy(self.child), float(b.state.smoothing)
            state = BoxState(child, vertices, share, smoothing, majorant)
            side = 0 if kind == branching.NONE or first else 1
            if degradations[side] > 0:
                row = branching.row_of(inst.n_features, kind, i, j)
                state = replace(state, origin=(row, side, float(degradations[side]), middle))
            sides.append(TreeNode(bound, majorant.proof, state=state))
        decision = self._decision(kind, i, j)
        return TreeNode(majorant.bound, majorant.proof, decision, (sides[0], sides[1]))

    def _decision(self, kind: int, i: int, j: int) -> record.Decision:
        """A split in the terms of a certificate."""
        n, variables = self.inst.n_features, self.encoding.features
        if kind == branching.EDGE:
            return EDGE, int(variables[i]), int(variables[j])
        if kind == branching.RELEVANCE:
            return EDGE, 0, int(variables[i])
        if kind == branching.MEMBER:
            return ARC, 0, int(variables[i])
        column = records.column_of(self.inst, n if kind == branching.NONE else i, j)
        assert kind in (branching.NONE, branching.SLOT)
        return CANDIDATE, int(self._numbers[self.encoding.candidate_of[column]])
