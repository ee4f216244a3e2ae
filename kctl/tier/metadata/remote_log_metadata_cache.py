"""A broker's cache of a partition's remote segments, and its answers.

Per leader epoch: start offset (of that epoch in the segment) -> segment, finished copies only; segments listed
but not readable ("unreferenced"); and the highest offset ever finished, which is never lowered. A segment that
another one of the same start displaced without covering it is in none of these, and retention never sees it again.

The two state machines, a segment's life and a partition's deletion: any state may repeat. The cache drops an illegal
step (3.7 and later; up to 3.6 it throws); a partition's deletion is stored without any check.

Source: storage/.../metadata/storage/RemoteLogMetadataCache.java, RemoteLogLeaderEpochState.java @ 3.5.2, 3.9.0-rc3;
storage/api/.../RemoteLogSegmentState.java, RemotePartitionDeleteState.java @ 3.0.2, 3.9.0-rc3
"""

from __future__ import annotations

import enum
from bisect import bisect_right, insort
from collections.abc import Iterable

from formats.messages.remote_log_metadata import (
    PartitionDeleteState,
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
)
from formats.values import Struct, field

STARTED, FINISHED, DELETING, DELETED = SegmentState
MARKED, PARTITION_STARTED, PARTITION_FINISHED = PartitionDeleteState
# State -> the states it may follow; None is "nothing yet".
SEGMENT_TRANSITIONS: dict[SegmentState, frozenset[SegmentState | None]] = {
    STARTED: frozenset({None, STARTED}),
    FINISHED: frozenset({STARTED, FINISHED}),
    DELETING: frozenset({STARTED, FINISHED, DELETING}),
    DELETED: frozenset({DELETING, DELETED}),
}
PARTITION_DELETE_TRANSITIONS: dict[PartitionDeleteState, frozenset[PartitionDeleteState | None]] = {
    MARKED: frozenset({None, MARKED}),
    PARTITION_STARTED: frozenset({MARKED, PARTITION_STARTED}),
    PARTITION_FINISHED: frozenset({PARTITION_STARTED, PARTITION_FINISHED}),
}


class Applied(enum.StrEnum):
    """The result of applying an event."""

    OK = "ok"
    DROPPED = "dropped"  # an illegal step
    UNKNOWN_SEGMENT = "RemoteResourceNotFoundException"
    NOT_ALLOWED = "IllegalArgumentException"  # a first record with a later state, an update back to the first


def may_follow(before: SegmentState | None, after: SegmentState) -> bool:
    """Whether a segment may change from one state to the other."""
    return before in SEGMENT_TRANSITIONS[after]


def deletion_may_follow(before: PartitionDeleteState | None, after: PartitionDeleteState) -> bool:
    """Whether a partition's deletion may change from one state to the other."""
    return before in PARTITION_DELETE_TRANSITIONS[after]


class Overwrite(enum.StrEnum):
    """Which older copies a finished copy removes from the lookup."""

    SAME_START_ONLY = "same_start_only"  # up to 3.5
    COVERED = "covered"  # 3.6 and later (KAFKA-15168)


class EpochState(Struct):
    """The segments of one leader epoch."""

    starts: list[int] = field(default_factory=list)  # ascending keys of by_start
    by_start: dict[int, str] = field(default_factory=dict)
    unreferenced: set[str] = field(default_factory=set)
    highest: int | None = None

    def _remove(self, start: int) -> str:
        self.starts.remove(start)
        return self.by_start.pop(start)

    def finished(self, start: int, end: int, segment_id: str, overwrite: Overwrite) -> None:
        """A copy finished that holds [start, end] of this epoch."""
        if overwrite is Overwrite.COVERED:
            while self.starts and self.starts[-1] >= start and (self.highest is None or self.highest <= end):
                self.unreferenced.add(self._remove(self.starts[-1]))
        elif self.by_start.get(start, segment_id) != segment_id:
            self.unreferenced.add(self.by_start[start])
        if start not in self.by_start:
            insort(self.starts, start)
        self.by_start[start] = segment_id
        self.unreferenced.discard(segment_id)
        self.highest = end if self.highest is None else max(self.highest, end)

    def deletion_started(self, start: int, segment_id: str) -> None:
        """The segment can no longer be read, but is still listed."""
        if self.by_start.get(start) == segment_id:
            self._remove(start)
        self.unreferenced.add(segment_id)


def epoch_end(segment: SegmentMetadata, epoch: int) -> int:
    """The last offset of an epoch in a segment."""
    following = [start for later, start in segment.segment_leader_epochs if later > epoch]
    return following[0] - 1 if following else segment.end_offset


class MetadataCache:
    """One partition's remote segments; records are added in the order of their offsets."""

    def __init__(self, overwrite: Overwrite = Overwrite.COVERED) -> None:
        self.overwrite = overwrite
        self.segments: dict[str, SegmentMetadata] = {}
        self.epochs: dict[int, EpochState] = {}

    def add(self, record: SegmentMetadata) -> Applied:
        """A copy started."""
        if record.state != STARTED:
            return Applied.NOT_ALLOWED
        before = self.segments.get(record.remote_log_segment_id)
        if before is not None and not may_follow(before.state, record.state):
            return Applied.DROPPED
        self.segments[record.remote_log_segment_id] = record
        for epoch, _ in record.segment_leader_epochs:
            self.epochs.setdefault(epoch, EpochState()).unreferenced.add(record.remote_log_segment_id)
        return Applied.OK

    def update(self, record: SegmentMetadataUpdate) -> Applied:
        """A segment changed its state; broker, time and custom metadata replace the earlier ones."""
        if record.state == STARTED:
            return Applied.NOT_ALLOWED
        before = self.segments.get(record.remote_log_segment_id)
        if before is None:
            return Applied.UNKNOWN_SEGMENT
        if not may_follow(before.state, record.state):
            return Applied.DROPPED
        after = before._replace(
            broker_id=record.broker_id,
            event_timestamp=record.event_timestamp,
            custom_metadata=record.custom_metadata,
            state=record.state,
        )
        self.segments[record.remote_log_segment_id] = after
        self._file(after)
        return Applied.OK

    def _file(self, segment: SegmentMetadata) -> None:
        segment_id = segment.remote_log_segment_id
        for epoch, start in segment.segment_leader_epochs:
            state = self.epochs.setdefault(epoch, EpochState())
            if segment.state == FINISHED:
                state.finished(start, epoch_end(segment, epoch), segment_id, self.overwrite)
            elif segment.state == DELETING:
                state.deletion_started(start, segment_id)
            else:
                state.unreferenced.discard(segment_id)
        if segment.state == DELETED:
            del self.segments[segment_id]

    # --- what it answers ------------------------------------------------------------------------------

    def segment_for(self, epoch: int, offset: int) -> SegmentMetadata | None:
        """The readable segment with this offset of this epoch. Like Kafka it tries only the nearest start."""
        state = self.epochs.get(epoch)
        index = bisect_right(state.starts, offset) if state else 0
        if not state or not index:
            return None
        segment = self.segments[state.by_start[state.starts[index - 1]]]
        return segment if offset <= epoch_end(segment, epoch) else None

    def highest_offset(self, epoch: int) -> int | None:
        """The highest offset of an epoch that was ever copied, even if its segment is gone."""
        state = self.epochs.get(epoch)
        return state.highest if state else None

    def listed(self, epoch: int) -> list[SegmentMetadata]:
        """The segments of an epoch that a broker lists, by start offset; displaced ones are missing."""
        state = self.epochs.get(epoch)
        if state is None:
            return []
        ids = [*state.by_start.values(), *sorted(state.unreferenced - set(state.by_start.values()))]
        # Of equal starts the readable one comes first, as in brokers.
        return sorted(
            (self.segments[segment_id] for segment_id in ids if segment_id in self.segments),
            key=lambda s: s.start_offset,
        )

    def all_listed(self) -> list[SegmentMetadata]:
        """Every segment whose deletion has not finished, by start offset."""
        return sorted(self.segments.values(), key=lambda s: (s.start_offset, s.remote_log_segment_id))

    def size_of_epoch(self, epoch: int) -> int:
        """Bytes of the segments listed for an epoch; a segment of two epochs counts whole in both."""
        return sum(segment.size_in_bytes for segment in self.listed(epoch))

    def displaced(self) -> Iterable[SegmentMetadata]:
        """Segments that no epoch lists, so that retention never removes them."""
        listed_ids = {listed.remote_log_segment_id for epoch in self.epochs for listed in self.listed(epoch)}
        return [segment for segment in self.all_listed() if segment.remote_log_segment_id not in listed_ids]
