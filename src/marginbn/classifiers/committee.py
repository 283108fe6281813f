"""Several networks that answer together: the weighted average of their class posteriors.

    log P(c | x) = log sum_k weights[k] P_k(c | x)

Every member is a network over the same variables and states, to be read on its own; the average is
the better predictor, and no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbn.exceptions import InputError
from marginbn.network.network import BayesianNetwork

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Committee:
    """Networks with their weights.

    Parameters
    ----------
    networks
        At least one; all have the same variables.
    weights
        float64 (n_networks,), positive, of sum one.

    Examples
    --------
    >>> from marginbn import EncodedData, Structure, Variable
    >>> variables = Variable("class", ("no", "yes")), Variable("x", ("a", "b"))
    >>> data = EncodedData(np.array([[0, 0], [1, 1]]), np.ones(2), variables)
    >>> with_arc, without = Structure(((), (0,))), Structure(((), ()))
    >>> members = [BayesianNetwork.fit(data, s) for s in (with_arc, with_arc, without)]
    >>> committee = Committee.equal(members)
    >>> len(committee.networks), committee.weights.round(3).tolist()
    (2, [0.667, 0.333])
    >>> np.exp(committee.log_posterior(np.array([[0, 0]]))).round(3).tolist()
    [[0.611, 0.389]]
    """

    networks: tuple[BayesianNetwork, ...]
    weights: FloatArray

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if not self.networks or weights.shape != (len(self.networks),):
            raise InputError(
                f"weights must be one number per network, got {len(self.networks)} networks and "
                f"weights of shape {weights.shape}"
            )
        if not ((weights > 0).all() and abs(weights.sum() - 1.0) < 1e-9):
            raise InputError("weights must be positive and sum to one")
        if any(network.variables != self.networks[0].variables for network in self.networks):
            raise InputError("networks must have the same variables, with the same states")
        object.__setattr__(self, "weights", weights)

    @classmethod
    def equal(cls, networks: Sequence[BayesianNetwork]) -> Self:
        """One vote per network; equal networks become one member with all their votes."""
        members: list[BayesianNetwork] = []
        votes: list[int] = []
        for network in networks:
            if network in members:
                votes[members.index(network)] += 1
            else:
                members.append(network)
                votes.append(1)
        return cls(tuple(members), np.array(votes) / len(networks))

    def log_posterior(self, codes: NDArray[np.integer]) -> FloatArray:
        """log P(c | x), float64 (n, n_classes), of codes (n, n_variables) with -1 for missing.

        Column 0, the class, is ignored.
        """
        members = (log_normalised(network.log_joint_per_class(codes)) for network in self.networks)
        return log_average(members, self.weights)


def log_normalised(log_joint: FloatArray) -> FloatArray:
    """Log posteriors of log joints (n, n_classes)."""
    posterior: FloatArray = log_joint - logsumexp(log_joint, axis=1, keepdims=True)
    return posterior


def log_average(log_values: Iterable[FloatArray], weights: FloatArray) -> FloatArray:
    """log sum_k weights[k] exp(log_values[k]), one member at a time."""
    total: FloatArray | None = None
    for values, weight in zip(log_values, weights, strict=True):
        term = values + np.log(weight)
        total = term if total is None else np.logaddexp(total, term)
    if total is None:
        raise InputError("an average needs at least one member")
    return total
