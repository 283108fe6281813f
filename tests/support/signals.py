"""Signals at random moments of the command line: ``python tests/support/signals.py results.jsonl``.

Each trial starts a command that writes files, sends one Ctrl-C (to the whole group, as a terminal
does) or one SIGTERM, and looks at what is left. The signal comes a random time after the start, or,
in every other trial of a search, after the first line that reports a structure. Trials go over both
signals, a cold and a warm kernel cache, one and two workers, and commands with child processes.
Every trial is a line of the file; the same command again goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from marginbn import NaiveBayesClassifier
from marginbn.classifiers.model_file import save_model

FIT = "fit waveform-21 --method max-margin --holdout 0 --json --jobs {jobs} -o m.json --time-limit "

COMMANDS = {
    "fit": FIT + "60 --method max-margin --checkpoint c --certificate p",
    "cv": FIT + "20 --method max-margin-cv --p 0.73",
    "evaluate": "evaluate waveform-21 --method max-margin --folds 4 --time-limit 20 --json "
    "--jobs {jobs}",
    "export": "export model -o x.bif",
}
"""``model`` is a saved classifier that every trial finds in its folder."""

RESULTS = {"fit": {"m.json", "c", "p"}, "cv": {"m.json"}}
"""What must be there once a search has reported a structure."""

FILES = {"model", "m.json", "c", "p", "x.bif"}


@dataclass(frozen=True)
class Cell:
    """Trials of one kind: ``count`` of them for each signal, 200 in all kinds together."""

    command: str
    cache: str
    jobs: int
    count: int
    longest: float
    """Seconds after the start, or after the first structure, within which the signal is sent."""


CELLS = (
    Cell("fit", "warm", 1, 46, 12.0),
    Cell("fit", "warm", 2, 46, 12.0),
    Cell("fit", "cold", 1, 6, 60.0),
    Cell("fit", "cold", 2, 6, 60.0),
    Cell("cv", "warm", 2, 24, 60.0),
    Cell("evaluate", "warm", 2, 24, 20.0),
    Cell("evaluate", "cold", 2, 4, 60.0),
    Cell("export", "warm", 1, 44, 2.0),
)
AFTER_REPORT = 8.0
"""Seconds after the first structure was reported, at most."""

PROMPT, IGNORED = 2.0, 15.0
"""Seconds after a signal: all should have ended, and what has not was not heard at all."""


@dataclass(frozen=True)
class Trial:
    """What was done and what came of it."""

    signal: str
    command: str
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
        """Whether the signal came before the first line of the program: the interpreter itself is
        ended by it, or tells in its own words what it was importing.
        """
        number = getattr(signal, self.signal)
        files = [line for line in self.stderr.splitlines() if line.startswith("  File ")]
        silent = self.code == -number and self.stderr == ""
        return silent or (
            number == signal.SIGINT
            and self.code in (1, -number)
            and bool(files)
            and all(line.startswith('  File "<frozen ') for line in files)
            and "marginbn" not in self.stderr
        )

    @property
    def defects(self) -> list[str]:
        """What must not happen."""
        number = getattr(signal, self.signal)
        found = {
            "ignored": self.seconds > IGNORED,
            "traceback": any(word in self.stderr for word in ("Traceback", "Exception ignored"))
            and not self.is_unborn,
            "stray process": self.stray_processes > 0,
            "stray file": bool(self.stray_files),
            "lost": self.searched
            and not (self.code in (0, 3) and RESULTS.get(self.command, set()) <= {*self.wrote}),
            "exit code": self.code not in (0, 3, 128 + number) and not self.is_unborn,
        }
        return [name for name, is_there in found.items() if is_there]


def attempt(name: str, cell: Cell, delay: float, *, after_report: bool = False) -> Trial:
    """One trial; the delay begins at the start, or when a structure is reported."""
    with tempfile.TemporaryDirectory() as folder:
        here, temporary = Path(folder, "here"), Path(folder, "tmp")
        here.mkdir()
        temporary.mkdir()
        _save_model(here / "model")
        environment = {**os.environ, "TMPDIR": str(temporary)}
        if cell.cache == "cold":
            environment["MARGINBN_CACHE"] = str(Path(folder, "cache"))
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "marginbn",
                *COMMANDS[cell.command].format(jobs=cell.jobs).split(),
            ],
            cwd=here,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begin = time.perf_counter()
        lines, reported = _follow(process)
        if after_report:
            reported.wait()
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
            command=cell.command,
            cache=cell.cache,
            jobs=cell.jobs,
            delay=sent - begin,
            seconds=taken,
            code=process.returncode,
            searched=searched,
            wrote=sorted({p.name for p in here.iterdir()} & FILES) + ["stdout"] * bool(stdout),
            stray_processes=_end_session(process.pid),
            stray_files=_strays(here, temporary, Path(folder, "cache"))
            + _shared_memory(process.pid),
            stderr="".join(lines)[-3000:],
        )


@cache
def _model() -> bytes:
    """A saved classifier."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.json")
        save_model(NaiveBayesClassifier().fit([["a"], ["b"], ["a"]], ["x", "y", "y"]), path)
        return path.read_bytes()


def _save_model(path: Path) -> None:
    path.write_bytes(_model())


def _shared_memory(leader: int) -> list[str]:
    """What parallel workers keep outside of the folder for temporary files; named by process."""
    return sorted(p.name for p in Path("/dev/shm").glob(f"*{leader}*"))


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
            f"during search, {sum(t.is_unborn for t in own)} before the program "
            f"began, seconds to end {median:.2f} (median) {worst:.2f} (worst), {slow} over "
            f"{PROMPT:g} s"
        )
    return "\n".join(lines)


def missing(done: list[Trial], share: float) -> Iterator[tuple[str, Cell, int]]:
    """Signal, cell and number of the trials that are still to be done, all cells in turn."""
    counts = Counter((t.signal, t.command, t.cache, t.jobs) for t in done)
    for turn in range(max(cell.count for cell in CELLS)):
        for name, cell in product(("SIGINT", "SIGTERM"), CELLS):
            already = counts[name, cell.command, cell.cache, cell.jobs]
            if already <= turn < math.ceil(share * cell.count):
                yield name, cell, turn


def main() -> None:
    """Do the trials that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--share", type=float, default=1.0, help="part of the 400 trials to do")
    parser.add_argument("--signal", choices=("SIGINT", "SIGTERM"), help="trials with this one only")
    parser.add_argument("--cache", choices=("warm", "cold"), help="trials with this one only")
    options = parser.parse_args()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # ignored in the background, and inherited so
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    for name, cell, turn in missing(read_trials(options.results), options.share):
        if options.signal not in (None, name) or options.cache not in (None, cell.cache):
            continue
        rng = np.random.default_rng([turn, CELLS.index(cell), name == "SIGINT"])
        after_report = cell.command == "fit" and turn % 2 == 1  # cv may take minutes before
        longest = AFTER_REPORT if after_report else cell.longest
        trial = attempt(name, cell, float(rng.uniform(0, longest)), after_report=after_report)
        with options.results.open("a") as file:
            file.write(json.dumps(asdict(trial)) + "\n")
        sys.stderr.write(
            f"{name} {cell.command} {cell.cache} {cell.jobs}: after {trial.delay:.2f} s, ended in "
            f"{trial.seconds:.2f} s, code {trial.code} {trial.defects or ''}\n"
        )
    sys.stdout.write(f"{describe(read_trials(options.results))}\n")


if __name__ == "__main__":
    main()
