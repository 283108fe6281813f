"""Figures of the paper that need no tuning, on the splits of the data folder.

Accuracies are those of table 2 of Peharz and Pernkopf (2012). The optima of mofn-3-7-10 were
computed once by two independent solvers and are kept to four decimals.
"""

import math

import pytest

from data_folder import data_folder
from marginbn import GenerativeBNClassifier, MaxMarginBNClassifier, NaiveBayesClassifier
from marginbn.datasets import load_folder_dataset


def accuracy(classifier, name):
    """Test accuracy in per cent, to the two digits that the paper prints."""
    dataset = load_folder_dataset(name, data_folder())
    fitted = classifier.fit(dataset.train.drop("class"), dataset.train.column("class").values)
    score = fitted.score(dataset.test.drop("class"), dataset.test.column("class").values)
    return round(100 * score, 2)


def gamma(p):
    return math.log(p / (1 - p))


@pytest.mark.parametrize(("name", "figure"), [("chess", 87.34), ("mofn-3-7-10", 86.72)])
def test_naive_bayes(name, figure):
    assert accuracy(NaiveBayesClassifier(), name) == figure


@pytest.mark.parametrize(
    ("name", "figure", "objective"),
    [("chess", 91.74, -26384.022), ("mofn-3-7-10", 88.28, -2202.5831)],
)
def test_mdl(name, figure, objective):
    classifier = GenerativeBNClassifier(score="mdl", max_parents=2)
    assert accuracy(classifier, name) == figure
    assert classifier.objective_ == pytest.approx(objective, abs=5e-4)
    assert classifier.status_ == "optimal"


@pytest.mark.parametrize("p", [0.6, 0.8])
def test_soft_margin(p):
    assert accuracy(MaxMarginBNClassifier(gamma=gamma(p)), "mofn-3-7-10") == 92.19


@pytest.mark.parametrize(("p", "optimum"), [(0.6, 110.0555), (0.9, 524.8756), (0.99, 804.5371)])
def test_soft_margin_optimum(p, optimum):
    """The optimum of mofn-3-7-10 (300 rows) is proven and has the known value."""
    classifier = MaxMarginBNClassifier(gamma=gamma(p))
    accuracy(classifier, "mofn-3-7-10")
    assert classifier.status_ == "optimal"
    assert classifier.objective_ == pytest.approx(optimum, abs=5e-5)
