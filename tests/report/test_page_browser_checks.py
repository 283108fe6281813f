"""Checks like Lighthouse's on whole pages, and the redesigned parts as people use them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from browser import PHONE, Browser, launch_browser
from marginbn import (
    BNClassifier,
    MaxMarginBNClassifier,
    NaiveBayesClassifier,
    Search,
    TANClassifier,
    make_report,
)
from marginbn.classifiers import BaseBNClassifier
from marginbn.report.effects import measure_effects
from page_checks import (
    cut_names,
    open_everything,
    poor_contrasts,
    texts_behind_bars,
    unreachable_controls,
)

pytestmark = pytest.mark.slow  # scripts/test-browser runs them
WIDE = (1440, 900)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with launch_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def iris() -> tuple[pd.DataFrame, pd.Series]:
    data = load_iris(as_frame=True)
    return data.data, pd.Series(data.target_names[data.target], name="species")


def wide_table(n_rows: int = 800) -> tuple[pd.DataFrame, pd.Series]:
    """57 features with long names, as spambase has them; numbers, categories, missing values."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n_rows)
    columns: dict[str, Any] = {}
    for i in range(50):
        columns[f"capital_run_length_longest_{i}"] = rng.normal(y * (i % 7) / 3, 1.0).round(4)
    for i in range(7):
        codes = (rng.integers(4, size=n_rows) + y * (i % 2)) % 5
        columns[f"category_{i}"] = np.array(["low", "medium-high", "very high", "n/a", "x"])[codes]
    columns["capital_run_length_longest_6"][:200] = np.nan
    return pd.DataFrame(columns), pd.Series(np.where(y, "spam", "ham"), name="class")


def customers(n_rows: int = 600) -> tuple[pd.DataFrame, pd.Series]:
    """Two classes; numbers with many cuts, a missing value, categories of few and many states."""
    rng = np.random.default_rng(2)
    months = rng.integers(1, 73, size=n_rows)
    contract = rng.choice(["monthly", "one year", "two years"], p=[0.6, 0.25, 0.15], size=n_rows)
    fee = rng.normal(60 + 10 * (contract == "monthly"), 15).round(1)
    score = 1.5 * (contract == "monthly") - 0.05 * months + 0.02 * (fee - 60)
    left = rng.random(n_rows) < 1 / (1 + np.exp(-score))
    fee[:40] = np.nan
    towns = rng.choice([f"town {k}" for k in range(14)], size=n_rows)
    X = pd.DataFrame({"months": months, "contract": contract, "fee": fee, "town": towns})
    return X, pd.Series(np.where(left, "yes", "no"), name="left")


def many_classes() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(1)
    y = rng.integers(26, size=900)
    X = pd.DataFrame({f"f{i}": rng.poisson(2 + (y * (i + 3)) % 9) for i in range(8)})
    return X, pd.Series([chr(65 + c) for c in y], name="letter")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, BaseBNClassifier]]:
    """A small model with folds, the default model of two classes, 57 features, 26 classes."""
    folder, made = tmp_path_factory.mktemp("pages"), {}
    for name, (X, y), classifier in (
        (
            "small",
            iris(),
            MaxMarginBNClassifier(max_parents=1, search=Search(solver="branch_bound")),
        ),
        ("default", customers(), BNClassifier()),
        ("wide", wide_table(), TANClassifier(missing="state")),
        ("classes", many_classes(), NaiveBayesClassifier()),
    ):
        fitted = classifier.fit(X, y)
        report = make_report(fitted, X, y, n_folds=0 if name == "default" else 2)
        report.save(folder / f"{name}.html")
        made[name] = (folder / f"{name}.html", fitted)
    return made


Pages = dict[str, tuple[Path, BaseBNClassifier]]


@pytest.mark.parametrize("name", ["small", "default", "wide", "classes"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "desktop"])
def test_pages_are_readable(browser, pages, name, dark, size):
    """No message, no request, nothing too wide, contrast AA, no bar behind a word, no cut name."""
    browser.open(pages[name][0], size, dark=dark)
    browser.run("document.querySelectorAll('.features .state')[1].click()")
    if name == "wide" and size == WIDE:  # 57 features, folded
        assert browser.run("return document.documentElement.scrollHeight") < 6000
    open_everything(browser)
    assert browser.overflow() == 0
    assert poor_contrasts(browser) == []
    assert texts_behind_bars(browser) == []
    assert cut_names(browser, "[aria-pressed=true] .name, .card h3 bdi") == []
    assert browser.messages() == []
    assert browser.requests() == []


def test_an_older_browser_shows_the_light_page(browser, pages, tmp_path):
    """Where ``light-dark`` is not known, as an unknown name in its place shows."""
    text = pages["default"][0].read_text(encoding="utf-8")
    (tmp_path / "old.html").write_text(text.replace("light-dark(", "unknown("), encoding="utf-8")
    new, old = pages["default"][0], tmp_path / "old.html"
    looks = []
    for path, dark in ((new, False), (old, True), (new, True)):
        browser.open(path, PHONE, dark=dark)
        open_everything(browser)
        assert poor_contrasts(browser) == []
        looks.append(
            browser.run(
                "return [...document.querySelectorAll('*')].map(e => getComputedStyle(e))"
                ".map(s => [s.color, s.backgroundColor, s.stroke, s.fill].join(' '))"
            )
        )
    assert looks[0] == looks[1] != looks[2]


@pytest.mark.parametrize("name", ["small", "default", "classes"])
def test_every_control_is_reached_by_keyboard(browser: Browser, pages: Pages, name: str) -> None:
    """Tab from control to control, arrows within a group; nothing is left out."""
    browser.open(pages[name][0])
    browser.run("document.querySelectorAll('.features .state')[1].click()")
    assert unreachable_controls(browser) == []


def enter(browser: Browser, fitted: BaseBNClassifier, name: str, value: object) -> None:
    """Type a number, press the line of a state, or choose it from the list."""
    variable = fitted.network_.names.index(name)
    states = fitted.network_.variables[variable].states
    browser.run(
        "const card = document.querySelector(`.features [data-variable='${arguments[0]}']`);"
        "const field = card.querySelector('input, select');"
        "const line = card.querySelector(`[data-states='${arguments[1]}']`);"
        "if (line) line.click(); else { field.value = arguments[1];"
        "field.dispatchEvent(new Event(field.matches('select') ? 'change' : 'input')) }",
        variable,
        states.index(value) if isinstance(value, str) else f"{value:.1f}",
    )


def shown_answer(browser: Browser) -> list[float]:
    return [float(p) for _, p, _ in sorted(browser.lines()[0])]


def test_one_number_per_question(browser: Browser, pages: Pages) -> None:
    """Nothing, one, two and all columns known: posterior and predict_proba to 1e-9."""
    path, fitted = pages["default"]
    browser.open(path)
    X, _ = customers()
    row = X.iloc[200]
    known: dict[str, object] = {}
    assert shown_answer(browser) == pytest.approx([*fitted.posterior({}).values()], abs=1e-9)
    for name, value in row.items():
        enter(browser, fitted, str(name), value)
        known[str(name)] = value
        expected = [*fitted.posterior(known).values()]
        assert shown_answer(browser) == pytest.approx(expected, abs=1e-9)
    enter(browser, fitted, "fee", "(missing)")
    expected = [*fitted.posterior(known | {"fee": None}).values()]
    assert shown_answer(browser) == pytest.approx(expected, abs=1e-9)
    enter(browser, fitted, "fee", row["fee"])
    complete = fitted.predict_proba(X.iloc[[200]])[0]
    assert shown_answer(browser) == pytest.approx(complete.tolist(), abs=1e-9)


def test_a_case_is_explained_in_probabilities(browser: Browser, pages: Pages) -> None:
    """A sentence, then steps from the base rate to the answer, those of explain in their order."""
    path, fitted = pages["default"]
    browser.open(path)
    assert browser.find(".sentence").text.startswith("Nothing is known yet: left = ")
    enter(browser, fitted, "months", 70.0)
    enter(browser, fitted, "contract", "two years")
    sentence = browser.find(".sentence").text
    answer = fitted.posterior({"months": 70, "contract": "two years"})
    words = f"Likely left = no ({100 * answer['no']:.1f} %), mainly because of "
    assert sentence.startswith(words)
    assert "months = 70" in sentence
    assert "contract = two years" in sentence
    steps = read_steps(browser)
    assert steps[0][1] == pytest.approx(fitted.posterior({})["yes"], abs=1e-9)
    assert steps[-1][1] == steps[-2][1] == pytest.approx(answer["yes"], abs=1e-9)


def read_steps(browser: Browser) -> list[tuple[str, float]]:
    """Variable and end of each step of the waterfall."""
    return browser.run(
        "return [...document.querySelectorAll('.waterfall li')].map((l) =>"
        "[l.dataset.variable ?? '', Number(l.dataset.end)])"
    )


def test_the_steps_are_the_contributions_of_the_library(browser: Browser, pages: Pages) -> None:
    """Differences of the log-odds, in the order of their size, as explain has them."""
    path, fitted = pages["default"]
    browser.open(path)
    X, _ = customers()
    for name, value in X.iloc[200].items():
        enter(browser, fitted, str(name), value)
    steps = read_steps(browser)
    log_odds = [np.log(end / (1 - end)) for _, end in steps[:-1]]
    explanation = fitted.explain(X.iloc[[200]])[0]
    sign = 1 if explanation.label == "yes" else -1
    values = {c.variable: sign * c.value for c in explanation.contributions}
    for (variable, _), change in zip(steps[1:-1], np.diff(log_odds), strict=True):
        assert change == pytest.approx(values[fitted.network_.names[int(variable)]], abs=1e-9)
    sizes = np.abs(np.diff(log_odds))
    assert (np.diff(sizes) <= 1e-9).all()
    assert len(sizes) == 4


def test_cards_and_boxes_have_at_most_eight_lines(browser: Browser, pages: Pages) -> None:
    """Fourteen towns and the fine bins of numbers as well."""
    for name in ("default", "wide", "classes"):
        browser.open(pages[name][0])
        counts = browser.run(
            "return [...document.querySelectorAll('#explore .card, .box')].map((c) =>"
            "c.querySelectorAll('.state, .line').length)"
        )
        assert 0 < max(counts) <= 8
    path, fitted = pages["default"]
    browser.open(path)
    lines = browser.lines()[fitted.network_.names.index("town")]
    assert len(lines) == 8
    assert sum(float(p) for _, p, _ in lines) == pytest.approx(1.0)


def test_the_picture_has_arcs_between_columns_only(browser: Browser, pages: Pages) -> None:
    """No box of the class and no arc of it; all others are there."""
    for name in ("default", "wide"):
        path, fitted = pages[name]
        browser.open(path)
        arcs = browser.run(
            "return [...document.querySelectorAll('.arc')].map((a) => a.dataset.arc)"
        )
        expected = {f"{p} {c}" for p, c in fitted.structure_.arcs if p > 0}
        assert set(arcs) == expected
        assert browser.run("return document.querySelector('.box[data-variable=\"0\"]')") is None
        assert "points at every column" in browser.find("#network").text


def test_curves_have_true_axes_and_the_answers(browser: Browser, pages: Pages) -> None:
    """Steps are at the cuts, by value; axes have titles, a density and a band; heights fit."""
    path, fitted = pages["default"]
    browser.open(path)
    months = fitted.network_.names.index("months")
    curve, titles, base = browser.run(
        "const f = document.querySelector(`.effect[data-variable='${arguments[0]}']`);"
        "return [f.querySelector('.curve').getAttribute('d'),"
        "[...f.querySelectorAll('text')].map((t) => t.textContent),"
        "f.querySelectorAll('.rows').length]",
        months,
    )
    points = np.array([[float(v) for v in p.split(",")] for p in curve[1:].split(" L")])
    cuts = fitted.coding_.columns[months - 1].cuts
    corners = points[1:-1:2, 0]
    assert len(corners) == len(cuts)
    span = points[-1, 0] - points[0, 0]
    expected = [(cut - 0.5) / 72.0 for cut in cuts]
    assert ((corners - points[0, 0]) / span).tolist() == pytest.approx(expected, abs=0.02)
    assert "months" in titles
    assert "P(left = yes), %" in titles
    assert base == 72  # whole numbers of a small range have a column each
    effect = (measure_effects(fitted) or ())[months - 1]
    heights = points[::2, 1]
    assert np.argsort(-heights).tolist() == np.argsort(effect.values[1]).tolist()
    texts = browser.run(
        "return [...document.querySelectorAll(`.effect[data-variable='${arguments[0]}'] .area`)]"
        ".map((a) => a.textContent)",
        months,
    )
    for text, value in zip(texts, effect.values[1], strict=True):
        assert f": {100 * value:.1f} %" in text
    assert browser.run("return document.querySelectorAll('.effect .band').length") > 0


def test_the_class_is_no_bar_of_what_decides(browser: Browser, pages: Pages) -> None:
    """Columns in the order of the points by which they move the probability."""
    path, fitted = pages["default"]
    browser.open(path)
    found = browser.run(
        "return [...document.querySelectorAll('.ranking li')].map((l) =>"
        "[l.querySelector('bdi').textContent, Number(l.dataset.points)])"
    )
    effects = measure_effects(fitted) or ()
    points = {fitted.network_.names[e.variable]: e.points for e in effects}
    assert dict(found) == pytest.approx(points)
    assert [p for _, p in found] == sorted(points.values(), reverse=True)
    assert "left" not in dict(found)


def test_the_threshold_moves_recall_and_precision(browser: Browser, pages: Pages) -> None:
    """At each place of the slider the counts are those of the held-out rows."""
    path, fitted = pages["default"]
    browser.open(path)
    held_out = fitted.held_out_
    assert held_out is not None
    probability, truth = held_out.probabilities[:, 1], held_out.labels == "yes"
    for cut in (50, 20, 85):
        browser.run(
            "const s = document.querySelector('#cut'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('input'))",
            cut,
        )
        called = probability > cut / 100
        cells = browser.run(
            "return [...document.querySelectorAll('#threshold td')]"
            ".map((c) => Number(c.textContent))"
        )
        hits = int((called & truth).sum())
        wrong = int((called & ~truth).sum())
        assert cells == [hits, int(truth.sum()) - hits, wrong, int((~truth).sum()) - wrong]
        text = browser.find("#threshold").text
        assert f"{100 * hits / truth.sum():.1f} % of yes are found" in text
        assert f"{100 * hits / called.sum():.1f} % of those predicted yes" in text
    assert (
        f"{100 * ((probability > 0.5) == truth).mean():.1f} % right on 600 rows, each held out once"
        in (browser.find("header").text)
    )


def test_a_report_shows_itself_in_a_frame(browser: Browser, tmp_path: Path) -> None:
    """As a notebook has it: the page works inside, and touches nothing outside."""
    X, y = iris()
    report = make_report(NaiveBayesClassifier().fit(X, y), title='<In> a "frame"')
    host = "<!doctype html><html data-ready='1'><link rel='icon' href='data:,'><body>"
    (tmp_path / "host.html").write_text(host + report._repr_html_(), encoding="utf-8")
    browser.open(tmp_path / "host.html")
    browser.driver.switch_to.frame(0)
    try:
        assert browser.run("return document.documentElement.dataset.ready") is not None
        assert browser.find("h1").text == '<In> a "frame"'
        browser.run("document.querySelectorAll('.features .state')[0].click()")
        assert len(browser.driver.find_elements("css selector", ".chip")) == 1
    finally:
        browser.driver.switch_to.default_content()
    assert browser.messages() == []
