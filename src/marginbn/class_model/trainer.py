"""Training of the class model: penalised conditional likelihood, with a certified gap.

The score of class c for a row x is linear in the parameters v (``basis.py``),

    s_c(x) = log share of c + v_c0 + sum_i a_i(c, x_i) + sum_(i,p) t_ip(c, x_i, x_p),

and v minimises, over rows n of weight w_n and class y_n,

    J(v) = sum_n w_n [ log sum_c exp s_c(x_n) - s_{y_n}(x_n) ]  +  1/2 sum_j lam_j v_j^2.

Two classes have a single score, that of the second against the first. J is strictly convex. With g
its gradient at v,

    J(v) - min J  <=  sum_j g_j^2 / (2 lam_j),

because J(u) >= J(v) + g'(u - v) + 1/2 sum_j lam_j (u_j - v_j)^2, and the right side is smallest at
u_j = v_j - g_j / lam_j. So one gradient certifies parameters, however they were found.

They are found by L-BFGS with (A' diag(h) A + diag(lam))^-1 as its initial matrix: A holds the
functions of the basis at the rows, h the curvature of their loss. That is L-BFGS in the coordinates
of its Cholesky factor. In place of the whole matrix stand its blocks of one table each, and one of
the first (smoothest) parameters of all tables; the sum of their inverses does nearly as well at a
fraction of the cost. Every pass over the rows gathers from tables and scatters to tables
(``kernels/gather.py``), so more parameters than rows need no other method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from threadpoolctl import ThreadpoolController

from marginbn.class_model.basis import Design, TableCells, family_pairs
from marginbn.class_model.kernels.inputs import Codes
from marginbn.data.encode import IsLate
from marginbn.network.wording import percent
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.encoded import EncodedData, contingency
from marginbn.problem.structure import Structure

Multiply = Callable[[FloatArray], FloatArray]
"""Product of a matrix with each row of an array (scores, parameters)."""

OFFSET_PRECISION = 1.0 / 900.0
"""Weak: 30 nats from the class shares are one standard deviation."""

CERTIFIED = 1e-6
"""Certified gap of the saved parameters, relative to J."""

CLOSE_ENOUGH, RECENT = 1e-4, 6
"""Parameters under validation are close enough when so many values of J in a row differ by less
than this part of it: what is left changes the validated loss by less than its standard error.
"""

MEMORY, PATIENCE, LEAST_STEPS, MOST_STEPS = 12, 60, 10, 3000
"""Steps that L-BFGS remembers, after which the curvature is measured again, that are made however
late it is, and after which a fit ends in any case, with the gap that is left.
"""

ENOUGH, SHORTEST = 1e-4, 1e-9
"""Part of the decrease promised by the slope that a step must bring; the shortest step tried."""

CURVATURE_ROWS, CURVATURE_VALUES = 10_000, 2_000_000
"""Rows, and rows times tables, at most, that the curvature is measured on: below a second."""

MOST_JOINT = 200
"""Parameters of the block that all tables share."""

LEAST_CURVATURE = 1e-4
"""Of a row of weight one: rows that are certain now may not stay so."""

ROUNDING = 1e-12
"""Part of the largest curvature that keeps a matrix positive definite in spite of rounding."""


FEW_CODES = 1_000_000
"""Codes that numpy looks up before the compiler would be loaded (0.5 s)."""


@cache
def loops() -> Any:
    """The compiled loops; the first call loads the compiler."""
    from marginbn.class_model.kernels import gather

    return gather


class Precisions(NamedTuple):
    """Precisions of the three groups of parameters; ``family=inf``: there are no family tables."""

    line: float
    effect: float
    family: float


def log_shares(data: EncodedData) -> FloatArray:
    """Log shares of the classes, half a row added to each; of two classes their difference."""
    counts = contingency(data, (0,)) + 0.5
    shares: FloatArray = np.log(counts / counts.sum())
    return shares[1:] - shares[:1] if data.n_classes <= 2 else shares


@dataclass(frozen=True, eq=False)
class ClassModel:
    """Trained tables: p(class | features) is the softmax of their sums.

    Two classes have one score, that of the second.
    """

    design: Design  # cells of the features, and the pairs that have a family table
    precisions: Precisions
    log_shares: FloatArray  # of the training classes; of two classes their difference
    parameters: FloatArray  # (scores, parameters), see Design
    objective: float = math.nan  # J at the parameters
    gap: float = math.inf  # how far J is above its minimum at most, relative to J

    @cached_property
    def tables(self) -> FloatArray:
        """All tables, (scores, entries)."""
        layout = self.design.layout
        tables = np.empty((len(self.parameters), layout.first_entry[-1]))
        if loops.cache_info().currsize:
            loops().expand(layout, self.parameters, tables)
            return tables
        parts = np.split(tables, layout.first_entry[1:-1], axis=1)
        parameters = np.split(self.parameters, layout.first_parameter[:-1], axis=1)[1:]
        sides = zip(self.design.tables, self.design.products, strict=True)
        for part, own, (((_, a), (_, b)), products) in zip(parts, parameters, sides, strict=True):
            values = np.zeros((len(own), a.basis.shape[1], b.basis.shape[1]))
            values[:, products[:, 0], products[:, 1]] = own
            part[:] = (a.basis @ values @ b.basis.T).reshape(part.shape)
        return tables

    @cached_property
    def offset(self) -> FloatArray:
        """Scores (classes,) of a row of which nothing is known; the first of two is zero."""
        offset = self.log_shares + self.parameters[:, 0]
        return np.append(0.0, offset) if len(offset) < 2 else offset

    def gather(self, codes: Codes) -> FloatArray:
        """Scores (classes, rows) of compact codes."""
        layout = self.design.layout
        scores = np.repeat(self.offset[:, np.newaxis], codes.shape[1], axis=1)
        if loops.cache_info().currsize or codes.size > FEW_CODES:
            loops().gather(layout, codes, self.offset, self.tables, scores)
            return scores
        first_entries = layout.first_entry[:-1]
        for first, ((i, a), (j, b)) in zip(first_entries, self.design.tables, strict=True):
            entries = first + a.cell_of[codes[i]] * len(b.basis) + b.cell_of[codes[j]]
            scores[-len(self.tables) :] += self.tables[:, entries]
        return scores

    def scores(self, codes: NDArray[np.integer[Any]]) -> FloatArray:
        """Scores (rows, classes) of cells (rows, features), -1 for unknown.

        Their softmax is the posterior.
        """
        return self.gather(self.design.cells.compact(codes)).T

    def evaluate(self, data: EncodedData) -> tuple[float, FloatArray]:
        """J and its gradient, for training rows of cells, class first."""
        layout, rows = self.design.layout, (data.by_column[1:], data.by_column[0], data.weights)
        by_offset, by_tables = np.zeros_like(self.offset), np.zeros_like(self.tables)
        loss: float = loops().loss_gradient(
            layout, *rows, self.offset, self.tables, by_offset, by_tables
        )
        gradient = np.empty_like(self.parameters)
        loops().contract(layout, by_tables, gradient)
        gradient[:, 0] = by_offset[len(by_offset) - len(gradient) :]
        pull = self.precision * self.parameters
        return loss + 0.5 * float(np.vdot(pull, self.parameters)), gradient + pull

    @cached_property
    def precision(self) -> FloatArray:
        """lam of each parameter of a score."""
        by_group = np.array(self.precisions, dtype=np.float64)[self.design.groups]
        return np.append(OFFSET_PRECISION, by_group)

    @property
    def nearness(self) -> str:
        """How near the parameters are to their optimum; a gap above 1 says nothing, as J > 0."""
        if self.gap < 1.0:
            return f"within {percent(max(self.gap, 1e-6))} of their optimum"
        return "with no bound on the distance to their optimum"

    def bound_gap(self, value: float, gradient: FloatArray) -> float:
        """Certified gap (J - min J) / J."""
        bound = float((gradient**2 / (2.0 * self.precision)).sum())
        return bound / value if bound else 0.0


# --------------------------------------------------------------------------- preconditioning


class Curvature:
    """Blocks of A' diag(h) A: of each table, and of the first parameters of all tables."""

    def __init__(self, model: ClassModel, data: EncodedData) -> None:
        design, n_rows = model.design, data.n_samples
        values = n_rows * len(design.tables)
        step = max(-(-n_rows // CURVATURE_ROWS), -(-values // CURVATURE_VALUES))
        codes = data.by_column[1:, ::step].copy()
        share = softmax(model.gather(codes), axis=0)
        h = np.maximum((share * (1.0 - share)).mean(axis=0), LEAST_CURVATURE)
        root = np.sqrt(step * data.weights[::step] * h)[:, np.newaxis]
        m = MOST_JOINT // max(1, len(design.tables))
        first = design.layout.first_parameter
        places, joint = [np.zeros(1, dtype=np.int64)], [root]
        self.blocks = []
        for t in range(len(design.tables)):
            own_places, own = np.arange(first[t], first[t + 1]), design.table_rows(codes, t) * root
            self.blocks.append((own_places, own.T @ own))
            places.append(own_places[:m])
            joint.append(own[:, :m])
        shared = np.concatenate(joint, axis=1)
        self.joint = np.concatenate(places), shared.T @ shared

    def invert(self, precision: FloatArray) -> Multiply:
        """The product with the sum of the inverses of the blocks, each plus its precisions."""
        by_size: dict[int, list[tuple[IntArray, FloatArray]]] = {}
        for block in self.blocks:
            by_size.setdefault(len(block[0]), []).append(block)
        inverses = []
        for blocks in ([self.joint], *by_size.values()):
            places = np.array([own for own, _ in blocks])
            whole = np.array([matrix for _, matrix in blocks])
            diagonal = precision[places] + ROUNDING * np.abs(whole).max(initial=0.0)
            whole += diagonal[:, :, np.newaxis] * np.eye(places.shape[1])
            inverses.append((places, np.linalg.inv(whole)))

        def multiply(gradient: FloatArray) -> FloatArray:
            product = np.zeros_like(gradient)
            for places, inverse in inverses:
                product[:, places] += (gradient[:, places][:, :, np.newaxis] @ inverse)[:, :, 0]
            return product

        return multiply


# -------------------------------------------------------------------------------- minimising


class _Memory:
    """The last steps of L-BFGS, and products with the matrix that they imply."""

    def __init__(self, initial: Multiply) -> None:
        self._initial = initial
        self._scale = 1.0
        self._steps: list[tuple[FloatArray, FloatArray, float]] = []

    def add(self, step: FloatArray, change: FloatArray) -> None:
        """Take in a step and the change of the gradient along it."""
        product = float(np.vdot(step, change))
        if product > 0.0:
            self._steps = [*self._steps[1 - MEMORY :], (step, change, product)]
            self._scale = product / float(np.vdot(change, self._initial(change)))

    def multiply(self, gradient: FloatArray) -> FloatArray:
        """The approximate inverse of the second derivative times the gradient."""
        rest, shares = gradient.copy(), []
        for step, change, product in reversed(self._steps):
            shares.append(float(np.vdot(step, rest)) / product)
            rest -= shares[-1] * change
        result = self._scale * self._initial(rest)
        for (step, change, product), share in zip(self._steps, reversed(shares), strict=True):
            result += (share - float(np.vdot(change, result)) / product) * step
        return result


class _Descent:
    """A model on the way to the minimum of J."""

    def __init__(self, model: ClassModel, data: EncodedData) -> None:
        self.data = data
        self.model = model
        self.value, self.gradient = model.evaluate(data)
        self.n_steps = 0

    @property
    def gap(self) -> float:
        """Certified gap, relative to J."""
        return self.model.bound_gap(self.value, self.gradient)

    def run(self, curvature: Curvature, certify: bool, is_late: IsLate) -> bool:
        """Make at most :data:`PATIENCE` steps; whether more of them may help."""
        memory = _Memory(curvature.invert(self.model.precision))
        values = [math.inf] * RECENT
        for _ in range(PATIENCE):
            values = [*values[1:], self.value]
            is_close = not certify and values[0] - self.value <= CLOSE_ENOUGH * self.value
            is_cut = self.n_steps >= LEAST_STEPS and is_late()
            if is_close or is_cut or self.gap <= CERTIFIED or not self._step(memory):
                return False
        return self.n_steps < MOST_STEPS

    def _step(self, memory: _Memory) -> bool:
        """Make the longest step of 1, 1/2, ... that decreases J enough; False if rounding hides
        every decrease.
        """
        direction = memory.multiply(self.gradient)
        slope, length = float(np.vdot(self.gradient, direction)), 1.0
        while length > SHORTEST:
            step = -length * direction
            model = replace(self.model, parameters=self.model.parameters + step)
            value, gradient = model.evaluate(self.data)
            if value <= self.value - ENOUGH * length * slope:
                memory.add(step, gradient - self.gradient)
                self.model, self.value, self.gradient = model, value, gradient
                self.n_steps += 1
                return True
            length /= 2.0
        return False


class Trainer:
    """Fits a design to rows of cells, each fit starting from the parameters of the one before."""

    def __init__(self, design: Design, data: EncodedData) -> None:
        loops()
        self.design = design
        self.data = data
        self._log_shares = log_shares(data)
        self._parameters = np.zeros((len(self._log_shares), design.n_parameters))
        self._curvatures: dict[Design, Curvature] = {}

    def fit(
        self, precisions: Precisions, *, certify: bool = False, is_late: IsLate = lambda: False
    ) -> ClassModel:
        """Minimise J: to the certified gap, or closely enough to be judged on held-out rows."""
        design = self.design if math.isfinite(precisions.family) else self.design.without_pairs
        start = self._parameters[:, : design.n_parameters].copy()
        model = ClassModel(design, precisions, self._log_shares, start)
        # One thread: the matrices are small, and threads that wait for one another take far longer.
        with _thread_pools().limit(limits=1, user_api="blas"):
            descent = _Descent(model, self.data)
            may_help = descent.gap > CERTIFIED
            while may_help:
                if design not in self._curvatures:
                    self._curvatures[design] = Curvature(descent.model, self.data)
                may_help = descent.run(self._curvatures[design], certify, is_late)
                if may_help:
                    del self._curvatures[design]
        self._parameters[:, : design.n_parameters] = descent.model.parameters
        return replace(descent.model, objective=descent.value, gap=descent.gap)


def train_class_model(
    cells: TableCells,
    structure: Structure,
    data: EncodedData,
    precisions: Precisions,
    is_late: IsLate = lambda: False,
) -> ClassModel:
    """Train the tables of a structure on rows of cells, to the certified gap unless it is late."""
    trainer = Trainer(Design(cells, family_pairs(structure)), data)
    return trainer.fit(precisions, certify=True, is_late=is_late)


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()
