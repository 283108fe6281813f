"""Explanations: contributions by hand, by brute force, and through the classifiers."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from marginbn import (
    DataWarning,
    GenerativeBNClassifier,
    InputError,
    MaxMarginBNClassifier,
    NaiveBayesClassifier,
    TANClassifier,
)
from marginbn.network.explain import Contribution, Explanation, explain_codes, nearest_rivals
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import brute_force_marginal, random_network, sprinkler

RAIN = np.array(["no", "yes"])


def by_variable(explanation: Explanation) -> dict[str, float]:
    return {c.variable: c.value for c in explanation.contributions}


def test_the_sprinkler_by_hand() -> None:
    """A complete row has one ratio of table entries per variable."""
    (explanation,) = explain_codes(sprinkler(), RAIN, np.array([[1, 1]]), ["yes"])
    values = by_variable(explanation)
    assert values["rain"] == pytest.approx(math.log(0.2 / 0.8))
    assert values["sprinkler"] == pytest.approx(math.log(0.01 / 0.4))
    assert values["grass"] == pytest.approx(math.log(0.99 / 0.9))
    assert explanation.log_margin == pytest.approx(sum(values.values()), abs=1e-12)
    assert [c.variable for c in explanation.contributions] == ["sprinkler", "rain", "grass"]
    assert (explanation.label, explanation.rival, explanation.predicted) == ("yes", "no", "no")


def test_a_missing_parent_by_hand() -> None:
    """Wet grass speaks for rain as much as it does with the sprinkler summed out."""
    (explanation,) = explain_codes(sprinkler(), RAIN, np.array([[-1, 1]]), ["yes"])
    values = by_variable(explanation)
    wet_if_dry, wet_if_rain = 0.4 * 0.9, 0.99 * 0.8 + 0.01 * 0.99
    assert values["grass"] == pytest.approx(math.log(wet_if_rain / wet_if_dry))
    assert values["sprinkler"] == 0.0
    grass = next(c for c in explanation.contributions if c.variable == "grass")
    assert grass == Contribution("grass", "wet", grass.value, (("sprinkler", None),))
    assert grass.condition == "grass = wet given sprinkler missing"


def chain_rule_term(
    network: BayesianNetwork, features: dict[int, int], i: int, label: int, rival: int
) -> float:
    """log P(x_i | c, o_<i) - log P(x_i | c', o_<i), from the joint distribution itself."""
    order = network.structure.order
    earlier = {v: features[v] for v in order[: order.index(i)] if v in features}
    if i == 0:
        joint = brute_force_marginal(network, [0], earlier)
        return math.log(joint[label] / joint[rival])
    if i not in features or order.index(0) > order.index(i):
        return 0.0
    with_i = brute_force_marginal(network, [0, i], earlier)[:, features[i]]
    without = brute_force_marginal(network, [0], earlier)
    return math.log(with_i[label] / without[label] * without[rival] / with_i[rival])


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(0, 0.7))
def test_every_term_is_a_term_of_the_chain_rule(seed: int, share_missing: float) -> None:
    """Contributions are those of the definition, and sum to the margin of the known features."""
    network = random_network(seed, n_variables=6)
    rng = np.random.default_rng(seed)
    codes = np.array([rng.integers(a) for a in network.arities[1:]])
    codes[rng.random(5) < share_missing] = -1
    classes = np.array(network.variables[0].states)
    (explanation,) = explain_codes(network, classes, codes[np.newaxis].astype(np.int32))
    features = {i + 1: int(c) for i, c in enumerate(codes) if c >= 0}
    joint = brute_force_marginal(network, [0], features)
    label, rival = classes.tolist().index(explanation.label), explanation.rival
    assert joint[label] == pytest.approx(joint.max())
    assert explanation.log_margin >= 0
    for i, name in enumerate(network.names):
        expected = chain_rule_term(network, features, i, label, classes.tolist().index(rival))
        assert by_variable(explanation)[name] == pytest.approx(expected, abs=1e-9)
    total = math.fsum(by_variable(explanation).values())
    assert total == pytest.approx(explanation.log_margin, abs=1e-9)
    assert explanation.probability == pytest.approx(joint[label] / joint.sum())


@pytest.mark.parametrize(
    "classifier",
    [
        NaiveBayesClassifier(),
        TANClassifier(),
        GenerativeBNClassifier(score="mdl", max_parents=2),
        MaxMarginBNClassifier(max_parents=1),
    ],
    ids=lambda c: type(c).__name__,
)
def test_it_is_the_margin_of_predict_proba(classifier) -> None:
    """Predicted class, rival and sum agree with the posteriors of every row."""
    X, y = load_iris(return_X_y=True)
    X[::7, 2] = np.nan
    X[3::5, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        classifier.fit(X, y)
    explanations = classifier.explain(X)
    ordered = np.sort(classifier.predict_log_proba(X), axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    assert [e.label for e in explanations] == classifier.predict(X).tolist()
    assert np.allclose(explanations.log_margins, margins, rtol=0, atol=1e-9)
    assert np.allclose(explanations.values.sum(axis=1), margins, rtol=0, atol=1e-9)
    for explanation in explanations:
        total = math.fsum(c.value for c in explanation.contributions)
        assert total == pytest.approx(explanation.log_margin, abs=1e-9)


def test_rivals_are_second_and_ties_go_to_the_first() -> None:
    """The nearest rival of the best class is the second best, of another class the best."""
    joint = np.log(np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4]]))
    assert nearest_rivals(joint, np.array([0, 0, 0])).tolist() == [1, 1, 1]
    assert nearest_rivals(joint, np.array([2, 1, 1])).tolist() == [0, 0, 2]
    assert joint.max() < 0  # the input is left as it was


WEATHER = pd.DataFrame({"sky": ["sun", "sun", "rain", "rain"], "wind": [1.0, 2.0, 8.0, 9.0]})
GOING = ["stay", "stay", "stay", "leave"]


def weather() -> NaiveBayesClassifier:
    return NaiveBayesClassifier().fit(WEATHER, GOING)


def test_one_row_may_come_as_it_is() -> None:
    """A row of a frame, a table of one row and a list are the same row."""
    as_frame = weather().explain(WEATHER.iloc[[3]])[0]
    assert weather().explain(WEATHER.iloc[3])[0] == as_frame
    unnamed = NaiveBayesClassifier().fit(WEATHER.to_numpy(), GOING)
    assert unnamed.explain(["rain", 9.0])[0] == unnamed.explain(WEATHER.to_numpy()[3:])[0]
    assert unnamed.explain(WEATHER.to_numpy()[3])[0] == unnamed.explain(("rain", 9.0))[0]
    assert len(unnamed.explain(["rain", None])) == 1


def test_the_text_by_hand() -> None:
    """Largest first, bins read as inequalities, the rest and the sum at the end."""
    network = BayesianNetwork(
        Structure(((), (0,), (0,), (), (0,))),
        (
            Variable("c", ("n", "y")),
            Variable("age", ("<= 40", "> 40")),
            Variable("size", ("<= 1e-3", "(0.001, 5]", "> 5")),
            Variable("idle", ("0", "1")),
            Variable("gone", ("0", "1")),
        ),
        (
            np.log([0.5, 0.5]),
            np.log([[0.8, 0.2], [0.4, 0.6]]),
            np.log([[0.2, 0.2, 0.6], [0.2, 0.6, 0.2]]),
            np.log([0.5, 0.5]),
            np.log([[0.5, 0.5], [0.5, 0.5]]),
        ),
    )
    (explanation,) = explain_codes(network, RAIN, np.array([[0, 1, 0, -1]]))
    assert str(explanation).splitlines() == [
        "row 0: class yes (p = 0.6) against no, odds 1.5 : 1",
        "  size in (0.001, 5]                    +1.0986",
        "  age <= 40                             -0.6931",
        "  2 other variables, 1 missing feature  +0.0000",
        "  log-odds                              +0.4055",
    ]
    assert explanation.text(most=1).splitlines()[2].split()[-1] == "-0.6931"


def test_wrong_rows_tell_what_was_predicted() -> None:
    text = str(weather().explain(WEATHER, ["leave"] * 4)[0])
    assert "leave" in text.splitlines()[0]
    assert "predicted stay, odds 1 : " in text


def test_values_for_programs_are_json() -> None:
    """to_dict holds everything, and nothing that JSON does not know."""
    clf = NaiveBayesClassifier().fit(WEATHER, [0, 0, 0, 1])
    explanation = clf.explain(WEATHER)[1]
    data = json.loads(json.dumps(explanation.to_dict()))
    assert (data["row"], data["label"], data["rival"]) == (1, 0, 1)
    assert data["log_margin"] == explanation.log_margin
    assert [c["variable"] for c in data["contributions"]] == [
        c.variable for c in explanation.contributions
    ]


def test_explanations_are_a_list() -> None:
    explanations = weather().explain(WEATHER)
    assert len(explanations) == 4
    assert explanations[-1].row == 3
    assert [e.row for e in explanations[1:3]] == [1, 2]
    assert explanations[1:3][0] == explanations[1]
    assert repr(explanations) == "Explanations(4 rows)"
    assert str(explanations).count("log-odds") == 4
    with pytest.raises(IndexError):
        explanations[4]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda clf: clf.explain(WEATHER, ["stay"]), r"one label per row, 4, got shape \(1,\)"),
        (lambda clf: clf.explain(WEATHER, ["go"] * 4), r"y holds 'go'.*\['leave', 'stay'\]"),
        (lambda clf: clf.explain(WEATHER)[0].text(most=0), "most must be at least 1, got 0"),
    ],
)
def test_errors_say_what_to_do(ask, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask(weather())


def test_one_class_has_no_rival() -> None:
    """There is nothing to explain where there was nothing to decide."""
    clf = NaiveBayesClassifier().fit(WEATHER, ["stay"] * 4)
    with pytest.raises(InputError, match="only class is 'stay'"):
        clf.explain(WEATHER)


def test_labels_match_by_value_or_text() -> None:
    """Integer classes are found by 1, 1.0 and '1'."""
    clf = NaiveBayesClassifier().fit(WEATHER, [0, 0, 0, 1])
    first = clf.explain(WEATHER, [0, 0, 0, 1]).log_margins
    assert np.array_equal(clf.explain(WEATHER, [0.0, 0.0, 0.0, 1.0]).log_margins, first)
    assert np.array_equal(clf.explain(WEATHER, ["0", "0", "0", "1"]).log_margins, first)
