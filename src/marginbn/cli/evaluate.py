"""``marginbn evaluate``: cross-validated accuracy, next to naive Bayes and TAN."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli import options
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
    from marginbn.cli.data import load_rows

    problem = options.with_method(problem, search)
    chosen = problem.method or options.Method.BN
    entrants = list(dict.fromkeys([chosen, options.Method.NAIVE_BAYES, options.Method.TAN]))
    makers = {method: _maker(method, problem, search) for method in entrants}
    rows = load_rows(table)
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
    is_done = chosen is options.Method.BN or scores[chosen].all_proved
    return DONE if is_done else OPEN_GAP


def _maker(
    method: options.Method, problem: options.ProblemOptions, search: options.SearchOptions
) -> Any:
    """A function that makes a fresh classifier; wrong options are refused here and now.

    The method asked for gets all options, a baseline those that every classifier has.
    """
    from sklearn.base import clone

    if method is problem.method:
        classifier = options.build_classifier(problem, replace(search, jobs=None))
    else:
        common = {name: getattr(problem, name) for name in ("smoothing", "missing", "unseen")}
        classifier = options.build_classifier(options.ProblemOptions(method=method, **common))
    return lambda: clone(classifier)


def _reporter(method: options.Method, n_folds: int, quiet: bool) -> Callable[[FoldScore], None]:
    """A line on stderr for each fold."""
    number = count(1)

    def report(fold: FoldScore) -> None:
        about = f"fold {next(number)} of {n_folds}, accuracy {percent(fold.accuracy)}"
        ending = f", {fold.status.replace('_', ' ')}, gap {percent(fold.gap)}"
        ending += f", {seconds(fold.seconds)}"
        note(f"{method}: {about}{'' if method is options.Method.BN else ending}", quiet)

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
        is_searched = method is not options.Method.BN  # which claims no optimum
        ending = [percent(result.max_gap), seconds(time)] if is_searched else ["", ""]
        table.append([str(method), percent(result.mean), interval, *ending])
    title = f"{folds} folds of {rows.n_rows} rows, {rows.features.n_columns} features"
    return "\n".join([f"{title}; 95 % intervals", "", *align(table)])
