"""From options to a classifier that is not fitted yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from marginbn.cli.options import Method, ProblemOptions, SearchOptions

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier

_CLASSES = {
    Method.MAX_MARGIN: "MaxMarginBNClassifier",
    Method.MAX_MARGIN_CV: "MaxMarginBNClassifierCV",
    Method.GENERATIVE: "GenerativeBNClassifier",
    Method.TAN: "TANClassifier",
    Method.NAIVE_BAYES: "NaiveBayesClassifier",
}
_OPTION_NAMES = {
    "class_restricted": "--unrestricted",
    "required_arcs": "--require",
    "forbidden_arcs": "--forbid",
    "gap_tolerance": "--gap",
    "gammas": "--gamma",
    "random_state": "--seed",
    "n_jobs": "--jobs",
}
"""Options whose name is not that of the parameter."""


def build_classifier(
    problem: ProblemOptions, search: SearchOptions | None = None
) -> BaseBNClassifier:
    """The classifier that the options ask for; wrong values are usage errors."""
    import marginbn
    from marginbn.exceptions import InputError

    cls: type[BaseBNClassifier] = getattr(marginbn, _CLASSES[problem.method])
    known = cls().get_params(deep=False)
    given = _given_parameters(problem, search)
    for name in given:
        if name not in known:
            raise typer.BadParameter(
                f"has no meaning with --method {problem.method}",
                param_hint=_OPTION_NAMES.get(name, f"--{name.replace('_', '-')}"),
            )
    if search is not None and "random_state" in known:
        given["random_state"] = search.seed
    classifier = cls(**given)
    try:
        classifier._check_parameters()
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return classifier


def _given_parameters(problem: ProblemOptions, search: SearchOptions | None) -> dict[str, Any]:
    """Constructor parameters for the options that were given."""
    chosen_by_validation = problem.method is Method.MAX_MARGIN_CV
    gamma, k = resolve_gamma(problem), problem.max_parents
    given = {
        "margin": _text(problem.margin),
        "gammas" if chosen_by_validation else "gamma": _listed(gamma, chosen_by_validation),
        "max_parents": _parent_grid(k) if chosen_by_validation and k is not None else k,
        "score": _text(problem.score),
        "class_restricted": False if problem.unrestricted else None,
        "smoothing": problem.smoothing,
        "required_arcs": parse_arcs(problem.require, "--require"),
        "forbidden_arcs": parse_arcs(problem.forbid, "--forbid"),
        "missing": _text(problem.missing),
        "unseen": _text(problem.unseen),
    }
    given = {name: value for name, value in given.items() if value is not None}
    return given if search is None else given | _search_parameters(search)


def _search_parameters(search: SearchOptions) -> dict[str, Any]:
    given = {
        "solver": search.solver,
        "gap_tolerance": search.gap,
        "n_jobs": search.jobs,
        "memory_limit": search.memory_limit,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if search.time_limit is not None:
        given["time_limit"] = search.time_limit or None  # 0 stands for no limit
    return given


def resolve_gamma(problem: ProblemOptions) -> float | None:
    """gamma as given, or as a probability."""
    if problem.p is None:
        return problem.gamma
    if problem.gamma is not None:
        raise typer.BadParameter("give either --gamma or --p, not both", param_hint="--p")
    from marginbn.classifiers.max_margin import gamma_from_probability
    from marginbn.exceptions import InputError

    try:
        return gamma_from_probability(problem.p)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--p") from None


def parse_arcs(texts: list[str] | None, option: str) -> list[tuple[str, str]] | None:
    """``A->B`` as a pair of names; None if there are none."""
    arcs = []
    for text in texts or ():
        parent, arrow, child = (part.strip() for part in text.partition("->"))
        if not (parent and arrow and child):
            raise typer.BadParameter(
                f'an arc is written "parent->child", got {text!r}', param_hint=option
            )
        arcs.append((parent, child))
    return arcs or None


def _parent_grid(k: int) -> tuple[int, ...]:
    return tuple(range(1, k + 1)) if k > 0 else (k,)


def _listed(value: float | None, wanted: bool) -> Any:
    return [value] if wanted and value is not None else value


def _text(choice: Any) -> str | None:
    return None if choice is None else str(choice)
