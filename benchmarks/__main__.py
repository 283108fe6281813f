"""Command line of the benchmarks.

python -m benchmarks run proofs --data FOLDER
python -m benchmarks run classifiers
python -m benchmarks run general --data FOLDER
python -m benchmarks table benchmarks/results/proofs.jsonl
python -m benchmarks curves benchmarks/results/proofs.jsonl curves.png
python -m benchmarks page
python -m benchmarks run growth
python -m benchmarks run time-limits
python -m benchmarks run memory-limits
python -m benchmarks run long-tables
python -m benchmarks run cluster --data FOLDER
python -m benchmarks run default --data FOLDER
python -m benchmarks run recovery
python -m benchmarks run levers --data FOLDER --scores FOLDER
python -m benchmarks growth benchmarks/results/growth.jsonl growth.png
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import (
    classifiers,
    cluster,
    cold_start,
    curves,
    default_model,
    general,
    growth,
    levers,
    limits,
    long_tables,
    marginals,
    page,
    recovery,
    tables,
)
from benchmarks.instances import Instance
from benchmarks.run import measure, read_records, run_commands, run_suite
from benchmarks.suites import SUITES, Run

TIMINGS: dict[str, Any] = {
    "classifiers": lambda: [timing.key for timing in classifiers.timings()],
    "cold-start": cold_start.keys,
    "default": default_model.keys,
    "general": lambda: [measurement.key for measurement in general.measurements()],
    "levers": levers.keys,
    "marginals": marginals.keys,
    "time-limits": lambda: [shape.key for shape in limits.time_limits()],
    "memory-limits": lambda: [shape.key for shape in limits.memory_limits()],
    "long-tables": long_tables.keys,
    "cluster": cluster.keys,
    "recovery": recovery.keys,
}
"""Suites whose measurements are not runs of the engine on data sets: their keys."""


def main() -> None:
    options = make_parser().parse_args()
    options.command(options)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="run a suite; finished records are skipped")
    run.add_argument("suite", choices=[*SUITES, *TIMINGS, "growth"])
    run.add_argument("--data", type=Path, help="folder with the data sets")
    run.add_argument("--scores", type=Path, help="for levers: folder with scores/NAME.jkl")
    run.add_argument("--records", type=Path, help="default: benchmarks/results/SUITE.jsonl")
    run.add_argument("--only", help="only instances whose name contains this")
    run.set_defaults(command=_run, parser=run)
    one = commands.add_parser("one", help="run one unit and print its record")
    one.add_argument("instance", type=Instance.parse)
    one.add_argument("solver")
    one.add_argument("seconds", type=float)
    one.add_argument("--jobs", type=int, default=1)
    one.add_argument("--data", type=Path)
    one.add_argument("--checkpoint", type=Path, help="go on from here, and keep the search here")
    one.set_defaults(command=_one)
    timing = commands.add_parser("timing", help="make one measurement and print its record")
    timing.add_argument("suite", choices=TIMINGS)
    timing.add_argument("key")
    timing.add_argument("--data", type=Path)
    timing.add_argument("--scores", type=Path)
    timing.set_defaults(command=_timing)
    table = commands.add_parser("table", help="print records and ratios")
    table.add_argument("records", type=Path)
    table.set_defaults(command=_table)
    picture = commands.add_parser("curves", help="draw gap over time")
    picture.add_argument("records", type=Path)
    picture.add_argument("picture", type=Path)
    picture.set_defaults(command=_curves)
    book = commands.add_parser(
        "page", help="write docs/benchmarks.rst and recovery.rst from all records"
    )
    book.add_argument("--results", type=Path, default=page.RESULTS, help="folder of records")
    book.add_argument("--output", type=Path, default=page.PAGE)
    book.set_defaults(command=_page)
    grown = commands.add_parser("growth", help="print how cost grows, and draw it")
    grown.add_argument("records", type=Path)
    grown.add_argument("picture", type=Path, nargs="?")
    grown.set_defaults(command=_growth)
    return parser


def _run(options: argparse.Namespace) -> None:
    records = options.records or page.RESULTS / f"{options.suite}.jsonl"
    if options.suite == "growth":
        _named(options, [shape.key for shape in growth.shapes()])
        growth.run_growth(records, options.only)
        return
    if options.suite in TIMINGS:
        keys = _named(options, TIMINGS[options.suite]())
        data = _instances(options, keys) if options.suite == "general" else []
        if options.suite == "levers":
            if options.data is None or options.scores is None:
                options.parser.error("levers needs --data FOLDER and --scores FOLDER")
            data = ["--data", str(options.data), "--scores", str(options.scores)]
        if options.suite in ("cluster", "default") and options.data is not None:
            data = ["--data", str(options.data)]
        run_commands({key: ["timing", options.suite, key, *data] for key in keys}, records)
        if options.suite == "levers":
            print(levers.table(read_records(records)))
        return
    runs = {run.key: run for run in SUITES[options.suite]()}
    run_suite([runs[key] for key in _named(options, list(runs))], options.data, records)
    _show(records)


def _named(options: argparse.Namespace, keys: list[str]) -> list[str]:
    """The keys that are asked for; the program ends if there are none."""
    found = [key for key in keys if (options.only or "") in key]
    if not found:
        options.parser.error(f"{options.suite} has no instance with {options.only!r} in its name")
    return found


def _instances(options: argparse.Namespace, keys: list[str]) -> list[str]:
    """The words that name the data folder, once it is known to have what is asked for."""
    if options.data is None:
        options.parser.error("general needs --data FOLDER, with score files and tables")
    wanted = [m for m in general.measurements() if m.key in keys]
    if absent := general.absent(wanted, options.data):
        options.parser.error(
            f"{options.data} has no {', '.join(absent)}; --only NAME runs what it has"
        )
    return ["--data", str(options.data)]


def _one(options: argparse.Namespace) -> None:
    unit = Run(options.instance, options.solver, options.seconds, options.jobs)
    print(json.dumps(measure(unit, options.data, options.checkpoint)))


def _timing(options: argparse.Namespace) -> None:
    suite, key, data = options.suite, options.key, options.data
    measures: dict[str, Callable[[], Any]] = {
        "classifiers": lambda: classifiers.measure(_of_key(classifiers.timings(), key)),
        "cold-start": lambda: cold_start.measure(key),
        "default": lambda: default_model.measure(key, data),
        "general": lambda: general.measure(_of_key(general.measurements(), key), data),
        "levers": lambda: levers.measure(key, data, options.scores),
        "marginals": lambda: marginals.measure(key),
        "time-limits": lambda: limits.measure(key),
        "memory-limits": lambda: limits.measure(key),
        "long-tables": lambda: long_tables.measure(key),
        "cluster": lambda: cluster.measure(key, data),
        "recovery": lambda: recovery.measure(key),
    }
    print(json.dumps(measures[suite]()))


def _of_key(measurements: Iterable[Any], key: str) -> Any:
    return next(measurement for measurement in measurements if measurement.key == key)


def _table(options: argparse.Namespace) -> None:
    _show(options.records)


def _known(records: Path) -> list[dict[str, Any]]:
    """The records of a file; the program ends if there are none."""
    found = read_records(records)
    if not found:
        raise SystemExit(f"error: {records} holds no records")
    return found


def _show(records: Path) -> None:
    found = _known(records)
    print(tables.overview(found))
    print(tables.ratios(found))
    print(tables.agreement(found))


def _curves(options: argparse.Namespace) -> None:
    curves.draw(_known(options.records), options.picture)


def _growth(options: argparse.Namespace) -> None:
    _known(options.records)
    measured = growth.read(options.records)
    print(growth.table(measured))
    if options.picture is not None:
        growth.draw(measured, options.picture)


def _page(options: argparse.Namespace) -> None:
    page.write_page(options.results, options.output)
    recovery.write_page(
        options.results / "recovery.jsonl", options.output.with_name("recovery.rst")
    )
    picture = options.output.parent / "_static" / "growth.svg"
    picture.parent.mkdir(exist_ok=True)
    growth.draw(growth.read(options.results / "growth.jsonl"), picture)
    print(options.output)


if __name__ == "__main__":
    main()
