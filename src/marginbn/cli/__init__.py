"""The command line: commands on a model, on a problem, on data; one function each.

Nothing heavy is imported until a command runs, so that ``marginbn --help`` answers at once: the
modules of this package import the standard library and typer at the top, all else inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from marginbn import __version__
from marginbn.cli import (
    evaluate,
    fit,
    learn,
    model,
    problems,
    questions,
    verify,
)
from marginbn.cli.options import DATA, MODEL, OUTPUT, SEARCH
from marginbn.cli.running import EXIT_CODES_HELP, command
from marginbn.cli.verify import STATEMENT
from marginbn.network.wording import visible

UsageError: Any = typer.BadParameter.__base__  # typer has a copy of click, or uses that of others

PANELS = ("Arguments", DATA, MODEL, STATEMENT, SEARCH, OUTPUT, "Options")
"""Headings of ``--help`` in their order."""


@contextmanager
def _harmless_errors() -> Iterator[None]:
    """Usage errors quote what was typed: control characters in it are escaped, as everywhere."""
    try:
        yield
    except UsageError as error:
        error.message = visible(error.message).replace("Value error, ", "")  # of the parser
        raise


class Command(TyperCommand):
    """A command whose options are listed under the headings of their panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, those without a panel last."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                panel = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None)
                panels.setdefault(panel or "Options", []).append(record)
        for name in sorted(panels, key=PANELS.index):
            with formatter.section(name):
                formatter.write_dl(panels[name])


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


problem_app = typer.Typer(
    cls=Commands,
    help="Score, write and solve optimisation problems.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(problem_app, name="problem")

for _app, _function, _epilog in (
    (app, evaluate.inspect, None),
    (app, fit.fit, EXIT_CODES_HELP),
    (app, questions.predict, None),
    (app, questions.explain, None),
    (app, questions.ask, None),
    (app, evaluate.evaluate, EXIT_CODES_HELP),
    (app, model.show, None),
    (app, model.report, None),
    (app, model.export, None),
    (app, learn.learn, EXIT_CODES_HELP),
    (app, verify.verify, None),
    (problem_app, problems.score, None),
    (problem_app, problems.formulate, None),
    (problem_app, problems.solve, EXIT_CODES_HELP),
):
    _app.command(cls=Command, epilog=_epilog)(command(_function))


def main() -> None:
    """Entry point of the ``marginbn`` script."""
    app(prog_name="marginbn")
