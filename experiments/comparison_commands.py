"""Commands of the accuracy comparison and of the comparison with missing features.

python -m experiments accuracy --data FOLDER [--methods NAME ...] [--sets NAME ...] [--seed N]
python -m experiments accuracy-table RECORDS [RECORDS ...] [--of METHOD]
python -m experiments missing-features --data FOLDER
python -m experiments missing-table RECORDS [RECORDS ...] [--of METHOD]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import accuracy, accuracy_table, missing_features
from experiments.contenders import CONTENDERS
from experiments.journal import read_journals
from experiments.protocol import HERE, wanted_specs
from marginbn.exceptions import InputError

RESULTS = HERE / "results" / "accuracy"


def add_commands(commands: Any) -> None:
    """Put the commands beside those of the paper's experiments."""
    parser = commands.add_parser(
        "accuracy", help="accuracy and log loss of networks and today's classifiers"
    )
    _add_running(parser, "accuracy.jsonl", tuple(CONTENDERS), None)
    parser.set_defaults(command=_run, compare=accuracy.compare_accuracy)
    parser = commands.add_parser("accuracy-table", help="the accuracy comparison as Markdown")
    _add_reading(parser)
    parser.set_defaults(command=_render, render=accuracy_table.render)
    parser = commands.add_parser(
        "missing-features", help="the same with test features removed at random"
    )
    _add_running(parser, "missing.jsonl", missing_features.METHODS, missing_features.SETS)
    parser.set_defaults(command=_run, compare=missing_features.compare_missing)
    parser = commands.add_parser("missing-table", help="that comparison as Markdown")
    _add_reading(parser)
    parser.set_defaults(command=_render, render=missing_features.render)


def _add_running(
    parser: argparse.ArgumentParser, journal: str, methods: Sequence[str], sets: Any
) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument(
        "--sets", nargs="+", metavar="NAME", default=sets, help="only these data sets"
    )
    parser.add_argument(
        "--methods", nargs="+", choices=CONTENDERS, default=methods, help="only these methods"
    )
    parser.add_argument(
        "--records", type=Path, default=RESULTS / journal, help="JSON Lines file to go on with"
    )
    parser.add_argument("--seed", type=int, default=accuracy.SEED, help="of all splits")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("records", type=Path, nargs="+", help="JSON Lines files")
    parser.add_argument(
        "--methods", nargs="+", choices=CONTENDERS, help="only these, in this order (default: all)"
    )
    parser.add_argument(
        "--of", choices=CONTENDERS, metavar="METHOD", help="whose wins are counted (default: first)"
    )


def _run(options: argparse.Namespace) -> int:
    specs, comparison = wanted_specs(options.sets), options.compare(options.seed)
    units = accuracy.plan(specs, options.methods, comparison.settings)
    failed = accuracy.run(units, specs, options.data, options.records, comparison)
    return 1 if failed else 0


def _render(options: argparse.Namespace) -> int:
    records = read_journals(options.records)
    found = {unit.method for unit in records}
    methods = options.methods or [name for name in CONTENDERS if name in found]
    if not methods:
        raise InputError(f"RECORDS: no record in {', '.join(map(str, options.records))}")
    sys.stdout.write(options.render(records, methods, options.of or methods[0]))
    return 0
