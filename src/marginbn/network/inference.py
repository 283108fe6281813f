"""Exact answers of a network to evidence: variable elimination with the states it needs.

The tables are conditioned on the evidence and the other variables are eliminated
(``elimination.py``). A variable that is neither asked for nor observed nor an ancestor of such a
variable sums to one; it is barren and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marginbn.exceptions import InputError
from marginbn.network import elimination
from marginbn.network.elimination import (
    Factor,
    Plan,
    Reduction,
    Step,
    check_cells,
    max_out,
    sum_out,
)
from marginbn.problem.array_types import CodeArray, FloatArray
from marginbn.problem.structure import Structure

Codes = Mapping[int, int]
"""State by variable."""


@dataclass(frozen=True, eq=False)
class Inference:
    """The tables of a network and the questions they answer; evidence is a state by variable."""

    structure: Structure
    arities: tuple[int, ...]
    log_tables: tuple[FloatArray, ...]

    def log_joint_of(self, variables: Sequence[int], observed: Codes) -> FloatArray:
        """Log P(variables, evidence), an axis per variable; they are increasing and not observed.

        Without variables this is the log probability of the evidence.
        """
        factors = self._factors(observed, self.structure.ancestors((*variables, *observed)))
        plan = self._plan(factors, variables)
        check_cells(plan.largest)
        return elimination.eliminate(factors, plan.order).values[..., 0]

    def log_marginals(self, observed: Codes) -> dict[int, FloatArray]:
        """Unnormalised log posterior of every variable that is not observed."""
        beliefs = elimination.believe(self._full_trail(observed, sum_out))
        return {
            v: elimination.marginalise(belief, (v,)).values[:, 0] for v, belief in beliefs.items()
        }

    def most_probable(self, observed: Codes) -> dict[int, int]:
        """The most probable state of all variables."""
        return elimination.trace_back(self._full_trail(observed, max_out), observed)

    def draw(self, n: int, observed: Codes, rng: np.random.Generator) -> CodeArray:
        """Independent draws of all variables given the evidence, int32 (n, n_variables)."""
        codes = np.empty((n, len(self.arities)), dtype=np.int32)
        trail = self._full_trail(observed, sum_out)
        for variable, state in observed.items():
            codes[:, variable] = state
        elimination.draw_back(trail, codes, rng)
        return codes

    def entry(self, i: int, codes: Codes) -> float:
        """Log P(i | parents) at a joint state."""
        return float(self.log_tables[i][tuple(codes[v] for v in (*self.structure.parents[i], i))])

    def _factors(self, observed: Codes, variables: Iterable[int]) -> list[Factor]:
        """Tables where they agree with the evidence."""
        return [
            elimination.condition((*self.structure.parents[i], i), self.log_tables[i], observed)
            for i in sorted(variables)
        ]

    def _plan(self, factors: Sequence[Factor], keep: Sequence[int]) -> Plan:
        return elimination.plan_elimination((f.scope for f in factors), self.arities, keep)

    def _full_trail(self, observed: Codes, reduction: Reduction) -> list[Step]:
        """The steps that eliminate every unobserved variable; refuses impossible evidence."""
        factors = self._factors(observed, range(len(self.arities)))
        plan = self._plan(factors, ())
        check_cells(plan.total)  # all products are kept until the way back
        trail: list[Step] = []
        rest = elimination.eliminate(factors, plan.order, reduction, trail)
        refuse_impossible(float(rest.values[0]))
        return trail


def refuse_impossible(log_probability: float) -> None:
    """Nothing can be said given what cannot happen."""
    if log_probability == -np.inf:
        raise InputError(
            "evidence has probability zero under this network, so nothing can be conditioned on "
            "it; check the labels, or estimate the parameters with smoothing > 0"
        )
