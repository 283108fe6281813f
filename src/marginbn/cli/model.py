"""``marginbn predict``: classes for the rows of a table.

``marginbn show``: what a saved classifier is.

``marginbn export``: the network of a saved classifier in another format.
"""

from __future__ import annotations

import sys
from enum import StrEnum
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
    from marginbn.cli.running import print_json
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


def show(
    model: ModelArgument,
    tables: Annotated[
        bool, typer.Option("--tables", help="Also print the conditional probability tables.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Summarise a saved classifier: verdict, numbers, structure."""
    from marginbn.classifiers.model_file import load_model
    from marginbn.cli.running import print_json, print_verdict, text_width
    from marginbn.export.native import network_to_dict
    from marginbn.report.summary import describe, describe_tables, summarise

    classifier = load_model(model)
    if json:
        network = {"network": network_to_dict(classifier.network_)} if tables else {}
        print_json(summarise(classifier) | network)
        return
    text = describe(classifier, (), text_width())
    print_verdict(text, proved=classifier.result_.is_optimal)
    if tables:
        typer.echo(f"\n{describe_tables(classifier.network_, text_width())}")


class FormatName(StrEnum):
    """Formats that networks are written in."""

    JSON = "json"
    BIF = "bif"
    XMLBIF = "xmlbif"
    NET = "net"
    UAI = "uai"
    DOT = "dot"
    MERMAID = "mermaid"


def export(
    model: ModelArgument,
    output: OutputOption = None,
    format: Annotated[
        FormatName | None,
        typer.Option(
            help="json, bif, xmlbif, net (Hugin), uai: variables, parents and tables; dot "
            "(Graphviz), mermaid: the graph. [default: by the name of the file]"
        ),
    ] = None,
) -> None:
    """Write the network of a saved classifier, to stdout or a file.

    With uai the names go to a second file beside the first; on stdout there are none.
    """
    from marginbn.classifiers.model_file import load_model
    from marginbn.exceptions import InputError
    from marginbn.export.formats import find_format

    try:
        chosen = find_format(output or "", format)
    except InputError:
        raise typer.BadParameter(
            f"say {', '.join(FormatName)}, or give --output a name that tells, like tree.bif",
            param_hint="--format",
        ) from None
    network = load_model(model).network_
    if output is None:
        typer.echo(chosen.to_text(network), nl=False)
    else:
        chosen.save(network, output)
