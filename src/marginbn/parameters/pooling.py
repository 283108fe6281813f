"""Validated paths of ridges, and the weights at which several models are one.

A model (a profile with or without interactions) is trained on parts of the rows and judged on the
others, for all ridges of a path. What it says about rows it has not seen decides its ridge, and
then its share in the whole: the scores of several models are added up,

    s(x) = sum_k w_k s_k(x),     w >= 0 with the least log loss on the rows not seen.

A sum of tables is tables again: the pool is still *one* network, with the arcs of all its models.
It is better than its best member, because it also chooses how far to trust each, and how far to
trust them at all: the weights need not sum to one.

**Little time.** A model that must be had gives every ridge of its path an equal share of the time
that is left, and goes on to the next when it is over. It is trained on all rows with as many
iterations at each ridge as it was validated with.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from marginbn.data.labelled import Split
from marginbn.data.ordinal import OrdinalData
from marginbn.parameters.design import Design
from marginbn.parameters.training import ITERATIONS, RIDGES, Loss, Trainer, conditional_loss

FloatArray = NDArray[np.float64]
Model = Callable[[OrdinalData], Design]
"""What a model makes of training rows."""

FIRST_STOP = 3.0
"""Above this ridge a path goes on even if it gets worse."""

CAUTION = 0.25
"""How much a pool minds that its weights do not sum to one, in units of a row."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to train on, and rows to be judged by, in the same bins.

    ``codes`` (n, n_variables) have the class first and -1 for what training never saw.
    """

    train: OrdinalData
    codes: NDArray[np.integer]
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class ValidatedModel:
    """A model at its best ridge.

    ``scores`` (rows, classes) are those of the held-out rows of all parts, one after the other;
    ``losses`` the mean log loss at each ridge of the path, ``iterations`` how many were allowed
    there.
    """

    model: Model
    name: str
    loss: Loss
    ridge: float
    scores: FloatArray
    losses: tuple[float, ...]
    iterations: tuple[int, ...]

    @property
    def cut_short(self) -> bool:
        """Whether time ended the training at some ridge."""
        return min(self.iterations) < ITERATIONS

    def refit(self, rows: OrdinalData) -> Trainer:
        """Trained on all rows, along the path to the ridge."""
        trainer = Trainer(self.model(rows), self.loss)
        for ridge, iterations in zip(RIDGES, self.iterations, strict=False):
            if ridge >= self.ridge:
                trainer.step(ridge, iterations=iterations)
        return trainer


def take_parts(rows: OrdinalData, splits: Sequence[Split]) -> list[Part]:
    """Parts of rows that keep their bins."""
    data = rows.data
    return [Part(rows.take(a).merged(), data.codes[b], data.weights[b]) for a, b in splits]


def validate_model(
    model: Model,
    name: str,
    parts: Sequence[Part],
    loss: Loss = conditional_loss,
    deadline: float = math.inf,
    *,
    needed: bool = False,
) -> ValidatedModel:
    """Go along the path of ridges, in all parts side by side; two rises of the loss end it.

    After the ``deadline``, a time of :func:`time.monotonic`, ``TimeoutError`` is raised; a model
    that is ``needed`` makes fewer iterations instead.
    """
    trainers = [Trainer(model(part.train), loss) for part in parts]
    judges = held_out(parts)
    losses: list[float] = []
    iterations: list[int] = []
    best, rises = np.inf, 0
    for k, ridge in enumerate(RIDGES):
        made = []
        for j, trainer in enumerate(trainers):
            now = time.monotonic()
            if now > deadline and not needed:
                raise TimeoutError(name)
            left = (len(RIDGES) - k) * len(trainers) - j
            made.append(trainer.step(ridge, now + (deadline - now) / left if needed else math.inf))
        iterations.append(max(n or ITERATIONS for n in made))
        pairs = zip(trainers, parts, strict=True)
        scores = np.concatenate([t.scores(part.codes) for t, part in pairs])
        found = _path_loss(scores, judges, loss)
        losses.append(found)
        if found < best:
            best, rises, chosen = found, 0, (ridge, scores)
        else:
            rises += 1
        if rises >= 2 and ridge <= FIRST_STOP:
            break
    return ValidatedModel(model, name, loss, *chosen, tuple(losses), tuple(iterations))


def _path_loss(scores: FloatArray, judges: Judges, loss: Loss) -> float:
    """Mean log loss; scores of a margin have no scale of their own, so the best one is taken."""
    if loss is conditional_loss:
        return float(np.average(judges.losses(scores), weights=judges.weights))
    return pool([scores], judges).loss


@dataclass(frozen=True, eq=False)
class Judges:
    """Classes and weights of the held-out rows of all parts."""

    classes: NDArray[np.intp]
    weights: FloatArray

    def losses(self, scores: FloatArray) -> FloatArray:
        """Minus log posterior of the class of every row."""
        own = scores[np.arange(len(scores)), self.classes]
        losses: FloatArray = logsumexp(scores, axis=1) - own
        return losses


def held_out(parts: Sequence[Part]) -> Judges:
    """The rows that judge."""
    classes = np.concatenate([part.codes[:, 0] for part in parts]).astype(np.intp)
    return Judges(classes, np.concatenate([part.weights for part in parts]))


@dataclass(frozen=True, eq=False)
class Pool:
    """Weights of the models, and what the sum says about the held-out rows."""

    weights: FloatArray
    scores: FloatArray
    loss: float


def pool(scores: Sequence[FloatArray], judges: Judges) -> Pool:
    """The weights above: a convex problem with as many unknowns as there are models."""
    models = np.stack(scores)
    rows, total = np.arange(models.shape[1]), judges.weights.sum()
    shares = judges.weights / total
    own = models[:, rows, judges.classes] @ shares

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        pooled = np.tensordot(weights, models, axes=1)
        normaliser = logsumexp(pooled, axis=1)
        posterior = np.exp(pooled - normaliser[:, np.newaxis]) * shares[:, np.newaxis]
        excess = weights.sum() - 1.0
        value = float(shares @ normaliser) - weights @ own + CAUTION / total * excess**2
        expected = np.einsum("knc,nc->k", models, posterior)
        return value, expected - own + 2.0 * CAUTION / total * excess

    start = np.full(len(models), 1.0 / len(models))
    bounds = [(0.0, None)] * len(models)
    found = minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B")
    pooled = np.tensordot(found.x, models, axes=1)
    loss = float(shares @ judges.losses(pooled))
    return Pool(found.x, pooled, loss)
