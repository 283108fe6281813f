"""The sizes that memory of branch and cut depends on, and how a search divides what it may take.

Linear programmes grow with the candidates and with the samples near a kink; both have an allowance
per candidate and per margin row. The margin matrix is written out where it fits; else its columns
are made when asked for and a cache keeps some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.memory import Division, Memory, Needs


@dataclass(frozen=True)
class BranchCutShape:
    """Sizes of a problem; bytes unless something else is said."""

    n_candidates: int
    n_rows: int

    BASE: ClassVar = 60_000_000  # HiGHS and the rows of one programme, whatever the problem
    PER_CANDIDATE, PER_ROW = 500, 200
    LARGEST_DENSE: ClassVar = 1_500_000_000  # written out where no limit says otherwise
    LARGEST_CACHE: ClassVar = 500_000_000  # of columns
    LARGEST_TREE: ClassVar = 1_500_000_000  # of open nodes

    @classmethod
    def of(cls, problem: StructureProblem) -> BranchCutShape:
        """Sizes of a problem."""
        return cls(problem.candidates.n_candidates, problem.n_rows)

    def needs(self) -> Needs:
        """At the least, with columns made on demand; and with the matrix written out."""
        least = self.BASE + self.PER_CANDIDATE * self.n_candidates + self.PER_ROW * self.n_rows
        return Needs(least, least + 8 * self.n_rows * self.n_candidates)

    def divide(self, memory: Memory) -> Division:
        """Divide what may be spent; without a limit never more than the largest sizes above."""
        needs, has_limit = self.needs(), memory.limit is not None
        matrix = needs.full - needs.least
        fits = needs.full <= memory.spendable and (has_limit or matrix <= self.LARGEST_DENSE)
        left = max(0.0, memory.spendable - (needs.full if fits else needs.least))
        cache = 0 if fits else int(min(self.LARGEST_CACHE, left / 2))
        tree = min(left - cache, 2**62 if has_limit else self.LARGEST_TREE)
        return Division(matrix if fits else 0, cache, int(tree))
