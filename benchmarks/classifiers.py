"""Fit and predict of classifiers beside other packages: same data, one process per contender.

A contender is a function that takes a table of small integers and labels, fits, and returns a
function that predicts. The first call, on few rows, pays for imports and compilation; then the
median of some repeats counts, in seconds of the processor (one thread) and of the clock.
"""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from experiments.origin import describe_origin
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Codes = NDArray[np.int64]
Predict = Callable[[Codes], Any]
Fit = Callable[[Codes, Codes], Predict]
LONG_SECONDS = 10.0
"""What takes longer is measured once."""


@dataclass(frozen=True)
class Timing:
    """A contender on a task; ``predicted`` rows are predicted, all if None."""

    task: str
    contender: str
    fit: Fit
    rows: int
    features: int
    predicted: int | None = None

    @property
    def key(self) -> str:
        return f"{self.task} {self.rows}x{self.features} {self.contender}"


def random_table(n_rows: int, n_features: int, seed: int = 0) -> tuple[Codes, Codes]:
    """Small integers with some dependence on the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_rows)
    noise = rng.integers(0, 4, (n_rows, n_features))
    return np.where(rng.random((n_rows, n_features)) < 0.3, y[:, None], noise), y


# --- contenders ---


def ours(name: str) -> Fit:
    def fit(X: Codes, y: Codes) -> Predict:
        import marginbn

        return getattr(marginbn, name)().fit(X, y).predict  # type: ignore[no-any-return]

    return fit


def scikit_learn(module: str, name: str, **options: Any) -> Fit:
    def fit(X: Codes, y: Codes) -> Predict:
        from importlib import import_module

        classifier = getattr(import_module(f"sklearn.{module}"), name)(**options)
        return classifier.fit(X, y).predict  # type: ignore[no-any-return]

    return fit


def pyagrum(method: str) -> Fit:
    def fit(X: Codes, y: Codes) -> Predict:
        from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
        from pyagrum.skbn import BNClassifier

        classifier = BNClassifier(
            type_processor=DiscreteTypeProcessor(),
            learningMethod=method,
            prior="Smoothing",
            priorWeight=1,
        )
        classifier.fit(X, y)
        return classifier.predict  # type: ignore[no-any-return]

    return fit


def pgmpy_tan(X: Codes, y: Codes) -> Predict:
    import pandas as pd
    from pgmpy.estimators import TreeSearch
    from pgmpy.models import DiscreteBayesianNetwork

    names = [f"x{i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names).assign(c=y)
    tree = TreeSearch(frame, root_node="x0", n_jobs=1).estimate(
        estimator_type="tan", class_node="c", show_progress=False
    )
    network = DiscreteBayesianNetwork(tree.edges())
    network.fit(frame)
    return lambda rows: network.predict(pd.DataFrame(rows, columns=names))


def timings() -> list[Timing]:
    """All contenders on all tasks, ours first."""
    naive: dict[str, Fit] = {
        "marginbn": ours("NaiveBayesClassifier"),
        "scikit-learn CategoricalNB": scikit_learn("naive_bayes", "CategoricalNB"),
        "pyAgrum": pyagrum("NaiveBayes"),
    }
    tree: dict[str, Fit] = {
        "marginbn": ours("TANClassifier"),
        "pyAgrum": pyagrum("TAN"),
        "pgmpy": pgmpy_tan,
    }
    plan = [
        ("naive Bayes", naive, 100_000, 30),
        ("TAN", tree, 1000, 20),
        ("TAN", tree, 100_000, 30),
    ]
    return [
        Timing(task, name, fit, rows, features, 200 if name in ("pgmpy", "pyAgrum") else None)
        for task, contenders, rows, features in plan
        for name, fit in contenders.items()
        if not (name == "pgmpy" and rows > 10_000)  # takes hours
    ]


# --- measuring ---


def measure(timing: Timing, repeats: int = 5) -> dict[str, Any]:
    """The record of a contender, measured in this process."""
    X, y = random_table(timing.rows, timing.features)
    rows = X[: timing.predicted] if timing.predicted else X
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        timing.fit(X[:200], y[:200])(X[:20])
        origin = describe_origin()
        laps: list[dict[str, float]] = []
        while len(laps) < repeats and (not laps or laps[0]["fit_wall"] < LONG_SECONDS):
            laps.append(_lap(timing.fit, X, y, rows))
    return {
        "key": timing.key,
        "task": timing.task,
        "contender": timing.contender,
        "rows": timing.rows,
        "features": timing.features,
        "predicted_rows": len(rows),
        **{name: round(float(np.median([lap[name] for lap in laps])), 5) for name in laps[0]},
        "repeats": len(laps),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "origin": origin,
    }


def _lap(fit: Fit, X: Codes, y: Codes, rows: Codes) -> dict[str, float]:
    clocks = [(time.process_time(), time.perf_counter())]
    predict = fit(X, y)
    clocks.append((time.process_time(), time.perf_counter()))
    predict(rows)
    clocks.append((time.process_time(), time.perf_counter()))
    return {
        f"{stage}_{clock}": after[k] - before[k]
        for stage, before, after in zip(("fit", "predict"), clocks, clocks[1:], strict=False)
        for k, clock in enumerate(("cpu", "wall"))
    }
