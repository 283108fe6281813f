"""
Networks without a class
========================

Hill climbing adds, removes and turns arcs as long as the score rises, and stops where no single
change helps. How much score does that leave on the table? With the exact network beside it one can
say. The rows are drawn from *asia* (Lauritzen and Spiegelhalter 1988).
"""

# %%
# Asia
# ----
# Eight binary variables; the numbers are those of the paper.

import matplotlib.pyplot as plt
import numpy as np

from marginbn import (
    BayesianNetworkLearner,
    EncodedData,
    InputError,
    Structure,
    Variable,
    local_scores,
    solve_structure,
)

rng = np.random.default_rng(0)


def draw(n_rows):
    """Rows of the network asia."""
    visit = rng.random(n_rows) < 0.01
    smoker = rng.random(n_rows) < 0.5
    tuberculosis = rng.random(n_rows) < np.where(visit, 0.05, 0.01)
    cancer = rng.random(n_rows) < np.where(smoker, 0.1, 0.01)
    bronchitis = rng.random(n_rows) < np.where(smoker, 0.6, 0.3)
    either = tuberculosis | cancer
    xray = rng.random(n_rows) < np.where(either, 0.98, 0.05)
    chance = np.select([either & bronchitis, either, bronchitis], [0.9, 0.7, 0.8], 0.1)
    dyspnoea = rng.random(n_rows) < chance
    columns = (visit, smoker, tuberculosis, cancer, bronchitis, either, xray, dyspnoea)
    return np.column_stack(columns).astype(int)


rows = draw(2000)
learner = BayesianNetworkLearner(score="bic").fit(rows)
print(f"{learner.status_}: BIC {learner.objective_:.2f}, bound {learner.bound_:.2f}")

# %%
# Hill climbing, in twenty lines
# ------------------------------
# The score of a graph is a sum over its variables, so a change of one arc is judged by the scores
# of one or two parent sets. The scorer gives all that can matter; what it left out is worse than a
# subset of it, which counts instead.


def climb(problem):
    """The greedy graph: best change first, from no arcs at all."""
    n, candidates = problem.n_variables, problem.candidates
    known = [
        {candidates.parents[k]: problem.linear[k] for k in candidates.group(i)} for i in range(n)
    ]

    def local(child, parents):
        inside = (v for s, v in known[child].items() if set(s) <= parents)
        return max(inside)

    def value(graph):
        return sum(local(i, graph[i]) for i in range(n))

    graph, best = [set() for _ in range(n)], value([set()] * n)
    while True:
        found = None
        for parent in range(n):
            for child in range(n):
                if parent == child:
                    continue
                for change in ("toggle", "turn"):
                    other = [set(s) for s in graph]
                    if change == "turn" and parent not in other[child]:
                        continue
                    other[child] ^= {parent}
                    if change == "turn":
                        other[parent] ^= {child}
                    try:
                        Structure(tuple(tuple(sorted(s)) for s in other))
                    except InputError:
                        continue  # a cycle
                    score = value(other)
                    if score > best + 1e-9:
                        best, found = score, other
        if found is None:
            return best, graph
        graph = found


def encode(table):
    """All columns as they are."""
    variables = tuple(
        Variable(f"v{i}", tuple(map(str, range(table[:, i].max() + 1))))
        for i in range(table.shape[1])
    )
    return EncodedData(table, np.ones(len(table)), variables)


greedy, _ = climb(local_scores(encode(rows), "bic"))
print(f"hill climbing: {greedy:.2f}, {learner.objective_ - greedy:.2f} nats below the best")

# %%
# How often, and by how much
# --------------------------
# Thirty tables of 300 rows: the loss of hill climbing, in nats of BIC. A loss of d means that the
# exact network is exp(d) times as well supported by the data.

losses = []
for _ in range(30):
    problem = local_scores(encode(draw(300)), "bic")
    losses.append(solve_structure(problem).objective - climb(problem)[0])
losses = np.maximum(losses, 0.0)
print(f"hill climbing missed the best network on {(losses > 1e-6).sum()} of 30 tables")

plt.figure(figsize=(6, 3))
plt.bar(range(30), np.sort(losses))
plt.xlabel("tables, sorted")
plt.ylabel("loss in BIC (nats)")
plt.title("What hill climbing leaves on the table: asia, 300 rows")
plt.tight_layout()
plt.show()
