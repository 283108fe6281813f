"""Solves that write certificates: what they find is proven, whatever ends them."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from branch_bound_cases import random_problem
from brute_force import brute_force
from certificates import certified, rebuild, verify_certificate
from data_folder import data_folder
from marginbn import (
    GenerativeBNClassifier,
    InputError,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    StructureProblem,
    enumerate_candidates,
    linear_problem,
    load_model,
    margin_problem,
    save_model,
)
from marginbn.cli import app
from marginbn.datasets.local import load_folder_dataset
from marginbn.exceptions import CertificateWarning
from marginbn.problem.encoded import EncodedData
from marginbn.problem.problem import drop_dominated
from marginbn.problem.scores import get_local_score
from marginbn.proof import write as searching
from marginbn.proof.certificate import read_certificate
from marginbn.proof.clusters import ClusterRelaxation
from marginbn.proof.forest import ForestRelaxation
from marginbn.proof.record import (
    RoundedMajorant,
    TreeNode,
    exact_shares,
    quantise,
    smooth_shares,
)
from marginbn.solvers import Search, solve_structure
from marginbn.solvers.branch_bound.kernels.children import contains
from marginbn.solvers.branch_bound.kernels.records import Box
from marginbn.solvers.result import Status
from marginbn.solvers.run import Stopped
from marginbn.solvers.tree_search import initial_bound
from problems import (
    linear_case,
    margin_case,
    random_case,
    random_table,
    small_linear_problem,
    small_margin_problem,
)

# ---------------------------------------------------------------------------------- weights


def test_shares_by_hand() -> None:
    """One rival far below gamma gets all, one far above nothing, one at gamma half."""
    margins = np.array([[-5.0], [5.0], [1.0]])
    np.testing.assert_allclose(smooth_shares(margins, 1.0, 0.5), [[1.0], [0.0], [0.5]])
    np.testing.assert_array_equal(exact_shares(margins, 1.0), [[1.0], [0.0], [0.0]])


@pytest.mark.parametrize("bits", [1, 2, 5, 7, 15, 24])
def test_rounded_shares_never_exceed_the_whole(bits: int) -> None:
    """Whatever is rounded up is taken back; nothing moves by more than the rounding."""
    rng = np.random.default_rng(bits)
    shares = rng.dirichlet(np.ones(5), 200)[:, :4]
    shares[:20] = [0.25, 0.25, 0.25, 0.25]
    dual = quantise(shares, bits)
    parts = dual.parts.astype(np.int64)
    assert (parts.sum(axis=1) <= 2**bits).all()
    assert (np.abs(parts / 2**bits - shares) <= 2.5 / 2**bits).all()


# ---------------------------------------------------------------------------------- small problems


def some_problems(seed: int) -> list[StructureProblem]:
    """Soft, binary and decomposable problems of up to three features and parents."""
    case = random_case(seed)
    score = ("mdl", "bdeu", "k2", "aic", "loglik")[seed % 5]
    return [
        margin_case(case, "multiclass"),
        margin_case(case, "binary"),
        linear_case(case, score),
        drop_dominated(linear_case(case, score)),
    ]


@pytest.mark.parametrize("seed", range(12))
def test_random_problems_are_certified(seed: int, tmp_path: Path) -> None:
    for problem in some_problems(seed):
        certificate = certified(problem, tmp_path)
        verdict = verify_certificate(certificate)
        assert verdict, verdict.reason
        assert verdict.gap <= 1e-6
        optimum = brute_force(rebuild(certificate))
        assert certificate.objective <= optimum <= certificate.bound
        assert brute_force(problem) == pytest.approx(optimum, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_rows_that_occur_twice_are_certified(seed: int, tmp_path: Path) -> None:
    """A problem made by hand, with equal rows as samples of their own and in any order."""
    problem = random_problem(np.random.default_rng(seed), 3)
    assert problem.margins is not None
    data = problem.margins.data
    assert not np.array_equal(data.merged().codes, data.codes)
    certificate = certified(problem, tmp_path)
    verdict = verify_certificate(certificate)
    assert verdict, verdict.reason
    assert certificate.objective <= brute_force(problem) <= certificate.bound


def test_other_weights_than_those_of_the_data_are_refused(tmp_path: Path) -> None:
    problem = random_problem(np.random.default_rng(0), 2)
    with pytest.raises(InputError, match="weights of the data"):
        certified(replace(problem, weights=2.0 * problem.sample_weights), tmp_path)


def test_what_varies_is_not_called_constant(tmp_path: Path) -> None:
    data = random_table(np.random.default_rng(0), 30, 3, 3).encoded()
    candidates = enumerate_candidates(4, 2, constant=[3])
    certificate = certified(margin_problem(data, candidates), tmp_path)
    assert certificate.candidates.rule is None
    assert certificate.candidates.listed[3] == ((),)
    assert verify_certificate(certificate)


@pytest.mark.parametrize("seed", range(3))
def test_constraints_are_part_of_the_definition(seed: int, tmp_path: Path) -> None:
    table = random_table(np.random.default_rng(seed), 30, 4, 3)
    rows, arities = [[*row[:4], 0] for row in table.rows], [*table.arities[:4], 1]
    data = replace(table, rows=rows, arities=arities).encoded()
    candidates = enumerate_candidates(
        5, 2, required=[(1, 2)], forbidden=[(0, 3), (2, 1)], constant=[4]
    )
    certificate = certified(margin_problem(data, candidates), tmp_path)
    assert certificate.candidates.rule == candidates.rule
    assert verify_certificate(certificate)


def test_candidates_without_a_rule_are_listed(tmp_path: Path) -> None:
    problem = small_margin_problem(3, n_features=3)
    keep = np.ones(problem.candidates.n_candidates, dtype=bool)
    keep[problem.candidates.index(1, (0, 2))] = False
    assert problem.margins is not None
    fewer = margin_problem(problem.margins.data, problem.candidates.keep(keep))
    certificate = certified(fewer, tmp_path)
    assert certificate.candidates.rule is None
    assert (0, 2) not in certificate.candidates.listed[1]
    assert verify_certificate(certificate)


@pytest.mark.parametrize("solver", ["highs", "branch_cut"])
def test_any_solver_may_search_first(solver: str, tmp_path: Path) -> None:
    problem = small_margin_problem(2, n_features=3)
    assert verify_certificate(certified(problem, tmp_path, solver=solver)).gap <= 1e-6


@pytest.mark.parametrize("scale", [1e-6, 1e9, None])
def test_extreme_numbers_are_certified(scale: float | None, tmp_path: Path) -> None:
    """Tiny, huge and mixed weights, small and large gamma, hardly any smoothing."""
    rng = np.random.default_rng(7)
    table = random_table(rng, 30, 3, 3)
    weights = 10.0 ** rng.uniform(-6, 9, 30) if scale is None else np.full(30, scale)
    data = EncodedData(np.array(table.rows), weights, table.encoded().variables)
    problems = [
        margin_problem(data, enumerate_candidates(4, 2), gamma=gamma, smoothing=smoothing)
        for gamma, smoothing in ((1e-3, 1.0), (50.0, 1e-6))
    ]
    candidates = enumerate_candidates(4, 3, class_restricted=False)
    problems += [linear_problem(data, candidates, get_local_score(s)) for s in ("bdeu", "aic")]
    for problem in problems:
        with warnings.catch_warnings():  # an optimum near 0 made of 1e9s has no relative gap
            warnings.simplefilter("ignore", CertificateWarning)
            verdict = verify_certificate(certified(problem, tmp_path))
        assert verdict, verdict.reason
        assert verdict.bound - verdict.objective <= 1e-6 * max(1.0, weights.sum())


# ---------------------------------------------------------------------------------- the kernel


@pytest.mark.filterwarnings("ignore::marginbn.exceptions.CertificateWarning")
def test_boxes_are_split_in_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every vertex of a box lies in one side of its split."""
    split, seen = ForestRelaxation._split, []

    def is_in(self: ForestRelaxation, box: Box, vertex: np.ndarray) -> bool:
        for name in ("allowed", "classes", "edges", "relevant"):
            getattr(self.child, name)[:] = getattr(box, name)
        return bool(contains(self.inst, self.child, vertex.astype(np.int64)))

    def divide(self: ForestRelaxation, majorant: RoundedMajorant) -> TreeNode:
        visit = split(self, majorant)
        assert visit.sides is not None
        for vertex in self.bounding.vertices[: len(visit.sides[0].state.vertices)]:
            sides = [is_in(self, side.state.box, vertex) for side in visit.sides]
            seen.extend(sides)
            assert sum(sides) == is_in(self, self.box, vertex)
        return visit

    monkeypatch.setattr(ForestRelaxation, "_split", divide)
    certified(small_margin_problem(5, n_features=7, n_rows=80, gamma=2.0), tmp_path, node_limit=40)
    assert set(seen) == {True, False}


# ---------------------------------------------------------------------------------- stopped solves


@pytest.mark.parametrize("max_parents", [2, 3])
def test_a_stopped_solve_proves_its_gap(max_parents: int, tmp_path: Path) -> None:
    problem = small_margin_problem(5, n_features=7, n_rows=80, gamma=2.0, max_parents=max_parents)
    gaps = []
    for nodes in (1, 12):
        path = tmp_path / f"{nodes}.cert"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)
            result = solve_structure(problem, node_limit=nodes, certificate=path)
        verdict = verify_certificate(path)
        assert verdict, verdict.reason
        assert verdict.bound >= result.objective
        gaps.append(verdict.gap)
    assert gaps[0] > gaps[1] > 1e-6


def test_a_certificate_that_proves_less_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the search is done but its proof ends at the root, a warning says both gaps."""
    problem = small_margin_problem(5, n_features=7, n_rows=80, gamma=2.0)
    visit, visits = ForestRelaxation.visit, []

    def visit_the_root(self: ForestRelaxation, claim: TreeNode) -> TreeNode:
        if visits:
            raise Stopped(Status.TIME_LIMIT)
        visits.append(claim)
        return visit(self, claim)

    monkeypatch.setattr(ForestRelaxation, "visit", visit_the_root)
    with pytest.warns(CertificateWarning, match="the certificate proves a gap of"):
        result = solve_structure(problem, certificate=tmp_path / "c")
    assert result.status is Status.OPTIMAL
    assert verify_certificate(tmp_path / "c").gap > 1e-6


def test_a_time_limit_is_shared(tmp_path: Path) -> None:
    """A limit of no time at all still gives a certificate."""
    problem = small_margin_problem(5, n_features=7, n_rows=80, gamma=2.0, max_parents=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        solve_structure(problem, time_limit=1e-9, certificate=tmp_path / "c")
    assert verify_certificate(tmp_path / "c")


def test_memory_ends_the_proof_not_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights beyond the limit end the search; what is there is written."""
    monkeypatch.setattr(searching, "PROOF_BYTES", 2000)
    problem = small_margin_problem(5, n_features=7, n_rows=80, gamma=2.0)
    with pytest.warns(CertificateWarning):
        solve_structure(problem, certificate=tmp_path / "c")
    verdict = verify_certificate(tmp_path / "c")
    assert verdict
    assert verdict.gap > 1e-6


def test_ctrl_c_writes_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the certifying search is a normal ending, and no node is lost by it."""
    visit, visits = ForestRelaxation.visit, []

    def interrupted(self: ForestRelaxation, claim: TreeNode) -> TreeNode:
        visits.append(claim)
        if len(visits) == 5:
            raise KeyboardInterrupt
        return visit(self, claim)

    monkeypatch.setattr(ForestRelaxation, "visit", interrupted)
    problem = small_margin_problem(5, n_features=7, n_rows=80, gamma=2.0)
    with pytest.warns(CertificateWarning, match="proves a gap"):
        result = solve_structure(problem, certificate=tmp_path / "c")
    assert result.status is Status.OPTIMAL  # the search was done
    verdict = verify_certificate(tmp_path / "c")
    assert verdict
    assert verdict.gap > 1e-6


def test_ctrl_c_before_the_proof_keeps_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: ForestRelaxation) -> TreeNode:
        raise KeyboardInterrupt

    monkeypatch.setattr(ForestRelaxation, "root", interrupted)
    with pytest.warns(CertificateWarning, match="interrupted before it was begun"):
        result = solve_structure(small_margin_problem(0), certificate=tmp_path / "c")
    assert result.status is Status.OPTIMAL


# ---------------------------------------------------------------------------------- refusals


def test_unknown_scores_are_refused(tmp_path: Path) -> None:
    problem = small_linear_problem(0)
    assert problem.origin is not None
    own = linear_problem(problem.origin[0], problem.candidates, lambda counts, total: 0.0)
    with pytest.raises(InputError, match="one of the scores"):
        solve_structure(own, certificate=tmp_path / "c")
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "where"):
        with pytest.raises(InputError, match="certificate must be a file in a folder"):
            solve_structure(small_margin_problem(0), certificate=path)


def test_a_full_disk_keeps_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.warns(CertificateWarning, match="No space left"):
        result = solve_structure(small_margin_problem(0), certificate=tmp_path / "c")
    assert result.status is Status.OPTIMAL


# ---------------------------------------------------------------------------------- users


def toy_rows() -> tuple[list[list[str]], list[str]]:
    rng = np.random.default_rng(0)
    labels = rng.choice(["no", "yes"], 60)
    rows = [[str(a ^ (label == "yes")) for a in rng.random(3) < 0.3] for label in labels]
    return rows, list(labels)


def test_classifiers_write_certificates(tmp_path: Path) -> None:
    """Every classifier that searches takes ``certificate=``; models do not carry it along."""
    X, y = toy_rows()
    for number, made in enumerate(
        (
            MaxMarginBNClassifier(),
            GenerativeBNClassifier(max_parents=3, class_restricted=False),
            MaxMarginBNClassifierCV(gammas=[1.0], max_parents=(1,)),
        )
    ):
        path = tmp_path / f"{number}.cert"
        classifier = made.set_params(certificate=path).fit(X, y)
        certificate = read_certificate(path)
        assert certificate.incumbent == classifier.structure_.parents
        assert verify_certificate(path)
        save_model(classifier, tmp_path / "model.json")
        assert load_model(tmp_path / "model.json").certificate is None
    with pytest.raises(InputError, match="certificate must be a path or None"):
        MaxMarginBNClassifier(certificate=3).fit(X, y)


def write_table(path: Path) -> None:
    X, y = toy_rows()
    lines = ["a,b,c,kind", *(",".join([*row, label]) for row, label in zip(X, y, strict=True))]
    path.write_text("\n".join(lines))


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, result.output


def test_another_table_is_told(tmp_path: Path) -> None:
    table, proof, other = tmp_path / "table.csv", tmp_path / "proof.cert", tmp_path / "other.csv"
    write_table(table)
    model = tmp_path / "model.json"
    run("fit", table, "-t", "kind", "--holdout", "0", "--certificate", proof, "-o", model)
    text = table.read_text()
    for changed, reason in (
        (text + "\nTrue,True,True,no", "the table has 61 rows to learn from, not 60"),
        (text.replace("True,True", "False,True", 1), "rows have other weights"),
        (text.replace("True", "T"), "has no state for"),
        (text.replace("a,b,c", "a,b,d"), "lacks columns: ['c']"),
    ):
        other.write_text(changed)
        code, told = run("verify", proof, "--data", other, "--model", model)
        assert code == 1
        assert reason in " ".join(told.split())
    other.write_text("\n".join(f"{line},{number}" for number, line in enumerate(text.splitlines())))
    assert (
        run("verify", proof, "--data", other, "--model", model)[0] == 0
    )  # a column that was left out


# ---------------------------------------------------------------------------------- larger ones


TEN = (
    "iris", "glass", "heart", "diabetes", "breast", "hepatitis", "lymphography", "vote", "car",
    "german",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TEN)
def test_ten_data_sets_are_certified(name: str, tmp_path: Path) -> None:
    from marginbn.cli.data import encode_rows, labelled_rows
    from marginbn.data.preparation import TableSettings

    dataset = load_folder_dataset(name, data_folder())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = labelled_rows(dataset.train, dataset.target)
        data: EncodedData = encode_rows(rows, TableSettings(missing="drop"))
    candidates = enumerate_candidates(data.n_variables, 2, constant=data.constant)
    problem = margin_problem(data, candidates, gamma=math.log(9))
    result = solve_structure(problem, certificate=tmp_path / "c")
    verdict = verify_certificate(tmp_path / "c")
    assert verdict, verdict.reason
    assert verdict.gap <= 1e-6
    size = os.path.getsize(tmp_path / "c")
    print(f"{name}: {result.seconds:.1f} s, {verdict.n_leaves} leaves, {size} bytes")  # noqa: T201


def test_without_any_programme_dual_ascent_is_the_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of very many candidates no linear programme may end in time; the root claims more than the
    sum of the best scores, and both checkers accept it.
    """

    def out_of_time(*_: object) -> None:
        raise Stopped(Status.TIME_LIMIT)

    monkeypatch.setattr(ClusterRelaxation, "visit", out_of_time)
    problem = small_linear_problem(3, n_features=5)
    path = tmp_path / "root.cert"
    with pytest.warns(CertificateWarning):
        result = solve_structure(problem, "dp", certificate=path)
    verdict = verify_certificate(path)
    assert verdict
    assert verdict.bound < initial_bound(problem) - 1e-3
    assert verdict.bound >= result.objective


def test_programmes_that_prove_less_than_their_parent_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound of a node and the weights that prove it belong together."""
    solve = ClusterRelaxation._rounded

    def worse(self: ClusterRelaxation, state: Any, relaxed: Any) -> Any:
        made = solve(self, state, relaxed)
        if state.depth % 2 == 0:
            return made
        return self._majorant(None, ((self.pool.cluster((0, 1)), 3.0),), state.allowed)

    monkeypatch.setattr(ClusterRelaxation, "_rounded", worse)
    problem = small_margin_problem(5, n_features=4, n_rows=40, gamma=2.0, max_parents=3)
    path = tmp_path / "c"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        solve_structure(problem, node_limit=40, certificate=path)
    verdict = verify_certificate(path)
    assert verdict, verdict.reason


def test_a_budget_of_work_ends_the_proof_too(tmp_path: Path) -> None:
    """The proof gets as much work as the search, and proves no more than the search found."""
    problem = small_margin_problem(5, n_features=7, n_rows=80, gamma=2.0, max_parents=2)
    path = tmp_path / "proof.mbc"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)  # the proof's gap may be larger
        limited = solve_structure(problem, Search(work_limit=1e-9), certificate=path)
    assert limited.status is Status.WORK_LIMIT
    assert 1e-9 < limited.work < 1.0
    assert verify_certificate(path)
    assert solve_structure(problem, certificate=path).status is Status.OPTIMAL
