"""SVG pictures: well-formed, complete, harmless with any name."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.export.formats import network_to_svg
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import random_network, sprinkler

SPACE = "{http://www.w3.org/2000/svg}"


def named(*names: str, states: tuple[str, ...] = ("0", "1")) -> BayesianNetwork:
    """A class with a child per further name."""
    row = np.log(np.full(len(states), 1 / len(states)))
    tables = [row] + [np.tile(row, (len(states), 1))] * (len(names) - 1)
    structure = Structure(((), *(((0,),) * (len(names) - 1))))
    return BayesianNetwork(structure, tuple(Variable(n, states) for n in names), tuple(tables))


def texts(svg: str, tag: str) -> list[str]:
    return ["".join(e.itertext()) for e in ElementTree.fromstring(svg).iter(SPACE + tag)]


def test_the_sprinkler() -> None:
    """Three boxes with their names, three arcs with heads, tooltips with parents and states."""
    svg = network_to_svg(sprinkler())
    assert texts(svg, "text") == ["rain", "sprinkler", "grass"]
    assert len(texts(svg, "rect")) == 3
    assert len(texts(svg, "path")) == 6
    assert texts(svg, "title")[1:] == [
        "rain: no | yes",
        "sprinkler given rain: off | on",
        "grass given rain, sprinkler: dry | wet",
    ]


def test_isolated_features_are_under_a_caption() -> None:
    """The caption is there exactly if a feature has no arcs."""
    caption = "no arcs: without influence"
    assert caption not in texts(network_to_svg(named("c", "x")), "text")
    half = np.log([0.5, 0.5])
    variables = (Variable("c", ("0", "1")), Variable("x", ("0", "1")))
    unconnected = BayesianNetwork(Structure(((), ())), variables, (half, half))
    assert caption in texts(network_to_svg(unconnected), "text")


NASTY = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp;", "]]>", "a\nb")


@pytest.mark.parametrize("name", NASTY)
def test_names_are_text_and_nothing_else(name: str) -> None:
    """Markup in names and states stays text: no element or attribute comes of it."""
    plain = ElementTree.fromstring(network_to_svg(named("c", "x")))
    network = named("c", name, states=(name + "1", name + "2"))
    root = ElementTree.fromstring(network_to_svg(network))
    assert [e.tag for e in root.iter()] == [e.tag for e in plain.iter()]
    assert {k for e in root.iter() for k in e.attrib} == {k for e in plain.iter() for k in e.attrib}
    assert texts(network_to_svg(network), "title")[2].startswith(name.replace("\n", " "))
    assert "<script" not in network._repr_html_()


@settings(deadline=None, max_examples=60)
@given(st.text(st.characters(exclude_categories=())))
def test_any_name_is_well_formed(name: str) -> None:
    """XML parsers accept every name, and the file can be written as UTF-8."""
    svg = network_to_svg(named("c" + name, "x", states=("s" + name, "t")))
    ElementTree.fromstring(svg)
    svg.encode("utf-8")


def test_notebooks_show_the_picture_with_a_caption() -> None:
    """_repr_html_ is one figure without script, style sheet or address to load from."""
    network = random_network(3, n_variables=12)
    html = network._repr_html_()
    root = ElementTree.fromstring(html)
    assert root.tag == "figure"
    assert "".join(root.find("figcaption").itertext()) == repr(network)
    assert network_to_svg(network) in html
    assert not any(word in html for word in ("<script", "href", "url(", "<style", "src="))


def test_large_networks_stay_small_files() -> None:
    """Sixty variables take less than 100 kB."""
    assert len(network_to_svg(random_network(1, n_variables=60))) < 100_000
