"""What reading must never do: a watch over one run of a target.

A run may succeed or raise one of our own errors. Everything else is a finding:

- any other exception;
- more than ``CPU_SECONDS`` of processor time;
- touching a file outside the folder the run was given, apart from reading installed code;
- starting a process, opening a socket, unpickling, or executing code that is not installed code.

Python tells of all these through audit events, in this process and at no great cost. A violation
is raised where it happens and also remembered, since the code may catch what is raised.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from marginbn.exceptions import MarginBNError

CPU_SECONDS = 10.0
"""Processor time one small input may take; honest ones need milliseconds."""

_REFUSED = (
    "subprocess.", "os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.kill",
    "socket.", "pickle.", "urllib.", "ftplib.", "smtplib.", "webbrowser.", "pty.", "ctypes.dlsym",
)  # fmt: skip
_CHANGING = frozenset(
    ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod",
     "os.chown", "os.truncate", "os.utime", "os.chdir", "shutil.rmtree", "shutil.copyfile",
     "shutil.move", "tempfile.mkstemp", "tempfile.mkdtemp")
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class FindingError(BaseException):
    """Something reading must never do; no ``except Exception`` can hide it."""


def _code_folders() -> tuple[str, ...]:
    project = Path(__file__).resolve().parents[1]
    known = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    known |= {str(project / "src"), str(project / "fuzz"), sys.base_prefix}
    return tuple(os.path.realpath(folder) + os.sep for folder in known if folder)


_CODE_FOLDERS = _code_folders()
_SYSTEM_FILES = (
    "/proc/",
    "/sys/",
    "/dev/null",
    "/dev/urandom",
    "/etc/localtime",
    "/usr/share/",
    "/memory.",
)


class _Watch:
    """State of the audit hook, of which a process can have only one that stays for ever."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.violations: list[str] = []
        self._installed = False

    def install(self) -> None:
        if not self._installed:
            sys.addaudithook(self._hear)
            self._installed = True

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        reason = _judge(event, args, self.folder)
        if reason is not None:
            self.violations.append(reason)
            raise FindingError(reason)


_watch = _Watch()


def _judge(event: str, args: tuple[Any, ...], folder: str) -> str | None:
    """Why an event is a finding, or None."""
    if event == "open":
        return _judge_open(args, folder)
    if event in _CHANGING:
        paths = [a for a in args if isinstance(a, str | bytes | os.PathLike)]
        outside = [p for p in paths if not _inside(p, folder)]
        return f"{event} outside the named folder: {outside[:2]!r}" if outside else None
    if event == "exec":
        name = getattr(args[0], "co_filename", "")
        return None if _is_code(name) else f"executes code from {name!r}"
    if event == "compile":
        name = args[1] if len(args) > 1 else ""
        is_literal = name == "<unknown>"  # ast.parse, which runs nothing: headers of numpy's arrays
        return None if is_literal or _is_code(name) else f"compiles code from {name!r}"
    return f"{event} {args!r}"[:200] if event.startswith(_REFUSED) else None


def _judge_open(args: tuple[Any, ...], folder: str) -> str | None:
    path, _, flags = args
    if isinstance(path, int) or _inside(path, folder):
        return None
    writes = bool((flags or 0) & _WRITING)
    name = os.path.realpath(os.fsdecode(path))
    if not writes and (_is_code(name) or name.startswith(_SYSTEM_FILES)):
        return None
    return f"opens {name!r} for {'writing' if writes else 'reading'}"


def _inside(path: Any, folder: str) -> bool:
    name = os.path.realpath(os.fsdecode(path))
    return name == folder or name.startswith(folder + os.sep)


def _is_code(name: Any) -> bool:
    if not isinstance(name, str | bytes):
        return False
    text = os.fsdecode(name)
    return text.startswith("<frozen ") or os.path.realpath(text).startswith(_CODE_FOLDERS)


@contextlib.contextmanager
def watched(folder: Path, cpu_seconds: float = CPU_SECONDS) -> Iterator[None]:
    """Watch over the body: it may use ``folder`` and this much processor time."""

    def too_long(_signal: int, _frame: FrameType | None) -> None:
        _watch.violations.append(f"takes more than {cpu_seconds} s of processor time")
        raise FindingError(_watch.violations[-1])

    _watch.install()
    _watch.violations.clear()
    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    _watch.folder = os.path.realpath(folder)
    try:
        yield
    finally:
        _watch.folder = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    if _watch.violations:
        raise FindingError(_watch.violations[0])


def run_watched(target: Callable[[bytes, Path], None], data: bytes, folder: Path) -> None:
    """One run: our own errors are fine, anything else leaves this function as a finding."""
    with watched(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(MarginBNError):
            target(data, folder)
