"""Margins from codes and tables: what coefficients would say, where there is no room for them.

A column is a candidate k with the features F of its family. Its coefficient in row (m, r) is a
look-up in its table of class scores s_k (``problem/margins.py``) at the joint state f of F in
sample m:

    one rival     alpha_m  = d_k[f, c_m]                  d_k made once from s_k
    several       alpha_mr = s_k[f, c_m] - s_k[f, r]

A *key* names one joint state per sample: ``(a, b, radix, start, states)`` stands for the state
``f = code_a radix + code_b`` (-1: no such feature) out of ``states``, whose table begins at
``start`` (-1: all coefficients of the column are zero).

**Gradients are weighted counts.** With dual weights u,

    (A^T u)_k = sum_m sum_r u_mr alpha_mr = sum_{f, c} s_k[f, c] N[f, c],
    N[f, c]   = sum of V_mc over the samples in state f,
    V_mc      = sum_r u_mr if c is the class of m, else -u_mc

(one rival: ``V_m = u_m``, counted at the class of m). N depends on F alone, so candidates over the
same features share it. A pass needs the codes, and tables of different chunks add up.

**Means of groups** are the same with the weights of the members: ``sum_m w_m alpha_mr``. Where a
group has fewer members than its features have joint states they are added one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from marginbn.solvers.branch_bound.kernels.records import (
    FloatArray,
    Instance,
    IntArray,
    count_rows,
)
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


@entry
def count_states(
    codes: CodeArray,
    keys: IntArray,
    lo: int,
    hi: int,
    values: FloatArray,
    n_classes: int,
    counts: FloatArray,
) -> None:
    """Add up one value per sample by joint state and class, for keys ``lo`` to ``hi - 1``."""
    classes = codes[codes.shape[0] - 1]
    for k in range(lo, hi):
        key, out = keys[k], counts[keys[k, 3] :]
        if key[1] >= 0:
            first, second, radix = codes[key[0]], codes[key[1]], key[2]
            for m in range(values.size):
                state = np.int64(first[m]) * radix + np.int64(second[m])
                out[state * n_classes + np.int64(classes[m])] += values[m]
        else:
            for m in range(values.size):
                state = state_of(codes, key, m)
                out[state * n_classes + np.int64(classes[m])] += values[m]


@entry
def count_vectors(
    codes: CodeArray, keys: IntArray, lo: int, hi: int, values: FloatArray, counts: FloatArray
) -> None:
    """Add up one vector V_m over the classes per sample by joint state."""
    n_samples, n_classes = values.shape
    for k in range(lo, hi):
        key, out = keys[k], counts[keys[k, 3] :]
        for m in range(n_samples):
            begin = state_of(codes, key, m) * n_classes
            for c in range(n_classes):
                out[begin + c] += values[m, c]


@entry
def fill_columns(
    inst: Instance, samples: IntArray, columns: IntArray, lo: int, hi: int, out: FloatArray
) -> None:
    """Coefficients of some samples: ``out`` (K, rows of the samples), columns ``lo`` to ``hi - 1``
    of a list.
    """
    rivals = count_rows(inst) // inst.weights.size
    n_classes = inst.n_classes
    classes = inst.codes[inst.codes.shape[0] - 1]
    for k in range(lo, hi):
        v = columns[k]
        start = inst.keys[v, 3]
        if start < 0:
            continue
        place, table = out[v], inst.tables[start:]
        for a in range(samples.size):
            m = samples[a]
            own = np.int64(classes[m])
            begin = state_of(inst.codes, inst.keys[v], m) * n_classes
            if rivals == 1:
                place[a] = table[begin + own]
            else:
                _set_row(table[begin : begin + n_classes], own, place[a * rivals :])


@kernel
def _set_row(scores: FloatArray, own: np.int64, place: FloatArray) -> None:
    """Coefficients of one state against every rival."""
    for c in range(own):
        place[c] = scores[own] - scores[c]
    for c in range(own + 1, scores.size):
        place[c - 1] = scores[own] - scores[c]


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
            if counted < 0 or not _is_same(key, inst.keys[counted]):
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
def _is_same(key: IntArray, other: IntArray) -> bool:
    """Whether two keys name the same features."""
    return bool(key[0] == other[0] and key[1] == other[1])


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
