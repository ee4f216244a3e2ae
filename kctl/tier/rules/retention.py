"""Which remote segments the leader's expiration task would delete, and why.

The log start offset moves first (KAFKA-15352); then each segment goes to DELETE_SEGMENT_STARTED, its data is
deleted, and DELETE_SEGMENT_FINISHED follows. The size rule never deletes below the limit, so that a segment larger
than the excess blocks it. Copies that only started have no rule of their own.

Source: RLMExpirationTask in core/.../log/remote/RemoteLogManager.java @ 3.8.0, 3.9.0-rc3
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from formats.messages.remote_log_metadata import SegmentMetadata, SegmentState
from formats.values import Struct, field
from kctl.replication.epochs import Entries
from kctl.tier.metadata.remote_log_metadata_cache import MetadataCache
from kctl.tier.rules.lineage import outside_lineage, without_empty_epochs

COUNTED = (SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED)


class DeletionRule(enum.StrEnum):
    """The rule that deletes a segment."""

    LOG_START_OFFSET = "log_start_offset"
    RETENTION_TIME = "retention_time"
    RETENTION_SIZE = "retention_size"
    UNREFERENCED_EPOCH = "leader_epoch_cache_truncation"


class RemoteDeletion(NamedTuple):
    """A segment to delete, and the rule."""

    segment: SegmentMetadata
    rule: DeletionRule


class LeaderLog(Struct, frozen=True):
    """The leader's log as retention sees it. A limit of None or -1 is "no limit"."""

    entries: Entries
    log_start_offset: int
    log_end_offset: int
    only_local_bytes: int = 0  # of segments above the highest offset in remote storage
    retention_ms: int | None = None
    retention_bytes: int | None = None


class Expiration(Struct):
    """The result of one run of the expiration task."""

    deletions: list[RemoteDeletion] = field(default_factory=list)
    log_start_offset: int | None = None  # moved to; None: stays
    breach: int = 0  # bytes above retention.bytes that stay

    def _delete(self, segment: SegmentMetadata, rule: DeletionRule) -> None:
        self.deletions.append(RemoteDeletion(segment, rule))
        if rule in (DeletionRule.RETENTION_TIME, DeletionRule.RETENTION_SIZE):
            self.log_start_offset = max(self.log_start_offset or 0, segment.end_offset + 1)


def expire(cache: MetadataCache, log: LeaderLog, now: int) -> Expiration:
    """What the expiration task would delete at `now` (milliseconds)."""
    run = Expiration()
    entries = without_empty_epochs(log.entries)
    if log.retention_bytes is not None and log.retention_bytes >= 0:
        run.breach = max(0, _size(cache, log, entries) + log.only_local_bytes - log.retention_bytes)
    chosen: set[str] = set()
    for segment in (segment for epoch, _ in entries for segment in cache.listed(epoch)):
        if segment.remote_log_segment_id in chosen:
            continue
        rule, looks_further = _judge(segment, log, entries, run, now)
        if rule:
            chosen.add(segment.remote_log_segment_id)
            run._delete(segment, rule)
        if not looks_further:
            break
    if log.entries:
        earliest = log.entries[0][0]
        for segment in cache.all_listed():
            if (
                segment.remote_log_segment_id not in chosen
                and segment.segment_leader_epochs[-1][0] < earliest
            ):
                run._delete(segment, DeletionRule.UNREFERENCED_EPOCH)
    return run


def _judge(
    segment: SegmentMetadata, log: LeaderLog, entries: Entries, run: Expiration, now: int
) -> tuple[DeletionRule | None, bool]:
    """The rule that deletes this segment (None: none), and whether the task looks at the next one."""
    if segment.segment_leader_epochs[-1][0] <= entries[0][0] and segment.end_offset < log.log_start_offset:
        return DeletionRule.LOG_START_OFFSET, True
    if outside_lineage(segment, log.entries, log.log_end_offset):
        return None, True
    if (
        log.retention_ms is not None
        and log.retention_ms >= 0
        and segment.max_timestamp <= now - log.retention_ms
    ):
        return DeletionRule.RETENTION_TIME, True
    if 0 < run.breach >= segment.size_in_bytes:
        run.breach -= segment.size_in_bytes
        return DeletionRule.RETENTION_SIZE, True
    return None, False


def _size(cache: MetadataCache, log: LeaderLog, entries: Entries) -> int:
    """Bytes of the remote segments that count for retention.bytes."""
    segments = (segment for epoch, _ in entries for segment in cache.listed(epoch))
    listed = {segment.remote_log_segment_id: segment for segment in segments}
    return sum(
        segment.size_in_bytes
        for segment in listed.values()
        if segment.state in COUNTED and outside_lineage(segment, log.entries, log.log_end_offset) is None
    )
