"""A partition's metadata compared with its local log: what is unfinished, unreachable or missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from formats.messages.remote_log_metadata import SegmentMetadata
from formats.values import Struct, replace
from formats.words import counted
from kctl.findings import Finding, Place
from kctl.findings import remote as codes
from kctl.replication.epochs import Entries
from kctl.tier.metadata.partition_tier import PartitionTier, unserved
from kctl.tier.metadata.remote_log_metadata_cache import DELETED, DELETING, FINISHED, STARTED, epoch_end
from kctl.tier.metadata.remote_segments import RemoteSegment
from kctl.tier.rules.copy_task import highest_copied_offset, log_start_offset_on_leader
from kctl.tier.rules.lineage import outside_lineage
from kctl.tier.rules.local_logs import LocalLog, LocalPartition
from kctl.tier.rules.retention import DeletionRule, LeaderLog, expire
from kctl.times import utc_text

# Copies and deletions are retried every few seconds; older ones were given up.
GIVEN_UP_MS = 10 * 60 * 1000


class TierExtent(Struct, frozen=True):
    """The offsets of a partition, local and remote, that findings and pictures are based on."""

    log_start_offset: int
    local_log_start_offset: int
    log_end_offset: int
    gaps: tuple[tuple[int, int], ...]
    outside: frozenset[str]  # ids of segments outside the lineage
    broker_id: int
    leader_epochs: Entries


def place_of(segment: SegmentMetadata, **more: object) -> Place:
    """The place of findings about a segment."""
    where = segment.topic_id_partition
    return Place(
        topic=where.topic,
        partition=where.partition,
        remote_log_segment_id=segment.remote_log_segment_id,
        base_offset=segment.start_offset,
        last_offset=segment.end_offset,
        size_in_bytes=segment.size_in_bytes,
        **more,  # type: ignore[arg-type]
    )


def unfinished(tier: PartitionTier, now: int, objects: dict[str, int]) -> Iterator[Finding]:
    """Findings for copies and deletions that did not finish. `objects`: bytes of each segment's objects, if known."""
    for remote_segment in tier.live:
        segment = remote_segment.metadata
        if segment.state not in (STARTED, DELETING):
            continue
        remaining, size = "its objects were not looked for", objects.get(segment.remote_log_segment_id)
        if size is not None:
            remaining = (
                f"{counted(size, 'byte')} of it {'lies' if size == 1 else 'lie'} in the tier"
                if size
                else "nothing of it is in the tier"
            )
        is_old = now - segment.event_timestamp >= GIVEN_UP_MS or given_up(tier, remote_segment)
        details: dict[str, Any] = {"when": utc_text(segment.event_timestamp), "left": remaining}
        place = place_of(segment, broker_id=segment.broker_id)
        if segment.state is DELETING:
            yield (codes.DELETION_INTERRUPTED if is_old else codes.DELETION_UNFINISHED).at(place, **details)
            continue
        again = _retried(tier, remote_segment)
        retried = codes.COPIED_AGAIN if again else ""
        type_ = codes.COPY_FAILED if is_old or again else codes.COPY_UNFINISHED
        yield type_.at(replace(place, size_in_bytes=size), retried=retried, **details)


def given_up(tier: PartitionTier, unfinished: RemoteSegment) -> bool:
    """Whether the leader has gone on to another segment: it copies one at a time, and deletes one at a time.

    Copies and deletions run in parallel (3.9), and a topic's deletion marks all of its segments first.
    """
    others = (segment for segment in tier.segments if segment is not unfinished)
    if unfinished.metadata.state is STARTED:
        return any(
            max(other.first_offset, other.finished_offset) > unfinished.first_offset for other in others
        )
    since = unfinished.deleting_offset
    return any(
        other.deleting_offset > since
        if other.metadata.state is DELETED
        else max(other.first_offset, other.finished_offset) > since
        for other in others
    )


def _retried(tier: PartitionTier, failed: RemoteSegment) -> bool:
    start, end = failed.metadata.start_offset, failed.metadata.end_offset
    return any(
        segment.first_offset > failed.first_offset
        and segment.metadata.start_offset <= end
        and segment.metadata.end_offset >= start
        for segment in tier.segments
    )


def effective_log_start(tier: PartitionTier, log: LocalLog) -> int:
    """Where the log starts once this replica leads: the checkpoint's start, moved by the first remote segment."""
    remote = log_start_offset_on_leader(log.epochs, tier.cache, log.first_base_offset)
    # Up to 3.6 no checkpoint is written for a log that starts in the tier.
    return max(log.checkpointed_log_start or 0, min(remote, log.first_base_offset))


def against_local(
    tier: PartitionTier, local: LocalPartition, config: Mapping[str, str], now: int
) -> tuple[TierExtent | None, list[Finding]]:
    """The partition's offsets by the leader's log, and what is wrong with the tier according to it."""
    log = local.leader
    if log is None:
        return None, []
    findings: list[Finding] = []
    where = Place(topic=tier.where.topic, partition=tier.where.partition, broker_id=log.broker_id)
    if local.leader_is_absent:
        findings.append(codes.LEADER_ABSENT.at(where, leader=local.named_leader, broker=log.broker_id))
    start = effective_log_start(tier, log)
    outside = _outside(tier, log, is_sure=not local.leader_is_absent, findings=findings)
    gaps = _gaps(tier, log, start, where, findings) if tier.live else ()
    _log_start(tier, log, start, where, findings)
    _hidden(tier, log, outside, start, findings)
    findings += _expiring(tier, log, start, config, now)
    extent = TierExtent(
        start,
        max(start, log.first_base_offset),
        log.log_end_offset,
        gaps,
        frozenset(outside),
        log.broker_id,
        log.epochs,
    )
    return extent, findings


def _outside(tier: PartitionTier, log: LocalLog, is_sure: bool, findings: list[Finding]) -> dict[str, str]:
    outside: dict[str, str] = {}
    first = log.epochs[0][0] if log.epochs else 0
    for remote_segment in tier.live:
        segment = remote_segment.metadata
        if segment.state is not FINISHED or not log.epochs:
            continue
        if segment.segment_leader_epochs[-1][0] < first:
            findings.append(codes.UNREFERENCED.at(place_of(segment), size=f"{segment.size_in_bytes:,}"))
            continue
        why = outside_lineage(segment, log.epochs, log.log_end_offset)
        ahead = segment.segment_leader_epochs[-1][0] >= log.epochs[-1][0]
        if why is None or (ahead and not is_sure):
            continue
        outside[segment.remote_log_segment_id] = why
        size = f"{segment.size_in_bytes:,}"
        findings.append(codes.OUTSIDE_LINEAGE.at(place_of(segment), why=why, size=size, goes=""))
    return outside


def _gaps(
    tier: PartitionTier, log: LocalLog, start: int, where: Place, findings: list[Finding]
) -> tuple[tuple[int, int], ...]:
    from formats.values import replace

    local_start = log.first_base_offset
    highest = highest_copied_offset(log.epochs, log.log_end_offset, tier.cache.highest_offset).offset
    gaps = []
    for first, after, epoch in unserved(tier.cache, log.epochs, start, local_start):
        gaps.append((first, after))
        place = replace(where, base_offset=first, last_offset=after - 1)
        details: dict[str, Any] = {"from_offset": first, "to_offset": after}
        if first > highest:
            findings.append(
                codes.LOCAL_DELETED.at(place, local_start=local_start, highest=highest, **details)
            )
        else:
            findings.append(codes.GAP.at(place, epoch="no known" if epoch is None else epoch, **details))
    return tuple(gaps)


def _log_start(tier: PartitionTier, log: LocalLog, start: int, where: Place, findings: list[Finding]) -> None:
    from formats.values import replace

    written = log.checkpointed_log_start
    if written is None or written >= start or not tier.segments:
        return
    # Offsets in between are accounted for if segments that held them were deleted.
    reached = written
    for remote_segment in sorted(tier.segments, key=lambda segment: segment.metadata.start_offset):
        segment = remote_segment.metadata
        if segment.state in (DELETED, DELETING) and segment.start_offset <= reached:
            reached = max(reached, segment.end_offset + 1)
    if reached >= start:
        findings.append(codes.LOG_START_STALE.at(where, written=written, remote=start))
    else:
        place = replace(where, base_offset=reached, last_offset=start - 1)
        epoch = next((e for e, first in reversed(log.epochs) if first <= reached), None)
        known = "no known" if epoch is None else epoch
        findings.append(codes.GAP.at(place, from_offset=reached, to_offset=start, epoch=known))


def _hidden(
    tier: PartitionTier, log: LocalLog, outside: dict[str, str], start: int, findings: list[Finding]
) -> None:
    """Find finished segments that lookups do not reach, wholly or in part, and those that only overlap."""
    displaced = {segment.remote_log_segment_id for segment in tier.cache.displaced()}
    bounds = {epoch: following for (epoch, _), (_, following) in pairwise(log.epochs)}
    starts = dict(log.epochs)
    for remote_segment in tier.live:
        segment = remote_segment.metadata
        segment_id = segment.remote_log_segment_id
        if segment.state is not FINISHED or segment_id in outside:
            continue
        overlapped: list[tuple[int, int]] = []
        unserved_ranges: list[tuple[int, int]] = []
        for (epoch, first), after in zip(
            segment.segment_leader_epochs,
            [following for _, following in segment.segment_leader_epochs[1:]] + [segment.end_offset + 1],
            strict=True,
        ):
            if epoch not in starts:
                continue
            low = max(first, starts[epoch], start)
            high = min(after, bounds.get(epoch, after))
            _serving(tier, segment_id, epoch, low, high, overlapped, unserved_ranges)
        invisible = ", and retention does not see it" if segment_id in displaced else ""
        if unserved_ranges or invisible:
            ranges = unserved_ranges or [(segment.start_offset, segment.end_offset + 1)]
            details: dict[str, Any] = {"from_offset": ranges[0][0], "to_offset": ranges[-1][1]}
            details["invisible"] = invisible
            findings.append(codes.SEGMENT_HIDDEN.at(place_of(segment), **details))
        elif overlapped:
            details = {"from_offset": overlapped[0][0], "to_offset": overlapped[-1][1]}
            findings.append(codes.SEGMENTS_OVERLAP.at(place_of(segment), **details))


def _serving(
    tier: PartitionTier,
    segment_id: str,
    epoch: int,
    low: int,
    high: int,
    overlapped: list[tuple[int, int]],
    unserved_ranges: list[tuple[int, int]],
) -> None:
    """Collect the ranges of [low, high) of an epoch that another segment serves and those that none serves."""
    state = tier.cache.epochs.get(epoch)
    if low >= high:
        return
    cuts = sorted({low, *(start for start in (state.starts if state else ()) if low < start < high)})
    for first, after in zip(cuts, [*cuts[1:], high], strict=True):
        serving = tier.cache.segment_for(epoch, first)
        if serving is None:
            unserved_ranges.append((first, after))
            continue
        if serving.remote_log_segment_id != segment_id:
            overlapped.append((first, after))
        last = tier.cache.segment_for(epoch, after - 1)
        if last is None:
            unserved_ranges.append((epoch_end(serving, epoch) + 1, after))


def limit(config: Mapping[str, str], name: str) -> int | None:
    """A numeric setting of the topic; None if the evidence does not have it."""
    text = config.get(name, "")
    return int(text) if text.lstrip("-").isdecimal() else None


def leader_log(tier: PartitionTier, log: LocalLog, start: int, config: Mapping[str, str]) -> LeaderLog:
    """The leader's log as retention sees it."""
    highest = highest_copied_offset(log.epochs, log.log_end_offset, tier.cache.highest_offset).offset
    local = sum(s.log.size_in_bytes for s in log.segments if s.log and s.base_offset > highest)
    return LeaderLog(
        log.epochs,
        start,
        log.log_end_offset,
        local,
        limit(config, "retention.ms"),
        limit(config, "retention.bytes"),
    )


def _expiring(
    tier: PartitionTier, log: LocalLog, start: int, config: Mapping[str, str], now: int
) -> Iterator[Finding]:
    run = expire(tier.cache, leader_log(tier, log, start, config), now)
    for segment, rule in run.deletions:
        if segment.state is not FINISHED or rule is DeletionRule.UNREFERENCED_EPOCH:
            continue
        size = f"{segment.size_in_bytes:,}"
        if rule is DeletionRule.LOG_START_OFFSET:
            yield codes.LOG_START_BEHIND.at(place_of(segment), start=start, size=size)
            continue
        retention = limit(config, "retention.ms") or 0
        since = segment.event_timestamp
        if rule is DeletionRule.RETENTION_TIME:
            since = max(since, segment.max_timestamp + retention)
        name = "retention.ms" if rule is DeletionRule.RETENTION_TIME else "retention.bytes"
        if now - since >= GIVEN_UP_MS:
            minutes = counted((now - since) // 60_000, "minute")
            yield codes.RETENTION_OVERDUE.at(place_of(segment), why=name, overdue=minutes, size=size)
        else:
            yield codes.RETENTION_DUE.at(place_of(segment), why=name, size=size)
