"""Which tests judge which module: few and quick ones, the decisive ones first."""

from __future__ import annotations

from dataclasses import dataclass

_VERIFY, _CUT = "tests/test_verify.py", "tests/test_branch_cut.py"


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
    Judge("parameters", ("tests/test_parameters.py",)),
    Judge("scores.loglik", ("tests/test_scores.py",)),
    Judge("scores.dirichlet", ("tests/test_scores.py",)),
    Judge("scores.decomposable", ("tests/test_scores.py",)),
    Judge("scores.margin", ("tests/test_margin.py",)),
    Judge("problem", ("tests/test_problem.py",)),
    Judge(
        "solvers.branch_cut.bounds",
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
        "solvers.branch_bound.kernels.rounding",
        ("tests/test_branch_bound_duals.py",),
        compiled=True,
    ),
    Judge(
        "solvers.branch_bound.kernels.duals", ("tests/test_branch_bound_duals.py",), compiled=True
    ),
    Judge("certificate.content", (*_CLAIMS, "tests/test_certificate_file.py")),
    Judge("certificate.definition", ("tests/test_certificate_definition.py",)),
    Judge("certificate.file", ("tests/test_certificate_file.py",)),
    Judge("verify.logarithms", _NUMBERS),
    Judge("verify.values", ("tests/test_verify_values.py", *_NUMBERS, *_CLAIMS)),
    Judge("verify.forests", ("tests/test_verify_bounds.py", *_FORESTS), compiled=True),
    Judge("verify.problem", ("tests/test_verify_problem.py", *_CLAIMS)),
    Judge("verify.majorants", ("tests/test_verify_majorants.py", *_CLAIMS)),
    Judge("verify.bounds", ("tests/test_verify_bounds.py", *_CLAIMS)),
    Judge("verify.checker", ("tests/test_verify_checker.py", *_CLAIMS)),
)

JUDGES = {judge.module: judge for judge in _ALL}
"""By module, in the order of the package."""
