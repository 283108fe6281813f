"""Options that several commands share, and the unfitted classifier they ask for.

None means "not given": the classifier's own default applies. A panel is a heading of --help.
Messages of the library name arguments of Python, ``missing='state'``; :func:`in_options` writes
them as they are typed here, ``--missing state``.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from marginbn.exceptions import InputError

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier
    from marginbn.solvers import Search

DATA, MODEL, SEARCH, OUTPUT = "Data", "Model", "Search", "Output"
"""Panels."""

data_option = partial(typer.Option, rich_help_panel=DATA)
model_option = partial(typer.Option, rich_help_panel=MODEL)
search_option = partial(typer.Option, rich_help_panel=SEARCH)
output_option = partial(typer.Option, rich_help_panel=OUTPUT)
file_option = partial(output_option, "--output", "-o", metavar="FILE")

# The names of registries, written down so that --help need not import the registries; a test
# compares them with the registries, and the defaults in help texts with the classifiers' own.
Method = Literal["bn", "max-margin", "max-margin-cv", "generative", "tan", "naive-bayes"]
Score = Literal["mdl", "bic", "aic", "loglik", "bdeu", "k2"]
Missing = Literal["auto", "drop", "state", "error"]
Solver = Literal["auto", "branch_bound", "branch_cut", "dp", "highs"]

CLASSES: dict[Method, str] = {
    "bn": "BNClassifier",
    "max-margin": "MaxMarginBNClassifier",
    "max-margin-cv": "MaxMarginBNClassifierCV",
    "generative": "GenerativeBNClassifier",
    "tan": "TANClassifier",
    "naive-bayes": "NaiveBayesClassifier",
}
"""The estimator of each method."""

DEFAULT_HOLDOUT = 0.2
"""Share of the rows that ``marginbn fit`` holds out to measure quality."""

STDIN = "-"

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, ARFF, Parquet or Arrow file, or the name of a data set, e.g. iris.",
        show_default=False,
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="File written by `marginbn fit` or `learn`.")
]
KindOption = Annotated[
    list[str] | None,
    data_option(
        metavar="COL=KIND",
        help="Read a column as numeric, categorical, date, day-first, month-first, amount or "
        "decimal-comma, e.g. zip=categorical (repeatable).",
    ),
]
DropOption = Annotated[
    list[str] | None, data_option(metavar="COL", help="Leave a column out (repeatable).")
]
EncodingOption = Annotated[
    str, data_option(metavar="NAME", help="Encoding of text files, e.g. latin-1.")
]
MissingOption = Annotated[
    Missing | None,
    data_option(
        help="Training rows with missing values: drop them, make missing a state, choose by column "
        "(auto), or refuse. [default: auto]"
    ),
]
DropMissingOption = Annotated[
    Missing,
    data_option(
        help="Rows with missing values: drop them, make missing a state, choose by column (auto), "
        "or refuse."
    ),
]
BinsOption = Annotated[
    int, data_option(metavar="N", min=2, help="Bins of numeric columns, cut at quantiles.")
]
MaxParentsOption = Annotated[
    int | None,
    model_option(metavar="K", help="Most parents of a variable, the class included. [default: 2]"),
]
POption = Annotated[
    float | None,
    model_option(
        "--p",
        metavar="P",
        help="Margin to aim for as a probability: gamma = log(p / (1 - p)). "
        "Not with --method bn. [default: 0.9, or validated]",
    ),
]
RequireOption = Annotated[
    list[str] | None,
    model_option(metavar='"A->B"', help="Arc that must be present (repeatable)."),
]
ForbidOption = Annotated[
    list[str] | None,
    model_option(metavar='"A->B"', help="Arc that must be absent (repeatable)."),
]
JobsOption = Annotated[
    int | None, search_option(metavar="N", help="Workers; -1 for all cores. [default: 1]")
]
CheckpointOption = Annotated[
    Path | None,
    search_option(
        metavar="FILE",
        help="Save the search state here periodically; rerun the same command to resume.",
    ),
]
CertificateOption = Annotated[
    Path | None,
    output_option(metavar="FILE", help="Write a proof that `marginbn verify` can check."),
]
ModelOutputOption = Annotated[Path | None, file_option(help="Save the model as JSON.")]
JsonOption = Annotated[
    bool, output_option("--json", help="Print one JSON object with all digits on stdout.")
]
QuietOption = Annotated[
    bool, output_option("--quiet", "-q", help="Print no progress and no notes on stderr.")
]


@dataclass(frozen=True)
class TableOptions:
    """Which table with a class, and how to read it."""

    table: TableArgument
    target: Annotated[
        str | None,
        data_option(
            "--target",
            "-t",
            metavar="NAME",
            help="Column that holds the class. [default: that of a named data set]",
        ),
    ] = None
    kind: KindOption = None
    drop: DropOption = None
    encoding: EncodingOption = "utf-8"

    def named_target(self) -> str:
        """The column of the class, which a file needs."""
        if self.target is None:
            raise typer.BadParameter(
                "name the column that holds the class, as in --target class", param_hint="--target"
            )
        return self.target


@dataclass(frozen=True)
class RowOptions:
    """Which rows a saved classifier is asked about, and how to read them."""

    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="CSV, TSV, ARFF, Parquet or Arrow file, - for CSV on stdin, or the name of a data "
            "set.",
            show_default=False,
        ),
    ]
    allow_missing_columns: Annotated[
        bool,
        data_option(
            "--allow-missing-columns",
            help="Treat columns that the table lacks as missing instead of refusing it.",
        ),
    ] = False
    delimiter: Annotated[
        str | None,
        data_option(
            metavar="CHAR",
            help="Field separator of text files; ' ' matches any run of spaces. "
            "[default: detected]",
        ),
    ] = None
    encoding: EncodingOption = "utf-8"

    @property
    def is_stream(self) -> bool:
        """Whether rows come through a pipe, as CSV that can be read only once: ``-``, /dev/stdin,
        or what a shell makes of ``<(command)``.
        """
        path = Path(self.table)
        return self.table == STDIN or path.is_fifo() or self.table == "/dev/stdin"


@dataclass(frozen=True)
class ModelOptions:
    """What is learned from a table with a class."""

    missing: MissingOption = None
    method: Annotated[
        Method,
        model_option(
            help="bn: largest margin with trained probabilities; max-margin: the paper's; "
            "max-margin-cv: the same, validated; generative: best MDL score."
        ),
    ] = "bn"
    max_parents: MaxParentsOption = None
    p: POption = None
    require: RequireOption = None
    forbid: ForbidOption = None
    class_weight: Annotated[
        list[str] | None,
        model_option(
            metavar="W",
            help='Weight of a class as CLASS=WEIGHT (repeatable), or "balanced". [default: 1 each]',
        ),
    ] = None


@dataclass(frozen=True)
class SearchOptions:
    """When a search ends, and who works on it."""

    time_limit: Annotated[
        float | None,
        search_option(
            metavar="S",
            help="Most seconds for learning; 0 for no limit. [default: none, 10 for max-margin, "
            "60 for max-margin-cv]",
        ),
    ] = None
    jobs: Annotated[
        str | None,
        search_option(
            metavar="N",
            help="Workers: a number, -1 for all cores, or the address of a Dask cluster. "
            "[default: 1]",
        ),
    ] = None


@dataclass(frozen=True)
class ScoreOptions:
    """What makes a network without a class good."""

    score: Annotated[Score, model_option(help="Score of a network.")] = "bic"
    max_parents: Annotated[
        int | None,
        model_option(
            metavar="K",
            min=0,
            help="Most parents of a variable. [default: any number, or the largest that fits]",
        ),
    ] = None
    equivalent_sample_size: Annotated[
        float, model_option("--ess", metavar="S", help="Equivalent sample size of bdeu.")
    ] = 1.0


@dataclass(frozen=True)
class SolverOptions:
    """A search in the hands of an expert."""

    solver: Annotated[Solver, search_option(help="Algorithm of the search.")] = "auto"
    time_limit: Annotated[
        float,
        search_option(metavar="S", min=0, help="Most seconds for the search; 0 for no limit."),
    ] = 50.0
    gap: Annotated[
        float,
        search_option(
            metavar="G",
            min=0,
            help="Stop at this relative gap between objective and bound, as a fraction.",
        ),
    ] = 1e-6
    jobs: JobsOption = None
    seed: Annotated[
        int, search_option(metavar="N", min=0, help="Seed of the search heuristics.")
    ] = 0

    def search(self, **more: Any) -> Search:
        """Settings for the library, whose time limit may be for more than the search."""
        from marginbn.solvers import Search

        return Search(solver=self.solver, gap_tolerance=self.gap, **more)


@contextmanager
def usage_errors(option: str | None = None) -> Iterator[None]:
    """Wrong values of parameters are wrong options."""
    try:
        yield
    except InputError as error:
        raise typer.BadParameter(in_options(str(error)), param_hint=option) from None


_OF_SEARCH = ("checkpoint", "dask")
"""Fields of :class:`marginbn.Search` that have an option."""


def build_classifier(
    model: ModelOptions,
    search: SearchOptions | None = None,
    checkpoint: Path | None = None,
    certificate: Path | None = None,
) -> BaseBNClassifier:
    """The classifier that the options ask for; wrong values are usage errors."""
    import marginbn
    from marginbn.classifiers.search import gamma_from_probability

    cls: type[BaseBNClassifier] = getattr(marginbn, CLASSES[model.method])
    known = cls().get_params(deep=False).keys()
    n_jobs, address = parse_jobs(None if search is None else search.jobs)
    with usage_errors("--p"):
        gamma = None if model.p is None else gamma_from_probability(model.p)
    asked: dict[str, Any] = {
        "gamma": gamma,
        "max_parents": model.max_parents,
        "missing": model.missing,
        "required_arcs": parse_arcs(model.require, "--require"),
        "forbidden_arcs": parse_arcs(model.forbid, "--forbid"),
        "class_weight": parse_class_weight(model.class_weight),
        "n_jobs": n_jobs,
        "certificate": None if certificate is None else str(certificate),
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "dask": address,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    if search is not None and search.time_limit is not None:
        given["time_limit"] = search.time_limit or None  # 0 stands for no limit
    if model.method == "max-margin-cv":  # which chooses both itself
        if "gamma" in given:
            given["gammas"] = [given.pop("gamma")]
        if (most := model.max_parents) is not None:
            given["max_parents"] = tuple(range(1, most + 1)) or (most,)
    for name in given:
        if name not in known and not (name in _OF_SEARCH and "search" in known):
            raise typer.BadParameter(
                f"has no meaning with --method {model.method}", param_hint=option_name(name)
            )
    fields = {name: given.pop(name) for name in _OF_SEARCH if name in given}
    if fields:
        given["search"] = marginbn.Search(**fields)
    classifier = cls(**given)
    with usage_errors():
        classifier.check_parameters()
    return classifier


def parse_jobs(text: str | None) -> tuple[int | None, str | None]:
    """Number of workers, or the address of a cluster."""
    if text is None:
        return None, None
    try:
        return int(text), None
    except ValueError:
        return None, text


def parse_class_weight(texts: list[str] | None) -> str | dict[str, float] | None:
    """``balanced``, or ``CLASS=WEIGHT`` as a mapping; None if there is nothing."""
    if not texts or texts == ["balanced"]:
        return texts[0] if texts else None
    weights = {}
    for text in texts:
        label, equals, weight = text.rpartition("=")
        try:
            weights[label] = float(weight)
        except ValueError:
            equals = ""
        if not (label and equals):
            raise typer.BadParameter(
                f'write "balanced" or CLASS=WEIGHT, got {text!r}', param_hint="--class-weight"
            )
    return weights


def parse_arcs(texts: list[str] | None, option: str) -> list[tuple[str, str]] | None:
    """``A->B`` as a pair of names; None if there are none."""
    arcs = []
    for text in texts or ():
        parent, arrow, child = (part.strip() for part in text.partition("->"))
        if not (parent and arrow and child):
            raise typer.BadParameter(
                f'an arc is written "parent->child", got {text!r}', param_hint=option
            )
        arcs.append((parent, child))
    return arcs or None


# --- messages ---

OPTION_NAMES = {
    "required_arcs": "--require",
    "forbidden_arcs": "--forbid",
    "tiers": "--tier",
    "column_kinds": "--kind",
    "gap_tolerance": "--gap",
    "gamma": "--p",
    "gammas": "--p",
    "n_jobs": "--jobs",
    "dask": "--jobs",
    "n_folds": "--folds",
}
"""Options whose name is not that of the parameter."""

SAME_NAMES = (
    "class_weight",
    "encoding",
    "max_parents",
    "missing",
    "score",
    "time_limit",
)
"""Those of the others that messages speak of."""

_WITH_VALUES = "|".join((*SAME_NAMES, "gap_tolerance", "n_jobs"))
_UNMISTAKABLE = "|".join(name for name in (*SAME_NAMES, *OPTION_NAMES) if "_" in name)
_START, _END = r"(?<![\w'\"`.-])", r"(?![\w'\"`=.-]\w|[\w'\"`=])"
_CHOICE = r"'[a-z0-9-]+'"
_KIND = r"column_kinds=\{'(?P<column>[^']*)': '(?P<kind>[a-z-]+)'\}"
_TEXT = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_ARGUMENT = re.compile(
    rf"{_START}{_KIND}|{_START}(?P<name>{_WITH_VALUES})="
    rf"(?P<values>{_CHOICE}(?:(?:, | or ){_CHOICE})*|[\d.e+-]*\d)"
    rf"|{_START}(?P<work>search=Search\(work_limit=\.\.\.\))"
    rf"|{_START}X\.drop\(columns=(?P<dropped>\[{_TEXT}(?:, {_TEXT})*\])\)"
    rf"|{_START}delimiter=(?P<character>'.')"
    rf"|{_START}(?P<alone>{_UNMISTAKABLE}){_END}"
)


def option_name(parameter: str) -> str:
    """The option of a parameter.

    >>> option_name("time_limit"), option_name("n_jobs")
    ('--time-limit', '--jobs')
    """
    return OPTION_NAMES.get(parameter, f"--{parameter.replace('_', '-')}")


def in_options(message: str) -> str:
    """A message with options in place of arguments; names in quotes are left alone.

    >>> in_options("use missing='drop', 'state' or 'auto'; a larger time_limit helps")
    'use --missing drop, state or auto; a larger --time-limit helps'
    >>> in_options("column_kinds={'paid on': 'date'} makes year, month, weekday")
    "--kind 'paid on=date' makes year, month, weekday"
    >>> in_options("give delimiter=' '")
    "give --delimiter ' '"
    """
    return _ARGUMENT.sub(_as_option, message)


def _as_option(found: re.Match[str]) -> str:
    if found["alone"]:
        return option_name(found["alone"])
    if found["work"]:
        return "--method max-margin --time-limit SECONDS"
    if found["dropped"]:
        names = ast.literal_eval(found["dropped"])
        return " ".join(f"--drop {shlex.quote(name)}" for name in names)
    if found["character"]:
        return f"--delimiter {found['character']}"
    if found["kind"]:
        return f"--kind {shlex.quote(found['column'] + '=' + found['kind'])}"
    return f"{option_name(found['name'])} {found['values'].replace(chr(39), '')}"
