"""A solve with a certificate.

The chosen solver searches first, at full speed, for at most :data:`SEARCH_SHARE` of the time limit;
it finds the structure. Then a search that keeps its proof, with that structure as incumbent, builds
the tree that goes into the file, within the rest of the time: best bound first, as in the engines,
but node by node in Python, with every decision and every weight kept until the end. Whatever ends
it, the nodes still open are leaves with the best weights they have, so the certificate proves the
gap that is left. The result has the better of both bounds; if the certificate proves less than the
search does, a warning says so.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

from marginbn.exceptions import CertificateWarning, InputError
from marginbn.files import PathLike
from marginbn.problem.problem import StructureProblem
from marginbn.proof.certificate import Certificate
from marginbn.proof.clusters import ClusterRelaxation
from marginbn.proof.definition import Definition
from marginbn.proof.forest import ForestRelaxation
from marginbn.proof.format import write_certificate
from marginbn.proof.record import Claim, Cutoff, Relaxation, TreeNode, leaves, write_tree
from marginbn.solvers.result import SolveResult, Status, TracePoint, relative_gap
from marginbn.solvers.run import Callback, Deadline, Limits, Tracker
from marginbn.solvers.start import initial_bound
from marginbn.solvers.tree_search import Progress, SearchTree, ended, run

PROOF_BYTES = 500_000_000
"""Weights kept in memory; beyond it the search ends with a memory limit."""


class CertifyingSearch(SearchTree):
    """State of one search."""

    def __init__(self, relaxation: Relaxation, tracker: Tracker, cutoff: Cutoff) -> None:
        self.relaxation = relaxation
        self.tracker = tracker
        self.cutoff = cutoff
        claim = relaxation.root()
        self.root = TreeNode(claim.bound, claim.proof)
        self._visited = 0
        self.is_open = True
        self._order = count()
        self._open: list[tuple[float, int, TreeNode, Claim]] = []
        self._floor = -float("inf")  # largest bound of a closed leaf
        self._nbytes = 0
        self._push(self.root, claim)

    def run(self) -> Status | None:
        """Visit nodes until none is left (None) or a limit is reached."""
        with self.tracker.deadline.ringing(self.interrupt):
            return run(self, self.tracker)

    def advance(self) -> Progress:
        """Visit one node."""
        if not self._open:
            return Progress.FINISHED
        limit = self.tracker.deadline.limits.nodes
        if limit is not None and self.nodes >= limit:
            return Progress.NODE_LIMIT
        if self._nbytes > PROOF_BYTES:
            return Progress.MEMORY_LIMIT
        _, _, node, claim = heappop(self._open)
        try:
            self._visit(node, claim)
        except BaseException:
            self._push(node, claim)  # an interrupt must not lose a node
            raise
        return Progress.MORE

    def _visit(self, node: TreeNode, claim: Claim) -> None:
        if claim.bound <= self.cutoff.value:
            self._close(claim.bound)
            return
        self._visited += 1
        visit = self.relaxation.visit(claim)
        if visit.bound < node.bound:
            node.bound, node.proof = visit.bound, visit.proof
            self._nbytes += visit.proof.nbytes
        if visit.sides is None:
            self._close(node.bound)
            return
        sides = tuple(TreeNode(side.bound, side.proof) for side in visit.sides)
        node.split, node.sides = visit.split, (sides[0], sides[1])
        for side, made in zip(visit.sides, node.sides, strict=True):
            self._push(made, side)

    def _push(self, node: TreeNode, claim: Claim) -> None:
        if claim.bound <= self.cutoff.value:
            self._close(claim.bound)
        else:
            heappush(self._open, (-claim.bound, next(self._order), node, claim))

    def _close(self, bound: float) -> None:
        self._floor = max(self._floor, bound)

    @property
    def nodes(self) -> int:
        """Nodes visited."""
        return self._visited

    @property
    def bound(self) -> float:
        """Of everything open or closed, and the incumbent."""
        top = -self._open[0][0] if self._open else -float("inf")
        return max(top, self._floor, self.tracker.objective)

    @property
    def proven(self) -> float:
        """Largest bound of a leaf: what the recorded tree proves."""
        return max(leaf.bound for leaf in leaves(self.root))

    def interrupt(self) -> None:
        """Ask the relaxation to come back soon."""
        self.relaxation.interrupt()


SEARCH_SHARE = 0.4
"""Part of the time limit that the ordinary search may take."""

WORTH_TELLING = 1e-5
"""A certificate whose gap is larger than the search's by more than this is told."""


def solve_with_certificate(
    problem: StructureProblem,
    search: Callable[[Limits], SolveResult],
    path: PathLike,
    limits: Limits,
    callback: Callback | None,
    seed: int,
) -> SolveResult:
    """Run ``search`` within its share of the limits, then prove and write what it found."""
    check_path(path)
    definition = Definition.of(problem)
    clock = Deadline(limits)
    share = None if limits.time is None else SEARCH_SHARE * limits.time
    found = search(replace(limits, time=share))
    if found.status is Status.INTERRUPTED:
        rest = replace(limits, nodes=1)  # the user wants an end: the root alone
    elif limits.time is None:
        rest = limits
    else:
        rest = replace(limits, time=max(clock.remaining(), 0.1))
    return certify(definition, found, path, rest, callback, seed)


def check_path(path: PathLike) -> None:
    """Refuse before the search what could not be written after it."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK) or os.path.isdir(path):
        raise InputError(
            f"certificate must be a file in a folder that can be written, got {os.fspath(path)!r}"
        )


def certify(
    definition: Definition,
    found: SolveResult,
    path: PathLike,
    limits: Limits,
    callback: Callback | None = None,
    seed: int = 0,
) -> SolveResult:
    """Prove what a search has found, write the certificate, and combine both results."""
    tracker = Tracker(definition.problem, Deadline(limits), _continued(callback, found))
    try:
        search = _begin(definition, found, tracker, seed)
    except KeyboardInterrupt:
        _warn("there is no certificate: interrupted before it was begun", 4)
        return found
    stopped = ended(search.run)
    certificate = make_certificate(definition, search)
    try:
        write_certificate(path, certificate)
    except InputError as error:
        _warn(f"there is no certificate: {error}", 4)
    result = _combined(found, tracker, stopped, search.nodes)
    _tell(result, certificate, stopped)
    return result


def _begin(
    definition: Definition, found: SolveResult, tracker: Tracker, seed: int
) -> CertifyingSearch:
    """The search with its relaxation and the structure found as incumbent."""
    tracker.offer(found.selection)
    tracker.improve_bound(initial_bound(definition.problem))
    cutoff = Cutoff(tracker)
    make: Callable[..., Relaxation]
    make = ForestRelaxation if definition.is_forest else ClusterRelaxation
    relaxation = make(definition.problem, definition.numbers, cutoff, seed)
    return CertifyingSearch(relaxation, tracker, cutoff)


def _warn(text: str, stacklevel: int) -> None:
    warnings.warn(text, CertificateWarning, stacklevel=stacklevel + 1)


def _continued(callback: Callback | None, found: SolveResult) -> Callback | None:
    """The listener hears of a better incumbent or bound only, with the time of both searches."""
    if callback is None:
        return None
    listener = callback

    def hear(point: TracePoint) -> bool | None:
        best = max(point.objective, found.objective)
        bound = max(min(point.bound, found.bound), best)
        return listener(TracePoint(found.seconds + point.seconds, best, bound))

    return hear


def make_certificate(definition: Definition, search: CertifyingSearch) -> Certificate:
    """The recorded tree with the claim it proves; both numbers allow for a checker's rounding."""
    tracker, relaxation = search.tracker, search.relaxation
    slack = relaxation.slack
    assert tracker.selection is not None  # the search began with one
    written = write_tree(search.root)
    return Certificate(
        fingerprint=definition.data.fingerprint(),
        data=definition.data,
        score=definition.score,
        candidates=definition.candidates,
        incumbent=definition.problem.candidates.structure(tracker.selection).parents,
        objective=tracker.objective - slack,
        bound=max(search.proven, tracker.objective) + slack,
        grid=relaxation.grid,
        tree=written.stream(),
        duals=tuple(written.duals),
        rows=tuple(written.rows),
        multipliers=tuple(written.multipliers),
    )


def _combined(
    found: SolveResult, tracker: Tracker, stopped: Status | None, nodes: int
) -> SolveResult:
    """The better incumbent with the better bound."""
    tracker.improve_bound(found.bound)
    status = stopped if found.status in (Status.OPTIMAL, Status.GAP_LIMIT) else found.status
    result = tracker.finish(found.solver, status or stopped, found.nodes + nodes)
    last = TracePoint(found.seconds + result.seconds, result.objective, result.bound)
    trace = [p for p in found.trace if p.objective <= result.objective]
    return replace(result, trace=(*trace, last), seconds=last.seconds)


def _tell(result: SolveResult, certificate: Certificate, stopped: Status | None) -> None:
    """Say so if the certificate proves less than the search."""
    gap = relative_gap(certificate.objective, certificate.bound)
    if gap <= result.gap + WORTH_TELLING:
        return
    reason = "its arithmetic is coarser, and the optimum is small beside the weights"
    if stopped is not None:
        reason = (
            "writing down a proof takes longer than finding it; "
            "a larger time_limit lets it catch up"
        )
    _warn(
        f"the certificate proves a gap of {100 * gap:.2g} %, the search itself "
        f"{100 * result.gap:.2g} %: {reason}",
        5,
    )
