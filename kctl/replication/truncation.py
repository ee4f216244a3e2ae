"""To which offset a follower truncates under a leader, by version.

Before 0.11 to its own high watermark; 0.11 to 1.1 by one question about its latest epoch (KIP-101); from 2.0 by
asking until the epochs meet (KIP-279); from 2.8 by the leader's check of the last fetched epoch in FETCH. The
2.7 fetcher has no last fetched epoch, so 2.7 still asks.

Source: core/src/main/scala/kafka/server/ReplicaManager.scala @ 0.8.2.1, 0.10.2.1;
core/src/main/scala/kafka/server/ReplicaFetcherThread.scala @ 0.9.0.1, 0.11.0.0, 1.1.1;
core/src/main/scala/kafka/server/AbstractFetcherThread.scala @ 2.0.1, 2.3.1, 2.8.2, 3.9.0-rc3;
core/src/main/scala/kafka/cluster/Partition.scala @ 2.7.0, 2.7.2, 2.8.1, 3.9.0-rc3
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from formats.values import Struct, replace
from kctl.replication.epochs import (
    UNDEFINED,
    Entries,
    EpochAnswers,
    EpochEndOffset,
    end_offset_for,
    latest_epoch,
    truncate_from_end,
)


class Algorithm(enum.StrEnum):
    """How a follower finds the offset to truncate to."""

    HIGH_WATERMARK = "high_watermark"
    KIP_101 = "leader_epoch_kip101"
    KIP_279 = "leader_epoch_kip279"
    FETCH = "fetch_diverging_epoch"


class TruncationReason(enum.StrEnum):
    """Why a follower truncates to this offset."""

    COMMON_EPOCH = "common_epoch"
    LEADER_EPOCH_UNKNOWN = "leader_epoch_unknown_to_follower"
    NO_ENTRY = "follower_has_no_entry"
    LEADER_EPOCH_UNDEFINED = "leader_epoch_undefined"
    LEADER_OFFSET_UNDEFINED = "leader_offset_undefined"
    LEADER_END_OFFSET = "leader_end_offset"
    NO_TRUNCATION = "no_truncation"
    OWN_HIGH_WATERMARK = "own_high_watermark"


OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"


class ReplicaState(Struct, frozen=True):
    """A replica's epochs, extent and high watermark."""

    epochs: Entries
    log_end_offset: int
    high_watermark: int = 0
    log_start_offset: int = 0

    def cut_to(self, offset: int) -> ReplicaState:
        """The replica after a truncation request; one at or above the end still drops epochs that start there."""
        end = min(offset, self.log_end_offset)
        return replace(
            self,
            log_end_offset=end,
            epochs=truncate_from_end(self.epochs, end),
            high_watermark=min(self.high_watermark, end),
        )


class TruncationDecision(NamedTuple):
    """Where to truncate, and whether the follower is done or must ask again."""

    truncate_to: int
    completed: bool
    reason: TruncationReason


class TruncationRound(NamedTuple):
    """One request and answer between a follower and its leader, and the resulting cut."""

    request_epoch: int | None
    fetch_offset: int | None
    answer: EpochEndOffset | str  # "data" or OFFSET_OUT_OF_RANGE where FETCH asks
    truncate_to: int | None
    completed: bool = True
    reason: TruncationReason | None = None
    mode: str | None = None


class FollowerTruncation(NamedTuple):
    """How a follower truncates under a leader: the rounds, and what remains before new data arrives."""

    rounds: tuple[TruncationRound, ...]
    follower: ReplicaState


class OutOfRange(NamedTuple):
    """What a follower does when the leader answers OFFSET_OUT_OF_RANGE (0.9.0.1 and later)."""

    action: str  # truncate_to_leader_end, truncate_fully_and_start_at, keep_and_retry
    truncate_to: int | None
    fetch_from: int


def decide(follower: ReplicaState, answer: EpochEndOffset, initial_fetch_offset: int) -> TruncationDecision:
    """The follower's decision on a leader's answer (KIP-279, 2.0 and later)."""
    end = follower.log_end_offset
    if answer.end_offset == UNDEFINED:
        return TruncationDecision(initial_fetch_offset, True, TruncationReason.LEADER_OFFSET_UNDEFINED)
    if answer.leader_epoch in (None, UNDEFINED):
        return TruncationDecision(min(answer.end_offset, end), True, TruncationReason.LEADER_EPOCH_UNDEFINED)
    assert answer.leader_epoch is not None
    own = end_offset_for(follower.epochs, end, answer.leader_epoch)
    if own.end_offset == UNDEFINED:
        return TruncationDecision(min(answer.end_offset, end), True, TruncationReason.NO_ENTRY)
    assert own.leader_epoch is not None
    if own.leader_epoch != answer.leader_epoch:
        return TruncationDecision(min(own.end_offset, end), False, TruncationReason.LEADER_EPOCH_UNKNOWN)
    return TruncationDecision(
        min(own.end_offset, answer.end_offset, end), True, TruncationReason.COMMON_EPOCH
    )


def fetch_epoch_check(
    leader: ReplicaState, fetch_offset: int, last_fetched_epoch: int | None
) -> EpochEndOffset | str:
    """The leader's answer to FETCH: "data", OFFSET_OUT_OF_RANGE, or the diverging epoch and its end.

    2.7.0, 2.7.1 and 2.8.0 compare the epochs before the log start; this is 2.7.2 and 2.8.1 on.
    """
    if last_fetched_epoch is None:
        in_range = leader.log_start_offset <= fetch_offset <= leader.log_end_offset
        return "data" if in_range else OUT_OF_RANGE
    end = end_offset_for(leader.epochs, leader.log_end_offset, last_fetched_epoch)
    if end.end_offset == UNDEFINED or fetch_offset < leader.log_start_offset:
        return OUT_OF_RANGE
    assert end.leader_epoch is not None
    if end.leader_epoch < last_fetched_epoch or end.end_offset < fetch_offset:
        return end
    return "data"


def out_of_range(
    follower_log_end_offset: int, leader_log_start_offset: int, leader_log_end_offset: int
) -> OutOfRange:
    """What the follower does next. 0.8.0 to 0.9.0.0 dropped the whole log instead of retrying."""
    if leader_log_end_offset < follower_log_end_offset:
        return OutOfRange("truncate_to_leader_end", leader_log_end_offset, leader_log_end_offset)
    if leader_log_start_offset > follower_log_end_offset:
        return OutOfRange("truncate_fully_and_start_at", leader_log_start_offset, leader_log_start_offset)
    return OutOfRange("keep_and_retry", None, follower_log_end_offset)


def truncate(
    follower: ReplicaState, leader: ReplicaState, algorithm: Algorithm, answers: EpochAnswers | None = None
) -> FollowerTruncation:
    """What a follower does when it starts to follow this leader, before it fetches.

    By high watermark this is only the cut at the role change; see `out_of_range` for the first fetch.
    """
    if algorithm is Algorithm.HIGH_WATERMARK or (not follower.epochs and algorithm is not Algorithm.KIP_101):
        cut = min(follower.high_watermark, follower.log_end_offset)
        round_ = TruncationRound(None, None, "none", cut, True, TruncationReason.OWN_HIGH_WATERMARK)
        return FollowerTruncation((round_,), follower.cut_to(cut))
    if algorithm is Algorithm.KIP_101:
        return _one_question(follower, leader, answers or EpochAnswers.OFFSET_ONLY)
    if algorithm is Algorithm.KIP_279:
        return _ask_until_common(follower, leader, answers or EpochAnswers.EPOCH_AND_OFFSET)
    return _fetch_until_data(follower, leader)


def _one_question(follower: ReplicaState, leader: ReplicaState, answers: EpochAnswers) -> FollowerTruncation:
    latest = latest_epoch(follower.epochs)
    requested = UNDEFINED if latest is None else latest
    answer = end_offset_for(leader.epochs, leader.log_end_offset, requested, answers)
    if answer.end_offset == UNDEFINED:
        cut = min(follower.log_end_offset, follower.high_watermark)
        reason = TruncationReason.LEADER_OFFSET_UNDEFINED
    elif answer.end_offset >= follower.log_end_offset:
        cut, reason = follower.log_end_offset, TruncationReason.NO_TRUNCATION
    else:
        cut, reason = answer.end_offset, TruncationReason.LEADER_END_OFFSET
    after = follower.cut_to(cut) if reason is not TruncationReason.NO_TRUNCATION else follower
    return FollowerTruncation((TruncationRound(requested, None, answer, cut, True, reason),), after)


def _ask_until_common(
    follower: ReplicaState, leader: ReplicaState, answers: EpochAnswers
) -> FollowerTruncation:
    rounds: list[TruncationRound] = []
    high_watermark = follower.high_watermark
    while True:
        latest = latest_epoch(follower.epochs)
        if latest is None:  # no epoch is left: all tracked records are cut
            return FollowerTruncation(tuple(rounds), follower)
        answer = end_offset_for(leader.epochs, leader.log_end_offset, latest, answers)
        decision = decide(follower, answer, high_watermark)
        follower = follower.cut_to(decision.truncate_to)
        rounds.append(TruncationRound(latest, None, answer, *decision))
        if decision.completed:
            return FollowerTruncation(tuple(rounds), follower)


def _fetch_until_data(follower: ReplicaState, leader: ReplicaState) -> FollowerTruncation:
    rounds: list[TruncationRound] = []
    while True:
        offset, latest = follower.log_end_offset, latest_epoch(follower.epochs)
        answer = fetch_epoch_check(leader, offset, latest)
        if answer == OUT_OF_RANGE:
            step = out_of_range(offset, leader.log_start_offset, leader.log_end_offset)
            rounds.append(TruncationRound(latest, offset, answer, step.truncate_to, mode=step.action))
            return FollowerTruncation(tuple(rounds), after_out_of_range(follower, step))
        if isinstance(answer, str):
            rounds.append(TruncationRound(latest, offset, answer, None))
            return FollowerTruncation(tuple(rounds), follower)
        decision = decide(follower, answer, offset)
        rounds.append(TruncationRound(latest, offset, answer, *decision))
        follower = follower.cut_to(decision.truncate_to)


def after_out_of_range(follower: ReplicaState, step: OutOfRange) -> ReplicaState:
    if step.action == "truncate_fully_and_start_at":
        assert step.truncate_to is not None
        return ReplicaState((), step.truncate_to, step.truncate_to, step.truncate_to)
    return follower if step.truncate_to is None else follower.cut_to(step.truncate_to)
