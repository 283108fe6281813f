"""How every command runs: options grouped, what is printed, errors as single lines, exit codes."""

from __future__ import annotations

import functools
import inspect
import io
import json
import os
import shlex
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast, get_type_hints

import typer

from marginbn.cli.options import in_options
from marginbn.exceptions import MarginBNError
from marginbn.interrupts import INTERRUPTS, as_keyboard_interrupt, handling_signals
from marginbn.network.wording import number, percent, visible

if TYPE_CHECKING:
    from marginbn.solvers.interpreted import Compiler
    from marginbn.solvers.result import TracePoint


def print_json(value: object) -> None:
    """One JSON object on stdout, numbers with all their digits."""
    text = json.dumps(
        value, allow_nan=False, default=lambda array: array.tolist()
    )  # ASCII, control characters escaped
    typer.echo(text.replace("\x7f", "\\u007f"))


def print_verdict(text: str, *, proved: bool | None) -> None:
    """Text whose first line stands out on a terminal: green if proved, yellow if not.

    None means what claims no optimum: it gets no colour.
    """
    first, _, rest = harmless(text).partition("\n")
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        colour = None if proved is None else "green" if proved else "yellow"
        first = typer.style(first, bold=True, fg=colour)
    typer.echo(f"{first}\n{rest}")


def harmless(text: str) -> str:
    """Lines that a terminal shows as they are: control characters in names are escaped.

    Everything that the commands print goes through here; a file or a pipe gets data as they are.
    """
    return "\n".join(map(visible, text.split("\n")))


def print_text(text: str) -> None:
    """Text for people on stdout."""
    typer.echo(harmless(text))


def note(text: str, quiet: bool = False) -> None:
    """A line for people on stderr."""
    if not quiet:
        with suppress(OSError):  # the terminal may be gone
            typer.echo(harmless(text), err=True)


def note_files(output: Path | None, certificate: Path | None, table: str, quiet: bool) -> None:
    """Where a model and its proof are, and the command that checks it."""
    if output is not None:
        note(f"Saved in {output}.", quiet)
    note_proof(
        certificate, quiet, *(() if output is None else ("--model", output, "--data", table))
    )


def note_proof(certificate: Path | None, quiet: bool, *about: str | Path) -> None:
    """Where a proof is, if it was written, and the command that checks it."""
    if certificate is not None and certificate.exists():
        words = map(str, ("marginbn", "verify", certificate, *about))
        note(f"Proof in {certificate}; check it with `{shlex.join(words)}`.", quiet)


def data_stream() -> TextIO:
    """stdout for data: as they are into a pipe, harmless on a terminal."""
    return cast(TextIO, _Screen()) if sys.stdout.isatty() else sys.stdout


class _Screen(io.TextIOBase):
    """Writes text to stdout that a terminal shows as it is."""

    def write(self, text: str) -> int:
        return sys.stdout.write(harmless(text))


def is_stream(path: Path) -> bool:
    """Whether it is a pipe or a device, such as /dev/stdout, which no file can replace."""
    return path.is_fifo() or path.is_char_device()


def try_outputs(**paths: Path | None) -> None:
    """Refuse files that cannot be written before the work for them begins."""
    from marginbn.files import try_writing

    for option, path in paths.items():
        if path is not None and not is_stream(path):
            try_writing(path, f"--{option}")


def write_output(path: Path | None, write: Callable[[str], None]) -> bool:
    """Write a result; whether it is where it should be. If not, a line says where it is."""
    from marginbn.files import write_or_rescue

    if path is None:
        return True
    try:
        rescued = write_or_rescue(path, write)
    except MarginBNError as error:
        print_message(f"error: {error}")
        return False
    if rescued is not None:
        print_message(f"error: {rescued}")
    return rescued is None


def text_width() -> int:
    """Columns to write in: those of the terminal, between 60 and 100."""
    return min(max(shutil.get_terminal_size().columns, 60), 100)


CLEAR = "\x1b[K"  # to the end of the line
_TICK = 0.2  # seconds between two looks at the clock
_LONGEST_PAUSE = 60.0  # seconds between two lines of a log


class ProgressLine:
    """Time, phase, objective, bound and gap; a callback for solvers and a context manager.

    On a terminal one line is rewritten in place. Elsewhere lines are added, after 1, 2, 4, ...
    seconds and then every minute, so that a log stays short. The last line has the whole time.
    """

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._on_terminal = sys.stderr.isatty()
        self._point: TracePoint | None = None
        self._phase = "preparing"
        self._compiler: Compiler | None = None
        self._compiled = 0.0  # seconds, before this began
        self._start = time.perf_counter()
        self._next_line = 1.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __call__(self, point: TracePoint) -> None:
        """Remember the latest numbers; the thread shows them."""
        self._point, self._phase = point, "search"

    def tell(self, phase: str) -> None:
        """Begin the next phase."""
        self._point, self._phase = None, phase

    def __enter__(self) -> ProgressLine:
        from marginbn.solvers.interpreted import COMPILER  # loads what --help need not wait for

        self._compiler, self._compiled = COMPILER, COMPILER.seconds
        self._start = time.perf_counter()
        if self._enabled:
            self._thread.start()
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self._stop.set()
        if self._enabled:
            self._thread.join()
            ending = "" if error else f"{self.ending()}\n"
            _write(f"{chr(13) + CLEAR if self._on_terminal else ''}{ending}")

    def _work(self) -> None:
        while not self._stop.wait(_TICK):
            elapsed = time.perf_counter() - self._start
            if self._on_terminal:
                columns = shutil.get_terminal_size().columns
                _write(f"\r{self.text(elapsed, hint=True)[: columns - 1]}{CLEAR}")
            elif elapsed >= self._next_line:
                _write(f"{self.text(elapsed)}\n")
                self._next_line = elapsed + min(elapsed, _LONGEST_PAUSE)

    def text(self, elapsed: float, *, hint: bool = False) -> str:
        """The line, at most 79 characters for scores of usual size."""
        compiling = None if self._compiler is None else self._compiler.text
        line, point = f"{elapsed:6.1f} s  {compiling or self._phase}", self._point
        if compiling or point is None:
            return line
        numbers = f"objective {number(point.objective, 2)}  bound {number(point.bound, 2)}"
        line += f"  {numbers}  gap {percent(point.gap)}"
        more = point.forecast or ("Ctrl-C stops" if hint else "")
        return f"{line}  {more}".rstrip()

    def ending(self) -> str:
        """The last line: the whole time, and how much of it went into compiling."""
        elapsed = time.perf_counter() - self._start
        compiling = 0.0 if self._compiler is None else self._compiler.seconds - self._compiled
        more = f", {compiling:.1f} s of it compiling" if compiling >= 0.1 else ""
        return f"{elapsed:6.1f} s  done{more}"


def _write(text: str) -> None:
    with suppress(OSError):  # the terminal may be gone
        sys.stderr.write(text)
        sys.stderr.flush()


# exit codes
DONE, ERROR, OPEN_GAP, NOT_STRICT = 0, 1, 3, 4
BROKEN_PIPE = 141  # 128 + SIGPIPE: the reader had enough, as with "| head"

EXIT_CODES_HELP = """\b
Exit codes:
  0    success; a search ended with a proof, or at the gap asked for
  1    unusable input or another error; one line explains it
  2    wrong options
  3    a search stopped early (limit, Ctrl-C, SIGTERM, SIGHUP); the best
       structure found is used, and all files are written
  4    `verify --strict`: not proved, a gap above 0.0001 %, or reservations
  130  interrupted before there was a result; 143 by SIGTERM, 129 by SIGHUP"""


def command(function: Callable[..., int | None]) -> Callable[..., None]:
    """Make a typer command of a function whose parameters may be dataclasses of options.

    A parameter of a dataclass type stands for all fields of the class: each becomes an option of
    the command, and the function gets them back as one value. The function returns the exit code.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            group: Any = parameter.annotation
            groups[parameter.name] = group
            hints, own = get_type_hints(group, include_extras=True), inspect.signature(group)
            parameters += [p.replace(annotation=hints[p.name]) for p in own.parameters.values()]
        else:
            parameters.append(parameter)
    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]

    @functools.wraps(function)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{f.name: values.pop(f.name) for f in fields(group)})
        with handling_signals(), clean_endings(), clean_warnings():
            code = function(**values)
            sys.stdout.flush()
        raise typer.Exit(code or DONE)

    run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in keywords}
    return run


@contextmanager
def clean_endings() -> Iterator[None]:
    """Errors in one line and the documented exit codes; bugs keep their traceback."""
    try:
        with as_keyboard_interrupt():
            yield
    except BrokenPipeError:
        try:  # let the interpreter's own flush at exit go nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (OSError, ValueError):  # no real file behind it
            sys.stdout = sys.__stdout__
        raise typer.Exit(BROKEN_PIPE) from None
    except (MarginBNError, OSError) as error:
        print_message(f"error: {error}")
        raise typer.Exit(ERROR) from None
    except UnicodeEncodeError as error:
        print_message(
            f"error: {error.object[error.start : error.end]!a} cannot be written in "
            f"{error.encoding}; set PYTHONIOENCODING=utf-8, or write to a file"
        )
        raise typer.Exit(ERROR) from None
    except MemoryError:
        print_message("error: out of memory; fewer columns, parents or rows need less")
        raise typer.Exit(ERROR) from None
    except KeyboardInterrupt:
        print_message(INTERRUPTS.message)
        INTERRUPTS.message_written = True
        raise typer.Exit(INTERRUPTS.exit_code) from None


@contextmanager
def clean_warnings() -> Iterator[None]:
    """Warnings meant for users in one line each and once, all others not at all."""
    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            print_message(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def print_message(message: str) -> None:
    """One line on stderr with the program's name, arguments told as options; a progress line on it
    is wiped first.
    """
    line = in_options(" ".join(message.split()))
    wipe = "\r\x1b[K" if sys.stderr.isatty() else ""
    with suppress(OSError):  # the terminal may be gone
        typer.echo(f"{wipe}marginbn: {visible(line)}", err=True)
