"""``marginbn compare``: what two saved classifiers have in common, and where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli import options
from marginbn.cli.model import load_checked
from marginbn.cli.running import print_json, print_text
from marginbn.exceptions import InputError
from marginbn.network.wording import align, assignment, counted, percent

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier
    from marginbn.network.network import BayesianNetwork

Arc = tuple[str, str]


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="Model file.", show_default=False)],
    second: Annotated[
        Path, typer.Argument(metavar="B", help="Model file to compare with.", show_default=False)
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Labelled rows, a file or a data set: adds what both get right on them.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="NAME", help="Column that holds the class. [default: as in A]"
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(metavar="N", help="Tables to print, those that differ most.", min=1)
    ] = 5,
    text: options.TextOptions = options.PLAIN_TEXT,
    json: options.JsonOption = False,
) -> None:
    """Compare two saved classifiers: settings, arcs, tables, quality.

    A and B are files written by `marginbn fit --output`.
    """
    pair = load_checked(first, None), load_checked(second, None)
    found = compare_classifiers(*pair)
    quality = None if data is None else _measure(pair, data, target, text)
    if json:
        print_json(found | {"quality": quality})
        return
    print_text("\n".join(_describe(found, quality, most)))


def compare_classifiers(a: BaseBNClassifier, b: BaseBNClassifier) -> dict[str, Any]:
    """Everything but the quality, as JSON values."""
    return {
        "settings": _different_settings(a, b),
        "variables": _different_variables(a.network_, b.network_),
        "arcs": compare_arcs(_arcs(a.network_), _arcs(b.network_)),
        "tables": [asdict(entry) for entry in compare_tables(a.network_, b.network_)],
    }


def _different_settings(a: BaseBNClassifier, b: BaseBNClassifier) -> dict[str, list[Any]]:
    from marginbn.report.summary import settings

    both = [
        {
            "estimator": type(c).__name__,
            "training rows": getattr(c, "n_samples_", None),
            **settings(c),
        }
        for c in (a, b)
    ]
    names = dict.fromkeys([*both[0], *both[1]])
    pairs = {name: [values.get(name) for values in both] for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _different_variables(a: BayesianNetwork, b: BayesianNetwork) -> dict[str, list[str]]:
    states = [{v.name: v.states for v in network.variables} for network in (a, b)]
    both = states[0].keys() & states[1].keys()
    return {
        "only_in_first": [name for name in states[0] if name not in both],
        "only_in_second": [name for name in states[1] if name not in both],
        "other_values": [n for n in states[0] if n in both and states[0][n] != states[1][n]],
    }


def _arcs(network: BayesianNetwork) -> list[Arc]:
    return [(network.names[p], network.names[c]) for p, c in network.structure.arcs]


def compare_arcs(a: Sequence[Arc], b: Sequence[Arc]) -> dict[str, list[Arc]]:
    """Arcs of both, of both in opposite directions (as in `a`), and of one only.

    Examples
    --------
    >>> found = compare_arcs([("y", "u"), ("u", "v"), ("y", "w")], [("y", "u"), ("v", "u")])
    >>> found["both"], found["turned"], found["only_in_first"], found["only_in_second"]
    ([('y', 'u')], [('u', 'v')], [('y', 'w')], [])
    """
    turned = {(child, parent) for parent, child in b}
    other_way = {(child, parent) for parent, child in a}
    return {
        "both": [arc for arc in a if arc in b],
        "turned": [arc for arc in a if arc in turned],
        "only_in_first": [arc for arc in a if arc not in b and arc not in turned],
        "only_in_second": [arc for arc in b if arc not in a and arc not in other_way],
    }


@dataclass(frozen=True)
class TableDifference:
    """The entry of a conditional table in which two networks differ most."""

    variable: str
    state: str
    given: dict[str, str]
    first: float
    second: float

    @property
    def size(self) -> float:
        """Difference of the two probabilities."""
        return abs(self.first - self.second)


def compare_tables(a: BayesianNetwork, b: BayesianNetwork) -> list[TableDifference]:
    """Largest difference in each table that both have, largest first; equal tables are left out.

    Both have a table if the variable has the same parents, all with the same states.
    """
    found = (_compare_table(a, b, i) for i in range(a.n_variables))
    different = [entry for entry in found if entry is not None and entry.size > 0]
    return sorted(different, key=lambda entry: -entry.size)


def _compare_table(a: BayesianNetwork, b: BayesianNetwork, i: int) -> TableDifference | None:
    import numpy as np

    families = _family(a, i), _family(b, b.names.index(a.names[i])) if a.names[i] in b.names else {}
    if families[0] != families[1]:
        return None
    *parents, own = families[0]
    axes = [list(families[1]).index(name) for name in parents]
    tables = np.exp(a.log_tables[i]), np.exp(b.log_tables[b.names.index(own)])
    second = np.transpose(tables[1], [*axes, len(axes)])
    place = np.unravel_index(np.abs(tables[0] - second).argmax(), second.shape)
    states = [families[0][name][code] for name, code in zip([*parents, own], place, strict=True)]
    given = dict(zip(parents, states[:-1], strict=True))
    return TableDifference(own, states[-1], given, float(tables[0][place]), float(second[place]))


def _family(network: BayesianNetwork, i: int) -> dict[str, tuple[str, ...]]:
    """Names and states of the parents and, last, of the variable itself."""
    parents = network.structure.parents[i]
    family = {network.names[p]: tuple(network.group_labels(p)) for p in parents}
    return family | {network.names[i]: network.variables[i].states}


# --- quality --------------------------------------------------------------------------------------


def _measure(
    pair: tuple[BaseBNClassifier, BaseBNClassifier],
    data: str,
    target: str | None,
    text: options.TextOptions,
) -> dict[str, Any]:
    """Accuracy, balanced accuracy and log loss of both, and how they err together."""
    from marginbn.cli.model import load_rows

    names = [c.network_.names[0] for c in pair]
    if target is None and names[0] != names[1]:
        raise InputError(f"the models predict {names[0]!r} and {names[1]!r}; say --target")
    rows, unseen = load_rows(pair[0], data, None, target, text)
    rows = unseen or rows
    assert rows is not None
    labels = rows.labels.astype(str)
    right = [c.predict(rows.features).astype(str) == labels for c in pair]
    return {
        "n_rows": rows.n_rows,
        "models": [_metrics(c, rows.features, labels) for c in pair],
        "both_right": int((right[0] & right[1]).sum()),
        "only_first_right": int((right[0] & ~right[1]).sum()),
        "only_second_right": int((right[1] & ~right[0]).sum()),
        "none_right": int((~right[0] & ~right[1]).sum()),
    }


def _metrics(classifier: BaseBNClassifier, features: Any, labels: Any) -> dict[str, float | None]:
    """The log loss is None where a row has a class that the classifier does not know."""
    from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss

    from marginbn.classifiers.decisions import costs_of

    classes = classifier.classes_.astype(str)
    proba = classifier.predict_proba(features)
    costs = costs_of(classifier)
    predicted = classes[proba.argmax(axis=1) if costs is None else costs.decide(proba)]
    order = classes.argsort()
    is_known = set(labels) <= set(classes) and len(classes) > 1
    return {
        "accuracy": float(accuracy_score(labels, predicted)),
        "balanced_accuracy": float(balanced_accuracy_score(labels, predicted)),
        "log_loss": float(log_loss(labels, proba[:, order], labels=classes[order]))
        if is_known
        else None,
    }


# --- words ----------------------------------------------------------------------------------------


def _describe(found: dict[str, Any], quality: dict[str, Any] | None, most: int) -> Iterator[str]:
    if quality is not None:
        yield from _describe_quality(quality)
    yield "Settings" if found["settings"] else "Settings: the same"
    if found["settings"]:
        rows = [[name, *map(str, pair)] for name, pair in found["settings"].items()]
        yield from align([["", "A", "B"], *rows])
    yield from _describe_structure(found)
    yield from _describe_tables(found["tables"], most)


def _describe_quality(quality: dict[str, Any]) -> Iterator[str]:
    yield f"Quality on {counted(quality['n_rows'], 'row')}"
    models = quality["models"]
    rows = [[name.replace("_", " "), *(_number(m[name]) for m in models)] for name in models[0]]
    yield from align([["", "A", "B"], *rows])
    yield (
        f"  right: both {quality['both_right']}, only A {quality['only_first_right']}, "
        f"only B {quality['only_second_right']}, none {quality['none_right']}"
    )


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"


def _describe_structure(found: dict[str, Any]) -> Iterator[str]:
    arcs, variables = found["arcs"], found["variables"]
    words = {
        "only_in_first": "only in A",
        "only_in_second": "only in B",
        "other_values": "other values or bins",
    }
    for key, text in words.items():
        if variables[key]:
            yield f"Variables, {text}: {', '.join(variables[key])}"
    if not (arcs["turned"] or arcs["only_in_first"] or arcs["only_in_second"]):
        yield f"Arcs: the same {len(arcs['both'])}"
        return
    yield f"Arcs: {len(arcs['both'])} in both"
    for key, text in (("turned", "turned in B"), *words.items()):
        for parent, child in arcs.get(key, ()):
            yield f"  {text}: {parent} -> {child}"


def _describe_tables(tables: Sequence[dict[str, Any]], most: int) -> Iterator[str]:
    if not tables:
        yield "Tables: none that both have differs"
        return
    yield f"Tables: {counted(len(tables), 'shared table')} differ, most of all"
    rows = [["", "A", "B"]]
    for entry in tables[:most]:
        given = ", ".join(assignment(*pair) for pair in entry["given"].items())
        event = assignment(entry["variable"], entry["state"])
        rows.append(
            [f"P({event}{' | ' + given if given else ''})"]
            + [percent(entry[key]) for key in ("first", "second")]
        )
    yield from align(rows)
