"""Layered drawings: arcs point down, boxes never touch, curves go around them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from marginbn.exceptions import InputError
from marginbn.network.layout import (
    BOX_HEIGHT,
    LabelBox,
    LayeredGraph,
    Layout,
    Route,
    count_crossings,
    lay_out,
    place_rows,
    sort_rows,
    spread,
)
from marginbn.problem.structure import Structure
from networks import random_network


def naive_bayes(n_features: int) -> Structure:
    return Structure(((), *(((0,),) * n_features)))


def names_of(structure: Structure) -> list[str]:
    return ["class", *(f"feature_{i}" for i in range(1, structure.n_variables))]


def drawn(structure: Structure) -> Layout:
    return lay_out(structure, names_of(structure))


def points_on(route: Route) -> np.ndarray:
    """Points along the cubic pieces of a route, (n, 2)."""
    t = np.linspace(0, 1, 40)[:, np.newaxis]
    curve = np.array(route.curve)
    pieces = [
        (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
        for a, b, c, d in (curve[k : k + 4] for k in range(0, len(curve) - 1, 3))
    ]
    return np.concatenate(pieces)


def overlap(a: LabelBox, b: LabelBox) -> bool:
    return abs(a.x - b.x) < (a.width + b.width) / 2 and abs(a.y - b.y) < (a.height + b.height) / 2


def test_a_chain_by_hand() -> None:
    """Class, child and grandchild stand below one another, the loner apart below the line."""
    layout = drawn(Structure(((), (0,), (1,), ())))
    top, child, grandchild, loner = layout.boxes
    assert top.x == child.x == grandchild.x
    assert top.y < child.y < grandchild.y < layout.separator < loner.y
    assert layout.isolated == (3,)
    first = layout.routes[0]
    assert first.curve[0] == (top.x, top.y + BOX_HEIGHT / 2)
    assert first.curve[-1] == (child.x, child.y - BOX_HEIGHT / 2)


structures = st.builds(
    lambda seed, n, p: random_network(seed, n_variables=n, max_parents=p, max_arity=2).structure,
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.integers(0, 4),
)


@settings(deadline=None, max_examples=60)
@given(structures)
def test_nothing_touches_and_arcs_point_down(structure: Structure) -> None:
    """Boxes keep apart and inside, children stand below parents, curves avoid other boxes."""
    layout = drawn(structure)
    for a, b in itertools.combinations(layout.boxes, 2):
        assert not overlap(a, b)
    for box in layout.boxes:
        assert box.width / 2 <= box.x <= layout.width - box.width / 2
        assert box.height / 2 <= box.y <= layout.height - box.height / 2
    assert [(r.parent, r.child) for r in layout.routes] == list(structure.arcs)
    for route in layout.routes:
        parent, child = layout.boxes[route.parent], layout.boxes[route.child]
        assert parent.y + parent.height / 2 < child.y - child.height / 2
        if not route.faint:
            assert_goes_around(route, layout.boxes)


def assert_goes_around(route: Route, boxes: tuple[LabelBox, ...]) -> None:
    points = points_on(route)
    for box in boxes:
        inside = (np.abs(points[:, 0] - box.x) < box.width / 2) & (
            np.abs(points[:, 1] - box.y) < box.height / 2 - 1e-6
        )
        assert not inside.any(), (route.parent, route.child, box.variable)


@pytest.mark.parametrize("n_features", [57, 120])
def test_wide_layers_are_cut(n_features: int) -> None:
    """Naive Bayes with many features is a picture, not a strip; the class arcs are faint."""
    layout = drawn(naive_bayes(n_features))
    assert 0.8 < layout.width / layout.height < 3
    assert all(route.faint for route in layout.routes)
    assert not any(route.faint for route in drawn(naive_bayes(6)).routes)
    assert len({box.y for box in drawn(naive_bayes(6)).boxes}) == 2  # few stay in one row


def test_faint_arcs_end_next_to_the_middle() -> None:
    """The middle of a box belongs to the other arcs."""
    layout = drawn(Structure(((), *(((0,),) * 11), (0, 1))))
    for route in layout.routes:
        child = layout.boxes[route.child]
        end_x, end_y = route.curve[-1]
        assert end_y == child.y - child.height / 2
        assert (end_x == child.x) == (route.parent != 0)
        assert abs(end_x - child.x) < child.width / 2


def test_long_names_are_shortened_and_wide_ones_get_wide_boxes() -> None:
    """A name of 200 characters takes no more room than its label."""
    layout = lay_out(Structure(((), (0,), (0,))), ["c", "N" * 200, "i" * 200])
    assert [len(box.label) for box in layout.boxes] == [1, 22, 22]
    assert layout.boxes[2].width < layout.boxes[1].width < 300


def test_the_same_structure_gives_the_same_picture() -> None:
    structure = random_network(5, n_variables=30).structure
    assert drawn(structure) == drawn(structure)


def test_names_must_fit_the_structure() -> None:
    with pytest.raises(InputError, match="one entry per variable, 2, got 1"):
        lay_out(Structure(((), ())), ["class"])


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 9)), min_size=1, max_size=12))
def test_spreading_is_isotonic_regression(pairs: list[tuple[int, int]]) -> None:
    """The closest positions that keep the distances, as scikit-learn computes them."""
    wishes = [float(w) for w, _ in pairs]
    distances = [float(d) for _, d in pairs[1:]]
    offsets = np.concatenate([[0.0], np.cumsum(distances)])
    expected = isotonic_regression(np.array(wishes) - offsets) + offsets
    assert np.allclose(spread(wishes, distances), expected)


def crossed() -> LayeredGraph:
    """Two links that cross: 0 -> 3 and 1 -> 2."""
    return LayeredGraph(((0, 1), (2, 3)), (1.0,) * 4, ((0, 3), (1, 2)), {})


def test_a_crossing_is_undone() -> None:
    """Sorting by neighbours turns the lower row around."""
    graph = crossed()
    assert count_crossings(graph, graph.rows) == 1
    rows = sort_rows(graph)
    assert count_crossings(graph, rows) == 0
    x = place_rows(graph, rows, gap=2.0)
    assert x[0] == pytest.approx(x[3])
    assert abs(x[0] - x[1]) >= 3.0 - 1e-9


@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 7))
def test_crossings_are_counted_as_they_are_drawn(seed: int, upper: int, lower: int) -> None:
    """Every pair of links is compared, and sorting never makes more of them."""
    rng = np.random.default_rng(seed)
    rows = tuple(range(upper)), tuple(range(upper, upper + lower))
    links = tuple((a, b) for a in rows[0] for b in rows[1] if rng.random() < 0.5)
    graph = LayeredGraph(rows, (1.0,) * (upper + lower), links, {})
    slow = sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(links, 2))
    assert count_crossings(graph, rows) == slow
    assert count_crossings(graph, sort_rows(graph)) <= slow


def test_boxes_of_any_size_do_not_touch() -> None:
    """Rows are as high as their highest box, and no curve runs through a box that it passes."""
    network = random_network(11, 14, max_parents=3)
    rng = np.random.default_rng(0)
    sizes = [(float(w), float(h)) for w, h in rng.integers(40, 160, (14, 2))]
    layout = lay_out(network.structure, network.names, sizes=sizes)
    assert [(b.width, b.height) for b in layout.boxes] == sizes
    for a, b in itertools.combinations(layout.boxes, 2):
        assert not overlap(a, b)
    for route in layout.routes:
        for box in layout.boxes:
            if box.variable not in (route.parent, route.child):
                apart = np.abs(points_on(route) - (box.x, box.y)) - (box.width / 2, box.height / 2)
                assert (apart.max(axis=1) > -1e-6).all()
    for box in layout.boxes:
        assert box.x - box.width / 2 >= 0
        assert box.x + box.width / 2 <= layout.width
        assert box.y + box.height / 2 <= layout.height


def test_a_class_of_many_arcs_stands_alone_in_the_middle() -> None:
    """Roots that are no children of the class do not push it aside."""
    structure = Structure(((), *(((0,),) * 12), *(((),) * 3), (13,), (14,), (15,)))
    layout = drawn(structure)
    top = layout.boxes[0]
    assert all(b.y > top.y + top.height for b in layout.boxes[1:])
    assert abs(top.x - layout.width / 2) < 0.15 * layout.width
