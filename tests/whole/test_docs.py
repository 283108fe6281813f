"""The documentation: examples everywhere, stories that end in a figure, a site without warnings.

Doctests of docstrings and pages run by themselves; see ``pyproject.toml`` and ``docs/conftest.py``.
"""

from __future__ import annotations

import importlib
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import marginbn
from layers import LAYERS, MODULES
from marginbn.data.table import Table
from marginbn.network.explain import Explanations
from marginbn.problem.candidates import CandidateSets

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STORIES = sorted((ROOT / "examples").glob("plot_*.py"))
GENERATED = {"results", "unseen", "benchmarks", "recovery"}
"""Pages that a build makes from records (``write_results`` in ``docs/conf.py``)."""
PAGES = [
    p
    for p in sorted(DOCS.rglob("*.rst"))
    if not {"_build", "gallery", "generated"} & {*p.parts} and p.stem not in GENERATED
]

PACKAGES = ("marginbn", "marginbn.datasets")
WORKED_WITH = (
    marginbn.BayesianNetwork,
    CandidateSets,
    Explanations,
    marginbn.Structure,
    marginbn.StructureProblem,
    Table,
    importlib.import_module("marginbn.classifiers").BaseBNClassifier,
)
"""Classes whose public methods are explained by examples too, of their own or of the class."""


def shown_in(cls: type, method: str) -> bool:
    """Whether an example of the class calls the method: one set-up serves them all."""
    examples = re.findall(r"^(?:>>>|\.\.\.) .*", inspect.getdoc(cls) or "", re.MULTILINE)
    return any(f".{method}(" in line for line in examples)


def public_things() -> Iterator[tuple[str, Any]]:
    """Functions and classes that users import, and the methods of those they work with."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            if callable(getattr(module, name)):
                yield f"{package}.{name}", getattr(module, name)
    for cls in WORKED_WITH:
        for name, member in vars(cls).items():
            function = getattr(member, "__func__", member)
            is_public = inspect.isfunction(function) and not name.startswith("_")
            if is_public and not shown_in(cls, name):
                yield f"{cls.__name__}.{name}", function


@pytest.mark.parametrize("thing", [pytest.param(thing, id=name) for name, thing in public_things()])
def test_everything_public_has_an_example(thing: Callable[..., Any]) -> None:
    """A docstring begins with a sentence; doctest runs an example, its own or the one it names."""
    text = inspect.getdoc(thing) or ""
    assert text.split("\n")[0].strip(), "no first line"
    if "Examples\n--------\n" in text:
        assert ">>> " in text, "no example in it"
    else:
        call = re.compile(rf"(>>>|\.\.\.) .*\b{thing.__name__}\(")
        examples = [inspect.getdoc(home) or "" for home in homes_of(thing)]
        assert any(call.search(example) for example in examples), "no example calls it"


def homes_of(thing: Callable[..., Any]) -> list[Any]:
    """The class of a method, or what the docstring of a function sends readers to."""
    named = re.findall(r"[Ee]xample[^.:]*:(?:class|func):`(\w+)`", inspect.getdoc(thing) or "")
    paths = re.findall(r"[Ee]xample[^.:]*:class:`~([\w.]+)`", inspect.getdoc(thing) or "")
    own = [cls for cls in WORKED_WITH if cls.__name__ == thing.__qualname__.split(".")[0]]
    homes = [getattr(marginbn, name) for name in named]
    return own + homes + [pydoc.locate(path) for path in paths]


def test_there_are_at_least_six_stories() -> None:
    assert len(STORIES) >= 6


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r":doc:`(?:[^`<]*<)?([^`>]+)>?`", page.read_text(encoding="utf-8")):
        base = DOCS if target.startswith("/") else page.parent
        path = (base / target.lstrip("/")).resolve()
        if path.parent.name == "gallery":
            assert path.stem == "index" or (ROOT / "examples" / f"{path.stem}.py").exists(), target
        else:
            made = path.parent == DOCS and path.name in GENERATED
            assert made or path.with_suffix(".rst").exists(), target


def test_every_public_name_has_a_place_in_the_reference() -> None:
    listed = set(
        re.findall(r"^   ([\w.]+)$", (DOCS / "api" / "index.rst").read_text(), re.MULTILINE)
    )
    assert set(marginbn.__all__) <= listed
    assert [name for name in sorted(listed) if not is_known(f"marginbn.{name}")] == []


def is_known(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    home, _, attribute = name.rpartition(".")
    return name in MODULES or hasattr(importlib.import_module(home), attribute)


def test_the_architecture_names_what_is_there() -> None:
    """Every module and type on the page exists, and so does the loop that it shows."""
    text = (DOCS / "architecture.rst").read_text(encoding="utf-8")
    names = re.findall(r"``(marginbn\.[\w.]+)``", text)
    assert len(names) > 20
    assert [name for name in names if not is_known(name)] == []
    (shown,) = re.findall(r":pyobject: (\w+)\.(\w+)", text)
    loop = importlib.import_module("marginbn.solvers.tree_search")
    assert hasattr(getattr(loop, shown[0]), shown[1])


def test_contributing_names_what_is_there() -> None:
    """Every path exists, and ``name`` in a path stands in that file; at most 100 lines."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    roots = (ROOT, ROOT / "src" / "marginbn")
    paths = [
        p for p in re.findall(r"`([\w./-]+)`", text) if "/" in p or p.endswith((".md", ".toml"))
    ]
    assert len(paths) > 25
    assert [p for p in paths if not any((root / p).exists() for root in roots)] == []
    pattern = r"`(\w+)`(?: and `(\w+)`)?,? in `([\w/]+\.py)`"
    found = re.findall(pattern, " ".join(text.split()))
    assert len(found) > 10
    for *names, path in found:
        file = next(root / path for root in roots if (root / path).exists())
        source = file.read_text(encoding="utf-8")
        assert [n for n in names if n and not re.search(rf"\b{n}\b", source)] == [], path


def test_the_map_shows_every_layer_and_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box for each, a dot for each import, and all dots left of the layer's own square."""
    monkeypatch.syspath_prepend(DOCS)
    layers_map = importlib.import_module("layers_map")
    drawn = ElementTree.fromstring(layers_map.draw_map())
    svg = "{http://www.w3.org/2000/svg}"
    assert [e.text for e in drawn.iter(f"{svg}text") if e.get("class") == "name"] == list(LAYERS)
    own = {float(e.get("y", "")) + 5: float(e.get("x", "")) + 5 for e in selves(drawn, svg)}
    dots = [(float(e.get("cx", "")), float(e.get("cy", ""))) for e in drawn.iter(f"{svg}circle")]
    assert len(dots) == sum(map(len, layers_map.imports_between_layers().values())) > len(LAYERS)
    assert all(x < own[y] for x, y in dots)
    listed = layers_map.list_modules()
    assert all(f"``{name}``" in listed for name in ("encode", "problem", "solve"))


def selves(drawn: ElementTree.Element, svg: str) -> list[ElementTree.Element]:
    return [e for e in drawn.iter(f"{svg}rect") if e.get("class") == "self"]


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("sphinx_gallery", reason="needs the group docs")
    command = ["-m", "sphinx", "-b", "html", "-n", "-W", "--keep-going", "-q"]
    result = subprocess.run(
        [sys.executable, *command, "-d", tmp_path / "doctrees", DOCS, tmp_path / "html"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "html" / "gallery" / "index.html").exists()
