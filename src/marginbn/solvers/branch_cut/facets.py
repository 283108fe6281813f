"""The facets of acyclic graphs over four variables that are neither clusters nor packings.

What an acyclic graph says about four variables is the parents that each has among them: one of 543
points in 28 coordinates, one for every variable and every non-empty set of the other three. Their
convex hull has facets of a few kinds (Cussens, Jaervisalo, Korhonen & Bartlett 2017): coordinates
are not negative, those of a variable sum to at most one, clusters, packings, and those here,

    sum over the members i and sets J  of  weight(i, J) x(i, J)   <=   most.

In a larger graph x(i, J) is the sum of the candidates of i whose parents among the four are J.

Every kind is given by one representative: for each member the weights of {a}, {b}, {c}, {a, b},
{a, c}, {b, c}, {a, b, c}, with a < b < c the other members. Renaming the members gives the others.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations

import numpy as np

from marginbn.solvers.branch_cut.arrays import FloatArray
from marginbn.solvers.branch_cut.kernels.quadruples import FacetArrays

Weights = tuple[int, ...]
"""Of the first member's seven sets, of the second's, and so on."""

KINDS = (
    ("0001111 0001111 0001111 0001111", 2),
    ("0000111 0000111 0000111 0001112", 2),
    ("0000111 0101111 0101111 0001101", 2),
    ("0000001 0000101 0000101 0111112", 2),
    ("0000011 0111111 0001101 0001101", 2),
    ("0011111 0011111 0011111 1112222", 3),
    ("0010111 0010111 1111111 1112112", 3),
    ("0000011 0010111 1111212 0111112", 3),
    ("0111112 0111112 1112112 1112112", 4),
)
"""Weights and ``most`` of one facet of each kind."""


def inner_sets(member: int) -> list[tuple[int, ...]]:
    """The non-empty sets of other members, in the order of weights."""
    others = [place for place in range(4) if place != member]
    return [chosen for size in (1, 2, 3) for chosen in combinations(others, size)]


SLOTS = tuple((member, inner) for member in range(4) for inner in inner_sets(member))
"""Member and set that each weight belongs to."""


@cache
def all_facets() -> dict[Weights, int]:
    """``most`` of every facet, by its weights."""
    place = {slot: number for number, slot in enumerate(SLOTS)}
    found: dict[Weights, int] = {}
    for text, most in KINDS:
        weights = [int(digit) for digit in text.replace(" ", "")]
        for names in permutations(range(4)):
            renamed = [0] * len(SLOTS)
            for weight, (member, inner) in zip(weights, SLOTS, strict=True):
                new = names[member], tuple(sorted(names[v] for v in inner))
                renamed[place[new]] = weight
            found[tuple(renamed)] = most
    return found


def weights_by_bits(weights: Weights) -> FloatArray:
    """(4, 16), by member and the bits of its parents among the four."""
    table = np.zeros((4, 16))
    for (member, inner), weight in zip(SLOTS, weights, strict=True):
        table[member, sum(1 << place for place in inner)] = weight
    return table


@cache
def facet_arrays() -> FacetArrays:
    """All facets for the compiled search, in the order of :func:`all_facets`."""
    facets = all_facets()
    weights = np.stack([weights_by_bits(one) for one in facets], axis=-1)
    return FacetArrays(weights, np.array(list(facets.values()), dtype=np.float64))
