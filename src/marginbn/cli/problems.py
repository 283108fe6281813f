"""The group ``problem``: ``size`` (what it would need), ``score``, ``formulate``, ``solve``."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli import options
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

DEFAULT_PARENTS = 2
"""As in MaxMarginBNClassifier; a test compares them."""

MarginOption = Annotated[
    options.Margin,
    options.model_option(help="Margin of the max-margin method."),
]
UnrestrictedOption = Annotated[
    bool,
    options.model_option(
        "--unrestricted", help="Generative method: allow parent sets without the class."
    ),
]
JobsOption = Annotated[
    int | None,
    options.search_option(metavar="N", help="Workers; -1 for all cores. [default: 1]"),
]


def size(
    table: options.TableOptions,
    missing: options.MissingOption = None,
    max_parents: options.MaxParentsOption = None,
    margin: MarginOption = options.Margin.MULTICLASS,
    unrestricted: UnrestrictedOption = False,
    json: options.JsonOption = False,
) -> None:
    """Count candidates, margin rows and memory; solve nothing."""
    from marginbn.cli.data import encode_rows, load_rows
    from marginbn.data.preparation import TableSettings
    from marginbn.problem.problem import estimate_size

    rows, most = load_rows(table), DEFAULT_PARENTS if max_parents is None else max_parents
    policy: Any = str(missing or options.Missing.AUTO)
    data = encode_rows(rows, TableSettings(missing=policy))
    kind: Any = None if unrestricted else margin.value
    needed = estimate_size(data, most, margin=kind, class_restricted=not unrestricted)
    memory = estimate_needs(needed, most, class_restricted=not unrestricted)
    if json:
        counts = {"n_rows": rows.n_rows, "n_classes": data.n_classes, **asdict(needed)}
        print_json({**counts, "least_bytes": memory.least, "full_bytes": memory.full})
    else:
        print_text(_describe(needed, memory, rows.n_rows, data.n_classes))


def estimate_needs(size: ProblemSize, max_parents: int, *, class_restricted: bool = True) -> Needs:
    """Memory that solver ``auto`` needs for a problem that has not been made yet.

    Constant features and required or forbidden arcs make it less.
    """
    from marginbn.solvers.sizes import BranchBoundShape, BranchCutShape, DynamicShape

    n = size.n_variables - 1
    if class_restricted and max_parents <= 2 and n > 0:
        n_class_sets = sum(math.comb(n, count) for count in range(max_parents + 1))
        samples = size.n_samples if size.n_margin_rows else 0
        cells, classes = (size.table_cells, size.n_classes) if samples else (0, 2)
        arcs = max_parents > 1
        shape = BranchBoundShape(n, n_class_sets, size.n_margin_rows, samples, classes, cells, arcs)
        return shape.needs()
    if size.n_margin_rows == 0 and size.n_variables <= DynamicShape.FEW_VARIABLES:
        return DynamicShape(size.n_variables, size.n_candidates).needs()
    return BranchCutShape(size.n_candidates, size.n_margin_rows).needs()


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


def score(
    table: options.TableOptions,
    output: Annotated[
        Path,
        options.output_option(
            "--output", "-o", metavar="FILE", help="Score file to write (.jkl, .jkl.gz)."
        ),
    ],
    scoring: options.ScoreOptions,
    missing: options.DropMissingOption = options.Missing.DROP,
    bins: Annotated[
        int,
        options.data_option(metavar="N", min=2, help="Bins of numeric columns, without --target."),
    ] = 4,
    jobs: JobsOption = None,
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
    policy: Any = missing.value
    score: Any = scoring.score.value
    if table.target is not None:
        data = encode_rows(load_rows(table), TableSettings(missing=policy))
    else:
        learner = BayesianNetworkLearner(
            n_bins=bins, missing=policy, column_kinds=feature_kinds(table)
        )
        data = learner.encode_table(load_features(table))
    problem = local_scores(
        data,
        score,
        scoring.max_parents,
        equivalent_sample_size=scoring.equivalent_sample_size,
        class_restricted=table.target is not None,
        n_jobs=jobs,
        progress=None if quiet else ScoringListener(),
    )
    save_scores(problem, output)
    kept, rule = problem.candidates.n_candidates, problem.candidates.rule
    limit = f" with at most {rule.max_parents} parents" if rule else ""
    note(f"Wrote {kept} parent sets of {data.n_variables} variables{limit}.", quiet)


@dataclass(frozen=True)
class FormulationOptions(options.ModelOptions):
    """A problem of `marginbn fit`, with what only experts set."""

    method: Annotated[
        options.Method,
        options.model_option(help="max-margin: soft margin; generative: local scores."),
    ] = options.Method.MAX_MARGIN
    margin: MarginOption = options.Margin.MULTICLASS
    score: Annotated[
        options.Score,
        options.model_option(help="Score of the generative method."),
    ] = options.Score.MDL
    unrestricted: UnrestrictedOption = False

    def parameters(self) -> dict[str, Any]:
        """Those of the classifier that the options of `marginbn fit` do not set."""
        if self.method is options.Method.MAX_MARGIN:
            return {"margin": self.margin.value}
        return {"score": self.score.value, "class_restricted": not self.unrestricted}


def formulate(
    table: options.TableOptions,
    model: FormulationOptions,
    output: Annotated[
        Path,
        options.output_option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write: .mps, .lp or, for local scores, .jkl; also with .gz.",
        ),
    ],
) -> None:
    """Write the optimisation problem for other solvers.

    The file is an MPS or LP file; the problem is that of `marginbn fit` with the same options.
    Local scores (.jkl) exist for the generative method only; `marginbn problem solve` and GOBNILP
    read them.
    """
    from marginbn.cli.data import encode_rows, feature_kinds, load_rows
    from marginbn.export.jkl import save_scores
    from marginbn.solvers.milp import write_formulation

    if model.method not in (options.Method.MAX_MARGIN, options.Method.GENERATIVE):
        raise typer.BadParameter("must be max-margin or generative", param_hint="--method")
    as_scores = output.name.lower().endswith((".jkl", ".jkl.gz"))
    if as_scores and model.method is not options.Method.GENERATIVE:
        raise typer.BadParameter("local scores need --method generative", param_hint="--method")
    try_outputs(output=output)
    classifier = options.build_classifier(model, **model.parameters())
    classifier.set_params(column_kinds=feature_kinds(table))
    built = classifier.build_problem(encode_rows(load_rows(table), classifier.table_settings()))
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
            help="Local scores (.jkl, .jkl.gz) of `marginbn problem score` or GOBNILP's scorers.",
            show_default=False,
        ),
    ],
    search: options.SolverOptions,
    json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Find the best structure for a file of local scores.

    The result is a structure without parameters, because a score file holds no data.
    """
    from marginbn.export.jkl import load_scores

    problem = load_scores(scores)
    result = run_search(problem, search, quiet)
    if json:
        print_json(summarise_result(problem, result))
    else:
        print_verdict(describe_result(problem, result), proved=result.is_optimal)
    return DONE if result.is_closed else OPEN_GAP


def run_search(
    problem: StructureProblem, search: options.SolverOptions, quiet: bool
) -> SolveResult:
    """Solve with a progress line; wrong options are usage errors."""
    from marginbn.classifiers.learner import BayesianNetworkLearner
    from marginbn.solvers import Search, solve_structure, solver_names

    solver: Any = search.solver or "auto"
    if solver not in ("auto", *solver_names()):
        raise typer.BadParameter(
            f"must be one of auto, {', '.join(solver_names())}", param_hint="--solver"
        )
    for option, value in (("--time-limit", search.time_limit), ("--gap", search.gap)):
        if value is not None and not value >= 0:
            raise typer.BadParameter("must not be negative", param_hint=option)
    usual = BayesianNetworkLearner().time_limit
    limit = usual if search.time_limit is None else search.time_limit
    with ProgressLine(enabled=not quiet) as progress:
        return solve_structure(
            problem,
            solver,
            time_limit=limit or None,  # 0 stands for no limit
            gap_tolerance=Search().gap_tolerance if search.gap is None else search.gap,
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
