"""Random tables and problems that tests share."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from marginbn.exceptions import InputError
from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.problem.scores import get_local_score
from marginbn.scoring.local_scores import linear_problem


@dataclass(frozen=True)
class Table:
    """A raw table: codes (class first), weights, arities."""

    rows: list[list[int]]
    weights: list[float]
    arities: list[int]

    def encoded(self) -> EncodedData:
        """The same table as the package's value."""
        variables = tuple(
            Variable(f"v{i}", tuple(f"s{j}" for j in range(arity)))
            for i, arity in enumerate(self.arities)
        )
        return EncodedData(np.array(self.rows, dtype=np.int32), np.array(self.weights), variables)


@dataclass(frozen=True)
class Case:
    """A table with everything that is random about a structure problem."""

    table: Table
    gamma: float
    max_parents: int
    smoothing: float
    class_restricted: bool


def random_table(
    rng: np.random.Generator, n_rows: int, n_features: int, n_classes: int, weighted: bool = False
) -> Table:
    """A table with mixed arities whose features depend on the class and on one another."""
    arities = [n_classes, *(int(a) for a in rng.integers(2, 5, n_features))]
    columns = [rng.integers(0, n_classes, n_rows)]
    for arity in arities[1:]:
        other = columns[int(rng.integers(0, len(columns)))]
        follows = rng.random(n_rows) < rng.uniform(0, 0.9)
        noise = rng.integers(0, arity, n_rows)
        columns.append(np.where(follows, (columns[0] + other) % arity, noise))
    weights = np.round(rng.uniform(0.3, 4.0, n_rows), 2) if weighted else np.ones(n_rows)
    rows = [[int(code) for code in row] for row in np.array(columns).T]
    return Table(rows, [float(w) for w in weights], arities)


def random_case(seed: int) -> Case:
    """2 to 4 classes, mixed arities, weights, gamma from 0.004 to 7, max_parents 0 to 3."""
    rng = np.random.default_rng(seed)
    table = random_table(
        rng,
        n_rows=int(rng.integers(4, 21)),
        n_features=int(rng.integers(1, 4)),
        n_classes=int(rng.integers(2, 5)),
        weighted=bool(rng.integers(0, 2)),
    )
    return Case(
        table=table,
        gamma=float(np.exp(rng.uniform(np.log(0.004), np.log(7.0)))),
        max_parents=int(rng.integers(0, 4)),
        smoothing=float(rng.choice([0.5, 1.0, 2.0])),
        class_restricted=bool(rng.random() < 0.75),
    )


def margin_case(case: Case, margin: str) -> StructureProblem:
    data = case.table.encoded()
    candidates = enumerate_candidates(
        data.n_variables, case.max_parents, class_restricted=case.class_restricted
    )
    return margin_problem(
        data, candidates, margin=margin, gamma=case.gamma, smoothing=case.smoothing
    )


def linear_case(case: Case, score: str) -> StructureProblem:
    data = case.table.encoded()
    candidates = enumerate_candidates(
        data.n_variables, case.max_parents, class_restricted=case.class_restricted
    )
    return linear_problem(data, candidates, get_local_score(score))


def small_margin_problem(
    seed: int = 0,
    *,
    n_rows: int = 40,
    n_features: int = 4,
    n_classes: int = 3,
    max_parents: int = 2,
    gamma: float = 1.0,
    margin: str = "multiclass",
    weight: float = 1.0,
    required: tuple[tuple[int, int], ...] = (),
    forbidden: tuple[tuple[int, int], ...] = (),
) -> StructureProblem:
    """A margin problem that every solver proves within a second."""
    table = random_table(np.random.default_rng(seed), n_rows, n_features, n_classes)
    data = Table(table.rows, [weight] * n_rows, table.arities).encoded()
    candidates = enumerate_candidates(
        n_features + 1, max_parents, required=required, forbidden=forbidden
    )
    return margin_problem(data, candidates, margin=margin, gamma=gamma)


def small_linear_problem(
    seed: int = 0,
    *,
    n_rows: int = 40,
    n_features: int = 4,
    max_parents: int = 2,
    score: str = "bdeu",
    class_restricted: bool = False,
    required: tuple[tuple[int, int], ...] = (),
) -> StructureProblem:
    """A decomposable problem that every solver proves within a second."""
    data = random_table(np.random.default_rng(seed), n_rows, n_features, 3).encoded()
    candidates = enumerate_candidates(
        n_features + 1, max_parents, class_restricted=class_restricted, required=required
    )
    return linear_problem(data, candidates, get_local_score(score))


def random_candidates(rng: np.random.Generator) -> CandidateSets | None:
    """By a random rule; None if its requirements cannot be met."""
    n = int(rng.integers(2, 6))
    arcs = list(itertools.permutations(range(n), 2))
    required = [arc for arc in arcs if rng.random() < 0.08]
    forbidden = [arc for arc in arcs if arc not in required and rng.random() < 0.15]
    all_arcs = bool(rng.random() < 0.5)
    if all_arcs:
        required = [arc for arc in required if arc[1] != 0]
        forbidden = [arc for arc in forbidden if arc[0] != 0]
    try:
        return enumerate_candidates(
            n,
            int(rng.integers(0, 4)),
            class_restricted=all_arcs or bool(rng.integers(2)),
            class_arcs="all" if all_arcs else "free",
            required=required,
            forbidden=forbidden,
            constant=[v for v in range(n) if rng.random() < 0.2],
        )
    except InputError:
        return None
