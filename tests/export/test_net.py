"""Hugin NET: files by hand and of other packages, every name and bit back, hostile text refused."""

from __future__ import annotations

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
from marginbn.export.formats import load_network
from marginbn.export.net import network_from_net, network_to_net

HAND = """
% a comment with a "quote
class Dog {
  inputs = (); node_size = (50 50); name = "a;b";
}
discrete node fo { label = "family out"; position = (1 2); states = ("true" false); }
node lo { label = ""; states = ("on" "off, 50%"); }
potential (fo |) { data = (0.15 0.85); }
potential ( lo | fo ) {
  data = ((0.6 0.4)    % fo = true
          (0.05 0.95));
}
"""


def test_a_file_by_hand() -> None:
    """Identifiers are the names in foreign files; the child's states run fastest."""
    network = network_from_net(HAND)
    assert network.names == ("fo", "lo")
    assert network.variables[1].states == ("on", "off, 50%")
    np.testing.assert_allclose(np.exp(network.log_tables[1]), [[0.6, 0.4], [0.05, 0.95]])


def test_the_text_by_hand() -> None:
    """Rows in nested brackets, labels for the eye, states in quotes."""
    text = network_to_net(garden())
    assert "data = (((1.0 0.0 0.0)\n    (0.1 0.7 0.2)\n    (0.05 0.15 0.8))" in text
    assert 'label = "sprinkler";\n  states = ("off" "low" "high");' in text


@pytest.mark.parametrize("seed", SEEDS)
def test_every_network_comes_back_bit_for_bit(seed: int) -> None:
    """Names, states, parents and numbers survive; so do the posteriors."""
    network = nasty_network(seed)
    back = network_from_net(network_to_net(network))
    assert back == network
    assert_same_posteriors(back, network, seed)


@pytest.mark.parametrize(
    ("name", "tolerance"), [("pgmpy.net", 1e-8), ("pyagrum.net", 1e-12), ("bnlearn.net", 1e-12)]
)
def test_files_of_other_packages(name: str, tolerance: float) -> None:
    """pgmpy writes eight digits; three thirds with three digits are thirds once normalised."""
    network = load_network(FILES / name, target="rain")
    assert_same_posteriors(network, garden(), tolerance=tolerance)


NODES = """net { }
node a { states = ("y" "n"); }
node b { states = ("y" "n"); }
"""
A = "potential (a) { data = (0.5 0.5); }\n"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", None, "declares no variables"),
        ("net {", 1, "expected a name, got the end of the file"),
        ("net { name = x }", 1, "';' is missing"),
        ("\nutility u { }", 2, "expected net, node or potential, got 'utility'"),
        ("continuous node x { }", 1, "only discrete chance nodes are read"),
        ("discrete x { }", 1, "expected node, got 'x'"),
        ("node a { label = x; }", 1, "node 'a' has no states"),
        ("node a { states = (); }", 1, "must have 1 to"),
        ("node a { states = (y y); }", 1, "the state 'y' twice"),
        ('node a { states = ("y); }', 1, "no closing quote"),
        ("node a { states y; }", 1, "expected '=', got 'y;'"),
        (NODES + NODES, 5, "'a' is declared twice"),
        (NODES + A, 3, "no table for variable 'b'"),
        (NODES + A + A, 5, "a second table for variable 'a'"),
        (NODES + "potential (z) { data = (1 0); }", 4, "variable 'z' is not declared"),
        (NODES + "potential (a b) { data = (1 0); }", 4, "must be of one node"),
        (NODES + "potential (a | a) { data = (1 0); }", 4, "names a variable twice"),
        (NODES + "potential (a) { }", 4, "the potential has no data"),
        (NODES + "potential (a) { data = (1 0; }", 4, "no closing bracket"),
        (NODES + "potential (a) { data = normal(0, 1); }", 4, r"expected '\('"),
        (NODES + "potential (a) { data = (1 0 0); }", 4, "expected 2 numbers, got 3"),
        (NODES + "potential (a) { data = (1\n x); }", 5, "'x' is not a number"),
        (NODES + A + "potential (b) { data = (1 1); }", 5, r"P\(b\) sum to 2"),
        (NODES + "potential (a | b) { data = ((1 0)(1 0)); }"
         "potential (b | a) { data = ((1 0)(1 0)); }", None, "directed cycle"),
    ],
)  # fmt: skip
def test_malformed_text_is_refused_with_line_and_reason(
    text: str, line: int | None, reason: str
) -> None:
    """Every mistake has its line and a reason."""
    assert_refused(network_from_net, text, line, reason)


def test_two_nodes_of_one_name_are_refused() -> None:
    """In files of the first version labels are the names, but identifiers must differ, too."""
    text = network_to_net(garden()).replace("node sprinkler", "node rain")
    text = text.replace('"marginbn 2"', '"marginbn"')
    with pytest.raises(ValueError, match="two nodes have the same name"):
        network_from_net(text)


@settings(deadline=None, max_examples=150)
@given(damaged(HAND))
def test_damage_never_raises_anything_but_our_errors(text: str) -> None:
    """A damaged file is read or refused by a FormatError."""
    assert_only_our_errors(network_from_net, text)


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """So is any text at all."""
    assert_only_our_errors(network_from_net, text)


def test_the_time_is_linear() -> None:
    """Deep brackets, many quotes and the like are refused at once."""
    deep = NODES + "potential (a) { data = " + "(" * 300_000
    assert_refused(network_from_net, deep, 4, "no closing bracket")
    for piece in ('"', '"\\', "(", "{", "%\n", "node ", "a = (;", "\\u{"):
        assert_only_our_errors(network_from_net, piece * 300_000)
