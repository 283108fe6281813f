"""``marginbn predict``: classes for the rows of a table."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from marginbn.cli.options import (
    DelimiterOption,
    JsonOption,
    ModelArgument,
    OutputOption,
    TableArgument,
)


def predict(
    model: ModelArgument,
    table: TableArgument,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add a column with the probability of each class.")
    ] = False,
    output: OutputOption = None,
    json: JsonOption = False,
    delimiter: DelimiterOption = None,
) -> None:
    """Predict the class of every row of TABLE, as CSV.

    Columns are matched by name; others, such as the class itself, are ignored. Missing values are
    summed out, and so are categories that training never saw.
    """
    from marginbn.classifiers.model_file import load_model
    from marginbn.cli.data import load_table
    from marginbn.cli.output import print_json
    from marginbn.data.readers import write_csv

    classifier = load_model(model)
    features = load_table(table, delimiter)
    names = [classifier.network_.names[0]]
    columns = [classifier.predict(features).tolist()]
    if proba:
        names += [f"P({label})" for label in classifier.network_.variables[0].states]
        columns += classifier.predict_proba(features).T.tolist()
    if json:
        print_json(dict(zip(names, columns, strict=True)))
    if output is not None or not json:
        write_csv(sys.stdout if output is None else output, names, zip(*columns, strict=True))
