"""Fitted classifiers as files: JSON, lossless, versioned, and nothing in it is ever executed.

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
import warnings

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginbn import __version__
from marginbn.atomic import PathLike
from marginbn.classifiers import (
    BaseBNClassifier,
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
)
from marginbn.classifiers.model_parts import (
    classes_from_dict,
    classes_to_dict,
    coding_from_list,
    column_to_dict,
    restore_validation,
    result_from_dict,
    result_to_dict,
    validation_to_dict,
)
from marginbn.exceptions import FormatError, InputError
from marginbn.export.native import network_from_dict, network_to_dict
from marginbn.files import read_json, write_json_atomic
from marginbn.jsonvalues import (
    MisfitError,
    NotPlainError,
    as_count,
    as_record,
    as_text,
    check_header,
    decode_value,
    encode_value,
    shorten,
)
from marginbn.solvers.result import SolveResult

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
