"""Cut numeric columns into bins by entropy: Fayyad and Irani (1993).

One column of values S with class labels is cut in two, and each part again, for as long as
a cut pays for its own description (minimum description length, MDL). Weights count as
repetitions, so N below is a total weight.

    Ent(S)      = - sum_c p_c log2 p_c,        p_c the share of class c in S
    E(T; S)     = |S1|/N Ent(S1) + |S2|/N Ent(S2),   S1 = {v <= T}, S2 = {v > T}
    Gain(T; S)  = Ent(S) - E(T; S)
    Delta(T; S) = log2(3^k - 2) - (k Ent(S) - k1 Ent(S1) - k2 Ent(S2)),
                  k, k1, k2 the numbers of classes present in S, S1, S2

    T = argmin E(.; S),   accepted iff   Gain(T; S) > (log2(N - 1) + Delta(T; S)) / N

Only boundary points can minimise E (Fayyad's theorem: inside a run of values that all belong
to one class E is strictly concave, unless S is pure), so only those are tried. The code works with
information N Ent(S) = sum_c n_c log2(N / n_c): all its terms are positive, so nothing cancels.
"""

from itertools import pairwise
from math import log1p, log2
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from marginbn.problem import ANY_NUMBER
from marginbn.problem.array_types import CodeArray, FloatArray, IntArray

TOLERANCE = 1e-12  # bits per row below which entropies are equal: rounding leaves about 1e-15
MOST_DECIMALS = 1075  # of a double
TINY = np.finfo(np.float64).tiny  # for a share of zero: its logarithm is multiplied by zero


class _Cases(NamedTuple):
    """Distinct (value, class) pairs of one column, sorted by value, with their weight; the
    positions i where a cut between pairs i - 1 and i can be best; and whether weights are whole.
    """

    values: FloatArray
    classes: IntArray
    weights: FloatArray
    boundaries: IntArray
    is_whole: bool


class _Sides(NamedTuple):
    """Sides S1 and S2 of every tried cut, (2, cuts): weights, information in bits, classes."""

    weight: FloatArray
    information: FloatArray
    n_classes: IntArray


def mdlp_cuts(
    values: ArrayLike, class_codes: ArrayLike, weights: ArrayLike, n_classes: int
) -> FloatArray:
    """Cut points of one numeric column, by entropy with the MDL stopping rule.

    NaN is ignored. Weights count as repetitions: 3 is three equal samples, 0 an absent one; a part
    with a total weight below 2 is never cut. The cuts increase strictly, and a value belongs to the
    left of a cut when ``value <= cut``. Each is the number of fewest decimals strictly between two
    neighbouring values, of these the nearest to the middle. Of cuts with equal entropy (within
    1e-12 bits per row) the smallest is taken.
    """
    cases = _sort_cases(
        np.asarray(values, dtype=np.float64),
        np.asarray(class_codes, dtype=np.int64),
        np.asarray(weights, dtype=np.float64),
    )
    cuts = []
    parts = [(0, cases.values.size)]  # a stack of our own: no recursion limit
    while parts:
        start, stop = parts.pop()
        at = _find_split(cases, start, stop, n_classes)
        if at is not None:
            cuts.append(short_cut(float(cases.values[at - 1]), float(cases.values[at])))
            parts += [(start, at), (at, stop)]
    return np.array(sorted(cuts), dtype=np.float64)


def _sort_cases(values: FloatArray, classes: IntArray, weights: FloatArray) -> _Cases:
    """Drop absent samples, sort once and add up the weights of equal (value, class) pairs."""
    present = (weights > 0) & ~np.isnan(values)
    values, classes, weights = values[present], classes[present], weights[present]
    if values.size == 0:
        return _Cases(values, classes, weights, np.empty(0, dtype=np.int64), True)
    order = np.argsort(values)
    values, classes, weights = values[order], classes[order], weights[order]
    new_value = values[1:] != values[:-1]
    if not new_value.all():
        place = np.concatenate(([0], np.cumsum(new_value)))
        n_classes = int(classes.max()) + 1
        pairs, weights = _added(place * n_classes + classes, weights)
        values = values[np.concatenate(([0], np.flatnonzero(new_value) + 1))][pairs // n_classes]
        classes = pairs % n_classes
        new_value = values[1:] != values[:-1]
    edges = np.concatenate(([True], new_value, [True]))
    is_pure = edges[:-1] & edges[1:]  # all samples of the value are of one class
    same_run = is_pure[1:] & is_pure[:-1] & (classes[1:] == classes[:-1])
    boundaries = np.flatnonzero(new_value & ~same_run) + 1
    return _Cases(values, classes, weights, boundaries, bool((weights == np.rint(weights)).all()))


def _added(keys: IntArray, weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Different keys in their order, and the positive weights of each added up."""
    if keys[-1] > 4 * len(keys):  # tables of so many cells are slower than a sort
        different, keys = np.unique(keys, return_inverse=True)
    else:
        different = np.arange(keys.max() + 1)
    sums = np.asarray(np.bincount(keys, weights), dtype=np.float64)
    used = np.flatnonzero(sums)
    return different[used], sums[used]


def _find_split(cases: _Cases, start: int, stop: int, n_classes: int) -> int | None:
    """Position of the best cut inside pairs start..stop-1, or None if no cut is worth its cost."""
    lo, hi = np.searchsorted(cases.boundaries, [start + 1, stop])
    classes, weights = cases.classes[start:stop], cases.weights[start:stop]
    class_weights = np.asarray(np.bincount(classes, weights, n_classes), dtype=np.float64)
    total = float(weights.sum())
    # A cut is one of N - 1; with a total weight below two samples there is none to name.
    if lo == hi or total < 2 - TOLERANCE or np.count_nonzero(class_weights) < 2:
        return None
    cuts = cases.boundaries[lo:hi]
    sides = _Sides(
        _sums_of_sides(weights, cuts - start, cases.is_whole),
        np.zeros((2, cuts.size)),
        np.zeros((2, cuts.size), dtype=np.int64),
    )
    for label in np.flatnonzero(class_weights):  # class by class the memory is O(n)
        own = np.where(classes == label, weights, 0.0)
        counts = _sums_of_sides(own, cuts - start, cases.is_whole)
        sides.information[:] += _information(counts, sides.weight)
        sides.n_classes[:] += counts > 0
    divided = sides.information.sum(axis=0)
    best = int(np.argmax(divided <= divided.min() + TOLERANCE * total))  # the first of all ties
    return int(cuts[best]) if _pays_off(class_weights, sides, best) else None


def _sums_of_sides(weights: FloatArray, sizes: IntArray, is_whole: bool) -> FloatArray:
    """Sums of the first s weights, and of the others, for each size s.

    They are added up from their own end, so an absent class counts exactly 0; differences of whole
    numbers are exact as well.
    """
    reached = np.cumsum(weights)
    first = reached[sizes - 1]
    if is_whole:
        return np.stack([first, reached[-1] - first])
    return np.stack([first, np.cumsum(weights[::-1])[len(weights) - sizes - 1]])


def _information(count: FloatArray, total: FloatArray | float) -> FloatArray:
    """Bits n_c log2(N / n_c) for classes of the given weight within the given total, 0 for none."""
    bits: FloatArray = -count * np.log2(np.maximum(count / total, TINY))
    return bits


def _pays_off(class_weights: FloatArray, sides: _Sides, at: int) -> bool:
    """Whether the cut saves more bits than its description takes: both sides of the rule times N.

    A tie, within rounding, is no saving.
    """
    total = float(class_weights.sum())
    information = float(_information(class_weights, total).sum())
    k = int(np.count_nonzero(class_weights))
    ends = (sides.n_classes[:, at], sides.information[:, at], sides.weight[:, at])
    left, right = ends[0] * ends[1] / ends[2]  # k Ent of each
    saved = information - float(sides.information[:, at].sum())
    change = k * information / total - float(left) - float(right)
    class_codes = k * log2(3.0) + log1p(-2.0 * 3.0**-k) / log1p(1.0)  # log2(3^k - 2)
    return saved > log2(total - 1) + class_codes - change + TOLERANCE * total


def short_cut(low: float, high: float) -> float:
    """The number of fewest decimals strictly between low < high, of these the nearest the middle.

    It is never one of the values, so a value that is stored in single precision stays on its side.
    Between neighbouring doubles there is no room: then ``low`` itself is the cut, because values
    equal to a cut go left.
    """
    middle = low / 2 + high / 2  # which cannot overflow
    for decimals in range(MOST_DECIMALS):
        cut = round(middle, decimals)
        if low < cut < high:
            return cut + 0.0  # -0.0 becomes 0.0
    return low


_FEW_CUTS = 100  # up to which all comparisons are quicker than a search; below 128
_PIECE = 16_384  # values that stay in the cache meanwhile


def assign_bins(values: ArrayLike, cuts: ArrayLike) -> CodeArray:
    """Bin of each value: the number of (increasing) cuts strictly below it, and -1 for NaN."""
    numbers, limits = np.asarray(values, dtype=np.float64), np.asarray(cuts, dtype=np.float64)
    if len(limits) > _FEW_CUTS:
        codes = np.searchsorted(limits, numbers, side="left")
        return np.where(np.isnan(numbers), -1, codes).astype(np.int32)
    # Comparing every value with every cut beats a binary search, whose branches nobody can guess.
    flat = numbers.ravel()
    counts = np.zeros(len(flat), dtype=np.int8)
    for start in range(0, len(flat), _PIECE):
        piece, count = flat[start : start + _PIECE], counts[start : start + _PIECE]
        for cut in limits:
            count += piece > cut
    counts[np.isnan(flat)] = -1
    return counts.astype(np.int32).reshape(numbers.shape)


def name_bins(cuts: ArrayLike) -> tuple[str, ...]:
    """Readable names of the bins between cuts, such as ``("<= 2.45", "(2.45, 4.75]", "> 4.75")``.

    Numbers have the fewest digits that read back as exactly the cut, so different cuts have
    different names. Without cuts the only bin is ``"any number"``.
    """
    texts = [repr(cut).removesuffix(".0") for cut in np.asarray(cuts, dtype=np.float64).tolist()]
    if not texts:
        return (ANY_NUMBER,)
    inner = (f"({low}, {high}]" for low, high in pairwise(texts))
    return (f"<= {texts[0]}", *inner, f"> {texts[-1]}")


# --- tables without a class -----------------------------------------------------------------------

N_BINS = 4
"""Bins of a numeric column without a class, unless another number is asked for."""

KEPT_VALUES = 64
"""Training values of a bin, at most, that are kept to draw from."""


def quantile_cuts(values: FloatArray, weights: FloatArray, n_bins: int) -> FloatArray:
    """Cuts between the values, all of them if there are few, else at about equal total weight.

    A value that is too heavy for a bin is a bin of its own, and the values below and above it share
    the other bins; a side that is too light for a bin joins the heavy value.
    """
    distinct, place = np.unique(values, return_inverse=True)
    heavy = np.bincount(place, weights, len(distinct)).astype(np.float64)
    first = _bin_starts(heavy, n_bins)
    cuts = [short_cut(float(distinct[k - 1]), float(distinct[k])) for k in first]
    return np.array(cuts, dtype=np.float64)


def _bin_starts(weights: FloatArray, n_bins: int) -> list[int]:
    """Where bins begin but the first one, for values in order with these weights."""
    if len(weights) <= n_bins:
        return list(range(1, len(weights)))
    if n_bins < 2:
        return []
    heavy, total = int(weights.argmax()), float(weights.sum())
    if weights[heavy] * n_bins <= total:
        shares = np.arange(1, n_bins) * (total / n_bins)
        return [int(k) for k in np.searchsorted(np.cumsum(weights), shares, side="right")]
    below, above = weights[:heavy], weights[heavy + 1 :]
    n_below = min(round((n_bins - 1) * float(below.sum() / (total - weights[heavy]))), len(below))
    n_above = min(n_bins - 1 - n_below, len(above))
    n_below = n_bins - 1 - n_above
    starts = []
    if n_below:
        starts += [*_bin_starts(below, n_below), heavy]
    if n_above:
        starts += [heavy + 1, *(heavy + 1 + k for k in _bin_starts(above, n_above))]
    return starts


def kept_values(
    values: FloatArray, weights: FloatArray, cuts: FloatArray
) -> tuple[tuple[float, ...], ...]:
    """Up to :data:`KEPT_VALUES` of the values in each bin, each of about the same weight."""
    order = np.argsort(values, kind="stable")
    kept = []
    for part in np.split(order, np.searchsorted(values[order], cuts, side="right")):
        n_kept = min(len(part), KEPT_VALUES)
        reached = np.cumsum(weights[part])
        middles = (np.arange(n_kept) + 0.5) * (reached[-1] / n_kept)
        kept.append(tuple(values[part[np.searchsorted(reached, middles)]].tolist()))
    return tuple(kept)
