"""How much memory a solve may take; what a solver needs of it, every solver counts itself.

A limit bounds what a solve takes in addition to the process as it is: coefficients, scratch and
open nodes. Without one, :data:`SHARE` of what the machine has left is the limit. Open nodes get
what coefficients and scratch leave over; when their store is full the search goes depth first.

"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from marginbn.exceptions import InputError, ProblemTooLargeError

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


@dataclass(frozen=True)
class Division:
    """Bytes for coefficients in memory, for columns kept where these are not, for open nodes, and
    for the coefficients of rows and groups that boxes are bounded with.
    """

    dense: int
    cache: int
    tree: int
    rows: int = 0


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
            left = min(left, free + _reclaimable(place))
    return left


def _reclaimable(place: Path) -> int:
    """Copies of files that a group holds in memory, and gives up when it needs the room."""
    try:
        lines = [line.split() for line in (place / "memory.stat").read_text().splitlines()]
        return int(dict(lines).get("inactive_file", 0))
    except (OSError, ValueError):
        return 0


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
