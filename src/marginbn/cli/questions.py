"""Questions to a saved model: ``predict``, ``explain`` (why is a row predicted so?) and ``ask``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbn.cli import options
from marginbn.cli.model import ProofOption, load_any, load_checked
from marginbn.cli.running import data_stream, is_stream, note, print_json, print_text, try_outputs
from marginbn.exceptions import InputError
from marginbn.interrupts import INTERRUPTS
from marginbn.network.wording import align, assignment, counted, percent

if TYPE_CHECKING:
    import pyarrow as pa

    from marginbn.classifiers import BaseBNClassifier
    from marginbn.data.source import Source
    from marginbn.network.explain import Explanation
    from marginbn.network.network import BayesianNetwork

PROBABILITY = "probability"
"""Column with the probability of the class that is predicted."""

SHOWN_STATES = 12
"""States that ``ask`` prints before the rest is left out."""


# --- predict --------------------------------------------------------------------------------------


def predict(
    model: options.ModelArgument,
    rows: options.RowOptions,
    proba: Annotated[
        bool,
        options.output_option("--proba", help="Write the probabilities of all classes."),
    ] = False,
    keep: Annotated[
        list[str] | None,
        options.output_option(
            metavar="COL,COL",
            help="Columns of TABLE to write before the prediction, e.g. an id (repeatable).",
        ),
    ] = None,
    output: Annotated[
        Path | None, options.file_option(help="Write to this file: CSV, or .parquet.")
    ] = None,
    certificate: ProofOption = None,
    json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Predict the class of every row of TABLE, with its probability.

    Columns are matched by name; others, such as the class itself, are ignored. Missing values are
    summed out, and so are categories that training never saw. Rows are read and written in chunks,
    so a table may be larger than the memory.
    """
    _do_without_pandas()
    from marginbn.cli.data import (
        check_columns,
        find_kept,
        open_rows,
        write_csv_chunks,
        write_parquet_chunks,
    )

    try_outputs(output=output)
    classifier = load_checked(model, certificate)
    if certificate is not None:
        from marginbn.report.summary import verdict

        note(f"{model}: {verdict(classifier)}", quiet)
    with open_rows(rows) as source:
        kept = find_kept(keep or [], source.names)
        check_columns(classifier, source.names, rows.allow_missing_columns)
        chunks = _chunks(classifier, source, kept, proba)
        if json:
            columns: dict[str, list[Any]] = {}
            for chunk in chunks:
                for name, part in chunk.to_pydict().items():
                    columns.setdefault(name, []).extend(part)
            print_json(columns)
        elif output is None:
            write_csv_chunks(data_stream(), chunks)
        elif is_stream(output):
            with output.open("w", encoding="utf-8", newline="") as stream:
                write_csv_chunks(stream, chunks)
        elif output.suffix.lower() == ".parquet":
            write_parquet_chunks(output, chunks)
        else:
            write_csv_chunks(output, chunks)


def _do_without_pandas() -> None:
    """Keep pyarrow from importing pandas for its first array: that takes longer than to answer a
    small table. The command line needs no data frames.
    """
    if INTERRUPTS.is_program and "pandas" not in sys.modules:
        import pyarrow as pa

        def refuse(name: str, *_: object) -> None:
            if name == "pandas":
                raise ImportError(name)

        sys.meta_path.insert(0, SimpleNamespace(find_spec=refuse))
        pa.array([0])
        del sys.meta_path[0]


def _chunks(
    classifier: BaseBNClassifier, source: Source, kept: Sequence[str], proba: bool
) -> Iterator[pa.Table]:
    """What is to be written, in one pass over the rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from marginbn.cli.data import encoded_chunks
    from marginbn.network.explain import log_posteriors

    target = classifier.network_.variables[0]
    own = [f"P({label})" for label in target.states] if proba else [PROBABILITY]
    names = [*kept]
    for name in (target.name, *own):
        while name in names:
            name += "_predicted"
        names.append(name)
    classes = pa.array(classifier.classes_.tolist())
    for chunk, codes in encoded_chunks(classifier, source, kept):
        joint = classifier.log_joint_of_codes(codes)
        posterior = np.exp(log_posteriors(joint))
        columns: list[Any] = [chunk.column(name) for name in kept]  # as they stand in the file
        if source.is_text:
            columns = [pc.utf8_trim_whitespace(column) for column in columns]
        columns.append(classes.take(pa.array(joint.argmax(axis=1))))
        columns += [*posterior.T] if proba else [posterior.max(axis=1)]
        yield pa.table(columns, names=names)


# --- explain --------------------------------------------------------------------------------------


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
    json: options.JsonOption = False,
) -> None:
    """Print the probabilities of a variable given others.

    Example: marginbn ask model.json Age=53 Sex=male --show Survived. Columns not given are unknown.
    About the class the classifier answers, as in `marginbn predict`; about other variables the
    counted network. MODEL may also be a network in a .bif file.
    """
    from marginbn.classifiers import BaseBNClassifier
    from marginbn.report.summary import caution

    found = load_any(model)
    classifier = found if isinstance(found, BaseBNClassifier) else None
    network: BayesianNetwork = getattr(found, "network_", found)
    preparation = getattr(found, "preparation_", None)
    columns = [] if preparation is None else [plan.name for plan in preparation.columns]
    known = given = _read_evidence(evidence or [], [*dict.fromkeys([*network.names, *columns])])
    if preparation is not None:
        known = preparation.apply_to_values(given, network.names)
    asked = [_checked_name(name, network.names) for name in show or ()]
    if everything or (not asked and classifier is None):
        asked += [name for name in network.names if name not in known]
    asked = list(dict.fromkeys(asked)) or [network.names[0]]
    states = {
        network.names[i]: network.variables[i].states[state]
        for i, state in network.encode_evidence(known).items()
    }
    after = _answers(network, classifier, known, asked)
    before = _answers(network, classifier, {}, asked)
    if json:
        print_json({"evidence": states, "posterior": after, "prior": before})
        return
    if classifier is not None and known.keys() < {*network.names[1:]} and caution(classifier):
        note(caution(classifier))
    told = [assignment(str(name), value) for name, value in given.items()]
    print_text("\n".join(_describe_answers(told, after, before)))


def _read_evidence(texts: Sequence[str], names: Sequence[str]) -> dict[str | int, Any]:
    """What is known by name, of texts like ``Age=53``; None is a missing value."""
    from marginbn.data.columns import MISSING_TEXTS

    known: dict[str | int, Any] = {}
    for text in texts:
        name, value = _split(text, names)
        if name in known:
            raise InputError(f"{name!r} is given twice; give it once")
        known[name] = None if value in MISSING_TEXTS else value
    return known


def _split(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Name and value; a name may hold an equals sign, so the longest that is one counts."""
    if "=" not in text:
        raise typer.BadParameter(f"write NAME=VALUE, as in Age=53, got {text!r}")
    begun = [name for name in names if text.startswith(f"{name}=")]
    name = max(begun, key=len, default=text.partition("=")[0].strip())
    return _checked_name(name, names), text[text.index("=", len(name)) + 1 :].strip()


def _checked_name(name: str, names: Sequence[str]) -> str:
    from marginbn.data.table import suggestion

    if name not in names:
        close = suggestion(name, names).replace("the columns are", "the variables are")
        raise InputError(f"there is no variable {name!r}{close}")
    return name


def _answers(
    network: BayesianNetwork,
    classifier: BaseBNClassifier | None,
    known: dict[str | int, Any],
    asked: Sequence[str],
) -> dict[str, dict[str, float]]:
    """Probability by state and variable; for the class as ``predict --proba`` says it."""
    target = network.names[0]
    by_classifier = classifier is not None and target not in known
    found: dict[str, Any] = {}
    if not by_classifier or any(name != target for name in asked):
        found = network.marginals(known)
    if classifier is not None and by_classifier:
        found[target] = [*classifier.posterior(known).values()]
    variables = [network.variables[network.variable_index(name)] for name in asked]
    return {v.name: dict(zip(v.states, map(float, found[v.name]), strict=True)) for v in variables}


def _describe_answers(
    given: Sequence[str],
    after: dict[str, dict[str, float]],
    before: dict[str, dict[str, float]],
) -> Iterator[str]:
    """What is known, then a small table per variable."""
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
