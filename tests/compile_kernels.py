"""Compile all kernels before the suite, side by side, not in every one of its processes."""

from __future__ import annotations

import subprocess
import sys

DATA = """
import numpy as np
from marginbn import EncodedData, Variable
rng = np.random.default_rng(0)
def table(columns, rows=60):
    variables = tuple(Variable(str(i), ("0", "1", "2")) for i in range(columns))
    codes = rng.integers(0, 3, (rows, columns)).astype(np.int32)
    return EncodedData(codes, np.ones(rows), variables)
"""

SEARCH = """
from marginbn import Search, enumerate_candidates, margin_problem, solve_structure
problem = margin_problem(table(13, 300), enumerate_candidates(13, 2))  # not closed at the root
solve_structure(problem, Search({}), node_limit=40, {})
"""

GROUPS = SEARCH.format("rows='groups'", "")

PROOF = """
import os, tempfile, warnings
warnings.simplefilter("ignore")  # the limit ends the proof, too
path = os.path.join(tempfile.mkdtemp(), "proof")
""" + SEARCH.format("'branch_bound'", "certificate=path")

SCORES = """
from marginbn.scoring.local_scores import local_scores
for score in ("bdeu", "bic"):
    scores = local_scores(table(6), score)
for solver in ("dp", "branch_cut"):
    solve_structure(scores, solver)
"""

CLASS_MODEL = """
from marginbn import BayesianNetwork, Structure
from marginbn.data.table import as_table
from marginbn.class_model.answers import Answers
from marginbn.class_model.basis import learn_cells
from marginbn.class_model.trainer import Precisions, train_class_model
from marginbn.data.labelled import LabelledTable
table = as_table(rng.normal(size=(60, 2)))
cells, data = learn_cells(LabelledTable.of(table, np.arange(60) % 2), np.arange(2))
structure = Structure(((), (0,), (0, 1)))
model = train_class_model(cells, structure, data, Precisions(1.0, 1.0, 1.0))
network = BayesianNetwork.fit(cells.count(data), structure)
Answers(network, model).posterior(np.repeat([[0, -1]], 1000, axis=0))
"""

PARTS = [
    DATA + SEARCH.format("'branch_bound'", "n_jobs=2") + GROUPS,
    DATA + PROOF,
    DATA + SEARCH.format("'branch_cut'", "") + SCORES + CLASS_MODEL,
]
"""What each process compiles. What else is compiled takes a few seconds."""

if __name__ == "__main__":
    running = [subprocess.Popen([sys.executable, "-c", code]) for code in PARTS]
    sys.exit(max(process.wait() for process in running))
