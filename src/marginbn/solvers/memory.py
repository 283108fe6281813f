"""How much memory a solve may take, what the tree searches need of it, and how they divide it.

A limit bounds what a solve takes in addition to the process as it is: coefficients, scratch and
open nodes. Without one, :data:`SHARE` of what the machine has left is the limit. Open nodes get
what coefficients and scratch leave over; when their store is full the search goes depth first.

*Branch and bound.* All coefficients are held once; those of the rows that matter (``rows.py``) four
times, by row and by column, for bounds and for the local search, and twice more while a new choice
is made. A worker also holds their margins at every structure of its relaxed solution. Where all
this is too much there are codes and tables, and coefficients of as many groups (``row_groups.py``)
as there is room for.

*Branch and cut.* Linear programmes grow with the candidates and with the samples near a kink; both
have an allowance per candidate and per margin row. The margin matrix is written out where it fits;
else its columns are made when asked for and a cache keeps some.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import psutil

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.array_types import IntArray
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.problem import StructureProblem, count_table_cells

SHARE = 0.8
"""Part of the memory left on the machine that a solve without a limit may take."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Needs:
    """Bytes that a solver needs at the least, and with everything in memory."""

    least: int
    full: int


def parse_memory(value: int | float | str | None, name: str = "memory_limit") -> int | None:
    """Bytes of a limit given as a number or as text; None stays None.

    Examples
    --------
    >>> parse_memory("2 GB"), parse_memory("512MiB"), parse_memory(10**6)
    (2000000000, 536870912, 1000000)
    """
    if value is None:
        return None
    amount = math.nan
    with suppress(TypeError, ValueError):
        match = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            amount = float(match[1]) * _UNITS[(match[2] or "").lower()]
        elif not isinstance(value, str | bool):
            amount = float(value)
    if not 1 <= amount < 2**62:
        raise InputError(
            f"{name} must be a positive number of bytes, text like '2 GB' or None, got {value!r}"
        )
    return int(amount)


def describe_bytes(count: float) -> str:
    """A number of bytes for people.

    Examples
    --------
    >>> describe_bytes(2_500_000_000), describe_bytes(3_000_000)
    ('2.5 GB', '3.0 MB')
    """
    for unit, scale in (("TB", 10**12), ("GB", 10**9)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count / 10**6:.1f} MB"


@dataclass(frozen=True)
class Memory:
    """Bytes that one solve may take. The machine is asked once, by :meth:`probe`."""

    limit: int | None
    spendable: float
    """The limit, or a share of what is left; infinite if unknown."""

    @classmethod
    def probe(cls, limit: int | None) -> Memory:
        """What a limit, or none, means on this machine now."""
        return cls(limit, SHARE * available_memory() if limit is None else limit)

    def refuse_if_too_large(self, solver: str, needs: Needs) -> None:
        """Say before anything starts that a problem cannot fit.

        Raises
        ------
        ProblemTooLargeError
            If the solver needs more than the limit, or than the machine has left.
        """
        if needs.least <= self.spendable:
            return
        if self.limit is None:
            bound = f"the machine has {describe_bytes(self.spendable)} to spare; free some, or"
        else:
            bound = f"memory_limit is {describe_bytes(self.limit)}; raise it, or"
        raise ProblemTooLargeError(
            f"solver {solver!r} needs at least {describe_bytes(needs.least)} for this problem, and "
            f"{bound} use fewer features, fewer rows, a smaller max_parents or fewer workers"
        )


@dataclass(frozen=True)
class Division:
    """Bytes for coefficients in memory, for columns kept where these are not, for open nodes, and
    for the coefficients of rows and groups that boxes are bounded with.
    """

    dense: int
    cache: int
    tree: int
    rows: int = 0


# ---------------------------------------------------------------------- what engines need

LARGEST_ARITY = 2**16
"""States of a feature that a code has room for."""

KEPT_VERTICES = 40
"""Vertices that the children of a node inherit."""

ACTIVE_VERTICES = 128
"""Vertices of one convex combination; the lightest leaves when there are more."""


def free_features(candidates: CandidateSets) -> IntArray:
    """Features that some structure joins to the class or to another one; at least one feature."""
    is_free = np.zeros(candidates.n_variables, dtype=np.bool_)
    is_free[candidates.child[candidates.sizes > 0]] = True
    members = np.bitwise_or.reduce(candidates.masks, axis=0)
    is_free |= np.unpackbits(members.view(np.uint8), bitorder="little")[: is_free.size] == 1
    return np.flatnonzero(is_free[1:]) + 1 if is_free[1:].any() else np.ones(1, dtype=np.int64)


@dataclass(frozen=True)
class BranchBoundShape:
    """Sizes of a problem for branch and bound; bytes unless something else is said."""

    n_features: int
    n_class_sets: int
    n_rows: int
    n_samples: int = 0
    n_classes: int = 2
    table_cells: int = 0
    has_arcs: bool = True  # whether features may have features as parents
    has_codes: bool = True  # whether every state has room in a code

    BASE: ClassVar = 16_000_000  # tables of one candidate, look-up structures, local search
    LARGEST_SMALL_STORE: ClassVar = 400_000_000
    MOST_PLACES, FEWEST_PLACES = 3072, 48
    """Places of a worker that searches depth first: as many as the first fit into this size, within
    these limits."""
    LARGEST_DENSE: ClassVar = 400_000_000
    """Coefficients of one row per sample that are written out: making and copying more takes longer
    than groups do. Of several rows, most of which never matter, up to four times as much."""
    LONG, LONG_FROM = 40, 32_000_000
    """Rows for every column, and bytes of coefficients, from which on groups of rows are quicker
    where a sample has one row: adult (59 rows for a column) is proved with them in the time in
    which all rows leave a gap; letter (35) takes as long, shuttle-full (83, few bytes) longer."""
    BYTES_PER_SECOND: ClassVar = 50_000_000  # written in about a tenth of the time limit
    LARGEST_TREE: ClassVar = 4_000_000_000  # a million open nodes with 57 features
    LARGEST_ROWS, SMALLEST_ROWS = 800_000_000, 64_000_000  # coefficients of groups and samples
    FEWEST_GROUPS: ClassVar = 32
    COPIES, PER_ROW = 6, 10
    """Of the coefficients of rows that matter, and numbers that a worker holds of each."""
    COUNTS: ClassVar = 40_000_000  # from which tables are made

    @classmethod
    def of(cls, problem: StructureProblem) -> BranchBoundShape:
        """Sizes of a problem."""
        candidates, margins = problem.candidates, problem.margins
        n, n_sets = free_features(candidates).size, len(candidates.group(0))
        has_arcs = candidates.max_parents > 1
        if margins is None:
            return cls(n, n_sets, 0, has_arcs=has_arcs)
        data = margins.data
        cells = count_table_cells(data, candidates.max_parents)
        coded = bool((data.arities <= LARGEST_ARITY).all())
        samples, classes = problem.n_samples, data.n_classes
        return cls(n, n_sets, problem.n_rows, samples, classes, cells, has_arcs, coded)

    @property
    def n_columns(self) -> int:
        """Columns of the coefficients."""
        return self.n_features * (self.n_features * self.has_arcs + 2) + self.n_class_sets

    @property
    def rivals(self) -> int:
        """Rows per sample."""
        return max(1, self.n_rows // max(self.n_samples, 1))

    @property
    def coefficients(self) -> int:
        """All coefficients."""
        return 8 * self.n_rows * self.n_columns

    def dense(self, n_jobs: int = 1, at_worst: bool = False) -> int:
        """Coefficients, copies of those that matter (at worst all), and margins at vertices."""
        margins = 8 * (ACTIVE_VERTICES + self.PER_ROW) * self.n_rows
        copies = self.COPIES * self.coefficients + n_jobs * margins
        return self.coefficients + copies // (1 if at_worst else min(self.rivals, 4))

    def coded(self, n_jobs: int = 1) -> int:
        """Codes, tables, sums by class, what looking for groups to split takes, and margins."""
        codes = 2 * (self.n_features + 1) * self.n_samples
        tables = 8 * self.table_cells + min(8 * self.table_cells, self.COUNTS)
        sums = 2 * 8 * self.n_classes * self.rivals * self.n_columns
        return codes + tables + sums + 64 * self.n_samples + (1 + 2 * n_jobs) * 8 * self.n_rows

    @property
    def least_rows(self) -> int:
        """Coefficients of some groups and of a sample: with too few a proof takes for ever."""
        rows = max(4 * self.n_classes * self.rivals, self.FEWEST_GROUPS)
        return max(64 * rows * self.n_columns, self.SMALLEST_ROWS)

    @property
    def place(self) -> int:
        """One open node with a family of its own."""
        n = self.n_features
        bits = n * (n * self.has_arcs + 2) + self.n_class_sets + n + n * n * self.has_arcs
        slot = 1 if n + 2 <= 256 else 2
        return bits // 8 + 8 + KEPT_VERTICES * (slot * (n + 2) + 4) + 112

    @property
    def smallest_places(self) -> int:
        """Places of the smallest store."""
        fitting = self.LARGEST_SMALL_STORE // self.place
        return max(self.FEWEST_PLACES, min(self.MOST_PLACES, fitting))

    def fixed(self, n_jobs: int) -> int:
        """Everything but coefficients, codes and stores: ten numbers per column, some graphs."""
        return self.BASE + n_jobs * (80 * self.n_columns + 128 * self.n_features**2)

    def stores(self, n_jobs: int) -> int:
        """The smallest stores of all workers."""
        return n_jobs * self.smallest_places * self.place

    @property
    def is_dense(self) -> bool:
        """Whether coefficients are written out where there is memory for them."""
        per_column = self.n_samples / self.n_columns if self.rivals == 1 else 0.0
        is_long = self.coefficients > self.LONG_FROM and per_column > self.LONG
        fits = self.coefficients <= self.LARGEST_DENSE * min(self.rivals, 4)
        return (fits and not is_long) or not self.has_codes

    def needs(self, n_jobs: int = 1) -> Needs:
        """At the least, with coefficients or without; and with as much as is of use."""
        fixed = self.fixed(n_jobs) + self.stores(n_jobs)
        least = [self.dense(n_jobs, at_worst=True)] if self.is_dense else []
        useful = [*least] or [self.coded(n_jobs) + self.LARGEST_ROWS]
        if self.has_codes:
            least.append(self.coded(n_jobs) + self.least_rows)
        return Needs(fixed + min(least), fixed + max(useful[0], min(least)))

    def divide(self, memory: Memory, n_jobs: int = 1, seconds: float = math.inf) -> Division:
        """Divide what may be spent; without a limit never more than the largest sizes above, so
        that runs on machines with enough memory are the same. Nor are coefficients written that
        take too much of the ``seconds`` there are: groups give a bound at once.
        """
        has_limit = memory.limit is not None
        left, rows = memory.spendable - self.fixed(n_jobs), 0
        needed = self.dense(n_jobs, at_worst=has_limit)
        is_long = self.coefficients > max(self.LONG_FROM, self.BYTES_PER_SECOND * seconds)
        is_dense = self.is_dense and not (is_long and self.has_codes)
        fits = is_dense and needed + self.stores(n_jobs) <= left
        if fits:
            left -= needed
        elif self.has_codes:
            left -= self.coded(n_jobs)
            spare = max(0.0, left - self.least_rows - self.stores(n_jobs))
            rows = int(min(self.least_rows + spare / 2, max(self.LARGEST_ROWS, self.least_rows)))
            left -= rows
        tree = left if has_limit else min(left, self.LARGEST_TREE)
        return Division(self.coefficients if fits else 0, 0, max(0, int(tree)), rows)


@dataclass(frozen=True)
class BranchCutShape:
    """Sizes of a problem for branch and cut; bytes unless something else is said."""

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


TABLE_BYTES, TRACE_BYTES = 17, 9
"""Of dynamic programming: a place of a table, and what is kept of a set for the way back."""


def list_bytes(n_candidates: int) -> int:
    """Sorted lists of parent sets, and what else a solve takes whatever the problem."""
    return 16_000_000 + 48 * n_candidates


# ---------------------------------------------------------------------- what the machine has left


def available_memory() -> float:
    """Bytes left for this process: of the machine, its control group and its own limits."""
    left = float(psutil.virtual_memory().available)
    return max(0.0, min(left, _control_groups(), _address_space()))


LOADING, COMPILING = 400_000_000, 600_000_000
"""Address space that loading the compiler and its machine code takes, and compiling all kernels."""


def refuse_if_confined(needed: int, purpose: str) -> None:
    """Say so where the address space (``ulimit -v``) is too small: a compiler that gets no memory
    ends the process.

    Raises
    ------
    ProblemTooLargeError
        With the limit that would do.
    """
    left = _address_space()
    if left < needed:
        raise ProblemTooLargeError(
            f"{purpose} takes {describe_bytes(needed)} of address space, and the limit of this "
            f"process leaves {describe_bytes(max(left, 0.0))}; raise it (ulimit -v) by "
            f"{describe_bytes(needed - left)}, or use a solver without compiled code (highs)"
        )


def _control_groups(root: Path = Path("/sys/fs/cgroup"), own: Path | None = None) -> float:
    """The least that any control group above this process leaves: limit minus usage."""
    try:
        lines = (own or Path("/proc/self/cgroup")).read_text().splitlines()
    except OSError:
        return math.inf
    left = math.inf
    for line in lines:
        if not line.startswith("0::"):  # version 1, which kernels of today have replaced
            continue
        folder = root / line.removeprefix("0::").strip("/")
        for place in (folder, *folder.parents):
            try:
                limit, usage = (place / "memory.max", place / "memory.current")
                free = int(limit.read_text()) - int(usage.read_text())
            except (OSError, ValueError):  # no such group, or "max"
                continue
            with suppress(OSError, ValueError):  # copies of files, given up when room is needed
                lines = (place / "memory.stat").read_text().splitlines()
                free += int(dict(line.split() for line in lines).get("inactive_file", 0))
            left = min(left, free)
    return left


def _address_space() -> float:
    """What ``ulimit -v`` leaves."""
    try:
        import resource

        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
        if allowed == resource.RLIM_INFINITY:
            return math.inf
        taken = psutil.Process().memory_info().vms
    except (ImportError, OSError, ValueError, psutil.Error):  # Windows knows no such limit
        return math.inf
    return float(allowed - taken)
