"""Compile all kernels before the suite, side by side, not in every one of its processes."""

from __future__ import annotations

import subprocess
import sys

SOLVER = "from marginbn.solvers.solve import get_solver; get_solver({!r}).prepare()"

GROUPS = """
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.branch_bound.engine import warm_up_groups
warm_up_groups(BranchBoundSolver())
"""

SCORES = """
import numpy as np
from marginbn.scoring.local_scores import local_scores
from marginbn.problem.encoded import EncodedData, Variable
rng = np.random.default_rng(0)
variables = tuple(Variable(str(i), ("0", "1", "2")) for i in range(6))
data = EncodedData(rng.integers(0, 3, (60, 6)).astype(np.int32), np.ones(60), variables)
for score in ("bdeu", "bic"):
    local_scores(data, score)
"""

CLASS_MODEL = """
import numpy as np
from marginbn import BayesianNetwork, Structure
from marginbn.data.table import as_table
from marginbn.class_model.answers import Answers
from marginbn.class_model.basis import learn_cells
from marginbn.class_model.trainer import Precisions, train_class_model
from marginbn.data.labelled import LabelledTable
table = as_table(np.random.default_rng(0).normal(size=(60, 2)))
cells, data = learn_cells(LabelledTable.of(table, np.arange(60) % 2), np.arange(2))
structure = Structure(((), (0,), (0, 1)))
model = train_class_model(cells, structure, data, Precisions(1.0, 1.0, 1.0))
network = BayesianNetwork.fit(cells.count(data), structure)
Answers(network, model).posterior(np.array([[0, -1]]))
"""

PARTS = [
    SOLVER.format("branch_bound") + GROUPS,
    "from marginbn.proof.write import warm_up_forests; warm_up_forests()",
    SOLVER.format("branch_cut"),
    SOLVER.format("dp") + SCORES + CLASS_MODEL,
]
"""What each process compiles. What else is compiled takes a few seconds."""

if __name__ == "__main__":
    running = [subprocess.Popen([sys.executable, "-c", code]) for code in PARTS]
    sys.exit(max(process.wait() for process in running))
