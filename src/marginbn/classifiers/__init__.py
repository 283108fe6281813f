"""Classifiers: siblings that differ in how they find the structure.

scikit-learn imports ``scipy.stats`` and pandas for functions that are not called here: two thirds
of the time that its base classes take to load. In the program placeholders stand for both while
they are loaded. A library must not do that: another thread could import pandas at the same time.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from marginbn.interrupts import INTERRUPTS


class _Placeholder(ModuleType):
    """A module that is imported when something in it is asked for."""

    __spec__ = None

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


@contextmanager
def _postponed(*names: str) -> Iterator[None]:
    """Modules that are not imported meanwhile, unless they are there already."""
    placed = {name: _Placeholder(name) for name in names if name not in sys.modules}
    sys.modules.update(placed)
    try:
        yield
    finally:
        for name, placeholder in placed.items():
            if sys.modules.get(name) is placeholder:
                del sys.modules[name]


if INTERRUPTS.is_program:
    with _postponed("pandas", "scipy.stats"):
        import_module("sklearn.utils.validation")

from marginbn.classifiers.base import BaseBNClassifier  # noqa: E402
from marginbn.classifiers.bn_classifier import BNClassifier  # noqa: E402
from marginbn.classifiers.max_margin_cv import MaxMarginBNClassifierCV  # noqa: E402
from marginbn.classifiers.naive_bayes import NaiveBayesClassifier, TANClassifier  # noqa: E402
from marginbn.classifiers.search import GenerativeBNClassifier, MaxMarginBNClassifier  # noqa: E402

__all__ = [
    "BNClassifier",
    "BaseBNClassifier",
    "GenerativeBNClassifier",
    "MaxMarginBNClassifier",
    "MaxMarginBNClassifierCV",
    "NaiveBayesClassifier",
    "TANClassifier",
]
