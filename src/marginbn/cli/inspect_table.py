"""``marginbn inspect``: a look at a table before anything is learned from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marginbn.cli import options
from marginbn.cli.hints import in_options
from marginbn.cli.running import note, print_json, print_text

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier
    from marginbn.data.inspection import DataReport
    from marginbn.data.labelled import LabelledTable


def inspect(
    table: options.TableOptions,
    problem: options.ProblemOptions,
    json: options.JsonOption = False,
) -> None:
    """Say what TABLE holds and what `marginbn fit` would make of it.

    Kinds, missing values, identifiers, empty and constant columns, rare categories and classes,
    rows that each way to treat missing values would cost, parameters against rows. Of a file
    without --target: what `marginbn learn` would make of it, where no column is a class.
    """
    from marginbn.cli.data import feature_kinds, is_file_name, load_rows

    if table.target is None and is_file_name(table.table):
        report = look_without_class(table, problem)
    else:
        classifier = options.build_classifier(problem).set_params(column_kinds=feature_kinds(table))
        report = look_at(classifier, load_rows(table))
    if json:
        print_json(report.to_dict())
    else:
        print_text(in_options(str(report)))


def look_at(classifier: BaseBNClassifier, rows: LabelledTable) -> DataReport:
    """What the classifier would make of the rows."""
    from marginbn.data.inspection import inspect_rows

    missing: Any = classifier.missing
    return inspect_rows(rows, classifier._preparation_settings(), missing)


def look_without_class(table: options.TableOptions, problem: options.ProblemOptions) -> DataReport:
    """What `marginbn learn` would make of the table."""
    from marginbn.cli.data import feature_kinds
    from marginbn.cli.learn import PlainTableOptions, read_plain_table
    from marginbn.data.inspection import inspect_data

    given = options.preparation_parameters(problem)
    rows = read_plain_table(
        PlainTableOptions(table.table, table.kind, table.drop, **vars(table.text))
    )
    return inspect_data(rows, column_kinds=feature_kinds(table), **given)


def tell_hints(report: DataReport, quiet: bool) -> None:
    """What should give pause and is not said by the warnings of a fit, on stderr."""
    for hint in report.hints:
        note(f"data: {in_options(hint)}", quiet)
