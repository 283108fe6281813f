"""Labels for pictures: one line, of bounded width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginbn.data.discretize import name_bins
from marginbn.network.wording import (
    align,
    assignment,
    columns,
    listing,
    name_group,
    one_line,
    shorten,
    text_width,
)


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("short", 5, "short"),
        ("abcdefghij", 5, "ab…ij"),
        ("abcdefghij", 6, "abc…ij"),
        ("a\r\nb\tc", 9, "a  b c"),
        ("日本語日本語", 7, "日…語"),
        ("left   right-hand", 8, "left…and"),
        ("x\u202ey", 9, "x y"),  # a mark that would turn the rest around
    ],
)
def test_shortening_by_hand(text: str, most: int, expected: str) -> None:
    """The middle goes, wide characters count twice, control characters become spaces."""
    assert shorten(text, most) == expected


def test_wide_characters_are_aligned_by_columns() -> None:
    """Two characters of two columns each take as much room as four plain ones."""
    assert align([["名前", "n"], ["abcd", "10"]], indent=0) == ["名前   n", "abcd  10"]


@given(st.text(), st.integers(4, 60))
def test_a_short_label_is_never_wider_than_asked(text: str, most: int) -> None:
    """The bound holds for any text, and a text that fits is only put on one line."""
    short = shorten(text, most)
    assert columns(short) <= most
    assert not any(c in short for c in "\r\n\t\0\u2028")
    if columns(one_line(text)) <= most:
        assert short == one_line(text)
    else:
        assert "…" in short


def test_combining_marks_take_no_room() -> None:
    """An accent on its own character is as wide as the letter."""
    assert columns("e\u0301") == columns("e") == 1
    assert text_width("e\u0301") == text_width("e")


def test_widths_are_not_less_than_a_real_font() -> None:
    """The estimate is at least what matplotlib measures for its own font."""
    pytest.importorskip("matplotlib")
    from matplotlib.textpath import TextPath

    for text in ("word_freq_addresses", "WWWW", "mmm", "illi", "petal length (cm)", "x = 12.75 %"):
        measured = TextPath((0, 0), text, size=100).get_extents().width / 100
        assert measured <= text_width(text) <= 1.6 * measured + 0.5


def test_long_lists_end_in_dots() -> None:
    assert listing(["red", "green"], 2) == "red, green"
    assert listing(["red", "green", "blue"], 2) == "red, green, ..."
    assert listing(["red", "green", "blue"], 2, " (3 in all)") == "red, green, ... (3 in all)"
    assert listing([]) == ""


CUTS = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=8, unique=True).map(sorted)


@given(CUTS, st.data())
def test_a_group_of_bins_is_the_bin_without_the_inner_cuts(
    cuts: list[float], data: st.DataObject
) -> None:
    """Cutting less often gives the same names as joining what was cut."""
    kept = sorted(data.draw(st.sets(st.sampled_from(cuts))))
    fine, coarse = name_bins(cuts), name_bins(kept)
    group = [sum(cut > k for k in kept) for cut in cuts] + [len(kept)]
    for k, name in enumerate(coarse):
        assert name_group([fine[i] for i, g in enumerate(group) if g == k]) == name


@pytest.mark.parametrize(
    ("states", "name", "sentence"),
    [
        (["red"], "red", "x = red"),
        (["<= 1", "(2, 3]"], "<= 1 or (2, 3]", "x <= 1 or (2, 3]"),
        (["(1, 2]", "> 5"], "(1, 2] or > 5", "x in (1, 2] or > 5"),
        (["> 5", "(missing)"], "> 5 or (missing)", "x > 5 or (missing)"),
        (["> 5", "<= 1"], "> 5 or <= 1", "x > 5 or <= 1"),
        (list("abcdef"), "a … f (6 states)", "x = a … f (6 states)"),
        ([f"({i}, {i + 1}]" for i in range(60)], "(0, 60]", "x in (0, 60]"),
        (["(1e-05, 2]", "(2, 3e+20]"], "(1e-05, 3e+20]", "x in (1e-05, 3e+20]"),
    ],
)
def test_groups_by_hand(states: list[str], name: str, sentence: str) -> None:
    """Neighbouring bins are joined, gaps and categories are listed."""
    assert name_group(states) == name
    assert assignment("x", name) == sentence
