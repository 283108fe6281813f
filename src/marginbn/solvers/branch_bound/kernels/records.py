"""Flat array records shared by all kernels.

Notation used in every kernel of this package (features are numbered from 0 here, the class is
apart):

- ``n`` features; feature ``i`` has ``n + 2`` *slots*: slot ``j < n`` is the parent set {class, j}
  (slot ``i`` itself does not exist), slot ``n`` is {class}, slot ``n + 1`` is {}. Slots are the
  *columns* of the problem (:func:`column_of`), one feature after the other; where no feature may
  be a parent of another, slots ``j < n`` have none (``Instance.skipped``).
- class parent set number ``S`` follows them as slot ``S`` of "feature" ``n``; its members are
  ``first[S], second[S]`` (-1: none).
- a *vertex* is an int array of length ``n + 1``: the slot of every feature, then the number of the
  class set.
- a *box* is a set of structures, the subproblem of one node of the tree: slots and class sets that
  may be used, pairs of features that must be joined, features that must not stand alone.
- rows ``starts[m]`` to ``starts[m + 1] - 1`` belong to sample ``m``, one per rival class.

A structure is feasible iff its feature arcs form a forest and every parent of the class has the
slot {}.

Compile time grows with the square of the number of arrays in a record that is handed around, so
records hold results and what must outlive a call; short-lived scratch is allocated where it is
used.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypeVar, cast, get_type_hints

import numpy as np
import numpy.typing as npt

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.solvers.compile import kernel, shared, vectorised

FORBIDDEN = -1e30
"""Weight of an arc that does not exist; far below any sum of real weights."""

MISSING = -1e29
"""Anything at or below this is a forbidden weight, possibly after subtracting prices."""

NO_CODES = np.zeros((0, 0), dtype=np.uint16)
NO_TABLES = np.zeros(0)
NO_KEYS = np.zeros((0, 5), dtype=np.int64)
WITHOUT_CODES: dict[str, Any] = {"codes": NO_CODES, "tables": NO_TABLES, "keys": NO_KEYS}
NO_PLACES = np.zeros(0, dtype=np.int64)
"""Of an instance that holds its coefficients."""

R = TypeVar("R")


def new_record(fields: type[R], **values: float) -> R:
    """Numbers by name that kernels may change; 0 where no value is given.

    To numba this is one pointer; every array of a record is seven arguments of every call.
    """
    record = np.zeros(1, _layout_of(cast(Any, fields)))[0]
    for name, value in values.items():
        setattr(record, name, value)
    return cast(R, record)


@cache
def _layout_of(fields: Any) -> np.dtype[Any]:
    """The record of a class's annotations."""
    kinds = [(name, np.dtype(kind)) for name, kind in get_type_hints(fields).items()]
    return np.dtype((np.record, kinds), align=True)


class Instance(NamedTuple):
    """A structure problem with at most two parents, as arrays; never written by a kernel.

    Its objective is ``offset + linear . eta + sum_m w_m min(gamma, min_r rows[r] . eta)``: the
    whole problem (offset 0), or one with fewer rows that is nowhere smaller (``rows.py``).

    A search holds the same problem three times, and kernels name their parameters accordingly:

    - ``inst`` has the rows that matter at the relaxed solutions; boxes are bounded with it;
    - ``full`` has all rows (by columns only); structures are scored with it;
    - ``coarse`` has some rows of ``inst``; splits are compared with it.
    """

    n_features: int
    gamma: float
    offset: float
    error: float  # rounding of ``linear`` and ``offset``, to be added to every bound
    rows: FloatArray  # (R, K) coefficients, one margin row after the other; (0, 0) where all rows
    # are kept only to score structures
    columns: FloatArray  # (K, R) the same, one column after the other
    linear: FloatArray  # (K,)
    magnitude: float  # largest |g_v| that any dual weights can give, see ``bound.py``
    weights: FloatArray  # (M,)
    starts: IntArray  # (M + 1,) first row of every sample
    first: IntArray  # (n_class_sets,)
    second: IntArray  # (n_class_sets,)
    scale: float = 1.0  # of the problem: what values near zero are measured by
    skipped: int = 0  # n where slots j < n have no columns
    n_classes: int = 0
    codes: npt.NDArray[np.uint16] = NO_CODES  # (n + 1, M) states of every sample, class last; if
    # there are any, ``columns`` is empty and margins are looked up (``coded.py``)
    tables: FloatArray = NO_TABLES  # class scores of all columns
    keys: IntArray = NO_KEYS  # (K, 5) features and table of every column
    places: IntArray = NO_PLACES  # (R,) where each row is in ``rows`` and ``columns``, if they are
    # those of a larger instance (``nearby.py``)


class Box(NamedTuple):
    """A box (see above), and the components of its forced edges."""

    allowed: BoolArray  # (n, n + 2) slots that may be used
    classes: BoolArray  # (n_class_sets,) class parent sets that may be used
    edges: BoolArray  # (n, n) symmetric: i - j must be joined, either way round
    relevant: BoolArray  # (n,) feature must not be both {} and no parent of the class
    component: IntArray  # (n,) number of the component of forced edges
    order: IntArray  # (n,) features, components one after the other, breadth first
    above: IntArray  # (n,) neighbour towards the base of the component, -1 for the base
    starts: IntArray  # (n + 1,) where each component begins in ``order``
    n_components: IntArray  # (1,)


class Tree(NamedTuple):
    """An arborescence and its dual prices; contracted node sets are numbered after the nodes."""

    parent: IntArray  # (n,) tail of every node, k for the root
    price: FloatArray  # (2n,) dual price y
    above: IntArray  # (2n,) node set that contains it, -1 at the top
    size: IntArray  # (1,) nodes and contracted sets together


class Graph(NamedTuple):
    """Arc weights of a box, before and after contracting forced edges."""

    arcs: FloatArray  # (n, n + 1) weight of slot j, root weight last
    root_slot: IntArray  # (n,) which of {class}, {} the root weight stands for
    inner: FloatArray  # (n,) value of orienting the component away from this feature
    blocked: IntArray  # (n,) number of forbidden arcs in that orientation
    contracted: FloatArray  # (n, n + 1) weights between components
    entry: IntArray  # (n, n + 1) feature at which the component is entered
    exit: IntArray  # (n, n + 1) feature of the other component, n for the root


class Oracle(NamedTuple):
    """Scratch and result of the joint maximisation over arcs and class parents."""

    graph: Graph  # without class parents
    tree: Tree
    enter: FloatArray  # (n,) sum of the prices on the way from the feature's component to the root
    upper: FloatArray  # (n_class_sets,) bound for every class set, then consumed
    vertex: IntArray  # (n + 1,) best vertex
    other: IntArray  # (n + 1,) scratch
    base: IntArray  # (n + 1,) best arcs without class parents
    solved: IntArray  # (1,) arborescences of the last maximisation


@shared
def count_rows(inst: Instance) -> int:
    """R, the number of margin rows."""
    return int(inst.starts[inst.weights.size])


@shared
def column_of(inst: Instance, i: int, s: int) -> int:
    """Column of slot s of feature i; with ``i = n`` that of class set s."""
    n = inst.n_features
    column = i * (n + 2 - inst.skipped) + s
    return column - inst.skipped if i < n else column


@shared
def slot_column(box: Box, g: FloatArray, i: int, s: int) -> int:
    """The same for a slot of a feature, from the shapes of a box and of a gradient."""
    n = box.allowed.shape[0]
    width = (g.size - box.classes.size) // n
    return int(i * width + s - (n + 2 - width))


def columns_of(inst: Instance, vertex: IntArray) -> IntArray:
    """Columns of a structure: those of the features, then that of the class."""
    columns = vertex + np.arange(vertex.size) * (vertex.size + 1 - inst.skipped)
    columns[:-1] -= inst.skipped
    return columns


@shared
def new_box(n: int, n_class_sets: int) -> Box:
    """An empty box (nothing allowed)."""
    return Box(
        np.zeros((n, n + 2), dtype=np.bool_),
        np.zeros(n_class_sets, dtype=np.bool_),
        np.zeros((n, n), dtype=np.bool_),
        np.zeros(n, dtype=np.bool_),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@shared
def new_tree(n: int) -> Tree:
    """Room for the arborescence of a graph with up to n nodes."""
    return Tree(
        np.zeros(n, dtype=np.int64),
        np.zeros(2 * n),
        np.zeros(2 * n, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@shared
def new_graph(n: int) -> Graph:
    """Room for one weighted graph."""
    return Graph(
        np.empty((n, n + 1)),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty(n, dtype=np.int64),
        np.empty((n, n + 1)),
        np.empty((n, n + 1), dtype=np.int64),
        np.empty((n, n + 1), dtype=np.int64),
    )


@shared
def new_oracle(n: int, n_class_sets: int) -> Oracle:
    """Room for the joint oracle."""
    return Oracle(
        new_graph(n),
        new_tree(n),
        np.zeros(n),
        np.zeros(n_class_sets),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@kernel
def are_equal(first: IntArray, second: IntArray) -> bool:
    """Whether two arrays of one size hold the same, as two vertices do."""
    for k in range(first.size):  # noqa: SIM110 (generators are not compiled)
        if first[k] != second[k]:
            return False
    return True


@vectorised(lambda out: out.fill(0.0))
def clear(out: FloatArray) -> None:
    """out = 0"""
    for r in range(out.size):
        out[r] = 0.0


def _add_scaled(out: FloatArray, scale: float, x: FloatArray) -> None:
    out[: x.size] += scale * x


@vectorised(_add_scaled)
def add_scaled(out: FloatArray, scale: float, x: FloatArray) -> None:
    """out += scale x; ``out`` may be longer."""
    for r in range(x.size):
        out[r] += scale * x[r]


@kernel
def copy_array(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    """target = source for arrays of one shape, with one axis or two; the checks and messages behind
    ``target[:] = source`` take longer to compile than most kernels.
    """
    if source.ndim == 1:
        for k in range(source.size):
            target[k] = source[k]
    else:
        for i in range(source.shape[0]):
            for j in range(source.shape[1]):
                target[i, j] = source[i, j]


@kernel
def only_true(flags: BoolArray) -> int:
    """The place of the only True, -1 if there are none or several."""
    found = -1
    for a in range(flags.size):
        if flags[a]:
            if found >= 0:
                return -1
            found = a
    return found


@kernel
def set_class(inst: Instance, vertex: IntArray, s: int) -> None:
    """Use class set s and give its members the slot {}."""
    n = inst.n_features
    vertex[n] = s
    for j in (inst.first[s], inst.second[s]):
        if j >= 0:
            vertex[j] = n + 1


@kernel
def is_below(vertex: IntArray, j: int, i: int) -> bool:
    """Whether j is i or a descendant of i."""
    n = vertex.size - 1
    while j < n:
        if j == i:
            return True
        j = vertex[j]
    return False


@kernel
def next_random(seed: IntArray) -> int:
    """Xorshift generator on 63 bits; deterministic and the same on every platform."""
    x = np.uint64(seed[0])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    seed[0] = np.int64(x >> np.uint64(1)) + 1
    return int(x >> np.uint64(11))
