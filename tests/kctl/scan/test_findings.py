"""Each finding of a scan, provoked; and the same segment without the fault, silent."""

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.in_memory import InMemory
from formats.compression.writers import compress
from formats.log.message_set import write_message
from formats.log.record_batch import (
    CONTROL,
    TRANSACTIONAL,
    Record,
    read_header,
    seal,
    write_batch,
    write_records,
)
from kctl.findings import FindingType, Place, Severity, all_findings, segments
from kctl.scan.checks.table import LogChecks
from kctl.scan.options import Level, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import LocalFile, opened_source

PLACE = Place(topic="orders", partition=0, file="0.log")


def batch(offset: int, count: int = 3, **changes: int) -> bytes:
    """A sound batch, but for the header fields given."""
    records = [Record(offset + n, 1000 + n, b"k%d" % n, b"value") for n in range(count)]
    options = {name: changes.pop(name) for name in WRITTEN if name in changes}
    made = write_batch(records, **options)  # type: ignore[arg-type]
    header = read_header(made)._replace(**changes)
    return seal(header, made[61:]) if changes else made


WRITTEN = ("codec", "producer_id", "producer_epoch", "base_sequence", "attributes", "partition_leader_epoch")


def holding(body: bytes, **changes: int) -> bytes:
    """A batch at offset 0 with this body and a right CRC."""
    header = read_header(batch(0))._replace(**changes)
    return seal(header, body)


def flipped(data: bytes, at: int, to: int | None = None) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 if to is None else to]) + data[at + 1 :]


def inner_crc() -> bytes:
    """A wrapper of magic 1 whose second message has a wrong CRC."""
    inner = write_message(1, 0, None, b"a", timestamp=5) + flipped(
        write_message(1, 1, None, b"b", timestamp=5), 12
    )
    return write_message(1, 1, None, compress(1, inner, magic=1), timestamp=5, attributes=1)


def producer(offset: int, sequence: int, epoch: int = 0, attributes: int = 0) -> bytes:
    return batch(offset, producer_id=7, producer_epoch=epoch, base_sequence=sequence, attributes=attributes)


RECORDS = [Record(n, 1000 + n, b"k%d" % n, b"value") for n in range(3)]
BODY = write_records(RECORDS, 0, 1000)
BODY_BACK = write_records([RECORDS[0], RECORDS[2], RECORDS[1]], 0, 1000)
GOOD, NEXT = batch(0), batch(3)
MARKER = write_batch(
    [Record(9, 5, b"\0\0\0\1", b"\0\0\0\0\0\0")],
    attributes=TRANSACTIONAL | CONTROL,
    producer_id=7,
    producer_epoch=0,
)

CASES: list[tuple[FindingType, bytes]] = [
    (segments.BATCH_CRC_MISMATCH, flipped(GOOD, 70) + NEXT),
    (segments.DAMAGED_CRC, GOOD + flipped(NEXT, 11) + batch(6)),
    (segments.ILLEGAL_MAGIC, GOOD + flipped(NEXT, 16, 9) + batch(6)),
    (segments.ILLEGAL_LENGTH, GOOD + flipped(NEXT, 9, 255) + batch(6)),
    (segments.GARBAGE, GOOD + random.Random(1).randbytes(300)),
    (segments.TORN_TAIL, GOOD + NEXT[:40]),
    (segments.TRAILING_ZEROS, GOOD + bytes(500)),
    (segments.ZEROED_RANGE, GOOD + bytes(500) + NEXT),
    (segments.UNKNOWN_CODEC, batch(0, attributes=7)),
    (segments.UNKNOWN_ATTRIBUTES, batch(0, attributes=0x80)),
    (segments.OFFSETS_GO_BACK, batch(5) + batch(3)),
    (segments.OFFSET_BELOW_NAME, batch(-1)),
    (segments.OFFSET_TOO_FAR, batch(2**31)),
    (segments.ILLEGAL_OFFSET_DELTA, batch(0, last_offset_delta=-1, records_count=0)),
    (segments.EPOCH_GOES_BACK, batch(0, partition_leader_epoch=5) + batch(3, partition_leader_epoch=4)),
    (segments.EPOCH_RUNS_AHEAD, batch(0) + batch(3, partition_leader_epoch=9) + batch(6)),
    (segments.EPOCH_WRONG, batch(0, partition_leader_epoch=-5)),
    (segments.RECORDS_COUNT_TOO_LARGE, batch(0, records_count=4)),
    (segments.RECORDS_COUNT_TOO_LARGE, batch(0, records_count=-4)),
    (segments.RECORD_MALFORMED, holding(BODY, records_count=2)),
    (segments.RECORD_MALFORMED, holding(BODY[:-1])),
    (segments.RECORD_CRC_MISMATCH, inner_crc()),
    (segments.RECORD_OFFSETS, holding(BODY_BACK)),
    (segments.RECORD_OFFSETS, holding(BODY, last_offset_delta=1, records_count=3)),
    (segments.MAX_TIMESTAMP, batch(0, max_timestamp=1001)),
    (segments.NOT_DECOMPRESSED, holding(b"nothing compressed", attributes=3)),
    (segments.NOT_DECOMPRESSED, holding(compress(4, BODY, magic=2)[:-3], attributes=4)),
    (segments.NOT_EXAMINED, holding(compress(4, bytes(1 << 20), magic=2), attributes=4)),
    (segments.CONTROL_BATCH, holding(write_records([Record(0, 1000, b"x", b"")], 0, 1000), attributes=CONTROL,
                                     records_count=1, last_offset_delta=0, max_timestamp=1000)),
    (segments.PRODUCER_FIELDS, batch(0, producer_id=7)),
    (segments.PRODUCER_FIELDS, batch(0, attributes=TRANSACTIONAL)),
    (segments.OFFSET_GAP, batch(0) + batch(9)),
    (segments.SEQUENCE_DUPLICATE, producer(0, 0) + producer(3, 3) + producer(6, 0)),
    (segments.SEQUENCE_GAP, producer(0, 0) + producer(3, 9)),
    (segments.PRODUCER_EPOCH_GOES_BACK, producer(0, 0, epoch=2) + producer(3, 3, epoch=1)),
    (segments.OPEN_TRANSACTION, producer(0, 0, attributes=TRANSACTIONAL)),
]  # fmt: skip

# Provoked below, and by test_many_producers.py.
# By the indexes and the shutdown, which a segment alone does not tell: tests/kctl/checks/.
BY_STATE = (
    "offsets-go-back-not-read-by-a-start",
    "offsets-go-back-empty-the-segment",
    "offsets-go-back-stop-the-start",
)
ELSEWHERE = (
    segments.TOO_MANY_FINDINGS, segments.FILE_CHANGED, segments.PRODUCERS_FORGOTTEN,
    *(kind for kind in vars(segments).values() if isinstance(kind, FindingType) and kind.code in BY_STATE),
)  # fmt: skip


def found_in(data: bytes, level: Level = Level.RECORDS, **options: int) -> list[tuple[str, str]]:
    asked = {"base_offset": 0, "max_decompressed_bytes": 1 << 19, **options}
    scan = scan_segment(InMemory(data), ScanOptions(level=level, place=PLACE, **asked))  # type: ignore[arg-type]
    said = [one for chunk in scan for one in chunk.findings]
    said += scan.checks.finish(is_compacted=False)
    for one in said:
        assert one.place.topic == "orders"
        assert one.place.position is not None
        assert "{" not in one.message
    return [(one.code, one.severity) for one in said]


@pytest.mark.parametrize(("kind", "data"), CASES, ids=[f"{k.code}-{n}" for n, (k, _) in enumerate(CASES)])
def test_a_fault_is_found(kind: FindingType, data: bytes) -> None:
    assert (kind.code, kind.severity) in found_in(data)


def test_a_sound_segment_is_silent() -> None:
    sound = GOOD + NEXT + producer(6, 0, attributes=TRANSACTIONAL) + MARKER + batch(10, codec=4)
    sound += producer(13, 3) + write_batch(
        [], base_offset=16, last_offset_delta=3, producer_id=7, producer_epoch=0, base_sequence=6
    )
    assert found_in(sound) == []


def test_every_code_has_a_case_here() -> None:
    mine = {one.code for one in vars(segments).values() if isinstance(one, FindingType)}
    covered = {kind.code for kind, _ in CASES} | {kind.code for kind in ELSEWHERE}
    assert mine - covered == set(), "give the finding a case in CASES"
    assert covered - mine == set()
    assert mine <= {one.code for one in all_findings()}


def test_levels_do_less() -> None:
    malformed = holding(BODY_BACK)
    assert found_in(malformed, Level.CRC) == []
    assert found_in(flipped(GOOD, 70) + NEXT, Level.HEADER) == []


def test_findings_are_limited_and_the_rest_counted() -> None:
    data = b"".join(batch(3 * n, max_timestamp=99) for n in range(50))
    said = [f for chunk in scan_segment(InMemory(data), ScanOptions(max_findings=10)) for f in chunk.findings]
    assert [one.code for one in said] == [segments.MAX_TIMESTAMP.code] * 10 + [
        segments.TOO_MANY_FINDINGS.code
    ]
    assert "40 more" in said[-1].message


def test_a_gap_in_a_compacted_topic_is_normal() -> None:
    data = producer(0, 0) + producer(30, 9)
    scan = scan_segment(InMemory(data), ScanOptions())
    assert [f for chunk in scan for f in chunk.findings] == []
    assert scan.checks.finish(is_compacted=True) == []
    gaps = scan.checks.finish(is_compacted=None)
    assert {gap.code for gap in gaps} == {"batch-offset-gap", "producer-sequence-gap"}
    assert all(gap.severity is Severity.INFO and "unknown" in gap.message for gap in gaps)


def test_offset_commits_of_a_coordinator_repeat_sequence_0() -> None:
    commits = (
        producer(0, 0, attributes=TRANSACTIONAL)
        + MARKER
        + b"".join(producer(10 + 3 * n, 0, attributes=TRANSACTIONAL) for n in range(2))
    )
    offsets = ScanOptions(place=Place(topic="__consumer_offsets"))
    assert [f.code for chunk in scan_segment(InMemory(commits), offsets) for f in chunk.findings] == []
    assert ("producer-sequence-duplicate", "error") in found_in(commits)


def test_segments_of_a_partition_are_stitched() -> None:
    def edges(*parts: bytes) -> list[str]:
        """Codes of what is wrong between segments of which each alone is sound."""
        checks = LogChecks()
        said = []
        for part in parts:
            assert [f for chunk in scan_segment(InMemory(part)) for f in chunk.findings] == [] or len(
                parts
            ) == 1
            scan = scan_segment(InMemory(part), ScanOptions(place=PLACE), checks=checks)
            said += [f.code for chunk in scan for f in chunk.findings]
        return said + [f.code for f in checks.finish(is_compacted=False)]

    assert edges(batch(0), b"", batch(3)) == []
    assert edges(batch(5), batch(6)) == ["batch-offsets-go-back"]
    assert edges(batch(0, partition_leader_epoch=2), batch(3)) == ["batch-leader-epoch-goes-back"]
    ahead = batch(0, partition_leader_epoch=2)
    assert edges(ahead, batch(3), batch(6)) == ["batch-leader-epoch-runs-ahead"]
    assert edges(ahead + batch(3) + batch(6)) == ["batch-leader-epoch-runs-ahead"]
    assert edges(ahead + batch(3), batch(6, partition_leader_epoch=2)) == ["batch-leader-epoch-goes-back"]
    assert edges(producer(0, 0), producer(3, 4)) == ["producer-sequence-gap"]
    transaction = producer(0, 0, attributes=TRANSACTIONAL)
    assert edges(transaction, batch(3, 6), MARKER) == []
    assert edges(batch(0), batch(9)) == ["batch-offset-gap"]
    assert edges(transaction, batch(3)) == ["transaction-open"]


# --- files that change while they are read ------------------------------------------------------------


class Changing(LocalFile):
    """A file to which something happens after its first bytes were read."""

    happens: Callable[[], object] | None = None

    def read_into(self, position: int, room: object) -> int:
        got = super().read_into(position, room)  # type: ignore[arg-type]
        if self.happens:
            self.happens()
            self.happens = None
        return got


@pytest.mark.parametrize("change", ["grows", "shrinks", "vanishes"])
def test_a_file_that_changes(tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.scan.runs.BLOCK_SIZE", 200)
    log = tmp_path / "0.log"
    log.write_bytes(b"".join(batch(3 * n) for n in range(20)))
    size = log.stat().st_size
    source = Changing(log)
    happens = {
        "grows": lambda: log.open("ab").write(batch(60)),
        "shrinks": lambda: os.truncate(log, size // 2),
        "vanishes": log.unlink,
    }
    source.happens = happens[change]
    scan = scan_segment(source, ScanOptions(base_offset=0))
    said = [one.code for chunk in scan for one in chunk.findings]
    source.close()
    expected = {"grows": "file-changed", "shrinks": "file-changed", "vanishes": "evidence-vanished"}
    assert expected[change] in said
    assert not set(said) - {expected[change], "segment-torn-tail"}
    assert scan.totals.batches >= (9 if change == "shrinks" else 20)


def test_a_disk_that_fails(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_bytes(batch(0))

    def fails(position: int, room: object) -> int:
        raise OSError(5, "Input/output error")

    with opened_source(log) as source:
        source.read_into = fails  # type: ignore[method-assign,assignment]
        said = [f for chunk in scan_segment(source) for f in chunk.findings]
    assert [one.code for one in said] == ["evidence-unreadable"]
    assert "input/output error" in said[0].message


def test_numbers_in_headers_do_not_size_memory() -> None:
    data = seal(read_header(GOOD)._replace(records_count=2**31 - 1, last_offset_delta=2**31 - 1), BODY)
    assert ("record-malformed", "error") in found_in(data)
    large = GOOD + NEXT[:8] + struct.pack(">i", 2**31 - 1) + NEXT[12:]
    assert found_in(large)[0][0] in ("segment-torn-tail", "segment-garbage")
