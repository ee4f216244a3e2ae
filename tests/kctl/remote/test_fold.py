"""The fold over columns against the broker's cache, one record at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.messages.remote_log_metadata import (
    PartitionDelete,
    PartitionDeleteState,
    RecordLayout,
    RemoteLogMetadata,
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
    write_remote_log_metadata,
)
from kctl.findings import Finding
from kctl.tier.metadata import remote_segments
from kctl.tier.metadata.fold import Fold, fold_findings, folded
from kctl.tier.metadata.log import chunk_of
from kctl.tier.metadata.partitioner import metadata_partition
from kctl.tier.metadata.remote_log_metadata_cache import MetadataCache
from kctl.tier.metadata.rows import SegmentTotals, segment_row, segment_rows
from kctl.tier.metadata.selection import MetadataAsOf
from tests.conftest import examples
from tests.kctl.remote.strategies import metadata_records

TIP = TopicIdPartition("LWgrMmVrT0a__7a4SasuPA", "orders", 0)
A, B, C = "bCqX9U--S-6U8XUM9II25Q", "oAtiIQ95REujbuzNd_lkLQ", "LWgrMmVrT0a__7a4SasuPQ"
STARTED, FINISHED, DELETING, DELETED = SegmentState


def add(
    id: str = A, start: int = 0, end: int = 9, custom: bytes | None = None, time: int = 1
) -> SegmentMetadata:
    return SegmentMetadata(TIP, id, start, end, 1, 5, time, ((0, start),), 100, custom, STARTED)


def update(
    state: SegmentState, id: str = A, custom: bytes | None = None, time: int = 2
) -> SegmentMetadataUpdate:
    return SegmentMetadataUpdate(TIP, id, 2, time, custom, state)


def fold_of(
    *records: RemoteLogMetadata | bytes | None,
    keep_deleted: bool = False,
    size: int = 100,
    as_of: MetadataAsOf | None = None,
) -> tuple[Fold, list[Finding]]:
    found: list[Finding] = []
    values = [
        one if isinstance(one, bytes) or one is None else write_remote_log_metadata(one) for one in records
    ]
    rows = list(enumerate(values))
    chunks = [chunk_of(0, rows[at : at + size]) for at in range(0, len(rows), size)]
    return folded(chunks, found.append, as_of or MetadataAsOf(), keep_deleted=keep_deleted), found


def codes(found: list[Finding]) -> list[str]:
    return [f"{one.code} {one.severity}" for one in found]


@pytest.mark.slow
@pytest.mark.parametrize("room", [1, 1 << 10])  # rows and bytes that are there before there is need for more
@settings(deadline=None, max_examples=examples(100))
@given(records=st.lists(metadata_records(), max_size=30), size=st.sampled_from([1, 2, 5, 30]))
def test_what_is_left_is_what_the_brokers_cache_holds(
    room: int, records: list[RemoteLogMetadata], size: int
) -> None:
    caches: dict[str, MetadataCache] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_segments, "SMALLEST", room)
        patch.setattr(remote_segments, "FEWEST_POOLED", room)
        fold, _ = fold_of(*records, size=size)
    # The cache is one a partition; ids are unique in truth, so here one cache for all stands for them.
    cache = caches.setdefault("", MetadataCache())
    for record in records:
        if isinstance(record, SegmentMetadata):
            cache.add(record)
        elif isinstance(record, SegmentMetadataUpdate):
            cache.update(record)
    found = {
        s.metadata.remote_log_segment_id: s.metadata._replace(layout=RecordLayout.WITH_CUSTOM_METADATA)
        for s in fold.segments()
    }
    held = {id: s._replace(layout=RecordLayout.WITH_CUSTOM_METADATA) for id, s in cache.segments.items()}
    assert found == held


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(100))
@given(records=st.lists(metadata_records(), max_size=30), size=st.sampled_from([1, 2, 5]))
def test_what_is_said_does_not_depend_on_where_chunks_end(
    records: list[RemoteLogMetadata], size: int
) -> None:
    (whole, said), (fold, found) = (fold_of(*records, keep_deleted=True, size=one) for one in (30, size))
    assert sorted(map(str, found)) == sorted(map(str, said))
    assert list(fold.segments()) == list(whole.segments())


def test_a_segments_life_and_the_offsets_of_its_steps() -> None:
    records = [add(custom=b"k"), update(FINISHED, custom=b"k2", time=3)]
    fold, found = fold_of(*records, update(DELETING, custom=b"k2", time=4))
    (segment,) = fold.segments()
    assert not found
    assert (segment.metadata.state, segment.metadata.custom_metadata) == (DELETING, b"k2")
    assert (segment.metadata.broker_id, segment.metadata.event_timestamp) == (2, 4)
    assert (segment.first_offset, segment.finished_offset, segment.deleting_offset) == (0, 1, 2)
    assert segment.last_offset == 2 and fold.newest == 4


def test_deleted_segments_are_forgotten_unless_they_are_asked_for() -> None:
    records = [add(), update(FINISHED), update(DELETING), update(DELETED)]
    assert not list(fold_of(*records)[0].segments())
    fold, found = fold_of(*records, update(DELETED), keep_deleted=True)
    (segment,) = fold.segments()
    assert segment.metadata.state is DELETED and not found


def test_steps_that_are_not_legal_are_findings_and_change_nothing() -> None:
    fold, found = fold_of(add(), update(DELETED), update(FINISHED), update(STARTED), add(), update(FINISHED))
    (segment,) = fold.segments()
    assert segment.metadata.state is FINISHED
    assert codes(found) == ["remote-metadata-state-illegal warning"] * 3
    assert (
        "sets state DELETE_SEGMENT_FINISHED while the segment is in COPY_SEGMENT_STARTED" in found[0].message
    )


@pytest.mark.parametrize("keep_deleted", [False, True])
def test_an_id_that_was_deleted_is_as_good_as_new(keep_deleted: bool) -> None:
    life = [add(), update(DELETING), update(DELETED)]
    for size in (1, 100):
        fold, found = fold_of(*life, add(time=9), size=size, keep_deleted=keep_deleted)
        (segment,) = fold.segments()
        assert not found and (segment.metadata.state, segment.metadata.event_timestamp) == (STARTED, 9)


def test_findings_come_in_the_order_of_the_log() -> None:
    ids = [B[:-2] + f"{number}Q" for number in range(10)]
    _, found = fold_of(*(update(FINISHED, id) for id in ids))
    assert [one.place.base_offset for one in found] == list(range(10))


def test_an_update_without_a_copy_is_a_finding() -> None:
    fold, found = fold_of(update(FINISHED), update(DELETED, B))
    assert not list(fold.segments())
    assert sorted(codes(found)) == [
        "remote-metadata-update-unknown info",
        "remote-metadata-update-unknown warning",
    ]


def test_a_copy_that_begins_with_a_later_state_is_not_one() -> None:
    fold, found = fold_of(add()._replace(state=FINISHED))
    assert not list(fold.segments()) and codes(found) == ["remote-metadata-update-unknown warning"]


def test_custom_metadata_that_a_deletion_wipes_is_a_finding() -> None:
    _, found = fold_of(add(), update(FINISHED, custom=b"key"), update(DELETING))
    assert codes(found) == ["remote-custom-metadata-wiped warning"]
    assert found[0].place.remote_log_segment_id == A
    assert not fold_of(add(), update(FINISHED, custom=b"key"), update(DELETING, custom=b"key"))[1]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_records_that_brokers_drop_wipe_no_custom_metadata(size: int) -> None:
    life = [add(custom=b"key"), update(FINISHED, custom=b"key"), update(DELETING, custom=b"key")]
    _, found = fold_of(*life, update(FINISHED), update(DELETED, custom=b"key"), size=size)
    assert codes(found) == ["remote-metadata-state-illegal warning"]
    _, found = fold_of(*life, update(DELETED, custom=b"key"), add(), update(DELETED), size=size)
    assert codes(found) == ["remote-metadata-state-illegal warning"]
    assert not fold_of(*life, update(DELETED, custom=b"key"), update(DELETED), size=100)[1]
    _, found = fold_of(*life, update(FINISHED), update(DELETED), size=size)
    assert sorted(codes(found)) == [
        "remote-custom-metadata-wiped warning",
        "remote-metadata-state-illegal warning",
    ]


def test_values_that_are_no_records_are_findings_and_the_rest_goes_on() -> None:
    fold, found = fold_of(add(), None, b"\1\4\0", b"", b"\1\0\1", update(FINISHED), b"\1\0\0\4foo")
    assert [s.metadata.state for s in fold.segments()] == [FINISHED]
    assert codes(found) == ["remote-metadata-record-bad error"] * 5
    assert [one.place.base_offset for one in found] == [1, 2, 3, 4, 6]


def test_layouts_of_two_versions_are_a_finding() -> None:
    old = add(B)._replace(layout=RecordLayout.BEFORE_CUSTOM_METADATA)
    fold, _ = fold_of(add(), old)
    assert "remote-metadata-layouts-mixed warning" in codes(list(fold_findings(fold)))
    assert not list(fold_findings(fold_of(add())[0]))


def test_partition_deletions_are_kept_by_their_last_state() -> None:
    deletions = [PartitionDelete(TIP, 1, 7, state) for state in PartitionDeleteState]
    fold, _ = fold_of(add(), *deletions)
    assert fold.deletions[TIP].state is PartitionDeleteState.DELETE_PARTITION_FINISHED


def test_as_of_a_time_and_as_of_an_offset() -> None:
    records = [add(time=10), update(FINISHED, time=20), update(DELETING, time=30)]
    for as_of, state in (
        (MetadataAsOf(time=10), STARTED),
        (MetadataAsOf(time=29), FINISHED),
        (MetadataAsOf(offset=1), FINISHED),
        (MetadataAsOf(offset=2), DELETING),
        (MetadataAsOf(offset=0, metadata_partition=0), STARTED),
        (MetadataAsOf(offset=0, metadata_partition=1), DELETING),
    ):
        (segment,) = fold_of(*records, as_of=as_of)[0].segments()
        assert segment.metadata.state is state, as_of
    assert not list(fold_of(*records, as_of=MetadataAsOf(time=9))[0].segments())


def test_records_in_the_wrong_metadata_partition_are_a_finding() -> None:
    def chunks(of: int) -> list[object]:
        out = []
        for number in range(40):
            where = TIP._replace(partition=number)
            record = add()._replace(topic_id_partition=where, remote_log_segment_id=A[:-3] + f"{number:02d}Q")
            right = metadata_partition(where.topic_id, number, 7)
            out.append(chunk_of((right + (number == of)) % 7, [(number, write_remote_log_metadata(record))]))
        return out

    assert not list(fold_findings(folded(chunks(-1), lambda f: None)))  # type: ignore[arg-type]
    (finding,) = fold_findings(folded(chunks(13), lambda f: None))  # type: ignore[arg-type]
    assert finding.code == "remote-metadata-wrong-partition"
    assert (finding.place.topic, finding.place.partition) == ("orders", 13)


def test_two_ids_of_one_name_are_told() -> None:
    other = add(B)._replace(topic_id_partition=TIP._replace(topic_id=B))
    assert codes(list(fold_findings(fold_of(add(), other)[0]))) == ["remote-topic-ids-differ info"]


def test_totals_by_topic_id_and_state() -> None:
    totals = SegmentTotals()
    fold, _ = fold_of(add(), add(B), update(FINISHED, B), add(C), update(DELETING, C))
    assert len(list(segment_rows(fold, totals))) == 3
    of_topic, of_all = totals.rows()
    assert of_topic["topic"] == "orders" and of_all["topic"] is None
    for row in (of_topic, of_all):
        assert (row["segments"], row["size_in_bytes"], row["partitions"]) == (3, 300, 1)
        assert (row["readable_segments"], row["unfinished_bytes"], row["deleting_segments"]) == (1, 100, 1)


def test_memory_is_small_and_does_not_grow_with_history() -> None:
    ids = np.random.default_rng(3).bytes(16 * 2000)
    records: list[RemoteLogMetadata] = []
    from formats.messages.schema import uuid_text

    for n in range(2000):
        id = uuid_text(ids[16 * n : 16 * n + 16])
        records += [add(id), update(FINISHED, id)]
        if n % 4:
            records += [update(DELETING, id), update(DELETED, id)]
    fold, _ = fold_of(*records, size=500)
    assert len(fold) == 500
    assert fold.slow == 0
    assert fold.nbytes / len(fold) < 300


@settings(deadline=None, max_examples=examples(60))
@given(records=st.lists(metadata_records(), max_size=40))
def test_rows_made_in_columns_are_those_of_single_segments(records: list[RemoteLogMetadata]) -> None:
    fold, _ = fold_of(*records, keep_deleted=True)
    totals = SegmentTotals()
    rows = list(segment_rows(fold, totals))
    single = [
        segment_row(one, fold.newest, fold.deletions.get(one.metadata.topic_id_partition))
        for one in fold.segments()
    ]
    assert rows == single
    assert [list(row) for row in rows] == [list(row) for row in single]
    *_, of_all = totals.rows()
    assert (of_all["segments"], of_all["size_in_bytes"]) == (
        len(rows),
        sum(row["size_in_bytes"] for row in rows),
    )
    some = [one for one in single if one["topic"] == "orders" and one["partition"] == 3]
    assert list(segment_rows(fold, SegmentTotals(), "orders", 3)) == some
