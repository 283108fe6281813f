"""How long the first answer takes in a new process, with and without compiled kernels on the disk.

Every measurement is one new Python process. Compiled kernels are kept in the folder that
MARGINBN_CACHE names; an empty one is given where nothing is to be compiled yet.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
from experiments.origin import describe_origin

TABLE = """
import numpy as np
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 200)
X = np.where(rng.random((200, 8)) < 0.4, y[:, None], rng.integers(0, 4, (200, 8))).astype(str)
"""
TASKS = {
    "python": "pass",
    "import numpy, scikit-learn": "import numpy, sklearn.base",
    "import marginbn": "import marginbn",
    "command line, --help": (
        "import runpy\nsys.argv = ['marginbn', '--help']\n"
        "runpy.run_module('marginbn', run_name='__main__')"
    ),
    "naive Bayes": f"{TABLE}\nfrom marginbn import NaiveBayesClassifier as C\nC().fit(X, y)",
    "soft margin": f"{TABLE}\nfrom marginbn import MaxMarginBNClassifier as C\nC().fit(X, y)",
}
WRAPPED = """
import sys
try:
    exec(sys.argv[1])
except SystemExit:
    pass
try:
    lines = open("/proc/self/status").read().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM")).split()[1]
except (OSError, StopIteration):  # not Linux
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak)
"""
"""Runs a program and prints its peak memory in kilobytes. What getrusage tells on Linux includes
the process that started this one.
"""
COMPILING = ("soft margin",)
REPEATS = 3


def keys() -> list[str]:
    """All measurements; those that compile are done without compiled kernels too."""
    return [*TASKS, *(f"{name}, nothing compiled" for name in COMPILING)]


def measure(key: str) -> dict[str, Any]:
    """The record of one measurement."""
    name = key.removesuffix(", nothing compiled")
    origin = describe_origin()
    if name == key:
        if name in COMPILING:
            run_once(TASKS[name], None)  # so that kernels are there
        laps = [run_once(TASKS[name], None) for _ in range(REPEATS)]
    else:
        with tempfile.TemporaryDirectory() as empty:
            laps = [run_once(TASKS[name], empty)]
    wall, cpu, megabytes = (float(np.median(values)) for values in zip(*laps, strict=True))
    return {
        "key": key,
        "task": key,
        "wall": round(wall, 3),
        "cpu": round(cpu, 3),
        "peak_megabytes": round(megabytes, 1),
        "repeats": len(laps),
        "origin": origin,
    }


def run_once(program: str, cache: str | None) -> tuple[float, float, float]:
    """Clock seconds, processor seconds and peak megabytes of a new process."""
    environment = dict(os.environ)
    if cache is not None:
        environment["MARGINBN_CACHE"] = cache
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WRAPPED, program],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, int(answer.stdout.split()[-1]) / 1024
