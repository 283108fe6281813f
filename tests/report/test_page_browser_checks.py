"""Checks like Lighthouse's on whole pages, and the redesigned parts as people use them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from browser import DESKTOP, PHONE, Browser, assert_displayed, launch_browser
from marginbn import MaxMarginBNClassifier, NaiveBayesClassifier, Search, TANClassifier, make_report
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
LOG = logging.getLogger(__name__)  # figures that scripts/test-browser shows
WIDE = (1440, 900)
LARGEST = 2_000_000  # bytes


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


def many_classes() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(1)
    y = rng.integers(26, size=900)
    X = pd.DataFrame({f"f{i}": rng.poisson(2 + (y * (i + 3)) % 9) for i in range(8)})
    return X, pd.Series([chr(65 + c) for c in y], name="letter")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, BaseBNClassifier]]:
    """A small model with everything, 57 features, 26 classes."""
    folder, made = tmp_path_factory.mktemp("pages"), {}
    for name, (X, y), classifier in (
        (
            "small",
            iris(),
            MaxMarginBNClassifier(max_parents=1, search=Search(solver="branch_bound")),
        ),
        ("wide", wide_table(), TANClassifier(missing="state")),
        ("classes", many_classes(), NaiveBayesClassifier()),
    ):
        fitted = classifier.fit(X, y)
        report = make_report(fitted, X, y, n_folds=2)
        report.save(folder / f"{name}.html")
        made[name] = (folder / f"{name}.html", fitted)
    return made


Pages = dict[str, tuple[Path, BaseBNClassifier]]


@pytest.mark.parametrize("name", ["small", "wide", "classes"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "desktop"])
def test_pages_are_readable(
    browser: Browser, pages: Pages, name: str, dark: bool, size: tuple[int, int]
) -> None:
    """No message, no request, nothing too wide, contrast AA, no bar behind a word, no cut name."""
    browser.open(pages[name][0], size, dark=dark)
    browser.run("document.querySelectorAll('.features .state')[1].click()")
    open_everything(browser)
    assert browser.overflow() == 0
    assert poor_contrasts(browser) == []
    assert texts_behind_bars(browser) == []
    assert cut_names(browser, "[aria-pressed=true] .name, .card h3 bdi") == []
    assert browser.messages() == []
    assert browser.requests() == []


@pytest.mark.parametrize("name", ["small", "classes"])
def test_every_control_is_reached_by_keyboard(browser: Browser, pages: Pages, name: str) -> None:
    """Tab from control to control, arrows within a group; nothing is left out."""
    browser.open(pages[name][0])
    browser.run("document.querySelectorAll('.features .state')[1].click()")
    assert unreachable_controls(browser) == []


def test_a_wide_page_is_small_and_soon_ready(browser: Browser, pages: Pages) -> None:
    """57 features: below 2 MB, interactive within a second in the best of five loads."""
    path = pages["wide"][0]
    ready = []
    for _ in range(5):
        browser.open(path, WIDE)
        ready.append(float(browser.run("return document.documentElement.dataset.ready")))
    LOG.info("57 features: %d bytes, interactive after %s ms", path.stat().st_size, ready)
    assert path.stat().st_size < LARGEST
    assert min(ready) < 1000


@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "desktop"])
def test_the_bar_has_two_lines_of_one_width(
    browser: Browser, pages: Pages, size: tuple[int, int]
) -> None:
    """Both are its own; the section below it draws none, which would be narrower."""
    browser.open(pages["small"][0], size)
    widths = browser.run(
        "const width = (e, side) => parseFloat(getComputedStyle(e)[`border${side}Width`]);"
        "const nav = document.querySelector('nav');"
        "const below = document.querySelector('nav + main > section');"
        "return [width(nav, 'Top'), width(nav, 'Bottom'), width(below, 'Top')]"
    )
    assert widths == [1, 1, 0]


@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "desktop"])
def test_the_network_moves_and_the_class_stays(
    browser: Browser, pages: Pages, size: tuple[int, int]
) -> None:
    """The class is in view at first and named always; fit shows all; drag, wheel and keys work."""
    from selenium.webdriver import ActionChains

    browser.open(pages["wide"][0], size)
    browser.run("document.querySelector('#network').scrollIntoView({behavior: 'instant'})")
    inside = (
        "const v = document.querySelector('.viewport').getBoundingClientRect();"
        "const inside = (e) => { const b = e.getBoundingClientRect(); return b.left >= v.left - 1"
        "&& b.right <= v.right + 1 && b.top >= v.top - 1 && b.bottom <= v.bottom + 1 };"
        "return [...document.querySelectorAll('.box')].map(inside)"
    )
    assert browser.run(inside)[0]
    place = "return document.querySelector('.content').style.transform"
    before = browser.run(place)
    frame = browser.find(".viewport")
    corner = -frame.size["width"] // 2 + 8
    ActionChains(browser.driver).move_to_element_with_offset(frame, corner, 60).click_and_hold(
    ).move_by_offset(30, -80).release().perform()  # fmt: skip
    moved = browser.run(place)
    assert moved != before
    assert browser.find(".pinned").is_displayed()
    browser.find(".zoom button:last-child").click()
    assert all(browser.run(inside))
    fitted = browser.run(place)
    browser.run(
        "document.querySelector('.viewport').dispatchEvent(new WheelEvent('wheel',"
        "{deltaY: -200, ctrlKey: true, clientX: 100, clientY: 200, cancelable: true}))"
    )
    assert browser.run(place) != fitted
    browser.find(".pinned").click()
    assert browser.run(inside)[0]
    browser.run("document.querySelector('.box .head').focus()")
    browser.press("0")
    assert browser.run(place) == fitted
    assert browser.overflow() == 0


def test_two_fingers_zoom(browser: Browser, pages: Pages) -> None:
    """A pinch on a phone."""
    browser.open(pages["wide"][0], PHONE)
    browser.run("document.querySelector('.viewport').scrollIntoView({behavior: 'instant'})")
    style = "document.querySelector('.content').style.transform"
    scale = f"return Number({style}.match(/scale.(.*)\\)/)[1])"
    before = browser.run(scale)
    for kind, gap in (("touchStart", 60), ("touchMove", 90), ("touchMove", 120), ("touchEnd", 0)):
        points = [{"x": 190 - gap, "y": 300, "id": 1}, {"x": 190 + gap, "y": 300, "id": 2}]
        browser.driver.execute_cdp_cmd(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": points if gap else []}
        )
    assert browser.run(scale) > 1.5 * before


def test_boxes_show_and_take_probabilities(browser: Browser, pages: Pages) -> None:
    """The numbers of the boxes are the posteriors, and a press on a state is evidence."""
    path, fitted = pages["small"]
    browser.open(path)
    browser.run("document.querySelectorAll('.box .line')[4].click()")  # three classes, then x1
    network = fitted.network_
    chosen = browser.run("return document.querySelector('.box.observed').dataset.variable")
    pressed = browser.find(".box [aria-pressed=true]").get_attribute("title")
    names = network.variables[int(chosen)]
    expected = network.marginals({names.name: pressed})
    boxes = browser.run(
        "return [...document.querySelectorAll('.box')].map((b) => [...b.querySelectorAll('.line')]"
        ".map((l) => [l.title, l.querySelector('.number').textContent]))"
    )
    for lines, variable in zip(boxes, network.variables, strict=True):
        for state, text in lines:
            place = variable.states.index(state)
            assert_displayed(text, float(expected[variable.name][place]))
    assert browser.find("#explore .chip").text.startswith(names.name)


def test_a_case_is_scored_explained_and_printed(browser: Browser, pages: Pages) -> None:
    """Numbers typed for one flower: the library's reasons, and a sheet with nothing else on it."""
    path, fitted = pages["small"]
    browser.open(path, DESKTOP)
    X, _ = iris()
    row = X.iloc[120]
    for i, value in enumerate(row, start=1):
        if fitted.network_.arities[i] > 1:
            field = browser.find(f"#explore [data-variable='{i}'] input")
            field.clear()
            field.send_keys(str(value))
    explanation = fitted.explain(X.iloc[[120]])[0]
    terms = browser.run(
        "return [...document.querySelectorAll('.waterfall li')].map((l) =>"
        "[l.dataset.variable ?? l.className, Number(l.dataset.value)])"
    )
    values = {c.variable: c.value for c in explanation.contributions}
    for variable, value in terms[1:-1]:
        assert values[fitted.network_.names[int(variable)]] == pytest.approx(value, abs=1e-9)
    assert terms[0][1] == pytest.approx(values["species"], abs=1e-9)
    assert terms[-1][1] == pytest.approx(explanation.log_margin, abs=1e-9)
    browser.find("#case-name").send_keys("Flower 120")
    browser.run("window.print = () => {}")
    browser.run("document.querySelector('.case-tools button').click()")
    emulate = {"media": "print"}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", emulate)
    shown = browser.run("return document.body.innerText")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert "Flower 120" in shown
    assert f"{row.iloc[3]:g}, bin " in shown
    assert "of rows it has not seen are classified right" in shown
    assert f"({100 * explanation.probability:.1f} %)" in shown
    assert "How good is the search" not in shown
    assert "Conditional tables" not in shown


def test_effects_are_the_librarys(browser: Browser, pages: Pages) -> None:
    """Bars of categories, and titles of bins, for the class one chooses."""
    path, fitted = pages["wide"]
    browser.open(path)
    browser.run(
        "const s = document.querySelector('#effect-class'); s.value = 0;"
        "s.dispatchEvent(new Event('change'));"
        "document.querySelector('#effects-list .more').click()"
    )
    effects = measure_effects(fitted)
    assert effects is not None
    figures = browser.run(
        "return [...document.querySelectorAll('.effect')].map((f) => [Number(f.dataset.variable),"
        "[...f.querySelectorAll('.bars li')].map((l) => l.title), [...f.querySelectorAll("
        "'.area title')].map((t) => t.textContent)])"
    )
    assert len(figures) == sum(arity > 1 for arity in fitted.network_.arities[1:])
    for variable, bars, bins in figures:
        states = fitted.network_.variables[variable].states
        for text in bars + bins:
            state, _, rest = text.rpartition(": ")
            number = float(rest.split(" ")[0].replace("−", "-"))
            value = effects[variable - 1].values[states.index(state), 0]
            assert number == pytest.approx(value, abs=0.0056)


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
