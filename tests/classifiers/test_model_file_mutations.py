"""Model files changed at random: a clear error, or a model that answers."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.end_to_end import write_table
from typer.testing import CliRunner

from marginbn import load_model
from marginbn.cli import app
from marginbn.data.table import as_table, open_file
from marginbn.exceptions import MarginBNError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")
    write_table(path / "t.csv", 4)
    for name, method in (("counted", "max-margin"), ("trained", "bn")):
        usual = ["-t", "label", "--holdout", "0", "-q", "--method", method]
        found = CliRunner().invoke(
            app, ["fit", str(path / "t.csv"), *usual, "-o", str(path / f"{name}.json")]
        )
        assert found.exit_code == 0, found.output
    return path


def other(value: Any, rng: random.Random) -> Any:
    """Another value of the same kind, or of another one."""
    if isinstance(value, bool) or rng.random() < 0.2:
        return rng.choice([None, True, [], {}, "", -1, 0.5, "x"])
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -1, 10**9, 2**70])
    if isinstance(value, float):
        return rng.choice([value * 1.5, -value, 0.0, 1e308, value + 1.0])
    return rng.choice([f"{value}x", "", "inf", "numeric", "categorical", "trained"])


def mutate(record: Any, rng: random.Random) -> None:
    """Change one place: a value, a key, or the length of a list."""
    node = record
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = rng.choice(keys)
        child = node[key]
        if not isinstance(child, dict | list) or not child or rng.random() < 0.1:
            break
        node = child
    turn = rng.random()
    if isinstance(node, list) and turn < 0.25:
        node.pop(key)
    elif isinstance(node, list) and turn < 0.4:
        node.insert(key, child)
    elif isinstance(node, dict) and turn < 0.15:
        del node[key]
    else:
        node[key] = other(child, rng)


def judge(folder: Path, count: int, first: int = 0) -> Counter[str]:
    """How many of the changed files are refused, and how many answer."""
    table = as_table(open_file(folder / "t.csv")).drop("label")
    found: Counter[str] = Counter()
    changed = folder / "changed.json"
    for number in range(first, first + count):
        rng = random.Random(number)
        name = rng.choice(["counted.json", "trained.json"])
        record = json.loads((folder / name).read_text())
        mutate(record, rng)
        changed.write_text(json.dumps(record))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                posterior = load_model(changed).predict_proba(table)
            except MarginBNError:
                found["refused"] += 1
                continue
        assert np.isfinite(posterior).all(), number
        assert np.allclose(posterior.sum(axis=1), 1.0), number
        found["answers"] += 1
    return found


def test_a_hundred_changes(folder: Path) -> None:
    found = judge(folder, 100)
    assert min(found["refused"], found["answers"]) > 5


@pytest.mark.slow
def test_a_thousand_changes(folder: Path) -> None:
    """Never a traceback, never posteriors that are none."""
    assert sum(judge(folder, 1000, first=100).values()) == 1000
