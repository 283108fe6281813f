"""Rows to learn from: prepared, complete and weighted, in memory or in blocks.

A classifier asks two things of them. ``sample()`` are rows for validation, as a table: all of them,
or the fixed sample of a long table (``labelled.py``). ``encode()`` are all rows as codes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Self

from marginbn.data.encode import EncodedTraining, IsLate, encode_training
from marginbn.data.guardrails import find_slips
from marginbn.data.labelled import LabelledTable, report_sample
from marginbn.data.long_table import (
    LongTraining,
    Plan,
    Survey,
    check_target,
    encode_plan,
    plan_survey,
    survey,
)
from marginbn.data.preparation import Preparation, TableSettings, tell
from marginbn.data.source import Source
from marginbn.exceptions import DataWarning, warn_user


@dataclass(frozen=True, eq=False)
class TrainingRows(ABC):
    """What every kind of rows knows.

    Parameters
    ----------
    settings
        How the table became these rows.
    preparation
        What became of the columns.
    n_samples, n_dropped
        Rows that are used, and rows left out because of missing values.
    fingerprint
        SHA-256 of the table as it was given.
    began
        When reading began, by :func:`time.monotonic`: limits of time count from then.
    """

    settings: TableSettings
    preparation: Preparation
    n_samples: int
    n_dropped: int
    fingerprint: str
    began: float = field(default_factory=monotonic, kw_only=True)

    def elapsed(self) -> float:
        """Seconds since reading began."""
        return monotonic() - self.began

    def sample(self) -> LabelledTable:
        """Rows to choose settings by; where they are not all rows, a warning says so."""
        rows = self._sample()
        if rows.n_rows < self.n_samples:
            warn_user(
                f"what is chosen by validation is chosen on {rows.n_rows} of {self.n_samples} "
                "rows, drawn at random with a fixed seed; counts are those of all rows",
                DataWarning,
            )
        return rows

    @abstractmethod
    def _sample(self) -> LabelledTable:
        """The rows of the sample."""

    @abstractmethod
    def encode(self, is_late: IsLate = lambda: False) -> EncodedTraining:
        """All rows as codes; when it ``is_late``, the bins that are left come from few rows."""


@dataclass(frozen=True, eq=False)
class RowsInMemory(TrainingRows):
    """Rows of a table that is read as a whole."""

    rows: LabelledTable

    @classmethod
    def of(cls, given: LabelledTable, settings: TableSettings, began: float) -> Self:
        """Columns left out, categories merged, dates taken apart, rows dropped; each is told."""
        fingerprint = given.fingerprint()
        preparation = settings.learn(given.features)
        tell(preparation, settings)
        _warn_of_slips(given, preparation)
        prepared = replace(given, features=preparation.apply_to_all(given.features))
        rows = prepared.without_missing(settings.missing)
        n_dropped = given.n_rows - rows.n_rows
        weighted = rows.reweighted(settings.class_weight)
        about = (settings, preparation, rows.n_rows, n_dropped, fingerprint)
        return cls(*about, weighted, began=began)

    def _sample(self) -> LabelledTable:
        return self.rows.sampled()

    def encode(self, is_late: IsLate = lambda: False) -> EncodedTraining:
        """All rows as codes."""
        return encode_training(self.rows, self.settings.missing, is_late)


@dataclass(frozen=True, eq=False)
class RowsInBlocks(TrainingRows):
    """Rows of a table that is read block by block."""

    names: tuple[str, ...]
    plan: Plan
    made: LongTraining

    @classmethod
    def of(cls, found: Survey, settings: TableSettings, began: float) -> Self:
        """Decide what becomes of columns and rows, then encode them."""
        plan = plan_survey(found, settings)
        made = encode_plan(found, plan)
        tell(made.preparation, settings)
        _warn_of_slips(found.drawn, made.preparation)
        report_sample(made.sampled, found.n_rows)
        about = (settings, made.preparation, made.data.n_samples, made.n_dropped, made.fingerprint)
        return cls(*about, found.names, plan, made, began=began)

    def _sample(self) -> LabelledTable:
        return self.plan.rows

    def encode(self, is_late: IsLate = lambda: False) -> EncodedTraining:
        """All rows as codes."""
        return self.made.training


def _warn_of_slips(given: LabelledTable, preparation: Preparation) -> None:
    for line in find_slips(given, preparation.used_names):
        warn_user(line, DataWarning)


def read_source(
    source: Source, target: Any, settings: TableSettings, began: float
) -> LabelledTable | RowsInBlocks:
    """Rows of a table that can be read in blocks; a short one as a whole, as it was given."""
    found = survey(source, check_target(source, target), settings.column_kinds)
    return found.drawn if found.is_whole else RowsInBlocks.of(found, settings, began)
