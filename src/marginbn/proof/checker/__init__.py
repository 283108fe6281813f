"""An independent checker of certificates.

It shares no code with the search: it reads the file, computes everything again from the encoded
data in the certificate, in arithmetic that is exact or rounded to the safe side, and says whether
the claim follows. Besides Python it needs NumPy, and msgspec to read the header. Read
:mod:`.verdict` first; :mod:`.values` has the formulas of scores, :mod:`.bounds` the mathematics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from marginbn.files import PathLike
from marginbn.proof.certificate import Certificate, Extent
from marginbn.proof.checker.statement import RefutedError, admit, check_form, default_memory
from marginbn.proof.checker.verdict import Progress, Verdict, check
from marginbn.proof.format import MAX_BYTES, read_certificate
from marginbn.proof.theorem import Statement, differences

__all__ = ["Verdict", "verify_certificate"]


def verify_certificate(
    certificate: PathLike | Certificate,
    *,
    progress: Progress | None = None,
    max_memory: int | None = None,
    expect: Statement | Sequence[Statement] = (),
) -> Verdict:
    """Check whether a certificate proves what it claims.

    Parameters
    ----------
    certificate
        A file written by a search with ``certificate=...``, or its content.
    progress
        Called now and then with the number of tree entries checked and their total.
    max_memory
        Bytes that the check may take. What it needs is known from the header of the file, and more
        than this is refused before anything is done. By default half of the machine's memory.
    expect
        What the certificate must prove; without it anything true will do, so read
        :meth:`Statement.of`. A certificate of another statement is refuted before its tree is read.

    Returns
    -------
    Verdict
        True if everything holds; its ``reason`` says what is wrong and where if not.

    Raises
    ------
    FormatError
        If the file is not a certificate at all, or a broken one.
    ProblemTooLargeError
        If the check could take more memory than ``max_memory``, or weeks.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from marginbn import (
    ...     EncodedData, Statement, Variable, enumerate_candidates, margin_problem,
    ...     solve_structure, verify_certificate,
    ... )
    >>> variables = (Variable("class", ("0", "1")), Variable("x", ("0", "1")))
    >>> data = EncodedData(np.array([[0, 0], [1, 1]] * 9), np.ones(18), variables)
    >>> problem = margin_problem(data, enumerate_candidates(2, 1), gamma=2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "proof.certificate")
    ...     result = solve_structure(problem, certificate=path)
    ...     verify_certificate(path).verified
    ...     verify_certificate(path, expect=Statement(gamma=3.0)).reason
    True
    'the certificate proves another statement: gamma is 2.0, not 3.0'
    """
    if not isinstance(certificate, Certificate):
        certificate = read_within(certificate, max_memory)
    wanted = [expect] if isinstance(expect, Statement) else list(expect)
    others = differences(certificate, wanted) if wanted and _has_form(certificate) else []
    if others:
        return Verdict(False, _another(others), certificate.objective, certificate.bound)
    verdict = check(certificate, progress, max_memory)
    numbers = (verdict.objective, verdict.bound, verdict.gap)
    unmet = [text for statement in wanted for text in statement.unmet_by(*numbers)]
    if verdict and unmet:
        return replace(verdict, verified=False, reason=_another(unmet))
    return verdict


def _another(told: list[str]) -> str:
    return f"the certificate proves another statement: {'; '.join(told)}"


def _has_form(certificate: Certificate) -> bool:
    """Whether a statement can be read off it; what has no form the check itself refutes."""
    try:
        check_form(certificate)
    except RefutedError:
        return False
    return True


def read_within(path: PathLike, max_memory: int | None = None) -> Certificate:
    """Read a certificate unless reading or checking it could take more memory than allowed."""
    allowed = default_memory() if max_memory is None else max_memory

    def look(extent: Extent, in_arrays: int) -> None:
        admit(extent, allowed, in_arrays)

    return read_certificate(path, min(MAX_BYTES, allowed), look, allowed)
