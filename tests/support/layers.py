"""The package's modules, their imports, and the list of layers."""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Iterator
from pathlib import Path

import marginbn

ROOT = Path(marginbn.__file__).parent

LIST = Path(__file__).parents[2] / "docs" / "layers.toml"
_LIST = tomllib.loads(LIST.read_text(encoding="utf-8"))


def read_layers() -> list[dict[str, str]]:
    """The layers in order: ``name``, ``does`` and, if any, the value it ``hands_on``."""
    return list(_LIST["layer"])


LAYERS = tuple(layer["name"] for layer in read_layers())

ORDERS: dict[str, tuple[str, ...]] = {
    "marginbn": LAYERS,
    **{f"marginbn.{package}": tuple(names) for package, names in _LIST["order"].items()},
}
"""Order of the layers of each package; the package itself (its __init__) comes after them."""

SIBLINGS = tuple((package, tuple(names)) for package, names in _LIST["siblings"].items())
"""Modules that can replace one another, so none may import another."""


def find_modules() -> dict[str, Path]:
    names = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = find_modules()

_parse = functools.cache(ast.parse)


def for_typing_only(tree: ast.Module) -> set[ast.AST]:
    """Everything inside ``if TYPE_CHECKING:``."""
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }


def read_imports(source: str, modules: dict[str, Path]) -> Iterator[str]:
    """Modules of the package that a source imports, at its top or anywhere inside."""
    tree = _parse(source)
    free = for_typing_only(tree)
    for node in ast.walk(tree):
        if node in free:
            continue
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if is_ours(a.name))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the import with its full name"
            if is_ours(node.module or ""):
                for alias in node.names:  # from marginbn import inference imports a module
                    inner = f"{node.module}.{alias.name}"
                    yield inner if inner in modules else str(node.module)


def is_ours(name: str) -> bool:
    return name.split(".")[0] == "marginbn"
