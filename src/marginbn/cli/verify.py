"""``marginbn verify``: check a proof written by ``marginbn fit --certificate``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli.options import (
    ClassArcs,
    EncodingOption,
    JsonOption,
    Margin,
    Missing,
    QuietOption,
    Score,
    TableOptions,
    data_option,
    gamma_of,
    parse_arcs,
    parse_class_weight,
)
from marginbn.cli.running import DONE, ERROR, note, print_json, print_verdict, text_width
from marginbn.network.wording import counted, hanging, listing

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier
    from marginbn.data.labelled import LabelledTable
    from marginbn.proof.certificate import Certificate, Data
    from marginbn.proof.checker import Verdict
    from marginbn.proof.checker.verdict import Progress
    from marginbn.proof.theorem import Statement

PROOF_TOLERANCE = 1e-6
"""As in marginbn.solvers.result, which is too heavy for --help; a test compares them."""


STATEMENT = "Statement to be proved"
FITTED = "Preparation of --data"
statement_option = partial(typer.Option, rich_help_panel=STATEMENT)
fitted_option = partial(typer.Option, rich_help_panel=FITTED)


@dataclass(frozen=True)
class WantedOptions:
    """The statement that the certificate must prove."""

    model: Annotated[
        Path | None,
        statement_option(
            metavar="MODEL",
            help="Require a proof about this saved model: its rows, score, rule and structure.",
        ),
    ] = None
    score: Annotated[Score | None, statement_option(help="Require this score.")] = None
    margin: Annotated[Margin | None, statement_option(help="Require this margin.")] = None
    gamma: Annotated[
        float | None,
        statement_option(metavar="G", help="Require this gamma."),
    ] = None
    p: Annotated[
        float | None,
        statement_option("--p", metavar="P", help="Require gamma = log(p / (1 - p))."),
    ] = None
    smoothing: Annotated[
        float | None,
        statement_option(metavar="S", help="Require this smoothing."),
    ] = None
    max_parents: Annotated[
        int | None,
        statement_option(metavar="K", help="Require all sets of at most K parents as candidates."),
    ] = None
    class_arcs: Annotated[
        ClassArcs | None,
        statement_option(
            help="Require the class to be a parent of every feature (all) or not (free)."
        ),
    ] = None
    unrestricted: Annotated[
        bool,
        statement_option(
            "--unrestricted", help="Require parent sets without the class as candidates."
        ),
    ] = False
    require: Annotated[
        list[str] | None,
        statement_option(
            metavar='"A->B"', help="Require exactly these required arcs (repeatable)."
        ),
    ] = None
    forbid: Annotated[
        list[str] | None,
        statement_option(
            metavar='"A->B"', help="Require exactly these forbidden arcs (repeatable)."
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        statement_option(
            metavar="COL", help="Allow exactly these columns of --data to be left out (repeatable)."
        ),
    ] = None
    gap: Annotated[
        float | None,
        statement_option(metavar="G", help="Require a proven gap of at most G."),
    ] = None
    strict: Annotated[
        bool,
        statement_option(
            "--strict",
            help="Require the defaults of `marginbn fit` for everything not given: nothing "
            "required, forbidden or left out.",
        ),
    ] = False


@dataclass(frozen=True)
class FittedOptions:
    """What ``marginbn fit`` made of the table, in its own words."""

    kind: Annotated[
        list[str] | None,
        fitted_option(metavar="COL=KIND", help="As given to `marginbn fit` (repeatable)."),
    ] = None
    missing: Annotated[Missing, fitted_option(help="As given to `marginbn fit`.")] = Missing.AUTO
    class_weight: Annotated[
        list[str] | None,
        fitted_option(metavar="W", help="As given to `marginbn fit` (repeatable)."),
    ] = None


PLAIN_FIT = FittedOptions()


def verify(
    certificate: Annotated[
        Path,
        typer.Argument(metavar="CERTIFICATE", help="File written by `marginbn fit --certificate`."),
    ],
    wanted: WantedOptions,
    data: Annotated[
        str | None,
        data_option(metavar="TABLE", help="Check that the proof is about the rows of this table."),
    ] = None,
    target: Annotated[
        str | None,
        data_option(
            "--target",
            "-t",
            metavar="NAME",
            help="Column of --data that holds the class, if it was renamed.",
        ),
    ] = None,
    fitted: FittedOptions = PLAIN_FIT,
    encoding: EncodingOption = "utf-8",
    max_memory: Annotated[
        str | None,
        typer.Option(
            metavar="BYTES",
            help="Refuse checks that need more memory, e.g. 2GB. [default: half of the machine's]",
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Check a CERTIFICATE without trusting the search that wrote it.

    Prints VERIFIED and the statement that is proved, or what is wrong and where (exit code 1).
    With --data, --model, --p and the like you say what must be proved: a proof of anything else is
    REFUTED. Settings that you do not give and that are not the defaults are reported as
    reservations.
    """
    from marginbn.classifiers.model_file import load_model
    from marginbn.proof.checker import read_within
    from marginbn.proof.theorem import Statement
    from marginbn.solvers.memory import parse_memory

    expected, allowed = expected_statement(wanted), parse_memory(max_memory, "max_memory")
    content = read_within(certificate, allowed)
    match = None
    if data is not None:
        name = target or content.data.names[0]
        rows, usual_class = read_rows(TableOptions(data, name, fitted.kind, encoding=encoding))
        match = compare_data(content.data, rows, fitted, Statement.of(content).class_arcs == "all")
        match = replace(match, class_unsaid=target is None and name != usual_class)
    statement = Statement.of(content)
    progress = progress_on_stderr(quiet or json)
    classifier = None if wanted.model is None else load_model(wanted.model)
    differences = [] if match is None else table_differences(match, wanted)
    if match is not None and classifier is not None:
        differences += trained_differences(classifier, rows)
    checked = Checked(
        certificate=certificate,
        statement=statement,
        table=data,
        match=match,
        asked=asked_options(wanted),
        unusual=[] if wanted.model is not None else unusual_settings(statement, expected),
        drop_unsaid=not wanted.drop,
        refuted=differences,
        verdict=judge(content, expected, classifier, progress, allowed),
    )
    if json:
        print_json(summarise(checked))
    else:
        proved = not checked.reason and not checked.reservations
        print_verdict(describe(checked, text_width()), proved=proved)
    return ERROR if checked.reason else DONE


def trained_differences(classifier: BaseBNClassifier, rows: LabelledTable) -> list[str]:
    """Where trained tables are not what the rows of the table give; computed again."""
    from marginbn.classifiers.claims import certify_tables

    if classifier.class_model_ is None:
        return []
    claimed = classifier.class_model_
    value, gap = certify_tables(classifier, rows)
    if abs(value - claimed.objective) > 1e-9 * max(value, claimed.objective):
        return [
            "the trained tables are not those of this table: their penalised loss is "
            f"{value:.10g}, the model says {claimed.objective:.10g}"
        ]
    if gap > claimed.gap * (1 + 1e-3) + 1e-12:
        return [
            f"the trained tables are within {gap:.2g} of their optimum, the model says "
            f"{claimed.gap:.2g}"
        ]
    return []


@dataclass(frozen=True)
class TableMatch:
    """How the rows of a table and of a certificate belong together."""

    difference: str | None  # None: they do
    n_used: int
    n_rows: int
    left_out: tuple[str, ...]  # columns
    n_missing: int = 0  # rows that miss a value, and are left out
    class_unsaid: bool = False  # the certificate chose the class, and not the usual column


@dataclass(frozen=True)
class Checked:
    """A verdict, and what it is about."""

    certificate: Path
    statement: Statement
    table: str | None
    match: TableMatch | None
    asked: list[str]
    unusual: list[str]  # differences to the defaults where nothing was asked for
    drop_unsaid: bool
    refuted: list[str]  # differences to the table
    verdict: Verdict

    @property
    def reservations(self) -> list[str]:
        """What nobody asked for and a reader of the table would not expect."""
        told, match = list(self.unusual), self.match
        if match is None:
            return told
        if match.class_unsaid:
            told.append(f"the class is the column {self.statement.target!r}")
        if match.left_out and self.drop_unsaid:
            columns = counted(len(match.left_out), "column")
            told.append(f"{columns} of the table left out: {listing(match.left_out)}")
        if match.n_missing:
            rows = f"of the {match.n_rows} rows are not part of it"
            told.append(f"{match.n_missing} {rows}: values are missing in them")
        return told

    @property
    def is_refuted(self) -> bool:
        """Whether the certificate is about something else than was asked for."""
        return bool(self.refuted) or "proves another statement" in self.verdict.reason

    @property
    def reason(self) -> str:
        """Why it is not verified, or nothing."""
        return "; ".join([*self.refuted, *filter(None, [self.verdict.reason])])


def expected_statement(wanted: WantedOptions) -> Statement:
    """The statement that the options describe; None in it stands for what nobody asked for."""
    from marginbn.problem.scores import SCORES
    from marginbn.proof.theorem import Statement

    if wanted.score is not None and wanted.margin is not None:
        raise typer.BadParameter("give either --score or --margin", param_hint="--margin")
    if wanted.gamma is not None and wanted.p is not None:
        raise typer.BadParameter("give either --gamma or --p, not both", param_hint="--p")
    name = None if wanted.margin is None else str(wanted.margin)
    if wanted.score is not None:
        name = SCORES[str(wanted.score)].certificate
    said = Statement(
        score=name,
        gamma=wanted.gamma if wanted.p is None else gamma_of(wanted.p),
        smoothing=wanted.smoothing,
        max_parents=wanted.max_parents,
        class_restricted=False if wanted.unrestricted else None,
        class_arcs=None if wanted.class_arcs is None else str(wanted.class_arcs),
        required=_arcs(wanted.require, "--require"),
        forbidden=_arcs(wanted.forbid, "--forbid"),
        gap=wanted.gap,
    )
    return with_defaults(said) if wanted.strict else said


def unusual_settings(found: Statement, said: Statement) -> list[str]:
    """Where a statement is neither what was said nor what ``marginbn fit`` has by default."""
    usual = with_defaults(said).score
    told = [] if usual == found.score else [f"score is {found.score!r}, not {usual!r}"]
    family = said.class_arcs or found.class_arcs  # both have a method, and the statement names it
    wanted = replace(said, score=found.score, class_arcs=family)
    return told + with_defaults(wanted).differences_of(found)


def with_defaults(said: Statement) -> Statement:
    """What is not said is as ``marginbn fit`` has it."""
    from marginbn.classifiers import BNClassifier, GenerativeBNClassifier, MaxMarginBNClassifier

    score = said.score or "multiclass"
    is_margin = score in ("multiclass", "binary")
    is_default = is_margin and said.class_arcs in (None, "all")
    margin = vars(BNClassifier() if is_default else MaxMarginBNClassifier())
    usual: dict[str, Any] = {"score": score, "class_restricted": True}
    usual |= {"class_arcs": margin["class_arcs"], "max_parents": margin["max_parents"]}
    usual |= {"required": (), "forbidden": ()}
    if is_margin:
        usual |= {name: margin[name] for name in ("gamma", "smoothing")}
    elif score == "bdeu":
        size = GenerativeBNClassifier().get_params(deep=False)["equivalent_sample_size"]
        usual["equivalent_sample_size"] = size
    missing = {name: value for name, value in usual.items() if getattr(said, name) is None}
    return replace(said, **missing)


def _arcs(texts: list[str] | None, option: str) -> tuple[tuple[str, str], ...] | None:
    arcs = parse_arcs(texts, option)
    return None if arcs is None else tuple(arcs)


def asked_options(wanted: WantedOptions) -> list[str]:
    """The options that say what is to be proved, as they are written."""
    given = [f.name for f in fields(wanted) if getattr(wanted, f.name) not in (None, False, [])]
    return [f"--{name.replace('_', '-')}" for name in given]


def judge(
    content: Certificate,
    expected: Statement,
    classifier: BaseBNClassifier | None,
    progress: Progress,
    max_memory: int | None,
) -> Verdict:
    """The verdict about the statement, and about the model if there is one."""
    from marginbn.classifiers.claims import verify_model
    from marginbn.proof.checker import verify_certificate

    if classifier is None:
        return verify_certificate(
            content, progress=progress, expect=expected, max_memory=max_memory
        )
    return verify_model(
        classifier, content, progress=progress, expect=expected, max_memory=max_memory
    )


def table_differences(match: TableMatch, wanted: WantedOptions) -> list[str]:
    """What is wrong with the table, and with the columns that were left out of it."""
    if match.difference is not None:
        return [match.difference]
    allowed = wanted.drop or ([] if wanted.strict else list(match.left_out))
    others = [name for name in match.left_out if name not in allowed]
    used = [name for name in allowed if name not in match.left_out]
    told = [f"the columns {others} of the table are left out of the proof"] if others else []
    return [*told, *([f"the columns {used} are not left out of the proof"] if used else [])]


def summarise(checked: Checked) -> dict[str, object]:
    """The verdict for programs."""
    verdict, match = checked.verdict, checked.match
    return {
        "verified": not checked.reason,
        "reason": checked.reason,
        "objective": verdict.objective,
        "bound": verdict.bound,
        "gap": verdict.gap,
        "tolerance": PROOF_TOLERANCE,
        "optimal": not checked.reason and verdict.gap <= PROOF_TOLERANCE,
        "leaves": verdict.n_leaves,
        "data_checked": match is not None,
        "asked": checked.asked,
        "reservations": [] if checked.reason else checked.reservations,
        "statement": checked.statement.record()
        | {
            "table_rows": None if match is None else match.n_rows,
            "table_rows_used": None if match is None else match.n_used,
            "left_out": None if match is None else list(match.left_out),
        },
    }


def describe(checked: Checked, width: int = 80) -> str:
    """The verdict in words, and the statement."""
    verdict = checked.verdict
    if checked.reason:
        head = ["REFUTED" if checked.is_refuted else "NOT VERIFIED", checked.reason]
        title = "What the certificate claims"
    else:
        head = [
            f"VERIFIED, gap {100 * verdict.gap:.2g} %{_with_reservations(checked)}",
            *_reservations(checked, width),
            *_theorem(checked, width),
        ]
        title = "What is proved"
    lines = [*head, "", title]
    for label, text in statement_lines(checked):
        lines += hanging(f"{label:<12}", text, width)
    return "\n".join([*lines, "", *_wrapped(_origin(checked), width)])


def _with_reservations(checked: Checked) -> str:
    told = checked.reservations
    return f", with {counted(len(told), 'reservation')}" if told else ""


def _reservations(checked: Checked, width: int) -> list[str]:
    """What is not as one would think, before anything else is said."""
    if not checked.reservations:
        return []
    about = "" if checked.table is None else f"all of {checked.table} with "
    told = _wrapped(
        f"You did not ask for this, and it is not {about}what `marginbn fit` has by default:", width
    )
    for text in checked.reservations:
        told += hanging("- ", text, width)
    return [*told, ""]


def _theorem(checked: Checked, width: int) -> list[str]:
    verdict, table = checked.verdict, checked.table
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
    match = checked.match
    assert match is not None  # there is a table
    share = "all" if match.n_used == match.n_rows else f"{match.n_used} of"
    return f"{share} the {match.n_rows} rows of {checked.table}"


def statement_lines(checked: Checked) -> Iterator[tuple[str, str]]:
    """Lines of the statement, with what only the table can tell."""
    match, verdict = checked.match, checked.verdict
    known = match is not None and match.difference is None
    for label, text in checked.statement.lines():
        if label == "rows" and known:
            yield label, f"{rows_text(checked)}, {text}"
        else:
            yield label, text
        if label == "features" and known and match is not None and match.left_out:
            yield "LEFT OUT", f"{len(match.left_out)} columns: {listing(match.left_out)}"
    text = f"a gap of at most {PROOF_TOLERANCE:g} counts as optimal"
    if not checked.reason:
        text += f": this structure {'is' if verdict.gap <= PROOF_TOLERANCE else 'may not be'}"
    yield "tolerance", text


def _origin(checked: Checked) -> str:
    """Who said what is to be proved."""
    given = checked.asked if checked.table is None else ["--data", *checked.asked]
    if not given:
        return (
            "All of this is what the certificate says of itself. Compare it with what you want to "
            "be proved, or say it: --data, --model, --gamma, --max-parents, ..., --strict."
        )
    text = f"Checked against what you gave: {', '.join(given)}."
    if not checked.reason and checked.reservations:
        text += " The reservations are about what you did not give: say it, in the words of fit."
    return text


def read_rows(table: TableOptions) -> tuple[LabelledTable, str]:
    """The rows with a class, and the column that usually is it: of a file the last one."""
    from marginbn.cli.data import is_file_name, labelled_rows, load_source
    from marginbn.datasets import load_dataset

    source = load_source(table)
    usual = source.train.names[-1]
    if not is_file_name(table.table):
        usual = load_dataset(table.table).target
    return labelled_rows(source.train, source.target), usual


def compare_data(
    wanted: Data, rows: LabelledTable, fitted: FittedOptions, has_quartiles: bool = False
) -> TableMatch:
    """Whether the table holds the data of the certificate.

    ``has_quartiles`` says that numbers without a cut have quartiles for bins, as where the class is
    a parent of every feature.
    """
    from marginbn.cli.data import encode_rows
    from marginbn.data.preparation import TableSettings
    from marginbn.proof.definition import define_data

    names = rows.features.names
    left_out = tuple(name for name in names if name not in wanted.names[1:])
    rows = _known_columns(rows, wanted)
    missing: Any = fitted.missing.value
    weights = parse_class_weight(fitted.class_weight)
    settings = TableSettings(  # the certificate knows the columns
        missing=missing, class_weight=weights, keep_identifiers=True
    )
    encoded = encode_rows(rows, settings, has_quartiles)
    found = define_data(encoded)
    if found.fingerprint() != wanted.fingerprint():
        return TableMatch(_difference(wanted, found), 0, rows.n_rows, left_out)
    missed = rows.n_rows - encoded.n_samples
    return TableMatch(None, encoded.n_samples, rows.n_rows, left_out, missed)


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
