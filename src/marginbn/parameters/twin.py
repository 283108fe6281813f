"""The generative twin of a network: what missing features probably are.

A network trained for the class posterior knows little about its features. Its twin is a plain
generative network over the same variables: the class, and a tree over the features given the class
that explains them best (``problem/augmented_tree.py``). Both see a numeric feature in fine bins of
which several are one group. The twin is estimated on groups, so that fine bins do not starve it; a
bin inside its group has the share that it has in the data, whatever the class:

    P(x_i | c, x_pa)  =  P(g(x_i) | c, g(x_pa)) * P(x_i | g(x_i)).

(With shares of each class on its own the posterior of the twin is far too sure of itself.)

Two questions about rows with missing features are answered for all rows at once. The class comes
from messages up the tree,

    M_i(c, g_pa)  =  sum over x_i that agree with the row  P(x_i | c, g_pa) * L_i(c, g(x_i)),
    L_i(c, g)     =  product of the messages of the children of i,

and draws of the missing features, exact ones, from going down again: the class from its posterior,
then each missing feature from P(x_i | c, g_pa) L_i(c, g(x_i)), normalised. A draw needs one random
number per variable. All rows share the same numbers, so that the answer for a row does not depend
on the rows beside it; the numbers of each variable are spread evenly over the draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError
from marginbn.network.groups import IntArray
from marginbn.network.network import BayesianNetwork
from marginbn.parameters.class_scores import FloatArray
from marginbn.problem.augmented_tree import augmented_tree
from marginbn.problem.encoded import EncodedData, Groups, Variable, contingency
from marginbn.problem.margins import estimate_log_tables
from marginbn.problem.structure import Structure

CLASS = 0

SMOOTHING = 1.0
"""Added to every count of groups; half of it to every count of states."""

_SEED = 20120627


def fit_twin(
    data: EncodedData, groups: Groups | None, structure: Structure | None = None
) -> BayesianNetwork:
    """The twin of a network with these groups; the tree is learned unless it is given."""
    seen = (None,) * data.n_variables if groups is None else groups
    grouped = _grouped(data, seen)
    tree = augmented_tree(grouped) if structure is None else structure
    check_forest(tree)
    by_group = estimate_log_tables(grouped, tree, SMOOTHING)
    tables = [
        table if g is None else table[..., g] + _log_share(data, i, g)
        for i, (table, g) in enumerate(zip(by_group, seen, strict=True))
    ]
    return BayesianNetwork(tree, data.variables, tuple(tables), groups)


def _grouped(data: EncodedData, groups: Groups) -> EncodedData:
    columns, variables = [], []
    for i, (variable, g) in enumerate(zip(data.variables, groups, strict=True)):
        codes = data.codes[:, i]
        columns.append(codes if g is None else g[codes])
        labels = range(int(g.max()) + 1) if g is not None else ()
        variables.append(variable if g is None else Variable(variable.name, (*map(str, labels),)))
    return EncodedData(np.column_stack(columns), data.weights, tuple(variables))


def _log_share(data: EncodedData, i: int, groups: IntArray) -> FloatArray:
    """log P(state | its group) of one feature."""
    counts = contingency(data, (i,)) + SMOOTHING / 2
    return np.asarray(np.log(counts / np.bincount(groups, counts)[groups]))


def check_forest(structure: Structure) -> None:
    """Refuse what is no forest of features below the class."""
    features_of = [[p for p in parents if p != CLASS] for parents in structure.parents]
    if structure.parents[CLASS] or any(len(p) > 1 for p in features_of):
        raise InputError(
            "the structure of a twin must be a forest: the class has no parents, and every feature "
            "at most one besides the class"
        )


@dataclass(frozen=True, eq=False)
class _Node:
    """A feature of the tree, laid out for lookup.

    Parameters
    ----------
    parent
        The feature above it, 0 if there is none.
    by_state, by_group
        P(state | class, group of parent) and P(group | ...): float64 (classes, groups of the
        parent, states or groups).
    group_of
        Group of each state.
    sorted_states, starts, cumulative
        States by group, where each group starts among them, and the running sums of ``by_state``
        in this order, from zero on.
    """

    parent: int
    by_state: FloatArray
    by_group: FloatArray
    group_of: IntArray
    sorted_states: IntArray
    starts: IntArray
    cumulative: FloatArray

    @classmethod
    def of(cls, twin: BayesianNetwork, i: int) -> _Node:
        """Read one table of the twin."""
        parents = twin.structure.parents[i]
        parent = next((p for p in parents if p != CLASS), CLASS)
        table = np.exp(twin.log_tables[i])
        table = table.reshape(
            twin.n_classes if CLASS in parents else 1,
            twin.group_counts[parent] if parent else 1,
            twin.arities[i],
        )
        by_state = np.repeat(table, twin.n_classes // len(table), axis=0)
        group_of = twin.group_codes(i, np.arange(twin.arities[i])).astype(np.intp)
        order = np.argsort(group_of, kind="stable")
        starts = np.searchsorted(group_of[order], np.arange(twin.group_counts[i] + 1))
        cumulative = np.zeros((*by_state.shape[:2], twin.arities[i] + 1))
        np.cumsum(by_state[..., order], axis=-1, out=cumulative[..., 1:])
        by_group = np.diff(cumulative[..., starts], axis=-1)
        return cls(parent, by_state, by_group, group_of, order, starts, cumulative)

    def message(self, codes: NDArray[np.integer], below: FloatArray) -> FloatArray:
        """M (rows, classes, groups of the parent), up to a factor for each row."""
        seen = codes >= 0
        result = np.empty((len(codes), *self.by_state.shape[:2]))
        states = codes[seen]
        likelihood = below[np.flatnonzero(seen), :, self.group_of[states]]
        result[seen] = np.moveaxis(self.by_state[:, :, states], -1, 0) * likelihood[:, :, None]
        # (classes, parents, groups) @ (rows, classes, groups, 1)
        result[~seen] = (self.by_group @ below[~seen][..., np.newaxis])[..., 0]
        result /= result.max(axis=(1, 2), keepdims=True)
        return result

    def draw(
        self, classes: IntArray, parents: IntArray, below: FloatArray, points: FloatArray
    ) -> IntArray:
        """States (rows, draws) given classes and parent groups of that shape, L of the rows.

        The random point of a draw first picks a group; what is left of it picks a state inside.
        """
        rows = np.arange(len(classes))[:, np.newaxis]
        weights = self.by_group[classes, parents] * below[rows, classes]
        steps = np.cumsum(weights, axis=-1)
        target = points * steps[..., -1]
        group = (steps <= target[..., np.newaxis]).sum(axis=-1)
        group = np.minimum(group, weights.shape[-1] - 1)
        chosen = (*np.indices(group.shape), group)
        rest = 1.0 - (steps[chosen] - target) / np.maximum(weights[chosen], np.finfo(float).tiny)
        return self._draw_inside(classes, parents, group, np.clip(rest, 0.0, 1.0))

    def _draw_inside(
        self, classes: IntArray, parents: IntArray, group: IntArray, points: FloatArray
    ) -> IntArray:
        """States of the given groups: one search in the running sums of all rows of the table.

        Each row of the table is moved up by twice its number, which makes all of them increasing.
        """
        row = classes * self.cumulative.shape[1] + parents
        sums = self.cumulative.reshape(-1, self.cumulative.shape[-1])
        start, end = self.starts[group], self.starts[group + 1]
        low, high = sums[row, start], sums[row, end]
        flat = (sums[:, 1:] + 2.0 * np.arange(len(sums))[:, np.newaxis]).ravel()
        found = np.searchsorted(flat, low + points * (high - low) + 2.0 * row, side="right")
        place = np.clip(found - row * (sums.shape[1] - 1), start, end - 1)
        return np.asarray(self.sorted_states[place])


@dataclass(frozen=True, eq=False)
class TwinTree:
    """A twin laid out for messages and draws."""

    prior: FloatArray
    nodes: dict[int, _Node]
    """Parents before children."""

    @classmethod
    def of(cls, twin: BayesianNetwork) -> TwinTree:
        """Lay out all tables."""
        check_forest(twin.structure)
        features = (i for i in twin.structure.order if i != CLASS)
        return cls(np.exp(twin.log_tables[CLASS]), {i: _Node.of(twin, i) for i in features})

    @property
    def cells_per_row(self) -> int:
        """Cells that the messages of a row take."""
        return sum(node.by_group[:, 0].size for node in self.nodes.values())

    def ascend(self, codes: NDArray[np.integer]) -> tuple[FloatArray, dict[int, FloatArray]]:
        """Posterior (rows, classes) of rows with -1 for missing, and L of every feature."""
        n, n_classes = len(codes), len(self.prior)
        below = {
            i: np.ones((n, n_classes, node.by_group.shape[-1])) for i, node in self.nodes.items()
        }
        posterior = np.tile(self.prior, (n, 1))
        for i in reversed(self.nodes):
            message = self.nodes[i].message(codes[:, i], below[i])
            if self.nodes[i].parent:
                below[self.nodes[i].parent] *= message
            else:
                posterior *= message[:, :, 0]
                posterior /= posterior.max(axis=1, keepdims=True)
        return posterior / posterior.sum(axis=1, keepdims=True), below

    def descend(
        self,
        codes: NDArray[np.integer],
        posterior: FloatArray,
        below: dict[int, FloatArray],
        points: FloatArray,
    ) -> NDArray[np.int32]:
        """Draws (rows, draws, variables) of complete rows, the class included."""
        n_draws = len(points)
        drawn = np.repeat(codes[:, np.newaxis, :].astype(np.int32), n_draws, axis=1)
        steps = np.cumsum(posterior, axis=1)[:, np.newaxis, :]
        classes = (steps <= points[:, CLASS, np.newaxis] * steps[..., -1:]).sum(axis=-1)
        classes = np.minimum(classes, posterior.shape[1] - 1)
        drawn[..., CLASS] = classes
        for i, node in self.nodes.items():
            rows = np.flatnonzero(codes[:, i] < 0)
            if len(rows):
                above = np.zeros((len(rows), n_draws), dtype=np.intp)
                if node.parent:
                    above = self.nodes[node.parent].group_of[drawn[rows, :, node.parent]]
                states = node.draw(classes[rows], above, below[i][rows], points[:, i])
                drawn[rows, :, i] = states
        return drawn


def spread_points(n_draws: int, n_variables: int) -> FloatArray:
    """Points in the unit cube, (draws, variables): in each column one of each n-th of the unit."""
    rng = np.random.default_rng(_SEED)
    cells = rng.permuted(np.tile(np.arange(n_draws), (n_variables, 1)), axis=1).T
    return np.asarray((cells + rng.random((n_draws, n_variables))) / n_draws)
