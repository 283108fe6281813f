"""Margins from codes and tables: what coefficients would say, where there is no room for them.

A column is a candidate k with the features F of its family. Its coefficient in row (m, r) is a
look-up in its table of class scores s_k (``problem/margins.py``) at the joint state f of F in
sample m:

    one rival     alpha_m  = d_k[f, c_m]                  d_k made once from s_k
    several       alpha_mr = s_k[f, c_m] - s_k[f, r]

A *key* names one joint state per sample: ``(a, b, radix, start, states)`` stands for the state
``f = code_a radix + code_b`` (-1: no such feature) out of ``states``, whose table begins at
``start`` (-1: all coefficients of the column are zero).

**Counts.** ``N[f, c]``, the weight of the samples of class c in state f, depends on F alone, so
candidates over the same features share it (``solvers/counts.py``); their tables are made from it.

**Means of groups**, ``sum_m w_m alpha_mr`` over the members, are sums over f of weighted counts.
Where a group has fewer members than its features have joint states they are added one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels.records import Instance, count_rows
from marginbn.solvers.compile import entry, kernel

CodeArray = npt.NDArray[np.uint16]


@kernel
def state_of(codes: CodeArray, key: IntArray, m: int) -> np.int64:
    """Joint state of a key in sample m."""
    state = np.int64(0)
    if key[0] >= 0:
        state = np.int64(codes[key[0], m])
    if key[1] >= 0:
        state = state * key[2] + np.int64(codes[key[1], m])
    return state


@kernel
def add_coded_column(inst: Instance, v: int, scale: float, t: FloatArray) -> None:
    """t += scale * column v, of an instance that holds codes."""
    key, start = inst.keys[v], inst.keys[v, 3]
    if start < 0:
        return
    n_classes, table = inst.n_classes, inst.tables[start:]
    n_samples = inst.weights.size
    classes = inst.codes[inst.codes.shape[0] - 1]
    rivals = count_rows(inst) // n_samples
    if rivals > 1:
        for m in range(n_samples):
            own, begin = np.int64(classes[m]), state_of(inst.codes, key, m) * n_classes
            score = table[begin + own]
            row = m * rivals
            for c in range(own):
                t[row + c] += scale * (score - table[begin + c])
            for c in range(own + 1, n_classes):
                t[row + c - 1] += scale * (score - table[begin + c])
    elif key[1] >= 0:
        first, second, radix = inst.codes[key[0]], inst.codes[key[1]], key[2]
        for m in range(n_samples):
            state = np.int64(first[m]) * radix + np.int64(second[m])
            t[m] += scale * table[state * n_classes + np.int64(classes[m])]
    else:
        for m in range(n_samples):
            state = state_of(inst.codes, key, m)
            t[m] += scale * table[state * n_classes + np.int64(classes[m])]


@kernel
def _coefficient(inst: Instance, v: int, r: int) -> np.float64:
    """Coefficient of column v in row r."""
    rivals = count_rows(inst) // inst.weights.size
    m = r // rivals
    own = np.int64(inst.codes[inst.codes.shape[0] - 1, m])
    begin = inst.keys[v, 3] + state_of(inst.codes, inst.keys[v], m) * inst.n_classes
    score = np.float64(inst.tables[begin + own])
    if rivals == 1:
        return score
    c = r - m * rivals
    return score - np.float64(inst.tables[begin + c + (c >= own)])


@entry
def fill_columns(inst: Instance, rows: IntArray, lo: int, hi: int, out: FloatArray) -> None:
    """Coefficients of some rows, ``out`` (K, rows), in the columns ``lo`` to ``hi - 1``."""
    for v in range(lo, hi):
        if inst.keys[v, 3] < 0:
            out[v] = 0.0
            continue
        for a in range(rows.size):
            out[v, a] = _coefficient(inst, v, rows[a])


@entry
def sum_rows(
    inst: Instance, rows: IntArray, weights: FloatArray, lo: int, hi: int, out: FloatArray
) -> None:
    """Weighted sums of some rows in the columns ``lo`` to ``hi - 1``: ``out`` (K,)."""
    for v in range(lo, hi):
        if inst.keys[v, 3] >= 0:
            for a in range(rows.size):
                out[v] += weights[a] * _coefficient(inst, v, rows[a])


@entry
def sum_groups(
    inst: Instance,
    columns: IntArray,
    lo: int,
    hi: int,
    members: IntArray,
    starts: IntArray,
    scratch: FloatArray,
    out: FloatArray,
) -> None:
    """Mean coefficients of groups of samples of one class each: ``out`` (groups x rivals, K).

    ``columns`` are sorted so that those over the same features follow each other; group g has the
    samples ``members[starts[g]:starts[g + 1]]``.
    """
    n_classes = inst.n_classes
    rivals = count_rows(inst) // inst.weights.size
    classes = inst.codes[inst.codes.shape[0] - 1]
    score = np.empty(n_classes)
    for g in range(starts.size - 1):
        group = members[starts[g] : starts[g + 1]]
        own = np.int64(classes[group[0]])
        total = 0.0
        for a in range(group.size):
            total += inst.weights[group[a]]
        counted, states = -1, 0
        for k in range(lo, hi):
            v = columns[k]
            key = inst.keys[v]
            if key[3] < 0:
                continue
            other = inst.keys[counted]
            if counted < 0 or key[0] != other[0] or key[1] != other[1]:
                counted = v
                states = _count_group(inst, key, group, scratch)
            first, last = own, own + 1
            if rivals > 1:
                first, last = np.int64(0), np.int64(n_classes)
            _mean_scores(inst, key, group, states, scratch, total, first, last, score)
            if rivals == 1:
                out[g, v] = score[own]
            else:
                for c in range(own):
                    out[g * rivals + c, v] = score[own] - score[c]
                for c in range(own + 1, n_classes):
                    out[g * rivals + c - 1, v] = score[own] - score[c]


@kernel
def _count_group(inst: Instance, key: IntArray, group: IntArray, scratch: FloatArray) -> int:
    """Weights of a group's members by joint state; returns the number of states, 0 where adding
    the members one by one is quicker.
    """
    states = 1
    if key[0] >= 0:
        states = key[4]
    if group.size < states:
        return 0
    for f in range(states):
        scratch[f] = 0.0
    if key[1] >= 0:
        first, second, radix = inst.codes[key[0]], inst.codes[key[1]], key[2]
        for a in range(group.size):
            m = group[a]
            scratch[np.int64(first[m]) * radix + np.int64(second[m])] += inst.weights[m]
    else:
        for a in range(group.size):
            scratch[state_of(inst.codes, key, group[a])] += inst.weights[group[a]]
    return states


@kernel
def _mean_scores(
    inst: Instance,
    key: IntArray,
    group: IntArray,
    states: int,
    scratch: FloatArray,
    total: float,
    first: np.int64,
    last: np.int64,
    score: FloatArray,
) -> None:
    """Mean of the class scores s_k over the members, for classes ``first`` to ``last - 1``."""
    n_classes, table = inst.n_classes, inst.tables[key[3] :]
    for c in range(first, last):
        score[c] = 0.0
    if states > 0:
        for f in range(states):
            weight = scratch[f]
            if weight != 0.0:
                for c in range(first, last):
                    score[c] += weight * table[f * n_classes + c]
    else:
        for a in range(group.size):
            begin = state_of(inst.codes, key, group[a]) * n_classes
            for c in range(first, last):
                score[c] += inst.weights[group[a]] * table[begin + c]
    for c in range(first, last):
        score[c] /= total
