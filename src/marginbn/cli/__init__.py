"""The command line: commands on a model, on a problem, on data; one function each.

Nothing heavy is imported until a command runs, so that ``marginbn --help`` answers at once: the
modules of this package import the standard library and typer at the top, all else inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from marginbn import __version__
from marginbn.cli import (
    evaluate,
    fit,
    inspect_table,
    learn,
    model,
    predict,
    problems,
    questions,
    score,
    verify,
)
from marginbn.cli.running import EXIT_CODES_HELP, command
from marginbn.network.wording import visible

UsageError: Any = typer.BadParameter.__base__  # typer has a copy of click, or uses that of others


@contextmanager
def _harmless_errors() -> Iterator[None]:
    """Usage errors quote what was typed: control characters in it are escaped, as everywhere."""
    try:
        yield
    except UsageError as error:
        error.message = visible(error.message)
        raise


class Commands(TyperGroup):
    """All commands; what is wrong with their options is told without control characters."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read what stands before the command."""
        with _harmless_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Read the options of a command and run it."""
        with _harmless_errors():
            return super().invoke(ctx)


app = typer.Typer(
    name="marginbn",
    cls=Commands,
    help="Provably optimal Bayesian-network classifiers from a table.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    rich_markup_mode=None,  # importing rich would double the time that --help takes
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"marginbn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options that stand before the command."""


for _function, _epilog in (
    (inspect_table.inspect, None),
    (fit.fit, EXIT_CODES_HELP),
    (learn.learn, EXIT_CODES_HELP),
    (predict.predict, None),
    (questions.explain, None),
    (questions.ask, None),
    (evaluate.evaluate, EXIT_CODES_HELP),
    (model.show, None),
    (model.report, None),
    (problems.size, None),
    (model.export, None),
    (score.score, None),
    (problems.formulate, None),
    (problems.solve, EXIT_CODES_HELP),
    (verify.verify, None),
):
    app.command(epilog=_epilog)(command(_function))


def main() -> None:
    """Entry point of the ``marginbn`` script."""
    app(prog_name="marginbn")
