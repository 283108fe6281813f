"""What the tests of file formats share: networks with nasty names, comparisons, damage to files."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from marginbn.exceptions import FormatError, InputError
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import random_evidence, random_network

FILES = Path(__file__).parents[1] / "files"

NASTY = (
    "a b", 'say "x"', "<b>&amp;</b>", "a,b;c|d", "{x}", "(y]", "\U0001f600 émoji", "x" * 200, "",
    " lead", "trail ", "tab\there", "nl\nx", "cr\rx", "nul\0x", "back\\slash", "\\u{41}", "\\u{",
    "table", "default", "node", "probability", "%pct", "//c", "/* c", "v1", "v2", "#h", "$\\", '"',
    "\u2028", "\xa0", "\ufeff", "'", "--", "0", "1.5", "\x85", "]]>", "<!--", "\x1c", "\uffff",
)  # fmt: skip
"""Names that some format has a use for."""

SEEDS = [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 200))]
"""Seeds of random networks; all 200 in the slow run."""


def garden() -> BayesianNetwork:
    """Rain -> sprinkler, both -> grass with three states; every arity and row is different."""
    with np.errstate(divide="ignore"):
        tables = (
            np.log([0.8, 0.2]),
            np.log([[0.6, 0.3, 0.1], [0.97, 0.02, 0.01]]),
            np.log(
                [
                    [[1.0, 0.0, 0.0], [0.1, 0.7, 0.2], [0.05, 0.15, 0.8]],
                    [[0.2, 0.5, 0.3], [0.125, 0.25, 0.625], [1 / 3, 1 / 3, 1 / 3]],
                ]
            ),
        )
    variables = (
        Variable("rain", ("no", "yes")),
        Variable("sprinkler", ("off", "low", "high")),
        Variable("grass", ("dry", "damp", "wet")),
    )
    return BayesianNetwork(Structure(((), (0,), (0, 1))), variables, tables)


def plain_network(seed: int) -> BayesianNetwork:
    """Eight variables with plain names and two or three states, which every package can hold."""
    rng = np.random.default_rng(seed)
    structure = random_network(seed, n_variables=8).structure
    arities = rng.integers(2, 4, 8)
    tables = [
        np.log(rng.dirichlet(np.ones(arities[i]), tuple(arities[list(parents)])))
        for i, parents in enumerate(structure.parents)
    ]
    variables = [Variable(f"x{i}", tuple("abc"[:arity])) for i, arity in enumerate(arities)]
    return BayesianNetwork(structure, tuple(variables), tuple(tables))


def nasty_network(seed: int) -> BayesianNetwork:
    """A random network of 1 to 40 variables with nasty names and some zeros."""
    network = random_network(seed, n_variables=1 + seed % 40, zeros=0.1)
    rng = random.Random(seed)
    names = _draw_names(rng, network.n_variables)
    variables = tuple(
        Variable(name, tuple(_draw_names(rng, v.arity)))
        for name, v in zip(names, network.variables, strict=True)
    )
    return BayesianNetwork(network.structure, variables, network.log_tables)


def _draw_names(rng: random.Random, count: int) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < count:
        names[
            rng.choice(NASTY) + rng.choice(("", "", str(rng.randrange(99)), rng.choice(NASTY)))
        ] = None
    return list(names)


def assert_same_posteriors(
    found: BayesianNetwork, expected: BayesianNetwork, seed: int = 0, tolerance: float = 1e-12
) -> None:
    """Equal marginals of every variable, without and with evidence, in any order of variables."""
    rng = np.random.default_rng(seed)
    _, evidence = random_evidence(expected, rng, 2)
    for given in (None, evidence):
        if given and np.isneginf(expected.log_evidence(given)):
            continue
        wanted = expected.marginals(given)
        marginals = found.marginals(given)
        assert set(marginals) == set(wanted)
        for name, distribution in wanted.items():
            states = found.variables[found.variable_index(name)].states
            own = expected.variables[expected.variable_index(name)].states
            assert sorted(states) == sorted(own)
            order = [states.index(state) for state in own]
            np.testing.assert_allclose(marginals[name][order], distribution, atol=tolerance)


Loader = Callable[[str, str], object]


def assert_refused(load: Loader, text: str, line: int | None, reason: str) -> None:
    """The text is refused with the path, the line and the reason, in a short message."""
    place = "f.x" if line is None else f"f.x, line {line}"
    with pytest.raises(FormatError, match=reason) as caught:
        load(text, "f.x")
    assert str(caught.value).startswith(f"{place}: "), str(caught.value)
    assert len(str(caught.value)) < 400


def assert_only_our_errors(load: Loader, text: str) -> None:
    """Whatever the text is, it is read or refused by one of our errors."""
    with contextlib.suppress(InputError):
        load(text, "f.x")


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """The text with a few pieces cut out, doubled or replaced by characters that formats use."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        junk = draw(
            st.one_of(
                st.text(alphabet='{}()[];,|"<>=%/#&\\ \n\0.-0123456789e', max_size=4),
                st.sampled_from(
                    ["nan", "1e999", "-1", "99999999999999999999", "/*", "\\u{110000}"]
                ),
                st.just(text[start:end] * 2),
                st.text(max_size=3),
            )
        )
        text = text[:start] + junk + text[end:]
    return text
