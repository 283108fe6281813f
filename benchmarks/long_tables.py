"""A table that is longer than memory should be asked to hold: ten million rows from Parquet.

python -m benchmarks run long-tables

One process per classifier. The file is written once, piece by piece, into the folder for temporary
files, by a process of its own, and stays for the next measurement. Half of the columns are numbers,
half are categories.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROWS, FEATURES, PIECE = 10_000_000, 20, 500_000
SEARCH = 120.0
CLASSIFIERS = ("NB", "TAN", "SM")


def keys() -> list[str]:
    """All measurements."""
    return [f"{name}-{ROWS}x{FEATURES}" for name in CLASSIFIERS]


def table() -> Path:
    """The file, which is made if it is not there."""
    path = Path(tempfile.gettempdir()) / f"marginbn-long-{ROWS}x{FEATURES}.parquet"
    if not path.exists():
        subprocess.run([sys.executable, "-m", "benchmarks.long_tables", str(path)], check=True)
    return path


def write_table(path: Path, rows: int = ROWS, features: int = FEATURES) -> None:
    """Numbers and categories that depend on the class and on their neighbours."""
    import pyarrow
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    writer = None
    unfinished = path.with_suffix(".part")
    for begin in range(0, rows, PIECE):
        count = min(PIECE, rows - begin)
        y = rng.integers(0, 2, count)
        columns: dict[str, Any] = {"class": pyarrow.array(np.array(["no", "yes"])[y])}
        before = np.zeros(count, dtype=np.int64)
        for i in range(features):
            states = (rng.integers(0, 4, count) + (y if i % 3 == 0 else 0)) % 4
            copied = rng.random(count) < 0.4
            states[copied] = (before[copied] + y[copied]) % 4
            if i % 2:
                columns[f"x{i}"] = pyarrow.array(np.array(["a", "b", "c", "d"])[states])
            else:
                columns[f"x{i}"] = pyarrow.array(states + rng.normal(0.0, 0.3, count))
            before = states
        piece = pyarrow.table(columns)
        writer = writer or pyarrow.parquet.ParquetWriter(unfinished, piece.schema)
        writer.write_table(piece)
    assert writer is not None
    writer.close()
    unfinished.rename(path)


def measure(key: str) -> dict[str, Any]:
    """One fit, in this process; ``peak`` is all that it ever held."""
    import marginbn
    from benchmarks.instances import Instance

    warnings.simplefilter("ignore")
    name, path = key.split("-")[0], table()
    classifier: Any = {"NB": marginbn.NaiveBayesClassifier, "TAN": marginbn.TANClassifier}.get(name)
    if classifier is None:
        marginbn.solve_structure(Instance.parse("random-30-12-2-0:sm:0.9:2").problem(None))
        few = np.random.default_rng(0).integers(0, 2, (40, 5))
        settings = {"column_kinds": "categorical", "search": marginbn.Search(rows="groups")}
        marginbn.MaxMarginBNClassifier(**settings).fit(few[:, 1:], few[:, 0])  # kernels of groups
        classifier = marginbn.MaxMarginBNClassifier(time_limit=SEARCH)
    else:
        classifier = classifier()
    begin, processor = time.perf_counter(), time.process_time()
    classifier.fit(path, "class")
    result = classifier.result_
    return {
        "key": key,
        "seconds": time.perf_counter() - begin,
        "processor": time.process_time() - processor,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "gap": result.gap if name == "SM" else None,
        "nodes": 0 if result is None else result.nodes,
    }


if __name__ == "__main__":
    write_table(Path(sys.argv[1]))
