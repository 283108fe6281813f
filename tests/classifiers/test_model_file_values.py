"""Values of parameters in files: exact both ways, refused otherwise."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.classifiers.model_file import decode_value, encode_value
from marginbn.exceptions import InputError
from marginbn.files import MisfitError

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
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
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@settings(deadline=None)
@given(values)
def test_plain_values_survive_json_text(value: Any) -> None:
    """Integer keys stay integers."""
    text = json.dumps(encode_value(value), allow_nan=False)
    assert same(decode_value(json.loads(text), "$"), value)


def test_numpy_values_become_pythons() -> None:
    assert encode_value(np.float64(1.5)) == 1.5
    assert encode_value((np.int8(3), np.array([1, 2]))) == [3, [1, 2]]


@pytest.mark.parametrize("value", [object(), len, {1.5: 2}, b"x", {"a": {1, 2}}, np.inf])
def test_other_things_are_not_plain(value: Any) -> None:
    with pytest.raises(InputError, match="is not a plain value"):
        encode_value(value)


@pytest.mark.parametrize(
    "data",
    [
        {"set": []},
        {"dict": [], "list": []},
        {"dict": 3},
        {"dict": [[1.5, 2]]},
        {"dict": [[1, 2, 3]]},
        [{"tuple": []}],
    ],
)
def test_wrong_marks_are_refused_with_their_place(data: Any) -> None:
    with pytest.raises(MisfitError, match=r"^\$\.params\.gamma: must be"):
        decode_value(data, "$.params.gamma")
