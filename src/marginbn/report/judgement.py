"""The section that measures: beside simpler methods, by class, confusion, calibration."""

from __future__ import annotations

from marginbn.classifiers.measures import Quality
from marginbn.report import charts
from marginbn.report.charts import Child, Markup, element, join
from marginbn.report.comparison import Comparison, MethodAccuracy
from marginbn.report.contents import Report
from marginbn.report.opening import percent
from marginbn.solvers.result import PROOF_TOLERANCE

_MOST_CONFUSED = 30
"""Classes up to which the table of confusion is shown."""

_MISTAKES = 8
"""Most frequent mistakes that are listed."""


def write_quality(report: Report) -> Markup:
    """All measures, or why there are none."""
    if report.comparison is not None:
        return _write_measured(report, report.comparison)
    if report.seen is None:
        return element(
            "p",
            "No labelled rows were given. With X and y, or --data TABLE, the report measures "
            "accuracy, calibration and more beside simpler methods.",
            class_="note",
        )
    return join(
        element(
            "p",
            "Nothing was measured on rows that were not learned from: cross-validation was left "
            f"out. The measures below are those of the {report.seen.n_rows} rows given, from which "
            "the classifier may have learned; on new rows it is usually worse.",
            class_="note",
        ),
        _write_details(report.seen),
    )


def _write_measured(report: Report, comparison: Comparison) -> Markup:
    rows = [(m.name, m.accuracy, m.half_width) for m in comparison.methods]
    quality = comparison.own.quality
    return join(
        element("figure", charts.draw_intervals(rows), class_="narrow"),
        _methods_table(comparison),
        element("p", f"{comparison.protocol} {_explain_columns(report)}", class_="small"),
        Markup("") if quality is None else _write_details(quality),
    )


def _methods_table(comparison: Comparison) -> Markup:
    own = comparison.own
    header: list[Child] = ["method", "accuracy", "balanced", "AUC", "log loss", "Brier"]
    header += ["lead", "p"]
    rows: list[list[Child]] = [
        [
            method.name,
            f"{percent(method.accuracy)} ± {100 * method.half_width:.2f}",
            *_numbers(method.quality),
            *_lead(own, method),
        ]
        for method in comparison.methods
    ]
    return charts.table(header, rows, class_="numbers methods")


def _numbers(quality: Quality | None) -> tuple[str, ...]:
    if quality is None:
        return ("",) * 4
    return (
        percent(quality.balanced_accuracy),
        _decimals(quality.auc),
        _decimals(quality.log_loss),
        _decimals(quality.brier),
    )


def _lead(own: MethodAccuracy, other: MethodAccuracy) -> tuple[str, str]:
    """Difference in points of per cent, and the p value of "this one is better"."""
    if other.p_value is None:
        return "", ""
    p_value = f"{other.p_value:.3f}" if other.p_value >= 0.001 else "< 0.001"
    return f"{100 * (own.accuracy - other.accuracy):+.2f}", p_value


def _explain_columns(report: Report) -> str:
    text = (
        "Balanced accuracy is the mean recall of the classes; AUC is the mean over the classes, "
        "each against the rest; small log loss and Brier score are good. Lead is the accuracy of "
        "this classifier minus that of the method, in points of per cent; a small p speaks for a "
        "true lead."
    )
    methods = () if report.comparison is None else report.comparison.methods
    gap = max((method.max_gap for method in methods), default=0.0)
    if gap > PROOF_TOLERANCE:
        text += f" The searches were left with a gap of up to {percent(gap)}."
    return text


def _write_details(quality: Quality) -> Markup:
    """By class, confusion and calibration of this classifier."""
    return join(
        element(
            "div",
            element("div", element("h3", "Class by class"), _by_class(quality)),
            element(
                "div",
                element("h3", "Calibration"),
                element(
                    "figure",
                    charts.draw_calibration(quality.calibration),
                    element(
                        "figcaption",
                        "Predictions of about the same probability, and how often they are right; "
                        "on the diagonal both agree. Columns count the rows, whiskers are 95 % "
                        f"intervals. Mean distance {percent(quality.calibration_error)}.",
                    ),
                ),
            ),
            class_="pair",
        ),
        element("h3", "Confusion"),
        _confusion(quality),
    )


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
    return join(
        charts.table(header, rows, class_="numbers"),
        element(
            "p",
            "Recall: how many of the class are found. Precision: how many of those called so are.",
            class_="small",
        ),
    )


def _confusion(quality: Quality) -> Markup:
    mistakes = _mistakes(quality)
    if len(quality.classes) > _MOST_CONFUSED:
        return mistakes
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
    return join(
        element("div", table, class_="scroll", tabindex="0", role="group", aria_label="Confusion"),
        mistakes,
    )


def _mistakes(quality: Quality) -> Markup:
    """The most frequent mistakes in words; two classes need none."""
    labels = [c.label for c in quality.classes]
    cells = [
        (n, labels[i], labels[j])
        for i, row in enumerate(quality.confusion)
        for j, n in enumerate(row)
        if i != j and n
    ]
    if len(labels) < 3 or not cells:
        return Markup("")
    cells.sort(key=lambda cell: -cell[0])
    items = [
        join(charts.name(a), " taken for ", charts.name(b), f" ({n})")
        for n, a, b in cells[:_MISTAKES]
    ]
    listed = join(*(join(", " if k else "", item) for k, item in enumerate(items)))
    return element("p", "Most frequent mistakes: ", listed, ".", class_="small")


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _decimals(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
