"""Where the folder of data sets may be found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_folder() -> Path:
    """The folder that MARGINBN_DATA names, or ../shared/datasets beside the repository, or skip."""
    named = os.environ.get("MARGINBN_DATA")
    beside = Path(__file__).resolve().parents[3] / "shared" / "datasets"
    for folder in ([Path(named)] if named else []) + [beside]:
        if (folder / "schema.json").is_file():
            return folder
    pytest.skip("needs the folder of data sets: set MARGINBN_DATA")
