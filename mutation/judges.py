"""Which tests judge which module: few and quick ones, the decisive ones first."""

from __future__ import annotations

from dataclasses import dataclass

_VERIFY, _CUT = "tests/proof/test_checker.py", "tests/solvers/branch_cut/test_branch_cut.py"
_FORGED = "tests/proof/test_checker_forgeries.py"


def _named(file: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{file}::test_{name}" for name in names)


_CLAIMS = _named(
    _VERIFY,
    "a_claim_one_can_check_by_hand",
    "the_tightest_bound_one_can_check_by_hand",
    "each_side_holds_what_it_should",
    "multipliers_by_hand",
    "leaves_are_bounded_by_their_best_structure",
    "only_dominated_candidates_may_be_dropped",
    "what_is_wrong_is_told",
    "giving_away_more_than_there_is",
    "objects_split_and_the_path_is_told",
    "forests_bound_only_forests",
    "the_rule_makes_the_package_s_candidates",
    "a_forged_label_needs_a_forged_fingerprint",
    "extreme_numbers_do_not_crash",
    "spoiled_certificates_are_rejected",
)
_NUMBERS = _named(
    _VERIFY,
    "coefficients_agree_with_the_package",
    "scores_agree_with_the_package",
    "counts_are_exact_where_floating_point_is_not",
    "logarithms",
    "log_gamma_of_whole_numbers_is_a_sum_of_logarithms",
    "log_gamma",
)
_FORESTS = _named(
    _VERIFY,
    "each_side_holds_what_it_should",
    "the_arborescence_is_the_best",
    "the_forest_with_class_parents_is_the_best",
    "leaves_are_bounded_by_their_best_structure",
)


@dataclass(frozen=True)
class Judge:
    """The tests of a module.

    Attributes
    ----------
    module
        Name below ``marginbn``.
    tests
        What is given to pytest.
    compiled
        Whether the module holds compiled kernels; it is then judged as plain Python, by tests
        that bear it.
    """

    module: str
    tests: tuple[str, ...]
    compiled: bool = False


_ALL = (
    Judge("problem.scores", ("tests/problem/test_scores.py",)),
    Judge(
        "problem.margins",
        ("tests/problem/test_margins_parameters.py", "tests/problem/test_margins.py"),
    ),
    Judge("problem.problem", ("tests/problem/test_problem.py",)),
    Judge(
        "solvers.branch_cut.lagrangian",
        _named(
            _CUT,
            "multipliers_are_feasible_in_exact_arithmetic",
            "feasible_multipliers_stay_as_they_are",
            "multipliers_at_the_cap_are_shrunk",
            "the_allowance_is_the_documented_one",
            "bound_by_hand",
            "prices_by_hand",
            "random_multipliers_bound_every_structure",
        ),
    ),
    Judge(
        "solvers.branch_bound.kernels.duals",
        ("tests/solvers/branch_bound/test_duals.py",),
        compiled=True,
    ),
    Judge(
        "proof.exact",
        ("tests/proof/test_exact.py", *_named(_FORGED, "every_kind_of_forgery_is_refused")),
    ),
    Judge("proof.certificate", (*_CLAIMS, "tests/proof/test_format.py")),
    Judge("proof.definition", ("tests/proof/test_definition.py",)),
    Judge("proof.format", ("tests/proof/test_format.py",)),
    Judge(
        "proof.theorem",
        ("tests/proof/test_theorem.py", *_named(_FORGED, "every_other_statement_is_refused")),
    ),
    Judge(
        "proof.checker.values",
        (
            "tests/proof/test_checker_values.py",
            *_NUMBERS,
            "tests/proof/test_checker_log_gamma.py",
            *_CLAIMS,
        ),
    ),
    Judge("proof.checker.forests", ("tests/proof/test_checker_bounds.py", *_FORESTS)),
    Judge(
        "proof.checker.statement",
        ("tests/proof/test_checker_statement.py", "tests/proof/test_checker_form.py", *_CLAIMS),
    ),
    Judge(
        "proof.checker.bounds",
        (
            "tests/proof/test_checker_bounds.py",
            "tests/proof/test_checker_majorants.py",
            *_CLAIMS,
            *_named(_FORGED, "every_kind_of_forgery_is_refused"),
        ),
    ),
    Judge(
        "proof.checker.verdict",
        (
            "tests/proof/test_checker_verdict.py",
            "tests/proof/test_checker_form.py",
            *_CLAIMS,
            *_named(_FORGED, "every_kind_of_forgery_is_refused"),
            "tests/proof/test_checker_limits.py",
        ),
    ),
)

JUDGES = {judge.module: judge for judge in _ALL}
"""By module, in the order of the package."""
