"""How a follower builds its state if its next records are only in the tier: KIP-405's five scenarios.

The broker looks the segment up first and truncates then, so that a failing tier does not empty the follower. The
state is that of the segment with the offset before the leader's local start, in that offset's epoch.

Source: core/.../server/TierStateMachine.java @ 3.9.0-rc3, ReplicaFetcherTierStateMachine.java @ 3.5.2, 3.7.1
"""

from __future__ import annotations

from collections.abc import Callable

from formats.messages.remote_log_metadata import SegmentMetadata
from formats.values import Struct
from kctl.replication.epochs import (
    Entries,
    EpochEndOffset,
    end_offset_for,
    epoch_for_offset,
    truncate_from_end,
)
from kctl.tier.metadata.remote_log_metadata_cache import MetadataCache
from kctl.tier.rules.fetch import OffsetAnswer, Sender, offset_answer
from kctl.tier.rules.lineage import outside_lineage


class ReplicaView(Struct, frozen=True):
    """What is visible of a replica: epochs, first offsets and the exclusive end."""

    entries: Entries
    log_start_offset: int
    local_log_start_offset: int
    log_end_offset: int


class TargetEpoch(Struct, frozen=True):
    """The epoch and offset that the state is looked up by, and the two requests that give them."""

    earliest_local_offset: int
    earliest_local_epoch: int
    request_leader_epoch: int | None  # None: epoch 0 needs no question
    answer: EpochEndOffset | None
    leader_epoch: int
    offset: int


class BuiltState(Struct, frozen=True):
    """The follower's state after building it; without a segment it fails and is tried again."""

    target: TargetEpoch
    segment: SegmentMetadata | None
    start_offset: int | None = None
    log_start_offset: int | None = None
    entries: Entries | None = None  # None where the segment's leader epoch index cannot be read


class FollowerPlan(Struct, frozen=True):
    """What a follower does next: the offset it truncates to, the answer it gets, the state it builds."""

    truncate_to: int | None  # None: nothing is cut
    fetch_offset: int
    answer: OffsetAnswer
    built: BuiltState | None
    scenarios: tuple[int, ...]  # of KIP-405; 3 and 4 differ only by whether the election was unclean


def target_epoch(leader: ReplicaView) -> TargetEpoch:
    """The epoch and offset of the last record before the leader's local log."""
    local = leader.local_log_start_offset
    epoch = epoch_for_offset(leader.entries, local) or 0
    if epoch == 0:
        return TargetEpoch(local, 0, None, None, 0, local - 1)
    answer = end_offset_for(leader.entries, leader.log_end_offset, epoch - 1)
    leader_epoch = (
        answer.leader_epoch if answer.end_offset > local - 1 and answer.leader_epoch is not None else epoch
    )
    return TargetEpoch(local, epoch, epoch - 1, answer, leader_epoch, local - 1)


def build_state(
    leader: ReplicaView, cache: MetadataCache, leader_epoch_index: Callable[[SegmentMetadata], Entries | None]
) -> BuiltState:
    """The state that a follower builds from the tier; its epochs replace all earlier ones."""
    target = target_epoch(leader)
    segment = cache.segment_for(target.leader_epoch, target.offset)
    if segment is None:
        return BuiltState(target, None)
    return BuiltState(
        target, segment, segment.end_offset + 1, leader.log_start_offset, leader_epoch_index(segment)
    )


def common_end(leader: ReplicaView, entries: Entries, log_end_offset: int) -> int:
    """Where a follower's log must end to be a prefix of the leader's; epochs are compared until they agree."""
    end = log_end_offset
    while True:
        epoch = epoch_for_offset(entries, end - 1) if end > 0 else None
        if epoch is None:
            return end
        answer = end_offset_for(leader.entries, leader.log_end_offset, epoch)
        if answer.leader_epoch == epoch:
            return min(end, answer.end_offset)
        if answer.leader_epoch is None or answer.leader_epoch < 0:
            return end
        own = end_offset_for(entries, end, answer.leader_epoch)
        cut = min(end, answer.end_offset, own.end_offset if own.end_offset >= 0 else answer.end_offset)
        if cut >= end:
            return end
        end, entries = cut, truncate_from_end(entries, cut)


def follow(
    leader: ReplicaView,
    follower: ReplicaView,
    cache: MetadataCache,
    leader_epoch_index: Callable[[SegmentMetadata], Entries | None],
) -> FollowerPlan:
    end = common_end(leader, follower.entries, follower.log_end_offset)
    offset = end
    answer = _ask(leader, offset)
    if answer is OffsetAnswer.OUT_OF_RANGE:
        # Below the leader's start it starts there; above the leader's end it is cut to the end.
        offset = leader.log_start_offset if offset < leader.log_start_offset else leader.log_end_offset
        answer = _ask(leader, offset)
    built = (
        build_state(leader, cache, leader_epoch_index)
        if answer is OffsetAnswer.MOVED_TO_TIERED_STORAGE
        else None
    )
    return FollowerPlan(
        end if end < follower.log_end_offset else None,
        offset,
        answer,
        built,
        _scenarios(leader, follower, cache, end, built),
    )


def _ask(leader: ReplicaView, offset: int) -> OffsetAnswer:
    return offset_answer(
        offset,
        log_start_offset=leader.log_start_offset,
        local_log_start_offset=leader.local_log_start_offset,
        log_end_offset=leader.log_end_offset,
        sender=Sender.FOLLOWER,
    )


def _scenarios(
    leader: ReplicaView, follower: ReplicaView, cache: MetadataCache, end: int, built: BuiltState | None
) -> tuple[int, ...]:
    known = {epoch for epoch, _ in leader.entries}
    first = min(known, default=0)
    for segment in cache.all_listed():
        is_unknown = any(epoch >= first and epoch not in known for epoch, _ in segment.segment_leader_epochs)
        if is_unknown and outside_lineage(segment, leader.entries, leader.log_end_offset):
            return (5,)
    if end < follower.log_end_offset:
        return (3, 4)
    if built is None:
        return ()
    return (1,) if follower.log_end_offset == 0 else (2,)
