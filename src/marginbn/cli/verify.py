"""``marginbn verify``: check a proof written by ``marginbn fit --certificate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marginbn.cli.options import (
    DEFAULT_HOLDOUT,
    DelimiterOption,
    JsonOption,
    Missing,
    QuietOption,
    TableOptions,
)
from marginbn.cli.running import DONE, ERROR, note, print_json, print_verdict

if TYPE_CHECKING:
    from marginbn.data.labelled import LabelledTable
    from marginbn.proof.certificate import Data
    from marginbn.proof.checker import Verdict
    from marginbn.proof.checker.verdict import Progress


def verify(
    certificate: Annotated[
        Path,
        typer.Argument(metavar="CERTIFICATE", help="File written by `marginbn fit --certificate`."),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Also check that the proof is about the rows of this table."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="NAME", help="Class column, if it was renamed."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="COL=KIND", help="As given to `marginbn fit`; may be repeated."),
    ] = None,
    missing: Annotated[Missing, typer.Option(help="As given to `marginbn fit`.")] = Missing.DROP,
    holdout: Annotated[
        float | None,
        typer.Option(
            metavar="F",
            help="Share of the rows that `marginbn fit` held out. [default: none, or 0.2 if "
            "that fits]",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="As given to `marginbn fit`.", min=0)] = 0,
    delimiter: DelimiterOption = None,
    max_memory: Annotated[
        str | None,
        typer.Option(
            metavar="BYTES",
            help="Memory for the check, like 2GB; what needs more is refused before it begins. "
            "[default: half of the machine's]",
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Check a CERTIFICATE without trusting the search that wrote it.

    Prints VERIFIED with the proven gap, or what is wrong and where (exit code 1).
    """
    from marginbn.cli.data import load_rows
    from marginbn.proof.checker import read_within, verify_certificate
    from marginbn.solvers.memory import parse_memory

    allowed = parse_memory(max_memory, "max_memory")
    content = read_within(certificate, allowed)
    problem = None
    if data is not None:
        name = target or content.data.names[0]
        rows = load_rows(TableOptions(data, name, kind, None, delimiter))
        shares = (0.0, DEFAULT_HOLDOUT) if holdout is None else (holdout,)
        problem = compare_data(content.data, rows, missing, shares, seed)
    progress = progress_on_stderr(quiet or json)
    verdict = verify_certificate(content, progress=progress, max_memory=allowed)
    reason = problem or verdict.reason
    if json:
        print_json(summarise(verdict, reason, data is not None))
    else:
        print_verdict(describe(verdict, reason, data), proved=not reason)
    return ERROR if reason else DONE


def summarise(verdict: Verdict, reason: str, data_checked: bool) -> dict[str, object]:
    """The verdict for programs."""
    return {
        "verified": not reason,
        "reason": reason,
        "objective": verdict.objective,
        "bound": verdict.bound,
        "gap": verdict.gap,
        "leaves": verdict.n_leaves,
        "data_checked": data_checked,
    }


def describe(verdict: Verdict, reason: str, data: str | None) -> str:
    """The verdict in words."""
    if reason:
        return f"NOT VERIFIED\n{reason}"
    about = "the data in the certificate" if data is None else f"the rows of {data}"
    return (
        f"VERIFIED, gap {100 * verdict.gap:.2g} %\n"
        f"The structure in the certificate scores at least {verdict.objective!r} on {about},\n"
        f"and no structure scores more than {verdict.bound!r}: "
        f"{verdict.n_leaves} cases checked one by one."
    )


def compare_data(
    wanted: Data, rows: LabelledTable, missing: Missing, shares: tuple[float, ...], seed: int
) -> str | None:
    """None if the table gives the data of the certificate, else what differs."""
    from marginbn.cli.data import encode_rows, hold_out
    from marginbn.proof.definition import define_data

    difference = None
    rows = _known_columns(rows, wanted)
    for share in shares:
        train, _ = hold_out(rows, share, seed)
        found = define_data(encode_rows(train, missing.value))
        if found.fingerprint() == wanted.fingerprint():
            return None
        difference = difference or _difference(wanted, found)
    return difference


def _known_columns(rows: LabelledTable, wanted: Data) -> LabelledTable:
    """Columns that the certificate knows nothing of were left out before learning."""
    known = [name for name in rows.features.names if name in wanted.names[1:]]
    return replace(rows, features=rows.features.select(known))


def _difference(wanted: Data, found: Data) -> str:
    if found.names != wanted.names:
        absent = [name for name in wanted.names if name not in found.names]
        return f"the table is not the one of the certificate: it lacks the columns {absent}"
    for name, ours, theirs in zip(wanted.names, wanted.states, found.states, strict=True):
        if ours != theirs:
            return (
                f"the table is not the one of the certificate: {name!r} has the states "
                f"{list(theirs)[:8]}, in the certificate {list(ours)[:8]}"
            )
    return (
        "the table is not the one of the certificate: it has the same columns and states, but "
        "other rows"
    )


def progress_on_stderr(quiet: bool) -> Progress:
    """A listener that writes a line every few seconds."""
    import time

    last = [time.perf_counter()]

    def report(done: int, total: int) -> None:
        now = time.perf_counter()
        if now - last[0] > 5.0:
            last[0] = now
            note(f"checked {100 * done / total:.0f} % of the tree", quiet)

    return report
