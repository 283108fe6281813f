"""Commands of the accuracy comparison and of the comparison with missing features.

python -m experiments accuracy --data FOLDER [--methods NAME ...] [--sets NAME ...] [--seed N]
python -m experiments accuracy-table RECORDS [RECORDS ...] [--of METHOD]
python -m experiments missing-features --data FOLDER
python -m experiments missing-table RECORDS [RECORDS ...] [--of METHOD]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from experiments import accuracy
from experiments.contenders import CONTENDERS
from experiments.protocol import HERE, wanted_specs

RESULTS = HERE / "results" / "accuracy"


def add_commands(commands: Any) -> None:
    """Put the commands beside those of the paper's experiments."""
    parser = commands.add_parser(
        "accuracy", help="accuracy and log loss of networks and today's classifiers"
    )
    _add_running(parser, "accuracy.jsonl", tuple(CONTENDERS))
    parser.set_defaults(command=_accuracy)


def _add_running(parser: argparse.ArgumentParser, journal: str, methods: tuple[str, ...]) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these data sets")
    parser.add_argument(
        "--methods", nargs="+", choices=methods, default=methods, help="only these methods"
    )
    parser.add_argument(
        "--records", type=Path, default=RESULTS / journal, help="JSON Lines file to go on with"
    )
    parser.add_argument("--seed", type=int, default=accuracy.SEED, help="of all splits")


def _accuracy(options: argparse.Namespace) -> int:
    specs, settings = wanted_specs(options.sets), accuracy.make_settings(options.seed)
    units = accuracy.plan(specs, options.methods, settings)
    failed = accuracy.run(
        units, specs, options.data, options.records, settings, accuracy.measure_accuracy
    )
    return 1 if failed else 0
