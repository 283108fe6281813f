"""Tables over the families of a plan: their axes, and how one speaks to another.

A table of feature i has an axis for the class, one for each parent (over its groups) in increasing
order, and the states of i last. The table of the class has the class first, then its parents. Both
hold any function of their family, class-free ones with a first axis of length one. A *message* is
a function of the class and the groups of some features, its scope.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from marginbn.network.groups import IntArray, count_groups
from marginbn.parameters.class_scores import ClassScores, FloatArray
from marginbn.parameters.marrying import CLASS, Plan, speaking_tables

Tables = dict[int, FloatArray]
"""One table per variable: the class, and the features below it."""


@dataclass(frozen=True, eq=False)
class Cliques:
    """The families of a plan, and the number of states of each variable."""

    plan: Plan
    arities: tuple[int, ...]

    @cached_property
    def group_counts(self) -> tuple[int, ...]:
        """How many values each variable has as a parent."""
        return count_groups(self.plan.groups, self.arities)

    def group_of(self, variable: int) -> IntArray:
        """Group of each state of a variable, as its children see it."""
        seen = self.plan.groups[variable]
        return np.arange(self.arities[variable]) if seen is None else seen

    def first_states(self, variable: int) -> IntArray:
        """A state of each group."""
        return np.unique(self.group_of(variable), return_index=True)[1]

    def align(self, message: FloatArray, scope: tuple[int, ...], variable: int) -> FloatArray:
        """A message with the axes of the table of a variable, ready to be multiplied in."""
        lengths = dict(zip(scope, message.shape[1:], strict=True))
        axes = [lengths.get(p, 1) for p in self.plan.parents[variable]]
        if variable in lengths:
            axis = 1 + scope.index(variable)
            message = np.moveaxis(np.take(message, self.group_of(variable), axis), axis, -1)
            axes.append(self.arities[variable])
        elif variable != CLASS:
            axes.append(1)
        return message.reshape(len(message), *axes)

    def reduce(self, table: FloatArray, variable: int, scope: tuple[int, ...]) -> FloatArray:
        """The table of a variable summed down to a message over ``scope``."""
        parents = self.plan.parents[variable]
        dropped = tuple(k for k, p in enumerate(parents, start=1) if p not in scope)
        if variable == CLASS:
            return np.asarray(table.sum(axis=dropped))
        if variable not in scope:
            return np.asarray(table.sum(axis=(*dropped, table.ndim - 1)))
        summed = table.sum(axis=dropped) if dropped else table
        return np.moveaxis(summed @ self._membership(variable), -1, 1 + scope.index(variable))

    def _membership(self, variable: int) -> FloatArray:
        """One row per state, with a one at its group."""
        if variable not in self._memberships:
            rows = np.eye(self.group_counts[variable])[self.group_of(variable)]
            self._memberships[variable] = rows
        return self._memberships[variable]

    @cached_property
    def _memberships(self) -> dict[int, FloatArray]:
        return {}


def potentials_of(scores: ClassScores, cliques: Cliques) -> Tables:
    """The scores, each term in one family that holds all its features.

    That is the family of its feature that is summed out first, or the class if none is. The mean
    over the classes is taken away: it changes no posterior, and keeps exponentials in range.
    """
    plan = cliques.plan
    position = {i: k for k, i in enumerate(plan.order)}
    ndim = {v: 1 + len(plan.parents[v]) + (v != CLASS) for v in (CLASS, *plan.order)}
    tables = {v: np.zeros((len(scores.bias), *[1] * (ndim[v] - 1))) for v in ndim}
    for scope, term in _terms(scores, cliques):
        home = min((v for v in scope if v in position), key=position.__getitem__, default=CLASS)
        tables[home] = tables[home] + cliques.align(term, scope, home)
    for i in plan.order:
        effect = scores.effects[i - 1]
        tables[i] = tables[i] + effect.reshape(len(effect), *[1] * (ndim[i] - 2), -1)
    return {v: t - t.mean(axis=0) for v, t in tables.items()}


def _terms(scores: ClassScores, cliques: Cliques) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
    """Bias, interactions, and the main effects of the parents of the class, as messages."""
    yield (), scores.bias
    for v in cliques.plan.parents[CLASS]:
        yield (v,), scores.effects[v - 1][:, cliques.first_states(v)]
    for family, table in speaking_tables(scores).items():
        # The groups of the plan may be finer than those of the scores.
        for axis, v in enumerate(family, start=1):
            seen = scores.group_codes(v, cliques.first_states(v))
            table = np.take(table, seen, axis)
        yield family, table


def sum_out(potentials: Mapping[int, FloatArray], cliques: Cliques) -> Tables:
    """Conditional log tables P(i | class, parents) and P(class | parents), by leaf elimination.

        u_i(c, pa, x)  =  exp potential_i(c, pa, x) * product of the messages that end here
        Z_i(c, pa)     =  sum_x u_i(c, pa, x),         the message of i to its receiver
        P(x | c, pa)   =  u_i / Z_i

    Every Z_i is divided out here and multiplied in there, so the product of all tables is the
    exponential of the sum of the potentials, up to the last normaliser. That one, of the class, is
    a function of the parents of the class: no posterior changes.
    """
    plan = cliques.plan
    collected = dict(potentials)
    tables: Tables = {}
    for i in plan.order:
        message = logsumexp(collected[i], axis=-1)
        tables[i] = collected.pop(i) - message[..., np.newaxis]
        receiver = plan.receiver[i]
        aligned = cliques.align(message, plan.parents[i], receiver)
        collected[receiver] = collected[receiver] + aligned
    tables[CLASS] = collected[CLASS] - logsumexp(collected[CLASS], axis=0)
    return tables
