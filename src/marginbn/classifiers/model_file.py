"""The parts of a model file: class labels, codings, results, each with its inverse beside it.

Fitted classifiers as files: JSON, lossless, versioned, and nothing in it is ever executed.

::

    {"format": "marginbn-model", "version": 1, "package": "0.1.0",
     "estimator": "MaxMarginBNClassifier",       one of five names, nothing else is looked up
     "params": {"gamma": 2.197, ...},            constructor parameters that are plain values
     "classes": {"dtype": "str", "labels": [...]},
     "feature_names": [...] or null,             null: fitted on an array without names
     "coding": [{"name": "petal length", "kind": "numeric", "cuts": [2.45, 4.75],
                 "categories": [], "missing_state": false}, ...],
     "n_samples": 150 or null, "n_dropped": 0,
     "result": {"objective": ..., "bound": ..., "status": "optimal", "trace": [...], ...},
     "validation": null or {"gamma": ..., "max_parents": ..., "best_score": ..., ...},
     "network": {"format": "marginbn-network", ...}}

Variable 0 of the network is the class; its name is the target's. Numbers that JSON does not have
are written "inf", "-inf" and "nan". A reader trusts nothing: types, sizes and names are checked,
codings and classes must fit the network, and an error names the file and the place in it.
"""

from __future__ import annotations

import os
import re
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginbn import __version__
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.generative import GenerativeBNClassifier
from marginbn.classifiers.max_margin import MaxMarginBNClassifier
from marginbn.classifiers.max_margin_cv import MaxMarginBNClassifierCV
from marginbn.classifiers.naive_bayes import NaiveBayesClassifier, TANClassifier
from marginbn.data.encode import Coding, TableCoding
from marginbn.exceptions import FormatError, InputError
from marginbn.export.native import network_from_dict, network_to_dict
from marginbn.files import (
    MisfitError,
    NotPlainError,
    PathLike,
    as_bool,
    as_count,
    as_finite,
    as_list,
    as_number,
    as_record,
    as_text,
    check_header,
    decode_value,
    encode_number,
    encode_value,
    read_json,
    shorten,
    write_json_atomic,
)
from marginbn.network.network import BayesianNetwork
from marginbn.solvers.result import SolveResult, Status, TracePoint

_RESULT_KEYS = (
    "objective", "bound", "status", "seconds", "nodes", "solver", "selection", "trace",
)  # fmt: skip
_CODING_KEYS = ("name", "kind", "cuts", "categories", "missing_state")
_LABEL_TYPES = {
    "bool": bool,
    **{f"{sign}int{bits}": int for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": float for bits in (16, 32, 64)},
    "str": str,
}
"""Types that class labels may have, and what JSON must hold for them."""


def classes_to_dict(classes: NDArray[Any]) -> dict[str, object]:
    """Class labels with the type they have."""
    dtype = "str" if classes.dtype.kind == "U" else classes.dtype.name
    if dtype not in _LABEL_TYPES:
        raise InputError(
            f"class labels of type {classes.dtype} cannot be saved; use text, numbers or booleans"
        )
    return {"dtype": dtype, "labels": classes.tolist()}


def classes_from_dict(data: object, network: BayesianNetwork) -> NDArray[Any]:
    """Class labels, distinct and sorted, one per state of the class variable."""
    record = as_record(data, "$.classes", ("dtype", "labels"))
    dtype = as_text(record["dtype"], "$.classes.dtype")
    if dtype not in _LABEL_TYPES:
        raise MisfitError(f"$.classes.dtype: must be one of {sorted(_LABEL_TYPES)}")
    labels = as_list(record["labels"], "$.classes.labels", network.n_classes)
    for i, label in enumerate(labels):
        place = f"$.classes.labels[{i}]"
        if type(label) is not _LABEL_TYPES[dtype]:
            raise MisfitError(f"{place}: must be a {dtype}, got {shorten(label)}")
        if isinstance(label, str | float):
            decode_value(label, place)
    try:
        classes = np.array(labels, dtype=dtype)
    except OverflowError:
        raise MisfitError(f"$.classes.labels: a number is too large for {dtype}") from None
    if classes.tolist() != labels or not (classes[:-1] < classes[1:]).all():
        raise MisfitError(f"$.classes.labels: must be distinct and sorted {dtype} labels")
    return classes


def column_to_dict(coding: Coding) -> dict[str, object]:
    """Coding of one feature column."""
    return {
        "name": coding.name,
        "kind": coding.kind,
        "cuts": list(coding.cuts),
        "categories": [encode_value(c) for c in coding.categories],
        "missing_state": coding.missing_state,
    }


def coding_from_list(data: object, network: BayesianNetwork) -> TableCoding:
    """Codings of all features, which must fit the variables of the network."""
    entries = as_list(data, "$.coding", network.n_variables - 1)
    codings = []
    for i, entry in enumerate(entries):
        coding, variable = _column_from_dict(entry, f"$.coding[{i}]"), network.variables[i + 1]
        found = coding.variable
        if (found.name, found.arity) != (variable.name, variable.arity):
            raise MisfitError(
                f"$.coding[{i}]: makes {shorten(found.name)} with {found.arity} states, but the "
                f"network has {shorten(variable.name)} with {variable.arity}"
            )
        codings.append(coding)
    return TableCoding(tuple(codings))


def _column_from_dict(data: object, place: str) -> Coding:
    record = as_record(data, place, _CODING_KEYS)
    kind = as_text(record["kind"], f"{place}.kind")
    if kind not in ("numeric", "categorical"):
        raise MisfitError(f"{place}.kind: must be numeric or categorical, got {shorten(kind)}")
    entries = as_list(record["cuts"], f"{place}.cuts")
    cuts = tuple(as_finite(c, f"{place}.cuts[{j}]") for j, c in enumerate(entries))
    if any(a >= b for a, b in pairwise(cuts)):
        raise MisfitError(f"{place}.cuts: must be increasing")
    entries = as_list(record["categories"], f"{place}.categories")
    categories = tuple(decode_value(c, f"{place}.categories[{j}]") for j, c in enumerate(entries))
    if not all(isinstance(c, str | int | float) for c in categories):
        raise MisfitError(f"{place}.categories: must be text, numbers or booleans")
    if len({str(c) for c in categories}) < len(categories):
        raise MisfitError(f"{place}.categories: must be distinct")
    if categories if kind == "numeric" else cuts:
        raise MisfitError(f"{place}: a {kind} column has either cuts or categories")
    missing_state = as_bool(record["missing_state"], f"{place}.missing_state")
    name = as_text(record["name"], f"{place}.name")
    return Coding(name, kind, cuts, categories, missing_state)  # type: ignore[arg-type]


def result_to_dict(result: SolveResult) -> dict[str, object]:
    """What the solver returned, without the structure, which the network has."""
    return {
        "objective": encode_number(result.objective),
        "bound": encode_number(result.bound),
        "status": str(result.status),
        "seconds": encode_number(result.seconds),
        "nodes": int(result.nodes),
        "solver": result.solver,
        "selection": result.selection.tolist(),
        "trace": [
            [encode_number(v) for v in (p.seconds, p.objective, p.bound)] for p in result.trace
        ],
    }


def result_from_dict(data: object, network: BayesianNetwork) -> SolveResult:
    """What the solver returned; the structure is that of the network."""
    place = "$.result"
    record = as_record(data, place, _RESULT_KEYS)
    objective = as_number(record["objective"], f"{place}.objective")
    bound = as_number(record["bound"], f"{place}.bound")
    if not bound >= objective:
        raise MisfitError(f"{place}.bound: must not lie below the objective")
    status = as_text(record["status"], f"{place}.status")
    if status not in tuple(Status):
        raise MisfitError(f"{place}.status: must be one of {list(map(str, Status))}")
    selection = as_list(record["selection"], f"{place}.selection", network.n_variables)
    trace = as_list(record["trace"], f"{place}.trace")
    return SolveResult(
        structure=network.structure,
        selection=np.array([as_count(k, f"{place}.selection") for k in selection], np.int64),
        objective=objective,
        bound=bound,
        status=Status(status),
        trace=tuple(_point_from_list(p, f"{place}.trace[{i}]") for i, p in enumerate(trace)),
        seconds=as_number(record["seconds"], f"{place}.seconds"),
        solver=as_text(record["solver"], f"{place}.solver"),
        nodes=as_count(record["nodes"], f"{place}.nodes"),
    )


def _point_from_list(data: object, place: str) -> TracePoint:
    return TracePoint(*(as_number(v, place) for v in as_list(data, place, 3)))


def validation_to_dict(classifier: BaseBNClassifier) -> dict[str, object] | None:
    """The choice by validation and its table; None for all other classifiers."""
    if not isinstance(classifier, MaxMarginBNClassifierCV):
        return None
    return {
        "gamma": float(classifier.gamma_),
        "max_parents": int(classifier.max_parents_),
        "best_score": encode_number(classifier.best_score_),
        "results": {
            key: values.tolist() if key == "max_parents" else [encode_number(v) for v in values]
            for key, values in classifier.cv_results_.items()
        },
    }


def restore_validation(classifier: BaseBNClassifier, data: object) -> None:
    """Set what the choice by validation left behind; everybody else has nothing there."""
    place = "$.validation"
    if not isinstance(classifier, MaxMarginBNClassifierCV):
        if data is not None:
            raise MisfitError(f"{place}: must be null for {type(classifier).__name__}")
        return
    record = as_record(data, place, ("gamma", "max_parents", "best_score", "results"))
    classifier.gamma_ = as_finite(record["gamma"], f"{place}.gamma")
    classifier.max_parents_ = as_count(record["max_parents"], f"{place}.max_parents")
    classifier.best_score_ = as_number(record["best_score"], f"{place}.best_score")
    classifier.cv_results_ = _results_from_dict(record["results"], f"{place}.results")


def _results_from_dict(data: object, place: str) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    for key, values in as_record(data, place).items():
        if not re.fullmatch(r"max_parents|gamma|max_gap|(mean|std|split\d+)_test_score", key):
            raise MisfitError(f"{place}: unknown key {shorten(key)}")
        read = as_count if key == "max_parents" else as_number
        entries = [read(v, f"{place}.{key}") for v in as_list(values, f"{place}.{key}")]
        columns[key] = np.array(entries, dtype=np.int64 if read is as_count else np.float64)
    if len({len(column) for column in columns.values()}) > 1:
        raise MisfitError(f"{place}: the columns must be of equal length")
    return columns


FORMAT = "marginbn-model"
VERSION = 1

_ESTIMATORS: dict[str, type[BaseBNClassifier]] = {
    cls.__name__: cls
    for cls in (
        GenerativeBNClassifier,
        MaxMarginBNClassifier,
        MaxMarginBNClassifierCV,
        NaiveBayesClassifier,
        TANClassifier,
    )
}
_LEFT_OUT = {"callback", "checkpoint", "certificate"}
"""Parameters that belong to one fit on one machine, not to the classifier."""

_KEYS = (
    "format", "version", "package", "estimator", "params", "classes", "feature_names", "coding",
    "n_samples", "n_dropped", "result", "validation", "network",
)  # fmt: skip


def save_model(classifier: BaseBNClassifier, path: PathLike) -> None:
    """Write a fitted classifier; an existing file is replaced only when all is written.

    Parameters that are no plain values (a ``RandomState``, a splitter as ``cv``) are left out with
    a warning and have their default after loading; predictions do not need them. The callback
    and the files of the search are left out silently.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginbn import NaiveBayesClassifier, save_model
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(clf, os.path.join(folder, "model.json"))
    ...     os.listdir(folder)
    ['model.json']
    """
    name = type(classifier).__name__
    if _ESTIMATORS.get(name) is not type(classifier):
        raise InputError(f"classifier must be one of {sorted(_ESTIMATORS)}, got {name}")
    check_is_fitted(classifier)
    names = getattr(classifier, "feature_names_in_", None)
    record = {
        "format": FORMAT,
        "version": VERSION,
        "package": __version__,
        "estimator": name,
        "params": _plain_parameters(classifier),
        "classes": classes_to_dict(classifier.classes_),
        "feature_names": None if names is None else [str(n) for n in names],
        "coding": [column_to_dict(c) for c in classifier.coding_.columns],
        "n_samples": getattr(classifier, "n_samples_", None),
        "n_dropped": classifier.n_dropped_,
        "result": result_to_dict(classifier.result_),
        "validation": validation_to_dict(classifier),
        "network": network_to_dict(classifier.network_),
    }
    write_json_atomic(path, record)


def load_model(path: PathLike) -> BaseBNClassifier:
    """Read a classifier written by :func:`save_model`; it predicts the same to the last bit.

    Raises
    ------
    FormatError
        If anything in the file is not as the format demands.
    InputError
        If the file cannot be read at all.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginbn import NaiveBayesClassifier, load_model, save_model
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     save_model(clf, path)
    ...     load_model(path).predict([["blue"]]).tolist()
    ['b']
    """
    try:
        return _parse_model(read_json(path), path)
    except MisfitError as misfit:
        raise FormatError(f"{os.fspath(path)}: {misfit}") from None
    except RecursionError:
        raise FormatError(f"{os.fspath(path)}: brackets are nested too deeply") from None


def _plain_parameters(classifier: BaseBNClassifier) -> dict[str, object]:
    params: dict[str, object] = {}
    for name, value in classifier.get_params(deep=False).items():
        if name in _LEFT_OUT:
            continue
        try:
            params[name] = encode_value(value)
        except NotPlainError as error:
            warnings.warn(
                f"the parameter {name} is not saved, because a {error}; it will have its default "
                "after loading",
                UserWarning,
                stacklevel=3,
            )
    return params


def _parse_model(data: object, path: PathLike) -> BaseBNClassifier:
    record = as_record(data, "$")
    check_header(record, FORMAT, VERSION)
    as_record(data, "$", _KEYS)
    as_text(record["package"], "$.package")
    classifier = _parse_estimator(record["estimator"], record["params"])
    network = network_from_dict(record["network"], path=path, location="$.network")
    classifier.classes_ = classes_from_dict(record["classes"], network)
    classifier.coding_ = coding_from_list(record["coding"], network)
    _set_feature_names(classifier, record["feature_names"])
    if record["n_samples"] is not None:
        classifier.n_samples_ = as_count(record["n_samples"], "$.n_samples")
    classifier.n_dropped_ = as_count(record["n_dropped"], "$.n_dropped")
    _set_result(classifier, result_from_dict(record["result"], network))
    classifier.network_ = network
    restore_validation(classifier, record["validation"])
    return classifier


def _parse_estimator(name: object, params: object) -> BaseBNClassifier:
    """An unfitted classifier; constructors only store, and the stored values are checked."""
    cls = _ESTIMATORS.get(as_text(name, "$.estimator"))
    if cls is None:
        raise MisfitError(f"$.estimator: must be one of {sorted(_ESTIMATORS)}, got {shorten(name)}")
    known = cls().get_params(deep=False).keys() - _LEFT_OUT
    given = as_record(params, "$.params")
    unknown = sorted(given.keys() - known)
    if unknown:
        raise MisfitError(f"$.params: {cls.__name__} has no parameters {shorten(unknown)}")
    classifier = cls(**{key: decode_value(v, f"$.params.{key}") for key, v in given.items()})
    try:
        classifier._check_parameters()
    except (InputError, TypeError) as error:
        raise MisfitError(f"$.params: {error}") from None
    return classifier


def _set_feature_names(classifier: BaseBNClassifier, data: object) -> None:
    expected = [coding.name for coding in classifier.coding_.columns]
    classifier.n_features_in_ = len(expected)
    if data is None:
        return
    if data != expected:
        raise MisfitError("$.feature_names: must be null or the names of the coding")
    classifier.feature_names_in_ = np.array(expected, dtype=object)


def _set_result(classifier: BaseBNClassifier, result: SolveResult) -> None:
    classifier.result_ = result
    classifier.structure_ = result.structure
    classifier.objective_, classifier.bound_ = result.objective, result.bound
    classifier.gap_, classifier.status_ = result.gap, str(result.status)
    classifier.trace_ = result.trace
