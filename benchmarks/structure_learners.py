"""Exact networks beside the hill climbing of pgmpy and pyAgrum: structures and BIC scores.

    python benchmarks/structure_learners.py [ROWS] [SEED]

Rows are drawn from the networks asia and alarm that pgmpy brings along; every structure is scored
by the same formula. CPU seconds, one thread.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from marginbn import BayesianNetworkLearner, EncodedData, Structure, Variable, from_pgmpy
from marginbn.problem.encoded import contingency
from marginbn.problem.scores import bic


def score(data: EncodedData, structure: Structure) -> float:
    """BIC from the definition."""
    total = 0.0
    for child, parents in enumerate(structure.parents):
        counts = contingency(data, (*parents, child))
        total += bic(counts.reshape(-1, counts.shape[-1]), data.total_weight)
    return total


def structure_of(names: list[str], arcs: Any) -> Structure:
    """A structure from arcs by name."""
    parents: list[list[int]] = [[] for _ in names]
    for parent, child in arcs:
        parents[names.index(child)].append(names.index(parent))
    return Structure(tuple(tuple(sorted(p)) for p in parents))


def by_pgmpy(frame: Any) -> Any:
    """Arcs of pgmpy's hill climbing."""
    from pgmpy.estimators import BIC, HillClimbSearch

    found = HillClimbSearch(frame).estimate(scoring_method=BIC(frame), show_progress=False)
    return found.edges()


def by_pyagrum(frame: Any) -> Any:
    """Arcs of pyAgrum's hill climbing."""
    import pyagrum

    learner = pyagrum.BNLearner(frame)
    learner.useScoreBIC()
    learner.useGreedyHillClimbing()
    learner.useNoPrior()
    return [(learner.nameFromId(a), learner.nameFromId(b)) for a, b in learner.learnDAG().arcs()]


def main() -> None:
    """One table per network."""
    import pandas as pd
    from pgmpy.utils import get_example_model

    n_rows, seed = (int(a) for a in (sys.argv[1:] + ["1000", "0"][len(sys.argv) - 1 :]))
    for name in ("asia", "alarm"):
        network = from_pgmpy(get_example_model(name))
        codes = network.sample_codes(n_rows, seed)
        names = list(network.names)
        frame = pd.DataFrame(
            {v: np.array([f"s{c}" for c in codes[:, i]]) for i, v in enumerate(names)}
        )
        seen = [np.unique(codes[:, i], return_inverse=True)[1] for i in range(len(names))]
        variables = tuple(
            Variable(v, tuple(map(str, range(seen[i].max() + 1)))) for i, v in enumerate(names)
        )
        data = EncodedData(np.column_stack(seen), np.ones(n_rows), variables)
        learner = BayesianNetworkLearner(score="bic", time_limit=600)
        start = time.process_time()
        learner.fit(frame)
        rows = [("exact", learner.structure_, time.process_time() - start)]
        print(name, learner.status_, f"bound {learner.bound_:.3f}", flush=True)
        for label, method in (("pgmpy", by_pgmpy), ("pyAgrum", by_pyagrum)):
            start = time.process_time()
            arcs = method(frame)
            rows.append((label, structure_of(names, arcs), time.process_time() - start))
        for label, structure, seconds in rows:
            value = score(data, structure)
            arcs_text = f"{len(structure.arcs)} arcs"
            print(f"  {label:8} {value:.3f} {arcs_text} {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
