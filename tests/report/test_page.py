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
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from marginbn import (
    DataWarning,
    GenerativeBNClassifier,
    InputError,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    Search,
    TANClassifier,
    inspect_data,
    make_report,
)
from marginbn.classifiers import BaseBNClassifier
from marginbn.classifiers.baselines import LogisticBaseline, MajorityBaseline
from marginbn.classifiers.evaluation import cross_validate, told_interval
from marginbn.classifiers.measures import Quality
from marginbn.cli import app
from marginbn.network.explain import mean_contributions
from marginbn.network.wording import text_width
from marginbn.report import page as assets
from marginbn.report import page as write
from marginbn.report.charts import Markup, element, fit_label, linear_scale, log_scale
from marginbn.report.comparison import compare_by_folds, compare_on_test, read_rows, unfitted
from marginbn.report.contents import class_information
from marginbn.report.page import (
    content_policy,
    join_scripts,
    network_values,
    read_asset,
    to_script_json,
    write_report,
)
from marginbn.report.summary import verdict
from marginbn.solvers.result import SolveResult, Status, TracePoint
from nasty import NAMES, STATES, nasty_classifier
from networks import random_network, sprinkler

VOID = {"meta", "link", "br", "img", "input"}
SECTIONS = [
    "ask", "network", "effects", "contributions", "quality", "data", "tables", "bound", "settings",
]  # fmt: skip


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


def test_a_page_has_all_sections_and_the_verdict(
    margin: MaxMarginBNClassifier, iris: tuple[pd.DataFrame, pd.Series], tmp_path: Path
) -> None:
    """Verdict, numbers, sections with headings, a link to each, accuracies of three methods."""
    write_report(margin, tmp_path / "r.html", *iris, title="Flowers")
    page = read_page(tmp_path / "r.html")
    assert verdict(margin) in page.text
    assert "Optimal, proven" in page.text
    assert "Flowers" in page.text
    assert [a["id"] for t, a in page.seen if t == "section" and "id" in a] == SECTIONS
    links = [a["href"] for t, a in page.seen if t == "a"]
    assert links[-len(SECTIONS) :] == [f"#{key}" for key in SECTIONS]
    assert set(links) == {f"#{key}" for key in SECTIONS}
    for words in ("5-fold cross-validation on 150 rows", "naive Bayes", "TAN", "this classifier"):
        assert words in page.text


def test_the_embedded_network_is_the_classifiers_bit_for_bit(
    margin: MaxMarginBNClassifier, tmp_path: Path
) -> None:
    """Names, parents, and every float of the tables."""
    write_report(margin, tmp_path / "r.html")
    values = read_page(tmp_path / "r.html").values["network"]
    network = margin.network_
    assert [v["name"] for v in values["variables"]] == list(network.names)
    assert [tuple(v["states"]) for v in values["variables"]] == [
        v.states for v in network.variables
    ]
    assert [tuple(p) for p in values["parents"]] == list(network.structure.parents)
    numbers = np.frombuffer(base64.b64decode(values["tables"]), "<f8")
    np.testing.assert_array_equal(numbers, np.concatenate([t.ravel() for t in network.log_tables]))


def test_an_open_search_says_within(margin: MaxMarginBNClassifier, tmp_path: Path) -> None:
    """A gap of 0.4 % is the first thing to read, and the curves are there."""
    result = margin.result_
    bound = result.objective / (1 - 0.004)
    trace = (
        TracePoint(0.01, 0.5 * result.objective, np.inf),
        TracePoint(2.0, result.objective, bound),
    )
    fitted = MaxMarginBNClassifier(max_parents=1)
    fitted.__dict__.update(margin.__dict__)
    fitted.result_ = SolveResult(
        result.structure, result.selection, result.objective, bound, Status.TIME_LIMIT, trace, 2.0,
        "branch_bound", 7,
    )  # fmt: skip
    write_report(fitted, tmp_path / "r.html")
    page = read_page(tmp_path / "r.html")
    assert (
        "Within 0.40 % of the best possible soft margin (stopped by the time limit)." in page.text
    )
    classes = [a.get("class") for _, a in page.seen]
    assert {"line bound", "line objective", "line gap"} <= set(classes)


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
def test_every_classifier_has_a_page(
    classifier: BaseBNClassifier, iris: tuple[pd.DataFrame, pd.Series], tmp_path: Path
) -> None:
    """All families, with rows and without."""
    fitted = classifier.fit(*iris)
    write_report(fitted, tmp_path / "alone.html")
    assert "No labelled rows were given" in read_page(tmp_path / "alone.html").text
    write_report(fitted, tmp_path / "rows.html", *iris, n_folds=2)
    page = read_page(tmp_path / "rows.html")
    assert verdict(fitted) in page.text
    assert "The smallest margins" in page.text


def test_a_single_class_has_a_page(tmp_path: Path) -> None:
    """There is nothing to explain, and the page says what there is."""
    X, y = np.array([[1.0], [2.0], [3.0]]), ["a", "a", "a"]
    write_report(MaxMarginBNClassifier().fit(X, y), tmp_path / "r.html", X, y)
    assert "only one class" in read_page(tmp_path / "r.html").text


def test_names_stay_text(tmp_path: Path) -> None:
    """Markup in names makes no element, no attribute and no script; all names arrive."""
    classifier = nasty_classifier()
    write_report(classifier, tmp_path / "r.html", title="<b>\"bold\" & 'brave'</b>")
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
    write_report(nasty_classifier(), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_bytes().decode("utf-8")
    assert not re.search("[\x00\u2028\u202e]", text)


def test_the_policy_allows_the_script_of_the_page_only(
    margin: MaxMarginBNClassifier, tmp_path: Path
) -> None:
    """The hash in the page's policy is that of its script, and nothing may be loaded."""
    write_report(margin, tmp_path / "r.html")
    page = read_page(tmp_path / "r.html")
    (policy,) = (
        str(a["content"]) for _, a in page.seen if a.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy == content_policy(page.scripts[1])
    assert policy.startswith("default-src 'none';")


def test_the_page_links_to_nothing(
    margin: MaxMarginBNClassifier, iris: tuple[pd.DataFrame, pd.Series], tmp_path: Path
) -> None:
    """No address outside the file, in no attribute and no style."""
    write_report(margin, tmp_path / "r.html", *iris, n_folds=2)
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
    """Names only ever become text nodes."""
    for script in assets.SCRIPTS:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function",
            read_asset(f"{script}.js"),
        )


def test_information_by_hand() -> None:
    """Rain and sprinkler: sum of p log p / (q r) over the four cells."""
    joint = np.array([[0.8 * 0.6, 0.8 * 0.4], [0.2 * 0.99, 0.2 * 0.01]])
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    information = class_information(sprinkler())
    assert information is not None
    assert information[0] == 0
    assert information[1] == pytest.approx((joint * np.log(joint / apart)).sum())


def test_scales_by_hand() -> None:
    """Ends go to ends, ticks are round and inside, equal ends do no harm."""
    scale = linear_scale(0.0, 10.0, 100.0, 200.0)
    assert (scale.place(0.0), scale.place(10.0)) == (100.0, 200.0)
    assert [label for _, label in scale.ticks] == ["0", "2", "4", "6", "8", "10"]
    assert [label for _, label in log_scale(0.01, 10.0, 0.0, 3.0).ticks] == [
        "0.01", "0.1", "1", "10",
    ]  # fmt: skip
    assert log_scale(0.01, 10.0, 0.0, 3.0).place(1.0) == pytest.approx(2.0)
    assert np.isfinite(linear_scale(5.0, 5.0, 0.0, 1.0).place(5.0))


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=60), st.sampled_from([60.0, 158.0, 340.0]))
def test_labels_fit_their_room(label: str, room: float) -> None:
    """Whatever the name, it is not wider than there is room, and never invisible."""
    fitted = fit_label(label, room)
    assert text_width(fitted) * 12 <= room
    assert fitted.strip()


def test_folds_are_those_of_evaluate(
    margin: MaxMarginBNClassifier, iris: tuple[pd.DataFrame, pd.Series]
) -> None:
    """The page's accuracies are cross_validate's, method by method."""
    rows = read_rows(margin, *iris)
    comparison = compare_by_folds(margin, rows, 3, 5.0)
    makers = {
        "this classifier": lambda: unfitted(margin, 5.0),
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
    again = unfitted(fitted, 7.0)
    assert again.get_params()["required_arcs"] == [(0, 4)]
    assert (again.time_limit, again.gamma) == (7.0, 1.5)
    assert unfitted(fitted.set_params(time_limit=3.0), 7.0).time_limit == 3.0
    chosen = MaxMarginBNClassifierCV(
        gammas=[1.0], max_parents=[1], search=Search(solver="branch_bound"), cv=2
    )
    repeated = unfitted(chosen.fit(X, y), 7.0)
    assert type(repeated) is MaxMarginBNClassifier
    assert (repeated.gamma, repeated.max_parents) == (1.0, 1)


def test_an_interrupt_leaves_the_accuracy_out(
    margin: MaxMarginBNClassifier,
    iris: tuple[pd.DataFrame, pd.Series],
    tmp_path: Path,
) -> None:
    """Ctrl-C while folds are measured still gives a page, which says what is missing."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="written without it"):
        write_report(margin, tmp_path / "r.html", *iris, on_fold=interrupt)
    text = read_page(tmp_path / "r.html").text
    assert "Measuring the accuracy was interrupted" in text
    assert "The smallest margins" in text


def test_wrong_arguments_are_told(
    margin: MaxMarginBNClassifier, iris: tuple[pd.DataFrame, pd.Series], tmp_path: Path
) -> None:
    """Each message names the argument; nothing is written."""
    X, y = iris
    path = tmp_path / "r.html"
    with pytest.raises(InputError, match="X and y must be given together"):
        write_report(margin, path, X)
    with pytest.raises(InputError, match="X_test needs X"):
        write_report(margin, path, X_test=X, y_test=y)
    with pytest.raises(InputError, match="y must have one label per row, 150, got 149"):
        write_report(margin, path, X, y[1:])
    with pytest.raises(InputError, match="fitted classifier of marginbn, got BayesianNetwork"):
        write_report(sprinkler(), path)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="n_folds must be 0 or at least 2, got 1"):
        write_report(margin, path, X, y, n_folds=1)
    with pytest.raises(InputError, match="fold_time_limit must be a positive number"):
        write_report(margin, path, X, y, fold_time_limit=0)
    assert not path.exists()


def test_large_tables_stay_small_files() -> None:
    """An entry costs eleven characters: forty thousand of them are well below 2 MB."""
    network = random_network(0, 30, max_parents=4, max_arity=6)
    cells = sum(t.size for t in network.log_tables)
    assert len(json.dumps(network_values(network))) < 11 * cells + 10_000


def test_same_input_same_page(margin: MaxMarginBNClassifier, tmp_path: Path) -> None:
    """Writing twice gives the same bytes."""
    for name in ("a", "b"):
        write_report(margin, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# --- what the first screen says -------------------------------------------------------------------


def test_both_halves_are_told_and_neither_hides_the_other(
    margin: MaxMarginBNClassifier, iris: tuple[pd.DataFrame, pd.Series]
) -> None:
    """The held-out accuracy with its interval beside the proof; and that nothing was measured."""
    X, y = iris
    page = Page(make_report(margin, X, y, n_folds=3).html)
    comparison = compare_by_folds(margin, read_rows(margin, X, y), 3, 10.0)
    own, guess = comparison.own, comparison.find("most frequent class")
    assert guess is not None
    half = max(own.half_width, told_interval(own.accuracy, len(y)))
    low, high = own.accuracy - half, min(1.0, own.accuracy + half)
    assert f"{100 * own.accuracy:.1f} % of rows it has not seen" in page.text
    assert f"({100 * low:.1f} to {100 * high:.1f} %)" in page.text
    assert f"most frequent class gives {100 * guess.accuracy:.1f} %" in page.text
    assert verdict(margin) in page.text
    alone = Page(make_report(margin).html).text
    assert "Not measured: no labelled rows were given" in alone
    assert verdict(margin) in alone


def test_a_bad_classifier_is_called_bad(tmp_path: Path) -> None:
    """Noise under a proof: no better than always naming the most frequent class."""
    rng = np.random.default_rng(0)
    X = rng.integers(6, size=(60, 4)).astype(str)
    y = np.where(rng.random(60) < 0.8, "usual", "rare")
    fitted = MaxMarginBNClassifier(max_parents=1, search=Search(solver="branch_bound")).fit(X, y)
    page = Page(make_report(fitted, X, y, n_folds=5).html)
    assert "half bad" in [a.get("class") for _, a in page.seen]
    assert "no better than always naming the most frequent class" in page.text
    assert "of the rows of class rare" in page.text
    assert "Optimal, proven" in page.text


def test_rows_without_folds_are_not_called_absent(
    margin: MaxMarginBNClassifier, iris: tuple[pd.DataFrame, pd.Series]
) -> None:
    """Rows were given, so the page may not say that there are none."""
    text = Page(make_report(margin, *iris, n_folds=0).html).text
    assert "No labelled rows were given" not in text
    assert "cross-validation was left out" in text
    assert "Not measured on rows it has not seen" in text
    seen = margin.score(*iris)
    assert f"{100 * seen:.1f}" in text


def test_what_a_model_file_says_is_shown_without_rows(saved: Path) -> None:
    """Measured when it was learned, and said by the file."""
    page = saved.with_name("r.html")
    options = [
        "-t",
        "y",
        "--max-parents",
        1,
        "-q",
    ]
    assert run("fit", saved.with_name("toy.csv"), *options, "-o", saved).exit_code == 0
    assert run("report", saved, "-o", page, "-q").exit_code == 0
    assert "held out when it was learned" in read_page(page).text


def test_three_things_decide(
    margin: MaxMarginBNClassifier, iris: tuple[pd.DataFrame, pd.Series]
) -> None:
    """The features of the largest mean contributions, with the odds of their strongest states."""
    X, y = iris
    text = Page(make_report(margin, X, y, n_folds=0).html).text
    assert "The three things that decide most" in text
    importance = mean_contributions(margin, X, y)
    first = next(name for name in importance.variables if name != "target")
    start = text.index("that decide most")
    assert text.index(first, start) < start + 60
    assert "× and ÷ are factors of the odds" in text


def test_measures_are_those_of_the_library(
    margin: MaxMarginBNClassifier, iris: tuple[pd.DataFrame, pd.Series]
) -> None:
    """Every number of the tables of methods and classes, the confusion, the calibration."""
    X, y = iris
    fitted = NaiveBayesClassifier().fit(X[::2], y[::2])
    report = make_report(fitted, X[::2], y[::2], X_test=X[1::2], y_test=y[1::2])
    text = Page(report.html).text
    quality = Quality.measure(fitted.classes_.tolist(), y[1::2], fitted.predict_proba(X[1::2]))
    for value in (quality.auc, quality.log_loss, quality.brier):
        assert f"{value:.4f}" in text
    assert f"{100 * quality.balanced_accuracy:.2f}" in text
    for one in quality.classes:
        assert f"{one.label} {one.n_rows} {100 * (one.recall or 0):.2f}" in text
    for bin_ in quality.calibration:
        assert f"{bin_.n_rows} rows" in report.html
    cells = re.findall(r'<td[^>]*style="--p:[\d.]+">(\d+)</td>', report.html)
    assert [int(c) for c in cells] == [n for row in quality.confusion for n in row]


def test_the_data_report_is_on_the_page(tmp_path: Path) -> None:
    """Identifiers left out, the balance of the classes, the cost of missing values."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": [f"n{i}" for i in range(60)], "a": rng.integers(3, size=60)})
    X["a"] = X["a"].astype(str)
    y = pd.Series(np.where(rng.random(60) < 0.9, "no", "yes"), name="bought")
    with pytest.warns(DataWarning):
        fitted = NaiveBayesClassifier().fit(X, y)
    page = Page(make_report(fitted, X, y, n_folds=0).html)
    found = inspect_data(X, y)
    for note in found.notes:
        assert note in page.text
    assert f"no {found.classes['no']} {100 * found.classes['no'] / 60:.1f}" in page.text
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


def run(*args: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in args])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A model learned from a CSV file, next to which it lies."""
    rows = ["colour,size,y"] + [
        f"{'red' if i % 3 else 'blue'},{i % 7},{'a' if i % 3 else 'b'}" for i in range(40)
    ]
    (tmp_path / "toy.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "semi.csv").write_text("\n".join(rows).replace(",", ";") + "\n")
    model = tmp_path / "model.json"
    options = [
        "-t",
        "y",
        "--max-parents",
        1,
        "--holdout",
        0,
        "-q",
    ]
    assert run("fit", tmp_path / "toy.csv", *options, "-o", model).exit_code == 0
    return model


def test_report_writes_the_page_of_the_library(saved: Path) -> None:
    """The command adds nothing but a note; the target is known from training."""
    page = saved.with_name("r.html")
    result = run("report", saved, "--data", saved.with_name("toy.csv"), "-o", page, "--folds", 2)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "Cross-validation in 2 folds" in result.stderr
    assert "this classifier: accuracy 100.00 % in a fold" in result.stderr
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
    """A data set with a test part is measured on it."""
    model, page = tmp_path / "m.json", tmp_path / "r.html"
    assert run("fit", "mofn-3-7-10", "--method", "naive-bayes", "-q", "-o", model).exit_code == 0
    assert run("report", model, "--data", "mofn-3-7-10", "-o", page).exit_code == 0
    assert "Measured on 1024 test rows" in read_page(page).text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--test", "x.csv"], "needs --data as well"),
        (["--folds", 1], "must be 0 or at least 2"),
        (["--fold-time", 0], "must be positive seconds"),
    ],
)
def test_report_refuses_wrong_options(saved: Path, options: list[object], message: str) -> None:
    """Usage errors come before anything is read."""
    result = run("report", saved, "-o", saved.with_name("r.html"), *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_report_tells_a_missing_target(saved: Path) -> None:
    """Without the class there is nothing to measure, and the column is named."""
    other = saved.with_name("other.csv")
    other.write_text("colour,size\nred,1\n")
    result = run("report", saved, "--data", other, "-o", saved.with_name("r.html"))
    assert result.exit_code == 1
    assert "'y'" in result.stderr


def test_a_folder_that_is_not_there_is_one_line(saved: Path) -> None:
    """As everywhere on the command line."""
    result = run("report", saved, "-o", saved.parent / "no" / "r.html", "-q")
    assert result.exit_code == 1
    assert "cannot write" in result.stderr


def test_render_and_gather_are_the_whole_of_it(
    margin: MaxMarginBNClassifier, tmp_path: Path
) -> None:
    """What is written is what is rendered."""
    write_report(margin, tmp_path / "r.html", title="t")
    rendered = write.render(write.start_report(margin, title="t"))
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == rendered
