"""The first screen: where the model comes from, what to look out for, how good it is, what it is,
and what decides.
"""

from __future__ import annotations

from datetime import datetime

import numpy as np

from marginbn import __version__
from marginbn.classifiers.measures import ClassQuality, Quality
from marginbn.classifiers.model_file import provenance_of
from marginbn.network import wording
from marginbn.network.wording import counted
from marginbn.report import charts
from marginbn.report.charts import Child, Markup, element, join
from marginbn.report.comparison import Judged
from marginbn.report.contents import GIVES_AWAY, Report
from marginbn.report.effects import Effect, Group, group_states, is_weighted
from marginbn.report.summary import caution, verdict

DECIDING = 3
"""Features that the page lists as those that decide most."""

_SHOWN_WARNINGS = 4
"""Warnings that are open on the page; the others fold out."""

_WELL_CALIBRATED, _FAIRLY_CALIBRATED = 0.03, 0.08
"""Calibration errors up to which probabilities are called reliable, and from which only their order
is to be used.
"""

_HOW_TO_MEASURE = (
    "Give labelled rows and a number of folds (n_folds=5; --data TABLE --folds 5), or test rows "
    "(X_test, y_test; --test TABLE)."
)
_RARELY_FOUND = 0.6
"""A class of which less is found is named."""


def write_header(report: Report) -> Markup:
    """Title and origin, warnings, and three cards."""
    kind, sign, lines = quality_card(report)
    mark = element("span", sign, class_="mark", aria_hidden="true")
    first, *others = lines
    quality = [
        element("p", mark, element("span", first), class_="verdict"),
        *(element("p", line) for line in others),
    ]
    return element(
        "header",
        element("h1", charts.name(report.title)),
        element("p", *origin(report), class_="origin"),
        *_write_warnings(report.warnings()),
        element(
            "div",
            _card("How good is it?", *quality, kind=kind),
            _card("What kind of model is this?", _write_model(report)),
            _card("What decides most", *_write_deciding(report)),
            class_="opening",
        ),
    )


def _card(question: str, *children: Markup, kind: str = "plain") -> Markup:
    return element("section", element("h2", question), *children, class_=f"card {kind}")


def origin(report: Report) -> list[Child]:
    """Class, data, rows, date and version, with dots between them."""
    classifier, about = report.classifier, provenance_of(report.classifier)
    n_rows = classifier.n_samples_ + classifier.n_dropped_
    columns = counted(len(classifier.coding_.columns), "column")
    parts: list[Child] = [join("class ", charts.name(report.network.names[0]))]
    if about.data_name:
        parts.append(join("data ", charts.name(about.data_name)))
    elif about.data_sha256 is not None:
        parts.append(f"data sha256 {about.data_sha256[:8]}")
    parts.append(f"{counted(n_rows, 'row')}, {columns}")
    if about.created is not None:
        day = datetime.fromisoformat(about.created)
        parts.append(f"learned {day.day} {day:%B %Y}")
    parts.append(f"marginbn {__version__}")
    return [piece for part in parts for piece in (" · ", part)][1:]


def _write_warnings(notes: list[str]) -> list[Markup]:
    if not notes:
        return []
    items = [element("li", f"{note[:1].upper()}{note[1:]}.") for note in notes]
    kind = "bad" if any(GIVES_AWAY in note for note in notes) else "open"
    parts = [element("ul", *items[:_SHOWN_WARNINGS])]
    if len(items) > _SHOWN_WARNINGS:
        summary = element("summary", f"{len(items) - _SHOWN_WARNINGS} more")
        parts.append(element("details", summary, element("ul", *items[_SHOWN_WARNINGS:])))
    return [
        element(
            "section", element("h2", "Look at this first"), *parts, class_=f"card warnings {kind}"
        )
    ]


# --- how good it is ---


def quality_card(report: Report) -> tuple[str, str, list[Child]]:
    """Kind (good, open, bad or plain), a sign, and sentences."""
    if report.network.n_classes < 2:
        return "plain", "•", ["There is only one class: every answer is the same."]
    judged = report.judged
    if judged is None:
        return "open", "?", ["Not measured on held-out rows.", _HOW_TO_MEASURE]
    half = judged.half_width
    low, high = max(0.0, judged.accuracy - half), min(1.0, judged.accuracy + half)
    sentence = join(
        element("strong", percent(judged.accuracy), class_="figure"),
        f" right on {judged.rows} ({100 * low:.1f} to {percent(high)}).",
    )
    kind, sign, others = _compare(judged)
    if kind == "good" and any(GIVES_AWAY in note for note in report.warnings()):
        kind, sign = "open", "!"
    lines: list[Child] = [sentence, *others]
    if judged.quality is not None:
        lines += _missed(judged.quality)
    if judged.elsewhere:
        share, n_rows = judged.elsewhere["accuracy"] or 0.0, judged.elsewhere["n_rows"] or 0.0
        lines.append(f"On {n_rows:.0f} other rows, fit measured {percent(share)}.")
    return kind, sign, [*lines, *_calibration(judged)]


def _compare(judged: Judged) -> tuple[str, str, list[str]]:
    """Next to the most frequent class and logistic regression."""
    if judged.majority is None:
        return "plain", "•", []
    guess = percent(judged.majority)
    logistic = ""
    if judged.logistic is not None:
        logistic = f" Logistic regression gets {percent(judged.logistic)} right."
    if judged.accuracy <= judged.majority:
        text = f"That is no better than always naming the most frequent class ({guess})."
        return "bad", "!", [text + logistic]
    if judged.accuracy - judged.half_width <= judged.majority:
        text = f"Always naming the most frequent class gives {guess}, not clearly less."
        return "open", "≈", [text + logistic]
    return "good", "✓", [f"Always naming the most frequent class gives {guess}.{logistic}"]


def _missed(quality: Quality) -> list[Child]:
    """The class that is found least, if that is too little."""
    found = [c for c in quality.classes if c.recall is not None]
    worst = min(found, key=_recall, default=None)
    if worst is None or _recall(worst) >= _RARELY_FOUND:
        return []
    share = percent(worst.n_rows / quality.n_rows)
    found_of = f"It finds {percent(_recall(worst))} of the rows of class "
    return [join(found_of, element("b", charts.name(worst.label)), f" ({share} of all).")]


def _recall(quality: ClassQuality) -> float:
    return 1.0 if quality.recall is None else quality.recall


def _calibration(judged: Judged) -> list[Child]:
    error = judged.calibration_error
    if error is None:
        return []
    told = f"The calibration error of its probabilities is {percent(error)}"
    if error > _FAIRLY_CALIBRATED:
        return [f"{told}: use them to rank cases only."]
    return [f"{told}: they are reliable." if error <= _WELL_CALIBRATED else f"{told}."]


# --- what it is ---


def _write_model(report: Report) -> Markup:
    """Kind of model, what is proved, what is trained, from how many rows."""
    classifier = report.classifier
    rows, lost = counted(classifier.n_samples_, "row"), classifier.n_dropped_
    learned = f"Learned from {'' if lost else 'all '}{rows}"
    learned += f"; {lost} left out because of missing values." if lost else "."
    if is_weighted(classifier):
        learned += (
            " They are weighted: probabilities and numbers of rows on this page are those of the "
            "weighted rows, except for the measured quality."
        )
    pairs: list[tuple[str, Child]] = [
        ("Kind", join("A Bayesian network: ", *describe_arcs(report))),
        ("Structure", _structure(report)),
        ("Probabilities", _probabilities(report)),
        ("Rows", learned),
    ]
    left_out = classifier.preparation_.left_out
    if left_out:
        pairs.append(("Not used", join(*_listed([charts.name(n) for n in left_out]), ".")))
    return charts.definitions(pairs, class_="facts")


def _structure(report: Report) -> str:
    """What is proved, and what a margin is."""
    sentence = verdict(report.classifier)
    if "margin" in sentence:
        sentence += " The margin is the lead of the right class over the others in the rows."
    if report.classifier.evidence_.source == "file":
        sentence += " A certificate (--certificate) checks it."
    return sentence


def describe_arcs(report: Report) -> list[Child]:
    """Which columns the class points at, and how many arcs there are between columns."""
    network = report.network
    parents, target = network.structure.parents, charts.name(network.names[0])
    used = [i for i in range(1, network.n_variables) if network.arities[i] > 1]
    others = [i for i in used if 0 not in parents[i]]
    between = sum(len([p for p in family if p]) for family in parents[1:])
    arcs = f"; {counted(between, 'arc')} between columns." if between else "."
    if not others and not parents[0]:
        return [target, f" points at every column{arcs}"]
    words: list[Child] = [target, f" points at {len(used) - len(others)} of "]
    words.append(f"{counted(len(used), 'column')}{arcs}")
    if parents[0]:
        words += [" ", *_listed([charts.name(network.names[p]) for p in parents[0]])]
        words += [" point at ", target, "."]
    return words


def _listed(names: list[Markup]) -> list[Child]:
    return [piece for name in names for piece in (", ", name)][1:]


def _probabilities(report: Report) -> str:
    """Trained or counted, and how the answer for a case comes about."""
    model = report.classifier.class_model_
    if model is None:
        counted_text = "Counted in the rows. The network averages over whatever is not known. "
        return f"{counted_text}{caution(report.classifier)}".rstrip()
    data = "weighted data" if is_weighted(report.classifier) else "data"
    return (
        f"Trained on this structure, {model.nearness}. With one column known, the answer is the "
        f"share in the {data}; with all columns known, the trained model; in between, a mean of "
        "the two."
    )


# --- what decides ---


def _write_deciding(report: Report) -> list[Markup]:
    """The features that move the probability most, and which way."""
    features = report.order[:DECIDING]
    if not features or report.effects is None:
        text = "There is nothing to distinguish." if not features else "Too large to compute."
        return [element("p", text)]
    items = [
        element("li", element("b", charts.name(report.network.names[i])), *_ways(report, i))
        for i in features
    ]
    target, of_class = report.network.variables[0], Markup("")
    if len(target.states) == 2:
        of_class = join(" of ", charts.name(target.name), " = ", charts.name(target.states[1]))
    words = join("Probability", of_class, " if you know that alone.")
    return [element("ol", *items, class_="deciding"), element("p", words, class_="small")]


def _ways(report: Report, i: int) -> list[Markup]:
    """The groups of values with the largest and the smallest probability."""
    assert report.effects is not None
    effect, classes = report.effects[i - 1], report.network.variables[0].states
    found = []
    for label, c, share in telling(effect, groups_of(report, i)):
        of = [] if len(classes) == 2 else [" for ", charts.name(classes[c])]
        text = join(charts.name(label), ": ", element("b", percent(share)), *of)
        found.append(element("span", text, class_="way"))
    return found


def groups_of(report: Report, i: int) -> list[Group]:
    """The lines of a feature's card."""
    states, coding = report.network.variables[i].states, report.classifier.coding_.columns[i - 1]
    shares = np.ones(len(states))
    if report.effects is not None:
        shares = report.effects[i - 1].joint.sum(axis=0)
    return group_states(states, shares, len(coding.cuts) + 1 if coding.kind == "numeric" else 0)


def telling(effect: Effect, groups: list[Group]) -> list[tuple[str, int, float]]:
    """The two most informative groups of values: name, class, and the probability of the class.

    A group counts by how far it moves the probability, times the square root of its share.
    """
    joint = np.stack([effect.joint[:, group["states"]].sum(axis=1) for group in groups], axis=1)
    weight, base = joint.sum(axis=0), effect.joint.sum(axis=1)
    given = joint / np.maximum(weight, 1e-300)
    moved = (given - base[:, np.newaxis]) * np.sqrt(weight)
    if len(base) == 2:
        chosen = [(int(moved[1].argmax()), 1), (int(moved[1].argmin()), 1)]
    else:
        best = [(int(moved[:, g].argmax()), g) for g in range(len(groups))]
        best.sort(key=lambda pair: -float(moved[pair]))
        chosen = [(g, c) for c, g in best[:2]]
    unique = dict.fromkeys(chosen)
    return [(groups[g]["name"], c, float(given[c, g])) for g, c in unique]


def percent(fraction: float) -> str:
    """A fraction in per cent that no line ends in."""
    return wording.share(fraction).replace(" ", "\N{NO-BREAK SPACE}")
