"""Parameters that maximise the conditional likelihood of the class, or its margin.

With scores s_c(x) linear in v (``design.py``) and rows n of weight w_n and class y_n

    conditional   J(v) = sum_n w_n [ log sum_c exp s_c(x_n) - s_{y_n}(x_n) ]   +  ridge/2 |v|^2
    margin        J(v) = sum_n w_n hinge(1 - m_n)                              +  ridge/2 |v|^2,
                  m_n = s_{y_n}(x_n) - max_{c != y_n} s_c(x_n)                 (the margin of eq. 9)

The first is strictly convex: one minimum, whatever the structure, because the tables are not
normalised yet (``normalise.py`` does that without changing the posterior). In the second hinge and
maximum are rounded off so that it has a gradient; its scores know no scale, so they are divided by
a temperature afterwards.

Minimised by L-BFGS in parameters that are scaled by the curvature, along a path from a strong ridge
to a weak one, each starting from the one before. Where time is short, fewer iterations are made at
each ridge: the next one goes on from wherever the last one came to.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrsv
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from threadpoolctl import ThreadpoolController

from marginbn.parameters.class_scores import ClassScores
from marginbn.parameters.design import Design
from marginbn.problem.encoded import EncodedData

FloatArray = NDArray[np.float64]
Loss = Callable[[FloatArray, NDArray[np.intp], FloatArray], tuple[float, FloatArray]]
"""(scores (n, classes), classes (n,), weights (n,)) -> loss and its derivative by the scores"""

RIDGES = tuple(192.0 * 0.25**k for k in range(8))
"""From a prior that leaves little of any effect to one for concepts without noise."""

ITERATIONS = 100
LEAST_ITERATIONS = 10
"""So many are made at each ridge however short the time: a tenth of the work, a usable model."""

MEMORY = 10
FEW_CLASSES = 7
"""Up to here numpy reduces rows of the scores several times more quickly class by class, and adds
up in the same order.
"""

MOST_FACTORISED = 1500
"""Parameters per class up to which the second derivative is factorised."""


def over_classes(combine: np.ufunc, scores: FloatArray) -> FloatArray:
    """``combine`` reduced over the classes, for scores (n, classes)."""
    if scores.shape[1] > FEW_CLASSES:
        reduced: FloatArray = combine.reduce(scores, axis=1)
    else:
        reduced = reduce(combine, scores.T)
    return reduced


def conditional_loss(
    scores: FloatArray, classes: NDArray[np.intp], weights: FloatArray
) -> tuple[float, FloatArray]:
    """Minus the log posterior of the classes."""
    rows = np.arange(len(scores))
    shifted = scores - over_classes(np.maximum, scores)[:, np.newaxis]
    own = shifted[rows, classes]
    joint = np.exp(shifted)
    total = over_classes(np.add, joint)
    loss = float(weights @ (np.log(total) - own))
    joint *= (weights / total)[:, np.newaxis]
    joint[rows, classes] -= weights
    return loss, joint


SOFTENING = 0.1
KNEE = 0.25


def margin_loss(
    scores: FloatArray, classes: NDArray[np.intp], weights: FloatArray
) -> tuple[float, FloatArray]:
    """What a margin lacks to one; the maximum is a soft one, the knee of the hinge a parabola."""
    rows = np.arange(len(scores))
    rivals = scores.copy()
    rivals[rows, classes] = -np.inf
    rival = SOFTENING * logsumexp(rivals / SOFTENING, axis=1)
    lack = 1.0 - scores[rows, classes] + rival
    slope = np.clip((lack + KNEE) / (2.0 * KNEE), 0.0, 1.0)
    loss = np.where(lack > KNEE, lack, KNEE * slope**2)
    derivative = np.exp((rivals - rival[:, np.newaxis]) / SOFTENING) * slope[:, np.newaxis]
    derivative[rows, classes] = -slope
    return float(weights @ loss), derivative * weights[:, np.newaxis]


LOSSES: dict[str, Loss] = {"conditional": conditional_loss, "margin": margin_loss}
TrainedParameters = Literal["conditional", "margin"]


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Linear algebra on one thread: the matrices are small, and on a busy machine threads that
    wait for one another take a hundred times as long.
    """
    limited: AbstractContextManager[Any] = _thread_pools().limit(limits=1, user_api="blas")
    return limited


class Scaling(Protocol):
    """A linear change of variables after which the second derivative is near the identity."""

    def parameters(self, point: FloatArray) -> FloatArray:
        """Parameters at a point."""

    def point(self, parameters: FloatArray) -> FloatArray:
        """The point that has these parameters."""

    def gradient(self, gradient: FloatArray) -> FloatArray:
        """The derivative by the point from that by the parameters."""


@dataclass(frozen=True)
class Diagonal:
    """Point = scale times parameters."""

    scale: FloatArray

    def parameters(self, point: FloatArray) -> FloatArray:
        """As in :class:`Scaling`."""
        return point / self.scale

    def point(self, parameters: FloatArray) -> FloatArray:
        """As in :class:`Scaling`."""
        return parameters * self.scale

    def gradient(self, gradient: FloatArray) -> FloatArray:
        """As in :class:`Scaling`."""
        return gradient / self.scale


@dataclass(frozen=True)
class Triangular:
    """Point = L' parameters, where L L' is the second derivative."""

    factor: FloatArray

    def parameters(self, point: FloatArray) -> FloatArray:
        """As in :class:`Scaling`."""
        return self._solve(point, transposed=True)

    def point(self, parameters: FloatArray) -> FloatArray:
        """As in :class:`Scaling`."""
        return self.factor.T @ parameters

    def gradient(self, gradient: FloatArray) -> FloatArray:
        """As in :class:`Scaling`."""
        return self._solve(gradient, transposed=False)

    def _solve(self, right: FloatArray, *, transposed: bool) -> FloatArray:
        """Column by column: for two classes that is far quicker than a solver for many columns."""
        solved = np.empty_like(right)
        for c in range(right.shape[1]):
            solved[:, c] = dtrsv(self.factor, right[:, c], lower=1, trans=int(transposed))
        return solved


class Trainer:
    """A design with its newest parameters; :meth:`step` goes on to the next ridge."""

    def __init__(self, design: Design, loss: Loss = conditional_loss) -> None:
        self.design = design
        self.loss = loss
        data = design.rows.data
        self.offset = log_class_shares(data)
        self.classes = data.codes[:, 0].astype(np.intp)
        self.parameters = np.zeros((design.n_parameters, data.n_classes))

    def step(
        self, ridge: float, deadline: float = math.inf, iterations: int = ITERATIONS
    ) -> int | None:
        """Minimise J, starting from the newest parameters.

        After ``deadline``, a time of :func:`time.monotonic`, it ends as soon as the least number of
        iterations is made. Returns how many they were where that cut it short, else None.
        """
        with one_thread():
            return self._step(ridge, deadline, iterations)

    def _step(self, ridge: float, deadline: float, iterations: int) -> int | None:
        design, weights = self.design, self.design.rows.data.weights
        scaling, shape = self._scaling(ridge), self.parameters.shape

        def objective(point: FloatArray) -> tuple[float, FloatArray]:
            parameters = scaling.parameters(point.reshape(shape))
            scores = design.cells @ (design.basis @ parameters) + self.offset
            loss, residuals = self.loss(scores, self.classes, weights)
            gradient = design.transposed_basis @ (design.transposed_cells @ residuals)
            value = loss + 0.5 * ridge * float(np.vdot(parameters, parameters))
            return value, scaling.gradient(gradient + ridge * parameters).ravel()

        made, cut = 0, False

        def look_at_the_time(_: FloatArray) -> None:
            nonlocal made, cut
            made += 1
            if made >= LEAST_ITERATIONS and time.monotonic() > deadline:
                cut = True
                raise StopIteration

        found = minimize(
            objective,
            scaling.point(self.parameters).ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=look_at_the_time,
            options={"maxiter": iterations, "maxcor": MEMORY, "gtol": 1e-3, "ftol": 1e-7},
        )
        self.parameters = scaling.parameters(found.x.reshape(shape))
        return made if cut else None

    def _scaling(self, ridge: float) -> Scaling:
        """By the second derivative: all of it for two classes, its diagonal for more."""
        design, data = self.design, self.design.rows.data
        if data.n_classes != 2 or design.n_parameters > MOST_FACTORISED:
            return Diagonal(np.sqrt(design.curvature + ridge)[:, np.newaxis])
        posterior = softmax(self.scores(), axis=1)
        curvature = data.weights * posterior[:, 0] * posterior[:, 1]
        return Triangular(cholesky(design.second_derivative(curvature, ridge), lower=True))

    def scores(self, codes: NDArray[np.integer] | None = None) -> FloatArray:
        """Scores (n, n_classes) of rows of codes; of the training rows if none are given."""
        cells = self.design.cells if codes is None else self.design.encode(codes)
        scores: FloatArray = cells @ self.design.tables(self.parameters) + self.offset
        return scores

    def class_scores(self) -> ClassScores:
        """The newest parameters as tables."""
        return self.design.class_scores(self.parameters, self.offset)


def log_class_shares(data: EncodedData) -> FloatArray:
    """Logarithms of the class shares, half a row added to each."""
    weight = np.bincount(data.codes[:, 0], data.weights, data.n_classes) + 0.5
    shares: FloatArray = np.log(weight / weight.sum())
    return shares
