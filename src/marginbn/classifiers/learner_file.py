"""The model file of a network without a class, and the one door to all model files.

The parts are those of a classifier's file (``model_file.py``) where both have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sklearn.utils.validation import check_is_fitted

from marginbn import __version__
from marginbn.classifiers import model_file
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.file_parts import PlanShape, read_preparation, write_preparation
from marginbn.classifiers.learner import BayesianNetworkLearner
from marginbn.exceptions import InputError
from marginbn.export.native import NetworkShape, build_network, network_to_dict, read_format
from marginbn.files import Count, PathLike, Shape, decode, naming_file, read_bytes


class _Learner(Shape, frozen=True):
    format: Literal["marginbn-learner"]
    version: Literal[1]
    package: str
    params: dict[str, Any]
    feature_names: list[str] | None
    coding: tuple[model_file.CodingShape, ...]
    n_samples: Count
    n_dropped: Count
    n_candidates: Count
    max_parents: Count
    result: model_file.ResultShape
    network: NetworkShape
    preparation: tuple[PlanShape, ...] | None


def save_model(
    model: BaseBNClassifier | BayesianNetworkLearner,
    path: PathLike,
    *,
    held_out: Mapping[str, float | None] | None = None,
) -> None:
    """Write a fitted classifier or :class:`BayesianNetworkLearner`.

    An existing file is replaced only when all is written. A classifier's file tells when and with
    which versions it was made and has a fingerprint of the data; measures on rows ``held_out`` may
    be added (``provenance_`` after loading). The environment variable SOURCE_DATE_EPOCH sets the
    time, for files that are equal to the last byte.

    Parameters that are no plain values (a ``RandomState``, a splitter as ``cv``) are left out with
    a warning and have their default after loading; predictions do not need them. ``search`` and
    ``certificate`` are left out silently. There is an example in :func:`load_model`.
    """
    if not isinstance(model, BayesianNetworkLearner):
        model_file.save_model(model, path, held_out=held_out)
        return
    if held_out is not None:
        raise InputError("held_out measures belong to classifiers; a network has none")
    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    record: dict[str, object] = {
        "format": "marginbn-learner",
        "version": 1,
        "package": __version__,
        "params": model_file.plain_parameters(model),
        "feature_names": None if names is None else [str(n) for n in names],
        "coding": [vars(coding) for coding in model.coding_.columns],
        "n_samples": model.n_samples_,
        "n_dropped": model.n_dropped_,
        "n_candidates": model.n_candidates_,
        "max_parents": model.max_parents_,
        "result": model_file.write_result(model.result_),
        "network": network_to_dict(model.network_),
        "preparation": write_preparation(model.preparation_),
    }
    model_file.write_json(path, record)


def load_model(path: PathLike) -> Any:
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
    content = read_bytes(path)
    with naming_file(path):
        is_learner = read_format(content) == "marginbn-learner"
    return (read_learner if is_learner else model_file.read_model)(content, path)


def read_learner(content: bytes, path: PathLike) -> BayesianNetworkLearner:
    """The learner in the bytes of a file."""
    with naming_file(path):
        shape = decode(content, _Learner)
        learner: BayesianNetworkLearner
        learner = model_file.read_estimator(BayesianNetworkLearner, shape.params)
        network = build_network(shape.network, "$.network")
        learner.coding_ = model_file.read_codings(shape.coding, network.variables)
        learner.preparation_ = read_preparation(shape.preparation, learner.coding_)
        model_file.set_names(learner, learner.preparation_, shape.feature_names)
        learner.n_samples_, learner.n_dropped_ = shape.n_samples, shape.n_dropped
        learner.n_candidates_, learner.max_parents_ = shape.n_candidates, shape.max_parents
        learner.restore(model_file.read_result(shape.result, network.structure), network)
    return learner
