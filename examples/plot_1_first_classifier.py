"""
A first classifier and its proof
================================

Three cultivars of wine are told apart by thirteen chemical measurements. We learn the network of
largest soft margin, read what was proved about it, and look at it.
"""

# %%
# The data
# --------
# :func:`marginbn.datasets.load_dataset` brings small tables along. Every fourth row is set aside.

import numpy as np

from marginbn import MaxMarginBNClassifier, describe
from marginbn.datasets import load_dataset
from marginbn.plotting import plot_network

wine = load_dataset("wine")
X, y = wine.train.drop("class"), wine.train.column("class").values.astype(str)
test = np.arange(len(y)) % 4 == 0

# %%
# Learning
# --------
# Numeric columns are cut into bins on the training rows. Then the structure is searched among
# *all* networks in which features have no parents, the class, or the class and one more feature.

clf = MaxMarginBNClassifier(max_parents=2).fit(X.take(~test), y[~test])
print(describe(clf))

# %%
# The first line is the verdict. ``bound`` is a proven upper limit on the objective of every allowed
# structure; objective and bound agree, so no other structure is better, and no luck or patience
# was needed to be sure.

print(f"{clf.status_}: objective {clf.objective_:.4f}, bound {clf.bound_:.4f}")
print(f"held-out accuracy {clf.score(X.take(test), y[test]):.3f}")

# %%
# The network
# -----------
# The class is highlighted. A feature set apart below the dashed line has no arcs: whatever its
# value, it changes no decision.

plot_network(clf.network_)
