"""Fits of random tables, each checked end to end and with six tamperings: what is accepted.

``python -m benchmarks.end_to_end [--fits 40]`` writes tables with numbers, categories, missing
values, weights of classes and merged categories, fits counted and trained classifiers in turn, and
asks both checkers about model, table and certificate. Then one thing at a time is changed: the
coding, a class label, a counted entry, a trained entry, a row, a weight. The last line counts
honest fits that are refused and tamperings that are accepted; both should be 0.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import math
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from marginbn.cli import app
from marginbn.proof import exact

Record = dict[str, Any]


def write_table(path: Path, seed: int) -> None:
    """Rows of all kinds; every fourth table has many categories."""
    rng = np.random.default_rng(seed)
    n_rows, n_classes = int(rng.integers(120, 260)), int(rng.integers(2, 4))
    y = rng.integers(0, n_classes, n_rows)
    near = np.where(rng.random(n_rows) < 0.2, rng.integers(0, 3, n_rows), y)
    number = np.round(1.5 * y + rng.normal(0, 1, n_rows), int(rng.integers(0, 3)))
    many = rng.integers(0, 60 if seed % 4 == 0 else 5, n_rows)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["colour", "size", "code", "many", "label"])
        for i in range(n_rows):
            colour = "?" if rng.random() < 0.1 else ("red", "blue", "green")[near[i] % 3]
            size = "" if rng.random() < 0.02 * (seed % 3) else number[i]
            writer.writerow([colour, size, near[i], f"m{many[i]}", f"c{y[i]}"])


def change_coding(model: Record) -> None:
    """Reverse categories."""
    column = next(c for c in model["coding"] if len(c["categories"]) > 1)
    column["categories"].reverse()


def change_label(model: Record) -> None:
    """Rename a class."""
    model["classes"]["labels"][-1] = "c9"


def change_counted(model: Record) -> None:
    """Another probability of the first two states of the first table."""
    table = model["network"]["log_tables"][0]
    both = math.exp(table[0]) + math.exp(table[1])
    table[0], table[1] = math.log(0.7 * both), math.log(0.3 * both)


def change_trained(model: Record) -> None:
    """Another parameter of the trained tables, by a hundredth of the largest."""
    row = max(model["class_model"]["parameters"], key=lambda own: max(map(abs, own)))
    place = max(range(len(row)), key=lambda k: abs(row[k]))
    row[place] *= 1.01


def change_weight(model: Record) -> None:
    """Another weight of the first class."""
    label = model["classes"]["labels"][0]
    model["params"]["class_weight"] = {"dict": [[label, 1.5]]}


MODELS: dict[str, Callable[[Record], None]] = {
    "coding": change_coding,
    "label": change_label,
    "counted entry": change_counted,
    "trained entry": change_trained,
    "weight": change_weight,
}


def verdicts(folder: Path, model: Path, table: Path, *, is_trained: bool) -> tuple[bool, ...]:
    """Which checkers accept; the second one leaves trained tables to the first."""
    options = ["--model", str(model), "--data", str(table)]
    first = CliRunner().invoke(app, ["verify", str(folder / "proof"), *options]).exit_code == 0
    if is_trained:
        return (first,)
    with contextlib.redirect_stdout(io.StringIO()):
        return first, exact.main([str(folder / "proof"), *options]) == 0


def judge(seed: int, folder: Path) -> Counter[str]:
    """One fit and its tamperings."""
    table, model, other = folder / "t.csv", folder / "model.json", folder / "other.json"
    write_table(table, seed)
    is_trained = seed % 2 == 1
    arguments = ["fit", str(table), "-t", "label", "--holdout", "0", "-q", "-o", str(model)]
    arguments += ["--method", "bn" if is_trained else "max-margin"]
    arguments += ["--certificate", str(folder / "proof")]
    arguments += ["--class-weight", "balanced"] if seed % 5 == 0 else []
    fitted = CliRunner().invoke(app, arguments)
    assert fitted.exit_code == 0, fitted.output
    found = Counter(fits=1)
    honest = verdicts(folder, model, table, is_trained=is_trained)
    found["honest refused"] += not all(honest)
    for name, change in MODELS.items():
        if name == "trained entry" and not is_trained:
            continue
        record = json.loads(model.read_text())
        change(record)
        other.write_text(json.dumps(record))
        found["tamperings"] += 1
        found[f"accepted: {name}"] += any(verdicts(folder, other, table, is_trained=is_trained))
    table.write_text(table.read_text() + "red,0.5,1,m1,c0\n")
    found["tamperings"] += 1
    found["accepted: row"] += any(verdicts(folder, model, table, is_trained=is_trained))
    return found


def main() -> None:
    """Judge so many fits and print what was found."""
    parser = argparse.ArgumentParser(description="Fits checked end to end, and tampered with.")
    parser.add_argument("--fits", type=int, default=40)
    total: Counter[str] = Counter()
    for seed in range(parser.parse_args().fits):
        with tempfile.TemporaryDirectory() as folder:
            total += judge(seed, Path(folder))
    accepted = {name: n for name, n in total.items() if name.startswith("accepted")}
    print(
        f"{total['fits']} fits: {total['honest refused']} refused; {total['tamperings']} "
        f"tamperings: {sum(accepted.values())} accepted {accepted or ''}"
    )


if __name__ == "__main__":
    main()
