"""Naive Bayes and TAN against other packages, in one run on the same data.

    python benchmarks/classifiers.py [--repeats 5]

Prints one row per contender: seconds for fit and predict (median of the repeats) and the ratio to
ours. Packages that are not installed are left out (``pip install "marginbn[benchmarks]"``).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from marginbn import NaiveBayesClassifier, TANClassifier

Codes = NDArray[np.int64]
Contender = Callable[[Codes, Codes], None]


def random_table(n_rows: int, n_features: int, seed: int = 0) -> tuple[Codes, Codes]:
    """Small integers with some dependence on the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_rows)
    noise = rng.integers(0, 4, (n_rows, n_features))
    return np.where(rng.random((n_rows, n_features)) < 0.3, y[:, None], noise), y


def seconds(contender: Contender, X: Codes, y: Codes, repeats: int) -> float:
    """Median wall-clock seconds of fit and predict together."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        contender(X, y)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def our_naive_bayes(X: Codes, y: Codes) -> None:
    NaiveBayesClassifier().fit(X, y).predict(X)


def scikit_learn_naive_bayes(X: Codes, y: Codes) -> None:
    from sklearn.naive_bayes import CategoricalNB

    CategoricalNB().fit(X, y).predict(X)


def our_tan(X: Codes, y: Codes) -> None:
    TANClassifier().fit(X, y).predict(X)


def pyagrum_tan(X: Codes, y: Codes) -> None:
    from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
    from pyagrum.skbn import BNClassifier

    classifier = BNClassifier(
        type_processor=DiscreteTypeProcessor(),
        learningMethod="TAN",
        prior="Smoothing",
        priorWeight=1,
    )
    classifier.fit(X, y)
    classifier.predict(X)


def pgmpy_tan(X: Codes, y: Codes) -> None:
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
    network.predict(frame[names].head(200))  # a fifth of the rows: all of them take too long


def compare(
    title: str, ours: Contender, rivals: dict[str, Contender], shape: tuple[int, int], repeats: int
) -> None:
    """Print our time, each rival's time and the ratio rival / ours."""
    X, y = random_table(*shape)
    ours(X, y)  # first call pays for imports
    base = seconds(ours, X, y, repeats)
    print(f"{title}, {shape[0]} rows x {shape[1]} features, fit + predict")
    print(f"  {'marginbn':24s} {base:9.4f} s")
    for name, rival in rivals.items():
        try:
            rival(X[:50], y[:50])
            time_taken = seconds(rival, X, y, 1 if "pgmpy" in name else repeats)
        except ImportError as error:
            print(f"  {name:24s} not installed ({error.name})")
            continue
        print(f"  {name:24s} {time_taken:9.4f} s   {time_taken / base:8.2f} x ours")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    compare(
        "naive Bayes",
        our_naive_bayes,
        {"scikit-learn CategoricalNB": scikit_learn_naive_bayes},
        (100_000, 30),
        repeats,
    )
    compare(
        "TAN",
        our_tan,
        {"pyAgrum BNClassifier": pyagrum_tan, "pgmpy (predicts 200 rows)": pgmpy_tan},
        (1000, 20),
        repeats,
    )


if __name__ == "__main__":
    main()
