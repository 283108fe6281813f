"""What the classifiers share whose structure comes out of a search with a bound."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.validation import (
    Check,
    check_count,
    check_not_negative,
    check_path,
    check_positive,
    optional,
)
from marginbn.data.columns import as_input_errors
from marginbn.data.encode import EncodedData
from marginbn.exceptions import InputError, OptimalityWarning
from marginbn.problem.candidates import Arc, CandidateSets, enumerate_candidates
from marginbn.problem.problem import StructureProblem, estimate_size
from marginbn.problem.structure import Structure
from marginbn.solvers import solve_structure, solver_names
from marginbn.solvers.memory import parse_memory
from marginbn.solvers.result import SolveResult, Status, TracePoint
from marginbn.solvers.run import Callback, ConsoleListener


def check_solver(name: str, value: Any) -> None:
    """Refuse names that no solver has."""
    known = ["auto", *solver_names()]
    if value not in known:
        raise InputError(f"{name} must be one of {known}, got {value!r}")


class SearchingBNClassifier(BaseBNClassifier):
    """A classifier that builds a problem and has it solved.

    Besides the parameters below, subclasses take ``random_state``, ``n_jobs``, ``verbose``,
    ``required_arcs``, ``forbidden_arcs`` and ``callback``.
    """

    _CHECKS: ClassVar[dict[str, Check]] = {
        **BaseBNClassifier._CHECKS,
        "max_parents": check_count,
        "solver": check_solver,
        "time_limit": optional(check_positive),
        "gap_tolerance": check_not_negative,
        "memory_limit": lambda _, value: parse_memory(value),
        "checkpoint": check_path,
        "certificate": check_path,
    }

    @abstractmethod
    def _problem(self, data: EncodedData) -> StructureProblem:
        """What is maximised over which structures."""

    def _candidates(self, data: EncodedData, *, class_restricted: bool = True) -> CandidateSets:
        """Candidate parent sets under the required and forbidden arcs."""
        if self.verbose:
            margin = getattr(self, "margin", None)
            size = estimate_size(
                data, self.max_parents, margin=margin, class_restricted=class_restricted
            )
            sys.stderr.write(f"{size}\n")  # before anything large is allocated
        return enumerate_candidates(
            data.n_variables,
            self.max_parents,
            class_restricted=class_restricted,
            required=resolve_arcs(self.required_arcs, data, "required_arcs"),
            forbidden=resolve_arcs(self.forbidden_arcs, data, "forbidden_arcs"),
            constant=data.constant,
        )

    def _search(self, problem: StructureProblem, start: Structure | None = None) -> SolveResult:
        """Solve within the limits; a limit is a normal ending, reported by a warning."""
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
        warn_if_open(result, stacklevel=5)  # the caller of fit
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


def resolve_arcs(arcs: Any, data: EncodedData, name: str) -> tuple[Arc, ...]:
    """Arcs given as (parent, child) by name, or by index with the class at 0."""
    if arcs is None:
        return ()
    try:
        pairs = [(parent, child) for parent, child in arcs]
    except (TypeError, ValueError):
        raise InputError(f"{name} must be pairs (parent, child), got {arcs!r}") from None
    return tuple((_resolve(p, data, name), _resolve(c, data, name)) for p, c in pairs)


def _resolve(variable: Any, data: EncodedData, name: str) -> int:
    if isinstance(variable, str) and variable in data.names:
        return data.names.index(variable)
    if isinstance(variable, (int, np.integer)) and 0 <= variable < data.n_variables:
        return int(variable)
    raise InputError(
        f"{name} names the variable {variable!r}; known are {list(data.names)} "
        f"and the indices 0 (the class) to {data.n_variables - 1}"
    )


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
