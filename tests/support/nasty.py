"""A classifier whose names try everything that could break a page."""

from __future__ import annotations

import numpy as np

from marginbn import NaiveBayesClassifier

NAMES = (
    "</script><script>window.broken = 1</script>",
    "\"><img src=x onerror='window.broken = 2'>",
    "a, b; c = 'd' & e < f > g",
    "smile \U0001f600, family \U0001f468‍\U0001f469‍\U0001f467, עברית",
    "long " + "x" * 195,
    "<!-- <b>&lt;b&gt;</b> ${window.broken = 3} `",
    "tab\tand\nline \x00 null \u2028 end\u202e reversed",
    " ",
)
STATES = (
    "</script>",
    "<!--<script>",
    "\" onmouseover='window.broken = 4'",
    "\U0001f680",
    "y" * 200,
    "],}",
    "\\u003c\\",
)


def nasty_classifier() -> NaiveBayesClassifier:
    """Every name and every state is there, and the class is called badly too."""
    rng = np.random.default_rng(0)
    X = np.array(STATES, dtype=object)[rng.integers(len(STATES), size=(80, len(NAMES)))]
    X[: len(STATES)] = np.array(STATES, dtype=object)[:, np.newaxis]
    y = np.array(["<i>yes</i>", "no & no", "</title>"])[rng.integers(3, size=80)]
    import pandas as pd

    return NaiveBayesClassifier().fit(
        pd.DataFrame(X, columns=list(NAMES)), pd.Series(y, name="<h1>class</h1>")
    )
