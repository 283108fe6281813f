"""A search of the command line that gets a signal, and what is left of it.

The search writes a model, a checkpoint and a certificate. Ctrl-C goes to the whole group of
processes, as a terminal sends it; SIGTERM goes to the program alone.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

COMMAND = (
    "fit waveform-21 --method max-margin --holdout 0 --json --jobs {jobs} -o m.json "
    "--time-limit 60 --checkpoint c --certificate p"
)
FILES = {"m.json", "c", "p"}

PATIENCE = 300
"""Tenths of a second in which everything that belongs to a search must be gone."""


@dataclass(frozen=True)
class Trial:
    """What became of the search."""

    code: int
    searched: bool  # a line of progress with a structure was there before the signal
    wrote: set[str]
    stray_files: list[str]
    stray_processes: int
    stderr: str

    @property
    def defects(self) -> list[str]:
        """What must not happen."""
        found = {
            "traceback": any(word in self.stderr for word in ("Traceback", "Exception ignored")),
            "stray process": self.stray_processes > 0,
            "stray file": bool(self.stray_files),
            "lost": not self.wrote >= FILES,
        }
        return [name for name, is_there in found.items() if is_there]


def attempt(name: str, jobs: int) -> Trial:
    """Send a signal once a structure is reported."""
    with tempfile.TemporaryDirectory() as folder:
        here, temporary = Path(folder, "here"), Path(folder, "tmp")
        here.mkdir()
        temporary.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "marginbn", *COMMAND.format(jobs=jobs).split()],
            cwd=here,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        lines, reader = _follow(process)
        searched = any("objective" in line for line in lines)
        number = getattr(signal, name)
        if process.poll() is None and name == "SIGINT":
            os.killpg(process.pid, number)
        elif process.poll() is None:
            process.send_signal(number)
        assert process.stdout is not None
        stdout = process.stdout.read()
        process.wait(600)
        reader.join(5)
        process.stdout.close()
        process.stderr.close()  # type: ignore[union-attr]
        for _ in range(PATIENCE):  # processes that end with it may take a while
            if not (_session(process.pid) or _strays(process.pid, here, temporary)):
                break
            time.sleep(0.1)
        return Trial(
            code=process.returncode,
            searched=searched,
            wrote={path.name for path in here.iterdir()} | ({"stdout"} if stdout else set()),
            stray_files=_strays(process.pid, here, temporary),
            stray_processes=_end_session(process.pid),
            stderr="".join(lines)[-3000:],
        )


def _follow(process: subprocess.Popen[str]) -> tuple[list[str], threading.Thread]:
    """Lines of stderr up to the first with a structure, while a thread reads the others."""
    lines: list[str] = []
    reported = threading.Event()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if "objective" in line:
                reported.set()
        reported.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    reported.wait()
    return lines, thread


def _strays(leader: int, here: Path, temporary: Path) -> list[str]:
    """Files that should not be there; shared memory has the number of its process in its name."""
    shared = [path.name for path in Path("/dev/shm").iterdir()]
    return [
        *(path.name for path in here.iterdir() if path.name not in FILES),
        *(path.name for path in temporary.rglob("*")),
        *(name for name in shared if re.search(rf"[-_]{leader}[-_]", name)),
    ]


def _session(leader: int) -> list[int]:
    """Processes of a session that are still there."""
    left = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != leader:
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                left.append(int(entry.name))
    return left


def _end_session(leader: int) -> int:
    """Number of processes of a session that are still there; they are ended."""
    left = _session(leader)
    for process in left:
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
    return len(left)
