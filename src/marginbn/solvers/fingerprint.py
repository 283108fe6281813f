"""A short name for a structure problem: equal problems have it in common, others do not."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.problem import StructureProblem


def fingerprint(problem: StructureProblem) -> str:
    """SHA-256 of everything that the optimum depends on; names and labels do not matter.

    The margin coefficients are not written out: data, kind and smoothing determine them.
    """
    digest = hashlib.sha256(b"marginbn problem 1\0")
    candidates = problem.candidates
    lengths = [len(parents) for parents in candidates.parents]
    members = [parent for parents in candidates.parents for parent in parents]
    numbers = [candidates.n_variables, problem.n_samples, problem.n_rows]
    for integers in (numbers, candidates.child, lengths, members):
        _add(digest, np.asarray(integers, dtype="<i8"))
    _add(digest, np.asarray(problem.linear, dtype="<f8"))
    if problem.margins is not None:
        data = problem.margins.data
        digest.update(f"{problem.margins.kind}\0".encode())
        for table in (data.arities, data.codes):
            _add(digest, np.asarray(table, dtype="<i8"))
        settings = [problem.gamma, problem.margins.smoothing]
        for reals in (data.weights, problem.sample_weights, settings):
            _add(digest, np.asarray(reals, dtype="<f8"))
    return digest.hexdigest()


def _add(digest: hashlib._Hash, array: NDArray[Any]) -> None:
    """Shape first, so that no two lists of arrays look alike."""
    digest.update(f"{array.shape}\0".encode())
    digest.update(np.ascontiguousarray(array).tobytes())
