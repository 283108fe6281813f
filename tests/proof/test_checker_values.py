"""The checker's coefficients and scores against their formulas, in fifty digits."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from marginbn.problem.candidates import enumerate_candidates
from marginbn.proof.certificate import Data, Score
from marginbn.proof.checker.values import (
    SHIFT,
    SLACK,
    ExactCounts,
    MarginValues,
    RefutedError,
    decomposable_scores,
    local_score,
)
from marginbn.proof.definition import define_data
from problems import random_table


def table_of(seed: int, weighted: bool) -> Data:
    """Three classes and three features, some rows more than once."""
    table = random_table(np.random.default_rng(seed), 20, 3, 3, weighted=weighted)
    return define_data(table.encoded())


def log(number: Fraction) -> Fraction:
    with localcontext(prec=50):
        value = (Decimal(number.numerator) / Decimal(number.denominator)).ln()
    return Fraction(value)


def count(data: Data, columns: Sequence[int]) -> Counter[tuple[int, ...]]:
    """Weight of every joint state, row by row."""
    found: Counter[tuple[int, ...]] = Counter()
    for row, weight in zip(data.codes.tolist(), data.weights.tolist(), strict=True):
        found[tuple(row[v] for v in columns)] += Fraction(weight)  # type: ignore[assignment]
    return found


# ---------------------------------------------------------------------------------- counts


def test_counts_of_groups_are_exact() -> None:
    rng = np.random.default_rng(0)
    weights = 10.0 ** rng.uniform(-9, 12, 30)
    codes = rng.integers(0, [3, 2], (30, 2)).astype(np.int32)
    data = Data(("c", "x"), (("a", "b", "c"), ("0", "1")), codes, weights)
    counts = ExactCounts(data)
    wanted = count(data, (1, 0))
    found = counts.by_class(counts.group([1]))
    for (group, own), weight in wanted.items():
        assert Fraction(found[group][own], counts.scale) == weight
    assert [Fraction(w, counts.scale) for w in counts.weights] == [Fraction(w) for w in weights]


def test_many_states_are_numbered_as_they_occur(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same groups of samples under other numbers, the same scores and coefficients."""
    data = table_of(1, weighted=True)
    plain = ExactCounts(data)
    ids, score = plain.group([1, 2, 3]), local_score(plain, Score("k2"), 3, (0, 1, 2))
    units = MarginValues(plain, Score("multiclass")).units(3, (0, 1, 2))
    monkeypatch.setattr("marginbn.proof.checker.values.FEW_STATES", 1)
    other = ExactCounts(data)
    renamed = other.group([1, 2, 3])
    assert len(set(zip(ids.tolist(), renamed.tolist(), strict=True))) == len(set(ids.tolist()))
    assert sorted(set(renamed.tolist())) == list(range(len(set(ids.tolist()))))
    assert local_score(other, Score("k2"), 3, (0, 1, 2)) == score
    assert (MarginValues(other, Score("multiclass")).units(3, (0, 1, 2)) == units).all()


# ---------------------------------------------------------------------------------- margins


def contribution(
    data: Data, name: str, smooth: Fraction, child: int, parents: Sequence[int]
) -> dict[tuple[int, int], Fraction]:
    """The number of every sample and class, by the formula."""
    features = [v for v in parents if v != 0]
    both, above = count(data, (*features, child, 0)), count(data, (*features, 0))
    classes, arity = range(data.arities[0]), data.arities[child]
    found = {}
    for m, row in enumerate(data.codes.tolist()):
        h = tuple(row[v] for v in features)
        state = (*h, row[child])
        for c in classes:
            rest = [b for b in classes if b != c]
            if child == 0:
                own, others = above[(*h, c)] + smooth, sum(above[(*h, b)] for b in rest) + smooth
                whole = sum(above[(*h, b)] for b in classes) + smooth * arity
                found[m, c] = log(own) - log(others if name == "binary" else whole)
                continue
            value = log(both[(*state, c)] + smooth) - log(above[(*h, c)] + smooth * arity)
            if name == "binary":
                value -= log(sum(both[(*state, b)] for b in rest) + smooth)
                value += log(sum(above[(*h, b)] for b in rest) + smooth * arity)
            found[m, c] = value
    return found


@pytest.mark.parametrize("name", ["multiclass", "binary"])
@pytest.mark.parametrize(("seed", "smoothing"), [(0, 0.3), (1, 0.3), (0, 1.0)])
def test_coefficients_are_within_their_slack(name: str, seed: int, smoothing: float) -> None:
    """Of every candidate, for odd weights and odd smoothing, together and apart."""
    data = table_of(seed, weighted=seed == 0)
    values = MarginValues(ExactCounts(data), Score(name, 1.0, smoothing))
    candidates = enumerate_candidates(4, 2)
    for child, parents in zip(candidates.child.tolist(), candidates.parents, strict=True):
        units = values.units(child, parents)
        assert units.shape == (len(data.codes), 1 if name == "binary" else 2)
        if child != 0 and 0 not in parents:
            assert not units.any()
            continue
        exact = contribution(data, name, Fraction(smoothing), child, parents)
        for m, own in enumerate(data.codes[:, 0].tolist()):
            rivals = [c for c in range(data.arities[0]) if c != own]
            wanted = [exact[m, own] - exact[m, c] for c in rivals]
            if name == "binary":
                wanted = [exact[m, own]]
            for unit, value in zip(units[m].tolist(), wanted, strict=True):
                assert abs(unit - value * 2**SHIFT) < SLACK


# ---------------------------------------------------------------------------------- scores


def exact_score(data: Data, score: Score, child: int, parents: Sequence[int]) -> Fraction:
    """A decomposable score by its formula; counts are whole where gamma functions are needed."""
    cells, rows = count(data, (*parents, child)).values(), count(data, parents).values()
    states, arity = math.prod(data.arities[p] for p in parents), data.arities[child]
    if score.name in ("bdeu", "k2"):
        prior = Fraction(1)
        if score.name == "bdeu":
            prior = Fraction(score.equivalent_sample_size) / (states * arity)
        value = sum((log(prior + i) for n in cells for i in range(int(n))), Fraction(0))
        return value - sum(log(prior * arity + i) for n in rows for i in range(int(n)))
    value = sum((n * log(Fraction(n)) for n in cells), Fraction(0))
    value -= sum(n * log(Fraction(n)) for n in rows)
    half_log = log(Fraction(sum(rows))) / 2
    price = {"loglik": Fraction(0), "aic": Fraction(1), "bic": half_log, "mdl": half_log}
    return value - states * (arity - 1) * price[score.name]


def documented_error(data: Data, name: str, child: int, parents: Sequence[int]) -> float:
    """One unit per logarithm, times what it is multiplied with; two per gamma function."""
    if name in ("k2", "bdeu"):
        return 2 * (len(count(data, parents)) + len(count(data, (*parents, child))))
    states = math.prod(data.arities[p] for p in parents)
    parameters = states * (data.arities[child] - 1) if name in ("bic", "mdl") else 0
    return 2 * data.weights.sum() + parameters


@pytest.mark.parametrize("name", sorted(decomposable_scores()))
def test_scores_are_enclosed(name: str) -> None:
    """The true score lies between the two ends, which keep the documented distance."""
    score = Score(name, equivalent_sample_size=2.5)
    candidates = ((0, ()), (1, (0,)), (2, (0, 1)), (0, (1, 2)), (3, (0, 1, 2)))
    for seed, (child, parents) in itertools.product(range(3, 8), candidates):
        data = table_of(seed, weighted=name in ("loglik", "aic", "mdl"))
        low, high = local_score(ExactCounts(data), score, child, parents)
        assert low <= exact_score(data, score, child, parents) * 2**SHIFT <= high
        error = documented_error(data, name, child, parents)
        assert 2 * error * (1 - 1e-12) <= high - low <= 2 * error * (1 + 1e-12) + 2


def test_other_scores_have_no_value() -> None:
    with pytest.raises(RefutedError, match="'guess' is not known"):
        local_score(ExactCounts(table_of(0, weighted=False)), Score("guess"), 1, (0,))
