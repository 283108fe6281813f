"""What was learned from a table without a class, in words and as one small HTML page; and
:func:`describe` and :func:`summarise` for any model.
"""

from __future__ import annotations

import textwrap
from html import escape
from typing import Any

from sklearn.utils.validation import check_is_fitted

from marginbn.classifiers.learner import BayesianNetworkLearner
from marginbn.network import wording
from marginbn.network.network import BayesianNetwork
from marginbn.network.svg import draw_figure
from marginbn.network.wording import counted, percent, seconds
from marginbn.report import summary
from marginbn.report.summary import comma_separated, describe_tables, parents_by_name
from marginbn.solvers.result import PROOF_TOLERANCE


def summarise(model: Any) -> dict[str, Any]:
    """All that is known about a network, a fitted classifier or a learner as JSON values."""
    if isinstance(model, BayesianNetwork):
        return summarise_network(model)
    if isinstance(model, BayesianNetworkLearner):
        return summarise_learner(model)
    return summary.summarise(model)


def describe(model: Any, width: int = 80) -> str:
    """A network, a fitted classifier or a learner in words: verdict, numbers, structure.

    Examples
    --------
    >>> from marginbn import BayesianNetworkLearner, describe
    >>> X = [["rain", "wet"], ["sun", "dry"]] * 20
    >>> print(describe(BayesianNetworkLearner().fit(X)).splitlines()[0])
    No allowed network has a better BIC score: proved.
    """
    if isinstance(model, BayesianNetwork):
        size = "\n".join(textwrap.wrap(f"A network of {size_of(model)}.", width))
        return "\n".join([size, "", *_structure_lines(model, width)])
    check_is_fitted(model)
    if isinstance(model, BayesianNetworkLearner):
        return describe_learner(model, width)
    return summary.describe(model, width=width)


def summarise_network(network: BayesianNetwork) -> dict[str, Any]:
    """Structure and size of a network, as plain values."""
    graph = network.cpdag()
    return {
        "parameters": network.n_parameters,
        "parents": parents_by_name(network),
        "compelled_arcs": [list(arc) for arc in graph.directed],
        "reversible_arcs": [list(arc) for arc in graph.undirected],
    }


def size_of(network: BayesianNetwork) -> str:
    """Numbers of variables, arcs and parameters."""
    arcs = counted(len(network.structure.arcs), "arc")
    return (
        f"{counted(network.n_variables, 'variable')}, {arcs} "
        f"({len(network.cpdag().undirected)} reversible), "
        f"{counted(network.n_parameters, 'parameter')}"
    )


def summarise_learner(learner: BayesianNetworkLearner) -> dict[str, Any]:
    """Everything about a fit, as plain values."""
    result = learner.result_
    return {
        "estimator": type(learner).__name__,
        "verdict": verdict_of(learner),
        "score": learner.get_params()["score"],
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "status": str(result.status),
        "optimal": result.is_optimal,
        "proved": summary.is_proved(learner),
        "seconds": result.seconds,
        "solver": result.solver,
        "nodes": result.nodes,
        "rows": learner.n_samples_,
        "rows_left_out": learner.n_dropped_,
        "columns_left_out": learner.preparation_.left_out,
        "candidates": learner.n_candidates_,
        "max_parents": learner.max_parents_,
        **summarise_network(learner.network_),
    }


def verdict_of(learner: BayesianNetworkLearner) -> str:
    """One sentence: is it the best network, and how sure is that."""
    result, name = learner.result_, learner.get_params()["score"].upper()
    allowed = "allowed network"
    if learner.max_parents_ < learner.network_.n_variables - 1:
        parents = counted(learner.max_parents_, "parent")
        allowed += f" with at most {parents} per variable"
    checked = learner.evidence_.verdict
    words = {"search": "proved", "file": "claimed by the file, not checked"}
    word = words.get(learner.evidence_.source, "verified")
    if result.is_optimal if checked is None else checked.gap <= PROOF_TOLERANCE:
        return f"No {allowed} has a better {name} score: {word}."
    gap, ending = (checked or result).gap, str(result.status).replace("_", " ")
    return (
        f"The best network found; no {allowed} has a {name} score more than {percent(gap)} better "
        f"({ending}): {word}."
    )


def facts_of(learner: BayesianNetworkLearner) -> list[tuple[str, str]]:
    """The numbers of a fit, as pairs of words."""
    result = learner.result_
    rows = counted(learner.n_samples_, "row")
    if learner.n_dropped_:
        rows += f" ({learner.n_dropped_} left out: missing values)"
    found = [
        ("score", f"{result.objective:.6f} ({learner.get_params()['score']})"),
        ("bound", f"{result.bound:.6f}, gap {percent(result.gap if result.gap > 1e-9 else 0.0)}"),
        ("search", f"{result.solver}, {seconds(result.seconds)}, {counted(result.nodes, 'node')}"),
        ("learned from", f"{rows}, {counted(learner.n_candidates_, 'parent set')} after pruning"),
        ("network", size_of(learner.network_)),
    ]
    binned = [c.name for c in learner.coding_.columns if c.kind == "numeric"]
    if binned:
        bins = f"{', '.join(binned)}: cut at quantiles into at most {learner.n_bins} bins"
        found.append(("numbers", bins))
    return found


def describe_learner(learner: BayesianNetworkLearner, width: int = 80) -> str:
    """Verdict, numbers and structure as text."""
    lines = [*textwrap.wrap(verdict_of(learner), width), ""]
    for name, text in facts_of(learner):
        lines += wording.hanging(f"{name:<14}", text, width)
    lines += ["", *_structure_lines(learner.network_, width)]
    return "\n".join(lines)


def _structure_lines(network: BayesianNetwork, width: int) -> list[str]:
    """Lines such as ``wet grass <- rain, sprinkler -- season``: compelled arcs, then reversible
    ones. Variables without any arc come last.
    """
    names, structure = network.names, network.structure
    graph = structure.cpdag()
    joined = {v for arc in structure.arcs for v in arc}
    undirected = {v for pair in graph.undirected for v in pair}
    lines: list[str] = []
    for child in sorted(joined):
        words = [names[child]]
        for sign, is_compelled in (("<-", True), ("--", False)):
            parents = structure.parents[child]
            own = [names[p] for p in parents if ((p, child) in graph.directed) == is_compelled]
            words += [sign, *comma_separated(own)] if own else []
        if len(words) > 1:
            lines += wording.hanging("", words, width)
        elif child not in undirected:
            lines += wording.hanging("", [f"{names[child]}:", "no", "parents"], width)
    constant = [i for i, variable in enumerate(network.variables) if variable.arity == 1]
    alone = [i for i in range(network.n_variables) if i not in joined and i not in constant]
    titles = {"independent of all others:": alone, "left out (one value in all rows):": constant}
    for title, members in titles.items():
        if members:
            words = [title, *comma_separated([names[i] for i in members])]
            lines += wording.hanging("", words, width)
    if undirected:
        lines += ["", *textwrap.wrap(REVERSIBLE, width)]
    return lines


REVERSIBLE = (
    "-- marks a reversible arc: networks with the arc in the other direction fit the data equally "
    "well. <- marks a compelled arc, which all of them have."
)

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root{{color-scheme:light dark;background:Canvas;color:CanvasText}}
body{{font-family:system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}}
th{{text-align:left;padding-right:1.5rem;vertical-align:top}}pre{{overflow-x:auto}}
.arcs{{white-space:pre-wrap}}
svg{{max-width:100%;height:auto}}</style></head>
<body><h1>{title}</h1><p><strong>{verdict}</strong></p>
<table>{facts}</table>
<h2>Network</h2>{figure}
<pre class="arcs">{structure}</pre>
<h2>Tables</h2><pre>{tables}</pre></body></html>
"""


def learned_page(learner: BayesianNetworkLearner, title: str = "Bayesian network") -> str:
    """One self-contained HTML page: verdict, numbers, picture, structure, tables."""
    network = learner.network_
    facts = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
        for name, text in facts_of(learner)
    )
    caption = "Arcs without a head are reversible." if network.cpdag().undirected else ""
    return PAGE.format(
        title=escape(title),
        verdict=escape(verdict_of(learner)),
        facts=facts,
        figure=draw_figure(network.structure, network.variables, caption, has_class=False),
        structure=escape("\n".join(_structure_lines(network, 100))),
        tables=escape(describe_tables(network, 100)),
    )
