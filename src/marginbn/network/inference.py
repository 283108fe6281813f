"""Exact answers of a network to evidence: variable elimination with the states it needs.

The tables are conditioned on the evidence and the other variables are eliminated
(``elimination.py``). A variable that is neither asked for nor observed nor an ancestor of such a
variable sums to one; it is barren and left out.

A variable whose states are seen in groups (``groups.py``) is eliminated over its *groups*, with its
collapsed table: to its children two states of a group are the same. Only a variable that is asked
for is kept with all its states, and only for it the tables of its children are expanded. Where all
variables are asked for, the table of each tells how its group g divides into states x:

    marginal     P(x, e) = sum over parents  P(g, parents, e) P(x | parents) / P(g | parents)
    draw         x from P(x | parents) among the states of the group that was drawn
    best state   the best of P(x | parents) among the states of the best group
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError
from marginbn.network import elimination
from marginbn.network.elimination import (
    Factor,
    FloatArray,
    Plan,
    Reduction,
    Step,
    check_cells,
    max_out,
    sum_out,
)
from marginbn.network.groups import IntArray, collapse, count_groups, expand
from marginbn.problem.encoded import Groups
from marginbn.problem.structure import Structure

Codes = Mapping[int, int]
"""State by variable."""


@dataclass(frozen=True, eq=False)
class Inference:
    """The tables of a network and the questions they answer; evidence is a state by variable."""

    structure: Structure
    arities: tuple[int, ...]
    log_tables: tuple[FloatArray, ...]
    groups: Groups

    def log_joint_of(self, variables: Sequence[int], observed: Codes) -> FloatArray:
        """Log P(variables, evidence), an axis per variable; they are increasing and not observed.

        Without variables this is the log probability of the evidence.
        """
        factors = self._factors(
            observed, _ancestors(self.structure, (*variables, *observed)), variables
        )
        plan = self._plan(factors, variables)
        check_cells(plan.largest)
        return elimination.eliminate(factors, plan.order).values[..., 0]

    def log_marginals(self, observed: Codes) -> dict[int, FloatArray]:
        """Unnormalised log posterior of every variable that is not observed."""
        trail = self._full_trail(observed, sum_out)
        beliefs = elimination.believe(trail)
        coarse = {v: elimination.marginalise(belief, (v,)) for v, belief in beliefs.items()}
        place = {step.variable: k for k, step in enumerate(trail)}
        return {
            v: self._refined(v, observed, beliefs, place)
            if self._is_coarse(v)
            else marginal.values[:, 0]
            for v, marginal in coarse.items()
        }

    def most_probable(self, observed: Codes) -> dict[int, int]:
        """The most probable state of all variables, of several the lexicographically first."""
        trail = self._full_trail(observed, max_out)
        seen, unique = elimination.trace_back(trail, self._seen(observed))
        if not unique:
            return self._first_explanation(observed)
        codes = {v: observed.get(v, code) for v, code in seen.items()}
        for v in range(len(self.arities)):
            if self._is_coarse(v) and v not in observed:
                members = self._members(v, seen[v])
                row = self.log_tables[v][tuple(seen[p] for p in self.structure.parents[v])]
                # Equally good states of a group are the same to all others: the first is taken.
                codes[v] = int(members[elimination.near_best(row[members])[0]])
        return codes

    def draw(self, n: int, observed: Codes, rng: np.random.Generator) -> NDArray[np.int32]:
        """Independent draws of all variables given the evidence, int32 (n, n_variables)."""
        seen = np.empty((n, len(self.arities)), dtype=np.int32)
        trail = self._full_trail(observed, sum_out)
        for variable, code in self._seen(observed).items():
            seen[:, variable] = code
        elimination.draw_back(trail, seen, rng)
        codes = seen.copy()
        for variable, state in observed.items():
            codes[:, variable] = state
        for v in range(len(self.arities)):
            if self._is_coarse(v) and v not in observed:
                codes[:, v] = self._draw_within_groups(v, seen, rng)
        return codes

    def entry(self, i: int, codes: Codes) -> float:
        """Log P(i | parents) at a joint state."""
        seen = self._seen(codes)
        return float(self.log_tables[i][(*(seen[p] for p in self.structure.parents[i]), codes[i])])

    @cached_property
    def _coarse_arities(self) -> tuple[int, ...]:
        return count_groups(self.groups, self.arities)

    def _is_coarse(self, variable: int) -> bool:
        return self.groups[variable] is not None

    def _seen(self, codes: Codes) -> dict[int, int]:
        """The codes by which children know the states of their parents."""
        return {
            v: code if (groups := self.groups[v]) is None else int(groups[code])
            for v, code in codes.items()
        }

    def _members(self, variable: int, group: int) -> IntArray:
        """States of a group."""
        return np.flatnonzero(self.groups[variable] == group)

    def _factors(
        self,
        observed: Codes,
        variables: Iterable[int],
        kept: Collection[int] = (),
        reduction: Reduction = sum_out,
    ) -> list[Factor]:
        """Tables where they agree with the evidence, over groups but for what is kept."""
        return [self._factor(i, observed, kept, reduction) for i in sorted(variables)]

    def _factor(
        self, i: int, observed: Codes, kept: Collection[int], reduction: Reduction = sum_out
    ) -> Factor:
        parents, groups = self.structure.parents[i], self.groups[i]
        table = self.log_tables[i]
        seen = self._seen({v: observed[v] for v in (*parents, i) if v in observed})
        if i in observed:
            seen[i] = observed[i]
        elif groups is not None and i not in kept:
            table = collapse(table, groups, maximum=reduction is max_out)
        factor = elimination.condition((*parents, i), table, seen)
        # The evidence came first: only what it leaves of a table is expanded.
        wanted = [self.groups[v] if v in kept and v != i else None for v in factor.scope]
        return Factor(factor.scope, expand(factor.values, wanted))

    def _plan(self, factors: Sequence[Factor], keep: Sequence[int]) -> Plan:
        arities = list(self._coarse_arities)
        for v in keep:
            arities[v] = self.arities[v]
        return elimination.plan_elimination((f.scope for f in factors), arities, keep)

    def _full_trail(self, observed: Codes, reduction: Reduction) -> list[Step]:
        """The steps that eliminate every unobserved variable; refuses impossible evidence."""
        factors = self._factors(observed, range(len(self.arities)), (), reduction)
        plan = self._plan(factors, ())
        check_cells(plan.total)  # all products are kept until the way back
        trail: list[Step] = []
        rest = elimination.eliminate(factors, plan.order, reduction, trail)
        refuse_impossible(float(rest.values[0]))
        return trail

    def _refined(
        self, i: int, observed: Codes, beliefs: Mapping[int, Factor], place: Mapping[int, int]
    ) -> FloatArray:
        """Log marginal over states from the belief about groups, as above.

        The step that used the table of i, that of the first eliminated variable in it, has a belief
        about all of its variables.
        """
        coarse, fine = self._factor(i, observed, ()), self._factor(i, observed, (i,))
        belief = beliefs[min(coarse.scope, key=place.__getitem__)]
        ratio = elimination.divide(elimination.marginalise(belief, coarse.scope), coarse)
        axis_groups = [self.groups[v] if v == i else None for v in ratio.scope]
        told = Factor(ratio.scope, expand(ratio.values, axis_groups))
        return elimination.marginalise(elimination.multiply([told, fine]), (i,)).values[:, 0]

    def _draw_within_groups(
        self, i: int, seen: NDArray[np.int32], rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """States of a variable whose group, and those of its parents, are drawn already."""
        states = np.empty(len(seen), dtype=np.int32)
        for group in range(self._coarse_arities[i]):
            rows, members = np.flatnonzero(seen[:, i] == group), self._members(i, group)
            given = tuple(seen[rows, p] for p in self.structure.parents[i])
            table = self.log_tables[i][..., members]
            states[rows] = members[elimination.draw_states(table, given, len(rows), rng)]
        return states

    def _first_explanation(self, observed: Codes) -> dict[int, int]:
        """Lexicographically first explanation: one variable after the other at its best state."""
        codes = dict(observed)
        for variable in range(len(self.arities)):
            if variable in codes:
                continue
            factors = self._factors(codes, range(len(self.arities)), (variable,), max_out)
            plan = self._plan(factors, (variable,))
            check_cells(plan.largest)
            best = elimination.eliminate(factors, plan.order, max_out)
            codes[variable] = int(elimination.near_best(best.values[..., 0])[0])
        return codes


def refuse_impossible(log_probability: float) -> None:
    """Nothing can be said given what cannot happen."""
    if log_probability == -np.inf:
        raise InputError(
            "evidence has probability zero under this network, so nothing can be conditioned on "
            "it; check the labels, or estimate the parameters with smoothing > 0"
        )


def _ancestors(structure: Structure, variables: Iterable[int]) -> set[int]:
    """The variables and everything upstream of them."""
    found: set[int] = set()
    waiting = list(variables)
    while waiting:
        v = waiting.pop()
        if v not in found:
            found.add(v)
            waiting.extend(structure.parents[v])
    return found
