"""What a fit is said to have found: right in words, complete in JSON, within 80 columns."""

from __future__ import annotations

import json
import math
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from marginbn import (
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    Search,
    TANClassifier,
)
from marginbn.classifiers import BaseBNClassifier
from marginbn.classifiers.measures import Quality
from marginbn.classifiers.model_file import Provenance
from marginbn.datasets import load_dataset
from marginbn.network.wording import align, counted, hanging, number, percent, seconds
from marginbn.report.summary import (
    describe,
    describe_structure,
    describe_tables,
    ignored_features,
    quality_verdict,
    score_name,
    summarise,
    verdict,
)
from marginbn.solvers.result import Status
from networks import random_network, sprinkler


def on_iris(classifier: BaseBNClassifier) -> BaseBNClassifier:
    table = load_dataset("iris").train
    return classifier.fit(table.drop("class"), table.column("class").values)


@pytest.fixture(scope="module")
def margin() -> BaseBNClassifier:
    return on_iris(MaxMarginBNClassifier(search=Search(solver="branch_bound"), max_parents=1))


def stopped(classifier: BaseBNClassifier, status: Status, bound: float) -> BaseBNClassifier:
    other = MaxMarginBNClassifier()
    other.__dict__.update(classifier.__dict__)
    other.result_ = replace(classifier.result_, status=status, bound=bound)
    return other


def test_the_verdict_is_one_sentence(margin: BaseBNClassifier) -> None:
    """Proven, stopped with a gap, without any bound: each says what is known."""
    assert verdict(margin) == "Proved: largest soft margin of all allowed structures."
    bound = margin.objective_ / (1 - 0.004)
    assert verdict(stopped(margin, Status.TIME_LIMIT, bound)) == (
        "Proved: within 0.40 % of the largest soft margin of all allowed structures "
        "(stopped by the time limit)."
    )
    assert verdict(stopped(margin, Status.INTERRUPTED, math.inf)) == (
        "Nothing proved: no bound on the soft margin is known yet (interrupted)."
    )


@pytest.mark.parametrize(
    ("classifier", "beginning", "score"),
    [
        (NaiveBayesClassifier(), "Naive Bayes: the structure is fixed", "log likelihood"),
        (TANClassifier(), "Proved: largest log likelihood of all trees", "log likelihood"),
        (
            GenerativeBNClassifier(search=Search(solver="dp")),
            "Proved: best MDL score of all allowed",
            "MDL score",
        ),
        (
            MaxMarginBNClassifier(
                margin="binary", gamma=math.log(4), search=Search(solver="highs")
            ),
            "Proved: largest binary soft margin of all allowed structures",
            "binary soft margin, gamma = 1.386 (p = 0.8)",
        ),
        (
            MaxMarginBNClassifierCV(
                gammas=[math.log(9)], max_parents=(1,), cv=2, search=Search(solver="highs")
            ),
            "Proved: largest soft margin of all allowed",
            "soft margin, gamma = 2.197 (p = 0.9)",
        ),
    ],
)
def test_every_classifier_names_its_score(classifier, beginning, score):
    fitted = on_iris(classifier)
    assert verdict(fitted).startswith(beginning)
    assert score_name(fitted) == score
    assert summarise(fitted)["score"] == score


def test_a_single_class_is_nothing_to_separate() -> None:
    fitted = MaxMarginBNClassifier().fit([[1.0], [2.0]], ["a", "a"])
    assert "only one class" in verdict(fitted)
    json.dumps(summarise(fitted), allow_nan=False)


def test_the_summary_is_json_and_agrees_with_the_attributes(margin: BaseBNClassifier) -> None:
    """Numbers keep all digits, infinities become null, names are those of the table."""
    quality = measured(["a"] * 9 + ["b"], ["a"] * 10)
    summary = json.loads(json.dumps(summarise(margin, quality), allow_nan=False))
    assert summary["objective"] == margin.objective_
    assert summary["bound"] == margin.bound_
    assert summary["gap"] == margin.gap_
    assert (summary["status"], summary["proved"]) == ("optimal", True)
    assert summary["classes"] == ["setosa", "versicolor", "virginica"]
    assert summary["n_parameters"] == margin.network_.n_parameters
    names = margin.network_.names
    assert summary["structure"] == {
        names[i]: [names[p] for p in parents] for i, parents in enumerate(margin.structure_.parents)
    }
    assert (summary["quality"]["accuracy"], summary["quality"]["n_rows"]) == (0.9, 10)
    open_ended = summarise(stopped(margin, Status.INTERRUPTED, math.inf))
    assert (open_ended["bound"], open_ended["gap"]) == (None, None)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_text_fits_the_terminal(margin: BaseBNClassifier, width: int) -> None:
    text = describe(margin, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert f"objective   {margin.objective_:.4f}" in text
    assert "classes     3: setosa, versicolor, virginica" in text


def test_dropped_rows_and_constant_features_are_reported() -> None:
    """What was set aside shows in the text and in the summary."""
    X = [[1.0, "u"], [2.0, "u"], [None, "u"], [2.5, "u"], [0.5, "u"]]
    with pytest.warns(UserWarning, match="left out"):
        fitted = NaiveBayesClassifier(missing="drop").fit(
            np.array(X, dtype=object), ["a", "b", "a", "b", "a"]
        )
    text = describe(fitted)
    assert "1 left out for missing values" in text
    assert "x1" in summarise(fitted)["constant_features"]
    assert "constant: " in text
    assert summarise(fitted)["n_dropped"] == 1


def test_the_sprinkler_in_words() -> None:
    lines = ["  rain: no parents", "  sprinkler <- rain", "  grass <- rain, sprinkler"]
    assert describe_structure(sprinkler()) == lines
    tables = describe_tables(sprinkler())
    assert tables.startswith("P(rain)\n        no     yes\n    0.8000  0.2000\n")
    assert "P(grass | rain, sprinkler)\n" in tables
    assert "no, off" in tables


@pytest.mark.parametrize("seed", range(5))
def test_every_arc_is_said_once(seed: int) -> None:
    """The lines name every connected child once, with exactly its parents, at any width."""
    network = random_network(seed, n_variables=6)
    said: dict[str, list[str]] = {}
    for line in describe_structure(network, 1000):
        children, arrow, parents = line.strip().partition(" <- ")
        if arrow:
            said |= {child: parents.split(", ") for child in children.split(", ")}
    names = network.names
    assert said == {
        names[i]: [names[p] for p in parents]
        for i, parents in enumerate(network.structure.parents)
        if parents
    }
    connected = {names[v] for arc in network.structure.arcs for v in arc}
    assert set(ignored_features(network)) == set(names[1:]) - connected


@pytest.mark.parametrize("width", [40, 200])
def test_tables_show_every_probability(width: int) -> None:
    network = random_network(1, n_variables=4)
    printed = describe_tables(network, width).split()
    for table in network.log_tables:
        for value in np.exp(table).ravel():
            assert f"{value:.4f}" in printed


def measured(predicted: list[str], labels: list[str]) -> Quality:
    """Quality of predictions that are certain."""
    certain = [[float(label == name) for name in "ab"] for label in predicted]
    return Quality.measure(["a", "b"], labels, certain)


def test_numbers_read_well() -> None:
    assert [percent(x) for x in (0.0, 1.0, 0.123456, 2.4e-5, 1e-6, 1e-8, math.inf)] == [
        "0 %",
        "100.00 %",
        "12.35 %",
        "0.0024 %",
        "0.0001 %",
        "< 0.0001 %",
        "unknown",
    ]
    assert [number(x) for x in (110.05551, -math.inf)] == ["110.0555", "unknown"]
    assert [seconds(x) for x in (0.123, 59.4, 125.0)] == ["0.12 s", "59 s", "2 min 5 s"]
    assert (counted(1, "row"), counted(0, "row")) == ("1 row", "0 rows")


def test_layout_by_hand() -> None:
    """First column left, others right; a part is never broken."""
    assert align([["a", "10"], ["bbb", "9"]]) == ["  a    10", "  bbb   9"]
    assert hanging("", ["x" * 30 + " y,", "z z"], 40) == [f"  {'x' * 30} y, z z"]
    assert hanging("l ", ["x" * 30 + " y,", "zz zz"], 40) == [f"  l {'x' * 30} y,", "    zz zz"]


def test_the_second_half_of_the_verdict(margin: MaxMarginBNClassifier) -> None:
    """How good it classifies stands right below how good the search was, whatever that found."""
    labels = ["a"] * 7 + ["b"] * 3
    good = measured(["a"] * 7 + ["b", "b", "a"], labels)
    lines = describe(margin, good).splitlines()
    assert lines[0].startswith("Proved: largest")
    expected = "Accuracy on 10 held-out rows: 90.0 % ± 30.4 (majority class 70.0 %); log loss "
    assert " ".join(lines[1:3]).startswith(expected)
    bad = measured(["b"] * 10, labels)
    text = " ".join(describe(margin, bad).splitlines()[1:3])
    assert "30.0 % ± 30.3 (no better than the majority class, 70.0 %); log loss " in text
    assert quality_verdict(margin).endswith("was not measured on held-out rows.")
    told = copy(margin)
    told.provenance_ = Provenance(held_out={"accuracy": 0.75, "n_rows": 40})
    assert quality_verdict(told) == "Accuracy on 40 held-out rows: 75.0 %, by its file."
    assert summarise(margin, good)["quality_verdict"] == quality_verdict(margin, good)
