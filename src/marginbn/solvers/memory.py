"""How much memory a solve may take, how much each solver needs, and how engines divide it.

A limit bounds what a solve takes in addition to the process as it is: coefficients, scratch and
open nodes. Without one, :data:`SHARE` of what the machine has left is the limit. Open nodes get
what coefficients and scratch leave over; when their store is full the search goes depth first.

*Branch and bound.* Per margin row the scratch of a worker holds some numbers, per open node a store
holds the box and the family's majorant and vertices. All coefficients are held once; those of the
rows that matter (``branch_bound/rows.py``) four times (by row and by column, for bounds and for the
local search), and twice more while a new choice is made. With one row per sample nearly all may
matter, with many rivals few do. A worker also holds their margins at every structure of its relaxed
solution. Where all this is too much there are codes and tables, and the coefficients of as many
groups (``branch_bound/row_groups.py``) as there is room for.

*Branch and cut.* Linear programmes grow with the candidates and with the samples near a kink; both
have an allowance per candidate and per margin row, for every worker. The margin matrix, which
workers share, is written out where it fits, else its columns are made when asked for and a cache
keeps some.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import psutil

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.formulation import count_nonzeros
from marginbn.problem.problem import ProblemSize, StructureProblem, count_table_cells

SHARE = 0.8
"""Part of the memory left on the machine that a solve without a limit may take."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
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
    amount: float = math.nan
    if isinstance(value, str):
        match = _AMOUNT.fullmatch(value)
        if match is not None:
            unit = (match[2] or "").lower()
            amount = float(match[1]) * (_UNITS | _BINARY)[unit]
    elif not isinstance(value, bool):
        try:
            amount = float(value)
        except (TypeError, ValueError):
            amount = math.nan
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


# ---------------------------------------------------------------------- what solvers need


def milp_needs(problem: StructureProblem) -> Needs:
    """Memory of formulation (19): the matrix with indices here, and twice more inside a solver."""
    needed = 3 * 12 * count_nonzeros(problem)
    return Needs(needed, needed)


TABLE_BYTES, TRACE_BYTES = 17, 9
"""Of dynamic programming: a place of a table, and what is kept of a set for the way back."""


FEW_VARIABLES = 31
"""Up to so many dynamic programming is the first choice for decomposable scores."""


def list_bytes(n_candidates: int) -> int:
    """Sorted lists of parent sets, and what else a solve takes whatever the problem."""
    return 16_000_000 + 48 * n_candidates


def layer_bytes(n_variables: int) -> int:
    """Dynamic programming if no set of variables is left out: two layers, one of them as a table
    that grows, and the way back.
    """
    widest = math.comb(n_variables, n_variables // 2)
    return int(7 * TABLE_BYTES * widest + TRACE_BYTES * 2**n_variables)


@dataclass(frozen=True)
class Division:
    """Bytes for coefficients in memory, for columns kept where these are not, for open nodes, and
    for the coefficients of rows and groups that boxes are bounded with.
    """

    dense: int
    cache: int
    tree: int
    rows: int = 0


LARGEST_ARITY = 2**16
"""States of a feature that a code of branch and bound has room for."""

KEPT_VERTICES = 40
"""Vertices that the children of a node inherit in branch and bound."""

ACTIVE_VERTICES = 128
"""Vertices of one convex combination; the lightest leaves when there are more."""


@dataclass(frozen=True)
class BranchBoundShape:
    """The sizes that the memory of branch and bound depends on."""

    n_features: int
    n_class_sets: int
    n_rows: int
    n_samples: int = 0
    n_classes: int = 2
    table_cells: int = 0
    has_arcs: bool = True
    """Whether features may have features as parents."""
    has_codes: bool = True
    """Whether every state has room in a code."""

    BASE: ClassVar = 16_000_000
    """Whatever else a solve takes: tables of one candidate, look-up structures, local search."""

    LARGEST_SMALL_STORE: ClassVar = 400_000_000
    MOST_PLACES, FEWEST_PLACES = 3072, 48
    """Places of a worker that searches depth first: as many as the first fit into this size, within
    these limits; see ``branch_bound/workers.py``.
    """

    LARGEST_DENSE: ClassVar = 400_000_000
    """Coefficients of one row per sample that are written out: making and copying more takes longer
    than groups do. Of several rows, most of which never matter, up to four times as much.
    """

    LONG: ClassVar = 40
    LONG_FROM: ClassVar = 32_000_000
    """Rows for every column, and bytes of coefficients, from which on groups of rows are quicker
    where a sample has one row: with them adult (59 rows for a column) is proved in the time in
    which all rows leave a gap; letter (35) takes as long, shuttle-full (83, few bytes) longer.
    """

    BYTES_PER_SECOND: ClassVar = 200_000_000
    """Coefficients that are written for every second of the time limit: about a tenth of it goes
    into making them and copying those that matter.
    """

    LARGEST_TREE: ClassVar = 4_000_000_000
    """Open nodes of all workers where no limit says otherwise: a million with 57 features."""

    LARGEST_ROWS: ClassVar = 800_000_000
    """Coefficients of groups and samples where no limit says otherwise."""

    SMALLEST_ROWS: ClassVar = 64_000_000
    FEWEST_GROUPS: ClassVar = 32
    """The same at the least."""

    COPIES, PER_ROW = 6, 10
    """Of the coefficients of rows that matter, and numbers that a worker holds of each."""

    COUNTS: ClassVar = 40_000_000
    """Counts from which tables are made."""

    @classmethod
    def of(cls, problem: StructureProblem) -> BranchBoundShape:
        """Sizes of a problem."""
        candidates, margins = problem.candidates, problem.margins
        n, n_sets = candidates.n_variables - 1, len(candidates.group(0))
        has_arcs = candidates.max_parents > 1
        if margins is None:
            return cls(n, n_sets, 0, has_arcs=has_arcs)
        data = margins.data
        return cls(
            n,
            n_sets,
            problem.n_rows,
            problem.n_samples,
            data.n_classes,
            count_table_cells(data, candidates.max_parents),
            has_arcs,
            bool((data.arities <= LARGEST_ARITY).all()),
        )

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
        """Bytes of the coefficients."""
        return 8 * self.n_rows * self.n_columns

    def dense(self, n_jobs: int = 1) -> int:
        """Bytes of the coefficients, of their copies, and of each worker's margins at vertices."""
        return self.coefficients + self._copies(n_jobs) // min(self.rivals, 4)

    def dense_at_worst(self, n_jobs: int = 1) -> int:
        """The same where all rows turn out to matter, as they do while a gap is wide."""
        return self.coefficients + self._copies(n_jobs)

    def _copies(self, n_jobs: int) -> int:
        margins = 8 * (ACTIVE_VERTICES + self.PER_ROW) * self.n_rows
        return self.COPIES * self.coefficients + n_jobs * margins

    def coded(self, n_jobs: int = 1) -> int:
        """Bytes of codes, tables, sums by class, what looking for groups to split takes, and each
        worker's margins.
        """
        codes = 2 * (self.n_features + 1) * self.n_samples
        tables = 8 * self.table_cells + min(8 * self.table_cells, self.COUNTS)
        sums = 2 * 8 * self._first_groups * self.n_columns
        looking = 64 * self.n_samples + (1 + 2 * n_jobs) * 8 * self.n_rows
        return codes + tables + sums + looking

    @property
    def _first_groups(self) -> int:
        """Rows of one group per class."""
        return self.n_classes * self.rivals

    @property
    def least_rows(self) -> int:
        """Bytes for the coefficients of some groups and of a sample: with too few of them a proof
        would take for ever.
        """
        rows = max(4 * self._first_groups, self.FEWEST_GROUPS)
        return max(64 * rows * self.n_columns, self.SMALLEST_ROWS)

    @property
    def scratch(self) -> int:
        """Bytes that each worker needs besides its store and what it holds of rows: ten numbers per
        column, and some graphs.
        """
        return 10 * 8 * self.n_columns + 128 * self.n_features**2

    @property
    def place(self) -> int:
        """Bytes of one open node with a family of its own."""
        n = self.n_features
        bits = n * (n * self.has_arcs + 2) + self.n_class_sets + n + n * n * self.has_arcs
        slot = 1 if n + 2 <= 256 else 2
        return bits // 8 + 8 + KEPT_VERTICES * (slot * (n + 2) + 4) + 112

    @property
    def smallest_places(self) -> int:
        """Places of the smallest store."""
        fitting = self.LARGEST_SMALL_STORE // self.place
        return max(self.FEWEST_PLACES, min(self.MOST_PLACES, fitting))

    def _fixed(self, n_jobs: int) -> int:
        """Bytes of everything but coefficients, codes and the part of stores that may be larger."""
        return self.BASE + n_jobs * self.scratch

    def _store(self, n_jobs: int) -> int:
        return n_jobs * self.smallest_places * self.place

    @property
    def is_dense(self) -> bool:
        """Whether coefficients are written out where there is memory for them."""
        limit = self.LARGEST_DENSE * min(self.rivals, 4)
        return (self.coefficients <= limit and not self._is_long) or not self.has_codes

    @property
    def _is_long(self) -> bool:
        """Whether rows are so many beside the columns that groups are quicker."""
        is_small = self.coefficients <= self.LONG_FROM
        return not is_small and self.rivals == 1 and self.n_samples > self.LONG * self.n_columns

    def needs(self, n_jobs: int = 1) -> Needs:
        """At the least, with coefficients or without; and with as much as is of use."""
        fixed = self._fixed(n_jobs) + self._store(n_jobs)
        least = [self.dense_at_worst(n_jobs)] if self.is_dense else []
        if self.has_codes:
            least.append(self.coded(n_jobs) + self.least_rows)
        useful = self.coded(n_jobs) + self.LARGEST_ROWS
        if self.is_dense:
            useful = self.dense_at_worst(n_jobs)
        return Needs(fixed + min(least), fixed + max(useful, min(least)))

    def takes_long(self, seconds: float) -> bool:
        """Whether writing and copying the coefficients takes too much of so many seconds: groups
        give a bound at once.
        """
        most = max(self.LONG_FROM, self.BYTES_PER_SECOND * seconds)
        return self.has_codes and self.coefficients > most

    def divide(self, memory: Memory, n_jobs: int = 1, seconds: float = math.inf) -> Division:
        """Divide what may be spent; without a limit never more than the largest sizes above, so
        that runs on machines with enough memory are the same. Nor are coefficients written that
        take too much of the ``seconds`` there are.
        """
        fixed, has_limit = self._fixed(n_jobs), memory.limit is not None
        left = memory.spendable - fixed
        needed = self.dense_at_worst(n_jobs) if has_limit else self.dense(n_jobs)
        is_dense = self.is_dense and not self.takes_long(seconds)
        fits = is_dense and needed + self._store(n_jobs) <= left
        if fits or not self.has_codes:
            dense = self.coefficients if fits else 0
            tree = left - (needed if fits else 0)
            rows = 0
        else:
            dense, left = 0, left - self.coded(n_jobs)
            spare = max(0.0, left - self.least_rows - self._store(n_jobs))
            rows = int(min(self.least_rows + spare / 2, max(self.LARGEST_ROWS, self.least_rows)))
            tree = left - rows
        tree = tree if has_limit else min(tree, self.LARGEST_TREE)
        return Division(dense, 0, max(0, int(tree)), rows)


@dataclass(frozen=True)
class BranchCutShape:
    """The sizes that the memory of branch and cut depends on."""

    n_candidates: int
    n_rows: int

    BASE: ClassVar = 60_000_000
    """HiGHS and the rows of one programme, whatever the problem."""

    PER_WORKER: ClassVar = 15_000_000
    """The programme of each further worker, whatever the problem."""

    PER_CANDIDATE: ClassVar = 500
    PER_ROW: ClassVar = 200

    MOST_PLACES: ClassVar = 21
    """Variables up to which nodes may be bounded over the hull of their structures: 2^21 sets with
    22 numbers each are 0.4 GB for every worker. Where that does not fit there are programmes.
    """

    LARGEST_DENSE: ClassVar = 1_500_000_000
    """Margin coefficients up to this size are written out where no limit says otherwise."""

    LARGEST_CACHE: ClassVar = 500_000_000
    """Columns kept where the matrix is not written out."""

    LARGEST_TREE: ClassVar = 1_500_000_000
    """Open nodes where no limit says otherwise."""

    @classmethod
    def of(cls, problem: StructureProblem) -> BranchCutShape:
        """Sizes of a problem."""
        return cls(problem.candidates.n_candidates, problem.n_rows)

    def needs(self, n_jobs: int = 1) -> Needs:
        """At the least, with columns made on demand; and with the matrix written out."""
        programme = self.PER_CANDIDATE * self.n_candidates + self.PER_ROW * self.n_rows
        least = self.BASE + programme + (n_jobs - 1) * (self.PER_WORKER + programme)
        return Needs(least, least + 8 * self.n_rows * self.n_candidates)

    def divide(self, memory: Memory, n_jobs: int = 1) -> Division:
        """Divide what may be spent; without a limit never more than the largest sizes above."""
        needs, has_limit = self.needs(n_jobs), memory.limit is not None
        matrix = needs.full - needs.least
        fits = needs.full <= memory.spendable and (has_limit or matrix <= self.LARGEST_DENSE)
        left = max(0.0, memory.spendable - (needs.full if fits else needs.least))
        cache = 0 if fits else int(min(self.LARGEST_CACHE, left / 2))
        tree = min(left - cache, 2**62 if has_limit else self.LARGEST_TREE)
        return Division(matrix if fits else 0, cache, int(tree))


def estimate_needs(
    size: ProblemSize, max_parents: int, *, class_restricted: bool = True, n_jobs: int = 1
) -> Needs:
    """Memory that solver ``"auto"`` needs for a problem that has not been made yet.

    Constant features and required or forbidden arcs make it less.
    """
    n = size.n_variables - 1
    if class_restricted and max_parents <= 2 and n > 0:
        n_class_sets = sum(math.comb(n, count) for count in range(max_parents + 1))
        samples = size.n_samples if size.n_margin_rows else 0
        cells, classes = (size.table_cells, size.n_classes) if samples else (0, 2)
        arcs = max_parents > 1
        shape = BranchBoundShape(n, n_class_sets, size.n_margin_rows, samples, classes, cells, arcs)
        return shape.needs(n_jobs)
    if size.n_margin_rows == 0 and size.n_variables <= FEW_VARIABLES:
        lists = list_bytes(size.n_candidates)
        return Needs(lists, lists + layer_bytes(size.n_variables))
    return BranchCutShape(size.n_candidates, size.n_margin_rows).needs(n_jobs)


# ---------------------------------------------------------------------- what the machine has left


def available_memory() -> float:
    """Bytes left for this process: of the machine, its control group and its own limits."""
    return max(0.0, min(_machine(), _control_groups(), _address_space()))


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


def _machine() -> float:
    """What the system counts as available, whichever system it is.

    Where it does not say, that is told, because then nothing protects from taking too much.
    """
    try:
        return float(psutil.virtual_memory().available)
    except (OSError, RuntimeError, NotImplementedError, KeyError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        warnings.warn(
            "this system does not tell how much memory is left, so the search is not limited by "
            "it; set memory_limit, for example '4 GB'",
            UserWarning,
            stacklevel=2,
        )
        return math.inf


def _control_groups(root: Path = Path("/sys/fs/cgroup"), own: Path | None = None) -> float:
    """The least that any control group above this process leaves; version 2, then version 1."""
    try:
        lines = (own or Path("/proc/self/cgroup")).read_text().splitlines()
    except OSError:
        return math.inf
    left = math.inf
    for line in lines:
        _, controllers, name = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            left = min(left, _left_in(root, name, "memory.max", "memory.current"))
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            left = min(left, _left_in(root / "memory", name, *names))
    return left


def _left_in(root: Path, name: str, limit: str, usage: str) -> float:
    """Limit minus usage of a group and all groups above it."""
    left, folder = math.inf, root / name.strip("/")
    for place in (folder, *folder.parents):
        try:
            free = int((place / limit).read_text()) - int((place / usage).read_text())
        except (OSError, ValueError):  # no such group, or "max"
            continue
        left = min(left, free + _reclaimable(place))
    return left


def _reclaimable(place: Path) -> int:
    """Copies of files that a group holds in memory, and gives up when it needs the room."""
    try:
        lines = [line.split() for line in (place / "memory.stat").read_text().splitlines()]
        counts = {name: int(count) for name, count in lines}
    except (OSError, ValueError):
        return 0
    return counts.get("total_inactive_file", counts.get("inactive_file", 0))


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
