"""``marginbn evaluate``: cross-validated accuracy, next to naive Bayes and TAN."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli.options import (
    JsonOption,
    Method,
    ProblemOptions,
    QuietOption,
    SearchOptions,
    TableOptions,
    build_classifier,
)
from marginbn.cli.running import DONE, OPEN_GAP, note, print_json, print_text
from marginbn.network.wording import align, percent, seconds

if TYPE_CHECKING:
    from marginbn.classifiers.evaluation import FoldScore, FoldScores
    from marginbn.data.labelled import LabelledTable


def evaluate(
    table: TableOptions,
    problem: ProblemOptions,
    search: SearchOptions,
    folds: Annotated[int, typer.Option(metavar="N", help="Number of folds.", min=2)] = 5,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Cross-validate a method on TABLE, beside naive Bayes and TAN.

    Everything is learned anew in each fold, discretisation included. Intervals are 95 % Student t
    intervals over the folds.
    """
    from marginbn.classifiers.evaluation import cross_validate
    from marginbn.cli.data import load_rows

    entrants = list(dict.fromkeys([problem.method, Method.NAIVE_BAYES, Method.TAN]))
    makers = {method: _maker(method, problem, search) for method in entrants}
    rows = load_rows(table)
    scores = {}
    for method, make in makers.items():
        report = _Reporter(method, folds, quiet or method is not problem.method)
        scores[method] = cross_validate(
            make, rows.features, rows.labels, folds, search.seed, search.jobs, on_fold=report
        )
    if json:
        print_json({"n_rows": rows.n_rows, "folds": folds, "methods": _records(scores)})
    else:
        print_text(_describe(scores, rows, folds))
    return DONE if scores[problem.method].all_proved else OPEN_GAP


def _maker(method: Method, problem: ProblemOptions, search: SearchOptions) -> Any:
    """A function that makes a fresh classifier; wrong options are refused here and now.

    The method asked for gets all options, a baseline those that every classifier has.
    """
    from sklearn.base import clone

    if method is problem.method:
        classifier = build_classifier(problem, replace(search, jobs=None))
    else:
        common = {name: getattr(problem, name) for name in ("smoothing", "missing", "unseen")}
        classifier = build_classifier(ProblemOptions(method=method, **common))
    return lambda: clone(classifier)


class _Reporter:
    """A line on stderr for each fold."""

    def __init__(self, method: Method, n_folds: int, quiet: bool) -> None:
        self._method, self._n_folds, self._quiet = method, n_folds, quiet
        self._done = 0

    def __call__(self, fold: FoldScore) -> None:
        self._done += 1
        note(
            f"{self._method}: fold {self._done} of {self._n_folds}, accuracy "
            f"{percent(fold.accuracy)}, {fold.status.replace('_', ' ')}, gap {percent(fold.gap)}, "
            f"{seconds(fold.seconds)}",
            self._quiet,
        )


def _records(scores: dict[Method, FoldScores]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        str(method): {
            "mean": result.mean,
            "half_width": result.half_width,
            "all_proved": result.all_proved,
            "folds": [_finite(asdict(fold)) for fold in result.folds],
        }
        for method, result in scores.items()
    }


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    return record | {"gap": record["gap"] if record["gap"] < float("inf") else None}


def _describe(scores: dict[Method, FoldScores], rows: LabelledTable, folds: int) -> str:
    table = [["method", "accuracy", "+-", "largest gap", "search"]]
    for method, result in scores.items():
        time = sum(fold.seconds for fold in result.folds)
        interval = f"{100 * result.half_width:.2f}"
        table.append(
            [str(method), percent(result.mean), interval, percent(result.max_gap), seconds(time)]
        )
    title = f"{folds} folds of {rows.n_rows} rows, {rows.features.n_columns} features"
    return "\n".join([f"{title}; 95 % intervals", "", *align(table)])
