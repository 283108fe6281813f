"""The classifiers that people reach for today, as rivals of the networks in accuracy.

    logistic        numbers standardised, categories as indicators; C validated by log loss
    hgb             scikit-learn's HistGradientBoostingClassifier, defaults, categories declared
    lightgbm        LightGBM, defaults, categories declared
    lightgbm-tuned  learning rate 0.05; 4, 15 or 31 leaves, categories declared or as indicators,
                    up to 1000 rounds, all by validated log loss
    catboost        CatBoost, defaults, categories declared
    forest          500 trees, categories as indicators
    ebm             InterpretML's explainable boosting, defaults (14 bags; 4 on letter and
                    satimage, where a fit takes minutes), categories declared

Each is a function from a :class:`Task` to a :class:`Fitted`; all choices use ``task.inner``. One
thread each. Packages outside scikit-learn are imported by the function that needs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from experiments.encoding import MixedMatrix
from experiments.fitted import Fitted, Matrix, judge, short
from experiments.protocol import Task

LOGISTIC_PENALTIES = (1.0, 0.1, 10.0, 0.01, 100.0, 0.001, 1000.0)
"""The default first: ties go to the earlier entry."""
LEAVES = (4, 15, 31)
LEARNING_RATE = 0.05
PATIENCE = 50
"""Rounds without a better validated log loss after which boosting stops."""
FEWER_BAGS = {"letter": 4, "satimage": 4}
"""Most bags of the explainable boosting on these data sets."""


def logistic(task: Task) -> Fitted:
    matrix, values = _matrix(task)
    losses = [_validated_loss(task, matrix, values, c) for c in LOGISTIC_PENALTIES]
    best = int(np.argmin(losses))
    pipeline = _logistic(matrix, LOGISTIC_PENALTIES[best]).fit(values, task.labels)
    chosen = {"C": LOGISTIC_PENALTIES[best], "validated": short(losses[best])}
    return _fitted(pipeline, matrix, chosen)


def _validated_loss(task: Task, matrix: MixedMatrix, values: Matrix, penalty: float) -> float:
    losses = []
    for fit_rows, held_out in task.inner:
        pipeline = _logistic(matrix, penalty).fit(values[fit_rows], task.labels[fit_rows])
        answer, truth = pipeline.predict_proba(values[held_out]), task.labels[held_out]
        losses.append(judge(pipeline.classes_, answer, truth, truth)["log_loss"])
    return float(np.mean(losses))


def _logistic(matrix: MixedMatrix, penalty: float) -> Any:
    return make_pipeline(standardised(matrix), LogisticRegression(C=penalty, max_iter=1000))


def standardised(matrix: MixedMatrix) -> ColumnTransformer:
    """Numbers standardised, one indicator per category; mean or mode for what is missing."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    codes = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    return _by_kind(matrix, numbers, codes)


def indicators(matrix: MixedMatrix) -> ColumnTransformer:
    """Numbers as they are, one indicator per category."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return _by_kind(matrix, "passthrough", encoder)


def _by_kind(matrix: MixedMatrix, numbers: Any, codes: Any) -> ColumnTransformer:
    is_code = matrix.categorical_
    return ColumnTransformer(
        [("numbers", numbers, np.flatnonzero(~is_code)), ("codes", codes, np.flatnonzero(is_code))]
    )


def hist_boosting(task: Task) -> Fitted:
    matrix, values = _matrix(task)
    classifier = HistGradientBoostingClassifier(
        categorical_features=matrix.categorical_, random_state=task.seed
    )
    return _fitted(classifier.fit(values, task.labels), matrix)


def random_forest(task: Task) -> Fitted:
    matrix, values = _matrix(task)
    forest = RandomForestClassifier(task.settings.trees, n_jobs=1, random_state=task.seed)
    pipeline = make_pipeline(indicators(matrix), forest)
    return _fitted(pipeline.fit(values, task.labels), matrix)


def light_boosting(task: Task) -> Fitted:
    from lightgbm import LGBMClassifier

    matrix, values = _matrix(task)
    classifier = LGBMClassifier(n_jobs=1, verbose=-1, random_state=task.seed)
    return _fitted(_fit_light(classifier, values, task, matrix.categorical_), matrix)


def _fit_light(classifier: Any, values: Matrix, task: Task, is_code: Any) -> Any:
    declared = np.flatnonzero(is_code).tolist()
    return classifier.fit(values, task.labels, categorical_feature=declared)


def tuned_light_boosting(task: Task) -> Fitted:
    """Leaves, coding of categories and rounds by the mean log loss over the inner splits."""
    from lightgbm import LGBMClassifier

    matrix, values = _matrix(task)
    codings = {"declared": (values, matrix.categorical_)}
    transformer = indicators(matrix).fit(values)
    if matrix.categorical_.any():
        columns = transformer.transform(values)
        codings["indicators"] = columns, np.zeros(columns.shape[1], dtype=bool)
    entries = [
        {"coding": coding, "leaves": leaves, **_validated_rounds(task, *codings[coding], leaves)}
        for coding in codings
        for leaves in LEAVES
    ]
    best = min(entries, key=lambda entry: entry["validated"])
    classifier = LGBMClassifier(
        n_estimators=best["rounds"],
        num_leaves=best["leaves"],
        learning_rate=LEARNING_RATE,
        n_jobs=1,
        verbose=-1,
        random_state=task.seed,
    )
    _fit_light(classifier, codings[best["coding"]][0], task, codings[best["coding"]][1])
    if best["coding"] == "declared":
        return _fitted(classifier, matrix, best)
    return _fitted(classifier, matrix, best, transformer.transform)


def _validated_rounds(task: Task, values: Matrix, is_code: Any, leaves: int) -> dict[str, Any]:
    """Rounds with the best log loss and that loss; all splits are boosted side by side."""
    import lightgbm

    classes, labels = np.unique(task.labels, return_inverse=True)
    several = {"objective": "multiclass", "num_class": len(classes), "metric": "multi_logloss"}
    parameters = {
        "learning_rate": LEARNING_RATE,
        "num_leaves": leaves,
        "early_stopping_round": PATIENCE,
        "num_threads": 1,
        "verbose": -1,
        "seed": task.seed,
        **(several if len(classes) > 2 else {"objective": "binary", "metric": "binary_logloss"}),
    }
    rows = lightgbm.Dataset(
        values,
        labels,
        categorical_feature=np.flatnonzero(is_code).tolist(),
        params={"verbose": -1, "num_threads": 1},
        free_raw_data=False,
    )
    curves = lightgbm.cv(parameters, rows, task.settings.rounds, folds=task.inner)
    curve = next(values for name, values in curves.items() if name.endswith("-mean"))
    return {"rounds": len(curve), "validated": short(curve[-1])}


def cat_boosting(task: Task) -> Fitted:
    from catboost import CatBoostClassifier, Pool

    matrix, values = _matrix(task)
    declared = np.flatnonzero(matrix.categorical_).tolist()

    def pool(values: Matrix, labels: Any = None) -> Any:
        cells = values.astype(object)
        cells[:, declared] = np.nan_to_num(values[:, declared], nan=-1).astype(int)
        return Pool(cells, labels, cat_features=declared)

    classifier = CatBoostClassifier(
        iterations=task.settings.rounds,  # 1000 is the default
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        random_seed=task.seed,
    )
    return _fitted(classifier.fit(pool(values, task.labels)), matrix, prepare=pool)


def explainable_boosting(task: Task) -> Fitted:
    from interpret.glassbox import ExplainableBoostingClassifier

    matrix, values = _matrix(task)
    kinds = ["nominal" if is_code else "continuous" for is_code in matrix.categorical_]
    bags = min(task.settings.bags, FEWER_BAGS.get(task.about.get("dataset", ""), math.inf))
    classifier = ExplainableBoostingClassifier(
        feature_types=kinds, outer_bags=bags, n_jobs=1, random_state=task.seed
    )
    return _fitted(classifier.fit(values, task.labels), matrix, chosen={"bags": bags})


def _matrix(task: Task) -> tuple[MixedMatrix, Matrix]:
    matrix = MixedMatrix().fit(task.train)
    return matrix, matrix.transform(task.train)


def _fitted(
    classifier: Any,
    matrix: MixedMatrix,
    chosen: dict[str, Any] | None = None,
    prepare: Callable[[Matrix], Any] = np.asarray,
) -> Fitted:
    return Fitted(
        np.asarray(classifier.classes_).astype(str),
        lambda table: classifier.predict_proba(prepare(matrix.transform(table))),
        chosen=chosen or {},
        model=classifier,
    )
