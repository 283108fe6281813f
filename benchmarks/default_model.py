"""The default classifier, measured as its users meet it: one record per table and question.

``python -m benchmarks run default --data FOLDER`` runs all of it; FOLDER has the folders
``datasets`` (the paper's data sets) and ``messy`` (raw tables). The questions:

proved
    Default fit on all rows: status, gap, verdicts of both checkers on its certificate.
answers
    P(class | one value) for every value with at least 60 rows: data, ``posterior`` and
    ``predict_proba`` with everything else missing; P(x | y) of ``network_`` along every arc.
incomplete
    Log loss on 200 test rows with 10, 30, 50 % of the values hidden, one known, none hidden.
interactions
    Log loss next to LightGBM on tables whose class depends on products of features.
clock
    The largest difference between predictions of a fit under a clock that runs twelve times too
    fast and a plain fit.
speed
    Processor seconds of a fit and microseconds of a prediction.
"""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from experiments.origin import describe_origin
from numpy.typing import NDArray

PROVED = (
    *("telco", "titanic", "adult", "australian", "car", "chess", "mushroom", "vote", "heart"),
    *("german", "abalone", "breast", "cleve", "corral", "crx", "diabetes", "flare", "glass"),
    *("glass2", "hepatitis", "iris", "letter", "lymphography", "mofn-3-7-10", "nursery", "pima"),
    *("satimage", "segment", "shuttle-small", "soybean-large", "spambase", "vehicle"),
    "waveform-21",
)
ANSWERS = ("telco", "german", "adult", "titanic")
NINE = ("telco", "titanic", "german", "car", "vehicle", "adult", "australian", "nursery", "chess")
INTERACTIONS = ("products-5000", "products-20000", "products-100000", "signs-3000")
CLOCK = ("titanic", "german", "vehicle")
SPEED = ("telco", "titanic", "adult", "random-100000", "random-1000000", "limit-1000000")
TARGETS = {"telco": "Churn", "titanic": "Survived"}
MOST_TRAINING, MOST_TEST = 3000, 1500
CAPS = {"nursery": 3000, "car": 1200, "chess": 1500}
LEAST_ROWS = 60
"""Values with fewer rows have no share of the class worth comparing with."""


def keys() -> list[str]:
    """All units, as words."""
    groups = {
        "proved": PROVED,
        "answers": ANSWERS,
        "incomplete": NINE,
        "interactions": INTERACTIONS,
        "clock": CLOCK,
        "speed": SPEED,
    }
    return [f"{question} {name}" for question, names in groups.items() for name in names]


def measure(key: str, data: Path) -> dict[str, Any]:
    """One record."""
    question, name = key.split()
    ask = {
        "proved": proved,
        "answers": answers,
        "incomplete": incomplete,
        "interactions": interactions,
        "clock": clock,
        "speed": speed,
    }[question]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"key": key, **ask(name, data), "origin": describe_origin()}


def read(name: str, data: Path) -> tuple[Any, NDArray[Any]]:
    """A pandas frame of the features and the labels, training and test rows together."""
    import pandas as pd

    if name in TARGETS:
        frame = pd.read_csv(data / "messy" / f"{name}.csv")
        return frame.drop(columns=TARGETS[name]), frame[TARGETS[name]].to_numpy()
    folder = data / "datasets"
    schema = json.loads((folder / "schema.json").read_text())[name]
    parts = [part for part in (schema["train"], schema["test"]) if part]
    rows = [row for part in parts for row in _rows(folder / part)]
    frame = pd.DataFrame(rows)
    for feature in schema["features"]:
        column = frame[feature["name"]].replace("", None)
        is_number = feature["kind"] == "continuous"
        frame[feature["name"]] = pd.to_numeric(column) if is_number else column
    return frame.drop(columns="class"), frame["class"].to_numpy()


def _rows(path: Path) -> list[dict[str, str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def split(name: str, data: Path) -> tuple[Any, NDArray[Any], Any, NDArray[Any]]:
    """Training and test rows: a third held out, stratified, at most 3000 to train on."""
    from sklearn.model_selection import train_test_split

    X, y = read(name, data)
    labels, counts = np.unique(y, return_counts=True)
    kept = np.flatnonzero(np.isin(y, labels[counts >= 4]))
    a, b = train_test_split(kept, test_size=1 / 3, stratify=y[kept], random_state=77)
    most = CAPS.get(name, MOST_TRAINING)
    if len(a) > most:
        a, _ = train_test_split(a, train_size=most, stratify=y[a], random_state=0)
    if len(b) > MOST_TEST:
        b, _ = train_test_split(b, train_size=MOST_TEST, stratify=y[b], random_state=0)
    take = X.take
    return take(a).reset_index(drop=True), y[a], take(b).reset_index(drop=True), y[b]


def log_loss(probabilities: NDArray[np.float64], classes: NDArray[Any], y: NDArray[Any]) -> float:
    """Mean -log of the probability of the true class, kept above 1e-9."""
    column = {label: k for k, label in enumerate(classes)}
    own = probabilities[np.arange(len(y)), [column[label] for label in y]]
    return float(-np.log(np.maximum(own, 1e-9)).mean())


def proved(name: str, data: Path) -> dict[str, Any]:
    """How far the default fit on all rows comes, and what both checkers say."""
    from marginbn import BNClassifier, verify_certificate

    X, y = read(name, data)
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "proof.mbc"
        start = time.process_time()
        clf = BNClassifier(certificate=certificate).fit(X, y)
        seconds = time.process_time() - start
        start = time.process_time()
        verdict = verify_certificate(certificate)
        checked = time.process_time() - start
        second = subprocess.run(
            [sys.executable, "-m", "marginbn.proof.exact", str(certificate)],
            capture_output=True,
            text=True,
            check=False,
        )
    return {
        "rows": len(y),
        "status": str(clf.status_),
        "gap": clf.gap_,
        "objective": clf.objective_,
        "seconds": seconds,
        "verified": bool(verdict.verified),
        "verify_seconds": checked,
        "exact": second.returncode,
        "exact_says": second.stdout.strip().splitlines()[-1:] or second.stderr[-200:],
    }


def answers(name: str, data: Path) -> dict[str, Any]:
    """Answers for one known value next to the shares of the data."""
    from marginbn import BNClassifier

    X, y = read(name, data)
    clf = BNClassifier().fit(X, y)
    classes = list(clf.classes_)
    used = [v.name for v in clf.network_.variables[1:]]
    off: list[float] = []
    beyond: list[Any] = []
    disagree = 0.0
    for column in used:
        for value, rows in X.groupby(X[column].map(lambda v: v), sort=True).groups.items():
            if len(rows) < LEAST_ROWS:
                continue
            share = np.array([(y[rows] == c).mean() for c in classes])
            answer = clf.posterior({column: value})
            one = X.iloc[[rows[0]]].astype(object)
            one.loc[:, [c for c in X.columns if c != column]] = None
            predicted = clf.predict_proba(one)[0]
            given = np.array([answer[c] for c in classes])
            disagree = max(disagree, float(np.abs(given - predicted).max()))
            error = float(np.abs(given - share).max())
            off.append(error)
            limit = max(0.03, 4 * float(np.sqrt(share * (1 - share) / len(rows)).max()))
            if error > limit:
                beyond.append([column, str(value), len(rows), error])
    return {
        "states": len(off),
        "mean_error": float(np.mean(off)),
        "worst": float(np.max(off)),
        "beyond": beyond,
        "disagreement": disagree,
    }


def incomplete(name: str, data: Path) -> dict[str, Any]:
    """Log loss with values hidden at random."""
    from marginbn import BNClassifier

    X, y, test, labels = split(name, data)
    start = time.process_time()
    clf = BNClassifier().fit(X, y)
    seconds = time.process_time() - start
    pick = np.random.default_rng(5).choice(len(labels), min(200, len(labels)), replace=False)
    found: dict[str, Any] = {"fit_seconds": seconds, "status": str(clf.status_)}
    P = clf.predict_proba(test)
    found["all"] = log_loss(P, clf.classes_, labels)
    found["accuracy"] = float((clf.classes_[P.argmax(axis=1)] == labels).mean())
    rows = test.iloc[pick].astype(object)
    shape = rows.shape
    for share in (0.1, 0.3, 0.5):
        hidden = np.random.default_rng(int(share * 100)).random(shape) < share
        found[f"hidden_{share}"] = log_loss(
            clf.predict_proba(rows.mask(hidden, None)), clf.classes_, labels[pick]
        )
    known = np.zeros(shape, dtype=bool)
    known[np.arange(shape[0]), np.random.default_rng(9).integers(0, shape[1], shape[0])] = True
    one = clf.predict_proba(rows.where(known, None))
    found["one_known"] = log_loss(one, clf.classes_, labels[pick])
    return found


def products(n: int, seed: int) -> tuple[Any, NDArray[np.int64]]:
    """20 numbers and 10 categories; the class depends on two sign products and one equality."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 20))
    categories = rng.integers(0, 4, size=(n, 10))
    score = (
        1.2 * np.sign(numbers[:, 0] * numbers[:, 1])
        + 1.2 * np.sign(numbers[:, 2] * numbers[:, 3])
        + 1.2 * np.where(categories[:, 0] == categories[:, 1], 1.5, -0.5)
        + 0.6 * numbers[:, 4]
        + 0.5 * (categories[:, 2] == 0)
        - 0.4
    )
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    frame = pd.DataFrame(numbers, columns=[f"x{i}" for i in range(20)])
    for i in range(10):
        frame[f"k{i}"] = pd.Series(np.array(list("abcd"), dtype=object)[categories[:, i]])
    return frame, y


def signs(n: int, seed: int) -> tuple[Any, NDArray[np.int64]]:
    """16 numbers; three classes made of products of features."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 16))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    y += X[:, 2] + X[:, 3] * X[:, 4] + rng.normal(size=n) > 0
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(16)]), y


def interactions(name: str, data: Path) -> dict[str, Any]:
    """Log loss and accuracy next to LightGBM's default."""
    from lightgbm import LGBMClassifier

    from marginbn import BNClassifier

    del data
    kind, size = name.split("-")
    make = {"products": products, "signs": signs}[kind]
    X, y = make(int(size), 0)
    test, labels = make(20_000 if kind == "products" else 1000, 1)
    start = time.process_time()
    clf = BNClassifier().fit(X, y)
    seconds = time.process_time() - start
    P = clf.predict_proba(test)
    texts = {c: "category" for c in X if X[c].dtype.kind not in "biuf"}
    frames = [f.astype(texts) for f in (X, test)]
    start = time.process_time()
    boosting = LGBMClassifier(n_jobs=1, verbose=-1).fit(frames[0], y)
    rival_seconds = time.process_time() - start
    Q = boosting.predict_proba(frames[1])
    return {
        "log_loss": log_loss(P, clf.classes_, labels),
        "accuracy": float((clf.classes_[P.argmax(axis=1)] == labels).mean()),
        "lightgbm_log_loss": log_loss(Q, boosting.classes_, labels),
        "lightgbm_accuracy": float((boosting.classes_[Q.argmax(axis=1)] == labels).mean()),
        "seconds": seconds,
        "lightgbm_seconds": rival_seconds,
        "status": str(clf.status_),
        "gap": clf.gap_,
    }


FAST_CLOCK = """
import time
for name in ("time", "monotonic", "perf_counter", "process_time"):
    def fast(plain=getattr(time, name), start=getattr(time, name)()):
        return start + 12 * (plain() - start)
    setattr(time, name, fast)
"""
FIT_AND_SAVE = """
import sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
import numpy as np
from benchmarks.default_model import split
from marginbn import BNClassifier
X, y, test, _ = split(sys.argv[1], Path(sys.argv[2]))
np.save(sys.argv[3], BNClassifier().fit(X, y).predict_proba(test))
"""


def clock(name: str, data: Path) -> dict[str, Any]:
    """The same fit under a plain clock and under one that runs twelve times too fast."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for k, program in enumerate((FIT_AND_SAVE, FAST_CLOCK + FIT_AND_SAVE)):
            target = f"{folder}/{k}.npy"
            words = [sys.executable, "-c", program, name, str(data), target]
            subprocess.run(words, check=True)
            found.append(np.load(target))
    return {"difference": float(np.abs(found[0] - found[1]).max())}


def speed(name: str, data: Path) -> dict[str, Any]:
    """Processor seconds, memory, microseconds a row; ``limit`` fits with five seconds."""
    import resource

    from marginbn import BNClassifier

    kind, _, size = name.partition("-")
    if kind in ("random", "limit"):
        X, y = products(int(size), 2)
    else:
        X, y = read(name, data)
    BNClassifier().fit(X.iloc[:500], y[:500])  # load compiled kernels
    limit = 5.0 if kind == "limit" else None
    start, begun = time.process_time(), time.perf_counter()
    clf = BNClassifier(time_limit=limit).fit(X, y)
    seconds, wall = time.process_time() - start, time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = X.iloc[:100_000]
    clf.predict_proba(rows.iloc[:100])
    start = time.process_time()
    clf.predict_proba(rows)
    complete = 1e6 * (time.process_time() - start) / len(rows)
    holes = rows.iloc[:2000].astype(object)
    hidden = np.random.default_rng(0).random(holes.shape) < 0.3
    holes = holes.mask(hidden, None)
    start = time.process_time()
    clf.predict_proba(holes)
    missing = 1e6 * (time.process_time() - start) / len(holes)
    return {
        "rows": len(y),
        "columns": X.shape[1],
        "seconds": seconds,
        "wall": wall,
        "peak_megabytes": peak,
        "complete_microseconds": complete,
        "incomplete_microseconds": missing,
        "status": str(clf.status_),
        "gap": clf.gap_,
    }
