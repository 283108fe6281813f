"""Candidate parent sets: which choices each variable has.

Under the class restriction (section 4 of the paper) a feature has the empty set or a set that
contains the class, because a set without the class cannot influence a margin; the class itself
has any set of features. That is the paper's family, ``class_arcs="free"``. With
``class_arcs="all"`` the class is a parent of every feature: the empty set is no candidate, and the
class has no parents. Features with one state have no parents in either family. Without the
restriction every set of other variables is a candidate: a general Bayesian network.
``max_parents`` counts the class.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.array_types import BoolArray, CodeArray, IntArray, WordArray
from marginbn.problem.masks import ParentSets, SetTable, masks_of, set_sizes
from marginbn.problem.structure import Structure, describe_cycle, is_acyclic

Arc = tuple[int, int]
"""(parent, child)"""

ClassArcs = Literal["free", "all"]
"""Whether the class may be a parent of a feature, or is one of every feature."""

MAX_CANDIDATES = 20_000_000
"""More candidates than this are not enumerated: no solver here could use them."""


@dataclass(frozen=True)
class CandidateRule:
    """The arguments of :func:`enumerate_candidates`, arcs and constants sorted."""

    max_parents: int
    class_restricted: bool
    required: tuple[Arc, ...]
    forbidden: tuple[Arc, ...]
    constant: tuple[int, ...]
    class_arcs: ClassArcs = "free"


@dataclass(frozen=True, eq=False)
class CandidateSets:
    """Flat list of (child, parent set) pairs, grouped by child.

    Parameters
    ----------
    n_variables
        Number of variables, class included.
    child
        int32 (K,), the variable that candidate k belongs to; non-decreasing.
    parents
        Parent set of every candidate; inside a group sorted by size, then lexicographically. A
        tuple, or for many candidates :class:`~marginbn.problem.masks.ParentSets`.
    rule
        What made the list; some of its candidates may have been left out since.

    Examples
    --------
    >>> from marginbn import enumerate_candidates
    >>> candidates = enumerate_candidates(3, 1)
    >>> [(int(i), parents) for i, parents in zip(candidates.child, candidates.parents, strict=True)]
    [(0, ()), (0, (1,)), (0, (2,)), (1, ()), (1, (0,)), (2, ()), (2, (0,))]
    >>> list(candidates.group(1)), candidates.index(1, [0])
    ([3, 4], 4)
    >>> candidates.structure([0, 4, 6]).parents  # naive Bayes
    ((), (0,), (0,))
    >>> candidates.selection(Structure(((), (0,), (0,)))).tolist()
    [0, 4, 6]
    >>> candidates.keep(candidates.child != 0).n_candidates
    4
    >>> candidates.keep(candidates.child != 0).places_in(candidates).tolist()
    [3, 4, 5, 6]
    """

    n_variables: int
    child: CodeArray
    parents: tuple[tuple[int, ...], ...] | ParentSets
    rule: CandidateRule | None = None

    @cached_property
    def masks(self) -> WordArray:
        """uint64 (K, words): the parent sets as bit masks."""
        if isinstance(self.parents, ParentSets):
            return self.parents.masks
        return masks_of(self.parents, self.n_variables)

    @cached_property
    def sizes(self) -> IntArray:
        """int64 (K,): the number of parents of every candidate."""
        return set_sizes(self.masks)

    @cached_property
    def offsets(self) -> IntArray:
        """int64 (n_variables + 1,): the candidates of i are ``offsets[i]:offsets[i + 1]``."""
        return np.searchsorted(self.child, np.arange(self.n_variables + 1)).astype(np.int64)

    @property
    def n_candidates(self) -> int:
        """Number of candidates of all variables together."""
        return len(self.parents)

    @property
    def max_parents(self) -> int:
        """Size of the largest candidate."""
        return int(self.sizes.max(initial=0))

    @cached_property
    def is_class_restricted(self) -> bool:
        """Whether every feature's non-empty candidate contains the class."""
        has_class = (self.masks[:, 0] & np.uint64(1)) == 1
        return bool(((self.child == 0) | (self.sizes == 0) | has_class).all())

    def group(self, variable: int) -> range:
        """Flat indices of the candidates of ``variable``."""
        return range(int(self.offsets[variable]), int(self.offsets[variable + 1]))

    def index(self, variable: int, parents: Sequence[int]) -> int:
        """Flat index of a candidate; ``KeyError`` if it is not one."""
        child, members = int(variable), tuple(sorted(int(p) for p in parents))
        if 0 <= child < self.n_variables and all(0 <= p < self.n_variables for p in members):
            group = self.group(child)
            same = self.masks[group.start : group.stop] == masks_of([members], self.n_variables)
            found = np.flatnonzero(same.all(axis=1))
            if len(found):
                return group.start + int(found[0])
        raise KeyError((child, members))

    def selection(self, structure: Structure) -> IntArray:
        """Flat index of the candidate that ``structure`` chooses for each variable."""
        if structure.n_variables != self.n_variables:
            raise InputError(
                f"the structure must have {self.n_variables} variables, got {structure.n_variables}"
            )
        try:
            chosen = [self.index(i, p) for i, p in enumerate(structure.parents)]
        except KeyError as error:
            variable, parents = error.args[0]
            raise InputError(
                f"the structure gives variable {variable} the parents {parents}, "
                "which are not among its candidate parent sets"
            ) from None
        return np.array(chosen, dtype=np.int64)

    def structure(self, selection: Sequence[int] | IntArray) -> Structure:
        """The (checked acyclic) structure that a selection stands for."""
        chosen = [int(k) for k in selection]
        own = len(chosen) == self.n_variables and all(
            k in self.group(i) for i, k in enumerate(chosen)
        )
        if not own:
            raise InputError(
                f"a selection must name one candidate of each of the {self.n_variables} "
                f"variables, in order, got {chosen}"
            )
        return Structure(tuple(self.parents[k] for k in chosen))

    def keep(self, mask: BoolArray) -> CandidateSets:
        """The candidates where ``mask`` is true."""
        kept = ParentSets(self.masks[mask])
        return CandidateSets(self.n_variables, self.child[mask], kept, self.rule)

    def places_in(self, other: CandidateSets) -> IntArray:
        """Flat index of every candidate in another list, -1 where it has none."""
        own, others = (np.column_stack([c.child.astype(np.uint64), c.masks]) for c in (self, other))
        return SetTable(others).find(own)


def count_candidates(
    n_variables: int,
    max_parents: int,
    *,
    class_restricted: bool = True,
    class_arcs: ClassArcs = "free",
    n_constant: int = 0,
) -> int:
    """Number of candidates by formula, before anything is enumerated (no arc constraints)."""
    active = n_variables - 1 - n_constant  # features with more than one state
    if class_restricted:
        has_empty = class_arcs == "free"
        of_class = _subsets(active, max_parents) if has_empty else 1
        with_class = _subsets(active - 1, max_parents - 1) if max_parents > 0 else 0
        per_feature = has_empty + with_class
    else:
        of_class = per_feature = _subsets(active, max_parents)
    return of_class + active * per_feature + n_constant


def _subsets(n: int, largest: int) -> int:
    """Number of subsets of n things with at most ``largest`` members."""
    return sum(math.comb(n, k) for k in range(min(largest, n) + 1)) if n >= 0 else 0


def enumerate_candidates(
    n_variables: int,
    max_parents: int,
    *,
    class_restricted: bool = True,
    class_arcs: ClassArcs = "free",
    required: Collection[Arc] = (),
    forbidden: Collection[Arc] = (),
    constant: Collection[int] = (),
    names: Sequence[str] | None = None,
) -> CandidateSets:
    """All candidate parent sets.

    Parameters
    ----------
    n_variables
        Number of variables; variable 0 is the class.
    max_parents
        Largest number of parents, the class counted.
    class_restricted
        Whether features have only the empty set or sets with the class.
    class_arcs
        ``"all"``: the class is a parent of every feature with more than one state, and has none;
        needs ``class_restricted``. ``"free"``: features may have no parents, the class some.
    required, forbidden
        Arcs (parent, child) that every (no) structure must contain.
    constant
        Variables with one state: they keep the empty set and are parents of no variable, unless
        an arc is required.
    names
        Of the variables, for error messages; by default their indices are named.

    Examples
    --------
    >>> from marginbn import enumerate_candidates
    >>> enumerate_candidates(3, 2).parents[4:7]  # of variable 1: nothing, the class, both others
    ((), (0,), (0, 2))
    >>> enumerate_candidates(3, 2, required=[(0, 1)]).parents[4:6]
    ((0,), (0, 2))
    >>> enumerate_candidates(3, 2, class_arcs="all").parents
    ((), (0,), (0, 2), (0,), (0, 1))
    """
    if max_parents < 0:
        raise InputError(f"max_parents must be an integer of at least 0, got {max_parents}")
    total = count_candidates(
        n_variables,
        max_parents,
        class_restricted=class_restricted,
        class_arcs=class_arcs,
        n_constant=len(constant),
    )
    if total > MAX_CANDIDATES:
        raise ProblemTooLargeError(
            f"max_parents={max_parents} with {n_variables} variables gives {total} candidate "
            f"parent sets, more than {MAX_CANDIDATES}; reduce max_parents or drop features"
        )
    called = [str(i) for i in range(n_variables)] if names is None else list(names)
    check_arcs(required, forbidden, called)
    rule = CandidateRule(
        max_parents,
        class_restricted,
        required=tuple(sorted(set(required))),
        forbidden=tuple(sorted(set(forbidden))),
        constant=tuple(sorted(set(constant))),
        class_arcs=class_arcs,
    )
    _check_class_arcs(rule)
    varying = {*range(n_variables)} - {*constant}
    child: list[int] = []
    parents: list[tuple[int, ...]] = []
    for i in range(n_variables):
        must = {p for p, c in rule.required if c == i}
        must_not = {p for p, c in rule.forbidden if c == i}
        own = list(_parent_sets(i, varying, rule, must))
        if must or must_not:
            own = [s for s in own if must.issubset(s) and must_not.isdisjoint(s)]
        if not own:
            refuse_without_candidates(i, rule, called)
        child += [i] * len(own)
        parents += own
    return CandidateSets(n_variables, np.array(child, dtype=np.int32), tuple(parents), rule)


def refuse_without_candidates(i: int, rule: CandidateRule, names: Sequence[str]) -> NoReturn:
    """Say why a variable has no candidate parent set."""
    arcs = (rule.required, rule.forbidden)
    needed, refused = (
        ", ".join(names[p] for p, c in sorted(own) if c == i) or "none" for own in arcs
    )
    hint = "; use class_arcs='free' (of MaxMarginBNClassifier), or leave arcs out"
    raise InputError(
        f"variable {names[i]} has no candidate parent set left: required parents: {needed}; "
        f"forbidden parents: {refused}; max_parents={rule.max_parents}"
        + (", and sets of features must contain the class" if rule.class_restricted else "")
        + (hint if rule.class_arcs == "all" else "")
    )


def _check_class_arcs(rule: CandidateRule) -> None:
    """Refuse what contradicts arcs from the class to all features; but for arcs."""
    if rule.class_arcs not in get_args(ClassArcs):
        known = " or ".join(repr(name) for name in get_args(ClassArcs))
        raise InputError(f"class_arcs must be {known}, got {rule.class_arcs!r}")
    if rule.class_arcs == "free":
        return
    if not rule.class_restricted:
        raise InputError("class_arcs='all' needs class_restricted=True")
    if rule.max_parents < 1:
        raise InputError(
            f"max_parents must be at least 1 with class_arcs='all', got {rule.max_parents}: the "
            "class is a parent of every feature"
        )


def has_class(feature: int, rule: CandidateRule) -> bool:
    """Whether a feature takes part: constant ones do only for the sake of required parents."""
    return feature not in rule.constant or any(c == feature for _, c in rule.required)


def _parent_sets(
    i: int, varying: set[int], rule: CandidateRule, must: set[int]
) -> Iterator[tuple[int, ...]]:
    """Parent sets of variable i before arcs are looked at; members vary, or are required."""
    if i == 0 or rule.class_arcs == "free" or not has_class(i, rule):
        yield ()
    if i in rule.constant and not must:
        return
    fixed = (0,) if rule.class_restricted and i else ()
    pool = sorted((varying | must) - {i, *fixed})
    if i == 0 and rule.class_arcs == "all":
        pool = [v for v in pool if not has_class(v, rule)]
    for size in range(min(rule.max_parents - len(fixed), len(pool)) + 1):
        yield from (s for rest in combinations(pool, size) if (s := (*fixed, *rest)))


def check_arcs(required: Collection[Arc], forbidden: Collection[Arc], names: Sequence[str]) -> None:
    """Refuse arcs out of range, contradictions and required cycles."""
    for label, arcs in (("required", required), ("forbidden", forbidden)):
        for arc in arcs:
            if not all(0 <= v < len(names) for v in arc):
                raise InputError(
                    f"{label} arcs must join two different variables in 0..{len(names) - 1}, "
                    f"got {arc}"
                )
            if arc[0] == arc[1]:
                raise InputError(
                    f"{label} arcs must join two different variables, got {_name_arc(arc, names)}"
                )
    both = set(required) & set(forbidden)
    if both:
        listed = ", ".join(_name_arc(arc, names) for arc in sorted(both))
        raise InputError(
            f"arcs cannot be required and forbidden at once (tiers forbid arcs too): {listed}"
        )
    parents = [sorted({p for p, c in required if c == i}) for i in range(len(names))]
    if not is_acyclic(parents):
        raise InputError(
            f"the required arcs have a directed cycle: {describe_cycle(parents, names)}; "
            "leave one of them out"
        )


def _name_arc(arc: Arc, names: Sequence[str]) -> str:
    return f"{names[arc[0]]} -> {names[arc[1]]}"


def resolve_arcs(
    names: Sequence[str], required: Any, forbidden: Any, tiers: Any = None
) -> tuple[tuple[Arc, ...], tuple[Arc, ...]]:
    """Required and forbidden arcs by index, of pairs (parent, child) by name or index.

    No arc may lead from a later one of the ``tiers`` to an earlier one; variables that no tier
    names are free.

    Examples
    --------
    >>> resolve_arcs(("a", "b"), required=[("a", "b")], forbidden=None, tiers=[["a"], ["b"]])
    (((0, 1),), ((1, 0),))
    """
    excluded = {*_arcs(forbidden, names, "forbidden_arcs")}
    if tiers is not None:
        for earlier, later in combinations(_tiers(tiers, names), 2):
            excluded.update(product(later, earlier))
    return _arcs(required, names, "required_arcs"), tuple(sorted(excluded))


def _arcs(arcs: Any, names: Sequence[str], name: str) -> tuple[Arc, ...]:
    if arcs is None:
        return ()
    try:
        pairs = [(parent, child) for parent, child in arcs]
    except (TypeError, ValueError):
        raise InputError(f"{name} must be pairs (parent, child), got {arcs!r}") from None
    return tuple((_variable(p, names, name), _variable(c, names, name)) for p, c in pairs)


def _tiers(tiers: Any, names: Sequence[str]) -> list[list[int]]:
    try:
        listed = [list(tier) for tier in tiers]
    except TypeError:
        listed = None
    if listed is None or any(isinstance(tier, str) for tier in tiers):
        raise InputError(f"tiers must be lists of variables, first to last, got {tiers!r}")
    found = [[_variable(v, names, "tiers") for v in tier] for tier in listed]
    for variable, count in Counter(v for tier in found for v in tier).items():
        if count > 1:
            raise InputError(f"tiers must name a variable once, got {names[variable]} twice")
    return found


def _variable(variable: Any, names: Sequence[str], name: str) -> int:
    if isinstance(variable, str) and variable in names:
        return names.index(variable)
    if isinstance(variable, (int, np.integer)) and 0 <= variable < len(names):
        return int(variable)
    close = difflib.get_close_matches(str(variable), names, n=1)
    known = f"known are {', '.join(map(repr, names))}, and indices from 0"
    raise InputError(
        f"{name} names the variable {variable!r}; "
        f"{f'did you mean {close[0]!r}?' if close else known}"
    )
