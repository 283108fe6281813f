"""Networks from scores: the posterior is that of the scores, on every row and any structure."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.parameters import marrying
from marginbn.parameters.normalise import normalised_network
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure
from score_tables import all_rows, make_scores, posterior_error, random_scores
from strategies import make_variables

SEEDS = range(60)


def sample_data(arities: tuple[int, ...], n: int = 60, seed: int = 0) -> EncodedData:
    """Uniform rows."""
    codes = np.random.default_rng(seed).integers(0, arities, (n, len(arities)))
    return EncodedData(codes, np.ones(n), make_variables(arities))


@pytest.mark.parametrize("seed", SEEDS)
def test_any_structure_keeps_the_posterior(seed: int) -> None:
    """Random graphs: class with parents, colliders, groups, silent features, foreign tables."""
    scores, structure, data = random_scores(seed)
    network = normalised_network(scores, structure, data, fit_marginals=seed % 2 == 0)
    assert posterior_error(network, scores, all_rows(scores)) < 1e-10
    assert max(np.abs(np.exp(t).sum(-1) - 1).max() for t in network.log_tables) < 1e-12
    assert set(structure.arcs) <= set(network.structure.arcs)


@pytest.mark.parametrize("seed", SEEDS[::3])
def test_the_class_may_have_to_come_first(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the class cannot keep its parents it becomes theirs, and the posterior stays."""
    monkeypatch.setattr(marrying, "MAX_CLASS_CELLS", 0)
    scores, structure, data = random_scores(seed)
    network = normalised_network(scores, structure, data)
    assert posterior_error(network, scores, all_rows(scores)) < 1e-10
    assert network.structure.parents[0] == ()


def test_the_random_cases_hold_what_they_promise() -> None:
    """All kinds of structures are among them."""
    structures = [random_scores(seed)[1] for seed in SEEDS]
    parents = [s.parents for s in structures]
    assert sum(bool(p[0]) for p in parents) > 20
    assert {len(p) for ps in parents for p in ps} == {0, 1, 2, 3}
    added = [
        set(normalised_network(scores, s, data, fit_marginals=False).structure.arcs) - set(s.arcs)
        for scores, s, data in map(random_scores, SEEDS)
    ]
    assert sum(any(0 not in arc for arc in arcs) for arcs in added) > 10  # marrying needed
    assert sum(any(arc[0] == 0 for arc in arcs) for arcs in added) > 10
    assert sum(any(arc[1] == 0 for arc in arcs) for arcs in added) > 10


@pytest.mark.parametrize(
    "parents",
    [
        ((), (0,), (0,), (0,)),  # naive Bayes
        ((), (0,), (0, 1), (0, 2), (0, 2)),  # a tree
        ((), (0,), (0, 1), (0,), (0, 3)),  # a forest
        ((), (0,), (0, 1), (0, 1, 2), (0, 2, 3), (0, 1, 3)),  # a 2-tree
        ((1,), (), (0,), (0, 2)),  # a tree below a class with a parent
        ((1, 2), (), (), (0, 1, 2)),  # both parents of the child are parents of the class
    ],
)
def test_married_parents_need_no_arc(parents: tuple[tuple[int, ...], ...]) -> None:
    """Forests, k-trees and the like come out with exactly the given arcs."""
    structure = Structure(parents)
    arities = (2, *[3] * (len(parents) - 1))
    network = normalised_network(make_scores(structure, arities), structure, sample_data(arities))
    assert network.structure == structure


@pytest.mark.parametrize(
    ("parents", "silent", "added"),
    [
        (((), (0,), (0,), (0, 1, 2)), (), [{1, 2}]),  # two parents of one child
        (((), (), (0, 1)), (), [{0, 1}]),  # a root that its child speaks about
        (((), (), (0, 1)), (1,), [{0, 1}]),
        (((1,), (), (0,), (0, 1, 2)), (), [{1, 2}]),  # one of them is above the class
        (((2,), (), (1,)), (), [{0, 1}]),  # an ancestor with an effect
        (((2,), (), (1,)), (1,), []),  # and one without
        (((), (0,), (1,)), (2,), []),  # a feature nobody scores needs no class
        (((), (0,), (), (2,)), (2,), [{0, 2}, {0, 3}]),  # a scored child takes its parent along
        # After 5 goes 3: if 4 went first, 3 would have to marry 1 and 2 as well.
        (((), (0,), (0,), (0,), (0, 1, 2), (0, 4, 3)), (), [{1, 2}, {3, 4}]),
    ],
)
def test_exactly_the_arcs_that_are_needed_are_added(
    parents: tuple[tuple[int, ...], ...], silent: tuple[int, ...], added: list[set[int]]
) -> None:
    """Marrying, arcs from the class and arcs into it."""
    structure = Structure(parents)
    arities = (2, *[2] * (len(parents) - 1))
    scores = make_scores(structure, arities, silent=silent)
    network = normalised_network(scores, structure, sample_data(arities))
    new = sorted(sorted(arc) for arc in set(network.structure.arcs) - set(structure.arcs))
    assert new == sorted(sorted(pair) for pair in added)
    assert posterior_error(network, scores, all_rows(scores)) < 1e-10


def test_groups_of_a_parent_are_kept() -> None:
    """A child sees its parent in groups; the parent itself has a table over all its states."""
    structure = Structure(((), (0,), (0, 1)))
    scores = make_scores(structure, (2, 6, 5), groups=(None, [0, 0, 1, 1, 2, 2], None))
    network = normalised_network(scores, structure, sample_data((2, 6, 5)))
    assert network.log_tables[1].shape == (2, 6)
    assert network.log_tables[2].shape == (2, 3, 5)


def test_a_parent_of_the_class_is_seen_as_finely_as_its_effect() -> None:
    """Groups are split where the main effect differs inside them, and only there."""
    structure = Structure(((1,), (), (0, 1)))
    scores = make_scores(structure, (2, 6, 2), groups=(None, [0, 0, 0, 1, 1, 1], None))
    effect = scores.effects[0].copy()
    effect[:, 1:] = effect[:, [0]]
    effect[:, 4:] += [[7.0], [0.0]]
    scores = dataclasses.replace(scores, effects=(effect, scores.effects[1]))
    network = normalised_network(scores, structure, sample_data((2, 6, 2)))
    assert network.groups is not None
    assert network.groups[1] is not None
    assert network.groups[1].tolist() == [0, 0, 0, 1, 2, 2]
    assert posterior_error(network, scores, all_rows(scores)) < 1e-10


def test_scores_that_say_nothing_give_independent_features() -> None:
    """Equal scores of all classes change no table."""
    structure = Structure(((), (0,), (1,)))
    scores = make_scores(structure, (2, 3, 3), scale=0.0)
    network = normalised_network(scores, structure, sample_data((2, 3, 3)))
    assert np.ptp(network.log_tables[1], axis=0).max() < 1e-9
    assert network.structure == structure


def test_huge_scores_stay_exact() -> None:
    """Everything is in logarithms."""
    structure = Structure(((), (0,), (0, 1), (0, 2)))
    scores = make_scores(structure, (3, 3, 3, 3), scale=400.0)
    network = normalised_network(scores, structure, sample_data((3, 3, 3, 3)))
    rows = all_rows(scores)
    assert posterior_error(network, scores, rows) < 1e-9


def test_a_table_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the variable and what to do."""
    structure = Structure(((), (0,), (0, 1)))
    scores = make_scores(structure, (2, 3, 3))
    monkeypatch.setattr(marrying, "MAX_TABLE_CELLS", 17)
    with pytest.raises(ProblemTooLargeError, match="'x2' given its parents would have 18 cells"):
        normalised_network(scores, structure, sample_data((2, 3, 3)))


def test_arcs_without_interaction_give_way_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An effect of a feature with two parents marries them, unless that makes a table too large."""
    structure = Structure(((), (0,), (0,), (1, 2), (0, 1)))
    arities = (2, 3, 3, 3, 3)
    scores = make_scores(structure, arities)
    kept = normalised_network(scores, structure, sample_data(arities))
    assert set(kept.structure.arcs) == {*structure.arcs, (2, 1), (0, 3)}
    monkeypatch.setattr(marrying, "MAX_TABLE_CELLS", 18)
    network = normalised_network(scores, structure, sample_data(arities))
    assert network.structure.arcs == ((0, 1), (0, 2), (0, 3), (0, 4), (1, 4))
    assert posterior_error(network, scores, all_rows(scores)) < 1e-10


def test_unusable_input_is_refused() -> None:
    """Other variables, another number of them, infinite scores."""
    structure = Structure(((), (0,)))
    scores = make_scores(structure, (2, 3))
    with pytest.raises(InputError, match="data must have the variables"):
        normalised_network(scores, structure, sample_data((2, 4)))
    with pytest.raises(InputError, match="structure must have the 2 variables"):
        normalised_network(scores, Structure(((),)), sample_data((2, 3)))
    wild = dataclasses.replace(scores, bias=np.array([0.0, np.inf]))
    with pytest.raises(InputError, match="scores must be finite"):
        normalised_network(wild, structure, sample_data((2, 3)))
