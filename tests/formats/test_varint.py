"""Unsigned varints, and the tagged fields that they delimit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.binary.varint import after_tags, read_unsigned, write_unsigned
from formats.errors import Truncated


@given(
    st.lists(st.tuples(st.integers(0, 1 << 31), st.binary(max_size=200)), max_size=5), st.binary(max_size=3)
)
def test_tagged_fields_are_stepped_over(tags: list[tuple[int, bytes]], more: bytes) -> None:
    written = write_unsigned(len(tags)) + b"".join(
        write_unsigned(tag) + write_unsigned(len(raw)) + raw for tag, raw in tags
    )
    assert after_tags(b"x" + written + more, 1) == 1 + len(written)
    for size in range(len(written)):
        with pytest.raises(Truncated):
            after_tags(written[:size], 0)


@given(st.integers(0, 0xFFFFFFFF))
def test_unsigned_round_trip(value: int) -> None:
    written = write_unsigned(value)
    assert read_unsigned(written, 0) == (value, len(written))
