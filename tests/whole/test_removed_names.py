"""What was deleted is mentioned nowhere but in the changelog."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

NAMES = [
    line
    for line in (Path(__file__).parent / "removed_names.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]

GENERATED = {"results.rst", "unseen.rst", "benchmarks.rst", "recovery.rst"}
"""Pages that a build of the documentation makes from records."""


def find_texts() -> dict[str, str]:
    """Everything that users read, by its path: documents, examples, docstrings and help."""
    patterns = ["*.md", "docs/**/*.rst", "examples/*.py", "experiments/*.md", "src/**/*.py"]
    paths = [path for pattern in patterns for path in ROOT.glob(pattern)]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in paths
        if path.name not in GENERATED | {"CHANGELOG.md"} and "generated" not in path.parts
    }


TEXTS = find_texts()


def test_the_texts_are_found() -> None:
    assert {"README.md", "docs/guide/cli.rst", "src/marginbn/cli/options.py"} <= TEXTS.keys()
    assert any(name.startswith("examples/") for name in TEXTS)


@pytest.mark.parametrize("name", NAMES)
def test_no_text_mentions_it(name: str) -> None:
    word = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    found = [path for path, text in TEXTS.items() if word.search(text)]
    assert not found, f"{name} was deleted, but is mentioned in {', '.join(found)}"
