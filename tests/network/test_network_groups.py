"""Networks whose children see their parents in groups: the object itself."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.network import checks as module
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import grouped_network, random_network, sprinkler, ungrouped

AGE = Variable("age", ("<= 20", "(20, 35]", "(35, 50]", "> 50"))
CLASS = Variable("class", ("no", "yes"))
JOB = Variable("job", ("none", "some"))


def jobs(groups: object = (None, [0, 1, 1, 0], None)) -> BayesianNetwork:
    """Of age, job sees whether it is between 20 and 50."""
    tables = (
        np.log([0.5, 0.5]),
        np.log([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]]),
        np.log([[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.6, 0.4]]]),
    )
    return BayesianNetwork(Structure(((), (0,), (0, 1))), (CLASS, AGE, JOB), tables, groups)  # type: ignore[arg-type]


def test_a_parent_is_looked_up_by_its_group() -> None:
    """P(no, age (20, 35], some) = 0.5 * 0.2 * 0.8, and the same for (35, 50] with 0.3."""
    network = jobs()
    log_joint = network.log_joint([[0, 1, 1], [0, 2, 1], [1, 3, 0]])
    np.testing.assert_allclose(np.exp(log_joint), [0.08, 0.12, 0.5 * 0.1 * 0.7], rtol=1e-15)
    per_class = network.log_joint_per_class([[0, 1, 1]])
    np.testing.assert_allclose(np.exp(per_class), [[0.08, 0.5 * 0.3 * 0.4]], rtol=1e-15)


def test_sizes_count_groups() -> None:
    """Free parameters: 1, 2 * 3 and 2 * 2 * 1."""
    network = jobs()
    assert network.group_counts == (2, 2, 2)
    assert network.n_table_cells == 2 + 8 + 8
    assert network.n_parameters == 1 + 6 + 4
    assert network.group_labels("age") == ("<= 20 or > 50", "(20, 50]")
    assert network.group_labels("job") == JOB.states


@pytest.mark.parametrize("seed", range(20))
def test_dense_tables_repeat_the_entries_of_a_group(seed: int) -> None:
    """Entry by entry, read-only; a network of them is the same distribution."""
    network = grouped_network(seed)
    plain = ungrouped(network)
    assert network.without_groups() == plain
    for i in range(network.n_variables):
        table = network.dense_table(i)
        np.testing.assert_array_equal(table, plain.log_tables[i])
        assert not table.flags.writeable
    codes = np.random.default_rng(seed).integers(0, network.arities, (40, network.n_variables))
    np.testing.assert_array_equal(network.log_joint(codes), plain.log_joint(codes))


def test_without_groups_nothing_is_copied() -> None:
    """A plain network is its own dense form."""
    network = random_network(3)
    assert network.groups is None
    assert network.without_groups() is network
    assert network.dense_table(2) is network.log_tables[2]
    assert network.group_counts == network.arities


def test_too_large_dense_tables_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table on its own, and all together."""
    monkeypatch.setattr(module, "MAX_DENSE_CELLS", 15)
    with pytest.raises(ProblemTooLargeError, match=r"table of 'job' would have 16 cells .* native"):
        jobs().dense_table("job")
    monkeypatch.setattr(module, "MAX_DENSE_CELLS", 16)
    assert jobs().dense_table("job").size == 16
    with pytest.raises(ProblemTooLargeError, match="largest that of 'job', would have 26 cells"):
        jobs().without_groups()


def test_copies_keep_groups_and_equality_sees_them() -> None:
    """Pickled and copied networks are equal; other groups, or none, are another network."""
    network = jobs()
    for other in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network), jobs()):
        assert other == network
        assert hash(other) == hash(network)
        assert other.groups is not None
        assert not other.groups[1].flags.writeable
    assert jobs((None, [0, 1, 0, 1], None)) != network
    assert network.without_groups() != network
    identity = BayesianNetwork(
        network.structure, network.variables, ungrouped(network).log_tables, (None, range(4), None)
    )
    assert identity == network.without_groups()


def test_the_groups_of_the_caller_are_not_kept() -> None:
    """Writing into the array afterwards changes nothing."""
    groups = np.array([0, 1, 1, 0])
    network = jobs((None, groups, None))
    groups[:] = 0
    assert network == jobs()


def test_tables_must_have_the_shape_of_the_groups() -> None:
    """Errors name the variable whose table, or whose groups, are wrong."""
    with pytest.raises(InputError, match=r"table of 'job' must have shape \(2, 3, 2\), got"):
        jobs((None, [0, 1, 2, 0], None))
    with pytest.raises(InputError, match="groups of 'age' must be numbered"):
        jobs((None, [0, 2, 2, 0], None))
    with pytest.raises(InputError, match="one entry per variable, 3, got 1"):
        jobs((None,))


def test_an_unknown_variable_has_no_groups() -> None:
    """As in all other questions."""
    with pytest.raises(InputError, match="unknown variable 'snow'"):
        sprinkler().group_labels("snow")
