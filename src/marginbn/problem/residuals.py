"""The residual score: what one more table would do for the class posterior.

Main effects alone give row n the posterior p_n over the C classes. What they leave unexplained are
the residuals, and how much a table can still move is told by the curvatures:

    r_nc = [y_n = c] - p_nc,        h_nc = p_nc (1 - p_nc).

A family F of two or more features gets a table t(c, cell), added to the scores of the classes. Per
class and cell, with g = sum w_n r_nc and h = sum w_n h_nc over the rows of the cell, the log
likelihood gains g t - h t^2 / 2 to second order. One Newton step of ridge regression, t = g / (h +
l), and the degrees of freedom that it spends, h / (h + l), each at the price kappa, make

    gain(F) = sum_{c,cell} g^2 (h + 2 l) / (2 (h + l)^2)  -  kappa (C-1)/C sum_{c,cell} h / (h + l).

Two classes have one column of scores, written twice: the gain is halved. A cell without rows adds
nothing. For a set V of variables let G(V) be the gain of its features if V holds the class and two
features or more, and 0 if it does not: main effects are there already. A variable with its parents
scores what its table adds to the one that its parents have, if they have one that gains anything:

    score(i, S) = G({i} + S)  -  max(0, G(S)).

With one feature parent this is the gain of the pair. With more, a plain sum of gains would count a
strong pair again in every family that it is part of. So this is a decomposable score, relative to
the residuals it is given.

**Sums without rounding.** Weighted residuals and curvatures are rounded once, to multiples of a
power of two so small that every sum of them fits into 53 bits: from then on sums are exact in any
order, the score is the same on every machine, and who checks it may add in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array

from marginbn.exceptions import InputError
from marginbn.problem.encoded import EncodedData, distinct_rows, joint_codes

FloatArray = NDArray[np.float64]

RIDGE = 3.0
"""l: a cell with this much curvature is trusted by half."""

PRICE = 0.5
"""kappa: nats that a degree of freedom costs."""

SUM_BITS = 52
"""Columns are rounded to multiples of their sum times two to minus this."""

ROUNDINGS = 64.0
"""Of a term of the gain and of its pairwise sum, at most."""


def residual_gain(
    gradients: FloatArray, curvatures: FloatArray, ridge: float = RIDGE, price: float = PRICE
) -> float:
    """The gain of a table, both arrays (cells, classes).

    Examples
    --------
    >>> import numpy as np
    >>> residual_gain(np.array([[4.0, -4.0]]), np.array([[3.0, 3.0]]))  # 16 * 9 / 72 - 1/8
    1.875
    """
    return _gain_and_size(gradients, curvatures, ridge, price)[0]


def _gain_and_size(
    gradients: FloatArray, curvatures: FloatArray, ridge: float, price: float
) -> tuple[float, float]:
    """The gain, and the size of its terms, all added up."""
    n_classes = gradients.shape[1]
    shrunk = curvatures + ridge
    reward = float((gradients**2 * (shrunk + ridge) / (2.0 * shrunk**2)).sum())
    freedom = float((curvatures / shrunk).sum())
    cost = price * (n_classes - 1) / n_classes * freedom
    halved = 0.5 if n_classes == 2 else 1.0
    return halved * (reward - cost), halved * (reward + cost)


@dataclass(frozen=True, eq=False)
class ResidualScore:
    """Weighted residuals and curvatures of distinct rows, and the numbers of the formula.

    Parameters
    ----------
    gradients, curvatures
        float64 (n_samples, n_classes): sums of w r and of w h over all rows with the same codes.
    ridge, price
        l and kappa.
    """

    gradients: FloatArray
    curvatures: FloatArray
    ridge: float = RIDGE
    price: float = PRICE

    @property
    def size(self) -> float:
        """Half the sum of all residuals in size, sum w (1 - p_y): the log loss is no less."""
        return 0.5 * float(np.abs(self.gradients).sum())

    def gain_and_error(self, data: EncodedData, family: Sequence[int]) -> tuple[float, float]:
        """The gain of a family of features, and how far rounding can have moved it."""
        n_cells = math.prod(int(data.arities[v]) for v in family)
        sums = _cell_sums(joint_codes(data, family), n_cells, self._columns)
        g, h = np.hsplit(sums, 2)
        gain, size = _gain_and_size(g, h, self.ridge, self.price)
        return gain, 2.0**-53 * ROUNDINGS * size

    @cached_property
    def _columns(self) -> FloatArray:
        """Gradients and curvatures side by side."""
        return np.ascontiguousarray(np.hstack([self.gradients, self.curvatures]))


def _cell_sums(cells: NDArray[np.int64], n_cells: int, columns: FloatArray) -> FloatArray:
    """Sums of the columns over the rows of every cell, (cells, columns); empty cells may go."""
    n = len(cells)
    if n_cells > 4 * n:
        occurring, cells = np.unique(cells, return_inverse=True)
        cells, n_cells = cells.reshape(-1), len(occurring)
    rows_of = csc_array((np.ones(n), cells, np.arange(n + 1)), shape=(n_cells, n))
    return np.asarray(rows_of @ columns)


def residual_score(
    data: EncodedData,
    residuals: ArrayLike,
    curvatures: ArrayLike,
    *,
    ridge: float = RIDGE,
    price: float = PRICE,
) -> tuple[EncodedData, ResidualScore]:
    """The data with equal rows merged, and the score over them.

    Parameters
    ----------
    data
        Rows as the families will see them: coarse bins.
    residuals, curvatures
        (n_samples, n_classes) for the rows of ``data``, before weighting.
    ridge, price
        Numbers of the formula.
    """
    if not (ridge > 0 and math.isfinite(ridge)):
        raise InputError(f"ridge must be a positive number, got {ridge}")
    if not (price >= 0 and math.isfinite(price)):
        raise InputError(f"price must be a number of at least 0, got {price}")
    r, h = (
        _checked(name, values, (data.n_samples, data.n_classes))
        for name, values in (("residuals", residuals), ("curvatures", curvatures))
    )
    if (h < 0).any():
        raise InputError("curvatures must not be negative: p (1 - p) of every row and class")
    first, group = distinct_rows(data.codes, data.arities)
    columns = np.hstack([r, h]) * data.weights[:, None]
    rounded = _rounded(_cell_sums(group, len(first), columns))
    score = ResidualScore(
        rounded[:, : data.n_classes], rounded[:, data.n_classes :], float(ridge), float(price)
    )
    return data.merged(), score


def _checked(name: str, values: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InputError(f"{name} must have shape {shape} (rows, classes), got {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite")
    return array


def _rounded(columns: FloatArray) -> FloatArray:
    """Multiples of a power of two of which every column's sum of sizes has at most 53 bits."""
    largest = float(np.abs(columns).sum(axis=0).max(initial=0.0))
    exponent = math.frexp(largest)[1] - SUM_BITS
    return np.ldexp(np.rint(np.ldexp(columns, -exponent)), exponent)


def pair_gains(
    codes: NDArray[np.integer],
    arities: Sequence[int] | NDArray[np.integer],
    weights: FloatArray,
    residuals: FloatArray,
    curvatures: FloatArray,
    *,
    ridge: float = RIDGE,
    price: float = PRICE,
) -> FloatArray:
    """Gain of every pair of features, (d, d), symmetric with a zero diagonal.

    Parameters
    ----------
    codes
        (n, d) codes of the features, without the class.
    arities
        Number of states of each feature.
    weights
        (n,) weights of the rows.
    residuals, curvatures
        (n, n_classes), see the top of this module.
    """
    sizes = [int(arity) for arity in arities]
    columns = np.ascontiguousarray(np.hstack([residuals, curvatures]) * weights[:, None])
    d = len(sizes)
    gains = np.zeros((d, d))
    wide = np.ascontiguousarray(np.asarray(codes).T, dtype=np.int64)
    for i in range(d):
        for j in range(i):
            sums = _cell_sums(wide[i] * sizes[j] + wide[j], sizes[i] * sizes[j], columns)
            g, h = np.hsplit(sums, 2)
            gains[i, j] = gains[j, i] = residual_gain(g, h, ridge, price)
    return gains
