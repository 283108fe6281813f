"""XMLBIF: files by hand and of other packages, every name and bit back, no entity ever expanded."""

from __future__ import annotations

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
from marginbn.exceptions import InputError
from marginbn.export.formats import load_network, save_network
from marginbn.export.xmlbif import network_from_xmlbif, network_to_xmlbif

DOCTYPE = """<?xml version="1.0"?>
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
    <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
  <!ELEMENT VARIABLE ( NAME, ( OUTCOME | PROPERTY )* ) >
    <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
]>
"""
BODY = """<BIF VERSION="0.3"><NETWORK><NAME>dog</NAME>
<VARIABLE TYPE="nature"><NAME> fo </NAME><OUTCOME>true</OUTCOME><OUTCOME>false</OUTCOME></VARIABLE>
<VARIABLE><NAME>a &lt; b &amp; c</NAME><OUTCOME>on</OUTCOME><OUTCOME>off</OUTCOME></VARIABLE>
<DEFINITION><FOR>fo</FOR><TABLE>0.15 0.85</TABLE></DEFINITION>
<DEFINITION><FOR>a &lt; b &amp; c</FOR><GIVEN>fo</GIVEN>
<TABLE>0.6 0.4 <!-- fo = true -->
0.05 0.95</TABLE></DEFINITION>
</NETWORK></BIF>
"""


def test_a_file_by_hand() -> None:
    """The standard document type is read past; in a table the child's states run fastest."""
    network = network_from_xmlbif(DOCTYPE + BODY)
    assert network.names == ("fo", "a < b & c")
    np.testing.assert_allclose(np.exp(network.log_tables[1]), [[0.6, 0.4], [0.05, 0.95]])


@pytest.mark.parametrize("seed", SEEDS)
def test_every_network_comes_back_bit_for_bit(seed: int) -> None:
    """Names, states, parents and numbers survive; so do the posteriors."""
    network = nasty_network(seed)
    back = network_from_xmlbif(network_to_xmlbif(network))
    assert back == network
    assert_same_posteriors(back, network, seed)


@pytest.mark.parametrize(("name", "tolerance"), [("pgmpy.xmlbif", 1e-12), ("pyagrum.bifxml", 1e-6)])
def test_files_of_other_packages(name: str, tolerance: float) -> None:
    """pgmpy writes all digits, pyAgrum six."""
    network = load_network(FILES / name, target="rain")
    assert_same_posteriors(network, garden(), tolerance=tolerance)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    """A file in another encoding is read if it says so."""
    text = network_to_xmlbif(garden()).replace("rain", "pluie d'été").replace("UTF-8", encoding)
    path = tmp_path / "n.xmlbif"
    path.write_bytes(text.encode(encoding))
    assert load_network(path).names[0] == "pluie d'été"
    path.write_bytes(text.replace(encoding, "utf-8").encode("latin-1"))
    with pytest.raises(InputError, match=r"line 6: byte 0xe9 is not UTF-8"):
        load_network(path)


def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    """Such a name is no text: nothing is written."""
    network = garden()
    object.__setattr__(network.variables[0], "name", "\ud800")
    with pytest.raises(InputError, match="surrogate"):
        save_network(network, tmp_path / "n.xmlbif")
    assert list(tmp_path.iterdir()) == []


LAUGHS = """<!DOCTYPE BIF [
<!ENTITY a "ha">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
]>
"""
MANY = "<!DOCTYPE BIF [" + "".join(f"<!ATTLIST X a{i} CDATA 'x'>" for i in range(200)) + "]>"


def _replace(old: str, new: str) -> str:
    assert old in BODY
    return BODY.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "not well-formed XML, no element found"),
        ("<BIF>\n</BIF", 2, "not well-formed"),
        ("<BIF/>", 1, "with one NETWORK"),
        ("<HTML><NETWORK/></HTML>", 1, "must be a BIF element"),
        ("<BIF><NETWORK/></BIF>", None, "declares no variables"),
        (LAUGHS + BODY, 2, "declares the entity 'a'"),
        ('<!DOCTYPE BIF [<!ENTITY % p "x">]>' + BODY, 1, "declares the entity 'p'"),
        ('<!DOCTYPE BIF [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + BODY, 1, "entity 'x'"),
        ('<!DOCTYPE BIF SYSTEM "x.dtd">\n' + _replace("dog", "&x;"), 2, "'x' is not defined"),
        (_replace("dog", "&x;"), 1, "undefined entity"),
        (MANY + BODY, 1, "declares too many attributes"),
        ("<BIF>" + "<A>\n" * 200, 32, "nested more than 32 deep"),
        (_replace('TYPE="nature"', 'TYPE="utility"'), 2, "must be of type nature, got 'utility'"),
        (_replace("<NAME> fo </NAME>", ""), 2, "VARIABLE must hold one NAME, got 0"),
        (_replace("<OUTCOME>on</OUTCOME><OUTCOME>off</OUTCOME>", ""), 3, "must have 1 to"),
        (_replace("<OUTCOME>on<", "<OUTCOME>off<"), 3, "the state 'off' twice"),
        (_replace("<NAME> fo <", "<NAME>a &lt; b &amp; c<"), 3, "is declared twice"),
        (_replace("<FOR>fo</FOR>", "<FOR>z</FOR>"), 4, "'z' is not declared"),
        (_replace("<FOR>fo</FOR>", ""), 4, "DEFINITION must hold one FOR, got 0"),
        (_replace("<GIVEN>fo<", "<GIVEN>a &lt; b &amp; c<"), 5, "names a variable twice"),
        (_replace("<TABLE>0.15 0.85</TABLE>", ""), 4, "DEFINITION must hold one TABLE"),
        (_replace("0.15 0.85", "0.15"), 4, "expected 2 numbers, got 1"),
        (_replace("0.15 0.85", "0.15, 0.85"), 4, "'0.15,' is not a number"),
        (_replace("0.15 0.85", "0.15 0.65"), 4, r"P\(fo\) sum to 0.8"),
        (_replace("0.15 0.85", "inf 0"), 4, "'inf' is not a number"),
        (_replace("<FOR>fo</FOR>", "<FOR>a &lt; b &amp; c</FOR>"), 5, "a second table"),
    ],
)  # fmt: skip
def test_malformed_text_is_refused_with_line_and_reason(
    text: str, line: int | None, reason: str
) -> None:
    """Every mistake and every attack has its line and a reason."""
    assert_refused(network_from_xmlbif, text, line, reason)


@settings(deadline=None, max_examples=150)
@given(damaged(DOCTYPE + BODY))
def test_damage_never_raises_anything_but_our_errors(text: str) -> None:
    """A damaged file is read or refused by a FormatError."""
    assert_only_our_errors(network_from_xmlbif, text)


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """So is any text at all, as text and inside a name."""
    assert_only_our_errors(network_from_xmlbif, text)
    assert_only_our_errors(network_from_xmlbif, BODY.replace("dog", text))


def test_the_time_is_linear() -> None:
    """Many elements, attributes, references or comments are no trouble."""
    for piece in ("<A>", "<A/>", "&#65;", "<!--", "]]>", 'a="b" ', "\\u{"):
        assert_only_our_errors(network_from_xmlbif, BODY.replace("dog", piece * 40_000))
