"""
The runners-up
==============

The best structure is one of many. How close are the next ones, and what do all good ones agree on?
For small problems the n best structures can be listed exactly.
"""

# %%
# A problem by hand
# -----------------
# Classifiers build a problem and have it solved. Here we do the same in steps: encode the table,
# list the candidate parent sets, write down the problem. The score is BDeu, the log marginal
# likelihood of the data, and the structures are general networks; the class of *monks-3* depends
# on a2, a4 and a5, with some labels wrong.

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

from marginbn import EncodedData, Variable, best_structures, enumerate_candidates, linear_problem
from marginbn.datasets import load_dataset
from marginbn.problem.scores import get_local_score

table = load_dataset("monks-3").train
order = ["class", *(name for name in table.names if name != "class")]
columns = [table.column(name) for name in order]
variables = tuple(Variable(c.name, tuple(map(str, c.categories))) for c in columns)
codes = np.column_stack([c.codes for c in columns])
data = EncodedData(codes, np.ones(len(codes)), variables)
candidates = enumerate_candidates(data.n_variables, 2, class_restricted=False)
problem = linear_problem(data, candidates, get_local_score("bdeu"))

# %%
# The list
# --------
# A difference of d nats in BDeu means that the data are exp(d) times as probable.

ranking = best_structures(problem, n_best=200)
best = ranking[0]
print(f"best objective {best.objective:.3f}, number 200 has {ranking[-1].objective:.3f}")
print("best structure:", [f"{order[p]} -> {order[c]}" for p, c in best.structure.arcs])

# %%
# What they agree on
# ------------------
# Reversing an arc often changes little, so pairs are counted without direction: how many of the 200
# best structures join these two variables?

joined = Counter(frozenset(arc) for ranked in ranking for arc in ranked.structure.arcs)
shares = {" - ".join(order[v] for v in sorted(pair)): n / 200 for pair, n in joined.most_common(10)}

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
axes[0].plot(range(1, 201), [r.objective for r in ranking], ".", markersize=4)
axes[0].set_xlabel("rank")
axes[0].set_ylabel("objective in nats")
axes[1].barh(list(shares), 100 * np.array(list(shares.values())))
axes[1].invert_yaxis()
axes[1].set_xlabel("% of the 200 best structures")
