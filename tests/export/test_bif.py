"""BIF: hand-written files, other programs' files, every name and bit back, hostile text refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from exchange import (
    FILES,
    assert_only_our_errors,
    assert_refused,
    assert_same_posteriors,
    damaged,
    garden,
)
from marginbn.export.bif import network_from_bif, network_to_bif
from marginbn.export.formats import load_network

HAND = """
// a comment; with a "quote
network "dog" { property "version = 1"; property author me; }
variable fo { type discrete [2] { true false }; property "x;y"; } /* a
comment } over lines */
variable "light on" { type discrete [ 2 ] { "yes, on", off }; }
probability ( fo ) { table 0.15 0.85 ; }
probability ( "light on" | fo ) { table 0.6, 0.05, 0.4, 0.95; }
"""


def test_a_file_by_hand() -> None:
    """In a conditional table the child's states run slowest: P(on | fo) = 0.6, then 0.05."""
    network = network_from_bif(HAND)
    assert network.names == ("fo", "light on")
    assert network.variables[1].states == ("yes, on", "off")
    np.testing.assert_allclose(np.exp(network.log_tables[1]), [[0.6, 0.4], [0.05, 0.95]])


def test_the_text_by_hand() -> None:
    """What is written is what the format's description shows, numbers as short as they can be."""
    lines = network_to_bif(garden()).splitlines()
    assert lines[2:5] == ["variable rain {", "  type discrete [ 2 ] { no, yes };", "}"]
    assert "  table 0.8, 0.2;" in lines
    assert "probability ( grass | rain, sprinkler ) {" in lines
    assert "  ( yes, low ) 0.125, 0.25, 0.625;" in lines


@pytest.mark.parametrize("name", ["pgmpy.bif", "pyagrum.bif"])
def test_files_of_other_packages(name: str) -> None:
    """Both packages write all digits: the posteriors agree to 1e-12."""
    assert_same_posteriors(load_network(FILES / name, target="rain"), garden())


def test_a_file_in_the_style_of_bnlearn() -> None:
    """Rows in any order and rounded, a name with a space: posteriors agree to the digits given."""
    network = load_network(FILES / "bnlearn.bif")
    assert network.names == ("rain", "M. Work", "grass")
    np.testing.assert_allclose(np.exp(network.log_tables[2][1, 2]), [1 / 3] * 3, atol=1e-15)
    wanted = garden().posterior_array("grass", {"rain": "yes"})
    np.testing.assert_allclose(
        network.posterior_array("grass", {"rain": "yes"}), wanted, atol=1e-12
    )


def test_default_rows_and_the_oldest_header() -> None:
    """A default fills the rows that are not listed; without a bar the first name is the child."""
    text = """
    network n { }
    probability ( "c" "a" "b" ) { default 0.5, 0.5; (y, n) 0.25, 0.75; }
    probability ( a ) { table 0.5 0.5; }  probability ( b | ) { table 0.5 0.5; }
    variable a { type discrete [ 2 ] { y, n }; }
    variable b { type discrete [ 2 ] { y, n, }; }
    variable c { type discrete [ 2 ] { "1" "2" }; }
    """
    network = network_from_bif(text)
    assert network.structure.parents == ((), (), (0, 1))
    expected = [[[0.5, 0.5], [0.25, 0.75]], [[0.5, 0.5], [0.5, 0.5]]]
    np.testing.assert_allclose(np.exp(network.log_tables[2]), expected)


VARIABLES = """network n { }
variable a { type discrete [ 2 ] { y, n }; }
variable b { type discrete [ 2 ] { y, n }; }
"""
A = "probability ( a ) { table 0.5, 0.5; }\n"
B = "probability ( b | a ) { (y) 0.5, 0.5; (n) 0.1, 0.9; }\n"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", None, "declares no variables"),
        ("network n {", 1, "the file ends where '}' is missing"),
        ("network n { }\nvariable a {", 2, "expected a name, got the end"),
        ("\nnonsense", 2, "expected network, variable or probability, got 'nonsense'"),
        ("network n { }\nvariable { type discrete [1] {a}; }", 2, "must have a name"),
        ('variable "a { }', 1, "no closing quote"),
        ("variable a /* { }", 1, "to this comment"),
        ("variable a { type continuous [2] { y, n }; }", 1, "must be discrete"),
        ("variable a { type discrete [3] { y, n }; }", 1, "'3' states, but 2 are listed"),
        ("variable a { type discrete [9999999999] { y, n }; }", 1, "states, but 2 are listed"),
        ("variable a { type discrete [0] { }; }", 1, "must have at least one state"),
        ("variable a { type discrete [2] { y,, n }; }", 1, "between two commas"),
        ("variable a { type discrete [2] { y, y }; }", 1, "the state 'y' twice"),
        (VARIABLES + VARIABLES, 5, "'a' is declared twice"),
        (VARIABLES + A, 3, "no table for variable 'b'"),
        (VARIABLES + A + B + A, 6, "a second table for variable 'a'"),
        (VARIABLES + "probability ( z ) { table 1; }", 4, "'z' is not declared"),
        (VARIABLES + "probability ( a | a ) { default 0.5, 0.5; }", 4, "names a variable twice"),
        (VARIABLES + "probability ( a, b | a ) { }", 4, "must be of one variable"),
        (VARIABLES + "probability ( ) { table 1; }", 4, "must be of one variable"),
        (VARIABLES + "probability ( | a ) { table 1; }", 4, "must be of one variable"),
        (VARIABLES + "probability ( , ) { table 1; }", 4, "between two commas"),
        (VARIABLES + "probability ( a ) { table 0.5; }", 4, "expected 2 numbers, got 1"),
        (VARIABLES + "probability ( a ) { table 0.5,\n x; }", 5, "'x' is not a number"),
        (VARIABLES + "probability ( a ) { table nan, 1; }", 4, "'nan' is not a number"),
        (VARIABLES + "probability ( a ) { table 1e999, 0; }", 4, "'1e999' is not a number"),
        (VARIABLES + "probability ( a ) { table 1_0, 0; }", 4, "'1_0' is not a number"),
        (VARIABLES + "probability ( a ) { table 1.5, -0.5; }\n" + B, 4, "must not be negative"),
        (VARIABLES + "probability ( a ) { table 0.5, 0.6; }\n" + B, 4, r"P\(a\) sum to 1.1, not"),
        (VARIABLES + A + "probability ( b | a ) { (y) 0.5, 0.5; }", 5, "1 of the 2 rows"),
        (VARIABLES + A + "probability ( b | a ) { (y) 1, 0; (y) 1, 0; }", 5, "listed twice"),
        (VARIABLES + A + "probability ( b | a ) { (q) 0.5, 0.5; }", 5, "'q' is no state of 'a'"),
        (VARIABLES + A + "probability ( b | a ) { (y, y) 1, 0; }", 5, "must name 1 states, got 2"),
        (VARIABLES + A + "probability ( b | a ) { (n) 1, 0; (y) 0.9, 0; }", 5, r"b \| a=y\) sum"),
        (VARIABLES + A + "probability ( b ) { table 1, 0; default 1, 0; }", 5, "either a table"),
        (VARIABLES + A + "probability ( b ) { tabel 1, 0; }", 5, "expected one table"),
        (VARIABLES + B + "probability ( a | b ) { default 0.5, 0.5; }", None, "directed cycle"),
        ("variable " + "(" * 100_000 + " {", 1, "expected a name"),
    ],
)  # fmt: skip
def test_malformed_text_is_refused_with_line_and_reason(
    text: str, line: int | None, reason: str
) -> None:
    assert_refused(network_from_bif, text, line, reason)


def test_a_short_file_cannot_ask_for_much_memory() -> None:
    """Tables of 10**60 cells are refused by size, defaults that fill 2**24 cells by their sum."""
    names = [f"v{i}" for i in range(60)]
    states = ", ".join(f"s{i}" for i in range(10))
    declared = "".join(f"variable {n} {{ type discrete [10] {{ {states} }}; }}\n" for n in names)
    row = ", ".join(["0.1"] * 10)
    head = f"probability ( v0 | {', '.join(names[1:])} ) {{ default {row}; }}"
    assert_refused(network_from_bif, declared + head, 61, "is too large")
    head = f"probability ( v0 | {', '.join(names[1:8])} ) {{ default {row}; }}"
    assert_refused(network_from_bif, declared + head, 61, "default rows fill more than")


@settings(deadline=None, max_examples=150)
@given(damaged(HAND + network_to_bif(garden()).replace("rain", "r")))
def test_damage_never_raises_anything_but_our_errors(text: str) -> None:
    assert_only_our_errors(network_from_bif, text)


def test_the_time_is_linear() -> None:
    """Forty thousand quotes, brackets or backslashes are refused at once, not after hours."""
    for piece in ('"', '"\\', "(", "{", "/*", "//\n", "variable ", "\\u{", 'a"b"'):
        assert_only_our_errors(network_from_bif, piece * 40_000)
