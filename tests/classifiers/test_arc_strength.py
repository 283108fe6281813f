"""How sure is an arc: against plain refits of repeated rows, by hand, for every classifier."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from sklearn.datasets import load_iris

from marginbn import (
    A1DEClassifier,
    GenerativeBNClassifier,
    InputError,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    Structure,
    TANClassifier,
    Variable,
    arc_strength,
)
from marginbn.classifiers.arc_strength import ArcStrength

RNG = np.random.default_rng(7)
N_ROWS = 90
CLASS = RNG.integers(0, 2, N_ROWS)
A = np.where(RNG.random(N_ROWS) < 0.8, CLASS, 1 - CLASS)
B = np.where(RNG.random(N_ROWS) < 0.7, A, RNG.integers(0, 3, N_ROWS))
C = RNG.integers(0, 3, N_ROWS)
X = pd.DataFrame({"a": A, "b": B, "c": C}).astype(str)
Y = pd.Series(CLASS, name="ill")


PAIRS = pd.DataFrame(RNG.integers(0, 3, (300, 3)), columns=list("abc")).astype(str)


def drawn_rows(n, seed=0):
    """The rows of every replicate, repeated as often as they were drawn."""
    for own in np.random.SeedSequence(seed).spawn(n):
        counts = np.random.default_rng(own).multinomial(N_ROWS, np.full(N_ROWS, 1 / N_ROWS))
        yield np.repeat(np.arange(N_ROWS), counts)


@pytest.mark.parametrize(
    "clf",
    [
        TANClassifier(),
        GenerativeBNClassifier(score="bdeu", max_parents=2, class_restricted=False),
        MaxMarginBNClassifier(max_parents=2, gamma=1.0),
    ],
    ids=lambda clf: type(clf).__name__,
)
def test_frequencies_are_those_of_plain_refits(clf):
    """Rows written down as often as they are drawn, every structure learned from nothing."""
    n = 4
    found = arc_strength(clf.fit(X, Y), X, Y, n=n)
    counts = np.zeros((4, 4))
    for rows in drawn_rows(n):
        for arc in clf.fit(X.iloc[rows], Y.iloc[rows]).structure_.arcs:
            counts[arc] += 1
    own, plain = found.frequencies, counts / n
    if isinstance(clf, MaxMarginBNClassifier):  # where an arc can be turned, both are as good
        own, plain = own + own.T, plain + plain.T
    assert own == pytest.approx(plain)


def test_naive_bayes_is_sure_of_everything():
    """Nothing is chosen, so nothing varies."""
    found = arc_strength(NaiveBayesClassifier().fit(X, Y), X, Y, n=3)
    assert [(arc.parent, arc.child) for arc in found.arcs] == [("ill", name) for name in "abc"]
    assert {(arc.strength, arc.direction, arc.in_network) for arc in found.arcs} == {(1, 1, True)}


def test_workers_and_seeds():
    """As many workers as one likes: the numbers are those of the seed."""
    clf = TANClassifier().fit(X, Y)
    one = arc_strength(clf, X, Y, n=6, random_state=3)
    with parallel_config(backend="threading"):
        two = arc_strength(clf, X, Y, n=6, random_state=3, n_jobs=2)
    other = arc_strength(clf, X, Y, n=6, random_state=4)
    assert (one.frequencies == two.frequencies).all()
    assert (one.frequencies != other.frequencies).any()


@pytest.mark.parametrize(
    "clf",
    [
        A1DEClassifier(),
        MaxMarginBNClassifier(max_parents=2),
        MaxMarginBNClassifierCV(gammas=[0.5, 2.0], max_parents=[1, 2], cv=2),
    ],
    ids=lambda clf: type(clf).__name__,
)
def test_every_classifier_has_strengths(clf):
    """Numbers, names and bins as in the classifier."""
    iris, species = load_iris(return_X_y=True)
    found = arc_strength(clf.fit(iris, species), iris, species, n=3)
    assert found.names == clf.network_.names
    assert found.structure == clf.structure_
    assert (found.frequencies >= 0).all()
    assert (found.frequencies + found.frequencies.T <= 1).all()
    assert found.frequencies.any()


def by_hand(frequencies):
    """Strengths of a network a <- class -> b -> a."""
    variables = tuple(Variable(name, ("0", "1")) for name in ("class", "a", "b"))
    return ArcStrength(variables, Structure(((), (0, 2), (0,))), np.array(frequencies), 10)


def test_strength_and_direction_by_hand():
    """b -> a in six of ten, a -> b in two."""
    found = by_hand([[0, 0.4, 1], [0.4, 0, 0.2], [0, 0.6, 0]])
    assert found.strength("a", "b") == found.strength("b", "a") == pytest.approx(0.8)
    assert found.frequency("b", "a") == 0.6
    ways = [(arc.parent, arc.child, round(arc.direction, 3), arc.in_network) for arc in found.arcs]
    assert ways == [
        ("class", "b", 1.0, True),
        ("class", "a", 0.5, True),
        ("b", "a", 0.75, True),
    ]
    assert found.arcs[2].frequency == pytest.approx(0.6)
    assert "b -> a          0.80       0.75             yes" in str(found)
    assert found.to_dict()["arcs"][0]["strength"] == 1.0
    turned = by_hand([[0, 0.4, 1], [0.4, 0, 0.6], [0, 0.2, 0]])
    assert "a -> b          0.80       0.75   turned around" in str(turned)


def test_an_arc_that_was_never_found_is_still_listed():
    """A network's own arc of strength zero is worth knowing."""
    found = by_hand([[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    assert found.arcs[-1] == ("b", "a", 0.0, 1.0, True)


def test_the_averaged_network_by_hand():
    """Frequent pairs enter, in their direction unless a cycle would close."""
    found = by_hand([[0, 0.4, 0.9], [0.5, 0, 0.0], [0.0, 0.7, 0]])
    # class -> b (0.9) and b -> a (0.7) enter; a -> class (0.5) would close a cycle and is turned.
    assert found.averaged().parents == ((), (0, 2), (0,))
    assert found.averaged(0.95).arcs == ()
    assert found.averaged(0.8).parents == ((1,), (), (0,))
    for threshold in (0, 1.5):
        with pytest.raises(InputError, match="threshold must lie in"):
            found.averaged(threshold)


def test_frames_are_those_of_the_rows():
    """pandas for pandas, polars for polars."""
    clf = TANClassifier().fit(X, Y)
    frame = arc_strength(clf, X, Y, n=2).to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame) == ["parent", "child", "strength", "direction", "in_network"]
    other = arc_strength(clf, pl.from_pandas(X), CLASS, n=2).to_frame()
    assert isinstance(other, pl.DataFrame)
    assert other["strength"].to_list() == frame["strength"].tolist()


def test_a_rare_class_is_in_every_replicate():
    """One row of three classes: replicates without it are drawn again."""
    y = np.array(["rare", *(f"class {k}" for k in CLASS[1:])])
    found = arc_strength(TANClassifier().fit(X, y), X, y, n=5)
    assert found.frequencies[0, 1:].tolist() == [1, 1, 1]


def test_the_picture_is_as_thick_as_the_arcs_are_sure():
    """Width 0.4 for never, 4 for always; the number is in the tooltip."""
    html = by_hand([[0, 1, 1], [0, 0, 0], [0, 0.5, 0]])._repr_html_()
    assert html.count('stroke-width="4.00"') == 2
    assert html.count('stroke-width="2.20"') == 1
    assert "<title>b -&gt; a: 0.50</title>" in html


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be an integer of at least 1"),
        ({"time_limit": 0}, "time_limit must be a positive number"),
        ({"y": [0, 1]}, "X and y must be equally long, got 90 and 2 rows"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    """With what was given."""
    given = {"X": X, "y": Y, **arguments}
    with pytest.raises(InputError, match=message):
        arc_strength(TANClassifier().fit(X, Y), **given)
