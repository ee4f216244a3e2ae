"""The tier of each partition by its metadata: its segments, and the cache that brokers build from them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from formats.messages.remote_log_metadata import (
    PartitionDelete,
    PartitionDeleteState,
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
)
from formats.values import Struct, field
from kctl.tier.metadata.fold import Fold
from kctl.tier.metadata.remote_log_metadata_cache import (
    DELETED,
    DELETING,
    FINISHED,
    STARTED,
    Applied,
    MetadataCache,
    epoch_end,
)
from kctl.tier.metadata.remote_segments import RemoteSegment


class PartitionTier(Struct, dict=True):
    """One partition's remote segments, including deleted ones, by start offset."""

    where: TopicIdPartition
    segments: list[RemoteSegment] = field(default_factory=list)
    deletion: PartitionDelete | None = None

    @cached_property
    def by_id(self) -> dict[str, RemoteSegment]:
        return {segment.metadata.remote_log_segment_id: segment for segment in self.segments}

    @property
    def live(self) -> list[RemoteSegment]:
        """Segments whose deletion has not finished."""
        return [segment for segment in self.segments if segment.metadata.state is not DELETED]

    @cached_property
    def cache(self) -> MetadataCache:
        """The cache of a broker of 3.6 or later, fed in the order of the records."""
        cache = MetadataCache()
        if self.deletion and self.deletion.state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            return cache
        steps: list[tuple[int, int, RemoteSegment]] = []
        for segment in self.segments:
            steps.append((segment.first_offset, STARTED, segment))
            if segment.finished_offset >= 0 or segment.metadata.state is FINISHED:
                steps.append((max(segment.finished_offset, segment.first_offset), FINISHED, segment))
            if segment.deleting_offset >= 0 or segment.metadata.state is DELETING:
                steps.append((max(segment.deleting_offset, segment.first_offset), DELETING, segment))
            if segment.metadata.state is DELETED:
                steps.append((segment.last_offset, DELETED, segment))
        for _, state, segment in sorted(steps, key=lambda step: step[:2]):
            # Brokers drop records that they do not allow, too.
            _apply(cache, segment.metadata, SegmentState(state))
        return cache


def _apply(cache: MetadataCache, segment: SegmentMetadata, state: SegmentState) -> Applied:
    if state is STARTED:
        return cache.add(segment._replace(state=STARTED))
    fields = {name: getattr(segment, name) for name in SegmentMetadataUpdate._fields}
    return cache.update(SegmentMetadataUpdate(**{**fields, "state": state}))


def partition_tiers(fold: Fold) -> dict[TopicIdPartition, PartitionTier]:
    """The tier of every partition in the metadata, by topic and number. The fold must keep deleted segments."""
    tiers: dict[TopicIdPartition, PartitionTier] = {}
    for segment in fold.segments():
        where = segment.metadata.topic_id_partition
        tiers.setdefault(where, PartitionTier(where)).segments.append(segment)
    for where, deletion in fold.deletions.items():
        tiers.setdefault(where, PartitionTier(where)).deletion = deletion
    return dict(sorted(tiers.items(), key=lambda item: (item[0].topic, item[0].partition, item[0].topic_id)))


def unserved(
    cache: MetadataCache, leader_epochs: tuple[tuple[int, int], ...], from_offset: int, to_offset: int
) -> Iterator[tuple[int, int, int | None]]:
    """Ranges [from, to) that no remote segment serves by the broker's lookup, and the epoch of each."""
    bounds = [start for _, start in leader_epochs if from_offset < start < to_offset]
    edges = [from_offset, *bounds, to_offset]
    for first, after in pairwise(edges):
        owners = [epoch for epoch, start in leader_epochs if start <= first]
        epoch = owners[-1] if owners else None
        offset = first
        while offset < after:
            segment = None if epoch is None else cache.segment_for(epoch, offset)
            if segment is not None and epoch is not None:
                offset = min(epoch_end(segment, epoch) + 1, _next_start(cache, epoch, offset) or after)
                continue
            following = (None if epoch is None else _next_start(cache, epoch, offset)) or after
            yield offset, min(following, after), epoch
            offset = min(following, after)


def _next_start(cache: MetadataCache, epoch: int, offset: int) -> int | None:
    """Where the lookup changes to another segment of the epoch; None: nowhere."""
    state = cache.epochs.get(epoch)
    if state is None:
        return None
    index = bisect_right(state.starts, offset)
    return state.starts[index] if index < len(state.starts) else None
