"""What was learned of a table without a class: in words, and as one small HTML page."""

from __future__ import annotations

from html import escape
from typing import Any

from marginbn.classifiers.learner import BayesianNetworkLearner
from marginbn.files import PathLike, write_text
from marginbn.network import wording
from marginbn.network.svg import draw_figure
from marginbn.network.wording import counted, percent, seconds
from marginbn.report.summary import describe_tables, parents_by_name


def summarise_learner(learner: BayesianNetworkLearner) -> dict[str, Any]:
    """Everything about a fit, as plain values."""
    network, result = learner.network_, learner.result_
    return {
        "score": learner.get_params()["score"],
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "status": str(result.status),
        "optimal": result.is_optimal,
        "seconds": result.seconds,
        "solver": result.solver,
        "nodes": result.nodes,
        "rows": learner.n_samples_,
        "rows_left_out": learner.n_dropped_,
        "columns_left_out": learner.preparation_.left_out,
        "candidates": learner.n_candidates_,
        "max_parents": learner.max_parents_,
        "parameters": network.n_parameters,
        "parents": parents_by_name(network),
    }


def verdict_of(learner: BayesianNetworkLearner) -> str:
    """One sentence: is it the best network, and how sure is that."""
    result, name = learner.result_, learner.get_params()["score"].upper()
    allowed = "allowed network"
    if learner.max_parents_ < learner.network_.n_variables - 1:
        parents = counted(learner.max_parents_, "parent")
        allowed += f" with at most {parents} per variable"
    if result.is_optimal:
        return f"No {allowed} has a better {name} score: proved."
    ending = str(result.status).replace("_", " ")
    return (
        f"The best network found; no {allowed} has a {name} score more than "
        f"{percent(result.gap)} better ({ending})."
    )


def facts_of(learner: BayesianNetworkLearner) -> list[tuple[str, str]]:
    """The numbers of a fit, as pairs of words."""
    network, result = learner.network_, learner.result_
    rows = counted(learner.n_samples_, "row")
    if learner.n_dropped_:
        rows += f" ({learner.n_dropped_} left out: missing values)"
    found = [
        ("score", f"{result.objective:.6f} ({learner.get_params()['score']})"),
        ("bound", f"{result.bound:.6f}, gap {percent(result.gap)}"),
        ("search", f"{result.solver}, {seconds(result.seconds)}, {counted(result.nodes, 'node')}"),
        ("learned from", f"{rows}, {counted(learner.n_candidates_, 'parent set')} after pruning"),
        (
            "network",
            f"{counted(network.n_variables, 'variable')}, "
            f"{counted(len(network.structure.arcs), 'arc')}, "
            f"{counted(network.n_parameters, 'parameter')}",
        ),
    ]
    binned = [c.name for c in learner.coding_.columns if c.kind == "numeric"]
    if binned:
        bins = f"{', '.join(binned)}: cut at quantiles into at most {learner.n_bins} bins"
        found.append(("numbers", bins))
    return found


def describe_learner(learner: BayesianNetworkLearner, width: int = 80) -> str:
    """Verdict, numbers and structure as text."""
    facts = facts_of(learner)
    wide = max(len(name) for name, _ in facts)
    lines = [verdict_of(learner), ""]
    lines += [f"{name:<{wide}}  {text}" for name, text in facts]
    lines += ["", *_structure_lines(learner, width)]
    return "\n".join(lines)


def _structure_lines(learner: BayesianNetworkLearner, width: int) -> list[str]:
    """Lines such as ``wet grass <- rain, sprinkler``; those without any arc last."""
    network = learner.network_
    joined = {v for arc in network.structure.arcs for v in arc}
    constant = [i for i, variable in enumerate(network.variables) if variable.arity == 1]
    lines: list[str] = []
    for i, (child, parents) in enumerate(parents_by_name(network).items()):
        if i in joined:
            words = [f"{name}," for name in parents[:-1]] + parents[-1:]
            start = [child, "<-", *words] if parents else [f"{child}:", "no", "parents"]
            lines += wording.hanging("", start, width)
    alone = [i for i in range(network.n_variables) if i not in joined and i not in constant]
    titles = {"independent of all others:": alone, "left out (one value in all rows):": constant}
    for title, members in titles.items():
        if members:
            names = [network.names[i] for i in members]
            words = [*title.split(), *(f"{name}," for name in names[:-1]), names[-1]]
            lines += wording.hanging("", words, width)
    return lines


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{{font-family:system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}}
th{{text-align:left;padding-right:1.5rem;vertical-align:top}}pre{{overflow-x:auto}}
svg{{max-width:100%;height:auto}}</style></head>
<body><h1>{title}</h1><p><strong>{verdict}</strong></p>
<table>{facts}</table>
<h2>Network</h2>{figure}
<h2>Tables</h2><pre>{tables}</pre></body></html>
"""


def write_learned_page(
    learner: BayesianNetworkLearner, path: PathLike, title: str = "Bayesian network"
) -> None:
    """One self-contained HTML page: verdict, numbers, picture, tables."""
    network = learner.network_
    facts = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
        for name, text in facts_of(learner)
    )
    page = PAGE.format(
        title=escape(title),
        verdict=escape(verdict_of(learner)),
        facts=facts,
        figure=draw_figure(network.structure, network.variables, ""),
        tables=escape(describe_tables(network, 100)),
    )
    write_text(path, page)
