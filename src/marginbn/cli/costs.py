"""``--cost``: what errors cost, as ``TRUE:PREDICTED=COST`` or as a CSV file with a matrix."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from marginbn.exceptions import InputError

if TYPE_CHECKING:
    from marginbn.classifiers import BaseBNClassifier

Costs = dict[str, dict[str, float]]
"""By true class, then by predicted class."""

_HINT = "--cost"


def parse_costs(texts: list[str] | None) -> Costs | None:
    """All that was said, the last word counting; None of nothing."""
    if not texts:
        return None
    costs: Costs = {}
    for text in texts:
        found = _read_text(text) if "=" in text else _read_file(text)
        for true, row in found.items():
            costs.setdefault(true, {}).update(row)
    return costs


def decide_by(classifier: BaseBNClassifier, texts: list[str] | None) -> None:
    """Give a fitted classifier other costs; refuse classes that it does not have."""
    from marginbn.classifiers.decisions import costs_of

    costs = parse_costs(texts)
    if costs is not None:
        classifier.set_params(cost=costs)
        try:
            costs_of(classifier)
        except InputError as error:
            raise typer.BadParameter(str(error), param_hint=_HINT) from None


def _read_text(text: str) -> Costs:
    labels, _, number = text.rpartition("=")
    true, colon, predicted = (part.strip() for part in labels.partition(":"))
    if not (true and colon and predicted):
        raise typer.BadParameter(
            f"write TRUE:PREDICTED=COST, as in sick:healthy=5, got {text!r}", param_hint=_HINT
        )
    if ":" in predicted:
        raise typer.BadParameter(
            f"{text!r} has more than one colon; give such classes in a CSV file", param_hint=_HINT
        )
    return {true: {predicted: _number(number, text)}}


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise typer.BadParameter(
            f"a cost must be a finite number, got {text!r} in {where!r}", param_hint=_HINT
        )
    return value


def _read_file(name: str) -> Costs:
    """A header with the predicted classes, then a line for each true class, its name first."""
    from marginbn.data.text import load_text

    if not Path(name).is_file():
        raise typer.BadParameter(
            f"write TRUE:PREDICTED=COST, as in sick:healthy=5, or name a CSV file; there is no "
            f"file {name!r}",
            param_hint=_HINT,
        )
    lines = csv.reader(io.StringIO(load_text(Path(name)), newline=""), skipinitialspace=True)
    rows = [[cell.strip() for cell in line] for line in lines if any(line)]
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows) or len(rows[0]) < 2:
        raise typer.BadParameter(
            f"{name}: must have a header with the predicted classes after an empty cell, and a "
            "line for each true class: its name, then a cost for every predicted class",
            param_hint=_HINT,
        )
    predicted = rows[0][1:]
    return {
        row[0]: {label: _number(cell, name) for label, cell in zip(predicted, row[1:], strict=True)}
        for row in rows[1:]
    }
