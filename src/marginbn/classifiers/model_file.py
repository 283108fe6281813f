"""Fitted classifiers as files: JSON, lossless, versioned, and nothing in it is ever executed.

::

    {"format": "marginbn-model", "version": 1, "package": "0.1.0",
     "estimator": "MaxMarginBNClassifier",       one of five names and nothing else
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

import re
import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginbn import __version__
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.max_margin_cv import MaxMarginBNClassifierCV
from marginbn.classifiers.naive_bayes import NaiveBayesClassifier, TANClassifier
from marginbn.classifiers.search import GenerativeBNClassifier, MaxMarginBNClassifier
from marginbn.data.encode import Coding, TableCoding
from marginbn.exceptions import InputError
from marginbn.export.native import network_from_dict, network_to_dict
from marginbn.files import (
    Count,
    MisfitError,
    Must,
    NotPlainError,
    Number,
    PathLike,
    Plain,
    check_length,
    encode_number,
    encode_value,
    naming_file,
    one_of,
    read_as,
    read_document,
    read_json,
    shorten,
    write_json_atomic,
)
from marginbn.network.network import BayesianNetwork
from marginbn.solvers.result import SolveResult, Status, TracePoint

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

_LABEL_TYPES = {
    "bool": bool,
    **{f"{sign}int{bits}": int for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": float for bits in (16, 32, 64)},
    "str": str,
}
"""Types that class labels may have, and what JSON must hold for them."""
_Cuts = Annotated[
    tuple[float, ...],
    Must("be increasing", lambda cuts: all(a < b for a, b in pairwise(cuts))),
]
_Categories = Annotated[
    tuple[Plain, ...],
    Must("be text, numbers or booleans", lambda c: {*map(type, c)} <= {str, bool, int, float}),
    Must("be distinct", lambda categories: len({*map(str, categories)}) == len(categories)),
]


@dataclass(frozen=True)
class _Classes:
    dtype: Annotated[str, one_of(_LABEL_TYPES)]
    labels: list  # type: ignore[type-arg]  # of the type that dtype names


@dataclass(frozen=True)
class _Coding:
    name: str
    kind: Literal["numeric", "categorical"]
    cuts: _Cuts
    categories: _Categories
    missing_state: bool


@dataclass(frozen=True)
class _Result:
    objective: Number
    bound: Number
    status: Status
    seconds: Number
    nodes: Count
    solver: str
    selection: tuple[Count, ...]
    trace: tuple[tuple[Number, Number, Number], ...]
    scale: Annotated[float, Must("not be negative", lambda scale: scale >= 0)]


@dataclass(frozen=True)
class _Validation:
    gamma: float
    max_parents: Count
    best_score: Number
    results: dict[str, list]  # type: ignore[type-arg]  # integers or numbers, by the key


@dataclass(frozen=True)
class _Model:
    format: str
    version: int
    package: str
    estimator: Annotated[str, one_of(_ESTIMATORS)]
    params: dict[str, Plain]
    classes: _Classes
    feature_names: object
    coding: tuple[_Coding, ...]
    n_samples: Count | None
    n_dropped: Count
    result: _Result
    validation: object  # depends on the estimator
    network: object  # a format of its own


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
        "classes": _write_classes(classifier.classes_),
        "feature_names": None if names is None else [str(n) for n in names],
        "coding": [_write_coding(c) for c in classifier.coding_.columns],
        "n_samples": getattr(classifier, "n_samples_", None),
        "n_dropped": classifier.n_dropped_,
        "result": _write_result(classifier.result_),
        "validation": _write_validation(classifier),
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
    data = read_json(path)
    with naming_file(path):
        shape: _Model = read_document(_Model, _with_scale(data), FORMAT, VERSION)
        classifier = _read_estimator(shape.estimator, shape.params)
        network = network_from_dict(shape.network, path=path, location="$.network")
        classifier.network_ = network
        classifier.classes_ = _read_classes(shape.classes, network)
        classifier.coding_ = _read_codings(shape.coding, network)
        if shape.n_samples is not None:
            classifier.n_samples_ = shape.n_samples
        classifier.n_dropped_ = shape.n_dropped
        _set_feature_names(classifier, shape.feature_names)
        _set_result(classifier, _read_result(shape.result, network))
        _set_validation(classifier, shape.validation)
    return classifier


def _write_classes(classes: NDArray[Any]) -> dict[str, object]:
    """Class labels with the type they have."""
    dtype = "str" if classes.dtype.kind == "U" else classes.dtype.name
    if dtype not in _LABEL_TYPES:
        raise InputError(
            f"class labels of type {classes.dtype} cannot be saved; use text, numbers or booleans"
        )
    return {"dtype": dtype, "labels": classes.tolist()}


def _read_classes(shape: _Classes, network: BayesianNetwork) -> NDArray[Any]:
    """Class labels, distinct and sorted, one per state of the class variable."""
    dtype, labels = shape.dtype, shape.labels
    check_length(labels, network.n_classes, "$.classes.labels")
    for i, label in enumerate(labels):
        place = f"$.classes.labels[{i}]"
        if type(label) is not _LABEL_TYPES[dtype]:
            raise MisfitError(f"{place}: must be a {dtype}, got {shorten(label)}")
        read_as(type(label), label, place)  # text that is text, numbers that are finite
    try:
        classes = np.array(labels, dtype=dtype)
    except OverflowError:
        raise MisfitError(f"$.classes.labels: a number is too large for {dtype}") from None
    if classes.tolist() != labels or not (classes[:-1] < classes[1:]).all():
        raise MisfitError(f"$.classes.labels: must be distinct and sorted {dtype} labels")
    return classes


def _write_coding(coding: Coding) -> dict[str, object]:
    """Coding of one feature column."""
    return {
        "name": coding.name,
        "kind": coding.kind,
        "cuts": list(coding.cuts),
        "categories": [encode_value(c) for c in coding.categories],
        "missing_state": coding.missing_state,
    }


def _read_codings(shapes: tuple[_Coding, ...], network: BayesianNetwork) -> TableCoding:
    """Codings of all features, which must fit the variables of the network."""
    check_length(shapes, network.n_variables - 1, "$.coding")
    codings = []
    for i, shape in enumerate(shapes):
        if shape.categories if shape.kind == "numeric" else shape.cuts:
            raise MisfitError(f"$.coding[{i}]: a {shape.kind} column has either cuts or categories")
        coding, variable = Coding(**vars(shape)), network.variables[i + 1]
        found = coding.variable
        if (found.name, found.arity) != (variable.name, variable.arity):
            raise MisfitError(
                f"$.coding[{i}]: makes {shorten(found.name)} with {found.arity} states, but the "
                f"network has {shorten(variable.name)} with {variable.arity}"
            )
        codings.append(coding)
    return TableCoding(tuple(codings))


def _write_result(result: SolveResult) -> dict[str, object]:
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
        "scale": encode_number(result.scale),
    }


def _with_scale(data: Any) -> Any:
    """Older files do not say what gaps are relative to: they were to at least one nat."""
    if isinstance(data, dict) and isinstance(data.get("result"), dict):
        data["result"].setdefault("scale", 1.0)
    return data


def _read_result(shape: _Result, network: BayesianNetwork) -> SolveResult:
    """What the solver returned; the structure is that of the network."""
    check_length(shape.selection, network.n_variables, "$.result.selection")
    if not shape.bound >= shape.objective:
        raise MisfitError("$.result.bound: must not lie below the objective")
    values = vars(shape) | {
        "selection": np.array(shape.selection, np.int64),
        "trace": tuple(TracePoint(*point, shape.scale) for point in shape.trace),
    }
    return SolveResult(structure=network.structure, **values)


def _write_validation(classifier: BaseBNClassifier) -> dict[str, object] | None:
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


def _set_validation(classifier: BaseBNClassifier, data: object) -> None:
    """Set what the choice by validation left behind; everybody else has nothing there."""
    if not isinstance(classifier, MaxMarginBNClassifierCV):
        if data is not None:
            raise MisfitError(f"$.validation: must be null for {type(classifier).__name__}")
        return
    shape: _Validation = read_as(_Validation, data, "$.validation")
    classifier.gamma_ = shape.gamma
    classifier.max_parents_ = shape.max_parents
    classifier.best_score_ = shape.best_score
    classifier.cv_results_ = _read_results(shape.results, "$.validation.results")


def _read_results(results: dict[str, list[object]], place: str) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    for key, values in results.items():
        if not re.fullmatch(r"max_parents|gamma|max_gap|(mean|std|split\d+)_test_score", key):
            raise MisfitError(f"{place}: unknown key {shorten(key)}")
        whole = key == "max_parents"
        shape: Any = tuple[Count, ...] if whole else tuple[Number, ...]
        entries = read_as(shape, values, f"{place}.{key}")
        columns[key] = np.array(entries, dtype=np.int64 if whole else np.float64)
    if len({len(column) for column in columns.values()}) > 1:
        raise MisfitError(f"{place}: the columns must be of equal length")
    return columns


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


def _read_estimator(name: str, params: dict[str, Any]) -> BaseBNClassifier:
    """An unfitted classifier; constructors only store, and the stored values are checked."""
    cls = _ESTIMATORS[name]
    unknown = sorted(params.keys() - (cls().get_params(deep=False).keys() - _LEFT_OUT))
    if unknown:
        raise MisfitError(f"$.params: {name} has no parameters {shorten(unknown)}")
    classifier = cls(**params)
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
