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

from marginbn import MaxMarginBNClassifier
from marginbn.datasets import load_dataset

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
# A positive term raises the odds of the class, a negative one those of its strongest rival; a
# term of log 2 = 0.69 doubles the odds. The terms sum to the log margin:

total = sum(c.value for c in explanation.contributions)
print(f"sum of the terms {total:.12f}, log margin {explanation.log_margin:.12f}")

# %%
# In a picture
# ------------
# On the left the terms of that sample. On the right the whole test set: how much each variable
# moves the decisions on average.

sizes = np.abs(explanations.values).mean(axis=0)
largest = np.argsort(-sizes)[:10]
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
terms = explanation.contributions[:7]
left.barh([c.condition for c in terms], [c.value for c in terms])
left.set(title=f"true class {explanation.label}", xlabel="contribution to the log margin")
right.barh([clf.network_.names[i] for i in largest], sizes[largest])
right.set(title="test set", xlabel="mean size of the contribution")
for ax in (left, right):
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.8)
