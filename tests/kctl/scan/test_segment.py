"""Scans against the walk and the decoder of single batches: the same bytes, the same items, the same records."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.in_memory import InMemory
from formats.errors import FormatError
from formats.log import records as walker
from formats.log.message_set import write_message, write_wrapper
from formats.log.record_batch import Record, write_batch
from formats.log.records import Damage, LogEntry
from kctl.scan import runs
from kctl.scan.options import Level, ScanOptions
from kctl.scan.segment import SegmentScan, scan_segment
from tests.conftest import examples


def records(start: int, count: int, rng: random.Random, size: int = 60) -> list[Record]:
    made = []
    for number in range(count):
        headers = tuple(
            (b"h%d" % n, rng.choice([None, b"", b"value"])) for n in range(rng.choice([0, 0, 0, 1, 3]))
        )
        key = rng.choice([None, b"", b"key", rng.randbytes(rng.randint(0, size))])
        value = rng.choice([None, b"", rng.randbytes(rng.randint(0, size)), b"v" * rng.randint(0, 9 * size)])
        made.append(
            Record(start + number, 1_700_000_000_000 + rng.randint(-999, 99_999), key, value, headers)
        )
    return made


def log(seed: int, batches: int = 12, magics: tuple[int, ...] = (0, 1, 2, 2, 2)) -> bytes:
    """A segment of many kinds of batches."""
    rng = random.Random(seed)
    out, offset = b"", rng.choice([0, 0, 5, 1 << 40])
    for _ in range(batches):
        magic, count = rng.choice(magics), rng.choice([1, 1, 2, 7, 40])
        some = records(offset, count, rng)
        codec = rng.choice([0, 0, 1, 2, 3, 4] if magic == 2 else [0, 1, 2, 3])
        if magic == 2:
            out += write_batch(some, codec=codec, partition_leader_epoch=3)
        elif codec:
            out += write_wrapper(magic, some, codec=codec)
        else:
            count = 1
            out += write_message(magic, offset, some[0].key, some[0].value, timestamp=some[0].timestamp)
        offset += count
    return out


def items_of_scan(data: bytes, level: Level = Level.CRC) -> tuple[list[tuple[object, ...]], SegmentScan]:
    scan = scan_segment(InMemory(data), ScanOptions(level=level))
    items: list[tuple[object, ...]] = []
    end = 0
    for chunk in scan:
        assert chunk.position == end
        end = chunk.end
        head = chunk.headers
        items += zip(
            head.position.tolist(), head.size_in_bytes.tolist(), head.crc_valid.tolist(), strict=True
        )
        items += [(one.position, one.size_in_bytes, one.reason) for one in chunk.damage]
    assert end == len(data)
    assert scan.totals.good_bytes + scan.totals.damaged_bytes == len(data)
    return items, scan


def items_of_walk(data: bytes) -> list[tuple[object, ...]]:
    return [
        (item.position, item.size_in_bytes, item.crc_valid if isinstance(item, LogEntry) else item.reason)
        for item in walker.walk(data)
    ]


def edited(data: bytes, seed: int) -> bytes:
    """The segment with bytes flipped, cut out, put in, or its tail gone."""
    rng, out = random.Random(seed), bytearray(data)
    for _ in range(rng.randint(1, 3)):
        if not out:
            break
        at = rng.randrange(len(out))
        match rng.randrange(6):
            case 0 | 1:
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                out[at : at + rng.choice([1, 17, 300])] = b""
            case 3:
                out[at:at] = rng.randbytes(rng.choice([1, 12, 100]))
            case 4:
                out[at : at + 40] = bytes(len(out[at : at + 40]))
            case 5:
                del out[at + 1 :]
    return bytes(out)


@pytest.mark.parametrize("seed", range(20))
def test_a_scan_gives_what_the_walk_gives(seed: int) -> None:
    data = log(seed)
    assert items_of_scan(data)[0] == items_of_walk(data)


@pytest.mark.slow
@pytest.mark.parametrize("block", [None, 1 << 12])
@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=examples(80), deadline=None)
def test_also_where_bytes_are_damaged(block: int | None, seed: int, edit: int) -> None:
    data = edited(log(seed % 50), edit)
    with small_blocks(block):
        assert items_of_scan(data)[0] == items_of_walk(data)


@pytest.mark.slow
@given(st.binary(max_size=400), st.integers(0, 50))
@settings(max_examples=examples(100), deadline=None)
def test_any_bytes_at_any_level(junk: bytes, seed: int) -> None:
    for level in Level:
        items_of_scan(junk + log(seed, 2) + junk, level)


class small_blocks:
    """Blocks so small that batches cross their ends."""

    def __init__(self, size: int | None) -> None:
        self.size = size

    def __enter__(self) -> None:
        self.before = runs.BLOCK_SIZE
        if self.size:
            runs.BLOCK_SIZE = self.size

    def __exit__(self, *_: object) -> None:
        runs.BLOCK_SIZE = self.before


def all_records(data: bytes) -> Iterator[tuple[object, ...]]:
    for chunk in scan_segment(InMemory(data), ScanOptions(keep_records=True)):
        found = chunk.records
        if found is not None:
            yield from zip(
                found.offset.tolist(),
                found.timestamp.tolist(),
                found.keys(),
                found.values(),
                found.headers(),
                found.sequence.tolist(),
                strict=True,
            )


def readable_records(data: bytes) -> Iterator[tuple[object, ...]]:
    for item in walker.walk(data):
        if isinstance(item, Damage) or not item.crc_valid:
            continue
        try:
            found = walker.records_of(item)
        except FormatError:
            continue
        for one in found:
            yield one.offset, one.timestamp, one.key, one.value, one.headers, one.sequence


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_records_are_those_of_the_decoder_of_single_batches(seed: int) -> None:
    data = log(seed, 20)
    expected = list(readable_records(data))
    assert list(all_records(data)) == expected
    assert expected
    assert not [f for chunk in scan_segment(InMemory(data)) for f in chunk.findings]


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=examples(100), deadline=None)
def test_also_of_bodies_that_are_wrong_under_a_right_crc(seed: int, edit: int) -> None:
    rng = random.Random(edit)
    made = write_batch(records(7, rng.choice([1, 2, 30]), rng), codec=0)
    from formats.log.record_batch import read_header, seal

    body = edited(made[61:], edit)
    header = read_header(made)
    if rng.random() < 0.3:
        header = header._replace(records_count=rng.choice([-1, 0, 1, 2**31 - 1, header.records_count + 1]))
    data = log(seed % 50, 2, (2,)) + seal(header, body) + log(3, 2, (2,))
    assert list(all_records(data)) == list(readable_records(data))
    found = [f for chunk in scan_segment(InMemory(data)) for f in chunk.findings]
    expected = 0
    try:
        for item in walker.walk(data):
            if isinstance(item, LogEntry):
                walker.records_of(item)
    except FormatError:
        expected = 1
    assert sum(f.code in ("record-malformed", "batch-records-count") for f in found) >= expected


@pytest.mark.slow
@given(st.integers(0, 30), st.integers(0, 1 << 30), st.integers(0, 7))
@settings(max_examples=examples(80), deadline=None)
def test_a_flipped_bit_under_a_crc_is_found(seed: int, place: int, bit: int) -> None:
    data = bytearray(log(seed))
    batches = [item for item in walker.walk(bytes(data)) if isinstance(item, LogEntry)]
    batch = batches[place % len(batches)]
    covered = 21 if batch.magic == 2 else 16
    at = batch.position + covered + place % (batch.size_in_bytes - covered)
    data[at] ^= 1 << bit
    items, _ = items_of_scan(bytes(data))
    assert not any(
        np.all([start <= at < start + size, state is True])
        for start, size, state in items  # type: ignore[operator]
    )
