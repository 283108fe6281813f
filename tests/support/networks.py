"""Networks for tests, and slow answers about them straight from the definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure


def sprinkler() -> BayesianNetwork:
    """Rain -> sprinkler, both -> grass; small enough to multiply out on paper."""
    rain = np.log([0.8, 0.2])
    sprinkler_given_rain = np.log([[0.6, 0.4], [0.99, 0.01]])
    with np.errstate(divide="ignore"):
        grass = np.log([[[1.0, 0.0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]])
    return BayesianNetwork(
        Structure(((), (0,), (0, 1))),
        (
            Variable("rain", ("no", "yes")),
            Variable("sprinkler", ("off", "on")),
            Variable("grass", ("dry", "wet")),
        ),
        (rain, sprinkler_given_rain, grass),
    )


def random_network(
    seed: int, n_variables: int = 6, max_parents: int = 3, max_arity: int = 3, zeros: float = 0.0
) -> BayesianNetwork:
    """A random DAG in a random order with random tables; some entries may be exactly zero."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_variables)
    parents: list[tuple[int, ...]] = [()] * n_variables
    for position, child in enumerate(order):
        count = int(rng.integers(0, min(position, max_parents) + 1))
        chosen = rng.choice(order[:position], count, replace=False) if count else []
        parents[child] = tuple(sorted(int(p) for p in chosen))
    arities = [int(a) for a in rng.integers(1, max_arity + 1, n_variables)]
    arities[0] = max(2, arities[0])
    tables = [
        _random_table(rng, [arities[v] for v in (*p, i)], zeros) for i, p in enumerate(parents)
    ]
    variables = [Variable(f"x{i}", tuple(f"s{s}" for s in range(a))) for i, a in enumerate(arities)]
    return BayesianNetwork(Structure(tuple(parents)), tuple(variables), tuple(tables))


def _random_table(rng: np.random.Generator, shape: Sequence[int], zeros: float) -> np.ndarray:
    table = rng.dirichlet(np.ones(shape[-1]), size=tuple(shape[:-1])).reshape(shape)
    dropped = rng.random(table.shape) < zeros
    dropped[..., 0] = False  # every row keeps a state
    table = np.where(dropped, 0.0, table)
    with np.errstate(divide="ignore"):
        return np.log(table / table.sum(axis=-1, keepdims=True))


def all_states(network: BayesianNetwork) -> Iterator[tuple[int, ...]]:
    """Every joint state, in lexicographic order."""
    return itertools.product(*(range(len(v.states)) for v in network.variables))


def joint_probability(network: BayesianNetwork, state: Sequence[int]) -> float:
    """Product of one table entry per variable."""
    result = 1.0
    for i, parents in enumerate(network.structure.parents):
        result *= math.exp(network.log_tables[i][(*(state[p] for p in parents), state[i])])
    return result


def brute_force_marginal(
    network: BayesianNetwork, query: Sequence[int], observed: Mapping[int, int]
) -> np.ndarray:
    """P(query, observed) by adding up the probabilities of all joint states that agree."""
    result = np.zeros([len(network.variables[v].states) for v in query])
    for state in all_states(network):
        if all(state[v] == code for v, code in observed.items()):
            result[tuple(state[v] for v in query)] += joint_probability(network, state)
    return result


def random_evidence(
    network: BayesianNetwork, rng: np.random.Generator, size: int
) -> tuple[dict[int, int], dict[str, str]]:
    """Some observed variables as codes and as labels."""
    chosen = rng.choice(network.n_variables, min(size, network.n_variables), replace=False)
    codes = {int(v): int(rng.integers(network.arities[v])) for v in chosen}
    labels = {network.names[v]: network.variables[v].states[c] for v, c in codes.items()}
    return codes, labels
