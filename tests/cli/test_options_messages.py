"""Advice of the library in the words of the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from marginbn.cli import app
from marginbn.cli.options import OPTION_NAMES, SAME_NAMES, in_options, option_name
from marginbn.data.guardrails import drop_of
from marginbn.solvers.result import MORE_WORK

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
OPTIONS = {name for c in ("fit", "learn", "report") for p in COMMANDS[c].params for name in p.opts}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("use missing='drop' or 'state'", "use --missing drop or state"),
        ("(missing='drop'); missing='state' keeps", "(--missing drop); --missing state keeps"),
        ("merged (most_states=50)", None),
        (
            "time_limit=10 is short; a larger time_limit",
            "--time-limit 10 is short; a larger --time-limit",
        ),
        ("is among required_arcs.", "is among --require."),
        ("drop it, X.drop(columns=['a b']), unless", "drop it, --drop 'a b', unless"),
        (
            drop_of(["it's ])", 'a "b"', 'it\'s "c"', "back\\slash"]),
            """--drop 'it'"'"'s ])' --drop 'a "b"' --drop 'it'"'"'s "c"' --drop 'back\\slash'""",
        ),
        (f"use {MORE_WORK}.", "use --method max-margin --time-limit SECONDS."),
        (
            "say its encoding, such as encoding='latin-1'",
            "say its encoding, such as --encoding latin-1",
        ),
        ("column_kinds={'paid on': 'date'} makes", "--kind 'paid on=date' makes"),
        ("max_parents=3, n_jobs=2", "--max-parents 3, --jobs 2"),
        ("a missing value and smoothing", None),
        ("unknown column 'max_parents'; did you mean 'time_limit'?", None),
        ("'missing='drop'", None),
        ("my_time_limit, time_limits, x.time_limit, time_limit.csv", None),
    ],
)
def test_arguments_become_options(said: str, told: str | None) -> None:
    """Words of ordinary language, quoted names and parts of names stay as they are."""
    assert in_options(said) == (told or said)


@pytest.mark.parametrize("parameter", [*OPTION_NAMES, *SAME_NAMES])
def test_every_option_exists(parameter: str) -> None:
    assert option_name(parameter) in OPTIONS


def test_commands_speak_of_options(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,y\n" + "".join(f"k{i},{i % 2}\n" for i in range(40)), encoding="utf-8")
    found = CliRunner().invoke(app, ["fit", str(path), "--target", "y", "--method", "naive-bayes"])
    assert found.exit_code != 0
    assert "--kind id=categorical keeps it" in found.output
    assert "column_kinds" not in found.output


TABLES = {
    "--missing state": "a,b\n" + "".join(f"{i % 2},{i % 3 if i % 5 else ''}\n" for i in range(60)),
    "--kind id=categorical": "id,a\n" + "".join(f"k{i},{i % 2}\n" for i in range(60)),
    "every column": "id\n" + "".join(f"k{i}\n" for i in range(60)),
    "same value: 'b'": "a,b\n" + "".join(f"{i % 2},same\n" for i in range(60)),
    "--kind b=categorical": "a,b\n" + "".join(f'{i % 2},"{i % 7},50 €"\n' for i in range(100)),
    "48 of 'b'": "a,b\n" + "".join(f"{i % 2},w{i % 97}\n" for i in range(970)),
}
"""Awkward tables by what is said about them."""


@pytest.mark.filterwarnings("default::marginbn.DataWarning")
@pytest.mark.parametrize("command", ["learn", "problem score", "inspect"])
@pytest.mark.parametrize("expected", TABLES)
def test_hints_name_options_of_the_command(command: str, expected: str, tmp_path: Path) -> None:
    """What a command advises about a table, it can be given."""
    path = tmp_path / "t.csv"
    path.write_text(TABLES[expected], encoding="utf-8")
    words = [*command.split(), str(path)]
    own = COMMANDS[words[0]]
    if command == "problem score":
        words += ["-o", str(tmp_path / "t.jkl")]
        own = own.commands["score"]
    said = CliRunner().invoke(app, words).output
    found = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", said))
    assert found <= {name for p in own.params for name in p.opts}
    assert expected in said or command == "inspect"
