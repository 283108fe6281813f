"""Named arrays in one checked file: what a checkpoint looks like on disk.

::

    magic line        "marginbn checkpoint 1"
    8 bytes           length of the header, little endian
    header            JSON: {"about": {...}, "arrays": [[name, dtype, shape], ...]}
    arrays            one after the other, little endian, C order
    32 bytes          SHA-256 of everything before

Reading builds plain values and arrays of numbers only, so nothing in a file is ever executed.
Sizes that a header claims are believed only if they add up to the size of the file, so no file
makes the reader take more memory than its own length.

A checkpoint holds the incumbent, the bound and, where the solver has one, the search tree
(``open_nodes.py``). It is written after :data:`FIRST` second, then after twice as long and so on up
to every :data:`INTERVAL` seconds (less often if writing takes long), and when the solve ends for
whatever reason. Each one is written next to the file and takes its place in one step. So at every
moment a complete checkpoint is on the disk, and a process that is killed, a full disk or a power
failure costs at most the time since.

A bound in a checkpoint is believed: it was proved by the process that wrote it. The fingerprint of
the problem and the checksum guard against accidents, not against forgery.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn import files
from marginbn.exceptions import CheckpointWarning, InputError
from marginbn.files import PathLike, open_new, replacing, try_writing
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.result import fingerprint

KIND = b"marginbn checkpoint "
MAGIC = KIND + b"1\n"

MAX_HEADER = 1_000_000
"""Bytes of the longest header that is read; ours have about a thousand."""

DTYPES = ("<f8", "<f4", "<i8", "<u8", "<i4", "<i2", "<u2", "|u1")
"""Types of numbers that arrays may have."""

_DIGEST = 32


class BrokenFileError(Exception):
    """A file that is no complete frame; the message says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Plain values and arrays."""

    about: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def pack(frame: Frame) -> Iterator[bytes | memoryview]:
    """The parts of a file, in order."""
    described = [[name, array.dtype.str, list(array.shape)] for name, array in frame.arrays.items()]
    header = json.dumps({"about": frame.about, "arrays": described}, allow_nan=False).encode()
    digest = hashlib.sha256()
    for part in (MAGIC, len(header).to_bytes(8, "little"), header):
        digest.update(part)
        yield part
    for array in frame.arrays.values():
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        digest.update(content)
        yield content
    yield digest.digest()


def read_frame(path: str | os.PathLike[str]) -> Frame:
    """Read a file written from :func:`pack`.

    Raises
    ------
    BrokenFileError
        If the file is cut off or damaged.
    InputError
        If it never was a file of this kind, or is one of another version.
    OSError
        If it cannot be read.
    """
    content = Path(path).read_bytes()
    _check_kind(content, os.fspath(path))
    if len(content) < len(MAGIC) + 8 + _DIGEST:
        raise BrokenFileError(f"it ends after {len(content)} bytes")
    body = memoryview(content)[:-_DIGEST]
    if hashlib.sha256(body).digest() != content[-_DIGEST:]:
        raise BrokenFileError("it is cut off or damaged: its checksum is wrong")
    return _parse(body)


def _check_kind(content: bytes, name: str) -> None:
    """Refuse files of other kinds, which must not be written over."""
    start = content[: len(MAGIC)]
    if start == MAGIC[: len(start)] or not any(start):  # cut off, or blocks that were never written
        return
    if start.startswith(KIND):
        raise InputError(
            f"{name} is a checkpoint of another version of marginbn; finish it with that version, "
            "or remove it (or name another file) to start again"
        )
    raise InputError(f"{name} is not a checkpoint and will not be written over; name another file")


def _parse(body: memoryview) -> Frame:
    """The content of a file whose checksum is right; it may be hostile all the same."""
    place = len(MAGIC) + 8
    length = int.from_bytes(body[len(MAGIC) : place], "little")
    if length > min(MAX_HEADER, len(body) - place):
        raise BrokenFileError("its header is too long")
    try:
        header = json.loads(bytes(body[place : place + length]))
        about, described = dict(header["about"]), list(header["arrays"])
        shapes = [_parse_shape(*entry) for entry in described]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BrokenFileError("its header is malformed") from None
    place += length
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape in shapes:
        size = math.prod(shape) * dtype.itemsize
        if size > len(body) - place:
            raise BrokenFileError(f"its array {name!r} is larger than the file")
        # copies are aligned and own their memory, as compiled code wants them
        arrays[name] = np.ndarray(shape, dtype, buffer=body, offset=place).copy()
        place += size
    if place != len(body):
        raise BrokenFileError("it is longer than its arrays")
    return Frame(about, arrays)


def _parse_shape(name: Any, dtype: Any, shape: Any) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    sane = (
        isinstance(name, str)
        and dtype in DTYPES
        and isinstance(shape, list)
        and len(shape) <= 3
        and all(type(length) is int and 0 <= length < 2**48 for length in shape)  # true is an int
    )
    if not sane:
        raise ValueError
    return name, np.dtype(dtype), tuple(shape)


FIRST, INTERVAL = 1.0, 30.0
"""Seconds before the first checkpoint, and between two of a long search; doubled on the way."""

LARGEST_SHARE = 0.02
"""Part of the time that writing may take; after a slow write the next one waits longer."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class SearchState:
    """How far a search is.

    Parameters
    ----------
    solver
        The solver whose tree it is; empty where there is no tree.
    nodes
        Nodes processed so far.
    arrays
        The tree; empty where there is nothing to go on with.
    """

    solver: str = ""
    nodes: int = 0
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Saved:
    """State of a solve.

    Parameters
    ----------
    selection
        The incumbent, one flat candidate index per variable.
    bound
        Proven upper bound on the objective of every structure.
    search
        What the solver needs to go on.
    """

    selection: NDArray[np.int64]
    bound: float
    search: SearchState


class Checkpoint:
    """The checkpoint file of one solve; reads what is there when it is made.

    Parameters
    ----------
    path
        The file; if it exists the solve goes on from it.
    problem
        The problem to solve; a checkpoint of another one is refused.
    interval
        Seconds between two writes of a long search.
    """

    def __init__(
        self, path: PathLike, problem: StructureProblem, interval: float = INTERVAL
    ) -> None:
        self.path = os.path.realpath(path)
        self._longest = interval
        self._interval = min(FIRST, interval)
        self._problem = problem
        self._fingerprint = fingerprint(problem)
        self._stamp: tuple[int, ...] | None = None  # of the file while it is complete
        self._gave_up = False
        self._has_warned = False
        _check_place(self.path)
        remove_leftovers(self.path)
        self.saved = self._load()
        self._next = time.perf_counter() + self._interval

    @property
    def is_due(self) -> bool:
        """Whether it is time to save."""
        return time.perf_counter() >= self._next

    # ------------------------------------------------------------------ reading

    def _load(self) -> Saved | None:
        """The checkpoint in the file, or None; one that cannot be used gives a warning."""
        if not os.path.exists(self.path):
            return None
        stamp = _stamp(self.path)
        try:
            saved = self._read(self.path)
        except BrokenFileError as error:
            self._warn(
                f"the checkpoint {self.path} cannot be used ({error}); the search starts from "
                "scratch"
            )
            return None
        self._stamp = stamp
        return saved

    def _read(self, path: str) -> Saved:
        try:
            frame = read_frame(path)
        except OSError as error:
            raise InputError(
                f"cannot read the checkpoint {path}: {error.strerror or error}"
            ) from None
        if frame.about.get("fingerprint") != self._fingerprint:
            raise InputError(
                f"{path} is the checkpoint of another problem (other data, weights, candidates, "
                "gamma, smoothing or score); name another file, or remove this one to start again"
            )
        return _saved_of(frame, self._problem)

    # ------------------------------------------------------------------ writing

    def save(self, saved: Saved) -> None:
        """Write a checkpoint; what goes wrong gives one warning and does not end the solve."""
        if self._gave_up:
            return
        begin = time.perf_counter()
        try:
            if self._is_foreign():
                self._gave_up = True
                self._warn(
                    f"another process writes to the checkpoint {self.path}; this search is not "
                    "saved any more"
                )
                return
            self._write(pack(_frame_of(saved, self._fingerprint)))
        except (OSError, InputError, MemoryError) as error:
            if not self._has_warned:
                self._has_warned = True
                reason = "out of memory" if isinstance(error, MemoryError) else error
                self._warn(f"{reason}; the search continues, and tries again to save it")
        finally:
            now = time.perf_counter()
            self._interval = min(2.0 * self._interval, self._longest)
            self._next = now + max(self._interval, (now - begin) / LARGEST_SHARE)

    def _write(self, parts: Iterable[bytes | memoryview]) -> None:
        """The new file takes the place of the old one when it is complete on the disk."""
        written = None
        try:
            with replacing(self.path) as temporary:
                with open_new(temporary) as file:
                    file.writelines(parts)
                    file.flush()
                    files.disk.fsync(file.fileno())
                written = _stamp(temporary)
        finally:  # a failure after the last step must not make our own file a stranger's
            if written == _stamp(self.path):
                self._stamp = written

    def _is_foreign(self) -> bool:
        """Whether somebody else has written the file since we last read or wrote it."""
        return self._stamp is not None and _stamp(self.path) not in (self._stamp, None)

    @staticmethod
    def _warn(message: str) -> None:
        warnings.warn(message, CheckpointWarning, stacklevel=5)


def warn_unused(reason: str) -> None:
    """Warn that only the incumbent and the bound of a checkpoint are used."""
    warnings.warn(
        f"{reason}; the search keeps its incumbent and its bound and starts a new tree",
        CheckpointWarning,
        stacklevel=5,
    )


def _check_place(path: str) -> None:
    """Refuse what can never become a checkpoint."""
    if os.path.isdir(path):
        raise InputError(f"checkpoint must name a file, but {path} is a folder")
    if not os.path.isdir(os.path.dirname(path)):
        raise InputError(f"checkpoint must lie in an existing folder, got {path}")
    try_writing(path, "checkpoint")


ABANDONED_AFTER = 3600.0
"""Seconds without a write after which a temporary file is nobody's."""


def remove_leftovers(path: PathLike) -> None:
    """Remove temporary files of ``path`` that killed processes left in its folder."""
    folder, name = os.path.split(os.path.realpath(path))
    for leftover in glob.glob(f"{glob.escape(os.path.join(folder, '.' + name[:100]))}.*.tmp"):
        with suppress(OSError):
            if time.time() - os.stat(leftover).st_mtime > ABANDONED_AFTER:
                os.unlink(leftover)


def _stamp(path: str) -> tuple[int, ...] | None:
    """What changes when a file is replaced; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _frame_of(saved: Saved, problem_fingerprint: str) -> Frame:
    search = saved.search
    about = {"fingerprint": problem_fingerprint, "solver": search.solver, "nodes": search.nodes}
    arrays: dict[str, NDArray[Any]] = {
        "selection": np.asarray(saved.selection, dtype="<i8"),
        "bound": np.array([saved.bound], dtype="<f8"),
    }
    return Frame(about, arrays | {f"tree.{name}": array for name, array in search.arrays.items()})


def _saved_of(frame: Frame, problem: StructureProblem) -> Saved:
    """The state in a frame; the incumbent must be a structure of the problem."""
    solver, nodes = frame.about.get("solver"), frame.about.get("nodes")
    selection, bound = frame.arrays.get("selection"), frame.arrays.get("bound")
    if not (isinstance(solver, str) and isinstance(nodes, int) and nodes >= 0):
        raise BrokenFileError("its header is malformed")
    if selection is None or bound is None or bound.shape != (1,) or math.isnan(bound[0]):
        raise BrokenFileError("it lacks the incumbent or the bound")
    try:
        problem.candidates.structure(selection.reshape(-1).astype(np.int64))
    except InputError:
        raise BrokenFileError("its incumbent is no structure of the problem") from None
    tree = {
        name.removeprefix("tree."): array
        for name, array in frame.arrays.items()
        if name.startswith("tree.")
    }
    search = SearchState(solver, nodes, tree)
    return Saved(selection.astype(np.int64), float(bound[0]), search)
