"""Fits of random tables, each checked end to end and with six tamperings: what is accepted.

``python -m benchmarks.end_to_end [--fits 40]`` writes tables with numbers, categories, missing
values, weights of classes, merged categories, dates and amounts, fits counted and trained
classifiers in turn, and asks both checkers about model, table and certificate. Then one thing at a
time is changed: the coding, a class label, a counted entry, a trained entry, a row, a weight. Each
fit prints a line with the CPU seconds of either checker. The last line counts honest fits that are
refused and tamperings that are accepted; both should be 0.

``--networks TABLE ...`` learns a network without a class from each table instead and asks both
checkers, with ``--strict`` and the statement "BIC, all networks" about the certificate.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from marginbn.cli import app
from marginbn.proof import exact
from marginbn.proof.certificate import read_certificate

Record = dict[str, Any]


def write_table(path: Path, seed: int) -> None:
    """Rows of all kinds; every fourth table has many categories, every third dates and amounts."""
    rng = np.random.default_rng(seed)
    n_rows, n_classes = int(rng.integers(120, 260)), int(rng.integers(2, 4))
    y = rng.integers(0, n_classes, n_rows)
    near = np.where(rng.random(n_rows) < 0.2, rng.integers(0, 3, n_rows), y)
    number = np.round(1.5 * y + rng.normal(0, 1, n_rows), int(rng.integers(0, 3)))
    many = rng.integers(0, 60 if seed % 4 == 0 else 5, n_rows)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        more = ["day", "price"] if seed % 3 == 0 else []
        writer.writerow(["colour", "size", "code", "many", *more, "label"])
        for i in range(n_rows):
            colour = "?" if rng.random() < 0.1 else ("red", "blue", "green")[near[i] % 3]
            size = "" if rng.random() < 0.02 * (seed % 3) else number[i]
            day = f"{2020 + y[i]}-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}"
            price = f"${1000 + 300 * y[i] + 200 * rng.random():,.2f}"
            own = [day, price] if more else []
            writer.writerow([colour, size, near[i], f"m{many[i]}", *own, f"c{y[i]}"])


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


def verdicts(folder: Path, model: Path, table: Path) -> tuple[list[bool], list[float]]:
    """Which checkers accept, and their CPU seconds."""
    options, begin = ["--model", str(model), "--data", str(table)], time.process_time()
    first = CliRunner().invoke(app, ["verify", str(folder / "proof"), *options]).exit_code == 0
    middle = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        second = exact.main([str(folder / "proof"), *options]) == 0
    return [first, second], [middle - begin, time.process_time() - middle]


METHODS = ("max-margin", "bn", "generative", "bn")


def judge(seed: int, folder: Path) -> Counter[str]:
    """One fit and its tamperings."""
    table, model, other = folder / "t.csv", folder / "model.json", folder / "other.json"
    write_table(table, seed)
    method = METHODS[seed % len(METHODS)]
    arguments = ["fit", str(table), "-t", "label", "--holdout", "0", "-q", "-o", str(model)]
    arguments += ["--method", method]
    arguments += ["--certificate", str(folder / "proof")]
    arguments += ["--class-weight", "balanced"] if seed % 5 == 0 else []
    fitted = CliRunner().invoke(app, arguments)
    assert fitted.exit_code == 0, fitted.output
    found = Counter(fits=1)
    honest, seconds = verdicts(folder, model, table)
    found["honest refused"] += not all(honest)
    print(f"{seed} {method}: {honest}, {seconds[0]:.1f} and {seconds[1]:.1f} CPU s")
    for name, change in MODELS.items():
        if name == "trained entry" and method != "bn":
            continue
        record = json.loads(model.read_text())
        change(record)
        other.write_text(json.dumps(record))
        found["tamperings"] += 1
        found[f"accepted: {name}"] += any(verdicts(folder, other, table)[0])
    lines = table.read_text().splitlines(keepends=True)
    whole = next(line for line in lines[1:] if "?" not in line and ",," not in line)
    table.write_text("".join([*lines, whole]))  # a row that lacks a value may be left out
    found["tamperings"] += 1
    found["accepted: row"] += any(verdicts(folder, model, table)[0])
    return found


def learned(table: Path, folder: Path) -> bool:
    """A network of all columns: whether both checkers accept its certificate, and CPU seconds."""
    proof, model, laps = str(folder / "proof"), str(folder / "model.json"), [time.process_time()]
    arguments = ["learn", str(table), "-q", "-o", model, "--time-limit", "600"]
    fitted = CliRunner().invoke(app, [*arguments, "--certificate", proof])
    assert fitted.exit_code == 0, fitted.output
    laps.append(time.process_time())
    content = read_certificate(proof)
    assert content.candidates.rule is not None
    most = content.candidates.rule.max_parents
    said = {"score": "mdl", "max_parents": most, "class_restricted": False, "class_arcs": "free"}
    said |= {"required": [], "forbidden": []}
    options = [proof, "--model", model, "--data", str(table), "--strict"]
    options += ["--statement", json.dumps(said)]
    first = CliRunner().invoke(app, ["verify", *options])
    laps.append(time.process_time())
    with contextlib.redirect_stdout(io.StringIO()) as second:
        accepted = [first.exit_code == 0, exact.main(options) == 0]
    laps.append(time.process_time())
    text = ", ".join(f"{b - a:.1f}" for a, b in pairwise(laps))
    limit = f"at most {most} of {len(content.data.names) - 1} parents"
    print(f"{table.stem}: {accepted}, {limit}; learn, verify, exact: {text} CPU s", flush=True)
    for good, told in zip(accepted, (first.output, second.getvalue()), strict=True):
        print(told if not good else "", end="")
    return all(accepted)


def main() -> None:
    """Judge so many fits and print what was found."""
    parser = argparse.ArgumentParser(description="Fits checked end to end, and tampered with.")
    parser.add_argument("--fits", type=int, default=40)
    parser.add_argument("--networks", type=Path, nargs="+", default=[])
    asked, total = parser.parse_args(), Counter[str]()
    for table in asked.networks:
        with tempfile.TemporaryDirectory() as folder:
            learned(table, Path(folder))
    for seed in range(0 if asked.networks else asked.fits):
        with tempfile.TemporaryDirectory() as folder:
            total += judge(seed, Path(folder))
    accepted = {name: n for name, n in total.items() if name.startswith("accepted")}
    print(
        f"{total['fits']} fits: {total['honest refused']} refused; {total['tamperings']} "
        f"tamperings: {sum(accepted.values())} accepted {accepted or ''}"
    )


if __name__ == "__main__":
    main()
