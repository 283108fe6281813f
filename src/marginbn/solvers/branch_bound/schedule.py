"""The recommended numbers of a search, how its tree and its local search alternate, and structures
that the local search starts from besides those of the relaxation and the caller.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.problem import StructureProblem
from marginbn.problem.scores import candidate_score, log_likelihood
from marginbn.solvers.branch_bound.arrays import Encoding
from marginbn.solvers.branch_bound.kernels.bound import Settings
from marginbn.solvers.branch_bound.kernels.records import Box, Instance, count_rows
from marginbn.solvers.branch_bound.rows import RowChoice
from marginbn.solvers.run import Limits


def settings_for(limits: Limits, heuristics: bool = True) -> Settings:
    """The recommended numbers."""
    return Settings(
        smoothing_start=0.45,
        smoothing_floor=0.01,
        smoothing_factor=0.6,
        stale=0.01,
        accuracy=0.5,
        many_rows=3000,
        band=0.5,
        worth=0.7,
        reliable=2,
        trials=4,
        trial_iterations=10,
        iterations=50,
        root_iterations=1000,
        evaluate=heuristics,
        gap=limits.gap,
    )


BATCH = 3e7
"""Nanoseconds of a batch."""

SWEEPS_AT_ROOT, BATCHES_AT_ROOT = 300, 10
"""The local search at the root tries every slot so many times, if that takes no longer than so many
batches."""

SWEEPS_OF_FEW, FEW_FEATURES = 20, 11
"""With so few features that many are enough, and the tree does the rest."""

SWEEPS_TO_POLISH = 10
"""The same for a new incumbent."""


def iteration_time(inst: Instance) -> float:
    """Nanoseconds that an iteration of the bound takes, as measured on one machine."""
    return float(2e4 + 75.0 * inst.n_features**2 + 130.0 * count_rows(inst))


class Schedule:
    """How batches and local search alternate, in iterations and columns tried."""

    EVERY = 8
    """Batches between two runs of the local search: one long run finds more than many short ones.
    """

    SHARE = 0.25
    """Time of the local search, in units of the tree's, as long as it finds something."""

    LEAST = 0.25
    """The part of its time that is left in the end, when nothing better has turned up for most of
    the search: at once where most of the gap is closed, little by little where it is not.
    """

    MOST = 0.5
    """What is most of the gap."""

    EARLY, EARLY_IF_OPEN = 4 * EVERY, 1000
    """Batches in which small problems are solved, and in which even the local search of a hard one
    has found what it finds soon.
    """

    def __init__(self, rows: RowChoice) -> None:
        self._rows = rows
        self.next_stop = 1
        self.round = 0
        self.success = 0  # round of the newest incumbent

    @property
    def batch(self) -> int:
        """Iterations of about 30 ms, as measured on one machine, whatever rows are in use."""
        return int(np.clip(BATCH / self.iteration, 5, 2000))

    @property
    def iteration(self) -> float:
        """Nanoseconds of an iteration."""
        return iteration_time(self._rows.bounding)

    @property
    def evaluation(self) -> float:
        """Nanoseconds of trying a column, measured too."""
        return 2e2 + 1.6 * int(self._rows.climbing.columns.shape[1])

    @property
    def share(self) -> int:
        """Columns that a run of the local search tries."""
        return int(self.SHARE * self.EVERY * BATCH / self.evaluation)

    @property
    def _sweep(self) -> int:
        """Slots of all features."""
        full = self._rows.full
        return full.n_features * (full.n_features + 2 - full.skipped)

    @property
    def root_effort(self) -> int:
        """Columns that the local search tries before the first batch."""
        is_small = self._rows.full.n_features <= FEW_FEATURES
        sweeps = SWEEPS_OF_FEW if is_small else SWEEPS_AT_ROOT
        return min(sweeps * self._sweep, int(BATCHES_AT_ROOT * BATCH / self.evaluation))

    @property
    def polish_effort(self) -> int:
        """Columns that it tries around a new incumbent."""
        return min(SWEEPS_TO_POLISH * self._sweep, self.root_effort)

    def advance(self, open_gap: float) -> int:
        """Plan the next batch; returns the effort of the local search before it. ``open_gap`` is
        the part of the root's gap that is left.
        """
        self.next_stop += self.batch
        self.round += 1
        if self.round % self.EVERY:
            return 0
        is_open = open_gap > self.MOST
        early = self.EARLY_IF_OPEN if is_open else self.EARLY
        hope = min(1.0, max(4 * self.success, early) / self.round)
        if hope < 1.0:
            hope = max(hope, self.LEAST) if is_open else self.LEAST
        return int(self.share * hope)


def simple_starts(
    problem: StructureProblem,
    encoding: Encoding,
    root: Box,
    best: Callable[[Box, FloatArray], tuple[float, IntArray]],
    stop: IntArray,
) -> list[IntArray]:
    """Naive Bayes and TAN, as far as the candidates allow them; both have a class without parents.
    ``best`` maximises a linear function over a box.

    When ``stop`` is raised on the way, fewer.
    """
    alone = np.flatnonzero((encoding.instance.first < 0) & root.classes)
    if alone.size == 0:
        return []
    starts = []
    if root.allowed[:, encoding.n_features].all():
        features = np.full(encoding.n_features, encoding.n_features)
        starts.append(np.append(features, alone[0]).astype(np.int64))
    likelihood = _log_likelihoods(problem, encoding, root, stop)
    if likelihood is not None:
        classes = np.zeros_like(root.classes)
        classes[alone] = True
        value, vertex = best(root._replace(classes=classes), likelihood)
        if value > -np.inf:
            starts.append(vertex)
    return starts


def _log_likelihoods(
    problem: StructureProblem, encoding: Encoding, root: Box, stop: IntArray
) -> FloatArray | None:
    """Log-likelihood of every slot that the root allows; None without data or time."""
    if problem.margins is None:
        return None
    data, candidates = problem.margins.data, problem.candidates
    out, coded = np.zeros(encoding.candidate_of.size), encoding.coded
    for column in np.flatnonzero(root.allowed[:, encoding.instance.skipped :]):  # like their slots
        if stop[0] != 0:
            return None
        if coded is not None and coded.keys[column, 3] >= 0:
            out[column] = coded.likelihood[column]
            continue
        k = int(encoding.candidate_of[column])
        out[column] = candidate_score(data, candidates, k, log_likelihood)
    return out
