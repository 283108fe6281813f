"""
Stop whenever you like
======================

A search can be stopped at any moment: by a time limit, by a gap that is small enough, by a
callback or by Ctrl-C. What comes back is the best structure found *and* a bound on all others.
"""

# %%
# A hard problem
# --------------
# Thirty measurements of cell nuclei and two parents per variable: there are far too many
# structures to try them all. We grant two seconds.

import textwrap
import warnings

import matplotlib.pyplot as plt

from marginbn import MaxMarginBNClassifier, OptimalityWarning
from marginbn.datasets import load_dataset

data = load_dataset("breast_cancer")
X, y = data.train.drop("class"), data.train.column("class").values.astype(str)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", OptimalityWarning)
    hard = MaxMarginBNClassifier(max_parents=2, time_limit=2).fit(X, y)
print(textwrap.fill(str(caught[0].message) if caught else "optimal", 84))

# %%
# A limit is a normal ending, reported by an :class:`marginbn.OptimalityWarning`. The classifier
# is usable; its gap bounds how much better any other structure can be.

print(f"status {hard.status_}, gap {100 * hard.gap_:.2f} %")

# %%
# With one parent per variable the same data are proved optimal at once.

easy = MaxMarginBNClassifier(max_parents=1, time_limit=10).fit(X, y)
print(f"status {easy.status_}, objective {easy.objective_:.2f}")

# %%
# Objective and bound over time
# -----------------------------
# The objective only rises, the bound only falls, and the optimum lies in the grey strip between
# them. Good structures are found early; nearly all of the time goes into the proof.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, clf, name in zip(axes, (easy, hard), ("one parent", "two parents"), strict=True):
    seconds = [point.seconds for point in clf.trace_]
    objectives = [point.objective for point in clf.trace_]
    bounds = [point.bound for point in clf.trace_]
    ax.step(seconds, bounds, where="post", label="bound")
    ax.step(seconds, objectives, where="post", label="objective")
    ax.fill_between(seconds, objectives, bounds, step="post", color="grey", alpha=0.2)
    ax.set(title=f"{name}: gap {100 * clf.gap_:.2f} %", xlabel="seconds", ylabel="nats")
    ax.legend()
    ax.set_ylim(0.99 * clf.objective_, 1.01 * clf.objective_)  # the start is far below
