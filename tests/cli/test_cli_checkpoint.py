"""``marginbn fit --checkpoint``, as users type it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from test_cli import launch, one_line_error, run

from marginbn.solvers.checkpoint import read_arrays

FIT = ["fit", "--method", "max-margin", "--holdout", 0, "--json"]


def test_the_same_command_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "search"
    options = [*FIT, "--checkpoint", path, "corral", "-q"]
    first = run(*options)
    assert first.exit_code == 0, first.output
    assert path.is_file()
    again = run(*options)
    assert again.exit_code == 0
    assert json.loads(again.stdout)["objective"] == json.loads(first.stdout)["objective"]
    other = run(*options, "--p", 0.8)
    assert "another problem" in one_line_error(other)


def test_interrupted_and_continued(tmp_path: Path) -> None:
    """Ctrl-C leaves a checkpoint; the next run knows no less."""
    path = tmp_path / "search"
    options = [*FIT, "--checkpoint", path, "waveform-21"]
    process = launch(*options, "--time-limit", 600)
    assert process.stderr is not None
    for line in process.stderr:  # wait until there is a structure
        if "objective" in line:
            break
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 3, stderr
    before = json.loads(stdout)
    assert before["status"] == "interrupted"
    assert read_arrays(path)[1]["bound"] == before["bound"]
    after = run(*options, "--time-limit", 1, "-q")
    assert after.exit_code == 3, after.output
    assert json.loads(after.stdout)["bound"] <= before["bound"]
    assert json.loads(after.stdout)["objective"] >= before["objective"]


@pytest.mark.parametrize("method", ["tan", "naive-bayes"])
def test_methods_without_a_search_have_no_checkpoint(tmp_path: Path, method: str) -> None:
    result = run("fit", "iris", "--method", method, "--checkpoint", tmp_path / "c")
    assert result.exit_code == 2
    assert "has no meaning with --method" in " ".join(result.stderr.split())
