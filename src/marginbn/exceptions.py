"""Errors and warnings.

::

    Exception
    └── MarginBNError                 everything this package raises on purpose
        ├── InputError                (also ValueError) an argument or a table is not usable
        │   ├── ProblemTooLargeError  it would need more memory or states than is sane
        │   └── FormatError           a file is malformed: path, line, reason
        ├── MissingDependencyError    (also ImportError) an optional package is not installed
        └── SolverError               (also RuntimeError) a solver returned something unusable
    UserWarning
    ├── OptimalityWarning             a limit ended the search before the proof was complete
    └── DataWarning                   rows or columns were set aside, with the reason
"""

from __future__ import annotations


class MarginBNError(Exception):
    """Base class of every error that marginbn raises on purpose."""


class InputError(MarginBNError, ValueError):
    """An argument or a table cannot be used; the message names it and the remedy."""


class ProblemTooLargeError(InputError):
    """The request would need more memory or joint states than can be handled."""


class FormatError(InputError):
    """A file is malformed; the message carries path, line and reason."""


class MissingDependencyError(MarginBNError, ImportError):
    """An optional package is needed; the message is the line that installs it."""


class SolverError(MarginBNError, RuntimeError):
    """A solver failed or returned a result that does not survive the re-check."""


class OptimalityWarning(UserWarning):
    """A limit ended the search: the structure is the best found, its gap is known."""


class DataWarning(UserWarning):
    """Rows or columns were set aside; the message says which and why."""
