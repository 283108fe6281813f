"""``marginbn formulate``: problem (19) as a file for other solvers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli.options import Method, ProblemOptions, TableOptions

if TYPE_CHECKING:
    from marginbn.data.encode import EncodedData
    from marginbn.problem.problem import StructureProblem


def formulate(
    table: TableOptions,
    problem: ProblemOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Name ending in .mps or .lp, also with .gz; or in .jkl for local scores.",
        ),
    ],
) -> None:
    """Write the optimisation problem for other solvers.

    The file is an MPS or LP file; the problem is that of `marginbn fit --holdout 0` with the same
    options. Local scores (.jkl) exist for the generative method only; `marginbn solve` and GOBNILP
    read them.
    """
    from marginbn.cli.data import encode_rows, load_source
    from marginbn.cli.methods import build_classifier
    from marginbn.cli.output import note
    from marginbn.export.jkl import save_scores
    from marginbn.solvers.milp import write_formulation

    if problem.method not in (Method.MAX_MARGIN, Method.GENERATIVE):
        raise typer.BadParameter("must be max-margin or generative", param_hint="--method")
    as_scores = output.suffix.lower() == ".jkl"
    if as_scores and problem.method is not Method.GENERATIVE:
        raise typer.BadParameter("local scores need --method generative", param_hint="--method")
    params = build_classifier(problem).get_params()
    data = encode_rows(load_source(table).rows(), params["missing"])
    built = _build_problem(data, params)
    write = save_scores if as_scores else write_formulation
    write(built, output)
    note(
        f"Wrote {built.candidates.n_candidates} candidates and {built.n_rows} margin rows "
        f"to {output}."
    )


def _build_problem(data: EncodedData, params: dict[str, Any]) -> StructureProblem:
    from marginbn.classifiers.base import resolve_arcs
    from marginbn.problem.candidates import enumerate_candidates
    from marginbn.problem.problem import linear_problem, margin_problem
    from marginbn.problem.scores import get_local_score

    candidates = enumerate_candidates(
        data.n_variables,
        params["max_parents"],
        class_restricted=params.get("class_restricted", True),
        required=resolve_arcs(params["required_arcs"], data, "required_arcs"),
        forbidden=resolve_arcs(params["forbidden_arcs"], data, "forbidden_arcs"),
        constant=data.constant,
    )
    if "score" in params:
        score = get_local_score(params["score"], params["equivalent_sample_size"])
        return linear_problem(data, candidates, score)
    return margin_problem(
        data,
        candidates,
        margin=params["margin"],
        gamma=params["gamma"],
        smoothing=params["smoothing"],
    )
