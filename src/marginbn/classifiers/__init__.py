"""Classifiers: siblings that differ in how they find the structure."""

from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.bn_classifier import BNClassifier
from marginbn.classifiers.max_margin_cv import MaxMarginBNClassifierCV
from marginbn.classifiers.naive_bayes import NaiveBayesClassifier, TANClassifier
from marginbn.classifiers.search import GenerativeBNClassifier, MaxMarginBNClassifier

__all__ = [
    "BNClassifier",
    "BaseBNClassifier",
    "GenerativeBNClassifier",
    "MaxMarginBNClassifier",
    "MaxMarginBNClassifierCV",
    "NaiveBayesClassifier",
    "TANClassifier",
]
