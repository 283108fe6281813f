"""Networks as objects of other packages: networkx, pgmpy and pyAgrum, there and back.

These packages are optional; each is imported when one of its functions is called. Names and states
become text on the way in. None of them knows a class variable: on the way out the order of the
variables is kept, on the way in ``target`` says which variable is the class (by default the first).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from importlib import import_module
from typing import Any

import numpy as np

from marginbn.exceptions import InputError, MissingDependencyError
from marginbn.export.assembly import Assembly, put_first, sort_parents, to_logs, to_probabilities
from marginbn.export.scanner import escape, unescape
from marginbn.files import shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.array_types import FloatArray
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure

_NUL_OR_BACKSLASH = re.compile(r"[\0\\]")


def to_networkx(network: BayesianNetwork) -> Any:
    """The network as a ``networkx.DiGraph``.

    Nodes are the names, in order. Each has the attributes ``states`` (labels), ``parents`` (names,
    in the order of the table's axes), ``log_table`` (log probabilities, the node's own states on
    the last axis) and ``is_class``.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier, to_networkx
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> graph = to_networkx(clf.network_)
    >>> list(graph.edges), graph.nodes["x0"]["states"]
    ([('class', 'x0')], ('blue', 'red'))
    """
    graph = _import("networkx").DiGraph()
    names = network.names
    for i, variable in enumerate(network.variables):
        graph.add_node(
            variable.name,
            states=variable.states,
            parents=tuple(names[p] for p in network.structure.parents[i]),
            log_table=network.log_tables[i],
            is_class=i == 0,
        )
    graph.add_edges_from((names[p], names[c]) for p, c in network.structure.arcs)
    return graph


def from_networkx(graph: Any, target: str | None = None) -> BayesianNetwork:
    """A network from a ``networkx.DiGraph`` whose nodes carry states and tables.

    Parameters
    ----------
    graph
        Every node needs ``states`` and either ``log_table`` or ``table`` (probabilities), with one
        axis per parent in the order of the attribute ``parents`` (or of the node's predecessors if
        there is none) and the node's own states on the last axis.
    target
        The class; by default the node whose attribute ``is_class`` is true, else the first one.

    Examples
    --------
    >>> import networkx
    >>> from marginbn import from_networkx
    >>> graph = networkx.DiGraph([("rain", "grass")])
    >>> graph.nodes["rain"].update(states=["no", "yes"], table=[0.8, 0.2])
    >>> graph.nodes["grass"].update(states=["dry", "wet"], table=[[0.9, 0.1], [0.25, 0.75]])
    >>> from_networkx(graph).posterior_array("rain", {"grass": "wet"}).round(3).tolist()
    [0.348, 0.652]
    """
    nodes = list(graph.nodes)
    index = {node: i for i, node in enumerate(nodes)}
    data = [graph.nodes[node] for node in nodes]
    variables = tuple(
        Variable(str(node), _labels(node, attributes.get("states")))
        for node, attributes in zip(nodes, data, strict=True)
    )
    assembly = Assembly("graph", [(v, None) for v in variables])
    parents = [_parents_of(graph, node, index) for node in nodes]
    tables = [
        sort_parents(parents[i], _graph_table(assembly, parents[i], i, data[i]))
        for i in range(len(nodes))
    ]
    network = BayesianNetwork(Structure(tuple(parents)), variables, tuple(tables))
    if target is None:
        target = next((str(node) for node in nodes if graph.nodes[node].get("is_class")), None)
    return put_first(network, target)


def _parents_of(graph: Any, node: Hashable, index: dict[Hashable, int]) -> tuple[int, ...]:
    predecessors = list(graph.predecessors(node))
    named = list(graph.nodes[node].get("parents", predecessors))
    if sorted(map(str, named)) != sorted(map(str, predecessors)):
        raise InputError(
            f"the attribute 'parents' of node {shorten(node)} must list its predecessors "
            f"{shorten(predecessors)}, got {shorten(named)}"
        )
    return tuple(index[parent] for parent in named)


def _graph_table(
    assembly: Assembly, parents: tuple[int, ...], child: int, attributes: dict[str, Any]
) -> FloatArray:
    """Log table with the parents in the graph's order."""
    shape = assembly.shape((*parents, child), None)
    name = assembly.variables[child].name
    for key in ("log_table", "table"):
        if key in attributes:
            try:
                table = np.array(attributes[key], dtype=np.float64)
            except (TypeError, ValueError):
                raise InputError(f"{key} of node {shorten(name)} must be an array") from None
            if table.shape != shape:
                reason = f"{key} of node {shorten(name)} must have shape {shape}, got {table.shape}"
                raise InputError(reason)
            return table if key == "log_table" else to_logs(table)
    raise InputError(f"node {shorten(name)} needs the attribute 'log_table' or 'table'")


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
    variables = [Variable(str(n), _labels(n, cpds[n].state_names[n])) for n in nodes]
    assembly = Assembly("pgmpy model", [(v, None) for v in variables])
    index = {node: i for i, node in enumerate(nodes)}
    for node in nodes:
        _add_pgmpy_table(assembly, cpds[node], index)
    return put_first(assembly.build(), target)


def _add_pgmpy_table(assembly: Assembly, cpd: Any, index: dict[Hashable, int]) -> None:
    """The table with states in the order of each parent's own table."""
    members = [index[node] for node in cpd.variables]
    shape = [assembly.variables[v].arity for v in members]
    values = np.array(cpd.get_values(), dtype=np.float64).reshape(shape)
    for axis, node in enumerate(cpd.variables):
        labels = _labels(node, cpd.state_names[node])
        own = assembly.variables[members[axis]].states
        if sorted(labels) != sorted(own):
            raise InputError(f"tables disagree about the states of {shorten(node)}")
        values = values.take([labels.index(state) for state in own], axis=axis)
    assembly.add([*members[1:], members[0]], np.moveaxis(values, 0, -1))


def to_pyagrum(network: BayesianNetwork) -> Any:
    """The network as a pyAgrum ``BayesNet`` of labelled variables.

    Text ends at a NUL character there, so it is escaped in names, as in files. There is an
    example in :func:`from_pyagrum`.
    """
    gum = _import("pyagrum")
    result = gum.BayesNet("marginbn")
    for variable in network.variables:
        name, *states = map(_to_c_text, (variable.name, *variable.states))
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


def _labels(node: Hashable, states: Iterable[object] | None) -> tuple[str, ...]:
    if states is None or isinstance(states, str):
        raise InputError(f"node {shorten(node)} needs its states, a sequence of labels")
    return tuple(str(state) for state in states)


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingDependencyError(
            f'{package} is not installed: pip install "marginbn[interop]"'
        ) from error


def _to_c_text(name: str) -> str:
    return escape(name, _NUL_OR_BACKSLASH) if "\0" in name or "\\u{" in name else name
