"""Formulation (19) as matrices and as files."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from brute_force import brute_force
from marginbn.exceptions import InputError
from marginbn.problem import formulation
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.encoded import Variable
from marginbn.problem.formulation import (
    MILP,
    bound_allowance,
    count_nonzeros,
    formulate,
    objective_scale,
    point_of,
    selection_of,
    why_too_large,
)
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import is_acyclic
from marginbn.solvers.milp import SUFFIXES, load_highspy, write_formulation
from problems import small_linear_problem, small_margin_problem


def all_selections(problem: StructureProblem) -> list[np.ndarray]:
    groups = [problem.candidates.group(i) for i in range(problem.n_variables)]
    return [np.array(chosen) for chosen in itertools.product(*groups)]


def optimum(problem: StructureProblem) -> float:
    return brute_force(problem)


def solve_with_scipy(form: MILP) -> float:
    integrality = np.zeros(form.n_columns)
    integrality[form.eta] = 1
    answer = milp(
        -form.cost,
        integrality=integrality,
        bounds=Bounds(form.lower, form.upper),
        constraints=LinearConstraint(form.matrix, form.row_lower, form.row_upper),
        options={"mip_rel_gap": 1e-9},
    )
    return -answer.fun


PROBLEMS = [
    pytest.param(lambda: small_margin_problem(1, n_features=2, n_rows=12), id="multiclass"),
    pytest.param(
        lambda: small_margin_problem(2, n_features=2, n_rows=12, margin="binary"), id="binary"
    ),
    pytest.param(lambda: small_linear_problem(3, n_features=2), id="linear"),
]


def test_two_variables_by_hand() -> None:
    """The matrix of two variables, {} or the other one each, is the printed (19)."""
    candidates = CandidateSets(2, np.array([0, 0, 1, 1], dtype=np.int32), ((), (1,), (), (0,)))
    variables = (Variable("c", ("a", "b")), Variable("x", ("a", "b")))
    problem = StructureProblem(candidates, np.array([1.0, 2.0, 3.0, 4.0]), variables)
    form = formulate(problem)
    expected = [
        [1, 1, 0, 0, 0, 0],  # one parent set for variable 0
        [0, 0, 1, 1, 0, 0],  # one parent set for variable 1
        [0, 0, 0, -4, -1, 1],  # o_1 - o_0 - 2 Delta a_01 >= 1 - 4, Delta = 2
        [0, -4, 0, 0, 1, -1],  # o_0 - o_1 - 2 Delta a_10 >= 1 - 4
    ]
    np.testing.assert_array_equal(form.matrix.toarray(), expected)
    np.testing.assert_array_equal(form.row_lower, [1, 1, -3, -3])
    np.testing.assert_array_equal(form.row_upper, [1, 1, np.inf, np.inf])
    np.testing.assert_array_equal(form.cost, [1, 2, 3, 4, 0, 0])
    np.testing.assert_array_equal(form.upper, [1, 1, 1, 1, 2, 2])


def test_margin_rows_hold_the_negative_coefficients() -> None:
    """Row (m, r) is tau_m minus the coefficients of all candidates, at most zero."""
    problem = small_margin_problem(0, n_features=2, n_rows=10)
    form = formulate(problem)
    assert problem.margins is not None
    first = problem.n_variables**2
    rows = form.matrix.toarray()[first:]
    dense = problem.margins.dense().reshape(problem.candidates.n_candidates, -1).T
    np.testing.assert_array_equal(rows[:, form.eta], -dense)
    own_tau = np.repeat(np.eye(form.n_samples), form.n_rivals, axis=0)
    np.testing.assert_array_equal(rows[:, form.tau], own_tau)
    assert (form.row_upper[first:] == 0).all()
    assert np.isneginf(form.lower[form.tau]).all()
    assert (form.upper[form.tau] == problem.gamma).all()


@pytest.mark.parametrize("make", PROBLEMS)
def test_acyclic_selections_are_feasible_points_of_the_same_value(make) -> None:
    problem = make()
    form = formulate(problem)
    for selection in all_selections(problem):
        if not is_acyclic([problem.candidates.parents[k] for k in selection]):
            with pytest.raises(InputError, match="directed cycle"):
                point_of(problem, form, selection)
            continue
        point = point_of(problem, form, selection)
        rows = form.matrix @ point
        assert (rows >= form.row_lower - 1e-12).all()
        assert (rows <= form.row_upper + 1e-12).all()
        assert (point >= form.lower).all()
        assert (point <= form.upper).all()
        assert form.cost @ point == pytest.approx(problem.evaluate(selection), rel=1e-12)
        np.testing.assert_array_equal(selection_of(problem.candidates, point), selection)


def test_no_order_fits_a_cycle() -> None:
    problem = small_linear_problem(0, n_features=2)
    form = formulate(problem)
    n, order_rows = problem.n_variables, slice(problem.n_variables, problem.n_variables**2)
    rows = form.matrix[order_rows]
    for selection in all_selections(problem):
        eta = np.zeros(form.candidates.n_candidates)
        eta[selection] = 1
        right = form.row_lower[order_rows] - rows[:, form.eta] @ eta
        answer = linprog(
            np.zeros(n),
            A_ub=-rows[:, form.order].toarray(),
            b_ub=-right,
            bounds=[(0, n)] * n,
        )
        acyclic = is_acyclic([problem.candidates.parents[k] for k in selection])
        assert (answer.status == 0) == acyclic


@pytest.mark.parametrize("make", PROBLEMS)
def test_scipy_finds_the_optimum_of_the_matrices(make) -> None:
    problem = make()
    assert solve_with_scipy(formulate(problem)) == pytest.approx(optimum(problem), rel=1e-7)


@pytest.mark.parametrize("make", PROBLEMS)
def test_nonzeros_are_bounded_without_building(make) -> None:
    problem = make()
    matrix = formulate(problem).matrix
    assert isinstance(matrix, csr_array)
    assert matrix.nnz <= count_nonzeros(problem)
    assert (matrix.data != 0).all()


def test_large_problems_are_refused_with_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small_margin_problem(0)
    assert why_too_large(problem) is None
    monkeypatch.setattr(formulation, "MAX_NONZEROS", 10)
    assert "margin rows" in (why_too_large(problem) or "")


def test_building_can_be_given_up() -> None:
    class EnoughError(Exception):
        pass

    def poll() -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        formulate(small_margin_problem(0), poll=poll)


def test_the_allowance_grows_with_the_scale_and_lost_entries() -> None:
    """Larger weights and entries below the solver's threshold need a larger allowance."""
    problem = small_margin_problem(0, n_rows=20)
    form = formulate(problem)
    point = point_of(problem, form, problem.candidates.offsets[:-1])
    assert objective_scale(form) <= 2 * form.cost.max()
    tight = bound_allowance(form, point, scale=1.0, tolerance=1e-9, threshold=0.0)
    assert 0 < tight < 1e-6
    assert bound_allowance(form, point, scale=4.0, tolerance=1e-9, threshold=0.0) > 3 * tight
    assert bound_allowance(form, point, scale=1.0, tolerance=1e-9, threshold=0.5) > 1.0


def test_names_are_unique_and_valid_in_both_formats() -> None:
    form = formulate(small_margin_problem(0))
    names = form.column_names() + form.row_names()
    assert len(form.column_names()) == form.n_columns
    assert len(form.row_names()) == form.n_rows
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-df-z][a-z0-9_]{0,200}", name) for name in names)
    child, parents = form.candidates.child[-1], form.candidates.parents[-1]
    assert form.column_names()[form.eta.stop - 1] == "_".join(map(str, ("pa", child, *parents)))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("make", PROBLEMS)
def test_files_give_highs_the_same_problem(make, suffix: str, tmp_path) -> None:
    problem = make()
    path = write_formulation(problem, tmp_path / f"problem{suffix}")
    assert [p.name for p in tmp_path.iterdir()] == [f"problem{suffix}"]
    highs = load_highspy().Highs()
    highs.silent()
    highs.readModel(str(path))
    highs.setOptionValue("mip_rel_gap", 1e-9)
    highs.run()
    expected = pytest.approx(optimum(problem), rel=1e-6, abs=1e-7)
    assert highs.getInfo().objective_function_value == expected
    assert "pa_1_0" in [highs.getColName(j)[1] for j in range(highs.getNumCol())]


def test_an_unknown_suffix_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"\.mps, \.lp"):
        write_formulation(small_linear_problem(0), tmp_path / "problem.txt")
