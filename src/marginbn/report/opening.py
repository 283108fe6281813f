"""The first screen: how good the search is, how good the classifier is, what decides, how sure.

The verdict has two halves. A proof of optimality says nothing about how well new rows are
classified, so both stand side by side and neither is ever left out: where nothing was measured, it
says so.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

from marginbn.classifiers.evaluation import told_interval
from marginbn.classifiers.file_parts import Provenance
from marginbn.classifiers.measures import ClassQuality, Quality
from marginbn.network import wording
from marginbn.network.wording import counted, seconds
from marginbn.report import charts
from marginbn.report.charts import Child, Markup, element, join
from marginbn.report.comparison import MAJORITY, Comparison, MethodAccuracy
from marginbn.report.contents import Report
from marginbn.report.effects import Effect, strongest_states
from marginbn.report.summary import (
    is_proved,
    verdict,
)
from marginbn.solvers.result import SolveResult, Status

DECIDING = 3
_NOTE = 120  # characters of a note about the data
_WELL_CALIBRATED, _FAIRLY_CALIBRATED = 0.03, 0.08
_ROWS_PER_PARAMETER = 5

_RARELY_FOUND = 0.6
"""A class of which less is found is named."""


@dataclass(frozen=True)
class Half:
    """One half of the verdict: its kind (good, open, bad or plain), a number and sentences."""

    kind: str
    sign: str
    number: str
    sentences: tuple[Child, ...]
    small: str = ""


def write_header(report: Report) -> Markup:
    """Title, both halves of the verdict, what decides, how sure."""
    return element(
        "header",
        element("p", "marginbn report", class_="overline"),
        element("h1", charts.name(report.title)),
        element(
            "div",
            _write_half("How good is the classifier?", quality_half(report)),
            _write_half("How good is the search?", search_half(report)),
            class_="halves",
        ),
        element("div", _write_deciding(report), _write_sure(report), class_="halves"),
        *(element("p", note, class_="note") for note in report.notes),
    )


def _write_half(question: str, half: Half) -> Markup:
    mark = element("span", half.sign, class_="mark", aria_hidden="true")
    first, *others = half.sentences
    number = element("strong", half.number, class_="figure") if half.number else Markup("")
    return element(
        "section",
        element("h2", question),
        element("p", mark, element("span", number, first), class_="verdict-line"),
        *(element("p", sentence) for sentence in others),
        *([element("p", half.small, class_="small")] if half.small else []),
        class_=f"half {half.kind}",
    )


def search_half(report: Report) -> Half:
    """What is proved of the structure."""
    classifier, result = report.classifier, report.classifier.result_
    sentence = verdict(classifier)
    if result is None:
        return Half("plain", "•", "", (sentence,))
    if not is_proved(classifier):
        as_asked = result.status is Status.GAP_LIMIT and sentence.startswith("Within")
        numbers = _search_numbers(report, result)
        return Half("good" if as_asked else "open", "≈", "", (sentence,), numbers)
    small = f"objective {wording.number(result.objective)} nats, {seconds(result.seconds)}"
    return Half("good", "✓", "", (sentence,), small)


def _search_numbers(report: Report, result: SolveResult) -> str:
    text = (
        f"objective {wording.number(result.objective)}, bound {wording.number(result.bound)}, "
        f"gap {percent(result.gap)}, {seconds(result.seconds)}"
    )
    if report.classifier.evidence_.source == "file":
        text += "; a certificate (--certificate) would prove it"
    return text


def quality_half(report: Report) -> Half:
    """How well rows are classified that were not learned from, or why nobody knows."""
    if len(report.classifier.classes_) < 2:
        return Half("plain", "•", "", ("There is only one class: every answer is the same.",))
    if report.comparison is not None:
        return _measured(report.comparison)
    held_out = (report.classifier.provenance_ or Provenance()).held_out or {}
    if held_out.get("accuracy") is not None:
        n = int(held_out.get("n_rows") or 0)
        sentence = "right on rows held out when it was learned"
        small = ", ".join(
            f"{name.replace('_', ' ')} {value:.4g}"
            for name, value in held_out.items()
            if value is not None and name not in ("accuracy", "n_rows")
        )
        said = f" {sentence}{f' ({n} rows)' if n else ''}, says the model file."
        return Half("plain", "•", percent(float(held_out["accuracy"] or 0), 1), (said,), small)
    if report.seen is not None:
        return Half(
            "open",
            "?",
            "",
            (
                "Not measured on rows it has not seen.",
                "On the rows given, which it may have learned from, "
                f"{percent(report.seen.accuracy, 1)} are right; new rows are usually worse.",
            ),
        )
    return Half(
        "open", "?", "", ("Not measured: no labelled rows were given (X and y, or --data).",)
    )


def _measured(comparison: Comparison) -> Half:
    own, majority = comparison.own, comparison.find(MAJORITY)
    half = half_width(own)
    low, high = max(0.0, own.accuracy - half), min(1.0, own.accuracy + half)
    interval = f"{100 * low:.1f} to {100 * high:.1f} %"
    sentences: list[Child] = [f" of rows it has not seen are classified right ({interval})."]
    kind, sign = "good", "✓"
    if majority is not None:
        guess = percent(majority.accuracy, 1)
        if own.accuracy <= majority.accuracy:
            kind, sign = "bad", "!"
            sentences.append(
                f"That is no better than always naming the most frequent class ({guess})."
            )
        elif not _clearly_above(own, majority.accuracy):
            kind, sign = "open", "≈"
            sentences.append(
                f"Always naming the most frequent class gives {guess}: not clearly worse."
            )
        else:
            sentences.append(f"Always naming the most frequent class gives {guess}.")
    if own.quality is not None:
        sentences += _missed(own.quality)
    small = f"95 % interval; {comparison.where}"
    return Half(kind, sign, percent(own.accuracy, 1), tuple(sentences), small)


def half_width(own: MethodAccuracy) -> float:
    """Of the interval told: over folds or over rows, whichever is wider.

    Few folds that happen to agree have a narrow interval of their own, which says little.
    """
    if own.quality is None:
        return own.half_width
    return max(own.half_width, told_interval(own.accuracy, own.quality.n_rows))


def _clearly_above(own: MethodAccuracy, guess: float) -> bool:
    """Whether so many rows are right that chance does not explain it; folds are pooled."""
    if own.quality is None:
        return own.accuracy - own.half_width > guess
    return own.accuracy - told_interval(own.accuracy, own.quality.n_rows) > guess


def _missed(quality: Quality) -> list[Child]:
    """The class that is found least, if that is too little."""
    found = [c for c in quality.classes if c.recall is not None]
    worst = min(found, key=_recall, default=None)
    if worst is None or _recall(worst) >= _RARELY_FOUND:
        return []
    share = percent(worst.n_rows / quality.n_rows, 1)
    return [
        join(
            f"It finds {percent(_recall(worst), 1)} of the rows of class ",
            element("b", charts.name(worst.label)),
            f" ({share} of all).",
        )
    ]


def _recall(quality: ClassQuality) -> float:
    return 1.0 if quality.recall is None else quality.recall


def _write_deciding(report: Report) -> Markup:
    """The features that decide most, and which way."""
    features = report.deciding(DECIDING)
    heading = element(
        "h2", f"The {_number_word(len(features))} that decide{'s' * (len(features) == 1)} most"
    )
    if not features or report.effects is None:
        note = "There is nothing to tell apart." if not features else "Too large to compute."
        return element(
            "section", element("h2", "What decides"), element("p", note), class_="half plain"
        )
    items = [
        element("li", element("b", charts.name(report.network.names[i])), *_ways(report, i))
        for i in features
    ]
    source = (
        f"by the size of their contributions on {report.contributions.source}"
        if report.contributions is not None
        else "by what one learns of the class from each alone"
    )
    link = element("a", "all features", href="#effects")
    return element(
        "section",
        heading,
        element("ol", *items, class_="deciding"),
        element(
            "p",
            "× and ÷ are ",
            _of_which_odds(report),
            f". Chosen {source}; ",
            link,
            class_="small",
        ),
        class_="half plain",
    )


def _number_word(n: int) -> str:
    return {0: "nothing", 1: "thing", 2: "two things", 3: "three things"}[n]


def _ways(report: Report, i: int) -> list[Markup]:
    """Which states speak for and against a class, with odds."""
    assert report.effects is not None
    effect, states = report.effects[i - 1], report.network.variables[i].states
    classes = report.network.variables[0].states
    if len(classes) == 2:
        for_it, against = strongest_states(effect, 1)
        pairs = [(for_it, 1)] + ([(against, 1)] if against != for_it else [])
    else:
        pairs = _telling_pairs(effect, len(classes))
    return [
        element(
            "span",
            charts.name(states[s]),
            element("b", f" {_times(float(effect.values[s, c]))} "),
            *([] if len(classes) == 2 else [" for ", charts.name(classes[c])]),
            class_="way",
        )
        for s, c in pairs
    ]


def _of_which_odds(report: Report) -> Markup:
    """What the factors multiply."""
    target = report.network.variables[0]
    if len(target.states) != 2:
        return Markup("factors of the odds of a class against all others")
    return join(
        "factors of the odds of ", charts.name(target.name), " = ", charts.name(target.states[1])
    )


def _telling_pairs(effect: Effect, n_classes: int) -> list[tuple[int, int]]:
    """The two states that speak most for some class."""
    best = [(strongest_states(effect, c)[0], c) for c in range(n_classes)]
    best.sort(key=lambda pair: -float(effect.values[pair]))
    chosen: list[tuple[int, int]] = []
    for state, c in best:
        if all(state != s for s, _ in chosen):
            chosen.append((state, c))
    return chosen[:2]


def _times(effect: float) -> str:
    """As in ``× 3.6`` or ``÷ 2.0``."""
    ratio = math.exp(min(abs(effect), 30.0))
    text = f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:.0f}" if ratio < 1e6 else "a million"
    return f"{'×' if effect >= 0 else '÷'} {text}"


def _write_sure(report: Report) -> Markup:
    """Calibration, rows against parameters, notes about the data."""
    items = [*_calibration(report), *_parameters(report), *_data_notes(report)]
    if not items:
        items = [Markup("Only rows can tell: give the report X and y, or --data TABLE.")]
    lines = [element("li", item) for item in items]
    heading = element("h2", "How sure is it?")
    return element("section", heading, element("ul", *lines, class_="sure"), class_="half plain")


def _calibration(report: Report) -> list[Markup]:
    error = _calibration_error(report)
    if error is None:
        return []
    points = f"{100 * error:.1f} points"
    words = f"are far off, by {points} on average: read them as an order, not as chances"
    if error <= _FAIRLY_CALIBRATED:
        words = f"are roughly right: off by {points} on average"
    if error <= _WELL_CALIBRATED:
        words = f"can be taken at their word: off by {points} on average"
    return [
        join("Its probabilities ", words, " (", element("a", "calibration", href="#quality"), ").")
    ]


def _calibration_error(report: Report) -> float | None:
    """As measured here, or by the model file."""
    if report.comparison is not None and report.comparison.own.quality is not None:
        return report.comparison.own.quality.calibration_error
    held_out = (report.classifier.provenance_ or Provenance()).held_out or {}
    found = held_out.get("calibration_error")
    return None if found is None else float(found)


def _parameters(report: Report) -> list[Markup]:
    n_rows = report.classifier.n_samples_
    free = report.network.n_parameters
    judgement = "enough rows" if _ROWS_PER_PARAMETER * free <= n_rows else "few rows for each"
    if free > n_rows:
        judgement = "fewer rows than parameters"
    return [join(f"{counted(free, 'free parameter')} from {counted(n_rows, 'row')}: {judgement}.")]


def _data_notes(report: Report) -> list[Markup]:
    notes = () if report.data is None else report.data.notes
    if not notes:
        return []
    link = element("a", counted(len(notes), "note"), href="#data")
    first = textwrap.shorten(notes[0], _NOTE, placeholder=" …")
    return [join(link, f" about the data, first: {first}")]


def percent(fraction: float, digits: int | None = None) -> str:
    """A fraction in per cent that no line ends in."""
    if digits is not None and math.isfinite(fraction):
        return f"{100 * fraction:.{digits}f}\N{NO-BREAK SPACE}%"
    return wording.percent(fraction).replace(" ", "\N{NO-BREAK SPACE}")
