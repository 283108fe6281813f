"""Run units, one process and one record each; finished records are skipped."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from experiments.fitted import thin
from experiments.origin import describe_origin
from experiments.searches import counted
from experiments.significance import paper_gap

from benchmarks.instances import Instance
from benchmarks.suites import Run
from marginbn import solve_structure
from marginbn.files import write_text

TRACE_POINTS = 200
ONE_SITTING = 600.0
"""Runs with a longer limit keep a checkpoint beside the records until they have ended."""


def measure(run: Run, folder: Path | None, checkpoint: Path | None = None) -> dict[str, Any]:
    """Solve one unit in this process; compilation is paid by a tiny problem before the clock.

    With a checkpoint the seconds of all sittings count, and the memory is that of the last one.
    """
    # Too many features to do without machine code.
    warm_up = Instance("random-30-12-2-0", run.instance.kind, run.instance.p, 2)
    solve_structure(warm_up.problem(None), run.solver, time_limit=5.0)
    origin = describe_origin()
    clock = nullcontext(0.0) if checkpoint is None else counted(checkpoint.with_suffix(".seconds"))
    with clock as before:
        start = time.perf_counter()
        problem = run.instance.problem(folder)
        built = time.perf_counter() - start
        result = solve_structure(
            problem,
            run.solver,
            time_limit=max(run.seconds - before - built, 0.1),
            n_jobs=run.n_jobs,
            checkpoint=checkpoint,
        )
        seconds = before + time.perf_counter() - start
    finite = [t.seconds for t in result.trace if t.bound < float("inf") and t.objective > -1e300]
    return {
        "key": run.key,
        "instance": str(run.instance),
        "solver": run.solver,
        "limit": run.seconds,
        "n_jobs": run.n_jobs,
        "used": result.solver,
        "status": str(result.status),
        "objective": result.objective,
        "bound": result.bound,
        "gap_percent": paper_gap(result.objective, result.bound),
        "seconds": seconds,
        "build_seconds": built,
        "first_answer_seconds": built + min(finite, default=float("nan")),
        "nodes": result.nodes,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "class_parents": list(result.structure.parents[0]),
        "trace": thin([(t.seconds, t.objective, t.bound) for t in result.trace], TRACE_POINTS),
        "origin": origin,
    }


def run_suite(runs: list[Run], folder: Path | None, records: Path) -> None:
    """Run what has no record yet, each unit in a process of its own."""
    commands, checkpoints = {}, {}
    for run in runs:
        words = ["one", str(run.instance), run.solver, str(run.seconds), "--jobs", str(run.n_jobs)]
        if run.seconds > ONE_SITTING:
            name = re.sub(r"[^a-z0-9]+", "-", run.key)
            checkpoints[run.key] = records.parent / "checkpoints" / f"{name}.ckpt"
            checkpoints[run.key].parent.mkdir(parents=True, exist_ok=True)
            words += ["--checkpoint", str(checkpoints[run.key])]
        commands[run.key] = words + (["--data", str(folder)] if folder else [])
    about = {
        run.key: {
            "instance": str(run.instance),
            "solver": run.solver,
            "limit": run.seconds,
            "n_jobs": run.n_jobs,
        }
        for run in runs
    }
    run_commands(commands, records, about)
    for record in read_records(records):
        path = checkpoints.get(record["key"])
        if path is not None and record["status"] != "error":  # run again one day, it begins anew
            for file in path.parent.glob(f"{path.stem}.*"):
                file.unlink()


def run_commands(
    commands: dict[str, list[str]], records: Path, about: dict[str, dict[str, Any]] | None = None
) -> None:
    """Run those commands of this package that have no record yet; each prints its record.

    One that fails leaves a record with its last line, and what `about` says of its key; one that is
    interrupted leaves none.
    """
    done = {record["key"] for record in read_records(records)}
    waiting = [key for key in commands if key not in done]
    records.parent.mkdir(parents=True, exist_ok=True)
    for position, key in enumerate(waiting, 1):
        print(f"[{position}/{len(waiting)}] {key}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "benchmarks", *commands[key]]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode == 0:
            record = json.loads(answer.stdout)
            if record.get("status") == "interrupted":  # not what was asked for; it can go on
                print(f"{key} was interrupted: no record", file=sys.stderr, flush=True)
                continue
        else:
            lines = answer.stderr.strip().splitlines() or ["no message"]
            told = (about or {}).get(key, {})
            record = {"key": key, **told, "status": "error", "error": lines[-1]}
        _append(record, records)


def _append(record: dict[str, Any], records: Path) -> None:
    """Add a line, all or nothing; a last line that a crash cut off stays alone."""
    before = records.read_text() if records.exists() else ""
    if before and not before.endswith("\n"):
        before += "\n"
    write_text(records, f"{before}{json.dumps(record)}\n")


def read_records(records: Path) -> list[dict[str, Any]]:
    """All records of a file; a line cut off by a crash is ignored."""
    found = []
    for line in records.read_text().splitlines() if records.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found
