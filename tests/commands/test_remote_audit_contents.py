"""`kctl remote audit` where everything is sound in itself: logs exchanged, cached indexes, indexes cut short."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.in_memory import InMemory
from formats.log.record_batch import Record, write_batch
from formats.log_dir.index_files import OffsetIndexEntry, TimeIndexEntry, write_index
from formats.messages.remote_log_metadata import SegmentMetadata, SegmentState, TopicIdPartition
from formats.tier.object_names import LOCAL_TIERED_STORAGE, ObjectKind, ObjectName
from kctl.scan.source import Source
from kctl.tier.audit.inventory import SegmentObjects
from kctl.tier.audit.segment_objects import examine
from kctl.tier.audit.segment_tasks import ExaminedSegment, SegmentTask
from kctl.tier.metadata.log import Say
from kctl.tier.stores import StoredObject
from tests.commands.test_remote_audit import about
from tests.conftest import rows
from tests.kctl.remote.made import Tiered

TOLD = ("error", "warning")


def alike(made: Tiered) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Finished segments of different partitions with the same offsets, size and epochs, by twos.

    Where even the largest timestamps are equal nothing but a replica tells one log from the other.
    """
    found = rows("remote", "segments", made.brokers).of("remote_segment")
    seen: dict[object, dict[str, Any]] = {}
    for row in found:
        if row["state"] != "COPY_SEGMENT_FINISHED":
            continue
        key = (
            row["start_offset"],
            row["end_offset"],
            row["size_in_bytes"],
            str(row["segment_leader_epochs"]),
        )
        other = seen.pop(key, None)
        if other is None:
            seen[key] = row
        elif (other["topic"], other["partition"]) != (row["topic"], row["partition"]) and other[
            "max_timestamp"
        ] != row["max_timestamp"]:
            yield other, row


@pytest.mark.slow
@pytest.mark.parametrize("what", ["log", "everything"])
def test_logs_of_one_layout_that_were_exchanged(tmp_path: Path, what: str) -> None:
    made = Tiered(tmp_path)
    pairs = list(alike(made))
    assert len(pairs) >= 5
    for one, other in pairs:
        here, there = (made.objects(row["remote_log_segment_id"]) for row in (one, other))
        for suffix in [".log"] if what == "log" else here.keys() & there.keys():
            first, second = here[suffix].read_bytes(), there[suffix].read_bytes()
            here[suffix].write_bytes(second)
            there[suffix].write_bytes(first)
    ran = rows("remote", "audit", made.folder)
    for row in (one for pair in pairs for one in pair):
        found = about(ran, row["remote_log_segment_id"])
        assert any(one["severity"] in TOLD for one in found), row
    exchanged = [row for row in ran.of("finding") if row["code"] == "remote-log-exchanged"]
    one, other = pairs[0]
    of_one = next(row for row in exchanged if row["remote_log_segment_id"] == one["remote_log_segment_id"])
    assert (
        f"segment {other['remote_log_segment_id']} of {other['topic']}-{other['partition']}"
        in of_one["message"]
    )


@pytest.mark.slow
def test_a_log_copied_over_another_one_names_where_it_is_from(tmp_path: Path) -> None:
    made = Tiered(tmp_path)
    # The newer one's place: that its metadata have a later timestamp than its log is innocent by itself.
    one, other = sorted(next(alike(made)), key=lambda row: int(row["max_timestamp"]))
    source, target = (made.objects(row["remote_log_segment_id"])[".log"] for row in (one, other))
    target.write_bytes(source.read_bytes())
    ran = rows("remote", "audit", made.folder)
    exchanged = [row for row in ran.of("finding") if row["code"] == "remote-log-exchanged"]
    assert [row["remote_log_segment_id"] for row in exchanged] == [other["remote_log_segment_id"]]
    assert one["remote_log_segment_id"] in exchanged[0]["message"]


def test_cached_indexes_that_are_not_the_tiers(tmp_path: Path) -> None:
    made = Tiered(tmp_path, "tier/h-custom-metadata")
    live = {
        row["remote_log_segment_id"]
        for row in rows("remote", "segments", made.brokers).of("remote_segment")
        if row["state"] == "COPY_SEGMENT_FINISHED"
    }
    cached = [
        path
        for path in sorted(made.brokers.glob("*/data/remote-log-index-cache/*.*index"))
        if path.name.partition("_")[2].partition(".")[0] in live and path.stat().st_size
    ]
    before = rows("remote", "audit", made.folder).codes()
    assert cached and "remote-index-cache-differs" not in before
    data = bytearray(cached[0].read_bytes())
    data[3] ^= 1
    cached[0].write_bytes(data)
    ran = rows("remote", "audit", made.folder)
    assert sorted(ran.codes()) == sorted([*before, "remote-index-cache-differs"])
    (row,) = (row for row in ran.of("finding") if row["code"] == "remote-index-cache-differs")
    assert row["file"].endswith(cached[0].name) and "from byte 3 on" in row["message"]


class Memory:
    """A store of bytes."""

    name = "memory"
    requests_in_flight = 1

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.held = objects

    def objects(self, say: Say) -> Iterator[StoredObject]:
        return (StoredObject(key, len(data)) for key, data in self.held.items())

    def open(self, key: str) -> Source:
        return InMemory(self.held[key], key)


def examined(offsets: int) -> ExaminedSegment:
    """A segment of 40 batches with an entry for each in its time index, and so many in its offset index."""
    log, index, times = b"", [], []
    for number in range(40):
        if number:
            index.append(OffsetIndexEntry(number, len(log)))
            times.append(TimeIndexEntry(1000 + number - 1, number - 1))
        log += write_batch([Record(number, 1000 + number, None, b"v" * 900)], partition_leader_epoch=0)
    times.append(TimeIndexEntry(1039, 39))
    held = {ObjectKind.LOG: log}
    held[ObjectKind.OFFSET_INDEX] = write_index(index[:offsets])
    held[ObjectKind.TIME_INDEX] = write_index(times)
    where = TopicIdPartition("LWgrMmVrT0a__7a4SasuPA", "orders", 0)
    id = "bCqX9U--S-6U8XUM9II25Q"
    segment = SegmentMetadata(
        where, id, 0, 39, 1, 1039, 5, ((0, 0),), len(log), None, SegmentState.COPY_SEGMENT_FINISHED
    )
    objects = SegmentObjects()
    for kind in held:
        name = ObjectName("orders", where.topic_id, 0, 0, id, kind, f".{kind}")
        objects.by_kind[kind] = (name, StoredObject(str(kind), len(held[kind])))
    store = Memory({str(kind): data for kind, data in held.items()})
    return examine(SegmentTask(segment, objects), store, LOCAL_TIERED_STORAGE)


def test_an_offset_index_that_ends_before_the_time_index_does() -> None:
    whole, cut = examined(39), examined(20)
    assert [one.code for one in whole.findings] == ["remote-object-missing"]  # epochs and snapshot
    assert [one.code for one in cut.findings] == ["remote-object-missing", "index-entries-missing"]
    assert whole.max_timestamp == 1039
