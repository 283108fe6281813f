"""The best structure of a sample of the rows, with tables of all rows: a start for the search.

Counts of a sample are noisy, and noise in a table moves every margin; margins of a sample are only
fewer. So the tables s_k (``problem/margins.py``) come from all rows and only the sum over m goes
over a sample, drawn evenly from the weights of each class. Loss of the objective of all rows, in
percent of the optimum, measured once each:

    rows in the sample                1 %      5 %      20 %
    adult: counts of the sample       5.9      1.4      1.2
    adult: tables of all rows         2.0      1.2      .2
    nursery: counts of the sample     -        1.4      .7
    nursery: tables of all rows       -        .0       .0

The sampled problem is solved by the same engine with coefficients, which is quick because there are
few. What it finds is a structure: bound and gap are those of all rows, from groups
(``row_groups.py``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from marginbn.problem.encoded import EncodedData
from marginbn.problem.margins import MarginRows
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_bound.arrays import Coefficients, Encoding
from marginbn.solvers.branch_bound.pair_tables import Poll, some_columns
from marginbn.solvers.branch_bound.row_groups import even_sample
from marginbn.solvers.memory import BranchBoundShape

MOST_SAMPLES = 10_000
"""Samples that are drawn, if there is memory for their coefficients."""

FEWEST_SAMPLES = 200
"""Fewer are not worth a search."""

TIME_SHARE = 0.3
"""Part of the time that is left which the sampled problem may take."""


def sampled_problem(
    problem: StructureProblem, encoding: Encoding, memory: float, poll: Poll = lambda: None
) -> StructureProblem | None:
    """The problem on a sample; None if all rows are no more, or memory has no room for it."""
    margins, coded = problem.margins, encoding.coded
    if margins is None or coded is None:
        return None
    count = sample_size(BranchBoundShape.of(problem), memory)
    if not FEWEST_SAMPLES <= count < margins.n_samples:
        return None
    chosen, weights = even_sample(coded.codes[-1], encoding.instance.weights, count)
    data = EncodedData(margins.data.codes[chosen], weights, margins.data.variables)
    few = MarginRows(data, margins.candidates, margins.kind, margins.smoothing, margins)
    columns = some_columns(encoding.instance, coded, chosen, poll)
    largest = np.abs(columns).reshape(len(columns), chosen.size, -1).max(axis=2)
    few.derived[Coefficients] = Coefficients(columns, largest @ weights)
    return replace(problem, margins=few, weights=data.weights)


def sample_size(shape: BranchBoundShape, memory: float) -> int:
    """As many samples as are of use and as memory has room for."""
    count = min(MOST_SAMPLES, shape.n_samples)
    while count >= FEWEST_SAMPLES:
        few = replace(shape, n_samples=count, n_rows=count * shape.rivals)
        if few.is_dense and few.needs().least <= memory:
            return count
        count //= 2
    return 0
