"""Provably optimal Bayesian-network classifiers.

The public names stand in ``__init__.pyi``, where type checkers and editors look for them. Each is
imported when it is first used, so ``import marginbn`` stays fast. It imports nothing at all: a
Ctrl-C before the command line can hear it would show a traceback.
"""

from __future__ import annotations

__version__ = "0.2.0"

_HOME_OF: dict[str, str] = {}  # read when the first public name is asked for


def _read_homes() -> dict[str, str]:
    """The module of every public name."""
    import ast
    from pkgutil import get_data

    listed = ast.parse(get_data(__name__, "__init__.pyi") or b"")
    imports = [node for node in listed.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def _homes() -> dict[str, str]:
    if not _HOME_OF:
        _HOME_OF.update(_read_homes())
    return _HOME_OF


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(_homes())
    if name[:2] != "__" and name in _homes():
        from importlib import import_module

        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'marginbn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_homes(), "__version__"])
