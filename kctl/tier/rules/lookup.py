"""Which remote segment serves an offset by the broker's rules, or why none does."""

from __future__ import annotations

from formats.messages.remote_log_metadata import SegmentMetadata
from formats.tier.object_names import ObjectLayout, ObjectName
from kctl.model import Row
from kctl.replication.epochs import Entries, epoch_for_offset
from kctl.rows.remote import LOOKUP
from kctl.tier.audit.metadata_checks import effective_log_start
from kctl.tier.metadata.partition_tier import PartitionTier
from kctl.tier.metadata.remote_log_metadata_cache import FINISHED, epoch_end
from kctl.tier.rules.partition_facts import TieredPartition


def object_keys(segment: SegmentMetadata, layout: ObjectLayout, prefix: str = "") -> list[str]:
    """The keys of a segment's objects, including optional ones that may not exist."""
    where = segment.topic_id_partition
    name = ObjectName(
        where.topic,
        where.topic_id,
        where.partition,
        segment.start_offset,
        segment.remote_log_segment_id,
        None,
        "",
        prefix,
    )
    return [layout.format(name, kind) for kind in layout.suffixes.values()]


def lookup(partition: TieredPartition, offset: int, epoch: int | None, layout: ObjectLayout) -> Row:
    """The row that says what serves an offset. Without an epoch it is taken from the leader's history."""
    tier, log = partition.tier, partition.local.leader if partition.local else None
    entries: Entries = log.epochs if log else ()
    owner = epoch if epoch is not None else epoch_for_offset(entries, offset)
    if owner is None and not entries:
        owner = _only_epoch(tier, offset)
    segment = None if owner is None else tier.cache.segment_for(owner, offset)
    served, reason = "remote" if segment else "none", ""
    if segment is not None:
        reason = f"of epoch {owner}'s segments it has the greatest start at or below the offset"
    if log is not None and epoch is None:
        start = effective_log_start(tier, log)
        if offset < start:
            served, segment, reason = "none", None, f"the log starts at {start}"
        elif offset >= log.log_end_offset:
            served, segment, reason = "none", None, f"the log ends at {log.log_end_offset}"
        elif offset >= log.first_base_offset:
            served = "local"
            reason = f"the leader's local log (broker {log.broker_id}) begins at {log.first_base_offset}"
            reason += ", and the tier has it too" if segment else ""
    if not reason:
        reason = _why_none(tier, owner, offset)
    return LOOKUP(
        topic=tier.where.topic,
        topic_id=tier.where.topic_id,
        partition=tier.where.partition,
        offset=offset,
        leader_epoch=owner,
        served_from=served,
        remote_log_segment_id=segment.remote_log_segment_id if segment else None,
        start_offset=segment.start_offset if segment else None,
        end_offset=segment.end_offset if segment else None,
        size_in_bytes=segment.size_in_bytes if segment else None,
        objects=object_keys(segment, layout) if segment else [],
        reason=reason,
    )


def _only_epoch(tier: PartitionTier, offset: int) -> int | None:
    """Without a local log: the newest epoch in which a remote segment has the offset."""
    epochs = [epoch for epoch in tier.cache.epochs if tier.cache.segment_for(epoch, offset)]
    return max(epochs, default=None)


def _why_none(tier: PartitionTier, epoch: int | None, offset: int) -> str:
    if epoch is None:
        return (
            "no epoch is known for the offset: give one with --epoch, or add the leader's log to the evidence"
        )
    holding = [
        segment.metadata
        for segment in tier.segments
        if any(
            e == epoch and start <= offset <= epoch_end(segment.metadata, e)
            for e, start in segment.metadata.segment_leader_epochs
        )
    ]
    finished = [segment for segment in holding if segment.state is FINISHED]
    if finished:
        hidden = finished[0].remote_log_segment_id
        return (
            f"segment {hidden} holds it, but a copy of a nearer start, which ends before it, took its place"
        )
    if holding:
        newest = holding[-1]
        return f"segment {newest.remote_log_segment_id} holds it, and is in state {newest.state.name}"
    elsewhere = [
        segment.metadata
        for segment in tier.live
        if segment.metadata.start_offset <= offset <= segment.metadata.end_offset
    ]
    if elsewhere:
        epochs = sorted({e for segment in elsewhere for e, _ in segment.segment_leader_epochs})
        return f"no segment of epoch {epoch} holds it; segments of epochs {', '.join(map(str, epochs))} do"
    return f"no segment of epoch {epoch} holds it"
