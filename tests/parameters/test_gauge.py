"""The class-free part: counted, smoothed, and fitted to the marginals of the data."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn.network.network import BayesianNetwork
from marginbn.parameters import gauge
from marginbn.parameters.class_scores import ClassScores
from marginbn.parameters.cliques import Cliques, potentials_of, sum_out
from marginbn.parameters.gauge import Fit, class_free_tables, target_marginals
from marginbn.parameters.marrying import CLASS, plan_marrying
from marginbn.parameters.normalise import normalised_network
from marginbn.problem.structure import Structure
from score_tables import all_rows, random_scores

SEEDS = range(24)


def cliques_of(scores: ClassScores, structure: Structure) -> Cliques:
    """The families of the network that the scores need."""
    return Cliques(plan_marrying(scores, structure), tuple(v.arity for v in scores.variables))


def class_free_network(scores: ClassScores, cliques: Cliques, tables: dict) -> BayesianNetwork:
    """The network in which the class, alone, has nothing to do with the features."""
    structure = Structure(((), *cliques.plan.parents[1:]))
    alone = np.full(len(scores.bias), -np.log(len(scores.bias)))
    features = (tables[i][0] for i in range(1, len(cliques.arities)))
    return BayesianNetwork(structure, scores.variables, (alone, *features), cliques.plan.groups)


def family_marginal(network: BayesianNetwork, cliques: Cliques, i: int, rows: np.ndarray):
    """P of the groups of the parents and the state of i, by adding up all joint states."""
    parents = cliques.plan.parents[i]
    index = [cliques.group_of(p)[rows[:, p]] for p in parents]
    shape = [cliques.group_counts[p] for p in parents]
    if i != CLASS:
        index.append(rows[:, i])
        shape.append(cliques.arities[i])
    cells = np.ravel_multi_index(index, shape) if shape else np.zeros(len(rows), dtype=int)
    summed = np.bincount(cells, np.exp(network.log_joint(rows)), int(np.prod(shape)))
    return summed.reshape(shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_network_has_the_marginals_of_the_class_free_one(seed: int) -> None:
    """By adding up all joint states of both; the parents of the class included."""
    scores, structure, data = random_scores(seed)
    cliques = cliques_of(scores, structure)
    wanted = class_free_network(scores, cliques, class_free_tables(data, cliques))
    network = normalised_network(scores, structure, data)
    rows = all_rows(scores)
    for i in (*cliques.plan.order, *cliques.plan.parents[CLASS]):
        ours, theirs = (family_marginal(n, cliques, i, rows) for n in (network, wanted))
        assert np.abs(ours - theirs).sum() < 3e-3


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_targets_are_marginals_of_the_class_free_network(seed: int) -> None:
    """The pass from the class down against adding up all joint states."""
    scores, structure, data = random_scores(seed)
    cliques = cliques_of(scores, structure)
    tables = class_free_tables(data, cliques)
    network = class_free_network(scores, cliques, tables)
    rows = all_rows(scores)
    for i, target in target_marginals(tables, cliques).items():
        expected = family_marginal(network, cliques, i, rows)
        np.testing.assert_allclose(target[0], expected, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_beliefs_are_the_marginals_of_the_network_after_each_sweep(seed: int) -> None:
    """What the walk around the tree carries along agrees with summing out from scratch."""
    scores, structure, data = random_scores(seed)
    cliques = cliques_of(scores, structure)
    potentials, free = potentials_of(scores, cliques), class_free_tables(data, cliques)
    given = {v: p if v == CLASS else p + free[v] for v, p in potentials.items()}
    fit = Fit.start(sum_out(given, cliques), free, cliques)
    fit.run()
    fitted = {**free, **fit.class_free}
    given = {v: p if v == CLASS else p + fitted[v] for v, p in potentials.items()}
    again = Fit.start(sum_out(given, cliques), free, cliques)
    for v, belief in again.beliefs.items():
        np.testing.assert_allclose(belief, fit.beliefs[v], atol=2e-3)


def test_fitting_brings_the_network_nearer_to_the_data() -> None:
    """The joint likelihood rises, and much: it is the largest that the posterior allows."""
    gains = []
    for seed in SEEDS:
        scores, structure, data = random_scores(seed)
        plain = normalised_network(scores, structure, data, fit_marginals=False)
        fitted = normalised_network(scores, structure, data)
        gains.append(fitted.log_likelihood(data) - plain.log_likelihood(data))
    assert min(gains) > -0.5  # targets are smoothed, the likelihood is not
    assert np.median(gains) > 1.0


def test_class_free_tables_are_smoothed_by_five_rows_of_the_marginal() -> None:
    """Against the formula, with weights."""
    scores, structure, data = random_scores(5)
    cliques = cliques_of(scores, structure)
    tables = class_free_tables(data, cliques)
    for i, table in tables.items():
        arity = cliques.arities[i]
        alone = np.bincount(data.codes[:, i], data.weights, arity) + 0.5
        parents = cliques.plan.parents[i]
        for cell in np.ndindex(table.shape[1:-1]):
            here = np.ones(data.n_samples, dtype=bool)
            for p, state in zip(parents, cell, strict=True):
                here &= cliques.group_of(p)[data.codes[:, p]] == state
            counts = np.bincount(data.codes[here, i], data.weights[here], arity)
            expected = (counts + 5 * alone / alone.sum()) / (counts.sum() + 5)
            np.testing.assert_allclose(np.exp(table[0][cell]), expected, atol=1e-12)


def test_sweeps_end_at_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound on the work is a bound on the sweeps; the posterior does not depend on it."""
    monkeypatch.setattr(gauge, "MAX_WORK", 1.0)
    scores, structure, data = random_scores(2)
    cliques = cliques_of(scores, structure)
    free = class_free_tables(data, cliques)
    potentials = potentials_of(scores, cliques)
    given = {v: p if v == CLASS else p + free[v] for v, p in potentials.items()}
    assert len(Fit.start(sum_out(given, cliques), free, cliques).run()) == 1
