"""The best tree over the features, given the class.

In tree-augmented naive Bayes the features have the class as a parent and form a tree besides, the
one of Chow and Liu given the class: among all such structures the log likelihood is largest for a
maximum spanning tree under the conditional mutual information

    I(i; j | C) = sum n(c, i, j)/M log( n(c, i, j) n(c) / (n(c, i) n(c, j)) )

(Friedman, Geiger and Goldszmidt 1997). The tree is rooted at the first feature.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from marginbn.problem.arborescence import maximum_arborescence
from marginbn.problem.encoded import EncodedData, contingency
from marginbn.problem.structure import Structure


def augmented_tree(data: EncodedData) -> Structure:
    """The structure above; features with a single state carry no information and get no arc."""
    parents: list[tuple[int, ...]] = [() for _ in range(data.n_variables)]
    features = [i for i in range(1, data.n_variables) if i not in data.constant]
    if features:
        tails, _ = maximum_arborescence(_tree_weights(data, features))
        for i, tail in zip(features, tails, strict=True):
            parents[i] = (0,) if tail == len(features) else (0, features[int(tail)])
    return Structure(tuple(parents))


def _tree_weights(data: EncodedData, features: list[int]) -> NDArray[np.float64]:
    """Arborescence weights (n, n + 1): mutual information, and a root arc for the first only."""
    n = len(features)
    weights = np.full((n, n + 1), -np.inf)
    for a in range(n):
        for b in range(a + 1, n):
            information = conditional_mutual_information(data, features[a], features[b])
            weights[a, b] = weights[b, a] = information
    weights[0, n] = 0.0
    return weights


def conditional_mutual_information(data: EncodedData, i: int, j: int) -> float:
    """I(i; j | C) in nats, from unsmoothed counts."""
    joint = contingency(data, (0, i, j))
    total = xlogy(joint, joint).sum() + xlogy(joint.sum((1, 2)), joint.sum((1, 2))).sum()
    total -= xlogy(joint.sum(2), joint.sum(2)).sum() + xlogy(joint.sum(1), joint.sum(1)).sum()
    return float(total) / data.total_weight
