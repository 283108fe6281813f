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
from .classifiers.discretizer import MDLPDiscretizer
from .classifiers.learner import BayesianNetworkLearner
from .classifiers.model_file import load_model, save_model
from .data.inspection import inspect_data
from .data.table import read_table
from .exceptions import (
    DataWarning,
    FormatError,
    InputError,
    OptimalityWarning,
)
from .export.formats import load_network, save_network
from .export.interop import (
    from_pgmpy,
    from_pyagrum,
    to_pgmpy,
    to_pyagrum,
)
from .export.jkl import load_scores, save_scores
from .network.network import BayesianNetwork
from .problem.candidates import enumerate_candidates
from .problem.encoded import EncodedData, Variable
from .problem.problem import StructureProblem, margin_problem
from .problem.structure import Structure
from .proof.checker import verify_certificate
from .proof.theorem import Statement
from .report.learned import describe
from .report.page import make_report
from .scoring.local_scores import linear_problem, local_scores
from .solvers import (
    Search,
    SolveResult,
    solve_structure,
)
from .solvers.milp import write_formulation

__all__ = [
    "BNClassifier",
    "BayesianNetwork",
    "BayesianNetworkLearner",
    "DataWarning",
    "EncodedData",
    "FormatError",
    "GenerativeBNClassifier",
    "InputError",
    "MDLPDiscretizer",
    "MaxMarginBNClassifier",
    "MaxMarginBNClassifierCV",
    "NaiveBayesClassifier",
    "OptimalityWarning",
    "Search",
    "SolveResult",
    "Statement",
    "Structure",
    "StructureProblem",
    "TANClassifier",
    "Variable",
    "describe",
    "enumerate_candidates",
    "export_model",
    "from_pgmpy",
    "from_pyagrum",
    "inspect_data",
    "linear_problem",
    "load_model",
    "load_network",
    "load_scores",
    "local_scores",
    "make_report",
    "margin_problem",
    "read_table",
    "save_model",
    "save_network",
    "save_scores",
    "solve_structure",
    "to_pgmpy",
    "to_pyagrum",
    "verify_certificate",
    "verify_model",
    "write_formulation",
]
__version__: str
