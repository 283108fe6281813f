"""The parts of the page below its first screen, but for the measures."""

from __future__ import annotations

from marginbn.data.inspection import DataReport
from marginbn.network.wording import counted
from marginbn.report import charts
from marginbn.report.charts import Child, Markup, element, join
from marginbn.report.contents import Report
from marginbn.report.opening import describe_arcs
from marginbn.report.summary import facts, settings


def write_case() -> Markup:
    """The place for the live part; the scripts fill it."""
    return join(
        element(
            "p",
            "Type or choose what you know of a case. The probabilities follow at once; what you "
            "leave out is averaged over. The thin mark on a bar is the probability with "
            "nothing known.",
        ),
        element(
            "noscript",
            element("p", "This part needs JavaScript, which is switched off.", class_="note"),
        ),
        element("div", id="explore"),
    )


def write_effects(report: Report) -> Markup:
    """The places for the ranking and the curves; the scripts draw them."""
    if report.effects is None:
        return element("p", "There is nothing to show: one class, or too large to compute.")
    return join(
        element(
            "p",
            "The probability of a class if one column is known and nothing else. The dashed line "
            "is the probability with nothing known. The band is the 95 % interval of the share in "
            "the rows; grey columns show where the values lie.",
        ),
        element("div", id="effects-list"),
    )


def write_network(report: Report) -> Markup:
    """The place for the picture, and for the table of the column that is chosen."""
    text = element("p", *describe_arcs(report))
    if not any(p for family in report.network.structure.parents[1:] for p in family):
        return text
    hint = "Choose a column to see its table. The class is left out of the picture."
    return join(
        text,
        element("p", hint, class_="small"),
        element("div", id="picture", class_="scroll"),
        element("div", id="inspector", aria_live="polite"),
    )


def write_details(report: Report) -> Markup:
    """Data and settings: all that is needed to learn the same model again, folded."""
    classifier = report.classifier
    learned: list[tuple[str, Child]] = [
        (label, charts.name(text)) for label, text in facts(classifier)
    ]
    chosen: list[tuple[str, Child]] = [
        ("estimator", type(classifier).__name__),
        *(
            (key, charts.name(f"{value:.6g}" if isinstance(value, float) else str(value)))
            for key, value in settings(classifier).items()
        ),
    ]
    parts = [
        _fold("What was learned; scores are in nats", charts.definitions(learned, class_="facts")),
        _fold("Settings", charts.definitions(chosen, class_="facts")),
    ]
    if report.data is not None:
        parts.append(
            _fold(f"All {counted(len(report.data.columns), 'column')}", _data(report.data))
        )
    return join(*parts)


def _fold(title: str, *children: Markup) -> Markup:
    return element("details", element("summary", title), *children)


def _data(data: DataReport) -> Markup:
    """What became of each column, and of the table."""
    header: list[Child] = ["column", "kind", "missing", "distinct", "states", "remark"]
    rows: list[list[Child]] = [
        [
            charts.name(c.name),
            c.kind,
            str(c.n_missing),
            str(c.n_distinct),
            str(c.n_states),
            c.remark,
        ]
        for c in data.columns
    ]
    notes = [element("li", note) for note in data.notes]
    return join(charts.table(header, rows, class_="numbers"), element("ul", *notes))
