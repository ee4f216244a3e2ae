"""A run of log bytes: every byte in exactly one item, whatever the bytes are, and damage named for what it is."""

import contextlib
import os
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.log.next_proof import candidates
from formats.log.record_batch import Record, write_batch
from formats.log.records import Damage, DamageReason, LogEntry, records_of, walk
from tests.conftest import examples
from tests.log_examples import EXAMPLES, LOG

T = 1_500_000_000_000


def batches(count: int, first: int = 0, size: int = 60) -> list[bytes]:
    return [write_batch([Record(first + n, T + n, b"k", bytes([n % 251]) * size)]) for n in range(count)]


def shape(data: bytes, **options: Any) -> list[tuple[str, int, int]]:
    """What each item is, where, and how long."""
    return [
        (
            item.reason if isinstance(item, Damage) else "ok" if item.crc_valid else "bad",
            item.position,
            item.size_in_bytes,
        )
        for item in walk(data, **options)
    ]


def test_a_sound_log_of_every_magic() -> None:
    assert [s[0] for s in shape(LOG)] == ["ok"] * 8
    assert sum(s[2] for s in shape(LOG)) == len(LOG)


THREE = b"".join(batches(3))
SIZE = len(THREE) // 3
TAILS = {
    "10 zeros": (bytes(10), [(DamageReason.ZEROS, 10)]),
    "17 zeros": (bytes(17), [(DamageReason.ZEROS, 17)]),
    "18 zeros": (bytes(18), [(DamageReason.ZEROS, 18)]),
    "a page of zeros": (bytes(4096), [(DamageReason.ZEROS, 4096)]),
    "half a batch": (batches(1, 3)[0][:70], [(DamageReason.TORN_TAIL, 70)]),
    "5 bytes": (batches(1, 3)[0][:5], [(DamageReason.ZEROS, 5)]),
    "12 bytes": (batches(1, 3)[0][:12], [(DamageReason.TORN_TAIL, 12)]),
    "garbage": (b"\xa5" * 300, [(DamageReason.GARBAGE, 300)]),
    "text": (b"not a log at all, but a text. " * 20, [(DamageReason.GARBAGE, 600)]),
    "magic 3": (batches(1, 3)[0][:16] + b"\3" + batches(1, 3)[0][17:], [(DamageReason.GARBAGE, SIZE)]),
    "negative length": (
        batches(1, 3)[0][:8] + b"\xff" * 4 + batches(1, 3)[0][12:],
        [(DamageReason.GARBAGE, SIZE)],
    ),
    "length 20": (
        batches(1, 3)[0][:8] + b"\0\0\0\x14" + batches(1, 3)[0][12:],
        [(DamageReason.GARBAGE, SIZE)],
    ),
    "length 2^31-1": (
        batches(1, 3)[0][:8] + b"\x7f\xff\xff\xff" + batches(1, 3)[0][12:],
        [(DamageReason.TORN_TAIL, SIZE)],
    ),
    "bit flip in the records": (
        batches(1, 3)[0][:-5] + b"\xee" + batches(1, 3)[0][-4:],
        [("bad", SIZE)],
    ),
}


@pytest.mark.parametrize(("tail", "expected"), TAILS.values(), ids=TAILS)
def test_what_follows_three_good_batches(tail: bytes, expected: list[tuple[str, int]]) -> None:
    found = shape(THREE + tail)
    assert [s[0] for s in found[:3]] == ["ok"] * 3
    assert [(what, size) for what, _, size in found[3:]] == expected


def test_every_other_batch_is_found_again_and_the_range_is_exact() -> None:
    log = bytearray(b"".join(batches(1000)))
    at = 500 * SIZE
    log[at + 8 : at + 12] = b"\0\0\1\0"  # a length that leads nowhere
    found = shape(bytes(log))
    assert [s for s in found if s[0] != "ok"] == [(DamageReason.CRC_MISMATCH, at, SIZE)]
    assert len(found) == 1000


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\x30"])
def test_an_illegal_length_in_the_middle(length: bytes) -> None:
    log = bytearray(b"".join(batches(10)))
    log[4 * SIZE + 8 : 4 * SIZE + 12] = length
    assert [s for s in shape(bytes(log)) if s[0] != "ok"] == [(DamageReason.ILLEGAL_LENGTH, 4 * SIZE, SIZE)]


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_another_magic_is_not_believed_although_the_crc_does_not_cover_it(magic: int) -> None:
    log = bytearray(b"".join(batches(10)))
    log[4 * SIZE + 16] = magic
    assert [s for s in shape(bytes(log)) if s[0] != "ok"] == [(DamageReason.ILLEGAL_MAGIC, 4 * SIZE, SIZE)]


def test_several_unsound_batches_in_a_row_are_entries() -> None:
    log = bytearray(b"".join(batches(10)))
    for n in (4, 5, 6):
        log[n * SIZE + 70] ^= 1
    assert [s for s in shape(bytes(log)) if s[0] != "ok"] == [("bad", n * SIZE, SIZE) for n in (4, 5, 6)]


def test_unsound_batches_before_zeros_and_before_a_torn_tail_are_entries() -> None:
    log = bytearray(b"".join(batches(3)))
    log[2 * SIZE + 70] ^= 1
    torn = batches(1, 3)[0][:80]
    assert [s[0] for s in shape(bytes(log) + bytes(5000))] == ["ok", "ok", "bad", DamageReason.ZEROS]
    assert [s[0] for s in shape(bytes(log) + torn)] == ["ok", "ok", "bad", DamageReason.TORN_TAIL]


def test_zeros_in_the_middle_reach_to_the_next_batch() -> None:
    log = batches(10)
    data = b"".join(log[:4]) + bytes(3 * SIZE) + b"".join(log[7:])
    assert [s for s in shape(data) if s[0] != "ok"] == [(DamageReason.ILLEGAL_LENGTH, 4 * SIZE, 3 * SIZE)]


def test_a_batch_inside_a_value_is_no_proof() -> None:
    """Stale bytes with lower offsets lie in the damage, as on blocks that a file system gave out again."""
    log = batches(10, 100)
    data = b"".join(log[:4]) + b"\xa5" * 50 + b"".join(batches(2, 5)) + b"".join(log[7:])
    found = [s for s in shape(data) if s[0] != "ok"]
    assert found == [(DamageReason.ILLEGAL_MAGIC, 4 * len(log[0]), 50 + 2 * SIZE)] or len(found) == 1


def test_a_sound_batch_after_one_whose_offset_lies_is_an_entry() -> None:
    log = bytearray(b"".join(batches(10)))
    log[3 * SIZE] = 0x7F  # base offset is outside the CRC
    log[5 * SIZE + 8 : 5 * SIZE + 12] = b"\0\0\0\0"
    assert [s for s in shape(bytes(log)) if s[0] != "ok"] == [(DamageReason.ILLEGAL_LENGTH, 5 * SIZE, SIZE)]


class Windows:
    """A source that counts what is asked of it, and may end before its size says."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self.data = data
        self.size = len(data) if size is None else size
        self.most = 0

    def read_at(self, position: int, size: int) -> bytes:
        self.most = max(self.most, size)
        return self.data[position : position + size]


def test_windows_give_what_the_whole_gives() -> None:
    log = bytearray(b"".join(batches(40, size=100_000)))
    log[2_000_000] ^= 1
    log[3_000_000:3_200_000] = os.urandom(200_000)
    source = Windows(bytes(log))
    assert shape(source) == shape(bytes(log))  # type: ignore[arg-type]
    assert source.most <= 1 << 20


def test_a_source_that_shrinks_ends_there() -> None:
    log = b"".join(batches(10))
    source = Windows(log[: 5 * SIZE + 40], size=len(log))
    found = shape(source)  # type: ignore[arg-type]
    assert [s[0] for s in found] == ["ok"] * 5 + [DamageReason.TORN_TAIL]
    assert sum(s[2] for s in found) == 5 * SIZE + 40


def test_a_huge_batch_is_not_read_whole_for_its_crc() -> None:
    log = write_batch([Record(0, T, None, bytes(5 << 20))])
    source = Windows(log)
    (found,) = walk(source)
    assert isinstance(found, LogEntry) and found.crc_valid
    assert source.most <= 1 << 20


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    position = 0
    for item in walk(data):
        assert item.position == position
        assert item.size_in_bytes > 0
        position += item.size_in_bytes
        if isinstance(item, LogEntry):
            with contextlib.suppress(FormatError):
                records_of(item, limit=1 << 16)
    assert position == len(data)


PIECES = [
    *(EXAMPLES[f"E{n}"] for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)),
    bytes(30),
    b"\xa5" * 20,
    *batches(2, 90),
]
edits = st.lists(
    st.tuples(
        st.sampled_from(["flip", "drop", "insert", "zero"]),
        st.integers(0, 4000),
        st.binary(min_size=1, max_size=30),
    ),
    max_size=4,
)


def edited(data: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    out = bytearray(data)
    for what, where, value in changes:
        at = where % (len(out) + 1)
        if what == "flip" and at < len(out):
            out[at] ^= value[0] or 1
        elif what == "drop":
            del out[at : at + len(value)]
        elif what == "insert":
            out[at:at] = value
        elif what == "zero":
            out[at : at + len(value)] = bytes(len(out[at : at + len(value)]))
    return bytes(out)


@settings(max_examples=examples(150))
@given(st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join), edits)
def test_any_edit_of_a_log(log: bytes, changes: list[tuple[str, int, bytes]]) -> None:
    data = edited(log, changes)
    items = list(walk(data))
    assert [item.position for item in items] == [
        sum(i.size_in_bytes for i in items[:n]) for n in range(len(items))
    ]
    assert sum(item.size_in_bytes for item in items) == len(data)
    for item in items:
        if isinstance(item, LogEntry):
            with contextlib.suppress(FormatError):
                records_of(item, limit=1 << 20)


@given(st.integers(0, 8 * len(LOG) - 1))
def test_a_flipped_bit_that_a_crc_covers_is_always_found(bit: int) -> None:
    data = bytearray(LOG)
    data[bit // 8] ^= 1 << bit % 8
    unsound = [i for i in walk(bytes(data)) if isinstance(i, Damage) or not i.crc_valid]
    at = bit // 8
    position = 0
    for item in walk(LOG):
        assert isinstance(item, LogEntry)
        if position <= at < item.next_position:
            covered = at - position >= (17 if item.magic == 2 else 12)
            break
        position = item.next_position
    if covered:
        assert unsound and unsound[0].position <= at < unsound[0].position + unsound[0].size_in_bytes
    assert sum(i.size_in_bytes for i in walk(bytes(data))) == len(data)


GARBAGE = {
    "random": os.urandom(1 << 20),
    "zeros and ones": b"\0\0\0\0\0\0\0\1" * (1 << 17),
    "small integers": b"".join(n.to_bytes(4, "big") for n in range(1 << 18)),
    "every position a header": (b"\0" * 10 + b"\1\0" + b"\2" * 5) * ((1 << 20) // 17),
}


@pytest.mark.parametrize("piece", GARBAGE.values(), ids=GARBAGE)
def test_time_grows_with_the_garbage_and_not_faster(piece: bytes) -> None:
    def seconds(times: int) -> float:
        data = THREE + piece * times + batches(1, 3)[0]
        began = time.process_time()
        found = shape(data)
        assert found[-1][0] == "ok" and found[-1][1] == len(data) - SIZE
        return time.process_time() - began

    seconds(1)
    small, large = seconds(2), seconds(8)
    assert large < 4 * 2.5 * small + 0.2


def made(base_offset: int) -> bytes:
    return write_batch([Record(base_offset, 5, None, b"v"), Record(base_offset + 1, 5, None, b"v")])


def unsound(base_offset: int) -> bytes:
    batch = bytearray(made(base_offset))
    batch[-1] ^= 1
    return bytes(batch)


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        (made(14), [True, False, True]),
        (made(12), [True, False, True]),  # the offset of the unsound batch may be what is wrong
        (
            made(11),
            [True, DamageReason.CRC_MISMATCH],
        ),  # not after the last good one: the length that leads here lies
        (made(5), [True, DamageReason.CRC_MISMATCH]),
        (made(14)[:40], [True, False, DamageReason.TORN_TAIL]),
        (made(13)[:40], [True, DamageReason.CRC_MISMATCH]),  # no append carries on so
        (made(3)[:40], [True, DamageReason.CRC_MISMATCH]),
        # what a length leads to reaches over the end, and something proves itself before that
        (
            made(14)[:8] + b"\0\0\x7f\xff" + made(14)[12:40] + made(16),
            [True, DamageReason.CRC_MISMATCH, True],
        ),
    ],
)
def test_an_unsound_batch_is_believed_by_the_offset_that_follows(
    behind: bytes, expected: list[bool | DamageReason]
) -> None:
    items = [*walk(made(10) + unsound(12) + behind)]
    assert [item.crc_valid if isinstance(item, LogEntry) else item.reason for item in items] == expected


@pytest.mark.parametrize(
    ("base_offset", "reason"),
    [(12, DamageReason.TORN_TAIL), (11, DamageReason.GARBAGE), (3, DamageReason.GARBAGE)],
)
def test_a_torn_tail_goes_on_after_the_last_good_batch(base_offset: int, reason: DamageReason) -> None:
    assert [s[0] for s in shape(made(10) + made(base_offset)[:40])] == ["ok", reason]


def test_a_batch_that_begins_at_the_last_offset_is_no_candidate() -> None:
    batch = write_batch([Record(7, 5, None, b"v")])
    found = [candidates(batch, len(batch), last_offset).tolist()[:1] for last_offset in (6, 7, 8)]
    assert found == [[0], [], []]
