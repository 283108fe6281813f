"""Memory of the engine: what it needs, and how a limit is divided.

Per margin row the scratch of a worker holds some numbers, per open node a store holds the box and
the family's majorant and vertices. All coefficients are held once, in memory or, where they are too
large for it, in a temporary file of which the system keeps what fits; those of the rows that matter
(``rows.py``) are held four times (by row and by column, for bounds and for the local search).
A worker also holds their margins at every structure of its relaxed solution.
"""

from __future__ import annotations

from dataclasses import dataclass

from marginbn.problem.candidates import CandidateSets
from marginbn.solvers.memory import Needs

KEPT_VERTICES = 64
"""Vertices that children inherit."""

SMALLEST_STORE = 3072
"""Places of a worker that searches depth first; see ``workers.py``."""

BASE = 16_000_000
"""Whatever else a solve takes: tables of one candidate, look-up structures, local search."""


@dataclass(frozen=True)
class Shape:
    """The sizes that memory depends on."""

    n_features: int
    n_class_sets: int
    n_rows: int

    @classmethod
    def of(cls, candidates: CandidateSets, n_rows: int) -> Shape:
        """Sizes of a problem."""
        return cls(candidates.n_variables - 1, len(candidates.group(0)), n_rows)

    @property
    def n_columns(self) -> int:
        """Columns of the coefficients."""
        return self.n_features * (self.n_features + 2) + self.n_class_sets

    @property
    def coefficients(self) -> int:
        """Bytes of the coefficients."""
        return 8 * self.n_rows * self.n_columns

    @property
    def scratch(self) -> int:
        """Bytes that each worker needs besides its store."""
        return 10 * 8 * self.n_rows + 10 * 8 * self.n_columns

    @property
    def place(self) -> int:
        """Bytes of one open node with a family of its own."""
        n = self.n_features
        box = (2 * n * n + 3 * n + self.n_class_sets) // 8 + 8
        return box + 8 * self.n_columns + KEPT_VERTICES * (2 * (n + 1) + 8) + 80

    def needs(self, n_jobs: int = 1) -> Needs:
        """At the least, with the coefficients in a file; and with everything in memory."""
        least = BASE + n_jobs * (self.scratch + SMALLEST_STORE * self.place)
        return Needs(least, least + self.coefficients)


@dataclass(frozen=True)
class Division:
    """Bytes for coefficients in memory (more of them go to a file) and for open nodes."""

    dense: int
    store: int


def divide(
    shape: Shape, n_jobs: int, limit: int | None, spendable: float, usual: Division
) -> Division:
    """Divide what may be spent; without a limit never more than usual, so that runs on machines
    with enough memory are the same.
    """
    needs = shape.needs(n_jobs)
    fixed = needs.least - n_jobs * SMALLEST_STORE * shape.place
    fits = needs.full <= spendable and (limit is not None or shape.coefficients <= usual.dense)
    left = spendable - fixed - (shape.coefficients if fits else 0)
    store = min(left, usual.store if limit is None else 2**62)
    return Division(shape.coefficients if fits else 0, max(int(store), 0))
