"""Smoothing chosen by validated log loss.

Structures of generative scores do not depend on the smoothing of the tables, so each split learns
its bins and its structure once, and the tables anew for every value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from marginbn.classifiers import validation
from marginbn.classifiers.choosing import class_codes, log_posterior_of_truth
from marginbn.data.encode import encode_training
from marginbn.data.labelled import LabelledTable, validation_splits
from marginbn.data.missing_values import MissingPolicy
from marginbn.exceptions import InputError
from marginbn.problem.encoded import EncodedData, with_class_column

SMOOTHINGS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""What ``smoothing="auto"`` chooses from."""


class Predictor(Protocol):
    """A network, or several that answer together."""

    def log_joint_per_class(self, codes: NDArray[np.integer]) -> NDArray[np.float64]:
        """As that of a network."""


Learner = Callable[[EncodedData], Callable[[float], Predictor]]
"""Learns what does not depend on the smoothing, and returns what estimates the rest."""


def check_smoothing(name: str, value: Any) -> None:
    """Refuse anything but a positive number or "auto"."""
    if isinstance(value, str) and value == "auto":
        return
    try:
        validation.check_positive(name, value)
    except InputError:
        raise InputError(f"{name} must be a positive number or 'auto', got {value!r}") from None


def choose_smoothing(
    rows: LabelledTable, missing: MissingPolicy, seed: int, learn: Learner
) -> float:
    """The smoothing of smallest validated log loss; ties go to the larger one."""
    losses = np.zeros(len(SMOOTHINGS))
    for train, test in validation_splits(rows.labels, seed):
        losses += _losses(rows.take(train), rows.take(test), missing, learn)
    best = losses.min()
    return max(s for s, loss in zip(SMOOTHINGS, losses, strict=True) if loss <= best)


def _losses(
    rows: LabelledTable, held_out: LabelledTable, missing: MissingPolicy, learn: Learner
) -> NDArray[np.float64]:
    """Summed log loss on the held-out rows for every smoothing."""
    training = encode_training(rows, missing)
    codes = with_class_column(training.coding.encode(held_out.features))
    truth = class_codes(held_out.labels, training.classes)
    estimate = learn(training.data)
    losses = []
    for smoothing in SMOOTHINGS:
        posterior = log_softmax(estimate(smoothing).log_joint_per_class(codes), axis=1)
        losses.append(-held_out.weights @ log_posterior_of_truth(posterior, truth))
    return np.array(losses)
