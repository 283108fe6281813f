"""When binning hurries, by a clock that the test moves."""

from __future__ import annotations

from marginbn.classifiers.budget import part_used


def test_half_of_what_is_left() -> None:
    """Four of ten seconds are gone: after three more binning hurries."""
    now = [4.0]
    is_late = part_used(10.0, lambda: now[0])
    assert not is_late()
    now[0] = 7.01
    assert is_late()
    assert not part_used(None, lambda: 1e9)()
    assert not part_used(20.0, lambda: now[0], 0.75)()
    over = part_used(1.0, lambda: now[0])
    now[0] = 7.02
    assert over()
