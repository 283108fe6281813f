"""The public names: all there, listed once, and imported only when used."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import marginbn

PACKAGES = [
    f"marginbn.{module.name}" for module in pkgutil.iter_modules(marginbn.__path__) if module.ispkg
]


def run(code: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    return finished.stdout.strip()


@pytest.mark.parametrize("name", marginbn.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    member = getattr(marginbn, name)
    assert member.__module__.split(".")[0] == "marginbn"
    assert member.__doc__, f"{name} is public and needs a docstring"


def test_all_is_sorted_and_dir_tells_it() -> None:
    assert marginbn.__all__ == sorted(set(marginbn.__all__))
    assert dir(marginbn) == marginbn.__all__


def test_type_checkers_see_the_same_names() -> None:
    """The list for type checkers, which is the only one, exports what it imports."""
    source = Path(marginbn.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    exported = next(n.value for n in ast.parse(source).body if isinstance(n, ast.Assign))
    assert ast.literal_eval(exported) == marginbn.__all__
    assert len(marginbn.__all__) > 40


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="marginbn attribute Bayes"):
        _ = marginbn.Bayes


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "sklearn", "numba", "highspy", "narwhals", "pandas")
    loaded = run(f"import marginbn, sys; print([m for m in {heavy!r} if m in sys.modules])")
    assert loaded == "[]"


def test_solvers_and_compilers_wait_until_a_solve_starts() -> None:
    heavy = ("numba", "highspy", "polars")
    loaded = run(
        "import sys, marginbn\n"
        "from marginbn import *\n"
        "assert MaxMarginBNClassifier() and Search()\n"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    assert loaded == "[]"


PROGRAM = "import marginbn.interrupts\nmarginbn.interrupts.INTERRUPTS.is_program = True\n"


def test_the_program_loads_no_pandas() -> None:
    """scikit-learn imports it and scipy.stats for what a command does not call."""
    code = "import sys, marginbn.classifiers\n"
    code += "print([m for m in ('pandas', 'scipy.stats') if m in sys.modules])"
    assert run(PROGRAM + code) == "[]"


def test_scikit_learn_finds_what_was_postponed() -> None:
    """It imports pandas and scipy.stats when it is given something that needs them."""
    found = run(
        PROGRAM + "import sys, marginbn.classifiers\n"
        "from sklearn.utils import fixes\n"
        "print(fixes.pd.DataFrame({'u': [1, 2]}).u.sum(), fixes.scipy.stats.mode([1, 1, 2]).mode)\n"
        "import pandas, scipy.stats\n"
        "print(pandas is sys.modules['pandas'], callable(scipy.stats.mode))"
    )
    assert found.split() == ["3", "1", "True", "True"]


def test_a_library_replaces_no_module() -> None:
    """Another thread may import pandas at any moment: whatever is found there is the real one."""
    found = run(
        "import marginbn.classifiers, pandas\n"
        "from sklearn.utils import fixes\n"
        "print(fixes.pd is pandas, hasattr(pandas.__spec__, 'origin'))"
    )
    assert found.split() == ["True", "True"]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_keep_their_promises(package: str) -> None:
    module = importlib.import_module(package)
    names = list(getattr(module, "__all__", []))
    assert len(set(names)) == len(names)
    for name in names:
        assert hasattr(module, name), f"{package}.__all__ names {name}, which is not there"
