"""Command line of the mutation tests.

python -m mutation run [MODULE ...]    judge the mutants of these modules, or of all; resumes
python -m mutation survivors           what no test noticed so far
python -m mutation status              numbers so far
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from mutation.campaign import PROJECT, judge_module, run_campaign, summary, survivors
from mutation.judges import JUDGES


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = Path(os.environ.get("MARGINBN_MUTANTS", PROJECT / ".mutants" / "log.jsonl"))
    parser.add_argument("--log", type=Path, default=default, help="file of all verdicts")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "judge"):  # the second one is for the processes of the first
        command = commands.add_parser(name)
        command.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(JUDGES))
    commands.add_parser("survivors")
    commands.add_parser("status")
    options = parser.parse_args()
    log = options.log.resolve()
    if options.command == "survivors":
        for record in survivors(log):
            print(f"{record.module} {record.place}    | {record.text}")
    elif options.command == "status":
        print(summary(log))
    else:
        unknown = [name for name in options.modules if name not in JUDGES]
        if unknown:
            parser.error(f"unknown modules {unknown}; known are {', '.join(JUDGES)}")
        _run(options.command, options.modules or list(JUDGES), log)


def _run(command: str, modules: list[str], log: Path) -> None:
    try:
        if command == "judge":
            for module in modules:
                judge_module(JUDGES[module], log)
            return
        run_campaign(modules, log)
    except KeyboardInterrupt:
        raise SystemExit("stopped; run again to go on") from None
    print(summary(log))


if __name__ == "__main__":
    main()
