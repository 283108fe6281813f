"""A search of the command line that gets a signal, and what is left of it.

The search writes a model, a checkpoint and a certificate. Ctrl-C goes to the whole group of
processes, as a terminal sends it; SIGTERM goes to the program alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

COMMAND = (
    "fit waveform-21 --method max-margin --holdout 0 --json --jobs {jobs} -o m.json "
    "--time-limit 60 --checkpoint c --certificate p"
)
FILES = {"m.json", "c", "p"}


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
        time.sleep(0.2)  # for processes that end with it
        strays = [path.name for path in here.iterdir() if path.name not in FILES]
        strays += [path.name for path in temporary.rglob("*")]
        strays += [path.name for path in Path("/dev/shm").glob(f"*{process.pid}*")]
        return Trial(
            code=process.returncode,
            searched=searched,
            wrote={path.name for path in here.iterdir()} | ({"stdout"} if stdout else set()),
            stray_files=strays,
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


def _end_session(leader: int) -> int:
    """Number of processes of a session that are still there; they are ended."""
    left = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != leader:
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader and fields[0] != "Z":
                    left += 1
                    os.kill(int(entry.name), signal.SIGKILL)
            except (OSError, ValueError, IndexError):
                continue
    return left
