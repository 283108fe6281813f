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
from marginbn.proof.certificate import Certificate, read_certificate
from marginbn.proof.checker.verdict import Progress, Verdict, check
from marginbn.proof.theorem import Statement

__all__ = ["Verdict", "verify_certificate"]


def verify_certificate(
    certificate: PathLike | Certificate,
    *,
    progress: Progress | None = None,
    expect: Statement | Sequence[Statement] = (),
) -> Verdict:
    """Check whether a certificate proves what it claims.

    Parameters
    ----------
    certificate
        A file written by a search with ``certificate=...``, or its content as it was read.
    progress
        Called now and then with the number of tree entries checked and their total.
    expect
        What the certificate must prove; without it anything true will do, so read
        :meth:`Statement.of`. A certificate of another statement is refuted before its tree is read.

    Returns
    -------
    Verdict
        True if everything holds; its ``reason`` names what is wrong and where if not.

    Raises
    ------
    FormatError
        If the file is not a certificate at all, or a broken one.
    ProblemTooLargeError
        If the header asks for more memory than a few gigabytes, or for weeks.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginbn import MaxMarginBNClassifier, Statement, verify_certificate
    >>> X, y = [["red"], ["red"], ["blue"]] * 9, ["a", "a", "b"] * 9
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "proof.certificate")
    ...     clf = MaxMarginBNClassifier(gamma=2.0, certificate=path).fit(X, y)
    ...     verify_certificate(path).verified
    ...     verify_certificate(path, expect=Statement(gamma=3.0)).reason
    True
    'the certificate proves another statement: gamma is 2.0, not 3.0'
    """
    if not isinstance(certificate, Certificate):
        certificate = read_certificate(certificate)
    wanted = [expect] if isinstance(expect, Statement) else list(expect)
    found = Statement.of(certificate)
    told = [text for statement in wanted for text in statement.differences_of(found)]
    verdict = Verdict(True, "", certificate.objective, certificate.bound)
    if not told:
        verdict = check(certificate, progress)
        numbers = (verdict.objective, verdict.bound, verdict.gap)
        told = [text for statement in wanted for text in statement.unmet_by(*numbers)]
    if not verdict or not told:
        return verdict
    reason = f"the certificate proves another statement: {'; '.join(dict.fromkeys(told))}"
    return replace(verdict, verified=False, reason=reason)
