"""Command line of the benchmarks.

python -m benchmarks run proofs --data FOLDER --records proofs.jsonl
python -m benchmarks table proofs.jsonl
python -m benchmarks curves proofs.jsonl curves.png
python -m benchmarks run growth --records growth.jsonl
python -m benchmarks growth growth.jsonl growth.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks import curves, growth, tables
from benchmarks.instances import Instance
from benchmarks.run import measure, read_records, run_suite
from benchmarks.suites import SUITES, Run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a suite; finished records are skipped")
    run.add_argument("suite", choices=[*SUITES, "growth"])
    run.add_argument("--data", type=Path, help="folder with the data sets")
    run.add_argument("--records", type=Path, required=True)
    run.add_argument("--only", help="only instances whose name contains this")
    one = commands.add_parser("one", help="run one unit and print its record")
    one.add_argument("instance", type=Instance.parse)
    one.add_argument("solver")
    one.add_argument("seconds", type=float)
    one.add_argument("--jobs", type=int, default=1)
    one.add_argument("--data", type=Path)
    table = commands.add_parser("table", help="print records and ratios")
    table.add_argument("records", type=Path)
    picture = commands.add_parser("curves", help="draw gap over time")
    picture.add_argument("records", type=Path)
    picture.add_argument("picture", type=Path)
    grown = commands.add_parser("growth", help="print how cost grows, and draw it")
    grown.add_argument("records", type=Path)
    grown.add_argument("picture", type=Path, nargs="?")
    options = parser.parse_args()
    if options.command == "growth":
        measured = growth.read(options.records)
        print(growth.table(measured))
        if options.picture is not None:
            growth.draw(measured, options.picture)
        return
    if options.command == "run" and options.suite == "growth":
        growth.run_growth(options.records, options.only)
        return
    if options.command == "run":
        runs = SUITES[options.suite]()
        wanted = [r for r in runs if options.only is None or options.only in r.key]
        run_suite(wanted, options.data, options.records)
    elif options.command == "one":
        unit = Run(options.instance, options.solver, options.seconds, options.jobs)
        print(json.dumps(measure(unit, options.data)))
        return
    records = read_records(options.records)
    if options.command == "curves":
        curves.draw(records, options.picture)
        return
    print(tables.overview(records))
    print(tables.ratios(records))
    print(tables.agreement(records))


if __name__ == "__main__":
    main()
