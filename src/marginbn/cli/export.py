"""``marginbn export``: the network of a saved classifier in another format."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from marginbn.cli.options import ModelArgument, OutputOption


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
