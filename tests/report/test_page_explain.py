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
    """Log joint and terms of each case."""
    asked = json.dumps([[*case.items()] for case in cases])
    program = f"""(() => {{
        const network = readNetwork({json.dumps(network_values(network))});
        return JSON.stringify({asked}.map((pairs) => {{
            const evidence = new Map(pairs);
            return {{
                joint: Array.from(logJoint(network, evidence)),
                terms: explainCase(network, evidence),
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
        joint = network.log_joint_per_class(expected.codes)[0]
        np.testing.assert_allclose(found["joint"], joint, rtol=0, atol=1e-9)
        first, second = int(expected.labels[0]), int(expected.rivals[0])
        values = {t["variable"]: t["values"][first] - t["values"][second] for t in found["terms"]}
        assert set(values) == {0, *(v for v in case if v > 0)}
        for variable, value in enumerate(expected.values[0]):
            if not network.structure.parents[0]:
                assert values.get(variable, 0.0) == pytest.approx(value, abs=1e-9)
        assert sum(values.values()) == pytest.approx(expected.log_margins[0], abs=1e-9)


@pytest.mark.parametrize(
    "state", ["red", "> 4.5", "<= -1", "(1, 2e+05]", "(missing)", "(1, 2] or > 3"]
)
def test_states_read_as_in_the_library(state: str) -> None:
    asked = f"'x' + relation({json.dumps(state)}) + {json.dumps(state)}"
    assert run_javascript(asked, "format") == assignment("x", state)


SCRIPTS = ("format", "elements", "cards", "waterfall")


def walk_in_javascript(
    network: BayesianNetwork, evidence: Mapping[int, int], c: int
) -> list[dict[str, Any]]:
    """The steps of the waterfall of a counted network."""
    program = f"""JSON.stringify(stepsTo(readNetwork({json.dumps(network_values(network))}),
        new Map({json.dumps([*evidence.items()])}), new Map(), {c}))"""
    found: list[dict[str, Any]] = json.loads(run_javascript(program, *SCRIPTS))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_waterfall_goes_from_the_base_rate_to_the_answer(seed: int) -> None:
    """Every step begins where the one before ends; features that are many are one step."""
    network = random_network(seed, 12, 2, 3)
    case = {v: 0 for v in range(1, 12) if network.arities[v] > 1}
    names = {network.names[v]: network.variables[v].states[s] for v, s in case.items()}
    answer = network.posterior_array(0, names)
    for c in range(network.n_classes):
        first, *steps = walk_in_javascript(network, case, c)
        assert first["end"] == pytest.approx(network.posterior_array(0)[c], abs=1e-9)
        end = first["end"]
        for step in steps:
            assert step["start"] == end
            end = step["end"]
        assert end == pytest.approx(answer[c], abs=1e-9)
        assert len(steps) == min(len(case), 8)
        if len(case) > 7:
            assert steps[-1]["count"] == len(case) - 7


def test_numbers_read_well() -> None:
    asked = """JSON.stringify([points(-0.0001), points(-0.02), points(0.345),
        percent(0), percent(1e-5), percent(0.1234), percent(0.99999), percent(1)])"""
    assert json.loads(run_javascript(asked, "format")) == [
        "+0.0", "−2.0", "+34.5", "0.0 %", "< 0.1 %", "12.3 %", "> 99.9 %", "100.0 %",
    ]  # fmt: skip


def test_groups_add_up_and_classes_are_sorted() -> None:
    """The largest first, ties by index; a line of several states has the sum of them."""
    asked = """JSON.stringify([byProbability([0.1, 0.4, 0.1, 0.4]),
        entriesOf({ groups: [{ name: "a", states: [0, 2] }, { name: "b", states: [1] }] },
            [0.25, 0.25, 0.5], [0.5, 0.25, 0.25], 2)
            .map((e) => [e.probability, e.prior, e.pressed])])"""
    assert json.loads(run_javascript(asked, *SCRIPTS)) == [
        [1, 3, 0, 2], [[0.75, 0.75, True], [0.25, 0.25, False]],
    ]  # fmt: skip


def test_axes_have_round_ticks() -> None:
    asked = "JSON.stringify([ticks(-0.5, 72.5), ticks(0.2, 1.1), ticks(-3, 3), ticks(1, 990)])"
    assert json.loads(run_javascript(asked, *SCRIPTS, "effects")) == [
        [0, 20, 40, 60], pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0]), [-2, 0, 2], [200, 400, 600, 800],
    ]  # fmt: skip


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
