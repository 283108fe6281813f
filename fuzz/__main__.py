"""Command line of the fuzzer.

python -m fuzz run [TARGET ...] [--seconds N]   fuzz, N seconds of processor time in all
python -m fuzz status                           what was done so far
python -m fuzz replay TARGET FILE ...           run single inputs, findings are shown in full
python -m fuzz keep TARGET FILE ...             copy inputs into the regression tests
python -m fuzz pack                             keep the smallest inputs of all corpora as well
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
from pathlib import Path

from fuzz.guard import run_watched
from fuzz.seeds import KEPT, PROJECT, pack_inputs, warm_up
from fuzz.targets import TARGETS

PACKED_INPUTS, PACKED_BYTES = 100, 2000
"""How many inputs of a corpus are kept, and how long they may be."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = Path(os.environ.get("MARGINBN_FUZZ", PROJECT / ".fuzz"))
    parser.add_argument("--work", type=Path, default=default, help="folder of corpora and log")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="fuzz; the folder keeps everything, so this resumes")
    run.add_argument("targets", nargs="*", metavar="TARGET", help=f"some of {', '.join(TARGETS)}")
    run.add_argument("--seconds", type=float, default=600, help="processor time in all")
    run.add_argument("--slice", type=int, default=60, help="seconds of one process")
    commands.add_parser("status", help="processor time, runs and findings so far")
    commands.add_parser("pack", help="keep the smallest inputs of every corpus")
    for name in ("replay", "keep"):
        command = commands.add_parser(name)
        command.add_argument("target", choices=TARGETS)
        command.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    if options.command == "run":
        _run(parser, options)
    elif options.command == "status":
        from fuzz.campaign import summary

        print(summary(options.work))
    elif options.command == "pack":
        _pack(options.work)
    elif options.command == "replay":
        for path in options.files:
            replay(options.target, path.read_bytes())
    else:
        for path in options.files:
            _keep(options.target, path.read_bytes())


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    try:
        import atheris  # noqa: F401
    except ImportError:
        parser.error("fuzzing needs atheris; install it with: pip install --group fuzz")
    unknown = [name for name in options.targets if name not in TARGETS]
    if unknown:
        parser.error(f"unknown targets {unknown}; known are {', '.join(TARGETS)}")
    from fuzz.campaign import run_campaign, summary

    try:
        run_campaign(options.targets or list(TARGETS), options.seconds, options.slice, options.work)
    except KeyboardInterrupt:
        print("stopped; run again to go on")
    print(summary(options.work))


def replay(name: str, data: bytes) -> None:
    """Run one input under watch; whatever is a finding is raised."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        warm_up(TARGETS[name], Path(folder))
        run_watched(TARGETS[name].run, data, Path(folder))


def _pack(work: Path) -> None:
    """The smallest inputs of each corpus; every one of them reached something new once."""
    for name in TARGETS:
        files = [p for p in (work / "corpus" / name).glob("*") if p.stat().st_size <= PACKED_BYTES]
        files.sort(key=lambda path: (path.stat().st_size, path.name))
        pack_inputs(name, [path.read_bytes() for path in files[:PACKED_INPUTS]])


def _keep(name: str, data: bytes) -> None:
    (KEPT / name).mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha1(data, usedforsecurity=False).hexdigest()[:16]
    (KEPT / name / digest).write_bytes(data)


if __name__ == "__main__":
    main()
