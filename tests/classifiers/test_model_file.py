"""Model files: what is saved is what is loaded, and a list of hostile files."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

from marginbn import (
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    Search,
    TANClassifier,
    __version__,
)
from marginbn.classifiers import BaseBNClassifier
from marginbn.classifiers.model_file import load_model, save_model
from marginbn.data.table import Table, as_table
from marginbn.exceptions import FormatError, InputError
from marginbn.solvers.result import Status, TracePoint

Edit = Callable[[dict[str, Any]], object]

CLASSIFIERS: list[BaseBNClassifier] = [
    NaiveBayesClassifier(),
    TANClassifier(smoothing=0.5),
    GenerativeBNClassifier(
        score="bdeu",
        search=Search(solver="dp"),
        time_limit=None,
        required_arcs=[("class", "number")],
    ),
    MaxMarginBNClassifier(
        search=Search(solver="highs"),
        max_parents=1,
        random_state=3,
        column_kinds={2: "categorical", "real": "numeric"},
    ),
    MaxMarginBNClassifierCV(
        search=Search(solver="highs"), gammas=[0.5, 2.0], max_parents=(0, 1), cv=2
    ),
    MaxMarginBNClassifierCV(
        search=Search(solver="highs"), gammas=np.array([0.5, 2.0]), max_parents=(1,), cv=2
    ),
]


def mixed_table(n_rows: int = 60) -> Table:
    rng = np.random.default_rng(1)
    colour = rng.choice(["red", "grün", 'b"l\\ue', ""], n_rows).tolist()
    number = rng.integers(3, size=n_rows).tolist()
    flag = rng.integers(2, size=n_rows).astype(bool).tolist()
    real = rng.normal(size=n_rows).tolist()
    tenth = rng.choice([0.1, 0.2, 0.7], n_rows).tolist()
    real[3] = colour[5] = None
    return as_table(
        [list(row) for row in zip(colour, number, flag, real, tenth, strict=True)],
        names=["colour", "number", "flag", "real", "tenth"],
        kinds={"tenth": "categorical"},
    )


def mixed_labels(table: Table) -> np.ndarray[Any, Any]:
    """Three classes that depend on two of the columns."""
    real = np.nan_to_num(table.column("real").numbers)
    return np.array(["a", "b", "ü"])[(real > 0).astype(int) + table.column("flag").codes]


def fitted(classifier: BaseBNClassifier, missing: str = "state") -> BaseBNClassifier:
    table = mixed_table()
    unfitted: BaseBNClassifier = clone(classifier).set_params(missing=missing)
    return unfitted.fit(table, mixed_labels(table))


def tiny(path: Path) -> BaseBNClassifier:
    X = [["red", "s"], ["red", "m"], ["blue", "m"], ["blue", "l"]]
    classifier = TANClassifier().fit(X, ["a", "a", "b", "b"])
    save_model(classifier, path)
    return classifier


def test_a_tiny_file_reads_as_documented(tmp_path: Path) -> None:
    """Names, codings, labels and the result stand in the file in plain sight."""
    classifier = tiny(tmp_path / "m.json")
    data = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert (data["format"], data["version"], data["package"]) == ("marginbn-model", 1, __version__)
    assert data["estimator"] == "TANClassifier"
    assert data["classes"] == {"dtype": "str", "labels": ["a", "b"]}
    assert data["coding"][0] == {
        "name": "x0",
        "kind": "categorical",
        "cuts": [],
        "categories": ["blue", "red"],
        "missing_state": False,
        "values": [],
    }
    assert data["feature_names"] is None
    assert data["validation"] is None
    assert data["result"]["status"] == "optimal"
    assert data["result"]["objective"] == classifier.objective_
    assert data["network"]["parents"] == [[], [0], [0, 1]]


@pytest.mark.parametrize("missing", ["state", "drop"])
@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
@pytest.mark.filterwarnings("ignore::marginbn.exceptions.DataWarning")
def test_the_loaded_classifier_is_the_saved_one(
    classifier: BaseBNClassifier, missing: str, tmp_path: Path
) -> None:
    """Every probability has the same bits and every fitted attribute the same value."""
    saved = fitted(classifier, missing)
    save_model(saved, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    table = mixed_table()
    assert type(loaded) is type(saved)
    assert (loaded.predict_log_proba(table) == saved.predict_log_proba(table)).all()
    assert (loaded.predict(table) == saved.predict(table)).all()
    assert loaded.classes_.dtype == saved.classes_.dtype
    assert loaded.network_ == saved.network_
    assert loaded.coding_ == saved.coding_
    for name in ("objective_", "bound_", "gap_", "status_", "trace_", "structure_", "n_dropped_"):
        assert getattr(loaded, name) == getattr(saved, name), name
    assert (loaded.result_ is None) == (saved.result_ is None)
    for field in fields(saved.result_) if saved.result_ is not None else ():
        ours, theirs = (getattr(c.result_, field.name) for c in (loaded, saved))
        assert np.array_equal(ours, theirs) if field.name == "selection" else ours == theirs
    assert (loaded.feature_names_in_ == saved.feature_names_in_).all()
    assert loaded.n_features_in_ == saved.n_features_in_
    fitted_names = {name for name in vars(saved) if name.endswith("_")}
    assert {name for name in vars(loaded) if name.endswith("_")} == fitted_names


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
def test_parameters_survive_with_their_types(classifier: BaseBNClassifier, tmp_path: Path) -> None:
    """Integer keys and None come back as they were, tuples as lists; a clone can fit again."""
    saved = fitted(classifier)
    save_model(saved, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    for name, value in saved.get_params().items():
        if name == "search":  # of one fit on one machine
            continue
        back = loaded.get_params()[name]
        if isinstance(value, np.ndarray | list | tuple):
            assert np.array_equal(back, value), name
        else:
            assert (back, type(back)) == (value, type(value)), name
    table = mixed_table()
    again = clone(loaded).fit(table, mixed_labels(table))
    assert again.structure_ == saved.structure_


def test_the_choice_by_validation_survives(tmp_path: Path) -> None:
    """gamma_, max_parents_ and the table of scores, integers as integers."""
    saved = fitted(CLASSIFIERS[-1])
    save_model(saved, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert isinstance(saved, MaxMarginBNClassifierCV)
    assert isinstance(loaded, MaxMarginBNClassifierCV)
    assert (loaded.gamma_, loaded.max_parents_) == (saved.gamma_, saved.max_parents_)
    assert loaded.best_score_ == saved.best_score_
    assert loaded.cv_results_.keys() == saved.cv_results_.keys()
    for key, column in saved.cv_results_.items():
        assert loaded.cv_results_[key].dtype == column.dtype
        assert (loaded.cv_results_[key] == column).all()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint8", "uint64", "float32", "U5"])
def test_labels_keep_their_type(dtype: str, tmp_path: Path) -> None:
    y = np.array([0, 1, 1, 0]).astype(dtype)
    X = [[0.0], [1.5], [1.7], [0.2]]
    save_model(NaiveBayesClassifier().fit(X, y), tmp_path / "m.json")
    predicted = load_model(tmp_path / "m.json").predict(X)
    assert predicted.dtype.kind == y.dtype.kind
    assert dtype == "U5" or predicted.dtype == y.dtype
    assert set(predicted) <= set(y)


def test_infinite_numbers_survive(tmp_path: Path) -> None:
    """A bound that is not known yet is infinite, and JSON has no infinity."""
    classifier = tiny(tmp_path / "m.json")
    trace = (TracePoint(0.5, -math.inf, math.inf), TracePoint(1.0, -3.0, math.inf))
    classifier.result_ = replace(
        classifier.result_, bound=math.inf, status=Status.INTERRUPTED, trace=trace
    )
    save_model(classifier, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert loaded.bound_ == math.inf
    assert loaded.trace_ == trace
    assert loaded.status_ == "interrupted"


def test_what_is_not_plain_is_left_out_with_a_warning(tmp_path: Path) -> None:
    """A splitter and a RandomState cannot be JSON; the callback goes without a word."""
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    classifier = MaxMarginBNClassifierCV(
        search=Search(solver="highs", callback=lambda _: None),
        gammas=[1.0],
        max_parents=(1,),
        cv=KFold(2, shuffle=True, random_state=0),
        random_state=np.random.RandomState(0),
    ).fit(X, y)
    with pytest.warns(UserWarning, match="is not saved") as caught:
        save_model(classifier, tmp_path / "m.json")
    assert sorted(str(w.message).split()[2] for w in caught) == ["cv", "random_state"]
    loaded = load_model(tmp_path / "m.json")
    assert loaded.get_params()["cv"] is None
    assert (loaded.predict_proba(X) == classifier.predict_proba(X)).all()


def test_only_our_own_fitted_classifiers_are_saved(tmp_path: Path) -> None:
    class Mine(NaiveBayesClassifier):
        pass

    with pytest.raises(NotFittedError):
        save_model(NaiveBayesClassifier(), tmp_path / "m.json")
    with pytest.raises(InputError, match="must be one of"):
        save_model(Mine().fit([[0], [1]], [0, 1]), tmp_path / "m.json")
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")
    classifier = NaiveBayesClassifier().fit([[0], [1]], [0, 1])
    classifier.classes_ = dates
    with pytest.raises(InputError, match="cannot be saved"):
        save_model(classifier, tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def setter(*path: Any, value: Any) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return edit


VALIDATION = {"gamma": 1.0, "max_parents": 1, "best_score": 1.0, "results": {}}

HOSTILE: list[tuple[Edit, str]] = [
    (setter("format", value="pickle"), r"\$\.format: Invalid enum value 'pickle'"),
    (setter("version", value=5), r"\$\.version: Invalid enum value 5"),
    (setter("version", value="1"), r"\$\.version"),
    (lambda d: d.pop("network"), "missing required field `network`"),
    (setter("extra", value=1), "unknown field `extra`"),
    (setter("estimator", value="os.system"), r"\$\.estimator: must be one of"),
    (setter("estimator", value="BaseBNClassifier"), r"\$\.estimator"),
    (setter("estimator", value=["NaiveBayesClassifier"]), r"\$\.estimator: Expected `str`"),
    (setter("params", "callback", value="print"), r"\$\.params: .* has no parameters"),
    (setter("params", "__class__", value="x"), "has no parameters"),
    (setter("params", "smoothing", value=-1), r"\$\.params: smoothing must be"),
    (setter("params", "smoothing", value={"float": "nan"}), r"smoothing: must be marked as dict"),
    (setter("params", "missing", value={"eval": "1"}), r"\$\.params\.missing: must be marked"),
    (setter("classes", "dtype", value="object"), r"\$\.classes: dtype must be one of"),
    (setter("classes", "dtype", value="int64"), r"\$\.classes: labels must be of the type int64"),
    (setter("classes", "labels", value=["a"]), "must have 2 entries"),
    (setter("classes", "labels", value=["b", "a"]), "distinct and sorted"),
    (setter("classes", "labels", value=["a", "a"]), "distinct and sorted"),
    (setter("classes", value={"dtype": "int8", "labels": [1, 999]}), r"\$\.classes\.labels"),
    (
        setter("classes", value={"dtype": "float64", "labels": [0.5, {"float": "inf"}]}),
        r"\$\.classes\.labels\[1\]: Expected",
    ),
    (setter("classes", "labels", value=["a", "\ud800"]), "surrogate pair"),
    (setter("feature_names", value=["a", "b"]), r"\$\.feature_names"),
    (setter("n_dropped", value=-1), r"\$\.n_dropped"),
    (setter("n_samples", value="many"), r"\$\.n_samples"),
    (lambda d: d["coding"].pop(), r"\$\.coding: must have 2 entries"),
    (setter("coding", 0, "name", value="x1"), r"\$\.coding\[0\]: makes"),
    (setter("coding", 0, "kind", value="text"), r"\$\.coding\[0\]\.kind"),
    (setter("coding", 0, "kind", value="numeric"), "either cuts or categories"),
    (setter("coding", 0, "categories", value=["red"]), r"makes 'x0' with 1 states"),
    (setter("coding", 0, "categories", value=["red", None]), r"categories\[1\]: Expected `bool"),
    (setter("coding", 0, "categories", value=["1", 1]), "must be distinct"),
    (setter("coding", 0, "cuts", value=[2, 1]), "must be increasing"),
    (setter("coding", 0, "cuts", value=["inf"]), r"cuts\[0\]: Expected `float`"),
    (setter("coding", 0, "missing_state", value="no"), "missing_state: Expected `bool`"),
    (setter("coding", 0, "values", value=[[], []]), "values must be empty"),
    (setter("result", "status", value="sure"), r"\$\.result\.status"),
    (setter("result", "bound", value=-1e9), "must not lie below"),
    (setter("result", "bound", value="nan"), "must not lie below"),
    (setter("result", "objective", value=None), r"\$\.result\.objective: Expected `float \| str`"),
    (setter("result", "selection", value=[0, 0, -1]), r"\$\.result\.selection"),
    (setter("result", "trace", value=[[1, 2]]), r"\$\.result\.trace\[0\]"),
    (setter("result", "nodes", value=1.5), r"\$\.result\.nodes"),
    (setter("validation", value=VALIDATION), r"\$\.validation: must be null"),
    (setter("network", "parents", value=[[], [2], [1]]), r"\$\.network\.parents"),
    (setter("network", "log_tables", 0, 0, value=5.0), r"\$\.network"),
]


@pytest.mark.parametrize(("edit", "reason"), HOSTILE)
def test_hostile_files_are_refused_with_path_and_place(
    edit: Edit, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.json"
    tiny(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    changed = copy.deepcopy(data)
    edit(changed)
    assert changed != data
    path.write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(FormatError, match=reason) as caught:
        load_model(path)
    assert str(caught.value).startswith(str(path))


def test_validation_of_the_cv_classifier_is_checked(tmp_path: Path) -> None:
    """It must be there, complete, and of equal lengths."""
    path = tmp_path / "m.json"
    save_model(fitted(CLASSIFIERS[-1]), path)
    data = json.loads(path.read_text(encoding="utf-8"))
    for edit, reason in [
        (setter("validation", value=None), r"\$\.validation: is missing"),
        (setter("validation", "results", "x", value=[1]), r"at `key` in `\$\.validation\.results`"),
        (setter("validation", "results", "gamma", value=[1]), "equal length"),
    ]:
        changed = copy.deepcopy(data)
        edit(changed)
        path.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(FormatError, match=reason):
            load_model(path)


def test_deep_brackets_are_refused(tmp_path: Path) -> None:
    """Nesting that would overflow the stack is an error like any other."""
    path = tmp_path / "m.json"
    tiny(path)
    text = path.read_text(encoding="utf-8")
    deep = "[" * 900 + "]" * 900
    path.write_text(text.replace('"column_kinds": "auto"', f'"column_kinds": {deep}'))
    with pytest.raises(FormatError, match="nested too deeply"):
        load_model(path)
    path.write_text("[" * 10**5)
    with pytest.raises(FormatError, match="Expected `object`, got `array`"):
        load_model(path)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    classifier = tiny(path)
    before = path.read_bytes()
    classifier.n_dropped_ = object()  # type: ignore[assignment]
    with pytest.raises(InputError, match="as JSON"):
        save_model(classifier, path)
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="cannot read"):
        load_model(tmp_path / "none.json")
