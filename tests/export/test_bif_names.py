"""Files read by pgmpy and pyAgrum themselves: the same posteriors, whatever columns are called."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from exchange import assert_refused, nasty_network
from marginbn import NaiveBayesClassifier, TANClassifier
from marginbn.export.bif import (
    KEYWORDS,
    NEVER,
    network_from_bif,
    network_to_bif,
    to_portable,
    unique_identifiers,
)
from marginbn.export.formats import load_network, save_network
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import random_evidence, random_network
from seeds import seeds

WORDS = (
    "table", "default", "table1", "default5", "Tablee", "stable", "node", "mynode", "node x", "net",
    "data", "data = 3", "states", "states = (a)", "potential (a)", "variable", "probability",
    "type", "discrete", "property", "network", "class", "name", "Age", "age", "AGE", "age (years)",
    "a, b", "<= -0.475", "(2.45, 4.75]", "> 1e-05", "0", "-1", "1.5", "1e5", "01", "true", "é",
    "Größe", "年齢", "say 'x'", 'say "x"', "// no", "/* no", "% no", "# no", "a/b", "{x}", "", " ",
    "x  y", "\\u{41}", "never", "x" * 90, "x" * 89 + "y", "None", "nan", ";", "v1", "v_1", "s0",
    "tab\t",
)  # fmt: skip


def worded_network(seed: int, most: int = 7) -> BayesianNetwork:
    """A random network with one-state variables, zeros, tiny numbers and difficult names."""
    network = random_network(seed, n_variables=2 + seed % (most - 1), zeros=0.05)
    rng = np.random.default_rng((seed, 7))
    names = rng.permutation(WORDS)[: network.n_variables]
    variables = [
        Variable(str(name), tuple(map(str, rng.permutation(WORDS)[:arity])))
        for name, arity in zip(names, network.arities, strict=True)
    ]
    tables = [_with_tiny(table, rng) for table in network.log_tables]
    return BayesianNetwork(network.structure, tuple(variables), tuple(tables))


def _with_tiny(log_table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sometimes a state becomes very rare, to be written as 0.00001 and not as 1e-05."""
    table = np.exp(log_table)
    if table.shape[-1] > 1 and rng.random() < 0.5:
        table[..., 0] *= 10.0 ** -rng.integers(5, 9)
        table[..., -1] += 1e-3
    with np.errstate(divide="ignore"):
        return np.log(table / table.sum(axis=-1, keepdims=True))


def learned_network(seed: int) -> BayesianNetwork:
    """A network of a table with numbers in bins, a constant column and categories with commas."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    n = 200
    y = rng.integers(3 if seed % 2 else 2, size=n)
    frame = pandas.DataFrame(
        {
            "petal length (cm)": y + rng.normal(0, 0.7, n),
            "Default": -1000 * y + rng.normal(0, 700, n),
            "constant": ["always, the same"] * n,
            "city": np.array(["Zürich", "São Paulo, BR", "node 5"])[rng.integers(3, size=n)],
            "flag": rng.random(n) < 0.5,
            "small": 1e-6 * (y + rng.normal(0, 0.5, n)),
        }
    )
    labels = pandas.Series(np.array(["no", "yes", "don't know"])[y], name="class")
    kind = TANClassifier if seed % 3 else NaiveBayesClassifier
    return kind().fit(frame, labels).network_


def cases() -> Iterator[tuple[str, Callable[[], BayesianNetwork]]]:
    """200 random networks and 10 learned ones."""
    for seed in range(200):
        yield f"random{seed}", lambda seed=seed: worded_network(seed)
    for seed in range(10):
        yield f"learned{seed}", lambda seed=seed: learned_network(seed)


CASES = list(cases())
EVERY_DAY = [4, 31, 99, 200]
"""Every reader sees these in the default run, and all 210 networks in the slow one."""
CHOSEN = [
    pytest.param(make, id=name, marks=() if k in EVERY_DAY else pytest.mark.slow)
    for k, (name, make) in enumerate(CASES)
]


Ask = Callable[[int, dict[int, int]], np.ndarray]
"""P(variable | observed states), all by index, as another package answers."""


def read_with_pyagrum(path: Path) -> Ask:
    """Posteriors of the file by lazy propagation; variables are in the order of the file."""
    gum = pytest.importorskip("pyagrum", exc_type=ImportError)
    model = gum.loadBN(str(path))
    nodes = sorted(model.nodes())

    def ask(variable: int, observed: dict[int, int]) -> np.ndarray:
        engine = gum.LazyPropagation(model)
        engine.setEvidence({nodes[v]: state for v, state in observed.items()})
        engine.addTarget(nodes[variable])
        engine.makeInference()
        # a one-state variable that is observed keeps an axis there
        return engine.posterior(nodes[variable]).toarray().ravel()

    return ask


def read_with_pgmpy(path: Path) -> Ask:
    """Posteriors of the file by variable elimination."""
    pytest.importorskip("pgmpy", exc_type=ImportError)
    from pgmpy import readwrite
    from pgmpy.inference import VariableElimination

    reader = readwrite.BIFReader(str(path))
    model = reader.get_model()
    assert model.check_model()
    names, states = reader.variable_names, reader.variable_states

    def ask(variable: int, observed: dict[int, int]) -> np.ndarray:
        known = {names[v]: states[names[v]][state] for v, state in observed.items()}
        engine = VariableElimination(model)
        answer = engine.query([names[variable]], evidence=known, show_progress=False)
        order = [answer.get_state_no(names[variable], s) for s in states[names[variable]]]
        return np.asarray(answer.values)[order]

    return ask


READERS = {"pyagrum": read_with_pyagrum, "pgmpy": read_with_pgmpy}


@pytest.mark.filterwarnings("ignore:.*pgmpy.*:FutureWarning")
@pytest.mark.parametrize("make", CHOSEN)
@pytest.mark.parametrize("reader", READERS)
def test_others_read_the_same_network(
    reader: str, make: Callable[[], BayesianNetwork], tmp_path: Path
) -> None:
    """Posteriors of the other package's own reader and inference equal ours to 1e-6."""
    network = make()
    save_network(network, tmp_path / "network.bif")
    ask = READERS[reader](tmp_path / "network.bif")
    rng = np.random.default_rng(0)
    for size in (0, 1):
        codes, labels = random_evidence(network, rng, size)
        if np.exp(network.log_evidence(labels)) < 1e-4:  # single precision there
            continue
        query = next(v for v in range(network.n_variables) if v not in codes)
        expected = network.posterior_array(query, labels)
        found = ask(query, codes)
        np.testing.assert_allclose(found[: len(expected)], expected, atol=1e-6)
        np.testing.assert_allclose(found[len(expected) :], 0, atol=1e-6)


@pytest.mark.parametrize("seed", seeds(8, 40))
def test_our_own_reader_restores_every_name(seed: int, tmp_path: Path) -> None:
    """Names, states (one-state variables, too) and numbers come back bit for bit."""
    path = tmp_path / "network.bif"
    for network in (worded_network(seed), nasty_network(seed)):
        save_network(network, path)
        assert load_network(path) == network


def test_numbers_are_plain_decimals() -> None:
    tables = np.log([1e-5, 1 - 1e-5]), np.log([[1e-200, 1 - 1e-200], [0.5, 0.5]])
    variables = Variable("a", ("x", "y")), Variable("b", ("x", "y"))
    network = BayesianNetwork(Structure(((), (0,))), variables, tables)
    text = network_to_bif(network)
    assert "e-" not in text
    assert "0.00001" in text or "0.000009999999999999" in text


def test_names_are_kept_where_they_can_be() -> None:
    """Identifiers and whole numbers stay; others become the nearest that is unique."""
    texts = ["age", "Age", "Age (years)", "-1", "le_5", "<= 5", "> 5", "年齢", "(-1.5, 2]", ""]
    found = unique_identifiers(texts, "s")
    assert found == [
        "age", "Age", "Age_years", "-1", "le_5", "le_5_2", "gt_5", "s7",
        "from_minus_1_5_to_2", "s9",
    ]  # fmt: skip
    assert unique_identifiers(["age", "Age", "-1"], "v") == ["age", "Age_2", "minus_1"]
    many = unique_identifiers(["!" + "?" * i + "a" for i in range(5000)], "s")
    assert len(set(many)) == 5000


def test_no_identifier_is_a_keyword() -> None:
    """In no case, and never twice the same."""
    found = unique_identifiers([*WORDS, *KEYWORDS], "v")
    assert len({name.lower() for name in found}) == len(found)
    assert not {name.lower() for name in found} & KEYWORDS


def test_a_second_state_that_never_happens() -> None:
    """Its probability is zero, its children's rows repeat, and the comment tells the truth."""
    tables = np.log([1.0]), np.log([[0.3, 0.7]])
    variables = Variable("one", ("only",)), Variable("two", ("a", "b"))
    network = BayesianNetwork(Structure(((), (0,))), variables, tables)
    portable, changed = to_portable(network)
    assert portable.variables[0].states == ("only", NEVER)
    np.testing.assert_allclose(np.exp(portable.log_tables[0]), [1, 0])
    np.testing.assert_allclose(np.exp(portable.log_tables[1]), [[0.3, 0.7], [0.3, 0.7]])
    assert [own.states for own in changed.values()] == [("only",)]
    text = network_to_bif(network)
    assert text.splitlines()[-1] == '// name: ["one", "one", ["only"]]'
    assert network_from_bif(text) == network


def test_comments_that_do_not_fit_are_refused() -> None:
    """Damaged comments, unknown identifiers, wrong counts and a state that does happen."""
    text = network_to_bif(worded_network(3))
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("//")) + "\n"
    network = network_from_bif(plain)
    name, states = network.names[0], network.variables[0].states
    line = plain.count("\n") + 1

    def comment(*values: object) -> str:
        return f"{plain}// name: {json.dumps(values)}"

    refused = "as JSON; delete it"
    assert_refused(network_from_bif, f"{plain}// name: [1", line, refused)
    assert_refused(network_from_bif, comment(name, "x"), line, refused)
    assert_refused(network_from_bif, comment(name, "x", [1]), line, refused)
    assert_refused(network_from_bif, comment(name, "\ud800", ["a"]), line, refused)
    assert_refused(network_from_bif, f"{plain}// name: {'[' * 100_000}", line, refused)
    assert_refused(network_from_bif, comment("zz", "x", ["a"]), None, "'zz' is not declared")
    wrong = comment(name, "x", [*states, "more"])
    assert_refused(network_from_bif, wrong, None, f"states, not {len(states) + 1}")
    twice = comment(name, network.names[1], list(states))
    assert_refused(network_from_bif, twice, None, "in its comments")
    assert_refused(network_from_bif, comment(name, "x", ["a"]), None, "has a single state")


def test_comments_hide_words_that_a_reader_may_look_for() -> None:
    """The word is there for JSON, but not for a search."""
    variable = Variable("variable x", ("probability (a)", "a//b"))
    network = BayesianNetwork(Structure(((),)), (variable,), (np.log([0.5, 0.5]),))
    text = network_to_bif(network)
    last = text.splitlines()[-1].removeprefix("// name: ")
    assert not any(word in last for word in ("variable x", "probability", "//"))
    assert json.loads(last)[1:] == ["variable x", ["probability (a)", "a//b"]]
    assert network_from_bif(text) == network
