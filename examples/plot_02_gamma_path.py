"""
What gamma does
===============

Gamma is the log margin that is large enough for you. A sample beyond it adds nothing more to the
objective. So a small gamma cares only about samples that are wrong or near the border, while a
large one also rewards safe samples for becoming safer. We walk along a path of gammas and look at
the margins.
"""

# %%
# A problem with a known rule
# ---------------------------
# *mofn-3-7-10*: true if at least three of seven relevant bits are set; three more bits are noise.
# There are 300 rows to learn from, and all 1024 settings to test on.

import math

import matplotlib.pyplot as plt
import numpy as np

from marginbn import MaxMarginBNClassifier
from marginbn.datasets import load_dataset

mofn = load_dataset("mofn-3-7-10")
X, y = mofn.train.drop("class"), mofn.train.column("class").values.astype(str)
X_test, y_test = mofn.test.drop("class"), mofn.test.column("class").values.astype(str)

# %%
# The path
# --------
# ``gamma = log(p / (1 - p))`` is the margin of a sample whose class has probability p against one
# rival. Every search is exact, unless a limit ends it; then the gap bounds the distance to the
# optimum.

probabilities = [0.7, 0.8, 0.9, 0.95, 0.99]
fitted = {}
for p in probabilities:
    gamma = math.log(p / (1 - p))
    fitted[p] = MaxMarginBNClassifier(gamma=gamma, time_limit=300).fit(X, y)
    clf = fitted[p]
    print(
        f"p = {p:<5}  gamma {gamma:5.2f}  {clf.status_}  "
        f"training {clf.score(X, y):.3f}  test {clf.score(X_test, y_test):.3f}"
    )

# %%
# Margins
# -------
# The structure depends on gamma, and with it the margins. The larger gamma moves the bulk of the
# samples to the right, the smaller one leaves fewer of them misclassified.

fig, axes = plt.subplots(3, 1, figsize=(7.5, 9), layout="constrained")
for ax, p in zip(axes, (0.7, 0.99), strict=False):
    clf = fitted[p]
    ax.hist(clf.explain(X, y).log_margins, bins=40)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.axvline(clf.gamma, color="tab:orange", linestyle="--", label=f"gamma = {clf.gamma:.3g}")
    ax.set(title=f"p = {p}", xlabel="log margin of the true class", ylabel="rows")
    ax.legend()
axes[0].sharex(axes[1])

gammas = [fitted[p].gamma for p in probabilities]
for name, rows, labels in (("training", X, y), ("test", X_test, y_test)):
    scores = [fitted[p].score(rows, labels) for p in probabilities]
    axes[2].plot(gammas, 100 * np.array(scores), "o-", label=name)
axes[2].set_xlabel("gamma")
axes[2].set_ylabel("accuracy in %")
axes[2].legend()
