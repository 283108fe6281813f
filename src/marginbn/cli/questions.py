"""Questions to a saved model: ``explain`` (why is this row predicted so?) and ``ask``."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli import options
from marginbn.cli.model import load_any, load_checked
from marginbn.cli.running import print_json, print_text
from marginbn.exceptions import InputError
from marginbn.network.wording import align, assignment, counted, percent

if TYPE_CHECKING:
    from pathlib import Path

    from marginbn.classifiers import BaseBNClassifier
    from marginbn.data.encode import Coding
    from marginbn.data.preparation import ColumnPlan
    from marginbn.network.explain import Explanation
    from marginbn.network.network import BayesianNetwork

SHOWN_STATES = 12
"""States that ``ask`` prints before the rest is left out."""


def explain(
    model: options.ModelArgument,
    rows: options.RowOptions,
    only: Annotated[
        str,
        options.output_option(
            "--rows",
            metavar="0,3,7-9",
            help="Rows to explain, counted from 0; or all. [default: the first five]",
            show_default=False,
        ),
    ] = "0-4",
    most: Annotated[
        int, options.output_option(metavar="N", help="Contributions to print per row.", min=1)
    ] = 12,
    json: options.JsonOption = False,
) -> None:
    """Explain the predictions for rows of TABLE.

    The log-odds of the predicted class against the second most probable class are a sum: each
    variable contributes a term, the class itself its base rate. A term of 0.69 doubles the odds.
    """
    wanted = _parse_rows(only)
    classifier = load_checked(model, None)
    found = _explanations(classifier, rows, wanted)
    if json:
        print_json({"explanations": [entry.to_dict() for entry in found]})
        return
    for position, entry in enumerate(found):
        print_text(("\n" if position else "") + entry.text(most))


def _parse_rows(text: str) -> list[range]:
    """Numbers of rows, as in ``0,3,7-9``, or ``all``."""
    if text == "all":
        return [range(sys.maxsize)]
    ranges = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isdecimal() and (last if dash else first).isdecimal()):
            raise typer.BadParameter(
                f"write numbers and ranges, as in 0,3,7-9, or all; got {text!r}",
                param_hint="--rows",
            )
        ranges.append(range(int(first), int(last or first) + 1))
    return ranges


def _explanations(
    classifier: BaseBNClassifier, rows: options.RowOptions, wanted: Sequence[range]
) -> Iterator[Explanation]:
    """Explanations of the wanted rows, in the order of the file, read no further than needed."""
    from marginbn.cli.data import check_columns, encoded_chunks, open_rows

    with open_rows(rows) as source:
        check_columns(classifier, source.names, rows.allow_missing_columns)
        start = 0
        for _, codes in encoded_chunks(classifier, source):
            places = [i for i in range(len(codes)) if any(start + i in part for part in wanted)]
            if places:
                found = classifier.explain_encoded(codes[places, 1:])
                for place, entry in zip(places, found, strict=True):
                    yield replace(entry, row=start + place)
            start += len(codes)
            if all(part.stop <= start for part in wanted):
                return
        first = min(part.start for part in wanted)
        if start <= first:
            raise InputError(f"--rows: there is no row {first}; the table has {start} rows")


# --- ask ------------------------------------------------------------------------------------------


def ask(
    model: options.ModelArgument,
    evidence: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=VALUE]...",
            help="Known values as in the table, e.g. Age=53.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        list[str] | None,
        options.output_option(
            metavar="NAME",
            help="Variable to ask for (repeatable). [default: the class, or all without a class]",
        ),
    ] = None,
    everything: Annotated[
        bool, options.output_option("--all", help="Ask for every variable that is not known.")
    ] = False,
    by_network: Annotated[
        bool,
        options.output_option(
            "--network",
            help="Let the counted network answer for the class too, instead of the trained tables.",
        ),
    ] = False,
    json: options.JsonOption = False,
) -> None:
    """Print the probabilities of a variable given others.

    Example: marginbn ask model.json Age=53 Sex=male --show Survived. Columns not given are unknown.
    About the class the classifier answers, as in `marginbn predict`; about other variables the
    counted network. MODEL may also be a network in a .bif file.
    """
    subject = Subject.load(model)
    network = subject.network
    known = _read_evidence(subject, evidence or [])
    asked = [network.variable_index(_checked_name(name, network.names)) for name in show or ()]
    if everything or (not asked and subject.classifier is None):
        asked += [i for i in range(network.n_variables) if i not in known]
    asked = list(dict.fromkeys(asked)) or [0]
    if by_network:
        subject = replace(subject, classifier=None)
    after, before = _answers(subject, known, asked), _answers(subject, {}, asked)
    if json:
        states = {network.names[i]: network.variables[i].states[k.state] for i, k in known.items()}
        print_json({"evidence": states, "posterior": after, "prior": before})
        return
    print_text("\n".join(_describe_answers(network, known, after, before)))


@dataclass(frozen=True, eq=False)
class Subject:
    """A network that is asked. ``codings`` say which state a value of the table has, None where
    values are states; ``plans`` are those of the table's columns. A classifier has its own answer
    about the class.
    """

    network: BayesianNetwork
    codings: tuple[Coding | None, ...]
    plans: tuple[ColumnPlan, ...]
    classifier: BaseBNClassifier | None

    @classmethod
    def load(cls, path: Path) -> Subject:
        """The network of a file."""
        from marginbn.classifiers import BaseBNClassifier
        from marginbn.network.network import BayesianNetwork

        found = load_any(path)
        if isinstance(found, BayesianNetwork):
            return cls(found, (None,) * found.n_variables, (), None)
        codings, plans = found.coding_.columns, found.preparation_.columns
        if isinstance(found, BaseBNClassifier):
            return cls(found.network_, (None, *codings), plans, found)
        return cls(found.network_, codings, plans, None)


def _checked_name(name: str, names: Sequence[str]) -> str:
    from marginbn.data.table import suggestion

    if name not in names:
        close = suggestion(name, names).replace("the columns are", "the variables are")
        raise InputError(f"there is no variable {name!r}{close}")
    return name


@dataclass(frozen=True)
class Known:
    """What is said about a variable: its state, and the number if it is one."""

    state: int
    number: float | None = None


def _read_evidence(subject: Subject, texts: Sequence[str]) -> dict[int, Known]:
    """What is known by variable, of texts like ``Age=53``."""
    known: dict[int, Known] = {}
    for name, value in _assignments(subject, texts):
        i = subject.network.variable_index(name)
        if i in known:
            raise InputError(f"{name!r} is given twice; give it once")
        known[i] = read_value(subject, i, value)
    return known


def _assignments(subject: Subject, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Names of variables and values; a date is taken apart as its column was."""
    from marginbn.data.texts import is_date_kind, part_names, parts_of_date

    names = subject.network.names
    dates = {p.name: p.kind for p in subject.plans if is_date_kind(p.kind) and not p.left_out}
    for text in texts:
        name, value = _split(text, (*names, *dates))
        if name in dates and name not in names:
            parts = parts_of_date(name, value, dates[name])
            yield from ((part, str(parts[part])) for part in part_names(name))
        else:
            yield name, value


def _split(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Name and value; a name may hold an equals sign, so the longest that is one counts."""
    if "=" not in text:
        raise typer.BadParameter(f"write NAME=VALUE, as in Age=53, got {text!r}")
    begun = [name for name in names if text.startswith(f"{name}=")]
    name = max(begun, key=len) if begun else text.partition("=")[0].strip()
    value = text[len(name) + 1 :] if begun else ""
    return _checked_name(name, names), value.strip()


def read_value(subject: Subject, i: int, text: str) -> Known:
    """The state that a value has, or whose label the text is."""
    import pyarrow as pa

    from marginbn.data.columns import MISSING_TEXTS, parse_number
    from marginbn.data.preparation import ColumnPlan, reading_of
    from marginbn.data.texts import is_date_kind

    variable, coding = subject.network.variables[i], subject.codings[i]
    if text in variable.states:
        return Known(variable.states.index(text))
    code, number = -1, None
    if coding is not None:
        plans = {p.name: p for p in subject.plans if not is_date_kind(p.kind)}
        plan = plans.get(coding.name) or ColumnPlan(coding.name, coding.kind)  # part of a date
        if plan.kind == "numeric" and text not in MISSING_TEXTS:
            typed = parse_number(text)
            if typed is None or math.isinf(typed):
                example = f"write it as in {variable.name}=1.5"
                raise InputError(f"{variable.name!r} is a number, got {text!r}; {example}")
        reading = reading_of(plan, coding, is_text=True)
        (column,) = plan.apply(reading.read(pa.array([text])))
        code = int(coding.encode(column)[0])
        if column.kind == "numeric" and not math.isnan(column.numbers[0]):
            number = float(column.numbers[0])
    if code < 0:
        _refuse_value(variable.name, text, variable.states)
    return Known(code, number)


def _refuse_value(name: str, text: str, states: Sequence[str]) -> None:
    from marginbn.data.columns import MISSING_TEXTS
    from marginbn.data.table import suggestion

    if text in MISSING_TEXTS:
        raise InputError(f"{name!r} has no value; leave it out: what is not given is summed out")
    close = suggestion(text, states).replace("the columns are", "its values are")
    raise InputError(f"{name!r} has no value {text!r}{close}")


def _answers(
    subject: Subject, known: dict[int, Known], asked: Sequence[int]
) -> dict[str, dict[str, float]]:
    """Probability by state and variable; for the class as ``predict --proba`` says it."""
    network, classifier = subject.network, subject.classifier
    states: dict[str | int, Any] = {
        network.names[i]: network.variables[i].states[k.state] for i, k in known.items()
    }
    found: dict[str, Any] = {}
    if classifier is None or any(i > 0 or i in known for i in asked):
        found = network.marginals(states)
    if classifier is not None and 0 not in known:
        for i, said in known.items():
            if said.number is not None:
                states[network.names[i]] = said.number
        found[network.names[0]] = [*classifier.posterior(states).values()]
    variables = [network.variables[i] for i in asked]
    return {v.name: dict(zip(v.states, map(float, found[v.name]), strict=True)) for v in variables}


def _describe_answers(
    network: BayesianNetwork,
    known: dict[int, Known],
    after: dict[str, dict[str, float]],
    before: dict[str, dict[str, float]],
) -> Iterator[str]:
    """What is known, then a small table per variable."""
    variables = network.variables
    given = [
        assignment(variables[i].name, variables[i].states[k.state])
        if k.number is None
        else f"{variables[i].name} = {k.number:.12g}"
        for i, k in known.items()
    ]
    yield f"Given {', '.join(given)}" if given else "Nothing is given"
    for name, posterior in after.items():
        shown = list(posterior)
        if len(shown) > SHOWN_STATES:
            shown = sorted(shown, key=posterior.__getitem__, reverse=True)[:SHOWN_STATES]
        header = [name, "given this", "nothing given"] if given else [name, "probability"]
        rows = [
            [state, *(percent(p[state]) for p in ((posterior, before[name])[: len(header) - 1]))]
            for state in shown
        ]
        yield ""
        yield from align([header, *rows])
        left = len(posterior) - len(shown)
        if left:
            rest = 1 - sum(posterior[state] for state in shown)
            yield f"  and {counted(left, 'other value')} with {percent(max(rest, 0.0))} together"
