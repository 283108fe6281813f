"""Methods that are not networks, how answers are judged, and features missing at prediction."""

import json
from dataclasses import replace

import numpy as np
import pytest
from experiments import machines, missing_features, protocol, rivals
from experiments import settings as presets
from experiments.__main__ import main
from experiments.encoding import MixedMatrix
from experiments.fitted import SMALLEST, judge
from experiments.methods import LABELS, METHODS
from experiments.records import Unit
from experiments.unit import run_unit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from marginbn.data.table import as_table

SPECS = protocol.read_specs()
S = 1957


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def write_folder(path):
    """A data folder with a corral and an iris of ninety rows, numbers and letters in each."""
    rng = np.random.default_rng(3)
    schema = {}
    for name, classes in (("corral", "ab"), ("iris", "abc")):
        labels = np.array(list(classes))[np.arange(90) % len(classes)]
        sizes = np.round(rng.normal(np.arange(90) % len(classes), 0.6), 3)
        letters = np.where(rng.random(90) < 0.3, "z", np.char.upper(labels))
        rows = [f"{s},{k},{c}" for s, k, c in zip(sizes, letters, labels, strict=True)]
        (path / f"{name}.csv").write_text("\n".join(["size,letter,class", *rows]) + "\n")
        kinds = {"size": "continuous", "letter": "categorical"}
        schema[name] = {"features": [{"name": n, "kind": k} for n, k in kinds.items()]}
    (path / "schema.json").write_text(json.dumps(schema))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("data"))


SMALL_SPECS = {name: replace(SPECS[name], expect=None, classes=None) for name in ("corral", "iris")}


def make_task(folder, name="iris", **changes):
    settings = presets.full(sigmas=(1.0, 4.0), penalties=(0.5, 8.0), trees=5, rounds=30, **changes)
    return protocol.make_task(protocol.load(SMALL_SPECS[name], folder), 1, 0, settings)


# --- judging ---


def test_judge_against_scikit_learn():
    """Log loss as scikit-learn has it, Brier by the definition, accuracy by the labels."""
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet([0.4, 0.4, 0.4], size=30)
    classes = np.array(["a", "b", "c"])
    truth = classes[rng.integers(0, 3, 30)]
    labels = classes[posterior.argmax(axis=1)]
    found = judge(classes, posterior, labels, truth)
    squares = [
        sum((p - (k == t)) ** 2 for p, k in zip(row, "abc", strict=True))
        for row, t in zip(posterior, truth, strict=True)
    ]
    assert found["log_loss"] == pytest.approx(sklearn_log_loss(truth, posterior), rel=1e-10)
    assert found["brier"] == pytest.approx(np.mean(squares), rel=1e-10)
    assert found["accuracy"] == np.mean(labels == truth)
    assert judge(classes, posterior, truth, truth)["accuracy"] == 1.0


def test_impossible_truth():
    """A truth that was called impossible costs -log 1e-15, also where training lacked the class."""
    answer = np.array([[1.0, 0.0], [0.0, 1.0], [0.25, 0.75]])
    labels, truth = np.array(["a", "c", "c"]), np.array(["c", "b", "c"])
    found = judge(np.array(["a", "c"]), answer, labels, truth)
    nats = [-np.log(SMALLEST), -np.log(SMALLEST), -np.log(0.75)]
    assert found["log_loss"] == pytest.approx(np.mean(nats), rel=1e-12)
    assert found["accuracy"] == pytest.approx(1 / 3)


# --- methods ---


@pytest.mark.parametrize(
    "name", ["nb", "hgb", "forest", "logistic", "svm", "svm-raw", "svm-indicators"]
)
@pytest.mark.parametrize("dataset", ["corral", "iris"])
def test_method(name, dataset, folder):
    task = make_task(folder, dataset)
    fitted = METHODS[name].fit(task)
    posterior, labels = fitted.predict(task.test)
    assert fitted.classes.tolist() == sorted(set(task.labels))
    assert posterior.shape == (len(task.test_labels), len(fitted.classes))
    assert posterior.sum(axis=1) == pytest.approx(1)
    assert judge(fitted.classes, posterior, labels, task.test_labels)["accuracy"] >= 0.5


def run_package(name, folder):
    """The record of a method whose package may be absent."""
    pytest.importorskip(METHODS[name].needs)
    settings = presets.quick()
    record = run_unit(Unit("iris", name, S), SMALL_SPECS["iris"], folder, settings)
    assert "error" not in record
    assert 0 <= record["brier"] <= 2
    return record


def test_light_boosting(folder):
    assert run_package("lightgbm", folder)["chosen"] == {}
    chosen = run_package("lightgbm-tuned", folder)["chosen"]
    assert chosen.keys() == {"coding", "leaves", "rounds", "validated"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["catboost", "ebm"])
def test_slow_packages(name, folder):
    run_package(name, folder)


def test_logistic_penalty(folder, monkeypatch):
    """C is the one that scikit-learn's own grid search finds on the same splits."""
    monkeypatch.setattr(rivals, "LOGISTIC_PENALTIES", (1.0, 0.1, 10.0))
    task = make_task(folder, "corral")
    matrix = MixedMatrix().fit(task.train)
    search = GridSearchCV(
        rivals._logistic(matrix, 1.0),
        {"logisticregression__C": rivals.LOGISTIC_PENALTIES},
        scoring="neg_log_loss",
        cv=task.inner,
    ).fit(matrix.transform(task.train), task.labels)
    chosen = rivals.logistic(task).chosen
    assert chosen["C"] == search.best_params_["logisticregression__C"]
    assert chosen["validated"] == pytest.approx(-search.best_score_, abs=1e-6)


def test_machine_settings(folder):
    """sigma and C score best in scikit-learn's own grid search on the same splits, without kernels
    computed beforehand.
    """
    task = make_task(folder)
    matrix = MixedMatrix().fit(task.train)
    widths = {1 / (2 * sigma**2): sigma for sigma in task.settings.sigmas}
    search = GridSearchCV(
        make_pipeline(rivals.standardised(matrix), SVC()),
        {"svc__C": task.settings.penalties, "svc__gamma": list(widths)},
        cv=task.inner,
    ).fit(matrix.transform(task.train), task.labels)
    chosen = METHODS["svm-raw"].fit(task).chosen
    scores = {
        (widths[p["svc__gamma"]], p["svc__C"]): score
        for p, score in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        )
    }
    assert scores[chosen["sigma"], chosen["C"]] == search.best_score_
    assert chosen["validated"] == pytest.approx(search.best_score_, abs=1e-6)


def test_machine_labels(folder):
    """The labels are the machine's own; the posterior of two classes rises with its decision."""
    task = make_task(folder, "corral")
    fitted = METHODS["svm-raw"].fit(task)
    encode = machines.raw_inputs(task.train, task.labels)
    sigma, penalty = fitted.chosen["sigma"], fitted.chosen["C"]
    machine = SVC(C=penalty, gamma=1 / (2 * sigma**2)).fit(encode(task.train), task.labels)
    posterior, labels = fitted.predict(task.test)
    assert labels.tolist() == machine.predict(encode(task.test)).tolist()
    order = np.argsort(machine.decision_function(encode(task.test)))
    assert (np.diff(posterior[order, 1]) >= 0).all()


def test_calibration():
    """With two classes: slope and shift of logistic regression without penalty (Platt)."""
    rng = np.random.default_rng(1)
    d = rng.normal(size=4000)
    truth = (rng.random(4000) < 1 / (1 + np.exp(-(1.5 * d - 0.7)))).astype(int)
    slope, shifts = machines.calibrate(np.column_stack([-d, d]) / 2, truth)
    regression = LogisticRegression(C=np.inf).fit(d[:, None], truth)
    assert slope == pytest.approx(regression.coef_[0, 0], rel=1e-2)
    assert shifts[1] - shifts[0] == pytest.approx(regression.intercept_[0], rel=1e-2)


def test_calibration_of_certain_rows():
    """Right on every row: finite, and confident."""
    decisions = np.eye(3)[[0, 1, 2, 0, 1]]
    slope, shifts = machines.calibrate(decisions, np.array([0, 1, 2, 0, 1]))
    assert 10 < slope < 200
    assert np.isfinite(shifts).all()


# --- missing features ---


def test_hide():
    """Marked values become missing, the others and the categories stay."""
    table = as_table([[1.5, "a"], [2.5, "b"], [3.25, "a"]])
    hidden = missing_features.hide(table, np.array([[True, False], [False, True], [False, False]]))
    assert [c.missing.tolist() for c in hidden.columns] == [
        [True, False, False],
        [False, True, False],
    ]
    values = MixedMatrix().fit(table).transform(hidden)
    assert np.isnan(values).tolist() == [[True, False], [False, True], [False, False]]
    assert values[2].tolist() == [3.25, 0.0]


def test_nested_shares(folder):
    """The share that is asked for is hidden, and more includes less."""
    table = make_task(folder).train
    levels = missing_features.hiding_levels(table, 0)
    assert levels.shape == (table.n_rows, table.n_columns)
    assert (levels < 0.0).sum() == 0
    big = np.random.default_rng(0).random((4000, 5))
    assert (big < 0.3).mean() == pytest.approx(0.3, abs=0.02)
    assert levels.tolist() == missing_features.hiding_levels(table, 0).tolist()


def test_imputation(folder):
    task = make_task(folder)
    size, letter = task.train.columns
    codes, counts = np.unique(letter.codes, return_counts=True)
    filled = [
        replace(size, numbers=np.full(1, size.numbers.mean())),
        replace(letter, codes=codes[[counts.argmax()]]),
    ]
    one_row = task.test.take([0])
    hidden = missing_features.hide(one_row, np.ones((1, 2), dtype=bool))
    answer = rivals.logistic(task).answer
    assert answer(hidden) == pytest.approx(answer(type(one_row)(tuple(filled))), rel=1e-12)


def test_against_the_better():
    """The last table compares with the better yardstick of each set."""
    losses = {("s", "sm"): 0.6, ("s", "tan"): 0.5, ("s", "hgb"): 0.9}
    losses |= {("t", "sm"): 0.2, ("t", "tan"): 0.8, ("t", "hgb"): 0.4}
    made = [
        {
            "unit": Unit(name, method, S).told,
            "split": {"folds_run": 1},
            "accuracy": 0.5,
            "log_loss": loss,
            "hidden": {
                str(s): {"accuracy": 0.5, "log_loss": loss} for s in missing_features.SHARES
            },
        }
        for (name, method), loss in losses.items()
    ]
    *shares, last = missing_features.grids(made, LABELS)
    # (0.6 + 0.2) / (0.5 + 0.4) - 1 and (0.6 / 0.5 + 0.2 / 0.4) / 2 - 1
    told = [cell.ours for cell in dict(last.rows)["30 %"]]
    assert told == ["2", "0.4000", "0.4500", "-11.1 %", "-15.0 %"]
    assert [cell.ours for cell in dict(shares[1].rows)["mean"]] == [
        "50.00 / 0.400",
        "50.00 / 0.650",
        "50.00 / 0.650",
    ]


def test_missing_command(folder, tmp_path, capsys, monkeypatch):
    """From data to the table of missing features; less is known where more is hidden."""
    monkeypatch.setattr(protocol, "read_specs", lambda: SMALL_SPECS)
    running = ["--data", str(folder), "--sets", "iris", "--quick"]
    running += ["--records", str(tmp_path / "missing")]
    assert main(["missing", *running, "--methods", "tan", "nb"]) == 0
    assert main(["tables", "--records", str(tmp_path / "records")]) == 0
    text = capsys.readouterr().out
    assert "50 % of the values missing" in text
    assert "| iris |" in text
