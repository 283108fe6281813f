"""What a report says, gathered before a line of HTML is written; then each part of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marginbn import __version__
from marginbn.classifiers import BaseBNClassifier
from marginbn.data.labelled import LabelledTable
from marginbn.exceptions import ProblemTooLargeError
from marginbn.export.graph_text import network_to_svg
from marginbn.network import explain, wording
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import counted, number, seconds
from marginbn.report import charts
from marginbn.report.charts import Child, Markup, element, join
from marginbn.report.comparison import Comparison, MethodAccuracy
from marginbn.report.summary import (
    choice_record,
    claims_optimality,
    facts,
    is_proved,
    settings,
    verdict,
)
from marginbn.solvers.result import PROOF_TOLERANCE, read_trace

N_SAMPLES = 6
"""Rows with the smallest margins that are shown."""

_MOST_BARS = 20
_BARS_PER_SAMPLE = 7


@dataclass(frozen=True, eq=False)
class Contributions:
    """What decides on some rows: importance of the variables, and the closest decisions."""

    importance: explain.MeanContributions
    closest: tuple[explain.Explanation, ...]
    source: str


@dataclass(frozen=True, eq=False)
class Report:
    """Everything on the page.

    Parameters
    ----------
    classifier
        Fitted.
    title
        Heading of the page.
    information
        Mutual information of each variable with the class, in nats (0 for the class itself);
        None where it is too much to compute.
    comparison
        Accuracy next to other methods, None without rows.
    contributions
        None without rows, or with a single class.
    notes
        What could not be done, in sentences.
    """

    classifier: BaseBNClassifier
    title: str
    information: tuple[float, ...] | None = None
    comparison: Comparison | None = None
    contributions: Contributions | None = None
    notes: tuple[str, ...] = ()

    @property
    def network(self) -> BayesianNetwork:
        """The network of the classifier."""
        return self.classifier.network_


def gather_contributions(
    classifier: BaseBNClassifier, rows: LabelledTable, source: str
) -> Contributions | None:
    """Contributions on some rows; None where there is only one class to argue for."""
    if len(classifier.classes_) < 2:
        return None
    importance = explain.mean_contributions(classifier, rows.features, rows.labels)
    n = min(N_SAMPLES, rows.n_rows)
    closest = explain.smallest_margins(classifier, rows.features, rows.labels, n)
    return Contributions(importance, tuple(closest), source)


def class_information(network: BayesianNetwork) -> tuple[float, ...] | None:
    """Mutual information of every variable with the class under the network, in nats.

    I(C; X) = sum_{c, x} P(c, x) log (P(c, x) / (P(c) P(x))): how much one learns of the class from
    X alone.
    """
    try:
        joints = [network.posterior([0, i]) for i in range(1, network.n_variables)]
    except ProblemTooLargeError:
        return None
    return (0.0, *(_information(joint) for joint in joints))


def _information(joint: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    positive = joint > 0
    ratio = np.log(joint[positive] / independent[positive])
    return max(0.0, float((joint[positive] * ratio).sum()))


def evidence_of(explanation: explain.Explanation, network: BayesianNetwork) -> list[list[int]]:
    """The known features of an explained row as [variable, state], for the page to set."""
    parts = [(network.variable_index(p.variable), p.state) for p in explanation.contributions]
    return [[i, network.variables[i].states.index(s)] for i, s in parts if i > 0 and s is not None]


def order_by_information(information: Sequence[float] | None, n_variables: int) -> list[int]:
    """Features, the most informative first; in the order of the table where that is unknown."""
    features = range(1, n_variables)
    if information is None:
        return list(features)
    return sorted(features, key=lambda i: (-information[i], i))


def write_header(report: Report) -> Markup:
    """Title, verdict, and the numbers one looks for first."""
    result, sentence = report.classifier.result_, verdict(report.classifier)
    is_claimed = claims_optimality(report.classifier)
    kind, sign = ("proven", "✓") if is_proved(report.classifier) else ("open", "≈")
    if not is_claimed or (kind == "proven" and not sentence.startswith(("Optimal", "Verified"))):
        kind, sign = "fixed", "•"  # there was nothing to search, or nothing is claimed
    mark = element("span", sign, class_="mark", aria_hidden="true")
    tiles = _choice_tiles(report.classifier)
    if is_claimed:
        tiles = [
            ("objective", number(result.objective)),
            ("bound", number(result.bound)),
            ("gap", percent(result.gap)),
            ("search", seconds(result.seconds)),
        ]
    if report.comparison is not None:
        own = report.comparison.methods[0]
        tiles.append(("accuracy", f"{percent(own.accuracy)} ± {100 * own.half_width:.2f}"))
    return element(
        "header",
        element("p", "marginbn report", class_="overline"),
        element("h1", charts.name(report.title)),
        element("p", mark, sentence, class_=f"verdict {kind}"),
        charts.definitions([(label, value) for label, value in tiles], class_="tiles"),
        *(element("p", note, class_="note") for note in report.notes),
    )


def _choice_tiles(classifier: BaseBNClassifier) -> list[tuple[str, str]]:
    """What validation measured of the candidate that was chosen."""
    choice = choice_record(classifier)
    if choice is None:
        return []
    own = [row for row in choice["candidates"] if row["structure"] == choice["chosen"]]
    return [("structure", choice["chosen"])] + [
        pair
        for row in own
        for pair in (
            ("validated log loss", f"{row['log_loss']:.4f}"),
            ("validated accuracy", percent(row["accuracy"])),
            ("calibration error", percent(row["calibration_error"])),
        )
    ]


def write_navigation(sections: Sequence[tuple[str, str]]) -> Markup:
    """Links to the sections."""
    links = [element("a", title, href=f"#{key}") for key, title in sections]
    return element("nav", *links, aria_label="Sections")


def write_explore(report: Report) -> Markup:
    """The place for the live part; the scripts fill it."""
    return join(
        element(
            "p",
            "Choose states you know; the probabilities of all other variables follow at once. "
            "They are exact: whatever you leave open is summed out. The thin mark on a bar is the "
            "probability before anything was chosen.",
        ),
        *_explain_trained(report.classifier),
        element(
            "noscript",
            element("p", "This part needs JavaScript, which is switched off.", class_="note"),
        ),
        element("div", id="explore"),
    )


def _explain_trained(classifier: BaseBNClassifier) -> list[Markup]:
    """That incomplete rows are better left to the classifier itself."""
    if not hasattr(classifier, "trained_"):
        return []
    text = (
        "The tables of this network are trained for rows of which all features are known; with all "
        "of them chosen, the answer for the class is the classifier's, up to a small share of the "
        "overall class frequencies. With features left open the page sums them out, while the "
        "classifier itself asks a second, generative network about them and is the better judge."
    )
    if len(classifier.trained_) > 1:
        text += " It predicts with an average of networks; this page shows the one to read."
    return [element("p", text, class_="note")]


def write_network(report: Report) -> Markup:
    """The picture, and a place for the table of the variable one points out."""
    n_arcs = len(report.network.structure.arcs)
    n_parameters = report.network.n_parameters
    caption = (
        f"{counted(report.network.n_variables, 'variable')}, {counted(n_arcs, 'arc')}, "
        f"{counted(n_parameters, 'free parameter')}. Choose a variable to see its table."
    )
    return join(
        element(
            "figure",
            element("div", Markup(network_to_svg(report.network)), class_="scroll picture"),
            element("figcaption", caption),
        ),
        element("div", id="inspector", aria_live="polite"),
    )


def write_bound(report: Report) -> tuple[str, Markup]:
    """How the structure came about: heading and content."""
    if claims_optimality(report.classifier):
        return "How the bound closed", _write_trace(report)
    return "How it was chosen", _write_choice(report.classifier)


def _write_choice(classifier: BaseBNClassifier) -> Markup:
    """The candidates side by side, measured on rows that they had not seen."""
    choice = choice_record(classifier)
    if choice is None or not choice["candidates"]:
        return element("p", "There was nothing to choose.")
    header: list[Child] = ["structure", "log loss", "difference ±", "accuracy", "calibration error"]
    rows: list[list[Child]] = [
        [
            f"{row['structure']}{', chosen' if row['structure'] == choice['chosen'] else ''}",
            f"{row['log_loss']:.4f}",
            f"{row['standard_error']:.4f}",
            percent(row["accuracy"]),
            percent(row["calibration_error"]),
        ]
        for row in choice["candidates"]
    ]
    return join(
        element(
            "p",
            "Each candidate was trained on a part of the rows and measured on the others. Small "
            "log loss is good; ± is the standard error of its difference to the best. The "
            "calibration error is how far stated probabilities and shares of right answers "
            "differ. No optimality of the structure is claimed.",
        ),
        charts.table(header, rows, class_="numbers"),
    )


def _write_trace(report: Report) -> Markup:
    """Objective and bound over time."""
    result = report.classifier.result_
    trace = read_trace(report.classifier)
    if len(result.trace) < 2 and result.is_optimal:
        return element("p", f"The answer was found and proven in one step ({result.solver}).")
    return join(
        element(
            "p",
            "The objective is that of the best network found so far, the bound is proven to be "
            "above every allowed network. The best possible lies between the two lines; where they "
            "meet, the search is over. Values are in nats.",
        ),
        element(
            "div",
            element("figure", charts.draw_trace(trace), _legend("objective", "bound")),
            element("figure", charts.draw_gap(trace), _legend("gap")),
            class_="pair",
        ),
    )


def _legend(*kinds: str) -> Markup:
    keys = [element("span", kind, class_=f"key {kind}") for kind in kinds]
    return element("figcaption", *keys)


def write_accuracy(report: Report) -> Markup:
    """Accuracies with intervals, and how they were measured."""
    comparison = report.comparison
    if comparison is None:
        return element(
            "p",
            "No labelled rows were given. With --data TABLE the report measures accuracy beside "
            "naive Bayes and TAN.",
            class_="note",
        )
    rows = [(m.name, m.accuracy, m.half_width) for m in comparison.methods]
    return join(
        element(
            "div",
            element("figure", charts.draw_intervals(rows)),
            _accuracy_table(comparison),
            class_="pair",
        ),
        element("p", f"{comparison.protocol} {_explain_lead(report)}", class_="small"),
    )


def _accuracy_table(comparison: Comparison) -> Markup:
    own = comparison.methods[0]
    rows: list[list[Child]] = [
        [
            method.name,
            f"{percent(method.accuracy)} ± {100 * method.half_width:.2f}",
            *_lead(own, method),
        ]
        for method in comparison.methods
    ]
    return charts.table(["method", "accuracy", "lead", "p"], rows, class_="numbers")


def _lead(own: MethodAccuracy, other: MethodAccuracy) -> tuple[str, str]:
    """Difference in points of per cent, and the p value of "this one is better"."""
    if other.p_value is None:
        return "", ""
    p_value = f"{other.p_value:.3f}" if other.p_value >= 0.001 else "< 0.001"
    return f"{100 * (own.accuracy - other.accuracy):+.2f}", p_value


def _explain_lead(report: Report) -> str:
    text = (
        "Lead is the accuracy of this classifier minus that of the method, in points of per cent; "
        "a small p speaks for a true lead."
    )
    methods = () if report.comparison is None else report.comparison.methods
    gap = max((method.max_gap for method in methods), default=0.0)
    if gap > PROOF_TOLERANCE and claims_optimality(report.classifier):
        text += f" The searches were left with a gap of up to {percent(gap)}."
    return text


def write_contributions(report: Report) -> Markup:
    """Importance, and the closest decisions taken apart; without rows what the network says."""
    if report.contributions is None:
        return _write_information(report)
    contributions = report.contributions
    return join(
        element(
            "p",
            "The log margin of a class against its nearest rival is a sum with one term per "
            "variable. A positive term speaks for the true class, a negative one against it; "
            f"0.69 doubles the odds. Measured on {contributions.source}.",
        ),
        element("h3", "Importance: mean size of the contribution, in nats"),
        _importance(contributions.importance),
        element("h3", "The smallest margins"),
        element(
            "p",
            "Rows decided most narrowly or wrongly, worst first; rows are counted from 0.",
            class_="small",
        ),
        _samples(contributions),
    )


def _importance(importance: explain.MeanContributions) -> Markup:
    pairs = list(zip(importance.variables, importance.mean_absolute, strict=True))
    moving = [pair for pair in pairs if pair[1] > 0] or pairs[:1]
    shown = element("figure", charts.draw_bars(moving[:_MOST_BARS]), class_="narrow")
    header: list[Child] = ["variable", "mean size", "mean, for the true class"]
    rows: list[list[Child]] = [
        [charts.name(variable), f"{size:.4f}", f"{mean:+.4f}"]
        for variable, size, mean in zip(
            importance.variables, importance.mean_absolute, importance.mean, strict=True
        )
    ]
    everything = element(
        "details",
        element("summary", f"All {counted(len(rows), 'variable')} as numbers"),
        charts.table(header, rows, class_="numbers"),
    )
    return join(shown, everything)


def _samples(contributions: Contributions) -> Markup:
    cards = [_sample(place, e) for place, e in enumerate(contributions.closest)]
    return element("div", *cards, class_="samples")


def _sample(place: int, explanation: explain.Explanation) -> Markup:
    shown, rest = explain.split_largest(explanation.contributions, _BARS_PER_SAMPLE)
    bars = [(part.assignment, part.value) for part in shown]
    bars += [
        (what, value) for what, value in explain.sum_rest(rest) if any(part.value for part in rest)
    ]
    wrong = explanation.predicted != explanation.label
    outcome = f"predicted {explanation.predicted}" if wrong else "predicted right"
    return element(
        "article",
        element("h4", f"Row {explanation.row}, true class ", charts.name(str(explanation.label))),
        element(
            "p",
            element("span", outcome, class_="tag wrong" if wrong else "tag right"),
            f" log margin {explanation.log_margin:+.3f} against {explanation.rival}, "
            f"probability of the true class {percent(explanation.probability)}",
            class_="small",
        ),
        charts.draw_signed_bars(bars or [("class", 0.0)]),
        element("button", "Ask about this row", type="button", data_sample=place),
        class_="card",
    )


def _write_information(report: Report) -> Markup:
    """What each feature alone says about the class, which needs no rows."""
    note = element(
        "p",
        "With labelled rows (--data TABLE) this section shows what each variable contributes to "
        "decisions. Without, it shows what one learns about the class on being told a feature "
        "alone: their mutual information under the network, in nats.",
    )
    information = report.information
    if information is None or report.network.n_variables < 2:
        return note
    order = order_by_information(information, report.network.n_variables)[:_MOST_BARS]
    bars = [(report.network.names[i], information[i]) for i in order]
    return join(note, element("figure", charts.draw_bars(bars), class_="narrow"))


def write_tables() -> Markup:
    """The place for the conditional tables; the scripts fill in those that are opened."""
    return join(
        element(
            "p",
            "Each row is a distribution over the columns; strong colours are probable.",
        ),
        element("div", id="tables-list"),
    )


def write_settings(report: Report) -> Markup:
    """Data and settings: whatever one needs to learn the same network again."""
    learned: list[tuple[str, Child]] = [
        ("class", charts.name(report.network.names[0])),
        *((label, charts.name(text)) for label, text in facts(report.classifier)),
    ]
    chosen: list[tuple[str, Child]] = [
        ("estimator", type(report.classifier).__name__),
        *(
            (key, charts.name(_setting(value)))
            for key, value in settings(report.classifier).items()
        ),
        ("marginbn", __version__),
    ]
    return element(
        "div",
        element(
            "div", element("h3", "What was learned"), charts.definitions(learned, class_="facts")
        ),
        element("div", element("h3", "Settings"), charts.definitions(chosen, class_="facts")),
        class_="pair",
    )


def percent(fraction: float) -> str:
    """A fraction in per cent that no line ends in."""
    return wording.percent(fraction).replace(" ", "\N{NO-BREAK SPACE}")


def _setting(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
