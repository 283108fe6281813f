"""Provably optimal Bayesian-network classifiers.

The public names stand in ``__init__.pyi``, where type checkers and editors look for them. Each is
imported when it is first used, so ``import marginbn`` stays fast.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pkgutil import get_data
from typing import Any

__version__ = "0.1.0"


def _read_homes() -> dict[str, str]:
    """The module of every public name."""
    listed = ast.parse(get_data(__name__, "__init__.pyi") or b"")
    imports = [node for node in listed.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_HOME_OF = _read_homes()

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'marginbn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
