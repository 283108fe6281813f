"""Arguments of the searching classifiers in the user's words: p beside gamma, arcs by name."""

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


def test_p_stands_for_gamma(tmp_path):
    """p = 0.8 and gamma = log 4 give one classifier, in files and descriptions too."""
    by_p = MaxMarginBNClassifier(p=0.8, max_parents=1).fit(X, Y)
    by_gamma = MaxMarginBNClassifier(gamma=math.log(4), max_parents=1).fit(X, Y)
    assert by_p.gamma_ == pytest.approx(by_gamma.gamma_, abs=1e-15)
    assert by_p.objective_ == pytest.approx(by_gamma.objective_, abs=1e-9)
    assert by_p.network_ == by_gamma.network_
    assert "gamma = 1.386 (p = 0.8)" in describe(by_p)
    save_model(by_p, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert (loaded.p, loaded.gamma_) == (0.8, by_p.gamma_)
    assert clone(by_p).gamma_ == by_p.gamma_


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, -1, "0.9"])
def test_p_must_be_a_probability_above_one_half(p):
    """The message names it."""
    with pytest.raises(InputError, match=r"p must lie strictly between 0.5 and 1"):
        MaxMarginBNClassifier(p=p).fit(X, Y)


def test_gamma_and_p_together_are_refused():
    """Nobody guesses which one is meant."""
    with pytest.raises(InputError, match="give either gamma or p"):
        MaxMarginBNClassifier(gamma=1.0, p=0.9).fit(X, Y)


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
            "from .smoke. to .lung. is among required_arcs",
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

    def solve(problem, solver, *, time_limit, **others):
        limits.append(time_limit)
        return real(problem, solver, time_limit=None, **others)

    monkeypatch.setattr(search, "solve_structure", solve)
    for seconds in (4.0, 60.0):
        # when binning begins, when the search does
        ticks = iter([100.0, 100.0 + seconds])
        monkeypatch.setattr(base, "monotonic", lambda: 100.0)  # when fit is called
        monkeypatch.setattr(training, "monotonic", lambda ticks=ticks: next(ticks))
        MaxMarginBNClassifier(max_parents=1, time_limit=10.0).fit(X, Y)
    assert limits == [4.0, 0.5]
