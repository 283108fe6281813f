"""Options that several commands share, and the unfitted classifier they ask for.

None means "not given": the classifier's own default applies. A panel is a heading of --help.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli.hints import in_options, option_name
from marginbn.exceptions import InputError

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier

DATA, MODEL, SEARCH, OUTPUT = "Data", "Model", "Search", "Output"
"""Panels."""

data_option = partial(typer.Option, rich_help_panel=DATA)
model_option = partial(typer.Option, rich_help_panel=MODEL)
search_option = partial(typer.Option, rich_help_panel=SEARCH)
output_option = partial(typer.Option, rich_help_panel=OUTPUT)


class Method(StrEnum):
    """Ways to find the structure."""

    BN = "bn"
    MAX_MARGIN = "max-margin"
    MAX_MARGIN_CV = "max-margin-cv"
    GENERATIVE = "generative"
    TAN = "tan"
    NAIVE_BAYES = "naive-bayes"


# The names of registries, written down so that --help need not import the registries; a test
# compares them with the registries, and the defaults in help texts with the classifiers' own.
Margin = StrEnum("Margin", "MULTICLASS BINARY")
ClassArcs = StrEnum("ClassArcs", "FREE ALL")
Score = StrEnum("Score", "MDL BIC AIC LOGLIK BDEU K2")
Missing = StrEnum("Missing", "AUTO DROP STATE ERROR")

DEFAULT_HOLDOUT = 0.2
"""Share of the rows that ``marginbn fit`` holds out to measure quality."""

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
    list[str] | None,
    data_option(metavar="COL", help="Leave a column out (repeatable)."),
]
EncodingOption = Annotated[
    str,
    data_option(
        metavar="NAME",
        help="Encoding of text files, e.g. latin-1. [default: utf-8]",
        show_default=False,
    ),
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
MaxParentsOption = Annotated[
    int | None,
    model_option(metavar="K", help="Most parents of a variable, the class included. [default: 2]"),
]
RequireOption = Annotated[
    list[str] | None,
    model_option(metavar='"A->B"', help="Arc that must be present (repeatable)."),
]
ForbidOption = Annotated[
    list[str] | None,
    model_option(metavar='"A->B"', help="Arc that must be absent (repeatable)."),
]
TimeLimitOption = Annotated[
    float | None,
    search_option(
        metavar="S",
        help="Seconds for learning; 0 for no limit. [default: none, of max-margin 10, of "
        "max-margin-cv 60]",
    ),
]
GapOption = Annotated[
    float | None,
    search_option(
        metavar="G", help="Stop at this relative gap between objective and bound. [default: 1e-6]"
    ),
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
OutputOption = Annotated[
    Path | None,
    output_option("--output", "-o", metavar="FILE", help="Write to this file."),
]
JsonOption = Annotated[
    bool,
    output_option("--json", help="Print one JSON object with all digits on stdout."),
]
QuietOption = Annotated[
    bool,
    output_option("--quiet", "-q", help="Print no progress and no notes on stderr."),
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


STDIN = "-"


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
    ] = Method.BN
    max_parents: MaxParentsOption = None
    p: Annotated[
        float | None,
        model_option(
            "--p",
            metavar="P",
            help="Margin to aim for as a probability: gamma = log(p / (1 - p)). "
            "Not with --method bn. [default: 0.9, or validated]",
        ),
    ] = None
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

    time_limit: TimeLimitOption = None
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

    score: Annotated[Score, model_option(help="Score of a network.")] = Score.BIC
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

    solver: Annotated[
        str | None,
        search_option(
            metavar="NAME", help="auto, branch_bound, branch_cut, dp or highs. [default: auto]"
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        search_option(metavar="S", help="Seconds at most; 0 for no limit. [default: 50]"),
    ] = None
    gap: GapOption = None
    jobs: Annotated[
        int | None,
        search_option(metavar="N", help="Workers; -1 for all cores. [default: 1]"),
    ] = None
    seed: Annotated[
        int,
        search_option(metavar="N", help="Seed of the search heuristics.", min=0),
    ] = 0


_CLASSES = {
    Method.BN: "BNClassifier",
    Method.MAX_MARGIN: "MaxMarginBNClassifier",
    Method.MAX_MARGIN_CV: "MaxMarginBNClassifierCV",
    Method.GENERATIVE: "GenerativeBNClassifier",
    Method.TAN: "TANClassifier",
    Method.NAIVE_BAYES: "NaiveBayesClassifier",
}


def build_classifier(
    model: ModelOptions,
    search: SearchOptions | None = None,
    checkpoint: Path | None = None,
    certificate: Path | None = None,
    **more: Any,
) -> BaseBNClassifier:
    """The classifier that the options ask for; wrong values are usage errors.

    ``more`` are parameters that have no option here.
    """
    import marginbn

    cls: type[BaseBNClassifier] = getattr(marginbn, _CLASSES[model.method])
    known = cls().get_params(deep=False).keys()
    given = _given_parameters(model, search) | more
    if certificate is not None:
        given["certificate"] = str(certificate)
    fields: dict[str, Any] = {} if checkpoint is None else {"checkpoint": str(checkpoint)}
    if search is not None and (address := parse_jobs(search.jobs)[1]) is not None:
        fields["dask"] = address
    unknown = [name for name in given if name not in known]
    for name in [*unknown, *([] if "search" in known else fields)]:
        raise typer.BadParameter(
            f"has no meaning with --method {model.method}", param_hint=option_name(name)
        )
    if fields:
        given["search"] = marginbn.Search(**fields)
    classifier = cls(**given)
    try:
        classifier.check_parameters()
    except InputError as error:
        raise typer.BadParameter(in_options(str(error))) from None
    return classifier


def _given_parameters(model: ModelOptions, search: SearchOptions | None) -> dict[str, Any]:
    """Constructor parameters for the options that were given."""
    given: dict[str, Any] = {
        "gamma": None if model.p is None else gamma_of(model.p),
        "max_parents": model.max_parents,
        "missing": None if model.missing is None else str(model.missing),
        "required_arcs": parse_arcs(model.require, "--require"),
        "forbidden_arcs": parse_arcs(model.forbid, "--forbid"),
        "class_weight": parse_class_weight(model.class_weight),
    }
    if search is not None:
        given["n_jobs"], _ = parse_jobs(search.jobs)
    given = {name: value for name, value in given.items() if value is not None}
    if search is not None and search.time_limit is not None:
        given["time_limit"] = search.time_limit or None  # 0 stands for no limit
    return _as_grids(given) if model.method is Method.MAX_MARGIN_CV else given


def _as_grids(given: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a classifier that chooses gamma and the number of parents itself."""
    grids = dict(given)
    if "gamma" in grids:
        grids["gammas"] = [grids.pop("gamma")]
    if "max_parents" in grids:
        most = grids["max_parents"]
        grids["max_parents"] = tuple(range(1, most + 1)) or (most,)
    return grids


def gamma_of(p: float) -> float:
    """gamma = log(p / (1 - p)) of ``--p``."""
    from marginbn.classifiers.search import gamma_from_probability

    try:
        return gamma_from_probability(p)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--p") from None


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
