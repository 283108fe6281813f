"""Structures: what is refused, orders, arcs and the description of a cycle."""

from __future__ import annotations

import pickle
from itertools import pairwise, permutations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.exceptions import InputError
from marginbn.problem.structure import Structure, describe_cycle, is_acyclic, topological_order
from strategies import all_structures, structures


def test_naive_bayes_by_hand() -> None:
    structure = Structure(((), (0,), (0,)))
    assert structure.arcs == ((0, 1), (0, 2))
    assert structure.order == (0, 1, 2)
    assert structure.n_variables == 3
    assert structure.children(0) == (1, 2)
    assert structure.children(2) == ()


def test_parents_are_sorted_plain_integers() -> None:
    assert Structure(((), (0,), [1, 0])) == Structure(((), (0,), (0, 1)))  # type: ignore[arg-type]
    assert hash(Structure(((1,), ()))) == hash(Structure(((1,), ())))


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        (((0,), ()), r"parents of variable 0 must be other variables in 0\.\.1, got \(0,\)"),
        (((2,), ()), "parents of variable 0 must be other variables"),
        (((-1,), ()), "parents of variable 0 must be other variables"),
        (((1, 1), ()), "variable 0 lists a parent twice"),
        (((1,), (0,)), "directed cycle: (0 -> 1 -> 0|1 -> 0 -> 1)"),
    ],
)
def test_bad_parents_are_refused(parents: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Structure(parents)


def test_the_cycle_is_named_in_the_direction_of_its_arcs() -> None:
    """With arcs 1 -> 2 -> 3 -> 1 the message walks them forward, and leaves 0 and 4 alone."""
    text = describe_cycle([(), (3,), (1, 0), (2,), (3,)])
    steps = [int(v) for v in text.split(" -> ")]
    assert steps[0] == steps[-1]
    assert set(steps) == {1, 2, 3}
    assert set(pairwise(steps)) == {(1, 2), (2, 3), (3, 1)}


@pytest.mark.parametrize(("n_variables", "count"), [(1, 1), (2, 3), (3, 25), (4, 543)])
def test_the_number_of_dags_is_the_known_one(n_variables: int, count: int) -> None:
    """Robinson's numbers: 1, 3, 25, 543 graphs without directed cycle."""
    assert sum(1 for _ in all_structures(n_variables)) == count


def test_the_order_is_the_first_in_the_dictionary() -> None:
    """Ties go to the smaller index: of all orders with parents first the least is returned."""
    for structure in all_structures(4):
        orders = (
            order
            for order in permutations(range(4))
            if all(order.index(p) < order.index(c) for p, c in structure.arcs)
        )
        assert structure.order == next(orders)  # permutations come in dictionary order


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_acyclicity_agrees_with_networkx(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    pairs = [(p, c) for p in range(n) for c in range(n) if p != c]
    arcs = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    graph = nx.DiGraph(arcs)
    graph.add_nodes_from(range(n))
    parents = [sorted(graph.predecessors(v)) for v in range(n)]
    acyclic = nx.is_directed_acyclic_graph(graph)
    assert is_acyclic(parents) is acyclic
    if acyclic:
        assert set(Structure.from_arcs(n, arcs).arcs) == set(arcs)
    else:
        assert topological_order(parents) is None
        steps = [int(v) for v in describe_cycle(parents).split(" -> ")]
        assert steps[0] == steps[-1]
        assert all(arc in arcs for arc in pairwise(steps))


@given(structures(5))
@settings(deadline=None, max_examples=50)
def test_arcs_and_pickles_round_trip(structure: Structure) -> None:
    assert Structure.from_arcs(5, structure.arcs) == structure
    assert pickle.loads(pickle.dumps(structure)) == structure


@pytest.mark.parametrize("arc", [(0, 3), (3, 0), (0, -1), (-1, 0), (1, 1)])
def test_arcs_out_of_range_are_refused(arc: tuple[int, int]) -> None:
    with pytest.raises(InputError):
        Structure.from_arcs(3, [arc])


def test_a_long_chain_has_its_order() -> None:
    """Five hundred variables in a chain from the last to the first: the order is reversed."""
    n = 500
    structure = Structure((*((i + 1,) for i in range(n - 1)), ()))
    assert structure.order == tuple(reversed(range(n)))
