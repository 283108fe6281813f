"""The public names and where they live: the one list, read by type checkers and by __init__.py."""

from marginbn.classifiers import (
    A1DEClassifier,
    BNClassifier,
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
)
from marginbn.classifiers.arc_strength import ArcStrength, arc_strength
from marginbn.classifiers.claims import verify_model
from marginbn.classifiers.deployment import export_model
from marginbn.classifiers.learner import BayesianNetworkLearner
from marginbn.classifiers.learner_file import load_model, save_model
from marginbn.data.discretize import MDLPDiscretizer
from marginbn.data.inspection import DataReport, inspect_data
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
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.interactions import (
    ResidualStructure,
    residual_forest,
    residual_problem,
    two_tree,
)
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
from marginbn.proof.theorem import Statement
from marginbn.report.page import HTMLReport, make_report, write_report
from marginbn.report.summary import describe
from marginbn.scoring.local_scores import local_scores
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

__all__ = [
    "A1DEClassifier",
    "ArcStrength",
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
    "ResidualStructure",
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
    "arc_strength",
    "as_table",
    "available_solvers",
    "describe",
    "drop_dominated",
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
    "residual_forest",
    "residual_problem",
    "save_model",
    "save_network",
    "save_scores",
    "smallest_margins",
    "solve_structure",
    "to_networkx",
    "to_pgmpy",
    "to_pyagrum",
    "two_tree",
    "verify_certificate",
    "verify_model",
    "what_if",
    "write_formulation",
    "write_report",
]
__version__: str
