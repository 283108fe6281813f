"""A sample of the rows with tables of all rows: a start for a search whose answer is for all."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from marginbn import InputError, MaxMarginBNClassifier, solve_structure
from marginbn.cli import app
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.proof.definition import Definition
from marginbn.solvers.branch_bound import row_sample
from marginbn.solvers.branch_bound.arrays import encode
from marginbn.solvers.memory import BranchBoundShape
from marginbn.solvers.result import Status


def rows_of(n_rows: int, n_classes: int = 3, seed: int = 3) -> EncodedData:
    """Features that copy the class or a neighbour with noise."""
    rng = np.random.default_rng(seed)
    arities = [n_classes, 3, 4, 3, 5, 3]
    codes = [rng.integers(0, n_classes, n_rows)]
    for a in arities[1:]:
        source = codes[rng.integers(0, len(codes))]
        noisy = rng.random(n_rows) < 0.6
        codes.append(np.where(noisy, rng.integers(0, a, n_rows), source % a))
    names = [Variable(str(i), tuple(map(str, range(a)))) for i, a in enumerate(arities)]
    return EncodedData(np.stack(codes, axis=1), np.ones(n_rows), tuple(names))


def problem_of(n_rows: int = 900, margin: str = "multiclass") -> StructureProblem:
    candidates = enumerate_candidates(6, 2)
    return margin_problem(rows_of(n_rows), candidates, margin=margin, gamma=0.8)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are sampled too."""
    monkeypatch.setattr(row_sample, "MOST_SAMPLES", 60)
    monkeypatch.setattr(row_sample, "FEWEST_SAMPLES", 10)


@pytest.mark.parametrize("margin", ["multiclass", "binary"])
def test_the_sample_has_the_tables_of_all_rows(margin: str) -> None:
    """Its margins are those of the whole problem, row by row; its weights add up by class."""
    problem = problem_of(margin=margin)
    encoding = encode(problem, threads=1)
    sample = row_sample.sampled_problem(problem, encoding, 1e9)
    assert sample is not None
    assert sample.margins is not None
    assert problem.margins is not None
    assert 10 <= sample.n_samples <= 70 < problem.n_samples
    own, whole = sample.margins.data, problem.margins.data
    place = {row.tobytes(): m for m, row in enumerate(np.ascontiguousarray(whole.codes))}
    rows = [place[row.tobytes()] for row in np.ascontiguousarray(own.codes)]
    for k in range(problem.candidates.n_candidates):
        np.testing.assert_array_equal(sample.margins.column(k), problem.margins.column(k)[rows])
    for c in range(3):
        of_sample = sample.sample_weights[own.codes[:, 0] == c].sum()
        of_all = problem.sample_weights[whole.codes[:, 0] == c].sum()
        assert of_sample == pytest.approx(of_all)


def test_its_coefficients_are_those_that_would_be_made() -> None:
    """What is handed over to the engine equals what it would count."""
    problem = problem_of()
    sample = row_sample.sampled_problem(problem, encode(problem, threads=1), 1e9)
    assert sample is not None
    assert sample.margins is not None
    given = encode(sample).instance
    sample.margins.derived.clear()
    made = encode(sample).instance
    np.testing.assert_allclose(given.columns, made.columns, atol=1e-12)
    np.testing.assert_allclose(given.magnitude, made.magnitude, rtol=1e-12)


@pytest.mark.parametrize("margin", ["multiclass", "binary"])
def test_the_answer_is_for_all_rows(margin: str) -> None:
    """Same optimum as with all rows, whatever the sample says."""
    problem = problem_of(margin=margin)
    whole = solve_structure(problem, rows="all")
    found = solve_structure(problem, rows="sample")
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(whole.objective, rel=1e-6)


def test_a_search_that_is_stopped_has_the_structure_of_the_sample() -> None:
    """It is scored with all rows, and the bound is that of all rows."""
    problem = problem_of()
    whole = solve_structure(problem, rows="all")
    found = solve_structure(problem, rows="sample", node_limit=1)
    sample = row_sample.sampled_problem(problem, encode(problem, threads=1), 1e9)
    assert sample is not None
    best = solve_structure(sample).selection
    assert found.objective >= problem.evaluate(best)
    assert found.bound >= whole.objective >= found.objective


def test_samples_have_to_fit() -> None:
    """As many as memory has room for, or none at all."""
    shape = BranchBoundShape.of(problem_of())
    assert row_sample.sample_size(shape, 1e9) == 60
    assert row_sample.sample_size(shape, 1e6) == 0
    problem = problem_of()
    assert row_sample.sampled_problem(problem, encode(problem, threads=1), 1e6) is None
    assert row_sample.sampled_problem(problem, encode(problem), 1e9) is None  # coefficients fit


def test_a_sample_is_no_basis_for_a_certificate() -> None:
    """Its tables are not those of its rows, so a checker could not make them."""
    problem = problem_of()
    sample = row_sample.sampled_problem(problem, encode(problem, threads=1), 1e9)
    assert sample is not None
    with pytest.raises(InputError, match="tables of their own"):
        Definition.of(sample)


def test_rows_are_told_by_estimators_and_options(tmp_path: object) -> None:
    """A choice that does not exist, and one that the solver does not know."""
    data = rows_of(400)
    X, y = data.codes[:, 1:], data.codes[:, 0]
    clf = MaxMarginBNClassifier(rows="sample", gap_tolerance=1e-6).fit(X, y)
    usual = MaxMarginBNClassifier(rows="all", gap_tolerance=1e-6).fit(X, y)
    assert clf.objective_ == pytest.approx(usual.objective_, rel=1e-6)
    with pytest.raises(InputError, match="rows must be one of"):
        MaxMarginBNClassifier(rows="some").fit(X, y)
    with pytest.raises(InputError, match="'branch_bound'"):
        MaxMarginBNClassifier(rows="sample", solver="highs").fit(X, y)
    path = f"{tmp_path}/table.csv"
    header = ",".join(f"v{i}" for i in range(6))
    np.savetxt(path, data.codes, fmt="%d", delimiter=",", header=header, comments="")
    call = ["fit", path, "--target", "v0", "-o", f"{tmp_path}/m.json", "--rows"]
    assert CliRunner().invoke(app, [*call, "sample"]).exit_code == 0
    refused = CliRunner().invoke(app, [*call, "some"])
    assert refused.exit_code != 0
    assert "rows must be one of" in refused.output
