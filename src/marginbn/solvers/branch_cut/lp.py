"""Node programs on HiGHS: one model that rows and columns join and leave.

Building a program from scratch in every round costs more than solving it, so the model stays:
:meth:`Program.load` compares the state that is wanted with the one that is there. Rows that are not
wanted are deleted; columns that are not are fixed to zero until they are many. The program is a
minimisation; :class:`Solution` speaks of the maximisation again. Nothing here is trusted as a
bound.

HiGHS has absolute tolerances, so it sees the objective divided by the power of two below the
problem's scale, and whatever is in the unit of the objective is multiplied by it on the way back.
Both are exact: weights in another unit give the same programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from marginbn.problem.array_types import BoolArray, CodeArray, FloatArray, IntArray
from marginbn.solvers.branch_cut.arrays import Instance
from marginbn.solvers.branch_cut.cuts import RowPool
from marginbn.solvers.branch_cut.warm import LOWER, Basis, Warm
from marginbn.solvers.milp import load_highspy

TOLERANCE = 1e-9
"""Primal and dual feasibility tolerance of the simplex method."""

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


class PartPlaces(NamedTuple):
    """Places of a state's columns and rows in the model, see ``warm.py``."""

    eta: IntArray
    tau: IntArray
    structural: IntArray
    explicit: IntArray


class Entries(NamedTuple):
    """Rows one after the other."""

    lengths: IntArray
    columns: CodeArray  # places in the model
    coefficients: FloatArray


class Program:
    """One HiGHS model for all programs of a search; :meth:`load` comes first.

    Columns are named by the candidate k or, for tau of sample m, by n_candidates + m; rows by the
    number in the pool or, for margin row r, by -1 - r. The first n rows are the convexity rows.
    """

    _at: PartPlaces  # where the parts of the loaded state are

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
        self._numbers = {status: place for place, status in enumerate(self._statuses)}
        self._columns = np.zeros(0, dtype=np.int64)  # names
        self._rows = np.zeros(0, dtype=np.int64)
        self._place = np.full(instance.n_candidates + instance.n_samples, -1, dtype=np.int32)
        self._open = np.zeros(0, dtype=bool)  # columns that are not fixed to zero
        self._costed = -1  # columns whose costs are set
        n, nothing = instance.n_variables, np.zeros(0, dtype=np.int32)
        starts = np.zeros(n, dtype=np.int32)  # convexity rows, without columns yet
        self._highs.addRows(n, np.ones(n), np.ones(n), 0, starts, nothing, np.zeros(0))

    # ------------------------------------------------------------------ loading

    def load(self, warm: Warm, allowed: BoolArray, follows: bool = False) -> None:
        """Turn the model into the program of a state; active candidates not allowed are fixed to
        zero.

        Where the state ``follows`` the last run, with new rows and columns only, the simplex method
        goes on from where it stands; otherwise from the state's basis.
        """
        tau = self._instance.n_candidates + warm.samples(self._instance.n_rivals)
        rows = np.concatenate([np.array(warm.rows, dtype=np.int64), -1 - warm.explicit])
        self._update_columns(np.concatenate([warm.active, tau]))
        self._update_rows(rows)
        order, split = np.argsort(self._rows, kind="stable"), len(warm.rows)
        places = order[np.searchsorted(self._rows, rows, sorter=order)] + self._instance.n_variables
        eta, tau = self._place[warm.active].astype(np.int64), self._place[tau].astype(np.int64)
        self._at = PartPlaces(eta, tau, places[:split], places[split:])
        self._set_costs(warm)
        self._set_bounds(allowed)
        if not follows:
            self._set_basis(warm.basis)

    def _update_columns(self, wanted: IntArray) -> None:
        """Delete the columns that are no longer wanted, where they are many or carry a cost, and
        append those that are missing.
        """
        first_tau = self._instance.n_candidates
        stays = np.zeros(len(self._place), dtype=bool)
        stays[wanted] = True
        gone = ~stays[self._columns]
        if np.count_nonzero(gone) <= len(wanted):  # few candidates may wait, fixed to zero
            gone &= self._columns >= first_tau
        if gone.any():
            places = np.flatnonzero(gone).astype(np.int32)
            self._highs.deleteCols(len(places), places)
            self._place[self._columns[gone]] = -1
            self._columns, self._open = self._columns[~gone], self._open[~gone]
            self._place[self._columns] = np.arange(len(self._columns), dtype=np.int32)
        new = wanted[self._place[wanted] < 0]
        if len(new):
            self._append_columns(new)

    def _append_columns(self, new: IntArray) -> None:
        """Columns with their entries in the rows that are there."""
        instance, first_tau = self._instance, self._instance.n_candidates
        n, is_eta = instance.n_variables, new < first_tau
        eta = new[is_eta]
        at = np.full(instance.n_candidates, -1, dtype=np.int64)
        at[eta] = np.flatnonzero(is_eta)
        row_parts, column_parts = [instance.child[eta]], [at[eta]]
        value_parts = [np.ones(len(eta))]
        structural = np.flatnonzero(self._rows >= 0)
        owner, candidates, coefficients = self._pool.entries(self._rows[structural])
        hit = np.flatnonzero(at[candidates] >= 0)
        column_parts.append(at[candidates[hit]])
        row_parts.append(n + structural[owner[hit]])
        value_parts.append(coefficients[hit])
        explicit = np.flatnonzero(self._rows < 0)
        if len(explicit):
            block = instance.coefficients.block(-1 - self._rows[explicit], eta)
            row_parts.append(np.repeat(n + explicit, len(eta)))
            column_parts.append(np.tile(at[eta], len(explicit)))
            value_parts.append(block.ravel())
        column, row = np.concatenate(column_parts), np.concatenate(row_parts)
        order = np.lexsort((row, column))
        starts = np.searchsorted(column[order], np.arange(len(new)))
        self._highs.addCols(
            len(new),
            np.zeros(len(new)),  # see _set_costs
            np.where(is_eta, 0.0, -np.inf),
            np.where(is_eta, np.inf, instance.gamma),
            len(column),
            starts.astype(np.int32),
            row[order].astype(np.int32),
            np.concatenate(value_parts)[order],
        )
        self._place[new] = len(self._columns) + np.arange(len(new), dtype=np.int32)
        self._columns = np.concatenate([self._columns, new])
        self._open = np.concatenate([self._open, np.ones(len(new), dtype=bool)])
        self._costed = -1

    def _update_rows(self, wanted: IntArray) -> None:
        """Delete the rows that are no longer wanted and append those that are missing."""
        n = self._instance.n_variables
        gone = ~np.isin(self._rows, wanted)
        if gone.any():
            places = (n + np.flatnonzero(gone)).astype(np.int32)
            self._highs.deleteRows(len(places), places)
            self._rows = self._rows[~gone]
        new = wanted[~np.isin(wanted, self._rows)]
        structural, explicit = new[new >= 0], new[new < 0]
        if len(structural):
            self._append_rows(self._structural_rows(structural), self._pool.rhs(structural))
        if len(explicit):
            self._append_rows(self._margin_rows(-1 - explicit), np.zeros(len(explicit)))
        self._rows = np.concatenate([self._rows, structural, explicit])

    def _append_rows(self, made: Entries, lower: FloatArray) -> None:
        ends = np.cumsum(made.lengths)
        self._highs.addRows(
            len(lower),
            lower,
            np.full(len(lower), np.inf),
            len(made.columns),
            (ends - made.lengths).astype(np.int32),
            made.columns,
            made.coefficients,
        )

    def _structural_rows(self, numbers: IntArray) -> Entries:
        """Rows of the pool over the columns that are there."""
        owner, candidates, coefficients = self._pool.entries(numbers)
        columns = self._place[candidates]
        hit = np.flatnonzero(columns >= 0)
        lengths = np.bincount(owner[hit], minlength=len(numbers))
        return Entries(lengths, columns[hit], coefficients[hit])

    def _margin_rows(self, numbers: IntArray) -> Entries:
        """Margin rows: a . eta - tau."""
        instance, first_tau = self._instance, self._instance.n_candidates
        places = np.flatnonzero(self._columns < first_tau).astype(np.int32)
        block = instance.coefficients.block(numbers, self._columns[places])
        tau = self._place[first_tau + numbers // instance.n_rivals]
        columns = np.column_stack([np.tile(places, (len(numbers), 1)), tau])
        coefficients = np.column_stack([block, np.full(len(numbers), -1.0)])
        lengths = np.full(len(numbers), columns.shape[1])
        return Entries(lengths, columns.ravel(), coefficients.ravel())

    def _set_costs(self, warm: Warm) -> None:
        """Costs of the columns, in HiGHS' unit; those of a linear problem never change."""
        instance = self._instance
        first_tau, count = instance.n_candidates, len(self._columns)
        if instance.n_samples == 0 and self._costed == count:
            return
        eta = self._columns < first_tau
        cost = np.empty(count)
        cost[eta] = -warm.cost[self._columns[eta]]
        cost[~eta] = -instance.weights[self._columns[~eta] - first_tau]
        self._highs.changeColsCost(count, np.arange(count, dtype=np.int32), cost / self._unit)
        self._costed = count

    def _set_bounds(self, allowed: BoolArray) -> None:
        """Open the columns of active and allowed candidates, fix the others to zero."""
        eta = self._columns < self._instance.n_candidates
        wanted = np.ones(len(self._columns), dtype=bool)
        wanted[eta] = allowed[self._columns[eta]]
        waits = np.ones(len(wanted), dtype=bool)
        waits[self._at.eta] = False
        waits[self._at.tau] = False
        wanted &= ~waits
        changed = np.flatnonzero(wanted != self._open).astype(np.int32)
        if len(changed):
            upper = np.where(wanted[changed], np.inf, 0.0)
            self._highs.changeColsBounds(len(changed), changed, np.zeros(len(changed)), upper)
            self._open = wanted

    def _set_basis(self, basis: Basis | None) -> None:
        if basis is None:
            self._highs.setBasis()
            return
        at, n = self._at, self._instance.n_variables
        columns = np.full(len(self._columns), LOWER, dtype=np.int8)
        columns[at.eta], columns[at.tau] = basis.eta, basis.tau
        rows = np.empty(n + len(self._rows), dtype=np.int8)
        rows[:n] = basis.convexity
        rows[at.structural], rows[at.explicit] = basis.structural, basis.explicit
        made = self._module.HighsBasis()
        made.col_status = self._statuses[columns].tolist()
        made.row_status = self._statuses[rows].tolist()
        made.valid = True
        self._highs.setBasis(made)

    # ------------------------------------------------------------------ solving

    def run(self, seconds: float, iterations: int = 2_000_000_000) -> Solution:
        """Solve what is loaded within limits."""
        highs, status = self._highs, self._module.HighsModelStatus
        highs.setOptionValue("time_limit", highs.getRunTime() + min(seconds, 1e9))
        highs.setOptionValue("simplex_iteration_limit", iterations)
        highs.run()
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

    def _read(self, outcome: Outcome) -> Solution:
        solution = self._highs.getSolution()
        values, duals = np.array(solution.col_value), np.array(solution.row_dual)
        n, at = self._instance.n_variables, self._at
        if len(values) < len(self._columns) or len(duals) < n + len(self._rows):
            return self._nothing(outcome)
        duals *= self._unit
        return Solution(
            outcome,
            -float(self._highs.getObjectiveValue()) * self._unit,
            values[at.eta],
            values[at.tau],
            -duals[:n],
            duals[at.structural],
            duals[at.explicit],
        )

    def _ray(self) -> Solution:
        """Multipliers whose combination of the rows no allowed point satisfies."""
        _, exists, ray = self._highs.getDualRay()
        if not exists:
            return self._nothing("infeasible")
        values, at, empty = np.array(ray), self._at, np.zeros(0)
        convexity = values[: self._instance.n_variables]
        rows = convexity, values[at.structural], values[at.explicit]
        return Solution("infeasible", -np.inf, empty, empty, *rows)

    @staticmethod
    def _nothing(outcome: Outcome) -> Solution:
        empty = np.zeros(0)
        return Solution(outcome, np.nan, empty, empty, empty, empty, empty)

    def basis(self) -> Basis:
        """Statuses after the last run."""
        made, at = self._highs.getBasis(), self._at
        number = self._numbers
        columns = np.array([number[s] for s in made.col_status], dtype=np.int8)
        rows = np.array([number[s] for s in made.row_status], dtype=np.int8)
        return Basis(
            columns[at.eta],
            columns[at.tau],
            rows[: self._instance.n_variables],
            rows[at.structural],
            rows[at.explicit],
        )

    # ------------------------------------------------------------------ strong branching

    def begin_trials(self, numbers: list[int]) -> tuple[int, Any]:
        """Append structural rows without effect, for :meth:`solve_child`; the index of the first,
        and the basis as HiGHS has it.
        """
        first = int(self._highs.getNumRow())
        if numbers:
            rows = self._structural_rows(np.array(numbers, dtype=np.int64))
            self._append_rows(rows, np.full(len(numbers), -np.inf))
        return first, self._highs.getBasis()

    def end_trials(self, first: int) -> None:
        """Delete the rows again."""
        places = np.arange(first, int(self._highs.getNumRow()), dtype=np.int32)
        if len(places):
            self._highs.deleteRows(len(places), places)

    def solve_child(
        self, basis: Any, zero: IntArray, row: int | None, seconds: float, iterations: int
    ) -> tuple[Solution, float]:
        """Solve with allowed candidates fixed to zero and a trial row at one, then put all back.

        Returns the solution and the multiplier of the trial row.
        """
        highs = self._highs
        columns = self._place[zero]
        columns = columns[columns >= 0]
        columns = columns[self._open[columns]]
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
