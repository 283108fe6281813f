"""``marginbn export``: the network of a saved classifier in another format."""

from __future__ import annotations

import json as json_module
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from marginbn.cli.options import ModelArgument, OutputOption


class NetworkFormat(StrEnum):
    """Formats that networks are written in."""

    JSON = "json"
    DOT = "dot"


_SUFFIXES = {".json": NetworkFormat.JSON, ".dot": NetworkFormat.DOT, ".gv": NetworkFormat.DOT}


def export(
    model: ModelArgument,
    output: OutputOption = None,
    format: Annotated[
        NetworkFormat | None,
        typer.Option(
            help="json: variables, parents and tables; dot: the graph for Graphviz. [default: by "
            "the name of the file]"
        ),
    ] = None,
) -> None:
    """Write the network of a saved classifier, to stdout or a file."""
    from marginbn.export.dot import network_to_dot, save_dot
    from marginbn.export.native import network_to_dict, save_network
    from marginbn.model_file import load_model

    chosen = format or _format_of(output)
    network = load_model(model).network_
    if output is None:
        text = network_to_dot(network).rstrip()
        if chosen is NetworkFormat.JSON:
            text = json_module.dumps(network_to_dict(network), allow_nan=False)
        typer.echo(text)
    elif chosen is NetworkFormat.JSON:
        save_network(network, output)
    else:
        save_dot(network, output)


def _format_of(output: Path | None) -> NetworkFormat:
    """Format by the file's name; a usage error if the name does not tell."""
    if output is not None and output.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[output.suffix.lower()]
    known = ", ".join(_SUFFIXES)
    raise typer.BadParameter(
        f"say json or dot, or give --output a name that ends in {known}", param_hint="--format"
    )
