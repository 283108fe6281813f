"""The parts of the page below its first screen, but for the measures."""

from __future__ import annotations

from collections.abc import Sequence

from marginbn import __version__
from marginbn.data.inspection import DataReport
from marginbn.export.graph_text import network_to_svg
from marginbn.network import explain
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import counted
from marginbn.report import charts
from marginbn.report.charts import Child, Markup, element, join
from marginbn.report.contents import Contributions, Report
from marginbn.report.opening import percent
from marginbn.report.summary import facts, settings
from marginbn.solvers.result import read_trace

_MOST_BARS = 20
_BARS_PER_SAMPLE = 7
_FEW_COLUMNS = 12


def evidence_of(explanation: explain.Explanation, network: BayesianNetwork) -> list[list[int]]:
    """The known features of an explained row as [variable, state], for the page to set."""
    parts = [(network.variable_index(p.variable), p.state) for p in explanation.contributions]
    return [[i, network.variables[i].states.index(s)] for i, s in parts if i > 0 and s is not None]


def write_navigation(sections: Sequence[tuple[str, str]]) -> Markup:
    """Links to the sections."""
    links = [element("a", title, href=f"#{key}") for key, title in sections]
    return element("nav", *links, aria_label="Sections")


def write_explore(report: Report) -> Markup:
    """The place for the live part; the scripts fill it."""
    return join(
        element(
            "p",
            "Type or choose what you know of a case; the probabilities of everything else follow "
            "at once. They are exact: whatever you leave open is summed out. The thin mark on a "
            "bar is the probability before anything was chosen.",
        ),
        element(
            "noscript",
            element("p", "This part needs JavaScript, which is switched off.", class_="note"),
        ),
        element("div", id="explore"),
        element("div", id="case-sheet", aria_hidden="true"),
    )


def write_network(report: Report) -> Markup:
    """The place for the picture, and for the table of the variable one points out."""
    network = report.network
    caption = (
        f"{counted(network.n_variables, 'variable')}, "
        f"{counted(len(network.structure.arcs), 'arc')}, "
        f"{counted(network.n_parameters, 'free parameter')}. "
        "Press a state to choose it, a name to see its table. Drag to move; pinch, Ctrl + wheel, "
        "the buttons or the keys + and - zoom."
    )
    return join(
        element(
            "figure",
            element("div", id="picture"),
            element("noscript", Markup(network_to_svg(network))),
            element("figcaption", caption),
        ),
        element("div", id="inspector", aria_live="polite"),
    )


def write_effects(report: Report) -> Markup:
    """The place for the curves; the scripts draw them."""
    if report.effects is None:
        return element("p", "There is nothing to show: one class, or too large to compute.")
    has_rows = report.effects[0].counts is not None if report.effects else False
    text = (
        "Told one feature and nothing else, the classifier moves the log odds of a class by so "
        "much: above zero speaks for it, below against it; 0.69 doubles the odds. All features "
        "have the same scale."
    )
    if has_rows:
        text += (
            " The band holds the middle 95 % of what counting says when the rows are drawn again; "
            "grey columns, or the numbers at the end, count the rows. Where the line leaves the "
            "band, the classifier weighs the feature otherwise than counting it alone would."
        )
    return join(element("p", text), element("div", id="effects-list"))


def write_bound(report: Report) -> Markup:
    """Objective and bound over time."""
    result = report.classifier.result_
    if result is None:
        return element("p", "There was only one structure, so nothing was searched.")
    trace = read_trace(result)
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
    if information is None or not report.order:
        return note
    bars = [(report.network.names[i], information[i]) for i in report.order[:_MOST_BARS]]
    return join(note, element("figure", charts.draw_bars(bars), class_="narrow"))


def write_data(report: Report) -> Markup:
    """What the rows given hold, and what a fit makes of them."""
    if report.data is None:
        return element("p", "No rows were given, so there are none to look at.", class_="note")
    data = report.data
    notes = [element("li", f"{note}.") for note in data.notes]
    return join(
        element(
            "p",
            f"{counted(data.n_rows, 'row')}, {counted(len(data.columns), 'feature column')}"
            + (
                f"; {counted(data.n_without_class, 'row')} without a class"
                * bool(data.n_without_class)
            )
            + f". Naive Bayes would have {counted(data.n_parameters, 'free parameter')}, a network "
            f"with one more parent per feature at most {data.n_parameters_tree}.",
        ),
        element("ul", *notes, class_="notes") if notes else element("p", "Nothing gives pause."),
        element("div", _class_balance(data), _policies(data), class_="pair"),
        _columns(data),
    )


def _class_balance(data: DataReport) -> Markup:
    assert data.target is not None  # this page is about a classifier
    total = max(sum(data.classes.values()), 1)
    largest = sorted(data.classes.items(), key=lambda item: -item[1])
    rows: list[list[Child]] = [
        [charts.name(str(label)), str(n), percent(n / total, 1)] for label, n in largest
    ]
    header: list[Child] = [charts.name(data.target), "rows", "share"]
    return element("div", element("h3", "Classes"), charts.table(header, rows, class_="numbers"))


def _policies(data: DataReport) -> Markup:
    rows: list[list[Child]] = [
        [
            element("code", f"missing={name!r}"),
            str(policy.n_rows_lost),
            join(*(join(" ", charts.name(str(c))) for c in policy.lost_classes)) or "none",
        ]
        for name, policy in data.policies.items()
    ]
    header: list[Child] = ["missing values", "rows lost", "classes lost"]
    return element(
        "div",
        element("h3", "What missing values cost"),
        charts.table(header, rows, class_="numbers"),
    )


def _columns(data: DataReport) -> Markup:
    header: list[Child] = ["column", "kind", "missing", "distinct", "states", "remark"]
    rows: list[list[Child]] = [
        [
            charts.name(c.name),
            c.kind,
            str(c.n_missing),
            str(c.n_distinct),
            str(c.n_states),
            element("span", c.remark, class_="remark"),
        ]
        for c in data.columns
    ]
    return element(
        "details",
        element("summary", f"All {counted(len(rows), 'column')}"),
        charts.table(header, rows, class_="numbers"),
        open="" if len(rows) <= _FEW_COLUMNS else None,
    )


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


def _setting(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
