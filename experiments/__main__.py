"""Command line of the experiments.

python -m experiments run --data FOLDER [--quick] [--jobs N] [--dask ADDRESS]
python -m experiments table1 --data FOLDER
python -m experiments curves --data FOLDER [--jobs N]
python -m experiments missing --data FOLDER [--jobs N]
python -m experiments tables
python -m experiments figures
python -m experiments page
python -m experiments audit --data FOLDER
python -m experiments compare RECORDS RECORDS
python -m experiments unseen-tables FOLDER
python -m experiments unseen FOLDER [--quick]
python -m experiments unseen-page
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from experiments import audit, learning_curves, missing_features, unseen
from experiments import settings as presets
from experiments.methods import DEFAULT, LABELS, METHODS, TABLE1_METHODS
from experiments.protocol import HERE, TABLE1_SETS, Spec, wanted_specs
from experiments.records import Unit, differences, is_stopped, read_records
from experiments.render import Grid, to_markdown
from experiments.run import plan_table1, plan_units, run
from experiments.settings import Settings
from marginbn.datasets.local import data_folder
from marginbn.exceptions import InputError, MarginBNError
from marginbn.files import write_text

RESULTS = HERE / "results"


def main(arguments: list[str] | None = None) -> int:
    options = make_parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (MarginBNError, OSError) as error:
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
    curves = commands.add_parser("curves", help="the same with fewer and fewer training rows")
    _add_part(curves, learning_curves.SETS, learning_curves.METHODS)
    _add_running(curves, _curves)
    missing = commands.add_parser("missing", help="the same with test values hidden at random")
    _add_part(missing, missing_features.SETS, missing_features.METHODS)
    _add_running(missing, _missing)
    tables = commands.add_parser("tables", help="all tables from the records, beside the paper's")
    _add_reading(tables, _tables)
    figures = commands.add_parser("figures", help="curves, scatter, critical differences")
    _add_reading(figures, _figures)
    page = commands.add_parser("page", help="write docs/results.rst and its figures from records")
    _add_reading(page, _page)
    _add_audit(commands)
    _add_unseen(commands)
    compare = commands.add_parser("compare", help="tell how two folders of records differ")
    compare.add_argument("first", type=Path)
    compare.add_argument("second", type=Path)
    compare.set_defaults(command=_compare)
    return parser


def _add_run(commands: Any) -> None:
    parser = commands.add_parser("run", help="all methods on all sets; finished units are skipped")
    _add_part(parser, None, DEFAULT)
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="seeds of fast methods on small sets (default 5)"
    )
    parser.add_argument(
        "--inner-limit",
        type=float,
        metavar="S",
        help="seconds of work per validation search (default 1)",
    )
    parser.add_argument(
        "--final-limit", type=float, metavar="S", help="seconds per final search (default 60)"
    )
    _add_running(parser, _run)


def _add_table1(commands: Any) -> None:
    parser = commands.add_parser("table1", help="gaps and proofs of the seven hard sets")
    parser.add_argument("--sets", nargs="+", choices=TABLE1_SETS, help="only these data sets")
    parser.add_argument("--methods", nargs="+", choices=TABLE1_METHODS, help="only these")
    parser.add_argument(
        "--gap-limit", type=float, metavar="S", help="seconds per gap, one core (default 60)"
    )
    parser.add_argument(
        "--proof-limit", type=float, metavar="S",
        help="seconds per proof, two cores, four times as many for spambase (default 1800)",
    )  # fmt: skip
    _add_running(parser, _table1)


def _add_part(
    parser: argparse.ArgumentParser, sets: tuple[str, ...] | None, methods: tuple[str, ...]
) -> None:
    parser.add_argument(
        "--sets", nargs="+", metavar="NAME", default=sets, help="only these data sets"
    )
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="METHOD",
        help=f"only these of {', '.join(METHODS)} (default: {', '.join(methods)})",
    )  # fmt: skip
    parser.set_defaults(default_methods=methods)


def _add_running(parser: argparse.ArgumentParser, command: Any) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--quick", action="store_true", help="everything, small, in minutes")
    parser.add_argument("--records", type=Path, help="folder of records (default: by kind of run)")
    parser.add_argument("--jobs", type=int, default=1, help="units side by side")
    parser.add_argument("--dask", metavar="ADDRESS", help="run on this Dask cluster instead")
    parser.set_defaults(command=command)


def _add_reading(parser: argparse.ArgumentParser, command: Any) -> None:
    parser.add_argument("--quick", action="store_true", help="of the quick run")
    parser.add_argument("--records", type=Path, help="folder of records (default: by kind of run)")
    parser.add_argument("--output", type=Path, help="where to write (default: beside the records)")
    parser.set_defaults(command=command)


def _add_audit(commands: Any) -> None:
    parser = commands.add_parser("audit", help="recompute random records and compare")
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--quick", action="store_true", help="of the quick run")
    parser.add_argument("--records", type=Path, help="folder of records (default: by kind of run)")
    parser.add_argument("--number", type=int, default=30, metavar="N", help="records (default 30)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    parser.add_argument(
        "--most-seconds", type=float, default=120.0, metavar="S",
        help="only records that took at most so long (default 120)",
    )  # fmt: skip
    parser.set_defaults(command=_audit)


def _add_unseen(commands: Any) -> None:
    tables = commands.add_parser("unseen-tables", help="write the tables of this suite to a folder")
    tables.add_argument("folder", type=Path)
    tables.set_defaults(command=_unseen_tables)
    parser = commands.add_parser("unseen", help="every method on a folder of raw tables")
    parser.add_argument("folder", type=Path, help="NAME.csv and NAME.toml for every table")
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="only these tables")
    parser.add_argument(
        "--methods", nargs="+", choices=unseen.METHODS, default=tuple(unseen.METHODS),
        metavar="METHOD", help=f"only these of {', '.join(unseen.METHODS)}",
    )  # fmt: skip
    parser.add_argument(
        "--folds", type=int, choices=range(1, unseen.N_FOLDS + 1), default=unseen.N_FOLDS,
        help="only so many of the three folds",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="everything, small, in minutes")
    parser.add_argument("--records", type=Path, help="folder of records (default: by kind of run)")
    parser.set_defaults(command=_unseen)
    page = commands.add_parser("unseen-page", help="write the page of this suite from its records")
    _add_reading(page, _unseen_page)


# --- running ---


def _run(options: argparse.Namespace) -> int:
    settings = _settings(
        options,
        inner_limit=options.inner_limit,
        final_limit=options.final_limit,
        seeds=options.seeds,
    )
    specs = wanted_specs(options.sets)
    units = plan_units(specs, options.methods or options.default_methods, settings)
    if settings.quick and not options.methods:
        units += plan_table1(specs)  # so that a quick run fills all tables
    return _start(units, specs, settings, options)


def _table1(options: argparse.Namespace) -> int:
    settings = _settings(options, gap_limit=options.gap_limit, proof_limit=options.proof_limit)
    specs = wanted_specs(options.sets or TABLE1_SETS)
    units = plan_table1(specs, options.methods or tuple(TABLE1_METHODS))
    return _start(units, specs, settings, options)


def _curves(options: argparse.Namespace) -> int:
    settings, specs = _settings(options, seeds=1), wanted_specs(options.sets)
    wanted = learning_curves.QUICK_ROWS if settings.quick else learning_curves.ROWS
    units: list[Unit] = []
    for name, spec in specs.items():
        n_train = (spec.expect or (0, 0))[0] - (spec.test_rows or 0)
        rows = learning_curves.sizes(min(n_train, settings.max_train or n_train), wanted)
        methods = options.methods or options.default_methods
        units += plan_units({name: spec}, methods, settings, rows)
    return _start(units, specs, settings, options, "curves")


def _missing(options: argparse.Namespace) -> int:
    settings = _settings(options, seeds=1, hidden_shares=missing_features.SHARES)
    specs = wanted_specs(options.sets)
    units = plan_units(specs, options.methods or options.default_methods, settings)
    return _start(units, specs, settings, options, "missing")


def _unseen_tables(options: argparse.Namespace) -> int:
    from experiments import unseen_tables

    options.folder.mkdir(parents=True, exist_ok=True)
    sys.stdout.write("\n".join(unseen_tables.write_tables(options.folder)) + "\n")
    return 0


def _unseen(options: argparse.Namespace) -> int:
    tables = unseen.find_tables(options.folder)
    for name in unseen.tables_without_entry(options.folder):
        sys.stderr.write(f"{name} is left out: no {Path(name).stem}.toml names its target\n")
    unknown = [name for name in options.tables or () if name not in tables]
    if unknown:
        raise InputError(f"unknown tables {unknown}; there are {', '.join(tables)}")
    wanted = {name: tables[name] for name in options.tables or tables}
    settings = unseen.quick_settings() if options.quick else unseen.unseen_settings()
    records = _records(options, "unseen")
    return 1 if unseen.run_unseen(wanted, options.methods, records, settings, options.folds) else 0


def _settings(options: argparse.Namespace, **wanted: Any) -> Settings:
    changes = {name: value for name, value in wanted.items() if value is not None}
    return (presets.quick if options.quick else presets.full)(**changes)


def _start(
    units: list[Unit],
    specs: dict[str, Spec],
    settings: Settings,
    options: argparse.Namespace,
    part: str = "records",
) -> int:
    failed = run(
        units,
        specs,
        options.data,
        _records(options, part),
        settings,
        n_jobs=options.jobs,
        dask=options.dask,
    )
    return 1 if failed else 0


def _records(options: argparse.Namespace, part: str = "records") -> Path:
    if options.records:
        return Path(options.records)
    return RESULTS / ("quick" if options.quick else "full") / part


# --- reading ---


def _output(options: argparse.Namespace) -> Path:
    output: Path = options.output or _records(options).parent
    output.mkdir(parents=True, exist_ok=True)
    return output


def _beside(options: argparse.Namespace, part: str) -> list[Any]:
    """Records of the learning curves or of missing features, in their folder beside the others."""
    return list(read_records(_records(options).parent / part))


def _curve_records(options: argparse.Namespace) -> list[Any]:
    ordinary = list(read_records(_records(options)))
    return learning_curves.with_last_points(_beside(options, "curves"), ordinary)


def _tables(options: argparse.Namespace) -> int:
    from experiments import tables

    output = _output(options)
    sys.stdout.write(tables.write(list(read_records(_records(options))), output))
    _write_grids(learning_curves.grids(_curve_records(options)), output / "curves.md")
    hidden = _beside(options, "missing")
    if hidden:
        _write_grids(missing_features.grids(hidden, LABELS), output / "missing.md")
    return 0


def _write_grids(grids: list[Grid], path: Path) -> None:
    if grids:
        text = "\n".join(map(to_markdown, grids))
        write_text(path, text)
        sys.stdout.write(f"\n{text}")


def _figures(options: argparse.Namespace) -> int:
    from experiments import figures

    records = list(read_records(_records(options)))
    for path in figures.write(records, _curve_records(options), _output(options)):
        sys.stdout.write(f"{path}\n")
    return 0


def _page(options: argparse.Namespace) -> int:
    from experiments import page

    records = list(read_records(_records(options)))
    path = options.output or page.PAGE
    page.write(records, _curve_records(options), _beside(options, "missing"), path)
    sys.stdout.write(f"{path}\n")
    return 0


def _unseen_page(options: argparse.Namespace) -> int:
    from experiments import unseen_page

    path = options.output or unseen_page.PAGE
    unseen_page.write(list(read_records(_records(options, "unseen"))), path)
    sys.stdout.write(f"{path}\n")
    return 0


def _audit(options: argparse.Namespace) -> int:
    data_folder(options.data)
    records = list(read_records(_records(options)))
    chosen = audit.choose(records, options.number, options.seed, options.most_seconds)
    n_proved = sum(map(audit.is_proved, records))
    sys.stdout.write(
        f"{len(chosen)} of {n_proved} records with proved searches, of {len(records)} in all, "
        f"those that took at most {options.most_seconds:g} s\n"
    )
    n_different = 0
    for finding in audit.audit(chosen, options.data):
        n_different += bool(finding.differing)
        sys.stdout.write(f"{finding}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - n_different} of {len(chosen)} records are the same\n")
    return 1 if n_different else 0


def _compare(options: argparse.Namespace) -> int:
    for folder in (options.first, options.second):
        if not list(read_records(folder)):
            raise InputError(f"the folder {str(folder)!r} holds no records")
    lines = differences(options.first, options.second)
    stopped = [sum(map(is_stopped, read_records(f))) for f in (options.first, options.second)]
    sys.stdout.write(("\n".join(lines) or "no differences, times aside") + "\n")
    if any(stopped):
        sys.stdout.write(
            f"{stopped[0]} and {stopped[1]} searches were ended by their time limit: of these "
            "units rows and settings are compared, not how far they got\n"
        )
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
