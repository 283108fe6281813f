"""Exact answers about a network: posteriors, evidence, most probable explanation, samples.

All of them condition the tables on the evidence, drop what cannot matter, and eliminate the other
variables (``elimination.py``). A variable that is neither asked for nor observed nor an ancestor
of such a variable sums to one; it is barren and left out from the start.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from marginbn.data.encode import Variable
from marginbn.exceptions import InputError
from marginbn.network.elimination import (
    Factor,
    FloatArray,
    Plan,
    Step,
    check_cells,
    condition,
    eliminate,
    marginalise_trail,
    max_out,
    plan_elimination,
    sum_out,
)
from marginbn.problem.structure import Structure

Evidence = Mapping[str | int, str]
"""Observed state label by variable name (or index)."""

_TIE = 1e-12
"""Log probabilities closer than this, relative to their size, differ by rounding only."""

_DRAWS = 2**16
"""Samples drawn at once, so that the rows they look up stay small in memory."""


class NetworkLike(Protocol):
    """What inference reads of a network; ``BayesianNetwork`` is the one that exists."""

    @property
    def structure(self) -> Structure: ...
    @property
    def variables(self) -> tuple[Variable, ...]: ...
    @property
    def log_tables(self) -> tuple[FloatArray, ...]: ...
    def variable_index(self, variable: str | int) -> int: ...
    def encode_evidence(self, evidence: Evidence | None) -> dict[int, int]: ...


def posterior(
    network: NetworkLike,
    query: str | int | Sequence[str | int],
    evidence: Evidence | None = None,
) -> FloatArray:
    """Probability of the joint states of some variables given the evidence.

    Parameters
    ----------
    network
        The network that is asked.
    query
        A variable, or several, by name or index.
    evidence
        State label by variable name, for any subset of the variables.

    Returns
    -------
    numpy.ndarray
        float64, one axis per queried variable in the order of ``query``; sums to one. An observed
        variable may be asked for and has its observed state with probability one.
    """
    asked = _query_indices(network, query)
    observed = network.encode_evidence(evidence)
    shape = [network.variables[v].arity for v in sorted(asked)]
    check_cells(math.prod(shape))
    free = sorted(v for v in asked if v not in observed)
    factors, plan = _prepare(network, observed, keep=free)
    joint = eliminate(factors, plan.order).values[..., 0]
    result = np.zeros(shape)
    result[tuple(observed.get(v, slice(None)) for v in sorted(asked))] = _normalised(joint)
    return np.ascontiguousarray(np.transpose(result, np.argsort(np.argsort(asked))))


def log_evidence(network: NetworkLike, evidence: Evidence | None = None) -> float:
    """Log probability of the evidence; ``-inf`` where it is impossible, 0 without any."""
    factors, plan = _prepare(network, network.encode_evidence(evidence), keep=())
    return float(eliminate(factors, plan.order).values[0])


def marginals(network: NetworkLike, evidence: Evidence | None = None) -> dict[str, FloatArray]:
    """Posterior of every variable on its own, by name, from one pass forth and one back."""
    observed = network.encode_evidence(evidence)
    trail = _full_trail(network, observed, summing=True)
    log_marginals = marginalise_trail(trail)
    result: dict[str, FloatArray] = {}
    for i, variable in enumerate(network.variables):
        if i in observed:
            result[variable.name] = np.eye(variable.arity)[observed[i]]
        else:
            result[variable.name] = _normalised(log_marginals[i])
    return result


def most_probable_explanation(
    network: NetworkLike, evidence: Evidence | None = None
) -> tuple[dict[str, str], float]:
    """The most probable joint state of all variables that agrees with the evidence.

    Returns
    -------
    assignment
        State label by variable name, for all variables, the observed ones included. Of several
        equally probable ones the first in lexicographic order of state indices.
    log_probability
        Log joint probability of that assignment.
    """
    observed = network.encode_evidence(evidence)
    trail = _full_trail(network, observed, summing=False)
    codes, unique = _trace_back(trail, observed)
    if not unique:
        codes = _first_explanation(network, observed)
    names = {v.name: v.states[codes[i]] for i, v in enumerate(network.variables)}
    return names, _log_joint(network, codes)


def sample_given(
    network: NetworkLike, n: int, rng: np.random.Generator, evidence: Evidence | None
) -> NDArray[np.int32]:
    """Independent draws from the exact conditional distribution, int32 (n, n_variables).

    The steps of a full elimination are read backwards: with the later variables drawn, a step's
    product is proportional to the conditional distribution of its own variable.
    """
    observed = network.encode_evidence(evidence)
    trail = _full_trail(network, observed, summing=True)
    codes = np.empty((n, len(network.variables)), dtype=np.int32)
    for variable, state in observed.items():
        codes[:, variable] = state
    for step in reversed(trail):
        scope = step.product.scope
        table = np.moveaxis(step.product.values[..., 0], scope.index(step.variable), -1)
        others = tuple(codes[:, v] for v in scope if v != step.variable)
        codes[:, step.variable] = draw_states(table, others, n, rng)
    return codes


def draw_states(
    log_table: FloatArray,
    given: tuple[NDArray[np.int32], ...],
    n: int,
    rng: np.random.Generator,
) -> NDArray[np.int32]:
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


def ancestors(structure: Structure, variables: Iterable[int]) -> set[int]:
    """The variables and everything upstream of them."""
    found: set[int] = set()
    waiting = list(variables)
    while waiting:
        v = waiting.pop()
        if v not in found:
            found.add(v)
            waiting.extend(structure.parents[v])
    return found


def _arities(network: NetworkLike) -> list[int]:
    return [v.arity for v in network.variables]


def _query_indices(network: NetworkLike, query: str | int | Sequence[str | int]) -> list[int]:
    names = [query] if isinstance(query, str | int | np.integer) else list(query)
    asked = [network.variable_index(name) for name in names]
    if not asked or len(set(asked)) != len(asked):
        raise InputError(f"query must name at least one variable, none of them twice, got {query}")
    return asked


def _prepare(
    network: NetworkLike, observed: Mapping[int, int], keep: Sequence[int]
) -> tuple[list[Factor], Plan]:
    """Conditioned factors of all variables that matter, and an affordable elimination order."""
    parents = network.structure.parents
    factors = [
        condition((*parents[i], i), network.log_tables[i], observed)
        for i in sorted(ancestors(network.structure, (*keep, *observed)))
    ]
    plan = plan_elimination((f.scope for f in factors), _arities(network), keep)
    check_cells(plan.largest)
    return factors, plan


def _full_trail(network: NetworkLike, observed: Mapping[int, int], *, summing: bool) -> list[Step]:
    """The steps that eliminate every unobserved variable; refuses impossible evidence."""
    families = enumerate(network.structure.parents)
    factors = [condition((*p, i), network.log_tables[i], observed) for i, p in families]
    plan = plan_elimination((f.scope for f in factors), _arities(network), ())
    check_cells(plan.total)  # all products are kept until the way back
    trail: list[Step] = []
    rest = eliminate(factors, plan.order, sum_out if summing else max_out, trail)
    _refuse_impossible(float(rest.values[0]))
    return trail


def _refuse_impossible(log_probability: float) -> None:
    if log_probability == -math.inf:
        raise InputError(
            "evidence has probability zero under this network, so nothing can be conditioned on "
            "it; check the labels, or estimate the parameters with smoothing > 0"
        )


def _normalised(log_values: FloatArray) -> FloatArray:
    peak = float(log_values.max())
    _refuse_impossible(peak)
    values = np.exp(log_values - peak)
    return np.asarray(values / values.sum())


def _near_best(log_values: FloatArray) -> NDArray[np.int64]:
    """Indices of all states that attain the maximum up to rounding."""
    peak = float(log_values.max())
    return np.flatnonzero(log_values >= peak - _TIE * (1.0 + abs(peak)))


def _trace_back(trail: Sequence[Step], observed: Mapping[int, int]) -> tuple[dict[int, int], bool]:
    """Best state of every variable, the last eliminated first, and whether no step was a tie."""
    codes = dict(observed)
    unique = True
    for step in reversed(trail):
        scope = step.product.scope
        row = tuple(slice(None) if v == step.variable else codes[v] for v in scope)
        best = _near_best(step.product.values[..., 0][row])
        codes[step.variable] = int(best[0])
        unique = unique and len(best) == 1
    return codes, unique


def _first_explanation(network: NetworkLike, observed: Mapping[int, int]) -> dict[int, int]:
    """Lexicographically first explanation: fix one variable after the other at its best state."""
    codes = dict(observed)
    everything = range(len(network.variables))
    for variable in everything:
        if variable in codes:
            continue
        factors = [
            condition((*network.structure.parents[i], i), network.log_tables[i], codes)
            for i in everything
        ]
        plan = plan_elimination((f.scope for f in factors), _arities(network), (variable,))
        check_cells(plan.largest)
        best = eliminate(factors, plan.order, max_out)
        codes[variable] = int(_near_best(best.values[..., 0])[0])
    return codes


def _log_joint(network: NetworkLike, codes: Mapping[int, int]) -> float:
    families = enumerate(network.structure.parents)
    terms = (network.log_tables[i][tuple(codes[v] for v in (*p, i))] for i, p in families)
    return math.fsum(float(term) for term in terms)
