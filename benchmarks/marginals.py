"""All marginals of a pedigree as large as *pigs* (441 animals of three states), beside pyAgrum.

python -m benchmarks run marginals

The network is drawn: a third of the animals are founders, the others have two parents among the
animals just before them. A larger window makes larger tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from marginbn import BayesianNetwork, Structure, Variable

ANIMALS = 441
WINDOWS = (7, 9, 11)
EVIDENCE = (0, 40)


def keys() -> list[str]:
    """Names of the measurements."""
    return [f"pedigree-{window}-{count}" for window in WINDOWS for count in EVIDENCE]


def pedigree(window: int) -> BayesianNetwork:
    """A network of animals."""
    rng = np.random.default_rng(0)
    parents: list[tuple[int, ...]] = []
    for i in range(ANIMALS):
        if i < 2 or rng.random() < 0.33:
            parents.append(())
            continue
        pool = np.arange(max(0, i - window), i)
        parents.append(tuple(sorted(int(v) for v in rng.choice(pool, 2, replace=False))))
    variables = tuple(Variable(f"v{i}", ("a", "b", "c")) for i in range(ANIMALS))
    tables = [np.log(rng.dirichlet(np.ones(3), size=(3,) * len(p))) for p in parents]
    return BayesianNetwork(Structure(tuple(parents)), variables, tuple(tables))


def measure(key: str) -> dict[str, Any]:
    """Processor seconds of both, and how far apart their answers are."""
    window, count = (int(part) for part in key.split("-")[1:])
    network = pedigree(window)
    rng = np.random.default_rng(5)
    chosen = rng.choice(ANIMALS, count, replace=False)
    evidence = {f"v{int(i)}": "abc"[int(rng.integers(3))] for i in chosen}
    theirs = _pyagrum(network)
    ours, other = network.marginals(evidence), theirs(evidence)
    return {
        "key": key,
        "seconds": _lap(lambda: network.marginals(evidence)),
        "pyagrum_seconds": _lap(lambda: theirs(evidence)),
        "difference": max(float(np.abs(ours[v] - other[v]).max()) for v in ours),
    }


def _pyagrum(network: BayesianNetwork) -> Callable[[dict[str, str]], dict[str, Any]]:
    """The same network and question there."""
    import pyagrum

    from marginbn.export.interop import to_pyagrum

    copy = to_pyagrum(network)

    def ask(evidence: dict[str, str]) -> dict[str, Any]:
        engine = pyagrum.LazyPropagation(copy)
        engine.setEvidence(evidence)
        engine.makeInference()
        return {v.name: engine.posterior(v.name).toarray() for v in network.variables}

    return ask


def _lap(work: Callable[[], object], repeats: int = 5) -> float:
    """Processor seconds, the best of some."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)
