"""Where a saved classifier comes from: when, with which versions, from which data, how good.

For people and for audits; predictions need none of it. Nothing of it is checked, except that it is
well formed: like all of a file it is what its writer says.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

import numpy as np
import sklearn

from marginbn import files
from marginbn.exceptions import InputError
from marginbn.files import Number

EPOCH = "SOURCE_DATE_EPOCH"
"""Seconds since 1970 that stand for now, so that two builds are equal to the last byte."""

Digest = Annotated[
    str,
    files.Must("be 64 hexadecimal digits", lambda text: bool(re.fullmatch("[0-9a-f]{64}", text))),
]
_Time = Annotated[
    str,
    files.Must(
        "be a time like 2026-01-31T12:00:00Z",
        lambda text: bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)),
    ),
]


@dataclass(frozen=True)
class Provenance:
    """What a model file tells about its making; ``held_out`` are measures on rows not learned from.

    Examples
    --------
    >>> from marginbn.classifiers.provenance import Provenance
    >>> Provenance(created="2026-01-31T12:00:00Z").held_out is None
    True
    """

    created: _Time | None = None
    versions: dict[str, str] | None = None
    data_sha256: Digest | None = None
    held_out: dict[str, Number | None] | None = None


def provenance_of(
    classifier: Any, held_out: Mapping[str, float | None] | None = None
) -> Provenance:
    """That of a classifier that was loaded, or what can be said of one that was fitted here."""
    known = getattr(classifier, "provenance_", None)
    if known is None:
        fingerprint = getattr(classifier, "data_fingerprint_", None)
        known = Provenance(_now(), _versions(), fingerprint)
    return known if held_out is None else replace(known, held_out=dict(held_out))


def write_provenance(provenance: Provenance) -> dict[str, Any]:
    """As JSON values."""
    record = dict(vars(provenance))
    if provenance.held_out is not None:
        record["held_out"] = {
            name: None if value is None else files.encode_number(value)
            for name, value in provenance.held_out.items()
        }
    return record


def _now() -> str:
    seconds = os.environ.get(EPOCH)
    if seconds is None:
        time = datetime.now(UTC)
    else:
        try:
            time = datetime.fromtimestamp(int(seconds), UTC)
        except (ValueError, OverflowError, OSError):
            raise InputError(
                f"the environment variable {EPOCH} must be whole seconds since 1970, "
                f"got {seconds!r}; correct it or unset it"
            ) from None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
