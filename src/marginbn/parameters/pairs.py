"""Which pairs of features deserve a table, and where their states are cut.

Given the posteriors p_nc of a model of main effects, a table over a pair of features is judged by
one Newton step on it. With residuals r_nc = [y_n = c] - p_nc and curvatures h_nc = p_nc (1 - p_nc),
per class and cell g = sum w_n r_nc and h = sum w_n h_nc,

    gain = sum_{c, cell} g^2 (h + 2 ridge) / (2 (h + ridge)^2)  -  price (C - 1)/C h / (h + ridge).

The first term is what the step gains in likelihood, the second what it is expected to gain from
noise alone (:mod:`marginbn.problem.residuals`). For two classes both say the same: one is counted.

Numbers are cut *for the pair*: a feature whose own effect is nil can still matter together with
another. Candidates are the coarse bins and eight quantiles; ``kernels/cuts.py`` chooses.

The pairs kept form a tree of cliques (a *k-tree*): every feature joins with at most k features that
are joined to each other already, so the network that has these tables needs no further arcs. With
k = 1 it is the forest of highest gain, found exactly; with more, the next feature and its clique
are always those that gain most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from marginbn.data.ordinal import OrdinalData
from marginbn.parameters.design import Interaction, coarse_groups, pair_interaction
from marginbn.problem.encoded import EncodedData
from marginbn.problem.residuals import PRICE, RIDGE

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

GRID = 8
MOST_GROUPS = 5

MOST_ROWS = 50_000
MOST_STATES = 64


@dataclass(frozen=True, eq=False)
class Pairs:
    """Gain of every pair of features and the groups at which it has this gain.

    ``gains[i, j]`` is symmetric and counts features from 0; ``groups[i, j]`` for i < j.
    """

    gains: FloatArray
    groups: dict[tuple[int, int], tuple[IntArray, IntArray]]


def find_pairs(rows: OrdinalData, posterior: FloatArray) -> Pairs:
    """All pairs of features on top of a model with these posteriors (n, n_classes).

    Of very many rows every k-th is looked at, with k times its weight. Features with very many
    states take no part.
    """
    from marginbn.parameters.kernels.cuts import best_cuts  # loads the compiler

    step = -(-rows.data.n_samples // MOST_ROWS)
    if step > 1:
        rows, posterior = _thinned(rows, step), posterior[::step]
    data = rows.data
    n_features = data.n_variables - 1
    grids = [_grid(rows, v) for v in range(1, data.n_variables)]
    sums = _PairSums(grids, data, posterior)
    free = [positions is not None for positions in rows.positions[1:]]
    price = PRICE * (1.0 - 1.0 / data.n_classes)
    gains = np.full((n_features, n_features), -np.inf)
    groups = {}
    for i in sums.taking_part:
        for j, g, h in sums.with_later(i):
            gain, *cuts = best_cuts(g, h, free[i], free[j], MOST_GROUPS, RIDGE, price)
            gains[i, j] = gains[j, i] = gain
            own = [np.concatenate([[0], np.cumsum(c)]).astype(np.intp) for c in cuts]
            groups[i, j] = own[0][grids[i]], own[1][grids[j]]
    return Pairs(gains, groups)


def _thinned(rows: OrdinalData, step: int) -> OrdinalData:
    data = rows.data
    part = EncodedData(data.codes[::step], data.weights[::step] * step, data.variables)
    return replace(rows, data=part)


def _grid(rows: OrdinalData, variable: int) -> IntArray:
    """Candidate groups of the states: coarse bins and quantiles for numbers, states otherwise."""
    positions = rows.positions[variable]
    coarse = coarse_groups(rows, variable)
    if positions is None:
        return coarse
    data = rows.data
    weight = np.bincount(data.codes[:, variable], data.weights, len(coarse))
    number = ~np.isnan(positions)
    reached = np.cumsum(weight[number])
    shares = np.arange(1, GRID) * (reached[-1] / GRID)
    edges = np.abs(reached[:, np.newaxis] - shares).argmin(axis=0)  # a cut after these states
    cut = np.append(np.diff(coarse) > 0, False)  # whether one lies after each state
    cut[edges] = True
    return np.concatenate([[0], np.cumsum(cut[:-1])]).astype(np.intp)


class _PairSums:
    """g and h of all pairs of cells, one feature with all later ones at a time."""

    def __init__(self, grids: list[IntArray], data: EncodedData, posterior: FloatArray) -> None:
        sizes = [int(grid.max()) + 1 for grid in grids]
        self.taking_part = [i for i, size in enumerate(sizes) if 2 <= size <= MOST_STATES]
        self.starts = dict(zip(self.taking_part, self._ends(sizes), strict=True))
        self.sizes = sizes
        n_rows, classes = data.n_samples, data.codes[:, 0]
        self.indicator = np.zeros((n_rows, sum(sizes[i] for i in self.taking_part)))
        for i in self.taking_part:
            cells = self.starts[i] + grids[i][data.codes[:, i + 1]]
            self.indicator[np.arange(n_rows), cells] = 1.0
        counted = range(1 if data.n_classes == 2 else data.n_classes)
        p = [posterior[:, c] for c in counted]
        self.slopes = [data.weights * ((classes == c) - p[c]) for c in counted]
        self.curvatures = [data.weights * p[c] * (1.0 - p[c]) for c in counted]

    def _ends(self, sizes: list[int]) -> list[int]:
        ends = accumulate((sizes[i] for i in self.taking_part), initial=0)
        return list(ends)[:-1]

    def with_later(self, i: int) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """(j, g, h) for every later feature j, the sums of shape (classes, cells i, cells j)."""
        later = [j for j in self.taking_part if j > i]
        if not later:
            return
        first = self.starts[later[0]]
        own = self.indicator[:, self.starts[i] : self.starts[i] + self.sizes[i]]
        others = self.indicator[:, first:]
        g, h = (
            np.stack([(own * values[:, np.newaxis]).T @ others for values in of_classes])
            for of_classes in (self.slopes, self.curvatures)
        )
        for j in later:
            block = np.s_[:, :, self.starts[j] - first : self.starts[j] - first + self.sizes[j]]
            yield j, np.ascontiguousarray(g[block]), np.ascontiguousarray(h[block])


def tree_bound(pairs: Pairs, width: int) -> float:
    """No k-tree over d features gains more: it has at most k d - k (k + 1)/2 pairs."""
    d = len(pairs.gains)
    k = min(width, max(d - 1, 0))
    most = k * d - k * (k + 1) // 2
    gains = pairs.gains[np.triu_indices(d, 1)]
    return float(np.sort(np.maximum(gains, 0.0))[::-1][:most].sum())


def choose_interactions(rows: OrdinalData, pairs: Pairs, width: int) -> tuple[Interaction, ...]:
    """The tables of the best k-tree of pairs with a positive gain, k = ``width``."""
    chosen = []
    for i, j in best_tree(pairs.gains, width):
        pair = (i + 1, j + 1)
        chosen.append(pair_interaction(rows, pair, pairs.groups[i, j]))
    return tuple(chosen)


def best_tree(gains: FloatArray, width: int) -> list[tuple[int, int]]:
    """Pairs (i < j) of a k-tree with a high total gain; only pairs with a positive one.

    Grown like Prim's tree: the next feature and the clique it joins are those of highest gain. With
    ``width`` 1 this is the optimum.

    Examples
    --------
    >>> import numpy as np
    >>> gains = np.array([[0, 3, 2, -1], [3, 0, 1, 0.5], [2, 1, 0, -1], [-1, 0.5, -1, 0]])
    >>> best_tree(gains, 1), best_tree(gains, 2)
    ([(0, 1), (0, 2), (1, 3)], [(0, 1), (0, 2), (1, 2), (1, 3)])
    """
    gains = np.where(gains > 0, gains, 0.0)
    outside = set(range(len(gains)))
    cliques: list[tuple[int, ...]] = []
    pairs: list[tuple[int, int]] = []
    while outside:
        feature, clique = _best_joining(gains, sorted(outside), cliques)
        if feature is None:  # a new tree, from its best pair
            rest = sorted(outside)
            among = gains[np.ix_(rest, rest)]
            if among.max() <= 0:
                break
            feature = rest[int(among.argmax()) // len(rest)]
        joined = [other for other in clique if gains[feature, other] > 0]
        pairs += [(min(feature, other), max(feature, other)) for other in joined]
        outside.remove(feature)
        cliques += _new_cliques(feature, joined, width)
    return pairs


def _best_joining(
    gains: FloatArray, outside: list[int], cliques: list[tuple[int, ...]]
) -> tuple[int | None, tuple[int, ...]]:
    """The feature outside and the clique inside that gain most together."""
    best, choice = 0.0, None
    for clique in cliques:
        totals = gains[np.ix_(outside, clique)].sum(axis=1)
        k = int(totals.argmax())
        if totals[k] > best:
            best, choice = float(totals[k]), (outside[k], clique)
    return choice if choice is not None else (None, ())


def _new_cliques(feature: int, joined: list[int], width: int) -> list[tuple[int, ...]]:
    """Cliques of at most ``width`` features with the newcomer among them."""
    if len(joined) < width:
        return [(*joined, feature)]
    return [(*(other for other in joined if other != left), feature) for left in joined]
