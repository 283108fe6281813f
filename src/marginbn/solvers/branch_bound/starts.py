"""Structures that the local search starts from, besides those of the relaxation and the caller."""

from __future__ import annotations

import numpy as np

from marginbn.problem.problem import StructureProblem
from marginbn.problem.scores import candidate_score, log_likelihood
from marginbn.solvers.branch_bound.arrays import Encoding
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import Box, FloatArray, IntArray, Oracle


def simple_starts(
    problem: StructureProblem, encoding: Encoding, root: Box, oracle: Oracle, stop: IntArray
) -> list[IntArray]:
    """Naive Bayes and TAN, as far as the candidates allow them; both have a class without parents.

    When ``stop`` is raised on the way, fewer.
    """
    lonely = np.flatnonzero((encoding.instance.first < 0) & root.classes)
    if lonely.size == 0:
        return []
    starts = []
    if root.allowed[:, encoding.n_features].all():
        features = np.full(encoding.n_features, encoding.n_features)
        starts.append(np.append(features, lonely[0]).astype(np.int64))
    likelihood = _log_likelihoods(problem, encoding, root, stop)
    if likelihood is not None:
        classes = np.zeros_like(root.classes)
        classes[lonely] = True
        inst = encoding.instance
        value, _ = maximise(inst, root._replace(classes=classes), likelihood, 1, oracle)
        if value > -np.inf:
            starts.append(oracle.vertex.copy())
    return starts


def _log_likelihoods(
    problem: StructureProblem, encoding: Encoding, root: Box, stop: IntArray
) -> FloatArray | None:
    """Log-likelihood of every slot that the root allows; None without data or time."""
    if problem.margins is None:
        return None
    data, candidates = problem.margins.data, problem.candidates
    out = np.zeros(encoding.candidate_of.size)
    for column in np.flatnonzero(root.allowed):  # columns of features are numbered like their slots
        if stop[0] != 0:
            return None
        k = int(encoding.candidate_of[column])
        out[column] = candidate_score(data, candidates, k, log_likelihood)
    return out
