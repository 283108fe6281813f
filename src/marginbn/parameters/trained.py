"""A network trained for the class posterior: scores, tables, and answers for incomplete rows.

The models that are pooled (``pooling.py``) are the main effects alone and those with the
interactions of a structure, each in the profiles that the features allow. The pool becomes a proper
network (``normalise.py``) with a twin for missing features (``missing_features.py``).

**Background.** However sure the scores are, a row may come from elsewhere: the posterior is mixed
with 1/W of the class shares, W the total weight of the training rows. That costs at most 1/W in log
loss, and no row can cost more than log W and a little.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from marginbn.data.ordinal import OrdinalData
from marginbn.network.network import BayesianNetwork
from marginbn.parameters.class_scores import ClassScores, weighted_sum
from marginbn.parameters.design import (
    LINES,
    STEPS,
    Design,
    Interaction,
    Profile,
    coarse_groups,
    coarse_interaction,
)
from marginbn.parameters.missing_features import MissingFeatures
from marginbn.parameters.normalise import normalised_network
from marginbn.parameters.pooling import (
    Judges,
    Part,
    Pool,
    ValidatedModel,
    held_out,
    pool,
    validate_model,
)
from marginbn.parameters.training import Loss, Trainer, conditional_loss
from marginbn.problem.structure import Structure

FloatArray = NDArray[np.float64]
FindInteractions = Callable[[OrdinalData], Sequence[Interaction]]
"""What interacts, judged by training rows."""

NEGLIGIBLE = 1e-3
"""A model with less than this share of the weights is left out of the pool."""


def no_interactions(rows: OrdinalData) -> tuple[Interaction, ...]:
    """Main effects alone."""
    return ()


def structure_interactions(rows: OrdinalData, structure: Structure) -> tuple[Interaction, ...]:
    """A table for every family that has the class and two or more features with several groups."""
    families = [structure.parents[0]]
    families += [(*parents, i) for i, parents in enumerate(structure.parents) if 0 in parents]
    tables: dict[tuple[int, ...], Interaction] = {}
    for family in families:
        members = [v for v in family if v > 0 and coarse_groups(rows, v).max() > 0]
        if len(members) > 1:
            tables[tuple(sorted(members))] = coarse_interaction(rows, members)
    return tuple(tables.values())


def profiles_for(rows: OrdinalData) -> tuple[Profile, ...]:
    """Both profiles where a number has more than two bins; otherwise they coincide."""
    pairs = zip(rows.positions, rows.data.arities, strict=True)
    numbers = any(positions is not None and arity > 2 for positions, arity in pairs)
    return (LINES, STEPS) if numbers else (STEPS,)


MAIN_RIDGES = (48.0, 3.0)
"""The short path to the main effects that interactions are sought on top of."""


def main_posterior(rows: OrdinalData) -> FloatArray:
    """Posteriors (n, n_classes) of the rows under main effects alone, the mean of the profiles."""
    scores = []
    for profile in profiles_for(rows):
        trainer = Trainer(Design(rows, profile))
        for ridge in MAIN_RIDGES:
            trainer.step(ridge)
        scores.append(trainer.scores())
    posterior: FloatArray = softmax(np.mean(scores, axis=0), axis=1)
    return posterior


def _design(find: FindInteractions, profile: Profile, rows: OrdinalData) -> Design:
    return Design(rows, profile, find(rows))


def model_tasks(
    name: str,
    find: FindInteractions,
    parts: Sequence[Part],
    loss: Loss = conditional_loss,
    deadline: float = math.inf,
    *,
    needed: bool = False,
) -> list[Callable[[], ValidatedModel]]:
    """What validates the model of some interactions, one task per profile; see
    :func:`~marginbn.parameters.pooling.validate_model`.

    Models that are ``needed`` come one after the other and share the time until the ``deadline``.
    """
    profiles = profiles_for(parts[0].train)
    ends = [deadline] * len(profiles)
    if needed and math.isfinite(deadline):
        ends = np.linspace(time.monotonic(), deadline, len(profiles) + 1)[1:].tolist()
    return [
        partial(
            validate_model,
            partial(_design, find, profile),
            f"{name}, {profile.name}",
            parts,
            loss,
            end,
            needed=needed,
        )
        for profile, end in zip(profiles, ends, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class PooledModels:
    """Validated models with their weights: a candidate for the network."""

    models: tuple[ValidatedModel, ...]
    pool: Pool
    losses: FloatArray  # of every held-out row

    @classmethod
    def of(cls, models: Sequence[ValidatedModel], judges: Judges) -> Self:
        """Pool what was validated."""
        pooled = pool([model.scores for model in models], judges)
        return cls(tuple(models), pooled, judges.losses(pooled.scores))

    def refit(self, rows: OrdinalData) -> ClassScores:
        """The sum of all models with a weight, trained on all rows."""
        weights = self.pool.weights
        used = np.flatnonzero(weights >= NEGLIGIBLE * weights.sum())  # all, if all weigh nothing
        scores = [self.models[k].refit(rows).class_scores() for k in used]
        return weighted_sum(scores, weights[used].tolist())

    def describe(self) -> list[dict[str, object]]:
        """Name, ridge, validated log loss and weight of every model."""
        return [
            {
                "model": model.name,
                "ridge": model.ridge,
                "log_loss": min(model.losses),
                "weight": float(weight),
            }
            for model, weight in zip(self.models, self.pool.weights, strict=True)
        ]


def train_structure(
    rows: OrdinalData, parts: Sequence[Part], structure: Structure, loss: Loss
) -> tuple[PooledModels, ClassScores]:
    """Parameters for a given structure."""
    find = partial(structure_interactions, structure=structure)
    tasks = model_tasks("main effects", no_interactions, parts, loss)
    if find(rows):
        tasks += model_tasks("structure", find, parts, loss)
    models = [task() for task in tasks]
    pooled = PooledModels.of(models, held_out(parts))
    return pooled, pooled.refit(rows)


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """What predicts: the answers of a network, on the background of the class shares.

    ``background`` are the class shares, ``doubt`` is the weight they have.
    """

    answers: MissingFeatures
    background: FloatArray
    doubt: float

    @classmethod
    def of(cls, scores: ClassScores, structure: Structure, rows: OrdinalData) -> Self:
        """The network of trained scores, with what it needs beside it."""
        data = rows.data
        merged = data.merged()
        network = normalised_network(scores, structure, merged)
        shares = np.bincount(data.codes[:, 0], data.weights, data.n_classes) + 0.5
        doubt = 1.0 / (data.total_weight + 1.0)
        answers = MissingFeatures.fit(network, merged, groups=rows.groups)
        return cls(answers, shares / shares.sum(), doubt)

    @property
    def network(self) -> BayesianNetwork:
        """The network itself."""
        return self.answers.network

    def log_posterior(self, codes: NDArray[np.integer]) -> FloatArray:
        """log P(c | known features), (n, n_classes), of codes with -1 for missing."""
        posterior = self.answers.log_posterior(codes)
        background = np.log(self.background) + np.log(self.doubt)
        mixed: FloatArray = np.logaddexp(posterior + np.log1p(-self.doubt), background)
        return mixed
