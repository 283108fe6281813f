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
from test_certificate import tiny_certificate

from certificates import sealed
from marginbn.exceptions import ProblemTooLargeError
from marginbn.problem.candidates import CandidateRule
from marginbn.proof.certificate import (
    EDGE,
    FOREST,
    Candidates,
    Certificate,
    Data,
    write_certificate,
)
from marginbn.proof.checker import verify_certificate
from marginbn.proof.checker.bounds import IntegerMajorant, Majorants


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
    with (
        peak_below(1.2e8),
        pytest.raises(ProblemTooLargeError, match="samples times variables and classes"),
    ):
        verify_certificate(tmp_path / "proof")
    assert "the incumbent scores" in verify_certificate(many_classes(20)).reason


def test_running_out_of_memory_all_the_same_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, with a remedy."""

    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("marginbn.proof.checker.verdict.build_space", full)
    with pytest.raises(ProblemTooLargeError, match="not enough memory to check"):
        verify_certificate(tiny_certificate())


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
            chain(depth), data=data, candidates=Candidates(rule, ()), incumbent=((), *((0,),) * n)
        )
    )


def test_chains_are_walked_in_linear_memory() -> None:
    """Each of 1500 levels once kept a mask of 1300 candidates, and a set of its edges."""
    certificate = wide_chain(1500, 30)
    assert verify_certificate(certificate).n_leaves == 1501
    with peak_below(1500 * 500):
        assert verify_certificate(certificate)


def test_a_tree_that_is_too_deep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every level that waits holds a mask of all candidates."""
    monkeypatch.setattr("marginbn.proof.checker.verdict.LARGEST_TABLE", 7)
    assert "too deep" in verify_certificate(chain(3)).reason


def test_a_leaf_costs_one_block_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves that name dual weights to and fro; those that there is room for are made once."""
    monkeypatch.setattr("marginbn.proof.checker.bounds.BLOCK_BYTES", 8 * 4 * 3)  # three at a time
    made: list[list[IntegerMajorant]] = []
    compute = Majorants._compute_block

    def counting(self: Majorants, block: int) -> list[IntegerMajorant]:
        made.append(compute(self, block))
        return made[-1]

    monkeypatch.setattr(Majorants, "_compute_block", counting)
    rng = np.random.default_rng(0)
    names = [int(d) for d in rng.integers(0, 12, 101)]
    tree = [entry for d in names[:-1] for entry in (EDGE, 0, 1, FOREST, d)] + [FOREST, names[-1]]
    certificate = replace(
        tiny_certificate(), tree=np.array(tree, dtype=np.int32), duals=tiny_certificate().duals * 12
    )
    assert verify_certificate(certificate).n_leaves == 101
    assert 4 < len(made) <= 101
    assert {len(block) for block in made} == {3}
    made.clear()
    monkeypatch.setattr("marginbn.proof.checker.bounds.BLOCK_BYTES", 10**6)
    assert verify_certificate(certificate).n_leaves == 101
    assert list(map(len, made)) == [12]


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
