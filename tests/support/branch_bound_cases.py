"""Random problems for the engine and slow, obvious answers to them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.margins import MarginRows
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers.branch_bound.kernels.records import Instance, column_of
from problems import random_table


def random_encoded(rng: np.random.Generator, n_features: int) -> EncodedData:
    """Noisy features that copy the class or a neighbour; odd weights in some cases."""
    n_classes, n_samples = int(rng.integers(2, 5)), int(rng.integers(5, 40))
    arities = [n_classes, *(int(a) for a in rng.integers(2, 4, n_features))]
    columns = [rng.integers(0, n_classes, n_samples)]
    for arity in arities[1:]:
        source = columns[0] + (columns[-1] if rng.random() < 0.5 else 0)
        copies = rng.random(n_samples) < rng.uniform(0, 0.8)
        columns.append(np.where(copies, source % arity, rng.integers(0, arity, n_samples)))
    weights = rng.choice([1.0, 1.0, 2.0, 0.5, 3.0], n_samples)
    if rng.random() < 0.2:
        weights = weights * 10.0 ** int(rng.integers(-2, 9))
    variables = tuple(Variable(f"v{i}", tuple(map(str, range(a)))) for i, a in enumerate(arities))
    return EncodedData(np.column_stack(columns).astype(np.int32), weights, variables)


def random_candidates(rng: np.random.Generator, n_features: int) -> CandidateSets:
    """One or two parents, sometimes with forbidden arcs, sometimes with a required one."""
    max_parents = int(rng.choice([1, 2, 2, 2]))
    variables = range(n_features + 1)
    arcs = list(itertools.permutations(variables, 2))
    forbidden = []
    if rng.random() < 0.3:
        forbidden = [arcs[a] for a in rng.permutation(len(arcs))[: int(rng.integers(1, 4))]]
    required = []
    if max_parents == 2 and n_features > 1 and rng.random() < 0.15:
        a, b = (int(v) for v in rng.choice(np.arange(1, n_features + 1), 2, replace=False))
        if (a, b) not in forbidden and (0, b) not in forbidden:
            required = [(a, b)]
    return enumerate_candidates(n_features + 1, max_parents, required=required, forbidden=forbidden)


def columns_of(inst: Instance, vertex: Iterable[int]) -> list[int]:
    """Columns of a slot of every feature and of a class set."""
    return [int(column_of(inst, i, int(slot))) for i, slot in enumerate(vertex)]


def random_slots(rng: np.random.Generator, inst: Instance) -> list[int]:
    """A slot with a column for every feature, and a class set; any graph."""
    n = inst.n_features
    return [*rng.integers(inst.skipped, n + 2, n).tolist(), int(rng.integers(0, inst.first.size))]


def random_problem(rng: np.random.Generator, n_features: int) -> StructureProblem:
    """Soft or binary margin, gamma from 0.004 to 7, in a quarter of cases a linear part."""
    data = random_encoded(rng, n_features)
    candidates = random_candidates(rng, n_features)
    kind = "binary" if rng.random() < 0.5 else "multiclass"
    linear = np.zeros(candidates.n_candidates)
    if rng.random() < 0.25:
        linear = rng.normal(size=linear.size) * float(rng.choice([0.1, 1.0, 10.0]))
    return StructureProblem(
        candidates,
        linear,
        data.variables,
        MarginRows(data, candidates, kind, float(rng.choice([0.1, 1.0, 1.0]))),
        data.weights,
        float(np.exp(rng.uniform(np.log(0.004), np.log(7)))),
    )


def random_linear_problem(rng: np.random.Generator, n_features: int) -> StructureProblem:
    """Arbitrary scores, no margins; rounded in half of the cases, so that ties occur."""
    candidates = random_candidates(rng, n_features)
    scores = rng.normal(size=candidates.n_candidates) * 3
    if rng.random() < 0.5:
        scores = np.round(scores)
    variables = tuple(Variable(f"v{i}", ("0", "1")) for i in range(n_features + 1))
    return StructureProblem(candidates, scores, variables)


def larger_problem() -> StructureProblem:
    """Nine noisy features: some hundred nodes for the engine."""
    data = random_table(np.random.default_rng(3), 150, 9, 3).encoded()
    return margin_problem(data, enumerate_candidates(10, 2), gamma=1.0)
