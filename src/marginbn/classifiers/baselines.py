"""What any classifier should be compared with: the most frequent class, and a logistic regression.

Both learn from a table as it is: columns are prepared as the classifiers prepare them, numbers are
standardised with the median for missing ones, categories become indicators. Much of scikit-learn is
needed for that, and loaded only here and now, because predictions should begin at once.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from marginbn.data.columns import Column
from marginbn.data.labelled import LabelledTable, class_factors, cost_of_places, label_codes
from marginbn.data.preparation import TableSettings
from marginbn.data.table import Table, as_table
from marginbn.problem.array_types import FloatArray

_ABSENT = "(missing)"


class _Baseline:
    """A scikit-learn model on the columns of a table."""

    def __init__(self, settings: TableSettings | None = None) -> None:
        self.settings = settings or TableSettings()

    def fit(self, table: Table, labels: NDArray[Any]) -> Self:
        """Learn from the rows of a table."""
        self._preparation = self.settings.learn(table)
        features = self._preparation.apply_to_all(table)
        self._kinds = features.kinds
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._model = self._fitted(features, labels)
        self.classes_: NDArray[Any] = self._model.classes_
        return self

    def predict_proba(self, table: Table) -> FloatArray:
        """Probability of every class."""
        used = as_table(
            table.select(self._preparation.used_names), kinds=self._preparation.used_kinds
        )
        features = as_table(self._preparation.apply(used), kinds=self._kinds)
        answer: FloatArray = self._model.predict_proba(_as_array(features))
        return answer

    def _fitted(self, features: Table, labels: NDArray[Any]) -> Any:
        """The model; a fold may hold a single class, and then there is nothing to tell apart."""
        if len(np.unique(labels)) == 1:
            return _prior().fit(_as_array(features), labels)
        return self._make(features).fit(_as_array(features), labels, **self._weights(labels))

    def _make(self, features: Table) -> Any:
        raise NotImplementedError

    def _weights(self, labels: NDArray[Any]) -> dict[str, Any]:
        """Arguments of the model's fit."""
        return {}


def logistic_accuracy(rows: LabelledTable, settings: TableSettings) -> float:
    """Accuracy of logistic regression on the very rows that the default classifier is judged by."""
    from marginbn.class_model.choose import split_rows

    table = settings.learn(rows.features).apply_to_all(rows.features)
    missing = {c.name: c.missing for c in table.columns if c.missing.any()}
    classes, codes = np.unique(rows.labels, return_inverse=True)
    rows = rows.take(np.flatnonzero(cost_of_places(missing, codes, settings.missing, classes).kept))
    drawn, splits = split_rows(rows.labels)
    right = total = 0
    for train, test in splits:
        learned, judged = rows.take(drawn[train]), rows.take(drawn[test])
        model = LogisticBaseline(settings).fit(learned.features, learned.labels)
        chosen = model.classes_[model.predict_proba(judged.features).argmax(axis=1)]
        right, total = right + int((chosen == judged.labels).sum()), total + judged.n_rows
    return right / total


class MajorityBaseline(_Baseline):
    """Always the most frequent class, with the shares of the classes as probabilities."""

    def _make(self, features: Table) -> Any:
        return _prior()


class LogisticBaseline(_Baseline):
    """Logistic regression on standardised numbers and indicators of categories."""

    def _make(self, features: Table) -> Any:
        from sklearn.compose import make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        numeric = [i for i, c in enumerate(features.columns) if c.kind == "numeric"]
        others = [i for i in range(features.n_columns) if i not in numeric]
        fill = SimpleImputer(strategy="median", keep_empty_features=True)
        columns = make_column_transformer(
            (make_pipeline(fill, StandardScaler()), numeric),
            (OneHotEncoder(handle_unknown="ignore"), others),
        )
        return make_pipeline(columns, LogisticRegression(max_iter=300))

    def _weights(self, labels: NDArray[Any]) -> dict[str, Any]:
        if self.settings.class_weight is None:
            return {}
        classes, codes = label_codes(labels)
        weights = class_factors(self.settings.class_weight, classes, codes)[codes]
        return {"logisticregression__sample_weight": weights}


def _prior() -> Any:
    """The shares of the classes, whatever the row."""
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior")


def _as_array(features: Table) -> NDArray[Any]:
    """Numbers with NaN and labels with a word for missing, side by side."""
    array = np.empty((features.n_rows, features.n_columns), dtype=object)
    for i, column in enumerate(features.columns):
        array[:, i] = column.numbers if column.kind == "numeric" else _labels(column)
    return array


def _labels(column: Column) -> NDArray[Any]:
    return np.array([*column.labels, _ABSENT], dtype=object)[column.codes]
