"""Public data sets through scikit-learn's ``fetch_openml``; needs a network.

The identifiers were noted from memory and never checked against the server. OpenML's copies may
differ from the originals in row order, in coding, and by identifier columns dropped; none comes
with the original split into training and test part.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from marginbn.data.columns import Column
from marginbn.data.labelled import CLASS_NAME, Dataset
from marginbn.data.table import Table, as_column
from marginbn.exceptions import InputError, MarginBNError

OPENML_IDS = {
    "abalone": 183,
    "adult": 1590,
    "australian": 40981,
    "breast": 15,
    "car": 40975,
    "chess": 3,
    "cleve": 40710,
    "corral": 40669,
    "crx": 29,
    "diabetes": 37,
    "german": 31,
    "glass": 41,
    "heart": 53,
    "hepatitis": 55,
    "iris": 61,
    "letter": 6,
    "lymphography": 10,
    "mofn-3-7-10": 40680,
    "mushroom": 24,
    "nursery": 26,
    "pima": 37,
    "satimage": 182,
    "segment": 36,
    "shuttle-full": 40685,
    "soybean-large": 42,
    "spambase": 44,
    "vehicle": 54,
    "vote": 56,
    "waveform-21": 4551,
}
"""Unverified OpenML identifiers by the name used here; see the module docstring."""


def fetch_dataset(name: str, *, data_home: str | None = None, timeout: float = 30.0) -> Dataset:
    """Download (once; then from scikit-learn's cache) a public data set.

    Parameters
    ----------
    name
        A key of :data:`OPENML_IDS`.
    data_home
        Where to cache; the default is scikit-learn's data folder.
    timeout
        Seconds without an answer after which to give up.

    Raises
    ------
    MarginBNError
        If the server cannot be reached or does not answer with the data set.

    Examples
    --------
    >>> from marginbn.datasets import fetch_dataset
    >>> fetch_dataset("vote").train.n_rows  # doctest: +SKIP
    435
    """
    if name not in OPENML_IDS:
        raise InputError(f"name must be one of {', '.join(OPENML_IDS)}, got {name!r}")
    bunch = _fetch(name, data_home, timeout)
    names = [str(feature) for feature in bunch.feature_names]
    categories = bunch.categories or {}
    columns = [
        _feature(feature, bunch.data[:, j], categories.get(feature))
        for j, feature in enumerate(names)
    ]
    target = as_column([str(label) for label in bunch.target], name=CLASS_NAME)
    description = f"OpenML data set {OPENML_IDS[name]} (identifier unverified)"
    return Dataset(name, Table((*columns, target)), None, CLASS_NAME, description)


def _fetch(name: str, data_home: str | None, timeout: float) -> Any:
    from sklearn.datasets import fetch_openml

    try:
        with _socket_timeout(timeout):
            return fetch_openml(
                data_id=OPENML_IDS[name],
                data_home=data_home,
                as_frame=False,
                parser="liac-arff",
                n_retries=1,
                delay=0.5,
            )
    except Exception as error:  # no network, a refusal, or an answer that cannot be read
        raise MarginBNError(
            f"could not fetch {name!r} (OpenML {OPENML_IDS[name]}): {error}. Check the network, or "
            "put the data in a folder and name it in MARGINBN_DATA"
        ) from error


def _feature(name: str, values: Any, categories: Any) -> Column:
    """Numbers, or ordinal codes of the declared categories."""
    numbers = np.asarray(values, dtype=np.float64)
    if categories is None:
        return Column.numeric(name, numbers)
    codes = np.where(np.isnan(numbers), -1, numbers).astype(np.int32)
    return Column.categorical(name, codes, [str(category) for category in categories])


@contextmanager
def _socket_timeout(seconds: float) -> Iterator[None]:
    """fetch_openml has no timeout of its own."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
