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
FIRST_SEED = 1957
"""Seeds count from here: no choice about any method was made with these splits."""

KINDS = {
    "gap": ("gap_limit", "table1_probability"),
    "proof": ("proof_jobs", "table1_probability"),
}
"""What the searches behind table 1 depend on, besides the common fields. The time limit of a proof
is not among them: a search that ended without one goes on under a larger limit.
"""
COMMON = ("quick", "max_train")
OF_TABLE1 = ("gap_limit", "proof_limit", "proof_jobs", "table1_probability")
OF_THE_PLAN = ("seeds",)


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a record says, besides data, seed and library versions.

    Parameters
    ----------
    quick
        Whether this is a smoke test.
    seeds
        How many seeds the fast methods get on small data sets.
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
    trees, rounds, bags
        Trees of the forest, most rounds of CatBoost and of the tuned LightGBM, bags of the
        explainable boosting.
    hidden_shares
        Shares of the test values that are hidden, for the comparison with missing features.
    gap_limit, proof_limit, proof_jobs, table1_probability
        Table 1: seconds on one core for the gap, seconds and cores for the proof, and p.
    """

    quick: bool = False
    seeds: int = 5
    inner_limit: float = 1.0
    final_limit: float = 60.0
    outer_folds: int = 5
    max_train: int | None = None
    max_test: int | None = None
    validation_folds: int = 5
    probabilities: tuple[float, ...] = PAPER_PROBABILITIES
    sigmas: tuple[float, ...] = PAPER_SIGMAS
    penalties: tuple[float, ...] = PAPER_PENALTIES
    svm_rows: int = 4000
    trees: int = 500
    rounds: int = 1000
    bags: int = 14
    hidden_shares: tuple[float, ...] = ()
    gap_limit: float = 60.0
    proof_limit: float = 1800.0
    proof_jobs: int = 2
    table1_probability: float = 0.9

    @property
    def gammas(self) -> tuple[float, ...]:
        """The gamma grid."""
        return tuple(math.log(p / (1 - p)) for p in self.probabilities)

    @property
    def table1_gamma(self) -> float:
        """gamma of the problems behind table 1."""
        return math.log(self.table1_probability / (1 - self.table1_probability))

    def relevant(self, kind: str = "accuracy") -> dict[str, Any]:
        """The fields that a record of this kind depends on, as JSON values."""
        fields = asdict(self)
        left_out = (*OF_TABLE1, *OF_THE_PLAN)
        own = KINDS.get(kind, tuple(name for name in fields if name not in left_out))
        chosen = {name: v for name, v in fields.items() if name in (*COMMON, *own)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in chosen.items()}

    def describe(self) -> str:
        """What a quick run leaves out, in words; empty for a full run."""
        if not self.quick:
            return ""
        return (
            f"QUICK RUN, a smoke test and no reproduction: one seed, {self.outer_folds} of 5 "
            f"folds, at most {self.max_train} training and {self.max_test} test rows, one 20 % "
            f"validation split, p in {self.probabilities}, "
            f"{len(self.sigmas) * len(self.penalties)} SVM settings instead of 99, "
            f"{self.trees} trees, {self.rounds} rounds and {self.bags} bags of boosting, "
            f"{self.inner_limit:g} s per validation search and {self.final_limit:g} s per final "
            f"search; table 1 with {self.gap_limit:g} s and {self.proof_limit:g} s on those rows."
        )


def full(**changes: Any) -> Settings:
    """The paper's protocol."""
    return Settings(**changes)


def quick(**changes: Any) -> Settings:
    """All data sets and methods in minutes."""
    small: dict[str, Any] = {
        "quick": True,
        "seeds": 1,
        "inner_limit": 0.25,
        "final_limit": 1.0,
        "outer_folds": 1,
        "max_train": 400,
        "max_test": 1000,
        "validation_folds": 1,
        "probabilities": (0.6, 0.9, 0.99),
        "sigmas": (1.0, 2.0, 4.0),
        "penalties": (1.0, 8.0),
        "svm_rows": 1000,
        "trees": 50,
        "rounds": 50,
        "bags": 2,
        "gap_limit": 1.0,
        "proof_limit": 2.0,
    }
    return Settings(**(small | changes))
