"""The report in a real browser: clicks and keys change the numbers to what Python computes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from browser import (
    DESKTOP,
    PHONE,
    Browser,
    assert_displayed,
    assert_shows,
    launch_browser,
    posteriors_of,
)
from marginbn import BayesianNetwork, GenerativeBNClassifier, NaiveBayesClassifier, Search
from marginbn.classifiers import BaseBNClassifier
from marginbn.report.effects import measure_effects
from marginbn.report.page import make_report
from nasty import nasty_classifier
from networks import random_network


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with launch_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def iris_page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BaseBNClassifier]:
    """A general network (three parents, the class need not be one) with rows."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names
    fitted = GenerativeBNClassifier(
        class_restricted=False,
        max_parents=3,
        score="loglik",
        time_limit=None,
        search=Search(solver="dp"),
    ).fit(X, names[y])
    path = tmp_path_factory.mktemp("pages") / "iris.html"
    make_report(fitted, X, names[y], n_folds=2, title="Iris").save(path)
    return path, fitted


def as_classifier(network: BayesianNetwork) -> BaseBNClassifier:
    """A classifier around any network, for pages of networks that nobody would learn."""
    rows = [dict.fromkeys(network.names[1:], "s")] * 4
    fitted = NaiveBayesClassifier().fit(rows, ["s0", "s0", "s1", "s1"])
    fitted.network_ = network
    fitted.structure_ = network.structure
    return fitted


def test_clicks_set_change_and_take_back_evidence(browser, iris_page):
    """Every click changes all posteriors; a second click on a state takes it back."""
    path, fitted = iris_page
    browser.open(path)
    steps: list[tuple[tuple[int, int], dict[int, int]]] = [
        ((1, 0), {1: 0}),
        ((3, 1), {1: 0, 3: 1}),
        ((3, 2), {1: 0, 3: 2}),  # another state of the same variable
        ((0, 1), {1: 0, 3: 2, 0: 1}),  # the class can be known too
        ((1, 0), {3: 2, 0: 1}),
    ]
    for (variable, state), evidence in steps:
        browser.click_state(variable, state)
        assert_shows(browser, fitted.network_, evidence)
        pressed = browser.state(variable, state).get_attribute("aria-pressed")
        assert pressed == str(evidence.get(variable) == state).lower()
    browser.find(".chip").click()
    assert_shows(browser, fitted.network_, {0: 1})
    browser.find(".clear").click()
    assert_shows(browser, fitted.network_, {})
    assert browser.messages() == []


def test_the_keyboard_is_enough(browser: Browser, iris_page: tuple[Path, BaseBNClassifier]) -> None:
    """Tab to a card, arrows to a state, space and enter to press, all without a mouse."""
    from selenium.webdriver.common.keys import Keys

    path, fitted = iris_page
    browser.open(path)
    first, second = browser.run(
        "return [...document.querySelectorAll('.features .card')].slice(0, 2)"
        ".map((c) => Number(c.dataset.variable))"
    )
    browser.run("document.querySelector('.action').focus()")
    browser.press(Keys.TAB)  # the field of the first feature
    browser.press(Keys.TAB)  # its states
    browser.press(Keys.ARROW_DOWN)
    browser.press(Keys.SPACE)
    assert_shows(browser, fitted.network_, {first: 1})
    browser.press(Keys.TAB)
    browser.press("1000")  # a number falls into its bin
    last = fitted.network_.arities[second] - 1
    assert_shows(browser, fitted.network_, {first: 1, second: last})
    browser.press(Keys.SHIFT + Keys.TAB)  # back to the state that was left
    browser.press(Keys.SPACE)
    assert_shows(browser, fitted.network_, {second: last})


def test_pictures_show_probabilities_and_tables(browser, iris_page):
    """Boxes have the posteriors; a column that is chosen shows its table."""
    from selenium.webdriver.common.keys import Keys

    path, fitted = iris_page
    network = fitted.network_
    browser.open(path)
    browser.click_state(1, 0)
    boxes = browser.run(
        "return [...document.querySelectorAll('.box')].map((b) => [Number(b.dataset.variable),"
        "[...b.querySelectorAll('.line')].map((l) => [l.title, l.lastChild.textContent])])"
    )
    posteriors = posteriors_of(network, {1: 0})
    assert boxes
    for variable, lines in boxes:
        for state, text in lines:
            place = network.variables[variable].states.index(state)
            assert_displayed(text, float(posteriors[variable][place]))
    chosen = boxes[0][0]
    browser.run("document.querySelector('.box .head').focus()")
    browser.press(Keys.ENTER)
    cells = browser.run(
        "return [...document.querySelectorAll('#inspector td')].map((c) => c.innerText)"
    )
    expected = np.exp(network.log_tables[chosen]).ravel()
    assert len(cells) == len(expected)
    for text, probability in zip(cells, expected, strict=True):
        if text[0] not in "<>":
            assert abs(float(text) - probability) <= 0.0005 + 1e-9
    browser.press(Keys.ENTER)
    assert browser.find("#inspector").text == ""


def test_search_and_order(browser: Browser, tmp_path: Path) -> None:
    """The features that move the class most first, eight in view; typing finds the others."""
    network = random_network(5, 24, max_parents=2)
    fitted = as_classifier(network)
    make_report(fitted).save(tmp_path / "r.html")
    browser.open(tmp_path / "r.html")
    cards = "[...document.querySelectorAll('.features .card')]"
    order = browser.run(f"return {cards}.map((c) => Number(c.dataset.variable))")
    effects = measure_effects(fitted)
    assert effects is not None
    points = [effects[i - 1].points for i in order]
    assert points == sorted(points, reverse=True)
    assert sorted(order) == [i for i in range(1, 24) if network.arities[i] > 1]
    in_view = browser.run(f"return {cards}.filter((c) => c.checkVisibility()).length")
    assert in_view == 8
    last = order[-1]
    browser.find("#find").send_keys(network.names[last])
    found = browser.run(
        f"return {cards}.filter((c) => c.checkVisibility()).map((c) => Number(c.dataset.variable))"
    )
    assert last in found
    assert len(found) < len(order)
    constant = [network.names[i] for i in range(1, 24) if network.arities[i] == 1]
    assert constant  # they share a line instead of having a card each
    assert all(name in browser.find(".idle").text for name in constant)


def test_impossible_and_hopeless_evidence_is_told(browser: Browser, tmp_path: Path) -> None:
    """Probability zero has no posteriors, and a click takes it back."""
    network = random_network(9, 8, max_parents=3, zeros=0.35)
    zero = next(
        (v, s) for v, p in enumerate(posteriors_of(network, {})) for s in range(len(p)) if p[s] == 0
    )
    make_report(as_classifier(network)).save(tmp_path / "r.html")
    browser.open(tmp_path / "r.html")
    browser.click_state(*zero)
    assert "cannot occur together" in browser.find(".problem").text
    assert {text for lines in browser.lines().values() for _, _, text in lines} == {"–"}
    browser.click_state(*zero)
    assert_shows(browser, network, {})
    assert browser.messages() == []


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_nasty_names_break_nothing(browser: Browser, tmp_path: Path, size: tuple[int, int]) -> None:
    """No name runs, none becomes an element, all can be clicked, the page still fits."""
    classifier = nasty_classifier()
    make_report(classifier).save(tmp_path / "r.html")
    browser.open(tmp_path / "r.html", size)
    for variable, state in ((1, 2), (5, 3), (7, 0)):
        browser.click_state(variable, state)
    assert_shows(browser, classifier.network_, {1: 2, 5: 3, 7: 0})
    assert browser.hidden_numbers() == []
    assert browser.run("return window.broken") is None
    made = "document.querySelectorAll('img, h1 b, #explore bdi *:not(wbr)').length"
    assert browser.run(f"return {made}") == 0
    shown = browser.run("return document.querySelector('#variable-1 bdi').textContent")
    assert shown == classifier.network_.names[1]
    assert browser.overflow() == 0
    assert browser.messages() == []
    assert browser.requests() == []


def test_a_case_is_printed_alone(browser, iris_page):
    """The sentence, what is known, the probabilities and the reasons; nothing else."""
    browser.open(iris_page[0])
    browser.click_state(1, 0)
    browser.run("window.print = () => {}")
    browser.run("document.querySelector('.action').click()")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = browser.run("return document.body.innerText")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert "mainly because of" in shown
    assert "This case" in shown
    for word in ("How good", "What each column does", "Settings", "Find a column"):
        assert word not in shown
