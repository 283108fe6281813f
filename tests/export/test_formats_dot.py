"""DOT text: every arc once, any name harmless."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.export.formats import network_to_dot, quote_dot
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import sprinkler


def test_the_sprinkler_graph() -> None:
    """Three nodes, three arcs, the class highlighted."""
    text = network_to_dot(sprinkler())
    assert re.findall(r"v(\d) -> v(\d);", text) == [("0", "1"), ("0", "2"), ("1", "2")]
    assert text.count("fillcolor") == 1
    assert 'v0 [label="rain", shape=box' in text


@settings(deadline=None)
@given(st.text())
def test_any_name_is_one_quoted_string(name: str) -> None:
    """Between the outer quotes there is no bare quote and no raw line end."""
    inner = quote_dot(name)[1:-1]
    assert not re.search(r'(?<!\\)(?:\\\\)*"', inner)
    assert not re.search("[\r\n\0]", inner)
    shown = inner.replace("\\n", "").replace("\\r", "") if "\\" not in name else None
    if shown is not None and not set(name) & set('"\0'):
        assert shown == name.replace("\n", "").replace("\r", "")


def test_connected_to_nothing_is_grey() -> None:
    """A feature without arcs is marked as such."""
    half = np.log([0.5, 0.5])
    variables = (Variable("class", ("a", "b")), Variable("x", ("0", "1")))
    network = BayesianNetwork(Structure(((), ())), variables, (half, half))
    assert 'v1 [label="x", color="#999999"' in network_to_dot(network)
