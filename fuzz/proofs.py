"""Certificates and checkpoints: files with lengths and checksums, which no mutation would survive.

So the fuzzer's input is their content alone, the header (one line of JSON) and then the arrays;
length, compression and checksum are put around it here. A file is thus always complete, and what is
tested is everything behind these first checks. Besides the rules for all targets: a certificate of
the problem below that is accepted must not claim a bound below the optimum, and the two checkers
must agree.
"""

from __future__ import annotations

import contextlib
import io
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from marginbn.exceptions import InputError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.problem.scores import get_local_score
from marginbn.proof import exact
from marginbn.proof.certificate import MAGIC as CERTIFICATE
from marginbn.proof.certificate import Certificate, read_certificate
from marginbn.proof.checker import verify_certificate
from marginbn.scoring.local_scores import linear_problem
from marginbn.solvers import solve_structure

_LENGTH = 8
_MEMBER = b"\n#\n"
"""Between the members of a checkpoint: name, line end, content."""


@cache
def problems() -> tuple[StructureProblem, ...]:
    """A soft margin, a binary margin with three parents, a general score and given scores."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 2, (24, 5))
    codes[:, 1] ^= codes[:, 0] & rng.integers(0, 2, 24)
    codes[:, 0] += rng.integers(0, 2, 24)
    variables = tuple(
        Variable(f"v{i}", tuple(map(str, range(3 if i == 0 else 2)))) for i in range(5)
    )
    data = EncodedData(codes.astype(np.int32), np.ones(24), variables)
    few = enumerate_candidates(4, 2, class_restricted=False)
    given = np.round(rng.normal(-20.0, 3.0, few.n_candidates), 2)
    return (
        StructureProblem(few, given, variables[:4]),
        margin_problem(data, enumerate_candidates(5, 2), gamma=1.0),
        margin_problem(data, enumerate_candidates(5, 3), margin="binary", gamma=0.5),
        linear_problem(
            data, enumerate_candidates(5, 2, class_restricted=False), get_local_score("mdl")
        ),
    )


@cache
def _optima() -> tuple[tuple[Certificate, float], ...]:
    """Genuine certificates of the problems, and their optima by formulation (19) on HiGHS."""
    pairs = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "proof"
        for problem in problems():
            solve_structure(problem, "auto", certificate=path)
            best = solve_structure(problem, "highs").objective
            pairs.append((read_certificate(path), best))
    return tuple(pairs)


def certificate_seeds() -> Iterator[bytes]:
    """Contents of genuine certificates, of proofs and of stopped searches."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "proof"
        for problem in problems():
            for nodes in (None, 1):
                solve_structure(problem, node_limit=nodes, certificate=path)
                content = zlib.decompress(path.read_bytes()[len(CERTIFICATE) :])
                yield _without_length(content)


def checkpoint_seeds() -> Iterator[bytes]:
    """Contents of checkpoints of stopped searches."""
    with TemporaryDirectory() as folder:
        for number, problem in enumerate(problems()):
            for nodes in (1, 2, 5):
                path = Path(folder) / f"{number}-{nodes}"
                solve_structure(problem, node_limit=nodes, checkpoint=path)
                if path.exists():
                    with zipfile.ZipFile(path) as archive:
                        members = archive.namelist()
                        yield _MEMBER.join(
                            name.encode() + b"\n" + archive.read(name) for name in members
                        )


def _without_length(content: bytes) -> bytes:
    """The header, a line end, the arrays."""
    end = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    return content[_LENGTH:end] + b"\n" + content[end:]


def _with_length(data: bytes) -> bytes:
    header, _, arrays = data.partition(b"\n")
    return len(header).to_bytes(_LENGTH, "little") + header + arrays


ROUNDING = 1e-5
"""Part of the larger of objective and bound by which the first checker may ask for more."""


def verify(data: bytes, folder: Path) -> None:
    """Read and check a certificate, by both checkers: what the first accepts the second accepts,
    and what the second accepts the first accepts but for its coarser rounding.
    """
    path = folder / "proof"
    path.write_bytes(CERTIFICATE + zlib.compress(_with_length(data), 1))
    with contextlib.redirect_stdout(io.StringIO()):
        second = exact.main([str(path)]) == 0
    try:
        certificate = read_certificate(path)
    except InputError:
        assert not second, "only the second checker reads the file"
        raise
    first = verify_certificate(certificate)
    if first.verified != second:
        assert second, "only the first checker accepts"
        room = ROUNDING * max(1.0, abs(certificate.objective), abs(certificate.bound))
        room += 64 * 2.0**certificate.grid
        wider = replace(
            certificate, objective=certificate.objective - room, bound=certificate.bound + room
        )
        coarse = any(word in first.reason for word in ("64-bit", "too large", "too many"))
        assert coarse or verify_certificate(wider), "only the second checker accepts"
    if not first.verified:
        return
    for genuine, best in _optima():
        if _same_problem(certificate, genuine):
            assert certificate.bound >= best - 1e-9 * abs(best), "a false claim is accepted"


def _same_problem(one: Certificate, other: Certificate) -> bool:
    same_data = np.array_equal(one.data.codes, other.data.codes) and np.array_equal(
        one.data.weights, other.data.weights
    )
    same_data &= one.data.scores == other.data.scores
    return same_data and one.score == other.score and one.candidates == other.candidates


def resume(data: bytes, folder: Path) -> None:
    """Go on from a checkpoint, whichever of the problems it is of, and search a little."""
    path = folder / "search"
    members = [member.partition(b"\n") for member in data.split(_MEMBER)]
    for problem in problems():
        with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # names may repeat
            for name, _, content in members:
                archive.writestr(name.decode("latin-1").replace("\0", "") or "x", content)
        with contextlib.suppress(InputError):  # of another problem, or nonsense
            solve_structure(problem, node_limit=20, time_limit=2.0, checkpoint=path)


def solve_all() -> None:
    """Import and compile everything that runs may need."""
    _optima()
    for problem in problems():
        for solver in ("branch_bound", "branch_cut", "dp"):
            if _can(problem, solver):
                solve_structure(problem, solver, node_limit=3)


def _can(problem: StructureProblem, name: str) -> bool:
    from marginbn.solvers import get_solver

    return get_solver(name).can_solve(problem) is None
