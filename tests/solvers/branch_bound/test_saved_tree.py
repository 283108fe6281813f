"""Open nodes of a checkpoint: out of a store, looked through, and into a store again."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import margin_problem
from marginbn.solvers.branch_bound import BranchBoundSolver, saved_tree
from marginbn.solvers.branch_bound.engine import Search
from marginbn.solvers.branch_bound.kernels.store import small_type
from marginbn.solvers.branch_bound.saved_tree import are_feasible, gather, load
from marginbn.solvers.branch_bound.workers import first_pool
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.tree_search import begin
from strategies import random_data


def some_search() -> Search:
    """One with open nodes."""
    data = random_data(3, n_samples=150, arities=(3, 3, 2, 3, 2, 3, 3, 2, 3, 2))
    problem = margin_problem(data, enumerate_candidates(data.n_variables, 2), gamma=1.0)
    run = Run(problem, Limits(nodes=40))
    begin(run)
    search = Search(run, BranchBoundSolver(heuristics=False))
    search.open()
    while search.advance() is None:
        search.improve(False)
    assert search.main.pool.state.open > 20
    return search


@pytest.mark.parametrize("block", [1, 2, 4096])
def test_nodes_come_back_with_their_families(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes, bounds, vertices and shares; families are loaded in blocks of any size."""
    monkeypatch.setattr(saved_tree, "BLOCK", block)
    search = some_search()
    inst = search.encoding.instance
    before = gather([search.main.pool])
    everything = np.arange(len(before.bound))
    pool = load(first_pool(search.encoding), inst, search.root, before, everything)
    after = gather([pool])
    order, again = np.argsort(before.bound), np.argsort(after.bound)
    assert after.bound[again].tolist() == before.bound[order].tolist()
    for a, b in zip(order, again, strict=True):
        own, new = (
            sorted(
                (*tree.vertices[k].tolist(), float(tree.share[k]))
                for k in range(*tree.starts[tree.family[node] : tree.family[node] + 2])
            )
            for tree, node in ((before, a), (after, b))
        )
        assert own == new
    used = pool.references[pool.family[pool.heap[: pool.state.open]]]
    assert (used > 0).all()
    assert pool.references.sum() == pool.state.open  # nobody else holds one


def test_families_whose_boxes_are_empty_are_free_again() -> None:
    search = some_search()
    inst = search.encoding.instance
    tree = gather([search.main.pool])
    nothing = search.root._replace(allowed=np.zeros_like(search.root.allowed))
    pool = load(first_pool(search.encoding), inst, nothing, tree, np.arange(len(tree.bound)))
    assert pool.state.open == 0
    assert pool.state.free_families == pool.smoothing.size
    assert sorted(pool.free_families.tolist()) == list(range(pool.smoothing.size))


def test_a_vertex_that_is_none_is_found_in_any_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that does not exist, a cycle, and a parent of the class that has parents."""
    monkeypatch.setattr(saved_tree, "BLOCK", 3)
    inst = some_search().encoding.instance
    n = inst.n_features
    good = np.zeros((10, n + 2), dtype=small_type(n))
    good[:, :n] = n
    assert are_feasible(inst, good)
    with_parent = int(np.flatnonzero(inst.first >= 0)[0])
    for place in range(10):
        for changes in ({0: n + 2}, {0: 1, 1: 0}, {n: with_parent}):
            bad = good.copy()
            for column, value in changes.items():
                bad[place, column] = value
            assert not are_feasible(inst, bad)


def test_looking_through_vertices_takes_little_memory() -> None:
    """No copies of all of them as wide numbers: a large tree would need many times itself."""
    inst = some_search().encoding.instance
    n = inst.n_features
    many = np.full((400_000, n + 2), n, dtype=small_type(n))
    many[:, n:] = 0
    tracemalloc.start()
    try:
        assert are_feasible(inst, many)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < many.nbytes
