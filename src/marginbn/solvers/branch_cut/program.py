"""Node programmes on HiGHS: built from scratch for every round, warm started by a basis.

HiGHS copies and scales the whole matrix in every run anyway, and the programmes are small, so
building costs little and spares all book-keeping. The programme is a minimisation;
:class:`Solution` speaks of the maximisation again. Nothing here is trusted as a bound.

HiGHS has absolute tolerances, so it sees the objective divided by the power of two below the
problem's scale, and whatever is in the unit of the objective is multiplied by it on the way back.
Both are exact: weights in another unit give the same programmes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from marginbn.solvers.branch_cut.arrays import BoolArray, FloatArray, Instance, IntArray
from marginbn.solvers.branch_cut.rows import Row, RowPool
from marginbn.solvers.branch_cut.warm import Basis, Warm
from marginbn.solvers.milp import load_highspy

TOLERANCE = 1e-9
"""Primal and dual feasibility tolerance of the simplex method."""

ROWWISE, MINIMISE = 2, 1
"""HiGHS' numbers for the matrix format and the sense of the objective."""

Outcome = Literal["optimal", "infeasible", "limit"]
"""``"limit"`` covers time and iteration limits and everything unexpected."""


@dataclass(frozen=True)
class Solution:
    """What a run left behind: values of the columns eta and tau, empty unless optimal, and
    multipliers of the rows; if infeasible, those of a ray that proves it (empty where there is
    none).
    """

    outcome: Outcome
    objective: float  # of the maximisation, without the constant of saturated samples
    eta: FloatArray
    tau: FloatArray
    convexity: FloatArray
    structural: FloatArray
    explicit: FloatArray


class Blocks(NamedTuple):
    """Places of columns and rows in a programme, see ``warm.py``."""

    eta: slice
    tau: slice
    convexity: slice
    structural: slice
    explicit: slice


class Program:
    """One HiGHS object for all programmes of a solve; :meth:`load` comes first."""

    _warm: Warm  # the state that is loaded

    def __init__(self, instance: Instance, pool: RowPool) -> None:
        self._instance = instance
        self._unit = instance.unit
        self._pool = pool
        self._module = load_highspy()
        self._highs = self._module.Highs()
        options: dict[str, object] = {
            "output_flag": False,
            "threads": 1,
            "presolve": "off",
            "solver": "simplex",
            "simplex_strategy": 1,
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        }
        for name, value in options.items():
            self._highs.setOptionValue(name, value)
        status = self._module.HighsBasisStatus
        self._statuses = np.array(
            [status.kLower, status.kBasic, status.kUpper, status.kZero, status.kNonbasic],
            dtype=object,
        )
        self.runs = 0

    def load(self, warm: Warm, allowed: BoolArray) -> None:
        """Build the programme of a state; active candidates not allowed are fixed to zero."""
        self._warm = warm
        samples = warm.samples(self._instance.n_rivals)
        lengths, index, value = self._matrix(warm, samples)
        n, n_eta = self._instance.n_variables, len(warm.active)
        n_columns, n_rows = n_eta + len(samples), len(lengths)
        cost = -np.concatenate([warm.cost[warm.active], self._instance.weights[samples]])
        cost /= self._unit
        lower = np.concatenate([np.zeros(n_eta), np.full(len(samples), -np.inf)])
        upper = np.full(n_columns, self._instance.gamma)
        upper[:n_eta] = np.where(allowed[warm.active], np.inf, 0.0)
        rhs = np.concatenate([np.ones(n), self._pool.rhs(warm.rows), np.zeros(len(warm.explicit))])
        self._highs.passModel(
            n_columns,
            n_rows,
            len(index),
            ROWWISE,
            MINIMISE,
            0.0,
            cost,
            lower,
            upper,
            rhs,
            np.concatenate([np.ones(n), np.full(n_rows - n, np.inf)]),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
            index,
            value,
            np.zeros(n_columns, dtype=np.int32),
        )
        if warm.basis is not None:
            self._set_basis(warm.basis)

    def _matrix(self, warm: Warm, samples: IntArray) -> tuple[IntArray, Any, FloatArray]:
        """Row lengths, column indices and values, row after row."""
        instance = self._instance
        n_eta = len(warm.active)
        lengths = [np.bincount(instance.child[warm.active], minlength=instance.n_variables)]
        index = [np.arange(n_eta, dtype=np.int32)]  # active candidates are grouped by child
        value = [np.ones(n_eta)]
        for columns, coefficients in self._restrict([self._pool[n] for n in warm.rows]):
            lengths.append(np.array([len(columns)]))
            index.append(columns)
            value.append(coefficients)
        if len(warm.explicit):
            n_explicit = len(warm.explicit)
            tau = n_eta + np.searchsorted(samples, warm.explicit // instance.n_rivals)
            block = np.empty((n_explicit, n_eta + 1))
            block[:, :-1] = instance.coefficients.block(warm.explicit, warm.active)
            block[:, -1] = -1.0
            columns = np.empty((n_explicit, n_eta + 1), dtype=np.int32)
            columns[:, :-1] = np.arange(n_eta, dtype=np.int32)
            columns[:, -1] = tau
            lengths.append(np.full(n_explicit, n_eta + 1))
            index.append(columns.ravel())
            value.append(block.ravel())
        return np.concatenate(lengths), np.concatenate(index), np.concatenate(value)

    def _set_basis(self, basis: Basis) -> None:
        columns = np.concatenate([basis.eta, basis.tau])
        rows = np.concatenate([basis.convexity, basis.structural, basis.explicit])
        made = self._module.HighsBasis()
        made.col_status = self._statuses[columns].tolist()
        made.row_status = self._statuses[rows].tolist()
        made.valid = True
        self._highs.setBasis(made)

    def run(self, seconds: float, iterations: int = 2_000_000_000) -> Solution:
        """Solve what is loaded within limits."""
        highs, status = self._highs, self._module.HighsModelStatus
        highs.setOptionValue("time_limit", highs.getRunTime() + min(seconds, 1e9))
        highs.setOptionValue("simplex_iteration_limit", iterations)
        highs.run()
        self.runs += 1
        ended = highs.getModelStatus()
        if ended == status.kOptimal:
            return self._read("optimal")
        if ended == status.kInfeasible:
            return self._ray()
        if ended in (status.kTimeLimit, status.kIterationLimit):
            return self._read("limit")
        highs.clearSolver()  # unexpected: once more from scratch
        highs.run()
        if highs.getModelStatus() == status.kOptimal:
            return self._read("optimal")
        return self._nothing("limit")

    def _blocks(self) -> Blocks:
        """Where the blocks of the loaded programme are."""
        warm, n = self._warm, self._instance.n_variables
        n_eta, stop = len(warm.active), n + len(warm.rows)
        return Blocks(
            eta=slice(0, n_eta),
            tau=slice(n_eta, n_eta + len(warm.samples(self._instance.n_rivals))),
            convexity=slice(0, n),
            structural=slice(n, stop),
            explicit=slice(stop, stop + len(warm.explicit)),
        )

    def _read(self, outcome: Outcome) -> Solution:
        solution = self._highs.getSolution()
        values, duals = np.array(solution.col_value), np.array(solution.row_dual)
        duals *= self._unit
        at = self._blocks()
        if len(values) < at.eta.stop or len(duals) < at.structural.stop:
            return self._nothing(outcome)
        return Solution(
            outcome,
            -float(self._highs.getObjectiveValue()) * self._unit,
            values[at.eta],
            values[at.tau],
            -duals[at.convexity],
            duals[at.structural],
            duals[at.explicit],
        )

    def _ray(self) -> Solution:
        """Multipliers whose combination of the rows no allowed point satisfies."""
        _, exists, ray = self._highs.getDualRay()
        if not exists:
            return self._nothing("infeasible")
        values, at, empty = np.array(ray), self._blocks(), np.zeros(0)
        rows = values[at.convexity], values[at.structural], values[at.explicit]
        return Solution("infeasible", -np.inf, empty, empty, *rows)

    @staticmethod
    def _nothing(outcome: Outcome) -> Solution:
        empty = np.zeros(0)
        return Solution(outcome, np.nan, empty, empty, empty, empty, empty)

    def basis(self) -> Basis:
        """Statuses after the last run."""
        made, at = self._highs.getBasis(), self._blocks()
        columns = np.array([int(s) for s in made.col_status], dtype=np.int8)
        rows = np.array([int(s) for s in made.row_status], dtype=np.int8)
        return Basis(
            columns[at.eta],
            columns[at.tau],
            rows[at.convexity],
            rows[at.structural],
            rows[at.explicit],
        )

    def add_probe_rows(self, rows: list[Row]) -> int:
        """Append structural rows without effect, to be used by :meth:`probe`; first index."""
        parts = self._restrict(rows)
        lengths = [len(columns) for columns, _ in parts]
        first = int(self._highs.getNumRow())
        free = np.full(len(rows), np.inf)
        self._highs.addRows(
            len(rows),
            -free,
            free,
            sum(lengths),
            np.cumsum([0, *lengths[:-1]]).astype(np.int32),
            np.concatenate([columns for columns, _ in parts]),
            np.concatenate([coefficients for _, coefficients in parts]),
        )
        return first

    def _restrict(self, rows: list[Row]) -> list[tuple[Any, FloatArray]]:
        """Columns and coefficients of structural rows among the active candidates."""
        active = self._warm.active
        place = np.full(self._instance.n_candidates, -1, dtype=np.int32)
        place[active] = np.arange(len(active), dtype=np.int32)
        columns = [place[row.index] for row in rows]
        pairs = zip(rows, columns, strict=True)
        return [(found[found >= 0], row.coefficient[found >= 0]) for row, found in pairs]

    def remember_basis(self) -> Any:
        """The basis as HiGHS has it, for :meth:`probe`."""
        return self._highs.getBasis()

    def probe(
        self, basis: Any, zero: IntArray, row: int | None, seconds: float, iterations: int
    ) -> tuple[Solution, float]:
        """Solve with allowed candidates fixed to zero and a probe row at one, then put all back.

        Returns the solution and the multiplier of the probe row.
        """
        highs = self._highs
        columns = np.flatnonzero(np.isin(self._warm.active, zero)).astype(np.int32)
        none = np.zeros(len(columns))
        highs.changeColsBounds(len(columns), columns, none, none)
        if row is not None:
            highs.changeRowBounds(row, 1.0, np.inf)
        highs.setBasis(basis)
        solution = self.run(seconds, iterations)
        multiplier = 0.0
        if row is not None and solution.outcome != "infeasible" and len(solution.eta):
            multiplier = float(highs.getSolution().row_dual[row]) * self._unit
        highs.changeColsBounds(len(columns), columns, none, np.full(len(columns), np.inf))
        if row is not None:
            highs.changeRowBounds(row, -np.inf, np.inf)
        return solution, multiplier
