"""What filters on offsets and times let the scan leave out: by indexes that may lie, and headers that may be damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import EqualTo

from benchmarks.in_memory import InMemory
from kctl.scan.source import opened_source
from kctl.scan.splits import Split, hints_of
from kctl.spark.data_source import filters_of
from kctl.spark.planning import Filters
from kctl.spark.seeking import indexed_start, part_within
from tests.spark.test_data_source import NOW, SMALL

Segment = tuple[bytes, bytes]  # log and index
BATCH = 10  # records in each of the segment's batches


@pytest.fixture
def segment(corpus: Path) -> Segment:
    (log,) = corpus.glob(f"{SMALL}*/*.log")
    return log.read_bytes(), log.with_suffix(".index").read_bytes()


def begin(log: bytes, index: bytes, offset: int | None, base_offset: int = 0) -> int:
    return indexed_start(InMemory(log), index, hints_of(index), base_offset, offset)


def part(log: bytes, index: bytes, **bounds: int) -> Split | None:
    return part_within(InMemory(log), Split(0, len(log)), hints_of(index), Filters(**bounds))


def offset_at(log: bytes | bytearray, position: int) -> int:
    return int.from_bytes(log[position : position + 8])


@pytest.mark.parametrize("offset", [0, 5, 700, 701, 2990, 10**9])
def test_the_index_leads_near_and_never_past(segment: Segment, offset: int) -> None:
    log, index = segment
    at = begin(log, index, offset)
    assert offset_at(log, at) <= offset
    assert offset_at(log, at) > min(offset, 2999) - 2 * 4096 // 100
    assert begin(log, index, None) == 0
    assert begin(log, b"", offset) == 0


def test_an_index_that_lies_is_not_believed(segment: Segment) -> None:
    log, index = segment
    entries = np.frombuffer(index, ">i4").reshape(-1, 2).copy()
    early, middle = entries.copy(), entries.copy()
    early[:, 0] -= 1000  # what it says of 1500 is true of 2500
    assert begin(log, early.tobytes(), 1500) == 0
    middle[:, 1] += 7  # the middle of a batch
    assert begin(log, middle.tobytes(), 1500) == 0
    assert begin(log, np.full_like(entries, 2**31 - 1).tobytes(), 1500) == 0
    damaged = bytearray(log)
    at = begin(log, index, 1500)
    damaged[at + 70] ^= 1
    assert begin(bytes(damaged), index, 1500) == 0, "its CRC does not prove the batch there"


def test_headers_tell_the_part_that_is_wanted(segment: Segment) -> None:
    log, index = segment
    found = part(log, index, from_offset=1000, to_offset=1099)
    assert found is not None
    assert offset_at(log, found.start) == 1000
    assert offset_at(log, found.end) == 1100
    late = part(log, index, from_time=NOW + 2505)
    assert late is not None
    assert (offset_at(log, late.start), late.end) == (2500, len(log))
    assert part(log, index) == Split(0, len(log))
    assert part(log, index, from_offset=3000) is None
    assert part(log, index, from_time=NOW + 10**9) is None


def test_headers_tell_the_epoch_that_is_wanted(segment: Segment) -> None:
    log, index = bytearray(segment[0]), segment[1]
    at = 0
    while at < len(log):
        log[at + 12 : at + 16] = (offset_at(log, at) // 1000).to_bytes(4)
        at += 12 + int.from_bytes(log[at + 8 : at + 12])
    wanted = filters_of([EqualTo(("partition_leader_epoch",), 1)])
    found = part_within(InMemory(bytes(log)), Split(0, len(log)), hints_of(index), wanted)
    assert found is not None
    assert (offset_at(log, found.start), offset_at(log, found.end)) == (1000, 2000)
    after = part(bytes(log), index, from_epoch=2)
    assert after is not None
    assert (offset_at(log, after.start), after.end) == (2000, len(log))
    assert part(bytes(log), index, from_epoch=3) is None


def test_where_headers_are_damaged_all_is_looked_at(segment: Segment) -> None:
    log, index = segment
    data = bytearray(log)
    data[2000:2400] = bytes(400)
    assert part(bytes(data), index, from_offset=1000, to_offset=1099) == Split(0, len(log))


def test_a_file_is_read_where_it_is(corpus: Path) -> None:
    (log,) = corpus.glob(f"{SMALL}*/*.log")
    with opened_source(log) as source:
        index = log.with_suffix(".index").read_bytes()
        assert indexed_start(source, index, hints_of(index), 0, 1500) > 0
