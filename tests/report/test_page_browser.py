"""The report in a real browser: clicks and keys change the numbers to what Python computes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

from browser import CLOSE, DESKTOP, PHONE, Browser, assert_shows, launch_browser, posteriors_of
from marginbn import BayesianNetwork, GenerativeBNClassifier, NaiveBayesClassifier, Search
from marginbn.classifiers import BaseBNClassifier
from marginbn.report.contents import class_information, order_by_information
from marginbn.report.page import write_report
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
        class_restricted=False, max_parents=3, score="loglik", search=Search(solver="dp")
    ).fit(X, names[y])
    path = tmp_path_factory.mktemp("pages") / "iris.html"
    write_report(fitted, path, X, names[y], n_folds=2, title="Iris")
    return path, fitted


def as_classifier(network: BayesianNetwork) -> BaseBNClassifier:
    """A classifier around any network, for pages of networks that nobody would learn."""
    names = list(network.names[1:])
    X = np.array([["s"] * len(names)] * 4, dtype=object)
    fitted = NaiveBayesClassifier().fit(X, ["s0", "s0", "s1", "s1"])
    fitted.network_ = network
    fitted.structure_ = network.structure
    return fitted


def test_the_page_opens_without_a_word(
    browser: Browser, iris_page: tuple[Path, BaseBNClassifier]
) -> None:
    """No console message, no request besides the file itself; the priors are shown."""
    browser.open(iris_page[0])
    assert browser.messages() == []
    assert browser.requests() == []
    assert_shows(browser, iris_page[1].network_, {})


def test_clicks_set_change_and_take_back_evidence(
    browser: Browser, iris_page: tuple[Path, BaseBNClassifier]
) -> None:
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
    browser.run("document.querySelector('#case-title ~ .case-tools button').focus()")
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


def test_a_row_can_be_asked_about(
    browser: Browser, iris_page: tuple[Path, BaseBNClassifier]
) -> None:
    """The button of a sample sets all its features, and the class gets the row's posterior."""
    path, fitted = iris_page
    browser.open(path)
    browser.run("document.querySelector('[data-sample]').click()")
    pressed = browser.run(
        "return [...document.querySelectorAll('#explore [aria-pressed=true]')].length"
    )
    assert pressed == fitted.n_features_in_
    X = load_iris(as_frame=True).data
    row = int(browser.find(".samples h4").text.split()[1].rstrip(","))
    np.testing.assert_allclose(
        browser.probabilities()[0], fitted.predict_proba(X[row : row + 1])[0], atol=CLOSE
    )


def test_pictures_and_tables_show_the_probabilities(
    browser: Browser, iris_page: tuple[Path, BaseBNClassifier]
) -> None:
    """A variable chosen in the picture shows its table, as does an entry that is opened."""
    from selenium.webdriver.common.keys import Keys

    path, fitted = iris_page
    browser.open(path)
    browser.run("document.querySelector('.box .head').focus()")
    browser.press(Keys.ARROW_RIGHT)
    browser.press(Keys.ARROW_RIGHT)
    browser.press(Keys.ENTER)
    expected_cells = np.exp(fitted.network_.log_tables[2]).ravel()
    for place in ("#inspector", "#tables-list details:nth-of-type(3)"):
        browser.run(f"const e = document.querySelector('{place}'); if ('open' in e) e.open = true")
        cells = browser.run(
            "const done = arguments[0]; return new Promise((r) => setTimeout(() => r("
            "[...document.querySelectorAll(done + ' td')].map((c) => c.textContent)), 50))",
            place,
        )
        assert len(cells) == len(expected_cells)
        for text, probability in zip(cells, expected_cells, strict=True):
            if text[0] not in "<>":
                assert abs(float(text) - probability) <= 0.0005 + 1e-9
    browser.press(Keys.ENTER)
    assert browser.find("#inspector").text == ""


def test_search_and_order(browser: Browser, tmp_path: Path) -> None:
    """The most informative features first, eight of them in view; typing finds the others."""
    network = random_network(5, 24, max_parents=2)
    write_report(as_classifier(network), tmp_path / "r.html")
    browser.open(tmp_path / "r.html")
    cards = "[...document.querySelectorAll('.features .card')]"
    order = browser.run(f"return {cards}.map((c) => Number(c.dataset.variable))")
    informative = order_by_information(class_information(network), 24)
    assert order == [i for i in informative if network.arities[i] > 1]
    in_view = browser.run(f"return {cards}.filter((c) => c.checkVisibility()).length")
    assert in_view == 8
    last = order[-1]
    browser.find("#find").send_keys(network.names[last])
    found = browser.run(
        f"return {cards}.filter((c) => c.checkVisibility()).map((c) => Number(c.dataset.variable))"
    )
    assert last in found
    assert len(found) < len(order)
    browser.find("#find").clear()
    browser.find("#informative").click()
    order = browser.run(f"return {cards}.map((c) => Number(c.dataset.variable))")
    assert order == sorted(order)
    constant = [network.names[i] for i in range(1, 24) if network.arities[i] == 1]
    assert constant  # they share a line instead of having a card each
    assert all(name in browser.find(".idle").text for name in constant)


def test_many_classes_are_sorted_by_probability(browser: Browser, tmp_path: Path) -> None:
    """Of thirty classes the five most probable are in view; the others are one press away."""
    labels = np.repeat([f"class {i:02}" for i in range(30)], 3)
    X = np.array([[label[-2:]] for label in labels], dtype=object)
    X[::5, 0] = "07"
    fitted = NaiveBayesClassifier().fit(X, labels)
    write_report(fitted, tmp_path / "r.html")
    browser.open(tmp_path / "r.html", PHONE)
    browser.run(
        "const s = document.querySelector('#explore .features select');"
        "s.value = '25'; s.dispatchEvent(new Event('change'))"
    )
    posterior = posteriors_of(fitted.network_, {1: 25})[0]
    expected = sorted(range(30), key=lambda c: (-posterior[c], c))
    shown = (
        "return [...document.querySelectorAll('.card.class [data-state]')]"
        ".filter((b) => b.checkVisibility()).map((b) => Number(b.dataset.state))"
    )
    assert browser.run(shown) == expected[:5]
    browser.run("document.querySelector('.class .more').click()")
    assert browser.run(shown) == expected


def test_impossible_and_hopeless_evidence_is_told(browser: Browser, tmp_path: Path) -> None:
    """Probability zero has no posteriors, and a click takes it back."""
    network = random_network(9, 8, max_parents=3, zeros=0.35)
    zero = next(
        (v, s) for v, p in enumerate(posteriors_of(network, {})) for s in range(len(p)) if p[s] == 0
    )
    write_report(as_classifier(network), tmp_path / "r.html")
    browser.open(tmp_path / "r.html")
    browser.click_state(*zero)
    assert "cannot occur together" in browser.find(".status").text
    assert {text for texts in browser.numbers().values() for text in texts} == {"–"}
    browser.click_state(*zero)
    assert_shows(browser, network, {})
    assert browser.messages() == []


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_fit_the_screen(
    browser: Browser,
    iris_page: tuple[Path, BaseBNClassifier],
    size: tuple[int, int],
    dark: bool,
) -> None:
    """Nothing is wider than the screen, and the colours follow the reader's wish."""
    browser.open(iris_page[0], size, dark=dark)
    browser.click_state(1, 1)
    assert browser.overflow() == 0
    paper = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is not dark
    assert browser.messages() == []


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_nasty_names_break_nothing(browser: Browser, tmp_path: Path, size: tuple[int, int]) -> None:
    """No name runs, none becomes an element, all can be clicked, the page still fits."""
    classifier = nasty_classifier()
    write_report(classifier, tmp_path / "r.html")
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


def test_printing_opens_the_tables(
    browser: Browser, iris_page: tuple[Path, BaseBNClassifier]
) -> None:
    """On paper the small tables are all there."""
    browser.open(iris_page[0])
    browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    opened = browser.run("return document.querySelectorAll('#tables-list details table').length")
    assert opened == iris_page[1].network_.n_variables
