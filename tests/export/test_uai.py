"""UAI: three layouts distinguished, names in a second file, bits kept, hostile text refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exchange import (
    FILES,
    SEEDS,
    assert_only_our_errors,
    assert_refused,
    assert_same_posteriors,
    damaged,
    garden,
    nasty_network,
)
from marginbn.exceptions import FormatError
from marginbn.export.formats import load_network
from marginbn.export.uai import LAYOUTS, load_uai, network_from_uai, network_to_uai, save_uai
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable

HAND = """BAYES
3
2 2 3
3
1 0
2 0 1
2 1 2

2
 0.436 0.564
4
 0.128 0.872
 0.920 0.080
6
 0.210 0.333 0.457
 0.811 0.000 0.189
"""


def test_a_file_by_hand() -> None:
    """The last variable of a table, the child, runs fastest; names are made up."""
    network = network_from_uai(HAND)
    assert network.names == ("x0", "x1", "x2")
    assert network.variables[2] == Variable("x2", ("0", "1", "2"))
    assert network.structure.parents == ((), (0,), (1,))
    np.testing.assert_allclose(np.exp(network.log_tables[1]), [[0.128, 0.872], [0.92, 0.08]])


def test_the_text_by_hand() -> None:
    """Numbers as short as they can be, one row per state of the parents."""
    lines = network_to_uai(garden()).splitlines()
    assert lines[:7] == ["BAYES", "3", "2 3 3", "3", "1 0", "2 0 1", "3 0 1 2"]
    assert lines[-3:] == [" 0.2 0.5 0.3", " 0.125 0.25 0.625", " " + " ".join([repr(1 / 3)] * 3)]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_network_comes_back_bit_for_bit(seed: int, tmp_path: Path) -> None:
    """With the names in a second file everything survives; so do the posteriors."""
    network = nasty_network(seed)
    save_uai(network, tmp_path / "n.uai")
    back = load_uai(tmp_path / "n.uai")
    assert back == network
    assert_same_posteriors(back, network, seed)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_comes_back(layout: str) -> None:
    """A layout that is written is read, if it is named."""
    network = nasty_network(17)
    text = network_to_uai(network, layout)
    assert network_from_uai(text, "f.uai", network.variables, layout) == network


def _renamed(network: BayesianNetwork, like: tuple[str, ...]) -> BayesianNetwork:
    """The network with the variables of the garden, in the order of these names."""
    own = {v.name: v for v in garden().variables}
    variables = tuple(own[name] for name in like)
    return BayesianNetwork(network.structure, variables, network.log_tables)


def test_a_file_of_pgmpy() -> None:
    """pgmpy has the first variable fastest, which only then gives distributions."""
    network = _renamed(load_network(FILES / "pgmpy.uai"), ("rain", "grass", "sprinkler"))
    assert_same_posteriors(network, garden())


def test_a_file_of_pyagrum() -> None:
    """pyAgrum has the first parent run faster than the last, and names in comments."""
    network = load_network(FILES / "pyagrum.uai")
    assert network.names == garden().names
    assert_same_posteriors(_renamed(network, network.names), garden(), tolerance=1e-6)


def test_the_names_must_fit(tmp_path: Path) -> None:
    """Names of another network, or a damaged file of names, are refused."""
    save_uai(garden(), tmp_path / "n.uai")
    names = tmp_path / "n.uai.names"
    record = json.loads(names.read_text())
    (tmp_path / "n.uai").write_text(HAND)
    with pytest.raises(FormatError, match="belongs to another network"):
        load_uai(tmp_path / "n.uai")
    for variables, reason in [([], "no variables"), (3, "must be an array"), (["a"], "an object")]:
        names.write_text(json.dumps({**record, "variables": variables}))
        with pytest.raises(FormatError, match=reason):
            load_uai(tmp_path / "n.uai")
    names.write_text(json.dumps({**record, "variables": record["variables"][:1] * 3}))
    with pytest.raises(FormatError, match="'rain' is declared twice"):
        load_uai(tmp_path / "n.uai")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "the file ends where the kind of network should be"),
        ("MARKOV\n1\n2", 1, "must begin with BAYES"),
        ("BAYES\nx", 2, "the number of variables must be a whole number"),
        ("BAYES\n-1", 2, "must be a whole number"),
        ("BAYES\n0\n0", 3, "expected a table for each of 0 variables"),
        ("BAYES\n99999999", 2, "must be a whole number, 0 to 10000000, got '99999999'"),
        ("BAYES\n1\n", 2, "the file ends where an arity should be"),
        ("BAYES\n1\n0", None, "must have 1 to"),
        ("BAYES\n1\n1000000\n1\n1 0", None, "must have 1 to 100000 states, got 1000000"),
        ("BAYES\n2\n2 2\n1", 4, "expected a table for each of 2 variables"),
        ("BAYES\n1\n2\n1\n0\n0", 5, "must be over different variables"),
        ("BAYES\n2\n2 2\n2\n1 0\n2 1 1", 6, "must be over different variables"),
        ("BAYES\n1\n2\n1\n1 1", 5, "a variable must be a whole number, 0 to 0"),
        ("BAYES\n1\n2\n1\n1 0\n3\n1 0 0", 6, "expected a table of 2 numbers, got 3"),
        ("BAYES\n1\n2\n1\n1 0\n2\n1", 7, "the file ends inside a table"),
        ("BAYES\n1\n2\n1\n1 0\n2\n1 \n1e999", 8, "'1e999' is not a number"),
        ("BAYES\n1\n2\n1\n1 0\n2\n1 0\n7", 8, "text after the last table"),
        ("BAYES\n1\n2\n1\n1 0\n2\n1 1", 5, r"P\(x0\) sum to 2"),
        ("BAYES\n1\n2\n1\n1 0\n2\n2 -1", 5, "must not be negative"),
        ("BAYES\n2\n1 1\n2\n1 0\n1 0\n1 1 1 1", 6, "a second table for variable 0"),
        ("BAYES\n2\n1 1\n2\n2 1 0\n2 0 1\n1 1 1 1", None, "directed cycle"),
        ("BAYES\n2\n2 2\n2\n1 0 # a\n1 1 # a\n2 1 0 2 1 0", None, "'a' is declared twice"),
    ],
)  # fmt: skip
def test_malformed_text_is_refused_with_line_and_reason(
    text: str, line: int | None, reason: str
) -> None:
    """Every mistake has its line and a reason."""
    assert_refused(network_from_uai, text, line, reason)


def test_a_short_file_cannot_ask_for_much_memory() -> None:
    """A table of 10**50 cells is refused before it is made."""
    arities = " ".join(["100000"] * 10)
    scopes = "\n".join(f"10 {' '.join(str((i + k) % 10) for k in range(10))}" for i in range(10))
    assert_refused(network_from_uai, f"BAYES\n10\n{arities}\n10\n{scopes}\n", 5, "is too large")


@settings(deadline=None, max_examples=150)
@given(damaged(HAND))
def test_damage_never_raises_anything_but_our_errors(text: str) -> None:
    """A damaged file is read or refused by a FormatError."""
    assert_only_our_errors(network_from_uai, text)


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """So is any text at all."""
    assert_only_our_errors(network_from_uai, text)
    assert_only_our_errors(network_from_uai, f"BAYES {text}")
