"""Many short ranges checked at once: right where each is, wrong where any is not."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from formats import crc
from formats.crc_of_neighbours import LONGEST, all_as_stored

GAPS = st.integers(0, 30)


def laid_out(parts: list[bytes], gap: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Data with the parts in it, where each starts and ends, and its CRC."""
    data = bytearray(b"\xa5" * 7)
    starts, ends = [], []
    for part in parts:
        data += b"\x5a" * gap
        starts.append(len(data))
        data += part
        ends.append(len(data))
    stored = np.array([crc.crc32c(part) for part in parts], np.uint32)
    return np.frombuffer(bytes(data) + bytes(9), np.uint8).copy(), np.array(starts), np.array(ends), stored


@given(st.lists(st.binary(max_size=700), min_size=1, max_size=30), GAPS)
def test_ranges_with_their_own_crcs_are_right(parts: list[bytes], gap: int) -> None:
    data, starts, ends, stored = laid_out(parts, gap)
    assert all_as_stored(data, starts, ends, stored)


@given(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=30), GAPS, st.data())
def test_one_changed_bit_or_value_is_seen(parts: list[bytes], gap: int, draw: st.DataObject) -> None:
    data, starts, ends, stored = laid_out(parts, gap)
    which = draw.draw(st.integers(0, len(parts) - 1))
    at = draw.draw(st.integers(int(starts[which]), int(ends[which]) - 1))
    data[at] ^= 1 << draw.draw(st.integers(0, 7))
    assert not all_as_stored(data, starts, ends, stored)
    data, *_ = laid_out(parts, gap)
    stored[which] ^= np.uint32(draw.draw(st.integers(1, 2**32 - 1)))
    assert not all_as_stored(data, starts, ends, stored)


@given(st.binary(max_size=64), st.lists(st.binary(max_size=64), min_size=2, max_size=10))
def test_bytes_between_the_ranges_mean_nothing(noise: bytes, parts: list[bytes]) -> None:
    data, starts, ends, stored = laid_out(parts, 21)
    for end in ends[:-1].tolist():
        data[end : end + 21] = np.resize(np.frombuffer(noise or b"x", np.uint8), 21)
    assert all_as_stored(data, starts, ends, stored)


def test_blocks_of_many_ranges() -> None:
    rng = np.random.default_rng(5)
    parts = [rng.bytes(int(size)) for size in rng.integers(100, 400, 3000)]
    data, starts, ends, stored = laid_out(parts, 21)
    assert all_as_stored(data, starts, ends, stored)
    stored[[17, 2900]] = stored[[2900, 17]]
    assert not all_as_stored(data, starts, ends, stored)


def test_what_lies_otherwise_is_not_judged() -> None:
    data, starts, ends, stored = laid_out([b"abc", b"defg", b"hi"], 3)
    ends[1] += 1  # it runs into the gap
    assert not all_as_stored(data, starts, ends, stored)
    data, starts, ends, stored = laid_out([bytes(LONGEST)], 0)
    assert not all_as_stored(data, starts, ends, stored)
