"""Classifiers: siblings that differ in how they find the structure."""

from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.generative import GenerativeBNClassifier
from marginbn.classifiers.max_margin import MaxMarginBNClassifier
from marginbn.classifiers.max_margin_cv import MaxMarginBNClassifierCV
from marginbn.classifiers.naive_bayes import NaiveBayesClassifier, TANClassifier

__all__ = [
    "BaseBNClassifier",
    "GenerativeBNClassifier",
    "MaxMarginBNClassifier",
    "MaxMarginBNClassifierCV",
    "NaiveBayesClassifier",
    "TANClassifier",
]
