"""What is learned from a table of text, against enumerations that use nothing of the package."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import class_model_oracle
import oracles
from marginbn import BayesianNetworkLearner, BNClassifier, MaxMarginBNClassifier


def random_table(seed: int, n_features: int = 3) -> tuple[list[list[str]], list[int], list[int]]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 60)
    columns = [np.where(rng.random(60) < 0.3, rng.integers(0, 3, 60), y) for _ in range(n_features)]
    arities = [2, *(len(set(column.tolist())) for column in columns)]
    rows = [["abc"[code] for code in row] for row in zip(*columns, strict=True)]
    return rows, y.tolist(), arities


def raw_rows(rows: list[list[str]], y: list[int]) -> list[list[int]]:
    known = [sorted(set(column)) for column in zip(*rows, strict=True)]
    coded = [[own.index(x) for own, x in zip(known, row, strict=True)] for row in rows]
    return [[label, *row] for label, row in zip(y, coded, strict=True)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", ["free", "all"])
def test_the_largest_margin_of_a_table(seed: int, family: str) -> None:
    """Objective and bound of the classifiers, from the rows as they are in the table."""
    rows, y, arities = random_table(seed)
    gamma = float(np.log(9.0))
    score = oracles.soft_margin(raw_rows(rows, y), [1.0] * len(y), arities, 1.0, gamma)
    best = max(map(score, oracles.all_graphs(len(arities), 2, True, family)))
    make = MaxMarginBNClassifier if family == "free" else BNClassifier
    labels = np.array(["no", "yes"])[y]
    result = make().fit(rows, labels).result_
    assert result is not None
    assert result.objective == pytest.approx(best, rel=1e-9)
    assert result.bound == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["mdl", "bdeu", "aic", "k2"])
def test_the_best_network_of_a_table(name: str, seed: int) -> None:
    """The learner's objective is the best score of all graphs."""
    rows, _, _ = random_table(seed, n_features=4)
    coded = [own[1:] for own in raw_rows(rows, [0] * len(rows))]
    arities = [max(column) + 1 for column in zip(*coded, strict=True)]
    score = oracles.decomposable(name, coded, [1.0] * len(coded), arities)
    best = oracles.best_score(score, len(arities), len(arities) - 1, False)
    learner = BayesianNetworkLearner(score=name, max_parents=None).fit(np.array(rows))
    assert learner.result_.objective == pytest.approx(best, rel=1e-9)
    assert learner.result_.bound == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("oracle", [oracles, class_model_oracle])
def test_oracles_share_nothing_with_the_package(oracle: object) -> None:
    tree = ast.parse(Path(str(getattr(oracle, "__file__", ""))).read_text(encoding="utf-8"))
    names = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    names += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    assert not [name for name in names if name.startswith("marginbn")]
