"""``marginbn size``: what a problem would need, before anything is solved."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from marginbn.cli.options import JsonOption, Margin, Missing, TableOptions

if TYPE_CHECKING:
    from marginbn.problem.problem import ProblemSize
    from marginbn.solvers.memory import Needs


def size(
    table: TableOptions,
    max_parents: Annotated[
        int, typer.Option(metavar="K", help="Parents per variable, the class counted.", min=0)
    ] = 2,
    margin: Annotated[
        Margin, typer.Option(help="Margin of the max-margin methods.")
    ] = Margin.MULTICLASS,
    unrestricted: Annotated[
        bool,
        typer.Option(
            "--unrestricted",
            help="For the generative method, with parents that need not include the class: no "
            "margin rows.",
        ),
    ] = False,
    missing: Annotated[
        Missing, typer.Option(help="Training rows with missing values.")
    ] = Missing.DROP,
    json: JsonOption = False,
) -> None:
    """Count candidates, margin rows and memory; solve nothing."""
    from marginbn.cli.data import encode_rows, load_source
    from marginbn.cli.output import print_json
    from marginbn.problem.problem import estimate_size
    from marginbn.solvers.sizing import estimate_needs

    rows = load_source(table).rows()
    data = encode_rows(rows, str(missing))
    needed = estimate_size(
        data,
        max_parents,
        margin=None if unrestricted else margin.value,
        class_restricted=not unrestricted,
    )
    memory = estimate_needs(needed, max_parents, class_restricted=not unrestricted)
    if json:
        counted = {"n_rows": rows.n_rows, "n_classes": data.n_classes, **asdict(needed)}
        print_json({**counted, "least_bytes": memory.least, "full_bytes": memory.full})
    else:
        typer.echo(_describe(needed, memory, rows.n_rows, data.n_classes))


def _describe(needed: ProblemSize, memory: Needs, n_rows: int, n_classes: int) -> str:
    from marginbn.network.wording import align
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
