"""Lost records that a tier still holds: remote segments copied before the election, of the epochs that were cut off.

A copy below the last stable offset survives every truncation: brokers no longer read it, retention leaves it alone
until all its epochs are old.

Source: core/src/main/java/kafka/log/remote/RemoteLogManager.java @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from formats.remote_log_metadata import SegmentMetadata, SegmentState
from kctl.evidence.model import Evidence
from kctl.model import TopicPartition
from kctl.replica.loss import Loss

Segments = Mapping[TopicPartition, Sequence[SegmentMetadata]]
METADATA_TOPIC = "__remote_log_metadata"


def remote_segments(evidence: Evidence, wanted: Container[TopicPartition]) -> Segments:
    """The finished copies of these partitions by start offset, as the metadata in the evidence say."""
    if not any(replica.topic == METADATA_TOPIC for replica in evidence.replicas):
        return {}
    from kctl.remote.listing import folded
    from kctl.remote.metadata_log import find_metadata

    found: dict[TopicPartition, list[SegmentMetadata]] = {}
    log = find_metadata(evidence)
    for one in folded(log.chunks(), lambda finding: None).segments():
        where = one.metadata.topic_id_partition
        partition = TopicPartition(where.topic, where.partition)
        if one.metadata.state is SegmentState.COPY_SEGMENT_FINISHED and partition in wanted:
            found.setdefault(partition, []).append(one.metadata)
    return found


def held_in_tier(loss: Loss, segments: Segments) -> Iterator[tuple[str, int, int]]:
    """Remote segments with records of a loss: the id, and the offsets [from, to) of the epochs that were cut off."""
    if loss.to_offset is None:
        return
    topic_ids = {part.held.copy.replica.topic_id for part in loss.parts} - {None}
    for segment in segments.get(loss.partition, ()):
        if topic_ids and segment.topic_id_partition.topic_id not in topic_ids:
            continue
        held = [
            (max(first, loss.from_offset), min(after, loss.to_offset))
            for epoch, first, after in _epochs(segment)
            if first < loss.to_offset and after > loss.from_offset and _was_cut(loss, epoch, first)
        ]
        if held:
            yield segment.remote_log_segment_id, held[0][0], held[-1][1]


def _epochs(segment: SegmentMetadata) -> Iterator[tuple[int, int, int]]:
    """The epochs of a segment with their offsets [first, after)."""
    starts = [start for _, start in segment.segment_leader_epochs]
    ends = [*starts[1:], segment.end_offset + 1]
    for (epoch, start), end in zip(segment.segment_leader_epochs, ends, strict=True):
        yield epoch, start, end


def _was_cut(loss: Loss, epoch: int, first: int) -> bool:
    """Whether the lost records at an offset were written in this epoch."""
    offset = max(first, loss.from_offset)
    told = {p.held.lineage.epoch_at(offset) for p in loss.parts if p.from_offset <= offset < p.to_offset}
    told.discard(None)
    return epoch in told if told else epoch == loss.drop.written_in_epoch
