"""Reports of ten data sets in a real browser: fit, write, open, click, compare."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from browser import PHONE, Browser, assert_shows, launch_browser
from data_folder import data_folder
from marginbn import DataWarning, MaxMarginBNClassifier, OptimalityWarning
from marginbn.datasets import load_folder_dataset
from marginbn.report.page import make_report

NAMES = (
    "abalone",
    "adult",
    "chess",
    "crx",
    "letter",
    "lymphography",
    "mushroom",
    "segment",
    "soybean-large",
    "spambase",
)
LARGEST = 2_000_000  # bytes
LOG = logging.getLogger(__name__)  # figures that scripts/test-browser shows


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with launch_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_reports_of_data_sets(name: str, browser: Browser, tmp_path: Path) -> None:
    """Three clicked states give the library's posteriors; no message, no request, below 2 MB."""
    data = load_folder_dataset(name, data_folder())
    X, y = data.train.drop(data.target), data.train.column(data.target)
    path = tmp_path / "report.html"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptimalityWarning)
        warnings.simplefilter("ignore", DataWarning)
        fitted = MaxMarginBNClassifier(time_limit=3.0, missing="state").fit(X, y)
        make_report(fitted, X, y, title=name, n_folds=2, fold_time_limit=1.0).save(path)
    assert path.stat().st_size < LARGEST

    network = fitted.network_
    rng = np.random.default_rng(0)
    buttons = [i for i in range(1, network.n_variables) if 1 < network.arities[i] <= 8]
    chosen = rng.choice(buttons, min(3, len(buttons)), replace=False).tolist()
    evidence = {v: int(rng.integers(network.arities[v])) for v in chosen}
    browser.open(path)
    ready = browser.run("return document.documentElement.dataset.ready")
    LOG.info("%s: %d bytes, interactive after %s ms", name, path.stat().st_size, ready)
    for variable, state in evidence.items():
        browser.click_state(variable, state)
    assert_shows(browser, network, evidence)
    assert browser.messages() == []
    assert browser.requests() == []
    browser.open(path, PHONE)
    assert browser.overflow() == 0
