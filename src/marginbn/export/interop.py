"""Networks as objects of other packages: pgmpy and pyAgrum, there and back.

These packages are optional; each is imported when one of its functions is called. Names and states
become text on the way in. Neither has a class variable: on the way out the order of the
variables is kept, on the way in ``target`` says which variable is the class (by default the first).
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np

from marginbn.exceptions import InputError, MissingDependencyError
from marginbn.export.assembly import Assembly, put_first, to_probabilities
from marginbn.export.scanner import escape, unescape
from marginbn.files import shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable

_NUL_OR_BACKSLASH = re.compile(r"[\0\\]")


def to_pgmpy(network: BayesianNetwork) -> Any:
    """The network as a pgmpy ``DiscreteBayesianNetwork`` with its tables.

    There is an example in :func:`from_pgmpy`.
    """
    result = _import("pgmpy.models").DiscreteBayesianNetwork()
    tabular = _import("pgmpy.factors.discrete").TabularCPD
    names, arities = network.names, network.arities
    result.add_nodes_from(names)
    result.add_edges_from((names[p], names[c]) for p, c in network.structure.arcs)
    for i, parents in enumerate(network.structure.parents):
        table = to_probabilities(network.log_tables[i])
        family = [i, *parents]
        cpd = tabular(
            names[i],
            arities[i],
            table.reshape(-1, arities[i]).T,
            evidence=[names[p] for p in parents] or None,
            evidence_card=[arities[p] for p in parents] or None,
            state_names={names[v]: list(network.variables[v].states) for v in family},
        )
        result.add_cpds(cpd)
    return result


def from_pgmpy(model: Any, target: str | None = None) -> BayesianNetwork:
    """A network from a pgmpy ``DiscreteBayesianNetwork``.

    Parameters
    ----------
    model
        Every node must have its table.
    target
        The class; by default the first node.

    Examples
    --------
    >>> from marginbn import from_pgmpy, to_pgmpy
    >>> from_pgmpy(to_pgmpy(network), target="class") == network  # doctest: +SKIP
    True
    """
    cpds = {cpd.variable: cpd for cpd in model.get_cpds()}
    nodes = list(model.nodes())
    missing = [node for node in nodes if node not in cpds]
    if missing:
        raise InputError(f"model has no table for {shorten(missing[0])}; add it with add_cpds")
    variables = [Variable(str(n), tuple(map(str, cpds[n].state_names[n]))) for n in nodes]
    assembly = Assembly("pgmpy model", [(v, None) for v in variables])
    index = {node: i for i, node in enumerate(nodes)}
    for node in nodes:
        members = [index[member] for member in cpds[node].variables]
        shape = [variables[v].arity for v in members]
        values = np.array(cpds[node].get_values(), dtype=np.float64).reshape(shape)
        for axis, member in enumerate(cpds[node].variables):  # each table has its own order
            labels = tuple(map(str, cpds[node].state_names[member]))
            own = variables[members[axis]].states
            if sorted(labels) != sorted(own):
                raise InputError(f"tables disagree about the states of {shorten(member)}")
            values = values.take([labels.index(state) for state in own], axis=axis)
        assembly.add([*members[1:], members[0]], np.moveaxis(values, 0, -1))
    return put_first(assembly.build(), target)


def to_pyagrum(network: BayesianNetwork) -> Any:
    """The network as a pyAgrum ``BayesNet`` of labelled variables.

    Text ends at a NUL character there, so it is escaped in names, as in files. There is an
    example in :func:`from_pyagrum`.
    """
    gum = _import("pyagrum")
    result = gum.BayesNet("marginbn")
    for variable in network.variables:
        name, *states = (
            escape(text, _NUL_OR_BACKSLASH) if "\0" in text or "\\u{" in text else text
            for text in (variable.name, *variable.states)
        )
        result.add(gum.LabelizedVariable(name, name, states))
    for parent, child in network.structure.arcs:
        result.addArc(parent, child)  # nodes are numbered as they were added
    for i, parents in enumerate(network.structure.parents):
        table = to_probabilities(network.log_tables[i])
        # pyAgrum's arrays have the axes of its own order of the variables, reversed
        axes = [result.idFromName(name) for name in reversed(result.cpt(i).names)]
        values = table.transpose([(*parents, i).index(v) for v in axes])
        result.cpt(i)[:] = np.ascontiguousarray(values)
    return result


def from_pyagrum(model: Any, target: str | None = None) -> BayesianNetwork:
    """A network from a pyAgrum ``BayesNet``; states are the labels of its variables.

    Parameters
    ----------
    model
        The network.
    target
        The class; by default the first node.

    Examples
    --------
    >>> from marginbn import from_pyagrum, to_pyagrum
    >>> from_pyagrum(to_pyagrum(network), target="class") == network  # doctest: +SKIP
    True
    """
    nodes = sorted(model.nodes())
    found = [model.variable(node) for node in nodes]
    variables = [Variable(unescape(v.name()), tuple(map(unescape, v.labels()))) for v in found]
    assembly = Assembly("pyAgrum model", [(v, None) for v in variables])
    index = {v.name(): i for i, v in enumerate(found)}
    for i, node in enumerate(nodes):
        cpt = model.cpt(node)
        members = [index[name] for name in reversed(cpt.names)]  # the axes of its array
        values = np.array(cpt.toarray(), dtype=np.float64)
        parents = [v for v in members if v != i]
        assembly.add([*parents, i], np.moveaxis(values, members.index(i), -1))
    return put_first(assembly.build(), target)


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingDependencyError(
            f'{package} is not installed: pip install "marginbn[interop]"'
        ) from error
