"""All mutants of some modules, one after the other; every verdict is kept, so this resumes.

The log has one line of JSON per trial. A mutant has its verdict as long as the text of its module
is the same; one that survived is tried again once the text of its tests has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from mutation.judges import JUDGES, Judge
from mutation.mutants import make_mutants
from mutation.trial import Replacement, Verdict, preload, run_trial, wake_compiler

PROJECT = Path(__file__).parents[1]

LEAST_SECONDS, PATIENCE = 10.0, 4.0
"""A trial may take so long, or so many times as long as the tests take without a mutant."""


@dataclass(frozen=True)
class Record:
    """The verdict on one mutant."""

    module: str
    source: str
    tests: str
    place: str
    text: str
    verdict: Verdict
    killer: str
    seconds: float


def source_of(module: str) -> Path:
    """The file of a module of the package."""
    return PROJECT.joinpath("src", "marginbn", *module.split(".")).with_suffix(".py")


def read_log(log: Path) -> Iterator[Record]:
    """Every trial so far; a line that was cut off is passed over."""
    if log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            try:
                yield Record(**json.loads(line))
            except ValueError:
                continue


def latest(records: Iterable[Record], judge: Judge) -> dict[str, Record]:
    """By place, the newest verdict on every mutant of the module as it is now."""
    source = digest([source_of(judge.module)])
    found = [r for r in records if r.module == judge.module and r.source == source]
    return {record.place: record for record in found}


def digest(paths: Iterable[Path]) -> str:
    """Fingerprint of texts."""
    texts = b"\0".join(path.read_bytes() for path in paths)
    return hashlib.sha256(texts).hexdigest()[:16]


def judging_files(judge: Judge) -> list[Path]:
    """The files that the judge's tests are in."""
    names = dict.fromkeys(test.partition("::")[0] for test in judge.tests)
    return [PROJECT / name for name in names]


# ------------------------------------------------------------------------------------- running


def run_campaign(modules: Iterable[str], log: Path) -> None:
    """Judge every module, each in a process of its own."""
    log.parent.mkdir(parents=True, exist_ok=True)
    for module in modules:
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # starts faster
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or pytest compiles the tests every time
        if JUDGES[module].compiled:
            environment["NUMBA_DISABLE_JIT"] = "1"
        command = [sys.executable, "-m", "mutation", "--log", str(log), "judge", module]
        subprocess.run(command, cwd=PROJECT, env=environment, check=True)


def judge_module(judge: Judge, log: Path) -> None:
    """Try all mutants of a module that have no verdict yet."""
    path = source_of(judge.module)
    text = path.read_text(encoding="utf-8")
    source, tests = digest([path]), digest(judging_files(judge))
    known = latest(read_log(log), judge)
    mutants = [
        mutant
        for mutant in make_mutants(text, str(path))
        if not _is_settled(known.get(mutant.place), tests)
    ]
    print(f"{judge.module}: {len(mutants)} mutants to try", flush=True)
    if not mutants:
        return
    os.chdir(PROJECT)
    sys.path[:0] = [str(PROJECT / "src"), str(PROJECT)]
    preload()
    wake_compiler()
    name, lines = f"marginbn.{judge.module}", text.splitlines()
    limit = _time_limit(Replacement(name, path, compile(text, str(path), "exec")), judge)
    for mutant in mutants:
        outcome = run_trial(Replacement(name, path, mutant.code), judge.tests, limit)
        line = lines[mutant.line - 1].strip()
        record = Record(
            judge.module, source, tests, mutant.place, line,
            outcome.verdict, outcome.killer, outcome.seconds,
        )  # fmt: skip
        with open(log, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(record)) + "\n")
        if record.verdict == "survived":
            print(f"  survived {mutant.place}    | {line}", flush=True)


def _is_settled(record: Record | None, tests: str) -> bool:
    return record is not None and (record.verdict != "survived" or record.tests == tests)


def _time_limit(original: Replacement, judge: Judge) -> float:
    """Seconds of processor time, from two runs without a mutant; the first says what to preload."""
    for _ in range(2):
        outcome = run_trial(original, judge.tests, 1000.0)
        if outcome.verdict != "survived":
            raise SystemExit(f"{judge.module}: the tests fail without a mutant: {outcome.killer}")
        preload(outcome.beneath)
        assert original.name not in sys.modules  # or no mutant would ever be imported
    print(f"  the tests take {outcome.seconds:.1f} s", flush=True)
    return max(LEAST_SECONDS, PATIENCE * outcome.seconds)


# ------------------------------------------------------------------------------------- reporting


def summary(log: Path) -> str:
    """One line per module: mutants, killed, timed out, surviving, processor time."""
    records = list(read_log(log))
    lines = [f"{'module':<40}{'mutants':>8}{'killed':>8}{'timeout':>8}{'survive':>8}{'CPU s':>8}"]
    for judge in JUDGES.values():
        found = latest(records, judge).values()
        if not found:
            continue
        count = Counter(record.verdict for record in found)
        seconds = sum(record.seconds for record in found)
        lines.append(
            f"{judge.module:<40}{len(found):>8}{count['killed']:>8}{count['timeout']:>8}"
            f"{count['survived']:>8}{seconds:>8.0f}"
        )
    return "\n".join(lines)


def survivors(log: Path) -> Iterator[Record]:
    """Mutants that no test noticed, module by module, from top to bottom."""
    records = list(read_log(log))
    for judge in JUDGES.values():
        found = [r for r in latest(records, judge).values() if r.verdict == "survived"]
        yield from sorted(found, key=lambda r: [int(n) for n in r.place.split()[0].split(":")])
