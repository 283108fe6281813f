"""
Networks without a class
========================

Hill climbing adds, removes and turns arcs as long as the score rises, and stops where no single
change helps. How much score does that leave on the table? The exact network answers that. The
rows are drawn from *asia* (Lauritzen and Spiegelhalter 1988) and from *alarm* (Beinlich and
others 1989).
"""

# %%
# Asia
# ----
# Eight binary variables; the numbers are those of the paper.

import gzip
from functools import cache
from importlib.resources import files

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
from marginbn.export.bif import network_from_bif

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
# Hill climbing, in thirty lines
# ------------------------------
# The score of a graph is a sum over its variables, so a change of one arc is judged by the scores
# of one or two parent sets. The scorer gives all that can matter; what it left out is worse than a
# subset of it, which counts instead.


def climb(problem):
    """The greedy graph and its score: best change first, from no arcs at all."""
    n, candidates = problem.n_variables, problem.candidates
    known = [
        {frozenset(candidates.parents[k]): problem.linear[k] for k in candidates.group(i)}
        for i in range(n)
    ]

    @cache
    def local(child, parents):
        return max(value for subset, value in known[child].items() if subset <= parents)

    def acyclic(graph):
        try:
            return Structure(tuple(tuple(sorted(parents)) for parents in graph))
        except InputError:
            return None

    graph = [frozenset()] * n
    while True:
        most, best = 1e-9, None
        for parent, child in np.ndindex(n, n):
            changes = [{child: graph[child] ^ {parent}}]  # add or remove
            if parent in graph[child]:
                changes.append({**changes[0], parent: graph[parent] | {child}})  # turn
            for change in changes if parent != child else []:
                gain = sum(local(i, s) - local(i, graph[i]) for i, s in change.items())
                other = [change.get(i, parents) for i, parents in enumerate(graph)]
                if gain > most and acyclic(other):
                    most, best = gain, other
        if best is None:
            return sum(local(i, parents) for i, parents in enumerate(graph)), acyclic(graph)
        graph = best


def encode(table):
    """All columns as they are."""
    variables = tuple(
        Variable(f"v{i}", tuple(map(str, range(table[:, i].max() + 1))))
        for i in range(table.shape[1])
    )
    return EncodedData(table, np.ones(len(table)), variables)


greedy, climbed = climb(local_scores(encode(rows), "bic"))
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

# %%
# Alarm
# -----
# The network that watches over patients under anaesthesia: 37 variables. There are more graphs than
# atoms, and still the best one for 1000 rows is found and proved within seconds. The network comes
# as a file of pgmpy's.

packed = files("pgmpy.utils") / "example_models" / "alarm.bif.gz"
alarm = network_from_bif(gzip.decompress(packed.read_bytes()).decode())
codes = alarm.sample_codes(1000, 0)
codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in codes.T])
problem = local_scores(encode(codes), "bic")
exact = solve_structure(problem)
greedy, climbed = climb(problem)
print(f"{exact.status}: BIC {exact.objective:.2f}, bound {exact.bound:.2f}")
print(f"hill climbing: {greedy:.2f}, {exact.objective - greedy:.2f} nats left on the table")

# %%
# Links that *alarm* has too are grey, others orange. Directions are left out, because data do not
# determine many of them.


def links(structure):
    """The arcs without their directions."""
    return {frozenset(arc) for arc in structure.arcs}


truth = links(alarm.structure)
angles = 2 * np.pi * np.arange(len(alarm.names)) / len(alarm.names)
x, y = np.cos(angles), np.sin(angles)
figure, axes = plt.subplots(1, 2, figsize=(11, 6))
pair = (("exact", exact.structure, exact.objective), ("hill climbing", climbed, greedy))
for ax, (name, structure, value) in zip(axes, pair, strict=True):
    found = links(structure)
    for a, b in found:
        right = frozenset((a, b)) in truth
        ax.plot(x[[a, b]], y[[a, b]], color="0.6" if right else "tab:orange", lw=1 if right else 2)
    ax.plot(x, y, "o", color="tab:blue", ms=4)
    for i, label in enumerate(alarm.names):
        turn = np.degrees(angles[i])
        flip = 90 < turn < 270
        ax.text(
            1.06 * x[i],
            1.06 * y[i],
            label,
            fontsize=6,
            rotation=turn + 180 * flip,
            rotation_mode="anchor",
            ha="right" if flip else "left",
            va="center",
        )
    missed, extra = len(truth - found), len(found - truth)
    ax.set_title(f"{name}: BIC {value:.1f}\n{missed} links missed, {extra} too many", pad=50)
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
    ax.set_axis_off()
figure.subplots_adjust(left=0.1, right=0.9, bottom=0.12, top=0.74, wspace=0.5)
plt.show()
