"""Formulation (19) for others: handed to HiGHS, written as MPS or LP file.

highspy is imported when it is first needed, never before.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from marginbn.atomic import replacing
from marginbn.exceptions import InputError, MissingDependencyError, SolverError
from marginbn.problem.formulation import MILP, formulate
from marginbn.problem.problem import StructureProblem

SUFFIXES = (".mps", ".lp", ".mps.gz", ".lp.gz")
"""File formats that :func:`write_formulation` writes."""


def load_highspy() -> ModuleType:
    """The highspy module, or an error that says what to do."""
    try:
        import highspy
    except ImportError as error:
        if "undefined symbol" in str(error):
            raise MissingDependencyError(
                "highspy cannot be loaded beside another copy of the HiGHS library in this "
                "process (ortools ships one; highspy 1.15 and later clash with it): "
                'pip install "highspy>=1.14,<1.15"'
            ) from error
        raise MissingDependencyError(
            "solver 'highs' needs highspy: pip install \"highspy>=1.14,<1.15\""
        ) from error
    module: ModuleType = highspy
    return module


def pass_to_highs(highs: Any, milp: MILP, scale: float = 1.0) -> None:
    """Load the formulation into a ``highspy.Highs`` object, the objective divided by ``scale``."""
    highspy = load_highspy()
    integrality = np.zeros(milp.n_columns, dtype=np.int32)
    integrality[milp.eta] = int(highspy.HighsVarType.kInteger)
    matrix = milp.matrix
    status = highs.passModel(
        milp.n_columns,
        milp.n_rows,
        matrix.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize),
        0.0,
        milp.cost / scale,
        milp.lower,
        milp.upper,
        milp.row_lower,
        milp.row_upper,
        matrix.indptr.astype(np.int32, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        matrix.data,
        integrality,
    )
    if status == highspy.HighsStatus.kError:
        raise SolverError("HiGHS did not accept the formulation")


def write_formulation(problem: StructureProblem, path: str | os.PathLike[str]) -> Path:
    """Write problem (19) for CPLEX, Gurobi, SCIP and the like.

    Parameters
    ----------
    problem
        Any problem; its objective is maximised in the file too.
    path
        A name ending in ``.mps``, ``.lp``, ``.mps.gz`` or ``.lp.gz``.

    Returns
    -------
    Path
        The file. Columns are called ``pa_3_0_2`` (variable 3 has the parents 0 and 2),
        ``tau_7`` (margin of sample 7) and ``order_3``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from marginbn import StructureProblem, Variable, enumerate_candidates, write_formulation
    >>> variables = (Variable("class", ("0", "1")), Variable("x", ("0", "1")))
    >>> problem = StructureProblem(
    ...     enumerate_candidates(2, 1), np.array([-3.0, -2.0, -5.0, -1.0]), variables
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_formulation(problem, Path(folder) / "problem.lp")
    ...     "pa_1_0" in path.read_text()
    True
    """
    target = Path(path)
    suffix = next((s for s in SUFFIXES if target.name.lower().endswith(s)), None)
    if suffix is None:
        raise InputError(f"path must end in one of {', '.join(SUFFIXES)}, got {str(target)!r}")
    highs = load_highspy().Highs()
    highs.silent()
    milp = formulate(problem)
    pass_to_highs(highs, milp)
    for column, name in enumerate(milp.column_names()):
        highs.passColName(column, name)
    for row, name in enumerate(milp.row_names()):
        highs.passRowName(row, name)
    _write(highs, target, suffix)
    return target


def _write(highs: Any, target: Path, suffix: str) -> None:
    """All or nothing: HiGHS tells the format by the name and does not compress."""
    plain = suffix.removesuffix(".gz")
    if plain == suffix:
        with replacing(target, plain) as draft:
            _write_plain(highs, draft, target)
        return
    with (
        tempfile.TemporaryDirectory(dir=target.parent) as folder,
        replacing(target) as packed,
    ):
        draft = os.path.join(folder, f"formulation{plain}")
        _write_plain(highs, draft, target)
        with open(draft, "rb") as source, gzip.open(packed, "wb") as stream:
            shutil.copyfileobj(source, stream)


def _write_plain(highs: Any, draft: str, target: Path) -> None:
    if highs.writeModel(draft) == load_highspy().HighsStatus.kError:
        raise SolverError(f"HiGHS could not write {str(target)!r}")
