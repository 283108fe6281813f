"""Thirty solves and the paper's classifiers: results that a pure refactoring must not change.

``python benchmarks/same_results.py record FILE`` writes objective, bound, structure and node count
of each solve, bit by bit, and the probabilities that the paper's classifiers predict;
``python benchmarks/same_results.py compare FILE`` computes them again and lists what differs. Both
engines, one worker, a node limit and no clock, so that a run can be repeated. Probabilities may
differ by 1e-12. Only public names are used: the file of an older version can be compared with a
newer one.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from marginbn import (
    EncodedData,
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    Search,
    StructureProblem,
    TANClassifier,
    Variable,
    enumerate_candidates,
    linear_problem,
    margin_problem,
    solve_structure,
)

NODE_LIMIT = 500
"""Enough for every rule of the search to be used, few enough for all solves to take minutes."""

TOLERANCE = 1e-12
"""How far apart two predicted probabilities may be: the order of a sum may change."""


def sample(seed: int, rows: int, features: int, states: int, classes: int) -> EncodedData:
    """Rows of a random forest-like law: features follow the class and one feature before them."""
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=rows)
    columns = [labels]
    for i in range(features):
        before = columns[random.integers(len(columns))]
        drift = (labels * random.integers(1, 3) + before + i) % states
        noise = random.integers(states, size=rows)
        columns.append(np.where(random.random(rows) < 0.45, drift, noise))
    variables = (
        Variable("class", tuple(f"c{c}" for c in range(classes))),
        *(Variable(f"x{i}", tuple(f"s{s}" for s in range(states))) for i in range(features)),
    )
    return EncodedData(np.column_stack(columns).astype(np.int32), np.ones(rows), variables)


def description_length(counts: np.ndarray, total: float) -> float:
    """Minus the description length of a table of counts."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    likelihood = (counts * np.log(np.maximum(shares, 1e-300))).sum()
    return float(likelihood - 0.5 * math.log(total) * counts.shape[0] * (counts.shape[1] - 1))


def akaike(counts: np.ndarray, total: float) -> float:
    """A score that likes more parents, so that its search is longer."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    likelihood = (counts * np.log(np.maximum(shares, 1e-300))).sum()
    return float(likelihood - counts.shape[0] * (counts.shape[1] - 1))


def problems() -> Iterator[tuple[str, str, StructureProblem]]:
    """Name, solver and problem of every solve."""
    for seed in range(5):
        data = sample(seed, 300, 9 + 2 * seed, 3, 2 + seed % 3)
        candidates = enumerate_candidates(data.n_variables, 2)
        for margin in ("multiclass", "binary"):
            problem = margin_problem(data, candidates, gamma=1.0 + seed, margin=margin)
            yield f"margin-{margin}-{seed}", "branch_bound", problem
        yield f"linear-{seed}", "branch_bound", linear_problem(data, candidates, akaike)
        small = sample(100 + seed, 120, 5, 2, 2)
        three = enumerate_candidates(small.n_variables, 3)
        problem = margin_problem(small, three, gamma=2.0)
        yield f"margin-three-parents-{seed}", "branch_cut", problem
        general = enumerate_candidates(data.n_variables, 2, class_restricted=False)
        problem = linear_problem(data, general, akaike)
        yield f"general-akaike-{seed}", "branch_cut", problem
        problem = linear_problem(data, general, description_length)
        yield f"general-length-{seed}", "branch_cut", problem


def solve_all() -> dict[str, dict[str, Any]]:
    """Results by name; floats as hexadecimal text, so that equal means equal in every bit."""
    results = {}
    for name, solver, problem in problems():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = solve_structure(problem, solver, node_limit=NODE_LIMIT, gap_tolerance=1e-9)
        results[name] = {
            "objective": result.objective.hex(),
            "bound": result.bound.hex(),
            "structure": [list(parents) for parents in result.structure.parents],
            "nodes": result.nodes,
            "status": str(result.status),
        }
    return results


def classifiers() -> Iterator[tuple[str, Any]]:
    """The paper's classifiers by name; searches end with a proof and never by a clock."""
    search = Search(gap_tolerance=1e-9, inner_time_limit=None)
    proved: dict[str, Any] = {"time_limit": None, "search": search, "missing": "drop"}
    yield "naive", NaiveBayesClassifier(missing="drop")
    yield "tan", TANClassifier(missing="drop")
    yield "mdl", GenerativeBNClassifier(score="mdl", max_parents=2, **proved)
    for margin in ("multiclass", "binary"):
        yield f"margin-{margin}", MaxMarginBNClassifier(margin=margin, max_parents=2, **proved)
    grid: dict[str, Any] = {"gammas": [1.0, 3.0], "max_parents": (1, 2), "random_state": 0}
    yield "margin-cv", MaxMarginBNClassifierCV(**grid, **proved)


def predict_all() -> dict[str, list[list[float]]]:
    """Predicted probabilities of other rows, by classifier and number of classes."""
    found = {}
    for classes in (2, 3):
        data = sample(200 + classes, 260, 6, 3, classes)
        random = np.random.default_rng(classes)
        labels = [data.variables[0].states[c] for c in data.codes[:, 0]]
        words = [
            [data.variables[v].states[row[v]] for v in range(1, data.n_variables)]
            for row in data.codes
        ]
        number = data.codes[:, 0] + random.normal(size=data.n_samples)
        table = [[*row, float(x)] for row, x in zip(words, number, strict=True)]
        for name, classifier in classifiers():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = classifier.fit(table[:200], labels[:200])
            gaps = [[None if (i + j) % 7 == 0 else v for j, v in enumerate(row)]
                    for i, row in enumerate(table[200:])]  # fmt: skip
            for kind, rows in (("whole", table[200:]), ("gaps", gaps)):
                found[f"{name}-{classes}-{kind}"] = fitted.predict_proba(rows).tolist()
    return found


def main(arguments: list[str]) -> int:
    """Record or compare; the exit code counts the results that differ."""
    if len(arguments) != 2 or arguments[0] not in ("record", "compare"):
        sys.exit(__doc__)
    file, solves, predictions = Path(arguments[1]), solve_all(), predict_all()
    if arguments[0] == "record":
        content = {"solves": solves, "predictions": predictions}
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        print(f"{len(solves)} solves and {len(predictions)} predictions recorded in {file}")
        return 0
    before = json.loads(file.read_text(encoding="utf-8"))
    different = [name for name in solves if solves[name] != before["solves"].get(name)]
    for name in different:
        print(f"{name}: {before['solves'].get(name)} became {solves[name]}")
    print(f"{len(solves) - len(different)} of {len(solves)} solves are equal in every bit")
    changed = []
    for name, rows in predictions.items():
        distance = np.abs(np.array(rows) - np.array(before["predictions"][name])).max()
        if distance > TOLERANCE:
            changed.append(name)
            print(f"{name}: probabilities differ by {distance:.3g}")
    print(f"{len(predictions) - len(changed)} of {len(predictions)} predictions are the same")
    return len(different) + len(changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
