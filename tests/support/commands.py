"""Commands of the program in this process."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner, Result

from marginbn.cli import app


def run(*args: object, **options: Any) -> Result:
    return CliRunner().invoke(app, [str(a) for a in args], **options)
