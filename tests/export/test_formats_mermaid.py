"""Mermaid text: every arc once, any name harmless."""

from __future__ import annotations

import html
import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.export.graph_text import network_to_mermaid, quote_mermaid
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import random_network, sprinkler


def test_the_sprinkler_graph() -> None:
    """Three nodes, three arcs, the class highlighted."""
    assert network_to_mermaid(sprinkler()).splitlines() == [
        "flowchart TD",
        '  v0["rain"]',
        '  v1["sprinkler"]',
        '  v2["grass"]',
        "  v0 --> v1",
        "  v0 --> v2",
        "  v1 --> v2",
        "  style v0 fill:#ffd166,stroke:#333333,color:#000000",
    ]


@settings(deadline=None)
@given(st.text())
def test_any_name_is_one_quoted_string_that_shows_the_name(name: str) -> None:
    """Nothing that Mermaid or HTML interprets is left; the codes stand for the name."""
    inner = quote_mermaid(name)[1:-1]
    assert not re.search(r"""[\x00-\x1f\x7f"<>&`\\]""", inner)
    if not re.search(r"[\x00-\x1f\x7f]", name):
        shown = re.sub(r"#(\d+);", lambda m: chr(int(m[1])), inner)
        assert shown == (name or " ")
        assert html.unescape(inner) == inner


def test_every_arc_of_a_random_network_is_there_once() -> None:
    """The arcs in the text are those of the structure."""
    network = random_network(5, n_variables=12)
    arcs = re.findall(r"v(\d+) --> v(\d+)", network_to_mermaid(network))
    assert [(int(a), int(b)) for a, b in arcs] == list(network.structure.arcs)


def test_connected_to_nothing_is_grey() -> None:
    """A feature without arcs is marked as such."""
    half = np.log([0.5, 0.5])
    variables = (Variable("class", ("a", "b")), Variable("x", ("0", "1")))
    network = BayesianNetwork(Structure(((), ())), variables, (half, half))
    assert "style v1 stroke:#999999,color:#999999" in network_to_mermaid(network)
