"""The class posterior of rows with missing features.

A network trained for the posterior of complete rows answers for incomplete ones too, by summing its
tables, but badly: weights of features that belong together cancel as long as both are there. Two
better answers come from the generative twin (``twin.py``):

    expected     E(c)  =  mean of P_network(c | x) over the missing features, as the twin sees them
    generative   G(c)  =  P_twin(c | what is there)

The first is better where little is missing, the second where much is, and better than both is
their geometric mean, with a weight that grows with the share s of missing features:

    log P(c | row)  =  (1 - w) log E(c) + w log G(c) + constant,      w = most * s / (s + half).

Without missing features this is the network itself. ``most`` and ``half`` are chosen by masked
validation: features of known rows are hidden at random, and the pair with the least log loss wins.
Rows that the network was trained on make E look better than it is, so w is never chosen near zero;
rows that it has not seen can be given.

E is exact where the missing features have few joint states, and otherwise a mean over draws.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from marginbn.exceptions import InputError
from marginbn.network.network import BayesianNetwork
from marginbn.parameters.class_scores import FloatArray
from marginbn.parameters.twin import TwinTree, check_forest, fit_twin, spread_points
from marginbn.problem.encoded import EncodedData, Groups

MOST = (0.2, 0.4, 0.6, 0.8, 1.0)
HALF = (0.03, 0.1, 0.3, 1.0)
"""What masked validation chooses from."""

N_DRAWS = 32

EXACT_STATES = 64
"""Up to so many joint states of the missing features the mean is taken over all of them."""

_HIDDEN = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Shares of features that masked validation hides."""

_ROWS = 600
"""Rows that masked validation looks at."""

_CELLS = 2**22
"""Cells of the arrays for one chunk of rows."""


@dataclass(frozen=True, eq=False)
class MissingFeatures:
    """A network and its twin, which together answer for rows with missing features.

    Parameters
    ----------
    network
        Whose posterior complete rows get.
    twin
        A generative network over the same variables, with a forest of features below the class.
    most, half
        Weight of the twin's own posterior: ``most * s / (s + half)`` at a share s of missing
        features.
    n_draws
        Draws of the missing features per row, where there are too many states for all of them.

    Examples
    --------
    >>> from marginbn import EncodedData, Structure, Variable
    >>> variables = Variable("class", ("no", "yes")), Variable("colour", ("red", "blue"))
    >>> data = EncodedData(np.array([[0, 0], [1, 1], [1, 0], [1, 1]]), np.ones(4), variables)
    >>> network = BayesianNetwork.fit(data, Structure(((), (0,))))
    >>> answers = MissingFeatures.fit(network, data)
    >>> np.exp(answers.log_posterior([[0, 1], [0, -1]])).round(3).tolist()
    [[0.217, 0.783], [0.333, 0.667]]
    """

    network: BayesianNetwork
    twin: BayesianNetwork
    most: float
    half: float
    n_draws: int = field(default=N_DRAWS)

    def __post_init__(self) -> None:
        if self.twin.variables != self.network.variables:
            raise InputError("twin must have the variables of the network, with the same states")
        check_forest(self.twin.structure)
        if not 0 <= self.most <= 1:
            raise InputError(f"most must lie between 0 and 1, got {self.most}")
        if not (math.isfinite(self.half) and self.half > 0):
            raise InputError(f"half must be a positive number, got {self.half}")
        if self.n_draws < 1:
            raise InputError(f"n_draws must be at least 1, got {self.n_draws}")

    @classmethod
    def fit(
        cls,
        network: BayesianNetwork,
        data: EncodedData,
        *,
        groups: Groups | None = None,
        twin: BayesianNetwork | None = None,
        unseen: EncodedData | None = None,
        blend: tuple[float, float] | None = None,
        n_draws: int = N_DRAWS,
    ) -> MissingFeatures:
        """Estimate the twin and choose its weight.

        Parameters
        ----------
        network
            Whose posterior complete rows get.
        data
            The rows it was trained on.
        groups
            Groups of states on which the twin is estimated, for example the coarse bins of numbers;
            else those of the network. A feature with many states of its own starves the twin.
        twin
            Instead of one estimated from ``data``.
        unseen
            Rows that neither has seen, for the masked validation; else those of ``data``.
        blend
            The pair (most, half), without validation; for example that of a fit to a part of the
            rows, validated on the others.
        n_draws
            Draws per row.
        """
        if twin is None:
            twin = fit_twin(data, network.groups if groups is None else groups)
        if blend is not None:
            return cls(network, twin, *blend, n_draws=n_draws)
        start = cls(network, twin, MOST[0], HALF[0], n_draws)
        most, half = start._validate(data if unseen is None else unseen)
        return cls(network, twin, most, half, n_draws)

    def log_posterior(self, codes: ArrayLike) -> FloatArray:
        """log P(c | row), (n, n_classes), of rows of codes (n, n_variables) with -1 for missing.

        Column 0, the class, is ignored. A row gets the same answer whatever rows are beside it.
        """
        rows = self._checked(codes)
        hidden = (rows < 0).any(axis=1)
        result = np.empty((len(rows), self.network.n_classes))
        result[~hidden] = self._complete(rows[~hidden])
        expected, generative = self.experts(rows[hidden])
        weight = weight_of_twin(rows[hidden], self.most, self.half)
        result[hidden] = blended(expected, generative, weight)
        return result

    def experts(self, codes: NDArray[np.integer]) -> tuple[FloatArray, FloatArray]:
        """log E and log G of rows with missing features."""
        expected = np.empty((len(codes), self.network.n_classes))
        generative = np.empty_like(expected)
        for rows in self._chunks(len(codes)):
            posterior, below = self._tree.ascend(codes[rows])
            generative[rows] = np.log(np.maximum(posterior, np.finfo(float).tiny))
            few = self._joint_states(codes[rows]) <= EXACT_STATES
            if few.any():
                expected[rows[few]] = self._enumerate(codes[rows[few]])
            if not few.all():
                some = {i: likelihood[~few] for i, likelihood in below.items()}
                expected[rows[~few]] = self._draw(codes[rows[~few]], posterior[~few], some)
        return expected, generative

    def _complete(self, codes: NDArray[np.integer]) -> FloatArray:
        return _normalised(self.network.log_joint_per_class(codes))

    def _enumerate(self, codes: NDArray[np.integer]) -> FloatArray:
        """log E over all joint states of the missing features, weighted by the twin."""
        counts = self._joint_states(codes).astype(np.intp)
        starts = np.cumsum(counts) - counts
        row = np.repeat(np.arange(len(codes)), counts)
        filled = _fill_in(codes, row, np.arange(len(row)) - starts[row], self._arities)
        weight = logsumexp(self.twin.log_joint_per_class(filled), axis=1)
        weight -= np.maximum.reduceat(weight, starts)[row]
        weighted = np.exp(self._complete(filled) + weight[:, np.newaxis])
        return _log(np.add.reduceat(weighted, starts, axis=0))

    def _draw(
        self, codes: NDArray[np.integer], posterior: FloatArray, below: dict[int, FloatArray]
    ) -> FloatArray:
        """log E over draws from the twin."""
        points = spread_points(self.n_draws, self.network.n_variables)
        drawn = self._tree.descend(codes, posterior, below, points)
        each = np.exp(self._complete(drawn.reshape(-1, codes.shape[1])))
        return _log(each.reshape(len(codes), self.n_draws, each.shape[1]).sum(axis=1))

    def _joint_states(self, codes: NDArray[np.integer]) -> FloatArray:
        """Number of joint states of the missing features of each row; it may be huge."""
        hidden = codes[:, 1:] < 0
        return np.asarray(np.where(hidden, self._arities[1:].astype(float), 1.0).prod(axis=1))

    def _validate(self, data: EncodedData) -> tuple[float, float]:
        """The pair (most, half) of least log loss on rows of which features are hidden."""
        codes, labels, weights = _hide_features(data)
        if not len(codes):
            return MOST[len(MOST) // 2], HALF[1]
        expected, generative = self.experts(codes)

        def loss(pair: tuple[float, float]) -> float:
            log_posterior = blended(expected, generative, weight_of_twin(codes, *pair))
            return -float(weights @ log_posterior[np.arange(len(labels)), labels])

        return min(itertools.product(MOST, HALF), key=loss)

    def _chunks(self, n_rows: int) -> Iterator[NDArray[np.intp]]:
        per_row = self._tree.cells_per_row + self.n_draws * self.network.n_variables
        per_row += max(self.n_draws, EXACT_STATES) * self.network.n_classes
        size = max(1, _CELLS // per_row)
        for start in range(0, n_rows, size):
            yield np.arange(start, min(start + size, n_rows))

    def _checked(self, codes: ArrayLike) -> NDArray[np.integer]:
        rows = np.array(codes)
        if rows.ndim != 2 or rows.shape[1] != self.network.n_variables:
            wanted = self.network.n_variables
            raise InputError(f"codes must have shape (n, {wanted}), got {rows.shape}")
        if not np.issubdtype(rows.dtype, np.integer):
            raise InputError(f"codes must be integers, got dtype {rows.dtype}")
        rows[:, 0] = 0
        if ((rows < -1) | (rows >= self._arities)).any():
            raise InputError(
                "codes must lie between 0 and the arity of their variable minus one, or be -1 for "
                "a missing feature"
            )
        return rows

    @cached_property
    def _tree(self) -> TwinTree:
        return TwinTree.of(self.twin)

    @cached_property
    def _arities(self) -> NDArray[np.int64]:
        return np.array(self.network.arities)


def weight_of_twin(codes: NDArray[np.integer], most: float, half: float) -> FloatArray:
    """Weight of the generative posterior: by the share of missing features of each row."""
    share = (codes[:, 1:] < 0).sum(axis=1) / max(1, codes.shape[1] - 1)
    return np.asarray(most * share / (share + half))


def blended(expected: FloatArray, generative: FloatArray, weight: FloatArray) -> FloatArray:
    """Geometric mean of two log posteriors, row by row, normalised."""
    w = weight[:, np.newaxis]
    return _normalised((1.0 - w) * expected + w * generative)


def _normalised(log_values: FloatArray) -> FloatArray:
    return np.asarray(log_values - logsumexp(log_values, axis=1, keepdims=True))


def _log(sums: FloatArray) -> FloatArray:
    """Normalised logarithm; a class that no draw makes possible keeps a tiny probability."""
    shares = sums / sums.sum(axis=1, keepdims=True)
    return np.asarray(np.log(np.maximum(shares, np.finfo(float).tiny)))


def _fill_in(
    codes: NDArray[np.integer],
    row: NDArray[np.intp],
    number: NDArray[np.intp],
    arities: NDArray[np.int64],
) -> NDArray[np.integer]:
    """Copies of rows whose missing features are the digits of a number, last feature fastest."""
    filled = codes[row]
    rest = number
    for i in reversed(range(1, codes.shape[1])):
        hidden = filled[:, i] < 0
        filled[hidden, i] = rest[hidden] % arities[i]
        rest = np.where(hidden, rest // arities[i], rest)
    return filled


def _hide_features(
    data: EncodedData,
) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]:
    """Rows with hidden features, their classes and weights; twice each if there are few."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(data.n_samples)[:_ROWS]
    rows = np.tile(rows, 2 if 2 * len(rows) <= _ROWS else 1)
    codes = data.codes[rows].astype(np.int32)
    share = np.resize(_HIDDEN, len(rows))[:, np.newaxis]
    hidden = rng.random((len(rows), data.n_variables - 1)) < share
    codes[:, 1:][hidden] = -1
    some = hidden.any(axis=1)
    return codes[some], codes[some, 0], data.weights[rows[some]]
