"""Certificates for tests: how to make them, and what both checkers say about them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from marginbn.files import PathLike
from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.margins import MarginRows
from marginbn.problem.problem import StructureProblem
from marginbn.problem.scores import get_local_score
from marginbn.proof import checker, exact
from marginbn.proof.certificate import MAGIC, Certificate, encode_certificate, read_certificate
from marginbn.proof.checker.verdict import Progress
from marginbn.scoring.local_scores import linear_problem
from marginbn.solvers import solve_structure

UNCLEAR = 1e-6
"""Relative distance to a claim within which the slow opinion says nothing."""


def certified(problem: StructureProblem, folder: Path, **options: object) -> Certificate:
    """The certificate of a solve; both checkers have accepted it."""
    path = folder / "proof.cert"
    solve_structure(problem, certificate=path, **options)  # type: ignore[arg-type]
    assert exact.main([str(path)]) == 0
    return read_certificate(path)


LIMITS = ("too fine", "makes no sense", "too deep", "too large")
"""Reasons of the first checker that speak of its own arithmetic, not of the claim."""


def verify_certificate(
    source: Certificate | PathLike, progress: Progress | None = None
) -> checker.Verdict:
    """The verdict of the first checker; the second one must come to the same.

    It may verify what the first cannot decide: where claims are closer than the first one's
    rounding, and where its integers are too small.
    """
    verdict = checker.verify_certificate(source, progress=progress)
    certificate = source if isinstance(source, Certificate) else read_certificate(source)
    if verdict:
        assert second_opinion(certificate) == "", verdict
    elif second_opinion(certificate) == "" and not any(w in verdict.reason for w in LIMITS):
        size = UNCLEAR * max(1.0, abs(certificate.objective), abs(certificate.bound))
        claims = {"objective": certificate.objective + size, "bound": certificate.bound - size}
        assert second_opinion(replace(certificate, **claims)), verdict.reason
    return verdict


def second_opinion(certificate: Certificate) -> str:
    """Why the second checker does not verify a certificate; empty if it does."""
    try:
        exact.Checker(encode_certificate(certificate)).check()
    except (exact.Refuted, ValueError) as error:
        return str(error) or "unreadable"
    return ""


def sealed(certificate: Certificate) -> Certificate:
    """With the fingerprint that its data have now."""
    return replace(certificate, fingerprint=certificate.data.fingerprint())


# ---------------------------------------------------------------------------------- problems


def rebuild(c: Certificate) -> StructureProblem:
    """The problem of a certificate, made by the package itself; with the listed sets, if any.

    Equal rows stay apart, so that dual weights keep their order.
    """
    variables = tuple(Variable(n, s) for n, s in zip(c.data.names, c.data.states, strict=True))
    data = EncodedData(c.data.codes, c.data.weights, variables)
    if c.candidates.listed:
        child = [i for i, own in enumerate(c.candidates.listed) for _ in own]
        listed = tuple(p for own in c.candidates.listed for p in own)
        candidates = CandidateSets(len(variables), np.array(child, dtype=np.int32), listed)
    else:
        candidates = enumerate_candidates(len(variables), **vars(c.candidates.rule))
    if not c.score.is_margin:
        score = get_local_score(c.score.name, c.score.equivalent_sample_size)
        return linear_problem(data, candidates, score)
    return StructureProblem(
        candidates,
        np.zeros(candidates.n_candidates),
        data.variables,
        MarginRows(data, candidates, c.score.name, c.score.smoothing),  # type: ignore[arg-type]
        data.weights,
        c.score.gamma,
    )


# ---------------------------------------------------------------------------------- files


def unfolded(certificate: Certificate) -> tuple[bytes, bytes]:
    """Header and arrays of the file."""
    content = zlib.decompress(encode_certificate(certificate)[len(MAGIC) :])
    end = 8 + int.from_bytes(content[:8], "little")
    return content[8:end], content[end:]


def folded(header: bytes, arrays: bytes) -> bytes:
    """The file of a header and arrays."""
    return MAGIC + zlib.compress(len(header).to_bytes(8, "little") + header + arrays)


def with_header(certificate: Certificate, **changes: object) -> bytes:
    """The file with other entries in its header."""
    header, arrays = unfolded(certificate)
    return folded(json.dumps({**json.loads(header), **changes}).encode(), arrays)


def with_header_text(certificate: Certificate, change: Callable[[str], str]) -> bytes:
    """The file with another text in its header; fails if nothing changes."""
    header, arrays = unfolded(certificate)
    text = header.decode()
    changed = change(text)
    assert changed != text
    return folded(changed.encode(), arrays)
