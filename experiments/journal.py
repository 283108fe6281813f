"""Many short records in one file, a line of JSON each.

A line is written in one piece and ends with a newline. So a run that is killed leaves at most one
torn line, the last one; readers pass it over, and the next run cuts it off before it writes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from experiments.records import Record, Unit, plain, unit_of
from marginbn.exceptions import InputError


def read_journal(path: Path) -> list[Record]:
    """All finished records; none if there is no such file."""
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0].decode("utf-8")
    return [
        _parse(line, f"{path}, line {i}") for i, line in enumerate(whole.split("\n"), 1) if line
    ]


def _parse(line: str, place: str) -> Record:
    try:
        record: Record = json.loads(line)
        unit_of(record)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{place} is no record ({error}); delete the line and run again"
        ) from error
    return record


def read_journals(paths: Iterable[Path]) -> dict[Unit, Record]:
    """Records of several files by unit; two of the same unit are refused."""
    found: dict[Unit, Record] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"RECORDS: there is no file {path}")
        for record in read_journal(path):
            if unit_of(record) in found:
                raise InputError(f"{path} has a second record of {unit_of(record)}; delete one")
            found[unit_of(record)] = record
    return found


def append_record(record: Record, path: Path) -> None:
    """Write one line in one piece."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(plain(record), allow_nan=False) + "\n"
    with path.open("ab", buffering=0) as file:
        file.write(line.encode("utf-8"))
        os.fsync(file.fileno())


def cut_torn_line(path: Path) -> None:
    """Remove what a killed run left of its last line."""
    if path.exists():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)


def unfinished(units: Iterable[Unit], path: Path, settings: dict[str, Any]) -> list[Unit]:
    """Units without a record; a record made with other settings is refused."""
    done = set()
    for record in read_journal(path):
        if record["settings"] != plain(settings):
            raise InputError(
                f"{path} has a record of {unit_of(record)} made with {record['settings']}, "
                f"not {plain(settings)}; give another file with --records"
            )
        done.add(unit_of(record))
    return [unit for unit in units if unit not in done]
