"""Commands on a saved model: ``show``, ``report`` (one HTML page), ``export``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from marginbn.cli import options
from marginbn.cli.running import (
    data_stream,
    note,
    print_json,
    print_text,
    print_verdict,
    text_width,
    try_outputs,
)
from marginbn.exceptions import FormatError, InputError

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier


ProofOption = Annotated[
    Path | None,
    options.data_option(
        "--certificate",
        metavar="FILE",
        help="Check this proof of the model first. Without it, optimality is a claim of the file.",
    ),
]


def load_any(model: Path, certificate: Path | None = None) -> Any:
    """The classifier, the learner or, of a .bif file, the network; a classifier or learner is
    verified if there is a certificate, and refused if that fails.
    """
    from marginbn.classifiers.model_file import load_model
    from marginbn.export.formats import load_network

    if model.suffix.lower() == ".bif":
        return load_network(model)
    try:
        found: Any = load_model(model, object)
    except FormatError:
        with model.open("rb") as stream:
            if stream.read(1) == b"{":  # as every model begins
                raise
        raise InputError(
            f"{model} is no file of `marginbn fit` or `learn`; the model is named first"
        ) from None
    if certificate is not None:
        from marginbn.classifiers.claims import verify_model

        verdict = verify_model(found, certificate)
        if not verdict:
            raise InputError(f"{certificate} does not prove what {model} claims: {verdict.reason}")
    return found


def load_checked(model: Path, certificate: Path | None) -> BaseBNClassifier:
    """The same for commands that need a class to predict."""
    from marginbn.classifiers import BaseBNClassifier

    found = load_any(model, certificate)
    if not isinstance(found, BaseBNClassifier):
        raise InputError(
            f"{model} holds a network without a class; use show, ask or export --to bif"
        )
    return found


def show(
    model: options.ModelArgument,
    tables: Annotated[
        bool,
        options.output_option("--tables", help="Print the conditional probability tables as well."),
    ] = False,
    certificate: ProofOption = None,
    json: options.JsonOption = False,
) -> None:
    """Summarise a saved model or .bif network: verdict and structure."""
    from marginbn.export.native import network_to_dict
    from marginbn.report.learned import describe, summarise
    from marginbn.report.summary import describe_tables, is_proved

    found = load_any(model, certificate)
    network = getattr(found, "network_", found)
    if json:
        print_json(summarise(found) | ({"network": network_to_dict(network)} if tables else {}))
        return
    proved = found is not network and is_proved(found)
    print_verdict(describe(found, text_width()), proved=proved)
    if tables:
        print_text(f"\n{describe_tables(network, text_width())}")


@dataclass(frozen=True)
class LabelledOptions:
    """Labelled rows for a report."""

    data: Annotated[
        str | None,
        options.data_option(
            metavar="TABLE",
            help="Labelled rows, a file or a data set; they add notes on the data and densities.",
        ),
    ] = None
    test: Annotated[
        str | None,
        options.data_option(
            metavar="TABLE",
            help="Rows to measure on, next to simpler methods that learn from --data. "
            "[default: the test part of a data set]",
        ),
    ] = None
    target: Annotated[
        str | None,
        options.data_option(
            "--target",
            "-t",
            metavar="NAME",
            help="Column that holds the class. [default: as in training]",
        ),
    ] = None
    encoding: options.EncodingOption = "utf-8"


def report(
    model: options.ModelArgument,
    output: Annotated[Path, options.file_option(help="Page to write.")],
    labelled: LabelledOptions,
    title: Annotated[
        str | None, options.output_option(metavar="TEXT", help="Heading of the page.")
    ] = None,
    folds: Annotated[
        int,
        options.search_option(
            metavar="N", help="Folds of a cross-validation next to simpler methods; 0 for none."
        ),
    ] = 0,
    certificate: ProofOption = None,
    quiet: options.QuietOption = False,
) -> None:
    """Write a saved model as one HTML page that works from disk.

    The page shows how good the model is, what it is, what decides, the effect of each column and
    the arcs between columns. You can type in a case and see its probabilities with the reasons.
    Quality is that of the rows that `fit` held out. Ctrl-C during a cross-validation writes the
    page without it. The page of a network from `marginbn learn` has verdict, network and tables.
    """
    from marginbn.classifiers.learner import BayesianNetworkLearner
    from marginbn.report.page import make_report

    data = labelled.data
    if labelled.test is not None and data is None:
        raise typer.BadParameter(
            "needs --data as well: naive Bayes and TAN learn from it", param_hint="--test"
        )
    try_outputs(output=output)
    classifier = load_any(model, certificate)
    if isinstance(classifier, BayesianNetworkLearner) and data is not None:
        raise typer.BadParameter("is for classifiers only", param_hint="--data")
    rows = load_rows(classifier, labelled)
    has_folds = "X" in rows and "X_test" not in rows and folds > 0
    with options.usage_errors(), show_folds(enabled=has_folds and not quiet) as on_fold:
        page = make_report(
            classifier,
            **rows,
            title=title,
            n_folds=folds,
            on_fold=on_fold,
        )
    page.save(output)
    size = output.stat().st_size
    note(f"Wrote {output} ({size / 1000:.0f} kB); open it in a browser.", quiet)


def load_rows(classifier: BaseBNClassifier, labelled: LabelledOptions) -> dict[str, Any]:
    """Labelled rows, and test rows if there are any, as arguments of a report."""
    from marginbn.cli.data import is_file_name, labelled_rows, load_source, load_table

    data, target = labelled.data, labelled.target
    if data is None:
        return {}
    if target is None and is_file_name(data):
        target = classifier.network_.names[0]
    source = load_source(options.TableOptions(data, target, encoding=labelled.encoding))
    test = labelled.test
    unseen = source.test if test is None else load_table(test, labelled.encoding)
    rows = labelled_rows(source.train, source.target)
    given = {"X": rows.features, "y": rows.labels}
    if unseen is not None:
        others = labelled_rows(unseen, source.target)
        given |= {"X_test": others.features, "y_test": others.labels}
    return given


@contextmanager
def show_folds(*, enabled: bool) -> Iterator[Callable[[int, int], None]]:
    """One progress bar on stderr for the folds of all methods, gone when they are done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not (enabled and console.is_terminal):
        yield lambda done, total: None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Cross-validation (Ctrl-C leaves it out)", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


Format = Literal["json", "bif", "dot", "svg", "sql", "onnx"]
"""Those of networks and of deployed classifiers; a test compares them with the registries."""

COUNTED = "Counted tables; the classifier predicts with trained ones (marginbn predict, --to sql)"
"""Of the tables of an exported network whose classifier has trained ones."""


def export(
    model: options.ModelArgument,
    output: Annotated[Path | None, options.file_option(help="Write to this file.")] = None,
    to: Annotated[
        Format | None,
        options.output_option(
            help="The network: json or bif (with tables), dot or svg (the graph). The classifier: "
            "sql or onnx. [default: by the suffix of --output]",
        ),
    ] = None,
    table: Annotated[
        str, options.output_option(metavar="NAME", help="Table that the SQL query reads.")
    ] = "data",
    keep: Annotated[
        list[str] | None,
        options.output_option(
            metavar="NAME",
            help="Column that the SQL query returns as well (repeatable). "
            "[default: the features in use]",
        ),
    ] = None,
) -> None:
    """Write a saved network, or its classifier as SQL or ONNX."""
    from marginbn.classifiers.deployment import DEPLOYMENTS
    from marginbn.export.formats import NETWORK_FORMATS
    from marginbn.files import write_text

    endings = {end: name for name, end in DEPLOYMENTS.items()}
    endings |= {end: name for name, form in NETWORK_FORMATS.items() for end in form.suffixes}
    chosen = to or endings.get("" if output is None else output.suffix.lower())
    if chosen is None:
        raise typer.BadParameter(
            f"give {', '.join(get_args(Format))}, or an --output with a known ending, like "
            "tree.bif",
            param_hint="--to",
        )
    try_outputs(output=output)
    if chosen in DEPLOYMENTS:
        _deploy(load_checked(model, None), chosen, output, table, keep or None)
        return
    found = load_any(model)
    is_counted = getattr(found, "class_model_", None) is not None and chosen in ("bif", "json")
    text = f"// {COUNTED}\n" if is_counted and chosen == "bif" else ""
    text += NETWORK_FORMATS[chosen].to_text(getattr(found, "network_", found))
    if output is None:
        data_stream().write(text)
    else:
        write_text(output, text)
        note(f"Wrote {output}.")
    if is_counted:
        note(f"{COUNTED}.")


def _deploy(
    classifier: BaseBNClassifier,
    to: str,
    output: Path | None,
    table: str,
    keep: list[str] | None,
) -> None:
    from marginbn.classifiers.deployment import UNANSWERED, deployable, export_model
    from marginbn.export.sql import to_sql

    if output is None and to == "onnx":
        raise typer.BadParameter("needs a file, as ONNX is no text", param_hint="--output")
    model = deployable(classifier)
    if output is None:
        data_stream().write(to_sql(model, table, keep))
    else:
        export_model(model, output, to, table=table, keep=keep)
        note(f"Wrote {output}.")
    if model.refuses_rows:
        note(UNANSWERED)
