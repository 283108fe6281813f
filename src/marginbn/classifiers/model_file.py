"""Fitted classifiers as files: JSON, lossless, versioned, and nothing in it is ever executed.

::

    {"format": "marginbn-model", "version": 4, "package": "0.2.0",
     "estimator": "MaxMarginBNClassifier",       one of five names and nothing else
     "params": {"gamma": 2.197, ...},            constructor parameters that are plain values
     "classes": {"dtype": "str", "labels": [...]},
     "feature_names": [...] or null,             null: fitted on an array without names
     "coding": [{"name": "petal length", "kind": "numeric", "cuts": [2.45, 4.75],
                 "categories": [], "missing_state": false,
                 "values": []}, ...],
     "n_samples": 150 or null, "n_dropped": 0,
     "result": {"objective": ..., "bound": ..., "status": "optimal", "trace": [...], ...},
     "validation": null or {"gamma": ..., "max_parents": ..., "best_score": ..., ...},
     "preparation": [...],                       only where a column is not used as it is
     "about": {"created": ..., "versions": ..., "data_sha256": ..., "held_out": ...},
     "evidence": {"total_weight": 150.0, "data_sha256": ..., "certificate_sha256": ...},
     "network": {"format": "marginbn-network", ...}}

Variable 0 of the network is the class; its name is the target's. Numbers that JSON does not have
are written "inf", "-inf" and "nan". A reader trusts nothing: types, sizes and names are checked,
codings and classes must fit the network, and an error names the file and the place in it.

What a file says about optimality is a claim, whoever wrote it (:mod:`marginbn.classifiers.claims`
checks it). An objective that no structure can have is refused when the file is read.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginbn import __version__, files
from marginbn.classifiers.base import BaseBNClassifier, Evidence
from marginbn.classifiers.max_margin_cv import MaxMarginBNClassifierCV
from marginbn.classifiers.naive_bayes import NaiveBayesClassifier, TANClassifier
from marginbn.classifiers.preparation_file import (
    PlanShape,
    read_preparation,
    write_preparation,
)
from marginbn.classifiers.provenance import (
    Digest,
    Provenance,
    provenance_of,
    write_provenance,
)
from marginbn.classifiers.search import GenerativeBNClassifier, MaxMarginBNClassifier
from marginbn.data.encode import Coding, TableCoding
from marginbn.exceptions import InputError
from marginbn.export.native import network_from_dict, network_to_dict
from marginbn.files import Count, MisfitError, Number, Plain, encode_number, shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from marginbn.solvers.result import SolveResult, Status, TracePoint

FORMAT = "marginbn-model"
VERSION = 4

ROUNDING = 1e-9
"""Part of the total weight by which an objective may exceed what it can be."""

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
    files.Must("be increasing", lambda cuts: all(a < b for a, b in pairwise(cuts))),
]
_Categories = Annotated[
    tuple[Plain, ...],
    files.Must(
        "be text, numbers or booleans", lambda c: {*map(type, c)} <= {str, bool, int, float}
    ),
    files.Must("be distinct", lambda categories: len({*map(str, categories)}) == len(categories)),
]


@dataclass(frozen=True)
class _Classes:
    dtype: Annotated[str, files.one_of(_LABEL_TYPES)]
    labels: list  # type: ignore[type-arg]  # of the type that dtype names


@dataclass(frozen=True)
class _Coding:
    name: str
    kind: Literal["numeric", "categorical"]
    cuts: _Cuts
    categories: _Categories
    missing_state: bool
    values: tuple[tuple[Number, ...], ...]


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
    scale: Annotated[float, files.Must("not be negative", lambda scale: scale >= 0)]


@dataclass(frozen=True)
class _Validation:
    gamma: float
    max_parents: Count
    best_score: Number
    results: dict[str, list]  # type: ignore[type-arg]  # integers or numbers, by the key


@dataclass(frozen=True)
class _Evidence:
    total_weight: Annotated[float, files.Must("be positive", lambda weight: weight > 0)] | None
    data_sha256: Digest | None
    certificate_sha256: Digest | None


@dataclass(frozen=True)
class _Model:
    format: str
    version: int
    package: str
    estimator: Annotated[str, files.one_of(_ESTIMATORS)]
    params: dict[str, Plain]
    classes: _Classes
    feature_names: object
    coding: tuple[_Coding, ...]
    n_samples: Count | None
    n_dropped: Count
    result: _Result
    validation: object  # depends on the estimator
    evidence: _Evidence
    network: object  # a format of its own
    preparation: tuple[PlanShape, ...] | None
    about: Provenance | None


def save_model(
    classifier: BaseBNClassifier,
    path: files.PathLike,
    *,
    held_out: Mapping[str, float | None] | None = None,
) -> None:
    """Write a fitted classifier; an existing file is replaced only when all is written.

    The file tells when and with which versions it was made and has a fingerprint of the data;
    measures on rows ``held_out`` may be added (``provenance_`` after loading). The environment
    variable SOURCE_DATE_EPOCH sets the time, for files that are equal to the last byte.

    Parameters that are no plain values (a ``RandomState``, a splitter as ``cv``) are left out with
    a warning and have their default after loading; predictions do not need them. The callback
    and the files of the search are left out silently. There is an example in :func:`load_model`.
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
        "evidence": _write_evidence(getattr(classifier, "evidence_", Evidence())),
        "network": network_to_dict(classifier.network_),
        "about": write_provenance(provenance_of(classifier, held_out)),
    }
    record |= write_preparation(classifier)
    files.write_json_atomic(path, record)


def load_model(path: files.PathLike) -> BaseBNClassifier:
    """Read a classifier; a :class:`FormatError` says where the file is not as it should be."""
    return read_model(files.read_json(path), path)


def read_model(data: Any, path: files.PathLike) -> BaseBNClassifier:
    """The classifier of a file that was read."""
    with files.naming_file(path):
        shape: _Model = files.read_document(
            _Model, _with_optional_parts(_with_scale(_as_version_2(data))), FORMAT, VERSION
        )
        classifier = _read_estimator(shape.estimator, shape.params)
        network = network_from_dict(shape.network, path=path, location="$.network")
        classifier.network_ = network
        classifier.classes_ = _read_classes(shape.classes, network)
        classifier.coding_ = _read_codings(shape.coding, network.variables[1:])
        if shape.n_samples is not None:
            classifier.n_samples_ = shape.n_samples
        classifier.n_dropped_ = shape.n_dropped
        classifier.preparation_ = read_preparation(shape.preparation, classifier.coding_)
        _set_feature_names(classifier, shape.feature_names)
        classifier._set_result(_read_result(shape.result, network.structure))
        _set_validation(classifier, shape.validation)
        classifier.evidence_ = Evidence("file", **vars(shape.evidence))
        _check_objective(classifier)
        classifier.provenance_ = shape.about or Provenance()
        if classifier.provenance_.data_sha256 is not None:
            classifier.data_fingerprint_ = classifier.provenance_.data_sha256
    return classifier


def _as_version_2(data: Any) -> Any:
    """Files of version 1 say nothing about evidence."""
    if not isinstance(data, dict) or data.get("version") != 1 or "evidence" in data:
        return data
    return {**data, "evidence": dict.fromkeys(_Evidence.__dataclass_fields__)}


def _write_evidence(evidence: Evidence) -> dict[str, object]:
    return {name: getattr(evidence, name) for name in _Evidence.__dataclass_fields__}


def _check_objective(classifier: BaseBNClassifier) -> None:
    """Refuse an objective that no structure can have.

    A soft margin counts every row with gamma at most, so W rows with gamma W; all other scores are
    logarithms of probabilities, so 0.
    """
    weight = classifier.evidence_.total_weight
    params = classifier.get_params(deep=False)
    if weight is None:
        return
    gamma = getattr(classifier, "gamma_", params.get("gamma")) or 0.0
    room = ROUNDING * weight * max(gamma, 1.0) + ROUNDING * params.get("equivalent_sample_size", 0)
    largest = gamma * weight
    if classifier.result_.objective > largest + room:
        raise MisfitError(
            f"$.result.objective: {classifier.result_.objective!r} is more than {largest:.10g}, "
            "which no structure can exceed on data of this weight; the file was changed"
        )


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
    files.check_length(labels, network.n_classes, "$.classes.labels")
    for i, label in enumerate(labels):
        place = f"$.classes.labels[{i}]"
        if type(label) is not _LABEL_TYPES[dtype]:
            raise MisfitError(f"{place}: must be a {dtype}, got {shorten(label)}")
        files.read_as(type(label), label, place)  # text that is text, numbers that are finite
    try:
        classes = np.array(labels, dtype=dtype)
    except OverflowError:
        raise MisfitError(f"$.classes.labels: a number is too large for {dtype}") from None
    if classes.tolist() != labels or not (classes[:-1] < classes[1:]).all():
        raise MisfitError(f"$.classes.labels: must be distinct and sorted {dtype} labels")
    return classes


def _write_coding(coding: Coding) -> dict[str, object]:
    """Coding of one feature column."""
    categories = [files.encode_value(c) for c in coding.categories]
    return vars(coding) | {"cuts": list(coding.cuts), "categories": categories}


def _read_codings(shapes: tuple[_Coding, ...], variables: tuple[Variable, ...]) -> TableCoding:
    """Codings of columns, which must fit these variables of the network."""
    files.check_length(shapes, len(variables), "$.coding")
    codings = []
    for i, (shape, variable) in enumerate(zip(shapes, variables, strict=True)):
        if shape.categories if shape.kind == "numeric" else shape.cuts:
            raise MisfitError(f"$.coding[{i}]: a {shape.kind} column has either cuts or categories")
        if shape.values and (not all(shape.values) or len(shape.values) != len(shape.cuts) + 1):
            raise MisfitError(f"$.coding[{i}].values: must be empty or have values of every bin")
        coding = Coding(**vars(shape))
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


def _read_result(shape: _Result, structure: Structure) -> SolveResult:
    """What the solver returned."""
    files.check_length(shape.selection, structure.n_variables, "$.result.selection")
    if not shape.bound >= shape.objective:
        raise MisfitError("$.result.bound: must not lie below the objective")
    values = vars(shape) | {
        "selection": np.array(shape.selection, np.int64),
        "trace": tuple(TracePoint(*point, shape.scale) for point in shape.trace),
    }
    return SolveResult(structure=structure, **values)


def _write_validation(classifier: BaseBNClassifier) -> dict[str, object] | None:
    """The choice by validation and its table; None where nothing was chosen."""
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
    shape: _Validation = files.read_as(_Validation, data, "$.validation")
    classifier.gamma_ = shape.gamma
    classifier.max_parents_ = shape.max_parents
    classifier.best_score_ = shape.best_score
    classifier.cv_results_ = _read_results(shape.results, "$.validation.results")


def _with_optional_parts(data: Any) -> Any:
    """Most classifiers use every column as it is."""
    if isinstance(data, dict):
        data.setdefault("about", None)
        data.setdefault("preparation", None)
    return data


def _read_results(results: dict[str, list[object]], place: str) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    for key, values in results.items():
        if not re.fullmatch(r"max_parents|gamma|max_gap|(mean|std|split\d+)_test_score", key):
            raise MisfitError(f"{place}: unknown key {shorten(key)}")
        whole = key == "max_parents"
        shape: Any = tuple[Count, ...] if whole else tuple[Number, ...]
        entries = files.read_as(shape, values, f"{place}.{key}")
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
            params[name] = files.encode_value(value)
        except files.NotPlainError as error:
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
    expected = [plan.name for plan in classifier.preparation_.columns]
    classifier.n_features_in_ = len(expected)
    if data is None:
        return
    if data != expected:
        raise MisfitError("$.feature_names: must be null or the names of the columns")
    classifier.feature_names_in_ = np.array(expected, dtype=object)
