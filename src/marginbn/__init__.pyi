"""The public names and where they live: the one list, read by type checkers and by __init__.py."""

from .classifiers import (
    BNClassifier,
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
)
from .classifiers.claims import verify_model
from .classifiers.deployment import export_model
from .classifiers.learner import BayesianNetworkLearner
from .classifiers.model_file import load_model, save_model
from .data.discretize import MDLPDiscretizer
from .data.inspection import DataReport, inspect_data
from .data.table import Table, as_table, read_table
from .exceptions import (
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
from .export.formats import load_network, save_network
from .export.interop import (
    from_networkx,
    from_pgmpy,
    from_pyagrum,
    to_networkx,
    to_pgmpy,
    to_pyagrum,
)
from .export.jkl import load_scores, save_scores
from .network.explain import (
    Contribution,
    Explanation,
    Explanations,
    MeanContributions,
    log_margins,
    mean_contributions,
)
from .network.network import BayesianNetwork
from .problem.candidates import CandidateSets, enumerate_candidates
from .problem.encoded import EncodedData, Variable
from .problem.problem import (
    ProblemSize,
    StructureProblem,
    estimate_size,
    linear_problem,
    margin_problem,
)
from .problem.structure import Structure
from .proof.checker import Verdict, verify_certificate
from .proof.theorem import Statement
from .report.learned import describe
from .report.page import HTMLReport, make_report, write_report
from .scoring.local_scores import local_scores
from .solvers import (
    Search,
    SolveResult,
    Status,
    TracePoint,
    available_solvers,
    paper_gap,
    relative_gap,
    solve_structure,
)
from .solvers.milp import write_formulation

__all__ = [
    "BNClassifier",
    "BayesianNetwork",
    "BayesianNetworkLearner",
    "CandidateSets",
    "CertificateWarning",
    "CheckpointWarning",
    "Contribution",
    "DataReport",
    "DataWarning",
    "EncodedData",
    "Explanation",
    "Explanations",
    "FormatError",
    "GenerativeBNClassifier",
    "HTMLReport",
    "InputError",
    "MDLPDiscretizer",
    "MarginBNError",
    "MaxMarginBNClassifier",
    "MaxMarginBNClassifierCV",
    "MeanContributions",
    "MissingDependencyError",
    "NaiveBayesClassifier",
    "OptimalityWarning",
    "ProblemSize",
    "ProblemTooLargeError",
    "Search",
    "SolveResult",
    "SolverError",
    "Statement",
    "Status",
    "Structure",
    "StructureProblem",
    "TANClassifier",
    "Table",
    "TracePoint",
    "Variable",
    "Verdict",
    "as_table",
    "available_solvers",
    "describe",
    "enumerate_candidates",
    "estimate_size",
    "export_model",
    "from_networkx",
    "from_pgmpy",
    "from_pyagrum",
    "inspect_data",
    "linear_problem",
    "load_model",
    "load_network",
    "load_scores",
    "local_scores",
    "log_margins",
    "make_report",
    "margin_problem",
    "mean_contributions",
    "paper_gap",
    "read_table",
    "relative_gap",
    "save_model",
    "save_network",
    "save_scores",
    "solve_structure",
    "to_networkx",
    "to_pgmpy",
    "to_pyagrum",
    "verify_certificate",
    "verify_model",
    "write_formulation",
    "write_report",
]
__version__: str
