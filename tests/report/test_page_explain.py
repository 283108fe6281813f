"""What the scripts say of a case: the terms of the library, sums that meet, words and orders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from javascript import run_javascript
from marginbn.network.explain import explain_codes
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import assignment
from marginbn.report.page import network_values
from networks import random_evidence, random_network


def explain_in_javascript(
    network: BayesianNetwork, cases: Sequence[Mapping[int, int]]
) -> list[dict[str, Any]]:
    """Log joint, classes compared and terms of each case."""
    asked = json.dumps([[*case.items()] for case in cases])
    program = f"""(() => {{
        const network = readNetwork({json.dumps(network_values(network))});
        return JSON.stringify({asked}.map((pairs) => {{
            const evidence = new Map(pairs);
            const joint = logJoint(network, evidence);
            const [first, second] = rivals(joint);
            return {{
                joint: Array.from(joint), first, second,
                terms: explainCase(network, evidence, first, second),
            }};
        }}));
    }})()"""
    found: list[dict[str, Any]] = json.loads(run_javascript(program))
    return found


def codes_of(network: BayesianNetwork, case: Mapping[int, int]) -> np.ndarray:
    codes = np.full((1, network.n_variables - 1), -1, dtype=np.int32)
    for variable, state in case.items():
        if variable > 0:
            codes[0, variable - 1] = state
    return codes


@pytest.mark.parametrize("seed", range(8))
def test_terms_are_those_of_the_library(seed: int) -> None:
    """Any structure, none to all features known, the class itself chosen or not."""
    network = random_network(seed, 7, 3, 4)
    rng = np.random.default_rng(seed)
    cases = [random_evidence(network, rng, size)[0] for size in (0, 2, 4, 6, 7)]
    classes = np.arange(network.n_classes)
    for case, found in zip(cases, explain_in_javascript(network, cases), strict=True):
        expected = explain_codes(network, classes, codes_of(network, case))
        np.testing.assert_allclose(found["joint"], expected.log_joint[0], rtol=0, atol=1e-9)
        assert (found["first"], found["second"]) == (expected.labels[0], expected.rivals[0])
        values = {term["variable"]: term["value"] for term in found["terms"]}
        assert set(values) == {0, *(v for v in case if v > 0)}
        for variable, value in enumerate(expected.values[0]):
            assert values.get(variable, 0.0) == pytest.approx(value, abs=1e-9)
        assert sum(values.values()) == pytest.approx(expected.log_margins[0], abs=1e-9)
        sizes = [abs(term["value"]) for term in found["terms"][1:]]
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    "state", ["red", "> 4.5", "<= -1", "(1, 2e+05]", "(missing)", "(1, 2] or > 3"]
)
def test_states_read_as_in_the_library(state: str) -> None:
    """A bin is no equation."""
    asked = f"'x' + relation({json.dumps(state)}) + {json.dumps(state)}"
    assert run_javascript(asked, "format") == assignment("x", state)


def test_numbers_read_well() -> None:
    """Odds, signs, and probabilities that are nearly 0 or 1."""
    asked = """JSON.stringify([odds(Math.log(3.6)), odds(-Math.log(20)), odds(40), signed(-0.001),
        signed(-2), percent(0), percent(1e-5), percent(0.1234), percent(0.99999), percent(1)])"""
    assert json.loads(run_javascript(asked, "format")) == [
        "3.6 : 1", "1 : 20", "1e17 : 1", "+0.00", "−2.00",
        "0.0 %", "< 0.1 %", "12.3 %", "> 99.9 %", "100.0 %",
    ]  # fmt: skip


def test_many_classes_are_sorted_and_boxes_show_the_probable_states() -> None:
    """The largest first, ties by index; a box keeps the order, and what was chosen."""
    asked = """JSON.stringify([byProbability([0.1, 0.4, 0.1, 0.4]),
        statesShown([0.1, 0.4, 0.2, 0.3], 2), statesShown([0.1, 0.4, 0.2, 0.3], 2, 0),
        statesShown([0.5, 0.5], 5)])"""
    scripts = ("format", "elements", "focus", "strip", "cards", "classes", "tables", "viewport")
    answer = json.loads(run_javascript(asked, *scripts, "picture"))
    assert answer == [[1, 3, 0, 2], [1, 3], [0, 1], [0, 1]]


def test_names_break_between_words() -> None:
    """Behind joining signs between words, and never inside a number."""
    program = """(() => {
        globalThis.document = { createElement: (tag) => ({ tag, setAttribute() {},
            append(...parts) { this.parts = parts; } }) };
        const pieces = (name) => makeName(name).parts.filter((p) => typeof p === "string");
        const names = ["capital_run_length_longest", "(-0.005, 0.0795]", "a-b"];
        return JSON.stringify(names.map(pieces));
    })()"""
    assert json.loads(run_javascript(program, "format", "elements")) == [
        ["capital_", "run_", "length_", "longest"], ["(-0.005, 0.0795]"], ["a-", "b"],
    ]  # fmt: skip
