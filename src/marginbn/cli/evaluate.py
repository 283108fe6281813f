"""``marginbn evaluate``: cross-validated accuracy, next to naive Bayes and TAN."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli import options
from marginbn.cli.inspect_table import look_at, tell_hints
from marginbn.cli.running import DONE, OPEN_GAP, note, print_json, print_text
from marginbn.network.wording import align, percent, seconds

if TYPE_CHECKING:
    from marginbn.classifiers.evaluation import FoldScore, FoldScores
    from marginbn.data.labelled import LabelledTable


def evaluate(
    table: options.TableOptions,
    problem: options.ProblemOptions,
    search: options.SearchOptions,
    folds: Annotated[int, typer.Option(metavar="N", help="Number of folds.", min=2)] = 5,
    json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Cross-validate a method on TABLE, beside naive Bayes and TAN.

    Everything is learned anew in each fold, discretisation included. Intervals are 95 % Student t
    intervals over the folds.
    """
    from marginbn.classifiers.evaluation import cross_validate
    from marginbn.cli.data import date_kinds, load_rows

    entrants = list(dict.fromkeys([problem.method, options.Method.NAIVE_BAYES, options.Method.TAN]))
    kinds = date_kinds(table)
    makers = {method: _maker(method, problem, search, kinds) for method in entrants}
    rows = load_rows(table)
    tell_hints(look_at(makers[problem.method](), rows), quiet)
    scores = {}
    for method, make in makers.items():
        report = _reporter(method, folds, quiet or method is not problem.method)
        scores[method] = cross_validate(
            make, rows.features, rows.labels, folds, search.seed, search.jobs, on_fold=report
        )
    if json:
        print_json({"n_rows": rows.n_rows, "folds": folds, "methods": _records(scores)})
    else:
        print_text(_describe(scores, rows, folds))
    return DONE if scores[problem.method].all_proved else OPEN_GAP


def _maker(
    method: options.Method,
    problem: options.ProblemOptions,
    search: options.SearchOptions,
    column_kinds: Any,
) -> Any:
    """A function that makes a fresh classifier; wrong options are refused here and now.

    The method asked for gets all options, a baseline those that every classifier has.
    """
    from sklearn.base import clone

    if method is problem.method:
        classifier = options.build_classifier(problem, replace(search, jobs=None))
    else:
        common = {name: getattr(problem, name) for name in options.SHARED}
        classifier = options.build_classifier(options.ProblemOptions(method=method, **common))
    classifier.set_params(column_kinds=column_kinds)
    return lambda: clone(classifier)


def _reporter(method: options.Method, n_folds: int, quiet: bool) -> Callable[[FoldScore], None]:
    """A line on stderr for each fold."""
    number = count(1)

    def report(fold: FoldScore) -> None:
        about = f"fold {next(number)} of {n_folds}, accuracy {percent(fold.accuracy)}"
        ending = f"{fold.status.replace('_', ' ')}, gap {percent(fold.gap)}"
        note(f"{method}: {about}, {ending}, {seconds(fold.seconds)}", quiet)

    return report


def _records(scores: dict[options.Method, FoldScores]) -> dict[str, Any]:
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


def _describe(scores: dict[options.Method, FoldScores], rows: LabelledTable, folds: int) -> str:
    table = [["method", "accuracy", "+-", "largest gap", "search"]]
    for method, result in scores.items():
        time = sum(fold.seconds for fold in result.folds)
        interval = f"{100 * result.half_width:.2f}"
        table.append(
            [str(method), percent(result.mean), interval, percent(result.max_gap), seconds(time)]
        )
    title = f"{folds} folds of {rows.n_rows} rows, {rows.features.n_columns} features"
    return "\n".join([f"{title}; 95 % intervals", "", *align(table)])
