"""What the classifiers share whose structure comes out of a search with a bound."""

from __future__ import annotations

import sys
import warnings
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from marginbn.classifiers.base import (
    BaseBNClassifier,
    check_count,
    check_positive,
    resolve_arcs,
)
from marginbn.data.columns import as_input_errors
from marginbn.data.encode import EncodedData
from marginbn.exceptions import InputError, OptimalityWarning
from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.problem import StructureProblem, estimate_size
from marginbn.problem.structure import Structure
from marginbn.solvers import solve_structure, solver_names
from marginbn.solvers.memory import parse_memory
from marginbn.solvers.result import SolveResult, Status, TracePoint
from marginbn.solvers.run import Callback, ConsoleListener


class SearchingBNClassifier(BaseBNClassifier):
    """A classifier that builds a problem and has it solved."""

    max_parents: Any
    solver: Any
    time_limit: Any
    gap_tolerance: Any
    random_state: Any
    n_jobs: Any
    verbose: Any
    required_arcs: Any
    forbidden_arcs: Any
    callback: Any
    memory_limit: Any
    checkpoint: Any
    certificate: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_max_parents()
        if self.solver != "auto" and self.solver not in solver_names():
            known = ["auto", *solver_names()]
            raise InputError(f"solver must be one of {known}, got {self.solver!r}")
        if self.time_limit is not None:
            check_positive("time_limit", self.time_limit)
        if not (isinstance(self.gap_tolerance, (int, float)) and self.gap_tolerance >= 0):
            raise InputError(
                f"gap_tolerance must be a number of at least 0, got {self.gap_tolerance!r}"
            )
        parse_memory(self.memory_limit)
        for name in ("checkpoint", "certificate"):
            path = getattr(self, name)
            if path is not None and not isinstance(path, (str, PathLike)):
                raise InputError(f"{name} must be a path or None, got {path!r}")

    def _check_max_parents(self) -> None:
        check_count("max_parents", self.max_parents)

    def _candidates(
        self, data: EncodedData, max_parents: int, *, class_restricted: bool = True
    ) -> CandidateSets:
        """Candidate parent sets under the required and forbidden arcs."""
        if self.verbose:
            margin = getattr(self, "margin", None)
            size = estimate_size(
                data, max_parents, margin=margin, class_restricted=class_restricted
            )
            sys.stderr.write(f"{size}\n")  # told before anything large is allocated
        return enumerate_candidates(
            data.n_variables,
            max_parents,
            class_restricted=class_restricted,
            required=resolve_arcs(self.required_arcs, data, "required_arcs"),
            forbidden=resolve_arcs(self.forbidden_arcs, data, "forbidden_arcs"),
            constant=data.constant,
        )

    def _search(self, problem: StructureProblem, start: Structure | None = None) -> SolveResult:
        """Solve within the limits; a limit is a normal ending, told by a warning."""
        result = solve_structure(
            problem,
            self.solver,
            time_limit=self.time_limit,
            gap_tolerance=self.gap_tolerance,
            start=start,
            callback=self._listener(),
            seed=seed_of(self.random_state),
            n_jobs=self.n_jobs,
            memory_limit=self.memory_limit,
            checkpoint=self.checkpoint,
            certificate=self.certificate,
        )
        warn_if_open(result, stacklevel=5)
        return result

    def _listener(self) -> Callback | None:
        """The user's callback and the console, whichever are wanted."""
        console = ConsoleListener() if self.verbose else None
        if console is None or self.callback is None:
            return console or self.callback

        def both(point: TracePoint) -> bool | None:
            console(point)
            return self.callback(point)  # type: ignore[no-any-return]

        return both


def seed_of(random_state: Any) -> int:
    """A seed for the solver's heuristics; None means 0, so that fits are reproducible."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        return int(random_state) % 2**31
    with as_input_errors():
        return int(check_random_state(random_state).randint(2**31 - 1))


def warn_if_open(result: SolveResult, stacklevel: int) -> None:
    """Say what is known when the search ended before the proof."""
    if result.status in (Status.OPTIMAL, Status.GAP_LIMIT):
        return
    warnings.warn(
        f"the search ended after {result.seconds:.1f} s ({result.status.replace('_', ' ')}) "
        f"before optimality was proven: objective {result.objective:.6g}, bound "
        f"{result.bound:.6g}, gap {100 * result.gap:.2g} %. The structure is the best found; "
        "a larger time_limit narrows the gap",
        OptimalityWarning,
        stacklevel=stacklevel,
    )
