"""Draw the picture of the README: the terminal next to the report that it wrote.

Usage: python scripts/picture.py [CHROMIUM]

Runs the commands of the README in a temporary folder, sets their output next to the page of the
last one, and takes a screenshot with a headless Chromium. Needs Pillow. Writes
``docs/_static/first_minute.png``.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "_static" / "first_minute.png"
SIZE = (1600, 760)
"""Pixels: twice what a README shows, enough for a sharp screen."""
COLOURS = 96
"""Of the palette; flat pages need few, and the file stays below 200 kB."""
VERIFY = "marginbn verify customers.mbc --model customers.json"
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #dfe3e8; height: 760px; position: relative; overflow: hidden }}
pre {{ position: absolute; left: 24px; top: 24px; width: 640px; height: 672px;
  margin: 0; padding: 20px;
  background: #14181d; color: #d6dbe1; border-radius: 10px;
  font: 14.5px/1.5 monospace; white-space: pre-wrap }}
b {{ color: #8fd18f; font-weight: normal }}
div {{ position: absolute; left: 728px; top: 24px; width: 848px; height: 712px; overflow: hidden;
  border-radius: 10px; background: white }}
iframe {{ border: 0; width: 1200px; height: 1010px; transform: scale(.7067);
  transform-origin: 0 0 }}
</style><pre>{terminal}</pre><div><iframe src="{page}"></iframe></div>"""


def readme_commands() -> list[str]:
    """The command lines of the README's first console block."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```console\n(.*?)```", text, re.DOTALL)
    assert block is not None
    return re.findall(r"^\$ (.*)$", block[1], re.MULTILINE)


def main(chromium: str) -> None:
    """Run, lay out, photograph."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "examples" / "customers.csv", folder)
        shown = []
        for command in [*readme_commands(), VERIFY]:
            run = subprocess.run(
                command,
                shell=True,
                cwd=folder,
                env=os.environ | {"COLUMNS": "72"},
                check=True,
                capture_output=True,
                text=True,
            )
            typed = html.escape(command.replace(" --cert", " \\\n      --cert"))
            answer = run.stdout.partition("What is proved")[0].rstrip()
            shown.append(
                f"<b>$ {typed}</b>\n{html.escape(answer)}\n" if answer else f"<b>$ {typed}</b>\n"
            )
        (page,) = folder.glob("*.html")
        layout = folder / "layout.htm"
        layout.write_text(PAGE.format(terminal="\n".join(shown), page=page.name), encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        shot = folder / "shot.png"
        target = [f"--window-size={SIZE[0]},{SIZE[1]}", f"--screenshot={shot}", layout.as_uri()]
        subprocess.run([chromium, *flags, *target], check=True, capture_output=True)
        Image.open(shot).convert("RGB").quantize(COLOURS).save(TARGET, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "chromium")
