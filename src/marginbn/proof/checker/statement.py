"""The problem of a certificate: its size, its form, its candidates, rebuilt from their definition.

**Size.** What a check takes is known from the header: :func:`needed` bounds memory and work from
above before anything is done, and :func:`admit` refuses what is more than allowed.

**Form.** A file is read strictly, but a certificate may also be made in memory. :func:`check_form`
asks the same of both: plain numbers and arrays of the right type and shape, within their ranges.
Everything after it may rely on that.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import ProblemTooLargeError
from marginbn.proof.certificate import LARGEST_BITS, Candidates, Certificate, Data, Extent
from marginbn.proof.format import TooMuchMemoryError

if TYPE_CHECKING:
    from marginbn.problem.candidates import CandidateRule

MOST_CANDIDATES = 5_000_000

MOST_PARENTS = 20

LARGEST_TABLE = 2**29
"""Candidates times variables."""

Sets = list[tuple[int, ...]]


class RefutedError(Exception):
    """The certificate does not prove what it claims; the message says what is wrong and where."""


# ---------------------------------------------------------------------------------- size

MOST_WORK = 10**15
"""More elementary operations than this, weeks of them, are not begun."""

FEW_STATES = 256
"""Joint states up to so many are counted whether they occur or not."""

MOST_LOGARITHMS = 200_000
"""So many of each kind are remembered."""

DEFAULT_MEMORY = 4_000_000_000
"""Bytes that a check may take where the machine does not say how many it has."""


@dataclass(frozen=True)
class Needs:
    """At most so many bytes, levels of the tree and elementary operations."""

    memory: int
    depth: int
    work: int


def needed(extent: Extent) -> Needs:
    """What a check takes. With K candidates of up to s of n variables, M samples with R margin rows
    and C classes, T entries of the tree and at most L leaves, all of them in bytes:

    - the candidates as sets, in tables and by number: K (500 + 8 s + n);
    - of one candidate the joint states and classes, at most max(M, 256) C of them, each as a few
      whole numbers: 250, and 300 for every logarithm that is remembered;
    - the coefficients of one candidate and the weights and values of one majorant, with everything
      on the way: 12 numbers of 8 for each of the rows and of the candidates;
    - weights as whole numbers: 64 for each, and as many for each class;
    - the way down the tree: 124 T, as a level takes 4 entries at the least and 480 bytes, and the
      list of leaves 4 for each.

    What is left beyond that is used to do more at a time and to keep more (:mod:`.bounds`). Work is
    a product and a sum per leaf, margin row and candidate, and an arborescence per leaf.
    """
    n, rows = len(extent.arities), extent.n_samples * max(1, extent.n_rivals)
    count, most = count_candidates(extent)
    classes = extent.arities[0] if extent.score.is_margin else 1
    joint = math.prod(sorted(extent.arities, reverse=True)[: most + 1])
    cells = min(joint, max(extent.n_samples, FEW_STATES)) * classes
    leaves = extent.n_entries // 4 + 1
    memory = count * (500 + 8 * most + n) + 96 * (rows + count) + 124 * extent.n_entries
    memory += 250 * cells + 300 * min(2 * MOST_LOGARITHMS, 2 * count * cells)
    memory += 64 * extent.n_samples * (classes + 1) + 100_000
    work = leaves * (rows * count + n**3) + 100 * count * (cells + extent.n_samples)
    return Needs(memory, leaves, work)


def count_candidates(extent: Extent) -> tuple[int, int]:
    """How many there are at the most, and the size of the largest."""
    n, rule = len(extent.arities), extent.rule
    if rule is None:
        sizes = [len(parents) for own in extent.listed for parents in own]
        return len(sizes), max(sizes, default=0)
    most = min(rule.max_parents, n - 1)
    of_class = sum(math.comb(n - 1, size) for size in range(most + 1))
    if not rule.class_restricted:
        return n * of_class, most
    of_feature = 1 + sum(math.comb(n - 2, size - 1) for size in range(1, most + 1))
    return of_class + (n - 1) * of_feature, most


def default_memory() -> int:
    """Half of the memory of the machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not on every system
        return DEFAULT_MEMORY


def admit(extent: Extent, max_memory: int, in_arrays: int = 0) -> Needs:
    """Refuse what takes more than allowed; ``in_arrays`` bytes are in the file besides."""
    needs = needed(extent)
    memory = needs.memory + 3 * in_arrays
    if memory > max_memory:
        raise TooMuchMemoryError("checking this certificate", memory, max_memory)
    if needs.work > MOST_WORK:
        raise ProblemTooLargeError(
            f"checking this certificate may take {needs.work:.1e} operations, more than "
            f"{MOST_WORK:.0e}: write one with a smaller tree (a larger gap_tolerance)"
        )
    return needs


# ---------------------------------------------------------------------------------- form


def check_form(certificate: Certificate) -> None:
    """Everything is of the type, shape and range that a file would have it in."""
    data, score = certificate.data, certificate.score
    _check_data(data)
    names = ("gamma", "smoothing", "equivalent_sample_size")
    numbers = {name: getattr(score, name) for name in names}
    numbers |= {"objective": certificate.objective, "bound": certificate.bound}
    for name, value in numbers.items():
        _demand(_is_number(value), f"{name} must be a finite number, it is {value!r}")
    _demand(type(score.name) is str, "the score must be given by its name")
    _demand(type(certificate.grid) is int, "the grid must be a whole number")
    _demand(_is_array(certificate.tree, "i4", 1), "the tree must be an array of 32-bit integers")
    _demand(all(map(_are_whole, certificate.incumbent)), "the incumbent must hold whole numbers")
    _check_choice(certificate.candidates, data)
    _check_duals(certificate)
    for number, row in enumerate(certificate.rows):
        proper = type(row.kind) is str and _are_whole(row.members)
        _demand(proper, f"row {number} must be a kind and variables")
    for number, own in enumerate(certificate.multipliers):
        proper = _are_whole(own.rows) and all(type(y) is float for y in own.values)
        _demand(proper and len(own.rows) == len(own.values), f"multipliers {number} make no sense")


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise RefutedError(otherwise)


def _is_number(value: Any) -> bool:
    return type(value) in (float, int, np.float64) and math.isfinite(value)


def _are_whole(values: Any) -> bool:
    return type(values) is tuple and all(type(v) is int for v in values)


def _is_array(array: Any, kind: str, n_dimensions: int) -> bool:
    return (
        type(array) is np.ndarray and array.dtype == np.dtype(kind) and array.ndim == n_dimensions
    )


def _check_data(data: Data) -> None:
    n = len(data.names)
    texts = [data.names, *data.states]
    _demand(n > 0 and len(data.states) == n, "every variable needs a name and states")
    proper = all(type(own) is tuple and all(type(t) is str for t in own) for own in texts)
    _demand(proper, "names and states must be texts")
    shaped = _is_array(data.codes, "i4", 2) and data.codes.shape[1] == n and len(data.codes) > 0
    _demand(shaped, f"codes must be 32-bit integers, at least one row of {n}")
    inside = (data.codes >= 0).all() and (data.codes < np.array(data.arities)).all()
    _demand(bool(inside), "codes must lie between 0 and the number of states minus one")
    shaped = _is_array(data.weights, "f8", 1) and len(data.weights) == len(data.codes)
    _demand(shaped, "weights must be one double-precision number per row")
    positive = np.isfinite(data.weights) & (data.weights > 0)
    _demand(bool(positive.all()), "weights must be positive and finite")


def _check_choice(candidates: Candidates, data: Data) -> None:
    """A rule or a list, and nothing is called constant that is not."""
    _demand(_is_array(candidates.dropped, "bool", 1), "dropped candidates must be marked by bits")
    rule, n = candidates.rule, len(data.names)
    if rule is None:
        whole = all(_are_whole(parents) for own in candidates.listed for parents in own)
        _demand(whole, "listed candidates must hold whole numbers")
        return
    _demand(not candidates.listed, "candidates are given by a rule and by a list: which one holds?")
    arcs = (*rule.required, *rule.forbidden)
    whole = _are_whole((rule.max_parents, *rule.constant)) and all(map(_are_whole, arcs))
    _demand(whole and rule.max_parents >= 0, "the rule of the candidates must hold whole numbers")
    _demand(type(rule.class_restricted) is bool, "class_restricted must be true or false")
    _demand(rule.class_arcs in ("free", "all"), "class_arcs must be free or all")
    _demand(
        rule.class_arcs == "free" or rule.class_restricted,
        "class_arcs can be all only where the candidates are class-restricted",
    )
    for arc in arcs:
        joined = len(arc) == 2 and arc[0] != arc[1] and all(0 <= v < n for v in arc)
        _demand(joined, f"the rule of the candidates names the arc {arc}, which cannot be")
    for v in rule.constant:
        _demand(0 <= v < n, f"variable {v} is called constant, but does not exist")
        _demand(
            data.arities[v] == 1,
            f"variable {v} is called constant, but has {data.arities[v]} states",
        )


def _check_duals(certificate: Certificate) -> None:
    if not certificate.score.is_margin:
        return  # there nobody looks at them
    rivals = 1 if certificate.score.name == "binary" else certificate.data.arities[0] - 1
    n_samples, groups, count = len(certificate.data.codes), certificate.groups, certificate.n_groups
    _demand(type(count) is int, "the number of groups must be a whole number")
    _demand((groups is None) == (count == 0), "groups need their number, and the number groups")
    if groups is not None:
        shaped = _is_array(groups, "i4", 1) and len(groups) == n_samples
        _demand(shaped, "the groups must be one 32-bit integer per sample")
        inside = bool(((groups >= 0) & (groups < count)).all())
        _demand(inside, f"the groups of samples must lie between 0 and {count - 1}")
    shape = (count or n_samples, rivals)
    for number, dual in enumerate(certificate.duals):
        proper = type(dual.bits) is int and 1 <= dual.bits <= LARGEST_BITS
        _demand(proper, f"dual weights {number}: bits must lie between 1 and {LARGEST_BITS}")
        proper = any(_is_array(dual.parts, kind, 2) for kind in ("u1", "u2", "u4"))
        _demand(proper, f"dual weights {number}: parts must be unsigned whole numbers")
        shaped = dual.parts.shape == shape
        _demand(shaped, f"dual weights {number}: parts must have the shape {shape}")


# ---------------------------------------------------------------------------------- candidates


@dataclass(frozen=True, eq=False)
class Space:
    """All candidates in order; a structure chooses one of every variable."""

    n_variables: int
    child: NDArray[np.int64]
    parents: Sets

    @cached_property
    def member(self) -> NDArray[np.bool_]:
        """(K, n): whether a variable is in a parent set."""
        table = np.zeros((len(self.parents), self.n_variables), dtype=bool)
        for k, parents in enumerate(self.parents):
            table[k, list(parents)] = True
        return table

    @cached_property
    def number(self) -> dict[tuple[int, tuple[int, ...]], int]:
        """Number of a (child, parents)."""
        return {
            (int(i), p): k for k, (i, p) in enumerate(zip(self.child, self.parents, strict=True))
        }

    def holding(self, child: int, parent: int) -> NDArray[np.bool_]:
        """(K,): candidates of a child with a certain parent."""
        return np.asarray((self.child == child) & self.member[:, parent])

    def joining(self, i: int, j: int) -> NDArray[np.bool_]:
        """(K,): candidates of i or j that contain the other one."""
        return self.holding(i, j) | self.holding(j, i)

    def outside(self, cluster: tuple[int, ...], fewer_than: int = 1) -> NDArray[np.bool_]:
        """(K,): candidates of members of a cluster with fewer than so many parents in it."""
        inside = np.zeros(self.n_variables, dtype=bool)
        inside[list(cluster)] = True
        return np.asarray(inside[self.child] & (self.member[:, inside].sum(axis=1) < fewer_than))


def build_space(data: Data, candidates: Candidates) -> Space:
    """Candidates from their rule or list; the rule is that of the package's documentation."""
    n = len(data.names)
    if candidates.rule is not None:
        sets = [_sets_of(i, n, candidates.rule) for i in range(n)]
    else:
        sets = [list(own) for own in candidates.listed]
        _check_lists(sets, n)
    child = [i for i, own in enumerate(sets) for _ in own]
    if len(child) * n > LARGEST_TABLE:
        raise RefutedError(f"{len(child)} candidates are too many to be checked")
    return Space(n, np.array(child, dtype=np.int64), [p for own in sets for p in own])


def _check_lists(sets: list[Sets], n: int) -> None:
    if len(sets) != n:
        raise RefutedError(f"candidates are listed for {len(sets)} variables, there are {n}")
    for i, own in enumerate(sets):
        for parents in own:
            proper = all(0 <= p < n and p != i for p in parents)
            if not proper or list(parents) != sorted(set(parents)):
                raise RefutedError(f"variable {i} has the impossible parent set {parents}")
        if len(set(own)) < len(own):
            raise RefutedError(f"variable {i} lists a parent set twice")


def _sets_of(i: int, n: int, rule: CandidateRule) -> Sets:
    """Parent sets of variable i, by size and then lexicographically.

    All sets of at most ``max_parents`` others that contain the required and avoid the forbidden
    parents. Features have {} or sets with the class if the rule is class-restricted. Variables that
    are constant have {} and are nobody's parent, unless a required arc says otherwise. If the class
    is a parent of all other features, these do not have {}, and the class has no parents but
    constant ones that are required and have none.
    """
    required = {p for p, c in rule.required if c == i}
    forbidden = {p for p, c in rule.forbidden if c == i}
    constant = set(rule.constant)
    if rule.class_restricted and i != 0:
        constant.discard(0)  # the class is never left out of the sets of a feature
    children = {c for _, c in rule.required}
    left_alone = [v for v in range(n) if v in constant and v not in children]
    if i in left_alone:
        pool: list[int] = []
    elif i == 0 and rule.class_arcs == "all":
        pool = [v for v in left_alone if v in required]
    else:
        pool = [v for v in range(n) if v != i and (v not in constant or v in required)]
    most = min(rule.max_parents, len(pool))
    if sum(math.comb(len(pool), size) for size in range(most + 1)) > MOST_CANDIDATES // n:
        raise RefutedError(f"variable {i} has too many candidate parent sets to be checked")
    found = [s for size in range(most + 1) for s in combinations(pool, size)]
    if rule.class_restricted and i != 0:
        may_be_empty = rule.class_arcs == "free" or i in left_alone
        found = [s for s in found if 0 in s or (may_be_empty and not s)]
    return [s for s in found if required.issubset(s) and forbidden.isdisjoint(s)]


def one_fewer(parents: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The subsets that lack one member."""
    if len(parents) > MOST_PARENTS:
        raise RefutedError(f"parent sets of {len(parents)} members have too many subsets")
    return (parents[:place] + parents[place + 1 :] for place in range(len(parents)))


def is_acyclic(parents: list[tuple[int, ...]]) -> bool:
    """Whether variables can be taken away one by one, each without parents among the rest."""
    left = set(range(len(parents)))
    while left:
        free = {v for v in left if left.isdisjoint(parents[v])}
        if not free:
            return False
        left -= free
    return True
