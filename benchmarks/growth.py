"""How cost grows with rows, features and classes, beside other packages.

python -m benchmarks run growth --records growth.jsonl
python -m benchmarks growth growth.jsonl growth.png

One process per measurement on one thread: processor seconds of fit, of its phases and of predict,
and the memory that fit took on top of the table. Every shape is asked of every contender in the
same run. Limits of searches count processor seconds too, so that nothing depends on what else the
machine does. Finished measurements are skipped; sizes that a contender would not finish within
:data:`PATIENCE` at the exponent seen so far are not tried.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments.origin import describe_origin
from numpy.typing import NDArray

PATIENCE = 40.0
"""Processor seconds of a fit after which a measurement is ended."""

NET = 16 * 10**9
"""Bytes of address space, much of which is never touched, so that no contender ends the machine."""

SEARCH = 10.0
"""Time limit of searches, reading included."""

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "MARGINBN_CLOCK": "processor",
}
"""Of a measurement."""

ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FEATURES = (10, 30, 100, 300, 1000)
CLASSES = (2, 5, 10, 20, 50)

OTHERS = {
    "rows": "20 features, 2 classes",
    "features": "10 000 rows, 2 classes",
    "classes": "10 000 rows, 20 features",
}
"""What stays as it is along each axis."""

Codes = NDArray[np.int8]


@dataclass(frozen=True)
class Shape:
    """One measurement."""

    axis: str
    rows: int
    features: int
    classes: int
    contender: str

    @property
    def key(self) -> str:
        """Name of the measurement."""
        return f"{self.contender}-{self.axis}-{self.rows}x{self.features}x{self.classes}"


def random_rows(n_rows: int, n_features: int, n_classes: int) -> tuple[Codes, Codes]:
    """Features of four states that depend on the class and on their neighbours."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows, dtype=np.int8)
    X = np.empty((n_rows, n_features), dtype=np.int8)
    for i in range(n_features):
        own = (y % 4) if i % 3 == 0 else np.zeros_like(y)
        X[:, i] = (own + rng.integers(0, 4, n_rows, dtype=np.int8)) % 4
        if i:
            copied = rng.random(n_rows) < 0.4
            X[copied, i] = (X[copied, i - 1] + y[copied]) % 4
    return X, y


def _ours(name: str) -> Callable[[], Any]:
    def make() -> Any:
        import marginbn

        kinds = {"column_kinds": "categorical"}
        if name == "SM":
            return marginbn.MaxMarginBNClassifier(time_limit=SEARCH, **kinds)
        if name == "SM1":
            return marginbn.MaxMarginBNClassifier(time_limit=SEARCH, max_parents=1, **kinds)
        if name == "MDL":
            return marginbn.GenerativeBNClassifier(time_limit=SEARCH, **kinds)
        made = marginbn.TANClassifier if name == "TAN" else marginbn.NaiveBayesClassifier
        return made(**kinds)

    return make


def _categorical_nb() -> Any:
    from sklearn.naive_bayes import CategoricalNB

    return CategoricalNB(min_categories=4)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    return make_pipeline(OneHotEncoder(), LogisticRegression(max_iter=200))


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier()


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1, n_jobs=1)


class _PyAgrumTAN:
    """Tree-augmented naive Bayes of pyAgrum, which reads texts."""

    def fit(self, X: Codes, y: Codes) -> _PyAgrumTAN:
        import pandas
        from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
        from pyagrum.skbn import BNClassifier

        frame = pandas.DataFrame(X.astype(str), columns=[f"x{i}" for i in range(X.shape[1])])
        self._classifier = BNClassifier(
            type_processor=DiscreteTypeProcessor(), learningMethod="TAN"
        )
        self._classifier.fit(frame, y.astype(str))
        self._names = list(frame.columns)
        return self

    def predict(self, X: Codes) -> Any:
        import pandas

        return self._classifier.predict(pandas.DataFrame(X[:1000].astype(str), columns=self._names))


CONTENDERS: dict[str, Callable[[], Any]] = {
    **{name: _ours(name) for name in ("NB", "TAN", "MDL", "SM", "SM1")},
    "CategoricalNB": _categorical_nb,
    "LogisticRegression": _logistic,
    "HistGradientBoosting": _boosting,
    "LightGBM": _lightgbm,
    "pyAgrum TAN": _PyAgrumTAN,
}


def shapes() -> Iterator[Shape]:
    """All measurements, small ones of all contenders first."""
    for place in range(len(ROWS)):
        for contender in CONTENDERS:
            yield Shape("rows", ROWS[place], 20, 2, contender)
            yield Shape("features", 10_000, FEATURES[place], 2, contender)
            yield Shape("classes", 10_000, 20, CLASSES[place], contender)


class Phases:
    """Processor seconds of a fit of ours before, during and after the choice of a structure."""

    def __init__(self, classifier: Any) -> None:
        self._marks: list[float] = []
        self._learn = getattr(classifier, "_learn_structure", None)
        if self._learn is not None:
            classifier._learn_structure = self._timed

    def _timed(self, data: Any) -> Any:
        self._marks.append(time.process_time())
        found = self._learn(data)
        self._marks.append(time.process_time())
        return found

    def seconds(self, begin: float, end: float, search: float | None) -> dict[str, float] | None:
        """By phase: reading and encoding, counting and scoring, search, parameters."""
        if not self._marks:
            return None
        chosen, done = self._marks
        structure = done - chosen
        searched = min(search or 0.0, structure)
        return {
            "read": chosen - begin,
            "count": structure - searched,
            "search": searched,
            "parameters": end - done,
        }


TOO_LATE = 77
"""Exit code of a measurement that takes too long."""


def _end_late(limit: float) -> None:
    """End the process at this many processor seconds. (A limit of the system for them would make
    their clock a coarse one.)
    """
    while time.process_time() < limit:
        time.sleep(0.2)
    os._exit(TOO_LATE)


def measure_shape(shape: Shape) -> dict[str, Any]:
    """Fit and predict, in this process."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (NET, NET))
    X, y = random_rows(shape.rows, shape.features, shape.classes)
    classifier = CONTENDERS[shape.contender]()
    if shape.contender in ("MDL", "SM", "SM1"):
        from benchmarks.instances import Instance
        from marginbn import solve_structure

        solve_structure(Instance.parse("random-30-12-2-0:sm:0.9:2").problem(None))
    classifier.fit(X[:200], y[:200])  # imports and compilation are not what is measured
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    threading.Thread(target=_end_late, args=[time.process_time() + PATIENCE], daemon=True).start()
    classifier = CONTENDERS[shape.contender]()
    phases = Phases(classifier)
    begin = time.process_time()
    classifier.fit(X, y)
    end = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    processor = time.process_time()
    classifier.predict(X[:100_000])
    result = getattr(classifier, "result_", None)
    return asdict(shape) | {
        "key": shape.key,
        "processor": end - begin,
        "phases": phases.seconds(begin, end, getattr(result, "seconds", None)),
        "predict": time.process_time() - processor,
        "gap": getattr(result, "gap", None),
        "origin": describe_origin(),
        "megabytes": (peak - before) / 1000,
        "peak": peak / 1000,
    }


def run_growth(records: Path, only: str | None = None) -> None:
    """All measurements that have no record yet."""
    done = {record["key"]: record for record in read(records)}
    for shape in shapes():
        if shape.key in done or (only is not None and only not in shape.key):
            continue
        record = _skip(shape, done) or _in_own_process(shape)
        done[shape.key] = record
        with records.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(f"{shape.key:40} {record.get('processor', record.get('error'))}", flush=True)


def _skip(shape: Shape, done: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """A record that says why a size is not tried."""
    smaller = [
        r
        for r in done.values()
        if (r["contender"], r["axis"]) == (shape.contender, shape.axis)
        and (r["rows"], r["features"], r["classes"]) < (shape.rows, shape.features, shape.classes)
    ]
    why = None
    if any("error" in r for r in smaller):
        why = "a smaller one was not finished"
    elif len(smaller) > 1:
        points = sorted((float(r[shape.axis]), float(r["processor"])) for r in smaller)
        (n, before), (m, after) = points[-2:]
        slope = math.log(max(after, 0.01) / max(before, 0.01)) / math.log(m / n)
        size = float(getattr(shape, shape.axis))
        expected = after * (size / m) ** max(slope, 0.0)
        is_limited = shape.contender in ("MDL", "SM", "SM1")
        if expected > PATIENCE and not is_limited:
            why = f"about {expected:.0f} s expected"
    return None if why is None else asdict(shape) | {"key": shape.key, "error": why}


def _in_own_process(shape: Shape) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.growth", json.dumps(asdict(shape))]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ENVIRONMENT)
    if done.returncode == TOO_LATE:
        return asdict(shape) | {"key": shape.key, "error": f"more than {PATIENCE:.0f} s"}
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        return asdict(shape) | {"key": shape.key, "error": reason[:200]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def read(records: Path) -> list[dict[str, Any]]:
    """Records so far."""
    return [json.loads(line) for line in records.open()] if records.exists() else []


def exponent(sizes: list[float], values: list[float]) -> float:
    """Slope on logarithmic scales, of the larger half of the sizes."""
    kept = max(2, (len(sizes) + 1) // 2)
    x, y = np.log(sizes[-kept:]), np.log(np.maximum(values[-kept:], 1e-3))
    return float(np.polyfit(x, y, 1)[0]) if len(sizes) > 1 else float("nan")


def table(records: list[dict[str, Any]]) -> str:
    """Processor seconds and megabytes by size, and their exponents."""
    lines = []
    for axis in ("rows", "features", "classes"):
        lines.append(f"{axis}: processor seconds (MB) by size; exponents")
        for contender in CONTENDERS:
            own = [r for r in records if (r["axis"], r["contender"]) == (axis, contender)]
            good = [r for r in own if "error" not in r]
            cells = [f"{r['processor']:.2f} ({r['megabytes']:.0f})" for r in good]
            sizes = [float(r[axis]) for r in good]
            slopes = [exponent(sizes, [r[what] for r in good]) for what in ("processor", "peak")]
            ending = "; ".join(sorted({r["error"] for r in own if "error" in r}))
            lines.append(
                f"  {contender:22} {'  '.join(cells):70} {slopes[0]:.2f} {slopes[1]:.2f} {ending}"
            )
    return "\n".join(lines)


def draw(records: list[dict[str, Any]], picture: Path) -> None:
    """Processor seconds over rows, features and classes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
    for axis, place in zip(("rows", "features", "classes"), axes, strict=True):
        for k, contender in enumerate(CONTENDERS):
            own = [r for r in records if (r["axis"], r["contender"]) == (axis, contender)]
            good = [r for r in own if "error" not in r]
            style = "-" if k < 5 else ":"
            place.plot(
                [r[axis] for r in good],
                [max(r["processor"], 1e-3) for r in good],
                style,
                marker=".",
                label=contender,
            )
        place.set(xscale="log", yscale="log", xlabel=f"{axis} ({OTHERS[axis]})")
    axes[0].set_ylabel("processor seconds of fit")
    axes[2].legend(fontsize="small")
    figure.savefig(picture)
    plt.close(figure)


if __name__ == "__main__":
    print(json.dumps(measure_shape(Shape(**json.loads(sys.argv[1])))))
