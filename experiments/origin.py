"""Where a record comes from: commit, engine, packages, machine and how fast it was just then.

Records of several versions or machines can stand in one folder; the tables then say so.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import time
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import marginbn

PACKAGES = (
    "marginbn", "scikit-learn", "numpy", "scipy", "numba", "lightgbm", "catboost", "interpret-core",
)  # fmt: skip
ENGINE_LAYERS = ("data", "problem", "scoring", "solvers")
"""The sources that decide which structure a search finds, and when."""
CODE = ("src", "experiments")
"""What a commit must hold for it to say how a record was made."""


def describe_origin() -> dict[str, Any]:
    """What every record carries; the speed is measured at each call."""
    return {
        "commit": commit(),
        "engine": engine_version(),
        "versions": versions(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "reference": reference_seconds(),
    }


@lru_cache(maxsize=1)
def commit() -> str | None:
    """Of the repository these experiments stand in; ``+`` if its code was changed since."""
    root = Path(__file__).resolve().parents[1]

    def git(*words: str) -> str:
        answer = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
        return answer.stdout.strip() if answer.returncode == 0 else ""

    try:
        found = git("rev-parse", "--short=12", "HEAD")
        changed = [
            line
            for line in git("status", "--porcelain", "--", *CODE).splitlines()
            if "experiments/results/" not in line
        ]
    except OSError:  # no git here
        return None
    return found + ("+" if changed else "") if found else None


@lru_cache(maxsize=1)
def engine_version() -> str:
    """Fingerprint of the engine's sources."""
    return fingerprint(Path(marginbn.__file__).parent, ENGINE_LAYERS)


def fingerprint(package: Path, layers: Iterable[str]) -> str:
    """Twelve hexadecimal digits of the names and texts of all modules in the layers."""
    sha = hashlib.sha256()
    for layer in layers:
        for path in sorted((package / layer).rglob("*.py")):
            sha.update(path.relative_to(package).as_posix().encode() + b"\0")
            sha.update(path.read_bytes() + b"\0")
    return sha.hexdigest()[:12]


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of Python and of the packages that are installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def reference_seconds() -> dict[str, float]:
    """Seconds of a small fixed piece of work, the best of three: processor time and the clock's.

    Processor time tells how fast the machine is, the clock's beside it how busy.
    """
    laps = [_reference_lap() for _ in range(3)]
    cpu, wall = (min(values) for values in zip(*laps, strict=True))
    return {"cpu": round(cpu, 5), "wall": round(wall, 5)}


def _reference_lap() -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    total = 0
    for i in range(100_000):  # the interpreter
        total += i & 7
    numbers = np.arange(200_000, dtype=np.float64)
    for _ in range(5):  # memory and arithmetic
        numbers = np.sqrt(numbers * 1.5 + 1.0)
    return time.process_time() - cpu, time.perf_counter() - wall


def mixture(origins: Iterable[dict[str, Any]]) -> list[str]:
    """Sentences about where records come from: one, and more where they are mixed."""
    origins = list(origins)
    if not origins:
        return []
    lines = []
    for name, word in (
        ("commit", "commits"),
        ("engine", "engine versions"),
        ("machine", "machines"),
    ):
        found = sorted({str(origin.get(name)) for origin in origins})
        if len(found) > 1:
            counts = (f"{f}: {sum(str(o.get(name)) == f for o in origins)}" for f in found)
            lines.append(f"MIXED: records of {len(found)} {word} ({', '.join(counts)}).")
        else:
            lines.append(f"All {len(origins)} records are of {name} {found[0]}.")
    if any(str(origin.get("commit")).endswith("+") for origin in origins):
        lines.append("A + marks code that was changed after that commit.")
    speeds = sorted(o["reference"]["cpu"] for o in origins if "reference" in o)
    if speeds:
        busy = float(np.median([o["reference"]["wall"] / o["reference"]["cpu"] for o in origins]))
        lines.append(
            f"The reference loop took {1000 * speeds[0]:.1f} to {1000 * speeds[-1]:.1f} ms of "
            f"processor time, in the median {busy:.2f} times as long by the clock."
        )
    return lines
