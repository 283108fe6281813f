"""``marginbn learn``: the best Bayesian network of a table, without a class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from marginbn.cli import options
from marginbn.cli.running import (
    DONE,
    ERROR,
    OPEN_GAP,
    ProgressLine,
    note,
    print_json,
    print_verdict,
    text_width,
    try_outputs,
    write_output,
)


@dataclass(frozen=True)
class PlainTableOptions:
    """Which table, all columns alike."""

    table: options.TableArgument
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL=KIND",
            help="Read a column as numeric, categorical, date, day-first or month-first "
            "(31.5.2024 or 5/31/2024: year, month, weekday), amount ($1,234.50, 12 %, 80 kg) or "
            "decimal-comma (1.234,50); may be repeated.",
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="Leave a column out; may be repeated."),
    ] = None
    delimiter: options.DelimiterOption = None
    encoding: options.EncodingOption = "utf-8"
    missing: Annotated[
        str,
        typer.Option(metavar="HOW", help="drop, state, auto or error: rows with missing values."),
    ] = "drop"
    bins: Annotated[
        int, typer.Option(metavar="N", min=1, help="Bins of numeric columns, cut at quantiles.")
    ] = 4


@dataclass(frozen=True)
class NetworkOptions:
    """Which networks are allowed, and what makes one good."""

    score: Annotated[options.Score, typer.Option(help="Score to maximise.")] = options.Score.BIC
    max_parents: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            min=0,
            help="Parents per variable at most. [default: any number that can pay]",
        ),
    ] = None
    equivalent_sample_size: Annotated[
        float, typer.Option("--ess", metavar="S", help="Equivalent sample size of bdeu.")
    ] = 1.0
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="A->B", help="An arc that must be there; may be repeated."),
    ] = None
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar="A->B", help="An arc that must not be there; may be repeated."),
    ] = None
    tier: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Variables that come before those of the next --tier; may be repeated.",
        ),
    ] = None


def learn(
    table: PlainTableOptions,
    network: NetworkOptions,
    search: options.SearchOptions,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Save what was learned as JSON."),
    ] = None,
    export: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Write the network to a .bif, .json or .dot file (repeatable).",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one HTML page about it.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the search in this file; the same command again goes on from there.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write down a proof that `marginbn verify` can check; part of the time limit "
            "goes into it.",
        ),
    ] = None,
    json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Learn the network of best score from TABLE, without a class.

    The network is the best one over all acyclic graphs, with a bound that says how sure that is.
    Use `marginbn fit` to predict a column.
    """
    from marginbn.classifiers.learner_file import save_model
    from marginbn.cli.data import long_stream
    from marginbn.export.formats import find_format, save_network
    from marginbn.report.learned import describe, summarise
    from marginbn.report.page import write_report

    learner = build_learner(table, network, search, checkpoint, certificate)
    exports = export or []
    for path in exports:
        find_format(path, None)  # an unknown ending is refused before anything is learned
        try_outputs(export=path)
    try_outputs(output=output, report=report, checkpoint=checkpoint, certificate=certificate)
    stream = long_stream(table.table, table.drop)
    rows = None if stream is not None else read_plain_table(table)
    if rows is None:
        note("Learning from all rows, which are read in pieces.", quiet)
    else:
        note(f"Learning from {rows.n_rows} rows and {rows.n_columns} columns.", quiet)
    with ProgressLine(enabled=not quiet) as progress:
        learner.set_params(callback=progress)
        if rows is None:
            learner.fit(stream)
        else:
            learner._fit_table(rows)
    learner.set_params(callback=None)
    saved = write_output(output, lambda path: save_model(learner, path))
    for path in exports:
        saved &= write_output(path, lambda name: save_network(learner.network_, name))
    saved &= write_output(report, lambda path: write_report(learner, path, title=table.table))
    if json:
        print_json(summarise(learner))
    else:
        proved = learner.result_.is_optimal
        print_verdict(describe(learner, width=text_width()), proved=proved)
    for written in (output, report, certificate, *exports):
        if written is not None and saved and written.exists():
            note(f"Wrote {written}.", quiet)
    if not saved:
        return ERROR
    return DONE if learner.result_.is_closed else OPEN_GAP


def read_plain_table(table: PlainTableOptions) -> Any:
    """The table without the columns that are dropped, with the kinds that were asked for."""
    from marginbn.cli.data import is_file_name, parse_kinds, read_file
    from marginbn.data.table import as_table
    from marginbn.datasets import load_dataset

    kinds = parse_kinds(table.kind)
    if is_file_name(table.table):
        text = options.TextOptions(table.delimiter, table.encoding)
        read = read_file(table.table, text, kinds)
    else:
        read = as_table(load_dataset(table.table).train, kinds=kinds)
    for name in table.drop or ():
        read = read.drop(name)
    return read


def build_learner(
    table: PlainTableOptions,
    network: NetworkOptions,
    search: options.SearchOptions,
    checkpoint: Path | None,
    certificate: Path | None,
) -> Any:
    """The unfitted learner that the options describe."""
    from marginbn.classifiers.learner import BayesianNetworkLearner
    from marginbn.cli.data import feature_kinds

    if search.dask is not None:
        raise typer.BadParameter("is for max-margin and its validation", param_hint="--dask")
    if search.rows is not None:
        raise typer.BadParameter("has no meaning here: scores have no margins", param_hint="--rows")
    given: dict[str, Any] = {
        "solver": search.solver,
        "gap_tolerance": search.gap,
        "memory_limit": search.memory_limit,
        "n_jobs": search.jobs,
        "checkpoint": checkpoint,
        "certificate": certificate,
    }
    learner = BayesianNetworkLearner(
        score=network.score.value,
        max_parents=network.max_parents,
        equivalent_sample_size=network.equivalent_sample_size,
        required_arcs=options.parse_arcs(network.require, "--require"),
        forbidden_arcs=options.parse_arcs(network.forbid, "--forbid"),
        tiers=[[v.strip() for v in tier.split(",")] for tier in network.tier or ()] or None,
        n_bins=table.bins,
        missing=table.missing,
        random_state=search.seed,
        column_kinds=feature_kinds(options.TableOptions(table.table, None, table.kind, table.drop)),
        **{name: value for name, value in given.items() if value is not None},
    )
    if search.time_limit is not None:
        learner.set_params(time_limit=search.time_limit or None)
    learner._check_parameters()
    return learner
