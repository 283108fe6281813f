"""``marginbn fit``: learn a classifier from a table."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli import options
from marginbn.cli.inspect_table import prepare, tell_hints
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
    from marginbn.data.inspection import DataReport
    from marginbn.data.labelled import LabelledTable
    from marginbn.report.summary import AccuracyLine


def fit(
    table: options.TableOptions,
    model: options.ModelOptions,
    search: options.SearchOptions,
    holdout: Annotated[
        float | None,
        options.data_option(
            metavar="F",
            help="Share of the rows held out to measure quality; 0 for none. The model is learned "
            f"from all rows. [default: {options.DEFAULT_HOLDOUT}]",
        ),
    ] = None,
    checkpoint: options.CheckpointOption = None,
    output: options.ModelOutputOption = None,
    certificate: options.CertificateOption = None,
    statement: Annotated[
        Path | None,
        options.output_option(
            metavar="FILE",
            help="Write the statement that a certificate must prove, for `marginbn verify`.",
        ),
    ] = None,
    json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Learn a classifier from TABLE and measure its quality.

    The model that is saved is learned from all rows. The quality is that of a model learned from
    the rows that are not held out, measured on the held-out rows.
    """
    from marginbn.classifiers.claims import full_statement
    from marginbn.classifiers.model_file import save_model, write_json
    from marginbn.cli.data import load_table

    began = monotonic()
    if holdout is not None and not 0 <= holdout < 1:
        raise typer.BadParameter(
            f"must be at least 0 and below 1, got {holdout}", param_hint="--holdout"
        )
    classifier = options.build_classifier(model, search, checkpoint, certificate)
    try_outputs(output=output, checkpoint=checkpoint, certificate=certificate, statement=statement)
    outcome = learn_and_measure(classifier, table, holdout, began, quiet)
    name, measures = Path(table.table).name, outcome.measures()
    saved = write_output(
        output, lambda path: save_model(classifier, path, held_out=measures, data_name=name)
    )
    if statement is not None:
        said = full_statement(classifier, load_table(table.table, table.encoding)).write()
        saved &= write_output(statement, lambda path: write_json(path, said))
    if json:
        print_json(outcome.record())
    elif classifier.class_model_ is not None:
        print_trained(outcome, output if saved else None)
    else:
        print_outcome(outcome)
    if output is None:
        note("Not saved; add --output model.json to keep it for `marginbn predict`.", quiet or json)
    elif saved:
        note(f"Saved in {output}.", quiet)
    if certificate is not None and certificate.exists():
        note(f"Proof in {certificate}; check it with `marginbn verify {certificate}`.", quiet)
    if not saved:
        return ERROR
    result = classifier.result_
    return DONE if result is None or result.is_closed else OPEN_GAP


@dataclass(frozen=True)
class Outcome:
    """A fitted classifier, and what was measured.

    ``n_learned`` is the number of rows that the measured model was learned from, None where that is
    the classifier itself; ``logistic`` is the accuracy of logistic regression on the same rows.
    """

    classifier: BaseBNClassifier
    quality: Quality | None
    data: DataReport | None
    n_learned: int | None = None
    logistic: float | None = None

    def measures(self) -> dict[str, float | None] | None:
        """The measures that the model file keeps; None where nothing was measured."""
        if self.quality is None:
            return None
        logistic = {} if self.logistic is None else {"logistic_accuracy": self.logistic}
        return {**self.quality.numbers(), **logistic}

    @property
    def accuracies(self) -> list[AccuracyLine]:
        """Accuracy on held-out rows, where it was measured."""
        from marginbn.report.summary import AccuracyLine

        return [] if self.quality is None else [AccuracyLine.of(self.quality)]

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        from marginbn.report.summary import summarise

        return summarise(self.classifier, self.accuracies) | {
            "quality": None if self.quality is None else self.quality.to_dict(),
            "n_rows_of_measured_model": self.n_learned,
            "data": None if self.data is None else self.data.to_dict(),
            **({} if self.logistic is None else {"logistic_accuracy": self.logistic}),
        }


def learn_and_measure(
    classifier: BaseBNClassifier,
    table: options.TableOptions,
    holdout: float | None,
    began: float,
    quiet: bool,
) -> Outcome:
    """Fit the classifier to all rows, and measure on rows that it, or its double, has not seen."""
    from marginbn.cli.data import feature_kinds, labelled_rows, load_source, long_stream

    classifier.set_params(column_kinds=feature_kinds(table))
    stream = long_stream(table.table, table.drop)
    if stream is not None:
        check_pieces(table, holdout)
        note("Learning from all rows, which are read in pieces.", quiet)
        with showing_progress(classifier, quiet):
            classifier.fit(stream, str(table.target))
        return measure_validation(Outcome(classifier, None, None), None)
    source = load_source(table)
    rows = labelled_rows(source.train, source.target, table.drop)
    prepared = prepare(classifier, rows, began)
    report = tell_hints(prepared, quiet)
    double = make_double(classifier)
    with showing_progress(classifier, quiet):
        classifier.fit_prepared(prepared)
    outcome = Outcome(classifier, None, report)
    if holdout is None and source.test is not None:
        quality = measure(classifier, labelled_rows(source.test, source.target))
        return replace(outcome, quality=quality)
    if holdout is None and classifier.held_out_ is not None:
        return measure_validation(outcome, rows)
    return measure_double(outcome, double, rows, holdout, quiet)


def measure_validation(outcome: Outcome, rows: LabelledTable | None) -> Outcome:
    """Add the quality on the rows that chose the amount of smoothing: each was predicted by a model
    that had not seen it. Logistic regression gets the same rows, where they are at hand.
    """
    from marginbn.classifiers.evaluation import logistic_accuracy

    classifier, held_out = outcome.classifier, outcome.classifier.held_out_
    if held_out is None:
        return outcome
    outcome = replace(outcome, quality=held_out.quality(classifier.classes_))
    if rows is None:
        return outcome
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # given already, by the fit
        return replace(outcome, logistic=logistic_accuracy(rows, classifier.table_settings()))


def measure_double(
    outcome: Outcome,
    double: BaseBNClassifier,
    rows: LabelledTable,
    holdout: float | None,
    quiet: bool,
) -> Outcome:
    """Add what a model of the rows that are not held out gets right of the others.

    Nothing is measured where the user has stopped the search or stops this one.
    """
    from marginbn.data.labelled import stratified_holdout

    share = options.DEFAULT_HOLDOUT if holdout is None else holdout
    if share == 0 or rows.n_rows < 2 or outcome.classifier.status_ == "interrupted":
        return outcome
    train, held_out = map(rows.take, stratified_holdout(rows.labels, share, 0))
    learned = counted(train.n_rows, "row")
    note(
        f"Measuring: learning from {learned}, {held_out.n_rows} held out; Ctrl-C leaves it out.",
        quiet,
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # given already, by the first fit
            with showing_progress(double, quiet):
                double.fit_rows(train)
    except KeyboardInterrupt:
        return outcome
    if double.status_ == "interrupted":
        return outcome
    return replace(outcome, quality=measure(double, held_out), n_learned=train.n_rows)


def print_trained(outcome: Outcome, saved: Path | None) -> None:
    """What a classifier with trained tables is, in three sentences."""
    from marginbn.report.summary import describe_quality, describe_trained

    classifier = outcome.classifier
    told = [describe_quality(classifier, outcome.quality, outcome.logistic)]
    told += describe_trained(classifier, None if saved is None else saved.name)
    text = "\n".join(line for one in told for line in textwrap.wrap(one, text_width()))
    print_verdict(text, proved=classifier.result_ is None or classifier.result_.is_optimal)


def print_outcome(outcome: Outcome) -> None:
    """Verdict, facts, structure, and all measures."""
    from marginbn.report.summary import describe

    classifier, quality, result = outcome.classifier, outcome.quality, outcome.classifier.result_
    text = describe(classifier, outcome.accuracies, text_width())
    print_verdict(text, proved=None if result is None else result.is_optimal)
    if quality is None:
        return
    told = ["", f"Quality on {counted(quality.n_rows, 'held-out row')}"]
    if outcome.n_learned is not None:
        n_rows = classifier.n_samples_ + classifier.n_dropped_
        told += textwrap.wrap(
            f"Measured for a model learned from the other {outcome.n_learned} rows. The model "
            f"itself is learned from all {n_rows} rows.",
            text_width(),
        )
    print_text("\n".join([*told, *quality.lines()]))


def check_pieces(table: options.TableOptions, holdout: float | None) -> None:
    """Refuse what makes no sense for a table that is read in pieces."""
    if table.target is None:
        raise typer.BadParameter(
            "name the column that holds the class, as in --target class", param_hint="--target"
        )
    if holdout:
        raise typer.BadParameter(
            "has no meaning for a table that is read in pieces; measure with `marginbn report "
            "--test TABLE`",
            param_hint="--holdout",
        )


def make_double(classifier: BaseBNClassifier) -> BaseBNClassifier:
    """The same unfitted classifier, which writes no files."""
    from sklearn.base import clone

    from marginbn.classifiers.search import SearchingBNClassifier

    double: BaseBNClassifier = clone(classifier)
    if isinstance(double, SearchingBNClassifier):
        search = replace(double.search_settings(), checkpoint=None)
        double.set_params(search=search, certificate=None)
    return double


@contextmanager
def showing_progress(classifier: BaseBNClassifier, quiet: bool) -> Iterator[None]:
    """Fit with a progress line; Ctrl-C ends the search, not the program."""
    from marginbn.classifiers.budget import reporting_phases
    from marginbn.classifiers.search import SearchingBNClassifier

    with ProgressLine(enabled=not quiet) as progress, reporting_phases(progress.tell):
        if not isinstance(classifier, SearchingBNClassifier):
            yield
            return
        asked, search = classifier.search, classifier.search_settings()
        classifier.set_params(search=replace(search, callback=progress))
        try:
            yield
        finally:
            classifier.set_params(search=asked)


def measure(classifier: BaseBNClassifier, rows: LabelledTable) -> Quality:
    """All measures on rows that were not learned from."""
    from marginbn.classifiers.measures import Quality

    probabilities = classifier.predict_proba(rows.features)
    return Quality.measure(classifier.classes_.tolist(), rows.labels, probabilities)
