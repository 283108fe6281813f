"""Provably optimal Bayesian-network classifiers.

The names below are imported when first used, so ``import marginbn`` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from marginbn.candidates import CandidateSets, enumerate_candidates
    from marginbn.classifiers import (
        GenerativeBNClassifier,
        MaxMarginBNClassifier,
        MaxMarginBNClassifierCV,
        NaiveBayesClassifier,
        TANClassifier,
    )
    from marginbn.discretize import MDLPDiscretizer
    from marginbn.encode import EncodedData, Variable
    from marginbn.exceptions import (
        DataWarning,
        FormatError,
        InputError,
        MarginBNError,
        MissingDependencyError,
        OptimalityWarning,
        ProblemTooLargeError,
        SolverError,
    )
    from marginbn.network import BayesianNetwork
    from marginbn.problem import (
        ProblemSize,
        StructureProblem,
        drop_dominated,
        estimate_size,
        linear_problem,
        margin_problem,
    )
    from marginbn.solvers import (
        SolveResult,
        Status,
        TracePoint,
        available_solvers,
        paper_gap,
        relative_gap,
        solve_structure,
    )
    from marginbn.structure import Structure

_HOMES = {
    "marginbn.candidates": ("CandidateSets", "enumerate_candidates"),
    "marginbn.classifiers": (
        "GenerativeBNClassifier",
        "MaxMarginBNClassifier",
        "MaxMarginBNClassifierCV",
        "NaiveBayesClassifier",
        "TANClassifier",
    ),
    "marginbn.discretize": ("MDLPDiscretizer",),
    "marginbn.encode": ("EncodedData", "Variable"),
    "marginbn.exceptions": (
        "DataWarning",
        "FormatError",
        "InputError",
        "MarginBNError",
        "MissingDependencyError",
        "OptimalityWarning",
        "ProblemTooLargeError",
        "SolverError",
    ),
    "marginbn.network": ("BayesianNetwork",),
    "marginbn.problem": (
        "ProblemSize",
        "StructureProblem",
        "drop_dominated",
        "estimate_size",
        "linear_problem",
        "margin_problem",
    ),
    "marginbn.solvers": (
        "SolveResult",
        "Status",
        "TracePoint",
        "available_solvers",
        "paper_gap",
        "relative_gap",
        "solve_structure",
    ),
    "marginbn.structure": ("Structure",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'marginbn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
