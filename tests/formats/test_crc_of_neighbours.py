"""Many short ranges checked at once: right where each is, wrong where it is not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.binary.crc import crc32, crc32c
from formats.binary.crc_of_ranges import AT_ONCE, CRC32, CRC32C, CrcKind, as_stored

GAPS = st.integers(0, 30)
KINDS = st.sampled_from([CRC32C, CRC32])


def laid_out(
    parts: list[bytes], gap: int, kind: CrcKind = CRC32C
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Data with the parts in it, where each starts and ends, and its CRC."""
    data = bytearray(b"\xa5" * 7)
    starts, ends = [], []
    for part in parts:
        data += b"\x5a" * gap
        starts.append(len(data))
        data += part
        ends.append(len(data))
    one = crc32c if kind is CRC32C else crc32
    stored = np.array([one(part) for part in parts], np.uint32)
    return np.frombuffer(bytes(data) + bytes(9), np.uint8).copy(), np.array(starts), np.array(ends), stored


@given(st.lists(st.binary(max_size=700), min_size=1, max_size=30), GAPS, KINDS)
def test_ranges_with_their_own_crcs_are_right(parts: list[bytes], gap: int, kind: CrcKind) -> None:
    data, starts, ends, stored = laid_out(parts, gap, kind)
    before = data.copy()
    assert as_stored(data, starts, ends, stored, kind).all()
    assert (data == before).all()


@given(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=30), GAPS, KINDS, st.data())
def test_one_changed_bit_or_value_is_seen_where_it_is(
    parts: list[bytes], gap: int, kind: CrcKind, draw: st.DataObject
) -> None:
    data, starts, ends, stored = laid_out(parts, gap, kind)
    which = draw.draw(st.integers(0, len(parts) - 1))
    at = draw.draw(st.integers(int(starts[which]), int(ends[which]) - 1))
    data[at] ^= 1 << draw.draw(st.integers(0, 7))
    assert np.flatnonzero(~as_stored(data, starts, ends, stored, kind)).tolist() == [which]
    data, *_ = laid_out(parts, gap, kind)
    stored[which] ^= np.uint32(draw.draw(st.integers(1, 2**32 - 1)))
    assert np.flatnonzero(~as_stored(data, starts, ends, stored, kind)).tolist() == [which]


@given(st.binary(max_size=64), st.lists(st.binary(max_size=64), min_size=2, max_size=10))
def test_bytes_between_the_ranges_mean_nothing(noise: bytes, parts: list[bytes]) -> None:
    data, starts, ends, stored = laid_out(parts, 21)
    for end in ends[:-1].tolist():
        data[end : end + 21] = np.resize(np.frombuffer(noise or b"x", np.uint8), 21)
    assert as_stored(data, starts, ends, stored).all()


@pytest.mark.parametrize("kind", [CRC32C, CRC32])
def test_blocks_of_many_ranges(kind: CrcKind) -> None:
    rng = np.random.default_rng(5)
    sizes = [*rng.integers(100, 400, 3000).tolist(), 9000, AT_ONCE, 1, 0, 70_000, *[300] * 2000]
    data, starts, ends, stored = laid_out([rng.bytes(size) for size in sizes], 21, kind)
    assert as_stored(data, starts, ends, stored, kind).all()
    stored[[17, 2900, 3004]] = stored[[2900, 3004, 17]]
    assert np.flatnonzero(~as_stored(data, starts, ends, stored, kind)).tolist() == [17, 2900, 3004]


def test_ranges_that_lie_unequally_far_apart() -> None:
    data, starts, ends, _ = laid_out([b"abc", b"defg", b"hi", b"jklm", b"nop"], 30)
    ends[1] += 9
    stored = np.array([crc32c(data[a:b]) for a, b in zip(starts, ends, strict=True)], np.uint32)
    assert as_stored(data, starts, ends, stored).all()
    assert not len(as_stored(data, starts[:0], ends[:0], stored[:0]))


def test_errors_of_one_pattern_do_not_cancel_out() -> None:
    parts = [bytes([n]) * 100 for n in range(64)]
    data, starts, ends, stored = laid_out(parts, 21)
    for which in range(64):
        for other in range(which + 1, 64, 7):
            broken = stored.copy()
            broken[[which, other]] ^= np.uint32(0x00400000)
            wrong = np.flatnonzero(~as_stored(data, starts, ends, broken)).tolist()
            assert wrong == [which, other]
