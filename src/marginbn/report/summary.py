"""What a fit found, in words for people and in plain values for programs.

First the fit as a whole, then its network: parents, and conditional tables.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from itertools import product
from typing import Any

import msgspec
import numpy as np

from marginbn import classifiers
from marginbn.classifiers import BaseBNClassifier
from marginbn.classifiers.evaluation import accuracy_interval
from marginbn.classifiers.measures import Quality
from marginbn.classifiers.model_file import Provenance
from marginbn.exceptions import ProblemTooLargeError
from marginbn.network import wording
from marginbn.network.layout import isolated_features
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import counted, percent, seconds, share, visible
from marginbn.solvers.result import PROOF_TOLERANCE, SolveResult, Status

_ENDINGS = {
    Status.OPTIMAL: "optimal",
    Status.GAP_LIMIT: "stopped at the gap tolerance",
    Status.TIME_LIMIT: "stopped by the time limit",
    Status.WORK_LIMIT: "stopped by its budget of work, not by a time limit",
    Status.NODE_LIMIT: "stopped by the node limit",
    Status.MEMORY_LIMIT: "stopped by the memory limit",
    Status.INTERRUPTED: "interrupted",
    Status.ROUNDING: "search finished, the rest is rounding",
}
_LABEL_WIDTH = 12
"""Characters that the labels before the lines of the summary take."""
_SHARES = ("accuracy", "balanced_accuracy", "calibration_error", "logistic_accuracy")
"""Measures that are printed in per cent, as everywhere."""
_MEASURES = {
    "n_rows": "rows",
    "brier": "Brier score",
    "auc": "AUC",
    "logistic_accuracy": "accuracy of logistic regression",
}
"""Names of measures in words, where these are others."""
_DECIDING = 3
"""Columns that the line of what decides names."""


def summarise(classifier: BaseBNClassifier, quality: Quality | None = None) -> dict[str, Any]:
    """All that is known about a fitted classifier, and its quality if given, as JSON values.

    Infinite numbers are None, as are the values of a search where there was none. ``gap`` is a
    fraction, ``structure`` maps each variable's name to the names of its parents.
    """
    result, network = classifier.result_, classifier.network_
    return {
        "estimator": type(classifier).__name__,
        "verdict": verdict(classifier),
        "quality_verdict": quality_verdict(classifier, quality),
        "score": score_name(classifier),
        "objective": None if result is None else _finite(result.objective),
        "bound": None if result is None else _finite(result.bound),
        "gap": None if result is None else _finite(result.gap),
        "status": classifier.status_,
        "proved": is_proved(classifier),
        "evidence": evidence_record(classifier),
        "seconds": None if result is None else result.seconds,
        "solver": None if result is None else result.solver,
        "nodes": None if result is None else int(result.nodes),
        "settings": settings(classifier),
        "target": network.names[0],
        "classes": classifier.classes_.tolist(),
        "n_samples": classifier.n_samples_,
        "n_dropped": classifier.n_dropped_,
        "features": list(network.names[1:]),
        "constant_features": constant_features(network),
        "ignored_features": ignored_features(network),
        "n_parameters": network.n_parameters,
        "about": msgspec.structs.asdict(classifier.provenance_ or Provenance()),
        "structure": parents_by_name(network),
        "importances": importances(classifier),
        "quality": None if quality is None else quality.to_dict(),
    }


def describe(classifier: BaseBNClassifier, quality: Quality | None = None, width: int = 80) -> str:
    """The same for a terminal: both halves of the verdict, the numbers, the structure."""
    lines = [*textwrap.wrap(verdict(classifier), width)]
    lines += [*textwrap.wrap(quality_verdict(classifier, quality), width), ""]
    for label, text in facts(classifier):
        lines += wording.hanging(f"{label:<{_LABEL_WIDTH}}", text, width)
    lines += ["", "Structure"]
    lines += describe_structure(classifier.network_, width)
    return "\n".join(lines)


def is_proved(classifier: BaseBNClassifier) -> bool:
    """Whether the search that ran here, or a certificate that was checked here, proves optimality.

    Where there was only one structure there is nothing to prove.
    """
    evidence, result = classifier.evidence_, classifier.result_
    if evidence.verdict is not None:
        return evidence.verdict.gap <= PROOF_TOLERANCE
    return result is not None and result.is_optimal and evidence.source == "search"


def evidence_record(classifier: BaseBNClassifier) -> dict[str, Any]:
    """For programs: source of the claim, and what the checked certificate proves."""
    evidence = classifier.evidence_
    record: dict[str, Any] = {
        "source": evidence.source,
        "data_sha256": evidence.data_sha256,
        "certificate_sha256": evidence.certificate_sha256,
    }
    if evidence.verdict is not None:
        found = evidence.verdict
        record |= {"objective": found.objective, "bound": found.bound, "gap": found.gap}
    return record


def verdict(classifier: BaseBNClassifier) -> str:
    """One sentence: optimal, or how far from it at most; and whether that is proved by the search
    that ran here, claimed by a file, or verified by a certificate.

    The gap is relative to the larger of objective and bound, in any unit of weight, see
    :func:`marginbn.solvers.result.relative_gap`.
    """
    result = classifier.result_
    if result is not None:
        source, claim = _claim(classifier, result)
        return f"{source[0].upper()}{source[1:]}: {claim}."
    if len(classifier.classes_) == 1:
        return "There is only one class, so there is nothing to separate."
    return "Naive Bayes: the structure is fixed, there was nothing to search."


def quality_verdict(
    classifier: BaseBNClassifier, quality: Quality | None = None, logistic: float | None = None
) -> str:
    """The other half, which no proof covers: accuracy on held-out rows next to simpler methods, log
    loss and AUC.

    Of rows measured here, else by the model file, else that nothing was measured.
    """
    if len(classifier.classes_) == 1:
        return ""
    held_out, about = classifier.held_out_, (classifier.provenance_ or Provenance()).held_out or {}
    if quality is None and held_out is not None:
        quality, logistic = held_out.quality(classifier.classes_), about.get("logistic_accuracy")
    if quality is None:
        value, n_rows = about.get("accuracy"), about.get("n_rows")
        if value is None or n_rows is None:
            return "Quality was not measured on held-out rows."
        return f"Accuracy on {counted(int(n_rows), 'held-out row')}: {share(value)}, by its file."
    where = counted(quality.n_rows, "held-out row")
    if held_out is not None and quality == held_out.quality(classifier.classes_):
        where = held_out.where(classifier.n_samples_)
    half_width = accuracy_interval(quality.accuracy, quality.n_rows)
    most = max(c.n_rows for c in quality.classes) / quality.n_rows
    others = "majority class" if quality.accuracy > most else "no better than the majority class,"
    others += f" {share(most)}"
    if logistic is not None:
        others += f", logistic regression {share(logistic)}"
    auc = "" if quality.auc is None else f", AUC {quality.auc:.3f}"
    return (
        f"Accuracy on {where}: {share(quality.accuracy, half_width)} ({others}); "
        f"log loss {quality.log_loss:.3f}{auc}"
    )


def caution(classifier: BaseBNClassifier) -> str:
    """What to know about answers where columns are unknown; nothing for most models."""
    margin = classifiers.MaxMarginBNClassifier | classifiers.MaxMarginBNClassifierCV
    has_one_class = len(classifier.classes_) == 1
    if has_one_class or classifier.class_model_ is not None or not isinstance(classifier, margin):
        return ""
    return (
        "The structure was chosen to separate complete rows. Where columns are unknown, the answer "
        "can differ from the share in the data."
    )


def describe_trained(classifier: BaseBNClassifier, saved: str | None = None) -> list[str]:
    """Two sentences: what is proved of the structure, what is trained and from which rows."""
    model, network = classifier.class_model_, classifier.network_
    arcs = sum(len([p for p in parents if p]) for parents in network.structure.parents[1:])
    structure = verdict(classifier)
    if classifier.result_ is not None:
        source, claim = _claim(classifier, classifier.result_)
        if source == "proved" and not is_proved(classifier):
            source, claim = "best found", f"proved to be {claim}"
        structure = f"Structure ({source}): {claim}; {counted(arcs, 'arc')} between columns."
    if model is None:
        return [structure]
    where = "The model" if saved is None else f"The model in {visible(saved)}"
    return [
        structure,
        f"Probabilities: trained on this structure, {model.nearness}. "
        f"{where} is learned from all {classifier.n_samples_} rows.",
    ]


def _claim(classifier: BaseBNClassifier, result: SolveResult) -> tuple[str, str]:
    """The source of the claim about a structure that was searched, and the claim.

    A certificate that was checked counts more than the model.
    """
    name, evidence = _short_score_name(classifier), classifier.evidence_
    best = "best" if name.endswith("score") else "largest"
    best += f" {name} of all {_family(classifier)}"
    if evidence.verdict is not None:
        gap, source, ending = evidence.verdict.gap, "verified by its certificate", ""
        is_best = gap <= PROOF_TOLERANCE
    else:
        gap, is_best, ending = result.gap, result.is_optimal, f" ({_ENDINGS[result.status]})"
        source = "claimed by the file, not checked" if evidence.source == "file" else "proved"
    if is_best:
        return source, best
    if not math.isfinite(gap):
        return "nothing proved", f"no bound on the {name} is known yet{ending}"
    return source, f"within {percent(gap)} of the {best}{ending}"


def _family(classifier: BaseBNClassifier) -> str:
    """What the structure is compared with."""
    if isinstance(classifier, classifiers.TANClassifier):
        return "trees over the features"
    if getattr(classifier, "class_arcs", "free") == "all":
        return f"networks in which {visible(classifier.network_.names[0])} points at every column"
    return "allowed structures"


def score_name(classifier: BaseBNClassifier) -> str:
    """The score that the structure maximises, with its parameters."""
    name = _short_score_name(classifier)
    gamma = getattr(classifier, "gamma_", getattr(classifier, "gamma", None))
    if gamma is None:
        return name
    probability = 1 / (1 + math.exp(-gamma))
    return f"{name}, gamma = {gamma:.4g} (p = {probability:.4g})"


def _short_score_name(classifier: BaseBNClassifier) -> str:
    if isinstance(
        classifier, classifiers.MaxMarginBNClassifier | classifiers.MaxMarginBNClassifierCV
    ):
        return "soft margin" if classifier.margin == "multiclass" else "binary soft margin"
    if isinstance(classifier, classifiers.GenerativeBNClassifier):
        return f"{classifier.get_params()['score'].upper()} score"
    return "log likelihood"


def settings(classifier: BaseBNClassifier) -> dict[str, Any]:
    """Parameters that decide the result, without those that only decide how it is found."""
    how = {"search", "n_jobs", "random_state", "column_kinds", "cv"}
    params = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in classifier.get_params(deep=False).items()
        if key not in how
    }
    if isinstance(classifier, classifiers.MaxMarginBNClassifierCV):
        params |= {
            "gamma": float(classifier.gamma_),
            "max_parents": int(classifier.max_parents_),
            "validation_accuracy": float(classifier.best_score_),
        }
        del params["gammas"]
        if classifier.scoring != "accuracy":
            params["validation_score"] = params.pop("validation_accuracy")
    return params


def facts(classifier: BaseBNClassifier) -> list[tuple[str, str]]:
    """The lines between verdict and structure: label and text of each."""
    network = classifier.network_
    free = network.n_parameters
    too_many = ", more than rows: expect overfitting" if free > classifier.n_samples_ else ""
    n_lost, constant = classifier.n_dropped_, constant_features(network)
    lost = f", {n_lost} left out for missing values" if n_lost else ""
    features = str(network.n_variables - 1)
    features += f", {len(constant)} constant: {wording.listing(constant)}" if constant else ""
    lines = [] if classifier.result_ is None else [("score", score_name(classifier))]
    if isinstance(classifier, classifiers.MaxMarginBNClassifierCV):
        lines.append(("chosen", _choice_text(classifier)))
    lines += _search_lines(classifier)
    lines += [
        ("classes", f"{network.n_classes}: {wording.listing(network.variables[0].states)}"),
        ("rows", f"{classifier.n_samples_} learned from{lost}"),
        ("features", features),
        ("decides", _deciding_text(classifier)),
        ("parameters", f"{free} free{too_many}"),
        ("trained", _trained_text(classifier)),
    ]
    lines += _provenance_lines(classifier)
    return [(label, text) for label, text in lines if text]


def importances(classifier: BaseBNClassifier) -> dict[str, float]:
    """Feature importances by column, the largest first; none where they are too much to compute."""
    try:
        values = classifier.feature_importances_.tolist()
    except ProblemTooLargeError:
        return {}
    columns = [plan.name for plan in classifier.preparation_.columns]
    pairs = zip(columns, values, strict=True)
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


def _deciding_text(classifier: BaseBNClassifier) -> str:
    """The columns that move the probabilities most when they are known alone."""
    pairs = [*importances(classifier).items()][:_DECIDING]
    names = [f"{visible(name)} {100 * value:.1f}" for name, value in pairs if value > 0]
    return f"{', '.join(names)} points" if names else ""


def _trained_text(classifier: BaseBNClassifier) -> str:
    """The tables that predict; nothing where these are the counted ones."""
    model = classifier.class_model_
    if model is None:
        return ""
    tables = counted(len(model.design.cells.features), "effect")
    pairs = counted(len(model.design.pairs), "family table")
    return f"{tables} and {pairs}, {model.nearness}"


def _search_lines(classifier: BaseBNClassifier) -> list[tuple[str, str]]:
    """Objective, bound and how the search ended; nothing where there was none."""
    result = classifier.result_
    if result is None:
        return []
    nodes = f", {counted(result.nodes, 'node')}" * bool(result.nodes)
    by_work = isinstance(classifier, classifiers.BNClassifier)  # files have no seconds of it
    took = "" if by_work else f" after {seconds(result.seconds)}"
    per_row = f", {(result.bound - result.objective) / classifier.n_samples_:.2g} nats per row"
    return [
        ("objective", wording.number(result.objective)),
        ("bound", wording.number(result.bound)),
        ("gap", percent(result.gap) + per_row * (not result.is_optimal)),
        ("search", f"{_ENDINGS[result.status]}{took}, {result.solver}{nodes}"),
        ("certificate", _certificate_text(classifier)),
    ]


def _choice_text(classifier: classifiers.MaxMarginBNClassifierCV) -> str:
    chosen = f"{classifier.max_parents_} parents at most, gamma {classifier.gamma_:.4g}"
    if classifier.scoring == "accuracy":
        return f"{chosen} (validation {percent(classifier.best_score_)})"
    return f"{chosen} (validation {classifier.best_score_:.4g} by {classifier.scoring})"


def _provenance_lines(classifier: BaseBNClassifier) -> list[tuple[str, str]]:
    """Where a classifier of a file comes from; nothing of one that was fitted here."""
    about = classifier.provenance_ or Provenance()
    versions = ", ".join(f"{name} {text}" for name, text in (about.versions or {}).items())
    made = f"{about.created} with {versions}" if about.created else ""
    data = [about.data_name, about.data_sha256 and f"sha256 {about.data_sha256}"]
    numbers = [
        f"{_MEASURES.get(name, name.replace('_', ' '))} "
        f"{share(value) if name in _SHARES else f'{value:.4g}'}"
        for name, value in (about.held_out or {}).items()
        if value is not None
    ]
    return [
        ("created", made),
        ("data", ", ".join(filter(None, data))),
        ("measured", ", ".join(numbers)),
    ]


def _certificate_text(classifier: BaseBNClassifier) -> str:
    found = classifier.evidence_.verdict
    if found is None:
        return ""
    numbers = f"objective {wording.number(found.objective)}, bound {wording.number(found.bound)}"
    return f"checked: {numbers}, gap {percent(found.gap)}, {counted(found.n_leaves, 'case')}"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def constant_features(network: BayesianNetwork) -> list[str]:
    """Features with a single state, after discretisation."""
    return [v.name for v in network.variables[1:] if v.arity == 1]


def ignored_features(network: BayesianNetwork) -> list[str]:
    """Features connected to nothing: they have no influence on predictions."""
    return [network.names[i] for i in isolated_features(network.structure)]


def parents_by_name(network: BayesianNetwork) -> dict[str, list[str]]:
    """Names of the parents of each variable."""
    names = network.names
    return {
        names[i]: [names[p] for p in parents] for i, parents in enumerate(network.structure.parents)
    }


def describe_structure(network: BayesianNetwork, width: int = 80) -> list[str]:
    """Lines such as ``petal length <- class, petal width``; equal parents share a line."""
    ignored = ignored_features(network)
    groups: dict[tuple[str, ...], list[str]] = {}
    for child, parents in parents_by_name(network).items():
        if child not in ignored:
            groups.setdefault(tuple(parents), []).append(child)
    lines: list[str] = []
    for parents_of_group, children in groups.items():
        *others, last = comma_separated(children)
        if parents_of_group:
            first, *more = comma_separated(parents_of_group)
            lines += wording.hanging("", [*others, f"{last} <- {first}", *more], width)
        else:
            lines += wording.hanging("", [*others, f"{last}: no parents"], width)
    if ignored:
        lines += wording.hanging("", ["ignored:", *comma_separated(ignored)], width)
    return lines


def comma_separated(names: Sequence[str]) -> list[str]:
    """Names, all but the last with a comma."""
    return [*(f"{name}," for name in names[:-1]), *names[-1:]]


def describe_tables(network: BayesianNetwork, width: int = 80) -> str:
    """All conditional probability tables as text, one block per variable."""
    return "\n\n".join(_describe_table(network, i, width) for i in range(network.n_variables))


def _describe_table(network: BayesianNetwork, i: int, width: int) -> str:
    """Rows are states of the parents, columns states of the variable, entries probabilities."""
    parents = network.structure.parents[i]
    given = ", ".join(visible(network.names[p]) for p in parents)
    title = f"P({visible(network.names[i])}{' | ' + given if given else ''})"
    states, table = network.variables[i].states, np.exp(network.log_tables[i])
    contexts = map(", ".join, product(*(network.variables[p].states for p in parents)))
    header = ["", *map(visible, states)]
    body = [
        [context, *(f"{probability:.4f}" for probability in row)]
        for context, row in zip(contexts, table.reshape(-1, len(states)), strict=True)
    ]
    rows = [header, *body]
    if sum(wording.column_widths(rows)) + 2 * len(header) > width:  # too wide: one entry per line
        rows = [
            [f"{context}: {state}" if context else state, value]
            for context, *values in body
            for state, value in zip(header[1:], values, strict=True)
        ]
    return "\n".join([title, *wording.align(rows)])
