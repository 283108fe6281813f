"""Reports, summaries and figures of networks with trained parameters and fine bins."""

from __future__ import annotations

import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import trained
from javascript import run_javascript
from marginbn import BNClassifier, describe, plotting, write_report
from marginbn.network.explain import mean_contributions
from marginbn.report.summary import (
    claims_optimality,
    describe_tables,
    is_proved,
    summarise,
    verdict,
)


def words(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


def test_a_choice_is_no_theorem() -> None:
    """What was chosen among what, the numbers of each, and nothing called optimal or proven."""
    classifier = trained.fitted("average")
    assert isinstance(classifier, BNClassifier)
    text = words(describe(classifier))
    assert not claims_optimality(classifier)
    assert not is_proved(classifier)
    assert not re.search("Optimal|proven|gap", text)
    assert text.startswith("Chosen by validated log loss among 2 candidates; structure: forest")
    for i, name in enumerate(("naive", "forest")):
        loss, right = (classifier.cv_results_[k][i] for k in ("log_loss", "accuracy"))
        error = classifier.cv_results_["calibration_error"][i]
        numbers = f"{name} log loss {loss:.4f}, accuracy {100 * right:.2f} %"
        assert f"{numbers}, calibration error {100 * error:.2f} %" in text
    assert "predicts the average of 2 networks; the one below is for reading" in text
    choice = summarise(classifier)["choice"]
    assert (choice["chosen"], choice["n_members"]) == ("forest", 2)
    assert choice["candidates"][1]["log_loss"] == classifier.cv_results_["log_loss"][1]
    json.dumps(summarise(classifier))


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ("naive", "structure: naive; nothing to prove."),
        ("2-tree", "2-tree grown greedily; no optimality claimed."),
        ("margin", "searched briefly; no optimality claimed."),
    ],
)
def test_each_structure_has_an_honest_sentence(chosen: str, sentence: str) -> None:
    """Greedy is called greedy."""
    classifier = BNClassifier()
    vars(classifier).update(vars(trained.fitted("chosen")), chosen_=chosen)
    assert verdict(classifier).endswith(sentence)


def test_one_class_and_few_rows_are_described() -> None:
    """Nothing to separate, or nothing to validate."""
    X, y = trained.rows()
    assert describe(BNClassifier().fit(X[:20], ["a"] * 20)).startswith("There is only one class")
    assert describe(BNClassifier().fit(X[:6], y[:6])).startswith("Too few rows to validate")


@pytest.mark.parametrize("name", trained.CLASSIFIERS)
def test_every_trained_classifier_has_a_summary(name: str) -> None:
    """Searched structures keep their theorem, with the words that it is about the structure."""
    classifier = trained.fitted(name)
    text = words(describe(classifier))
    assert "trained for the" in text
    if name in ("margin", "path", "unrestricted"):
        assert text.startswith("Optimal, proven")
        assert "about the structure, not about the trained parameters" in text
    json.dumps(summarise(classifier), default=lambda value: value.tolist())


def test_many_bins_are_shown_in_runs() -> None:
    """Eight intervals instead of sixty, and their probabilities are the sums."""
    network = trained.fitted("naive").network_
    i = int(np.argmax(network.arities))
    assert network.arities[i] > 24
    (table,) = (
        t for t in describe_tables(network, 500).split("\n\n") if f"P({network.names[i]} " in t
    )
    _, header, *rows = table.splitlines()
    assert len(re.split(r"\s{2,}", header.strip())) == 8
    assert len(rows) == network.n_classes
    for row in rows:
        assert sum(float(v) for v in row.split()[1:]) == pytest.approx(1.0, abs=1e-3)


def test_the_page_has_fields_instead_of_sixty_buttons(tmp_path: Path) -> None:
    """The cuts of numbers are there; the page says how the network was chosen."""
    classifier = trained.fitted("average")
    X, y = trained.rows()
    write_report(classifier, tmp_path / "r.html", X, y, n_folds=0)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    found = re.search(r'id="values">(.*?)</script>', page, re.DOTALL)
    assert found
    values = json.loads(found[1])
    assert values["cuts"][1] == list(classifier.coding_.columns[0].cuts)
    assert values["cuts"][4] is None
    assert len(values["network"]["variables"][1]["states"]) > 24
    assert "How it was chosen" in page
    assert "How the bound closed" not in page
    assert "Optimal, proven" not in page
    assert "forest, chosen" in page
    assert "calibration error" in page
    assert "the classifier itself asks a second, generative network" in words(page)
    assert "the average of networks" not in page
    assert "an average of networks; this page shows the one to read" in words(page)


def test_a_searched_structure_keeps_its_bound_on_the_page(tmp_path: Path) -> None:
    """Only the note about incomplete rows is new."""
    write_report(trained.fitted("unrestricted"), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "How the bound closed" in page
    assert "about the structure, not about the trained parameters" in page


FAKE_PAGE = """
const fake = (tag) => ({
  tag, children: [], dataset: {}, attributes: {}, listeners: {}, value: "", textContent: "",
  style: { setProperty(key, value) { this[key] = value; } },
  classes: new Set(),
  classList: { toggle() {} },
  setAttribute(key, value) { this.attributes[key] = value; },
  append(...more) { this.children.push(...more); },
  addEventListener(name, act) { this.listeners[name] = act; },
});
globalThis.document = { createElement: fake };
"""


def test_numbers_fall_into_the_bins_of_the_coding() -> None:
    """A typed number has the state that prediction gives it, cuts themselves included."""
    column = trained.fitted("naive").coding_.columns[0]
    cuts = np.array(column.cuts)
    values = [*cuts.tolist(), *(cuts + 1e-9).tolist(), -1e9, 1e9]
    expected = np.searchsorted(cuts, values, side="left").tolist()
    asked = f"{json.dumps(cuts.tolist())}, v"
    answer = run_javascript(
        f"JSON.stringify({json.dumps(values)}.map((v) => binOf({asked})))",
        *("format", "elements", "strip"),
    )
    assert json.loads(answer) == expected


def test_tables_on_the_page_have_runs_of_bins() -> None:
    """Eight columns that hold every bin once; few states, or no numbers, stay as they are."""
    column = trained.fitted("naive").coding_.columns[0]
    states, cuts = list(column.variable.states), list(column.cuts)

    def columns(states: list[str], cuts: list[float] | None) -> list[dict[str, object]]:
        asked = json.dumps({"states": states, "cuts": cuts})
        scripts = ("format", "elements", "strip", "tables")
        found: list[dict[str, object]] = json.loads(
            run_javascript(f"JSON.stringify(columnsOf({asked}))", *scripts)
        )
        return found

    runs = columns(states, cuts)
    assert len(states) > 24
    assert len(runs) == 8
    assert [run["start"] for run in runs] == [0, *(run["end"] for run in runs[:-1])]
    assert runs[-1]["end"] == len(states)
    last = int(str(runs[0]["end"])) - 1
    assert float(str(runs[0]["name"]).removeprefix("<= ")) == pytest.approx(cuts[last], rel=1e-4)
    assert [c["name"] for c in columns(states, None)] == states
    assert [c["name"] for c in columns(states[:3], cuts[:2])] == states[:3]


@pytest.mark.parametrize("cuts", [[0.5, 1.5], None])
def test_a_field_sets_and_takes_back_evidence(cuts: list[float] | None) -> None:
    """Typed or chosen, cleared, and overruled from elsewhere."""
    field = {True: ("input", '"1.0"'), False: ("change", '"1"')}[cuts is not None]
    script = f"""(() => {{
        {FAKE_PAGE}
        const log = [];
        const variable = {{ name: "x", states: ["a", "b", "c"], cuts: {json.dumps(cuts)} }};
        const view = buildStrip(variable, 3, (i, s) => log.push([i, s]));
        const field = view.card.children[1];
        const words = () => view.card.children[3].textContent;
        view.show([0.2, 0.5, 0.3], undefined);
        log.push(words());
        field.value = {field[1]}; field.listeners.{field[0]}();
        view.show([0, 1, 0], 1);
        log.push(words());
        field.value = ""; field.listeners.{field[0]}();
        view.show([0.2, 0.5, 0.3], undefined);
        field.listeners.{field[0]}();
        view.show([0, 0, 1], 2);
        log.push(String(field.value));
        return JSON.stringify(log);
    }})()"""
    log = json.loads(run_javascript(script, "format", "elements", "strip"))
    assert log == [
        "3 states, most probable b: 50.0 %",
        [3, 1],
        "chosen: b",
        [3, None],
        "" if cuts is not None else "2",
    ]


def test_figures_of_fine_bins() -> None:
    """Tables of sixty states, the graph, and explanations with the bin of the row."""
    classifier = trained.fitted("average")
    X, y = trained.rows()
    network = classifier.network_
    i = int(np.argmax(network.arities))
    assert len(plotting.plot_table(network, i).get_xticklabels()) <= 40
    plotting.plot_network(network)
    explanation = classifier.explain(X[:1])[0]
    plotting.plot_explanation(explanation)
    plotting.plot_mean_contributions(mean_contributions(classifier, X, y))
    plt.close("all")
    codes = classifier.coding_.encode(classifier._read_features(X[:1]))[0]
    for k, code in enumerate(codes, start=1):
        state = network.variables[k].states[code]
        sign = "=" if network.names[k] == "x3" else "in"
        assert f"{network.names[k]} {sign} {state}" in str(explanation)
