"""Imports point up the list of layers only, inside functions too; imports for typing are free.

The list (``docs/layers.toml``) is the architecture: a module may import what is listed before it.
A new module gets a place there. Where two modules need each other, their common part belongs in a
layer above both. Tests are in the folder of the layer that they test.
"""

from __future__ import annotations

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from layers import LAYERS, LIST, MODULES, ORDERS, SIBLINGS, read_imports

TESTS = Path(__file__).parents[1]

NAMERS = {"marginbn", "marginbn.solvers.solve"}
"""Modules that name others in strings, to import them later: the public names, the registry."""


def place(module: str) -> list[tuple[str, int]]:
    """The place of a module: (package, position) from the outside in, KeyError if nowhere."""
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
    """Whether the imported module is listed before the importer."""
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
        f"{module} has no place in the list of layers: add it to {package!r} in "
        f"docs/{LIST.name}, after everything it imports ({', '.join(above) or 'nothing'}) "
        f"and before everything that imports it ({', '.join(below) or 'nothing'})"
    )


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_a_place(module: str) -> None:
    try:
        place(module)
    except KeyError as error:
        pytest.fail(advise(module, error.args[0]))


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_up(module: str) -> None:
    source = MODULES[module].read_text(encoding="utf-8")
    if module == "marginbn":
        assert list(read_imports(source, MODULES)) == [], "the public names are imported lazily"
        return
    try:
        wrong = [name for name in read_imports(source, MODULES) if not points_up(module, name)]
    except KeyError:
        pytest.skip("a module without a place: reported by the test above")
    assert not wrong, (
        f"{module} imports {', '.join(wrong)}, which are listed below it: move the shared part "
        f"to a layer above both, or import it under TYPE_CHECKING if only a type is needed"
    )


def test_there_is_no_cycle() -> None:
    graph = {
        name: set(read_imports(path.read_text(encoding="utf-8"), MODULES)) - {"marginbn"}
        for name, path in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these modules import one another in a circle: {error.args[1]}")


@pytest.mark.parametrize(("package", "siblings"), SIBLINGS)
def test_siblings_do_not_import_one_another(package: str, siblings: tuple[str, ...]) -> None:
    """Things that can replace one another import none of the others; but kernels, which know
    arrays alone, may serve two of them.
    """
    names = [f"marginbn.{package}.{s}" for s in siblings]
    for module, path in MODULES.items():
        own = next((n for n in names if (module + ".").startswith(n + ".")), None)
        if own is None:
            continue
        for imported in read_imports(path.read_text(encoding="utf-8"), MODULES):
            others = [n for n in names if n != own and (imported + ".").startswith(n + ".")]
            others = [n for n in others if not imported.startswith(f"{n}.kernels.")]
            assert not others, f"{module} imports its sibling {imported}"


@pytest.mark.parametrize("module", sorted(set(MODULES) - NAMERS))
def test_nobody_else_imports_by_string(module: str) -> None:
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
    """Its own modules, the file format, what is proved, errors; of other packages only NumPy."""
    own = {n: p for n, p in MODULES.items() if n.startswith("marginbn.proof.checker")}
    assert len(own) >= 6
    proof = {f"marginbn.proof.{name}" for name in ("certificate", "format", "theorem")}
    format_ = {*proof, "marginbn.files", "marginbn.exceptions"}
    for path in own.values():
        source = path.read_text(encoding="utf-8")
        assert set(read_imports(source, MODULES)) <= own.keys() | format_
        imported = re.findall(r"^\s*(?:from|import) (\w+)", source, re.MULTILINE)
        assert {*imported} - sys.stdlib_module_names <= {"marginbn", "numpy"}


def test_the_list_names_no_layer_twice() -> None:
    for package, names in ORDERS.items():
        assert len(set(names)) == len(names), package


def test_the_reader_sees_imports_everywhere_but_for_typing() -> None:
    """Top, function and else-branch count; TYPE_CHECKING and other packages do not."""
    source = """
import numpy, marginbn.data.encode
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
        "marginbn.data.encode",
        "marginbn.network.elimination",
        "marginbn.network.network",
        "marginbn.solvers.result",
    ]


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("marginbn.data.encode", "marginbn.data.table", True),
        ("marginbn.data.table", "marginbn.data.encode", False),
        ("marginbn.data.encode", "marginbn.problem.encoded", True),
        ("marginbn.problem.problem", "marginbn.data.encode", False),  # nothing of the table side
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


# ---------------------------------------------------------------------- tests and size


def names_in(package: str) -> set[str]:
    """Names of a package, of its modules and of the packages inside it."""
    inside = [name for name in MODULES if f"{name}.".startswith(f"{package}.")]
    return {name.rpartition(".")[2] for name in inside}


TEST_FILES = sorted(
    path for path in TESTS.rglob("test_*.py") if path.relative_to(TESTS).parts[0] != "whole"
)


@pytest.mark.parametrize("path", [path.relative_to(TESTS).as_posix() for path in TEST_FILES])
def test_tests_are_in_the_folder_of_what_they_test(path: str) -> None:
    """tests/LAYER/test_MODULE_aspect.py; what concerns everything is in tests/whole."""
    *folders, name = Path(path).with_suffix("").parts
    package = ".".join(["marginbn", *folders])
    assert package in MODULES, f"there is no layer {package}"
    known = names_in(package)
    subject = name.removeprefix("test_")
    assert any(f"{subject}_".startswith(f"{module}_") for module in known), (
        f"tests/{path}: test_ must be followed by the name of a module in {package}: "
        f"{', '.join(sorted(known))}"
    )


def test_every_layer_exists() -> None:
    for package, names in ORDERS.items():
        missing = [name for name in names if f"{package}.{name}" not in MODULES]
        assert not missing, f"docs/{LIST.name} lists {missing} in {package}"
    assert set(LAYERS) == {name.split(".")[1] for name in MODULES if "." in name}


def test_names_mean_one_module_each() -> None:
    """The parts of two siblings of one protocol may have the same names; no other two files may."""
    families = [[f"marginbn.{package}.{name}." for name in names] for package, names in SIBLINGS]
    homes: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        if not path.stem.startswith("__"):
            homes.setdefault(path.stem, []).append(name)
    for same in (names for names in homes.values() if len(names) > 1):
        assert any(
            all(any(name.startswith(one) for one in family) for name in same) for family in families
        ), f"these have one name: {', '.join(same)}"
