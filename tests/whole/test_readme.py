"""The README is short, its commands and its code run, and they print what it shows."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from marginbn import DataWarning

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    """At most 120 lines; pictures and pages exist, and the picture is no larger than 200 kB."""
    assert len(TEXT.splitlines()) <= 120
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []
    assert (ROOT / "docs" / "_static" / "first_minute.png").stat().st_size < 200_000


def test_python_blocks_print_what_the_readme_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every python block is followed by a text block with its real output."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(ROOT)
    pairs = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", TEXT, re.DOTALL)
    assert len(pairs) == TEXT.count("```python") > 0
    for code, shown in pairs:
        printed = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
            warnings.simplefilter("ignore", DataWarning)  # of the dropped column and rows
            exec(compile(code, str(README), "exec"), {})
        assert printed.getvalue() == shown


def test_commands_print_what_the_readme_shows(tmp_path: Path) -> None:
    """On stdout, but for line ends and for digits of a distance that rounding makes."""
    shutil.copy(ROOT / "examples" / "customers.csv", tmp_path)
    (block,) = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    steps = re.findall(r"^\$ marginbn (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    assert [arguments.split()[0] for arguments, _ in steps] == ["fit", "ask", "report"]
    for arguments, shown in steps:
        run = subprocess.run(
            f'"{sys.executable}" -m marginbn {arguments}',
            shell=True,
            cwd=tmp_path,
            env=os.environ | {"COLUMNS": "100"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert run.returncode == 0, run.stderr
        assert plain(run.stdout) == plain(shown)
    assert (tmp_path / "customers.html").stat().st_size > 10_000


def plain(text: str) -> str:
    """Words of a text in one line, without the digits of tiny numbers."""
    return re.sub(r"\b\de-0\d\b", "tiny", " ".join(text.split()))
