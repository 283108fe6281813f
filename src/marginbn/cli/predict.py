"""``marginbn predict``: the class of every row of a file, chunk by chunk in constant memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from marginbn.cli import options
from marginbn.cli.model import ProofOption, load_checked
from marginbn.cli.running import (
    data_stream,
    is_stream,
    note,
    print_json,
    try_outputs,
)
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
    safe_csv: Annotated[
        bool,
        options.output_option(
            "--safe-csv",
            help="Put an apostrophe before labels that a spreadsheet could read as formulas.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        options.output_option(
            "--output", "-o", metavar="FILE", help="Write to this file: CSV, or .parquet."
        ),
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
    try_outputs(output=output)
    classifier = load_checked(model, certificate)
    if certificate is not None:
        from marginbn.report.summary import verdict

        note(f"{model}: {verdict(classifier)}", quiet)
    answers = _Answers(classifier, rows, tuple(keep or ()), proba)
    if json:
        print_json(answers.as_columns())
        return
    if output is None:
        answers.write(data_stream(), safe_csv=safe_csv)
    elif is_stream(output):
        with output.open("w", encoding="utf-8", newline="") as stream:
            answers.write(stream, safe_csv=safe_csv)
    elif output.suffix.lower() == ".parquet":
        from marginbn.cli.data import write_parquet_chunks

        with answers.opened() as chunks:
            write_parquet_chunks(output, chunks)
    else:
        answers.write(output, safe_csv=safe_csv)


class _NoPandas:
    """Finder of a program that has no pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Nothing; an error if it is pandas that is wanted."""
        if name == "pandas":
            raise ImportError(name)


def _do_without_pandas() -> None:
    """Keep pyarrow from importing pandas for its first array: that takes longer than to answer a
    small table. The command line needs no data frames.
    """
    if INTERRUPTS.is_program and "pandas" not in sys.modules:
        import pyarrow as pa

        sys.meta_path.insert(0, _NoPandas)
        pa.array([0])
        sys.meta_path.remove(_NoPandas)


@dataclass
class _Answers:
    """What is to be written, from one pass over the rows."""

    classifier: BaseBNClassifier
    rows: options.RowOptions
    keep: tuple[str, ...]
    proba: bool

    def as_columns(self) -> dict[str, list[Any]]:
        """All answers at once, by the name of the column."""
        with self.opened() as chunks:
            columns: dict[str, list[Any]] = {}
            for chunk in chunks:
                for name, part in chunk.to_pydict().items():
                    columns.setdefault(name, []).extend(part)
        return columns

    def write(self, target: Any, *, safe_csv: bool) -> None:
        """As CSV, to a file or a stream."""
        from marginbn.cli.data import write_csv_chunks

        with self.opened() as chunks:
            write_csv_chunks(target, chunks, for_spreadsheets=safe_csv)

    @contextmanager
    def opened(self) -> Iterator[Iterator[pa.Table]]:
        """The answers in chunks."""
        from marginbn.cli.data import check_columns, find_kept, open_rows

        with open_rows(self.rows) as source:
            kept = find_kept(self.keep, source.names)
            check_columns(self.classifier, source.names, self.rows.allow_missing_columns)
            yield self._chunks(source, kept)

    def _names(self, kept: Sequence[str]) -> list[str]:
        network = self.classifier.network_
        own = [f"P({label})" for label in network.variables[0].states]
        names = [*kept]
        for name in (network.names[0], *(own if self.proba else [PROBABILITY])):
            while name in names:
                name += "_predicted"
            names.append(name)
        return names

    def _chunks(self, source: Source, kept: Sequence[str]) -> Iterator[pa.Table]:
        import numpy as np
        import pyarrow as pa

        from marginbn.classifiers.base import log_posteriors
        from marginbn.cli.data import encoded_chunks, kept_column

        classes, names = pa.array(self.classifier.classes_.tolist()), self._names(kept)
        for chunk, codes in encoded_chunks(self.classifier, source, kept):
            joint = self.classifier.log_joint_of_codes(codes)
            posterior = np.exp(log_posteriors(joint))
            columns = [kept_column(chunk, name, source.is_text) for name in kept]
            columns.append(classes.take(pa.array(joint.argmax(axis=1))))
            columns += [*posterior.T] if self.proba else [posterior.max(axis=1)]
            yield pa.table(columns, names=names)
