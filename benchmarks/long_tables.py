"""A table that is longer than memory should be asked to hold: ten million rows from Parquet.

python -m benchmarks run long-tables

One process per classifier. The file is written once, piece by piece, into the folder for temporary
files, by a process of its own, and stays for the next measurement. Half of the columns are numbers,
half are categories. Units such as ``codes.csv-1000000x30`` read a shorter table to codes: from
frames in memory, from files, and from a folder of a thousand files.
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
CODED_ROWS, CODED_FEATURES, FILES = 1_000_000, 30, 1000
SOURCES = ("arrow", "pandas", "polars", "parquet", "csv", "folder")


def keys() -> list[str]:
    """All measurements."""
    coded = [f"codes.{source}-{CODED_ROWS}x{CODED_FEATURES}" for source in SOURCES]
    return [f"{name}-{ROWS}x{FEATURES}" for name in CLASSIFIERS] + coded


def table(rows: int = ROWS, features: int = FEATURES) -> Path:
    """The file, which is made if it is not there."""
    path = Path(tempfile.gettempdir()) / f"marginbn-long-{rows}x{features}.parquet"
    if not path.exists():
        command = [sys.executable, "-m", "benchmarks.long_tables", str(path)]
        subprocess.run([*command, str(rows), str(features)], check=True)
    return path


def source_of(name: str, path: Path) -> Any:
    """The rows of a Parquet file in another form; files are made if they are not there."""
    import pyarrow.csv
    import pyarrow.parquet

    if name == "parquet":
        return path
    rows = pyarrow.parquet.read_table(path)
    if name == "pandas":
        return rows.to_pandas()
    if name == "polars":
        import polars

        return polars.from_arrow(rows)
    if name == "csv":
        path = path.with_suffix(".csv")
        if not path.exists():
            pyarrow.csv.write_csv(rows, path)
        return path
    if name == "folder":
        path = path.with_suffix("")
        if not path.exists():
            path.mkdir()
            size = -(-rows.num_rows // FILES)
            for k in range(FILES):
                pyarrow.parquet.write_table(rows.slice(k * size, size), path / f"{k}.parquet")
        return path
    return rows


def measure_codes(key: str) -> dict[str, Any]:
    """Reading a table to codes; ``peak`` includes the table where it is in memory."""
    from marginbn.data.preparation import TableSettings
    from marginbn.data.source import source_of_memory
    from marginbn.data.table import as_stream
    from marginbn.data.training import TrainingRows, survey

    name, shape = key.removeprefix("codes.").split("-")
    X = source_of(name, table(*map(int, shape.split("x"))))
    begin, processor = time.perf_counter(), time.process_time()
    found = survey(as_stream(X) or source_of_memory(X), "class")
    codes = TrainingRows.of(found, TableSettings()).encode().data.codes
    assert codes.shape == (found.n_rows, 1 + len(found.names))
    return {
        "key": key,
        "seconds": time.perf_counter() - begin,
        "processor": time.process_time() - processor,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "gap": None,
        "nodes": 0,
    }


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
    """One fit or reading, in this process; ``peak`` is all that it ever held."""
    import marginbn
    from benchmarks.instances import Instance

    warnings.simplefilter("ignore")
    if key.startswith("codes."):
        return measure_codes(key)
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
    write_table(Path(sys.argv[1]), *map(int, sys.argv[2:]))
