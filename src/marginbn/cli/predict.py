"""``marginbn predict``: the class of every row of a file, chunk by chunk in constant memory."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

from marginbn.cli import options
from marginbn.cli.model import ProofOption, load_checked
from marginbn.cli.running import data_stream, is_stream, note, print_json, try_outputs
from marginbn.interrupts import INTERRUPTS

if TYPE_CHECKING:
    import pyarrow as pa

    from marginbn.classifiers import BaseBNClassifier
    from marginbn.data.source import Source

PROBABILITY = "probability"
"""Column with the probability of the class that is predicted."""


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
    from marginbn.cli.data import write_csv_chunks, write_parquet_chunks

    try_outputs(output=output)
    classifier = load_checked(model, certificate)
    if certificate is not None:
        from marginbn.report.summary import verdict

        note(f"{model}: {verdict(classifier)}", quiet)
    with open_answers(classifier, rows, keep or [], proba) as chunks:
        if json:
            print_json(columns_of(chunks))
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


@contextmanager
def open_answers(
    classifier: BaseBNClassifier, rows: options.RowOptions, keep: Sequence[str], proba: bool
) -> Iterator[Iterator[pa.Table]]:
    """What is to be written, in chunks, from one pass over the rows."""
    from marginbn.cli.data import check_columns, find_kept, open_rows

    with open_rows(rows) as source:
        kept = find_kept(keep, source.names)
        check_columns(classifier, source.names, rows.allow_missing_columns)
        yield _chunks(classifier, source, kept, proba)


def columns_of(chunks: Iterable[pa.Table]) -> dict[str, list[Any]]:
    """All answers at once, by the name of the column."""
    columns: dict[str, list[Any]] = {}
    for chunk in chunks:
        for name, part in chunk.to_pydict().items():
            columns.setdefault(name, []).extend(part)
    return columns


def _chunks(
    classifier: BaseBNClassifier, source: Source, kept: Sequence[str], proba: bool
) -> Iterator[pa.Table]:
    import numpy as np
    import pyarrow as pa

    from marginbn.cli.data import encoded_chunks, kept_column
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
        columns = [kept_column(chunk, name, source.is_text) for name in kept]
        columns.append(classes.take(pa.array(joint.argmax(axis=1))))
        columns += [*posterior.T] if proba else [posterior.max(axis=1)]
        yield pa.table(columns, names=names)
