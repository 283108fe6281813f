"""The picture of a network: drawn on the axes it is given, labels inside boxes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from marginbn import TANClassifier
from marginbn.exceptions import MissingDependencyError
from marginbn.network.network import BayesianNetwork
from marginbn.plotting import plot_network
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import random_network, sprinkler

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
PathPatch = pytest.importorskip("matplotlib.patches").PathPatch


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris() -> TANClassifier:
    return TANClassifier().fit(*load_iris(return_X_y=True))


def texts(ax) -> list[str]:
    return [t.get_text() for t in ax.texts]


def inside_figure(ax) -> bool:
    """Whether no text of the axes is clipped by the figure."""
    figure = ax.figure
    figure.draw_without_rendering()
    box = ax.get_tightbbox(figure.canvas.get_renderer())
    width, height = figure.canvas.get_width_height()
    return box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1


def test_axes_are_taken_and_returned(iris: TANClassifier) -> None:
    """Given axes are drawn on; without any there is a new figure and nothing is clipped."""
    _, ax = plt.subplots()
    assert plot_network(iris.network_, ax=ax) is ax
    assert len(plt.get_fignums()) == 1
    fresh = plot_network(iris.network_)
    assert fresh is not ax
    assert texts(fresh) == texts(ax)
    assert inside_figure(fresh)


def test_without_matplotlib_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """MissingDependencyError with the command."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "marginbn\[plot\]"'):
        plot_network(sprinkler())


def test_importing_the_room_needs_no_matplotlib() -> None:
    """Only drawing loads it."""
    assert not loads("import marginbn.plotting", "matplotlib")


def test_the_report_does_without_the_room() -> None:
    """Its pictures are SVG; what both draw is computed in rooms before them."""
    assert not loads("import marginbn.report.page", "marginbn.plotting")


def loads(statement: str, module: str) -> bool:
    """Whether a fresh interpreter loads the module too."""
    code = f"import sys; {statement}; print({module!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


def large_network() -> BayesianNetwork:
    """The class and 57 features, of which some have no arcs and some long names."""
    network = random_network(8, n_variables=58, max_parents=2, max_arity=2)
    variables = [
        Variable(("W" * 200 if i % 5 == 0 else f"word_freq_{i}") + str(i), v.states)
        for i, v in enumerate(network.variables)
    ]
    return BayesianNetwork(network.structure, tuple(variables), network.log_tables)


def test_labels_fit_their_boxes() -> None:
    """With 57 features every label, measured as drawn, lies in its box."""
    from matplotlib.patches import FancyBboxPatch

    network = large_network()
    ax = plot_network(network)
    ax.figure.draw_without_rendering()
    boxes = [p for p in ax.patches if isinstance(p, FancyBboxPatch)]
    labels = [t for t in ax.texts if t.get_text() != "no arcs: without influence"]
    assert len(boxes) == len(labels) == 58
    for box, text in zip(boxes, labels, strict=True):
        frame, written = box.get_window_extent(), text.get_window_extent()
        assert frame.x0 <= written.x0
        assert written.x1 <= frame.x1
        assert frame.y0 <= written.y0
        assert written.y1 <= frame.y1
        assert text.get_fontsize() >= 6


def test_the_class_is_highlighted_and_loners_are_grey() -> None:
    """Three kinds of boxes in three colours."""
    from matplotlib.patches import FancyBboxPatch

    half = np.log([0.5, 0.5])
    variables = tuple(Variable(n, ("0", "1")) for n in ("c", "x", "alone"))
    tables = (half, np.array([half, half]), half)
    ax = plot_network(BayesianNetwork(Structure(((), (0,), ())), variables, tables))
    colours = [p.get_facecolor() for p in ax.patches if isinstance(p, FancyBboxPatch)]
    assert len(set(colours)) == 3
    assert "no arcs: without influence" in texts(ax)


def test_dollars_are_no_mathematics() -> None:
    """Names that would be formulas, even broken ones, are drawn as they are."""
    half = np.log([0.5, 0.5])
    variables = (Variable("$\\frac$", ("$a$", "b")), Variable("$x_{1$", ("$c$", "$d")))
    network = BayesianNetwork(Structure(((), (0,))), variables, (half, np.array([half, half])))
    ax = plot_network(network)
    ax.figure.draw_without_rendering()
    assert not any("mathdefault" in t.get_text() for t in ax.texts)
