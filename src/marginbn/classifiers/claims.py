"""What a classifier claims about its structure, and the certificate that proves it.

The theorem of a certificate is about a structure and the data it was searched on. The parameters
are functions of both: they are computed again and compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginbn import files
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.learner import BayesianNetworkLearner
from marginbn.classifiers.search import SearchingBNClassifier
from marginbn.data.labelled import LabelledTable
from marginbn.data.training import TrainingRows, survey_rows
from marginbn.exceptions import InputError
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import EncodedData
from marginbn.problem.scores import SCORES
from marginbn.proof.certificate import Certificate, Data
from marginbn.proof.checker import Verdict, read_within, verify_certificate
from marginbn.proof.checker.verdict import Progress
from marginbn.proof.theorem import NamedArcs, Statement


def verify_model(
    classifier: BaseBNClassifier | BayesianNetworkLearner,
    certificate: files.PathLike | Certificate,
    *,
    progress: Progress | None = None,
    expect: Statement | None = None,
    max_memory: int | None = None,
) -> Verdict:
    """Check that a certificate proves what a classifier or learner says about its structure.

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
        classifier.evidence_ = replace(classifier.evidence_, source="certificate", verdict=verdict)
    return verdict


def _has_tables_of(classifier: BaseBNClassifier | BayesianNetworkLearner, data: Data) -> bool:
    """Whether the parameters are those of the data: no certificate speaks of them."""
    network = classifier.network_
    if data.states != tuple(v.states for v in network.variables):
        return False
    rows = EncodedData(data.codes, data.weights, network.variables)
    fitted = BayesianNetwork.fit(rows, network.structure, classifier.table_smoothing)
    return _are_close(fitted.log_tables, network.log_tables)


def _are_close(some: Sequence[NDArray[Any]], others: Sequence[NDArray[Any]]) -> bool:
    pairs = zip(some, others, strict=True)
    return all(np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in pairs)


def certify_tables(classifier: BaseBNClassifier, rows: LabelledTable) -> tuple[float, float]:
    """Penalised loss of the trained tables on some rows, and their certified gap.

    The rows are prepared and encoded by the model; both numbers are those of the fit only if these
    are its rows.
    """
    model = classifier.class_model_
    if model is None:
        raise InputError(f"a {type(classifier).__name__} with counted tables has none to certify")
    used = [plan.name for plan in classifier.preparation_.columns if not plan.left_out]
    settings = replace(classifier.table_settings(), keep_identifiers=True)
    known = replace(rows, features=rows.features.select(used))
    table = TrainingRows.of(survey_rows(known), settings).drawn
    classes = np.searchsorted(classifier.classes_.astype(str), table.labels.astype(str))
    codes = model.design.cells.coding.encode(table.features)
    variables = (classifier.network_.variables[0], *model.design.cells.coding.variables)
    both = np.column_stack([classes.astype(np.int32), codes])
    if (codes < 0).any():
        raise InputError("the table has values that the model has not seen in training")
    return model.certify(EncodedData(both, table.weights, variables))


def statement_of(classifier: BaseBNClassifier | BayesianNetworkLearner) -> Statement:
    """What a certificate of this classifier must prove; refused where nothing was searched."""
    check_is_fitted(classifier)
    network = classifier.network_
    params = vars(classifier) | classifier.get_params(deep=False)  # some have parameters of others
    result = classifier.result_
    is_learner = isinstance(classifier, BayesianNetworkLearner)
    if not (is_learner or isinstance(classifier, SearchingBNClassifier)) or result is None:
        raise InputError(
            f"there is no certificate for a {type(classifier).__name__} with "
            f"{network.n_classes} classes: nothing was searched"
        )
    names = network.names
    required, forbidden = classifier.arcs().resolve(names)
    return Statement(
        target=names[0],
        classes=network.variables[0].states,
        features=names[1:],
        data=classifier.evidence_.data_sha256,
        max_parents=getattr(classifier, "max_parents_", params["max_parents"]),
        class_restricted=params.get("class_restricted", not is_learner),
        class_arcs=params.get("class_arcs", "free"),
        required=_named_arcs(required, names),
        forbidden=_named_arcs(forbidden, names),
        structure=tuple(
            (names[i], tuple(names[p] for p in parents))
            for i, parents in enumerate(result.structure.parents)
        ),
        objective=result.objective,
        **_score_of(params, gamma=getattr(classifier, "gamma_", None)),
    )


def _score_of(params: dict[str, Any], gamma: float | None) -> dict[str, Any]:
    """The score by the name that certificates have for it, and its numbers."""
    if gamma is not None:
        return {"score": params["margin"], "gamma": gamma, "smoothing": float(params["smoothing"])}
    size = float(params["equivalent_sample_size"]) if params["score"] == "bdeu" else None
    return {"score": SCORES[params["score"]].certificate, "equivalent_sample_size": size}


def _named_arcs(arcs: Sequence[tuple[int, int]], names: Sequence[str]) -> NamedArcs:
    return tuple((names[p], names[c]) for p, c in arcs)
