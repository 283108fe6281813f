"""Advice of the library in the words of the command line."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from marginbn.cli import app
from marginbn.cli.hints import OPTION_NAMES, SAME_NAMES, in_options, option_name
from marginbn.cli.options import ProblemOptions, SearchOptions, TableOptions

OPTIONS = {
    "--" + field.name.replace("_", "-")
    for o in (TableOptions, ProblemOptions, SearchOptions)
    for field in fields(o)
}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("set identifiers='ignore' or 'use'", "set --identifiers ignore or use"),
        ("(missing='drop'); missing='state' keeps", "(--missing drop); --missing state keeps"),
        ("merged (max_states=50)", "merged (--max-states 50)"),
        (
            "time_limit=10 is short; a larger time_limit",
            "--time-limit 10 is short; a larger --time-limit",
        ),
        ("is among required_arcs.", "is among --require."),
        (
            "say its encoding, such as encoding='latin-1'",
            "say its encoding, such as --encoding latin-1",
        ),
        ("column_kinds={'paid on': 'date'} makes", "--kind 'paid on=date' makes"),
        ("smoothing=0.5, n_jobs=2", "--smoothing 0.5, --jobs 2"),
        ("a missing value, identifiers and smoothing", None),
        ("unknown column 'max_states'; did you mean 'time_limit'?", None),
        ("'missing='drop'", None),
        ("my_time_limit, time_limits, x.time_limit, time_limit.csv", None),
    ],
)
def test_arguments_become_options(said: str, told: str | None) -> None:
    """Words of ordinary language, quoted names and parts of names stay as they are."""
    assert in_options(said) == (told or said)


@pytest.mark.parametrize("parameter", [*OPTION_NAMES, *SAME_NAMES])
def test_every_option_exists(parameter: str) -> None:
    """Nobody is sent to an option that is not there."""
    assert option_name(parameter) in OPTIONS


def test_commands_speak_of_options(tmp_path: Path) -> None:
    """In errors and in the look at the data."""
    path = tmp_path / "t.csv"
    path.write_text("id,y\n" + "".join(f"k{i},{i % 2}\n" for i in range(40)), encoding="utf-8")
    found = CliRunner().invoke(app, ["fit", str(path), "--target", "y", "--method", "naive-bayes"])
    assert found.exit_code != 0
    assert "--identifiers use keeps them" in found.output
    assert "identifiers=" not in found.output
