"""The mutation tests themselves: what is planted, who notices, what is remembered."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from mutation.campaign import PROJECT, Record, digest, judging_files, latest, read_log, source_of
from mutation.judges import JUDGES, Judge
from mutation.mutants import make_mutants

SCORES = JUDGES["problem.scores"]


def changes(source: str) -> list[str]:
    """What is planted in a source, in order."""
    return [mutant.change for mutant in make_mutants(source, "toy.py")]


def test_the_mutants_of_a_function_by_hand() -> None:
    """Comparison, both answers of the condition, numbers, signs; not its texts and types."""
    source = '''
def shrink(a: int = 5, b: "list[1]" = None) -> int:
    """Not 1."""
    if a < 0:
        raise ValueError(f"{a + 1}")
    return -max(a, b)
'''
    assert changes(source) == [
        "5 -> 6",
        "5 -> 4",
        "if a < 0 -> if True",
        "if a < 0 -> if False",
        "a < 0 -> a <= 0",
        "a < 0 -> a >= 0",
        "0 -> 1",
        "0 -> -1",
        "-max(a, b) -> max(a, b)",
        "max -> min",
    ]


@pytest.mark.parametrize(
    ("source", "planted"),
    [
        ("a + b", ["a + b -> a - b"]),
        ("a and not b", ["a and (not b) -> a or not b", "not b -> b"]),
        ("a = x or True", ["x or True -> x and True", "True -> False"]),
        ("a //= b", ["a //= b -> a *= b"]),
        ("f(a)", ["f(a) -> pass"]),
        ("a = f(a)", []),
        ("a = 1e300", ["1e+300 -> 2e+300", "1e+300 -> 5e+299"]),
        ("zip(a, b, strict=True)", ["zip(a, b, strict=True) -> pass"]),
        ("for a in b: break", ["break -> continue"]),
        ("if TYPE_CHECKING: f(1)", []),
        ("@f(1)\ndef g(): pass", []),
        ("math.floor(a)", ["math.floor(a) -> pass", "math.floor -> math.ceil"]),
        ("a in b", ["a in b -> a not in b"]),
        ("a << b", ["a << b -> a >> b"]),
    ],
)
def test_what_is_planted(source: str, planted: list[str]) -> None:
    """Each kind of change, and what is left alone."""
    assert changes(source) == planted


def test_a_mutant_runs_and_the_source_stays() -> None:
    """The code has the one change; the next mutant does not have it any more."""
    values = []
    for mutant in make_mutants("a = 1 + 2", "toy.py"):
        space: dict[str, int] = {}
        exec(mutant.code, space)
        values.append(space["a"])
    assert values == [1 - 2, 2 + 2, 0 + 2, 1 + 3, 1 + 1]


TOY = """
def capped(a, cap=10):
    while a > cap:
        a -= 1
    return max(a, 0)
"""

TOY_TEST = """
import toy
def test_capped():
    assert toy.capped(12) == 10
    assert toy.capped(5) == 5
"""

TRY_THEM = """
import json, sys
from pathlib import Path
from mutation.mutants import make_mutants
from mutation.trial import Replacement, preload, run_trial
preload(["pytest", "hypothesis"])
path, tests, wanted = Path(sys.argv[1]), [sys.argv[2]], sys.argv[3:]
for mutant in make_mutants(path.read_text(), str(path)):
    if mutant.change in wanted:
        found = run_trial(Replacement("toy", path, mutant.code), tests, 1)
        print(json.dumps([mutant.change, found.verdict, found.killer.partition("::")[2]]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="trials are forked processes")
def test_noticed_mutants_are_killed_and_the_others_survive(tmp_path: Path) -> None:
    """A cap that is never reached is a time-out, and nobody tests the lower end."""
    toy, test = tmp_path / "toy.py", tmp_path / "test_toy.py"
    toy.write_text(TOY)
    test.write_text(TOY_TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]")
    wanted = [
        ["10 -> 11", "killed", "test_capped"],
        ["a -= 1 -> a += 1", "timeout", ""],
        ["max -> min", "killed", "test_capped"],
        ["0 -> 1", "survived", ""],
    ]
    command = [sys.executable, "-c", TRY_THEM, str(toy), str(test), *(w[0] for w in wanted)]
    paths = os.pathsep.join([str(PROJECT), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == wanted


# ------------------------------------------------------------------------------------- the log


def record(**fields: object) -> Record:
    """A verdict on a mutant of the smallest module as it is now."""
    now = Record(
        "problem.scores",
        digest([source_of("problem.scores")]),
        "tests",
        "1:0 a -> b",
        "",
        "killed",
        "",
        1.0,
    )
    return replace(now, **fields)  # type: ignore[arg-type]


def test_the_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A line that was cut off is passed over, the newest verdict counts."""
    log = tmp_path / "log.jsonl"
    lines = [json.dumps(asdict(record(verdict=v))) for v in ("survived", "killed")]
    log.write_text("\n".join([*lines, lines[0][:20]]))
    assert [r.verdict for r in read_log(log)] == ["survived", "killed"]
    assert [r.verdict for r in latest(read_log(log), SCORES).values()] == ["killed"]


def test_verdicts_on_another_text_do_not_count() -> None:
    """Neither on another version of the module nor on another module."""
    assert not latest([record(source="old"), record(module="problem")], SCORES)


# ------------------------------------------------------------------------------------- the table


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_every_judge_has_its_tests(judge: Judge) -> None:
    """Module, files and named tests exist; kernels are judged without the compiler."""
    source = source_of(judge.module).read_text(encoding="utf-8")
    compiled = "from marginbn.solvers.compile import" in source or "import numba" in source
    assert judge.compiled == compiled
    functions = {
        node.name
        for path in judging_files(judge)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    named = {test.partition("::")[2] for test in judge.tests} - {""}
    assert named <= functions
