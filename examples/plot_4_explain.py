"""
Why this decision?
==================

The log margin of a sample is a sum with one term per variable, so a decision can be taken apart
exactly: no sampling, no approximation.
"""

# %%
# Train on wine, hold out every fourth row.

import matplotlib.pyplot as plt
import numpy as np

from marginbn import MaxMarginBNClassifier, mean_contributions
from marginbn.datasets import load_dataset
from marginbn.plotting import plot_explanation, plot_mean_contributions

wine = load_dataset("wine")
X, y = wine.train.drop("class"), wine.train.column("class").values.astype(str)
test = np.arange(len(y)) % 4 == 0
clf = MaxMarginBNClassifier().fit(X.take(~test), y[~test])
X_test, y_test = X.take(test), y[test]

# %%
# The narrowest decisions
# -----------------------
# Look first at the samples whose true class has the smallest margin; negative ones are
# misclassified.

explanations = clf.explain(X_test, y_test)
explanation = explanations[int(np.argmin(explanations.log_margins))]
print(explanation)

# %%
# A positive term speaks for the class, a negative one for its strongest rival; a term of log 2 =
# 0.69 doubles the odds. The terms sum to the log margin:

total = sum(c.value for c in explanation.contributions)
print(f"sum of the terms {total:.12f}, log margin {explanation.log_margin:.12f}")

# %%
# In a picture
# ------------
# Above, the waterfall of that sample. Below, the whole test set: how much each variable moves the
# decisions on average, and whether it speaks for the true class.

fig, axes = plt.subplots(2, 1, figsize=(8, 9.5), layout="constrained")
plot_explanation(explanation, most=7, ax=axes[0])
plot_mean_contributions(mean_contributions(clf, X_test, y_test), most=10, ax=axes[1])
