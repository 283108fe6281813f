"""Answers as data frames of the library that a table came in: pandas, polars, pyarrow and others.

Nothing is imported unless such a table came in, or a frame is asked for by the library's name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from marginbn.exceptions import InputError, MissingDependencyError

LIBRARIES = ("pandas", "polars", "pyarrow", "modin", "cudf")
"""Libraries in which a frame can be made."""


def frame_library(table: Any) -> str | None:
    """The library that a data frame or series is of; None for arrays, lists and our own tables.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_library(pd.DataFrame({"a": [1]})), frame_library([[1]])
    ('pandas', None)
    """
    home = type(table).__module__.partition(".")[0]
    return home if home in LIBRARIES else None


def chosen_library(asked: str | bool | None, came_in: str | None) -> str | None:
    """What ``as_frame`` stands for: None for what came in, True for that or what is loaded.

    Examples
    --------
    >>> chosen_library(None, "polars"), chosen_library(None, None), chosen_library(False, "pandas")
    ('polars', None, None)
    >>> chosen_library("pandas", "polars"), chosen_library(True, "polars")
    ('pandas', 'polars')
    """
    if asked is None or asked is False:
        return came_in if asked is None else None
    if asked is True:
        return came_in or next((name for name in LIBRARIES if name in sys.modules), "pandas")
    if asked not in LIBRARIES:
        raise InputError(
            f"as_frame must be None, True, False or one of {', '.join(LIBRARIES)}, got {asked!r}"
        )
    return asked


def make_frame(columns: Mapping[str, Sequence[Any]], library: str) -> Any:
    """A data frame of columns by name."""
    try:
        module = import_module("modin.pandas" if library == "modin" else library)
    except ImportError as error:
        raise MissingDependencyError(
            f"a data frame needs {library} ({error}): pip install {library}, or pass as_frame=False"
        ) from error
    return module.table(dict(columns)) if library == "pyarrow" else module.DataFrame(dict(columns))


def make_series(name: str, labels: Sequence[str], values: Sequence[float], library: str) -> Any:
    """A series with labels as its index where the library knows one; otherwise a frame of two."""
    if library in ("pandas", "modin", "cudf"):
        return make_frame({name: labels, "probability": values}, library).set_index(name)[
            "probability"
        ]
    return make_frame({name: labels, "probability": values}, library)
