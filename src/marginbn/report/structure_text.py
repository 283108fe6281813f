"""A network in words: who depends on whom, and the conditional tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import align, column_widths, hanging


def constant_features(network: BayesianNetwork) -> list[str]:
    """Features with a single state, after discretisation."""
    return [v.name for v in network.variables[1:] if v.arity == 1]


def ignored_features(network: BayesianNetwork) -> list[str]:
    """Features connected to nothing: they have no influence on predictions."""
    connected = {v for arc in network.structure.arcs for v in arc}
    return [name for i, name in enumerate(network.names) if i > 0 and i not in connected]


def parents_by_name(network: BayesianNetwork) -> dict[str, list[str]]:
    """Names of the parents of each variable."""
    names = network.names
    return {
        names[i]: [names[p] for p in parents] for i, parents in enumerate(network.structure.parents)
    }


def describe_structure(network: BayesianNetwork, width: int = 80) -> list[str]:
    """Lines such as ``petal length <- class, petal width``; equal parents share a line."""
    ignored = ignored_features(network)
    groups: dict[tuple[str, ...], list[str]] = {}
    for child, parents in parents_by_name(network).items():
        if child not in ignored:
            groups.setdefault(tuple(parents), []).append(child)
    lines: list[str] = []
    for parents_of_group, children in groups.items():
        *others, last = _comma_separated(children)
        if parents_of_group:
            first, *more = _comma_separated(parents_of_group)
            lines += hanging("", [*others, f"{last} <- {first}", *more], width)
        else:
            lines += hanging("", [*others, f"{last}: no parents"], width)
    if ignored:
        lines += hanging("", ["ignored:", *_comma_separated(ignored)], width)
    return lines


def _comma_separated(names: Sequence[str]) -> list[str]:
    return [f"{name}," for name in names[:-1]] + [names[-1]]


def describe_tables(network: BayesianNetwork, width: int = 80) -> str:
    """All conditional probability tables as text, one block per variable."""
    return "\n\n".join(_describe_table(network, i, width) for i in range(network.n_variables))


def _describe_table(network: BayesianNetwork, i: int, width: int) -> str:
    """Rows are states of the parents, columns states of the variable, entries probabilities."""
    parents = network.structure.parents[i]
    given = ", ".join(network.names[p] for p in parents)
    title = f"P({network.names[i]}{' | ' + given if given else ''})"
    table = network.log_tables[i].reshape(-1, network.arities[i])
    shapes = [network.variables[p].states for p in parents]
    contexts = [", ".join(c) for c in _product(shapes)]
    header = ["", *network.variables[i].states]
    body = [
        [context, *(f"{math.exp(v):.4f}" for v in row)]
        for context, row in zip(contexts, table, strict=True)
    ]
    if (
        sum(column_widths([header, *body])) + 2 * len(header) > width
    ):  # too wide: one entry per line
        body = [
            [f"{context}: {state}" if context else state, value]
            for context, *values in body
            for state, value in zip(header[1:], values, strict=True)
        ]
        return "\n".join([title, *align(body)])
    return "\n".join([title, *align([header, *body])])


def _product(shapes: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """All combinations, the last running fastest, as tables are laid out."""
    combinations: list[tuple[str, ...]] = [()]
    for states in shapes:
        combinations = [(*c, s) for c in combinations for s in states]
    return combinations
