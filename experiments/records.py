"""Units of work and their records: one JSON file each, complete or not there at all."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.methods import TABLE1_METHODS
from marginbn.exceptions import InputError
from marginbn.files import write_text

Record = dict[str, Any]

VOLATILE = ("seconds", "versions", "machine")
"""What may differ between two runs of the same unit; inside "search" also the times."""
VOLATILE_SEARCH = ("seconds", "trace")


@dataclass(frozen=True, order=True)
class Unit:
    """One method on one outer fold of one data set."""

    dataset: str
    method: str
    fold: int

    @property
    def is_table1(self) -> bool:
        return self.method in TABLE1_METHODS

    def path(self, folder: Path) -> Path:
        """Where its record belongs."""
        return folder / self.dataset / f"{self.method}.{self.fold}.json"

    def __str__(self) -> str:
        return f"{self.dataset} {self.method} fold {self.fold}"


def unit_of(record: Record) -> Unit:
    return Unit(**record["unit"])


def write_record(record: Record, folder: Path) -> None:
    """Write all or nothing, so that no reader ever sees half a record."""
    path = unit_of(record).path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, _to_json(record))


def _to_json(record: Record) -> str:
    """One line per top-level entry: short files that still show what changed."""
    lines = [f"{json.dumps(k)}: {json.dumps(plain(v), allow_nan=False)}" for k, v in record.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def plain(value: Any) -> Any:
    """JSON values; numbers that JSON does not know (infinite, not a number) become None."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def read_record(path: Path) -> Record:
    try:
        record: Record = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is no record ({error}); delete it and run again") from error
    return record


def read_records(folder: Path) -> Iterator[Record]:
    """All records of a folder, in the order of their names; scratch files are passed over."""
    for path in sorted(folder.glob("*/*.json")):
        if re.fullmatch(r".+\.\d+\.json", path.name):
            yield read_record(path)


def pack_bits(correct: NDArray[np.bool_]) -> str:
    """Row by row right or wrong as hexadecimal digits, the first row in the highest bit."""
    return np.packbits(correct).tobytes().hex()


def unpack_bits(text: str, n_rows: int) -> NDArray[np.bool_]:
    """The inverse of :func:`pack_bits`."""
    packed = np.frombuffer(bytes.fromhex(text), dtype=np.uint8)
    return np.unpackbits(packed, count=n_rows).astype(np.bool_)


def comparable(record: Record) -> Record:
    """The record without times, versions and machine."""
    kept = {k: v for k, v in record.items() if k not in VOLATILE}
    search = kept.get("search", {})
    return kept | {"search": {k: v for k, v in search.items() if k not in VOLATILE_SEARCH}}


def differences(first: Path, second: Path) -> list[str]:
    """Lines that tell how two folders of records differ, times aside."""
    left, right = (
        {str(unit_of(r)): comparable(r) for r in read_records(f)} for f in (first, second)
    )
    lines = [f"only in {first}: {name}" for name in sorted(left.keys() - right.keys())]
    lines += [f"only in {second}: {name}" for name in sorted(right.keys() - left.keys())]
    for name in sorted(left.keys() & right.keys()):
        fields = [k for k in left[name] if left[name][k] != right[name].get(k)]
        lines += [f"{name}: {field} differs" for field in fields]
    return lines
