"""d-separation, Markov blankets, equivalence classes, distances, interventions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from marginbn.exceptions import InputError
from marginbn.problem.structure import Structure, is_acyclic
from networks import all_states, joint_probability, random_network, sprinkler


def test_sets_must_not_overlap() -> None:
    """The question has no meaning then, and indices must exist."""
    structure = Structure(((), (0,), (1,)))
    for arguments in ((0, 0), (0, 1, 1), ([0, 1], [1, 2])):
        with pytest.raises(InputError, match="must not share"):
            structure.d_separated(*arguments)
    with pytest.raises(InputError, match=r"must lie in 0\.\.2"):
        structure.markov_blanket(3)


@pytest.mark.parametrize("seed", range(10))
def test_a_blanket_shields_and_none_smaller_does(seed: int) -> None:
    """Given the blanket all others are separated; without any one member they are not."""
    structure = random_network(seed, n_variables=7).structure
    for v in range(7):
        blanket = set(structure.markov_blanket(v))
        others = set(range(7)) - blanket - {v}
        assert not others or structure.d_separated(v, others, blanket)
        for member in blanket:
            rest = blanket - {member}
            assert not structure.d_separated(v, others | {member}, rest)


def _v_structures(structure: Structure) -> set[tuple[int, int, int]]:
    return {
        (a, child, b)
        for child, parents in enumerate(structure.parents)
        for a, b in itertools.combinations(parents, 2)
        if a not in structure.parents[b] and b not in structure.parents[a]
    }


def _equivalent(structure: Structure) -> list[Structure]:
    """All structures with the same skeleton and v-structures (Verma and Pearl 1990)."""
    found = []
    for turns in itertools.product((False, True), repeat=len(structure.arcs)):
        arcs = [arc[::-1] if t else arc for arc, t in zip(structure.arcs, turns, strict=True)]
        parents = [[p for p, c in arcs if c == v] for v in range(structure.n_variables)]
        if is_acyclic(parents):
            other = Structure.from_arcs(structure.n_variables, arcs)
            if _v_structures(other) == _v_structures(structure):
                found.append(other)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_class_is_what_all_equivalent_graphs_share(seed: int) -> None:
    """By enumeration: directed exactly where every member agrees."""
    structure = random_network(seed, n_variables=3 + seed % 4).structure
    members = _equivalent(structure)
    shared = set.intersection(*(set(m.arcs) for m in members))
    graph = structure.cpdag()
    assert set(graph.directed) == shared
    assert set(graph.undirected) == {tuple(sorted(arc)) for arc in set(structure.arcs) - shared}
    for member in members[:5]:
        assert member.cpdag() == graph
        assert structure.structural_hamming_distance(member, cpdag=True) == 0


@pytest.mark.parametrize("seed", range(20))
def test_distances_by_hand(seed: int) -> None:
    """Pair by pair: an arc more, less or turned counts one."""
    one = random_network(seed, n_variables=6).structure
    two = random_network(seed + 1000, n_variables=6).structure
    expected = 0
    for a, b in itertools.combinations(range(6), 2):
        marks = [((a, b) in s.arcs, (b, a) in s.arcs) for s in (one, two)]
        expected += marks[0] != marks[1]
    assert one.structural_hamming_distance(two) == expected
    assert two.structural_hamming_distance(one) == expected
    with pytest.raises(InputError, match="must have 6 variables"):
        one.structural_hamming_distance(Structure(((),)))


def test_a_network_answers_by_name() -> None:
    network = sprinkler()
    assert network.markov_blanket("rain") == ("sprinkler", "grass")
    assert not network.d_separated("rain", ["grass"], given="sprinkler")
    graph = network.cpdag()
    assert len(graph.directed) + len(graph.undirected) == len(network.structure.arcs)
    assert graph.undirected == (("rain", "sprinkler"), ("rain", "grass"), ("sprinkler", "grass"))


@pytest.mark.parametrize("seed", range(10))
def test_do_is_the_truncated_product(seed: int) -> None:
    """P(x | do(v)) leaves out the factors of v and keeps states that agree."""
    network = random_network(seed, n_variables=5)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(5, 2, replace=False).tolist()
    states = {v: int(rng.integers(network.arities[v])) for v in chosen}
    labels = {network.names[v]: network.variables[v].states[s] for v, s in states.items()}
    changed = network.do(labels)
    for state in all_states(network):
        expected = float(all(state[v] == s for v, s in states.items()))
        for i, parents in enumerate(network.structure.parents):
            if i not in states:
                expected *= np.exp(network.log_tables[i][(*(state[p] for p in parents), state[i])])
        found = joint_probability(changed, state)
        assert found == pytest.approx(expected)
