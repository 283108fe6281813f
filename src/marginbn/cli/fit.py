"""``marginbn fit``: learn a classifier from a table."""

from __future__ import annotations

import warnings
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from marginbn.cli.inspect_table import look_at, tell_hints
from marginbn.cli.options import (
    DEFAULT_HOLDOUT,
    DEFAULT_METHOD,
    JsonOption,
    ProblemOptions,
    QuietOption,
    SearchOptions,
    TableOptions,
    build_classifier,
)
from marginbn.cli.running import (
    DONE,
    ERROR,
    OPEN_GAP,
    ProgressLine,
    note,
    print_json,
    print_text,
    print_verdict,
    text_width,
    try_outputs,
    write_output,
)
from marginbn.exceptions import DataWarning
from marginbn.network.wording import counted

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier
    from marginbn.classifiers.measures import Quality
    from marginbn.data.labelled import Dataset, LabelledTable
    from marginbn.data.source import Source
    from marginbn.report.summary import AccuracyLine


def fit(
    table: TableOptions,
    problem: ProblemOptions,
    search: SearchOptions,
    test: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Rows to measure the accuracy on, from another table."),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            metavar="F",
            help="Share of the rows to hold out and measure the accuracy on; 0 learns from all "
            "rows. [default: 0.2, or 0 if there is a test table]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Save the classifier as JSON."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the search in this file, now and then and at its end; the same command "
            "again goes on from there.",
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
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Learn a classifier from TABLE and say how good it is.

    The structure is the best one by a score, with a proven bound: by default the soft margin, with
    gamma and the number of parents chosen by validation.
    """
    from marginbn.classifiers.model_file import save_model
    from marginbn.cli.data import feature_kinds, load_source, long_stream
    from marginbn.report.summary import describe, summarise

    began = monotonic()
    check_holdout(holdout, test)
    classifier = build_classifier(problem, search)
    try_outputs(output=output, checkpoint=checkpoint, certificate=certificate)
    for name, path in (("checkpoint", checkpoint), ("certificate", certificate)):
        if path is not None:
            set_file(classifier, name, path, problem.method or DEFAULT_METHOD)
    classifier.set_params(column_kinds=feature_kinds(table))
    classifier._count_from(began)
    stream = long_stream(table.table, table.drop)
    if stream is not None:
        held_out = read_test_rows(table, test, holdout)
        note("Learning from all rows, which are read in pieces.", quiet)
        learn_in_pieces(classifier, stream, str(table.target), quiet)
        accuracies, report = measure(classifier, None, held_out), None
    else:
        source = load_source(table)
        train, held_out = split_rows(source, table, test, holdout, search.seed)
        if held_out is not None:
            is_share = test is None and (holdout is not None or source.test is None)
            note(describe_split(train, held_out, is_share), quiet)
        report = look_at(classifier, train)
        tell_hints(report, quiet)
        learn(classifier, train, quiet)
        accuracies = measure(classifier, train, held_out)
    quality = None if held_out is None else measure_quality(classifier, held_out)
    measures = None if quality is None else quality.numbers()
    saved = write_output(output, lambda path: save_model(classifier, path, held_out=measures))
    if json:
        found = {"quality": None if quality is None else quality.to_dict()}
        data = None if report is None else report.to_dict()
        print_json(summarise(classifier, accuracies) | found | {"data": data})
    else:
        text = describe(classifier, accuracies, text_width())
        print_verdict(text, proved=classifier.result_.is_optimal)
        if quality is not None:
            print_text("\n".join(["", "Held out", *quality.lines()]))
    if output is None:
        note("Not saved; add --output model.json to keep it for `marginbn predict`.", quiet or json)
    elif saved:
        note(f"Saved in {output}.", quiet)
    if certificate is not None and certificate.exists():
        note(f"Proof in {certificate}; check it with `marginbn verify {certificate}`.", quiet)
    if not saved:
        return ERROR
    return DONE if classifier.result_.is_closed else OPEN_GAP


def set_file(classifier: BaseBNClassifier, name: str, path: Path, method: str) -> None:
    """Give the classifier a file of its search; refuse methods that search for nothing."""
    if name not in classifier.get_params(deep=False):
        raise typer.BadParameter(f"has no meaning with --method {method}", param_hint=f"--{name}")
    classifier.set_params(**{name: str(path)})


def check_holdout(holdout: float | None, test: str | None) -> None:
    """Refuse shares that leave nothing, and two sources of test rows."""
    if holdout is not None and not 0 <= holdout < 1:
        raise typer.BadParameter(
            f"must be at least 0 and below 1, got {holdout}", param_hint="--holdout"
        )
    if holdout and test is not None:
        raise typer.BadParameter("give either --test or --holdout", param_hint="--holdout")


def split_rows(
    source: Dataset, table: TableOptions, test: str | None, holdout: float | None, seed: int
) -> tuple[LabelledTable, LabelledTable | None]:
    """Rows to learn from, and rows to measure on: a test table, the set's own, or a share."""
    from marginbn.cli.data import hold_out, labelled_rows, load_table

    rows = labelled_rows(source.train, source.target, table.drop)
    if test is not None:
        return rows, labelled_rows(load_table(test, table.text), source.target)
    if holdout is None and source.test is not None:
        return rows, labelled_rows(source.test, source.target)
    if holdout is None:
        holdout = DEFAULT_HOLDOUT if rows.n_rows > 1 else 0.0
    return hold_out(rows, holdout, seed)


def describe_split(train: LabelledTable, held_out: LabelledTable, is_share: bool) -> str:
    """One line about what is learned from; a share held out could have been learned from too."""
    hint = "; --holdout 0 learns from all" if is_share else ""
    rows = counted(train.n_rows, "row")
    return f"Learning from {rows}, measuring accuracy on {held_out.n_rows}{hint}."


def learn(classifier: BaseBNClassifier, train: LabelledTable, quiet: bool) -> None:
    """Fit with a progress line; Ctrl-C ends the search, not the program."""
    with ProgressLine(enabled=not quiet) as progress:
        if "callback" in classifier.get_params(deep=False):
            classifier.set_params(callback=progress)
        classifier._fit_table(train)


def read_test_rows(
    table: TableOptions, test: str | None, holdout: float | None
) -> LabelledTable | None:
    """Rows to measure on beside a table that is read in pieces, of which none are held out."""
    from marginbn.cli.data import labelled_rows, load_table

    if table.target is None:
        raise typer.BadParameter(
            "say which column holds the class, as in --target class", param_hint="--target"
        )
    if holdout:
        raise typer.BadParameter(
            "has no meaning for a table that is read in pieces; measure with --test TABLE",
            param_hint="--holdout",
        )
    return None if test is None else labelled_rows(load_table(test, table.text), table.target)


def learn_in_pieces(classifier: BaseBNClassifier, stream: Source, target: str, quiet: bool) -> None:
    """Fit with a progress line to a table that is read in pieces."""
    with ProgressLine(enabled=not quiet) as progress:
        if "callback" in classifier.get_params(deep=False):
            classifier.set_params(callback=progress)
        classifier._check_parameters()
        classifier._fit_stream(stream, target, None)


def measure(
    classifier: BaseBNClassifier, train: LabelledTable | None, held_out: LabelledTable | None
) -> list[AccuracyLine]:
    """Accuracy on the rows learned from, if they are at hand, and on the others."""
    from marginbn.report.summary import AccuracyLine

    lines = []
    if train is not None:
        with warnings.catch_warnings():
            # rows left out for a missing value may hold categories that no other row has
            warnings.simplefilter("ignore", DataWarning)
            predicted = classifier.predict(train.features)
        lines.append(AccuracyLine.measure("training", predicted, train.labels, is_sample=False))
    if held_out is not None:
        predicted = classifier.predict(held_out.features)
        lines.append(AccuracyLine.measure("held out", predicted, held_out.labels))
    return lines


def measure_quality(classifier: BaseBNClassifier, held_out: LabelledTable) -> Quality:
    """All measures on the rows that were held out."""
    from marginbn.classifiers.measures import Quality

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # told already, by predict
        probabilities = classifier.predict_proba(held_out.features)
    return Quality.measure(classifier.classes_.tolist(), held_out.labels, probabilities)
