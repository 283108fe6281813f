"""Command line of the experiments.

python -m experiments run --data FOLDER [--quick] [--jobs N] [--dask ADDRESS]
python -m experiments table1 --data FOLDER
python -m experiments tables
python -m experiments figures
python -m experiments compare RECORDS RECORDS
python -m experiments accuracy --data FOLDER [--methods NAME ...]
python -m experiments accuracy-table RECORDS
python -m experiments missing-features --data FOLDER [--methods NAME ...]
python -m experiments missing-table RECORDS
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from experiments import comparison_commands
from experiments import settings as presets
from experiments.methods import METHODS, TABLE1_METHODS
from experiments.protocol import HERE, TABLE1_SETS, Spec, wanted_specs
from experiments.records import differences, read_records
from experiments.run import plan_table1, plan_units, run
from experiments.settings import Settings
from marginbn.exceptions import MarginBNError

RESULTS = HERE / "results"


def main(arguments: list[str] | None = None) -> int:
    options = make_parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except MarginBNError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; finished records are kept, run again to go on\n")
        return 130


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    _add_run(commands)
    _add_table1(commands)
    tables = commands.add_parser("tables", help="tables 1-3 from the records, beside the paper's")
    _add_reading(tables, _tables)
    figures = commands.add_parser("figures", help="anytime curves, scatter, critical differences")
    _add_reading(figures, _figures)
    compare = commands.add_parser("compare", help="tell how two folders of records differ")
    compare.add_argument("first", type=Path)
    compare.add_argument("second", type=Path)
    compare.set_defaults(command=_compare)
    comparison_commands.add_commands(commands)
    return parser


def _add_run(commands: Any) -> None:
    parser = commands.add_parser("run", help="accuracy of all methods; finished units are skipped")
    parser.add_argument("--quick", action="store_true", help="everything, small, in minutes")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these data sets")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="only these methods")
    parser.add_argument(
        "--inner-limit", type=float, metavar="S", help="seconds per validation search (default 3)"
    )
    parser.add_argument(
        "--final-limit", type=float, metavar="S", help="seconds per final search (default 60)"
    )
    _add_running(parser, _run)


def _add_table1(commands: Any) -> None:
    parser = commands.add_parser("table1", help="gaps of the seven hard sets")
    parser.add_argument("--quick", action="store_true", help="few rows and seconds")
    parser.add_argument("--sets", nargs="+", choices=TABLE1_SETS, help="only these data sets")
    parser.add_argument("--methods", nargs="+", choices=TABLE1_METHODS, help="only these")
    parser.add_argument("--limit", type=float, metavar="S", help="seconds per search (default 60)")
    _add_running(parser, _table1)


def _add_running(parser: argparse.ArgumentParser, command: Any) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--records", type=Path, help="folder of records (default: by kind of run)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="units side by side")
    parser.add_argument("--dask", metavar="ADDRESS", help="run on this Dask cluster instead")
    parser.set_defaults(command=command)


def _add_reading(parser: argparse.ArgumentParser, command: Any) -> None:
    parser.add_argument("--quick", action="store_true", help="of the quick run")
    parser.add_argument("--records", type=Path, help="folder of records (default: by kind of run)")
    parser.add_argument("--output", type=Path, help="where to write (default: beside the records)")
    parser.set_defaults(command=command)


def _run(options: argparse.Namespace) -> int:
    settings = _settings(options, inner_limit=options.inner_limit, final_limit=options.final_limit)
    specs = wanted_specs(options.sets)
    units = plan_units(specs, options.methods or tuple(METHODS), settings)
    if settings.quick and not options.methods:
        units += plan_table1(specs)  # so that a quick run fills all three tables
    return _start(units, specs, settings, options)


def _table1(options: argparse.Namespace) -> int:
    settings = _settings(options, table1_limit=options.limit)
    specs = wanted_specs(options.sets or TABLE1_SETS)
    units = plan_table1(specs, options.methods or tuple(TABLE1_METHODS))
    return _start(units, specs, settings, options)


def _settings(options: argparse.Namespace, **limits: float | None) -> Settings:
    changes = {name: value for name, value in limits.items() if value is not None}
    make = presets.quick if options.quick else presets.full
    return make(seed=options.seed, **changes)


def _start(
    units: Any, specs: dict[str, Spec], settings: Settings, options: argparse.Namespace
) -> int:
    failed = run(
        units,
        specs,
        options.data,
        _records(options),
        settings,
        n_jobs=options.jobs,
        dask=options.dask,
    )
    return 1 if failed else 0


def _records(options: argparse.Namespace) -> Path:
    return options.records or RESULTS / ("quick" if options.quick else "full") / "records"


def _output(options: argparse.Namespace) -> Path:
    output: Path = options.output or _records(options).parent
    output.mkdir(parents=True, exist_ok=True)
    return output


def _tables(options: argparse.Namespace) -> int:
    from experiments import tables

    sys.stdout.write(tables.write(list(read_records(_records(options))), _output(options)))
    return 0


def _figures(options: argparse.Namespace) -> int:
    from experiments import figures

    for path in figures.write(list(read_records(_records(options))), _output(options)):
        sys.stdout.write(f"{path}\n")
    return 0


def _compare(options: argparse.Namespace) -> int:
    lines = differences(options.first, options.second)
    sys.stdout.write(("\n".join(lines) or "no differences, times aside") + "\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
