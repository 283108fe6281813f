"""Shells complete commands and options."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def complete(words: str, shell: str = "bash") -> list[str]:
    """What a shell is offered for the last of some words."""
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    if shell != "bash":
        asked = {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run(
        [sys.executable, "-c", "from marginbn.cli import main; main()"],
        env=os.environ | asked | {"_MARGINBN_COMPLETE": f"complete_{shell}"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return [line.split()[0].strip('":') for line in done.stdout.splitlines() if line.split()]


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_commands_and_options_are_completed(shell: str) -> None:
    assert complete("marginbn pre", shell) == ["predict"]
    if shell == "bash":
        assert "--allow-missing-columns" in complete("marginbn predict --al", shell)
