"""Scripts and styles of the page, which lie as files in the folder ``page``.

The scripts are ordinary modules that import one another. A page opened from disk may not load
modules, so they are joined into one: in an order in which each comes after what it imports,
without their import lines. All of them then share one scope, in which every name is there once.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files

INFERENCE = ("factors", "elimination", "inference")
"""Scripts that compute posteriors; they know nothing of a page."""

SCRIPTS = (
    *INFERENCE,
    "format",
    "elements",
    "focus",
    "cards",
    "explore",
    "tables",
    "picture",
    "start",
)
STYLES = ("base", "parts", "figures", "explore", "print")

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function |class |const )", re.MULTILINE)


def read_asset(name: str) -> str:
    """Text of a file in the folder ``page``."""
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def join_scripts(names: Sequence[str] = SCRIPTS) -> str:
    """The scripts as one module."""
    return "\n".join(
        _EXPORT.sub("", _IMPORT.sub("", read_asset(f"{name}.js"))).strip() + "\n" for name in names
    )


def join_styles() -> str:
    """All styles as one sheet."""
    return "\n".join(read_asset(f"{name}.css").strip() + "\n" for name in STYLES)


def content_policy(script: str) -> str:
    """What a browser may do with the page: run this script, show what is in the file, no more."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
