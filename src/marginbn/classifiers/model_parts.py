"""The parts of a model file: class labels, codings, results, each with its inverse beside it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.classifiers import BaseBNClassifier, MaxMarginBNClassifierCV
from marginbn.data.coding import Coding, TableCoding
from marginbn.exceptions import InputError
from marginbn.jsonvalues import (
    MisfitError,
    as_bool,
    as_count,
    as_finite,
    as_list,
    as_number,
    as_record,
    as_text,
    decode_value,
    encode_number,
    encode_value,
    shorten,
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
