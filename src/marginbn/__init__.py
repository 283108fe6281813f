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
    from marginbn.explain import log_margins, mean_contributions, smallest_margins, what_if
    from marginbn.explanations import Contribution, Explanation, Explanations, MeanContributions
    from marginbn.export.files import load_network, save_network
    from marginbn.export.graphs import (
        from_networkx,
        from_pgmpy,
        from_pyagrum,
        to_networkx,
        to_pgmpy,
        to_pyagrum,
    )
    from marginbn.export.jkl import load_scores, save_scores
    from marginbn.html.write import write_report
    from marginbn.model_file import load_model, save_model
    from marginbn.network import BayesianNetwork
    from marginbn.polytope.files import write_formulation
    from marginbn.problem import (
        ProblemSize,
        StructureProblem,
        drop_dominated,
        estimate_size,
        linear_problem,
        margin_problem,
    )
    from marginbn.readers import read_table
    from marginbn.report import describe
    from marginbn.solvers import (
        SolveResult,
        Status,
        TracePoint,
        available_solvers,
        paper_gap,
        relative_gap,
        solve_structure,
    )
    from marginbn.solvers.ranking import RankedStructure, best_structures
    from marginbn.structure import Structure
    from marginbn.table import Table, as_table
    from marginbn.verify import Verdict, verify_certificate

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
    "marginbn.explain": ("log_margins", "mean_contributions", "smallest_margins", "what_if"),
    "marginbn.explanations": (
        "Contribution",
        "Explanation",
        "Explanations",
        "MeanContributions",
    ),
    "marginbn.export.files": ("load_network", "save_network"),
    "marginbn.export.graphs": (
        "from_networkx",
        "from_pgmpy",
        "from_pyagrum",
        "to_networkx",
        "to_pgmpy",
        "to_pyagrum",
    ),
    "marginbn.export.jkl": ("load_scores", "save_scores"),
    "marginbn.html.write": ("write_report",),
    "marginbn.model_file": ("load_model", "save_model"),
    "marginbn.network": ("BayesianNetwork",),
    "marginbn.polytope.files": ("write_formulation",),
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
    "marginbn.readers": ("read_table",),
    "marginbn.report": ("describe",),
    "marginbn.solvers.ranking": ("RankedStructure", "best_structures"),
    "marginbn.structure": ("Structure",),
    "marginbn.table": ("Table", "as_table"),
    "marginbn.verify": ("Verdict", "verify_certificate"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'marginbn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
