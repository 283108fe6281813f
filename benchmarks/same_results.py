"""Thirty solves whose results must not change when only the code's shape does.

``python benchmarks/same_results.py record FILE`` writes objective, bound, structure and node count
of each solve, bit by bit; ``python benchmarks/same_results.py compare FILE`` solves again and lists
what differs. Both engines, one worker, a node limit and no clock, so that a run can be repeated.
Only public names are used: the file of an older version can be compared with a newer one.
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
    StructureProblem,
    Variable,
    enumerate_candidates,
    linear_problem,
    margin_problem,
    solve_structure,
)

NODE_LIMIT = 500
"""Enough for every rule of the search to be used, few enough for all solves to take minutes."""


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


def main(arguments: list[str]) -> int:
    """Record or compare; the exit code counts the solves that differ."""
    if len(arguments) != 2 or arguments[0] not in ("record", "compare"):
        sys.exit(__doc__)
    file, results = Path(arguments[1]), solve_all()
    if arguments[0] == "record":
        file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        print(f"{len(results)} solves recorded in {file}")
        return 0
    before = json.loads(file.read_text(encoding="utf-8"))
    different = [name for name in results if results[name] != before.get(name)]
    for name in different:
        print(f"{name}: {before.get(name)} became {results[name]}")
    print(f"{len(results) - len(different)} of {len(results)} solves are equal in every bit")
    return len(different)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
