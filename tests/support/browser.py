"""A headless Chromium for tests, which skip where there is none, and what a report must show."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginbn import BayesianNetwork

HINT = "scripts/test-browser installs it"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
)
PHONE, DESKTOP = (390, 844), (1280, 900)
CLOSE = 1e-9


def find_program(variable: str, *names: str) -> str:
    """Path that the variable holds, or of the first program at hand; skips if there is none."""
    given = os.environ.get(variable)
    found = given or next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"needs {names[0]}; {HINT}, or set {variable}")
    return found


class Browser:
    """One page at a time, and what went wrong in it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> None:
        """Load a file from disk at a screen size, and wait until it is ready."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        for kind in ("browser", "performance"):  # forget the last page
            self.driver.get_log(kind)
        self.driver.get(path.resolve().as_uri())
        for _ in range(100):
            if self.run("return document.documentElement.dataset.ready"):
                return
            time.sleep(0.1)
        pytest.fail(f"the page is not ready after 10 seconds: {self.messages()}")

    def run(self, script: str, *arguments: object) -> Any:
        """Value of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def messages(self) -> list[str]:
        """What the console has shown since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that the page has asked for, itself left out."""
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        asked = [
            e["params"]["request"]["url"]
            for e in events
            if e["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in asked if url != self.driver.current_url]

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def press(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def click_state(self, variable: int, state: int) -> None:
        """Click a line of a variable as a person does; folded features are opened first."""
        button = self.state(variable, state)
        self.run(
            "const fold = arguments[0].closest('details'); if (fold) fold.open = true;"
            "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})",
            button,
        )
        button.click()

    def state(self, variable: int, state: int) -> Any:
        """Button of the line that a state belongs to."""
        return self.find(f"#explore [data-variable='{variable}'] [data-states~='{state}']")

    def lines(self) -> dict[int, list[tuple[list[int], str, str]]]:
        """By variable that has a card: states, probability with all digits, and as displayed."""
        pairs = self.run(
            "return [...document.querySelectorAll('#explore .card[data-variable]')].map((c) => ["
            "Number(c.dataset.variable), [...c.querySelectorAll('[data-states]')].map((b) => ["
            "b.dataset.states.split(' ').map(Number), b.dataset.probability,"
            "b.querySelector('.number').textContent])])"
        )
        return dict(sorted(pairs))

    def overflow(self) -> int:
        """Pixels by which the page is wider than the screen."""
        return int(
            self.run(
                "const root = document.documentElement; return root.scrollWidth - root.clientWidth"
            )
        )

    def hidden_numbers(self) -> list[str]:
        """Probabilities that stick out of their card."""
        return self.run(
            "return [...document.querySelectorAll('#explore .number')].filter((n) => {"
            "const box = n.getBoundingClientRect();"
            "const card = n.closest('.card').getBoundingClientRect();"
            "return box.left < card.left || box.right > card.right})"
            ".map((n) => n.parentElement.title)"
        )

    def screenshot(self, path: Path, *, full: bool = True) -> None:
        """Picture of the whole page, or of what is on the screen."""
        options = {"captureBeyondViewport": full}
        if full:
            size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
            options["clip"] = {**size, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", options)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def launch_browser(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile; skips where something is missing."""
    if importlib.util.find_spec("selenium") is None:
        pytest.skip(f"needs selenium; {HINT}, or pip install --group browser")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = find_program(
        "MARGINBN_CHROMIUM", "chromium", "chromium-browser", "google-chrome", "chrome"
    )
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options, Service(find_program("MARGINBN_CHROMEDRIVER", "chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


def posteriors_of(network: BayesianNetwork, evidence: Mapping[int, int]) -> list[np.ndarray]:
    """Posteriors as the library computes them."""
    labels = {network.names[i]: network.variables[i].states[s] for i, s in evidence.items()}
    return list(network.marginals(labels).values())


def assert_shows(browser: Browser, network: BayesianNetwork, evidence: Mapping[int, int]) -> None:
    """All digits are equal to 1e-9, and so are those displayed."""
    posteriors, found = posteriors_of(network, evidence), browser.lines()
    constant = {i for i in range(1, network.n_variables) if network.arities[i] == 1}
    assert set(found) == set(range(network.n_variables)) - constant
    for variable, lines in found.items():
        assert variable == 0 or sum(len(states) for states, _, _ in lines) == len(
            posteriors[variable]
        )
        for states, probability, text in lines:
            expected = float(posteriors[variable][states].sum())
            assert float(probability) == pytest.approx(expected, abs=CLOSE)
            assert_displayed(text, expected)


def assert_displayed(text: str, probability: float) -> None:
    """The text is the probability in per cent, rounded to its digits."""
    if text.startswith("<"):
        assert 0 < probability < 5e-4 + CLOSE, text
    elif text.startswith(">"):
        assert 1 - 5e-4 - CLOSE < probability < 1, text
    else:
        assert abs(float(text.removesuffix(" %")) - 100 * probability) <= 0.05 + 1e-7, text
