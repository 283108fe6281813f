"""Signals at random moments of the command line: ``python tests/signals.py results.jsonl``.

Each trial starts ``marginbn fit`` with a model, a checkpoint and a certificate to write, sends one
Ctrl-C (to the whole group, as a terminal does) or one SIGTERM after a random time, and looks at
what is left. Trials go over both signals, a cold and a warm kernel cache, one and two workers.
Every
trial is a line of the file; the same command again goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np

CELLS = tuple(product(("SIGINT", "SIGTERM"), ("warm", "cold"), (1, 2)))
LONGEST = {"warm": 25.0, "cold": 60.0}
"""Seconds within which the signal is sent: start, loading or compiling, search and proof."""

PROMPT, IGNORED = 2.0, 15.0
"""Seconds after a signal: all should have ended, and what has not was not heard at all."""

FILES = {"m.json", "c", "c.previous", "p"}
TABLE = "waveform-21"


@dataclass(frozen=True)
class Trial:
    """What was done and what came of it."""

    signal: str
    cache: str
    jobs: int
    delay: float
    seconds: float
    code: int
    searched: bool  # a line of progress with a structure was there before the signal
    wrote: list[str]
    stray_files: list[str]
    stray_processes: int
    stderr: str

    @property
    def is_unborn(self) -> bool:
        """Whether the signal came before the interpreter could hear any."""
        return self.code == -getattr(signal, self.signal) and self.stderr == ""

    @property
    def defects(self) -> list[str]:
        """What must not happen."""
        number = getattr(signal, self.signal)
        found = {
            "ignored": self.seconds > IGNORED,
            "traceback": any(word in self.stderr for word in ("Traceback", "Exception ignored")),
            "stray process": self.stray_processes > 0,
            "stray file": bool(self.stray_files),
            "lost": self.searched
            and not (self.code in (0, 3) and {"m.json", "c", "p"} <= {*self.wrote}),
            "exit code": self.code not in (0, 3, 128 + number) and not self.is_unborn,
        }
        return [name for name, is_there in found.items() if is_there]


def attempt(name: str, cache: str, jobs: int, delay: float | None) -> Trial:
    """One trial; without a delay the signal is sent when a structure is reported."""
    with tempfile.TemporaryDirectory() as folder:
        here, temporary = Path(folder, "here"), Path(folder, "tmp")
        here.mkdir()
        temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(temporary)}
        if cache == "cold":
            environment["MARGINBN_CACHE"] = str(Path(folder, "cache"))
        command = [sys.executable, "-m", "marginbn", "fit", TABLE, "--holdout", "0"]
        command += ["--jobs", str(jobs), "--time-limit", "60", "--json"]
        command += ["-o", "m.json", "--checkpoint", "c", "--certificate", "p"]
        process = subprocess.Popen(
            command,
            cwd=here,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begin = time.perf_counter()
        lines, reported = _follow(process)
        if delay is None:
            reported.wait()
        else:
            with suppress(subprocess.TimeoutExpired):
                process.wait(delay)
        searched = any("objective" in line for line in lines)
        sent = time.perf_counter()
        _send(process, name)
        stdout, _ = _collect(process, lines)
        taken = time.perf_counter() - sent
        process.stdout.close()  # type: ignore[union-attr]
        process.stderr.close()  # type: ignore[union-attr]
        time.sleep(0.2)  # for processes that end with it
        return Trial(
            signal=name,
            cache=cache,
            jobs=jobs,
            delay=sent - begin,
            seconds=taken,
            code=process.returncode,
            searched=searched,
            wrote=sorted({p.name for p in here.iterdir()} & FILES) + ["stdout"] * bool(stdout),
            stray_files=_strays(here, temporary, Path(folder, "cache")),
            stray_processes=_end_session(process.pid),
            stderr="".join(lines)[-3000:],
        )


def _follow(process: subprocess.Popen[str]) -> tuple[list[str], threading.Event]:
    """Lines of stderr as they come, and an event for the first with a structure."""
    lines: list[str] = []
    reported = threading.Event()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if "objective" in line:
                reported.set()
        reported.set()  # nobody needs to wait any longer

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    process.reader = thread  # type: ignore[attr-defined]
    return lines, reported


def _send(process: subprocess.Popen[str], name: str) -> None:
    if process.poll() is not None:
        return
    number = getattr(signal, name)
    if name == "SIGINT":
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)


def _collect(process: subprocess.Popen[str], lines: list[str]) -> tuple[str, list[str]]:
    assert process.stdout is not None
    stdout: list[str] = []
    reader = threading.Thread(target=lambda: stdout.append(process.stdout.read()), daemon=True)
    reader.start()
    try:
        process.wait(600)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    reader.join(5)
    process.reader.join(5)  # type: ignore[attr-defined]
    return "".join(stdout), lines


def _strays(here: Path, temporary: Path, cache: Path) -> list[str]:
    """Files that nobody asked for; a cache may hold finished machine code."""
    found = [p for p in here.iterdir() if p.name not in FILES] + [*temporary.rglob("*")]
    found += [p for p in cache.rglob("*") if ".tmp" in p.name]
    return sorted(p.name for p in found)


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


def read_trials(path: Path) -> list[Trial]:
    """Trials that were done earlier."""
    if not path.exists():
        return []
    return [Trial(**json.loads(line)) for line in path.read_text().splitlines()]


def describe(trials: list[Trial]) -> str:
    """Counts of all that matters."""
    lines = []
    for name in ("SIGINT", "SIGTERM"):
        own = [t for t in trials if t.signal == name]
        defects = Counter(defect for t in own for defect in t.defects)
        slow = sum(t.seconds > PROMPT for t in own)
        median = float(np.median([t.seconds for t in own])) if own else 0.0
        worst = max((t.seconds for t in own), default=0.0)
        lines.append(
            f"{name}: {len(own)} trials, defects {dict(defects) or 'none'}, exit codes "
            f"{dict(sorted(Counter(t.code for t in own).items()))}, {sum(t.searched for t in own)} "
            f"during search, seconds to end {median:.2f} (median) {worst:.2f} (worst), {slow} over "
            f"{PROMPT:g} s"
        )
    return "\n".join(lines)


def main() -> None:
    """Fill every cell up to the number asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--each", type=int, default=10, help="trials of each of the 8 cells")
    parser.add_argument("--cache", choices=("warm", "cold"), help="this kind of cell only")
    options = parser.parse_args()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # ignored in the background, and inherited so
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    for turn in range(options.each):
        for cell, (name, cache, jobs) in enumerate(CELLS):
            done = read_trials(options.results)
            own = [t for t in done if (t.signal, t.cache, t.jobs) == (name, cache, jobs)]
            if len(own) > turn or options.cache not in (None, cache):
                continue
            rng = np.random.default_rng([turn, cell])
            trial = attempt(name, cache, jobs, float(rng.uniform(0, LONGEST[cache])))
            with options.results.open("a") as file:
                file.write(json.dumps(asdict(trial)) + "\n")
            sys.stderr.write(
                f"{name} {cache} {jobs}: after {trial.delay:.2f} s, ended in {trial.seconds:.2f} s,"
                f" code {trial.code} {trial.defects or ''}\n"
            )
    sys.stdout.write(f"{describe(read_trials(options.results))}\n")


if __name__ == "__main__":
    main()
