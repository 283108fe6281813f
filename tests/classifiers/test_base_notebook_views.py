"""What notebooks show of a classifier, its result, explanations and data: true, and harmless."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd

from marginbn import MaxMarginBNClassifier, NaiveBayesClassifier, Search, inspect_data
from marginbn.network.wording import percent
from nasty import nasty_classifier


def table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    X = pd.DataFrame({"a<b": (y + (rng.random(60) < 0.2)).astype(str), "c": rng.random(60)})
    return X, pd.Series(np.where(y, "<yes>", "no"), name="y&z")


def test_a_classifier_shows_its_network_and_both_halves() -> None:
    """How the search ended with its gap, and that this says nothing about new rows."""
    fitted = MaxMarginBNClassifier(max_parents=1, search=Search(solver="branch_bound")).fit(
        *table()
    )
    html = fitted._repr_html_()
    picture = html[html.index("<figure") :]
    assert picture == fitted._repr_mimebundle_()["text/html"][-len(picture) :]
    assert f"structure: optimal (branch_bound), gap {escape(percent(fitted.gap_))}" in html
    assert "Measure its accuracy on held-out rows" in html
    assert html.count("data-variable=") == fitted.network_.n_variables
    assert "a&lt;b" in html
    assert "<svg" not in NaiveBayesClassifier()._repr_html_()  # nothing learned, nothing shown


def test_a_result_shows_its_numbers() -> None:
    """Status, objective, bound and gap as they are."""
    result = (
        MaxMarginBNClassifier(max_parents=1, search=Search(solver="branch_bound"))
        .fit(*table())
        .result_
    )
    html = result._repr_html_()
    assert "<td>optimal</td>" in html
    assert html.count(f"{result.objective:.6g}") == 2  # the bound is the same


def test_no_name_becomes_markup() -> None:
    """Of classifiers, explanations and data reports."""
    fitted = nasty_classifier()
    X = pd.DataFrame({name: ["</script>"] for name in fitted.feature_names_in_})
    data, labels = table()
    for html in (
        fitted._repr_html_(),
        fitted.explain(X)._repr_html_(),
        fitted.explain(X)[0]._repr_html_(),
        inspect_data(data, labels)._repr_html_(),
    ):
        assert "<img" not in html
        assert "window.broken = 1</script>" not in html
        assert "<yes>" not in html
        assert "a<b" not in html
