"""Forged certificates by the thousand, and honest ones, for every checker there is.

Every seed makes one honest certificate (all scores, both engines, weights, one to three parents)
and some forgeries of it. A forgery is false by its making, whatever a checker may think of it:

- *claims*: the bound is below a score that some structure has, or the objective above what any
  structure has, and the rest is bent so that it might pass;
- *statements*: an honest proof, but of another statement than the one that was asked for;
- *files*: something that is not a certificate file, or that two readers could read in two ways.

Checkers are named in ``CHECKERS``; the statement that was asked for is given to each of them as
users would give it.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from brute_force import brute_force
from certificates import certified, folded, rebuild, sealed, unfolded, with_header
from marginbn.exceptions import InputError, MarginBNError
from marginbn.files import MisfitError
from marginbn.problem.candidates import CandidateSets, ClassArcs, enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.problem.scores import get_local_score
from marginbn.proof import exact
from marginbn.proof.certificate import (
    ARC,
    ARGUMENTS,
    CANDIDATE,
    CLUSTERS,
    EDGE,
    FOREST,
    MAGIC,
    Candidates,
    Certificate,
    Data,
    DualWeights,
    NamedRow,
    Score,
    decode_certificate,
    encode_certificate,
    part_type,
)
from marginbn.proof.checker import verify_certificate
from marginbn.proof.theorem import Statement
from marginbn.scoring.local_scores import linear_problem
from problems import random_table

COUNT = 510
"""Seeds."""

PER_SEED = 14

Random = np.random.Generator
Forged = bytes | Certificate
Forger = Callable[[Certificate, Random], Forged | None]

# ---------------------------------------------------------------------------------- honest ones

MARGINS, SCORES = ("multiclass", "binary"), ("mdl", "bic", "aic", "loglik", "bdeu", "k2")


@dataclass(frozen=True)
class Case:
    """A problem by all that a statement names, and the engine that searches first."""

    data: EncodedData
    score: str
    max_parents: int
    restricted: bool
    solver: str
    gamma: float = 1.0
    smoothing: float = 1.0
    size: float = 1.0  # equivalent sample size
    required: tuple[tuple[int, int], ...] = ()
    forbidden: tuple[tuple[int, int], ...] = ()
    class_arcs: ClassArcs = "free"
    listed: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @property
    def is_margin(self) -> bool:
        """Whether gamma and smoothing matter."""
        return self.score in MARGINS

    def build(self) -> StructureProblem:
        """As the package has it."""
        n = self.data.n_variables
        candidates = enumerate_candidates(
            n,
            self.max_parents,
            class_restricted=self.restricted,
            class_arcs=self.class_arcs,
            required=self.required,
            forbidden=self.forbidden,
        )
        if self.listed:
            child = np.array([i for i, _ in self.listed], dtype=np.int32)
            candidates = CandidateSets(n, child, tuple(p for _, p in self.listed))
        if not self.is_margin:
            return linear_problem(self.data, candidates, get_local_score(self.score, self.size))
        return margin_problem(
            self.data, candidates, margin=self.score, gamma=self.gamma, smoothing=self.smoothing
        )  # type: ignore[arg-type]

    def certify(self) -> Certificate:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return certified(self.build(), Path(folder), solver=self.solver)


def make(seed: int) -> Case:
    """Case number ``seed``: every score in turn, and every engine with each of them."""
    rng = np.random.default_rng([seed, 13])
    score, turn = (*MARGINS, *SCORES)[seed % 8], seed // 8
    max_parents = (2, 1, 3)[turn % 3]
    restricted = score in MARGINS or turn % 4 < 2
    table = random_table(
        rng,
        n_rows=int(rng.integers(8, 31)),
        n_features=int(rng.integers(2, 5)),
        n_classes=int(rng.integers(2, 4)),
        weighted=bool(rng.random() < 0.4),
    )
    engine = "branch_cut"
    if restricted and max_parents <= 2 and score in MARGINS and turn % 2 == 0:
        engine = "branch_bound"
    return Case(
        data=table.encoded(),
        score=score,
        max_parents=max_parents,
        restricted=restricted,
        solver=engine,
        gamma=float(np.exp(rng.uniform(math.log(0.05), math.log(5.0)))),
        smoothing=float(rng.choice([0.5, 1.0, 2.0])),
        size=float(rng.choice([0.5, 1.0, 10.0])),
        class_arcs="all" if restricted and turn % 5 in (1, 4) else "free",
    )


# ---------------------------------------------------------------------------------- false claims


def step(c: Certificate) -> float:
    """Far more than any rounding."""
    return 0.01 * max(1.0, abs(c.objective), abs(c.bound))


def low(c: Certificate) -> Certificate:
    """No structure scores more than the bound, it says: the incumbent does."""
    bound = c.objective - step(c)
    return replace(c, objective=bound - 1, bound=bound)


def high(c: Certificate) -> Certificate:
    """The incumbent scores at least the objective, it says: nothing scores that much."""
    objective = c.bound + step(c)
    return replace(c, objective=objective, bound=objective + 1)


def with_tree(c: Certificate, tree: list[int]) -> Certificate:
    return replace(low(c), tree=np.array(tree, dtype=np.int32))


def nodes(tree: list[int]) -> list[int]:
    """Where the nodes begin."""
    places, place = [], 0
    while place < len(tree):
        places.append(place)
        place += 1 + ARGUMENTS[tree[place]]
    return places


def leaf_of(c: Certificate) -> list[int]:
    tree = c.tree.tolist()
    place = next(a for a in nodes(tree) if tree[a] in (FOREST, CLUSTERS))
    return tree[place : place + 1 + ARGUMENTS[tree[place]]]


def pair_of(c: Certificate, rng: Random) -> list[int]:
    return [int(v) for v in rng.permutation(len(c.data.names))[:2]]


def bound_lowered(c: Certificate, rng: Random) -> Forged:
    return low(c)


def bound_lowered_by_a_hair(c: Certificate, rng: Random) -> Forged:
    bound = c.objective - 1e-12 * max(1.0, abs(c.objective))
    return replace(c, objective=bound - 1, bound=bound)


def objective_raised(c: Certificate, rng: Random) -> Forged:
    return high(c)


def objective_raised_by_a_hair(c: Certificate, rng: Random) -> Forged:
    objective = c.bound + 1e-12 * max(1.0, abs(c.bound))
    return replace(c, objective=objective, bound=objective + 1)


def objective_above_the_bound(c: Certificate, rng: Random) -> Forged:
    return replace(c, objective=c.bound + step(c))


# ---------------------------------------------------------------------------------- trees


def tree_empty(c: Certificate, rng: Random) -> Forged:
    return with_tree(c, [])


def tree_cut(c: Certificate, rng: Random) -> Forged:
    return with_tree(c, c.tree.tolist()[: int(rng.integers(len(c.tree)))])


def tree_without_a_leaf(c: Certificate, rng: Random) -> Forged:
    tree = c.tree.tolist()
    return with_tree(c, tree[: nodes(tree)[-1]])


def tree_with_more_leaves(c: Certificate, rng: Random) -> Forged:
    return with_tree(c, c.tree.tolist() + leaf_of(c))


def tree_with_an_unknown_kind(c: Certificate, rng: Random) -> Forged:
    tree = c.tree.tolist()
    tree[int(rng.choice(nodes(tree)))] = int(rng.choice([-1, 5, 6, 255, 2**31 - 1]))
    return with_tree(c, tree)


def tree_of_one_leaf(c: Certificate, rng: Random) -> Forged:
    return with_tree(c, leaf_of(c))


def tree_split_on_itself(c: Certificate, rng: Random) -> Forged:
    """The side with an edge from a variable to itself is empty, and so may the other one seem."""
    v = int(rng.integers(len(c.data.names)))
    return with_tree(c, [int(rng.choice([EDGE, ARC])), v, v, *leaf_of(c), *leaf_of(c)])


def tree_split_beyond_the_variables(c: Certificate, rng: Random) -> Forged:
    n = len(c.data.names)
    other = int(rng.choice([-1, n, n + 1, 2**31 - 1, -(2**31)]))
    return with_tree(c, [int(rng.choice([EDGE, ARC])), 0, other, *leaf_of(c), *leaf_of(c)])


def tree_split_beyond_the_candidates(c: Certificate, rng: Random) -> Forged:
    k = int(rng.choice([-1, 10**6, 2**31 - 1]))
    return with_tree(c, [CANDIDATE, k, *leaf_of(c), *leaf_of(c)])


def tree_of_contradictions(c: Certificate, rng: Random) -> Forged:
    """An edge that is absent is decided again and again: one side after the other is empty."""
    pair = pair_of(c, rng)
    again = [EDGE, *pair, *leaf_of(c)] * int(rng.integers(1, 30))
    return with_tree(c, [*again, *leaf_of(c)])


def tree_with_random_entries(c: Certificate, rng: Random) -> Forged:
    tree = c.tree.tolist()
    for _ in range(int(rng.integers(1, 4))):
        tree[int(rng.integers(len(tree)))] = int(rng.integers(-2, 9))
    return with_tree(c, tree)


def leaf_with_weights_that_do_not_exist(c: Certificate, rng: Random) -> Forged:
    leaf = leaf_of(c)
    leaf[1] = int(rng.choice([-1, len(c.duals) + 1, 2**31 - 1]))
    return with_tree(c, leaf)


def leaf_with_multipliers_that_do_not_exist(c: Certificate, rng: Random) -> Forged:
    wrong = int(rng.choice([-1, len(c.multipliers), 2**31 - 1]))
    return with_tree(c, [CLUSTERS, 0, wrong])


def leaf_by_forests_or_not(c: Certificate, rng: Random) -> Forged:
    """A leaf of the other kind."""
    other = [CLUSTERS, 0, 0] if leaf_of(c)[0] == FOREST else [FOREST, 0]
    return replace(with_tree(c, other), multipliers=((), *c.multipliers))


# ---------------------------------------------------------------------------------- weights


def with_parts(c: Certificate, change: Callable[[DualWeights], DualWeights]) -> Forged | None:
    return replace(low(c), duals=tuple(map(change, c.duals))) if c.duals else None


def parts_all_too_large(c: Certificate, rng: Random) -> Forged | None:
    """Everything is given away many times."""

    def most(dual: DualWeights) -> DualWeights:
        kind = part_type(dual.bits)
        return DualWeights(dual.bits, np.full_like(dual.parts, np.iinfo(kind).max, dtype=kind))

    return with_parts(c, most)


def parts_of_one_sample_too_large(c: Certificate, rng: Random) -> Forged | None:
    def more(dual: DualWeights) -> DualWeights:
        parts = dual.parts.astype(part_type(dual.bits))
        parts[int(rng.integers(len(parts)))] = 2**dual.bits + 1
        return DualWeights(dual.bits, parts)

    return with_parts(c, more)


def parts_negative(c: Certificate, rng: Random) -> Forged | None:
    def less(dual: DualWeights) -> DualWeights:
        parts = dual.parts.astype(np.int64)
        parts[rng.random(parts.shape) < 0.5] *= -1
        return DualWeights(dual.bits, np.minimum(parts, -1))  # type: ignore[arg-type]

    return with_parts(c, less)


def parts_of_other_numbers(c: Certificate, rng: Random) -> Forged | None:
    """Floating point, infinite, or not a number."""
    value = float(rng.choice([np.nan, -np.inf, np.inf, -0.5]))
    return with_parts(c, lambda dual: DualWeights(dual.bits, np.full(dual.parts.shape, value)))  # type: ignore[arg-type]


def parts_of_fewer_bits(c: Certificate, rng: Random) -> Forged | None:
    """The same parts of a smaller whole."""
    return with_parts(c, lambda dual: DualWeights(1, dual.parts.astype(np.uint8)))


def parts_of_impossible_bits(c: Certificate, rng: Random) -> Forged | None:
    bits = int(rng.choice([-3, 0, 25, 64, 1000]))
    return with_parts(c, lambda dual: DualWeights(bits, dual.parts))


def parts_for_fewer_samples(c: Certificate, rng: Random) -> Forged | None:
    return with_parts(c, lambda dual: DualWeights(dual.bits, dual.parts[:-1]))


def parts_all_given_to_one_rival(c: Certificate, rng: Random) -> Forged | None:
    def all_to_one(dual: DualWeights) -> DualWeights:
        parts = np.zeros_like(dual.parts, dtype=part_type(dual.bits))
        parts[:, int(rng.integers(parts.shape[1]))] = 2**dual.bits
        return DualWeights(dual.bits, parts)

    return with_parts(c, all_to_one)


# ---------------------------------------------------------------------------------- rows


def with_row(c: Certificate, row: NamedRow, *values: float) -> Certificate:
    """A tree of one leaf with one row, taken several times."""
    multipliers = tuple((0, y) for y in values)
    return replace(with_tree(c, [CLUSTERS, 0, 0]), rows=(row,), multipliers=(multipliers,))


def everything(c: Certificate) -> NamedRow:
    return NamedRow("cluster", tuple(range(len(c.data.names))))


def multiplier_negative(c: Certificate, rng: Random) -> Forged:
    return with_row(c, everything(c), -(10.0 ** rng.uniform(-3, 6)))


def multiplier_huge(c: Certificate, rng: Random) -> Forged:
    return with_row(c, everything(c), 10.0 ** rng.uniform(20, 308))


def multiplier_no_number(c: Certificate, rng: Random) -> Forged:
    return with_row(c, everything(c), float(rng.choice([np.nan, np.inf, -np.inf])))


def multiplier_many_times(c: Certificate, rng: Random) -> Forged:
    return with_row(c, everything(c), *([10.0 ** rng.uniform(0, 12)] * 50))


def multipliers_without_rows(c: Certificate, rng: Random) -> Forged:
    multipliers = (((int(rng.choice([-1, 0, 7])), 1.0),),)
    return replace(with_tree(c, [CLUSTERS, 0, 0]), rows=(), multipliers=multipliers)


def row_without_members(c: Certificate, rng: Random) -> Forged:
    """Nobody is in it, so nothing counts, and still it would have to hold."""
    return with_row(c, NamedRow("cluster", ()), 10.0 ** rng.uniform(0, 6))


def row_of_variables_that_do_not_exist(c: Certificate, rng: Random) -> Forged:
    n = len(c.data.names)
    return with_row(c, NamedRow("cluster", (n, n + 1)), 10.0 ** rng.uniform(0, 6))


def row_of_an_edge_that_may_be_absent(c: Certificate, rng: Random) -> Forged:
    i, j = sorted(pair_of(c, rng))
    return with_row(c, NamedRow("edge", (i, j)), 10.0 ** rng.uniform(0, 6))


def row_of_an_edge_on_the_other_side(c: Certificate, rng: Random) -> Forged:
    """Decided to be present elsewhere."""
    i, j = sorted(pair_of(c, rng))
    forged = with_row(c, NamedRow("edge", (i, j)), 10.0 ** rng.uniform(0, 6))
    tree = [EDGE, i, j, CLUSTERS, 0, 0, CLUSTERS, 0, 0]
    return replace(forged, tree=np.array(tree, dtype=np.int32))


def row_of_an_unknown_kind(c: Certificate, rng: Random) -> Forged:
    kind = str(rng.choice(["circle", "", "Cluster", "k-cluster"]))
    return with_row(c, NamedRow(kind, (0, 1)), 10.0 ** rng.uniform(0, 6))


def row_of_a_packing_of_strangers(c: Certificate, rng: Random) -> Forged:
    n = len(c.data.names)
    return with_row(c, NamedRow("packing", (n, n + 1)), 10.0 ** rng.uniform(0, 6))


# ---------------------------------------------------------------------------------- arithmetic


def grid_too_fine(c: Certificate, rng: Random) -> Forged:
    """Values overflow 64 bits."""
    return replace(low(c), grid=int(rng.integers(-300, -52)))


def grid_too_coarse(c: Certificate, rng: Random) -> Forged:
    return replace(low(c), grid=int(rng.integers(20, 65)))


def grid_out_of_range(c: Certificate, rng: Random) -> Forged:
    return replace(low(c), grid=int(rng.choice([-(10**6), -301, 65, 10**6])))


def huge_weights(c: Certificate, rng: Random) -> Forged:
    """Log gamma cancels: one row of weight W, and a false claim about it."""
    weight = 10.0 ** rng.uniform(40, 99)
    if rng.random() < 0.2:
        weight = float(rng.choice([7.181977842906551e60, 1e80]))
    codes = np.zeros((1, 2), dtype=np.int32)
    data = Data(("c", "x"), (("a", "b"), ("0", "1")), codes, np.array([weight]))
    best = -2 * math.log1p(weight)
    objective, bound = (best - 1e6, best - 0.01) if rng.random() < 0.5 else (best + 0.01, 1e6)
    return Certificate(
        fingerprint=data.fingerprint(),
        data=data,
        score=Score("k2"),
        candidates=Candidates(None, (((), (1,)), ((), (0,)))),
        incumbent=((), ()),
        objective=objective,
        bound=bound,
        grid=int(rng.integers(-30, 20)),
        tree=np.array([FOREST, 0], dtype=np.int32),
    )


# ---------------------------------------------------------------------------------- definitions


def unlisted_what_matters(c: Certificate, rng: Random) -> Forged | None:
    """The parent set of the incumbent that gains most is left out of a list with a rule."""
    if c.candidates.rule is None or c.score.is_margin:
        return None
    listed = c.candidates.listed or _whole_lists(c)
    some = [i for i, own in enumerate(c.incumbent) if own]
    if not some:
        return None
    i = some[int(rng.integers(len(some)))]
    empty = tuple(own if j != i else () for j, own in enumerate(c.incumbent))
    left = tuple(
        tuple(s for s in own if j != i or s != c.incumbent[i]) for j, own in enumerate(listed)
    )
    return replace(low(c), incumbent=empty, candidates=replace(c.candidates, listed=left, loss=0.0))


def _whole_lists(c: Certificate) -> tuple[tuple[tuple[int, ...], ...], ...]:
    own = enumerate_candidates(len(c.data.names), **vars(c.candidates.rule))
    return tuple(tuple(own.parents[k] for k in own.group(i)) for i in range(own.n_variables))


def unlisted_smallest_sets(c: Certificate, rng: Random) -> Forged | None:
    """Without the empty set nothing dominates the others."""
    if c.candidates.rule is None or c.score.is_margin:
        return None
    listed = c.candidates.listed or _whole_lists(c)
    left = tuple(own[1:] for own in listed)
    return replace(low(c), candidates=replace(c.candidates, listed=left))


def unlisted_at_no_loss(c: Certificate, rng: Random) -> Forged | None:
    """Any set may be left out for a loss that the bound does not contain."""
    if c.candidates.rule is None or c.score.is_margin:
        return None
    listed = c.candidates.listed or _whole_lists(c)
    loss = 10.0 ** int(rng.integers(3, 9))
    made = replace(c.candidates, listed=tuple(own[:1] for own in listed), loss=loss)
    empty = tuple(own[0] for own in made.listed)
    return replace(low(c), incumbent=empty, candidates=made)


def loss_negative(c: Certificate, rng: Random) -> Forged:
    """It would lower the bound."""
    return replace(low(c), candidates=replace(c.candidates, loss=-1e6))


def incumbent_with_a_cycle(c: Certificate, rng: Random) -> Forged:
    i, j = pair_of(c, rng)
    own = list(c.incumbent)
    own[i], own[j] = (j,), (i,)
    return replace(high(c), incumbent=tuple(own))


def incumbent_that_is_no_candidate(c: Certificate, rng: Random) -> Forged:
    n = len(c.data.names)
    own = list(c.incumbent)
    own[int(rng.integers(n))] = tuple(range(n + int(rng.integers(2))))
    return replace(high(c), incumbent=tuple(own))


def incumbent_too_short(c: Certificate, rng: Random) -> Forged:
    return replace(high(c), incumbent=c.incumbent[:-1])


def fingerprint_of_something_else(c: Certificate, rng: Random) -> Forged:
    digits = "".join(rng.choice(list("0123456789abcdef"), 64))
    return replace(c, fingerprint=digits)


def codes_under_the_old_fingerprint(c: Certificate, rng: Random) -> Forged | None:
    codes = c.data.codes.copy()
    column = int(rng.integers(codes.shape[1]))
    codes[:, column] = (codes[:, column] + 1) % c.data.arities[column]
    changed = replace(c.data, codes=codes)
    if changed.fingerprint() == c.fingerprint:
        return None
    return replace(c, data=changed)


def weights_under_the_old_fingerprint(c: Certificate, rng: Random) -> Forged:
    return replace(c, data=replace(c.data, weights=c.data.weights * rng.uniform(1.01, 2.0)))


def labels_under_the_old_fingerprint(c: Certificate, rng: Random) -> Forged:
    states = (tuple(f"{label}'" for label in c.data.states[0]), *c.data.states[1:])
    return replace(c, data=replace(c.data, states=states))


def score_of_impossible_numbers(c: Certificate, rng: Random) -> Forged:
    name = str(rng.choice(["gamma", "smoothing", "equivalent_sample_size"]))
    value = float(rng.choice([0.0, -1.0, np.nan, np.inf, 1e200, 1e-200]))
    return replace(low(c), score=replace(c.score, **{name: value}))


def score_of_an_unknown_name(c: Certificate, rng: Random) -> Forged:
    return replace(c, score=replace(c.score, name=str(rng.choice(["", "guess", "MDL", "bd"]))))


def weights_of_impossible_numbers(c: Certificate, rng: Random) -> Forged:
    weights = c.data.weights.copy()
    weights[int(rng.integers(len(weights)))] = float(
        rng.choice([0.0, -1.0, np.nan, np.inf, 1e-300, 1e300])
    )
    return sealed(replace(low(c), data=replace(c.data, weights=weights)))


def codes_out_of_range(c: Certificate, rng: Random) -> Forged:
    codes = c.data.codes.copy()
    codes[int(rng.integers(len(codes))), 0] = int(rng.choice([-1, c.data.arities[0], 2**30]))
    return sealed(replace(low(c), data=replace(c.data, codes=codes)))


def constant_that_varies(c: Certificate, rng: Random) -> Forged | None:
    """Every feature is called constant: one structure is left, and the bound is its score."""
    if c.candidates.rule is None:
        return None
    varying = tuple(v for v in range(1, len(c.data.names)) if c.data.arities[v] > 1)
    rule = replace(c.candidates.rule, constant=varying)
    empty = ((),) * len(c.data.names)
    return replace(low(c), candidates=Candidates(rule, ()), incumbent=empty)


def family_of_another_rule(c: Certificate, rng: Random) -> Forged | None:
    """A proof for structures in which all features have the class, read as one for the paper's
    family, and the other way round; false if a structure beats the bound, or none is the incumbent.
    """
    rule = c.candidates.rule
    if rule is None or not rule.class_restricted or rule.max_parents < 1:
        return None
    other = replace(rule, class_arcs="all" if rule.class_arcs == "free" else "free")
    empty = np.zeros(0, dtype=bool)
    forged = replace(c, candidates=Candidates(other, (), empty))
    own = rebuild(forged)
    sets = zip(own.candidates.child.tolist(), own.candidates.parents, strict=True)
    is_structure = set(enumerate(c.incumbent)) <= set(sets)
    return forged if not is_structure or brute_force(own) > c.bound + step(c) else None


def rule_and_list(c: Certificate, rng: Random) -> Forged | None:
    """Only empty sets are listed, and the bound holds for them: the rule has better ones."""
    if c.candidates.rule is None or not any(c.incumbent):
        return None
    n = len(c.incumbent)
    poor = replace(
        with_tree(c, [CLUSTERS, 0, 0]),
        objective=c.objective - 1e9,
        incumbent=((),) * n,
        multipliers=((),),
    )
    return replace(poor, candidates=replace(c.candidates, listed=(((),),) * n))


# ---------------------------------------------------------------------------------- files


def key_twice(c: Certificate, rng: Random) -> Forged:
    """One reader takes the first bound, another one the second."""
    header, arrays = unfolded(c)
    pair = f'"bound": {low(c).bound!r}, "bound": '.encode()
    return folded(header.replace(b'"bound": ', pair), arrays)


def key_unknown(c: Certificate, rng: Random) -> Forged:
    return with_header(c, **{str(rng.choice(["note", "Bound", "constant"])): 1})


def key_missing(c: Certificate, rng: Random) -> Forged:
    header, arrays = unfolded(c)
    content = json.loads(header)
    del content[str(rng.choice(sorted(content)))]
    return folded(json.dumps(content).encode(), arrays)


def header_of_other_types(c: Certificate, rng: Random) -> Forged:
    name = str(rng.choice(["bound", "objective", "grid", "tree", "incumbent", "duals", "score"]))
    wrong: Any = [None, "1", True, [], {}, 1.5][int(rng.integers(6))]
    if name in ("duals", "incumbent") and wrong == []:
        wrong = {}
    if name in ("bound", "objective") and wrong == 1.5:
        wrong = "NaN"
    return with_header(low(c), **{name: wrong})


def header_with_numbers_that_are_none(c: Certificate, rng: Random) -> Forged:
    header, arrays = unfolded(c)
    content = {**json.loads(header), "bound": "HERE"}
    token = str(rng.choice(["NaN", "-Infinity", "1e999", "-1e999", "0x10", "1_0"]))
    return folded(json.dumps(content).replace('"HERE"', token).encode(), arrays)


def lengths_that_do_not_fit(c: Certificate, rng: Random) -> Forged:
    name = str(rng.choice(["n_samples", "tree", "multipliers"]))
    own = int(json.loads(unfolded(c)[0])[name])
    other = int(rng.choice([own + 1, own + 1000, 2**40, -1]))
    return with_header(c, **{name: other})


def arrays_with_more_behind(c: Certificate, rng: Random) -> Forged:
    header, arrays = unfolded(c)
    return folded(header, arrays + bytes(int(rng.integers(1, 100_000))))


def file_with_more_behind(c: Certificate, rng: Random) -> Forged:
    return encode_certificate(c) + rng.bytes(int(rng.integers(1, 100)))


def file_cut(c: Certificate, rng: Random) -> Forged:
    content = encode_certificate(c)
    return content[: int(rng.integers(len(content)))]


def file_with_a_flipped_bit(c: Certificate, rng: Random) -> Forged | None:
    """Somewhere in the compressed stream, whose sum does not fit any more; None for the bits that
    fill up its last byte and mean nothing.
    """
    honest = encode_certificate(c)
    content = bytearray(honest)
    place = int(rng.integers(len(MAGIC) + 2, len(content)))
    content[place] ^= 1 << int(rng.integers(8))
    with contextlib.suppress(zlib.error):
        same = zlib.decompress(content[len(MAGIC) :]) == zlib.decompress(honest[len(MAGIC) :])
        return None if same else bytes(content)
    return bytes(content)


def file_of_another_version(c: Certificate, rng: Random) -> Forged:
    return b"marginbn certificate 2\n" + encode_certificate(c)[len(MAGIC) :]


FORGERS: tuple[Forger, ...] = (
    bound_lowered, bound_lowered_by_a_hair,
    objective_raised, objective_raised_by_a_hair,
    objective_above_the_bound, tree_empty, tree_cut, tree_without_a_leaf, tree_with_more_leaves,
    tree_with_an_unknown_kind, tree_of_one_leaf, tree_split_on_itself,
    tree_split_beyond_the_variables, tree_split_beyond_the_candidates, tree_of_contradictions,
    tree_with_random_entries, leaf_with_weights_that_do_not_exist,
    leaf_with_multipliers_that_do_not_exist, leaf_by_forests_or_not, parts_all_too_large,
    parts_of_one_sample_too_large, parts_negative, parts_of_other_numbers, parts_of_fewer_bits,
    parts_of_impossible_bits, parts_for_fewer_samples, parts_all_given_to_one_rival,
    multiplier_negative, multiplier_huge, multiplier_no_number, multiplier_many_times,
    multipliers_without_rows, row_without_members, row_of_variables_that_do_not_exist,
    row_of_an_edge_that_may_be_absent, row_of_an_edge_on_the_other_side, row_of_an_unknown_kind,
    row_of_a_packing_of_strangers, grid_too_fine, grid_too_coarse,
    grid_out_of_range, huge_weights, unlisted_what_matters,
    unlisted_smallest_sets, unlisted_at_no_loss, loss_negative,
    incumbent_with_a_cycle, incumbent_that_is_no_candidate,
    incumbent_too_short, fingerprint_of_something_else, codes_under_the_old_fingerprint,
    weights_under_the_old_fingerprint, labels_under_the_old_fingerprint,
    score_of_impossible_numbers, score_of_an_unknown_name, weights_of_impossible_numbers,
    codes_out_of_range, constant_that_varies, family_of_another_rule, rule_and_list, key_twice,
    key_unknown, key_missing, header_of_other_types, header_with_numbers_that_are_none,
    lengths_that_do_not_fit,
    arrays_with_more_behind, file_with_more_behind, file_cut, file_with_a_flipped_bit,
    file_of_another_version,
)  # fmt: skip

# ---------------------------------------------------------------------------------- statements


def other_gamma(case: Case, rng: Random) -> Case | None:
    return replace(case, gamma=case.gamma * 0.01) if case.is_margin else None


def other_smoothing(case: Case, rng: Random) -> Case | None:
    return replace(case, smoothing=case.smoothing * 7) if case.is_margin else None


def other_score(case: Case, rng: Random) -> Case:
    names = MARGINS if case.is_margin else SCORES
    others = [s for s in names if s != case.score and {s, case.score} != {"mdl", "bic"}]
    return replace(case, score=str(rng.choice(others)))


def other_sample_size(case: Case, rng: Random) -> Case | None:
    return replace(case, size=case.size * 3) if case.score == "bdeu" else None


def fewer_parents(case: Case, rng: Random) -> Case | None:
    return replace(case, max_parents=0) if case.max_parents > 0 else None


def required_arc(case: Case, rng: Random) -> Case | None:
    return replace(case, required=((0, 1),)) if case.max_parents > 0 else None


def forbidden_arcs(case: Case, rng: Random) -> Case:
    n = case.data.n_variables
    arcs = tuple((i, j) for i in range(n) for j in range(n) if i != j)
    return replace(case, forbidden=arcs)


def other_class_arcs(case: Case, rng: Random) -> Case | None:
    if not case.restricted or case.listed:
        return None
    return replace(case, class_arcs="all" if case.class_arcs == "free" else "free")


def one_structure(case: Case, rng: Random) -> Case:
    return replace(case, listed=tuple((i, ()) for i in range(case.data.n_variables)))


def with_columns(data: EncodedData, columns: list[int]) -> EncodedData:
    variables = tuple(data.variables[v] for v in columns)
    return EncodedData(data.codes[:, columns], data.weights, variables)


def columns_left_out(case: Case, rng: Random) -> Case:
    return replace(case, data=with_columns(case.data, list(range(case.data.n_variables - 1))))


def columns_in_another_order(case: Case, rng: Random) -> Case:
    order = [0, *range(case.data.n_variables - 1, 0, -1)]
    return replace(case, data=with_columns(case.data, order))


def rows_left_out(case: Case, rng: Random) -> Case:
    data = case.data
    return replace(case, data=EncodedData(data.codes[:-2], data.weights[:-2], data.variables))


def rows_twice(case: Case, rng: Random) -> Case:
    data = case.data
    return replace(case, data=EncodedData(data.codes, data.weights * 2, data.variables))


def labels_exchanged(case: Case, rng: Random) -> Case:
    first, *rest = case.data.variables
    renamed = Variable(first.name, first.states[::-1])
    return replace(case, data=EncodedData(case.data.codes, case.data.weights, (renamed, *rest)))


def columns_renamed(case: Case, rng: Random) -> Case:
    first, *rest = case.data.variables
    renamed = tuple(replace(variable, name=f"{variable.name}*") for variable in rest)
    return replace(case, data=EncodedData(case.data.codes, case.data.weights, (first, *renamed)))


Restater = Callable[[Case, Random], Case | None]

STATEMENTS: tuple[Restater, ...] = (
    other_gamma, other_smoothing, other_score, other_sample_size, fewer_parents, required_arc,
    forbidden_arcs, other_class_arcs, one_structure, columns_left_out, columns_in_another_order,
    rows_left_out, rows_twice, labels_exchanged, columns_renamed,
)  # fmt: skip

KINDS = tuple(forger.__name__ for forger in (*FORGERS, *STATEMENTS))


def transplanted(honest: Certificate, other: Certificate) -> Certificate | None:
    """The proof of another statement under the statement that was asked for, with its claim."""
    if other.bound >= honest.objective or other.data.codes.shape != honest.data.codes.shape:
        return None
    return replace(
        honest,
        objective=other.objective,
        bound=other.bound,
        tree=other.tree,
        duals=other.duals,
        rows=other.rows,
        multipliers=other.multipliers,
    )


# ---------------------------------------------------------------------------------- checkers


@dataclass(frozen=True)
class Wanted:
    """A statement given from outside, in the words of each checker."""

    statement: Statement
    header: str

    @classmethod
    def of(cls, c: Certificate) -> Wanted:
        """What an honest certificate is about: data, score and candidates, and no structure."""
        statement = replace(Statement.of(c), structure=None)
        return cls(statement, json.dumps(statement.write()))


Checker = Callable[[Any, Wanted | None], bool]


def first_checker(source: Path | Certificate, wanted: Wanted | None = None) -> bool:
    """Whether the checker of the package accepts."""
    expect = () if wanted is None else wanted.statement
    try:
        if isinstance(source, Certificate):
            source = decode_certificate(encode_certificate(source))
        return bool(verify_certificate(source, expect=expect))
    except (MarginBNError, MisfitError, RuntimeWarning, ValueError, TypeError, OverflowError):
        return False  # no file could hold it


def second_checker(path: Path, wanted: Wanted | None = None) -> bool:
    """Whether the standalone one does."""
    with contextlib.redirect_stdout(io.StringIO()):
        return (
            exact.main([str(path), *([] if wanted is None else ["--statement", wanted.header])])
            == 0
        )


CHECKERS: dict[str, Checker] = {"checker": first_checker, "exact": second_checker}
"""Every checker by name; each takes a file and what was asked for, and says whether it accepts."""


def accepted_by(forged: Forged, wanted: Wanted | None, path: Path) -> list[str]:
    """Checkers that accept, in a file and, if it is one, as a value."""
    found = []
    if isinstance(forged, Certificate):
        try:
            with np.errstate(invalid="ignore"):  # casts of what is no number
                content = encode_certificate(forged)
        except (ValueError, TypeError, OverflowError, IndexError):
            content = None  # no file could hold it
        if first_checker(forged, wanted):
            found.append("checker, in memory")
    else:
        content = forged
    if content is None:
        return found
    path.write_bytes(content)
    return found + [name for name, accepts in CHECKERS.items() if accepts(path, wanted)]


# ---------------------------------------------------------------------------------- judging


def forgeries(case: Case, honest: Certificate, seed: int) -> Iterator[tuple[str, Forged]]:
    """Some of the kinds in turn, and one or two statements."""
    rng = np.random.default_rng([seed, 17])
    for turn in range(PER_SEED):
        forger = FORGERS[(seed * PER_SEED + turn) % len(FORGERS)]
        forged = forger(honest, rng)
        if forged is not None:
            yield forger.__name__, forged
    restate = STATEMENTS[seed % len(STATEMENTS)]
    other = restate(case, rng)
    if other is not None:
        try:
            proof = other.certify()
        except InputError:  # it allows no structure at all
            return
        yield restate.__name__, proof
        moved = transplanted(honest, proof)
        if moved is not None:
            yield "transplanted", moved


def judge(seed: int, folder: Path) -> dict[str, Any]:
    """One honest certificate and its forgeries, before every checker."""
    case, path = make(seed), folder / "forged.cert"
    honest = case.certify()
    wanted = Wanted.of(honest)
    names = sorted({*CHECKERS, "checker, in memory"})
    refused = sorted(set(names) - set(accepted_by(honest, wanted, path)))
    tried: Counter[str] = Counter()
    accepted = []
    for kind, forged in forgeries(case, honest, seed):
        statement = None if kind == huge_weights.__name__ else wanted
        tried[kind] += 1
        accepted += [f"{kind} by {name}" for name in accepted_by(forged, statement, path)]
    return {
        "seed": seed, "score": case.score, "solver": case.solver, "refused": refused,
        "accepted": accepted, "tried": dict(tried), "checkers": names,
    }  # fmt: skip
