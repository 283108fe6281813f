"""What searches share: the first structure and bound, the loop, the workers' threads, resuming.

**A first structure.** Place variables one after the other, each as soon as one of its candidates
lies inside the set already placed. Placing a variable never takes a choice away from another, so
if the rule gets stuck no acyclic selection exists at all (required and forbidden arcs can cause
that), and any candidate inside the placed set may be taken.

**A first bound.** Every tau is at most gamma and every variable takes one candidate, so

    sum_i max_k linear_k + gamma sum_m w_m

bounds every structure. With the margins at hand each row is also at most the sum over variables
of its largest coefficient: the box bound.

A relaxation with its store of open nodes is a :class:`SearchTree`. It works in portions: one node,
or a batch of them in compiled code. Between two portions the loop, :meth:`TreeSolver.run`, reports
what is known, looks at the limits, saves the tree if it is time to and gives heuristics their turn.

*Bound.* The bound of a tree covers everything open, everything that any worker has in progress and
everything ever given up. So it is true at every moment, and whatever ends the search, the last
report is a proof.

*Workers.* The first one runs in the caller's thread, the only one that speaks to the run and hears
Ctrl-C; others run in threads of their own (:meth:`SearchTree.helpers`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from marginbn.exceptions import InputError
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.masks import BITS
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.checkpoint import BrokenFileError, OpenNodes, SearchState, parse, warn_unused
from marginbn.solvers.interpreted import leave_python
from marginbn.solvers.result import Status, relative_gap
from marginbn.solvers.run import Run, Solver


def feasible_selection(candidates: CandidateSets, worth: FloatArray | None = None) -> IntArray:
    """An acyclic selection; of candidates of largest ``worth`` (K,), or of the smallest ones.

    Ties go to the smaller index.

    Raises
    ------
    InputError
        If no acyclic selection exists.
    """
    value = -candidates.sizes.astype(np.float64) if worth is None else worth
    chosen = np.full(candidates.n_variables, -1, dtype=np.int64)
    placed = np.zeros(candidates.masks.shape[1], dtype=np.uint64)
    waiting = list(range(candidates.n_variables))
    while waiting:
        for variable in waiting:
            group = candidates.group(variable)
            outside = candidates.masks[group.start : group.stop] & ~placed
            open_to = group.start + np.flatnonzero((outside == 0).all(axis=1))
            if len(open_to):
                break
        else:
            raise InputError(
                f"no acyclic structure can be made of the candidates: variables {waiting} wait "
                "for one another; remove required or forbidden arcs, or raise max_parents"
            )
        chosen[variable] = open_to[np.argmax(value[open_to])]
        placed[variable // BITS] |= np.uint64(1 << variable % BITS)
        waiting.remove(variable)
    return chosen


def initial_selection(problem: StructureProblem) -> IntArray:
    """A cheap acyclic selection that respects every required arc.

    Linear problems take the best candidate inside the variables placed so far; problems with
    margins the better of the smallest parent sets and the class as the only parent.
    """
    return max(simple_selections(problem), key=problem.evaluate)


def simple_selections(problem: StructureProblem) -> list[IntArray]:
    """The smallest parent sets, and those said above."""
    candidates = problem.candidates
    only_class = (candidates.sizes == 1) & (candidates.masks[:, 0] == 1)
    worth = problem.linear if problem.is_linear else only_class.astype(np.float64)
    return [feasible_selection(candidates), feasible_selection(candidates, worth)]


def initial_bound(problem: StructureProblem) -> float:
    """An upper bound on every structure's objective that needs no margin at all."""
    best = math.fsum(np.maximum.reduceat(problem.linear, problem.candidates.offsets[:-1]))
    if problem.is_linear:
        return best
    return best + problem.gamma * math.fsum(problem.sample_weights)


def begin(run: Run) -> None:
    """Give a run its first incumbent and bound.

    A start that the caller gives comes first, so that it is the first point of the trace; then
    what an earlier call has saved.
    """
    if run.start is not None:
        run.offer(run.start)
    if run.saved is not None:
        run.offer(run.saved.selection)
    first, *others = simple_selections(run.problem)
    run.offer(first)
    run.improve_bound(initial_bound(run.problem))  # from here on there is something to compare with
    for selection in others:
        run.offer(selection)
    if run.saved is not None:
        run.recall_bound(run.saved.bound)


class SearchTree:
    """A relaxation with its open nodes, as the loop sees it. Methods that do nothing here are for
    trees that need nothing better: one worker, no heuristics, no checkpoint.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.stop = np.zeros(1, dtype=np.int64)
        """Flag that ends compiled code."""
        self.is_open = False

    @property
    def nodes(self) -> int:
        """Nodes processed, in earlier calls too."""
        raise NotImplementedError

    @property
    def bound(self) -> float:
        """Upper bound on everything open, in progress, given up or found."""
        raise NotImplementedError

    def open(self) -> None:
        """Put the root or a saved tree into the store, then :meth:`set_open`; look for first
        incumbents.
        """
        raise NotImplementedError

    def set_open(self) -> None:
        """From now on the store holds every structure that is not yet decided."""
        self.is_open = True
        self.run.snapshot = self.snapshot

    def advance(self) -> Status | None:
        """A portion of work; why none will follow (OPTIMAL: nothing is open or in progress)."""
        raise NotImplementedError

    def helpers(self) -> AbstractContextManager[None]:
        """Threads of all workers but the first, for the time of the block."""
        return nullcontext()

    def leave_python_if_slow(self, n_open: int, compile_seen: Callable[[], None]) -> None:
        """Go on with machine code, if plain Python takes long; ``compile_seen`` makes it."""
        clock = self.run.deadline
        leave_python(self.nodes, n_open, clock.elapsed(), clock.remaining(), compile_seen)

    def improve(self, improved: bool) -> None:
        """The turn of heuristics; ``improved`` says whether there is a new incumbent."""
        return

    def snapshot(self) -> SearchState:
        """The open nodes and those in progress, for a checkpoint."""
        return SearchState()

    def interrupt(self) -> None:
        """Ask compiled code to come back soon; called from another thread when time is up."""
        self.stop[0] = 1

    def hand_over(self) -> bool:
        """Offer what was found to the run, which scores it from the definition; returns whether
        anything was better.
        """
        return False

    def report(self) -> bool:
        """Report incumbents and bound to the run; returns whether an incumbent was better."""
        self.run.nodes = self.nodes
        improved = self.hand_over()
        bound = self.bound if self.is_open else math.inf
        if bound < math.inf:
            self.run.improve_bound(bound)
        return improved


class TreeSolver(Solver):
    """A solver that searches a tree."""

    def tree(self, run: Run) -> SearchTree:
        """The tree of a run, not yet opened."""
        raise NotImplementedError

    def mode(self, run: Run) -> AbstractContextManager[None]:
        """What holds while a run is searched: for an engine, how its kernels are executed."""
        return nullcontext()

    def run(self, run: Run) -> Status:
        """Portions of work until nothing is left, the gap is closed, or a limit is reached."""
        with self.mode(run):
            tree = self.tree(run)
            ended: Status | None = None
            try:
                with run.deadline.calling(tree.interrupt):
                    tree.open()
                    with tree.helpers():
                        while True:
                            improved = tree.report()
                            if run.is_closed or ended is Status.OPTIMAL:
                                return Status.OPTIMAL
                            ended = run.limit or ended
                            if ended is not None:
                                return ended
                            run.save_if_due()
                            tree.improve(improved)
                            ended = tree.advance()
            finally:
                tree.report()


@dataclass(frozen=True)
class Engine(TreeSolver):
    """One of our own solvers."""

    heuristics: bool = True
    """Local search and points of the relaxation may supply incumbents, not only leaves. Without
    them all pruning rests on bounds, which is what tests want.
    """


# ---------------------------------------------------------------------- checkpoints


def saved_tree(run: Run, name: str, width: int, constant: float) -> tuple[OpenNodes, int] | None:
    """The tree of an earlier call of a solver and its number of nodes, if it can be used: boxes of
    ``width`` bytes, and nothing given up above the gap that is asked for now. ``constant`` is what
    the objective adds to the bounds of nodes.
    """
    saved = run.saved
    if saved is None or saved.search.solver != name or not saved.search.arrays:
        return None
    try:
        nodes = parse(saved.search.arrays, width)
    except BrokenFileError as error:
        warn_unused(f"the checkpoint's tree cannot be used: {error}")
        return None
    given_up = nodes.floor + constant
    if relative_gap(run.objective, given_up, run.problem.scale) > run.limits.gap:
        warn_unused("the checkpoint's tree was searched with a wider gap_tolerance")
        return None
    return nodes, saved.search.nodes
