"""Fitted models as files: JSON, lossless, versioned, and nothing in it is ever executed.

A file is an object with the fields of :class:`_Model`, and so are the values in it.

Variable 0 of the network is the class, if there is one; its name is the target's. Numbers that
JSON does not have are written "inf", "-inf" and "nan". A reader trusts nothing: types, sizes and
names are checked, codings and classes must fit the network, and an error names the file and the
place in it.

Parameters are plain values; mappings are marked, because keys of JSON are texts. Of a column that
is left out there is the reason, not a value. Names, kinds and categories of the class model are
those of the coding, of whose bins its cells are parts; its parameters are those of
:class:`marginbn.class_model.basis.Design`, row by row. Labels of held-out rows are places in the
list of classes; seven digits of a probability are kept.

What a file says about optimality is a claim, whoever wrote it (:mod:`marginbn.classifiers.claims`
checks it). An objective that no structure can have is refused when the file is read.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar, overload

import msgspec
import numpy as np
import sklearn
from msgspec import structs
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginbn import __version__
from marginbn.class_model.basis import Design, FeatureCells, TableCells
from marginbn.class_model.trainer import ClassModel, Precisions
from marginbn.classifiers.base import BaseBNClassifier, Evidence, Fitted, GridChoice
from marginbn.classifiers.bn_classifier import BNClassifier
from marginbn.classifiers.learner import BayesianNetworkLearner
from marginbn.classifiers.max_margin_cv import MaxMarginBNClassifierCV
from marginbn.classifiers.measures import HeldOut
from marginbn.classifiers.naive_bayes import NaiveBayesClassifier, TANClassifier
from marginbn.classifiers.search import GenerativeBNClassifier, MaxMarginBNClassifier
from marginbn.classifiers.validation import set_feature_names
from marginbn.data.encode import Coding, TableCoding
from marginbn.data.preparation import ColumnPlan, Preparation
from marginbn.exceptions import InputError, warn_user
from marginbn.export.native import NetworkShape, build_network, check_length, network_to_dict
from marginbn.files import (
    Count,
    MisfitError,
    PathLike,
    Shape,
    decode,
    naming_file,
    read_bytes,
    shorten,
    write_atomic,
)
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from marginbn.solvers.result import SolveResult, Status, TracePoint

ROUNDING = 1e-9
"""Part of the total weight by which an objective may exceed what it can be."""

_ESTIMATORS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        BNClassifier,
        BayesianNetworkLearner,
        GenerativeBNClassifier,
        MaxMarginBNClassifier,
        MaxMarginBNClassifierCV,
        NaiveBayesClassifier,
        TANClassifier,
    )
}
_LEFT_OUT = {"search", "certificate"}
"""Parameters that belong to one fit on one machine, not to the classifier."""

_LABEL_TYPES = {
    "bool": bool,
    **{f"{sign}int{bits}": int for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": float for bits in (16, 32, 64)},
    "str": str,
}
"""Types that class labels may have, and what JSON must hold for them."""

Number = float | Literal["inf", "-inf", "nan"]
"""A float as :func:`_as_json` writes it; ``float`` of it is the number."""


class _Classes(Shape, frozen=True):
    dtype: str
    labels: list[str | bool | int | float]

    def __post_init__(self) -> None:
        if self.dtype not in _LABEL_TYPES:
            raise ValueError(f"dtype must be one of {', '.join(_LABEL_TYPES)}")
        if any(type(label) is not _LABEL_TYPES[self.dtype] for label in self.labels):
            raise ValueError(f"labels must be of the type {self.dtype}")


class _Result(Shape, frozen=True):
    objective: Number
    bound: Number
    status: Status
    seconds: Number
    nodes: Count
    solver: str
    selection: tuple[Count, ...]
    trace: tuple[tuple[Number, Number, Number], ...]
    scale: Annotated[float, msgspec.Meta(ge=0)]


EPOCH = "SOURCE_DATE_EPOCH"
"""Seconds since 1970 that stand for now, so that two builds are equal to the last byte."""

Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Time = Annotated[str, msgspec.Meta(pattern=r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")]


class Provenance(Shape, frozen=True):
    """What a model file tells about its making; ``held_out`` are measures on rows not learned from.

    Examples
    --------
    >>> from marginbn.classifiers.model_file import Provenance
    >>> Provenance(created="2026-01-31T12:00:00Z").held_out is None
    True
    """

    created: _Time | None = None
    versions: dict[str, str] | None = None
    data_sha256: Digest | None = None
    data_name: str | None = None
    held_out: dict[str, float | None] | None = None


def provenance_of(
    classifier: Any,
    held_out: Mapping[str, float | None] | None = None,
    data_name: str | None = None,
) -> Provenance:
    """That of a classifier that was loaded, or what can be said of one that was fitted here."""
    python, learn = platform.python_version(), sklearn.__version__
    versions = {"python": python, "numpy": np.__version__, "scikit-learn": learn}
    known: Provenance = classifier.provenance_ or Provenance(
        _now(), versions, classifier.data_fingerprint_
    )
    known = structs.replace(known, data_name=data_name or known.data_name)
    if held_out is None:
        return known
    measures = {k: v if v is not None and math.isfinite(v) else None for k, v in held_out.items()}
    return structs.replace(known, held_out=measures)


def _now() -> str:
    given = os.environ.get(EPOCH)
    try:
        time = datetime.now(UTC) if given is None else datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"the environment variable {EPOCH} must be whole seconds since 1970, got {given!r}; "
            "correct it or unset it"
        ) from None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


Weight = Annotated[float, msgspec.Meta(ge=0)]
Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Precision = Annotated[float, msgspec.Meta(gt=0)]


class _Cells(Shape, frozen=True):
    cuts: tuple[float, ...]
    weights: Annotated[tuple[Weight, ...], msgspec.Meta(min_length=1)]
    positions: tuple[float, ...]
    family: tuple[Count, ...]

    def __post_init__(self) -> None:
        if any(a >= b for a, b in pairwise(self.cuts)):
            raise ValueError("cuts must be increasing")
        if len(self.weights) != len(self.family):
            raise ValueError("weights and family must have an entry for every cell")
        if not sum(self.weights) > 0:
            raise ValueError("weights must not all be zero")
        if max(self.family) >= len(self.family):
            raise ValueError("family must name at most one family cell per cell")


class _ClassModel(Shape, frozen=True):
    cells: tuple[_Cells, ...]
    pairs: tuple[tuple[Count, Count], ...]
    precisions: tuple[Precision, Precision, Precision | Literal["inf"]]
    log_shares: tuple[float, ...]
    parameters: tuple[tuple[float, ...], ...]
    objective: Weight
    gap: Weight


class _HeldOut(Shape, frozen=True):
    labels: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]
    weights: tuple[Weight, ...]
    probabilities: tuple[tuple[Probability, ...], ...]


_Measure = Annotated[
    str, msgspec.Meta(pattern=r"\A(max_parents|gamma|max_gap|(mean|std|split\d+)_test_score)\Z")
]


class _Validation(Shape, frozen=True):
    gamma: float
    max_parents: Count
    best_score: Number
    results: dict[_Measure, list[int | Number]]


class _CandidateCounts(Shape, frozen=True):
    kept: Count
    max_parents: Count


class _Evidence(Shape, frozen=True):
    total_weight: Annotated[float, msgspec.Meta(gt=0)] | None
    data_sha256: Digest | None
    certificate_sha256: Digest | None


class _Model(Shape, frozen=True):
    format: Literal["marginbn-model"]
    version: Literal[1]
    package: str  # its version
    estimator: str  # the name of one of the estimators and nothing else
    params: dict[str, Any]  # of its constructor
    classes: _Classes | None  # None without a class
    feature_names: list[str] | None  # None after a fit on an array without names
    coding: tuple[Coding, ...]
    n_samples: Count
    n_dropped: Count
    result: _Result | None  # None where nothing was searched
    candidates: _CandidateCounts | None  # of a BayesianNetworkLearner
    validation: _Validation | None  # of a MaxMarginBNClassifierCV
    evidence: _Evidence
    class_model: _ClassModel | None  # of trained tables
    held_out: _HeldOut | None
    network: NetworkShape
    preparation: tuple[ColumnPlan, ...] | None  # None where every column is used as it is
    about: Provenance


def save_model(
    model: BaseBNClassifier | BayesianNetworkLearner,
    path: PathLike,
    *,
    held_out: Mapping[str, float | None] | None = None,
    data_name: str | None = None,
) -> None:
    """Write a fitted classifier or :class:`BayesianNetworkLearner`.

    An existing file is replaced only when all is written. The file records when and with which
    versions it was made, and a fingerprint of the data. Measures on rows ``held_out`` and the name
    of the table may be added (``provenance_`` after loading). The environment variable
    SOURCE_DATE_EPOCH sets the time, for files that are equal to the last byte.

    Parameters that are no plain values (a ``RandomState``, a splitter as ``cv``) are left out with
    a warning and have their default after loading; predictions do not need them. ``search`` and
    ``certificate`` are left out silently. There is an example in :func:`load_model`.
    """
    name, is_learner = type(model).__name__, isinstance(model, BayesianNetworkLearner)
    if _ESTIMATORS.get(name) is not type(model):
        raise InputError(f"model must be one of {sorted(_ESTIMATORS)}, got {name}")
    if is_learner and held_out is not None:
        raise InputError("held_out measures belong to classifiers; a network has none")
    check_is_fitted(model)
    names, plans = getattr(model, "feature_names_in_", None), model.preparation_
    is_clf = isinstance(model, BaseBNClassifier)
    record: dict[str, Any] = {
        "format": "marginbn-model",
        "version": 1,
        "package": __version__,
        "estimator": name,
        "params": _plain_parameters(model),
        "classes": _write_classes(model.classes_) if is_clf else None,
        "feature_names": None if names is None else [str(n) for n in names],
        "coding": model.coding_.columns,
        "n_samples": model.n_samples_,
        "n_dropped": model.n_dropped_,
        "result": _write_result(model),
        "candidates": None,
        "validation": None,
        "evidence": {name: getattr(model.evidence_, name) for name in _Evidence.__struct_fields__},
        "class_model": _write_class_model(model.class_model_) if is_clf else None,
        "held_out": _write_held_out(model.held_out_, model.classes_) if is_clf else None,
        "network": network_to_dict(model.network_),
        "preparation": None if plans.is_plain else plans.columns,
        "about": provenance_of(model, held_out, data_name),
    }
    if isinstance(model, BayesianNetworkLearner):
        record["candidates"] = {"kept": model.n_candidates_, "max_parents": model.max_parents_}
    if isinstance(model, MaxMarginBNClassifierCV):
        record["validation"] = {
            "gamma": model.gamma_,
            "max_parents": model.max_parents_,
            "best_score": model.best_score_,
            "results": model.cv_results_,
        }
    write_json(path, _as_json(record))


def write_json(path: PathLike, record: object) -> None:
    """Write JSON, all or nothing."""
    try:
        content = f"{json.dumps(record, allow_nan=False, ensure_ascii=False)}\n".encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot write {os.fspath(path)} as JSON: {error}") from None
    write_atomic(path, content)


M = TypeVar("M")


@overload
def load_model(path: PathLike) -> BaseBNClassifier: ...


@overload
def load_model(path: PathLike, kind: type[M]) -> M: ...


def load_model(path: PathLike, kind: type[Any] = BaseBNClassifier) -> Any:
    """Read what :func:`save_model` wrote; it predicts the same.

    Parameters
    ----------
    path
        The file.
    kind
        Class of the model, for type checkers; a model of another class is refused. By default
        any classifier.

    Raises
    ------
    FormatError
        If anything in the file is not as the format demands.
    InputError
        If the file cannot be read at all, or holds another kind of model.

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
    content = read_bytes(path)
    with naming_file(path):
        shape = decode(content, _Model)
        if shape.estimator not in _ESTIMATORS:
            raise MisfitError(f"$.estimator: must be one of {', '.join(_ESTIMATORS)}")
        model = _read_estimator(_ESTIMATORS[shape.estimator], shape.params)
        network = build_network(shape.network, "$.network")
        has_class = isinstance(model, BaseBNClassifier)
        coding = _read_codings(shape.coding, network.variables[has_class:])
        preparation = _read_preparation(shape.preparation, coding)
        labels = _expect(shape.classes, has_class, "$.classes", model)
        classes = np.empty(0) if labels is None else _read_classes(labels, network)
        is_trained = len(classes) > 1 and model.parameters == "trained"
        tables = _expect(shape.class_model, is_trained, "$.class_model", model)
        has_choice = isinstance(model, MaxMarginBNClassifierCV)
        chosen = _expect(shape.validation, has_choice, "$.validation", model)
        counts = _expect(shape.candidates, not has_class, "$.candidates", model)
        can_search = not isinstance(model, NaiveBayesClassifier)
        is_open = (
            shape.result is not None or len(classes) != 1
        )  # one class leaves nothing to search
        found = _expect(shape.result, can_search and is_open, "$.result", model)
        if counts is not None:
            model.n_candidates_, model.max_parents_ = counts.kept, counts.max_parents
        fitted = Fitted(
            classes,
            coding,
            preparation,
            network.structure,
            network,
            None if found is None else _read_result(found, network.structure),
            shape.n_samples,
            shape.n_dropped,
            Evidence("file", **structs.asdict(shape.evidence)),
            shape.about.data_sha256,
            None if tables is None else _read_class_model(tables, coding, len(classes)),
            None if shape.held_out is None else _read_held_out(shape.held_out, classes),
            None if chosen is None else _read_choice(chosen),
            shape.about,
        )
        names = [plan.name for plan in preparation.columns]
        if shape.feature_names is None:
            model.n_features_in_ = len(names)
        elif shape.feature_names == names:
            set_feature_names(model, names)
        else:
            raise MisfitError("$.feature_names: must be null or the names of the columns")
        model.restore(fitted)
        _check_objective(model)
        if not isinstance(model, kind):
            name = type(model).__name__
            raise InputError(f"holds a {name}: load_model(path, {name}) reads it")
    return model


def _expect(part: M | None, is_wanted: bool, place: str, model: Any) -> M | None:
    """A part that not all models have; it must be there if it is wanted, and else null."""
    if is_wanted is (part is None):
        words = "is missing" if is_wanted else "must be null"
        raise MisfitError(f"{place}: {words} for this {type(model).__name__}")
    return part


def _check_objective(classifier: BaseBNClassifier) -> None:
    """Refuse an objective that no structure can have.

    A soft margin counts every row with gamma at most, so W rows with gamma W; all other scores are
    logarithms of probabilities, so 0.
    """
    result, weight = classifier.result_, classifier.evidence_.total_weight
    if result is None or weight is None:
        return
    params = classifier.get_params(deep=False)
    gamma = getattr(classifier, "gamma_", 0.0)
    room = ROUNDING * weight * max(gamma, 1.0) + ROUNDING * params.get("equivalent_sample_size", 0)
    largest = gamma * weight
    if result.objective > largest + room:
        raise MisfitError(
            f"$.result.objective: {result.objective!r} is more than {largest:.10g}, which no "
            "structure can exceed on data of this weight; the file was changed"
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
    check_length(shape.labels, network.n_classes, "$.classes.labels")
    try:
        classes = np.array(shape.labels, dtype=shape.dtype)
    except OverflowError:
        raise MisfitError(f"$.classes.labels: a number is too large for {shape.dtype}") from None
    if classes.tolist() != shape.labels or not (classes[:-1] < classes[1:]).all():
        raise MisfitError(f"$.classes.labels: must be distinct and sorted {shape.dtype} labels")
    return classes


def _read_codings(codings: tuple[Coding, ...], variables: Sequence[Variable]) -> TableCoding:
    """Codings of all columns, which must fit the variables of the network."""
    check_length(codings, len(variables), "$.coding")
    for i, (coding, variable) in enumerate(zip(codings, variables, strict=True)):
        found = coding.variable
        if (found.name, found.arity) != (variable.name, variable.arity):
            raise MisfitError(
                f"$.coding[{i}]: makes {shorten(found.name)} with {found.arity} states, but the "
                f"network has {shorten(variable.name)} with {variable.arity}"
            )
    return TableCoding(codings)


def _as_json(value: Any) -> Any:
    """The value without arrays and infinities, which JSON does not have."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Shape):
        value = structs.asdict(value)
    if isinstance(value, dict):
        return {key: _as_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _write_result(model: Any) -> dict[str, Any] | None:
    """The entry of the file; of the default classifier the same on every machine."""
    result = model.result_
    if result is None:
        return None
    if isinstance(model, BNClassifier):
        last = TracePoint(result.work, result.objective, result.bound, result.scale)
        result = replace(result, seconds=result.work, trace=(last,))
    record = {name: getattr(result, name) for name in _Result.__struct_fields__}
    trace = [(point.seconds, point.objective, point.bound) for point in result.trace]
    return {**record, "trace": trace}


def _read_result(shape: _Result, structure: Structure) -> SolveResult:
    """What the solver returned."""
    check_length(shape.selection, structure.n_variables, "$.result.selection")
    names = ("objective", "bound", "seconds", "scale")
    numbers = {name: float(getattr(shape, name)) for name in names}
    if not numbers["bound"] >= numbers["objective"]:
        raise MisfitError("$.result.bound: must not lie below the objective")
    return SolveResult(
        **numbers,
        structure=structure,
        status=shape.status,
        nodes=shape.nodes,
        solver=shape.solver,
        selection=np.array(shape.selection, np.int64),
        trace=tuple(
            TracePoint(float(seconds), float(found), float(best), shape.scale)
            for seconds, found, best in shape.trace
        ),
    )


def _read_choice(shape: _Validation) -> GridChoice:
    """What a validation chose."""
    results = {
        key: np.array([v if isinstance(v, int) else float(v) for v in values])
        for key, values in shape.results.items()
    }
    if len({len(column) for column in results.values()}) > 1:
        raise MisfitError("$.validation.results: the columns must be of equal length")
    return GridChoice(shape.max_parents, shape.gamma, float(shape.best_score), results)


def _plain_parameters(classifier: Any) -> dict[str, object]:
    """Constructor parameters that JSON can carry; a warning names the others."""
    params: dict[str, object] = {}
    for name, value in classifier.get_params(deep=False).items():
        if name in _LEFT_OUT:
            continue
        try:
            params[name] = encode_value(value)
        except InputError as error:
            warn_user(
                f"the parameter {name} is not saved, because a {error}; it will have its default "
                "after loading",
                UserWarning,
            )
    return params


def _read_estimator(cls: Any, params: dict[str, Any]) -> Any:
    """An unfitted estimator; constructors only store, and the stored values are checked."""
    unknown = sorted(params.keys() - (cls().get_params(deep=False).keys() - _LEFT_OUT))
    if unknown:
        raise MisfitError(f"$.params: {cls.__name__} has no parameters {shorten(unknown)}")
    values = {name: decode_value(value, f"$.params.{name}") for name, value in params.items()}
    estimator = cls(**values)
    try:
        estimator.check_parameters()
    except (InputError, TypeError) as error:
        raise MisfitError(f"$.params: {error}") from None
    return estimator


# ------------------------------------------------------------------- parameters of constructors


def encode_value(value: Any) -> object:
    """A plain Python value for JSON; :func:`decode_value` is the inverse, but for tuples.

    Examples
    --------
    >>> encode_value({0: ("a", 1.5)})
    {'dict': [[0, ['a', 1.5]]]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [encode_value(v) for v in value]
    if isinstance(value, Mapping) and all(isinstance(key, str | int) for key in value):
        return {"dict": [[key, encode_value(v)] for key, v in value.items()]}
    is_number = isinstance(value, float) and math.isfinite(value)
    if value is None or is_number or isinstance(value, bool | int | str):
        return value
    raise InputError(f"{type(value).__name__} is not a plain value")


def decode_value(data: Any, place: str) -> Any:
    """The value that :func:`encode_value` made ``data`` of."""
    if isinstance(data, list):
        return [decode_value(part, place) for part in data]
    if not isinstance(data, dict):
        return data
    pairs = data.get("dict") if len(data) == 1 else None
    if not isinstance(pairs, list):
        raise MisfitError(f"{place}: must be marked as dict, got {shorten(data)}")
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str | int):
            raise MisfitError(f"{place}: must be a key and a value, got {shorten(pair)}")
    return {key: decode_value(value, place) for key, value in pairs}


# --------------------------------------------------------------------------- columns and tables


def _read_preparation(plans: tuple[ColumnPlan, ...] | None, coding: TableCoding) -> Preparation:
    """What becomes of the columns, which must come out as those of the coding."""
    found = [(column.name, column.kind) for column in coding.columns]
    if plans is None:
        return Preparation.unchanged(dict(found))
    preparation = Preparation(plans)
    if preparation.results != found:
        raise MisfitError("$.preparation: does not make the columns of the coding")
    return preparation


def _write_held_out(held_out: HeldOut | None, classes: NDArray[Any]) -> dict[str, Any] | None:
    """The entry of the file."""
    if held_out is None:
        return None
    return {
        "labels": np.searchsorted(classes, held_out.labels),
        "weights": held_out.weights,
        "probabilities": [[float(f"{p:.7g}") for p in row] for row in held_out.probabilities],
    }


def _read_held_out(shape: _HeldOut, classes: NDArray[Any]) -> HeldOut:
    """Held-out rows, which must fit the classes."""
    n_rows, n_classes = len(shape.labels), len(classes)
    if max(shape.labels) >= n_classes or {*map(len, shape.probabilities)} != {n_classes}:
        raise MisfitError("$.held_out: must have labels and probabilities of the classes")
    if not n_rows == len(shape.weights) == len(shape.probabilities):
        raise MisfitError("$.held_out: must have a label, a weight and probabilities per row")
    labels, weights = classes[list(shape.labels)], np.array(shape.weights)
    return HeldOut(labels, weights, np.array(shape.probabilities))


def _write_class_model(model: ClassModel | None) -> dict[str, Any] | None:
    """The entry of the file."""
    if model is None:
        return None
    names = ("precisions", "log_shares", "parameters", "objective", "gap")
    parts = ("weights", "positions", "family")
    cells = [
        {"cuts": feature.coding.cuts, **{name: getattr(feature, name) for name in parts}}
        for feature in model.design.cells.features
    ]
    found = {name: getattr(model, name) for name in names}
    return {"cells": cells, "pairs": model.design.pairs, **found}


def _read_class_model(shape: _ClassModel, coding: TableCoding, n_classes: int) -> ClassModel:
    """The class model, which must fit the coding of the network."""
    if len(shape.cells) != len(coding.columns):
        raise MisfitError("$.class_model.cells: must have an entry for every feature")
    features = [
        _read_cells(cells, bins, f"$.class_model.cells[{i}]")
        for i, (cells, bins) in enumerate(zip(shape.cells, coding.columns, strict=True))
    ]
    n = len(features)
    if list(shape.pairs) != sorted({(i, j) for i, j in shape.pairs if i < j < n}):
        raise MisfitError("$.class_model.pairs: must be increasing pairs of features, sorted")
    design = Design(TableCells(tuple(features)), shape.pairs)
    n_scores = 1 if n_classes == 2 else n_classes
    if len(shape.log_shares) != n_scores:
        raise MisfitError(f"$.class_model.log_shares: must have {n_scores} entries")
    if [len(row) for row in shape.parameters] != [design.n_parameters] * n_scores:
        raise MisfitError(
            f"$.class_model.parameters: must be {n_scores} rows of {design.n_parameters} numbers"
        )
    return ClassModel(
        design,
        Precisions(*map(float, shape.precisions)),
        np.array(shape.log_shares),
        np.array(shape.parameters),
        shape.objective,
        shape.gap,
    )


def _read_cells(shape: _Cells, bins: Coding, place: str) -> FeatureCells:
    try:
        coding = structs.replace(bins, cuts=shape.cuts, values=())
    except ValueError as error:
        raise MisfitError(f"{place}: {error}") from None
    is_number = bins.kind == "numeric"
    arity = len(shape.cuts) + 1 if is_number else len(bins.categories)
    if len(shape.weights) != arity + bins.missing_state:
        raise MisfitError(f"{place}: must have {arity + bins.missing_state} cells")
    if len(shape.positions) != (arity if is_number else 0):
        raise MisfitError(f"{place}.positions: must have an entry for every interval")
    if not {*bins.cuts} <= {*shape.cuts}:
        raise MisfitError(f"{place}.cuts: the cells are not parts of the bins of the coding")
    return FeatureCells(coding, bins, shape.weights, shape.positions, shape.family)
