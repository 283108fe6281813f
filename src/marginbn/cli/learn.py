"""``marginbn learn``: the best Bayesian network of a table, without a class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from marginbn.classifiers.learner import BayesianNetworkLearner


@dataclass(frozen=True)
class PlainTableOptions:
    """Which table, all columns alike."""

    table: options.TableArgument
    kind: options.KindOption = None
    drop: options.DropOption = None
    encoding: options.EncodingOption = "utf-8"
    missing: options.DropMissingOption = "drop"
    bins: options.BinsOption = 4

    @property
    def table_options(self) -> options.TableOptions:
        """What other commands have as well; no column is the class."""
        return options.TableOptions(self.table, None, self.kind, self.drop, self.encoding)


@dataclass(frozen=True)
class NetworkOptions(options.ScoreOptions):
    """Which networks are allowed, and what makes one good."""

    require: options.RequireOption = None
    forbid: options.ForbidOption = None
    tier: Annotated[
        list[str] | None,
        options.model_option(
            metavar="COL,COL",
            help="Columns of one temporal tier; repeat in order. No arc may point to an earlier "
            "tier; unlisted columns are unconstrained.",
        ),
    ] = None


def learn(
    table: PlainTableOptions,
    network: NetworkOptions,
    search: options.SolverOptions,
    checkpoint: options.CheckpointOption = None,
    output: options.ModelOutputOption = None,
    export: Annotated[
        list[Path] | None,
        options.output_option(
            metavar="FILE", help="Write the network as .bif, .json, .dot or .svg (repeatable)."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        options.output_option(metavar="FILE", help="Write an HTML page about it."),
    ] = None,
    certificate: options.CertificateOption = None,
    json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Learn the network of best score from TABLE, without a class.

    The search covers all acyclic graphs and proves a bound on their score. Use `marginbn fit` to
    predict a column.
    """
    from marginbn.classifiers.model_file import save_model
    from marginbn.cli.data import load_features, long_stream
    from marginbn.export.formats import find_format, save_network
    from marginbn.report.learned import describe, summarise
    from marginbn.report.page import make_report

    learner = build_learner(table, network, search, checkpoint, certificate)
    exports = export or []
    for path in exports:
        find_format(path, None)  # an unknown ending is refused before anything is learned
        try_outputs(export=path)
    try_outputs(output=output, report=report, checkpoint=checkpoint, certificate=certificate)
    stream = long_stream(table.table, table.drop)
    rows = None if stream is not None else load_features(table.table_options)
    if rows is None:
        note("Learning from all rows, which are read in pieces.", quiet)
    else:
        note(f"Learning from {rows.n_rows} rows and {rows.n_columns} columns.", quiet)
    with ProgressLine(enabled=not quiet) as progress:
        learner.set_params(search=search.search(checkpoint=checkpoint, callback=progress))
        learner.fit(stream if rows is None else rows)
    learner.set_params(search=search.search(checkpoint=checkpoint))
    saved = write_output(output, lambda path: save_model(learner, path))
    for path in exports:
        saved &= write_output(path, lambda name: save_network(learner.network_, name))
    saved &= write_output(report, lambda path: make_report(learner, title=table.table).save(path))
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


def build_learner(
    table: PlainTableOptions,
    network: NetworkOptions,
    search: options.SolverOptions,
    checkpoint: Path | None,
    certificate: Path | None,
) -> BayesianNetworkLearner:
    """The unfitted learner that the options describe."""
    from marginbn.classifiers.learner import BayesianNetworkLearner
    from marginbn.cli.data import feature_kinds

    learner = BayesianNetworkLearner(
        score=network.score,
        max_parents=network.max_parents,
        equivalent_sample_size=network.equivalent_sample_size,
        required_arcs=options.parse_arcs(network.require, "--require"),
        forbidden_arcs=options.parse_arcs(network.forbid, "--forbid"),
        tiers=[[v.strip() for v in tier.split(",")] for tier in network.tier or ()] or None,
        n_bins=table.bins,
        missing=table.missing,
        random_state=search.seed,
        column_kinds=feature_kinds(table.table_options),
        time_limit=search.time_limit or None,
        certificate=certificate,
        n_jobs=search.jobs,
        search=search.search(checkpoint=checkpoint),
    )
    learner.check_parameters()
    return learner
