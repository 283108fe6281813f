"""The sections of the page below its first screen."""

from __future__ import annotations

from marginbn.classifiers.measures import Quality
from marginbn.data.inspection import DataReport
from marginbn.network import wording
from marginbn.network.wording import counted, share
from marginbn.report import charts
from marginbn.report.charts import Child, Markup, element, join
from marginbn.report.comparison import Comparison
from marginbn.report.contents import Report
from marginbn.report.opening import describe_arcs, percent
from marginbn.report.summary import facts, settings
from marginbn.solvers.result import PROOF_TOLERANCE

_MOST_CONFUSED = 30
"""Classes up to which the table of confusion is shown."""


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


# --- how good it is ---


def write_quality(report: Report) -> Markup:
    """All measures, or why there are none."""
    judged, comparison = report.judged, report.comparison
    parts = []
    if judged is None:
        parts.append(element("p", "Nothing was measured on held-out rows.", class_="note"))
    elif judged.quality is None:
        text = "The model file has the numbers of the first card, and no held-out rows."
        parts.append(element("p", text, class_="note"))
    else:
        parts += _write_details(judged.quality, judged.rows)
    if comparison is not None:
        parts += [
            element("h3", f"Next to simpler methods: {comparison.where}"),
            _methods_table(comparison),
            element("p", f"{comparison.protocol} {_explain_columns(comparison)}", class_="small"),
        ]
    return join(*parts)


def _methods_table(comparison: Comparison) -> Markup:
    header: list[Child] = ["method", "accuracy", "balanced", "AUC", "log loss", "Brier"]
    rows: list[list[Child]] = [
        [
            method.name,
            share(method.accuracy, method.half_width),
            percent(method.quality.balanced_accuracy),
            _decimals(method.quality.auc),
            _decimals(method.quality.log_loss),
            _decimals(method.quality.brier),
        ]
        for method in comparison.methods
    ]
    return charts.table(header, rows, class_="numbers methods")


def _explain_columns(comparison: Comparison) -> str:
    text = (
        "Balanced accuracy is the mean recall of the classes; AUC is the mean over the classes, "
        "each against the rest; small log loss and Brier score are good."
    )
    gap = max((method.max_gap for method in comparison.methods), default=0.0)
    if gap > PROOF_TOLERANCE:
        text += f" The searches were left with a gap of up to {wording.percent(gap)}."
    return text


def _write_details(quality: Quality, rows: str) -> list[Markup]:
    """Threshold or classes, calibration and confusion of this classifier."""
    is_binary = bool(quality.above)
    left = element("div", id="threshold") if is_binary else _by_class(quality)
    caption = (
        "Predictions of about the same probability, and how often they are right: on the diagonal "
        "both agree. Columns count the rows, whiskers are 95 % intervals. Their mean "
        f"distance is the calibration error, {share(quality.calibration_error)}."
    )
    figure = element(
        "figure", charts.draw_calibration(quality.calibration), element("figcaption", caption)
    )
    numbers = (
        f"Measured on {rows}: log loss {quality.log_loss:.3f}, Brier score {quality.brier:.3f}, "
        f"AUC {_decimals(quality.auc)}, balanced accuracy {percent(quality.balanced_accuracy)}."
    )
    right = element("div", element("h3", "Are its probabilities right?"), figure)
    parts = [element("p", numbers), element("div", left, right, class_="pair")]
    if not is_binary and len(quality.classes) <= _MOST_CONFUSED:
        parts += [element("h3", "Confusion"), _confusion(quality)]
    return parts


def _by_class(quality: Quality) -> Markup:
    rows: list[list[Child]] = [
        [
            charts.name(c.label),
            str(c.n_rows),
            _share(c.recall),
            _share(c.precision),
            _decimals(c.auc),
        ]
        for c in quality.classes
    ]
    header: list[Child] = ["class", "rows", "recall", "precision", "AUC"]
    words = "Recall: share of the class that is found. Precision: share of its predictions."
    return element(
        "div",
        element("h3", "Class by class"),
        charts.table(header, rows, class_="numbers"),
        element("p", words, class_="small"),
    )


def _confusion(quality: Quality) -> Markup:
    names = [charts.name(c.label) for c in quality.classes]
    header: list[Child] = ["true \\ predicted", *names]
    body = []
    for i, (label, counts) in enumerate(zip(names, quality.confusion, strict=True)):
        total = max(sum(counts), 1)
        cells = [
            element(
                "td",
                str(n),
                class_="right" if i == j else None,
                style=f"--p:{n / total:.3f}",
            )
            for j, n in enumerate(counts)
        ]
        body.append(element("tr", element("th", label, scope="row"), *cells))
    head = element("tr", *(element("th", cell, scope="col") for cell in header))
    table = element(
        "table", element("thead", head), element("tbody", *body), class_="heat confusion"
    )
    return element(
        "div", table, class_="scroll", tabindex="0", role="group", aria_label="Confusion"
    )


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _decimals(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


# --- what it is ---


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
