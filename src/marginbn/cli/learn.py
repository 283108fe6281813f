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
    note_files,
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
    from marginbn.report.learned import describe, summarise

    learner = build_learner(table, network, search, checkpoint, certificate)
    try_outputs(output=output, checkpoint=checkpoint, certificate=certificate)
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
    if json:
        print_json(summarise(learner))
    else:
        proved = learner.result_.is_optimal
        print_verdict(describe(learner, text_width()), proved=proved)
    if output is None:
        note("Not saved; add --output network.json to keep it.", quiet or json)
    note_files(output if saved else None, certificate, table.table, quiet)
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
