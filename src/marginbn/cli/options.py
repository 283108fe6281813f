"""Options that several commands share, and the unfitted classifier they ask for.

None stands for "not given": the classifier's own default applies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from marginbn.cli.hints import in_options, option_name
from marginbn.exceptions import InputError

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier


class Method(StrEnum):
    """Ways to find the structure."""

    MAX_MARGIN = "max-margin"
    MAX_MARGIN_CV = "max-margin-cv"
    GENERATIVE = "generative"
    TAN = "tan"
    NAIVE_BAYES = "naive-bayes"


DEFAULT_METHOD = Method.MAX_MARGIN_CV
"""What ``marginbn fit`` and ``marginbn evaluate`` do if nothing else is said."""

# The names of registries, written down so that --help need not import the registries; a test
# compares them with the registries, and the defaults in help texts with the classifiers' own.
Margin = StrEnum("Margin", "MULTICLASS BINARY")
ClassArcs = StrEnum("ClassArcs", "FREE ALL")
Score = StrEnum("Score", "MDL BIC AIC LOGLIK BDEU K2")
Missing = StrEnum("Missing", "AUTO DROP STATE ERROR")
Unseen = StrEnum("Unseen", "MISSING ERROR")
Identifiers = StrEnum("Identifiers", "IGNORE USE ERROR")

DEFAULT_HOLDOUT = 0.2
"""Share of the rows that ``marginbn fit`` holds out if nothing else is said."""

MAX_STATES = 50
"""As in marginbn.data.preparation; a test compares them."""

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, ARFF (also .gz) or Parquet file, or the name of a data set, such as iris.",
        show_default=False,
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="File written by `marginbn fit --output`.")
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="Separator of a text file, if not found out; ' ' is any number.",
    ),
]
EncodingOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Encoding of a text file, such as latin-1. [default: utf-8]",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object with all digits on stdout.")
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")
]


@dataclass(frozen=True)
class TextOptions:
    """How to read a text file."""

    delimiter: DelimiterOption = None
    encoding: EncodingOption = "utf-8"


PLAIN_TEXT = TextOptions()


@dataclass(frozen=True)
class TableOptions:
    """Which table, and how to read it."""

    table: TableArgument
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="NAME", help="Column that holds the class. Needed for files."
        ),
    ] = None
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL=KIND",
            help="Read a column as numeric, categorical, date, day-first or month-first "
            "(31.5.2024 or 5/31/2024: year, month, weekday), amount ($1,234.50, 12 %, 80 kg) or "
            "decimal-comma (1.234,50); may be repeated. Default: whole "
            "numbers with at most ten values and text are categorical, texts that are amounts "
            "numbers.",
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="Leave a column out; may be repeated."),
    ] = None
    delimiter: DelimiterOption = None
    encoding: EncodingOption = "utf-8"

    @property
    def text(self) -> TextOptions:
        """How to read it if it is a text file, and those beside it."""
        return TextOptions(self.delimiter, self.encoding)


STDIN = "-"


@dataclass(frozen=True)
class RowOptions:
    """Which rows a saved classifier is asked about, and how to read them."""

    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="CSV, TSV, ARFF (also .gz) or Parquet file, - for CSV on stdin, or the name of a "
            "data set.",
            show_default=False,
        ),
    ]
    allow_missing_columns: Annotated[
        bool,
        typer.Option(
            "--allow-missing-columns",
            help="Sum out features that the table does not have, instead of refusing it.",
        ),
    ] = False
    delimiter: DelimiterOption = None
    encoding: EncodingOption = "utf-8"

    @property
    def is_stream(self) -> bool:
        """Whether rows come through a pipe, as CSV that can be read only once: ``-``, /dev/stdin,
        or what a shell makes of ``<(command)``.
        """
        path = Path(self.table)
        return self.table == STDIN or path.is_fifo() or self.table == "/dev/stdin"


class GammaOptions(Protocol):
    """Options that name gamma, in one of two ways."""

    @property
    def gamma(self) -> float | None:
        """The log margin."""

    @property
    def p(self) -> float | None:
        """The probability."""


@dataclass(frozen=True)
class ProblemOptions:
    """What is to be maximised over which structures."""

    method: Annotated[
        Method | None,
        typer.Option(
            help="How to find the structure; max-margin-cv also chooses gamma and the number of "
            "parents by validation. [default: max-margin-cv]",
        ),
    ] = None
    margin: Annotated[
        Margin | None, typer.Option(help="Margin of the max-margin methods. [default: multiclass]")
    ] = None
    gamma: Annotated[
        float | None,
        typer.Option(metavar="G", help="Desired log margin. [default: log 9, or chosen by -cv]"),
    ] = None
    p: Annotated[
        float | None,
        typer.Option(
            "--p", metavar="P", help="The same as a probability: gamma = log(p / (1 - p))."
        ),
    ] = None
    max_parents: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Parents per variable at most, the class counted. [default: 2]"
        ),
    ] = None
    score: Annotated[
        Score | None, typer.Option(help="Score of the generative method. [default: mdl]")
    ] = None
    unrestricted: Annotated[
        bool,
        typer.Option(
            "--unrestricted", help="Generative method: parents need not include the class."
        ),
    ] = False
    smoothing: Annotated[
        float | None,
        typer.Option(metavar="S", help="Added to every count. [default: 1]"),
    ] = None
    scoring: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What max-margin-cv chooses by: accuracy, log_loss or a scorer of scikit-learn. "
            "[default: accuracy]",
        ),
    ] = None
    require: Annotated[
        list[str] | None,
        typer.Option(metavar='"A->B"', help="Arc that must be there; may be repeated."),
    ] = None
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar='"A->B"', help="Arc that must not be there; may be repeated."),
    ] = None
    tier: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL,COL",
            help="Columns of one time; repeated in the order of time. No arc leads back; columns "
            "that no tier names are free.",
        ),
    ] = None
    missing: Annotated[
        Missing | None,
        typer.Option(help="Training rows with missing values. [default: auto]"),
    ] = None
    unseen: Annotated[
        Unseen | None,
        typer.Option(help="Categories never seen in training. [default: missing]"),
    ] = None
    identifiers: Annotated[
        Identifiers | None,
        typer.Option(help="Columns in which nearly every row has its own value. [default: ignore]"),
    ] = None
    max_states: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help='States of a column at most, the rarest become "other"; 0 for no limit. '
            f"[default: {MAX_STATES}]",
        ),
    ] = None
    class_weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="W",
            help='"balanced", or CLASS=WEIGHT, which may be repeated. [default: all weigh one]',
        ),
    ] = None


SHARED = (
    "smoothing",
    "missing",
    "unseen",
    "identifiers",
    "max_states",
    "class_weight",
)
"""Options of a problem that every classifier has."""


@dataclass(frozen=True)
class SearchOptions:
    """How the search goes and when it ends."""

    solver: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="auto, branch_bound, branch_cut, dp or highs. [default: auto]",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Seconds for a fit, reading included; for learn (where it is 50) and solve those "
            "of the search. 0 for no limit. [default: 10]",
        ),
    ] = None
    gap: Annotated[
        float | None,
        typer.Option(
            metavar="G",
            help="Relative gap at which to stop; 1e-6 for a proof, as learn has it by default. "
            "[default: 1e-4, or 1e-6 with --certificate]",
        ),
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of everything random.", min=0)] = 0
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Workers; -1 for all cores. [default: 1]")
    ] = None
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="BYTES",
            help="Memory for the search, like 2GB. [default: most of what is left]",
        ),
    ] = None
    rows: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Margin rows that a search works with: all, groups or auto; bound and gap "
            "are those of all rows. [default: auto]",
        ),
    ] = None
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Search on the Dask cluster of this address, or on processes of this machine: "
            "local.",
        ),
    ] = None


_CLASSES = {
    Method.MAX_MARGIN: "MaxMarginBNClassifier",
    Method.MAX_MARGIN_CV: "MaxMarginBNClassifierCV",
    Method.GENERATIVE: "GenerativeBNClassifier",
    Method.TAN: "TANClassifier",
    Method.NAIVE_BAYES: "NaiveBayesClassifier",
}


def build_classifier(
    problem: ProblemOptions, search: SearchOptions | None = None
) -> BaseBNClassifier:
    """The classifier that the options ask for; wrong values are usage errors."""
    import marginbn

    method = problem.method or DEFAULT_METHOD
    cls: type[BaseBNClassifier] = getattr(marginbn, _CLASSES[method])
    known = cls().get_params(deep=False).keys()
    given = _given_parameters(replace(problem, method=method), search)
    for name in given:
        if name not in known:
            raise typer.BadParameter(
                f"has no meaning with --method {method}",
                param_hint=option_name(name),
            )
    if search is not None and "random_state" in known:
        given["random_state"] = search.seed
    classifier = cls(**given)
    try:
        classifier._check_parameters()
    except InputError as error:
        raise typer.BadParameter(in_options(str(error))) from None
    return classifier


PREPARATION = ("missing", "identifiers", "max_states")
"""Parameters that say what becomes of a raw table, class or none."""


def preparation_parameters(problem: ProblemOptions) -> dict[str, Any]:
    """Those that were given, where there is no class; all other options need one."""
    given = _given_parameters(problem, None)
    if problem.method is not None:
        given["method"] = problem.method
    if problem.gamma is None and "gamma" in given:
        given["p"] = given.pop("gamma")
    for name in given:
        if name not in PREPARATION:
            raise typer.BadParameter(
                "needs a class: say which column holds it, as in --target class",
                param_hint=option_name(name),
            )
    return given


def _given_parameters(problem: ProblemOptions, search: SearchOptions | None) -> dict[str, Any]:
    """Constructor parameters for the options that were given."""
    gamma, k = resolve_gamma(problem), problem.max_parents
    settings: dict[str, Any] = {"gamma": gamma, "max_parents": k}
    if problem.method is Method.MAX_MARGIN_CV:  # which takes grids
        parents = None if k is None else tuple(range(1, k + 1)) or (k,)
        settings = {"gammas": None if gamma is None else [gamma], "max_parents": parents}
    given = settings | {
        "margin": _text(problem.margin),
        "score": _text(problem.score),
        "class_restricted": False if problem.unrestricted else None,
        "smoothing": problem.smoothing,
        "scoring": problem.scoring,
        "required_arcs": parse_arcs(problem.require, "--require"),
        "forbidden_arcs": parse_arcs(problem.forbid, "--forbid"),
        "tiers": [list(_names(tier) or ()) for tier in problem.tier or ()] or None,
        "missing": _text(problem.missing),
        "unseen": _text(problem.unseen),
        "identifiers": _text(problem.identifiers),
        "class_weight": parse_class_weight(problem.class_weight),
    }
    if search is not None:
        given |= {"solver": search.solver, "gap_tolerance": search.gap}
        given |= {"n_jobs": search.jobs, "memory_limit": search.memory_limit}
        given |= {"rows": search.rows, "dask": search.dask}
    given = {name: value for name, value in given.items() if value is not None}
    if problem.max_states is not None:
        given["max_states"] = problem.max_states or None  # 0 stands for no limit
    if search is not None and search.time_limit is not None:
        given["time_limit"] = search.time_limit or None  # 0 stands for no limit
        if problem.method is Method.MAX_MARGIN_CV:
            given["total_time_limit"] = given["time_limit"]
    return given


def resolve_gamma(problem: GammaOptions) -> float | None:
    """gamma as given, or as a probability."""
    if problem.gamma is not None and not problem.gamma > 0:
        raise typer.BadParameter(
            f"must be a positive number, got {problem.gamma}", param_hint="--gamma"
        )
    if problem.p is None:
        return problem.gamma
    if problem.gamma is not None:
        raise typer.BadParameter("give either --gamma or --p, not both", param_hint="--p")
    from marginbn.classifiers.search import gamma_from_probability

    try:
        return gamma_from_probability(problem.p)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--p") from None


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


def _names(text: str | None) -> tuple[str, ...] | None:
    """Names with commas between."""
    return None if text is None else tuple(name.strip() for name in text.split(","))


def _text(choice: Any) -> str | None:
    return None if choice is None else str(choice)
