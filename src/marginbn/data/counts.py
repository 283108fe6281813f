"""Contingency tables: the only file that counts rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from marginbn.data.encode import EncodedData
from marginbn.exceptions import ProblemTooLargeError

MAX_JOINT_STATES = 2**31
"""A table with more cells than this is refused: it could neither be stored nor estimated."""


def check_joint_states(data: EncodedData, columns: Sequence[int]) -> int:
    """Number of joint states of ``columns``, refused above :data:`MAX_JOINT_STATES`."""
    size = math.prod(int(data.arities[c]) for c in columns)
    if size > MAX_JOINT_STATES:
        names = ", ".join(repr(data.names[c]) for c in columns)
        raise ProblemTooLargeError(
            f"the table over {names} would have {size} joint states, more than 2^31; "
            "reduce max_parents, or the number of states of these columns"
        )
    return size


def joint_codes(data: EncodedData, columns: Sequence[int]) -> NDArray[np.int64]:
    """Mixed-radix code of the joint state of ``columns`` in every sample, last column fastest."""
    check_joint_states(data, columns)
    code = np.zeros(data.n_samples, dtype=np.int64)
    for column in columns:
        code *= int(data.arities[column])
        code += data.codes[:, column]
    return code


def contingency(data: EncodedData, columns: Sequence[int]) -> NDArray[np.float64]:
    """Weighted counts of the joint states of ``columns``; shape ``arities[columns]``."""
    size = check_joint_states(data, columns)
    counts = np.bincount(joint_codes(data, columns), weights=data.weights, minlength=size)
    return counts.astype(np.float64, copy=False).reshape([int(data.arities[c]) for c in columns])
