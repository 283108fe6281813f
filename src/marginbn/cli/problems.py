"""Commands on a problem: ``size`` (what it would need), ``formulate`` (as a file), ``solve``."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli import options
from marginbn.cli.options import SearchOptions
from marginbn.cli.running import (
    DONE,
    OPEN_GAP,
    ProgressLine,
    note,
    print_json,
    print_text,
    print_verdict,
    try_outputs,
)
from marginbn.network.wording import align, counted, number, percent, seconds, visible

if TYPE_CHECKING:
    from marginbn.problem.problem import ProblemSize, StructureProblem
    from marginbn.solvers.memory import Needs
    from marginbn.solvers.result import SolveResult


def size(
    table: options.TableOptions,
    max_parents: Annotated[
        int, typer.Option(metavar="K", help="Parents per variable, the class counted.", min=0)
    ] = 2,
    margin: Annotated[
        options.Margin, typer.Option(help="Margin of the max-margin methods.")
    ] = options.Margin.MULTICLASS,
    unrestricted: Annotated[
        bool,
        typer.Option(
            "--unrestricted",
            help="For the generative method, with parents that need not include the class: no "
            "margin rows.",
        ),
    ] = False,
    missing: Annotated[
        options.Missing, typer.Option(help="Training rows with missing values.")
    ] = options.Missing.AUTO,
    json: options.JsonOption = False,
) -> None:
    """Count candidates, margin rows and memory; solve nothing."""
    from marginbn.cli.data import encode_rows, load_rows
    from marginbn.problem.problem import estimate_size
    from marginbn.solvers.memory import estimate_needs

    rows = load_rows(table)
    data = encode_rows(rows, missing.value)
    kind: Any = None if unrestricted else margin.value
    needed = estimate_size(data, max_parents, margin=kind, class_restricted=not unrestricted)
    memory = estimate_needs(needed, max_parents, class_restricted=not unrestricted)
    if json:
        counted = {"n_rows": rows.n_rows, "n_classes": data.n_classes, **asdict(needed)}
        print_json({**counted, "least_bytes": memory.least, "full_bytes": memory.full})
    else:
        print_text(_describe(needed, memory, rows.n_rows, data.n_classes))


def _describe(needed: ProblemSize, memory: Needs, n_rows: int, n_classes: int) -> str:
    from marginbn.solvers.memory import describe_bytes

    return "\n".join(
        align(
            [
                ["rows", f"{n_rows}"],
                ["distinct after discretisation", f"{needed.n_samples}"],
                ["variables, class included", f"{needed.n_variables}"],
                ["classes", f"{n_classes}"],
                ["candidate parent sets", f"{needed.n_candidates}"],
                ["margin rows", f"{needed.n_margin_rows}"],
                ["all margin coefficients", describe_bytes(needed.dense_bytes)],
                ["memory for a search at the least", describe_bytes(memory.least)],
                ["memory for a search at full speed", describe_bytes(memory.full)],
            ]
        )
    )


def formulate(
    table: options.TableOptions,
    problem: options.ProblemOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Name ending in .mps, .lp or, for local scores, .jkl; also with .gz.",
        ),
    ],
) -> None:
    """Write the optimisation problem for other solvers.

    The file is an MPS or LP file; the problem is that of `marginbn fit --holdout 0` with the same
    options. Local scores (.jkl) exist for the generative method only; `marginbn solve` and GOBNILP
    read them.
    """
    from marginbn.cli.data import encode_rows, feature_kinds, load_rows
    from marginbn.export.jkl import save_scores
    from marginbn.solvers.milp import write_formulation

    problem = replace(problem, method=problem.method or options.Method.MAX_MARGIN)
    if problem.method not in (options.Method.MAX_MARGIN, options.Method.GENERATIVE):
        raise typer.BadParameter("must be max-margin or generative", param_hint="--method")
    as_scores = output.name.lower().endswith((".jkl", ".jkl.gz"))
    if as_scores and problem.method is not options.Method.GENERATIVE:
        raise typer.BadParameter("local scores need --method generative", param_hint="--method")
    try_outputs(output=output)
    classifier = options.build_classifier(problem)
    classifier.set_params(column_kinds=feature_kinds(table))
    settings = classifier._preparation_settings()
    rows = load_rows(table).reweighted(classifier.class_weight)
    built = classifier._problem(encode_rows(rows, classifier.missing, settings))
    write = save_scores if as_scores else write_formulation
    write(built, output)
    note(
        f"Wrote {built.candidates.n_candidates} candidates and {built.n_rows} margin rows "
        f"to {output}."
    )


def solve(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Local scores (.jkl, .jkl.gz) of `marginbn score` or of GOBNILP's scorers.",
            show_default=False,
        ),
    ],
    search: SearchOptions,
    json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Find the best structure for a file of local scores.

    There are no data behind the scores, so the answer is a structure without parameters.
    """
    from marginbn.export.jkl import load_scores

    problem = load_scores(scores)
    result = run_search(problem, search, quiet)
    if json:
        print_json(summarise_result(problem, result))
    else:
        print_verdict(describe_result(problem, result), proved=result.is_optimal)
    return DONE if result.is_closed else OPEN_GAP


def run_search(problem: StructureProblem, search: SearchOptions, quiet: bool) -> SolveResult:
    """Solve with a progress line; wrong options are usage errors."""
    from marginbn.classifiers import GenerativeBNClassifier
    from marginbn.solvers import solve_structure, solver_names

    solver = search.solver or "auto"
    if solver not in ("auto", *solver_names()):
        raise typer.BadParameter(
            f"must be one of auto, {', '.join(solver_names())}", param_hint="--solver"
        )
    for option, value in (("--time-limit", search.time_limit), ("--gap", search.gap)):
        if value is not None and not value >= 0:
            raise typer.BadParameter("must not be negative", param_hint=option)
    usual = GenerativeBNClassifier()
    limit = usual.time_limit if search.time_limit is None else search.time_limit
    with ProgressLine(enabled=not quiet) as progress:
        return solve_structure(
            problem,
            solver,
            time_limit=limit or None,  # 0 stands for no limit
            gap_tolerance=usual._tolerance() if search.gap is None else search.gap,
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
        visible(f"  {child} <- {', '.join(parents)}" if parents else f"  {child}: no parents")
        for child, parents in _parents_by_name(problem, result).items()
    ]
    return "\n".join([verdict, "", *align(facts), "", "Structure", *arcs])


def _parents_by_name(problem: StructureProblem, result: SolveResult) -> dict[str, list[str]]:
    names = [variable.name for variable in problem.variables]
    parents = result.structure.parents
    return {name: [names[p] for p in parents[i]] for i, name in enumerate(names)}
