"""Plain values as bytes: what goes in comes out, and nothing else gets in."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xnncc.errors import BadModel
from xnncc.pack.plain import decode_plain, encode_plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=8),
    max_leaves=20,
)


@given(VALUES)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault of the code
def test_every_value_comes_back(value: object) -> None:
    found = decode_plain(encode_plain(value), "x")
    assert repr(found) == repr(value)  # 1 is not 1.0 is not True


def test_a_nan_comes_back() -> None:
    assert math.isnan(decode_plain(encode_plain(math.nan), "x"))


@pytest.mark.parametrize(
    ("value", "size"), [(0, 1), (127, 1), (128, 3), (-1, 2), (0.5, 5), (0.1, 9), ("ab", 3), ([1, 2], 3)]
)
def test_short_things_are_short(value: object, size: int) -> None:
    assert len(encode_plain(value)) == size


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "1 bytes wanted, 0 left"),
        (b"\x01\x02", "1 bytes are left"),
        (b"\xff", "0xff begins no value"),
        (b"\xc6\xff\xff\xff\xff\x0f", "a list of"),
        (b"\xa2\xff\xfe", "not UTF-8"),
        (b"\xc5" + b"\xff" * 11, "more than 10 bytes"),
        (b"\x81" * 80 + b"\x00", "nested deeper"),
    ],
)
def test_damage_is_one_sentence(data: bytes, why: str) -> None:
    with pytest.raises(BadModel, match=why):
        decode_plain(data, "m.xq")


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_noise_is_a_value_or_bad_model(data: bytes) -> None:
    with contextlib.suppress(BadModel):
        decode_plain(data, "m.xq")
