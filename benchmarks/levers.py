"""What each lever of the searches buys: the same problems with the lever switched off.

A lever is switched off in a copy of the package, by changes to its text, so that the package itself
has no switches. The copy is compiled once per lever and solves each problem of the lever's sets in
a process of its own. Its clock is processor time: limits do not depend on what else the machine
does. Ratios compare with the unchanged package, which solves the same problems right before.

========  =================================================================  ===================
set       problems                                                           measured
========  =================================================================  ===================
``A``     margins: eleven proofs of 0.2 to 11 s                              seconds to the proof
``B``     margins: vehicle, waveform, satimage, spambase, letter             gap after 8 s
``G``     six score files of general networks, solved by branch and cut      seconds to the proof
========  =================================================================  ===================
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.origin import describe_origin

import marginbn

ROOT = Path(__file__).parents[1]
PACKAGE = Path(marginbn.__file__).parent

PROOFS = [
    "german:sm:0.9:2",
    "vehicle:sbm:0.9:2",
    "abalone:sm:0.9:2",
    "adult:sm:0.9:2",
    "vehicle:sm:0.999:2",
    "glass:sm:0.6:2",
    "cleve:sm:0.6:2",
    "crx:sm:0.6:2",
    "lymphography:sm:0.6:2",
    "soybean-large:sbm:0.9:2",
    "segment:sbm:0.9:2",
]
GAPS = [f"{name}:sm:0.9:2" for name in ("vehicle", "waveform-21", "satimage", "spambase", "letter")]
NETWORKS = [
    "insurance_2000_1.BDeu",
    "alarm1000.BDeu.3",
    "hailfinder500.BDeu.3",
    "autos.BIC.6",
    "soybean.BIC",
    "carpo100.BDeu.3",
]
SETS = {"A": PROOFS, "B": GAPS, "G": NETWORKS}
LIMITS = {"A": 30.0, "B": 8.0, "G": 60.0}
"""Processor seconds of one search."""

REHEARSAL = 1.0
"""Seconds of a search that loads or compiles what it calls, before the one that is measured."""


@dataclass(frozen=True)
class Patch:
    """A text that a file of the package, or the files of a folder, contain once, and what takes its
    place.
    """

    where: str
    text: str
    replacement: str

    def apply(self, package: Path) -> Path:
        """Change a copy of the package; returns the file.

        Raises
        ------
        ValueError
            If the text is not there exactly once.
        """
        place = package / self.where
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        found = [(path, path.read_text(encoding="utf-8")) for path in files]
        count = sum(content.count(self.text) for _, content in found)
        if count != 1:
            raise ValueError(f"{self.where} has {count} times {self.text!r}")
        path, content = next(pair for pair in found if self.text in pair[1])
        path.write_text(content.replace(self.text, self.replacement), encoding="utf-8")
        return path


@dataclass(frozen=True)
class Lever:
    """Something that makes searches faster, and how to switch it off."""

    name: str
    sets: str
    patches: tuple[Patch, ...]


BOUND = "solvers/branch_bound"
CUT = "solvers/branch_cut"

LEVERS = (
    Lever("none", "ABG", ()),
    Lever(
        "borrowed arguments",
        "A",
        (
            Patch(
                "solvers/compile.py",
                "if not isinstance(inst.value, ir.Arg) or",
                "if True or not isinstance(inst.value, ir.Arg) or",
            ),
        ),
    ),
    Lever(
        "Newton balance",
        "A",
        (Patch(BOUND, "if not newton_step(", "if True or not newton_step("),),
    ),
    Lever(
        "pseudo-costs and strong branching",
        "A",
        (
            Patch(BOUND, "trials=4,", "trials=0,"),
            Patch(
                BOUND,
                "    usual = 1.0\n",
                "    return 1.0\n    usual = 1.0\n",
            ),
        ),
    ),
    Lever(
        "strong branching",
        "A",
        (Patch(BOUND, "trials=4,", "trials=0,"),),
    ),
    Lever(
        "reduced-cost fixing of arcs and class sets",
        "A",
        (
            Patch(
                BOUND,
                "possible, removed = fix_box(inst, work.box, b.state.constant, b.best_g, cutoff, "
                "work.oracle)",
                "possible, removed = True, -np.inf",
            ),
        ),
    ),
    Lever(
        "branching on edges",
        "A",
        (
            Patch(
                BOUND,
                "if box.allowed[i, j] and box.allowed[j, i] and not box.edges[i, j]:",
                "if False and not box.edges[i, j]:",
            ),
        ),
    ),
    Lever(
        "repair of vertices",
        "A",
        (
            Patch(
                BOUND,
                "if is_inside[k] or move_into(inst, box, eta, b.vertices[k], seed):",
                "if is_inside[k]:",
            ),
        ),
    ),
    Lever(
        "rows that matter",
        "A",
        (
            Patch(
                BOUND,
                "        bounding = self._bounding.instance\n",
                "        bounding = self.full\n",
            ),
        ),
    ),
    Lever(
        "stop rule by gains",
        "A",
        (Patch(BOUND, "worth=0.7,", "worth=1e300,"),),
    ),
    Lever(
        "small changes of dual weights left out",
        "A",
        (Patch(BOUND, "stale=0.01,", "stale=0.0,"),),
    ),
    Lever(
        "groups of rows",
        "A",
        (Patch("solvers/memory.py", "LONG, LONG_FROM = 40, 32", "LONG, LONG_FROM = 10**9, 32"),),
    ),
    Lever(
        "rows near a node",
        "B",
        (Patch(BOUND, "many_rows=3000,", "many_rows=10**9,"),),
    ),
    Lever(
        "splits compared on some of the rows",
        "B",
        (Patch(BOUND, "self.full, thinned(bounding))", "self.full, bounding)"),),
    ),
    Lever(
        "bound of the root before the local search",
        "A",
        (Patch(BOUND, "            self._bound_early(vertex)\n", "            pass\n"),),
    ),
    Lever(
        "local search between batches",
        "B",
        (
            Patch(
                BOUND,
                "    def improve(self, improved: bool) -> None:\n",
                "    def improve(self, improved: bool) -> None:\n        return\n\n"
                "    def _never(self, improved: bool) -> None:\n",
            ),
        ),
    ),
    Lever(
        "facets",
        "G",
        (
            Patch(
                CUT,
                "(ClusterSeparator, PackingSeparator, FacetSeparator)",
                "(ClusterSeparator, PackingSeparator)",
            ),
        ),
    ),
    Lever(
        "packings",
        "G",
        (
            Patch(
                CUT,
                "(ClusterSeparator, PackingSeparator, FacetSeparator)",
                "(ClusterSeparator, FacetSeparator)",
            ),
        ),
    ),
    Lever(
        "exhaustive separation",
        "G",
        (Patch(CUT, "if effort.exact and not numbers and", "if False and"),),
    ),
    Lever(
        "search over orders",
        "G",
        (
            Patch(
                CUT,
                "self._orders = None if lists is None else ",
                "self._orders: OrderSearch | None = None\n        _ = None if lists is None else ",
            ),
        ),
    ),
    Lever(
        "dual ascent",
        "G",
        (
            Patch(
                CUT,
                "        if lists is None:\n            return math.inf, []\n",
                "        return math.inf, []\n",
            ),
        ),
    ),
    Lever(
        "reduced-cost fixing of candidates",
        "G",
        (
            Patch(
                CUT,
                "            self.fix(relaxed.prices, allowed)\n",
                "",
            ),
        ),
    ),
    Lever(
        "strong branching on programmes",
        "G",
        (
            Patch(
                CUT,
                "TRIALS, TRIALS_AT_ROOT = 3, 16\n",
                "TRIALS, TRIALS_AT_ROOT = 0, 0\n",
            ),
        ),
    ),
    Lever(
        "depth first while it is nearly as good",
        "G",
        (Patch(CUT, "PLUNGE = 0.3\n", "PLUNGE = -1.0\n"),),
    ),
)

PROGRAM = """
import json, sys, time
time.perf_counter = time.process_time
import numpy as np
from marginbn import load_scores, solve_structure
from benchmarks.instances import Instance
from pathlib import Path
kind, name, folder, limit, rehearsal = sys.argv[1:]
def make():
    if kind == "G":
        return load_scores(next((Path(folder) / "scores").glob(f"{name}.jkl*")))
    return Instance.parse(name).problem(Path(folder))
solver = "branch_cut" if kind == "G" else "branch_bound"
solve_structure(make(), solver, time_limit=float(rehearsal))
problem = make()
start = time.process_time()
result = solve_structure(problem, solver, time_limit=float(limit))
print(json.dumps({
    "seconds": time.process_time() - start,
    "status": str(result.status),
    "objective": result.objective,
    "bound": result.bound,
    "gap": result.gap,
    "nodes": result.nodes,
}))
"""


def keys() -> list[str]:
    """All units: a problem is solved as it is, then with one lever off after the other."""
    return [
        f"{kind} {problem} without {lever.name}" if lever.patches else f"{kind} {problem} as it is"
        for kind, problems in SETS.items()
        for problem in problems
        for lever in LEVERS
        if kind in lever.sets
    ]


def patched(lever: Lever, folder: Path) -> None:
    """A copy of the package in a folder, with the lever off."""
    shutil.copytree(PACKAGE, folder / "marginbn", ignore=shutil.ignore_patterns("__pycache__"))
    for patch in lever.patches:
        patch.apply(folder / "marginbn")


def measure(key: str, data: Path, instances: Path) -> dict[str, Any]:
    """The record of one unit; ``data`` has the data sets, ``instances`` the score files."""
    unit, _, name = key.partition(" without ")
    kind, problem = unit.removesuffix(" as it is").split(" ", 1)
    lever = next(lever for lever in LEVERS if lever.name == (name or "none"))
    with tempfile.TemporaryDirectory() as folder:
        patched(lever, Path(folder))
        paths = [folder, str(ROOT)]
        answer = subprocess.run(
            [
                *(sys.executable, "-W", "ignore", "-c", PROGRAM, kind, problem),
                *(str(instances if kind == "G" else data), str(LIMITS[kind]), str(REHEARSAL)),
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
        )
    if answer.returncode:
        raise RuntimeError(answer.stderr.strip().splitlines()[-1])
    about = {"key": key, "set": kind, "problem": problem, "lever": lever.name}
    result = json.loads(answer.stdout.splitlines()[-1])
    return {**about, "limit": LIMITS[kind], **result, "origin": describe_origin()}


def table(records: Iterable[dict[str, Any]]) -> str:
    """Per lever and set the geometric mean and the largest of how many times longer (or wider the
    gap) without it, and the proofs that are lost.
    """
    done = [record for record in records if record["status"] != "error"]
    base = {(r["set"], r["problem"]): r for r in done if r["lever"] == "none"}
    pairs: dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, Any]]]] = defaultdict(list)
    for record in done:
        if record["lever"] != "none" and (record["set"], record["problem"]) in base:
            first = base[record["set"], record["problem"]]
            pairs[record["lever"], record["set"]].append((first, record))
    lines = [f"{'lever':40} set  problems   mean  largest  proofs lost"]
    for (lever, kind), found in pairs.items():
        what = "gap" if kind == "B" else "seconds"
        proved = [
            (a, b) for a, b in found if kind == "B" or a["status"] == b["status"] == "optimal"
        ]
        ratios = [b[what] / a[what] for a, b in proved if a[what] > 0]
        lost = len(found) - len(proved)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
        largest = max(ratios, default=math.nan)
        lines.append(f"{lever:40} {kind:4} {len(found):8} {mean:6.2f} {largest:8.2f} {lost:12}")
    return "\n".join(lines)
