"""``marginbn solve``: the best structure for a file of local scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli.options import JsonOption, QuietOption, SearchOptions
from marginbn.cli.running import DONE, OPEN_GAP

if TYPE_CHECKING:
    from marginbn.problem.problem import StructureProblem
    from marginbn.solvers.result import SolveResult

_TIME_LIMIT = 60.0
_GAP = 1e-6


def solve(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Local scores (.jkl), as `marginbn formulate` and GOBNILP's scorers write them.",
            show_default=False,
        ),
    ],
    search: SearchOptions,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Find the best structure for a file of local scores.

    There are no data behind the scores, so the answer is a structure without parameters.
    """
    from marginbn.cli.output import print_json, print_verdict
    from marginbn.export.jkl import load_scores

    problem = load_scores(scores)
    result = run_search(problem, search, quiet)
    if json:
        print_json(summarise_result(problem, result))
    else:
        print_verdict(describe_result(problem, result), proved=result.is_optimal)
    return DONE if result.is_optimal else OPEN_GAP


def run_search(problem: StructureProblem, search: SearchOptions, quiet: bool) -> SolveResult:
    """Solve with a progress line; wrong options are usage errors."""
    from marginbn.cli.progress import ProgressLine
    from marginbn.solvers import solve_structure, solver_names

    solver = search.solver or "auto"
    if solver not in ("auto", *solver_names()):
        raise typer.BadParameter(
            f"must be one of auto, {', '.join(solver_names())}", param_hint="--solver"
        )
    for option, value in (("--time-limit", search.time_limit), ("--gap", search.gap)):
        if value is not None and not value >= 0:
            raise typer.BadParameter("must not be negative", param_hint=option)
    limit = _TIME_LIMIT if search.time_limit is None else search.time_limit
    with ProgressLine(enabled=not quiet) as progress:
        return solve_structure(
            problem,
            solver,
            time_limit=limit or None,  # 0 stands for no limit
            gap_tolerance=_GAP if search.gap is None else search.gap,
            callback=progress,
            seed=search.seed,
            n_jobs=search.jobs,
        )


def summarise_result(problem: StructureProblem, result: SolveResult) -> dict[str, Any]:
    """All that is known as JSON values; infinite numbers become None."""
    from math import isfinite

    numbers = {"objective": result.objective, "bound": result.bound, "gap": result.gap}
    return {
        **{key: value if isfinite(value) else None for key, value in numbers.items()},
        "status": str(result.status),
        "proved": result.is_optimal,
        "seconds": result.seconds,
        "solver": result.solver,
        "nodes": int(result.nodes),
        "structure": _parents_by_name(problem, result),
    }


def describe_result(problem: StructureProblem, result: SolveResult) -> str:
    """Verdict, numbers and structure for a terminal."""
    from marginbn.network.wording import align, counted, number, percent, seconds

    if result.is_optimal:
        verdict = "Optimal, proven: no allowed structure has a higher score."
    else:
        ending = str(result.status).replace("_", " ")
        verdict = f"Within {percent(result.gap)} of the best possible score ({ending})."
    facts = [
        ["objective", number(result.objective)],
        ["bound", number(result.bound)],
        ["gap", percent(result.gap)],
        ["search", f"{seconds(result.seconds)}, {result.solver}"],
        ["candidates", counted(problem.candidates.n_candidates, "parent set")],
    ]
    arcs = [
        f"  {child} <- {', '.join(parents)}" if parents else f"  {child}: no parents"
        for child, parents in _parents_by_name(problem, result).items()
    ]
    return "\n".join([verdict, "", *align(facts), "", "Structure", *arcs])


def _parents_by_name(problem: StructureProblem, result: SolveResult) -> dict[str, list[str]]:
    names = [variable.name for variable in problem.variables]
    parents = result.structure.parents
    return {name: [names[p] for p in parents[i]] for i, name in enumerate(names)}
