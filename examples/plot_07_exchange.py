"""
Take the network elsewhere
==========================

A fitted network is not tied to this package: it goes into files of other tools and back without
losing anything, and becomes an object of pgmpy or pyAgrum.
"""

# %%
# Learn something small first.

import tempfile
from pathlib import Path

import networkx

from marginbn import MaxMarginBNClassifier, load_network, save_network
from marginbn.datasets import load_dataset

corral = load_dataset("corral")
X, y = corral.train.drop("class"), corral.train.column("class").values.astype(str)
network = MaxMarginBNClassifier().fit(X, y).network_

# %%
# Files
# -----
# The suffix of the file selects the format: ``.bif``, ``.json``, and for pictures ``.svg`` and
# ``.dot``. Probabilities are written with all their digits, so a network that went through a file
# gives the same answers.

evidence = {"A0": "1", "B1": "0"}
before = network.posterior_array("class", evidence)
with tempfile.TemporaryDirectory() as folder:
    for suffix in ("bif", "json"):
        path = Path(folder) / f"corral.{suffix}"
        save_network(network, path)
        after = load_network(path).posterior_array("class", evidence)
        size, change = path.stat().st_size, abs(after - before).max()
        print(f"{path.name:14} {size:5} bytes, posterior moved by {change:.0e}")
    print((Path(folder) / "corral.bif").read_text()[:75])

# %%
# Graph algorithms
# ----------------
# The arcs of the structure are pairs of indices, which any graph library takes.

names = network.names
graph = networkx.DiGraph((names[p], names[c]) for p, c in network.structure.arcs)
degrees = {name: graph.degree(name) for name in graph.nodes}
print(degrees)

# %%
# A picture
# ---------

network
