"""The native format: exact round trips, and a list of hostile files."""

from __future__ import annotations

import copy
import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from marginbn.exceptions import FormatError, InputError
from marginbn.export.formats import load_network, save_network
from marginbn.export.native import NetworkShape, build_network, network_to_dict
from marginbn.files import MisfitError, decode
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import random_network, sprinkler

Edit = Callable[[dict[str, Any]], object]


def read(data: object) -> BayesianNetwork:
    return build_network(decode(json.dumps(data).encode(), NetworkShape))


def test_the_sprinkler_file_reads_as_documented(tmp_path: Path) -> None:
    """Names, states, parents and row-major log tables stand in the file; log 0 is null."""
    save_network(sprinkler(), tmp_path / "n.json")
    data = json.loads((tmp_path / "n.json").read_text(encoding="utf-8"))
    assert (data["format"], data["version"]) == ("marginbn-network", 1)
    assert data["variables"][1] == {"name": "sprinkler", "states": ["off", "on"]}
    assert data["parents"] == [[], [0], [0, 1]]
    assert data["log_tables"][0] == [math.log(0.8), math.log(0.2)]
    assert data["log_tables"][2][:2] == [0.0, None]
    assert load_network(tmp_path / "n.json") == sprinkler()


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    zeros=st.sampled_from([0.0, 0.3]),
    labels=st.lists(st.text(), min_size=12, max_size=12, unique=True),
)
def test_round_trip_is_exact_to_the_bit(seed: int, zeros: float, labels: list[str]) -> None:
    """Through JSON text every float has the same bits and every label the same characters."""
    network = random_network(seed, n_variables=5, zeros=zeros)
    variables = tuple(
        Variable(labels[i], tuple(labels[5 : 5 + v.arity])) for i, v in enumerate(network.variables)
    )
    network = BayesianNetwork(network.structure, variables, network.log_tables)
    back = read(network_to_dict(network))
    assert back == network
    for ours, theirs in zip(network.log_tables, back.log_tables, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def _set(*keys: str | int, value: object) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        place: Any = data
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return edit


HOSTILE: list[tuple[Edit, str]] = [
    (_set("format", value="pickle"), r"\$\.format: Invalid enum value 'pickle'"),
    (_set("format", value=["x"] * 10_000), r"\$\.format: Expected `str`, got `array`"),
    (_set("version", value=4), r"\$\.version: must be 1, got 4: .* another version of marginbn"),
    (_set("version", value=10**350), r"\$\.version: must be 1, got 1000"),
    (_set("version", value=0), r"\$\.version: must be 1, got 0"),
    (_set("groups", value=[None, None, None]), r"\$: Object contains unknown field `groups`"),
    (lambda d: d.pop("version"), r"\$: Object missing required field `version`"),
    (_set("__class__", value="os.system"), r"\$: Object contains unknown field `__class__`"),
    (_set("variables", value=[]), r"\$\.parents: must have 0 entries, got 3"),
    (_set("variables", 0, "name", value=3), r"\$\.variables\[0\]\.name: Expected `str`, got `int`"),
    (_set("variables", 0, "name", value="grass"), r"names must be unique, repeated: 'grass'"),
    (_set("variables", 0, "name", value="\ud800"), r"\$: "),
    (_set("variables", 0, "states", value=["a", "a"]), r"labels of 'rain' must be unique"),
    (_set("variables", 0, "states", value=[]), r"\[0\]\.states: Expected `array` of length >= 1"),
    (_set("variables", 0, "states", value=["a", None]), r"states\[1\]: Expected `str`, got `null`"),
    (_set("variables", 0, "states", value=["a"] * 1_000_000), r"must have 1000000 entries, got 2"),
    (
        _set("variables", 0, "kind", value=1),
        r"\$\.variables\[0\]: Object contains unknown field `kind`",
    ),
    (_set("parents", value=[[], [0]]), r"\$\.parents: must have 3 entries, got 2"),
    (_set("parents", 1, value=[3]), r"\$\.parents: parents of variable 1 must be .* got \(3,\)"),
    (_set("parents", 1, value=[-1]), r"\$\.parents\[1\]\[0\]: Expected `int` >= 0"),
    (_set("parents", 1, value=[1]), r"\$\.parents: parents of variable 1 must be other"),
    (_set("parents", 1, value=[10**300]), r"\$\.parents\[1\]"),
    (_set("parents", 1, value=[0.0]), r"\$\.parents\[1\]\[0\]: Expected `int`, got `float`"),
    (_set("parents", 2, value=[1, 0]), r"\$\.parents\[2\]: parents must be increasing"),
    (_set("parents", 2, value=[0, 0]), r"\$\.parents\[2\]: parents must be increasing"),
    (_set("parents", 0, value=[2]), r"\$\.parents: the graph has a directed cycle"),
    (_set("log_tables", 0, value=[0.0]), r"\$\.log_tables\[0\]: must have 2 entries, got 1"),
    (_set("log_tables", 0, value=[True, None]), r"\$\.log_tables\[0\]\[0\]: Expected `float"),
    (
        _set("log_tables", 0, value=[10**350, None]),
        r"\$\.log_tables\[0\]\[0\]: Number out of range",
    ),
    (_set("log_tables", 0, value=[0.0, 0.0]), r"'rain' must sum to 1"),
    (_set("log_tables", 0, value=[None, None]), r"'rain' must sum to 1"),
]


@pytest.mark.parametrize(("edit", "message"), HOSTILE)
def test_hostile_files_are_refused_with_path_and_place(
    tmp_path: Path, edit: Edit, message: str
) -> None:
    data = copy.deepcopy(network_to_dict(sprinkler()))
    edit(data)
    path = tmp_path / "n.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(FormatError, match=message) as caught:
        load_network(path)
    assert str(caught.value).startswith(f"{path}: $")
    assert len(str(caught.value)) < len(str(path)) + 300


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_infinity_in_disguise_is_refused(tmp_path: Path, number: str) -> None:
    """A decimal too large for a float reads as infinity; only null means log 0."""
    data = json.dumps(network_to_dict(sprinkler())).replace("null", number, 1)
    (tmp_path / "n.json").write_text(data, encoding="utf-8")
    with pytest.raises(FormatError, match=r"\$\.log_tables\[2\]\[1\]: Number out of range"):
        load_network(tmp_path / "n.json")


@pytest.mark.parametrize(("n_parents", "arity"), [(9, 10), (200, 1000), (40, 1)])
def test_declared_sizes_are_refused_before_allocation(n_parents: int, arity: int) -> None:
    """A short file that declares a table of 10**9 cells, or of 10**600, or of 41 axes."""
    states = [str(s) for s in range(arity)]
    data = {
        "format": "marginbn-network",
        "version": 1,
        "variables": [{"name": f"x{i}", "states": states} for i in range(n_parents + 1)],
        "parents": [list(range(1, n_parents + 1)), *([] for _ in range(n_parents))],
        "log_tables": [[0.0]] * (n_parents + 1),
    }
    with pytest.raises(MisfitError, match=r"\$\.log_tables\[0\]: a table .* is too large"):
        read(data)


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_something_else_is_not_a_network(data: object) -> None:
    with pytest.raises(MisfitError, match=r"^\$: Expected `object`, got"):
        read(data)


@settings(deadline=None, max_examples=150)
@given(cut=st.floats(0, 1, exclude_max=True), junk=st.binary(max_size=3))
def test_damaged_text_never_raises_anything_but_our_errors(cut: float, junk: bytes) -> None:
    text = json.dumps(network_to_dict(sprinkler())).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "n.json"
        damaged = text[: int(cut * len(text))] + junk
        assume(damaged != text)  # what was cut off may come back as junk
        path.write_bytes(damaged)
        with pytest.raises(InputError):
            load_network(path)


def test_a_long_cycle_is_refused_quickly() -> None:
    """A ring of 50 000 variables is recognised without following it once per variable."""
    n = 50_000
    data = {
        "format": "marginbn-network",
        "version": 1,
        "variables": [{"name": str(i), "states": ["a"]} for i in range(n)],
        "parents": [[(i + 1) % n] for i in range(n)],
        "log_tables": [[0.0]] * n,
    }
    with pytest.raises(MisfitError, match="directed cycle") as caught:
        read(data)
    assert len(str(caught.value)) < 200


def test_a_single_variable_is_a_network() -> None:
    """The smallest network, a class without features, makes the round trip."""
    coin = Variable("c", ("a",))
    network = BayesianNetwork(Structure(((),)), (coin,), (np.zeros(1),))
    assert read(network_to_dict(network)) == network
