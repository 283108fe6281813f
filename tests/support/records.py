"""Long runs that may end at any time: a file with one line for every seed that is done."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def judge_seeds(
    judge: Callable[[int], Record], seeds: range, path: Path, records: list[Record]
) -> list[Record]:
    """The records so far and those of the seeds that are missing, each written when it is done."""
    done = {record["seed"] for record in records}
    with open(path, "a", encoding="utf-8") as stream:
        for seed in seeds:
            if seed not in done:
                records.append(judge(seed))
                stream.write(json.dumps(records[-1]) + "\n")
                stream.flush()
    return records


def read_records(path: Path) -> list[Record]:
    """What is done; a last line that was cut off is not."""
    if not path.exists():
        return []
    whole, _, rest = path.read_text(encoding="utf-8").rpartition("\n")
    if rest:
        path.write_text(whole + "\n" * bool(whole), encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def main(
    about: str,
    count: int,
    judge: Callable[[int], Record],
    faults: Callable[[Record], list[str]],
    summary: Callable[[list[Record]], str],
) -> None:
    """A program: judge the seeds that are missing in a file, print all faults and a summary."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("records", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=count)
    options = parser.parse_args()
    seeds = range(options.first, options.last)
    records = judge_seeds(judge, seeds, options.records, read_records(options.records))
    for record in records:
        for fault in faults(record):
            print(f"seed {record['seed']}: {fault}")  # noqa: T201
    print(summary(records))  # noqa: T201
