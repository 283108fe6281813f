"""Imports point up the list of rooms only, inside functions too; imports for typing are free.

The list (``docs/rooms.toml``) is the architecture: a module may import what stands before it. A new
module gets a place there. Where two modules want each other, the shared part belongs in a room
above both.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import marginbn

ROOT = Path(marginbn.__file__).parent

LIST = Path(__file__).parents[2] / "docs" / "rooms.toml"
_LIST = tomllib.loads(LIST.read_text(encoding="utf-8"))

ORDERS: dict[str, tuple[str, ...]] = {
    "marginbn": tuple(room["name"] for room in _LIST["room"]),
    **{f"marginbn.{package}": tuple(names) for package, names in _LIST["order"].items()},
}
"""Order of the rooms of each package; the package itself (its __init__) comes after its rooms."""

SIBLINGS = tuple((package, tuple(names)) for package, names in _LIST["siblings"].items())
"""Rooms that can replace one another, so none may lean on another."""

NAMERS = {"marginbn", "marginbn.solvers.solve"}
"""Modules that name others in strings, to import them later: the public names, the registry."""


def find_modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    names = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = find_modules()


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
    tree = ast.parse(source)
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


def place(module: str) -> list[tuple[str, int]]:
    """Where a module stands: (package, position) from the outside in, KeyError if nowhere."""
    parts = module.split(".")
    places = []
    for depth in range(1, len(parts)):
        package = ".".join(parts[:depth])
        if package not in ORDERS:
            return places  # a set of siblings has no inner order
        if parts[depth] not in ORDERS[package]:
            raise KeyError(package)
        places.append((package, ORDERS[package].index(parts[depth])))
    if module in ORDERS and module != "marginbn":
        places.append((module, len(ORDERS[module])))
    return places


def points_up(importer: str, imported: str) -> bool:
    """Whether the imported module stands before the importer."""
    if imported == "marginbn":  # holds the version, and imports nothing by itself
        return True
    for own, other in zip(place(importer), place(imported), strict=False):
        if own != other:
            return other[1] < own[1]
    return True


def advise(module: str, package: str) -> str:
    """What to do about a module without a place."""
    above = sorted(set(read_imports(MODULES[module].read_text(encoding="utf-8"), MODULES)))
    below = sorted(
        name
        for name, path in MODULES.items()
        if module in read_imports(path.read_text(encoding="utf-8"), MODULES)
    )
    return (
        f"{module} has no place in the list of rooms: add it to {package!r} in "
        f"docs/{LIST.name}, after everything it imports ({', '.join(above) or 'nothing'}) "
        f"and before everything that imports it ({', '.join(below) or 'nothing'})"
    )


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_a_place(module: str) -> None:
    """A new module must be put on the list, where its imports demand."""
    try:
        place(module)
    except KeyError as error:
        pytest.fail(advise(module, error.args[0]))


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_up(module: str) -> None:
    """No module imports what stands below it, nor the package that it is part of."""
    source = MODULES[module].read_text(encoding="utf-8")
    if module == "marginbn":
        assert list(read_imports(source, MODULES)) == [], "the public names are imported lazily"
        return
    try:
        wrong = [name for name in read_imports(source, MODULES) if not points_up(module, name)]
    except KeyError:
        pytest.skip("a module without a place: told by the test above")
    assert not wrong, (
        f"{module} imports {', '.join(wrong)}, which stand below it: move the shared part to a "
        f"room above both, or import it under TYPE_CHECKING if only a type is needed"
    )


def test_there_is_no_cycle() -> None:
    """All modules can be put in a row, siblings included."""
    graph = {
        name: set(read_imports(path.read_text(encoding="utf-8"), MODULES)) - {"marginbn"}
        for name, path in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these modules import one another in a circle: {error.args[1]}")


@pytest.mark.parametrize(("package", "siblings"), SIBLINGS)
def test_siblings_do_not_lean_on_one_another(package: str, siblings: tuple[str, ...]) -> None:
    """Things that can replace one another import none of the others."""
    names = [f"marginbn.{package}.{s}" for s in siblings]
    for module, path in MODULES.items():
        own = next((n for n in names if (module + ".").startswith(n + ".")), None)
        if own is None:
            continue
        for imported in read_imports(path.read_text(encoding="utf-8"), MODULES):
            others = [n for n in names if n != own and (imported + ".").startswith(n + ".")]
            assert not others, f"{module} imports its sibling {imported}"


@pytest.mark.parametrize("module", sorted(set(MODULES) - NAMERS))
def test_nobody_else_imports_by_string(module: str) -> None:
    """Only the public names and the solver registry name modules in strings."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    named = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"marginbn(\.\w+)+", node.value)
        and node.value in MODULES
    ]
    assert not named, f"{module} names {named} in a string; import it where the list allows"


def test_the_checker_shares_no_code_with_the_search() -> None:
    """It imports its own modules and the file format; of other packages only NumPy."""
    own = {n: p for n, p in MODULES.items() if n.startswith("marginbn.proof.checker")}
    assert len(own) >= 6
    format_ = {"marginbn.proof.certificate", "marginbn.proof.format", "marginbn.files"}
    for path in own.values():
        source = path.read_text(encoding="utf-8")
        assert set(read_imports(source, MODULES)) <= own.keys() | format_
        imported = re.findall(r"^\s*(?:from|import) (\w+)", source, re.MULTILINE)
        assert {*imported} - sys.stdlib_module_names <= {"marginbn", "numpy"}


def test_the_list_names_no_room_twice() -> None:
    """Every room has one place."""
    for package, rooms in ORDERS.items():
        assert len(set(rooms)) == len(rooms), package


def test_the_reader_sees_imports_everywhere_but_for_typing() -> None:
    """Top, function and else-branch count; TYPE_CHECKING and other packages do not."""
    source = """
import numpy, marginbn.data.counts
from typing import TYPE_CHECKING
from marginbn.network import elimination
from marginbn import __version__
if TYPE_CHECKING:
    from marginbn.cli import main
else:
    from marginbn.network.network import BayesianNetwork
def later():
    from marginbn.solvers.result import Status
"""
    assert sorted(read_imports(source, MODULES)) == [
        "marginbn",
        "marginbn.data.counts",
        "marginbn.network.elimination",
        "marginbn.network.network",
        "marginbn.solvers.result",
    ]


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("marginbn.data.counts", "marginbn.data.encode", True),
        ("marginbn.data.encode", "marginbn.data.counts", False),
        ("marginbn.solvers.solve", "marginbn.problem.problem", True),
        ("marginbn.problem.problem", "marginbn.solvers.solve", False),
        ("marginbn.solvers.solve", "marginbn.solvers.result", True),
        ("marginbn.solvers.result", "marginbn.solvers.solve", False),
        ("marginbn.solvers.result", "marginbn.solvers", False),  # its own package
        ("marginbn.solvers", "marginbn.solvers.result", True),
        ("marginbn.classifiers.base", "marginbn.solvers", True),
        (
            "marginbn.solvers.branch_bound.kernels.tree",
            "marginbn.solvers.branch_bound.engine",
            False,
        ),
        ("marginbn.solvers.branch_bound.engine", "marginbn.solvers.run", True),
        ("marginbn.export.bif", "marginbn.export.scanner", True),
        ("marginbn.export.scanner", "marginbn.export.bif", False),
        ("marginbn.cli.fit", "marginbn.cli.model", True),  # siblings: no cycle is enough
        ("marginbn.classifiers.model_file", "marginbn", True),
    ],
)
def test_the_rule_by_hand(importer: str, imported: str, allowed: bool) -> None:
    """A few imports whose verdict is plain."""
    assert points_up(importer, imported) is allowed
