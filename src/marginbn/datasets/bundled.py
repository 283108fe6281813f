"""Small data sets that scikit-learn carries, with their names and class labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginbn.data.columns import Column
from marginbn.data.labelled import CLASS_NAME, Dataset
from marginbn.data.table import Table


def load_iris() -> Dataset:
    """Iris: three species by four flower measurements, 150 rows (Fisher 1936).

    Examples
    --------
    >>> from marginbn.datasets import load_iris
    >>> load_iris().train.n_rows
    150
    """
    from sklearn.datasets import load_iris as load

    return _from_bunch("iris", load(), "three iris species by four flower measurements")


def load_wine() -> Dataset:
    """Wine: three cultivars by thirteen chemical measurements, 178 rows (Forina et al. 1988).

    Examples
    --------
    >>> from marginbn.datasets import load_wine
    >>> load_wine().train.n_columns  # the class included
    14
    """
    from sklearn.datasets import load_wine as load

    return _from_bunch("wine", load(), "three wine cultivars by thirteen chemical measurements")


def load_breast_cancer() -> Dataset:
    """Breast cancer: diagnosis by thirty measurements of nuclei, 569 rows (Street et al. 1993).

    This is the diagnostic Wisconsin set; the older one with ten integer features is `breast`.

    Examples
    --------
    >>> from marginbn.datasets import load_breast_cancer
    >>> load_breast_cancer().train.column("class").categories
    ('malignant', 'benign')
    """
    from sklearn.datasets import load_breast_cancer as load

    return _from_bunch("breast_cancer", load(), "tumour diagnosis by thirty measurements of nuclei")


def _from_bunch(name: str, bunch: Any, description: str) -> Dataset:
    features = [
        Column.numeric(str(feature), bunch.data[:, j])
        for j, feature in enumerate(bunch.feature_names)
    ]
    labels = [str(label) for label in bunch.target_names]
    target = Column.categorical(CLASS_NAME, np.asarray(bunch.target), labels)
    return Dataset(name, Table((*features, target)), None, CLASS_NAME, description)
