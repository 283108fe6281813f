"""Values in JSON files: exact both ways, refused with their place otherwise."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.files import (
    MisfitError,
    NotPlainError,
    as_bool,
    as_count,
    as_finite,
    as_int,
    as_list,
    as_number,
    as_record,
    as_text,
    check_header,
    decode_value,
    encode_number,
    encode_value,
    shorten,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=10,
)


def same(a: Any, b: Any) -> bool:
    """Equal in value and in type, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@settings(deadline=None)
@given(values)
def test_plain_values_survive_json_text(value: Any) -> None:
    """Tuples stay tuples, integer keys stay integers, infinities stay infinite."""
    text = json.dumps(encode_value(value), allow_nan=False)
    assert same(decode_value(json.loads(text), "$"), value)


def test_numpy_values_become_pythons() -> None:
    """Scalars and arrays of numpy are written as numbers and lists."""
    assert encode_value(np.float64(1.5)) == 1.5
    assert encode_value((np.int8(3), np.array([1, 2]))) == {"tuple": [3, [1, 2]]}


@pytest.mark.parametrize("value", [object(), len, {1.5: 2}, b"x", {"a": {1, 2}}])
def test_other_things_are_not_plain(value: Any) -> None:
    """What JSON cannot carry is refused, not turned into something else."""
    with pytest.raises(NotPlainError, match="is not a plain value"):
        encode_value(value)


@pytest.mark.parametrize("value", [0.1, -math.inf, math.inf, math.nan, 1e-320])
def test_numbers_survive(value: float) -> None:
    """Every float has a JSON form."""
    back = as_number(json.loads(json.dumps(encode_number(value), allow_nan=False)), "$")
    assert back == value or (math.isnan(back) and math.isnan(value))


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (as_text, 1),
        (as_text, "\ud800"),
        (as_int, True),
        (as_int, 1.0),
        (as_count, -1),
        (as_count, 2**63),
        (as_bool, 1),
        (as_number, "Infinity"),
        (as_number, True),
        (as_number, 10**400),
        (as_number, math.inf),
        (as_finite, "inf"),
        (as_list, {}),
        (as_record, []),
        (decode_value, {"set": []}),
        (decode_value, {"tuple": [], "dict": []}),
        (decode_value, {"dict": [[1.5, 2]]}),
        (decode_value, {"dict": [[1, 2, 3]]}),
        (decode_value, [{"float": "x"}]),
    ],
)
def test_wrong_types_are_told_with_their_place(read: Any, data: Any) -> None:
    """The message begins with where the value stands."""
    with pytest.raises(MisfitError, match=r"^\$\.here"):
        read(data, "$.here")


def test_records_have_exactly_their_keys() -> None:
    """Neither less nor more, and lists their length."""
    with pytest.raises(MisfitError, match="the key 'b' is missing"):
        as_record({"a": 1}, "$", ("a", "b"))
    with pytest.raises(MisfitError, match="unknown keys"):
        as_record({"a": 1, "b": 2}, "$", ("a",))
    with pytest.raises(MisfitError, match="must have 2 entries, got 1"):
        as_list([1], "$", 2)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({}, "must be 'x', got None"),
        ({"format": "y", "version": 1}, "must be 'x'"),
        ({"format": "x"}, "whole number"),
        ({"format": "x", "version": 3}, "newer marginbn"),
        ({"format": "x", "version": 0}, "must be 2, got 0"),
    ],
)
def test_headers_tell_format_and_version(header: dict[str, object], reason: str) -> None:
    """Another format, no version, a future one."""
    with pytest.raises(MisfitError, match=reason):
        check_header(header, "x", 2)
    check_header({"format": "x", "version": 1}, "x", 2)


def test_messages_stay_short() -> None:
    """A hostile value does not make a hostile message."""
    assert len(shorten("x" * 10**6)) <= 80
    assert shorten([0] * 10**6) == "list of 1000000 entries"
