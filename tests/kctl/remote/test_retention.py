"""Which remote segments a leader's expiration task deletes: each rule at its edge."""

from __future__ import annotations

import pytest

from formats.messages.remote_log_metadata import (
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
)
from kctl.tier.metadata.remote_log_metadata_cache import MetadataCache
from kctl.tier.rules.retention import DeletionRule, LeaderLog, expire

TIP = TopicIdPartition("LWgrMmVrT0a__7a4SasuPA", "orders", 0)
NOW = 1_000


def cache_of(*segments: tuple[int, int, int, int]) -> MetadataCache:
    """Finished segments of 10 offsets and 100 bytes: first offset, newest time, epoch, the offset it begins at."""
    cache = MetadataCache()
    for start, newest, epoch, since in segments:
        id = f"{start}-{epoch}"
        epochs = ((epoch, max(start, since)),)
        cache.add(
            SegmentMetadata(
                TIP, id, start, start + 9, 1, newest, 0, epochs, 100, None, SegmentState.COPY_SEGMENT_STARTED
            )
        )
        cache.update(SegmentMetadataUpdate(TIP, id, 1, 0, None, SegmentState.COPY_SEGMENT_FINISHED))
    return cache


THREE = ((0, 100, 0, 0), (10, 200, 0, 0), (20, 300, 0, 0))


@pytest.mark.parametrize(
    ("limits", "deleted", "rule", "start"),
    [
        ({}, [], None, None),
        # below the log's start: whole segments only
        ({"log_start_offset": 9}, [], None, None),
        ({"log_start_offset": 10}, [0], DeletionRule.LOG_START_OFFSET, None),
        # by time: what is exactly as old goes
        ({"retention_ms": NOW - 99}, [], None, None),
        ({"retention_ms": NOW - 100}, [0], DeletionRule.RETENTION_TIME, 10),
        ({"retention_ms": NOW - 200}, [0, 10], DeletionRule.RETENTION_TIME, 20),
        ({"retention_ms": -1}, [], None, None),
        # by size: never below the limit
        ({"retention_bytes": 300}, [], None, None),
        ({"retention_bytes": 201}, [], None, None),
        ({"retention_bytes": 200}, [0], DeletionRule.RETENTION_SIZE, 10),
        ({"retention_bytes": 99}, [0, 10], DeletionRule.RETENTION_SIZE, 20),
        ({"retention_bytes": 300, "only_local_bytes": 100}, [0], DeletionRule.RETENTION_SIZE, 10),
    ],
)
def test_rules(
    limits: dict[str, int], deleted: list[int], rule: DeletionRule | None, start: int | None
) -> None:
    log = LeaderLog(**{"entries": ((0, 0),), "log_start_offset": 0, "log_end_offset": 40, **limits})  # type: ignore[arg-type]
    run = expire(cache_of(*THREE), log, NOW)
    assert [deletion.segment.start_offset for deletion in run.deletions] == deleted
    assert {deletion.rule for deletion in run.deletions} == ({rule} if rule else set())
    assert run.log_start_offset == start


def test_the_scan_ends_at_the_first_segment_that_stays() -> None:
    cache = cache_of((0, 900, 0, 0), (10, 100, 0, 0))
    log = LeaderLog(((0, 0),), 0, 40, retention_ms=500)
    assert expire(cache, log, NOW).deletions == []


@pytest.mark.parametrize(("earliest", "count"), [(0, 0), (1, 1)])
def test_segments_of_epochs_before_the_first_entry_go(earliest: int, count: int) -> None:
    log = LeaderLog(((earliest, 0), (2, 10)), 0, 40)
    deletions = expire(cache_of((0, 100, 0, 0), (10, 100, 2, 10)), log, NOW).deletions
    assert [deletion.rule for deletion in deletions] == [DeletionRule.UNREFERENCED_EPOCH] * count
