"""Fitted classifiers as code for elsewhere: SQL, ONNX, Python, a scorecard.

What each format does with a row is the same, and stands in :mod:`marginbn.export.score_model`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginbn.classifiers.a1de import A1DEClassifier
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.decisions import costs_of
from marginbn.data.amounts import is_amount_kind
from marginbn.data.dates import is_date_kind, part_names
from marginbn.exceptions import DataWarning, InputError
from marginbn.export.score_model import ScoreModel, WeightedNetwork, score_model
from marginbn.files import PathLike, write_atomic, write_text

DEPLOYMENTS: dict[str, tuple[str, ...]] = {
    "sql": (".sql",),
    "onnx": (".onnx",),
    "python": (".py",),
    "scorecard": (".html", ".csv"),
}
"""Formats and the ends of their files' names."""


def export_model(
    clf: BaseBNClassifier,
    path: PathLike,
    format: str | None = None,
    *,
    table: str = "data",
    keep: Sequence[str] | None = None,
    X: Any = None,
    y: Any = None,
) -> None:
    """Write a fitted classifier as something that predicts without this library.

    Answers equal ``predict_proba``, and decisions ``predict``, also by ``cost``. Missing values and
    unseen categories are answered where the network's answer is a table entry, too: of features
    without children in networks of counted tables, and of columns that were fitted with a state for
    missing values. Elsewhere there is no answer: SQL gives NULL, ONNX gives NaN, the Python
    function raises ``ValueError``.

    Parameters
    ----------
    clf
        A fitted classifier, also one that averages several networks (no scorecard then); not
        :class:`A1DEClassifier`.
    path
        The file. A scorecard is a page if its name ends in ``.html``, else CSV.
    format
        ``"sql"``, ``"onnx"``, ``"python"`` or ``"scorecard"``; by default the name of the file
        tells.
    table, keep
        SQL: the table with the features, and columns of it that the result has as well (by default
        the features that matter).
    X, y
        Scorecard: rows to count.

    Examples
    --------
    >>> import os, runpy, tempfile
    >>> from marginbn import NaiveBayesClassifier, export_model
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "colours.py")
    ...     export_model(clf, path)
    ...     functions = runpy.run_path(path)
    >>> functions["predict"]({"x0": "blue"})
    'b'
    """
    name = find_deployment(path, format)
    model = deployable(clf)
    if name == "onnx":
        from marginbn.export.onnx_graph import to_onnx

        write_atomic(path, to_onnx(model))
    else:
        as_page = os.fspath(path).lower().endswith((".html", ".htm"))
        text = deployment_text(clf, model, name, table=table, keep=keep, X=X, y=y, as_page=as_page)
        write_text(path, text)


def find_deployment(path: PathLike, format: str | None = None) -> str:
    """The format by its name, or by that of the file."""
    if format is not None:
        if format not in DEPLOYMENTS:
            raise InputError(f"format must be one of {', '.join(DEPLOYMENTS)}, got {format!r}")
        return format
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    for name, suffixes in DEPLOYMENTS.items():
        if suffix in suffixes:
            return name
    known = ", ".join(s for suffixes in DEPLOYMENTS.values() for s in suffixes)
    raise InputError(
        f"the name of the file must end in one of {known}, or give the format; "
        f"got {os.fspath(path)!r}"
    )


def deployment_text(
    clf: BaseBNClassifier,
    model: ScoreModel,
    name: str,
    *,
    table: str = "data",
    keep: Sequence[str] | None = None,
    X: Any = None,
    y: Any = None,
    as_page: bool = False,
) -> str:
    """Text of any format but ONNX."""
    if name == "sql":
        from marginbn.export.sql import to_sql

        return to_sql(model, table, keep)
    if name == "python":
        from marginbn.export.python_code import to_python

        return to_python(model)
    from marginbn.export.scorecard import scorecard, to_csv, to_html

    codes = None if X is None else _feature_codes(clf, model, X)
    card = scorecard(model, _state_log_odds(clf), codes, _class_codes(clf, codes, y))
    return to_html(card) if as_page else to_csv(card)


def deployable(clf: BaseBNClassifier) -> ScoreModel:
    """The sums of table entries behind ``predict_proba``."""
    check_is_fitted(clf)
    if isinstance(clf, A1DEClassifier):
        raise InputError(
            "A1DEClassifier averages joint distributions, which is no sum of table entries; export "
            "another classifier, for example TANClassifier"
        )
    is_trained = hasattr(clf, "trained_")
    if is_trained:
        networks = [
            WeightedNetwork(member.network, float(weight), member.doubt, member.background)
            for member, weight in zip(clf.trained_, clf.weights_, strict=True)
        ]
    elif hasattr(clf, "networks_"):
        pairs = zip(clf.networks_, clf.weights_, strict=True)
        networks = [WeightedNetwork(network, float(weight)) for network, weight in pairs]
    else:
        networks = [WeightedNetwork(clf.network_)]
    model = score_model(
        networks,
        clf.coding_.columns,
        clf.classes_.tolist(),
        sums_out=not is_trained,
        unseen_is_missing=clf.unseen == "missing",
        merged={p.name: (p.merged, p.other) for p in clf._preparation.columns if p.merged},
    )
    costs, notes = costs_of(clf), _notes(clf)
    for note in notes:
        warnings.warn(f"what is exported reads prepared columns: {note}", DataWarning, stacklevel=3)
    return replace(model, notes=notes, costs=None if costs is None else costs.costs)


def _notes(clf: BaseBNClassifier) -> tuple[str, ...]:
    """What columns must hold that a fit makes of others."""
    plans = [plan for plan in clf._preparation.columns if not plan.left_out]
    dates = [
        f"{', '.join(map(repr, part_names(plan.name)))} of the date {plan.name!r}"
        for plan in plans
        if is_date_kind(plan.kind)
    ]
    amounts = [f"{p.name!r} is a number, not a text" for p in plans if is_amount_kind(p.kind)]
    return (*dates, *amounts)


def _state_log_odds(clf: BaseBNClassifier) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """log P(state | class) of every feature, (n_states, n_classes)."""
    network = clf.network_
    given = [network.marginals({0: label}) for label in network.variables[0].states]
    with np.errstate(divide="ignore"):
        return [np.log(np.column_stack([m[name] for m in given])) for name in network.names[1:]]


def _feature_codes(clf: BaseBNClassifier, model: ScoreModel, X: Any) -> Any:
    """Codes of the model: those of the classifier, and one for what is summed out."""
    codes = clf._encode(X)
    for i, feature in enumerate(model.features):
        if feature.n_codes > feature.coding.variable.arity:
            codes[codes[:, i] < 0, i] = feature.n_codes - 1
    return codes


def _class_codes(clf: BaseBNClassifier, codes: Any, y: Any) -> Any:
    if codes is None:
        return None
    if y is None or len(y) != len(codes):
        raise InputError("X and y must be given together, with a label for every row")
    known = {str(label): code for code, label in enumerate(clf.classes_.tolist())}
    labels = [known.get(str(label)) for label in np.asarray(y).tolist()]
    if None in labels:
        raise InputError("y holds labels that are no class of the classifier")
    return np.array(labels, dtype=np.intp)
