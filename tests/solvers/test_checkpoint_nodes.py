"""Open nodes as arrays: out of a store, and into a store again."""

from __future__ import annotations

import numpy as np

from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import margin_problem
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.branch_bound.engine import BoxSearch
from marginbn.solvers.branch_bound.workers import first_pool, gather, load
from marginbn.solvers.checkpoint import join, parse
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.tree_search import begin
from strategies import random_data


def some_search() -> BoxSearch:
    data = random_data(3, n_samples=150, arities=(3, 3, 2, 3, 2, 3, 3, 2, 3, 2))
    problem = margin_problem(data, enumerate_candidates(data.n_variables, 2), gamma=1.0)
    run = Run(problem, Limits(nodes=40))
    begin(run)
    search = BoxSearch(run, BranchBoundSolver(heuristics=False))
    search.open()
    while search.advance() is None:
        search.improve(False)
    assert search.main.pool.state.open > 20
    return search


def test_nodes_come_back_with_their_boxes() -> None:
    """In two parts, through a file's arrays, and in any order."""
    search = some_search()
    inst, width = search.encoding.instance, 8 * search.main.pool.words.shape[1]
    before = gather([search.main.pool])
    count = len(before.bound)
    parts = [before.some(np.arange(k, count, 2)) for k in range(2)]
    whole = parse(dict(join(parts).arrays), width)
    pool = load(first_pool(search.encoding), inst, search.root, whole, np.arange(count))
    after = gather([pool])
    assert (after.numbers == before.numbers).all()
    known = sorted(zip(before.bound.tolist(), before.boxes.tolist(), strict=True))
    assert sorted(zip(after.bound.tolist(), after.boxes.tolist(), strict=True)) == known
    assert pool.references.sum() == count
    assert pool.references.max() == count  # one family


def test_a_family_without_nodes_is_free_again() -> None:
    """Boxes that the root does not allow are left out."""
    search = some_search()
    inst = search.encoding.instance
    tree = gather([search.main.pool])
    nothing = search.root._replace(allowed=np.zeros_like(search.root.allowed))
    pool = load(first_pool(search.encoding), inst, nothing, tree, np.arange(len(tree.bound)))
    assert pool.state.open == 0
    assert pool.state.free_families == pool.smoothing.size
    assert sorted(pool.free_families.tolist()) == list(range(pool.smoothing.size))
