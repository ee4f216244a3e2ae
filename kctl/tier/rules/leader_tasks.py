"""What a leader does next with its tier by the rules of 3.9: copy, expire, delete local segments.

Only local segments that are copied or below the log start are deleted (UnifiedLog.scala @ 3.9.0-rc3), oldest first,
until one must stay. A limit that the topic does not set is the broker's, and unknown here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formats.values import Struct
from kctl.log.folder import LogSegment
from kctl.model import Row
from kctl.rows.remote import PLAN_PARTITION, PLAN_STEP
from kctl.scan.options import Level
from kctl.tier.audit.metadata_checks import effective_log_start, leader_log, limit
from kctl.tier.rules.copy_task import CopyPlan, copy_plan
from kctl.tier.rules.local_logs import LocalLog, totals_of
from kctl.tier.rules.partition_facts import TieredPartition
from kctl.tier.rules.retention import DeletionRule, Expiration, expire

AS_RETENTION = -2  # local.retention.*: the same as retention.*
REASONS = {
    DeletionRule.LOG_START_OFFSET: "it ends before the log start offset",
    DeletionRule.RETENTION_TIME: "its newest record is older than retention.ms",
    DeletionRule.RETENTION_SIZE: "the log is larger than retention.bytes",
    DeletionRule.UNREFERENCED_EPOCH: "all its epochs are older than the leader's first",
}


class LocalDeletion(Struct, frozen=True):
    """A local segment that may be deleted, and why."""

    base_offset: int
    next_offset: int
    size_in_bytes: int
    reason: str


def copies(partition: TieredPartition, log: LocalLog, start: int) -> CopyPlan:
    """What the leader of this log copies next; nothing if the topic's copying is disabled."""
    bases = [segment.base_offset for segment in log.segments]
    stable = 0 if partition.config.get("remote.log.copy.disable") == "true" else log.last_stable_offset
    return copy_plan(
        log.epochs, log.log_end_offset, partition.tier.cache.highest_offset, bases, stable, start
    )


def local_limit(config: Mapping[str, str], what: str) -> int | None:
    """The topic's local limit (`ms` or `bytes`), else its general one; None if the evidence has neither."""
    own = limit(config, f"local.retention.{what}")
    return limit(config, f"retention.{what}") if own in (None, AS_RETENTION) else own


def local_deletions(
    log: LocalLog, highest_copied: int, start: int, config: Mapping[str, str], now: int
) -> Iterator[LocalDeletion]:
    """Local segments that the leader's retention deletes, oldest first."""
    ms, size_limit = local_limit(config, "ms"), local_limit(config, "bytes")
    sizes = [segment.log.size_in_bytes if segment.log else 0 for segment in log.segments]
    excess = sum(sizes) - size_limit if size_limit is not None and size_limit >= 0 else 0
    for segment, following, size in zip(log.segments, log.segments[1:], sizes, strict=False):
        end = following.base_offset
        reason = None
        if end <= start:
            reason = "it ends before the log start offset"
        elif end - 1 > highest_copied:
            return
        elif ms is not None and ms >= 0 and now - newest_timestamp(segment) > ms:
            reason = "its newest record is older than local.retention.ms, and it is copied"
        elif excess - size >= 0 and size_limit is not None and size_limit >= 0:
            reason = "the local log is larger than local.retention.bytes, and it is copied"
        if reason is None:
            return
        excess -= size
        yield LocalDeletion(segment.base_offset, end, size, reason)


def newest_timestamp(segment: LogSegment) -> int:
    """The newest timestamp in a local segment; -1 without one."""
    totals = totals_of(segment, Level.HEADER)
    return -1 if totals is None else totals.max_timestamp


def plan_rows(partition: TieredPartition, now: int | None) -> Iterator[Row]:
    """A row about the partition, then a row for each step."""
    log = partition.local.leader if partition.local else None
    if log is None or partition.local is None:
        return
    tier, where, config = partition.tier, partition.tier.where, partition.config
    at = partition.newest if now is None else now
    start = effective_log_start(tier, log)
    plan = copies(partition, log, start)
    run = expire(tier.cache, leader_log(tier, log, start, config), at)
    yield PLAN_PARTITION(
        topic=where.topic,
        topic_id=where.topic_id,
        partition=where.partition,
        broker_id=log.broker_id,
        how=partition.local.how,
        log_start_offset=start,
        local_log_start_offset=max(start, log.first_base_offset),
        log_end_offset=log.log_end_offset,
        highest_copied_offset=plan.highest_copied.offset,
        next_copy_offset=plan.from_offset,
        log_start_offset_after=run.log_start_offset,
        retention_ms=limit(config, "retention.ms"),
        retention_bytes=limit(config, "retention.bytes"),
        local_retention_ms=local_limit(config, "ms"),
        local_retention_bytes=local_limit(config, "bytes"),
    )
    yield from _steps(partition, log, plan, run, max(start, run.log_start_offset or 0), at)


def _steps(
    partition: TieredPartition, log: LocalLog, plan: CopyPlan, run: Expiration, start: int, now: int
) -> Iterator[Row]:
    where = partition.tier.where
    sizes = {segment.base_offset: segment.log.size_in_bytes for segment in log.segments if segment.log}
    same = {"topic": where.topic, "partition": where.partition, "broker_id": log.broker_id}
    for copy in plan.copies:
        yield PLAN_STEP(
            **same,
            action="copy",
            base_offset=copy.start_offset,
            last_offset=copy.end_offset,
            size_in_bytes=sizes.get(copy.start_offset),
            segment_leader_epochs=[list(entry) for entry in copy.segment_leader_epochs],
            reason=f"it is rolled, ends below the last stable offset {log.last_stable_offset} and holds offsets"
            f" above {plan.highest_copied.offset}",
        )
    for segment, rule in run.deletions:
        yield PLAN_STEP(
            **same,
            action="delete_remote",
            base_offset=segment.start_offset,
            last_offset=segment.end_offset,
            size_in_bytes=segment.size_in_bytes,
            remote_log_segment_id=segment.remote_log_segment_id,
            segment_leader_epochs=[list(entry) for entry in segment.segment_leader_epochs],
            reason=REASONS[rule],
        )
    for deletion in local_deletions(log, plan.highest_copied.offset, start, partition.config, now):
        yield PLAN_STEP(
            **same,
            action="delete_local",
            base_offset=deletion.base_offset,
            last_offset=deletion.next_offset - 1,
            size_in_bytes=deletion.size_in_bytes,
            reason=deletion.reason,
        )
