"""The methods that are compared, each a function from a :class:`Task` to an :class:`Outcome`.

    nb    naive Bayes                          sm    exact soft margin, gamma and parents validated
    tan   tree-augmented naive Bayes           sbm   exact binary soft margin, the same
    mdl   exact MDL, 1 or 2 parents validated  svm   support vector machine, RBF kernel
    bdeu  exact BDeu augmented naive Bayes     hgb   gradient boosting     lr   logistic regression

``gap-sm`` and ``gap-sbm`` are the searches behind table 1: no validation, nothing is predicted.
A method sees the test features only to predict them and never the test labels.
"""

from __future__ import annotations

from collections.abc import Callable

from experiments.networks import bdeu, largest_margin, max_margin, mdl, naive_bayes, tan
from experiments.outcome import Outcome
from experiments.protocol import Task
from experiments.rivals import boosting, logistic, support_vectors

METHODS: dict[str, Callable[[Task], Outcome]] = {
    "nb": naive_bayes,
    "tan": tan,
    "mdl": mdl,
    "sm": max_margin("multiclass"),
    "sbm": max_margin("binary"),
    "svm": support_vectors,
    "bdeu": bdeu,
    "hgb": boosting,
    "lr": logistic,
}
TABLE1_METHODS: dict[str, Callable[[Task], Outcome]] = {
    "gap-sm": largest_margin("multiclass"),
    "gap-sbm": largest_margin("binary"),
}
LABELS = {
    "nb": "NB",
    "tan": "TAN",
    "mdl": "MDL",
    "sm": "SM",
    "sbm": "SBM",
    "svm": "SVM",
    "bdeu": "BDeu",
    "hgb": "boosting",
    "lr": "logistic",
}
