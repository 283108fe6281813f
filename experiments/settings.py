"""How thorough a run is: limits, grids, subsampling. Two settings have the same results or differ.

``full()`` is the paper's protocol with shorter time limits. ``quick()`` touches every data set
and every method within minutes; its numbers are a smoke test and say so.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

PAPER_PROBABILITIES = (0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
PAPER_SIGMAS = tuple(2.0**k for k in range(-5, 6))
PAPER_PENALTIES = tuple(2.0**k for k in range(-3, 6))


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a record says, besides data and library versions.

    Parameters
    ----------
    quick
        Whether this is a smoke test.
    seed
        Of all splits, subsamples and estimators.
    inner_limit, final_limit
        Seconds for each structure search during validation, and for the final one.
    outer_folds
        How many of the five cross-validation folds are run.
    max_train, max_test
        At most this many training and test rows, drawn at random; None for all.
    validation_folds
        Folds where the training part is small; 1 means one 20 % split whatever its size.
    probabilities
        The gamma grid as p, gamma = log(p / (1 - p)).
    sigmas, penalties
        Grid of the support vector machine: kernel width and C.
    svm_rows
        Larger training parts are cut to this many random rows while the SVM grid is validated
        (the final machine learns from all rows), and so are larger validation parts.
    table1_limit, table1_probability
        Seconds and p of the problems behind table 1.
    """

    quick: bool = False
    seed: int = 0
    inner_limit: float = 3.0
    final_limit: float = 60.0
    outer_folds: int = 5
    max_train: int | None = None
    max_test: int | None = None
    validation_folds: int = 5
    probabilities: tuple[float, ...] = PAPER_PROBABILITIES
    sigmas: tuple[float, ...] = PAPER_SIGMAS
    penalties: tuple[float, ...] = PAPER_PENALTIES
    svm_rows: int = 6000
    table1_limit: float = 60.0
    table1_probability: float = 0.9

    @property
    def gammas(self) -> tuple[float, ...]:
        """The gamma grid."""
        return tuple(math.log(p / (1 - p)) for p in self.probabilities)

    @property
    def table1_gamma(self) -> float:
        """gamma of the problems behind table 1."""
        return math.log(self.table1_probability / (1 - self.table1_probability))

    def relevant(self, is_table1: bool) -> dict[str, Any]:
        """The fields that a record depends on, as JSON values."""
        fields = asdict(self)
        common = ("quick", "seed", "max_train")
        chosen = {
            name: value
            for name, value in fields.items()
            if name in common or name.startswith("table1_") == is_table1
        }
        return {k: list(v) if isinstance(v, tuple) else v for k, v in chosen.items()}

    def describe(self) -> str:
        """What a quick run leaves out, in words; empty for a full run."""
        if not self.quick:
            return ""
        return (
            f"QUICK RUN, a smoke test and no reproduction: {self.outer_folds} of 5 folds, at most "
            f"{self.max_train} training and {self.max_test} test rows, one 20 % validation split, "
            f"p in {self.probabilities}, {len(self.sigmas) * len(self.penalties)} SVM settings "
            f"instead of 99, {self.inner_limit:g} s per validation search and {self.final_limit:g} "
            f"s per final search; table 1 with {self.table1_limit:g} s on the same rows."
        )


def full(**changes: Any) -> Settings:
    """The paper's protocol."""
    return Settings(**changes)


def quick(**changes: Any) -> Settings:
    """All data sets and methods in minutes."""
    small: dict[str, Any] = {
        "quick": True,
        "inner_limit": 0.25,
        "final_limit": 1.0,
        "outer_folds": 1,
        "max_train": 1000,
        "max_test": 2000,
        "validation_folds": 1,
        "probabilities": (0.6, 0.9, 0.99),
        "sigmas": (1.0, 2.0, 4.0),
        "penalties": (1.0, 8.0),
        "svm_rows": 1000,
        "table1_limit": 3.0,
    }
    return Settings(**(small | changes))
