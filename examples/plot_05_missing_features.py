"""
Missing features and questions
==============================

The parameters of a network are those of a joint distribution. So a missing feature needs no
imputation: it is summed out exactly. And you can ask for the posterior of any other variable.
"""

# %%
# The LED display
# ---------------
# Seven segments show a digit; each is broken, that is inverted, with probability 0.1.

import matplotlib.pyplot as plt
import numpy as np

from marginbn import MaxMarginBNClassifier
from marginbn.data.table import as_table
from marginbn.datasets import load_dataset

led = load_dataset("led-7")
X, y = led.train.drop("class"), led.train.column("class").values.astype(str)
train = np.arange(len(y)) < 700
clf = MaxMarginBNClassifier(margin="binary", time_limit=5).fit(X.take(train), y[train])
print(f"{clf.status_}, accuracy {clf.score(X.take(~train), y[~train]):.3f} (0.74 is possible)")

# %%
# A row with missing values
# -------------------------
# ``None`` and NaN are missing. The more is known, the surer the classifier.

rows = [[None] * 7, [1, 0, 1, None, None, None, None], [1, 0, 1, 1, 1, None, None]]
holes = as_table(rows, names=X.names, kinds="categorical")
for row, digit, p in zip(rows, clf.predict(holes), clf.predict_proba(holes), strict=True):
    print(f"digit {digit} with p = {p.max():.2f} from", [v for v in row if v is not None])

# %%
# Questions to the network
# ------------------------
# ``marginals`` takes observed states by name, the class included, and gives the posterior of
# every variable: the digits that fit, or the segments that a digit would light.

network = clf.network_
lit = network.marginals({"class": 7})
print({name: round(float(p[1]), 2) for name, p in lit.items() if name != "class"})

# %%
# Segment by segment
# ------------------
# A faultless four is revealed one segment after the other. Rows are the digits, columns the number
# of segments seen; what is not seen is summed out.

four = {
    "segment1": 0, "segment2": 1, "segment3": 1, "segment4": 1,
    "segment5": 0, "segment6": 1, "segment7": 0,
}  # fmt: skip
names = list(four)
posteriors = np.array(
    [
        network.posterior_array("class", {name: four[name] for name in names[:seen]})
        for seen in range(8)
    ]
)

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
image = ax.imshow(posteriors.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
ax.set_xticks(range(8), labels=["none", *(f"+ {name[-1]}" for name in names)])
ax.set_yticks(range(10))
ax.set_xlabel("segments seen")
ax.set_ylabel("digit")
fig.colorbar(image, label="posterior")
