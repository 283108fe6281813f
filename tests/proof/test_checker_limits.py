"""What a check takes: known before it begins, limited, and linear in the number of leaves."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_format import tiny_certificate, with_header
from typer.testing import CliRunner

from certificates import certified, sealed
from marginbn.cli import app
from marginbn.exceptions import ProblemTooLargeError
from marginbn.problem.candidates import CandidateRule, enumerate_candidates
from marginbn.proof.certificate import (
    EDGE,
    FOREST,
    Candidates,
    Certificate,
    Data,
    Extent,
    Multipliers,
    Score,
)
from marginbn.proof.checker import read_within, verify_certificate
from marginbn.proof.checker.bounds import Majorants
from marginbn.proof.checker.statement import (
    MOST_WORK,
    admit,
    build_space,
    count_candidates,
    default_memory,
    needed,
)
from marginbn.proof.checker.values import log_gamma_units, log_units
from marginbn.proof.checker.verdict import Branch, read_shape
from marginbn.proof.format import encode_certificate, write_certificate
from problems import small_linear_problem, small_margin_problem


@contextmanager
def peak_below(limit: float) -> Iterator[None]:
    """Inside the block at most so many bytes are taken."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= limit


# ---------------------------------------------------------------------------------- memory


def many_classes(count: int) -> Certificate:
    """As many classes as rows: a small file, but ``count`` squared margins."""
    labels = tuple(map(str, range(count)))
    codes = np.column_stack([np.arange(count), np.zeros(count)]).astype(np.int32)
    data = Data(("class", "x"), (labels, ("0", "1")), codes, np.ones(count))
    return sealed(replace(tiny_certificate(), data=data, duals=()))


def test_many_classes_are_refused_before_they_are_counted(tmp_path: Path) -> None:
    """20000 classes and rows once took more than 8 GB, from a file of 150 kB."""
    certificate = many_classes(20_000)
    write_certificate(tmp_path / "proof", certificate)
    assert (tmp_path / "proof").stat().st_size < 300_000
    for source in (certificate, tmp_path / "proof"):
        with (
            peak_below(1.2e8),
            pytest.raises(ProblemTooLargeError, match=r"may take \d+ MB .* raise max_memory"),
        ):
            verify_certificate(source, max_memory=4 * 10**9)
    assert "the incumbent scores" in verify_certificate(many_classes(20)).reason


@pytest.mark.parametrize("kind", ["multiclass", "binary", "three parents", "k2", "mdl"])
def test_no_more_is_taken_than_was_said(kind: str, tmp_path: Path) -> None:
    """With just as much as is needed every certificate is checked, with one byte less none."""
    if kind in ("k2", "mdl"):
        problem = small_linear_problem(1, n_features=4, n_rows=80, score=kind)
    else:
        problem = small_margin_problem(
            1, n_features=4, n_rows=80, max_parents=3 if kind == "three parents" else 2,
            margin="binary" if kind == "binary" else "multiclass",
        )  # fmt: skip
    certificate = certified(problem, tmp_path)
    memory = needed(certificate.extent).memory
    log_units.cache_clear()
    log_gamma_units.cache_clear()
    with peak_below(memory):
        assert verify_certificate(certificate, max_memory=memory)
    assert verify_certificate(certificate)
    with pytest.raises(ProblemTooLargeError, match="raise max_memory"):
        verify_certificate(certificate, max_memory=memory - 1)
    with pytest.raises(ProblemTooLargeError, match="raise max_memory"):
        verify_certificate(tmp_path / "proof.cert", max_memory=memory)  # the file comes on top


def test_large_headers_and_multipliers_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """Text and tuples take many times their length in a file."""
    path = tmp_path / "proof"
    path.write_bytes(with_header(tiny_certificate(), incumbent=[[]] * 100_000))
    with peak_below(4e6), pytest.raises(ProblemTooLargeError, match="reading the header may take"):
        read_within(path, 5 * 10**6)
    many = Multipliers(tuple([0] * 200_000), tuple([1.0] * 200_000))
    path.write_bytes(encode_certificate(replace(tiny_certificate(), multipliers=(many,))))
    with peak_below(4e6), pytest.raises(ProblemTooLargeError, match="reading the multipliers may"):
        read_within(path, 10**7)
    assert len(read_within(path, 10**8).multipliers[0].rows) == 200_000


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("max_parents", range(5))
def test_candidates_are_counted_without_making_them(restricted: bool, max_parents: int) -> None:
    """Never fewer than there are; as many where nothing is required or forbidden."""
    for n in (1, 2, 3, 6):
        rule = CandidateRule(max_parents, restricted, (), (), ())
        made = enumerate_candidates(n, max_parents, class_restricted=restricted)
        extent = Extent(9, (2,) * n, Score("k2"), rule, (), 2)
        assert count_candidates(extent) == (made.n_candidates, made.max_parents)


def test_work_is_limited() -> None:
    """Weeks are not begun; half of the machine is the default for memory."""
    huge = Extent(10**6, (2,) * 100, Score("binary"), CandidateRule(2, True, (), (), ()), (), 10**6)
    assert needed(huge).work > MOST_WORK
    with pytest.raises(ProblemTooLargeError, match="operations, more than"):
        admit(huge, 2**60)
    assert default_memory() >= 10**8


def test_running_out_of_memory_all_the_same_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, with a remedy."""

    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("marginbn.proof.checker.verdict.build_space", full)
    with pytest.raises(ProblemTooLargeError, match="not enough memory to check"):
        verify_certificate(tiny_certificate())


def test_the_command_line_limits_memory(tmp_path: Path) -> None:
    """Too little is one line and exit code 1; nonsense names the argument."""
    path = tmp_path / "proof"
    write_certificate(path, tiny_certificate())
    run = CliRunner()
    assert run.invoke(app, ["verify", str(path), "--max-memory", "1GB"]).exit_code == 0
    little = run.invoke(app, ["verify", str(path), "--max-memory", "10 kB"])
    assert little.exit_code == 1
    assert "raise max_memory (--max-memory)" in little.stderr
    nonsense = run.invoke(app, ["verify", str(path), "--max-memory", "much"])
    assert nonsense.exit_code != 0
    assert "max_memory must be a positive number of bytes" in nonsense.stderr


# ---------------------------------------------------------------------------------- depth


def chain(depth: int) -> Certificate:
    """An edge decided again and again, each time on the side that has it."""
    tree = [EDGE, 0, 1, FOREST, 0] * depth + [FOREST, 0]
    return replace(tiny_certificate(), tree=np.array(tree, dtype=np.int32))


def wide_chain(depth: int, n: int) -> Certificate:
    """The same with n features, so that a mask of candidates takes n squared bytes."""
    codes = np.zeros((2, n + 1), dtype=np.int32)
    codes[1] = 1
    names = tuple(map(str, range(n + 1)))
    data = Data(names, (("a", "b"),) * (n + 1), codes, np.array([9.0, 9.0]))
    rule = CandidateRule(2, True, (), (), ())
    return sealed(
        replace(
            chain(depth),
            data=data,
            candidates=Candidates(rule, (), np.zeros(0, dtype=bool)),
            incumbent=((), *((0,),) * n),
        )
    )


def test_chains_are_walked_in_linear_memory() -> None:
    """Each of 1500 levels once kept a mask of 1300 candidates, and a set of its edges."""
    certificate = wide_chain(1500, 30)
    assert verify_certificate(certificate).n_leaves == 1501
    shape = read_shape(certificate.tree)
    assert (shape.n_leaves, shape.depth) == (1501, 2)
    space = build_space(certificate.data, certificate.candidates)
    assert space.member.any()  # made before memory is looked at
    branch = Branch(space, np.ones(len(space.parents), dtype=bool))
    with peak_below(1500 * 500):
        for _ in range(1500):
            branch.split(EDGE, (0, 1))
            branch.turn()
    assert len(branch.path) == 1500
    deep = chain(1000)
    memory = needed(deep.extent).memory
    verify_certificate(deep)  # so that only the walk is measured
    with peak_below(memory):
        assert verify_certificate(deep, max_memory=memory).n_leaves == 1001


def test_where_a_leaf_is_nobody_asks_unless_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was put into words for every leaf, which takes as long as the way there."""
    asked: list[int] = []
    monkeypatch.setattr(Branch, "where", lambda self: asked.append(1) or "there")
    assert verify_certificate(chain(300)).n_leaves == 301
    assert asked == []
    verdict = verify_certificate(replace(chain(300), bound=35.9, objective=0.0))
    assert verdict.reason.startswith("leaf 0 (there): structures may score up to 36.0")
    assert len(asked) == 1


def test_a_leaf_costs_one_majorant_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves that name dual weights to and fro over more blocks than are kept."""
    monkeypatch.setattr("marginbn.proof.checker.bounds.BLOCK_BYTES", 8 * 4 * 3)  # three at a time
    made: list[int] = []
    compute = Majorants._compute_block

    def counting(self: Majorants, block: list[int]) -> object:
        made.extend(block)
        return compute(self, block)

    monkeypatch.setattr(Majorants, "_compute_block", counting)
    rng = np.random.default_rng(0)
    names = [int(d) for d in rng.integers(0, 12, 101)]
    tree = [entry for d in names[:-1] for entry in (EDGE, 0, 1, FOREST, d)] + [FOREST, names[-1]]
    certificate = replace(
        tiny_certificate(), tree=np.array(tree, dtype=np.int32), duals=tiny_certificate().duals * 12
    )
    assert verify_certificate(certificate).n_leaves == 101
    assert 12 <= len(made) <= 101


# ---------------------------------------------------------------------------------- trust base


def test_little_else_than_numpy_and_the_standard_library_is_to_trust(tmp_path: Path) -> None:
    """Nothing compiled by or for this package, no solver: neither to import nor to check.

    msgspec reads the header of the file (typing_extensions comes with it). The loader of public
    names comes with ``import marginbn`` and computes nothing.
    """
    write_certificate(tmp_path / "proof", tiny_certificate())
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from marginbn.proof.checker import verify_certificate\n"
        f"assert verify_certificate({str(tmp_path / 'proof')!r})\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "known = {'numpy', 'msgspec', 'typing_extensions', 'marginbn', 'lazy_loader'}\n"
        "print(sorted(new - set(sys.stdlib_module_names) - known))\n"
        "print(sorted(m for m in sys.modules if m.startswith(('marginbn.solvers', 'numba'))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["[]", "[]"]
