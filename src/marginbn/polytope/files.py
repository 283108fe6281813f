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

from marginbn.exceptions import InputError, MissingDependencyError, SolverError
from marginbn.polytope.formulation import MILP, formulate
from marginbn.problem import StructureProblem

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
    """Write beside the target first: HiGHS tells the format by the name and does not compress."""
    plain = suffix.removesuffix(".gz")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        draft = Path(folder) / f"formulation{plain}"
        if highs.writeModel(str(draft)) == load_highspy().HighsStatus.kError:
            raise SolverError(f"HiGHS could not write {str(target)!r}")
        if plain == suffix:
            shutil.move(draft, target)
            return
        with draft.open("rb") as source, gzip.open(target, "wb") as packed:
            shutil.copyfileobj(source, packed)
