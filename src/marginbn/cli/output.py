"""What commands print: JSON for programs, text for people."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

import typer


def print_json(value: object) -> None:
    """One JSON object on stdout, numbers with all their digits."""
    typer.echo(json.dumps(value, allow_nan=False, default=_plain))


def _plain(value: Any) -> Any:
    """numpy's scalars and arrays as Python's."""
    return value.tolist()


def print_verdict(text: str, *, proved: bool) -> None:
    """Text whose first line stands out on a terminal: green if proved, yellow if not."""
    first, _, rest = text.partition("\n")
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        first = typer.style(first, bold=True, fg="green" if proved else "yellow")
    typer.echo(f"{first}\n{rest}")


def note(text: str, quiet: bool = False) -> None:
    """A line for people on stderr."""
    if not quiet:
        typer.echo(text, err=True)


def text_width() -> int:
    """Columns to write in: those of the terminal, between 60 and 100."""
    return min(max(shutil.get_terminal_size().columns, 60), 100)
