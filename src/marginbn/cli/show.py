"""``marginbn show``: what a saved classifier is."""

from __future__ import annotations

from typing import Annotated

import typer

from marginbn.cli.options import JsonOption, ModelArgument


def show(
    model: ModelArgument,
    tables: Annotated[
        bool, typer.Option("--tables", help="Also print the conditional probability tables.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Summarise a saved classifier: verdict, numbers, structure."""
    from marginbn.classifiers.model_file import load_model
    from marginbn.cli.output import print_json, print_verdict, text_width
    from marginbn.export.native import network_to_dict
    from marginbn.report.structure_text import describe_tables
    from marginbn.report.text import describe, summarise

    classifier = load_model(model)
    if json:
        network = {"network": network_to_dict(classifier.network_)} if tables else {}
        print_json(summarise(classifier) | network)
        return
    text = describe(classifier, (), text_width())
    print_verdict(text, proved=classifier.result_.is_optimal)
    if tables:
        typer.echo(f"\n{describe_tables(classifier.network_, text_width())}")
