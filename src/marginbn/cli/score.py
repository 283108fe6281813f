"""Local scores of a table, for exact learners of general networks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marginbn.cli import options
from marginbn.cli.running import note, try_outputs


def score(
    table: options.TableOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The score file (.jkl, .jkl.gz).")
    ],
    score: Annotated[options.Score, typer.Option(help="Score to compute.")] = options.Score.BIC,
    max_parents: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            min=0,
            help="Parents per variable at most. [default: any number that can pay]",
        ),
    ] = None,
    equivalent_sample_size: Annotated[
        float, typer.Option("--ess", metavar="S", help="Equivalent sample size of bdeu.")
    ] = 1.0,
    bins: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Bins of numeric columns, without --target."),
    ] = 4,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Threads; -1 for all cores. [default: 1]")
    ] = None,
    quiet: options.QuietOption = False,
) -> None:
    """Score the parent sets of every variable of a table.

    Without --target all columns are alike, and numbers are cut at quantiles. With --target the
    variables are those of a classifier: numbers are cut against the class, which stands first, and
    features have no parents or the class among them. Only sets that no subset outdoes are written;
    `marginbn solve` and GOBNILP read the file.
    """
    from marginbn.cli.data import encode_rows, load_rows, load_table, parse_kinds
    from marginbn.data.encode import encode_plain
    from marginbn.data.table import as_table
    from marginbn.export.jkl import save_scores
    from marginbn.scoring.local_scores import ScoringListener, local_scores

    try_outputs(output=output)
    if table.target is not None:
        data = encode_rows(load_rows(table), "drop")
    else:
        read = as_table(load_table(table.table, table.text), kinds=parse_kinds(table.kind))
        for name in table.drop or ():
            read = read.drop(name)
        data = encode_plain(read, bins)
    problem = local_scores(
        data,
        score.value,
        max_parents,
        equivalent_sample_size=equivalent_sample_size,
        class_restricted=table.target is not None,
        n_jobs=jobs,
        progress=None if quiet else ScoringListener(),
    )
    save_scores(problem, output)
    note(
        f"Wrote {problem.candidates.n_candidates} parent sets of {data.n_variables} variables.",
        quiet,
    )
