"""Commands on a table: ``inspect`` (what it holds) and ``evaluate`` (cross-validated quality)."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

from marginbn.cli import options
from marginbn.cli.running import DONE, OPEN_GAP, note, print_json, print_text, text_width
from marginbn.exceptions import DataWarning
from marginbn.network.wording import align, percent, seconds, share

if TYPE_CHECKING:
    from marginbn.classifiers.evaluation import FoldScore, FoldScores
    from marginbn.data.labelled import LabelledTable


def inspect(
    table: options.TableOptions,
    missing: options.MissingOption = None,
    json: options.JsonOption = False,
) -> None:
    """Report what TABLE holds and what a fit would make of it.

    Kinds, missing values, identifiers, empty and constant columns, rare categories and classes,
    rows that each treatment of missing values would drop, parameters compared with rows. For a
    file without --target: what `marginbn learn` would make of it, where no column is a class.
    """
    from marginbn.cli.data import feature_kinds, is_file_name, load_features, load_rows
    from marginbn.data.inspection import inspect_data, inspect_rows, prepare_quietly

    kinds = feature_kinds(table)
    if table.target is None and is_file_name(table.table):
        given: Any = {} if missing is None else {"missing": missing}
        report = inspect_data(load_features(table), column_kinds=kinds, **given)
    else:
        model = options.ModelOptions(missing=missing)
        classifier = options.build_classifier(model).set_params(column_kinds=kinds)
        rows = prepare_quietly(load_rows(table), classifier.table_settings())
        report = inspect_rows(rows)
    if json:
        print_json(report.to_dict())
    else:
        print_text(options.in_options(str(report)))


def evaluate(
    table: options.TableOptions,
    model: options.ModelOptions,
    search: options.SearchOptions,
    folds: Annotated[
        int,
        options.data_option(metavar="N", help="Number of folds.", min=2),
    ] = 5,
    seed: Annotated[
        int,
        options.data_option(metavar="N", help="Seed of the folds.", min=0),
    ] = 0,
    json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Cross-validate a method on TABLE, next to simpler ones.

    These are naive Bayes, TAN, logistic regression and the most frequent class; next to the default
    method also the paper's. Everything is learned from scratch in each fold, discretisation
    included. Intervals are 95 % Student t intervals over the folds.
    """
    from sklearn.base import clone

    from marginbn.classifiers import MaxMarginBNClassifier
    from marginbn.classifiers.evaluation import cross_validate
    from marginbn.cli.data import feature_kinds, load_rows, prepare, print_hints
    from marginbn.report.comparison import simpler_methods

    chosen, (workers, _) = str(model.method), options.parse_jobs(search.jobs)
    # workers are for the folds; a cluster works on each search
    alone = search if workers is None else replace(search, jobs=None)
    own = options.build_classifier(model, alone).set_params(column_kinds=feature_kinds(table))
    shared = {key: own.get_params()[key] for key in ("column_kinds", "missing", "class_weight")}
    makers: dict[str, Any] = {chosen: partial(clone, own)}
    if chosen == "bn":
        makers["max-margin"] = partial(MaxMarginBNClassifier, **shared)
    makers |= simpler_methods(own, own.column_kinds)
    rows = load_rows(table)
    print_hints(prepare(own, rows), quiet)
    scores: dict[str, FoldScores] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # what is done with the data was told already
        for method, make in makers.items():
            report = _reporter(method, folds, quiet or method != chosen)
            scores[method] = cross_validate(
                make, rows.features, rows.labels, folds, seed, workers, report
            )
    if json:
        print_json({"n_rows": rows.n_rows, "folds": folds, "methods": _records(scores)})
    else:
        print_text(_describe(scores, rows, folds, chosen))
    return DONE if scores[chosen].all_closed else OPEN_GAP


def _reporter(method: str, n_folds: int, quiet: bool) -> Callable[[FoldScore], None]:
    """A line on stderr for each fold."""
    number = count(1)

    def report(fold: FoldScore) -> None:
        about = f"fold {next(number)} of {n_folds}, accuracy {percent(fold.accuracy)}"
        ending = f", {fold.status.replace('_', ' ')}, gap {percent(fold.gap)}"
        ending += f", {seconds(fold.seconds)}"
        note(f"{method}: {about}{ending}", quiet)

    return report


def _records(scores: dict[str, FoldScores]) -> dict[str, Any]:
    return {
        str(method): {
            "mean": result.mean,
            "half_width": result.half_width,
            "all_proved": result.all_proved,
            "quality": result.quality.to_dict(),
            "folds": [asdict(f) | {"gap": f.gap if f.gap < inf else None} for f in result.folds],
        }
        for method, result in scores.items()
    }


def _describe(scores: dict[str, FoldScores], rows: LabelledTable, folds: int, method: str) -> str:
    from marginbn.report.comparison import LOGISTIC, MAJORITY

    own = scores[method].quality
    head = ["method", "accuracy", "+-", "balanced", "AUC", "log loss", "Brier", "gap", "search"]
    table = [head]
    for name, result in scores.items():
        time = sum(fold.seconds for fold in result.folds)
        interval = f"{100 * result.half_width:.2f}"
        measured = result.quality
        area = "-" if measured.auc is None else f"{measured.auc:.4f}"
        measures = [percent(measured.balanced_accuracy), area]
        measures += [f"{measured.log_loss:.4f}", f"{measured.brier:.4f}"]
        is_network = name not in (LOGISTIC, MAJORITY)  # which claim nothing
        ending = [percent(result.max_gap), seconds(time)] if is_network else ["", ""]
        table.append([str(name), percent(result.mean), interval, *measures, *ending])
    title = f"{folds} folds of {rows.n_rows} rows, {rows.features.n_columns} features"
    lines = [*_verdict(scores, method), "", f"{title}; 95 % intervals", "", *align(table)]
    lines += ["", f"All rows, each predicted by a fold of {method} that did not see it", ""]
    return "\n".join([*lines, *own.lines()])


def _verdict(scores: dict[str, FoldScores], method: str) -> list[str]:
    """How good the searches were, where there were any, and how good the classifiers are."""
    wrap = partial(textwrap.wrap, width=text_width(), break_on_hyphens=False)
    own, (*others, guess) = scores[method], [name for name in scores if name != method]
    best = max(others, key=lambda name: scores[name].mean)
    quality = (
        f"Accuracy of {method} on held-out rows: {share(own.mean, own.half_width)} "
        f"({best}: {share(scores[best].mean)}, {guess}: {share(scores[guess].mean)})."
    )
    if method == "naive-bayes":
        return wrap(quality)
    search = f"The searches of {method} left gaps of up to {percent(own.max_gap)}."
    if own.all_proved:
        search = f"Every search of {method} ended with a proof of optimality."
    return [*wrap(search), *wrap(quality)]
