"""How a leader with tiered storage answers a FETCH, and which remote segment serves an offset.

Source: core/.../server/ReplicaManager.scala, core/.../log/remote/RemoteLogManager.java @ 3.6.2, 3.9.0-rc3
"""

import enum
from typing import NamedTuple

from formats.messages.remote_log_metadata import SegmentMetadata
from kctl.replication.epochs import Entries, epoch_for_offset
from kctl.tier.metadata.remote_log_metadata_cache import MetadataCache


class Sender(enum.StrEnum):
    """Who fetches."""

    CONSUMER = "consumer"
    FOLLOWER = "follower"


class OffsetAnswer(enum.StrEnum):
    """How the leader serves a fetch offset."""

    READ_LOCAL = "read_local"
    REMOTE_READ = "remote_read"
    MOVED_TO_TIERED_STORAGE = "OFFSET_MOVED_TO_TIERED_STORAGE"
    OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"


class RemoteRead(NamedTuple):
    """The epoch of an offset in the leader's log, and the segment that serves it."""

    leader_epoch: int | None
    segment: SegmentMetadata | None

    @property
    def error(self) -> str | None:
        """The consumer's error if no segment serves the offset."""
        return None if self.segment else str(OffsetAnswer.OUT_OF_RANGE)


def offset_answer(
    fetch_offset: int,
    *,
    log_start_offset: int,
    local_log_start_offset: int,
    sender: Sender,
    log_end_offset: int | None = None,
) -> OffsetAnswer:
    """What a leader does with a fetch from this offset."""
    if fetch_offset < log_start_offset or (log_end_offset is not None and fetch_offset > log_end_offset):
        return OffsetAnswer.OUT_OF_RANGE
    if fetch_offset >= local_log_start_offset:
        return OffsetAnswer.READ_LOCAL
    return OffsetAnswer.REMOTE_READ if sender is Sender.CONSUMER else OffsetAnswer.MOVED_TO_TIERED_STORAGE


def remote_read(cache: MetadataCache, leader_epochs: Entries, offset: int) -> RemoteRead:
    """The remote segment for an offset, by its epoch on the leader, not by the offset alone."""
    epoch = epoch_for_offset(leader_epochs, offset)
    return RemoteRead(epoch, None if epoch is None else cache.segment_for(epoch, offset))


def offsets_hold(
    local_start: int, last_stable: int, local_end: int, remote_start: int, remote_end: int
) -> bool:
    """Whether a leader's offsets are ordered as KIP-405 requires (`remote_end` is the last copied one)."""
    return local_end >= last_stable >= local_start and last_stable >= remote_end >= remote_start
