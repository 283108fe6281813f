"""Raw tables that played no part in the design, every method on them in its natural way.

A folder holds NAME.csv and NAME.toml for every table:

    target = "class"             # the column to predict
    drop = ["id", "leak"]        # columns that are left out for every method (optional)
    origin = "where it is from"  # for the page (optional)

Rows without a label are left out, and so are classes with fewer than ``LEAST_ROWS`` rows. Nothing
else is done to a table: missing values stay missing and each method treats them in its own way.
Networks take the columns as they are. Boosting gets categories declared. Logistic regression, the
support vector machine and the forest get one indicator per category; means and modes, learned from
the training rows, take the place of missing values where a method cannot have them.

A unit is one method on one of three stratified folds of a table. Larger training parts are cut to
``Settings.max_train`` rows, the same for all methods.
"""

from __future__ import annotations

import itertools
import sys
import tomllib
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from experiments import machines, networks, rivals
from experiments.fitted import Fitted, Labels, Matrix
from experiments.methods import Method
from experiments.networks import Network
from experiments.origin import describe_origin
from experiments.protocol import Data, RowSplit, Spec, task_of
from experiments.records import Record, Unit, append_record, cut_torn_lines
from experiments.run import Progress, unfinished
from experiments.settings import FIRST_SEED, Settings
from experiments.unit import measure, warm_up
from marginbn import read_table
from marginbn.data.table import Table
from marginbn.exceptions import InputError

N_FOLDS = 3
LEAST_ROWS = 10
"""Classes with fewer rows are left out: three folds and their validation need some in each part."""
LARGE = 2000
"""Rows of a table from which on it counts as large."""
N_BINS = 15
"""Bins of equal width over the probability of the predicted class, for the calibration error."""
HIDDEN = 0.3
"""Share of the test values that are hidden in the comparison with missing values."""

METHODS: dict[str, Method] = {
    "bn": Method("BNClassifier", Network("BNClassifier"), cost=20.0),
    "sm": Method("max-margin, counted", networks.max_margin("multiclass"), cost=40.0),
    "sm-trained": Method(
        "max-margin, trained", networks.max_margin("multiclass", is_trained=True), cost=50.0
    ),
    "mdl": Method("MDL network", networks.mdl(), cost=3.0),
    "tan": Method("TAN", Network("TANClassifier")),
    "nb": Method("naive Bayes", Network("NaiveBayesClassifier")),
    "svm": Method("SVM", machines.support_vectors(machines.raw_inputs), cost=15.0),
    "logistic": Method("logistic", rivals.logistic, cost=3.0),
    "forest": Method("random forest", rivals.random_forest, cost=2.0),
    "lightgbm": Method("LightGBM", rivals.light_boosting, cost=0.3, needs="lightgbm"),
    "lightgbm-tuned": Method(
        "LightGBM tuned", rivals.tuned_light_boosting, "slow", 5.0, "lightgbm"
    ),
    "catboost": Method("CatBoost", rivals.cat_boosting, "slow", 20.0, "catboost"),
    "ebm": Method("EBM", rivals.explainable_boosting, "slow", 30.0, "interpret"),
}


def unseen_settings(**changes: Any) -> Settings:
    """The settings of this suite; a coarser grid for the support vector machine."""
    own: dict[str, Any] = {
        "inner_limit": 0.5,
        "final_limit": 20.0,
        "max_train": 4000,
        "max_test": 5000,
        "svm_rows": 1000,
        "sigmas": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
        "penalties": (0.25, 1.0, 4.0, 16.0),
        "hidden_shares": (HIDDEN,),
    }
    return Settings(**(own | changes))


# --- tables ---


@dataclass(frozen=True)
class RawTable:
    """One entry of the folder."""

    path: Path
    target: str
    drop: tuple[str, ...]
    origin: str

    @property
    def name(self) -> str:
        return self.path.stem


def find_tables(folder: Path) -> dict[str, RawTable]:
    """The tables of a folder by name; InputError names what is wrong with an entry."""
    found = {path.stem: read_entry(path) for path in sorted(folder.glob("*.toml"))}
    if not found:
        raise InputError(
            f"the folder {str(folder)!r} has no NAME.toml with a NAME.csv next to it; such a file "
            'holds at least one line, for example target = "class"'
        )
    return found


def tables_without_entry(folder: Path) -> list[str]:
    """Names of CSV files that no TOML file describes."""
    return [p.name for p in sorted(folder.glob("*.csv")) if not p.with_suffix(".toml").exists()]


def read_entry(settings: Path) -> RawTable:
    """The table that a TOML file describes."""
    try:
        entry = tomllib.loads(settings.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{settings} is no TOML file: {error}") from None
    if entry.keys() - {"target", "drop", "origin"} or "target" not in entry:
        raise InputError(
            f"{settings} must have target and may have drop and origin, got {sorted(entry)}"
        )
    target, drop, origin = entry["target"], entry.get("drop", []), entry.get("origin", "")
    if not isinstance(drop, list) or not all(isinstance(x, str) for x in (target, origin, *drop)):
        raise InputError(
            f'{settings} must have the form target = "NAME", drop = ["NAME", ...], '
            f'origin = "TEXT", got {entry}'
        )
    path = settings.with_suffix(".csv")
    if not path.is_file():
        raise InputError(f"{settings} describes a table, but there is no {path.name} next to it")
    return RawTable(path, target, tuple(drop), origin)


@lru_cache(maxsize=2)
def load_raw(raw: RawTable) -> Data:
    """All rows with a label of a class that is large enough; missing values stay missing."""
    table = read_table(raw.path)
    absent = [name for name in (raw.target, *raw.drop) if name not in table.names]
    if absent:
        raise InputError(f"{raw.path} has no column {', '.join(absent)}: {', '.join(table.names)}")
    target = table.column(raw.target)
    labelled = np.flatnonzero(~target.missing)
    labels = target.values[labelled].astype(str)
    classes, counts = np.unique(labels, return_counts=True)
    enough = classes[counts >= LEAST_ROWS]
    if len(enough) < 2:
        raise InputError(
            f"{raw.path} has {len(classes)} classes in the column {raw.target}, of which "
            f"{len(enough)} have {LEAST_ROWS} rows or more: at least two must"
        )
    kept = np.isin(labels, enough)
    left_out = {raw.target, *raw.drop}
    features = Table(tuple(c for c in table.columns if c.name not in left_out))
    if not features.columns:
        raise InputError(f"{raw.path} has no column left to predict {raw.target} from")
    spec = Spec(raw.name, "folds", "state", raw.target)
    rows = labelled[kept]
    return Data(spec, features.take(rows), labels[kept], len(rows), table.n_rows - len(rows))


def outer_split(labels: Labels, seed: int, fold: int) -> RowSplit:
    """Training rows and test rows of one stratified fold."""
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    return list(folds.split(labels[:, None], labels))[fold]


# --- measures ---


def more_measures(fitted: Fitted, posterior: Matrix, truth: Labels) -> dict[str, Any]:
    """AUC (mean over the classes of one against all others) and calibration error."""
    columns = [
        roc_auc_score(truth == name, posterior[:, k])
        for k, name in enumerate(fitted.classes)
        if 0 < np.sum(truth == name) < len(truth)
    ]
    return {
        "auc": float(np.mean(columns)),
        "calibration_error": calibration_error(posterior, fitted.classes, truth),
    }


def calibration_error(posterior: Matrix, classes: Labels, truth: Labels) -> float:
    """sum_b n_b / n |right_b - claimed_b| over bins b of the probability of the predicted class.

    right_b is the share of right rows in the bin, claimed_b their mean probability.
    """
    claimed = posterior.max(axis=1)
    right = classes[posterior.argmax(axis=1)] == truth
    place = np.minimum((claimed * N_BINS).astype(int), N_BINS - 1)
    excess = np.bincount(place, right - claimed, N_BINS)
    return float(np.abs(excess).sum() / len(truth))


def count_parameters(model: Any) -> int | None:
    """Numbers that a model has learned and uses to answer; None if it is not known how to count.

    Free entries of a network's tables or the parameters of a class model, coefficients, support
    vectors with their weights, values in the leaves of trees, entries of the tables of an EBM.
    """
    if getattr(model, "class_model_", None) is not None:
        design = model.class_model_.design
        return int(design.n_parameters) * len(model.classes_)
    if hasattr(model, "network_"):
        return int(model.network_.n_parameters)
    if hasattr(model, "steps"):
        return count_parameters(model.steps[-1][1])
    if hasattr(model, "support_vectors_"):
        return int(model.support_vectors_.size + model.dual_coef_.size + model.intercept_.size)
    if hasattr(model, "coef_"):
        return int(model.coef_.size + model.intercept_.size)
    if hasattr(model, "term_scores_"):
        return int(sum(scores.size for scores in model.term_scores_))
    if hasattr(model, "booster_"):
        return sum(tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"])
    if hasattr(model, "get_leaf_values"):
        return len(model.get_leaf_values())
    if hasattr(model, "estimators_"):
        outputs = len(model.classes_) - 1
        return outputs * sum(int(tree.get_n_leaves()) for tree in model.estimators_)
    return None


def consistency(classifier: Any, rows: Table, labels: Labels, most: int = 2) -> dict[str, Any]:
    """How far answers with one and two known features are from the shares in the training rows.

    A query sets one or two features to a state that training rows have. Its distance is the total
    variation sum_c |P(c | query) - share of c among the rows of the query| / 2. The figures are
    means over all queries, weighted by their rows: ``distance``; ``chance``, what sampling alone
    would give if the answers were true, sum_c sqrt(2 p (1 - p) / (pi n)) / 2; and ``classes``, the
    distance of an answer that ignores the query.
    """
    codes = classifier.encode(rows)
    truth = np.searchsorted(np.asarray(classifier.classes_).astype(str), labels)
    n_classes = len(classifier.classes_)
    shares = np.bincount(truth, minlength=n_classes) / len(truth)
    found = {}
    for size, word in zip(range(1, most + 1), ("one", "two"), strict=False):
        queries, counts = _queries(codes, truth, n_classes, size)
        posterior = _answers(classifier, queries)
        n_rows = counts.sum(axis=1)
        seen = counts / n_rows[:, None]
        chance = np.sqrt(2 * posterior * (1 - posterior) / (np.pi * n_rows[:, None]))
        weights = n_rows / n_rows.sum()
        found[word] = {
            "queries": len(queries),
            "distance": float(weights @ np.abs(posterior - seen).sum(axis=1) / 2),
            "chance": float(weights @ chance.sum(axis=1) / 2),
            "classes": float(weights @ np.abs(shares - seen).sum(axis=1) / 2),
        }
    return found


def _queries(
    codes: NDArray[np.int32], truth: NDArray[np.intp], n_classes: int, size: int
) -> tuple[NDArray[np.int32], Matrix]:
    """Codes with all but ``size`` features unknown (-1), and the rows of each by class."""
    queries, counts = [], []
    for chosen in itertools.combinations(range(codes.shape[1]), size):
        part = codes[:, chosen]
        known = np.flatnonzero((part >= 0).all(axis=1))
        states, group = np.unique(part[known], axis=0, return_inverse=True)
        query = np.full((len(states), codes.shape[1]), -1, dtype=np.int32)
        query[:, chosen] = states
        table = np.zeros((len(states), n_classes))
        np.add.at(table, (group.ravel(), truth[known]), 1)
        queries.append(query)
        counts.append(table)
    return np.concatenate(queries), np.concatenate(counts)


def _answers(classifier: Any, queries: NDArray[np.int32]) -> Matrix:
    with_class = np.column_stack([np.zeros(len(queries), dtype=np.int32), queries])
    joint = classifier.log_joint_of_codes(with_class)
    odds = np.exp(joint - joint.max(axis=1, keepdims=True))
    posterior: Matrix = odds / odds.sum(axis=1, keepdims=True)
    return posterior


# --- running ---


def plan(tables: Sequence[str], methods: Sequence[str], folds: int) -> list[Unit]:
    """Every method on the first folds of every table; the first fold of all comes first."""
    return [
        Unit(table, method, FIRST_SEED, fold)
        for fold in range(folds)
        for table in tables
        for method in methods
    ]


def run_raw_unit(unit: Unit, raw: RawTable, settings: Settings, folds: int) -> Record:
    """The record of a unit, or one with an "error" entry."""
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warm_up()
            data = load_raw(raw)
            about = {
                "dataset": unit.dataset,
                "fold": unit.fold,
                "folds_run": folds,
                "n_rows": len(data.labels),
                "n_columns": data.features.n_columns,
                "n_removed": data.n_removed,
            }
            split = outer_split(data.labels, unit.seed, unit.fold)
            task = task_of(data, split, unit.seed, settings, settings.max_train, about)
            origin = describe_origin()
            fitted, measured = measure(METHODS[unit.method].fit, task)
            posterior, _ = fitted.predict(task.test)
            measured |= more_measures(fitted, posterior, task.test_labels)
            measured["parameters"] = count_parameters(fitted.model)
            if unit.method == "bn":
                measured["consistency"] = consistency(fitted.model, task.train, task.labels)
    except Exception:
        return {"unit": unit.told, "error": traceback.format_exc()}
    return {
        "unit": unit.told,
        "quick": settings.quick,
        "settings": settings.relevant(),
        "split": task.about,
        "chosen": fitted.chosen,
        **measured,
        "origin": origin,
    }


def run_unseen(
    tables: dict[str, RawTable],
    methods: Sequence[str],
    records: Path,
    settings: Settings,
    folds: int = N_FOLDS,
) -> list[Unit]:
    """Run what has no record yet, one unit after the other; returns the units that failed."""
    features = {name: load_raw(raw).features for name, raw in tables.items()}
    for name in methods:
        METHODS[name].require(name)
    records.mkdir(parents=True, exist_ok=True)
    cut_torn_lines(records)
    cells = {name: table.n_rows * table.n_columns for name, table in features.items()}
    ordered = sorted(tables, key=lambda name: cells[name])
    units = plan(ordered, methods, folds)
    waiting = unfinished(units, records, settings)
    costs = {u: METHODS[u.method].cost * (0.3 + cells[u.dataset] / 1e5) for u in waiting}
    progress = Progress(costs, 1, sys.stderr)
    progress.say(f"{len(units)} units, {len(units) - len(waiting)} of them finished before")
    for unit in waiting:
        record = run_raw_unit(unit, tables[unit.dataset], settings, folds)
        if "error" not in record:
            record["about"] = {"origin": tables[unit.dataset].origin}
            append_record(record, records)
        progress.report(record)
    return progress.failed


def quick_settings() -> Settings:
    """For a smoke test."""
    small = unseen_settings(
        quick=True, max_train=300, max_test=300, validation_folds=1, inner_limit=0.1,
        final_limit=1.0, sigmas=(2.0,), penalties=(1.0,), trees=20, rounds=20, bags=2,
    )  # fmt: skip
    return replace(small, probabilities=(0.6, 0.9))
