"""What every source of data hands over."""

from __future__ import annotations

from dataclasses import dataclass

from marginbn.data.table import Table
from marginbn.exceptions import InputError

CLASS_NAME = "class"
"""Name of the class column in every data set of this package."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A classification data set.

    Parameters
    ----------
    name
        Name by which it was asked for.
    train, test
        Rows to learn from, and the rows set aside where the set comes with a split (else None).
        Both include the class column.
    target
        Name of the class column.
    description
        One line about the set.

    Examples
    --------
    >>> from marginbn.datasets import load_dataset
    >>> corral = load_dataset("corral")
    >>> corral.target, corral.train.n_rows, corral.test
    ('class', 128, None)
    """

    name: str
    train: Table
    test: Table | None
    target: str
    description: str

    def __post_init__(self) -> None:
        self.train.column(self.target)
        if self.test is not None and self.test.names != self.train.names:
            raise InputError(
                f"train and test of {self.name!r} must have the same columns, got "
                f"{self.train.names} and {self.test.names}"
            )
