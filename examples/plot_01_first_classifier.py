"""
From a raw table to a proved classifier
=======================================

A raw table has an identifier, words, numbers and missing values. We learn the default classifier,
read what was proved, ask it questions, write a report and a query for the database.
"""

# %%
# The table
# ---------
# Customers, and who of them left. Column kinds are found out: the number of a customer is left out,
# a missing satisfaction is a state of its own. Every fourth row is set aside.

import sqlite3
import tempfile
import warnings
from pathlib import Path

import pandas as pd

from marginbn import BNClassifier, describe, export_model, make_report

warnings.simplefilter("ignore")  # of what was left out, see `marginbn inspect`
folder = Path("examples" if Path("examples").exists() else ".")
table = pd.read_csv(folder / "customers.csv")
X, y = table.drop(columns="left"), table["left"]
test = table.index % 4 == 0
X.head(3)

# %%
# Learning
# --------
# The structure has the largest soft margin of *all* networks in which the class points at every
# column. Tables on this structure are trained to give good probabilities.

clf = BNClassifier().fit(X[~test], y[~test])
print(describe(clf))

# %%
# The first sentence is the verdict: no other such network has a larger margin. How well it predicts
# is another question, which rows answer that were not learned from:

print(f"accuracy on {test.sum()} new rows: {clf.score(X[test], y[test]):.3f}")

# %%
# Questions
# ---------
# Any columns may be known. With one column known the answer is the share in the training rows.

print(clf.posterior({"contract": "monthly"}))
print(clf.posterior({"contract": "monthly", "support calls": 3, "discount": "no"}))

# %%
# Why is a customer predicted to leave? The contributions start at the base rate and sum to the
# log-odds of the answer.

print(clf.explain(X[test].iloc[[0]])[0])

# %%
# The network
# -----------
# Arcs between columns show which of them act together.

clf.network_

# %%
# A report, and a query
# ---------------------
# The report is one HTML page that works without a network connection. The query predicts inside the
# database; rows with a missing value get NULL, and ``predict`` answers these.

with tempfile.TemporaryDirectory() as place:
    make_report(clf).save(Path(place) / "customers.html")
    print((Path(place) / "customers.html").stat().st_size // 1000, "kB of report")
    export_model(clf, Path(place) / "customers.sql", keep=["contract"])
    query = (Path(place) / "customers.sql").read_text()

features = clf.prepare(X[test])
database = sqlite3.connect(":memory:")
columns = {column.name: column.values for column in features.columns}
pd.DataFrame(columns).to_sql("data", database, index=False)
for row in database.execute(query).fetchmany(3):
    print(row)
