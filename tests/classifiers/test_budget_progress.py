"""What verbose=1 shows: lines on stderr. And reports, which show themselves."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from marginbn import MaxMarginBNClassifierCV, NaiveBayesClassifier, Search, make_report


class Notebook:
    """Stands for IPython in a kernel: keeps what is shown, piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[list[str]] = []
        self.display = SimpleNamespace(HTML=lambda text: text, display=self._show)

    def get_ipython(self) -> Any:
        return SimpleNamespace(kernel=object())

    def _show(self, text: str, *, display_id: bool = False) -> Any:
        self.pieces.append([text])
        return SimpleNamespace(update=self.pieces[-1].append)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    found = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", found)  # type: ignore[arg-type]
    return found


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    return load_iris(return_X_y=True)


SMALL = {"gammas": [1.0, 2.0], "max_parents": [1], "cv": 3}


def test_a_validation_is_told_step_by_step(
    iris: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    """A line per fold with the count and the time left; silence without verbose."""
    MaxMarginBNClassifierCV(**SMALL, search=Search(verbose=1)).fit(*iris)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("validation")]
    assert len(told) == 3
    for k, line in enumerate(told, start=1):
        assert f"{k} of 3 steps done, about " in line
        assert line.endswith(" left")
    MaxMarginBNClassifierCV(**SMALL).fit(*iris)
    assert capsys.readouterr().err == ""


def test_workers_do_not_swallow_the_lines(
    iris: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    """With processes of their own the folds are told by the parent."""
    MaxMarginBNClassifierCV(**SMALL, search=Search(verbose=1), n_jobs=2).fit(*iris)
    assert capsys.readouterr().err.count("steps done") == 3


def test_reports_show_themselves_inline(
    iris: tuple[np.ndarray, np.ndarray], notebook: Notebook
) -> None:
    """In a frame of the height asked for, with the whole page inside."""
    report = make_report(NaiveBayesClassifier().fit(*iris), title='a "b" <c>')
    report.show(height=345)
    (shown,) = notebook.pieces[0]
    assert shown.startswith("<iframe srcdoc=")
    assert "height:345px" in shown
    assert "&lt;!doctype html&gt;" in shown
    assert "<c>" not in shown
    assert report._repr_html_() == report.frame()


def test_elsewhere_a_report_opens_in_the_browser(
    iris: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is written and its address given to the browser."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setitem(sys.modules, "IPython", None)  # type: ignore[arg-type]
    report = make_report(NaiveBayesClassifier().fit(*iris))
    report.show()
    from pathlib import Path
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    path = Path(url2pathname(urlparse(opened[0]).path))
    try:
        assert path.read_text(encoding="utf-8") == report.html
    finally:
        path.unlink()
