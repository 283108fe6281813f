"""The size of src as numbers, and the limits that ``whole/ratchets.toml`` sets them.

``python tests/ratchets.py`` prints every number with its limit and lowers each limit to its number.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from typer.main import get_command

import marginbn
from marginbn.cli import app
from support.layers import MODULES, ROOT

FILE = Path(__file__).parent / "whole" / "ratchets.toml"

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def count_parameters(function: Definition) -> int:
    """Parameters of a function or a method, ``self`` and ``cls`` left out."""
    taken = function.args
    names = [a.arg for a in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
    starred = (taken.vararg is not None) + (taken.kwarg is not None)
    return len(names) - (names[:1] in (["self"], ["cls"])) + starred


def count_body_lines(function: Definition) -> int:
    """Lines from the first statement after the docstring to the last."""
    body = function.body[ast.get_docstring(function) is not None :]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def functions_in(sources: list[str]) -> Iterator[Definition]:
    """Every function and method, nested ones included."""
    for source in sources:
        yield from (n for n in ast.walk(ast.parse(source)) if isinstance(n, Definition))


def measure() -> dict[str, int]:
    """The present numbers, in the order of the file."""
    sources = [path.read_text(encoding="utf-8") for path in MODULES.values()]
    functions = list(functions_in(sources))
    constructors = [f for f in functions if f.name == "__init__"]
    public = [getattr(marginbn, name) for name in marginbn.__all__]
    estimators = [thing for thing in public if inspect.isclass(thing) and hasattr(thing, "fit")]
    declared = [len(inspect.signature(estimator).parameters) for estimator in estimators]
    others = [f for f in functions if f.name != "__init__"]
    commands = get_command(app).commands  # type: ignore[attr-defined]
    return {
        "lines": sum(source.count("\n") for source in sources),
        "files": len(sources),
        "top_level_files": len(list(ROOT.glob("*.py"))),
        "public_names": len(marginbn.__all__),
        "constructor_parameters": max(*declared, *map(count_parameters, constructors)),
        "function_parameters": max(map(count_parameters, others)),
        "function_lines": max(map(count_body_lines, functions)),
        "commands": len(commands),
        "fit_options": sum(p.param_type_name == "option" for p in commands["fit"].params),
    }


def read_limits() -> dict[str, int]:
    """The numbers of the file."""
    return dict(tomllib.loads(FILE.read_text(encoding="utf-8")))


def lower() -> None:
    """Write every number that fell below its limit into the file."""
    text, limits = FILE.read_text(encoding="utf-8"), read_limits()
    for name, number in measure().items():
        print(f"{name}: {number} (limit {limits[name]})")  # noqa: T201
        text = re.sub(rf"^{name} = \d+", f"{name} = {min(number, limits[name])}", text, flags=re.M)
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    lower()
