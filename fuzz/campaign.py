"""Fuzzing for hours in slices: one process after the other, everything on disk, ready to resume.

The working folder holds, per target, a corpus that grows from slice to slice and the inputs that
were findings, and one log with a line per slice: target, processor seconds, runs, findings. The
processor time is what the system says the process has used, not the time on the clock.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fuzz.seeds import PROJECT
from fuzz.targets import TARGETS, Target

MAX_LENGTH = 6000
"""Longest input; longer ones are slow and reach nothing new."""

_RUNS = re.compile(r"stat::number_of_executed_units:\s+(\d+)|#(\d+)\s+DONE")


@dataclass(frozen=True)
class Slice:
    """One process of fuzzing and how it ended."""

    target: str
    cpu_seconds: float
    wall_seconds: float
    runs: int
    findings: int
    ended: str


def run_campaign(names: Sequence[str], seconds: float, slice_seconds: int, work: Path) -> None:
    """Give every target slices in turn until this many processor seconds are used."""
    used = 0.0
    while used < seconds:
        for name in names:
            if used >= seconds:
                return
            done = run_slice(TARGETS[name], slice_seconds, work)
            used += max(done.cpu_seconds, 1.0)
            print(
                f"{name}: {done.runs} runs, {done.cpu_seconds:.0f} s of processor time, "
                f"{done.findings} findings",
                flush=True,
            )


def run_slice(target: Target, seconds: int, work: Path) -> Slice:
    """One process; its line in the log is written when it has ended."""
    corpus, findings = work / "corpus" / target.name, work / "findings" / target.name
    _prepare(target, corpus, findings, work)
    before = set(findings.iterdir())
    command = [
        sys.executable, "-m", "fuzz.worker", target.name, str(corpus),
        f"-max_total_time={seconds}", f"-max_len={MAX_LENGTH}", f"-artifact_prefix={findings}/",
        "-timeout=120", "-rss_limit_mb=3000", "-print_final_stats=1", "-verbosity=1",
    ]  # fmt: skip
    if target.tokens:
        command.append(f"-dict={work / 'tokens' / target.name}")
    start = time.monotonic()
    log = work / "logs" / f"{target.name}.log"
    with open(log, "w", encoding="utf-8", errors="replace") as stream:
        process = subprocess.Popen(command, cwd=PROJECT, stdout=stream, stderr=stream)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    new = len(set(findings.iterdir()) - before)
    if new or process.returncode:
        _keep_log(log)
    done = Slice(
        target.name,
        usage.ru_utime + usage.ru_stime,
        time.monotonic() - start,
        _count_runs(log),
        new,
        str(process.returncode),
    )
    with open(work / "log.jsonl", "a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(done)) + "\n")
    return done


def read_log(work: Path) -> Iterator[Slice]:
    """Every slice so far."""
    path = work / "log.jsonl"
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield Slice(**json.loads(line))


def summary(work: Path) -> str:
    """Processor time, runs and findings by target, and their totals."""
    cpu: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for done in read_log(work):
        cpu[done.target] += done.cpu_seconds  # type: ignore[assignment]
        runs[done.target] += done.runs
    lines = [f"{'target':<12}{'CPU s':>9}{'runs':>12}{'inputs':>8}{'findings':>10}"]
    for name in sorted(cpu):
        inputs = len(list((work / "corpus" / name).glob("*")))
        findings = len(list((work / "findings" / name).glob("*")))
        lines.append(f"{name:<12}{cpu[name]:>9.0f}{runs[name]:>12}{inputs:>8}{findings:>10}")
    lines.append(f"{'all':<12}{sum(cpu.values()):>9.0f}{sum(runs.values()):>12}")
    return "\n".join(lines)


def _prepare(target: Target, corpus: Path, findings: Path, work: Path) -> None:
    for folder in (corpus, findings, work / "logs", work / "tokens"):
        folder.mkdir(parents=True, exist_ok=True)
    lines = [f'"{_escape(token)}"\n' for token in target.tokens]
    (work / "tokens" / target.name).write_text("".join(lines), encoding="ascii")


def _escape(token: str) -> str:
    """A token in the notation of libFuzzer's dictionaries."""
    plain = set(range(32, 127)) - {ord('"'), ord("\\")}
    return "".join(chr(b) if b in plain else f"\\x{b:02x}" for b in token.encode("latin-1"))


def _count_runs(log: Path) -> int:
    found = _RUNS.findall(log.read_text(encoding="utf-8", errors="replace"))
    return max((int(a or b) for a, b in found), default=0)


def _keep_log(log: Path) -> None:
    number = len(list(log.parent.glob(f"{log.stem}-*.log")))
    os.replace(log, log.with_name(f"{log.stem}-{number}.log"))
    log.write_bytes(log.with_name(f"{log.stem}-{number}.log").read_bytes())
