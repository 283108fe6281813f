"""Dual weights on a coarse scale: few bits, still a proof.

Any shares of a sample's weight that add up to one at most give a valid bound, so shares may be
rounded as long as the bound stays good enough. Parts of 2^bits, see
:class:`marginbn.proof.certificate.DualWeights`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import DualWeights
from marginbn.proof.format import part_type

FloatArray = NDArray[np.float64]


def smooth_shares(margins: FloatArray, gamma: float, smoothing: float) -> FloatArray:
    """Shares of the rivals in the minimum of margins and gamma, smoothed; (M, rivals).

    With s = (margins, gamma) of a sample, p minimises p . s + (smoothing / 2) |p|^2 over the
    simplex: p_c = max(0, (nu - s_c) / smoothing) with sum p = 1.
    """
    capped = np.column_stack([margins, np.full(len(margins), gamma)])
    ordered = np.sort(capped, axis=1)
    sums = np.cumsum(ordered, axis=1)
    counts = np.arange(1, ordered.shape[1] + 1)
    levels = (smoothing + sums) / counts
    support = (ordered < levels).sum(axis=1)  # a prefix of the sorted entries
    nu = levels[np.arange(len(levels)), support - 1]
    return np.asarray(np.maximum(0.0, (nu[:, None] - margins) / smoothing))


def quantise(shares: FloatArray, bits: int) -> DualWeights:
    """Shares to the nearest multiples of 2^-bits, none in all above one."""
    whole = 2**bits
    parts = np.floor(np.clip(shares, 0.0, 1.0) * whole + 0.5).astype(np.int64)
    for _ in range(parts.shape[1]):  # rounding adds at most half a part per rival
        excess = np.maximum(parts.sum(axis=1) - whole, 0)
        if not excess.any():
            break
        largest = parts.argmax(axis=1)
        rows = np.arange(len(parts))
        parts[rows, largest] -= np.minimum(excess, parts[rows, largest])
    return DualWeights(bits, parts.astype(part_type(bits)))


def exact_shares(margins: FloatArray, gamma: float) -> FloatArray:
    """All to the smallest margin, nothing where it exceeds gamma: tight for one structure."""
    shares = np.zeros_like(margins)
    smallest = margins.argmin(axis=1)
    rows = np.flatnonzero(margins[np.arange(len(margins)), smallest] < gamma)
    shares[rows, smallest[rows]] = 1.0
    return shares


def weights_of(dual: DualWeights, weights: FloatArray) -> FloatArray:
    """u of every margin row."""
    return np.asarray((weights[:, None] * (dual.parts * 2.0**-dual.bits)).reshape(-1))


def unused_weight(dual: DualWeights, weights: FloatArray) -> float:
    """sum_m (w_m - sum_c u_mc)."""
    return float(weights @ (1.0 - dual.parts.sum(axis=1, dtype=np.float64) * 2.0**-dual.bits))
