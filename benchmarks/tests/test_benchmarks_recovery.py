"""Recovery of known networks: measures of a structure by hand, and the page from records."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import recovery

from marginbn import BayesianNetwork, EncodedData, Structure, Variable

ORIGIN = {"commit": "abc", "engine": "e1", "machine": "m", "reference": {"cpu": 0.1, "wall": 0.1}}


def chain() -> BayesianNetwork:
    variables = tuple(Variable(name, ("0", "1")) for name in "abc")
    follow = np.log([[0.9, 0.1], [0.2, 0.8]])
    return BayesianNetwork(
        Structure(((), (0,), (1,))), variables, (np.log([0.5, 0.5]), follow, follow)
    )


def test_structures_are_judged_by_their_class() -> None:
    """The reversed chain is the same class; a missing arc costs one, a collider turns two."""
    network = chain()
    codes, held_out = network.sample_codes(4000, 0), network.sample_codes(4000, 1)
    data = EncodedData(codes, np.ones(4000), network.variables)
    judged = {
        name: recovery.judge(arcs, network, data, held_out)
        for name, arcs in {
            "same": [("a", "b"), ("b", "c")],
            "turned": [("c", "b"), ("b", "a")],
            "missing": [("a", "b")],
            "collider": [("a", "b"), ("c", "b")],
        }.items()
    }
    assert [j["distance"] for j in judged.values()] == [0, 0, 1, 2]
    assert judged["same"]["bic"] == pytest.approx(judged["turned"]["bic"])
    assert judged["same"]["log_likelihood"] > judged["missing"]["log_likelihood"] + 0.05
    truth = recovery.mean_log_likelihood(network, held_out)
    assert judged["same"]["log_likelihood"] == pytest.approx(truth, abs=0.01)


def test_a_learner_without_a_result_is_recorded() -> None:
    found = recovery.apart(lambda: ([("a", "b")], {"status": "optimal"}))
    assert (found["arcs"], found["status"]) == ([["a", "b"]], "optimal")
    assert "error" in recovery.apart(lambda: sys.exit(1))


def unit(seed: int, distances: list[int | None]) -> dict[str, object]:
    """A record of one table; None is a learner without a result."""
    learners = {
        name: {"error": "no result"}
        if distance is None
        else {
            "distance": distance,
            "log_likelihood": -10.0 - distance,
            "seconds": 1.0,
            "status": "optimal",
            "max_parents": 4,
        }
        for name, distance in zip(recovery.LEARNERS, distances, strict=True)
    }
    about: dict[str, object] = {
        "network": "alarm",
        "rows": 500,
        "seed": seed,
        "true_log_likelihood": -9.5,
    }
    about["packages"] = {"pgmpy": "1.1.2"}
    return {"key": f"alarm 500 {seed}", **about, "learners": learners, "origin": ORIGIN}


def test_the_page_by_hand(tmp_path: Path) -> None:
    """Means with standard errors, the best bold, a dash where a result is missing."""
    records = tmp_path / "recovery.jsonl"
    units = [unit(0, [3, 2, 7, None, 3]), unit(1, [5, 2, 9, 6, 5])]
    records.write_text("".join(json.dumps(u) + "\n" for u in units))
    text = recovery.write_page(records, tmp_path / "page.rst")
    assert text == (tmp_path / "page.rst").read_text(encoding="utf-8")
    cells = ["alarm, 500", "4.0 ± 1.0", "**2.0** ± 0.0", "8.0 ± 1.0", "—", "4.0 ± 1.0"]
    assert "\n     - ".join(cells) in text
    assert "mean over 2 tables" in text
    assert "defaults (pgmpy 1.1.2)" in text
    assert "All 10 records are of commit abc." in text
    better = ["exact BIC", "exact BDeu(1)", "0 / 0 / 2", "0 / 0 / 2"]
    assert "\n     - ".join(better) in text
    assert "\n     - ".join(["exact BIC", "pgmpy hill climbing, BIC", "0 / 2 / 0"]) in text
    assert "exact BIC: 2 of 2 searches ended with a proof." in text
