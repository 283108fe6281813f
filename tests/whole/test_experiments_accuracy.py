"""The accuracy comparison: posteriors judged, rivals, journal, tables, missing features."""

import io
import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from marginbn import as_table
from marginbn.exceptions import InputError, MissingDependencyError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # experiments/ is not installed

from experiments import accuracy, accuracy_table, journal, missing_features, modern, protocol
from experiments.__main__ import main
from experiments.contenders import CONTENDERS, Contender, Network
from experiments.encoding import MixedMatrix
from experiments.forecast import SMALLEST, Fitted, judge
from experiments.records import Unit

SPECS = protocol.read_specs()


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


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    """The sets of the folder above, whatever their number of rows; few trees and penalties."""
    specs = {name: replace(SPECS[name], expect=None) for name in ("corral", "iris")}
    monkeypatch.setattr(protocol, "read_specs", lambda: specs)
    monkeypatch.setattr(modern, "TREES", 5)
    monkeypatch.setattr(modern, "LOGISTIC_PENALTIES", (1.0, 0.1, 10.0))


def make_task(folder, name="iris", **changes):
    settings = replace(
        accuracy.make_settings(1), sigmas=(1.0, 4.0), penalties=(0.5, 8.0), **changes
    )
    return accuracy.make_comparison_task(
        protocol.load(protocol.read_specs()[name], folder), 0, settings
    )


# --- judging ---


def test_judge_against_scikit_learn():
    """Log loss as scikit-learn has it, Brier by the definition, accuracy by the largest."""
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet([0.4, 0.4, 0.4], size=30)
    truth = np.array(["a", "b", "c"])[rng.integers(0, 3, 30)]
    fitted = Fitted(np.array(["a", "b", "c"]), lambda table: None)
    found = judge(fitted, posterior, truth)
    squares = [
        sum((p - (k == t)) ** 2 for p, k in zip(row, "abc", strict=True))
        for row, t in zip(posterior, truth, strict=True)
    ]
    assert found["log_loss"] == pytest.approx(sklearn_log_loss(truth, posterior), rel=1e-10)
    assert found["brier"] == pytest.approx(np.mean(squares), rel=1e-10)
    assert found["accuracy"] == np.mean(np.array(list("abc"))[posterior.argmax(axis=1)] == truth)


def test_impossible_truth():
    """A truth that was called impossible costs -log 1e-15, also where training lacked the class."""
    fitted = Fitted(np.array(["a", "c"]), lambda table: None)
    answer = np.array([[1.0, 0.0], [0.0, 1.0], [0.25, 0.75]])
    found = judge(fitted, answer, np.array(["c", "b", "c"]))
    nats = [-np.log(SMALLEST), -np.log(SMALLEST), -np.log(0.75)]
    assert found["log_loss"] == pytest.approx(np.mean(nats), rel=1e-12)
    assert found["accuracy"] == pytest.approx(1 / 3)


def test_labels_only():
    """A method without probabilities has an accuracy and no log loss."""
    fitted = Fitted(np.array(["a", "b"]), lambda table: None, gives_labels=True)
    found = judge(fitted, np.array(["a", "b", "a"]), np.array(["a", "a", "a"]))
    assert found == {"accuracy": pytest.approx(2 / 3), "log_loss": None, "brier": None}


# --- protocol ---


def test_validation_splits():
    """Up to 1200 training rows five folds, above that one fifth; the paper's limit stays 1000."""
    labels = np.array(["a", "b"] * 600)
    assert len(protocol.inner_splits(labels, 5, 0, accuracy.LARGE_TRAINING_SET)) == 5
    assert len(protocol.inner_splits(np.append(labels, "a"), 5, 0, 1200)) == 1
    assert len(protocol.inner_splits(labels, 5, 0)) == 1


def test_new_rows(folder):
    """The default seed deals the folds otherwise than the seed of the paper's experiments."""
    data = protocol.load(protocol.read_specs()["iris"], folder)
    ours, papers = (protocol.outer_split(data, 0, seed)[1] for seed in (accuracy.SEED, 0))
    assert ours.tolist() != papers.tolist()


# --- rivals ---


@pytest.mark.parametrize("name", ["nb", "tan", "hgb", "forest", "logistic", "svm", "svm-states"])
@pytest.mark.parametrize("dataset", ["corral", "iris"])
def test_method(name, dataset, folder):
    """Methods of scikit-learn and the baselines give a posterior over classes, or classes."""
    task = make_task(folder, dataset)
    fitted = CONTENDERS[name].fit(task)
    answer = fitted.answer(task.test)
    assert fitted.classes.tolist() == sorted(set(task.labels))
    if fitted.gives_labels:
        assert set(answer) <= set(task.labels)
    else:
        assert answer.shape == (len(task.test_labels), len(fitted.classes))
        assert answer.sum(axis=1) == pytest.approx(1)
    assert judge(fitted, answer, task.test_labels)["accuracy"] >= 0.5


def run_package(name, folder):
    """The record of a method whose package may be absent."""
    pytest.importorskip(CONTENDERS[name].needs)
    spec = protocol.read_specs()["iris"]
    record = accuracy.do_unit(Unit("iris", name, 0), spec, folder, accuracy.compare_accuracy())
    assert "error" not in record
    assert 0 <= record["brier"] <= 2
    return record


def test_light_boosting(folder):
    """LightGBM where it is installed; the record of the tuned one tells rounds and leaves."""
    assert run_package("lightgbm", folder)["chosen"] == {}
    chosen = run_package("lightgbm-tuned", folder)["chosen"]
    assert chosen.keys() == {"coding", "leaves", "rounds", "validated"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["catboost", "ebm"])
def test_slow_packages(name, folder):
    """CatBoost and EBM, where they are installed."""
    run_package(name, folder)


def test_logistic_penalty(folder):
    """C is the one that scikit-learn's own grid search finds on the same splits."""
    task = make_task(folder, "corral")
    matrix = MixedMatrix().fit(task.train)
    search = GridSearchCV(
        modern._logistic(matrix, 1.0),
        {"logisticregression__C": modern.LOGISTIC_PENALTIES},
        scoring="neg_log_loss",
        cv=task.inner,
    ).fit(matrix.transform(task.train), task.labels)
    chosen = modern.logistic(task).chosen
    assert chosen["C"] == search.best_params_["logisticregression__C"]
    assert chosen["validated"] == pytest.approx(-search.best_score_, abs=1e-6)


def test_machine_settings(folder):
    """sigma and C score best in scikit-learn's own grid search on the same splits."""
    task = make_task(folder)
    matrix = MixedMatrix().fit(task.train)
    widths = {1 / (2 * sigma**2): sigma for sigma in task.settings.sigmas}
    search = GridSearchCV(
        make_pipeline(modern.standardised(matrix), SVC()),
        {"svc__C": task.settings.penalties, "svc__gamma": list(widths)},
        cv=task.inner,
    ).fit(matrix.transform(task.train), task.labels)
    chosen = CONTENDERS["svm"].fit(task).chosen
    scores = {
        (widths[p["svc__gamma"]], p["svc__C"]): score
        for p, score in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        )
    }
    assert scores[chosen["sigma"], chosen["C"]] == search.best_score_
    assert chosen["validated"] == pytest.approx(search.best_score_, abs=1e-6)


def test_machine_on_fewer_rows(folder):
    """A grid validated on a part of the rows is told in the record."""
    fitted = CONTENDERS["svm"].fit(make_task(folder, svm_rows=8))
    assert "validated with 8 of" in fitted.notes[0]


def test_missing_requirements():
    """What a method lacks is told before any work, with the remedy."""
    absent = Contender("X", modern.logistic, 1.0, needs="no_such_package")
    with pytest.raises(MissingDependencyError, match=r"x needs no_such_package: pip install"):
        absent.require("x")
    with pytest.raises(InputError, match=r"the method x needs a newer marginbn .*--methods"):
        Contender("X", Network("NoSuchClassifier"), 1.0).require("x")
    with pytest.raises(InputError, match=r"newer marginbn .*no_such_option"):
        Contender("X", Network("TANClassifier", {"no_such_option": 1}), 1.0).require("x")


# --- journal and running ---


def run_quietly(folder, path, methods=("nb", "tan"), comparison=None):
    """Two sets with five folds each; returns the lines of the progress report."""
    comparison, told = comparison or accuracy.compare_accuracy(), io.StringIO()
    specs = protocol.read_specs()
    units = accuracy.plan(specs, methods, comparison.settings)
    assert accuracy.run(units, specs, folder, path, comparison, told) == []
    return told.getvalue().splitlines()


def timeless(path):
    return [{k: v for k, v in r.items() if k != "seconds"} for r in journal.read_journal(path)]


def test_resume(folder, tmp_path):
    """A torn last line is made again, all else is skipped, and the records are the same."""
    path = tmp_path / "records.jsonl"
    run_quietly(folder, path)
    whole, content = timeless(path), path.read_bytes()
    assert len(whole) == 20
    path.write_bytes(content[:-40])
    assert len(journal.read_journal(path)) == 19
    lines = run_quietly(folder, path)
    assert lines[0].startswith("20 units, 19 of them finished before")
    assert timeless(path) == whole
    assert len(run_quietly(folder, path)) == 1


def test_cheapest_first(folder, tmp_path):
    """Cheap units come first, so that a run that is cut short leaves as many as it can."""
    run_quietly(folder, tmp_path / "r.jsonl", ("hgb", "nb"))
    methods = [r["unit"]["method"] for r in journal.read_journal(tmp_path / "r.jsonl")]
    assert methods == ["nb"] * 10 + ["hgb"] * 10


def test_other_settings(folder, tmp_path):
    """A journal of another seed is refused instead of mixed."""
    run_quietly(folder, tmp_path / "r.jsonl", ("nb",))
    with pytest.raises(InputError, match="give another file with --records"):
        run_quietly(folder, tmp_path / "r.jsonl", ("nb",), accuracy.compare_accuracy(seed=5))


def test_failed_unit(folder, tmp_path, monkeypatch):
    """A unit that fails is reported, leaves no record, and is tried again."""

    def fail(task):
        raise ZeroDivisionError("none of my business")

    monkeypatch.setitem(CONTENDERS, "nb", Contender("NB", fail, 0.1))
    told, specs = io.StringIO(), {"iris": protocol.read_specs()["iris"]}
    comparison = accuracy.compare_accuracy()
    units = accuracy.plan(specs, ["nb"], comparison.settings)
    failed = accuracy.run(units, specs, folder, tmp_path / "r.jsonl", comparison, told)
    assert failed == units
    assert "none of my business" in told.getvalue()
    assert journal.read_journal(tmp_path / "r.jsonl") == []


def test_bad_journals(tmp_path):
    """Damage in the middle, a second record of a unit, and a missing file are named."""
    path = tmp_path / "r.jsonl"
    path.write_text("{}\n")
    with pytest.raises(InputError, match=r"r\.jsonl, line 1 is no record"):
        journal.read_journal(path)
    path.write_text('{"unit": {"dataset": "d", "method": "nb", "fold": 0}}\n' * 2)
    with pytest.raises(InputError, match="second record of d nb fold 0"):
        journal.read_journals([path])
    with pytest.raises(InputError, match="there is no file"):
        journal.read_journals([tmp_path / "absent.jsonl"])


# --- tables ---


def make_records(table, n_folds=1):
    """Records of {(set, method): (accuracy, log loss)}."""
    return {
        Unit(name, method, fold): {
            "split": {"digest": f"{name} {fold}", "folds_run": n_folds},
            "accuracy": hit_rate,
            "log_loss": loss,
            "brier": loss,
            "seconds": {"fit": 1.0, "predict": 0.5},
        }
        for (name, method), (hit_rate, loss) in table.items()
        for fold in range(n_folds)
    }


def test_ranks_and_duels():
    """Ranks share ties, ties by rounding are ties, and lower log loss is better."""
    third = 1 / 3
    figures = {("s", "nb"): 1 - 2 * third, ("s", "tan"): third, ("s", "hgb"): 0.9}
    figures |= {("t", "nb"): 0.5, ("t", "tan"): 0.6, ("t", "hgb"): 0.4, ("u", "nb"): 0.1}
    methods = ["nb", "tan", "hgb"]
    assert accuracy_table.common_sets(figures, methods) == ["s", "t"]
    assert accuracy_table.mean_ranks(figures, methods, True) == {"nb": 2.25, "tan": 1.75, "hgb": 2}
    assert accuracy_table.mean_ranks(figures, methods, False) == {"nb": 1.75, "tan": 2.25, "hgb": 2}
    result = accuracy_table.duel(figures, "nb", "tan", True)
    assert (result.won, result.tied, result.lost) == (0, 1, 1)
    assert accuracy_table.duel(figures, "nb", "tan", False).won == 1
    assert accuracy_table.duel(figures, "nb", "nb", True).p_value is None


def test_wilcoxon_by_enumeration():
    """The p-value is the share of sign patterns with a rank sum at least as extreme."""
    gains = np.array([0.1, -0.2, 0.35, 0.4, 0.55, 0.6, -0.05])
    figures = {(f"s{i}", "nb"): g for i, g in enumerate(gains)}
    figures |= {(f"s{i}", "tan"): 0.0 for i in range(len(gains))}
    ranks = np.abs(gains).argsort().argsort() + 1
    centre = ranks.sum() / 2
    seen = abs(ranks[gains > 0].sum() - centre)
    sums = [np.dot(signs, ranks) for signs in itertools.product((0, 1), repeat=len(gains))]
    expected = np.mean([abs(s - centre) >= seen for s in sums])
    assert accuracy_table.duel(figures, "nb", "tan", True).p_value == pytest.approx(expected)


def test_incomplete_sets_left_out():
    """Means are over the sets that all methods have with all folds; the others are named."""
    table = {("s", "nb"): (0.5, 0.7), ("s", "svm"): (0.7, None), ("t", "nb"): (0.9, 0.1)}
    records = make_records(table | {("t", "svm"): (0.8, None)}, n_folds=2)
    del records[Unit("t", "svm", 1)]
    text = accuracy_table.render(records, ["nb", "svm"], "nb")
    assert "over the 1 data sets that all 2 have. Incomplete: t." in text
    assert "| NB | 50.00 | 2.00 | 0.7000 | 1.00 | 0.7000 | 1.00 | 0.500 |" in text
    assert "| RBF SVM | 70.00 | 1.00 | - | - | - | 1.00 | 0.500 |" in text
    assert "| RBF SVM | 1 | 0/0/1 (1.000) | - |" in text
    assert "| t | 90.00 | - |" in text


def test_other_rows_refused():
    """Records of different test rows are no comparison."""
    records = make_records({("s", "nb"): (0.5, 0.7), ("s", "tan"): (0.5, 0.7)})
    records[Unit("s", "tan", 0)]["split"]["digest"] = "other"
    with pytest.raises(InputError, match="were tested on other rows"):
        accuracy_table.render(records, ["nb", "tan"], "nb")
    with pytest.raises(InputError, match="no record of hgb"):
        accuracy_table.render(records, ["nb", "hgb"], "nb")


def test_commands(folder, tmp_path, capsys):
    """The commands, from data to Markdown."""
    for command, table in (("accuracy", "accuracy-table"), ("missing-features", "missing-table")):
        path = str(tmp_path / f"{command}.jsonl")
        running = ["--data", str(folder), "--records", path, "--sets", "iris"]
        assert main([command, *running, "--methods", "tan", "nb"]) == 0
        assert main([table, path, "--of", "nb"]) == 0
        assert "| TAN |" in capsys.readouterr().out
    assert main(["accuracy", *running, "--methods", "nb"]) == 1
    assert "give another file with --records" in capsys.readouterr().err
    (tmp_path / "empty.jsonl").touch()
    assert main(["accuracy-table", str(tmp_path / "empty.jsonl")]) == 1
    assert "no record in" in capsys.readouterr().err


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
    """Logistic regression reads a hidden number as the mean and a hidden letter as the mode."""
    task = make_task(folder)
    size, letter = task.train.columns
    codes, counts = np.unique(letter.codes, return_counts=True)
    filled = [
        replace(size, numbers=np.full(1, size.numbers.mean())),
        replace(letter, codes=codes[[counts.argmax()]]),
    ]
    one_row = task.test.take([0])
    hidden = missing_features.hide(one_row, np.ones((1, 2), dtype=bool))
    answer = modern.logistic(task).answer
    assert answer(hidden) == pytest.approx(answer(type(one_row)(tuple(filled))), rel=1e-12)


def test_against_the_better(folder):
    """The last table compares with the better yardstick of each set."""
    losses = {("s", "nb"): 0.6, ("s", "tan"): 0.5, ("s", "hgb"): 0.9}
    losses |= {("t", "nb"): 0.2, ("t", "tan"): 0.8, ("t", "hgb"): 0.4}
    records = make_records({key: (0.5, loss) for key, loss in losses.items()})
    for record in records.values():
        record["shares"] = {
            str(s): {"accuracy": 0.5, "log_loss": record["log_loss"]}
            for s in missing_features.SHARES
        }
    text = missing_features.render(records, ["nb", "tan", "hgb"], "nb")
    # (0.6 + 0.2) / (0.5 + 0.4) - 1 and (0.6 / 0.5 + 0.2 / 0.4) / 2 - 1
    assert "| 30 % | 2 | 0.4000 | 0.4500 | -11.1 % | -15.0 % |" in text
    assert "| mean | 50.00 / 0.400 | 50.00 / 0.650 | 50.00 / 0.650 |" in text
