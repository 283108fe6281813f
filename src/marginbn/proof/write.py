"""A solve with a certificate.

The chosen solver searches first, at full speed, for at most :data:`SEARCH_SHARE` of the time limit.
Then a search that keeps its proof builds the tree of the file, best bound first, in the rest of the
time. Whatever ends it, open nodes are leaves with the best weights they have, so the certificate
proves the gap that is left. The result has the better of both bounds.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from itertools import chain, count

import numpy as np

from marginbn.exceptions import CertificateWarning, InputError
from marginbn.files import PathLike, try_writing, write_or_rescue
from marginbn.interrupts import INTERRUPTS
from marginbn.proof.certificate import (
    CLUSTERS,
    FOREST,
    Certificate,
    DualWeights,
    NamedRow,
    write_certificate,
)
from marginbn.proof.clusters import ClusterRelaxation
from marginbn.proof.definition import Definition
from marginbn.proof.forest import ForestRelaxation
from marginbn.proof.record import Relaxation, TreeNode
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.branch_bound.engine import is_interpreted
from marginbn.solvers.branch_bound.kernels.bound import bound_box
from marginbn.solvers.compile import compile_seen
from marginbn.solvers.interpreted import interpreting
from marginbn.solvers.result import MORE_WORK, SolveResult, Status, TracePoint, relative_gap
from marginbn.solvers.run import Callback, Deadline, RowsInUse, Run, Solver
from marginbn.solvers.solve import solve_with
from marginbn.solvers.tree_search import SearchTree, TreeSolver, initial_bound

PROOF_BYTES = 500_000_000
"""Weights kept in memory; beyond it the search ends with a memory limit."""


class CertifyingSearch(SearchTree):
    """State of one search."""

    def __init__(self, run: Run, relaxation: Relaxation) -> None:
        super().__init__(run)
        self.relaxation = relaxation
        self.root = relaxation.root()
        self._visited = 0
        self._order = count()
        self._open: list[tuple[float, int, TreeNode]] = []
        self._floor = -float("inf")  # largest bound of a closed leaf
        self._nbytes = 0
        self._push(self.root)

    def open(self) -> None:
        """The root is there from the beginning."""
        self.set_open()

    def advance(self, worker: int = 0) -> Status | None:
        """Visit one node."""
        seen = partial(compile_seen, BranchBoundSolver.__module__)
        self.leave_python_if_slow(len(self._open), seen)
        if not self._open:
            return Status.OPTIMAL
        limit = self.run.limits.nodes
        if limit is not None and self.nodes >= limit:
            return Status.NODE_LIMIT
        if self._nbytes > PROOF_BYTES:
            return Status.MEMORY_LIMIT
        _, _, node = heappop(self._open)
        try:
            self._visit(node)
        except BaseException:
            self._push(node)  # an interrupt must not lose a node
            raise
        node.state = None  # it is not visited again
        return None

    def _visit(self, node: TreeNode) -> None:
        if node.bound > self.relaxation.cutoff:
            self._visited += 1
            visit = self.relaxation.visit(node)
            if visit.bound < node.bound:
                node.bound, node.proof = visit.bound, visit.proof
                dual, priced = visit.proof.dual, visit.proof.multipliers
                self._nbytes += 100 + 40 * len(priced or ()) + (dual.parts.nbytes if dual else 0)
            node.split, node.sides = visit.split, visit.sides
        for side in node.sides or ():
            self._push(side)
        if node.sides is None:
            self._floor = max(self._floor, node.bound)

    def _push(self, node: TreeNode) -> None:
        if node.bound <= self.relaxation.cutoff:
            self._floor = max(self._floor, node.bound)
        else:
            heappush(self._open, (-node.bound, next(self._order), node))

    @property
    def nodes(self) -> int:
        """Nodes visited."""
        return self._visited

    @property
    def bound(self) -> float:
        """Of every leaf of the recorded tree, open or closed, and the incumbent."""
        top = -self._open[0][0] if self._open else -float("inf")
        return max(top, self._floor, self.run.objective)

    def interrupt(self) -> None:
        """End the visit at hand soon."""
        self.relaxation.stop[0] = 1


SEARCH_SHARE = 0.4
"""Part of the time limit that the ordinary search may take."""

SHORTEST_PROOF = 0.1
"""Seconds that the certifying search has at the least; it does not take the root much longer."""

WORTH_A_WARNING = 1e-5
"""A certificate whose gap is larger than the search's by more than this is reported."""


class CertifyingSolver(TreeSolver):
    """Searches with the relaxation that suits the structures, and keeps the tree."""

    name = "certificate"

    def __init__(self, definition: Definition, rows: RowsInUse) -> None:
        self.definition = definition
        self.rows = rows
        self.search: CertifyingSearch | None = None

    def tree(self, run: Run) -> SearchTree:
        """The root, with the run's incumbent."""
        relaxation: Relaxation
        if self.definition.is_forest:
            relaxation = ForestRelaxation(run, self.definition.numbers, self.rows)
        else:
            relaxation = ClusterRelaxation(run, self.definition.numbers)
        self.search = CertifyingSearch(run, relaxation)
        return self.search


def solve_with_certificate(solver: Solver, run: Run, path: PathLike) -> SolveResult:
    """Let the solver work within its share of the limits, then prove and write what it found."""
    try_writing(path, "certificate")
    definition, limits = Definition.of(run.problem), run.limits
    solver.prepare(run.problem, run.n_jobs)
    in_python = definition.is_forest and is_interpreted(run.problem, largest=bound_box)
    clock = Deadline(limits)
    share = None if limits.time is None else SEARCH_SHARE * limits.time
    found = solve_with(solver, run.within(replace(limits, time=share)))
    rest = limits
    if limits.time is not None:
        rest = replace(limits, time=max(clock.remaining(), SHORTEST_PROOF))
    callback = run.callback and partial(_hear, run.callback, found)
    with interpreting(in_python):
        proving = Run(definition.problem, rest, seed=run.seed, callback=callback)
        rows = solver.rows if isinstance(solver, BranchBoundSolver) else "auto"
        return certify(definition, found, path, proving, rows)


def certify(
    definition: Definition, found: SolveResult, path: PathLike, run: Run, rows: RowsInUse
) -> SolveResult:
    """Prove what a search has found, write the certificate, and combine both results."""
    solver, asked = CertifyingSolver(definition, rows), run.limits
    if found.status is Status.WORK_LIMIT:  # prove what the search has found, and no more
        run.limits = replace(asked, gap=max(asked.gap, found.gap))
    with run.ending():
        if found.status is Status.INTERRUPTED or INTERRUPTS.requested:
            run.limits = replace(run.limits, nodes=1)  # the user wants an end: the root alone
        run.offer(found.selection)
        run.improve_bound(initial_bound(run.problem))
        run.stopped = solver.run(run)
    if solver.search is None:
        _warn("there is no certificate: interrupted before it was begun")
        return found
    certificate = make_certificate(definition, solver.search)
    try:
        rescued = write_or_rescue(path, lambda name: write_certificate(name, certificate))
        if rescued is not None:
            _warn(f"the certificate is not where it should be: {rescued}")
    except InputError as error:
        _warn(f"there is no certificate: {error}")
    stopped, run.limits = run.stopped, asked
    result = _combined(found, run)
    gap = relative_gap(certificate.objective, certificate.bound, result.scale)
    if gap > result.gap + WORTH_A_WARNING:
        reason = "its arithmetic is coarser, and the optimum is small compared with the weights"
        if stopped is not Status.OPTIMAL:
            more = MORE_WORK if stopped is Status.WORK_LIMIT else "time_limit"
            reason = f"writing a proof takes longer than finding it; increase {more}"
        proved = f"the certificate proves a gap of {100 * gap:.2g} %, the search itself"
        _warn(f"{proved} {100 * result.gap:.2g} %: {reason}")
    return result


def _warn(text: str) -> None:
    warnings.warn(text, CertificateWarning, stacklevel=5)


def _hear(listener: Callback, found: SolveResult, point: TracePoint) -> bool | None:
    """The listener hears of a better incumbent or bound only, with the time of both searches."""
    best = max(point.objective, found.objective)
    bound = max(min(point.bound, found.bound), best)
    return listener(TracePoint(found.seconds + point.seconds, best, bound, found.scale))


def make_certificate(definition: Definition, search: CertifyingSearch) -> Certificate:
    """The recorded tree with the claim it proves; both numbers allow for a checker's rounding.

    Weights, rows and multipliers are numbered in the order of their first use.
    """
    run, relaxation = search.run, search.relaxation
    slack = relaxation.slack
    assert run.selection is not None  # the search began with one
    tree = list[int]()
    numbers, sets = dict[DualWeights, int](), dict[tuple[tuple[NamedRow, float], ...], int]()
    waiting = [search.root]
    while waiting:
        node = waiting.pop()
        if node.split is not None and node.sides is not None:
            tree += node.split
            waiting += node.sides[::-1]
            continue
        dual, priced = node.proof.dual, node.proof.multipliers
        number = 0 if dual is None else numbers.setdefault(dual, len(numbers))
        if priced is None:
            tree += (FOREST, number)
        else:
            tree += (CLUSTERS, number, sets.setdefault(priced, len(sets)))
    rows = {row: k for k, row in enumerate(dict.fromkeys(row for row, _ in chain(*sets)))}
    duals, groups = relaxation.grouped(numbers)
    return Certificate(
        fingerprint=definition.data.fingerprint(),
        data=definition.data,
        score=definition.score,
        candidates=definition.candidates,
        incumbent=definition.problem.candidates.structure(run.selection).parents,
        objective=run.objective - slack,
        bound=search.bound + slack,
        grid=relaxation.grid,
        tree=np.array(tree, dtype=np.int32),
        duals=tuple(duals),
        rows=tuple(rows),
        multipliers=tuple(tuple((rows[row], y) for row, y in own) for own in sets),
        groups=groups,
        n_groups=0 if groups is None else int(groups.max()) + 1,
    )


def _combined(found: SolveResult, run: Run) -> SolveResult:
    """The better incumbent with the better bound."""
    run.recall_bound(found.bound)
    run.nodes += found.nodes
    run.work += found.work
    if found.status not in (Status.OPTIMAL, Status.GAP_LIMIT):
        run.stopped = found.status
    result = run.finish(found.solver)
    seconds = found.seconds + result.seconds
    last = TracePoint(seconds, result.objective, result.bound, result.scale)
    trace = [p for p in found.trace if p.objective <= result.objective]
    return replace(result, trace=(*trace, last), seconds=last.seconds)
