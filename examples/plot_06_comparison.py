"""
Naive Bayes, TAN, MDL and the margin
====================================

Four ways to choose a structure for the same kind of network, compared on the same folds with 95 %
intervals.
"""

# %%
# The data
# --------
# *monks-1* has a rule that no single feature can show: ``a1 = a2 or a5 = 1``. *wine* is
# an easy set of measurements. *corral* is ``(A0 and A1) or (B0 and B1)`` with a feature that
# agrees with the class three times out of four and so leads astray.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import ttest_rel

from marginbn import (
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    NaiveBayesClassifier,
    TANClassifier,
)
from marginbn.classifiers.evaluation import cross_validate
from marginbn.datasets import load_dataset

methods = {
    "naive Bayes": NaiveBayesClassifier,
    "TAN": TANClassifier,
    "MDL": GenerativeBNClassifier,
    "soft margin": MaxMarginBNClassifier,
}
sets = ("monks-1", "wine", "corral")

# %%
# Cross-validation
# ----------------
# Discretisation, structure and parameters are learned again in each fold.

results = {}
for name in sets:
    data = load_dataset(name)
    X, y = data.train.drop("class"), data.train.column("class").values.astype(str)
    for method, make in methods.items():
        results[name, method] = cross_validate(make, X, y, n_folds=5)
    line = "  ".join(f"{m} {100 * results[name, m].mean:.1f}" for m in methods)
    print(f"{name:8} {line}")

# %%
# Whether a difference is more than luck is asked by a paired test over the folds:

margin, naive = (results["corral", m].accuracies for m in ("soft margin", "naive Bayes"))
test = ttest_rel(margin, naive, alternative="greater")
print(f"corral, soft margin better than naive Bayes: p = {test.pvalue:.3f}")

# %%
# In a picture
# ------------

fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for place, method in enumerate(methods):
    means = [100 * results[name, method].mean for name in sets]
    half_widths = [100 * results[name, method].half_width for name in sets]
    where = np.arange(len(sets)) + 0.16 * (place - 1.5)
    ax.errorbar(where, means, yerr=half_widths, fmt="o", capsize=4, label=method)
ax.set_xticks(range(len(sets)), labels=sets)
ax.set_ylabel("accuracy in %, five folds")
ax.set_ylim(top=103)
ax.legend(loc="lower right")
