"""``marginbn inspect``: a look at a table before anything is learned from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marginbn.cli import options
from marginbn.cli.options import in_options
from marginbn.cli.running import note, print_json, print_text

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier
    from marginbn.data.inspection import DataReport
    from marginbn.data.labelled import LabelledTable
    from marginbn.data.training import TrainingRows


def inspect(
    table: options.TableOptions,
    missing: options.MissingOption = None,
    json: options.JsonOption = False,
) -> None:
    """Report what TABLE holds and what a fit would make of it.

    Kinds, missing values, identifiers, empty and constant columns, rare categories and classes,
    rows that each treatment of missing values would drop, parameters compared with rows. For a
    file without --target: what `marginbn learn` would make of it, where no column is a class.
    """
    from marginbn.cli.data import feature_kinds, is_file_name, load_features, load_rows
    from marginbn.data.inspection import inspect_data, inspect_rows, prepare_quietly

    kinds = feature_kinds(table)
    if table.target is None and is_file_name(table.table):
        given: Any = {} if missing is None else {"missing": missing}
        report = inspect_data(load_features(table), column_kinds=kinds, **given)
    else:
        model = options.ModelOptions(missing=missing)
        classifier = options.build_classifier(model).set_params(column_kinds=kinds)
        rows = prepare_quietly(load_rows(table), classifier.table_settings())
        report = inspect_rows(rows)
    if json:
        print_json(report.to_dict())
    else:
        print_text(in_options(str(report)))


def prepare(
    classifier: BaseBNClassifier, rows: LabelledTable, began: float | None = None
) -> TrainingRows:
    """The rows as the classifier learns from them; warnings say what is done."""
    from marginbn.data.training import TrainingRows, survey_rows

    classifier.check_parameters()
    return TrainingRows.of(survey_rows(rows), classifier.table_settings(), began)


def tell_hints(rows: TrainingRows, quiet: bool) -> DataReport:
    """Print what should give pause and is not in the warnings of a fit, on stderr."""
    from marginbn.data.inspection import inspect_rows

    report = inspect_rows(rows)
    for hint in report.hints:
        note(f"data: {in_options(hint)}", quiet)
    return report
