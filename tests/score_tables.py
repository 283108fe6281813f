"""Random class scores, and slow answers about them straight from the definition."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from marginbn.network.network import BayesianNetwork
from marginbn.parameters.class_scores import ClassScores
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure
from networks import random_network
from strategies import make_variables


def make_scores(
    structure: Structure,
    arities: Sequence[int],
    *,
    seed: int = 0,
    scale: float = 1.5,
    groups: Sequence[Sequence[int] | None] | None = None,
    silent: Sequence[int] = (),
    extra: Sequence[tuple[int, ...]] = (),
) -> ClassScores:
    """Normal scores: an effect of every feature, a table of every family that knows the class.

    Features in ``silent`` have no main effect; ``extra`` are more families with a table.
    """
    rng = np.random.default_rng(seed)
    given = [None] * len(arities) if groups is None else groups
    seen = tuple(None if g is None else np.array(g, dtype=np.intp) for g in given)
    sizes = [a if g is None else int(g.max()) + 1 for g, a in zip(seen, arities, strict=True)]
    families = {
        tuple(sorted({i, *p} - {0})) for i, p in enumerate(structure.parents) if i == 0 or 0 in p
    }
    chosen = sorted({f for f in families if len(f) > 1} | set(extra))
    tables = {f: scale * rng.normal(size=(arities[0], *(sizes[v] for v in f))) for f in chosen}
    effects = tuple(
        scale * rng.normal(size=(arities[0], a)) * (i not in silent)
        for i, a in enumerate(arities[1:], start=1)
    )
    bias = rng.normal(size=arities[0])
    return ClassScores(make_variables(arities), seen, bias, effects, tables)


def random_scores(seed: int, n_variables: int = 6) -> tuple[ClassScores, Structure, EncodedData]:
    """Scores on a random graph with groups, silent features and a table outside the graph."""
    rng = np.random.default_rng(seed)
    network = random_network(seed, n_variables, max_arity=4)
    groups = [
        None if i == 0 or a < 3 or rng.random() < 0.4 else [0] + [1] * (a - 1)
        for i, a in enumerate(network.arities)
    ]
    silent = np.flatnonzero(rng.random(n_variables) < 0.25).tolist()
    pair = tuple(sorted(rng.choice(np.arange(1, n_variables), 2, replace=False).tolist()))
    extra = [pair] if seed % 3 == 0 else []
    scores = make_scores(
        network.structure, network.arities, seed=seed, groups=groups, silent=silent, extra=extra
    )
    data = EncodedData(network.sample_codes(100, seed), np.ones(100), scores.variables)
    return scores, network.structure, data


def all_rows(scores: ClassScores) -> np.ndarray:
    """Every joint state, class included."""
    return np.array(list(itertools.product(*(range(v.arity) for v in scores.variables))))


def posterior_error(network: BayesianNetwork, scores: ClassScores, rows: np.ndarray) -> float:
    """Largest difference of the two log posteriors."""
    log_joint = network.log_joint_per_class(rows)
    log_posterior = log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
    return float(np.abs(log_posterior - scores.log_posterior(rows)).max())


GROUPS = (None, np.array([0, 0, 1, 1, 1]), None, np.array([1, 0, 1, 0]), None)
"""Groups of the states of ``dependent_rows``."""


def dependent_rows(n: int = 200, seed: int = 0) -> EncodedData:
    """Features that depend on the class and on the one before, with weights."""
    rng = np.random.default_rng(seed)
    arities = (3, 5, 3, 4, 2)
    columns = [rng.integers(0, arities[0], n)]
    for arity in arities[1:]:
        columns.append((columns[-1] + rng.integers(0, 2, n) + columns[0]) % arity)
    codes = np.column_stack(columns)
    return EncodedData(codes, rng.uniform(0.5, 2.0, n), make_variables(arities))


def hide_features(codes: np.ndarray, share: float, seed: int = 1) -> np.ndarray:
    """Codes with features hidden at random."""
    hidden = np.random.default_rng(seed).random(codes.shape) < share
    hidden[:, 0] = False
    return np.where(hidden, -1, codes)
