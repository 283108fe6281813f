"""Planted structures at full size: with the incumbent frozen just below it, no bound, fixing,
propagation or split on its path may lose a structure.

Brute force reaches five features; this reaches any size. Heuristics are off, so nothing can hide a
loss.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from branch_bound_cases import columns_of
from data_folder import data_folder
from marginbn import NaiveBayesClassifier
from marginbn.classifiers.validation import read_training_rows
from marginbn.data.training import encode_training
from marginbn.datasets import load_folder_dataset
from marginbn.problem.array_types import IntArray
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.margins import MarginKind
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers.branch_bound.arrays import Encoding, encode
from marginbn.solvers.branch_bound.kernels.bound import EMPTY, PRUNED, Context, Incumbent, bound_box
from marginbn.solvers.branch_bound.kernels.box import fix_box, propagate
from marginbn.solvers.branch_bound.kernels.branching import (
    list_candidates,
    new_pseudocosts,
    rank_candidates,
    restrict,
)
from marginbn.solvers.branch_bound.kernels.children import contains
from marginbn.solvers.branch_bound.kernels.climb import Ground, new_climber, search_from
from marginbn.solvers.branch_bound.kernels.combination import Bounding, new_bounding
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import Box, Instance, new_box, new_oracle
from marginbn.solvers.branch_bound.rows import Reduction, with_all_rows
from marginbn.solvers.branch_bound.schedule import settings_for
from marginbn.solvers.run import Limits
from strategies import random_data

NO_STOP = np.zeros(1, dtype=np.int64)


def root_box(encoding: Encoding) -> Box:
    """Every structure."""
    inst = encoding.instance
    box = new_box(inst.n_features, inst.first.size)
    box.allowed[:] = encoding.slots
    box.classes[:] = True
    assert propagate(inst, box)
    return box


def copy_of(box: Box) -> Box:
    """A box with the same structures."""
    copy = new_box(box.allowed.shape[0], box.classes.size)
    for name in ("allowed", "classes", "edges", "relevant"):
        getattr(copy, name)[:] = getattr(box, name)
    return copy


def planted(problem: StructureProblem, encoding: Encoding, seed: int) -> tuple[IntArray, float]:
    """A good structure by local search, every other time moved away from its local optimum; its
    objective in the kernels' units.
    """
    inst, box = encoding.instance, root_box(encoding)
    n = inst.n_features
    oracle = new_oracle(n, inst.first.size)
    maximise(inst, box, np.random.default_rng(seed).normal(size=inst.linear.size), oracle)
    found = Incumbent(np.zeros(n + 1, np.int64), np.array([-np.inf]), np.zeros(1, np.int64))
    climber = new_climber(inst, inst.weights.size, seed)
    start, effort = oracle.vertex.copy(), 40 * n * n
    guides = start[np.newaxis]
    ground = Ground(with_all_rows(inst), inst, box, found, guides, NO_STOP)
    search_from(ground, start, climber, effort, 4)
    vertex = found.vertex.copy()
    if seed % 2:
        vertex[seed % n] = np.flatnonzero(encoding.slots[seed % n])[-1]
    value = problem.evaluate(encoding.selection(vertex)) - encoding.constant
    return vertex, float(value)


def keep_inside(encoding: Encoding, box: Box, b: Bounding, fallback: IntArray) -> None:
    """Active vertices that lie in the box, as the tree keeps them."""
    count = 0
    for k in range(int(b.state.n_active)):
        if contains(encoding.instance, box, b.vertices[k]):
            b.vertices[count], b.share[count] = b.vertices[k], b.share[k]
            count += 1
    if count == 0:
        b.vertices[0], b.share[0], count = fallback, 1.0, 1
    b.share[:count] /= b.share[:count].sum()
    b.state.n_active = count


def few_rows(encoding: Encoding, vertex: IntArray) -> Instance:
    """The rows that matter at one structure."""
    reduction = Reduction(encoding.instance, encoding.structure_magnitude)
    columns = columns_of(encoding.instance, vertex)
    reduction.extend(encoding.instance.columns[columns].sum(axis=0))
    return reduction.instance


def follow(problem: StructureProblem, seed: int, random_splits: bool) -> int:
    """Walk from the root to the leaf of a planted structure; returns the number of boxes passed."""
    encoding = encode(problem)
    inst = encoding.instance
    z, value = planted(problem, encoding, seed)
    bounding = few_rows(encoding, z) if seed % 3 else with_all_rows(inst)
    frozen = Incumbent(z.copy(), np.array([value - 1e-5 * abs(value)]), np.zeros(1, np.int64))
    settings = settings_for(Limits(), heuristics=False)
    cutoff = float(frozen.value[0])
    box, oracle = root_box(encoding), new_oracle(inst.n_features, inst.first.size)
    b = new_bounding(inst, 256, encoding.structure_magnitude)
    b.state.smoothing = settings.smoothing_start * inst.gamma
    gains = new_pseudocosts(inst.n_features)
    dice = np.random.default_rng(seed)
    for depth in range(10_000):
        maximise(inst, box, inst.linear, oracle)
        keep_inside(encoding, box, b, oracle.vertex)
        context = Context(inst, inst, settings, frozen, NO_STOP)
        outcome = bound_box(bounding, context, box, b, oracle, 0.5, np.inf, 60)
        assert outcome not in (PRUNED, EMPTY)
        assert b.state.bound >= value
        constant = float(b.state.constant)
        possible, removed = fix_box(inst, box, constant, b.best_g, cutoff, oracle)
        assert possible
        assert removed <= cutoff
        assert contains(inst, box, z)
        assert propagate(inst, box)
        assert contains(inst, box, z)
        if random_splits:
            candidates = dice.permutation(list_candidates(inst, box))
        else:
            ranking = rank_candidates(bounding, box, b, gains, np.inf)
            candidates = ranking.candidates[np.argsort(-ranking.score, kind="stable")]
        if len(candidates) == 0:
            return depth
        box = side_with(encoding, box, *map(int, candidates[0]), z)
    raise AssertionError("the walk did not end")


def side_with(encoding: Encoding, box: Box, kind: int, i: int, j: int, z: IntArray) -> Box:
    """The only side of a split that holds the structure, before and after propagation."""
    sides = []
    for first in (True, False):
        child = copy_of(box)
        restrict(encoding.instance, child, kind, i, j, first)
        if contains(encoding.instance, child, z):
            assert propagate(encoding.instance, child)
            assert contains(encoding.instance, child, z)
            sides.append(child)
    assert len(sides) == 1
    return sides[0]


@pytest.mark.parametrize("kind", ["multiclass", "binary"])
@pytest.mark.parametrize("seed", range(6))
def test_planted_structures_survive(seed: int, kind: MarginKind) -> None:
    """Ten features: the structure is in every box of its path down to the leaf."""
    data = random_data(seed, n_samples=120, arities=(3, 3, 2, 3, 2, 3, 3, 2, 3, 2, 2))
    problem = margin_problem(
        data, enumerate_candidates(data.n_variables, 2), margin=kind, gamma=1.0
    )
    assert follow(problem, seed, random_splits=seed % 3 == 2) > 0


FULL_SIZE = [
    ("vehicle", "multiclass", 0.9),
    ("vehicle", "binary", 0.99),
    ("german", "multiclass", 0.6),
    ("german", "multiclass", 0.9),
    ("chess", "multiclass", 0.9),
    ("segment", "binary", 0.9),
    ("lymphography", "multiclass", 0.9),
    ("crx", "multiclass", 0.9),
    ("vote", "multiclass", 0.99),
    ("soybean-large", "binary", 0.9),
    ("waveform-21", "multiclass", 0.9),
    ("heart", "multiclass", 0.6),
    ("flare", "multiclass", 0.9),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "kind", "p"), FULL_SIZE)
def test_planted_structures_survive_at_full_size(name: str, kind: MarginKind, p: float) -> None:
    """The same on real data sets, six structures each, with the best and with random splits."""
    problem = full_size(name, kind, p)
    for seed in range(6):
        follow(problem, seed, random_splits=seed % 3 == 2)


def full_size(name: str, kind: MarginKind, p: float) -> StructureProblem:
    """The training part of a data set, complete rows only."""
    dataset = load_folder_dataset(name, data_folder())
    target = dataset.train.column(dataset.target).values
    rows = read_training_rows(
        NaiveBayesClassifier(), dataset.train.drop(dataset.target), target, None, kinds="auto"
    )
    rows = rows.take(rows.features.complete)
    data = encode_training(rows, "drop").data
    candidates = enumerate_candidates(data.n_variables, 2, constant=data.constant)
    return margin_problem(data, candidates, margin=kind, gamma=math.log(p / (1 - p)))


def bound_alone(encoding: Encoding, box: Box, theta: float) -> Bounding:
    """Bound a box from one vertex, with nothing known of incumbents and gains."""
    inst = encoding.instance
    oracle = new_oracle(inst.n_features, inst.first.size)
    maximise(inst, box, inst.linear, oracle)
    b = new_bounding(inst, 256, encoding.structure_magnitude)
    b.vertices[0], b.share[0], b.state.n_active = oracle.vertex, 1.0, 1
    b.state.smoothing = 0.45
    settings = settings_for(Limits(), heuristics=False)
    low = Incumbent(oracle.vertex.copy(), np.array([-np.inf]), np.zeros(1, np.int64))
    whole = with_all_rows(inst)
    context = Context(inst, inst, settings, low, NO_STOP)
    bound_box(whole, context, box, b, oracle, theta, np.inf, 30)
    return b


@pytest.mark.parametrize("decided", range(4))
def test_gradient_stays_off_decided_features(decided: int) -> None:
    """The margins of a decided feature count once, in the constant: a span of live columns that
    reached across it would count them in the gradient too.
    """
    data = random_data(decided, n_samples=40, arities=(2, 2, 3, 2, 2))
    encoding = encode(margin_problem(data, enumerate_candidates(5, 2), gamma=1.0))
    inst, n = encoding.instance, 4
    box = root_box(encoding)
    box.allowed[decided] = False
    box.allowed[decided, n] = True  # {class}
    assert propagate(inst, box)
    b = bound_alone(encoding, box, 0.0)
    own = slice(decided * (n + 2), (decided + 1) * (n + 2))
    assert np.array_equal(b.best_g[own], inst.linear[own])


@pytest.mark.parametrize("seed", range(3))
def test_no_bracket_is_small_while_nothing_is_known(seed: int) -> None:
    """Without an incumbent and without gains a box is bounded all the same. One that ends before
    its first step hands the vertices that it was given to its children, and they to theirs.
    """
    data = random_data(seed, n_samples=40, arities=(2, 2, 3, 2, 2))
    encoding = encode(margin_problem(data, enumerate_candidates(5, 2), gamma=1.0))
    assert bound_alone(encoding, root_box(encoding), 0.5).state.n_active > 1
