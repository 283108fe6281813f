"""Fitted classifiers as files: JSON, lossless, versioned, and nothing in it is ever executed.

::

    {"format": "marginbn-model", "version": 2, "package": "0.1.0",
     "estimator": "MaxMarginBNClassifier",       one of six names and nothing else
     "params": {"gamma": 2.197, ...},            constructor parameters that are plain values
     "classes": {"dtype": "str", "labels": [...]},
     "feature_names": [...] or null,             null: fitted on an array without names
     "coding": [{"name": "petal length", "kind": "numeric", "cuts": [2.45, 4.75],
                 "categories": [], "missing_state": false}, ...],
     "n_samples": 150 or null, "n_dropped": 0,
     "result": {"objective": ..., "bound": ..., "status": "optimal", "trace": [...], ...},
     "validation": null or {"gamma": ..., "max_parents": ..., "best_score": ..., ...},
                   or {"smoothing": 0.3} of smoothing="auto",
     "committee": {"networks": [...], "weights": [...]},   only where several networks predict
     "evidence": {"total_weight": 150.0, "data_sha256": ..., "certificate_sha256": ...},
     "network": {"format": "marginbn-network", ...}}

Variable 0 of the network is the class; its name is the target's. Numbers that JSON does not have
are written "inf", "-inf" and "nan". A reader trusts nothing: types, sizes and names are checked,
codings and classes must fit the network, and an error names the file and the place in it.

What a file says about optimality is a claim, whoever wrote it. :func:`verify_model` checks a
certificate of that claim: of the model's data, score, candidates and structure. An objective that
no structure can have is refused when the file is read. Version 1 knew no evidence, version 2 no
committee; a file without one is still written as version 2.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginbn import __version__, files
from marginbn.classifiers.a1de import A1DEClassifier, super_parents
from marginbn.classifiers.base import BaseBNClassifier, Evidence
from marginbn.classifiers.committee import Committee
from marginbn.classifiers.max_margin_cv import MaxMarginBNClassifierCV
from marginbn.classifiers.naive_bayes import NaiveBayesClassifier, TANClassifier
from marginbn.classifiers.search import (
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    resolve_arcs,
    resolve_forbidden,
)
from marginbn.data.encode import Coding, EncodedData, TableCoding
from marginbn.exceptions import InputError
from marginbn.export.native import network_from_dict, network_to_dict
from marginbn.files import Count, MisfitError, Number, Plain, encode_number, shorten
from marginbn.network.network import BayesianNetwork
from marginbn.problem.residuals import PRICE, RIDGE
from marginbn.problem.scores import SCORES
from marginbn.proof.certificate import Certificate, Data
from marginbn.proof.checker import Verdict, read_within, verify_certificate
from marginbn.proof.checker.verdict import Progress
from marginbn.proof.theorem import NamedArcs, Statement
from marginbn.solvers.result import SolveResult, Status, TracePoint

FORMAT = "marginbn-model"
VERSION = 3

ROUNDING = 1e-9
"""Part of the total weight by which an objective may exceed what it can be."""

_ESTIMATORS: dict[str, type[BaseBNClassifier]] = {
    cls.__name__: cls
    for cls in (
        A1DEClassifier,
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
class _Smoothing:
    smoothing: Annotated[float, files.Must("be positive", lambda smoothing: smoothing > 0)]


@dataclass(frozen=True)
class _Committee:
    networks: list  # type: ignore[type-arg]  # each a format of its own
    weights: tuple[float, ...]


_Digest = Annotated[
    str,
    files.Must("be 64 hexadecimal digits", lambda text: bool(re.fullmatch("[0-9a-f]{64}", text))),
]


@dataclass(frozen=True)
class _Evidence:
    total_weight: Annotated[float, files.Must("be positive", lambda weight: weight > 0)] | None
    data_sha256: _Digest | None
    certificate_sha256: _Digest | None


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
    committee: _Committee | None


def save_model(classifier: BaseBNClassifier, path: files.PathLike) -> None:
    """Write a fitted classifier; an existing file is replaced only when all is written.

    Parameters that are no plain values (a ``RandomState``, a splitter as ``cv``) are left out with
    a warning and have their default after loading; predictions do not need them. The callback
    and the files of the search are left out silently. There is an example in :func:`load_model`.
    """
    name = type(classifier).__name__
    if _ESTIMATORS.get(name) is not type(classifier):
        raise InputError(f"classifier must be one of {sorted(_ESTIMATORS)}, got {name}")
    check_is_fitted(classifier)
    names = getattr(classifier, "feature_names_in_", None)
    committee = _write_committee(classifier)
    record = {
        "format": FORMAT,
        "version": VERSION if committee else 2,
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
    } | committee
    files.write_json_atomic(path, record)


def load_model(path: files.PathLike) -> BaseBNClassifier:
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
    data = files.read_json(path)
    with files.naming_file(path):
        shape: _Model = files.read_document(
            _Model, _with_committee(_with_scale(_as_version_2(data))), FORMAT, VERSION
        )
        classifier = _read_estimator(shape.estimator, shape.params)
        network = network_from_dict(shape.network, path=path, location="$.network")
        classifier.network_ = network
        classifier.classes_ = _read_classes(shape.classes, network)
        classifier.coding_ = _read_codings(shape.coding, network)
        if shape.n_samples is not None:
            classifier.n_samples_ = shape.n_samples
        classifier.n_dropped_ = shape.n_dropped
        _set_feature_names(classifier, shape.feature_names)
        classifier._set_result(_read_result(shape.result, network))
        _set_validation(classifier, shape.validation)
        _set_committee(classifier, shape.committee, path)
        classifier.evidence_ = Evidence("file", **vars(shape.evidence))
        _check_objective(classifier)
    return classifier


def verify_model(
    classifier: BaseBNClassifier,
    certificate: files.PathLike | Certificate,
    *,
    progress: Progress | None = None,
    expect: Statement | None = None,
    max_memory: int | None = None,
) -> Verdict:
    """Check that a certificate proves what a classifier says about its structure.

    The certificate must be of the classifier's data, score, candidates and structure, and its proof
    must hold. If so, ``classifier.evidence_`` says so, and the classifier is *verified* instead of
    *claimed* optimal wherever it is described. ``expect`` is asked for besides.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginbn import MaxMarginBNClassifier, describe, load_model, save_model, verify_model
    >>> X, y = [["red"], ["red"], ["blue"]] * 9, ["a", "a", "b"] * 9
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model, proof = os.path.join(folder, "model.json"), os.path.join(folder, "proof.cert")
    ...     save_model(MaxMarginBNClassifier(certificate=proof).fit(X, y), model)
    ...     clf = load_model(model)
    ...     print(describe(clf).split(":")[0])
    ...     verify_model(clf, proof).verified
    ...     print(describe(clf).split(":")[0])
    Claimed optimal, not checked
    True
    Verified optimal
    """
    wanted = [statement_of(classifier), expect or Statement()]
    content = certificate
    if not isinstance(content, Certificate):
        content = read_within(content, max_memory)
    verdict = verify_certificate(content, expect=wanted, progress=progress, max_memory=max_memory)
    if verdict and not _has_tables_of(classifier, content.data):
        verdict = replace(
            verdict,
            verified=False,
            reason="the certificate proves another statement: its data do not give the tables of "
            "the model",
        )
    if verdict:
        evidence = getattr(classifier, "evidence_", Evidence())
        classifier.evidence_ = replace(evidence, source="certificate", verdict=verdict)
    return verdict


def _has_tables_of(classifier: BaseBNClassifier, data: Data) -> bool:
    """Whether the parameters are those of the data: no certificate speaks of them."""
    network = classifier.network_
    if network.groups is not None or data.states != tuple(v.states for v in network.variables):
        return False
    rows = EncodedData(data.codes, data.weights, network.variables)
    fitted = BayesianNetwork.fit(rows, network.structure, classifier.smoothing_)
    pairs = zip(fitted.log_tables, network.log_tables, strict=True)
    return all(np.allclose(own, given, rtol=1e-9, atol=1e-9) for own, given in pairs)


def statement_of(classifier: BaseBNClassifier) -> Statement:
    """What a certificate of this classifier must prove; refused where nothing was searched."""
    check_is_fitted(classifier)
    network, params = classifier.network_, classifier.get_params(deep=False)
    if "certificate" not in params or classifier.result_.solver == "single_class":
        raise InputError(
            f"there is no certificate for a {type(classifier).__name__} with "
            f"{network.n_classes} classes: nothing was searched"
        )
    names, arcs = network.names, _asked_arcs(params, network)
    return Statement(
        target=names[0],
        classes=network.variables[0].states,
        features=names[1:],
        data=getattr(classifier, "evidence_", Evidence()).data_sha256,
        max_parents=getattr(classifier, "max_parents_", params["max_parents"]),
        class_restricted=params.get("class_restricted", True),
        required=arcs["required_arcs"],
        forbidden=arcs["forbidden_arcs"],
        structure=tuple(
            (names[i], tuple(names[p] for p in parents))
            for i, parents in enumerate(network.structure.parents)
        ),
        objective=classifier.result_.objective,
        **_score_of(params, gamma=getattr(classifier, "gamma_", params.get("gamma"))),
    )


def _score_of(params: dict[str, Any], gamma: float | None) -> dict[str, Any]:
    """The score by the name that certificates have for it, and its numbers."""
    if gamma is not None:
        return {"score": params["margin"], "gamma": gamma, "smoothing": float(params["smoothing"])}
    if _is_residual(params):
        return {"score": SCORES[params["score"]].certificate, "ridge": RIDGE, "price": PRICE}
    size = float(params["equivalent_sample_size"]) if params["score"] == "bdeu" else None
    return {"score": SCORES[params["score"]].certificate, "equivalent_sample_size": size}


def _is_residual(params: dict[str, Any]) -> bool:
    name = params.get("score")  # of a file: anything
    return isinstance(name, str) and name in SCORES and SCORES[name].of_residuals


def _asked_arcs(params: dict[str, Any], network: BayesianNetwork) -> dict[str, NamedArcs]:
    """Required and forbidden arcs, but for those that a residual score takes for granted."""
    names = network.names
    required = resolve_arcs(params["required_arcs"], names, "required_arcs")
    arcs = {
        "required_arcs": _named_arcs(required, names),
        "forbidden_arcs": _named_arcs(resolve_forbidden(params, names), names),
    }
    if _is_residual(params):
        target = network.names[0]
        arcs["required_arcs"] = tuple(a for a in arcs["required_arcs"] if a[0] != target)
        arcs["forbidden_arcs"] = tuple(a for a in arcs["forbidden_arcs"] if a[1] != target)
    return arcs


def _named_arcs(arcs: Sequence[tuple[int, int]], names: Sequence[str]) -> NamedArcs:
    return tuple((names[p], names[c]) for p, c in arcs)


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
    logarithms of probabilities, so 0. Gains on residuals are not limited that simply.
    """
    weight = classifier.evidence_.total_weight
    params = classifier.get_params(deep=False)
    if weight is None or _is_residual(params):
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


def _read_codings(shapes: tuple[_Coding, ...], network: BayesianNetwork) -> TableCoding:
    """Codings of all features, which must fit the variables of the network."""
    files.check_length(shapes, network.n_variables - 1, "$.coding")
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
    files.check_length(shape.selection, network.n_variables, "$.result.selection")
    if not shape.bound >= shape.objective:
        raise MisfitError("$.result.bound: must not lie below the objective")
    values = vars(shape) | {
        "selection": np.array(shape.selection, np.int64),
        "trace": tuple(TracePoint(*point, shape.scale) for point in shape.trace),
    }
    return SolveResult(structure=network.structure, **values)


def _write_validation(classifier: BaseBNClassifier) -> dict[str, object] | None:
    """The choice by validation and its table; None where nothing was chosen."""
    if classifier.smoothing == "auto":
        return {"smoothing": classifier.smoothing_}
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
    if classifier.smoothing == "auto":
        chosen: _Smoothing = files.read_as(_Smoothing, data, "$.validation")
        classifier.smoothing_ = chosen.smoothing
        return
    classifier.smoothing_ = float(classifier.smoothing)
    if not isinstance(classifier, MaxMarginBNClassifierCV):
        if data is not None:
            raise MisfitError(f"$.validation: must be null for {type(classifier).__name__}")
        return
    shape: _Validation = files.read_as(_Validation, data, "$.validation")
    classifier.gamma_ = shape.gamma
    classifier.max_parents_ = shape.max_parents
    classifier.best_score_ = shape.best_score
    classifier.cv_results_ = _read_results(shape.results, "$.validation.results")


def _with_committee(data: Any) -> Any:
    """Most classifiers, and all of older versions, predict with one network."""
    if isinstance(data, dict):
        data.setdefault("committee", None)
    return data


def _write_committee(classifier: BaseBNClassifier) -> dict[str, object]:
    """The networks that predict together; nothing where there is one."""
    networks = getattr(classifier, "networks_", None)
    if networks is None:
        return {}
    weights = getattr(classifier, "weights_", np.full(len(networks), 1 / len(networks)))
    return {
        "committee": {
            "networks": [network_to_dict(network) for network in networks],
            "weights": weights.tolist(),
        }
    }


def _set_committee(
    classifier: BaseBNClassifier, shape: _Committee | None, path: files.PathLike
) -> None:
    """Set the networks that predict together, of a classifier that has some and no other."""
    one_per_feature = isinstance(classifier, A1DEClassifier)
    if (shape is None) == (one_per_feature or getattr(classifier, "average", False)):
        words = "is missing" if shape is None else "must not be there"
        raise MisfitError(f"$.committee: {words} for this {type(classifier).__name__}")
    if shape is None:
        return
    networks = [
        network_from_dict(network, path=path, location=f"$.committee.networks[{i}]")
        for i, network in enumerate(shape.networks)
    ]
    try:
        committee = Committee(tuple(networks), np.array(shape.weights))
    except InputError as error:
        raise MisfitError(f"$.committee: {error}") from None
    if networks[0].variables != classifier.network_.variables:
        raise MisfitError("$.committee.networks[0]: must have the variables of the network")
    if isinstance(classifier, A1DEClassifier):
        expected = max(len(super_parents(classifier.network_.arities)), 1)
        files.check_length(networks, expected, "$.committee.networks")
        classifier.networks_ = committee.networks
    elif isinstance(classifier, MaxMarginBNClassifierCV):
        classifier.networks_, classifier.weights_ = committee.networks, committee.weights


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
    expected = [coding.name for coding in classifier.coding_.columns]
    classifier.n_features_in_ = len(expected)
    if data is None:
        return
    if data != expected:
        raise MisfitError("$.feature_names: must be null or the names of the coding")
    classifier.feature_names_in_ = np.array(expected, dtype=object)
