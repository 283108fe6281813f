"""Provably optimal Bayesian-network classifiers.

The names below are imported when first used, so ``import marginbn`` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from marginbn.classifiers import (
        GenerativeBNClassifier,
        MaxMarginBNClassifier,
        MaxMarginBNClassifierCV,
        NaiveBayesClassifier,
        TANClassifier,
    )
    from marginbn.classifiers.model_file import load_model, save_model
    from marginbn.data.discretize import MDLPDiscretizer
    from marginbn.data.encode import EncodedData, Variable
    from marginbn.data.readers import read_table
    from marginbn.data.table import Table, as_table
    from marginbn.exceptions import (
        CertificateWarning,
        CheckpointWarning,
        DataWarning,
        FormatError,
        InputError,
        MarginBNError,
        MissingDependencyError,
        OptimalityWarning,
        ProblemTooLargeError,
        SolverError,
    )
    from marginbn.export.formats import load_network, save_network
    from marginbn.export.interop import (
        from_networkx,
        from_pgmpy,
        from_pyagrum,
        to_networkx,
        to_pgmpy,
        to_pyagrum,
    )
    from marginbn.export.jkl import load_scores, save_scores
    from marginbn.network.explain import (
        Contribution,
        Explanation,
        Explanations,
        MeanContributions,
        log_margins,
        mean_contributions,
        smallest_margins,
        what_if,
    )
    from marginbn.network.network import BayesianNetwork
    from marginbn.problem.candidates import CandidateSets, enumerate_candidates
    from marginbn.problem.problem import (
        ProblemSize,
        StructureProblem,
        drop_dominated,
        estimate_size,
        linear_problem,
        margin_problem,
    )
    from marginbn.problem.structure import Structure
    from marginbn.proof.checker import Verdict, verify_certificate
    from marginbn.report.page import write_report
    from marginbn.report.summary import describe
    from marginbn.solvers import (
        SolveResult,
        Status,
        TracePoint,
        available_solvers,
        paper_gap,
        relative_gap,
        solve_structure,
    )
    from marginbn.solvers.milp import write_formulation
    from marginbn.solvers.ranking import RankedStructure, best_structures

_HOMES = {
    "marginbn.problem.candidates": ("CandidateSets", "enumerate_candidates"),
    "marginbn.classifiers": (
        "GenerativeBNClassifier",
        "MaxMarginBNClassifier",
        "MaxMarginBNClassifierCV",
        "NaiveBayesClassifier",
        "TANClassifier",
    ),
    "marginbn.data.discretize": ("MDLPDiscretizer",),
    "marginbn.data.encode": ("EncodedData", "Variable"),
    "marginbn.exceptions": (
        "CertificateWarning",
        "CheckpointWarning",
        "DataWarning",
        "FormatError",
        "InputError",
        "MarginBNError",
        "MissingDependencyError",
        "OptimalityWarning",
        "ProblemTooLargeError",
        "SolverError",
    ),
    "marginbn.network.explain": (
        "Contribution",
        "Explanation",
        "Explanations",
        "MeanContributions",
        "log_margins",
        "mean_contributions",
        "smallest_margins",
        "what_if",
    ),
    "marginbn.export.formats": ("load_network", "save_network"),
    "marginbn.export.interop": (
        "from_networkx",
        "from_pgmpy",
        "from_pyagrum",
        "to_networkx",
        "to_pgmpy",
        "to_pyagrum",
    ),
    "marginbn.export.jkl": ("load_scores", "save_scores"),
    "marginbn.report.page": ("write_report",),
    "marginbn.classifiers.model_file": ("load_model", "save_model"),
    "marginbn.network.network": ("BayesianNetwork",),
    "marginbn.solvers.milp": ("write_formulation",),
    "marginbn.problem.problem": (
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
    "marginbn.data.readers": ("read_table",),
    "marginbn.report.summary": ("describe",),
    "marginbn.solvers.ranking": ("RankedStructure", "best_structures"),
    "marginbn.problem.structure": ("Structure",),
    "marginbn.data.table": ("Table", "as_table"),
    "marginbn.proof.checker": ("Verdict", "verify_certificate"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'marginbn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
