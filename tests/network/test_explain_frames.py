"""Explanations as columns and in notebooks."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from marginbn import TANClassifier, load_model, save_model
from marginbn.exceptions import DataWarning
from marginbn.network.explain import Contribution

RNG = np.random.default_rng(1)
CLASS = RNG.integers(0, 3, 120)
COLUMNS = {"label": (CLASS + RNG.integers(0, 2, 120)) % 3, "size": CLASS + RNG.random(120)}
X = pd.DataFrame(COLUMNS)


@pytest.fixture(scope="module")
def clf():
    """A tree over a category that is called "label" and a number."""
    with pytest.warns(DataWarning, match="'size' alone gives the class away"):
        return TANClassifier().fit(X, pd.Series(CLASS, name="kind"))


def test_the_columns_have_a_row_per_explanation(clf):
    """All numbers of the single explanations, contributions under the names of the variables."""
    found = clf.explain(X)
    frame = pd.DataFrame(found.columns())
    names = ["row", "label", "rival", "predicted", "probability", "log_margin"]
    assert list(frame) == [*names, "kind", "contribution of label", "size"]
    for k in (0, 7):
        one = found[k]
        assert frame.loc[k, names[:4]].tolist() == [one.row, one.label, one.rival, one.predicted]
        assert frame.loc[k, "probability"] == pytest.approx(one.probability)
    parts = frame[["kind", "contribution of label", "size"]]
    assert parts.sum(axis=1).to_numpy() == pytest.approx(frame["log_margin"].to_numpy())
    assert frame["probability"].to_numpy() == pytest.approx(clf.predict_proba(X).max(axis=1))
    assert pl.DataFrame(found[3:5].columns())["row"].to_list() == [3, 4]


def test_notebooks_show_bars(clf):
    one = clf.explain(X)[0]
    assert one._repr_html_().count("<rect") == sum(c.value != 0 for c in one.contributions) + 1
    assert clf.explain(X)._repr_html_().endswith("(120 rows in all)</p>")
    nasty = Contribution("<script>", "a", 1.0)
    html = type(one)(0, "a", "b", "a", 0.7, 1.0, (nasty,))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt; = a" in html


def test_a_single_bin_is_never_told_as_a_state():
    """A number without cuts but with missing values: known, or missing."""
    frame = pd.DataFrame({"age": np.where(CLASS == 1, np.nan, RNG.random(120)), "b": CLASS % 2})
    clf = TANClassifier(missing="state").fit(frame, CLASS == 1)
    texts = [str(clf.explain(frame.iloc[[k]])[0]) for k in range(12)]
    assert any("age known" in text for text in texts)
    assert not any("age = all" in text or "any number" in text for text in texts)


def test_a_classifier_shows_its_network_below_the_box(clf, tmp_path):
    """scikit-learn's diagram stays; unfitted there is nothing to add."""
    html = clf._repr_html_()
    assert "sk-top-container" in html
    assert "<svg" in html
    assert "2 features" in html
    assert clf._repr_mimebundle_()["text/html"].count("Measure its accuracy") == 1
    assert "<svg" not in TANClassifier()._repr_html_()
    save_model(clf, tmp_path / "model.json")
    assert "claimed by the file" in load_model(tmp_path / "model.json")._repr_html_()
    table = clf.result_._repr_html_()
    assert "<th>status</th><td>optimal</td>" in table
