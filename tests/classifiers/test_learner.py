"""The class-free learner: exact structures, what the network says, files, scikit-learn's rules."""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from marginbn import (
    BayesianNetworkLearner,
    DataWarning,
    FormatError,
    InputError,
    OptimalityWarning,
    describe,
    load_model,
    make_report,
    save_model,
    verify_certificate,
    verify_model,
)
from marginbn.classifiers import learner as learner_module
from marginbn.data.table import as_table
from marginbn.proof.certificate import read_certificate
from marginbn.proof.theorem import Statement
from marginbn.report.learned import summarise
from marginbn.scoring import climbing


def chain(n_rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """rain -> wet -> slippery, and a column that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    rain = rng.random(n_rows) < 0.4
    wet = rng.random(n_rows) < np.where(rain, 0.9, 0.15)
    slippery = rng.random(n_rows) < np.where(wet, 0.8, 0.1)
    return pd.DataFrame(
        {
            "rain": np.where(rain, "yes", "no"),
            "wet": np.where(wet, "yes", "no"),
            "slippery": np.where(slippery, "yes", "no"),
            "temperature": rng.normal(size=n_rows),
        }
    )


def test_scikit_learn_accepts_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(BayesianNetworkLearner(time_limit=None))


def test_constraints_and_tiers() -> None:
    frame = chain()
    learner = BayesianNetworkLearner(
        tiers=[["slippery"], ["wet"], ["rain"]], required_arcs=[("wet", "temperature")]
    ).fit(frame)
    names = learner.network_.names
    arcs = {(names[p], names[c]) for p, c in learner.structure_.arcs}
    assert arcs == {("slippery", "wet"), ("wet", "rain"), ("wet", "temperature")}
    one = BayesianNetworkLearner(forbidden_arcs=[(0, 1), (1, 0)], max_parents=1).fit(frame)
    assert not {(0, 1), (1, 0)} & {*one.structure_.arcs}
    with pytest.raises(InputError, match="required_arcs"):
        BayesianNetworkLearner(required_arcs=[("snow", "wet")]).fit(frame)


def test_likelihoods_by_enumeration() -> None:
    """Probabilities of all rows sum to one; an unknown value is summed out."""
    frame = chain()[["rain", "wet", "slippery"]]
    learner = BayesianNetworkLearner().fit(frame)
    rows = pd.DataFrame(product(["no", "yes"], repeat=3), columns=frame.columns)
    log_values = learner.score_samples(rows)
    assert np.exp(log_values).sum() == pytest.approx(1.0)
    assert learner.score(rows) == pytest.approx(log_values.mean())
    for column in frame.columns:
        known = rows[rows[column] == "no"].reset_index(drop=True)
        unknown = known.assign(**{column: None})
        with_no, with_yes = (
            learner.score_samples(known.assign(**{column: value})) for value in ("no", "yes")
        )
        summed = np.logaddexp(with_no, with_yes)
        assert learner.score_samples(unknown) == pytest.approx(summed)


def test_samples_look_like_the_rows() -> None:
    frame = chain(2000)
    learner = BayesianNetworkLearner(smoothing=0.01).fit(frame)
    drawn = learner.sample(4000, random_state=1)
    assert (drawn == learner.sample(4000, random_state=1)).all()
    assert {*drawn[:, 0]} == {"no", "yes"}
    assert (drawn[:, 1] == "yes").mean() == pytest.approx((frame["wet"] == "yes").mean(), abs=0.03)
    temperature = drawn[:, 3].astype(float)
    assert {*temperature} <= {*frame["temperature"]}
    assert temperature.mean() == pytest.approx(frame["temperature"].mean(), abs=0.1)
    assert temperature.std() == pytest.approx(frame["temperature"].std(), rel=0.1)


def test_missing_values_and_identifiers() -> None:
    frame = chain(200)
    frame.loc[:19, "wet"] = None
    frame["key"] = [f"row {i}" for i in range(200)]
    with pytest.warns(DataWarning, match="key"), pytest.warns(DataWarning, match="20 of 200 rows"):
        dropped = BayesianNetworkLearner().fit(frame)
    assert (dropped.n_samples_, dropped.n_dropped_) == (180, 20)
    assert "key" not in dropped.network_.names
    with pytest.warns(DataWarning, match="key"):
        state = BayesianNetworkLearner(missing="state").fit(frame)
    assert state.n_samples_ == 200
    assert len(state.network_.variables[1].states) == 3
    assert None in {*state.sample(500, random_state=0)[:, 1]}


def test_numbers_are_cut_at_quantiles() -> None:
    frame = chain(400)
    learner = BayesianNetworkLearner(n_bins=5).fit(frame)
    codes = learner.coding_.encode(as_table(frame))
    assert np.bincount(codes[:, 3]).tolist() == [80] * 5


def test_a_column_of_many_zeros_has_its_arc() -> None:
    """78 % zeros, the others log-normal and more frequent where the other column is yes."""
    rng = np.random.default_rng(0)
    bought = rng.random(2000) < 0.15
    zero = rng.random(2000) < np.where(bought, 0.4, 0.85)
    frame = pd.DataFrame(
        {"value": np.where(zero, 0.0, rng.lognormal(2.0, 1.0, 2000)), "bought": bought.astype(str)}
    )
    assert 0.76 < zero.mean() < 0.8
    learner = BayesianNetworkLearner().fit(frame)
    assert len(learner.structure_.arcs) == 1
    assert learner.network_.variables[0].arity == 4


def test_reversible_arcs_are_told_from_compelled_ones() -> None:
    """rain - wet - slippery is a chain; two causes of one effect are directed."""
    frame = chain(800)
    learner = BayesianNetworkLearner().fit(frame)
    text = describe(learner)
    assert "wet -- rain" in text or "rain -- wet" in text
    assert "<- marks a compelled arc" in text
    assert "3 arcs (" not in text
    rng = np.random.default_rng(0)
    cause, other = rng.random((2, 800)) < 0.5
    effect = np.where(rng.random(800) < 0.05, ~cause, cause & other)
    learner.fit(pd.DataFrame({"a": cause, "b": other, "c": effect}).astype(str))
    text = describe(learner)
    assert "c <- a, b" in text
    assert "--" not in text
    assert summarise(learner)["compelled_arcs"] == [["a", "c"], ["b", "c"]]
    assert summarise(learner)["reversible_arcs"] == []


def test_the_report_of_a_learner() -> None:
    """Arcs without a head are the reversible ones; there is no class to highlight."""
    learner = BayesianNetworkLearner().fit(chain(800))
    report = make_report(learner, title="a <chain>")
    assert report.html.count("l-3.5,-8 h7 z") == len(learner.network_.cpdag().directed) == 0
    assert "a &lt;chain&gt;" in report.html
    assert "rain" in report.html
    assert 'font-weight="bold"' not in report.html
    with pytest.raises(InputError, match="takes no rows"):
        make_report(learner, chain(800))


def test_a_column_with_one_value_is_named() -> None:
    frame = chain(200).assign(year=2024, land="DE")
    with pytest.warns(DataWarning, match="left out, because all.*value: 'year', 'land'"):
        learner = BayesianNetworkLearner().fit(frame)
    text = describe(learner)
    assert "left out (one value in all rows): year, land" in text
    assert "independent of all others: temperature\n" in f"{text}\n"


def test_the_limit_of_parents_is_part_of_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = chain()
    learner = BayesianNetworkLearner().fit(frame)
    assert learner.max_parents_ == 3
    assert "No allowed network has a better BIC score: proved." in describe(learner)
    monkeypatch.setattr(climbing, "MAX_KEPT", 4)
    learner = BayesianNetworkLearner().fit(frame)
    assert learner.max_parents_ == 1
    assert "No allowed network with at most 1 parent per variable has" in describe(learner)
    assert clone(learner).set_params(max_parents=1).fit(frame).max_parents_ == 1


def test_weights_count_as_copies() -> None:
    frame = chain(120)
    weight = np.arange(120) % 3
    copies = frame.loc[np.repeat(np.arange(120), weight)].drop(columns="temperature")
    weighted = BayesianNetworkLearner().fit(frame.drop(columns="temperature"), sample_weight=weight)
    assert weighted.objective_ == pytest.approx(
        BayesianNetworkLearner().fit(copies).objective_, rel=1e-12
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"score": "residue"}, "score"),
        ({"score": "loglik"}, "max_parents must be given"),
        ({"max_parents": -1}, "max_parents"),
        ({"n_bins": 0}, "n_bins"),
        ({"missing": "guess"}, "missing"),
        ({"smoothing": 0.0}, "smoothing"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BayesianNetworkLearner(**parameters).fit(chain(30))


def test_scores_obey_the_limit(tmp_path: Path) -> None:
    """Even sets of one parent are not all scored; bound and certificate do not claim it."""
    proof = tmp_path / "proof.cert"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = BayesianNetworkLearner(time_limit=1e-9, certificate=proof).fit(chain())
    said = [str(w.message) for w in caught]
    assert any("networks of at most 1 parent per variable" in text for text in said)
    assert any("not all parent sets are compared" in text for text in said)
    assert learner.max_parents_ == 1
    assert max(map(len, learner.structure_.parents)) <= 1
    best = BayesianNetworkLearner(max_parents=1).fit(chain())
    assert learner.status_ == "time_limit"
    assert learner.bound_ >= best.objective_ > learner.objective_
    assert Statement.of(read_certificate(proof)).listed == learner.n_candidates_
    assert verify_certificate(proof)
    assert "another statement" in verify_model(learner, proof).reason


def test_a_limit_is_a_normal_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_module, "part_used", lambda *_: lambda: False)
    with pytest.warns(OptimalityWarning, match="gap"):
        learner = BayesianNetworkLearner(time_limit=1e-9).fit(chain())
    assert learner.status_ == "time_limit"
    assert learner.gap_ > 0


def test_files(tmp_path: Path) -> None:
    frame = chain()
    learner = BayesianNetworkLearner(max_parents=2, random_state=3).fit(frame)
    path = tmp_path / "learner.json"
    save_model(learner, path)
    loaded = load_model(path, BayesianNetworkLearner)
    assert isinstance(loaded, BayesianNetworkLearner)
    assert loaded.get_params() == learner.get_params()
    assert (loaded.score_samples(frame) == learner.score_samples(frame)).all()
    assert (loaded.objective_, loaded.bound_) == (learner.objective_, learner.bound_)
    assert clone(loaded).fit(frame).structure_ == learner.structure_
    assert (loaded.sample(9, 0) == learner.sample(9, 0)).all()
    assert (loaded.max_parents_, loaded.n_candidates_) == (2, learner.n_candidates_)
    whole = path.read_text()
    for part, other, message in (
        ('"bic"', '"bick"', "score"),
        ('"classes": null', '"classes": {"dtype": "str", "labels": ["a"]}', "must be null"),
        ('"candidates": {"kept"', '"candidates": {"cept"', "cept"),
        ('"BayesianNetworkLearner"', '"TANClassifier"', "TANClassifier"),
    ):
        assert part in whole
        path.write_text(whole.replace(part, other))
        with pytest.raises(FormatError, match=message):
            load_model(path, BayesianNetworkLearner)


def test_a_certificate_makes_a_claim_of_a_file_a_proof(tmp_path: Path) -> None:
    path, proof = tmp_path / "learner.json", tmp_path / "proof.cert"
    save_model(BayesianNetworkLearner(certificate=proof).fit(chain(100)), path)
    loaded = load_model(path, BayesianNetworkLearner)
    assert "claimed by the file, not checked" in describe(loaded)
    other = BayesianNetworkLearner().fit(chain(101))
    assert not verify_model(other, proof)
    assert verify_model(loaded, proof)
    assert "score: verified." in describe(loaded)
