"""Hostile files and names, each by hand: what fuzzing found, bombs, cycles, many states."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from fuzz.guard import watched
from typer.main import get_command
from typer.testing import CliRunner

from marginbn import NaiveBayesClassifier, load_model, load_network, read_table, save_network
from marginbn.classifiers import MaxMarginBNClassifier
from marginbn.cli import app
from marginbn.data import text_files
from marginbn.exceptions import FormatError, InputError
from marginbn.export.jkl import load_scores
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure

TABLE = "colour,size,y\nred,1,a\nblue,2,b\nred,1,a\nblue,2,b\n"

# --- sizes ----------------------------------------------------------------------------------------


def test_a_variable_may_have_many_states(tmp_path: Path) -> None:
    states = tuple(map(str, range(100_001)))
    table = np.full(len(states), -np.log(len(states)))
    network = BayesianNetwork(Structure(((),)), (Variable("id", states),), (table,))
    for suffix in (".json", ".bif"):
        save_network(network, tmp_path / f"n{suffix}")
        assert load_network(tmp_path / f"n{suffix}").variables == network.variables


CYCLES = {
    ".json": json.dumps(
        {
            "format": "marginbn-network",
            "version": 1,
            "variables": [{"name": n, "states": ["0", "1"]} for n in "ab"],
            "parents": [[1], [0]],
            "log_tables": [[np.log(0.5)] * 4] * 2,
        }
    ),
    ".bif": """variable a { type discrete [ 2 ] { 0, 1 }; }
variable b { type discrete [ 2 ] { 0, 1 }; }
probability ( a | b ) { (0) .5 .5; (1) .5 .5; }
probability ( b | a ) { (0) .5 .5; (1) .5 .5; }""",
}


@pytest.mark.parametrize("suffix", CYCLES)
def test_a_cyclic_graph_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"n{suffix}"
    path.write_text(CYCLES[suffix], encoding="utf-8")
    with pytest.raises(FormatError, match="the graph has a directed cycle"):
        load_network(path)


def test_scores_without_an_acyclic_choice_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jkl"
    path.write_text("2\na 1\n-1 1 b\nb 1\n-1 1 a\n", encoding="utf-8")
    with pytest.raises(FormatError, match="directed cycle"):
        load_scores(path)


# --- bombs ----------------------------------------------------------------------------------------


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that unpacks to a thousand times its size is refused, an honest file is not."""
    monkeypatch.setattr(text_files, "MAX_SAFE_BYTES", 2**25)
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b"a,b\n")
        for _ in range(4):
            stream.write(b"0,0\n" * 2**22)
    tracemalloc.start()
    with pytest.raises(FormatError, match="unpack it yourself"):
        read_table(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * 2**25
    path.write_bytes(gzip.compress(TABLE.encode()))
    assert read_table(path).n_rows == 4


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("load", [load_model, load_network])
def test_deep_brackets_are_refused(opening: str, load: object, tmp_path: Path) -> None:
    path = tmp_path / "n.json"
    path.write_text(opening * 100_000, encoding="utf-8")
    words = r"nested too deeply|Expected `object`, got `array`|unknown field"
    with pytest.raises(FormatError, match=words):
        load(path)  # type: ignore[operator]


# --- what fuzzing found ---------------------------------------------------------------------------


def test_integers_of_128_bits_are_read() -> None:
    """numpy has no such type; the values are taken one by one."""
    polars = pytest.importorskip("polars")
    column = polars.Series("x", [0, 1, 0, 1], dtype=polars.Int128)
    fitted = NaiveBayesClassifier().fit(polars.DataFrame([column]), [0, 1, 0, 1])
    assert fitted.coding_.columns[0].categories == (0, 1)


@pytest.mark.parametrize("random_state", ["x", 1.5])
def test_a_wrong_random_state_is_our_error(random_state: object) -> None:
    """The message names it and what it may be."""
    classifier = MaxMarginBNClassifier(random_state=random_state)
    with pytest.raises(InputError, match="random_state must be a whole number"):
        classifier.fit([["a"], ["b"]], [0, 1])


@pytest.mark.parametrize(
    ("X", "y", "weights"),
    [
        ([], [], None),
        ([1, 2], [0, 1], None),
        ([["a"], ["b"]], [0], None),
        ([["a"], ["b"]], [0, 1], [1.0]),
        ([["a"], ["b"]], [0, 1], [1.0, -1.0]),
        ([["a"], ["b"]], [0, 1], ["x", "y"]),
        ([["a"], ["b"]], [0.5, 1.5], None),
        ([["a"], ["b"]], [[0, 1], [1, 0]], None),
        ([[1.0], [np.inf]], [0, 1], None),
    ],
)
def test_wrong_arguments_of_fit_are_our_errors(X: object, y: object, weights: object) -> None:
    with pytest.raises(InputError):
        NaiveBayesClassifier().fit(X, y, weights)


# --- names that a shell would act upon ------------------------------------------------------------

NAMES = [
    "a;touch pwned;.csv",
    "$(touch pwned).csv",
    "`touch pwned`.csv",
    "a\nb.csv",
    "a|b&c>d.csv",
    "%s{0}.csv",
    "__import__('os').system('touch pwned').csv",
    "*.csv",
]


COMMANDS = get_command(app)  # once: typer evaluates its own annotations


def run(words: list[str]) -> object:
    """Run a command in this process; the exit code, or None."""
    return COMMANDS.main(words, prog_name="marginbn", standalone_mode=False)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_files_are_only_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fit, show and predict with such a name; no process, no code, no other file."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(TABLE, encoding="utf-8")
    commands = [
        ["fit", name, "--target", "y", "--method", "naive-bayes", "-o", f"{name}.json"],
        ["show", f"{name}.json"],
        ["predict", f"{name}.json", name],
        ["export", f"{name}.json", "-o", f"{name}.bif"],
    ]
    for command in commands:
        run(command)  # imports on first use execute code
        with watched(tmp_path, cpu_seconds=30):
            assert not run(command)
    assert sorted(p.name for p in tmp_path.iterdir()) == [name, f"{name}.bif", f"{name}.json"]


@pytest.mark.parametrize("name", ["-rf.csv", "--help.csv"])
def test_a_leading_dash_needs_two_more(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ``--`` or with its folder such a name is a file; without, an unknown option."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(TABLE, encoding="utf-8")
    options = ["fit", "--target", "y", "--method", "naive-bayes"]
    for words in (["--", name], [f"./{name}"]):
        assert CliRunner().invoke(app, [*options, *words]).exit_code == 0
    assert CliRunner().invoke(app, [*options, name]).exit_code == 2


def test_labels_are_only_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Column names, states and classes that look like code come out as they went in."""
    monkeypatch.chdir(tmp_path)
    labels = ["$(touch pwned)", "__import__('os').system('touch pwned')"]
    rows = [f'"{label}","{label}"\n' for label in labels * 3]
    Path("t.csv").write_text('"{0.__class__}",%s\n' + "".join(rows), encoding="utf-8")
    command = ["fit", "t.csv", "--target", "%s", "--method", "naive-bayes", "-o", "m.json"]
    for words in (command, ["predict", "m.json", "t.csv"]):
        run(words)
        with watched(tmp_path, cpu_seconds=30):
            assert not run(words)
    shown = capsys.readouterr().out
    assert all(label in shown for label in labels)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.json", "t.csv"]
