"""``marginbn datasets``: the data sets at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from marginbn.cli.options import JsonOption, OutputOption
from marginbn.cli.running import data_stream, print_json, print_text, try_outputs
from marginbn.exceptions import InputError
from marginbn.network.wording import align

if TYPE_CHECKING:
    from marginbn.data.table import Table


def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Write this data set as CSV.")
    ] = None,
    test: Annotated[
        bool, typer.Option("--test", help="Write the test part instead of the training part.")
    ] = False,
    output: OutputOption = None,
    json: JsonOption = False,
) -> None:
    """List the data sets at hand, or write one as CSV.

    MARGINBN_DATA may name a folder with more of them.
    """
    from marginbn.data.readers import write_csv
    from marginbn.datasets import list_datasets

    if name is not None:
        try_outputs(output=output)  # some are downloaded
        part = _load_part(name, test)
        rows = zip(*(column.values.tolist() for column in part.columns), strict=True)
        write_csv(data_stream() if output is None else output, part.names, rows)
        return
    listed = list_datasets()
    if json:
        print_json({"datasets": [info._asdict() for info in listed]})
        return
    widest = max(len(info.description) for info in listed)
    table = [[info.name, info.origin, info.description.ljust(widest)] for info in listed]
    print_text("\n".join(align(table)))


def _load_part(name: str, test: bool) -> Table:
    from marginbn.datasets import load_dataset

    dataset = load_dataset(name)
    if not test:
        return dataset.train
    if dataset.test is None:
        raise InputError(f"the data set {name!r} has no test part")
    return dataset.test
