"""Units of work and their records: one file of JSON lines for accuracies, one for table 1.

A line is written in one piece and ends with a newline. So a run that is killed leaves at most one
torn line, the last of a file; readers pass it over, and the next run cuts it off before it writes.
A unit may have several lines, where a search went on under a larger limit: the last one counts.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError
from marginbn.solvers.result import Status

Record = dict[str, Any]

VOLATILE = ("seconds", "origin")
"""What may differ between two runs of the same unit; inside "search" also the times."""
VOLATILE_SEARCH = ("seconds", "trace")
VOLATILE_WORKERS = ("nodes", "bound", "gap", "paper_gap")
"""Where several workers share a tree, also the way to the optimum and, within the tolerance, how
far its bound came down.
"""
DEALT = ("unit", "quick", "settings", "split")
"""What two runs of a unit have in common even where a clock ended their searches."""


@dataclass(frozen=True, order=True)
class Unit:
    """One method on one outer fold of one data set, dealt by a seed; perhaps with fewer rows."""

    dataset: str
    method: str
    seed: int
    fold: int = 0
    rows: int | None = None

    @property
    def kind(self) -> str:
        """Either "gap" or "proof" for the searches behind table 1, else "accuracy"."""
        kind, _, rest = self.method.partition("-")
        return kind if kind in ("gap", "proof") and rest else "accuracy"

    def path(self, folder: Path) -> Path:
        """The file its record belongs into."""
        return folder / ("accuracy.jsonl" if self.kind == "accuracy" else "table1.jsonl")

    @property
    def told(self) -> dict[str, Any]:
        """As JSON values."""
        told = {k: getattr(self, k) for k in ("dataset", "method", "seed", "fold", "rows")}
        return {k: v for k, v in told.items() if v is not None}

    def __str__(self) -> str:
        rows = "" if self.rows is None else f" {self.rows} rows"
        return f"{self.dataset} {self.method} seed {self.seed} fold {self.fold}{rows}"


def unit_of(record: Record) -> Unit:
    return Unit(**record["unit"])


def append_record(record: Record, folder: Path) -> None:
    """Write one line in one piece."""
    path = unit_of(record).path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    line = json.dumps(plain(record), allow_nan=False, separators=(",", ":")) + "\n"
    with path.open("ab", buffering=0) as file:
        file.write(line.encode("utf-8"))
        os.fsync(file.fileno())


def plain(value: Any) -> Any:
    """JSON values; numbers that JSON does not know (infinite, not a number) become None."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def cut_torn_lines(folder: Path) -> None:
    """Remove what a killed run left of a last line."""
    for path in folder.glob("*.jsonl"):
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)


def read_records(folder: Path) -> Iterator[Record]:
    """The last record of every unit in a folder, by file name and then in the order of writing."""
    for path in sorted(folder.glob("*.jsonl")):
        yield from {unit_of(r): r for r in _read_lines(path)}.values()


def _read_lines(path: Path) -> Iterator[Record]:
    whole = path.read_bytes().rpartition(b"\n")[0].decode("utf-8")
    for i, line in enumerate(whole.split("\n"), 1):
        if line:
            yield _parse(line, f"{path}, line {i}")


def _parse(line: str, place: str) -> Record:
    try:
        record: Record = json.loads(line)
        unit_of(record)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{place} is no record ({error}); delete the line and run again"
        ) from error
    return record


def pack_bits(correct: NDArray[np.bool_]) -> str:
    """Row by row right or wrong as hexadecimal digits, the first row in the highest bit."""
    return np.packbits(correct).tobytes().hex()


def unpack_bits(text: str, n_rows: int) -> NDArray[np.bool_]:
    """The inverse of :func:`pack_bits`."""
    packed = np.frombuffer(bytes.fromhex(text), dtype=np.uint8)
    return np.unpackbits(packed, count=n_rows).astype(np.bool_)


def comparable(record: Record) -> Record:
    """The record without times and origin."""
    kept = {k: v for k, v in record.items() if k not in VOLATILE}
    search = kept.get("search", {})
    volatile = VOLATILE_SEARCH + (VOLATILE_WORKERS if search.get("jobs", 1) > 1 else ())
    return kept | {"search": {k: v for k, v in search.items() if k not in volatile}}


def is_stopped(record: Record) -> bool:
    """Whether a clock ended the search, so that another run may get further or less far."""
    return bool(record.get("search", {}).get("status") == Status.TIME_LIMIT)


def differences(first: Path, second: Path) -> list[str]:
    """Lines that tell how two folders of records differ, times and origin aside; of units whose
    search a clock has ended only what was dealt to them is compared.
    """
    left, right = (
        {str(unit_of(r)): comparable(r) for r in read_records(f)} for f in (first, second)
    )
    for name in left.keys() & right.keys():
        if is_stopped(left[name]) or is_stopped(right[name]):
            for side in (left, right):
                side[name] = {k: side[name].get(k) for k in DEALT}
    lines = [f"only in {first}: {name}" for name in sorted(left.keys() - right.keys())]
    lines += [f"only in {second}: {name}" for name in sorted(right.keys() - left.keys())]
    for name in sorted(left.keys() & right.keys()):
        lines += [f"{name}: {entry} differs" for entry in differing(left[name], right[name])]
    return lines


def differing(one: Record, other: Record) -> list[str]:
    """Names of the entries in which two comparable records differ."""
    return [k for k in sorted({*one, *other}) if one.get(k) != other.get(k)]
