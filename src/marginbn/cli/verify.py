"""``marginbn verify``: check a proof written by ``marginbn fit --certificate``."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli.options import EncodingOption, JsonOption, QuietOption, RowOptions, data_option
from marginbn.cli.running import (
    DONE,
    ERROR,
    NOT_STRICT,
    note,
    print_json,
    print_verdict,
    text_width,
)
from marginbn.network.wording import counted, hanging, listing, percent

if TYPE_CHECKING:
    from marginbn.proof.checker import Verdict
    from marginbn.proof.checker.verdict import Progress
    from marginbn.proof.exact_model import Rows
    from marginbn.proof.theorem import Statement

PROOF_TOLERANCE = 1e-6
"""As in marginbn.solvers.result, which is too heavy for --help; a test compares them."""

_PAUSE = 5.0
"""Seconds between two lines of progress."""

STATEMENT = "Statement to be proved"
statement_option = partial(typer.Option, rich_help_panel=STATEMENT)


def verify(
    certificate: Annotated[
        Path,
        typer.Argument(metavar="CERTIFICATE", help="File written by `marginbn fit --certificate`."),
    ],
    model: Annotated[
        Path | None,
        statement_option(
            metavar="MODEL",
            help="Require a proof about this saved model: its coding, rows, score, rule, structure "
            "and tables.",
        ),
    ] = None,
    statement: Annotated[
        str | None,
        statement_option(
            metavar="FILE",
            help="Require this statement: a file of `marginbn fit --statement`, or JSON such as "
            '\'{"p": 0.9, "max_parents": 2}\'.',
        ),
    ] = None,
    strict: Annotated[
        bool,
        statement_option(
            "--strict",
            help="Exit with code 4 unless the proof has a gap of at most 0.0001 % and no "
            "reservations.",
        ),
    ] = False,
    data: Annotated[
        str | None,
        data_option(
            metavar="TABLE",
            help="Check that the proof is about the rows of this table, encoded by --model, or "
            "about this score file.",
        ),
    ] = None,
    encoding: EncodingOption = "utf-8",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Check a CERTIFICATE without trusting the search that wrote it.

    Prints VERIFIED and the statement that is proved, or what is wrong and where (exit code 1).
    With --model, --data and --statement you state what must be proved: a proof of anything else is
    REFUTED. What you do not give is reported as a reservation.
    """
    from marginbn.classifiers.claims import coding_record, match_table, verify_model
    from marginbn.classifiers.model_file import load_model
    from marginbn.cli.data import open_rows
    from marginbn.export.jkl import load_scores
    from marginbn.proof.certificate import read_certificate
    from marginbn.proof.checker import verify_certificate
    from marginbn.proof.definition import given_scores
    from marginbn.proof.exact_model import DifferentError
    from marginbn.proof.theorem import Statement

    said, content = read_statement(statement), read_certificate(certificate)
    is_given = bool(content.data.scores)
    if data is not None and (model is None) != is_given:
        raise typer.BadParameter(
            "needs a score file and no --model: the proof is about scores"
            if is_given
            else "needs --model: its coding maps the values of the table to states",
            param_hint="--data",
        )
    needs = {"--model": (model, said.coding), "--data": (data, said.left_out, said.rows_left_out)}
    for option, (given, *asked) in needs.items():
        if given is None and any(part is not None for part in asked):
            raise typer.BadParameter(
                f"cannot be checked without {option}", param_hint="--statement"
            )
    found = Statement.of(content)
    fitted: Any = None if model is None else load_model(model, object)
    rows, trained_gap, refuted = None, math.inf, list[str]()
    if data is not None and is_given:
        if given_scores(load_scores(data)).fingerprint() != content.data.fingerprint():
            refuted = [f"the scores in the certificate are not those of {data}"]
        else:
            said = replace(said, score=found.score, listed=found.listed, data=found.data)
    elif data is not None and model is not None:
        try:
            with open_rows(RowOptions(data, encoding=encoding)) as table:
                rows, trained_gap = match_table(model, content.data, table)
            refuted = _differences(rows, said)
            said = replace(said, data=said.data or found.data)
        except DifferentError as reason:
            refuted = [str(reason)]
    wanted = replace(said, coding=None, left_out=None, rows_left_out=None)
    usual: Any = {"expect": wanted, "progress": progress_on_stderr(quiet or json)}
    if fitted is None:
        verdict = verify_certificate(content, **usual)
    else:
        verdict = verify_model(fitted, content, **usual)
        if said.coding is not None and list(said.coding) != coding_record(fitted):
            refuted.append("the coding of the model is not the one that was asked for")
    options = {"--data": data, "--model": model, "--statement": statement, "--strict": strict}
    checked = Checked(
        statement=found,
        said=said,
        table=data,
        rows=rows,
        trained_gap=None if getattr(fitted, "class_model_", None) is None else trained_gap,
        asked=[name for name, value in options.items() if value],
        unsaid=found.unsaid_in(said) if strict or model is None else [],
        refuted=refuted,
        verdict=verdict,
        is_strict=strict,
    )
    if json:
        print_json(summarise(checked))
    else:
        proved = not checked.reason and not checked.reservations
        print_verdict(describe(checked, text_width()), proved=proved)
    if strict:
        return NOT_STRICT if checked.unmet else DONE
    return ERROR if checked.reason else DONE


@dataclass(frozen=True)
class Checked:
    """A verdict, and what it is about."""

    statement: Statement
    said: Statement
    table: str | None
    rows: Rows | None  # of the table, if they are those of the certificate
    trained_gap: float | None  # infinite if it was not computed, None without trained tables
    asked: list[str]
    unsaid: list[str]  # parts of the statement that neither --statement nor --model asks for
    refuted: list[str]  # differences to the table and to the coding
    verdict: Verdict
    is_strict: bool = False

    @property
    def reservations(self) -> list[str]:
        """What was not asked for."""
        told, rows, gap = [], self.rows, self.trained_gap
        if self.unsaid and self.asked:
            told.append(f"not in the statement: {', '.join(self.unsaid)}")
        if self.statement.listed is not None and self.said.listed is None:
            told.append("the candidates are a custom list")
        if rows is not None and rows.left_out and self.said.left_out is None:
            columns = counted(len(rows.left_out), "column")
            told.append(f"{columns} of the table left out: {listing(rows.left_out)}")
        if rows is not None and rows.n_left_out and self.said.rows_left_out is None:
            text = f"of the {rows.n_rows} rows left out: they have missing values"
            told.append(f"{rows.n_left_out} {text}")
        if gap == math.inf:
            told.append("the trained tables are not checked without --data")
        elif gap is not None and gap > PROOF_TOLERANCE:
            told.append(f"the trained tables are only proved to be within {percent(gap)}")
        return told

    @property
    def unmet(self) -> list[str]:
        """Why --strict is not satisfied."""
        told = [self.reason] if self.reason else []
        if self.verdict.gap > PROOF_TOLERANCE:
            told.append(
                f"the gap is {percent(self.verdict.gap)}, more than {percent(PROOF_TOLERANCE)}"
            )
        return [*told, *([] if self.reason else self.reservations)]

    @property
    def reason(self) -> str:
        """Why it is not verified, or nothing."""
        return "; ".join([*self.refuted, *filter(None, [self.verdict.reason])])


# ------------------------------------------------------------------------------- what is asked for


def read_statement(text: str | None) -> Statement:
    """The statement of a file, or of a text that is JSON; None in it is not asked for."""
    from marginbn.exceptions import InputError
    from marginbn.files import MisfitError, naming_file, read_bytes
    from marginbn.proof.theorem import Statement

    if text is None:
        return Statement()
    try:
        if text.lstrip().startswith("{"):
            return Statement.read(text.encode())
        with naming_file(text):
            return Statement.read(read_bytes(text))
    except (InputError, MisfitError) as error:
        raise typer.BadParameter(str(error), param_hint="--statement") from None


def _differences(rows: Rows, said: Statement) -> list[str]:
    """Where the columns and rows left out are not those that were asked for."""
    told = []
    if said.left_out is not None and {*said.left_out} != {*rows.left_out}:
        told.append(f"the columns left out are {rows.left_out}, not {list(said.left_out)}")
    if said.rows_left_out is not None and said.rows_left_out != rows.n_left_out:
        told.append(f"{counted(rows.n_left_out, 'row')} left out, not {said.rows_left_out}")
    return told


# ------------------------------------------------------------------------------- what is printed


def summarise(checked: Checked) -> dict[str, object]:
    """The verdict for programs."""
    verdict, rows, gap = checked.verdict, checked.rows, checked.trained_gap
    return {
        "verified": not checked.reason,
        "reason": checked.reason,
        "objective": verdict.objective,
        "bound": verdict.bound,
        "gap": verdict.gap,
        "optimal": not checked.reason and verdict.gap <= PROOF_TOLERANCE,
        "strict": not checked.unmet,
        "leaves": verdict.n_leaves,
        "trained_gap": None if gap == math.inf else gap,
        "reservations": [] if checked.reason else checked.reservations,
        "statement": record_statement(checked.statement)
        | {
            "table_rows": None if rows is None else rows.n_rows,
            "table_rows_used": None if rows is None else len(rows.states),
            "left_out": None if rows is None else rows.left_out,
        },
    }


def record_statement(found: Statement) -> dict[str, Any]:
    """Everything that is stated, with arcs and parents by name."""
    from marginbn.proof.theorem import ASKED, probability

    said = {name: part for name, part in vars(found).items() if name not in ASKED}
    if found.target is None:
        said["variables"] = said.pop("features")
    if found.total_weight == math.inf:
        said["total_weight"] = None  # JSON has no such number
    if found.gamma is not None:
        said["p"] = probability(found.gamma)
    said["structure"] = {name: list(parents) for name, parents in found.structure or ()}
    return said | {"candidates": candidate_text(found)}


def describe(checked: Checked, width: int = 80) -> str:
    """The verdict in words, and the statement."""
    verdict = checked.verdict
    if checked.reason:
        is_other = checked.refuted or "proves another statement" in verdict.reason
        head = ["REFUTED" if is_other else "NOT VERIFIED", checked.reason]
        title = "What the certificate claims"
    else:
        told = checked.reservations
        lines_of_told = [line for text in told for line in hanging("- ", text, width)]
        more = f", with {counted(len(told), 'reservation')}" if told else ""
        head = [
            f"VERIFIED, gap {percent(verdict.gap)}{more}",
            *(["You did not ask for this:", *lines_of_told, ""] if told else []),
            *_theorem(checked, width),
        ]
        title = "What is proved"
    if checked.is_strict and checked.unmet and not checked.reason:
        head[1:1] = _wrapped(f"Refused by --strict: {'; '.join(checked.unmet)}.", width)
    lines = [*head, "", title]
    for label, text in statement_lines(checked):
        lines += hanging(f"{label:<12}", text, width)
    return "\n".join([*lines, "", *_wrapped(_origin(checked), width)])


def _theorem(checked: Checked, width: int) -> list[str]:
    verdict, table = checked.verdict, checked.table
    about = f"the scores of {table or 'the certificate'}"
    if checked.statement.score != "given":
        about = "the rows in the certificate" if table is None else rows_text(checked)
    return _wrapped(
        f"The structure in the certificate scores at least {verdict.objective!r} on {about}, and "
        f"no structure that the candidates below allow scores more than {verdict.bound!r}: "
        f"{counted(verdict.n_leaves, 'case')} checked one by one.",
        width,
    )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def rows_text(checked: Checked) -> str:
    """``320 of the 400 rows of t.csv``, or ``all 400 rows of t.csv``."""
    rows = checked.rows
    assert rows is not None  # there is a table
    share = f"{len(rows.states)} of" if rows.n_left_out else "all"
    return f"{share} the {rows.n_rows} rows of {checked.table}"


def statement_lines(checked: Checked) -> Iterator[tuple[str, str]]:
    """Lines of the statement, most important first."""
    from marginbn.proof.theorem import printable, shown

    rows, gap, verdict, found = (
        checked.rows,
        checked.trained_gap,
        checked.verdict,
        checked.statement,
    )
    yield "score", score_text(found)
    if found.target is not None:
        labels = f"{printable(found.target)}: {shown(found.classes)}"
        yield "classes", f"{len(found.classes or ())} of {labels}"
    kind = "features" if found.target is not None else "variables"
    yield kind, f"{len(found.features or ())}: {shown(found.features)}"
    if rows is not None and rows.left_out:
        yield "LEFT OUT", f"{counted(len(rows.left_out), 'column')}: {listing(rows.left_out)}"
    if found.constant:
        yield "constant", f"{shown(found.constant)} (neither parents nor children)"
    if found.distinct_rows:
        weight = f"total weight {found.total_weight:.15g}, {found.distinct_rows} distinct"
        yield "rows", weight if rows is None else f"{rows_text(checked)}, {weight}"
    yield "candidates", candidate_text(found)
    if found.listed is None:
        for label, arcs in (("required", found.required), ("forbidden", found.forbidden)):
            names = shown([f"{parent} -> {child}" for parent, child in arcs or ()])
            yield label, f"{len(arcs)} arcs: {names}" if arcs else "no arcs"
    n_arcs = sum(len(parents) for _, parents in found.structure or ())
    yield "structure", f"{n_arcs} arcs (in full with --json)"
    if gap is not None and gap < math.inf:
        within = percent(max(gap, PROOF_TOLERANCE))
        yield "tables", f"trained; penalised loss within {within} of its minimum"
    text = f"a gap of at most {percent(PROOF_TOLERANCE)} counts as optimal"
    if not checked.reason:
        text += f": this structure {'is' if verdict.gap <= PROOF_TOLERANCE else 'may not be'}"
    yield "tolerance", text


def score_text(found: Statement) -> str:
    """The score with its numbers, all digits."""
    from marginbn.proof.theorem import probability

    if found.gamma is not None:
        kind = "soft margin" if found.score == "multiclass" else "binary soft margin"
        numbers = f"gamma = {found.gamma!r} (p = {probability(found.gamma):.6g})"
        return f"{kind}, {numbers}, smoothing {found.smoothing!r}"
    if found.score == "given":
        return "the sum of local scores that were given"
    size = found.equivalent_sample_size
    text = str(found.score).upper()
    return text if size is None else f"{text}, equivalent sample size {size!r}"


def candidate_text(found: Statement) -> str:
    """The rule, or how much of all parent sets the list is."""
    if found.score == "given":
        return f"the {found.listed} parent sets that have a score, and no others"
    if found.listed is not None:
        sets = f"A CUSTOM LIST of {found.listed} parent sets"
        return f"{sets}; nothing is proved about structures outside of it"
    if found.target is None and found.max_parents == len(found.features or ()) - 1:
        return "all sets of parents"
    text = f"all sets of at most {found.max_parents} parent{'s' * (found.max_parents != 1)}"
    if found.class_arcs == "all":
        text += ", the class among them; the class itself has none"
    elif found.class_restricted:
        text += ", for features none or with the class among them"
    return text


def _origin(checked: Checked) -> str:
    """Who said what is to be proved."""
    if not checked.asked:
        return (
            "The certificate itself states all of this. Compare it with what you want to be "
            "proved, or give that: --model, --data, --statement, --strict."
        )
    text = f"Checked against what you gave: {', '.join(checked.asked)}."
    if not checked.reason and checked.reservations:
        text += " The reservations are about what you did not give: add it to --statement."
    return text


def progress_on_stderr(quiet: bool) -> Progress:
    """A listener that writes a line every few seconds."""
    import time

    last = [time.perf_counter()]

    def report(done: int, total: int) -> None:
        now = time.perf_counter()
        if now - last[0] > _PAUSE:
            last[0] = now
            note(f"checked {100 * done / total:.0f} % of the tree", quiet)

    return report
