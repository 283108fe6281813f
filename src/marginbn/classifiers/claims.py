"""What a classifier claims about its structure, and the certificate that proves it.

The theorem of a certificate is about a structure and the coded rows it was searched on. A model
adds what makes it useful: the coding that turns values into states, class labels, counted and
trained tables. All of it is bound to the proof here. States that the coding makes, states of the
network and states of the certificate must be equal; a table, encoded by the model as for a
prediction, must give the rows of the certificate; tables are computed again and compared.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from msgspec import structs
from sklearn.utils.validation import check_is_fitted

from marginbn import files
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.learner import BayesianNetworkLearner
from marginbn.classifiers.max_margin_cv import MaxMarginBNClassifierCV
from marginbn.classifiers.search import MaxMarginBNClassifier, SearchingEstimator
from marginbn.data.columns import is_missing, tidy
from marginbn.data.source import Source
from marginbn.data.table import Table
from marginbn.exceptions import InputError
from marginbn.export.native import network_to_dict
from marginbn.problem.scores import SCORES
from marginbn.proof import exact_model
from marginbn.proof.certificate import Certificate, Data, read_certificate, refuse_repeated_keys
from marginbn.proof.checker import Verdict, verify_certificate
from marginbn.proof.checker.verdict import Progress
from marginbn.proof.theorem import Statement

Model = BaseBNClassifier | BayesianNetworkLearner

GAP = 1e-6
"""Largest gap that a written statement asks for: what counts as optimal."""


def verify_model(
    classifier: Model,
    certificate: files.PathLike | Certificate,
    *,
    progress: Progress | None = None,
    expect: Statement | None = None,
) -> Verdict:
    """Check that a certificate proves what a classifier or learner claims of its structure.

    The certificate must be of the classifier's data, score, candidates and structure, its proof
    must hold, and coding, class labels and counted tables must be those of its rows. If so,
    ``classifier.evidence_`` records it, and the classifier is *verified* instead of *claimed*
    optimal wherever it is described. ``expect`` is asked for as well.

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
    Claimed by the file, not checked
    True
    Verified by its certificate
    """
    wanted = [statement_of(classifier), expect or Statement()]
    content = certificate
    if not isinstance(content, Certificate):
        content = read_certificate(content)
    verdict = verify_certificate(content, expect=wanted, progress=progress)
    difference = _model_difference(classifier, content.data) if verdict else ""
    if difference:
        reason = f"the certificate proves another statement: {difference}"
        verdict = replace(verdict, verified=False, reason=reason)
    if verdict:
        classifier.evidence_ = replace(classifier.evidence_, source="certificate", verdict=verdict)
    return verdict


def _model_difference(model: Model, data: Data) -> str:
    """Where coding, class labels or counted tables are not those of the rows of a certificate."""
    classes = {"labels": model.classes_.tolist()} if isinstance(model, BaseBNClassifier) else None
    record = {
        "coding": [structs.asdict(coding) for coding in model.coding_.columns],
        "preparation": None,
        "classes": classes,
        "network": network_to_dict(model.network_),
        "params": {"smoothing": model.table_smoothing},
        "estimator": type(model).__name__,
    }
    codes = [tuple(row) for row in data.codes.tolist()]
    variables = list(zip(data.names, data.states, strict=True))
    try:
        exact_model.bind(record, variables, codes, data.weights.tolist(), "")
    except exact_model.DifferentError as reason:
        return str(reason)
    return ""


# ------------------------------------------------------------------------------- tables of rows


def match_table(path: files.PathLike, data: Data, source: Source) -> tuple[exact_model.Rows, float]:
    """The rows of a table, encoded by the coding of a model file, and the certified gap of its
    trained tables (0 without any); :class:`exact_model.DifferentError` if these are not the rows of
    a certificate or not their tables. The code is that of the second checker, which shares nothing
    with ``fit``.
    """
    with files.naming_file(path):
        record = json.loads(files.read_bytes(path), object_pairs_hook=refuse_repeated_keys)
    table = source.whole()
    columns = [[_text(value) for value in column.to_pylist()] for column in table.columns]
    rows = list(map(list, zip(*columns, strict=True)))
    try:
        found = exact_model.encode_table(record, list(table.column_names), rows)
        codes = [tuple(row) for row in data.codes.tolist()]
        exact_model.check_rows(found, codes, data.weights.tolist())
        return found, exact_model.check_training(record, found)
    except (ValueError, ArithmeticError, LookupError) as error:
        raise InputError(f"the table cannot be compared with the model: {error}") from None


def _text(value: Any) -> str:
    return "" if is_missing(value) else str(tidy(value)).strip()


# --------------------------------------------------------------------------------- statements


def statement_of(classifier: BaseBNClassifier | BayesianNetworkLearner) -> Statement:
    """What a certificate of this classifier must prove; refused where nothing was searched."""
    check_is_fitted(classifier)
    network = classifier.network_
    result = classifier.result_
    is_learner = isinstance(classifier, BayesianNetworkLearner)
    if not isinstance(classifier, SearchingEstimator) or result is None:
        raise InputError(
            f"there is no certificate for this {type(classifier).__name__}: its structure is "
            "fixed, so there is nothing to prove"
        )
    names, limit = network.names, classifier.max_parents
    has_class = getattr(classifier, "class_restricted", not is_learner)
    required, forbidden = (
        tuple((names[p], names[c]) for p, c in arcs) for arcs in classifier.arcs(names)
    )
    return Statement(
        target=names[0] if has_class else None,
        classes=network.variables[0].states if has_class else None,
        features=names[has_class:],
        data=classifier.evidence_.data_sha256,
        max_parents=limit if is_learner else getattr(classifier, "max_parents_", limit),
        class_restricted=has_class,
        class_arcs=getattr(classifier, "class_arcs", "free"),
        required=required,
        forbidden=forbidden,
        structure=tuple(
            (names[i], tuple(names[p] for p in parents))
            for i, parents in enumerate(result.structure.parents)
        ),
        objective=result.objective,
        **_score_of(classifier),
    )


def full_statement(classifier: BaseBNClassifier, table: Table) -> Statement:
    """What a certificate of this classifier must prove about its table, but for the structure that
    was found: with the coding, the columns and the number of rows that are left out.
    """
    used = [classifier.network_.names[0], *classifier.preparation_.used_names]
    return replace(
        statement_of(classifier),
        structure=None,
        objective=None,
        gap=GAP,
        coding=tuple(coding_record(classifier)),
        left_out=tuple(name for name in table.names if name not in used),
        rows_left_out=table.n_rows - classifier.n_samples_,
    )


def coding_record(model: Model) -> list[dict[str, Any]]:
    """How values become states, as in model files, without values to draw from."""
    own = [
        {k: v for k, v in structs.asdict(c).items() if k != "values"} for c in model.coding_.columns
    ]
    return [{k: list(v) if isinstance(v, tuple) else v for k, v in one.items()} for one in own]


def _score_of(model: Model) -> dict[str, Any]:
    """The score by the name that certificates have for it, and its numbers."""
    if isinstance(model, MaxMarginBNClassifier | MaxMarginBNClassifierCV):
        smoothing = float(model.smoothing)
        return {"score": model.margin, "gamma": model.gamma_, "smoothing": smoothing}
    params = model.get_params(deep=False)
    size = float(params["equivalent_sample_size"]) if params["score"] == "bdeu" else None
    return {"score": SCORES[params["score"]].certificate, "equivalent_sample_size": size}
