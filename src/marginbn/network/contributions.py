"""The log margin of a class against a rival as a sum over variables, eq. 12 and 13.

For a complete row with features z the log margin of class c against class c' is

    log P(c, z) - log P(c', z) = sum_i [ log P(x_i | pa_i, c) - log P(x_i | pa_i, c') ],

one look-up in the table of each variable i per class. The class has a term of its own, and a
variable without the class in its family has the term zero.

Where features are missing they are summed out, and the sum over variables must be made anew. Put
the variables in a topological order and let o_<i be what is known of those before i. By the
chain rule

    term of an observed feature i after the class    log P(x_i | c, o_<i) - log P(x_i | c', o_<i)
    term of the class                                log P(c | o_<class) - log P(c' | o_<class)
    term of a missing feature, or one before it      0

which again adds up to log P(c, known) - log P(c', known). If all parents of i are known, o_<i may
be replaced by them (i is independent of other earlier variables given its parents), so the term is
the look-up of above; on a complete row both definitions agree. Only an observed variable with
a missing parent needs elimination: what its parent would have told is told by the other known
variables. These terms depend on the order (``structure.order``, ties by index); all others do not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.network.network import BayesianNetwork

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

CLASS = 0
_MISSING = -1


def split_log_margins(
    network: BayesianNetwork,
    codes: NDArray[np.integer],
    labels: IntArray,
    rivals: IntArray,
) -> FloatArray:
    """Contribution of every variable to the log margin of each row, float64 (n, n_variables).

    Parameters
    ----------
    network
        Its tables must hold no zero probability, as those of a fitted classifier.
    codes
        Integers (n, n_variables), -1 for a missing feature; column 0, the class, is ignored.
    labels, rivals
        Class that is argued for and class it is compared with, one code per row.
    """
    missing = np.asarray(codes) < 0
    missing[:, CLASS] = False
    after_class = network.structure.order.index(CLASS)
    values = np.zeros(missing.shape)
    for position, i in enumerate(network.structure.order):
        parents = list(network.structure.parents[i])
        unclear = missing[:, parents].any(axis=1)
        known = np.flatnonzero(~missing[:, i] & ~unclear)
        values[known, i] = _look_up(network, i, codes[known], labels[known], rivals[known])
        blurred = np.flatnonzero(~missing[:, i] & unclear)
        if len(blurred) and position >= after_class:
            arguments = codes[blurred], labels[blurred], rivals[blurred]
            values[blurred, i] = _eliminate(network, position, *arguments)
    return values


def margins_between(log_joint: FloatArray, labels: IntArray, rivals: IntArray) -> FloatArray:
    """Log margins from the log joint of every class, float64 (n, n_classes)."""
    rows = np.arange(len(log_joint))
    difference: FloatArray = log_joint[rows, labels] - log_joint[rows, rivals]
    return difference


def nearest_rivals(log_joint: FloatArray, labels: IntArray) -> IntArray:
    """The most probable class other than ``labels``, ties by index; needs two classes."""
    others = log_joint.copy()
    others[np.arange(len(others)), labels] = -np.inf
    rivals: IntArray = others.argmax(axis=1)
    return rivals


def _look_up(
    network: BayesianNetwork,
    i: int,
    codes: NDArray[np.integer],
    labels: IntArray,
    rivals: IntArray,
) -> FloatArray:
    """log P(x_i | pa_i, c) - log P(x_i | pa_i, c') where the whole family is known."""
    family = (*network.structure.parents[i], i)
    if CLASS not in family:
        return np.zeros(len(codes))
    table = network.log_tables[i]
    own = table[tuple(labels if v == CLASS else codes[:, v] for v in family)]
    other = table[tuple(rivals if v == CLASS else codes[:, v] for v in family)]
    difference: FloatArray = own - other
    return difference


def _eliminate(
    network: BayesianNetwork,
    position: int,
    codes: NDArray[np.integer],
    labels: IntArray,
    rivals: IntArray,
) -> FloatArray:
    """Term of the variable at a position of the order, by hiding all that comes later.

    Hidden variables at the end of the order are barren, so hiding them costs nothing.
    """
    *earlier, i = network.structure.order[: position + 1]
    seen = np.full(codes.shape, _MISSING, dtype=np.int32)
    seen[:, earlier] = codes[:, earlier]
    before = margins_between(network.log_joint_per_class(seen), labels, rivals)
    if i == CLASS:
        return before  # log P(c, o_<class): the other class has the same P(o_<class)
    seen[:, i] = codes[:, i]
    return margins_between(network.log_joint_per_class(seen), labels, rivals) - before
