"""A classifier as a scorecard: points to be added up by hand, as CSV or an HTML page.

Points are the scores of :mod:`marginbn.export.score_model` in another unit: ``POINTS_TO_DOUBLE`` of
them double the odds of a class against the first one.

    points_c = start_c + sum of the points of every row that applies
    odds_c   = 2 ** (points_c / POINTS_TO_DOUBLE)
    P(c)     = odds_c / (1 + odds_1 + odds_2 + ...),   the first class has odds 1

A network trained for the posterior has a background beside: then P(c) is (1 - doubt) times this,
plus doubt times the class's share; both stand in the file. Every line of the CSV has full
precision; the page shows one decimal.

**Weight of evidence** of a state: log P(state | class) - log P(state | first class), from counts of
the rows given (with half a row added to each count), or else from the network. In naive Bayes from
the network it is the points themselves, in another unit; in other networks the difference shows
what the feature's neighbours already say.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError
from marginbn.export.score_model import FloatArray, Member, ScoreModel, Term
from marginbn.network.wording import ELLIPSIS, name_group

POINTS_TO_DOUBLE = 20.0
_FACTOR = POINTS_TO_DOUBLE / math.log(2.0)
_DIGITS = 1


@dataclass(frozen=True, eq=False)
class Line:
    """Points for a joint state of one or more features, against the first class."""

    features: tuple[str, ...]
    states: tuple[str, ...]
    points: FloatArray
    count: float | None
    evidence: FloatArray | None


@dataclass(frozen=True, eq=False)
class Scorecard:
    """All lines, with what they start from."""

    target: str
    classes: tuple[str, ...]
    start: FloatArray
    lines: tuple[Line, ...]
    doubt: float
    background: FloatArray | None
    costs: FloatArray | None = None

    @property
    def width(self) -> int:
        """Most features of a line."""
        return max((len(line.features) for line in self.lines), default=1)


def scorecard(
    model: ScoreModel,
    state_log_odds: Sequence[FloatArray],
    codes: NDArray[np.integer] | None = None,
    labels: NDArray[np.integer] | None = None,
) -> Scorecard:
    """The card of a model.

    Parameters
    ----------
    model
        With one member: an average has no points.
    state_log_odds
        For each feature log P(state | class), (n_states, n_classes), by the network.
    codes, labels
        Rows to count: codes of the features (of those that are missing, too), and of the classes.
    """
    if len(model.members) != 1:
        raise InputError(
            f"the classifier averages {len(model.members)} networks, and the points of an average "
            "do not add up; export to sql, python or onnx, or fit a classifier with one network"
        )
    member = model.members[0]
    lines = tuple(_lines(model, member, state_log_odds, codes, labels))
    classes = tuple(map(str, model.classes))
    start = member.bias * _FACTOR
    mixture = member.doubt, member.background
    return Scorecard(model.target, classes, start, lines, *mixture, model.costs)


def _lines(
    model: ScoreModel,
    member: Member,
    state_log_odds: Sequence[FloatArray],
    codes: NDArray[np.integer] | None,
    labels: NDArray[np.integer] | None,
) -> Iterator[Line]:
    for term in member.terms:
        names = tuple(model.features[i].name for i in term.members)
        rows = term_rows(model, term)
        seen = None if codes is None else _table_rows(term, codes)
        for cell in np.ndindex(*term.table.shape[:-1]):
            count, evidence = None, None
            if seen is not None and labels is not None:
                applies = (seen == cell).all(axis=1)
                count = float(applies.sum())
                evidence = _counted_evidence(applies, labels, model.n_classes)
            elif len(cell) == 1:
                evidence = _network_evidence(state_log_odds[term.members[0]], term, cell[0])
            states = tuple(own[row] for own, row in zip(rows, cell, strict=True))
            yield Line(names, states, term.table[cell] * _FACTOR, count, evidence)


def term_rows(model: ScoreModel, term: Term) -> list[list[str]]:
    """Names of the rows of a table along each axis: states, or groups of them."""
    result = []
    for axis, i in enumerate(term.members):
        labels = np.array(model.features[i].labels, dtype=object)
        groups = [labels[term.groups[axis] == row] for row in range(term.table.shape[axis])]
        result.append([_group_name(group.tolist()) for group in groups])
    return result


def _group_name(labels: list[str]) -> str:
    name = name_group(labels)
    return " or ".join(labels) if ELLIPSIS in name else name  # every state must be found


def _table_rows(term: Term, codes: NDArray[np.integer]) -> NDArray[np.intp]:
    """Rows of the table that each row of codes looks up; -1 where a value is asked for."""
    pairs = zip(term.members, term.groups, strict=True)
    found = [np.where(codes[:, i] < 0, -1, groups[codes[:, i]]) for i, groups in pairs]
    return np.column_stack(found)


def _network_evidence(log_shares: FloatArray, term: Term, row: int) -> FloatArray | None:
    """Of the states of one row; none for values that are missing."""
    states = [code for code in np.flatnonzero(term.groups[0] == row) if code < len(log_shares)]
    if not states:
        return None
    logs = np.log(np.exp(log_shares[states]).sum(axis=0))
    return np.asarray(logs[1:] - logs[0])


def _counted_evidence(
    applies: NDArray[np.bool_], labels: NDArray[np.integer], n_classes: int
) -> FloatArray:
    inside = np.bincount(labels[applies], minlength=n_classes) + 0.5
    total = np.bincount(labels, minlength=n_classes) + 1.0
    logs = np.log(inside / total)
    return np.asarray(logs[1:] - logs[0])


def to_csv(card: Scorecard) -> str:
    """One line per state, with full precision; the first holds what the sum starts from."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    others = card.classes[1:]
    places = range(1, card.width + 1)
    writer.writerow(
        [
            *(f"{what} {place}" for place in places for what in ("feature", "state")),
            *(f"points for {label}" for label in others),
            "count",
            *(f"weight of evidence for {label}" for label in others),
        ]
    )
    blank = [""] * (2 * card.width)
    rest = [""] * (1 + len(others))
    writer.writerow(["(start)", *blank[1:], *map(repr, card.start.tolist()), *rest])
    if card.background is not None:
        writer.writerow(["(doubt)", repr(card.doubt), *blank[2:], *[""] * len(others), *rest])
        for label, share in zip(card.classes, card.background.tolist(), strict=True):
            cells = [f"(share of {label})", repr(share), *blank[2:], *[""] * len(others), *rest]
            writer.writerow(cells)
    for line in card.lines:
        pairs = [text for pair in zip(line.features, line.states, strict=True) for text in pair]
        evidence = [""] * len(others) if line.evidence is None else line.evidence.tolist()
        writer.writerow(
            [
                *pairs,
                *blank[len(pairs) :],
                *map(repr, line.points.tolist()),
                "" if line.count is None else f"{line.count:g}",
                *evidence,
            ]
        )
    return text.getvalue()


def to_html(card: Scorecard) -> str:
    """One page with a table per feature or group of features; light and dark, no scripts."""
    blocks: dict[tuple[str, ...], list[Line]] = {}
    for line in card.lines:
        blocks.setdefault(line.features, []).append(line)
    spread = {names: max(np.ptp(_column(ls), axis=0)) for names, ls in blocks.items()}
    ordered = sorted(blocks, key=lambda names: -spread[names])
    tables = "\n".join(_html_table(card, names, blocks[names]) for names in ordered)
    title = f"Scorecard for {escape(card.target)}"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere; }}
table {{ border-collapse: collapse; margin: 0 0 2rem; width: 100%; }}
caption {{ text-align: left; font-weight: 600; }}
th, td {{ text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #8886; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
</style></head><body>
<h1>{title}</h1>
{_html_start(card)}
{tables}
</body></html>
"""


def _column(lines: Sequence[Line]) -> FloatArray:
    return np.array([line.points for line in lines])


def _html_start(card: Scorecard) -> str:
    first = escape(card.classes[0])
    starts = "".join(
        f"<li>{escape(label)}: {_points(value)}</li>"
        for label, value in zip(card.classes[1:], card.start.tolist(), strict=True)
    )
    doubt = ""
    if card.background is not None:
        shares = ", ".join(
            f"{escape(label)} {share:.4g}"
            for label, share in zip(card.classes, card.background.tolist(), strict=True)
        )
        doubt = (
            f"<p>Then mix: P = (1 - {card.doubt:.4g}) P + {card.doubt:.4g} times the share of the "
            f"class ({shares}).</p>"
        )
    return (
        f"<p>Points speak for a class against <b>{first}</b>. Start with</p><ul>{starts}</ul>"
        f"<p>and add the points of one line from every table. {POINTS_TO_DOUBLE:g} points double "
        f"the odds: odds = 2<sup>points / {POINTS_TO_DOUBLE:g}</sup>, P = odds / (1 + sum of the "
        f"odds of all classes but {first}). Points are rounded here; the CSV file of this card "
        f"has all digits.</p>{doubt}{_html_decision(card)}"
    )


def _html_decision(card: Scorecard) -> str:
    """What to do with the probabilities where errors cost differently."""
    if card.costs is None:
        return ""
    sums = [
        " + ".join(
            f"{cost:g} P({escape(label)})"
            for label, cost in zip(card.classes, costs, strict=True)
            if cost
        )
        for costs in card.costs.T.tolist()
    ]
    lines = "".join(
        f"<li>{escape(label)}: {text or '0'}</li>"
        for label, text in zip(card.classes, sums, strict=True)
    )
    return f"<p>Decide for the class of least expected cost:</p><ul>{lines}</ul>"


def _html_table(card: Scorecard, names: Sequence[str], lines: Sequence[Line]) -> str:
    others = [escape(label) for label in card.classes[1:]]
    with_count = lines[0].count is not None
    with_evidence = any(line.evidence is not None for line in lines)
    head = [f"<th>{escape(name)}</th>" for name in names]
    head += [f'<th class="number">points for {label}</th>' for label in others]
    if with_count:
        head.append('<th class="number">rows</th>')
    if with_evidence:
        head += [f'<th class="number">evidence for {label}</th>' for label in others]
    rows = []
    for line in lines:
        cells = [f"<td>{escape(state)}</td>" for state in line.states]
        cells += [f'<td class="number">{_points(value)}</td>' for value in line.points.tolist()]
        if with_count:
            cells.append(f'<td class="number">{line.count:g}</td>')
        if with_evidence:
            blank = [None] * len(others)
            found = blank if line.evidence is None else line.evidence.tolist()
            texts = ["" if value is None else f"{value:+.2f}" for value in found]
            cells += [f'<td class="number">{text}</td>' for text in texts]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    caption = escape(" and ".join(names))
    return (
        f"<table><caption>{caption}</caption><thead><tr>{''.join(head)}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _points(value: float) -> str:
    return f"{round(value, _DIGITS) + 0.0:+.{_DIGITS}f}"
