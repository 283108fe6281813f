"""Options that several commands share, grouped as the commands use them.

None stands for "not given": the classifier's own default applies.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Method(StrEnum):
    """Ways to find the structure."""

    MAX_MARGIN = "max-margin"
    MAX_MARGIN_CV = "max-margin-cv"
    GENERATIVE = "generative"
    TAN = "tan"
    NAIVE_BAYES = "naive-bayes"


class Margin(StrEnum):
    """Margins of the max-margin methods."""

    MULTICLASS = "multiclass"
    BINARY = "binary"


class Score(StrEnum):
    """Scores of the generative method."""

    MDL = "mdl"
    BIC = "bic"
    AIC = "aic"
    LOGLIK = "loglik"
    BDEU = "bdeu"
    K2 = "k2"


class Missing(StrEnum):
    """What to do with missing values in training rows."""

    DROP = "drop"
    STATE = "state"
    ERROR = "error"


class Unseen(StrEnum):
    """What a category never seen in training means at prediction."""

    MISSING = "missing"
    ERROR = "error"


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, ARFF (also .gz) or Parquet file, or a data set named by "
        "`marginbn datasets`.",
        show_default=False,
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="File written by `marginbn fit --output`.")
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(metavar="CHAR", help="Separator of a text file, if it is not found out."),
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
            help="Read a column as numeric or categorical; may be repeated. Default: whole "
            "numbers with at most ten values and text are categorical.",
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="Leave a column out; may be repeated."),
    ] = None
    delimiter: DelimiterOption = None


@dataclass(frozen=True)
class ProblemOptions:
    """What is to be maximised over which structures."""

    method: Annotated[Method, typer.Option(help="How the structure is found.")] = Method.MAX_MARGIN
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
        float | None, typer.Option(metavar="S", help="Added to every count. [default: 1]")
    ] = None
    require: Annotated[
        list[str] | None,
        typer.Option(metavar='"A->B"', help="Arc that must be there; may be repeated."),
    ] = None
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar='"A->B"', help="Arc that must not be there; may be repeated."),
    ] = None
    missing: Annotated[
        Missing | None,
        typer.Option(help="Training rows with missing values. [default: drop]"),
    ] = None
    unseen: Annotated[
        Unseen | None,
        typer.Option(help="Categories never seen in training. [default: missing]"),
    ] = None


@dataclass(frozen=True)
class SearchOptions:
    """How the search goes and when it ends."""

    solver: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="auto, branch_bound, branch_cut, dp, exhaustive, highs or scip. [default: auto]",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="S", help="Seconds for the search, 0 for no limit. [default: 60]"),
    ] = None
    gap: Annotated[
        float | None,
        typer.Option(metavar="G", help="Relative gap at which to stop. [default: 1e-6]"),
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
