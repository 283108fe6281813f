"""Variable elimination on factors of log values.

A factor f is a function of a few variables, its scope, kept as log f. A Bayesian network is the
product of its tables, so every exact question about it reduces to three operations:

    product              log (f g)(x, y, z) = log f(x, y) + log g(y, z)
    sum over y           log sum_y exp log f(x, y)
    maximum over y       max_y log f(x, y)

To eliminate a variable means: multiply the factors that mention it, then sum (or maximise) it out.
Any order gives the same answer; the order decides only how large the products become. Logarithms
are kept throughout because a product of hundreds of probabilities leaves the range of a float.
The steps of a full elimination, its trail, read backwards give marginals, the most probable state
and independent draws.

Every factor carries one more axis, the cases, which holds different evidence side by side. It is
the last axis so that all arithmetic runs along contiguous memory; its length is 1 or the number of
cases. Scopes are increasing, therefore factors are aligned by reshaping alone.

:class:`Inference` answers the questions about a network. A variable that is neither asked for nor
observed nor an ancestor of such a variable is barren: it sums to one and is left out.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.array_types import CodeArray, FloatArray
from marginbn.problem.structure import Structure

MAX_CELLS = 2**27
"""Largest table that is ever built, per case: 1 GiB of floats."""

MAX_AXES = 31
"""Most variables in one table; numpy 1 allows 32 axes and one belongs to the cases."""

_DRAWS = 2**16
"""Samples drawn at once, so that the rows gathered for them stay small in memory."""


@dataclass(frozen=True)
class Factor:
    """Log values of a function of some variables."""

    scope: tuple[int, ...]  # increasing
    values: FloatArray  # (*arities of the scope, n_cases or 1)


Reduce = Callable[[Factor, int], Factor]


@dataclass(frozen=True)
class Step:
    """One elimination: the product of the factors that mention ``variable``, and what is left."""

    variable: int
    product: Factor
    message: Factor


@dataclass(frozen=True)
class Plan:
    """An elimination order with the cells of its largest product and of all its products."""

    order: tuple[int, ...]
    largest: int
    total: int


def multiply(factors: Sequence[Factor]) -> Factor:
    """Product of the factors over the union of their scopes; of none, the constant one."""
    if not factors:
        return Factor((), np.zeros(1))
    scope = tuple(sorted({v for factor in factors for v in factor.scope}))
    values = _aligned(factors[0], scope)
    for factor in factors[1:]:
        values = values + _aligned(factor, scope)
    return Factor(scope, values)


def _aligned(factor: Factor, scope: tuple[int, ...]) -> FloatArray:
    """Values with an axis of length one for every variable of ``scope`` the factor ignores."""
    if factor.scope == scope:
        return factor.values
    lengths = dict(zip(factor.scope, factor.values.shape, strict=False))
    return factor.values.reshape(*(lengths.get(v, 1) for v in scope), factor.values.shape[-1])


def sum_out(factor: Factor, variable: int) -> Factor:
    """Sum over the states of ``variable``."""
    return marginalise(factor, [v for v in factor.scope if v != variable])


def _log_sum(values: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Log of the sum over some axes."""
    peak = np.maximum.reduce(values, axis=axes, keepdims=True)
    # Where everything is log 0 the peak is -inf, and -inf - (-inf) would be no number.
    peak[peak == -np.inf] = 0.0
    scaled = values - peak
    np.exp(scaled, out=scaled)
    total: FloatArray = np.add.reduce(scaled, axis=axes)
    with np.errstate(divide="ignore"):
        np.log(total, out=total)
    total += peak.reshape(total.shape)
    return total


def max_out(factor: Factor, variable: int) -> Factor:
    """Maximum over the states of ``variable``."""
    rest = tuple(v for v in factor.scope if v != variable)
    return Factor(rest, factor.values.max(axis=factor.scope.index(variable)))


def condition(variables: Sequence[int], table: FloatArray, evidence: Mapping[int, int]) -> Factor:
    """The slice of a log table that agrees with the evidence, as a factor of a single case.

    ``variables`` names the axes of ``table``, in any order.
    """
    sliced = table[tuple(evidence.get(v, slice(None)) for v in variables)]
    free = [v for v in variables if v not in evidence]
    axes = sorted(range(len(free)), key=free.__getitem__)
    return Factor(tuple(sorted(free)), np.transpose(sliced, axes)[..., np.newaxis])


def plan_elimination(
    scopes: Iterable[tuple[int, ...]], arities: Sequence[int], keep: Collection[int]
) -> Plan:
    """Greedy order: always eliminate the variable whose product is smallest, ties by index."""
    neighbours = _interaction_graph(scopes)

    def cells(variable: int) -> int:
        return arities[variable] * math.prod(arities[u] for u in neighbours[variable])

    costs = {v: cells(v) for v in neighbours if v not in keep}
    queue = [(cost, v) for v, cost in costs.items()]
    heapq.heapify(queue)
    order: list[int] = []
    kept = math.prod(arities[v] for v in keep)
    largest, total = kept, kept
    while queue:
        cost, variable = heapq.heappop(queue)
        if costs.get(variable) != cost:  # an entry from before a neighbour was eliminated
            continue
        del costs[variable]
        order.append(variable)
        largest, total = max(largest, cost), total + cost
        _check_axes(len(neighbours[variable]) + 1)
        around = neighbours.pop(variable)
        for u in around:  # all neighbours are joined, as the message will join them
            neighbours[u] |= around
            neighbours[u] -= {u, variable}
        for u in around:
            if u in costs:
                costs[u] = cells(u)
                heapq.heappush(queue, (costs[u], u))
    _check_axes(len(keep))
    return Plan(tuple(order), largest, total)


def _interaction_graph(scopes: Iterable[tuple[int, ...]]) -> dict[int, set[int]]:
    """Variables joined when some scope mentions both."""
    neighbours: dict[int, set[int]] = {}
    for scope in scopes:
        for v in scope:
            neighbours.setdefault(v, set()).update(scope)
    for v, adjacent in neighbours.items():
        adjacent.discard(v)
    return neighbours


def check_cells(cells: int) -> None:
    """Refuse tables that would not fit into memory."""
    if cells > MAX_CELLS:
        raise ProblemTooLargeError(
            f"the exact answer needs tables of {describe_cells(cells)} cells, more than the "
            f"limit of {MAX_CELLS} (1 GiB); give more evidence, ask for fewer variables, or use a "
            "structure with fewer parents"
        )


def describe_cells(cells: int) -> str:
    """A number that may be far beyond the largest float, in a few characters."""
    return str(cells) if cells < 10**9 else f"about 2**{cells.bit_length() - 1}"


def _check_axes(axes: int) -> None:
    if axes > MAX_AXES:
        raise ProblemTooLargeError(
            f"the exact answer needs a table over {axes} variables, more than the limit of "
            f"{MAX_AXES}; give evidence on more variables or ask for fewer at once"
        )


def eliminate(
    factors: Iterable[Factor],
    order: Iterable[int],
    reduction: Reduce = sum_out,
    trail: list[Step] | None = None,
) -> Factor:
    """Eliminate the variables of ``order``; the result is a factor of all the others.

    Every step is appended to ``trail`` when one is given.
    """
    ordered = list(order)
    place = {variable: k for k, variable in enumerate(ordered)}
    # A factor waits for the first of its variables to be eliminated, or for the end.
    waiting: list[list[Factor]] = [[] for _ in range(len(ordered) + 1)]
    for factor in factors:
        waiting[_turn(factor.scope, place)].append(factor)
    for k, variable in enumerate(ordered):
        product = multiply(waiting[k])
        message = reduction(product, variable)
        waiting[_turn(message.scope, place)].append(message)
        if trail is not None:
            trail.append(Step(variable, product, message))
    return multiply(waiting[-1])


def _turn(scope: tuple[int, ...], place: Mapping[int, int]) -> int:
    """When the first variable of a scope is eliminated; after all others if none is."""
    return min((place.get(v, len(place)) for v in scope), default=len(place))


def believe(trail: Sequence[Step]) -> dict[int, Factor]:
    """What the steps of a full sum say in the end: by variable, the belief of its step.

    The products of the steps form a tree: a message goes to the first later step of a variable in
    its scope. From the roots of the tree down to its leaves, the belief of a step is

        belief_v = product_v * (sum of belief_parent down to the message's scope) / message_v,

    which is the product of all factors of the component with everything else summed out. Where a
    message is zero so is the belief of its parent, and 0 / 0 stands for 0.
    """
    position = {step.variable: i for i, step in enumerate(trail)}
    beliefs: dict[int, Factor] = {}
    for step in reversed(trail):
        belief = step.product
        if step.message.scope:
            receiver = min(step.message.scope, key=position.__getitem__)
            target = marginalise(beliefs[receiver], step.message.scope)
            belief = multiply([belief, divide(target, step.message)])
        beliefs[step.variable] = belief
    return beliefs


def marginalise(factor: Factor, scope: Collection[int]) -> Factor:
    """Sum over all variables that are not in ``scope``."""
    axes = tuple(k for k, variable in enumerate(factor.scope) if variable not in scope)
    if not axes:
        return factor
    kept = tuple(variable for variable in factor.scope if variable in scope)
    return Factor(kept, _log_sum(factor.values, axes))


def divide(numerator: Factor, denominator: Factor) -> Factor:
    """Ratio of two factors of equal scope; 0 / 0 is 0."""
    zero = denominator.values == -np.inf
    if not zero.any():
        return Factor(numerator.scope, numerator.values - denominator.values)
    values = np.where(zero, -np.inf, numerator.values - np.where(zero, 0.0, denominator.values))
    return Factor(numerator.scope, values)


def draw_states(
    log_table: FloatArray,
    given: tuple[NDArray[np.integer], ...],
    n: int,
    rng: np.random.Generator,
) -> CodeArray:
    """Draw ``n`` states from the rows (last axis) of an unnormalised log table.

    ``given`` holds one array of ``n`` codes per leading axis and selects the row of each draw.
    States of probability zero are never drawn.
    """
    peak = log_table.max(axis=-1, keepdims=True)
    cumulative = np.exp(log_table - np.where(np.isneginf(peak), 0.0, peak)).cumsum(axis=-1)
    states = np.empty(n, dtype=np.int32)
    for start in range(0, n, _DRAWS):
        part = slice(start, min(start + _DRAWS, n))
        rows = np.atleast_2d(cumulative[tuple(codes[part] for codes in given)])
        threshold = rng.random(part.stop - start) * rows[:, -1]
        states[part] = (rows <= threshold[:, np.newaxis]).sum(axis=1)
    return states


# --- questions about a network ---


@dataclass(frozen=True, eq=False)
class Inference:
    """The tables of a network and the questions they answer; evidence is a state by variable."""

    structure: Structure
    arities: tuple[int, ...]
    log_tables: tuple[FloatArray, ...]

    def log_joint_of(self, variables: Sequence[int], observed: Mapping[int, int]) -> FloatArray:
        """Log P(variables, evidence), an axis per variable; they are increasing and not observed.

        Without variables this is the log probability of the evidence.
        """
        factors = self._factors(observed, self.structure.ancestors((*variables, *observed)))
        plan = plan_elimination((f.scope for f in factors), self.arities, variables)
        check_cells(plan.largest)
        return eliminate(factors, plan.order).values[..., 0]

    def log_marginals(self, observed: Mapping[int, int]) -> dict[int, FloatArray]:
        """Unnormalised log posterior of every variable that is not observed."""
        beliefs = believe(self._full_trail(observed, sum_out))
        return {v: marginalise(belief, (v,)).values[:, 0] for v, belief in beliefs.items()}

    def most_probable(self, observed: Mapping[int, int]) -> dict[int, int]:
        """The most probable state of all variables; the first state of equals."""
        codes = dict(observed)
        for step in reversed(self._full_trail(observed, max_out)):
            scope = step.product.scope
            row = tuple(slice(None) if v == step.variable else codes[v] for v in scope)
            codes[step.variable] = int(step.product.values[..., 0][row].argmax())
        return codes

    def draw(self, n: int, observed: Mapping[int, int], rng: np.random.Generator) -> CodeArray:
        """Independent draws of all variables given the evidence, int32 (n, n_variables).

        With the later variables drawn, the product of a step is proportional to the conditional
        distribution of its own variable.
        """
        codes = np.empty((n, len(self.arities)), dtype=np.int32)
        trail = self._full_trail(observed, sum_out)
        for variable, state in observed.items():
            codes[:, variable] = state
        for step in reversed(trail):
            scope = step.product.scope
            table = np.moveaxis(step.product.values[..., 0], scope.index(step.variable), -1)
            others = tuple(codes[:, v] for v in scope if v != step.variable)
            codes[:, step.variable] = draw_states(table, others, n, rng)
        return codes

    def _factors(self, observed: Mapping[int, int], variables: Iterable[int]) -> list[Factor]:
        """Tables where they agree with the evidence."""
        return [
            condition((*self.structure.parents[i], i), self.log_tables[i], observed)
            for i in sorted(variables)
        ]

    def _full_trail(self, observed: Mapping[int, int], reduction: Reduce) -> list[Step]:
        """The steps that eliminate every unobserved variable; refuses impossible evidence."""
        factors = self._factors(observed, range(len(self.arities)))
        plan = plan_elimination((f.scope for f in factors), self.arities, ())
        check_cells(plan.total)  # all products are kept until the way back
        trail: list[Step] = []
        rest = eliminate(factors, plan.order, reduction, trail)
        refuse_impossible(float(rest.values[0]))
        return trail


def refuse_impossible(log_probability: float) -> None:
    """Nothing can be said given what cannot happen."""
    if log_probability == -np.inf:
        raise InputError(
            "evidence has probability zero under this network, so nothing can be conditioned on "
            "it; check the labels, or estimate the parameters with smoothing > 0"
        )
