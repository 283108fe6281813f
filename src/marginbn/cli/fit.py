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
from marginbn.cli.running import (
    DONE,
    ERROR,
    OPEN_GAP,
    ProgressLine,
    note,
    note_files,
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
    note_files(output if saved else None, certificate, table.table, quiet)
    if not saved:
        return ERROR
    result = classifier.result_
    return DONE if result is None or result.is_closed else OPEN_GAP


@dataclass(frozen=True)
class Outcome:
    """A fitted classifier, what its table holds, and what was measured: quality on held-out rows,
    and the accuracy of logistic regression on the same rows.
    """

    classifier: BaseBNClassifier
    data: DataReport | None = None
    quality: Quality | None = None
    logistic: float | None = None

    def measures(self) -> dict[str, float | None] | None:
        """The measures that the model file keeps; None where nothing was measured."""
        if self.quality is None:
            return None
        logistic = {} if self.logistic is None else {"logistic_accuracy": self.logistic}
        return {**self.quality.numbers(), **logistic}

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        from marginbn.report.summary import summarise

        return summarise(self.classifier, self.quality) | {
            "logistic_accuracy": self.logistic,
            "data": None if self.data is None else self.data.to_dict(),
        }


def learn_and_measure(
    classifier: BaseBNClassifier,
    table: options.TableOptions,
    holdout: float | None,
    began: float,
    quiet: bool,
) -> Outcome:
    """Fit the classifier to all rows, and measure on rows that it, or its double, has not seen."""
    from marginbn.cli.data import (
        feature_kinds,
        labelled_rows,
        load_source,
        long_stream,
        prepare,
        print_hints,
    )

    classifier.set_params(column_kinds=feature_kinds(table))
    stream = long_stream(table.table, table.drop)
    if stream is not None:
        if holdout:
            raise typer.BadParameter(
                "has no meaning for a table that is read in pieces; measure with `marginbn report "
                "--test TABLE`",
                param_hint="--holdout",
            )
        target = table.named_target()
        note("Learning from all rows, which are read in pieces.", quiet)
        with showing_progress(classifier, quiet):
            classifier.fit(stream, target)
        return Outcome(classifier, None, *measure_validation(classifier, None))
    source = load_source(table)
    rows = labelled_rows(source.train, source.target, table.drop)
    prepared = prepare(classifier, rows, began)
    report = print_hints(prepared, quiet)
    with showing_progress(classifier, quiet):
        classifier.fit_prepared(prepared)
    if holdout is None and source.test is not None:
        test = labelled_rows(source.test, source.target)
        return Outcome(classifier, report, measure(classifier, test))
    if holdout is None and classifier.held_out_ is not None:
        return Outcome(classifier, report, *measure_validation(classifier, rows))
    return Outcome(classifier, report, measure_double(classifier, rows, holdout, quiet))


def measure_validation(
    classifier: BaseBNClassifier, rows: LabelledTable | None
) -> tuple[Quality | None, float | None]:
    """The quality on the rows that chose the amount of smoothing: each was predicted by a model
    that had not seen it. Logistic regression gets the same rows, where they are at hand.
    """
    from marginbn.classifiers.evaluation import logistic_accuracy

    if classifier.held_out_ is None:
        return None, None
    quality = classifier.held_out_.quality(classifier.classes_)
    if rows is None:
        return quality, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # given already, by the fit
        return quality, logistic_accuracy(rows, classifier.table_settings())


def measure_double(
    classifier: BaseBNClassifier, rows: LabelledTable, holdout: float | None, quiet: bool
) -> Quality | None:
    """What a double, learned from the rows that are not held out, gets right of the others.

    None where the user has stopped the search or stops this one.
    """
    from marginbn.data.labelled import stratified_holdout

    share = options.DEFAULT_HOLDOUT if holdout is None else holdout
    if share == 0 or rows.n_rows < 2 or classifier.status_ == "interrupted":
        return None
    double = make_double(classifier)
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
            quality = measure(double, held_out)
    except KeyboardInterrupt:
        return None
    return None if double.status_ == "interrupted" else quality


def print_trained(outcome: Outcome, saved: Path | None) -> None:
    """What a classifier with trained tables is, in three sentences."""
    from marginbn.report.summary import describe_trained, quality_verdict

    classifier = outcome.classifier
    told = [quality_verdict(classifier, outcome.quality, outcome.logistic)]
    told += describe_trained(classifier, None if saved is None else saved.name)
    text = "\n".join(line for one in told for line in textwrap.wrap(one, text_width()))
    print_verdict(text, proved=classifier.result_ is None or classifier.result_.is_optimal)


def print_outcome(outcome: Outcome) -> None:
    """Verdict, facts, structure, and all measures."""
    from marginbn.report.summary import describe

    classifier, quality, result = outcome.classifier, outcome.quality, outcome.classifier.result_
    text = describe(classifier, quality, text_width())
    print_verdict(text, proved=None if result is None else result.is_optimal)
    if quality is None:
        return
    rows = counted(quality.n_rows, "held-out row")
    print_text("\n".join(["", f"Quality on {rows}", *quality.lines()]))


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
