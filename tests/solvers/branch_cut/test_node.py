"""The frontier of a branch-and-cut search, and visits of its nodes."""

from __future__ import annotations

import itertools

import numpy as np

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_cut import BranchCutSolver
from marginbn.solvers.branch_cut.arrays import build_instance
from marginbn.solvers.branch_cut.cuts import RowPool
from marginbn.solvers.branch_cut.node import Frontier, Node
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import solve_with
from problems import small_margin_problem


def hard_problem() -> StructureProblem:
    """Some hundred nodes without heuristics."""
    return small_margin_problem(4, n_rows=25, n_features=4, max_parents=3)


def node(bound: float) -> Node:
    """A node that nobody looks into."""
    bits = np.zeros(1, dtype=np.uint8)
    return Node(bound, 0, bits, bits, FakeWarm(), None)  # type: ignore[arg-type]


class FakeWarm:
    nbytes = 100


def test_a_node_in_progress_counts_until_its_children_are_there() -> None:
    """Taken, better bounded, settled: the bound covers it all the time."""
    frontier = Frontier(0, Limits())
    for bound in (10.0, 7.0):
        frontier.push(node(bound))
    first = frontier.take()
    assert first is not None
    assert (first.bound, frontier.bound) == (10.0, 10.0)
    assert sorted(n.bound for n in frontier.open_nodes()) == [7.0, 10.0]
    frontier.claim(8.0)
    assert frontier.bound == 8.0
    frontier.claim(9.0)  # no worse again
    assert frontier.bound == 8.0
    frontier.settle([node(6.0)])
    assert frontier.bound == 7.0
    assert sorted(n.bound for n in frontier.open_nodes()) == [6.0, 7.0]
    frontier.discard(5.5)
    for _ in range(2):
        assert frontier.take() is not None
        frontier.settle([])
    assert frontier.take() is None
    assert frontier.bound == 5.5
    assert frontier.nodes == 3


def test_a_node_limit_leaves_the_others_open() -> None:
    frontier = Frontier(0, Limits(nodes=1))
    for bound in (3.0, 2.0):
        frontier.push(node(bound))
    taken = frontier.take()
    assert taken is not None
    assert frontier.take() is None, "one node may be visited"
    frontier.settle([])
    assert frontier.limit() is Status.NODE_LIMIT
    assert frontier.bound == 2.0
    assert Frontier(0, Limits()).limit() is None


def test_a_row_has_one_number() -> None:
    problem = small_margin_problem(0, n_features=5)
    pool = RowPool(build_instance(problem))
    pairs = list(itertools.combinations(range(6), 2))
    edges = [pool.edge(*pair) for pair in pairs]
    clusters = [pool.cluster(frozenset(pair)) for pair in pairs]
    assert edges == [pool.edge(*pair) for pair in pairs]
    assert clusters == [pool.cluster(frozenset(pair)) for pair in pairs]
    assert sorted(edges + clusters) == list(range(2 * len(pairs))) == list(range(len(pool)))
    lasting = pool.violations(np.zeros(problem.candidates.n_candidates)) > -np.inf
    assert np.count_nonzero(lasting) == len(pairs)  # edges hold at some nodes only


def test_more_workers_change_nothing() -> None:
    """One search has one worker."""
    problem = hard_problem()
    one, three = (solve_with(BranchCutSolver(), Run(problem, n_jobs=n)) for n in (1, 3))
    assert (one.objective, one.bound, one.nodes) == (three.objective, three.bound, three.nodes)
