"""Varints of many rows at once against the reader of single ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.binary.varint import read_varint, read_varlong, write_varint
from formats.errors import FormatError
from formats.log.columns.varints import TOO_LONG, varints, varints_at, words_at

PIECES = st.one_of(
    st.integers(-64, 63).map(write_varint),
    st.integers(-(1 << 13), (1 << 13) - 1).map(write_varint),
    st.integers(-(1 << 31), (1 << 31) - 1).map(write_varint),
    st.binary(min_size=1, max_size=9),
    st.just(b"\xff" * 10),
)


def alone(data: bytes, position: int, longest: int) -> tuple[int, int] | None:
    """Value and size; None where it is longer."""
    read = read_varlong if longest > 5 else read_varint
    try:
        value, after = read(data, position)
    except FormatError:
        return None
    return (value, after - position) if after - position <= longest else None


@pytest.mark.slow
@pytest.mark.parametrize("form", ["words", "long words", "places"])
@given(
    st.lists(PIECES, min_size=1, max_size=8)
    | st.lists(st.integers(-64, 63).map(write_varint), max_size=8)
    | st.lists(st.integers(-8192, 8191).map(write_varint), max_size=8)
)
def test_each_is_read_as_it_is_alone(form: str, pieces: list[bytes]) -> None:
    data = b"".join(pieces) + bytes(64)
    starts = np.cumsum([0, *map(len, pieces)])[:-1]
    held = np.frombuffer(data, np.uint8)
    if form == "places":
        values, sizes = varints_at(held, starts)
    else:
        values, sizes = varints(words_at(held, starts), is_long=form == "long words")
    longest = 8 if form == "long words" else 5
    assert values.dtype == np.int64
    for start, value, size in zip(starts.tolist(), values, np.broadcast_to(sizes, len(starts)), strict=True):
        expected = alone(data, start, longest)
        assert (size == TOO_LONG) if expected is None else (value, size) == expected
