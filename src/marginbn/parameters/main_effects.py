"""Main effects alone: logistic regression on the states of the features.

    s_c(x) = log share_c + v_c + sum_i v_c[x_i],      p = softmax s
    minimise   sum_n w_n (-log p(y_n | x_n))  +  (penalty / 2) |v|^2

Strictly convex, so there is one minimum. What the structure search asks of it are residuals and
curvatures (:mod:`marginbn.problem.residuals`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax

from marginbn.data.encode import EncodedData

FloatArray = NDArray[np.float64]

PENALTY = 3.0
"""Of the main effects behind a structure search."""

MOST_STEPS = 300

ACCURACY = 1e-6
"""Of every entry of the gradient, times the total weight."""


@dataclass(frozen=True, eq=False)
class MainEffects:
    """Posteriors of the training rows, (n_samples, n_classes), with what follows from them."""

    posterior: FloatArray
    truth: FloatArray  # one-hot labels

    @property
    def residuals(self) -> FloatArray:
        """[y = c] - p."""
        return self.truth - self.posterior

    @property
    def curvatures(self) -> FloatArray:
        """p (1 - p)."""
        return self.posterior * (1.0 - self.posterior)


def fit_main_effects(data: EncodedData, penalty: float = PENALTY) -> MainEffects:
    """Fit the model above to encoded rows.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import EncodedData, Variable
    >>> variables = (Variable("class", ("0", "1")), Variable("x", ("0", "1")))
    >>> data = EncodedData(np.array([[0, 0], [1, 1]] * 20), np.ones(40), variables)
    >>> fit_main_effects(data).posterior[:2].round(2).tolist()
    [[0.86, 0.14], [0.14, 0.86]]
    """
    truth = np.eye(data.n_classes)[data.codes[:, 0]]
    states = _one_hot(data)
    shares = np.maximum(data.weights @ truth, 1e-9) / data.total_weight
    shape = (states.shape[1], data.n_classes)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        v = flat.reshape(shape)
        log_posterior = log_softmax(np.log(shares) + states @ v, axis=1)
        value = -float(data.weights @ (truth * log_posterior).sum(axis=1))
        pull = data.weights[:, None] * (np.exp(log_posterior) - truth)
        gradient = states.T @ pull + penalty * v
        return value + 0.5 * penalty * float((v**2).sum()), gradient.ravel()

    found = minimize(
        loss,
        np.zeros(shape).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_STEPS, "gtol": ACCURACY * data.total_weight, "ftol": 0.0},
    )
    scores = np.log(shares) + states @ found.x.reshape(shape)
    return MainEffects(np.exp(log_softmax(scores, axis=1)), truth)


def _one_hot(data: EncodedData) -> csr_array:
    """A column of ones, and one column for every state of every feature."""
    n, d = data.n_samples, data.n_variables - 1
    starts = 1 + np.concatenate([[0], np.cumsum(data.arities[1:])]).astype(np.int64)
    columns = np.column_stack([np.zeros(n, np.int64), data.codes[:, 1:] + starts[:-1]])
    offsets = np.arange(0, n * (d + 1) + 1, d + 1)
    return csr_array((np.ones(n * (d + 1)), columns.ravel(), offsets), shape=(n, int(starts[-1])))
