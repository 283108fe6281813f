"""Attacks that were once accepted, or kept a checker busy: both checkers refuse them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_certificate import tiny_certificate
from typer.testing import CliRunner

from certificates import sealed
from marginbn.cli import app
from marginbn.exceptions import InputError
from marginbn.problem.candidates import CandidateRule
from marginbn.proof import exact
from marginbn.proof.certificate import (
    CLUSTERS,
    MAX_TREE,
    Candidates,
    Certificate,
    Data,
    Score,
    encode_certificate,
)
from marginbn.proof.checker import pruning, verify_certificate


def verdicts(content: Certificate | bytes, folder: Path) -> tuple[bool, bool]:
    """Whether either checker accepts the file of a certificate."""
    path = folder / "proof.cert"
    path.write_bytes(content if isinstance(content, bytes) else encode_certificate(content))
    try:
        first = bool(verify_certificate(path))
    except InputError:
        first = False
    return first, exact.main([str(path)]) == 0


# ------------------------------------------------------------------------------- work (A4, A5)


def one_large_set(members: int) -> Certificate:
    """A binary variable that may have all others as parents, or none."""
    n = members + 1
    names = tuple(f"x{i}" for i in range(n))
    data = Data(names, (("0", "1"),) * n, np.zeros((1, n), dtype=np.int32), np.ones(1))
    listed = (((), tuple(range(1, n))), *(((),),) * members)
    return sealed(
        replace(
            tiny_certificate(),
            data=data,
            score=Score("loglik"),
            candidates=Candidates(None, listed),
            incumbent=((),) * n,
            objective=-1.0,
            bound=1.0,
            duals=(),
            tree=np.array([CLUSTERS, 0, 0], dtype=np.int32),
            multipliers=((),),
        )
    )


def test_rules_with_too_many_sets_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file must not ask for 2^40 sets: log likelihood has no rule that closes any, as long
    as a variable varies and the others do not. Both checkers are given less work than usual here.
    """
    monkeypatch.setattr(exact, "MAX_COUNTED", 10**6)
    monkeypatch.setattr(pruning, "MOST_WORK", 10**5)
    plain = one_large_set(40)
    codes = np.zeros((2, 41), dtype=np.int32)
    codes[1, 0] = 1
    data = Data(plain.data.names, plain.data.states, codes, np.ones(2))
    rule = CandidateRule(40, False, (), (), ())
    candidates = Candidates(rule, (((),),) * 41, 1e-6)
    forged = replace(plain, data=data, candidates=candidates, objective=-9.0, bound=1e6, grid=-30)
    forged = sealed(forged)
    assert "too many" in verify_certificate(forged).reason
    assert verdicts(forged, tmp_path) == (False, False)
    one_parent = replace(rule, max_parents=1)
    few = replace(forged, candidates=replace(candidates, rule=one_parent))
    assert verdicts(few, tmp_path) == (True, True)


def test_trees_have_a_largest_size(tmp_path: Path) -> None:
    """A5: a small file with 49 million entries is refused by its header."""
    tree = np.zeros(MAX_TREE + 1, dtype=np.int32)
    assert verdicts(replace(tiny_certificate(), tree=tree), tmp_path) == (False, False)
    assert (tmp_path / "proof.cert").stat().st_size < 100_000


# ------------------------------------------------------------------------------- ranges (A7)


def test_scores_have_one_name_each(tmp_path: Path) -> None:
    """A7: the format knows mdl, and bic is another word for it elsewhere."""
    plain = one_large_set(2)
    for name, is_fine in (("mdl", True), ("bic", False)):
        certificate = replace(plain, score=Score(name), objective=-9.0, bound=1.0)
        assert verdicts(certificate, tmp_path) == (is_fine, is_fine)


# ------------------------------------------------------------------------------- dates and amounts


def write_prices(path: Path, rows: int = 150) -> None:
    """Amounts in both ways of writing, units, words among them, dates, and missing values."""
    rng = np.random.default_rng(5)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["signed", "due", "price", "fee", "weight", "label"])
        for y in rng.integers(0, 2, rows):
            price = f"${1000 + 500 * y + rng.normal(0, 300):,.2f}"
            fee = f"{1000 + 400 * y + rng.normal(0, 300):,.2f} €"
            signed = (
                f"{2019 + y + rng.integers(0, 3)}-{rng.integers(1, 13):02}-{rng.integers(1, 28)}"
            )
            writer.writerow(
                [
                    "" if rng.random() < 0.05 else f"{signed[:8]}{int(signed[8:]):02}",
                    f"{rng.integers(13, 28)}.{rng.integers(1, 13)}.{2020 + y}",
                    "unknown" if rng.random() < 0.02 else price,
                    fee.translate(str.maketrans(",.", ".,")),
                    f"{rng.integers(40, 99)}.{rng.integers(0, 9)} kg",
                    f"c{y}",
                ]
            )


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fit of dates and amounts."""
    folder = tmp_path_factory.mktemp("prices")
    write_prices(folder / "t.csv")
    arguments = ["fit", str(folder / "t.csv"), "-t", "label", "-q", "--method", "max-margin"]
    arguments += ["--holdout", "0", "--missing", "state", "-o", str(folder / "m.json")]
    found = CliRunner().invoke(app, [*arguments, "--certificate", str(folder / "proof.cert")])
    assert found.exit_code == 0, found.output
    return folder


def codes_of_both(folder: Path, table: Path) -> tuple[int, int]:
    """Exit codes of both checkers about the model and a table."""
    arguments = [
        str(folder / "proof.cert"),
        "--model",
        str(folder / "m.json"),
        "--data",
        str(table),
    ]
    return CliRunner().invoke(app, ["verify", *arguments]).exit_code, exact.main(arguments)


def test_dates_and_amounts_are_read_by_both_checkers(prices: Path) -> None:
    """All kinds of columns are prepared, and the rows are those of the certificate."""
    model = json.loads((prices / "m.json").read_text())
    kinds = [plan["kind"] for plan in model["preparation"]]
    assert kinds == ["date", "day-first", "amount", "decimal-comma", "amount"]
    assert codes_of_both(prices, prices / "t.csv") == (0, 0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("$1,", "$7,"),  # another number
        ("$", "€"),  # another unit
        (".2020,", ".2022,"),  # another year
        (" kg", " lb"),  # another unit where every number has one state
        ("unknown", "$1.00"),  # a word that was missing
        (" €", " € about"),  # no amount at all
    ],
)
def test_other_dates_and_amounts_are_refuted(
    old: str, new: str, prices: Path, tmp_path: Path
) -> None:
    text = (prices / "t.csv").read_text()
    assert old in text
    (tmp_path / "t.csv").write_text(text.replace(old, new, 1))
    assert 0 not in codes_of_both(prices, tmp_path / "t.csv")
