"""The README's code runs and prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_python_blocks_print_what_the_readme_shows() -> None:
    """Every python block is followed by a text block with its real output."""
    text = README.read_text(encoding="utf-8")
    pairs = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", text, re.DOTALL)
    assert len(pairs) == text.count("```python")
    for code, shown in pairs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(README), "exec"), {})
        assert printed.getvalue() == shown
