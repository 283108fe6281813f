"""The report as a file: complete, well-formed, harmless, small, and true to the classifier."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from commands import run
from marginbn import (
    BNClassifier,
    DataWarning,
    GenerativeBNClassifier,
    InputError,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    Search,
    TANClassifier,
    __version__,
    inspect_data,
    load_model,
    make_report,
    save_model,
)
from marginbn.classifiers.evaluation import (
    LogisticBaseline,
    MajorityBaseline,
    accuracy_interval,
    cross_validate,
)
from marginbn.classifiers.measures import Quality
from marginbn.report import page as assets
from marginbn.report.charts import Markup, element
from marginbn.report.comparison import compare_by_folds, compare_on_test, read_rows, unfitted
from marginbn.report.page import (
    content_policy,
    join_scripts,
    network_values,
    read_asset,
    to_script_json,
)
from marginbn.report.summary import verdict
from nasty import NAMES, STATES, nasty_classifier
from networks import random_network, sprinkler

VOID = {"meta", "link", "br", "img", "input"}
SECTIONS = ["case", "effects", "quality", "network", "details"]


class Page(HTMLParser):
    """Checks that every element is closed, and keeps texts, attributes and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID and not (self.get_starttag_text() or "").endswith("/>"):
            self.open.append(tag)
            if tag == "script":
                self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def values(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])


def read_page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def iris() -> tuple[pd.DataFrame, pd.Series]:
    return load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def margin(iris: tuple[pd.DataFrame, pd.Series]) -> MaxMarginBNClassifier:
    return MaxMarginBNClassifier(max_parents=1, search=Search(solver="branch_bound")).fit(*iris)


def test_a_page_has_all_sections_and_the_verdict(margin, iris, tmp_path):
    """Verdict, numbers, sections with headings, a link to each, accuracies of three methods."""
    make_report(margin, *iris, title="Flowers", n_folds=5).save(tmp_path / "r.html")
    page = read_page(tmp_path / "r.html")
    assert verdict(margin) in page.text
    assert "Proved: largest soft margin" in page.text
    assert "Flowers" in page.text
    assert [a["id"] for t, a in page.seen if t == "section" and "id" in a] == SECTIONS
    links = [a["href"] for t, a in page.seen if t == "a"]
    assert links[-len(SECTIONS) :] == [f"#{key}" for key in SECTIONS]
    assert set(links) == {f"#{key}" for key in SECTIONS}
    for words in ("5-fold cross-validation on 150 rows", "naive Bayes", "TAN", "this classifier"):
        assert words in page.text


def test_the_embedded_network_is_the_classifiers_bit_for_bit(margin, tmp_path):
    make_report(margin).save(tmp_path / "r.html")
    values = read_page(tmp_path / "r.html").values["network"]
    network = margin.network_
    assert [v["name"] for v in values["variables"]] == list(network.names)
    assert [tuple(v["states"]) for v in values["variables"]] == [
        v.states for v in network.variables
    ]
    assert [tuple(p) for p in values["parents"]] == list(network.structure.parents)
    numbers = np.frombuffer(base64.b64decode(values["tables"]), "<f8")
    np.testing.assert_array_equal(numbers, np.concatenate([t.ravel() for t in network.log_tables]))


@pytest.mark.parametrize(
    "classifier",
    [
        NaiveBayesClassifier(),
        TANClassifier(),
        GenerativeBNClassifier(class_restricted=False, max_parents=3, search=Search(solver="dp")),
        MaxMarginBNClassifierCV(
            gammas=[1.0], max_parents=[1], search=Search(solver="branch_bound"), cv=2
        ),
    ],
    ids=lambda c: type(c).__name__,
)
def test_every_classifier_has_a_page(classifier, iris, tmp_path):
    fitted = classifier.fit(*iris)
    make_report(fitted).save(tmp_path / "alone.html")
    assert "Not measured on held-out rows" in read_page(tmp_path / "alone.html").text
    make_report(fitted, *iris, n_folds=2).save(tmp_path / "rows.html")
    page = read_page(tmp_path / "rows.html")
    assert verdict(fitted) in page.text
    assert "2-fold cross-validation" in page.text


def test_a_single_class_has_a_page(tmp_path: Path) -> None:
    """There is nothing to explain, and the page says what there is."""
    X, y = np.array([[1.0], [2.0], [3.0]]), ["a", "a", "a"]
    make_report(MaxMarginBNClassifier().fit(X, y), X, y).save(tmp_path / "r.html")
    assert "only one class" in read_page(tmp_path / "r.html").text


def test_names_stay_text(tmp_path: Path) -> None:
    """Markup in names makes no element, no attribute and no script; all names arrive."""
    classifier = nasty_classifier()
    make_report(classifier, title="<b>\"bold\" & 'brave'</b>").save(tmp_path / "r.html")
    page = read_page(tmp_path / "r.html")
    assert len(page.scripts) == 2
    assert "img" not in {tag for tag, _ in page.seen}
    assert not [k for _, attributes in page.seen for k in attributes if k.startswith("on")]
    found = [v["name"] for v in page.values["network"]["variables"]]
    assert found == ["<h1>class</h1>", *NAMES]
    assert set(page.values["network"]["variables"][1]["states"]) == set(STATES)
    assert [t for t, _ in page.seen].count("h1") == 1


def test_the_file_is_plain_utf_8_without_odd_characters(tmp_path: Path) -> None:
    """No null, no line separator, no direction mark from a name is left in the text itself."""
    make_report(nasty_classifier()).save(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_bytes().decode("utf-8")
    assert not re.search("[\x00\u2028\u202e]", text)


def test_the_policy_allows_the_script_of_the_page_only(margin, tmp_path):
    """The hash in the page's policy is that of its script, and nothing may be loaded."""
    make_report(margin).save(tmp_path / "r.html")
    page = read_page(tmp_path / "r.html")
    (policy,) = (
        str(a["content"]) for _, a in page.seen if a.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy == content_policy(page.scripts[1])
    assert policy.startswith("default-src 'none';")


def test_the_page_links_to_nothing(margin, iris, tmp_path):
    make_report(margin, *iris, n_folds=2).save(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    links = [a.get("href") or a.get("src") for _, a in page.seen if {"href", "src"} & set(a)]
    assert all(str(link).startswith(("#", "data:")) for link in links)
    without_names = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|url\(|@import|//cdn", without_names)


def test_script_json_cannot_end_its_script() -> None:
    """Whatever is inside, no angle bracket is left, and it reads back."""
    value = ["</script><!--<script>", "\ud800 half", "\u2028", {"&": ">"}]
    text = to_script_json(value)
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text) == value


def test_elements_escape_everything_but_markup() -> None:
    """By hand: children and attributes are escaped, markup is kept, None is left out."""
    inner = element("b", 'x < "y"')
    assert inner == "<b>x &lt; &quot;y&quot;</b>"
    outer = element("p", inner, "&", class_='a"b', data_row=3, title=None)
    assert outer == '<p class="a&quot;b" data-row="3"><b>x &lt; &quot;y&quot;</b>&amp;</p>'
    assert isinstance(outer, Markup)


def test_scripts_import_only_what_comes_before() -> None:
    """Joined in this order, no script uses a name that is not there yet; none is there twice."""
    known: set[str] = set()
    for script in assets.SCRIPTS:
        source = read_asset(f"{script}.js")
        for names, origin in re.findall(r'import \{([^}]*)\} from "\./(\w+)\.js"', source):
            assert origin in assets.SCRIPTS[: assets.SCRIPTS.index(script)]
            assert {n.strip() for n in names.split(",") if n.strip()} <= known
        declared = re.findall(r"^(?:export )?(?:function|class|const) (\w+)", source, re.MULTILINE)
        assert len(declared) == len(set(declared) - known)
        known |= set(declared)
    joined = join_scripts()
    assert not re.search(r"^(import|export) ", joined, re.MULTILINE)
    assert "</script" not in joined.lower()
    assert "<!--" not in joined


def test_scripts_never_make_markup_of_text() -> None:
    for script in assets.SCRIPTS:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function",
            read_asset(f"{script}.js"),
        )


def test_folds_are_those_of_evaluate(margin, iris):
    rows = read_rows(margin, *iris)
    comparison = compare_by_folds(margin, rows, 3)
    makers = {
        "this classifier": lambda: unfitted(margin),
        "TAN": TANClassifier,
        "naive Bayes": NaiveBayesClassifier,
        "logistic regression": LogisticBaseline,
        "most frequent class": MajorityBaseline,
    }
    assert [entry.name for entry in comparison.methods] == [*makers]
    for entry, make in zip(comparison.methods, makers.values(), strict=True):
        expected = cross_validate(make, rows.features, rows.labels, 3)
        assert (entry.accuracy, entry.half_width) == (expected.mean, expected.half_width)
        assert entry.quality == expected.quality


def test_test_rows_by_hand(iris: tuple[pd.DataFrame, pd.Series]) -> None:
    """The classifier is measured as it is, on exactly the test rows."""
    X, y = iris
    fitted = NaiveBayesClassifier().fit(X[::2], y[::2])
    rows, test = (read_rows(fitted, X[k::2], y[k::2]) for k in (0, 1))
    comparison = compare_on_test(fitted, rows, test)
    names = ["this classifier", "TAN", "logistic regression", "most frequent class"]
    assert [m.name for m in comparison.methods] == names
    assert comparison.own.quality == Quality.measure(
        fitted.classes_.tolist(), test.labels, fitted.predict_proba(X[1::2])
    )
    assert comparison.methods[0].accuracy == fitted.score(X[1::2], y[1::2])
    assert comparison.methods[1].accuracy == TANClassifier().fit(X[::2], y[::2]).score(
        X[1::2], y[1::2]
    )
    assert "75 test rows" in comparison.protocol


def test_the_method_is_repeated_with_its_settings(iris: tuple[pd.DataFrame, pd.Series]) -> None:
    """Arcs by name become indices, the time limit only shrinks, chosen parameters are kept."""
    X, y = iris
    arcs = [("target", "petal width (cm)")]
    fitted = MaxMarginBNClassifier(
        max_parents=1,
        required_arcs=arcs,
        time_limit=None,
        gamma=1.5,
        search=Search(solver="branch_bound"),
    ).fit(X, y)
    again = unfitted(fitted)
    assert again.get_params()["required_arcs"] == [(0, 4)]
    assert (again.time_limit, again.gamma) == (10.0, 1.5)
    assert unfitted(fitted.set_params(time_limit=3.0)).time_limit == 3.0
    chosen = MaxMarginBNClassifierCV(gammas=[1.0], max_parents=[1], cv=[([*range(149)], [149])])
    repeated = unfitted(chosen.fit(X, y))
    assert type(repeated) is MaxMarginBNClassifierCV
    assert (repeated.gammas, repeated.cv) == ([1.0], None)


def test_an_interrupt_leaves_the_accuracy_out(margin, iris, tmp_path):
    """Ctrl-C while folds are measured still gives a page, which says what is missing."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="was interrupted"):
        make_report(margin, *iris, n_folds=2, on_fold=interrupt).save(tmp_path / "r.html")
    text = read_page(tmp_path / "r.html").text
    assert "The comparison with simpler methods was interrupted" in text


def test_wrong_arguments_are_told(margin, iris, tmp_path):
    X, y = iris
    path = tmp_path / "r.html"
    with pytest.raises(InputError, match="X and y must be given together"):
        make_report(margin, X).save(path)
    with pytest.raises(InputError, match="X_test needs X"):
        make_report(margin, X_test=X, y_test=y).save(path)
    with pytest.raises(InputError, match="y must have one label per row, 150, got 149"):
        make_report(margin, X, y[1:]).save(path)
    with pytest.raises(InputError, match="fitted classifier of marginbn, got BayesianNetwork"):
        make_report(sprinkler()).save(path)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="n_folds must be 0 or at least 2, got 1"):
        make_report(margin, X, y, n_folds=1).save(path)
    assert not path.exists()


def test_large_tables_stay_small_files() -> None:
    """An entry costs eleven characters: forty thousand of them are well below 2 MB."""
    network = random_network(0, 30, max_parents=4, max_arity=6)
    cells = sum(t.size for t in network.log_tables)
    assert len(json.dumps(network_values(network))) < 11 * cells + 10_000


def test_same_input_same_page(margin, monkeypatch):
    """Making it twice gives the same bytes, but for the day."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert make_report(margin).html == make_report(margin).html


# --- what the first screen says -------------------------------------------------------------------


def test_quality_and_proof_are_told_and_neither_hides_the_other(margin, iris):
    """The accuracy with its interval next to the proof; and that nothing was measured."""
    X, y = iris
    page = Page(make_report(margin, X, y, n_folds=3).html)
    comparison = compare_by_folds(margin, read_rows(margin, X, y), 3)
    own, guess = comparison.own, comparison.methods[-1]
    assert guess.name == "most frequent class"
    half = max(own.half_width, accuracy_interval(own.accuracy, len(y)))
    low, high = own.accuracy - half, min(1.0, own.accuracy + half)
    assert f"{100 * own.accuracy:.1f} % right on 150 rows in 3 folds" in page.text
    assert f"({100 * low:.1f} to {100 * high:.1f} %)" in page.text
    assert f"most frequent class gives {100 * guess.accuracy:.1f} %" in page.text
    assert verdict(margin) in page.text
    alone = Page(make_report(margin).html).text
    assert "Not measured on held-out rows" in alone
    assert verdict(margin) in alone


def test_a_bad_classifier_is_called_bad() -> None:
    """Noise under a proof: no better than always naming the most frequent class."""
    rng = np.random.default_rng(0)
    X = rng.integers(6, size=(60, 4)).astype(str)
    y = np.where(rng.random(60) < 0.8, "usual", "rare")
    fitted = MaxMarginBNClassifier(max_parents=1, search=Search(solver="branch_bound")).fit(X, y)
    page = Page(make_report(fitted, X, y, n_folds=5).html)
    assert "card bad" in [a.get("class") for _, a in page.seen]
    assert "no better than always naming the most frequent class" in page.text
    assert "of the rows of class rare" in page.text
    assert "Proved: largest soft margin" in page.text


def test_what_a_model_file_says_is_shown_without_rows(saved: Path) -> None:
    """Numbers of a counted model, measured when it was learned."""
    page = saved.with_name("r.html")
    options = ["-t", "y", "--method", "naive-bayes", "-q"]
    assert run("fit", saved.with_name("toy.csv"), *options, "-o", saved).exit_code == 0
    assert run("report", saved, "-o", page, "-q").exit_code == 0
    n_rows = load_model(saved).provenance_.held_out["n_rows"]
    assert f"right on {n_rows:.0f} held-out rows" in read_page(page).text


def two_classes(n_rows: int = 200) -> tuple[pd.DataFrame, pd.Series]:
    """A number and a category that tell the class, one that does not, an identifier."""
    rng = np.random.default_rng(0)
    y = rng.random(n_rows) < 0.3
    X = pd.DataFrame(
        {
            "name": [f"row {i}" for i in range(n_rows)],
            "age": rng.normal(40 + 10 * y, 8).round(1),
            "plan": np.where(rng.random(n_rows) < 0.3 + 0.4 * y, "short", "long"),
            "noise": rng.choice(["u", "v"], size=n_rows),
        }
    )
    return X, pd.Series(np.where(y, "yes", "no"), name="left")


@pytest.fixture(scope="module")
def default() -> BNClassifier:
    with pytest.warns(DataWarning):
        return BNClassifier().fit(*two_classes())


def test_the_accuracy_of_the_page_is_that_of_the_held_out_rows(default, tmp_path):
    """In Python and from a model file: fit, show and page have one number."""
    held_out = default.held_out_
    assert held_out is not None
    quality = Quality.measure(default.classes_.tolist(), held_out.labels, held_out.probabilities)
    save_model(default, tmp_path / "m.json")
    for model in (default, load_model(tmp_path / "m.json")):
        page = Page(make_report(model).html)
        expected = f"{100 * quality.accuracy:.1f} % right on 200 rows, each held out once"
        assert expected in page.text
        assert page.values["threshold"]["above"] == [list(pair) for pair in quality.above]
        assert page.values["threshold"]["totals"] == [c.n_rows for c in quality.classes[::-1]]
        assert f"log loss {quality.log_loss:.3f}" in page.text


def test_fit_and_report_have_one_accuracy(tmp_path: Path) -> None:
    """What fit printed about the held-out rows is on the page of the model file."""
    X, y = two_classes()
    X.assign(left=y).to_csv(tmp_path / "t.csv", index=False)
    options = ["--target", "left", "-o", tmp_path / "m.json"]
    printed = " ".join(run("fit", tmp_path / "t.csv", *options).stdout.split())
    found = re.search(
        r"Accuracy on (\d+) rows, each held out once: ([\d.]+) % ± [\d.]+ "
        r"\(majority class ([\d.]+) %, "
        r"logistic regression ([\d.]+) %\); log loss ([\d.]+), AUC ([\d.]+)",
        printed,
    )
    assert found is not None
    n_rows, accuracy, majority, logistic, log_loss, auc = found.groups()
    assert run("report", tmp_path / "m.json", "-o", tmp_path / "r.html", "-q").exit_code == 0
    text = read_page(tmp_path / "r.html").text
    assert f"{accuracy} % right on {n_rows} rows, each held out once" in text
    assert f"most frequent class gives {majority} %" in text
    assert f"Logistic regression gets {logistic} % right" in text
    assert f"log loss {log_loss}" in text
    assert f"AUC {auc}" in text


def test_quality_that_fit_measured_on_other_rows_is_told_apart(default, tmp_path):
    """A test set at fit: the page measures the held-out rows, and names the other number."""
    save_model(default, tmp_path / "m.json", held_out={"accuracy": 0.875, "n_rows": 80})
    text = Page(make_report(load_model(tmp_path / "m.json")).html).text
    assert "% right on 200 rows, each held out once" in text
    assert "On 80 other rows, fit measured 87.5 %." in text


def test_the_page_says_what_kind_of_model_it_is(default: BNClassifier) -> None:
    """Kind, what is proved, what is trained, from how many rows, what was not used."""
    text = Page(make_report(default).html).text
    assert "A Bayesian network: left points at every column" in text
    assert (
        "Proved: largest soft margin of all networks in which left points at every column" in text
    )
    assert "Trained on this structure, within" in text
    assert "Learned from all 200 rows." in text
    assert "Not used name ." in text


def test_the_header_says_where_it_comes_from(default, monkeypatch, tmp_path):
    """The table is that of the fit, not one that the report is given."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    save_model(default, tmp_path / "m.json", data_name="customers.csv")
    text = Page(make_report(load_model(tmp_path / "m.json")).html).text
    expected = (
        "What predicts left class left · data customers.csv · 200 rows, 3 columns · "
        f"learned 14 November 2023 · marginbn {__version__}"
    )
    assert expected in text
    alone = Page(make_report(default).html).text
    assert f"class left · data sha256 {default.data_fingerprint_[:8]} · 200 rows" in alone


def test_three_columns_decide_in_probabilities(default: BNClassifier) -> None:
    """Those that move the probability most, with the probability of two of their values."""
    text = Page(make_report(default).html).text
    start = text.index("What decides most")
    card = text[start : text.index("if you know that alone", start)]
    assert "Probability of left = yes" in card
    short = default.posterior({"plan": "short"})["yes"]
    assert f"short : {100 * short:.1f} %" in card
    order = Page(make_report(default).html).values["order"]
    names = [default.network_.names[i] for i in order]
    assert names[-1] == "noise"
    assert "left" not in names


def test_a_column_that_gives_the_class_away_is_the_first_thing_to_read() -> None:
    """With rows and without; the card of the quality has no tick."""
    X, y = two_classes(600)
    X = X.drop(columns="name").assign(status=np.where(y == "yes", "gone", "here"))
    with pytest.warns(DataWarning, match="gives the class away"):
        fitted = BNClassifier().fit(X, y)
    for report in (make_report(fitted), make_report(fitted, X, y)):
        page = Page(report.html)
        first, leak = page.text.index("Look at this first"), "'status' alone gives the class away"
        assert first < page.text.index(leak) < page.text.index("How good")
        assert "X.drop(columns=['status'])" in page.text
        assert "card warnings bad" in [a.get("class") for _, a in page.seen]
        assert "card open" in [a.get("class") for _, a in page.seen]


def test_an_accuracy_of_one_is_a_reason_to_look() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(["u", "v"], size=(300, 2)), columns=["a", "b"])
    y = pd.Series(np.where(X["a"] == X["b"], "same", "other"), name="is")
    page = Page(make_report(BNClassifier().fit(X, y)).html)
    assert "100.0 % right on 300 rows, each held out once" in page.text
    assert "Every held-out row is classified right" in page.text
    assert "card warnings open" in [a.get("class") for _, a in page.seen]


def test_scores_in_nats_are_in_the_details_only(default: BNClassifier) -> None:
    """No nats, log margins, log-odds or optimiser's words above the last section."""
    html = make_report(default, *two_classes()).html
    above = html.partition("<body>")[2].partition('<section id="details"')[0]
    above = re.sub("<[^>]*>", " ", above).lower()
    for word in ("nats", "log margin", "log odds", "log-odds", "objective", "bound"):
        assert word not in above
    assert "<details open" not in html


def test_measures_are_those_of_the_library(margin, iris):
    """Every number of the tables of methods and classes, the confusion, the calibration."""
    X, y = iris
    fitted = NaiveBayesClassifier().fit(X[::2], y[::2])
    report = make_report(fitted, X[::2], y[::2], X_test=X[1::2], y_test=y[1::2])
    text = Page(report.html).text
    quality = Quality.measure(fitted.classes_.tolist(), y[1::2], fitted.predict_proba(X[1::2]))
    for value in (quality.auc, quality.log_loss, quality.brier):
        assert f"{value:.3f}" in text
    assert f"{100 * quality.balanced_accuracy:.1f}" in text
    for one in quality.classes:
        assert f"{one.label} {one.n_rows} {100 * (one.recall or 0):.1f}" in text
    assert f"is the calibration error, {100 * quality.calibration_error:.1f} %." in text
    printed = dict(quality.summary())["calibration error"]
    assert f"calibration error of its probabilities is {printed}" in text.replace("\xa0", " ")
    for bin_ in quality.calibration:
        assert f"{bin_.n_rows} rows" in report.html
    cells = re.findall(r'<td[^>]*style="--p:[\d.]+">(\d+)</td>', report.html)
    assert [int(c) for c in cells] == [n for row in quality.confusion for n in row]


def test_the_data_report_is_on_the_page(tmp_path: Path) -> None:
    """Notes on top, what became of each column in the details; no value of an identifier."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": [f"n{i}" for i in range(60)], "a": rng.integers(3, size=60)})
    X["a"] = X["a"].astype(str)
    y = pd.Series(np.where(rng.random(60) < 0.95, "no", "yes"), name="bought")
    with pytest.warns(DataWarning):
        fitted = NaiveBayesClassifier().fit(X, y)
    page = Page(make_report(fitted, X, y, n_folds=0).html)
    found = inspect_data(X, y)
    assert found.hints
    for note in found.hints:
        assert f"{note[:1].upper()}{note[1:]}." in page.text
    assert "left out: 60 of 60 values differ" in page.text
    assert "n17" not in page.text


def test_dates_have_a_page() -> None:
    """Columns that become several are read once, for folds and contributions alike."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=100).astype(str)
    X = pd.DataFrame({"day": days, "a": rng.integers(3, size=100).astype(str)})
    fitted = NaiveBayesClassifier(column_kinds={"day": "date"}).fit(X, rng.integers(2, size=100))
    page = Page(make_report(fitted, X, fitted.predict(X), n_folds=2).html)
    assert "2-fold cross-validation on 100 rows" in page.text
    assert "day" in page.text


# --- command line ---------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A model learned from a CSV file, next to which it lies."""
    rows = ["colour,size,y"] + [
        f"{'red' if i % 3 else 'blue'},{i % 7},{'a' if i % 3 else 'b'}" for i in range(40)
    ]
    (tmp_path / "toy.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "semi.csv").write_text("\n".join(rows).replace(",", ";") + "\n")
    model = tmp_path / "model.json"
    options = ["-t", "y", "--max-parents", 1, "--holdout", 0, "-q"]
    assert run("fit", tmp_path / "toy.csv", *options, "-o", model).exit_code == 0
    return model


def test_report_writes_the_page_of_the_library(saved: Path) -> None:
    """The command adds nothing but a note; the target is known from training."""
    page = saved.with_name("r.html")
    result = run("report", saved, "--data", saved.with_name("toy.csv"), "-o", page, "--folds", 2)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert result.stderr.count("Cross-validation") <= 1
    assert "open it in a browser" in result.stderr
    text = read_page(page).text
    assert "2-fold cross-validation on 40 rows" in text
    assert "toy" in text


def test_report_with_test_rows(saved: Path) -> None:
    """Test rows from another table, whatever separates its fields; quiet says nothing."""
    page = saved.with_name("r.html")
    table = saved.with_name("semi.csv")
    result = run("report", saved, "--data", table, "--test", table, "-o", page, "-q")
    assert (result.exit_code, result.output) == (0, "")
    assert "Measured on 40 test rows" in read_page(page).text


def test_report_uses_the_test_part_of_a_data_set(tmp_path: Path) -> None:
    model, page = tmp_path / "m.json", tmp_path / "r.html"
    assert run("fit", "mofn-3-7-10", "--method", "naive-bayes", "-q", "-o", model).exit_code == 0
    assert run("report", model, "--data", "mofn-3-7-10", "-o", page).exit_code == 0
    assert "Measured on 1024 test rows" in read_page(page).text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--test", "x.csv"], "needs --data as well"),
        (["--folds", 1], "must be 0 or at least 2"),
    ],
)
def test_report_refuses_wrong_options(saved: Path, options: list[object], message: str) -> None:
    result = run("report", saved, "-o", saved.with_name("r.html"), *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_report_tells_a_missing_target(saved: Path) -> None:
    other = saved.with_name("other.csv")
    other.write_text("colour,size\nred,1\n")
    result = run("report", saved, "--data", other, "-o", saved.with_name("r.html"))
    assert result.exit_code == 1
    assert "'y'" in result.stderr


def test_a_folder_that_is_not_there_is_one_line(saved: Path) -> None:
    result = run("report", saved, "-o", saved.parent / "no" / "r.html", "-q")
    assert result.exit_code == 1
    assert "cannot write" in result.stderr


@pytest.mark.filterwarnings("ignore::marginbn.DataWarning")
def test_what_is_done_with_every_table_is_in_the_details() -> None:
    """Identifiers and missing values are no alarm."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    X = pd.DataFrame({"id": [f"r{i}" for i in range(200)], "b": rng.integers(3, size=200) + y})
    X.loc[::9, "b"] = None
    fitted = NaiveBayesClassifier().fit(X, y)
    page = Page(make_report(fitted, X, y).html)
    assert "Look at this first" not in page.text
    assert "left out as identifiers: 'id'" in page.text
