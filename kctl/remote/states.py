"""The two state machines of tiered storage: a segment's life, and a partition's deletion.

Any state may repeat. The cache drops an illegal step (3.7 and later; up to 3.6 it throws); a partition's
deletion is stored without any check.

Source: storage/api/.../RemoteLogSegmentState.java, RemotePartitionDeleteState.java @ 3.0.2, 3.9.0-rc3
"""

import enum

from formats.remote_log_metadata import PartitionDeleteState, SegmentState

# State -> the states it may follow; None is "nothing yet".
SEGMENT_TRANSITIONS: dict[SegmentState, frozenset[SegmentState | None]] = {
    SegmentState.COPY_SEGMENT_STARTED: frozenset({None, SegmentState.COPY_SEGMENT_STARTED}),
    SegmentState.COPY_SEGMENT_FINISHED: frozenset(
        {SegmentState.COPY_SEGMENT_STARTED, SegmentState.COPY_SEGMENT_FINISHED}
    ),
    SegmentState.DELETE_SEGMENT_STARTED: frozenset(
        {
            SegmentState.COPY_SEGMENT_STARTED,
            SegmentState.COPY_SEGMENT_FINISHED,
            SegmentState.DELETE_SEGMENT_STARTED,
        }
    ),
    SegmentState.DELETE_SEGMENT_FINISHED: frozenset(
        {SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED}
    ),
}
PARTITION_DELETE_TRANSITIONS: dict[PartitionDeleteState, frozenset[PartitionDeleteState | None]] = {
    PartitionDeleteState.DELETE_PARTITION_MARKED: frozenset(
        {None, PartitionDeleteState.DELETE_PARTITION_MARKED}
    ),
    PartitionDeleteState.DELETE_PARTITION_STARTED: frozenset(
        {PartitionDeleteState.DELETE_PARTITION_MARKED, PartitionDeleteState.DELETE_PARTITION_STARTED}
    ),
    PartitionDeleteState.DELETE_PARTITION_FINISHED: frozenset(
        {PartitionDeleteState.DELETE_PARTITION_STARTED, PartitionDeleteState.DELETE_PARTITION_FINISHED}
    ),
}


class Applied(enum.StrEnum):
    """What became of an event."""

    OK = "ok"
    DROPPED = "dropped"  # an illegal step
    UNKNOWN_SEGMENT = "RemoteResourceNotFoundException"
    NOT_ALLOWED = "IllegalArgumentException"  # a first record with a later state, an update back to the first


def may_follow(before: SegmentState | None, after: SegmentState) -> bool:
    """Whether a segment may go from one state to the other."""
    return before in SEGMENT_TRANSITIONS[after]


def deletion_may_follow(before: PartitionDeleteState | None, after: PartitionDeleteState) -> bool:
    """Whether a partition's deletion may go from one state to the other."""
    return before in PARTITION_DELETE_TRANSITIONS[after]
