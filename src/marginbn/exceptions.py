"""Errors that this package raises on purpose, all of :class:`MarginBNError`, and its warnings."""

from __future__ import annotations

import sys
import warnings


class MarginBNError(Exception):
    """Base class of every error that marginbn raises on purpose."""


class InputError(MarginBNError, ValueError):
    """An argument or a table cannot be used; the message names it and the remedy.

    Examples
    --------
    >>> from marginbn import InputError, MaxMarginBNClassifier
    >>> try:
    ...     MaxMarginBNClassifier(gamma=-1).fit([["a"], ["b"]], [0, 1])
    ... except InputError as error:
    ...     print(error)
    gamma must be a positive number, got -1
    """


class ProblemTooLargeError(InputError):
    """The request would need more memory or joint states than can be handled."""


class FormatError(InputError):
    """A file is malformed; the message carries path, line and reason.

    Examples
    --------
    >>> from marginbn import FormatError
    >>> from marginbn.export.bif import network_from_bif
    >>> try:
    ...     network_from_bif("network n { }\\nnonsense", "net.bif")
    ... except FormatError as error:
    ...     print(error)
    net.bif, line 2: expected network, variable or probability, got 'nonsense'
    """


class MissingDependencyError(MarginBNError, ImportError):
    """An optional package is needed; the message is the line that installs it."""


class SolverError(MarginBNError, RuntimeError):
    """A solver failed or returned a result that does not survive the re-check."""


class OptimalityWarning(UserWarning):
    """A limit ended the search: the structure is the best found, its gap is known.

    Examples
    --------
    >>> import warnings
    >>> from marginbn import OptimalityWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", OptimalityWarning)  # here a limit would be an error
    """


class DataWarning(UserWarning):
    """Rows or columns were set aside; the message names them and the reason.

    Examples
    --------
    >>> import warnings
    >>> from marginbn import DataWarning, NaiveBayesClassifier
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", DataWarning)
    ...     clf = NaiveBayesClassifier().fit([["a", None], ["b", None], ["b", None]], [0, 1, 1])
    >>> print(caught[0].message)
    left out, because no row has a value: 'x1'
    """


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, or what was saved can be used in part only."""


class CertificateWarning(UserWarning):
    """A certificate proves less than the search itself does, or could not be written."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that led here: the first frame outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("marginbn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
