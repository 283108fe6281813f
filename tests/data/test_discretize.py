"""Fayyad-Irani discretisation: by hand, by properties, against a plain re-statement of the rule."""

import math
import sys
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginbn import MDLPDiscretizer
from marginbn.data.discretize import assign_bins, mdlp_cuts, name_bins, short_cut

GREATEST = sys.float_info.max

# Groups (value, class, repetitions): few values, so ties are common; many repetitions, so that a
# good share of the data sets is worth one or more cuts.
GROUPS = st.lists(
    st.tuples(st.integers(-4, 4), st.integers(0, 3), st.integers(0, 25)), min_size=1, max_size=14
)
fast = settings(deadline=None, max_examples=150)


def entropy(labels):
    return -sum(n / len(labels) * math.log2(n / len(labels)) for n in Counter(labels).values())


def brute_force_gaps(values, labels):
    """Pairs (low, high) of neighbouring values that Fayyad and Irani cut apart, left to right.

    Tries every gap between distinct values, boundary point or not, and computes every entropy from
    the labels themselves.
    """
    distinct = sorted(set(values))
    splits = []
    for low, high in pairwise(distinct):
        left = [label for value, label in zip(values, labels, strict=True) if value <= low]
        right = [label for value, label in zip(values, labels, strict=True) if value > low]
        mean = (len(left) * entropy(left) + len(right) * entropy(right)) / len(labels)
        splits.append((mean, low, high, left, right))
    if not splits:
        return []
    least = min(split[0] for split in splits)
    mean, low, high, left, right = next(split for split in splits if split[0] <= least + 1e-12)
    k, k1, k2 = (len(set(part)) for part in (labels, left, right))
    delta = math.log2(3**k - 2) - (k * entropy(labels) - k1 * entropy(left) - k2 * entropy(right))
    gain = entropy(labels) - mean
    if gain <= (math.log2(len(labels) - 1) + delta) / len(labels) + 1e-12:
        return []
    below = [pair for pair in zip(values, labels, strict=True) if pair[0] <= low]
    above = [pair for pair in zip(values, labels, strict=True) if pair[0] > low]
    return [
        *brute_force_gaps(*zip(*below, strict=True)),
        (low, high),
        *brute_force_gaps(*zip(*above, strict=True)),
    ]


def spread(groups):
    """Repeat each group's row: values, labels."""
    values, labels, repeats = np.array(groups, dtype=np.int64).T
    return np.repeat(values, repeats).astype(float), np.repeat(labels, repeats)


def unweighted_cuts(values, labels):
    return mdlp_cuts(values, labels, np.ones(len(values)), int(np.max(labels, initial=0)) + 1)


def assert_cuts_in_gaps(cuts, gaps):
    assert_array_equal(np.shape(cuts), (len(gaps),))
    for cut, (low, high) in zip(cuts, gaps, strict=True):
        assert low < cut < high
        assert Fraction(str(cut)) in shortest_decimals(Fraction(str(low)), Fraction(str(high)))


def shortest_decimals(low, high):
    """Of the numbers of fewest decimals between two numbers those nearest to the middle.

    Goes through all whole numbers, then through all with one decimal and so on.
    """
    for unit in (Fraction(1, 10**decimals) for decimals in range(10)):
        inside = [unit * m for m in range(math.floor(low / unit) + 1, math.ceil(high / unit))]
        if inside:
            nearest = min(abs(cut - (low + high) / 2) for cut in inside)
            return [cut for cut in inside if abs(cut - (low + high) / 2) == nearest]
    raise AssertionError("take values with fewer decimals")


# --- by hand -----------------------------------------------------------------------------------


def test_a_cut_that_just_pays_is_accepted():
    """N = 5: saves 3.61 bits, costs log2 4 + log2 7 - 1.44 = 3.36; log2 5 would make it 3.69."""
    assert_array_equal(unweighted_cuts([1.0, 2.0, 2.0, 2.0, 2.0], [1, 0, 0, 0, 0]), [1.5])


def test_of_two_equally_good_cuts_the_smaller_is_taken():
    """Class counts (40, 8), (24, 24), (8, 40) mirror each other, and one cut is all that pays."""
    groups = [(1, 0, 40), (1, 1, 8), (2, 0, 24), (2, 1, 24), (3, 0, 8), (3, 1, 40)]
    values, labels = spread(groups)
    assert_array_equal(unweighted_cuts(values, labels), [1.5])
    assert_array_equal(unweighted_cuts(-values, labels), [-2.5])
    assert_array_equal(unweighted_cuts(values, 1 - labels), [1.5])


def test_rounding_does_not_decide_between_equal_cuts():
    """Class counts (8, 0, 0), (8, 2, 8), (0, 0, 8): the mirror-image cut sums up a bit lower."""
    groups = [(1, 0, 8), (2, 0, 8), (2, 1, 2), (2, 2, 8), (3, 2, 8)]
    assert_array_equal(unweighted_cuts(*spread(groups)), [1.5])


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([5.0, 5.0, 5.0, 5.0], [0, 0, 1, 1]),
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0]),
        ([1.0], [0]),
        ([], []),
        ([np.nan, np.nan], [0, 1]),
        ([1.0, np.nan, np.nan], [0, 1, 1]),
    ],
    ids=["constant", "one class", "one row", "no row", "all missing", "one row present"],
)
def test_where_nothing_can_be_told_apart_there_is_no_cut(values, labels):
    assert mdlp_cuts(values, labels, np.ones(len(values)), 2).size == 0


def test_a_thousand_classes_are_told_apart():
    """3^1000 overflows a double, log2(3^1000 - 2) does not: 1000 groups of 20 get 999 cuts."""
    values = np.repeat(np.arange(1000.0), 20)
    assert_array_equal(unweighted_cuts(values, values.astype(int)), np.arange(999) + 0.5)


@fast
@given(st.integers(-99, 99), st.integers(-99, 99), st.sampled_from([1, 10, 100]))
@example(-1, 99, 100)
def test_a_cut_is_the_shortest_decimal_nearest_to_the_middle(one, other, scale):
    """Found by going through all short decimals."""
    low, high = sorted((Fraction(one, scale), Fraction(other, scale)))
    if low < high:
        cut = short_cut(float(low), float(high))
        assert Fraction(str(cut)) in shortest_decimals(low, high)


def test_a_value_in_single_precision_stays_on_its_side():
    """A cut is never one of the training values, only something between two of them."""
    cut = short_cut(5.4, 5.5)
    assert float(np.float32(5.4)) > 5.4
    assert assign_bins([5.4, float(np.float32(5.4)), 5.5], [cut]).tolist() == [0, 0, 1]


# --- properties --------------------------------------------------------------------------------


@fast
@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=2, unique=True))
@example([1.0, math.nextafter(1.0, 2.0)])
@example([1.5e-323, 2e-323])
@example([0.0, 5e-324])
@example([-5e-324, 5e-324])
@example([-GREATEST, GREATEST])
@example([math.nextafter(GREATEST, 0.0), GREATEST])
@example([-math.inf, math.inf])
def test_a_cut_separates_its_neighbours(pair):
    cuts = unweighted_cuts(pair, [0, 1])
    assert_array_equal(assign_bins(sorted(pair), cuts), [0, 1])


@fast
@given(GROUPS)
def test_integer_weights_are_repetitions(groups):
    values, labels, weights = np.array(groups, dtype=float).T
    assert_array_equal(mdlp_cuts(values, labels, weights, 4), unweighted_cuts(*spread(groups)))


@fast
@given(GROUPS, st.integers(2, 11))
def test_a_row_in_fractions_is_a_row(groups, parts):
    """Each row split into equal fractions gives the same cuts, whatever the sums round to."""
    values, labels = spread(groups)
    fractions = np.full(values.size * parts, 1 / parts)
    cuts = mdlp_cuts(np.repeat(values, parts), np.repeat(labels, parts), fractions, 4)
    assert_array_equal(cuts, unweighted_cuts(values, labels))


@fast
@given(GROUPS, st.permutations(range(4)), st.randoms(use_true_random=False))
def test_order_of_rows_and_names_of_classes_do_not_matter(groups, renamed, random):
    values, labels = spread(groups)
    order = list(range(values.size))
    random.shuffle(order)
    cuts = unweighted_cuts(values[order], np.array(renamed)[labels[order]])
    assert_array_equal(cuts, unweighted_cuts(values, labels))


@fast
@given(GROUPS, st.lists(st.integers(0, 3), max_size=30))
def test_missing_values_are_ignored(groups, classes_of_missing):
    values, labels = spread(groups)
    cuts = unweighted_cuts(
        np.concatenate([np.full(len(classes_of_missing), np.nan), values]),
        np.concatenate([np.array(classes_of_missing, dtype=int), labels]),
    )
    assert_array_equal(cuts, unweighted_cuts(values, labels))


def test_less_than_two_rows_of_weight_are_never_cut():
    """Weights are repetitions, not proportions: with a total of 1.9 there is no evidence."""
    values, labels = np.arange(10.0), np.repeat([0, 1], 5)
    assert mdlp_cuts(values, labels, np.full(10, 0.19), 2).size == 0
    assert_array_equal(mdlp_cuts(values, labels, np.full(10, 0.3), 2), [4.5])


# --- independent opinions ----------------------------------------------------------------------


@fast
@given(GROUPS)
def test_cuts_equal_brute_force_on_tied_data(groups):
    values, labels = spread(groups)
    gaps = brute_force_gaps(values.tolist(), labels.tolist())
    assert_cuts_in_gaps(unweighted_cuts(values, labels), gaps)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_cuts_equal_brute_force_on_real_tables(load):
    X, y = load(return_X_y=True)
    for column, cuts in zip(X.T, MDLPDiscretizer().fit(X, y).cuts_, strict=True):
        assert_cuts_in_gaps(cuts, brute_force_gaps(column.tolist(), y.tolist()))


def test_iris_gets_its_published_cuts():
    """R's discretization::mdlp finds these cuts (manual of arulesCBA, discretizeDF.supervised)."""
    cuts = MDLPDiscretizer().fit(*load_iris(return_X_y=True)).cuts_
    published = [[5.55, 6.15], [2.95, 3.35], [2.0, 4.75], [0.8, 1.75]]  # 2.45 in the shortest form
    assert [list(cut) for cut in cuts] == published


# --- bins --------------------------------------------------------------------------------------


def test_a_value_equal_to_a_cut_goes_left_and_nan_is_minus_one():
    """Codes count the cuts strictly below a value."""
    codes = assign_bins([[-9.0, 1.0], [1.5, 2.0], [np.nan, 9.0]], [1.0, 2.0])
    assert codes.dtype == np.int32
    assert_array_equal(codes, [[0, 0], [1, 1], [-1, 2]])


@pytest.mark.parametrize(
    ("cuts", "names"),
    [
        ([], ("any number",)),
        ([7.0], ("<= 7", "> 7")),
        ([2.45, 4.75], ("<= 2.45", "(2.45, 4.75]", "> 4.75")),
        ([-1e-7, 0.0, 1e22], ("<= -1e-07", "(-1e-07, 0]", "(0, 1e+22]", "> 1e+22")),
    ],
)
def test_bins_are_named_by_their_cuts(cuts, names):
    assert name_bins(cuts) == names


@fast
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=6, unique=True))
def test_names_are_distinct_and_tell_the_truth(cuts):
    cuts = sorted(cuts)
    names = name_bins(cuts)
    assert len(set(names)) == len(cuts) + 1
    assert [float(name.strip("(]").split()[-1]) for name in names[:-1]] == cuts
    assert not cuts or float(names[-1].removeprefix("> ")) == cuts[-1]


# --- the transformer ---------------------------------------------------------------------------


@parametrize_with_checks([MDLPDiscretizer()])
def test_scikit_learn_accepts_the_discretizer(estimator, check):
    check(estimator)


@pytest.fixture
def table():
    """Two columns, the first with a gap at 7 and a missing value, the second constant."""
    X = np.array([[1, 5], [2, 5], [3, 5], [np.nan, 5], [11, 5], [12, 5], [13, 5]], dtype=float)
    return X, np.array(["low", "low", "low", "high", "high", "high", "high"])


def test_fitted_attributes_describe_every_feature(table):
    discretizer = MDLPDiscretizer().fit(*table)
    assert [cuts.tolist() for cuts in discretizer.cuts_] == [[7.0], []]
    assert_array_equal(discretizer.n_bins_, [2, 1])
    assert discretizer.bin_names_ == [("<= 7", "> 7"), ("any number",)]
    assert_array_equal(discretizer.classes_, ["high", "low"])
    assert discretizer.n_features_in_ == 2


def test_transform_keeps_nan_and_accepts_values_never_seen(table):
    codes = MDLPDiscretizer().fit(*table).transform([[-1e9, 0], [np.nan, np.nan], [1e9, 99]])
    assert codes.dtype == np.float64
    assert_array_equal(codes, [[0, 0], [np.nan, np.nan], [1, 0]])


def test_sample_weights_reach_every_column():
    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 4, y.size)
    weighted = MDLPDiscretizer().fit(X, y, sample_weight=weights)
    repeated = MDLPDiscretizer().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    plain = MDLPDiscretizer().fit(X, y)
    assert weighted.bin_names_ == repeated.bin_names_ != plain.bin_names_


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.int64, object])
def test_number_types_do_not_matter(table, dtype):
    X, y = np.delete(table[0], 3, axis=0), np.delete(table[1], 3)
    expected = MDLPDiscretizer().fit_transform(X, y)
    assert_array_equal(MDLPDiscretizer().fit_transform(X.astype(dtype), y), expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_go_in_and_come_out(table, library):
    frames = pytest.importorskip(library)
    X, y = table
    frame = frames.DataFrame({"height": X[:, 0], "width": X[:, 1]})
    discretizer = MDLPDiscretizer().set_output(transform=library).fit(frame, y)
    codes = discretizer.transform(frame)
    assert isinstance(codes, frames.DataFrame)
    assert list(discretizer.feature_names_in_) == list(codes.columns) == ["height", "width"]
    assert_array_equal(codes.to_numpy(), MDLPDiscretizer().fit_transform(X, y))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[1.0], [np.inf]]}, "infinity"),
        ({"y": [0.5, 1.25]}, "continuous"),
        ({"sample_weight": [1.0, -1.0]}, "[Nn]egative"),
    ],
)
def test_unusable_input_is_refused(change, message):
    arguments = {"X": [[1.0], [2.0]], "y": [0, 1], "sample_weight": None} | change
    with pytest.raises(ValueError, match=message):
        MDLPDiscretizer().fit(**arguments)


@pytest.mark.parametrize("n_cuts", [0, 1, 99, 100, 101, 200])
def test_few_and_many_cuts_give_the_bins_of_a_search(n_cuts: int) -> None:
    """Values on cuts, between them and beyond, infinities and NaN."""
    rng = np.random.default_rng(n_cuts)
    cuts = np.sort(rng.choice(1000, n_cuts, replace=False) / 100)
    values = np.concatenate([rng.uniform(-1, 11, 40_000), cuts, [np.inf, -np.inf]])
    assert_array_equal(assign_bins(values, cuts), np.searchsorted(cuts, values))
    assert assign_bins(np.nan, cuts) == -1
