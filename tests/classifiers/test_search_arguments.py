"""Arguments of the searching classifiers in the user's words: gamma, arcs by name."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from marginbn import (
    GenerativeBNClassifier,
    InputError,
    MaxMarginBNClassifier,
    describe,
    load_model,
    save_model,
)
from marginbn.classifiers import base, search
from marginbn.data import training

ROWS = np.random.default_rng(3).integers(0, 2, (80, 4))
X = pd.DataFrame(ROWS[:, :3], columns=["smoke", "bronc", "lung"]).astype(str)
Y = pd.Series(np.where(ROWS[:, 0] ^ (ROWS[:, 3] & ROWS[:, 1]), "ill", "well"), name="state")


def test_gamma_as_a_probability_is_in_the_description(tmp_path):
    """gamma = log 4 is a posterior ratio of 0.8 to 0.2, in files and descriptions too."""
    clf = MaxMarginBNClassifier(gamma=math.log(4), max_parents=1).fit(X, Y)
    assert search.gamma_from_probability(0.8) == pytest.approx(clf.gamma_, abs=1e-15)
    assert "gamma = 1.386 (p = 0.8)" in describe(clf)
    save_model(clf, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").gamma_ == clf.gamma_
    assert clone(clf).gamma_ == clf.gamma_


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, -1, "0.9"])
def test_p_must_be_a_probability_above_one_half(p):
    with pytest.raises(InputError, match=r"p must lie strictly between 0.5 and 1"):
        search.gamma_from_probability(p)


@pytest.mark.parametrize(
    ("arcs", "message"),
    [
        (
            {"required_arcs": [("smoke", "bronc"), ("bronc", "smoke")]},
            "the required arcs have a directed cycle: (bronc -> smoke -> bronc|"
            "smoke -> bronc -> smoke)",
        ),
        (
            {"required_arcs": [("smoke", "lung")], "forbidden_arcs": [("smoke", "lung")]},
            "at once .*smoke -> lung",
        ),
        ({"required_arcs": [("lung", "lung")]}, "two different variables, got lung -> lung"),
        (
            {"required_arcs": [("smoke", "lung"), ("bronc", "lung")], "max_parents": 1},
            "variable lung has no candidate parent set left: required parents: smoke, bronc",
        ),
    ],
)
@pytest.mark.parametrize("kind", [MaxMarginBNClassifier, GenerativeBNClassifier])
def test_messages_about_arcs_use_names(kind, arcs, message):
    """Of both sorts of scores."""
    with pytest.raises(InputError, match=message):
        kind(**arcs).fit(X, Y)


def test_the_limit_counts_from_reading_on(monkeypatch):
    """The search gets what reading and counting leave, less what will follow, and never nothing."""
    limits, real = [], search.solve_structure

    def solve(problem, *, time_limit, **others):
        limits.append(time_limit)
        return real(problem, time_limit=None, **others)

    monkeypatch.setattr(search, "solve_structure", solve)
    for seconds in (4.0, 60.0):
        # when binning begins, when scoring would, when the search does
        ticks = iter([100.0, 100.0, 100.0 + seconds])
        monkeypatch.setattr(base, "monotonic", lambda: 100.0)  # when fit is called
        monkeypatch.setattr(training, "monotonic", lambda ticks=ticks: next(ticks))
        MaxMarginBNClassifier(max_parents=1, time_limit=10.0).fit(X, Y)
    assert limits == [4.0, 0.5]
