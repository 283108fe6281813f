"""One pair of functions for all formats: the name of the file tells, nothing is left half."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exchange import NASTY, assert_same_posteriors, garden, nasty_network
from marginbn.exceptions import FormatError, InputError
from marginbn.export.assembly import put_first, to_logs, to_probabilities
from marginbn.export.formats import NETWORK_FORMATS, find_format, load_network, save_network
from marginbn.export.scanner import NO_WORD, escape, unescape
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.structure import Structure
from networks import random_network

READABLE = [name for name, form in NETWORK_FORMATS.items() if form.readable]
SUFFIXES = [(s, form.name) for form in NETWORK_FORMATS.values() for s in form.suffixes]


def test_every_format_has_its_functions() -> None:
    for form in NETWORK_FORMATS.values():
        assert form.function("network_to")
        module = import_module(f"marginbn.export.{form.module}")
        assert hasattr(module, f"load_{form.name}") is form.readable
    suffixes = [suffix for suffix, _ in SUFFIXES]
    assert len(set(suffixes)) == len(suffixes)


def test_the_list_costs_nothing_to_read() -> None:
    """Names and suffixes are there without numpy and without a module of any format."""
    code = (
        "import sys, marginbn.export.formats as f; assert f.NETWORK_FORMATS; "
        "print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'sklearn') "
        "or m.startswith('marginbn.export.') and m != 'marginbn.export.formats'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_guide_lists_every_format() -> None:
    """The table in the guide is the list: suffixes and contents, row by row."""
    guide = (Path(__file__).parents[2] / "docs/guide/exchange.rst").read_text(encoding="utf-8")
    table = guide.split(".. list-table::")[1].split("\n\n")[1]
    rows = [row.split("\n     -")[1:] for row in table.split("   * - ")[2:]]
    assert [[cell.replace("``", "").strip() for cell in row] for row in rows] == [
        [", ".join(form.suffixes), form.holds] for form in NETWORK_FORMATS.values()
    ]


@pytest.mark.parametrize(("suffix", "name"), SUFFIXES)
def test_the_name_of_the_file_tells_the_format(suffix: str, name: str, tmp_path: Path) -> None:
    """Every suffix, in capitals too, writes its format; those with tables are read again."""
    network = garden()
    path = tmp_path / f"n{suffix.upper()}"
    save_network(network, path)
    assert path.read_text(encoding="utf-8") == NETWORK_FORMATS[name].to_text(network)
    if name in READABLE:
        assert load_network(path) == network
    else:
        holds = NETWORK_FORMATS[name].holds
        with pytest.raises(InputError, match=f"cannot be read: {holds}"):
            load_network(path)


def test_the_format_can_be_named(tmp_path: Path) -> None:
    save_network(garden(), tmp_path / "n.txt", format="bif")
    assert load_network(tmp_path / "n.txt", format="bif") == garden()
    with pytest.raises(InputError, match=r"must end in one of \.json, \.bif"):
        load_network(tmp_path / "n.txt")
    with pytest.raises(InputError, match=r"format must be one of json, .*, got 'xls'"):
        save_network(garden(), tmp_path / "n.txt", format="xls")
    assert find_format("a.GV").name == "dot"


def test_the_target_becomes_the_class(tmp_path: Path) -> None:
    """Another variable can be put first; the distribution stays."""
    save_network(garden(), tmp_path / "n.bif")
    network = load_network(tmp_path / "n.bif", target="grass")
    assert network.names == ("grass", "rain", "sprinkler")
    assert network.structure.parents == ((1, 2), (), (1,))
    assert_same_posteriors(network, garden())
    with pytest.raises(InputError, match="unknown variable 'snow'"):
        load_network(tmp_path / "n.bif", target="snow")


@pytest.mark.parametrize("seed", range(10))
def test_any_variable_can_be_put_first(seed: int) -> None:
    """And the first one back again, which restores the network."""
    network = random_network(seed, n_variables=7)
    moved = put_first(network, "x3")
    assert_same_posteriors(moved, network, seed)
    assert put_first(moved, "x0").names[0] == "x0"
    assert put_first(network, "x0") == network


@pytest.mark.parametrize("name", ["json", "bif", "dot"])  # which hold every name as it is
def test_a_failed_write_leaves_the_old_file(name: str, tmp_path: Path) -> None:
    """A folder that is not there, and a name that is no text, change nothing."""
    with pytest.raises(InputError, match="cannot write"):
        save_network(garden(), tmp_path / "no" / "n", name)
    path = tmp_path / "n"
    path.write_text("old", encoding="utf-8")
    variables = Variable("\ud800", ("a",)), Variable("b", ("a",))
    network = BayesianNetwork(Structure(((), ())), variables, (np.zeros(1), np.zeros(1)))
    with pytest.raises(InputError, match="cannot write"):
        save_network(network, path, name)
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", READABLE)
def test_files_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "n"
    with pytest.raises(InputError, match="cannot read"):
        load_network(path, name)
    with pytest.raises(InputError, match="cannot read"):
        load_network(tmp_path, format=name)
    path.write_bytes(b"a\nb\xff\n")
    with pytest.raises(FormatError, match=r"line 2: byte 0xff is not|JSON is malformed"):
        load_network(path, name)


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(NASTY)).map("".join)))
def test_every_name_survives_its_escape(name: str) -> None:
    escaped = escape(name, NO_WORD)
    assert unescape(escaped) == name
    assert escaped.split() == [escaped]


def test_what_is_no_escape_stays() -> None:
    for text in (r"C:\temp", r"\u{zz}", r"\u{41", r"\u{110000}", r"\u{d800}", r"\u{0000041}"):
        assert unescape(text) == text
    assert unescape(r"\u{41}\u{1f600}\u{}") == "A\U0001f600"


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_logarithms_of_floats_come_back(values: list[float]) -> None:
    """Of every probability's logarithm a float is found that has it; small ones are short."""
    logs = to_logs(np.array(values))
    np.testing.assert_array_equal(to_logs(to_probabilities(logs)), logs)
    assert repr(float(to_probabilities(np.log(np.array([0.1])))[0])) == "0.1"


@pytest.mark.parametrize("name", READABLE)
def test_a_fitted_network_is_rounded_once(name: str, tmp_path: Path) -> None:
    """Its logarithms are finer than probabilities: equal to 1e-15, from then on bit for bit."""
    rng = np.random.default_rng(1)
    variables = tuple(Variable(f"x{i}", ("a", "b", "c")) for i in range(4))
    data = EncodedData(rng.integers(0, 3, (50, 4)), np.ones(50), variables)
    network = BayesianNetwork.fit(data, Structure(((), (0,), (0, 1), (2,))))
    path = tmp_path / "n"
    save_network(network, path, name)
    once = load_network(path, name)
    for a, b in zip(once.log_tables, network.log_tables, strict=True):
        np.testing.assert_allclose(np.exp(a), np.exp(b), rtol=0, atol=1e-15)
    save_network(once, path, name)
    assert load_network(path, name) == once


def test_one_state_needs_no_table(tmp_path: Path) -> None:
    """pyAgrum leaves such tables out; there is only one they could be."""
    text = "variable a { type discrete [1] { x }; }"
    (tmp_path / "n.bif").write_text(text, encoding="utf-8")
    assert load_network(tmp_path / "n.bif").log_tables[0].tolist() == [0.0]


def test_all_formats_agree(tmp_path: Path) -> None:
    """A network carried through all formats in a row is still the same, bit for bit."""
    network = nasty_network(23)
    carried = network
    for name in READABLE:
        save_network(carried, tmp_path / "n", name)
        carried = load_network(tmp_path / "n", name)
    assert carried == network
