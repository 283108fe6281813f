"""The how-to pages are followed: their steps are done here, and end in a certificate."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

import marginbn
from marginbn.exceptions import InputError
from marginbn.problem import scores
from marginbn.problem.problem import StructureProblem
from marginbn.problem.scores import SCORES, DecomposableScore, get_local_score
from marginbn.proof.certificate import Certificate, RowKind, read_certificate
from marginbn.proof.checker import values, verify_certificate
from marginbn.proof.checker.bounds import ROW_RULES
from marginbn.proof.checker.values import decomposable_scores
from marginbn.scoring.local_scores import linear_problem
from marginbn.solvers import solve_structure
from marginbn.solvers.branch_cut.cuts import Cut
from problems import small_linear_problem
from seeds import slow

PAGES = Path(__file__).parents[2] / "docs" / "howto"


def definition(page: str, name: str, module: ModuleType) -> Any:
    """A function that a page defines, as if it stood in a module."""
    for example in doctest.DocTestParser().get_examples((PAGES / page).read_text("utf-8")):
        if re.match(rf"(@.*\n)*(def|class) {name}\b", example.source):
            namespace = dict(vars(module))
            exec(example.source, namespace)
            return namespace[name]
    raise AssertionError(f"{page} defines no {name}")


def block(page: str, caption: str) -> str:
    """The code under a caption."""
    text = (PAGES / page).read_text("utf-8")
    found = re.search(rf":caption: {re.escape(caption)}\n\n((?: .*\n|\n)+)", text)
    assert found, f"{page} has no block {caption!r}"
    return textwrap.dedent(found[1])


def entry(page: str, caption: str, module: ModuleType, **names: Any) -> dict[str, Any]:
    """The line of a list that a page shows, as if it stood in a module."""
    made = eval("{" + block(page, caption) + "}", {**vars(module), **names})
    assert isinstance(made, dict)
    return made


def rescored(problem: StructureProblem, name: str) -> StructureProblem:
    """The same problem with a score by name."""
    assert problem.origin is not None
    return linear_problem(problem.origin[0], problem.candidates, get_local_score(name))


def add_score(monkeypatch: pytest.MonkeyPatch, certificate: bool) -> None:
    """What the page says, without or with the checker's line."""
    function = definition("add_score.rst", "hannan_quinn", scores)
    caption = "SCORES in src/marginbn/problem/scores.py"
    for name, made in entry("add_score.rst", caption, scores, hannan_quinn=function).items():
        monkeypatch.setitem(SCORES, name, made)
    caption = "PENALTIES in src/marginbn/proof/checker/values.py"
    for name, made in entry("add_score.rst", caption, values).items():
        monkeypatch.delitem(values.PENALTIES, name, raising=False)
        if certificate:
            monkeypatch.setitem(values.PENALTIES, name, made)


@pytest.mark.parametrize("max_parents", [2, 3])  # bounds by forests and by clusters
@pytest.mark.parametrize("seed", range(3))
def test_an_added_score_has_a_certificate_that_verifies(
    seed: int, max_parents: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Function, list, checker: the three steps of the page."""
    add_score(monkeypatch, certificate=True)
    problem = rescored(small_linear_problem(seed, n_features=4, max_parents=max_parents), "hq")
    result = solve_structure(problem, certificate=tmp_path / "c")
    certificate: Certificate = read_certificate(tmp_path / "c")
    assert certificate.score.name == "hq"
    verdict = verify_certificate(certificate)
    assert verdict, verdict.reason
    assert verdict.gap <= 1e-6
    assert verdict.objective <= result.objective <= verdict.bound


def test_a_score_without_formula_has_no_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said before the search, whether the list says None or the checker lacks the line."""

    def searched(*_: object) -> None:
        raise AssertionError("the search has begun")

    add_score(monkeypatch, certificate=False)
    problem = rescored(small_linear_problem(0), "hq")
    none = DecomposableScore(SCORES["hq"].function, certificate=None)
    for made in (SCORES["hq"], none):
        monkeypatch.setitem(SCORES, "hq", made)
        with pytest.raises(InputError, match=r"one of the scores \['aic'.*got hq: solve without"):
            solve_structure(problem, certificate=tmp_path / "c", callback=searched)
    assert not list(tmp_path.iterdir())


def test_a_penalty_that_is_not_defined_is_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logarithm of a logarithm has no value for a total weight of one or less."""
    monkeypatch.setitem(values.PENALTIES, "hq", lambda total: total.ln().ln())
    for total in (1.0, 0.5):
        with pytest.raises(values.RefutedError, match="not defined for the total weight"):
            values.penalty_units("hq", *total.as_integer_ratio())


def test_the_checker_knows_every_listed_formula() -> None:
    named = {score.certificate for score in SCORES.values()} - {None}
    assert named <= set(decomposable_scores())


# ---------------------------------------------------------------------------------- cuts

SOLVE = """
import sys
import numpy as np
from marginbn import EncodedData, Variable, enumerate_candidates, linear_problem
from marginbn import solve_structure, verify_certificate
from marginbn.problem.scores import bic
from marginbn.proof.certificate import read_certificate

codes = np.random.default_rng(0).integers(2, size=(40, 4))
codes[:, 2] = codes[:, 0] ^ codes[:, 1]
variables = tuple(Variable(name, ("0", "1")) for name in "abcd")
data = EncodedData(codes, np.ones(40), variables)
problem = linear_problem(data, enumerate_candidates(4, 3, class_restricted=False), bic)
result = solve_structure(problem, "branch_cut", certificate=sys.argv[1])
certificate = read_certificate(sys.argv[1])
kinds = sorted({row.kind for row in certificate.rows})
print(result.status.value, verify_certificate(certificate), kinds)
"""
"""Each of three variables is the exclusive or of the others."""


def solve_in(source: Path, folder: Path) -> str:
    """What a copy of the package says about the problem; its kernels are those of the package, so
    that machine code is there already.
    """
    path = os.pathsep.join([str(source), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", SOLVE, str(folder / "proof.cert")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def rewrite(source: Path, caption: str) -> None:
    """Do what a block of the page says: put it before a line, in its place, or into a list."""
    place, file = caption.split(" in src/")
    path, code = source / file, block("add_cut.rst", caption)
    text = path.read_text("utf-8")
    if place.startswith("before "):
        place = place.removeprefix("before ")
        pattern, made = rf"^{place}\b", f"{code}\n{place}"
    elif code.startswith(place):
        pattern, made = rf"^{place}\b.*\n", code
    else:
        pattern, made = rf"^{place}\b.*{{\n", f"{place} = {{\n{code}"
    text, count = re.subn(pattern, lambda _: made, text, count=1, flags=re.MULTILINE)
    assert count == 1, caption
    path.write_text(text, "utf-8")


@pytest.mark.parametrize("steps", [slow(2), 4])
def test_an_added_cut_is_used_and_certified(steps: int, tmp_path: Path) -> None:
    """The steps of the page, in a copy of the package: after two the search has the cut, and a
    certificate does without; after four the cut is in the proof.
    """
    source = tmp_path / "src"
    own = Path(marginbn.__file__).parent
    shutil.copytree(own, source / "marginbn", ignore=shutil.ignore_patterns("__pycache__"))
    text = (PAGES / "add_cut.rst").read_text("utf-8")
    captions = re.findall(r":caption: (.*)", text)
    assert len(captions) == 4
    for caption in captions[:steps]:
        rewrite(source, caption)
    output = solve_in(source, tmp_path)
    assert "optimal Verdict(verified=True" in output, output
    assert ("'two_cluster'" in output) is (steps == 4), output


def test_kinds_of_rows_are_the_same_everywhere() -> None:
    """Cuts name rows that the format has, and the checker has a rule for each of these."""
    assert ROW_RULES.keys() == set(get_args(RowKind))
    named = {kind.certificate for kind in Cut.__subclasses__() if kind.__module__ == Cut.__module__}
    assert named - {None} <= ROW_RULES.keys()
