"""The family in which the class is a parent of every feature: every way to search it is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exhaustive_search import Sample, best_objective
from marginbn import Search, solve_structure, verify_certificate
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.proof.theorem import Statement
from marginbn.solvers.result import Status

GAMMA = 0.8


def sample(seed: int, n_classes: int, *, binary: bool, constant: bool = False) -> Sample:
    """Four features, one of them a copy of the class with noise, weighted rows."""
    rng = np.random.default_rng([seed, n_classes])
    arities = (n_classes, 2, 3, 1 if constant else 2, 4)
    columns = [rng.integers(0, n_classes, 40)]
    for arity in arities[1:]:
        copies = rng.random(40) < 0.4
        source = columns[0] + columns[int(rng.integers(len(columns)))]
        columns.append(np.where(copies, source % arity, rng.integers(0, arity, 40)))
    weights = np.round(rng.uniform(0.2, 3.0, 40), 2)
    return Sample(np.column_stack(columns), weights, arities, smoothing=1.0, binary=binary)


def problem_of(rows: Sample, max_parents: int = 2, class_arcs: str = "all") -> StructureProblem:
    variables = tuple(
        Variable(f"v{i}", tuple(map(str, range(a)))) for i, a in enumerate(rows.arities)
    )
    data = EncodedData(rows.codes.astype(np.int32), rows.weights, variables)
    candidates = enumerate_candidates(
        data.n_variables,
        max_parents,
        class_arcs=class_arcs,  # type: ignore[arg-type]
        constant=data.constant,
    )
    margin = "binary" if rows.binary else "multiclass"
    return margin_problem(data, candidates, margin=margin, gamma=GAMMA)  # type: ignore[arg-type]


CASES = [(n_classes, binary) for n_classes in (2, 3, 4) for binary in (False, True)]


@pytest.mark.parametrize("solver", ["auto", "branch_bound", "branch_cut", "highs"])
@pytest.mark.parametrize(("n_classes", "binary"), CASES)
def test_the_optimum_of_the_independent_enumerator(
    n_classes: int, binary: bool, solver: str
) -> None:
    """Both margins, two to four classes, weights; every arc of the class is there."""
    rows = sample(1, n_classes, binary=binary)
    best = best_objective(rows, 2, GAMMA, "all")
    result = solve_structure(problem_of(rows), solver)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert result.bound >= best - 1e-9 * abs(best)
    assert result.structure.parents[0] == ()
    assert all(0 in parents for parents in result.structure.parents[1:])


@pytest.mark.parametrize("max_parents", [1, 3])
@pytest.mark.parametrize("binary", [False, True])
def test_other_numbers_of_parents(binary: bool, max_parents: int) -> None:
    """With one parent naive Bayes is all there is."""
    rows = sample(2, 3, binary=binary)
    result = solve_structure(problem_of(rows, max_parents))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(
        best_objective(rows, max_parents, GAMMA, "all"), rel=1e-6
    )
    if max_parents == 1:
        assert result.structure.parents == ((), (0,), (0,), (0,), (0,))


@pytest.mark.parametrize("class_arcs", ["free", "all"])
def test_a_feature_with_one_state_has_no_parents_and_costs_nothing(class_arcs: str) -> None:
    """The enumerator gives it parents as to any other feature: the optimum is the same."""
    rows = sample(3, 3, binary=False, constant=True)
    result = solve_structure(problem_of(rows, class_arcs=class_arcs))
    assert result.structure.parents[3] == ()
    assert all(3 not in parents for parents in result.structure.parents)
    assert result.objective == pytest.approx(best_objective(rows, 2, GAMMA, class_arcs), rel=1e-6)


@pytest.mark.parametrize("binary", [False, True])
def test_groups_of_rows(binary: bool) -> None:
    rows = sample(4, 3, binary=binary)
    result = solve_structure(problem_of(rows), Search(rows="groups"))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best_objective(rows, 2, GAMMA, "all"), rel=1e-6)


@pytest.mark.parametrize("solver", ["branch_bound", "branch_cut"])
def test_a_search_that_is_resumed(solver: str, tmp_path: Path) -> None:
    """A node at a time from a checkpoint; a checkpoint of the other family is refused."""
    rows = sample(5, 3, binary=False)
    problem, path = problem_of(rows), tmp_path / "search"
    for _ in range(50):
        result = solve_structure(problem, solver, node_limit=1, checkpoint=path)
        if result.status is Status.OPTIMAL:
            break
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best_objective(rows, 2, GAMMA, "all"), rel=1e-6)
    with pytest.raises(Exception, match="another problem"):
        solve_structure(problem_of(rows, class_arcs="free"), solver, checkpoint=path)


@pytest.mark.parametrize("solver", ["branch_bound", "branch_cut"])
@pytest.mark.parametrize("class_arcs", ["free", "all"])
def test_certificates_state_the_family(solver: str, class_arcs: str, tmp_path: Path) -> None:
    """Accepted for what was proved, refused where the other family was asked for."""
    path = tmp_path / "proof.cert"
    rows = sample(6, 3, binary=False, constant=True)
    solve_structure(problem_of(rows, class_arcs=class_arcs), solver, certificate=path)
    verdict = verify_certificate(path, expect=Statement(class_arcs=class_arcs, max_parents=2))
    assert verdict, verdict.reason
    assert verdict.gap <= 1e-6
    other = "all" if class_arcs == "free" else "free"
    refused = verify_certificate(path, expect=Statement(class_arcs=other))
    assert not refused
    assert f"class arcs is '{class_arcs}', not '{other}'" in refused.reason
