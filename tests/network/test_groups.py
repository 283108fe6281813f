"""Groups of states: what is a grouping, tables from groups to states and from states to groups."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn.exceptions import InputError
from marginbn.network.groups import check_groups, collapse, count_groups, equal_groups, expand
from marginbn.problem.encoded import Variable

COLOUR = Variable("colour", ("red", "green", "blue"))
SIZE = Variable("size", ("small", "large"))


def test_groups_that_join_nothing_are_left_out() -> None:
    """Equal meanings have equal values, so that networks can be compared."""
    assert check_groups(None, (COLOUR,)) is None
    assert check_groups([None, [0, 1]], (COLOUR, SIZE)) is None
    checked = check_groups([[1, 0, 1], [0, 1]], (COLOUR, SIZE))
    assert checked is not None
    assert checked[1] is None
    assert checked[0] is not None
    assert checked[0].tolist() == [1, 0, 1]
    assert not checked[0].flags.writeable


def test_another_numbering_is_another_grouping() -> None:
    """Groups that swap two states join nothing, but the axis of a table is in another order."""
    checked = check_groups([[1, 0]], (SIZE,))
    assert checked is not None
    assert count_groups(checked, [2]) == (2,)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (5, "groups must be None or hold one entry per variable, got int"),
        ("ab", "groups must be None or hold one entry per variable, got str"),
        ([None], "groups must hold one entry per variable, 2, got 1"),
        (
            [[0, 0], None],
            r"groups of 'colour' must be .* 3 states, got dtype int64 and shape \(2,\)",
        ),
        ([None, [[0, 0]]], "groups of 'size' must be whole numbers, one for each"),
        ([None, [0.0, 1.0]], "groups of 'size' must be whole numbers.* float64"),
        ([None, [True, False]], "groups of 'size' must be whole numbers.* bool"),
        ([None, ["a", "b"]], "groups of 'size' must be whole numbers"),
        ([[0, 2, 2], None], r"groups of 'colour' must be numbered 0, 1, \.\.\. .* got \[0, 2\]"),
        ([[-1, 0, 1], None], r"groups of 'colour' must be numbered .* got \[-1, 0, 1\]"),
        ([[1, 1, 1], None], r"groups of 'colour' must be numbered .* got \[1\]"),
    ],
)
def test_what_is_no_grouping_is_refused_with_the_variable(groups: object, message: str) -> None:
    """Errors name the variable and what is asked for."""
    with pytest.raises(InputError, match=message):
        check_groups(groups, (COLOUR, SIZE))  # type: ignore[arg-type]


def test_expand_repeats_and_collapse_adds_up_by_hand() -> None:
    """Groups need not be neighbours."""
    groups = np.array([1, 0, 1])
    assert expand(np.array([[1.0, 2.0]]), [None, groups]).tolist() == [[2.0, 1.0, 2.0]]
    log_table = np.log([[0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    np.testing.assert_allclose(np.exp(collapse(log_table, groups)), [[0.5, 0.5], [0.2, 0.8]])
    best = np.exp(collapse(log_table, groups, maximum=True))
    np.testing.assert_allclose(best, [[0.5, 0.3], [0.2, 0.7]])


def test_a_group_without_probability_stays_without() -> None:
    """Log 0 is no reason for NaN, and sums of tiny numbers stay exact."""
    log_table = np.array([-np.inf, -np.inf, -800.0, -800.0])
    collapsed = collapse(log_table, np.array([0, 0, 1, 1]))
    assert collapsed[0] == -np.inf
    assert collapsed[1] == pytest.approx(-800 + np.log(2), rel=1e-15)


@pytest.mark.parametrize("seed", range(10))
def test_expand_and_collapse_agree_with_loops(seed: int) -> None:
    """Entry by entry from the definition."""
    rng = np.random.default_rng(seed)
    groups = np.unique(rng.integers(0, 4, 6), return_inverse=True)[1]
    other = np.array([0, 1, 0])
    table = rng.normal(size=(groups.max() + 1, 2, 6))
    wide = expand(table, [groups, other, None])
    for i, j, k in np.ndindex(6, 3, 6):
        assert wide[i, j, k] == table[groups[i], other[j], k]
    sums = collapse(table, groups)
    for i, j, k in np.ndindex(*sums.shape):
        expected = sum(np.exp(table[i, j, s]) for s in range(6) if groups[s] == k)
        assert np.exp(sums[i, j, k]) == pytest.approx(expected, rel=1e-13)


def test_groups_are_compared_by_value() -> None:
    """None is equal to None only."""
    one = check_groups([[0, 0, 1], None], (COLOUR, SIZE))
    same = check_groups([np.array([0, 0, 1], dtype=np.int8), [0, 1]], (COLOUR, SIZE))
    other = check_groups([[0, 0, 1], [0, 0]], (COLOUR, SIZE))
    assert equal_groups(one, same)
    assert equal_groups(None, None)
    assert not equal_groups(one, None)
    assert not equal_groups(one, other)
