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

from marginbn.problem.encoded import EncodedData, contingency
from marginbn.problem.structure import Structure


def augmented_tree(data: EncodedData) -> Structure:
    """The structure above; features with a single state carry no information and get no arc."""
    parents: list[tuple[int, ...]] = [() for _ in range(data.n_variables)]
    features = [i for i in range(1, data.n_variables) if i not in data.constant]
    for i, parent in zip(features, _spanning_tree(_information(data, features)), strict=True):
        parents[i] = (0,) if parent < 0 else (0, features[parent])
    return Structure(tuple(parents))


def _information(data: EncodedData, features: list[int]) -> NDArray[np.float64]:
    """Conditional mutual information of all pairs of features, (n, n)."""
    n = len(features)
    found = np.zeros((n, n))
    for a in range(n):
        for b in range(a + 1, n):
            own = conditional_mutual_information(data, features[a], features[b])
            found[a, b] = found[b, a] = own
    return found


def _spanning_tree(weights: NDArray[np.float64]) -> list[int]:
    """Parents in a maximum spanning tree of a symmetric matrix, by Prim; -1 for the root, node 0.

    The tree grows from the root by the heaviest edge that leaves it; equal ones are decided for the
    smallest node, then for the parent that was in the tree first.
    """
    parents = [-1] * len(weights)
    if not parents:
        return parents
    best, tails = weights[0].copy(), np.zeros(len(weights), dtype=np.int64)
    best[0] = -np.inf
    outside = np.arange(len(weights)) > 0
    for _ in range(len(weights) - 1):
        node = int(best.argmax())
        parents[node] = int(tails[node])
        outside[node], best[node] = False, -np.inf
        nearer = outside & (weights[node] > best)
        best[nearer], tails[nearer] = weights[node][nearer], node
    return parents


def conditional_mutual_information(data: EncodedData, i: int, j: int) -> float:
    """I(i; j | C) in nats, from unsmoothed counts."""
    joint = contingency(data, (0, i, j))
    total = xlogy(joint, joint).sum() + xlogy(joint.sum((1, 2)), joint.sum((1, 2))).sum()
    total -= xlogy(joint.sum(2), joint.sum(2)).sum() + xlogy(joint.sum(1), joint.sum(1)).sum()
    return float(total) / data.total_weight
