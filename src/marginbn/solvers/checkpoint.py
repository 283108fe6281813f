"""Checkpoints: incumbent, bound and the open nodes of a search in one file.

The file is numpy's (``.npz``, whatever its name): the array ``about`` holds the fingerprint of the
problem, the solver and its nodes as JSON, ``selection`` and ``bound`` what is known, ``tree.*`` the
open nodes. Reading builds numbers only, so nothing in a file is ever executed, and checks the sums
that the format keeps of every array.

A checkpoint is written after :data:`FIRST` second, then after twice as long and so on up to every
:data:`INTERVAL` seconds (less often if writing takes long), and when the solve ends for whatever
reason. Each one is written next to the file and takes its place in one step. So at every moment a
complete checkpoint is on the disk, and a process that is killed, a full disk or a power failure
costs at most the time since.

A bound in a checkpoint is believed: it was proved by the process that wrote it. The fingerprint of
the problem and the checksums guard against accidents, not against forgery.

**Open nodes** are one table, in a checkpoint and on the way between processes: a node is its box,
as bits that only its engine can read, and its bound, which was proved. What the relaxation of a
node started from (vertices, bases, cuts) is found again when the node is visited: that costs a few
iterations once, and would take most of the room.
"""

from __future__ import annotations

import glob
import json
import math
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import CheckpointWarning, InputError
from marginbn.files import PathLike, open_new, replacing, try_writing
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.result import fingerprint

FORMAT = 2
"""Number of the format."""

FIRST, INTERVAL = 1.0, 30.0
"""Seconds before the first checkpoint, and between two of a long search; doubled on the way."""

LARGEST_SHARE = 0.02
"""Part of the time that writing may take; after a slow write the next one waits longer."""

ABANDONED_AFTER = 3600.0
"""Seconds without a write after which a temporary file is nobody's."""

Arrays = Mapping[str, NDArray[Any]]


class BrokenFileError(Exception):
    """A file that is no complete checkpoint; the message says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class SearchState:
    """How far a search is."""

    solver: str = ""  # whose tree it is; empty where there is none
    nodes: int = 0  # processed so far
    arrays: Arrays = field(default_factory=dict)  # the tree


@dataclass(frozen=True, eq=False)
class Saved:
    """State of a solve."""

    selection: IntArray  # the incumbent, one flat candidate index per variable
    bound: float  # proved for every structure
    search: SearchState  # what the solver needs to go on


class Checkpoint:
    """The checkpoint file of one solve; what is there when it is made is read, and one of another
    problem refused. ``interval``: seconds between two writes of a long search.
    """

    def __init__(
        self, path: PathLike, problem: StructureProblem, interval: float = INTERVAL
    ) -> None:
        self.path = os.path.realpath(path)
        self._longest = interval
        self._interval = min(FIRST, interval)
        self._problem = problem
        self._fingerprint = fingerprint(problem)
        self._has_warned = False
        if not os.path.isdir(os.path.dirname(self.path)):
            raise InputError(f"checkpoint must lie in an existing folder, got {self.path}")
        try_writing(self.path, "checkpoint")
        remove_leftovers(self.path)
        self.saved = self._load()
        self._next = time.perf_counter() + self._interval

    @property
    def is_due(self) -> bool:
        """Whether it is time to save."""
        return time.perf_counter() >= self._next

    def _load(self) -> Saved | None:
        """The checkpoint in the file, or None; one that cannot be used gives a warning."""
        if not os.path.exists(self.path):
            return None
        try:
            about, arrays = read_arrays(self.path)
            if about.get("fingerprint") != self._fingerprint:
                raise InputError(
                    f"{self.path} is the checkpoint of another problem (other data, weights, "
                    "candidates, gamma, smoothing or score); name another file, or remove this one "
                    "to start again"
                )
            return _saved_of(about, arrays, self._problem)
        except BrokenFileError as error:
            _warn(
                f"the checkpoint {self.path} cannot be used ({error}); the search starts from "
                "scratch"
            )
            return None

    def save(self, saved: Saved) -> None:
        """Write a checkpoint; what goes wrong gives one warning and does not end the solve."""
        begin = time.perf_counter()
        try:
            self._write(saved)
        except (OSError, InputError, MemoryError) as error:
            if not self._has_warned:
                self._has_warned = True
                reason = "out of memory" if isinstance(error, MemoryError) else error
                _warn(f"{reason}; the search continues, and tries again to save it")
        finally:
            now = time.perf_counter()
            self._interval = min(2.0 * self._interval, self._longest)
            self._next = now + max(self._interval, (now - begin) / LARGEST_SHARE)

    def _write(self, saved: Saved) -> None:
        search = saved.search
        about = {
            "format": FORMAT,
            "fingerprint": self._fingerprint,
            "solver": search.solver,
            "nodes": search.nodes,
        }
        tree = {f"tree.{name}": array for name, array in search.arrays.items()}
        with replacing(self.path) as temporary, open_new(temporary) as file:
            np.savez(
                file,
                allow_pickle=False,
                about=np.array(json.dumps(about)),
                selection=saved.selection,
                bound=np.array(saved.bound),
                **tree,
            )


def _warn(message: str) -> None:
    warnings.warn(message, CheckpointWarning, stacklevel=6)


def warn_unused(reason: str) -> None:
    """Warn that only the incumbent and the bound of a checkpoint are used."""
    _warn(f"{reason}; the search keeps its incumbent and its bound and starts a new tree")


def remove_leftovers(path: PathLike) -> None:
    """Remove temporary files of ``path`` that killed processes left in its folder."""
    folder, name = os.path.split(os.path.realpath(path))
    for leftover in glob.glob(f"{glob.escape(os.path.join(folder, '.' + name[:100]))}.*.tmp"):
        with suppress(OSError):
            if time.time() - os.stat(leftover).st_mtime > ABANDONED_AFTER:
                os.unlink(leftover)


def read_arrays(path: PathLike) -> tuple[dict[str, Any], Arrays]:
    """What a checkpoint says about itself, and its arrays.

    Raises
    ------
    BrokenFileError
        If the file is cut off or damaged.
    InputError
        If it cannot be read, never was a checkpoint, or is one of another version: such a file must
        not be written over.
    """
    place = os.fspath(path)
    other = f"{place} is not a checkpoint of this version of marginbn; name another file"
    try:
        with open(place, "rb") as file:
            if not b"PK\3\4".startswith(file.read(4).rstrip(b"\0")):
                raise InputError(other)
            file.seek(0)
            found = np.load(file, allow_pickle=False)
            arrays = {name: found[name] for name in found.files}
        about = json.loads(str(arrays.pop("about", "{}")))
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"cannot read the checkpoint {place}: {error.strerror}") from None
    except Exception as error:  # a damaged file makes numpy raise whatever it likes
        raise BrokenFileError("it is cut off or damaged") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(other)
    return about, arrays


def _saved_of(about: dict[str, Any], arrays: Arrays, problem: StructureProblem) -> Saved:
    """The state in a file; the incumbent must be a structure of the problem."""
    solver, nodes = about.get("solver"), about.get("nodes")
    selection, bound = arrays.get("selection"), arrays.get("bound")
    if not (isinstance(solver, str) and isinstance(nodes, int) and nodes >= 0):
        raise BrokenFileError("its header is malformed")
    if selection is None or bound is None or bound.shape != () or math.isnan(bound):
        raise BrokenFileError("it lacks the incumbent or the bound")
    try:
        problem.candidates.structure(selection.reshape(-1).astype(np.int64))
    except InputError:
        raise BrokenFileError("its incumbent is no structure of the problem") from None
    prefix = "tree."
    tree = {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}
    return Saved(selection.astype(np.int64), float(bound), SearchState(solver, nodes, tree))


@dataclass(frozen=True, eq=False)
class OpenNodes:
    """N nodes of W bytes each, and two numbers: the largest bound of anything ever discarded, and
    the bound of the root, infinite while it is not done.
    """

    boxes: NDArray[np.uint8]  # (N, W)
    bound: FloatArray  # (N,)
    numbers: FloatArray  # (2,)

    @property
    def arrays(self) -> Arrays:
        """By name."""
        return dict(vars(self))

    @property
    def floor(self) -> float:
        """Largest bound of anything ever discarded."""
        return float(self.numbers[0])

    def some(self, chosen: IntArray) -> OpenNodes:
        """Some of the nodes; the numbers go with every part."""
        return OpenNodes(self.boxes[chosen], self.bound[chosen], self.numbers)


def join(parts: Sequence[OpenNodes]) -> OpenNodes:
    """Several trees of the same problem as one."""
    floors, roots = np.array([part.numbers for part in parts]).T
    return OpenNodes(
        np.concatenate([part.boxes for part in parts]),
        np.concatenate([part.bound for part in parts]),
        np.array([floors.max(), roots.min()]),
    )


def parse(arrays: Arrays, width: int) -> OpenNodes:
    """Arrays of a file as open nodes with boxes of so many bytes.

    Raises
    ------
    BrokenFileError
        If they are not the open nodes of such a problem.
    """
    count = len(arrays.get("bound", ()))
    expected = {
        "boxes": ((count, width), np.uint8),
        "bound": ((count,), np.float64),
        "numbers": ((2,), np.float64),
    }
    for name, (shape, dtype) in expected.items():
        if name not in arrays or arrays[name].shape != shape or arrays[name].dtype != dtype:
            raise BrokenFileError(f"its array {name!r} does not fit the problem")
    nodes = OpenNodes(*(arrays[name] for name in expected))
    if np.isnan(nodes.bound).any() or np.isnan(nodes.numbers).any():
        raise BrokenFileError("its tree holds impossible values")
    return nodes
