"""Fitted classifiers as code for elsewhere: SQL, ONNX.

Both formats do the same with a row; see :mod:`marginbn.export.score_model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sklearn.utils.validation import check_is_fitted

from marginbn.classifiers.base import BaseBNClassifier
from marginbn.data.texts import is_amount_kind, is_date_kind, part_names
from marginbn.exceptions import DataWarning, warn_user
from marginbn.export.formats import choose_format
from marginbn.export.score_model import Feature, ScoreModel, Term, score_model
from marginbn.files import PathLike, write_atomic, write_text

if TYPE_CHECKING:
    from marginbn.class_model.trainer import ClassModel

DEPLOYMENTS = {"sql": ".sql", "onnx": ".onnx"}
"""Formats and the ends of their files' names."""

UNANSWERED = (
    "A row with a missing value or an unseen category gets NULL (ONNX: NaN) where no table has an "
    "entry for it; marginbn predict answers it."
)
"""Said at the top of a file whose answer is NULL or NaN for some rows."""


def export_model(
    clf: BaseBNClassifier | ScoreModel,
    path: PathLike,
    format: str | None = None,
    *,
    table: str = "data",
    keep: Sequence[str] | None = None,
) -> None:
    """Write a fitted classifier as something that predicts without this library.

    Answers equal ``predict_proba``, and decisions ``predict``. Missing values and
    unseen categories are answered where the answer is a table entry: in columns with a state for
    missing values, and in childless features of counted networks. Elsewhere SQL gives NULL and ONNX
    gives NaN, as a comment at the top of the file notes; ``marginbn predict`` answers such rows.

    Parameters
    ----------
    clf
        A fitted classifier, or what :func:`deployable` made of one.
    path
        The file.
    format
        ``"sql"`` or ``"onnx"``; by default the suffix of ``path`` selects it.
    table, keep
        SQL: the table with the features, and columns of it that the result has as well (by default
        the features that matter).

    Examples
    --------
    >>> import sqlite3, tempfile
    >>> from pathlib import Path
    >>> from marginbn import NaiveBayesClassifier, export_model
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "colours.sql"
    ...     export_model(clf, path)
    ...     query = path.read_text()
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE data AS SELECT 'blue' AS x0")
    >>> database.execute(query).fetchone()[:2]
    ('blue', 'b')
    """
    model = clf if isinstance(clf, ScoreModel) else deployable(clf)
    endings = {name: (end,) for name, end in DEPLOYMENTS.items()}
    if choose_format(path, format, endings) == "onnx":
        from marginbn.export.onnx_graph import to_onnx

        write_atomic(path, to_onnx(model))
    else:
        from marginbn.export.sql import to_sql

        write_text(path, to_sql(model, table, keep))


def deployable(clf: BaseBNClassifier) -> ScoreModel:
    """The sums of table entries behind ``predict_proba``."""
    check_is_fitted(clf)
    merged = {p.name: (p.merged, p.other) for p in clf.preparation_.columns if p.merged}
    classes = clf.classes_.tolist()
    if clf.class_model_ is None:
        model = score_model(clf.network_, clf.coding_.columns, classes, merged=merged)
    else:
        model = _trained_model(clf.class_model_, clf.network_.names[0], classes, merged)
    notes = _notes(clf)
    for note in notes:
        warn_user(f"what is exported reads prepared columns: {note}", DataWarning)
    return replace(model, notes=(*notes, *([UNANSWERED] if model.refuses_rows else [])))


def _trained_model(
    model: ClassModel,
    target: str,
    classes: Sequence[object],
    merged: Mapping[str, tuple[tuple[str, ...], str]],
) -> ScoreModel:
    """Sums of trained tables; a value that is missing or new has no entry in any of them."""
    features = []
    for cells in model.design.cells.features:
        missing = cells.n_cells - 1 if cells.coding.missing_state else None
        rare, other = merged.get(cells.coding.name, ((), ""))
        features.append(Feature(cells.coding, cells.n_cells, missing, None, rare, other))
    starts, terms = model.design.layout.first_entry, []
    for t, ((i, a), (j, b)) in enumerate(model.design.tables):
        entries = model.tables[:, starts[t] : starts[t + 1]]
        differences = entries if len(entries) == 1 else entries[1:] - entries[:1]  # to class 0
        table = differences.T.reshape(len(a.basis), len(b.basis), -1)
        if i == j:
            terms.append(Term((i,), (a.cell_of[:-1],), table[:, 0]))
        else:
            terms.append(Term((i, j), (a.cell_of[:-1], b.cell_of[:-1]), table))
    bias = model.offset[1:] - model.offset[0]
    return ScoreModel(target, tuple(classes), tuple(features), bias, tuple(terms))


def _notes(clf: BaseBNClassifier) -> tuple[str, ...]:
    """What columns must hold that a fit makes of others."""
    plans = clf.preparation_.used_plans
    dates = [
        f"{', '.join(map(repr, part_names(plan.name)))} of the date {plan.name!r}"
        for plan in plans
        if is_date_kind(plan.kind)
    ]
    amounts = [f"{p.name!r} is a number, not a text" for p in plans if is_amount_kind(p.kind)]
    return (*dates, *amounts)
