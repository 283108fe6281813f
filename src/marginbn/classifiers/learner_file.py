"""The model file of a network without a class, and the one door to all model files.

The parts are those of a classifier's file (``model_file.py``) where both have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from marginbn import __version__, files
from marginbn.classifiers import model_file
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.learner import BayesianNetworkLearner
from marginbn.classifiers.preparation_file import PlanShape, read_preparation, write_preparation
from marginbn.exceptions import InputError
from marginbn.export.native import network_from_dict, network_to_dict
from marginbn.files import Count, MisfitError, Plain

FORMAT = "marginbn learner"
VERSION = 1


@dataclass(frozen=True)
class _Learner:
    format: str
    version: int
    package: str
    params: dict[str, Plain]
    feature_names: object
    coding: tuple[model_file._Coding, ...]
    n_samples: Count
    n_dropped: Count
    n_candidates: Count
    max_parents: Count
    result: model_file._Result
    network: object  # a format of its own
    preparation: tuple[PlanShape, ...] | None


def save_model(
    model: BaseBNClassifier | BayesianNetworkLearner,
    path: files.PathLike,
    *,
    held_out: Mapping[str, float | None] | None = None,
) -> None:
    """Write a fitted classifier or :class:`BayesianNetworkLearner`.

    An existing file is replaced only when all is written. A classifier's file tells when and with
    which versions it was made and has a fingerprint of the data; measures on rows ``held_out`` may
    be added (``provenance_`` after loading). The environment variable SOURCE_DATE_EPOCH sets the
    time, for files that are equal to the last byte.

    Parameters that are no plain values (a ``RandomState``, a splitter as ``cv``) are left out with
    a warning and have their default after loading; predictions do not need them. The callback
    and the files of the search are left out silently. There is an example in :func:`load_model`.
    """
    if not isinstance(model, BayesianNetworkLearner):
        model_file.save_model(model, path, held_out=held_out)
        return
    if held_out is not None:
        raise InputError("held_out measures belong to classifiers; a network has none")
    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    record: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "package": __version__,
        "params": model_file._plain_parameters(model),
        "feature_names": None if names is None else [str(n) for n in names],
        "coding": [model_file._write_coding(c) for c in model.coding_.columns],
        "n_samples": model.n_samples_,
        "n_dropped": model.n_dropped_,
        "n_candidates": model.n_candidates_,
        "max_parents": model.max_parents_,
        "result": model_file._write_result(model.result_),
        "network": network_to_dict(model.network_),
        "preparation": None,
    }
    files.write_json_atomic(path, record | write_preparation(model))


def load_model(path: files.PathLike) -> Any:
    """Read what :func:`save_model` wrote; it predicts the same to the last bit.

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
    name = data.get("format") if isinstance(data, dict) else None
    known = name if isinstance(name, str) and name in READERS else model_file.FORMAT
    return READERS[known](data, path)


def read_learner(data: Any, path: files.PathLike) -> BayesianNetworkLearner:
    """The learner of a file that was read."""
    with files.naming_file(path):
        shape: _Learner = files.read_document(_Learner, data, FORMAT, VERSION)
        learner = _read_learner(shape.params)
        network = network_from_dict(shape.network, path=path, location="$.network")
        learner.network_ = network
        learner.coding_ = model_file._read_codings(shape.coding, network.variables)
        learner.preparation_ = read_preparation(shape.preparation, learner.coding_)
        model_file._set_feature_names(learner, shape.feature_names)
        learner.n_samples_, learner.n_dropped_ = shape.n_samples, shape.n_dropped
        learner.n_candidates_, learner.max_parents_ = shape.n_candidates, shape.max_parents
        learner._set_result(model_file._read_result(shape.result, network.structure))
    return learner


READERS: dict[Any, Callable[[Any, files.PathLike], Any]] = {
    FORMAT: read_learner,
    model_file.FORMAT: model_file.read_model,
}
"""By the name of the format; whatever has none is judged as a classifier's file."""


def _read_learner(params: dict[str, Any]) -> BayesianNetworkLearner:
    known = BayesianNetworkLearner().get_params(deep=False).keys() - model_file._LEFT_OUT
    unknown = sorted(params.keys() - known)
    if unknown:
        raise MisfitError(f"$.params: there are no parameters {files.shorten(unknown)}")
    learner = BayesianNetworkLearner(**params)
    try:
        learner._check_parameters()
    except (InputError, TypeError) as error:
        raise MisfitError(f"$.params: {error}") from None
    return learner
