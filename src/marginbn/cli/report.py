"""``marginbn report``: a saved classifier as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli.options import DelimiterOption, ModelArgument, QuietOption

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier
    from marginbn.classifiers.evaluation import FoldScore
    from marginbn.cli.data import Rows


def report(
    model: ModelArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Write the page to this file.")
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Labelled rows, a file or a data set: adds accuracy beside naive Bayes and TAN, "
            "and contributions.",
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Rows that the classifier has not seen: accuracy is measured on them instead of "
            "by cross-validation. [default: the test part of a data set]",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="NAME",
            help="Column that holds the class. [default: as in training]",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the page.")] = None,
    folds: Annotated[
        int, typer.Option(metavar="N", help="Folds of the cross-validation; 0 for none.", min=0)
    ] = 5,
    fold_time: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="Seconds for the search in a fold, if it had no less in training.",
        ),
    ] = 10.0,
    delimiter: DelimiterOption = None,
    quiet: QuietOption = False,
) -> None:
    """Write a saved classifier as a page that answers questions.

    One HTML file that needs no network: the verdict, the network, how the bound closed, tables,
    settings; states can be clicked and all posteriors follow. Ctrl-C while the accuracy is
    measured writes the page without it.
    """
    from marginbn.classifiers.model_file import load_model
    from marginbn.cli.running import note
    from marginbn.report.page import write_report

    check_options(data, test, folds, fold_time)
    classifier = load_model(model)
    rows, test_rows = load_rows(classifier, data, test, target, delimiter)
    if rows is not None and test_rows is None and folds:
        note(f"Cross-validation in {folds} folds; Ctrl-C leaves it out.", quiet)
    write_report(
        classifier,
        output,
        **_arguments(rows, "X", "y"),
        **_arguments(test_rows, "X_test", "y_test"),
        title=title or _name_of(data),
        n_folds=folds,
        fold_time_limit=fold_time,
        on_fold=lambda name, fold: note(describe_fold(name, fold), quiet),
    )
    size = output.stat().st_size
    note(f"Wrote {output} ({size / 1000:.0f} kB); open it in a browser.", quiet)


def check_options(data: str | None, test: str | None, folds: int, fold_time: float) -> None:
    """Refuse what makes no sense before anything is read."""
    if test is not None and data is None:
        raise typer.BadParameter(
            "needs --data as well: naive Bayes and TAN learn from it", param_hint="--test"
        )
    if folds == 1:
        raise typer.BadParameter("must be 0 or at least 2", param_hint="--folds")
    if not 0 < fold_time < float("inf"):
        raise typer.BadParameter("must be positive seconds", param_hint="--fold-time")


def load_rows(
    classifier: BaseBNClassifier,
    data: str | None,
    test: str | None,
    target: str | None,
    delimiter: str | None,
) -> tuple[Rows | None, Rows | None]:
    """Labelled rows, and test rows if there are any."""
    from marginbn.cli.data import is_file_name, labelled_rows, load_table
    from marginbn.datasets import load_dataset

    if data is None:
        return None, None
    if is_file_name(data):
        column = target or classifier.network_.names[0]
        table, own_test = load_table(data, delimiter), None
    else:
        dataset = load_dataset(data)
        column = target or dataset.target
        table, own_test = dataset.train, dataset.test
    unseen = own_test if test is None else load_table(test, delimiter)
    rows = labelled_rows(table, column, ())
    return rows, None if unseen is None else labelled_rows(unseen, column, ())


def describe_fold(name: str, fold: FoldScore) -> str:
    """A line about a fold that is done."""
    from marginbn.network.wording import percent, seconds

    return f"{name}: accuracy {percent(fold.accuracy)} in a fold, {seconds(fold.seconds)} of search"


def _arguments(rows: Rows | None, features: str, labels: str) -> dict[str, Any]:
    return {} if rows is None else {features: rows.features, labels: rows.labels}


def _name_of(data: str | None) -> str | None:
    """What a table is called without folder and suffix."""
    return None if data is None else Path(data).name.removesuffix(".gz").rpartition(".")[0] or data
