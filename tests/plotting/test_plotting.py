"""Pictures: drawn on the axes they are given, with the right numbers, labels inside boxes."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from marginbn import (
    InputError,
    MaxMarginBNClassifier,
    MissingDependencyError,
    NaiveBayesClassifier,
    TANClassifier,
)
from marginbn.network.explain import log_margins, mean_contributions
from marginbn.network.network import BayesianNetwork
from marginbn.plotting import (
    plot_calibration,
    plot_confusion,
    plot_explanation,
    plot_margins,
    plot_mean_contributions,
    plot_network,
    plot_table,
    plot_trace,
)
from marginbn.plotting.quality import calibration_bins, confusion_counts
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from marginbn.solvers.result import TracePoint
from networks import random_network, sprinkler

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
PathPatch = pytest.importorskip("matplotlib.patches").PathPatch

TRACE = (
    TracePoint(0.0, -math.inf, math.inf),
    TracePoint(0.5, 10.0, 40.0),
    TracePoint(2.0, 12.0, 12.5),
)
X, Y = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris() -> TANClassifier:
    return TANClassifier().fit(X, Y)


PLOTS = {
    "network": lambda clf, ax: plot_network(clf.network_, ax=ax),
    "table": lambda clf, ax: plot_table(clf.network_, 4, ax=ax),
    "trace": lambda clf, ax: plot_trace(TRACE, ax=ax),
    "margins": lambda clf, ax: plot_margins(log_margins(clf, X, Y), gamma=2.0, ax=ax),
    "calibration": lambda clf, ax: plot_calibration(Y, clf.predict_proba(X), clf.classes_, ax=ax),
    "confusion": lambda clf, ax: plot_confusion(Y, clf.predict(X), ax=ax),
    "explanation": lambda clf, ax: plot_explanation(clf.explain(X)[70], ax=ax),
    "mean": lambda clf, ax: plot_mean_contributions(mean_contributions(clf, X, Y), ax=ax),
}


def texts(ax) -> list[str]:
    return [t.get_text() for t in ax.texts]


def rows(ax) -> list[str]:
    return [t.get_text() for t in ax.get_yticklabels()]


def inside_figure(ax) -> bool:
    """Whether no text of the axes is clipped by the figure."""
    figure = ax.figure
    figure.draw_without_rendering()
    box = ax.get_tightbbox(figure.canvas.get_renderer())
    width, height = figure.canvas.get_width_height()
    return box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1


@pytest.mark.parametrize("name", PLOTS)
def test_axes_are_taken_and_returned(name: str, iris: TANClassifier) -> None:
    """Given axes are drawn on; without any there is a new figure and nothing is clipped."""
    _, ax = plt.subplots()
    assert PLOTS[name](iris, ax) is ax
    assert len(plt.get_fignums()) == 1
    fresh = PLOTS[name](iris, None)
    assert fresh is not ax
    assert inside_figure(fresh)


@pytest.mark.parametrize("name", PLOTS)
def test_without_matplotlib_one_line_says_how_to_get_it(
    name: str, iris: TANClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every function raises MissingDependencyError with the command."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "marginbn\[plot\]"'):
        PLOTS[name](iris, None)


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
    for ax in (plot_network(network), plot_table(network, 1)):
        ax.figure.draw_without_rendering()
        assert not any("mathdefault" in t.get_text() for t in ax.texts)


def test_graphviz_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pygraphviz the message says so; an unknown engine is named."""
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(MissingDependencyError, match="pip install pygraphviz"):
        plot_network(sprinkler(), engine="graphviz")
    with pytest.raises(InputError, match="engine must be 'layered' or 'graphviz', got 'neato'"):
        plot_network(sprinkler(), engine="neato")


def test_graphviz_places_all_boxes_and_arcs() -> None:
    """Where pygraphviz is there, arcs point down in its drawing too and all fits the axes."""
    pytest.importorskip("pygraphviz")
    from marginbn.network.layout import lay_out
    from marginbn.plotting.graph import arrange

    network = large_network()
    layout = arrange(lay_out(network.structure, network.names))
    assert len(layout.routes) == len(network.structure.arcs)
    for route in layout.routes:
        assert layout.boxes[route.parent].y < layout.boxes[route.child].y
        assert len(route.curve) % 3 == 1
    for box in layout.boxes:
        assert box.width / 2 <= box.x <= layout.width - box.width / 2
        assert 0 <= box.y <= layout.height
        assert (box.variable in layout.isolated) == (box.y > (layout.separator or math.inf))
    assert inside_figure(plot_network(network, engine="graphviz"))


def test_a_table_by_hand() -> None:
    """Rows are joint states of the parents, columns states, cells probabilities."""
    ax = plot_table(sprinkler(), "grass")
    assert rows(ax) == ["no, off", "no, on", "yes, off", "yes, on"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["dry", "wet"]
    assert texts(ax) == ["1.00", "0.00", "0.10", "0.90", "0.20", "0.80", "0.01", "0.99"]
    assert ax.get_title() == "P(grass | rain, sprinkler)"
    assert plot_table(sprinkler(), 0).get_title() == "P(rain)"


def test_large_tables_have_a_colour_bar_instead_of_numbers() -> None:
    """Two hundred rows with labels at some of them."""
    states = tuple(f"s{i}" for i in range(200))
    variables = (Variable("c", states), Variable("x", ("0", "1")))
    tables = (np.log(np.full(200, 1 / 200)), np.log(np.full((200, 2), 0.5)))
    ax = plot_table(BayesianNetwork(Structure(((), (0,))), variables, tables), "x")
    assert texts(ax) == []
    assert len(rows(ax)) == 40
    assert len(ax.figure.axes) == 2
    assert inside_figure(ax)


def test_a_trace_by_hand() -> None:
    """Unknown values are left out; the title has the last gap."""
    ax = plot_trace(TRACE)
    bound, objective = ax.lines
    assert bound.get_label() == "bound"
    assert np.array_equal(bound.get_ydata(), [np.nan, 40.0, 12.5], equal_nan=True)
    assert np.array_equal(objective.get_ydata(), [np.nan, 10.0, 12.0], equal_nan=True)
    assert ax.get_title() == "gap 4.00 %"
    assert plot_trace(TRACE, log_time=True).get_xscale() == "log"


def test_traces_come_from_classifiers_and_results(iris: TANClassifier) -> None:
    """A classifier and its result have the same trace, carried on to the end of the search."""
    for source in (iris, iris.result_):
        line = plot_trace(source).lines[1]
        assert line.get_ydata()[-1] == iris.objective_
        assert line.get_xdata()[-1] == max(iris.result_.seconds, iris.trace_[-1].seconds)
    for wrong in ((), [1, 2]):
        with pytest.raises(InputError, match="source must be"):
            plot_trace(wrong)


def test_a_trace_of_one_step_is_a_line_to_the_end(iris: TANClassifier) -> None:
    """What was known at once held until the search ended."""
    once = replace(iris.result_, trace=(TracePoint(0.5, 10.0, 10.0),), seconds=2.0)
    for line in plot_trace(once).lines:
        assert line.get_xdata().tolist() == [0.5, 2.0]
        assert line.get_ydata().tolist() == [10.0, 10.0]


def test_margins_are_split_at_zero() -> None:
    """Wrong samples are counted apart, gamma stands where it should."""
    ax = plot_margins([-1.0, -0.01, 0.0, 0.5, 3.0], gamma=0.5)
    wrong, right = ax.containers
    assert sum(bar.get_height() for bar in wrong) == 2
    assert sum(bar.get_height() for bar in right) == 3
    assert all(bar.get_x() >= -1e-12 for bar in right if bar.get_height())
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert "gamma = 0.5, reached by 40.00 %" in labels
    assert ax.lines[0].get_xdata()[0] == 0.5
    assert len(plot_margins([0.0]).containers) == 2
    with pytest.raises(InputError, match="at least one number, and only finite"):
        plot_margins([math.inf])


def test_calibration_by_hand() -> None:
    """Bins hold mean confidence, accuracy and number; a probability of one is in the last."""
    shares = [[0.9, 0.1], [0.92, 0.08], [0.4, 0.6], [1.0, 0.0]]
    bins = calibration_bins(["a", "b", "b", "a"], shares, ["a", "b"])
    assert [b.n_samples for b in bins] == [1, 3]
    assert bins[0][:2] == (0.6, 1.0)
    assert bins[1].confidence == pytest.approx(0.94)
    assert bins[1].accuracy == pytest.approx(2 / 3)
    ax = plot_calibration(["a", "b", "b", "a"], shares, ["a", "b"])
    assert ax.get_title() == "4 rows, mean calibration error 30.50 %"
    with pytest.raises(InputError, match=r"\(1, 2\), got \(1, 3\)"):
        calibration_bins(["a"], [[0.2, 0.3, 0.5]], ["a", "b"])


def test_confusion_by_hand() -> None:
    """Rows are true classes, columns predictions; labels are compared as text."""
    counts, names = confusion_counts([1, 1, 2, 2, 2], ["1", "2", "2", "2", "1"])
    assert counts.tolist() == [[1, 1], [1, 2]]
    assert names == ["1", "2"]
    ax = plot_confusion([1, 1, 2, 2, 2], ["1", "2", "2", "2", "1"], classes=[2, 1])
    assert texts(ax) == ["2", "1", "1", "1"]
    assert ax.get_title() == "accuracy 60.00 %"
    assert rows(ax) == ["2", "1"]
    with pytest.raises(InputError, match="'2' is not among them"):
        plot_confusion([1, 2], [1, 1], classes=[1])
    with pytest.raises(InputError, match="equally long"):
        plot_confusion([1, 2], [1])


def test_many_classes_have_no_numbers() -> None:
    """Thirty classes are shades and a colour bar."""
    labels = [f"class {i}" for i in range(30)]
    ax = plot_confusion(labels, labels)
    assert texts(ax) == []
    assert len(ax.figure.axes) == 2
    assert inside_figure(ax)


def test_a_waterfall_ends_at_the_margin(iris: TANClassifier) -> None:
    """Each bar starts where the last one ended, the sum is the log margin."""
    explanation = iris.explain(X)[70]
    ax = plot_explanation(explanation, most=2)
    bars = [c.patches[0] for c in ax.containers]
    assert rows(ax)[2:] == ["3 other variables", "log margin"]
    ends = [bar.get_x() + bar.get_width() for bar in bars]
    assert [bar.get_x() for bar in bars[1:-1]] == pytest.approx(ends[:-2])
    assert ends[-2] == pytest.approx(ends[-1]) == pytest.approx(explanation.log_margin)
    assert bars[0].get_width() == pytest.approx(explanation.contributions[0].value)
    low, high = ax.get_xlim()
    assert low < min(*ends, 0)
    assert high > max(*ends, 0)


def test_a_waterfall_without_any_influence() -> None:
    """Where nothing speaks for anything there is one bar of nothing."""
    clf = NaiveBayesClassifier().fit([["a"], ["a"]], ["x", "y"])
    ax = plot_explanation(clf.explain([["a"]])[0])
    assert rows(ax) == ["2 other variables", "log margin"]


def test_mean_bars_are_sizes_and_dots_means(iris: TANClassifier) -> None:
    """The longest bar is on top; variables left out are counted."""
    mean = mean_contributions(iris, X, Y)
    ax = plot_mean_contributions(mean, most=3)
    assert [bar.get_width() for bar in ax.containers[0]] == list(mean.mean_absolute[:3])
    assert list(ax.lines[0].get_xdata()) == list(mean.mean[:3])
    assert rows(ax) == list(mean.variables[:3])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert "2 smaller variables not shown" in ax.get_xlabel()
    with pytest.raises(InputError, match="most must be at least 1"):
        plot_mean_contributions(mean, most=0)


CALLS = {
    "margins": lambda clf, ax: plot_margins(clf, X, Y, gamma=2.0, ax=ax),
    "calibration": lambda clf, ax: plot_calibration(clf, X, Y, ax=ax),
    "confusion": lambda clf, ax: plot_confusion(clf, X, Y, ax=ax),
    "explanation": lambda clf, ax: plot_explanation(clf, X[70], ax=ax),
    "mean": lambda clf, ax: plot_mean_contributions(clf, X, Y, ax=ax),
    "network": lambda clf, ax: plot_network(clf, ax=ax),
    "table": lambda clf, ax: plot_table(clf, 4, ax=ax),
    "trace": lambda clf, ax: plot_trace(clf, ax=ax),
}


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"trace", "explanation"}))
def test_a_classifier_with_rows_and_labels_draws_what_the_arrays_draw(iris, name):
    """As scikit-learn's displays are called: plot(clf, X, y)."""
    figures = plt.figure().subplots(2)
    PLOTS[name](iris, figures[0])
    CALLS[name](iris, figures[1])
    by_arrays, by_classifier = ([*texts(ax), ax.get_title(), *rows(ax)] for ax in figures)
    assert by_classifier == by_arrays


def test_frames_and_text_labels_are_welcome():
    """A pandas frame of text and a series of labels."""
    frame = pd.DataFrame({"colour": ["red", "red", "blue", "blue"] * 5})
    labels = pd.Series(["yes", "yes", "no", "yes"] * 5, name="bought")
    clf = TANClassifier().fit(frame, labels)
    assert plot_confusion(clf, frame, labels).get_title().startswith("accuracy 75")
    assert plot_calibration(clf, frame, labels).get_title().startswith("20 rows")
    assert plot_explanation(clf, frame.iloc[0]).get_title().startswith("row 0: yes")


def test_a_classifier_of_scikit_learn_is_welcome_too():
    """Nothing but predict, predict_proba and classes_ is asked of it."""
    clf = GaussianNB().fit(X, Y)
    assert plot_confusion(clf, X, Y).get_title() == "accuracy 96.00 %"
    assert plot_calibration(clf, X, Y).get_title().startswith("150 rows")


@pytest.mark.parametrize("plot", [plot_margins, plot_calibration, plot_confusion])
def test_a_classifier_without_rows_is_refused_with_the_way_to_call(iris, plot):
    """The message shows the call."""
    with pytest.raises(InputError, match=rf"{plot.__name__}\(clf, X, y\)"):
        plot(iris)


def test_the_margin_of_the_classifier_is_drawn():
    """Its own gamma, however it was given."""
    clf = MaxMarginBNClassifier(p=0.8, max_parents=1).fit(X, Y)
    legend = plot_margins(clf, X, Y).get_legend().get_texts()
    assert any(text.get_text().startswith("gamma = 1.386") for text in legend)
