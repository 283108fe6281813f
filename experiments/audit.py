"""Recompute random records of a run and compare: what a second person does who does not believe it.

Only records whose searches ended with a proof can be expected again on another machine: those of
the networks that count their parameters, the final search proved optimal and every validation
search too. (Trained parameters end where an optimiser stops, and differ in digits that matter.)
What has to agree is everything but times and origin; where figures came from arithmetic that may
differ in the last digits (log loss, objective), to seven digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.protocol import read_specs
from experiments.records import Record, Unit, comparable, unit_of
from experiments.settings import Settings
from experiments.unit import run_unit
from marginbn.exceptions import InputError
from marginbn.solvers.result import PROOF_TOLERANCE

DIGITS = 1e-7
FIXED = ("nb",)
"""Methods whose structure is given: nothing is searched."""
METHODS = (*FIXED, "tan", "mdl", "sm", "sbm", "bdeu")
UNSTABLE = ("nodes", "solver", "bound", "gap", "paper_gap")
"""Entries of a search that another version may reach in another way, the optimum being the same."""


def is_proved(record: Record) -> bool:
    """Whether another run must find the same."""
    method = unit_of(record).method
    is_optimal = method in FIXED or record["search"].get("status") == "optimal"
    return method in METHODS and is_optimal and all(map(_is_closed, record["validation"]))


def _is_closed(entry: Record) -> bool:
    """Whether all searches of a setting were proved."""
    gap = entry.get("max_gap", 0.0)
    return gap is not None and gap <= PROOF_TOLERANCE


def choose(records: Sequence[Record], number: int, seed: int, most_seconds: float) -> list[Record]:
    """Random records among those that are proved and took at most so many seconds."""
    usable = [r for r in records if is_proved(r) and r["seconds"]["total"] <= most_seconds]
    if not usable:
        raise InputError("no record has proved searches; there is nothing to audit")
    usable.sort(key=lambda r: str(unit_of(r)))
    places = np.random.default_rng(seed).permutation(len(usable))[:number]
    return [usable[place] for place in sorted(places.tolist())]


@dataclass(frozen=True)
class Finding:
    """A unit and the entries in which the new record differs."""

    unit: Unit
    differing: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.unit}: {', '.join(self.differing) + ' DIFFER' if self.differing else 'same'}"


def audit(records: Sequence[Record], folder: Path) -> Iterator[Finding]:
    """Recompute each record with the settings it tells."""
    specs = read_specs()
    for record in records:
        unit = unit_of(record)
        again = run_unit(unit, specs[unit.dataset], folder, settings_of(record))
        if "error" in again:
            raise InputError(f"{unit} failed:\n{again['error']}")
        yield Finding(unit, tuple(unequal(_expected(record), _expected(again))))


def settings_of(record: Record) -> Settings:
    """The settings that a record was made with."""
    told = record["settings"]
    return Settings(**{k: tuple(v) if isinstance(v, list) else v for k, v in told.items()})


def _expected(record: Record) -> Record:
    """What must agree: of a gap, whether it is closed."""
    kept = comparable(record)
    search = {k: v for k, v in kept["search"].items() if k not in UNSTABLE}
    if unit_of(record).method in FIXED:
        search = {}
    validation = [entry | {"max_gap": _is_closed(entry)} for entry in kept["validation"]]
    return kept | {"search": search, "validation": validation}


def unequal(one: Record, other: Record) -> list[str]:
    """Names of the entries that differ."""
    return [k for k in sorted({*one, *other}) if not close(one.get(k), other.get(k))]


def close(one: Any, other: Any) -> bool:
    """Equal, numbers up to the last digits."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(close, one, other))
    numbers = (int, float)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return math.isclose(one, other, rel_tol=DIGITS, abs_tol=DIGITS)
    return bool(one == other)
