"""``marginbn evaluate``: cross-validated quality, next to simpler methods."""

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
from marginbn.cli.inspect_table import prepare, tell_hints
from marginbn.cli.running import DONE, OPEN_GAP, note, print_json, print_text, text_width
from marginbn.exceptions import DataWarning
from marginbn.network.wording import align, percent, seconds, share

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier
    from marginbn.classifiers.evaluation import FoldScore, FoldScores
    from marginbn.classifiers.measures import Quality
    from marginbn.data.labelled import LabelledTable


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
    method also the paper's. Everything is
    learned from scratch in each fold, discretisation included. Intervals are 95 % Student t
    intervals over the folds.
    """
    from marginbn.classifiers.evaluation import cross_validate
    from marginbn.cli.data import feature_kinds, load_rows

    chosen, (workers, _) = model.method, options.parse_jobs(search.jobs)
    paper: list[options.Method] = ["max-margin"] if chosen == "bn" else []
    entrants = list(dict.fromkeys([chosen, *paper, "naive-bayes", "tan"]))
    kinds = feature_kinds(table)
    makers: dict[str, Any] = {m: _maker(m, model, search, kinds) for m in entrants}
    rows = load_rows(table)
    tell_hints(prepare(makers[chosen](), rows), quiet)
    makers |= _baselines(makers[chosen]())
    scores: dict[str, FoldScores] = {}
    for method, make in makers.items():
        is_own = method == chosen
        report = _reporter(method, folds, quiet or not is_own)
        with warnings.catch_warnings():
            if not is_own:  # what is done with the data was told already
                warnings.simplefilter("ignore", DataWarning)
            scores[method] = cross_validate(
                make, rows.features, rows.labels, folds, seed, workers, report
            )
    if json:
        print_json({"n_rows": rows.n_rows, "folds": folds, "methods": _records(scores)})
    else:
        print_text(_describe(scores, rows, folds, chosen))
    return DONE if scores[chosen].all_closed else OPEN_GAP


def _maker(
    method: options.Method,
    model: options.ModelOptions,
    search: options.SearchOptions,
    column_kinds: Any,
) -> Any:
    """A function that makes a fresh classifier; wrong options are refused here and now.

    The method asked for gets all options, a baseline those that every classifier has.
    """
    from sklearn.base import clone

    workers, _ = options.parse_jobs(search.jobs)  # of the folds; a cluster works on each search
    alone = search if workers is None else replace(search, jobs=None)
    classifier = asked = options.build_classifier(model, alone)
    if method != model.method:
        classifier = options.build_classifier(
            options.ModelOptions(model.missing, method, class_weight=model.class_weight)
        )
    classifier.set_params(column_kinds=column_kinds, missing=asked.missing)  # the same rows for all
    return lambda: clone(classifier)


def _baselines(classifier: BaseBNClassifier) -> dict[str, Any]:
    """Makers of what is no network, with the same columns and class weights."""
    from marginbn.classifiers.evaluation import LogisticBaseline, MajorityBaseline

    settings = classifier.table_settings()
    return {
        "logistic-regression": lambda: LogisticBaseline(settings),
        "majority": lambda: MajorityBaseline(settings),
    }


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
            **({} if result.quality is None else {"quality": result.quality.to_dict()}),
            "folds": [asdict(f) | {"gap": f.gap if f.gap < inf else None} for f in result.folds],
        }
        for method, result in scores.items()
    }


def _describe(scores: dict[str, FoldScores], rows: LabelledTable, folds: int, method: str) -> str:
    own = scores[method].quality
    head = ["method", "accuracy", "+-", "balanced", "AUC", "log loss", "Brier", "gap", "search"]
    table = [head]
    for name, result in scores.items():
        time = sum(fold.seconds for fold in result.folds)
        interval = f"{100 * result.half_width:.2f}"
        measures = _measures(result.quality)
        is_network = name in options.CLASSES  # others claim nothing
        ending = [percent(result.max_gap), seconds(time)] if is_network else ["", ""]
        table.append([str(name), percent(result.mean), interval, *measures, *ending])
    title = f"{folds} folds of {rows.n_rows} rows, {rows.features.n_columns} features"
    lines = [*_verdict(scores, method), "", f"{title}; 95 % intervals", "", *align(table)]
    if own is not None:
        lines += ["", f"All rows, each predicted by a fold of {method} that did not see it", ""]
        lines += own.lines()
    return "\n".join(lines)


def _verdict(scores: dict[str, FoldScores], method: str) -> list[str]:
    """How good the searches were, where there were any, and how good the classifiers are."""
    wrap = partial(textwrap.wrap, width=text_width(), break_on_hyphens=False)
    own, guess = scores[method], scores["majority"]
    others = {name: s for name, s in scores.items() if name not in (method, "majority")}
    best = max(others, key=lambda name: others[name].mean)
    quality = (
        f"Accuracy of {method} on held-out rows: {share(own.mean, own.half_width)} "
        f"({best}: {share(others[best].mean)}, majority class: {share(guess.mean)})."
    )
    if method == "naive-bayes":
        return wrap(quality)
    search = f"The searches of {method} left gaps of up to {percent(own.max_gap)}."
    if own.all_proved:
        search = f"Every search of {method} ended with a proof of optimality."
    return [*wrap(search), *wrap(quality)]


def _measures(quality: Quality | None) -> list[str]:
    if quality is None:
        return ["-"] * 4
    area = "-" if quality.auc is None else f"{quality.auc:.4f}"
    balanced = percent(quality.balanced_accuracy)
    return [balanced, area, f"{quality.log_loss:.4f}", f"{quality.brier:.4f}"]
