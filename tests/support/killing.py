"""Solves that are killed again and again, in processes of their own."""

from __future__ import annotations

import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from marginbn.exceptions import CheckpointWarning
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers import checkpoint as checkpoints
from marginbn.solvers.checkpoint import Checkpoint, Saved
from marginbn.solvers.run import Run
from marginbn.solvers.solve import get_solver, solve_with
from problems import random_table


@dataclass(frozen=True)
class Patient:
    """A problem that takes seconds, the solver, the workers and its optimum."""

    seed: int
    n_rows: int
    n_features: int
    n_classes: int
    max_parents: int = 2
    margin: str = "multiclass"
    solver: str = "branch_bound"
    n_jobs: int = 1

    def problem(self) -> StructureProblem:
        rng = np.random.default_rng(self.seed)
        data = random_table(rng, self.n_rows, self.n_features, self.n_classes).encoded()
        candidates = enumerate_candidates(self.n_features + 1, self.max_parents)
        return margin_problem(data, candidates, margin=self.margin, gamma=1.5)


def solve_in_child(patient: Patient, problem: StructureProblem, path: Path, interval: float) -> int:
    """Number of a process that solves with checkpoints and ends with exit code 0."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        checkpoints.LARGEST_SHARE = 1.0  # save as often as asked, whatever it costs
        solve_with(
            get_solver(patient.solver),
            Run(
                problem,
                n_jobs=patient.n_jobs,
                checkpoint=Checkpoint(path, problem, interval),
            ),
        )
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def kill_after(child: int, seconds: float) -> bool:
    """Kill the process unless it has ended by itself before; whether it was killed."""
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0, "the solve failed"
            return False
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or status == 0, "the solve failed"
    return os.WIFSIGNALED(status)


@dataclass
class Tally:
    """What became of the kills."""

    kills: int = 0
    resumed: int = 0  # kills that left a checkpoint behind
    finished: int = 0
    lost: int = 0
    different: int = 0


def torment(
    patient: Patient,
    folder: Path,
    n_kills: int,
    rng: np.random.Generator,
    tell: Callable[[str], object] = lambda line: None,
) -> Tally:
    """Kill a solve at random moments, look at what is left, go on; compare every end."""
    problem, tally = patient.problem(), Tally()
    begin = time.perf_counter()
    expected = solve_with(get_solver(patient.solver), Run(problem))
    span = time.perf_counter() - begin
    path = folder / f"{patient.solver}-{patient.seed}.checkpoint"
    before: Saved | None = None
    killed = True
    while tally.kills < n_kills or killed:  # the last one may end in peace
        interval = float(rng.choice([0.0, 0.02, 0.1]))
        child = solve_in_child(patient, problem, path, interval)
        patience = rng.uniform(0.0, 0.6 * span) if tally.kills < n_kills else np.inf
        killed = kill_after(child, float(patience))
        after = look_at(path, problem)
        tally.lost += int(is_worse(problem, before, after))
        tally.kills += int(killed)
        tally.resumed += int(killed and after is not None)
        before = after
        if not killed:
            assert after is not None
            reached, best = problem.evaluate(after.selection), expected.objective
            room = 2e-6 * max(1.0, abs(best))
            same = abs(reached - best) <= room and best - room <= after.bound <= reached + room
            tally.different += int(not same)
            tally.finished += 1
            before = None
            for leftover in folder.iterdir():
                leftover.unlink()
    tell(f"{patient}: {span:.1f} s, {tally}")
    return tally


def look_at(path: Path, problem: StructureProblem) -> Saved | None:
    """The newest checkpoint; it must be complete without falling back."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointWarning)
        return Checkpoint(path, problem).saved


def is_worse(problem: StructureProblem, before: Saved | None, after: Saved | None) -> bool:
    """Whether something that was on the disk is not there any more."""
    if before is None:
        return False
    if after is None:
        return True
    falls = problem.evaluate(after.selection) < problem.evaluate(before.selection)
    return bool(falls or after.bound > before.bound)
