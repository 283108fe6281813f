"""The part of a network that does not know the class, fitted to the data.

A class posterior leaves one thing open. Scores s_c(x) and s_c(x) + f(x) have the same posterior,
whatever the function f: this is the *gauge freedom*. Of all joint distributions with the posterior,

    P(c, x)  =  exp s_c(x) * prod_i q_i(x_i | x_pa(i)) / normaliser,

those with some positive q_i can be written as a network with the arcs of the scores. As a start,
q_i are the class-free frequencies of the data, smoothed by m = 5 rows of the marginal.

The exponential of the scores distorts them: the (x_i, x_pa) marginals of P are not those of the
data. Cyclic iterative proportional fitting repairs this,

    q_i  <-  q_i * target(x_i, x_pa) / P(x_i, x_pa),      one i after the other,

where the targets are the family marginals of the network of the q_i at the start: they agree with
each other, and with the data up to smoothing. It converges to the joint distribution of highest
likelihood among all those above (a concave problem). The update must be cyclic: all q_i at once
diverge.

Parents of the class, and features that the class does not reach, keep the class-free tables: their
marginals are right as they are.

The marginals come from a junction tree. The families {C, i, parents of i} of ``marrying.py`` are
its cliques, with the class and its parents as the root; the clique of i hangs on that of its
receiver, and both share C and the parents of i. Beliefs are P of each clique. An update of q_i
multiplies its own belief; a walk around the tree, up and down every edge, updates each clique once
and carries the change to the next clique only. So a sweep costs about as much as the tables have
cells, times five.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from marginbn.network.elimination import Factor, check_cells, condition, eliminate, plan_elimination
from marginbn.network.groups import collapse
from marginbn.parameters.class_scores import FloatArray
from marginbn.parameters.cliques import Cliques, Tables
from marginbn.parameters.marrying import CLASS
from marginbn.problem.encoded import EncodedData, Variable, contingency

SMOOTHING = 5.0
"""Rows of the marginal that are added to every row of a class-free table."""

TOLERANCE = 1e-3
"""Fitting ends when every family marginal is this close to its target, summed over cells."""

MAX_SWEEPS = 300

MAX_WORK = 3e8
"""Cells that all sweeps together may visit: two to three seconds."""

_WORK_PER_CLIQUE = 4000
"""What the calls for one clique cost apart from its cells, in cells."""

_SMALLEST = 1e-100
"""Beliefs and factors of an update stay above this, so that no ratio leaves the range of floats."""


def class_free_tables(data: EncodedData, cliques: Cliques) -> Tables:
    """log q_i(x_i | groups of the parents) of every feature; the first axis has length one."""
    counted = _with_group_columns(data, cliques)
    n = data.n_variables
    tables = {}
    for i in range(1, n):
        counts = contingency(counted, [*(n + p for p in cliques.plan.parents[i]), i])
        alone = counts.reshape(-1, counts.shape[-1]).sum(axis=0) + 0.5
        smoothed = counts + SMOOTHING * alone / alone.sum()
        tables[i] = np.log(smoothed / smoothed.sum(axis=-1, keepdims=True))[np.newaxis]
    return tables


def _with_group_columns(data: EncodedData, cliques: Cliques) -> EncodedData:
    """The data and, beside each column, the column of its groups: n_variables further on."""
    columns = [cliques.group_of(v)[data.codes[:, v]] for v in range(data.n_variables)]
    counts = zip(data.names, cliques.group_counts, strict=True)
    variables = (Variable(name, tuple(map(str, range(count)))) for name, count in counts)
    codes = np.column_stack([data.codes, *columns])
    return EncodedData(codes, data.weights, (*data.variables, *variables))


def target_marginals(class_free: Mapping[int, FloatArray], cliques: Cliques) -> Tables:
    """Family marginals of the class-free network: of the class (its parents) and of those below."""
    plan = cliques.plan
    targets = {CLASS: _class_parents(class_free, cliques)}
    for i in reversed(plan.order):
        receiver = plan.receiver[i]
        parents = cliques.reduce(targets[receiver], receiver, plan.parents[i])
        targets[i] = np.exp(class_free[i]) * parents[..., np.newaxis]
    return targets


def _class_parents(class_free: Mapping[int, FloatArray], cliques: Cliques) -> FloatArray:
    """Joint distribution of the groups of the parents of the class, which are all class-free."""
    parents = cliques.plan.parents
    above: set[int] = set()
    waiting = list(parents[CLASS])
    while waiting:
        v = waiting.pop()
        if v not in above:
            above.add(v)
            waiting.extend(parents[v])
    factors = [_collapsed(v, class_free[v][0], cliques) for v in sorted(above)]
    plan = plan_elimination([f.scope for f in factors], cliques.group_counts, parents[CLASS])
    check_cells(plan.largest)
    return np.exp(eliminate(factors, plan.order).values[..., 0])[np.newaxis]


def _collapsed(variable: int, table: FloatArray, cliques: Cliques) -> Factor:
    by_group = collapse(table, cliques.group_of(variable))
    return condition((*cliques.plan.parents[variable], variable), by_group, {})


@dataclass
class Fit:
    """Iterative proportional fitting under way.

    Parameters
    ----------
    cliques
        The junction tree.
    class_free
        log q of the features below the class, which the fit changes.
    targets
        What the family marginals should be.
    beliefs
        What they are, with the class.
    separators
        The belief that a clique and the one of its receiver agreed on when they last spoke.
    """

    cliques: Cliques
    class_free: Tables
    targets: Mapping[int, FloatArray]
    beliefs: Tables
    separators: Tables

    @classmethod
    def start(
        cls,
        tables: Mapping[int, FloatArray],
        class_free: Mapping[int, FloatArray],
        cliques: Cliques,
    ) -> Fit:
        """The beliefs of a network: its tables multiplied from the class downwards."""
        plan = cliques.plan
        targets = target_marginals(class_free, cliques)
        beliefs = {CLASS: np.exp(tables[CLASS]) * targets[CLASS]}
        separators = {}
        for i in reversed(plan.order):
            receiver = plan.receiver[i]
            separators[i] = cliques.reduce(beliefs[receiver], receiver, plan.parents[i])
            beliefs[i] = np.exp(tables[i]) * separators[i][..., np.newaxis]
        free = {i: class_free[i].copy() for i in plan.order}
        return cls(cliques, free, targets, beliefs, separators)

    def run(self) -> list[float]:
        """Sweep until all marginals fit; the largest distance seen in each sweep."""
        plan = self.cliques.plan
        walk = list(_walk_around(plan.order, plan.receiver))
        work = sum(b.size + _WORK_PER_CLIQUE for b in self.beliefs.values())
        distances: list[float] = []
        for _ in range(min(MAX_SWEEPS, math.ceil(MAX_WORK / (5 * work)))):
            distances.append(max(self._step(*step) for step in walk))
            if distances[-1] < TOLERANCE:
                break
        return distances

    def _step(self, edge: int | None, source: int, clique: int) -> float:
        """Go from one clique to the next; without an edge the clique is new and gets fitted."""
        if edge is None:
            return self._fit(clique)
        self._carry(edge, source, clique)
        return 0.0

    def _fit(self, clique: int) -> float:
        belief, target = self.beliefs[clique], self.targets[clique]
        marginal = belief.sum(axis=0, keepdims=True)
        factor = np.maximum(target, _SMALLEST) / np.maximum(marginal, _SMALLEST)
        belief *= factor
        if clique != CLASS:
            self.class_free[clique] += np.log(factor)
        return float(np.abs(target - marginal).sum())

    def _carry(self, edge: int, source: int, clique: int) -> None:
        """Multiply into a clique what has changed in its neighbour since they last spoke."""
        scope = self.cliques.plan.parents[edge]
        now = self.cliques.reduce(self.beliefs[source], source, scope)
        ratio = now / np.maximum(self.separators[edge], _SMALLEST)
        self.beliefs[clique] *= self.cliques.align(ratio, scope, clique)
        self.separators[edge] = now


def _walk_around(
    order: tuple[int, ...], receiver: Mapping[int, int]
) -> Iterator[tuple[int | None, int, int]]:
    """Steps (edge, from, to) around the tree from the class and back, None where a clique is new.

    An edge has the name of its lower clique.
    """
    children: dict[int, list[int]] = {v: [] for v in (CLASS, *order)}
    for i in order:
        children[receiver[i]].append(i)
    yield None, CLASS, CLASS
    path = [(CLASS, iter(children[CLASS]))]
    while path:
        here, rest = path[-1]
        child = next(rest, None)
        if child is not None:
            yield child, here, child
            yield None, child, child
            path.append((child, iter(children[child])))
        else:
            path.pop()
            if path:
                yield here, here, path[-1][0]
