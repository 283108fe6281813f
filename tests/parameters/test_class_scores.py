"""Sums of tables: evaluated row by row, and added up over different groups."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn.parameters.class_scores import ClassScores, weighted_sum
from marginbn.problem.structure import Structure
from score_tables import all_rows, make_scores, random_scores

TREE = Structure(((), (0,), (0, 1), (0, 2)))
ARITIES = (3, 4, 3, 5)


def slow_scores(scores: ClassScores, row: np.ndarray) -> list[float]:
    """The definition, one number at a time."""

    def group(v: int) -> int:
        groups = scores.groups[v]
        return int(row[v]) if groups is None else int(groups[row[v]])

    totals = []
    for c in range(len(scores.bias)):
        total = float(scores.bias[c])
        total += sum(float(e[c, row[i + 1]]) for i, e in enumerate(scores.effects))
        total += sum(float(t[(c, *map(group, family))]) for family, t in scores.tables.items())
        totals.append(total)
    return totals


@pytest.mark.parametrize("seed", range(6))
def test_scores_are_the_sum_of_the_tables(seed: int) -> None:
    """On every row, with groups; the class in column 0 does not matter."""
    scores, _, _ = random_scores(seed)
    rows = all_rows(scores)[:: 1 + seed]
    slow = np.array([slow_scores(scores, row) for row in rows])
    np.testing.assert_allclose(scores.evaluate(rows), slow, atol=1e-12)
    posterior = np.exp(slow) / np.exp(slow).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(scores.log_posterior(rows)), posterior, atol=1e-12)


def test_the_posterior_does_not_overflow() -> None:
    """Scores of thousands."""
    scores = make_scores(TREE, ARITIES, scale=1e4)
    assert np.isfinite(scores.log_posterior(all_rows(scores))).all()


GROUPINGS = [
    (None, None, None, None),
    (None, [0, 0, 1, 1], None, [0, 1, 1, 2, 2]),
    (None, [0, 1, 1, 0], [1, 0, 0], [0, 0, 0, 1, 1]),
]


@pytest.mark.parametrize("first", GROUPINGS)
@pytest.mark.parametrize("second", GROUPINGS)
def test_a_sum_of_scores_is_scores(first: list, second: list) -> None:
    """Whatever groups the parts have, and whatever families."""
    chain, star = TREE, Structure(((), (0,), (0, 1), (0, 1)))
    parts = [
        make_scores(chain, ARITIES, seed=1, groups=first),
        make_scores(star, ARITIES, seed=2, groups=second),
        make_scores(Structure(((), (0,), (0,), (0,))), ARITIES, seed=3),
    ]
    weights = [0.3, 1.7, -2.0]
    total = weighted_sum(parts, weights)
    rows = all_rows(total)
    expected = sum(w * part.evaluate(rows) for w, part in zip(weights, parts, strict=True))
    np.testing.assert_allclose(total.evaluate(rows), expected, atol=1e-12)
    assert set(total.tables) == {(1, 2), (2, 3), (1, 3)}


def test_groups_of_a_sum_are_no_finer_than_needed() -> None:
    """Two states that every part joins stay joined; who does not interact has no say."""
    one = make_scores(TREE, ARITIES, groups=(None, None, None, [0, 0, 0, 1, 1]))
    other = make_scores(TREE, ARITIES, groups=(None, None, None, [0, 0, 1, 1, 1]))
    silent = make_scores(Structure(((), (0,), (0,), (0,))), ARITIES)
    total = weighted_sum([one, other, silent])
    assert total.groups[3] is not None
    assert total.groups[3].tolist() == [0, 0, 1, 2, 2]
    assert total.groups[1] is None


def test_without_weights_it_is_the_plain_sum() -> None:
    """Each counts once."""
    scores = make_scores(TREE, ARITIES)
    rows = all_rows(scores)
    double = weighted_sum([scores, scores])
    np.testing.assert_allclose(double.evaluate(rows), 2 * scores.evaluate(rows))
