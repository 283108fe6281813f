"""Formulation (19) of the paper as matrices, for any MILP solver.

Columns, in this order::

    eta_k    0 or 1      one per candidate k = (child, parent set): is it chosen?
    tau_m    <= gamma    one per sample, free below: its capped log margin            (15)
    o_i      [0, Delta]  one per variable: its place in a topological order

    maximise   sum_k linear_k eta_k  +  sum_m w_m tau_m

Rows, in this order::

    convexity  sum_{k of i} eta_k                  = 1                 for each i         (5)
    order      o_j - o_i - 2 Delta a_ij           >= Delta/N - 2 Delta  for each i != j  (16)
               with a_ij = sum of eta_k over the candidates k of j whose parents contain i
    margin     tau_m - sum_k alpha_{m,r,k} eta_k  <= 0          for each sample m, rival r  (14)

At an optimum tau_m is the smaller of gamma and the smallest margin row, so the objective is that
of :class:`StructureProblem`. A linear problem has neither tau columns nor margin rows. Delta is
N, the number of variables, which makes the order rows integral: an arc i -> j asks for
o_j >= o_i + 1.

**What the bound of a floating-point solver is worth** (``docs/theory/rounding.rst``). A reduced
cost that is wrong by t changes the bound by at most t times the distance that its column can move.
With the objective divided by its scale s, and tau taken at a first structure, that is

    s t (1 + sum_m (gamma - tau_m) + N Delta + N).

A rounding share of 1e-9, and the entries that the solver leaves out, at most one per variable in a
margin row, are added to it and to whatever the solver claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from marginbn.exceptions import InputError
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.masks import members_of
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import topological_order

MAX_NONZEROS = 500_000_000
"""Nonzeros: 6 GB for the matrix alone, and a solver keeps several copies of it."""

Poll = Callable[[], None]
"""Called now and then while something large is built; may raise to give up."""


@dataclass(frozen=True)
class MILP:
    """Maximise ``cost @ x``: ``row_lower <= matrix @ x <= row_upper``, ``lower <= x <= upper``."""

    matrix: sparse.csr_array  # float64 (n_rows, n_columns), no explicit zeros
    cost: FloatArray  # (n_columns,)
    lower: FloatArray
    upper: FloatArray
    row_lower: FloatArray  # (n_rows,)
    row_upper: FloatArray
    candidates: CandidateSets  # behind the first columns, which are the integer ones
    n_samples: int  # number of tau columns
    n_rivals: int  # margin rows for each of them

    @property
    def n_rows(self) -> int:
        """Number of matrix rows."""
        return len(self.row_lower)

    @property
    def n_columns(self) -> int:
        """Number of matrix columns."""
        return len(self.cost)

    @property
    def eta(self) -> slice:
        """Columns of the candidates, 0 or 1."""
        return slice(0, self.candidates.n_candidates)

    @property
    def tau(self) -> slice:
        """Columns of the capped margins."""
        return slice(self.eta.stop, self.eta.stop + self.n_samples)

    @property
    def order(self) -> slice:
        """Columns of the order variables."""
        return slice(self.tau.stop, self.tau.stop + self.candidates.n_variables)

    def column_names(self) -> list[str]:
        """``pa_3_0_2`` (variable 3 has the parents 0 and 2), ``tau_7``, ``order_3``.

        No name begins with e: file formats may take it for the exponent of a number.
        """
        pairs = zip(self.candidates.child, self.candidates.parents, strict=True)
        names = ["_".join(str(v) for v in ("pa", child, *parents)) for child, parents in pairs]
        names += [f"tau_{m}" for m in range(self.n_samples)]
        return names + [f"order_{i}" for i in range(self.candidates.n_variables)]

    def row_names(self) -> list[str]:
        """``one_3`` (convexity), ``arc_0_3`` (order row of the arc 0 -> 3), ``margin_7_0``."""
        variables = range(self.candidates.n_variables)
        names = [f"one_{i}" for i in variables]
        names += [f"arc_{i}_{j}" for i in variables for j in variables if i != j]
        return names + [
            f"margin_{m}_{r}" for m in range(self.n_samples) for r in range(self.n_rivals)
        ]


def count_nonzeros(problem: StructureProblem) -> int:
    """An upper bound on the nonzeros of the matrix, without building it."""
    n, candidates = problem.n_variables, problem.candidates
    order = 2 * n * (n - 1) + int(candidates.sizes.sum())
    return candidates.n_candidates + order + problem.n_rows * (candidates.n_candidates + 1)


def why_too_large(problem: StructureProblem) -> str | None:
    """Why the formulation should not be built for this problem; ``None`` if it may."""
    nonzeros = count_nonzeros(problem)
    if nonzeros <= MAX_NONZEROS:
        return None
    return (
        f"formulation (19) would have {problem.n_rows} margin rows, "
        f"{problem.candidates.n_candidates} candidates and {12 * nonzeros / 1e9:.0f} GB of "
        "coefficients; use another solver, fewer candidates, or the binary margin"
    )


def formulate(problem: StructureProblem, *, poll: Poll | None = None) -> MILP:
    """Problem (19) in matrix form; see :func:`count_nonzeros` for the size of the matrix.

    ``poll`` is called for every column of margins; an exception from it ends the work.
    """
    n, k, m = problem.n_variables, problem.candidates.n_candidates, problem.n_samples
    infinity = np.inf
    fill = np.concatenate  # one piece per block, in the order of the module docstring
    return MILP(
        matrix=_matrix(problem, poll or (lambda: None)),
        cost=fill([problem.linear, problem.sample_weights, np.zeros(n)]),
        lower=fill([np.zeros(k), np.full(m, -infinity), np.zeros(n)]),
        upper=fill([np.ones(k), np.full(m, problem.gamma), np.full(n, float(n))]),
        row_lower=fill(
            [np.ones(n), np.full(n * (n - 1), 1.0 - 2 * n), np.full(problem.n_rows, -infinity)]
        ),
        row_upper=fill([np.ones(n), np.full(n * (n - 1), infinity), np.zeros(problem.n_rows)]),
        candidates=problem.candidates,
        n_samples=m,
        n_rivals=0 if problem.margins is None else problem.margins.n_rivals,
    )


def selection_of(candidates: CandidateSets, point: FloatArray) -> IntArray:
    """The candidate with the largest eta of each variable, ties by index."""
    groups = zip(candidates.offsets[:-1], candidates.offsets[1:], strict=True)
    chosen = [int(first + np.argmax(point[first:last])) for first, last in groups]
    return np.array(chosen, dtype=np.int64)


def point_of(problem: StructureProblem, milp: MILP, selection: IntArray) -> FloatArray:
    """The feasible point of (19) that stands for an acyclic selection."""
    point = np.zeros(milp.n_columns)
    point[selection] = 1.0
    if problem.margins is not None:
        point[milp.tau] = problem.margins.at(selection).min(axis=1, initial=problem.gamma)
    order = topological_order([problem.candidates.parents[int(k)] for k in selection])
    if order is None:
        raise InputError("the selection has a directed cycle; (19) has no point for it")
    places = np.empty(len(order))
    places[list(order)] = np.arange(len(order))
    point[milp.order] = places
    return point


def _matrix(problem: StructureProblem, poll: Poll) -> sparse.csr_array:
    """All rows; the large margin block is written once, into its final place."""
    head = _graph_rows(problem)
    # candidates that depend on the class; the factor of any other cancels in every margin
    has_class = (problem.candidates.masks[:, 0] & np.uint64(1)) == 1
    used = np.flatnonzero((problem.candidates.child == 0) | has_class)
    width = len(used) + 1  # every margin row: these candidates and its own tau
    n_margin_rows = problem.n_rows
    nonzeros = head.nnz + n_margin_rows * width
    index_type = np.int32 if nonzeros < 2**31 else np.int64
    data = np.empty(nonzeros)
    indices = np.empty(nonzeros, dtype=index_type)
    indptr = np.empty(head.shape[0] + n_margin_rows + 1, dtype=index_type)
    data[: head.nnz], indices[: head.nnz] = head.data, head.indices
    indptr[: head.shape[0] + 1] = head.indptr
    indptr[head.shape[0] + 1 :] = head.nnz + width * np.arange(1, n_margin_rows + 1)
    _fill_margins(problem, used, data[head.nnz :], indices[head.nnz :], poll)
    matrix = sparse.csr_array(
        (data, indices, indptr), shape=(head.shape[0] + n_margin_rows, head.shape[1])
    )
    matrix.eliminate_zeros()
    return matrix


def _fill_margins(
    problem: StructureProblem,
    used: IntArray,
    data: FloatArray,
    indices: NDArray[np.signedinteger],
    poll: Poll,
) -> None:
    """Margin rows (14), written row by row into flat arrays of equal row length."""
    margins = problem.margins
    if margins is None:
        return
    values = data.reshape(-1, len(used) + 1)
    columns = indices.reshape(-1, len(used) + 1)
    columns[:, :-1] = used
    for place, k in enumerate(used):
        poll()
        np.negative(margins.column(int(k)).reshape(-1), out=values[:, place])
    first_tau = problem.candidates.n_candidates
    values[:, -1] = 1.0
    columns[:, -1] = first_tau + np.repeat(np.arange(margins.n_samples), margins.n_rivals)


def _graph_rows(problem: StructureProblem) -> sparse.csr_array:
    """Convexity rows (5) and order rows (16)."""
    n, candidates = problem.n_variables, problem.candidates
    k, first_order = candidates.n_candidates, candidates.n_candidates + problem.n_samples
    tail, head = np.nonzero(~np.eye(n, dtype=bool))  # all (i, j) with i != j, i slowest
    pair = np.arange(n * (n - 1))
    parent, sizes = members_of(candidates.masks)
    candidate = np.repeat(np.arange(k), sizes)
    child = candidates.child[candidate].astype(np.int64)
    rows = [
        candidates.child.astype(np.int64),
        n + pair,
        n + pair,
        n + parent * (n - 1) + child - (child > parent),  # the pair (parent, child)
    ]
    columns = [np.arange(k), first_order + head, first_order + tail, candidate]
    values = [np.ones(k), np.ones(len(pair)), -np.ones(len(pair)), np.full(len(child), -2.0 * n)]
    return sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(n * n, first_order + n),
    )


ROUNDING = 1e-9
"""Relative difference below which HiGHS takes two values for equal."""


def objective_scale(milp: MILP, largest: float = 1.0) -> float:
    """The power of two by which to divide the objective; 1 if it is zero.

    Afterwards its largest coefficient is near ``largest``. The division is exact; it lets sample
    weights of any size meet the same tolerances, and a ``largest`` above one tightens them.
    """
    size = float(np.abs(milp.cost).max(initial=0.0)) / largest
    return 2.0 ** round(math.log2(size)) if size > 0 else 1.0


def bound_allowance(
    milp: MILP,
    point: FloatArray,
    *,
    scale: float,
    tolerance: float,
    threshold: float,
) -> float:
    """What to add to a bound, see the module text; ``point`` is any feasible one. The solver has
    seen the objective divided by ``scale``, works with that dual feasibility ``tolerance`` and
    takes matrix entries below the ``threshold`` for zero.
    """
    n = milp.candidates.n_variables
    slack = float((milp.upper[milp.tau] - point[milp.tau]).sum())
    movement = 1.0 + slack + n * float(n) + n
    sizes = np.abs(milp.matrix.data)
    lost = float(sizes[sizes <= threshold].max(initial=0.0))
    lost_value = n * lost * float(milp.cost[milp.tau].sum())
    return tolerance * scale * movement + ROUNDING * abs(float(milp.cost @ point)) + lost_value
