"""The group ``problem``: ``score``, ``formulate`` and ``solve``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli import options
from marginbn.cli.running import (
    DONE,
    OPEN_GAP,
    ProgressLine,
    note,
    note_proof,
    print_json,
    print_verdict,
    try_outputs,
)
from marginbn.network.wording import align, counted, number, percent, seconds, visible

if TYPE_CHECKING:
    from marginbn.problem.problem import StructureProblem
    from marginbn.solvers import SolveResult


def score(
    table: options.TableOptions,
    output: Annotated[Path, options.file_option(help="Score file to write (.jkl, .jkl.gz).")],
    scoring: options.ScoreOptions,
    missing: options.DropMissingOption = "drop",
    bins: options.BinsOption = 4,
    jobs: options.JobsOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Write the local scores of all parent sets that can matter.

    Without --target the variables are those of `marginbn learn`. With --target they are those of a
    classifier: numbers are cut against the class, which comes first, and features have no parents
    or the class among them. `marginbn problem solve` and GOBNILP read the file.
    """
    from marginbn.classifiers.learner import BayesianNetworkLearner
    from marginbn.cli.data import encode_rows, feature_kinds, load_features, load_rows
    from marginbn.data.preparation import TableSettings
    from marginbn.export.jkl import save_scores
    from marginbn.scoring.local_scores import ScoringListener, local_scores

    try_outputs(output=output)
    if table.target is not None:
        data = encode_rows(load_rows(table), TableSettings(missing=missing))
    else:
        learner = BayesianNetworkLearner(
            n_bins=bins, missing=missing, column_kinds=feature_kinds(table)
        )
        data = learner.encode_table(load_features(table))
    problem = local_scores(
        data,
        scoring.score,
        scoring.max_parents,
        equivalent_sample_size=scoring.equivalent_sample_size,
        class_restricted=table.target is not None,
        n_jobs=jobs,
        progress=None if quiet else ScoringListener(),
    )
    save_scores(problem, output)
    rule, kept = problem.candidates.rule, counted(problem.candidates.n_candidates, "parent set")
    limit = f" with at most {counted(rule.max_parents, 'parent')}" if rule else ""
    note(f"Wrote {kept} of {counted(data.n_variables, 'variable')}{limit}.", quiet)


def formulate(
    table: options.TableOptions,
    output: Annotated[Path, options.file_option(help="MPS or LP file to write.")],
    missing: options.MissingOption = None,
    max_parents: options.MaxParentsOption = None,
    p: options.POption = None,
    require: options.RequireOption = None,
    forbid: options.ForbidOption = None,
) -> None:
    """Write the soft-margin problem of TABLE for other solvers.

    It is the problem of `marginbn fit --method max-margin` with the same options.
    """
    from marginbn.cli.data import encode_rows, feature_kinds, load_rows
    from marginbn.solvers.milp import write_formulation

    model = options.ModelOptions(missing, "max-margin", max_parents, p, require, forbid)
    classifier = options.build_classifier(model).set_params(column_kinds=feature_kinds(table))
    try_outputs(output=output)
    built = classifier.build_problem(encode_rows(load_rows(table), classifier.table_settings()))
    write_formulation(built, output)
    candidates = counted(built.candidates.n_candidates, "candidate")
    note(f"Wrote {candidates} and {counted(built.n_rows, 'margin row')} to {output}.")


def solve(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Local scores (.jkl, .jkl.gz) of `marginbn problem score` or GOBNILP's scorers.",
            show_default=False,
        ),
    ],
    search: options.SolverOptions,
    certificate: options.CertificateOption = None,
    json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Find the best structure for a file of local scores.

    The result is a structure without parameters, because a score file holds no data.
    """
    from marginbn.export.jkl import load_scores
    from marginbn.solvers import solve_structure

    problem = load_scores(scores)
    try_outputs(certificate=certificate)
    with ProgressLine(enabled=not quiet) as progress:
        result = solve_structure(
            problem,
            search.solver,
            time_limit=search.time_limit or None,
            gap_tolerance=search.gap,
            callback=progress,
            seed=search.seed,
            n_jobs=search.jobs,
            certificate=certificate,
        )
    note_proof(certificate, quiet, "--data", scores)
    if json:
        print_json(summarise_result(problem, result))
    else:
        print_verdict(describe_result(problem, result), proved=result.is_optimal)
    return DONE if result.is_closed else OPEN_GAP


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
        verdict = "Proved: best score of all allowed structures."
    else:
        ending = str(result.status).replace("_", " ")
        verdict = f"Proved: within {percent(result.gap)} of the best score ({ending})."
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
