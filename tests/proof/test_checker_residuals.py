"""Certificates of the residual score: both checkers, the format and the statement."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from certificates import certified, follows, sealed, second_opinion, spoil, verify_certificate
from marginbn.exceptions import FormatError
from marginbn.problem.interactions import FamilyGains
from marginbn.problem.residuals import residual_score
from marginbn.proof import checker, exact
from marginbn.proof.certificate import Candidates, Certificate, Score
from marginbn.proof.checker.values import SHIFT, ExactCounts, NotCheckableError, local_score
from marginbn.proof.definition import define_data
from marginbn.proof.format import (
    MAGIC,
    decode_certificate,
    encode_certificate,
    read_certificate,
    write_certificate,
)
from marginbn.proof.theorem import Statement
from problems import residual_case, small_residual_problem


def certificate_of(
    folder: Path, seed: int = 1, max_parents: int = 2, **options: object
) -> Certificate:
    """Of a small problem, accepted by the second checker."""
    problem = small_residual_problem(seed, max_parents=max_parents, n_rows=30, **options)
    return certified(problem, folder)


@pytest.mark.parametrize("max_parents", [1, 2, 3])  # no arcs, forests, clusters
@pytest.mark.parametrize("seed", range(3))
def test_honest_certificates_are_verified(seed: int, max_parents: int, tmp_path: Path) -> None:
    """Two, three and four classes, weights; by both checkers and by listing all structures."""
    certificate = certificate_of(tmp_path, seed, max_parents)
    verdict = verify_certificate(certificate)
    assert verdict, verdict.reason
    assert verdict.gap < 1e-9
    assert follows(certificate) is not False
    assert verdict.scale == pytest.approx(
        small_residual_problem(seed, max_parents=max_parents, n_rows=30).scale
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_both_checkers_enclose_the_formula(n_classes: int) -> None:
    """Within four units of 2^-44, against the formula in fractions."""
    case = residual_case(n_classes, n_rows=25, n_classes=n_classes)
    merged, score = residual_score(*case, ridge=0.7, price=0.3)  # no short binary fractions
    data = define_data(merged, score)
    counts, gains = ExactCounts(data), FamilyGains(merged, score)
    named = Score("residual", ridge=0.7, price=0.3)
    for child, parents in [(1, (0, 2)), (3, (0, 1, 2)), (0, (1, 4)), (1, (0,)), (1, (2,)), (0, ())]:
        with_child, before = (
            by_cells(data.codes, score.gradients, score.curvatures, sorted({*members} - {0}))
            if 0 in members and len(members) > 2
            else Fraction(0)
            for members in ((child, *parents), parents)
        )
        expected = with_child - max(0, before)
        gain, error = gains.local_score(child, parents)
        assert abs(Fraction(gain) - expected) <= error
        low, high = local_score(counts, named, child, parents)
        assert low <= expected * 2**SHIFT <= high <= low + 4


def by_cells(codes: np.ndarray, g: np.ndarray, h: np.ndarray, family: list[int]) -> Fraction:
    """ridge 0.7, price 0.3, as the doubles that they are."""
    ridge, price, n_classes = Fraction(0.7), Fraction(0.3), g.shape[1]
    cells: dict[tuple[int, ...], list[int]] = {}
    for m, row in enumerate(codes.tolist()):
        cells.setdefault(tuple(row[v] for v in family), []).append(m)
    total = Fraction(0)
    for rows in cells.values():
        for c in range(n_classes):
            a, b = (sum(Fraction(float(x[m, c])) for m in rows) for x in (g, h))
            total += a * a * (b + 2 * ridge) / (2 * (b + ridge) ** 2)
            total -= price * Fraction(n_classes - 1, n_classes) * b / (b + ridge)
    return total / (2 if n_classes == 2 else 1)


def test_the_second_checker_has_the_same_numbers(tmp_path: Path) -> None:
    """Every parent set there could be; its integers are much finer."""
    certificate = certificate_of(tmp_path, 2, 3)
    others = [[v for v in range(5) if v != i] for i in range(5)]
    listed = tuple(
        tuple(s for size in range(4) for s in itertools.combinations(own, size)) for own in others
    )
    every = replace(certificate, candidates=Candidates(None, listed, np.zeros(0, dtype=bool)))
    second = exact.Checker(encode_certificate(every))
    counts = ExactCounts(certificate.data)
    for k, (child, parents) in enumerate(second.candidates):
        low, high = local_score(counts, certificate.score, child, parents)
        lo, hi = (Fraction(v, 2 * second.unit * exact.SCALE) for v in second.local_score(k))
        assert Fraction(low, 2**SHIFT) <= lo <= hi <= Fraction(high, 2**SHIFT)
        assert hi - lo < Fraction(1, 10**30)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Columns to the last bit; the header of this score has its own numbers and no others."""
    certificate = certificate_of(tmp_path)
    write_certificate(tmp_path / "proof", certificate)
    read = read_certificate(tmp_path / "proof")
    assert read.score == certificate.score == Score("residual", ridge=3.0, price=0.5)
    assert certificate.data.gradients is not None
    np.testing.assert_array_equal(read.data.gradients, certificate.data.gradients)
    np.testing.assert_array_equal(read.data.curvatures, certificate.data.curvatures)
    assert encode_certificate(read) == encode_certificate(certificate)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"ridge": 3.0, "price": 0.5', b'"ridge": 3.0'),
        (b'"ridge": 3.0, "price": 0.5', b'"gamma": 1.0, "smoothing": 1.0'),
        (b'"ridge": 3.0', b'"ridge": "3"'),
        (b'"name": "residual"', b'"name": "mdl"'),
    ],
)
def test_other_keys_make_no_header(old: bytes, new: bytes, tmp_path: Path) -> None:
    """Unreadable for both."""
    import zlib

    content = zlib.decompress(encode_certificate(certificate_of(tmp_path))[len(MAGIC) :])
    length = int.from_bytes(content[:8], "little")
    header, arrays = content[8 : 8 + length], content[8 + length :]
    assert old in header
    changed = header.replace(old, new)
    packed = MAGIC + zlib.compress(len(changed).to_bytes(8, "little") + changed + arrays)
    with pytest.raises(Exception, match="header"):
        decode_certificate(packed)
    (tmp_path / "changed").write_bytes(packed)
    assert exact.main([str(tmp_path / "changed")]) == 2
    with pytest.raises(FormatError):
        checker.verify_certificate(tmp_path / "changed")


# ---------------------------------------------------------------------------------- refuted


def test_changed_residuals_do_not_have_the_fingerprint(tmp_path: Path) -> None:
    """Under the old fingerprint they are refuted; under their own they are another statement."""
    honest = certificate_of(tmp_path)
    assert honest.data.gradients is not None
    gradients = honest.data.gradients.copy()
    gradients[0, 0] += 2.0**-20
    changed = replace(honest, data=replace(honest.data, gradients=gradients))
    verdict = verify_certificate(changed)
    assert not verdict
    assert "fingerprint" in verdict.reason
    wanted = Statement.of(honest)
    assert checker.verify_certificate(honest, expect=wanted)
    found = Statement.of(sealed(changed))
    assert found.data == wanted.data  # the table is the same
    assert wanted.differences_of(found) == [
        f"residuals is {found.residuals!r}, not {wanted.residuals!r}"
    ]
    assert not checker.verify_certificate(sealed(changed), expect=wanted)


@pytest.mark.parametrize(("name", "value"), [("ridge", 0.5), ("price", 0.01)])
def test_other_numbers_are_another_statement(name: str, value: float, tmp_path: Path) -> None:
    """Smaller ones make larger gains: the bound no longer holds."""
    honest = certificate_of(tmp_path)
    changed = replace(honest, score=replace(honest.score, **{name: value}))
    assert "structures may score up to" in verify_certificate(changed).reason
    assert Statement.of(honest).differences_of(Statement.of(changed))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gradients": None}, "residuals belong to the residual score alone"),
        ({"curvatures": "fewer"}, "of the shape"),
        ({"gradients": "inf"}, "residuals must be finite"),
        ({"curvatures": "-1"}, "curvatures must not be negative"),
        ({"gradients": "1e-30"}, "add up to too many digits"),
        ({"gradients": "5e-324"}, "too many digits to be checked"),
    ],
)
def test_columns_that_make_no_sense(change: dict[str, object], reason: str, tmp_path: Path) -> None:
    """In memory, where no reader has looked at them."""
    honest = certificate_of(tmp_path)
    [(name, value)] = change.items()
    if isinstance(value, str):
        columns = getattr(honest.data, name).copy()
        if value == "fewer":
            value = columns[:, :-1]
        else:
            columns[0, 0] = float(value)
            value = columns
    changed = sealed(replace(honest, data=replace(honest.data, **{name: value})))
    verdict = checker.verify_certificate(changed)
    assert not verdict
    assert reason in verdict.reason


def test_other_scores_have_no_residuals(tmp_path: Path) -> None:
    """A column that nobody reads could say anything."""
    honest = certificate_of(tmp_path)
    verdict = checker.verify_certificate(replace(honest, score=Score("mdl")))
    assert verdict.reason == "residuals belong to the residual score alone"


def test_numbers_of_the_score_are_positive(tmp_path: Path) -> None:
    """A ridge of zero would divide by zero."""
    honest = certificate_of(tmp_path)
    for score in (replace(honest.score, ridge=0.0), replace(honest.score, price=-1.0)):
        assert not verify_certificate(replace(honest, score=score))
    free = replace(honest.score, price=0.0)
    assert "structures may score" in verify_certificate(replace(honest, score=free)).reason
    tiny = ExactCounts(replace(honest.data, gradients=np.full((30, 3), 5e-324)))
    with pytest.raises(NotCheckableError):
        local_score(tiny, honest.score, 1, (0, 2))


def test_spoiled_certificates_are_rejected(tmp_path: Path) -> None:
    """Whatever is changed so that the claim no longer follows is found, by both checkers."""
    verdicts: Counter[tuple[bool | None, bool]] = Counter()
    for seed in range(3):
        problem = small_residual_problem(seed, n_features=3, n_rows=15, max_parents=2 + seed % 2)
        certificate = certified(problem, tmp_path)
        rng = np.random.default_rng(seed)
        for _ in range(60):
            spoiled = spoil(certificate, rng)
            if spoiled is not None:
                verdicts[follows(spoiled), bool(verify_certificate(spoiled))] += 1
    assert verdicts[False, True] == 0
    assert verdicts[False, False] > 20
    assert verdicts[True, True] > 0


# ---------------------------------------------------------------------------------- in words


def test_the_statement_says_what_it_is_relative_to(tmp_path: Path) -> None:
    """Ridge, price, the hash of the residuals; arcs from the class go without saying."""
    certificate = certificate_of(tmp_path, required=[(1, 2)], forbidden=[(3, 4)])
    found = Statement.of(certificate)
    assert found.score_text().startswith(
        "residual score, ridge 3, price 0.5, relative to given residuals"
    )
    assert (found.ridge, found.price, found.gamma) == (3.0, 0.5, None)
    assert found.required == (("v1", "v2"),)
    assert found.forbidden == (("v3", "v4"),)
    assert found.candidate_text() == (
        "all sets of at most 2 parents, the class among them; the class has none"
    )
    assert found.data == certificate.data.table_fingerprint() != found.residuals
    assert found.record()["residuals"] == certificate.fingerprint
    problem = small_residual_problem(1, n_rows=30)
    assert problem.origin is not None
    assert found.data == define_data(problem.origin[0]).fingerprint()


def test_the_second_checker_says_so_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Name and numbers."""
    certificate = certificate_of(tmp_path)
    write_certificate(tmp_path / "proof", certificate)
    assert exact.main([str(tmp_path / "proof")]) == 0
    assert "score: name residual, ridge 3, price 1/2" in capsys.readouterr().out
    assert second_opinion(certificate) == ""
    assert math.isfinite(certificate.bound)
