"""How every command runs: options grouped, errors and warnings as single lines, exit codes."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer

from marginbn.exceptions import MarginBNError

DONE = 0
ERROR = 1
USAGE = 2  # given by typer
OPEN_GAP = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells count
BROKEN_PIPE = 141  # 128 + SIGPIPE: the reader had enough, as with "| head"

EXIT_CODES_HELP = """\b
Exit codes:
  0    done; a search ended with a proof of optimality
  1    unusable input or another error, told in one line
  2    wrong options
  3    a search stopped with a gap (limit or Ctrl-C); the best found is used
  130  interrupted before there was a result"""


def command(function: Callable[..., int | None]) -> Callable[..., None]:
    """Make a typer command of a function whose parameters may be dataclasses of options.

    A parameter of a dataclass type stands for all fields of the class: each becomes an option of
    the command, and the function gets them back as one value. The function returns the exit code.
    """
    parameters, groups = _flatten(function)

    @functools.wraps(function)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{f.name: values.pop(f.name) for f in fields(group)})
        with clean_endings(), clean_warnings():
            code = function(**values)
            sys.stdout.flush()
        raise typer.Exit(code or DONE)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _flatten(
    function: Callable[..., int | None],
) -> tuple[list[inspect.Parameter], dict[str, type[Any]]]:
    """Parameters with dataclasses replaced by their fields, and the dataclasses by name."""
    hints = get_type_hints(function, include_extras=True)
    parameters, groups = [], {}
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and is_dataclass(hint):
            groups[parameter.name] = hint
            parameters += _fields_as_parameters(hint)
        else:
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=hint, kind=keyword))
    return parameters, groups


def _fields_as_parameters(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


@contextmanager
def clean_endings() -> Iterator[None]:
    """Errors in one line and the documented exit codes; bugs keep their traceback."""
    try:
        yield
    except BrokenPipeError:
        _silence_stdout()
        raise typer.Exit(BROKEN_PIPE) from None
    except (MarginBNError, OSError) as error:
        tell(f"error: {error}")
        raise typer.Exit(ERROR) from None
    except UnicodeEncodeError as error:
        tell(
            f"error: {error.object[error.start : error.end]!a} cannot be written in "
            f"{error.encoding}; set PYTHONIOENCODING=utf-8, or write to a file"
        )
        raise typer.Exit(ERROR) from None
    except MemoryError:
        tell("error: out of memory; `marginbn size` tells what a problem needs")
        raise typer.Exit(ERROR) from None
    except KeyboardInterrupt:
        tell("interrupted before there was a result")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def clean_warnings() -> Iterator[None]:
    """Warnings meant for users in one line each, all others not at all."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        tell(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def tell(message: str) -> None:
    """One line on stderr with the program's name; a progress line on it is wiped first."""
    wipe = "\r\x1b[K" if sys.stderr.isatty() else ""
    typer.echo(f"{wipe}marginbn: {' '.join(message.split())}", err=True)


def _silence_stdout() -> None:
    """Let the interpreter's own flush at exit go nowhere."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # no real file behind it
        sys.stdout = sys.__stdout__
