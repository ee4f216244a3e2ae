"""OffsetsForLeaderEpoch (API key 23): what brokers answer, who asks with which version, what a consumer concludes.

Source: core/src/main/scala/kafka/server/ReplicaManager.scala @ 2.8.2; core/src/main/scala/kafka/cluster/Partition.scala
@ 2.8.2; core/src/main/scala/kafka/server/ReplicaFetcherThread.scala @ 2.8.2; clients/src/main/java/org/apache/kafka/
clients/consumer/internals/SubscriptionState.java @ 2.3.1, 3.9.0-rc3
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kctl.replication.epochs import UNDEFINED, Answers, Entries, EpochEnd, end_offset_for


class EpochEndAnswer(NamedTuple):
    """A broker's answer: Kafka's error name, and the end of the epoch (-1, -1 with an error)."""

    error: str
    leader_epoch: int
    end_offset: int


class EpochRequestVersion(NamedTuple):
    """The request a follower sends under an inter-broker protocol; no version: it sends none."""

    request_version: int | None
    request_has_current_leader_epoch: bool
    answer_has_leader_epoch: bool


class PositionCheck(NamedTuple):
    """What a consumer concludes about its position from the answer (2.3+)."""

    valid: bool
    action: str  # none, move_to_end_offset, raise_log_truncation, reset_by_policy
    new_offset: int | None


# Inter-broker protocol from which on a follower sends this version of the request.
REQUEST_VERSIONS = (
    ((2, 8, 0), 4),
    ((2, 3, 1), 3),
    ((2, 1, 1), 2),
    ((2, 0, 0), 1),
    ((0, 11, 0, 2), 0),
)


def offsets_for_leader_epoch(
    entries: Entries,
    log_end_offset: int,
    requested: int,
    *,
    partition_known: bool = True,
    has_log: bool = True,
    is_leader: bool = True,
    leader_only: bool = True,
    broker_leader_epoch: int = 0,
    current_leader_epoch: int | None = None,
) -> EpochEndAnswer:
    """A broker's answer. Fencing by `current_leader_epoch` (2.1+) comes before the question who leads."""
    error = "NONE"
    if not partition_known:
        error = "UNKNOWN_TOPIC_OR_PARTITION"
    elif current_leader_epoch is not None and current_leader_epoch < broker_leader_epoch:
        error = "FENCED_LEADER_EPOCH"
    elif current_leader_epoch is not None and current_leader_epoch > broker_leader_epoch:
        error = "UNKNOWN_LEADER_EPOCH"
    elif (leader_only and not is_leader) or not has_log:
        error = "NOT_LEADER_OR_FOLLOWER"
    if error != "NONE":
        return EpochEndAnswer(error, UNDEFINED, UNDEFINED)
    found = end_offset_for(entries, log_end_offset, requested, Answers.EPOCH_AND_OFFSET)
    return EpochEndAnswer(
        error, UNDEFINED if found.leader_epoch is None else found.leader_epoch, found.end_offset
    )


def epoch_request_version(inter_broker_protocol: str) -> EpochRequestVersion:
    """The version of the request that a follower sends under `inter.broker.protocol.version`."""
    have = tuple(int(part) for part in re.findall(r"\d+", inter_broker_protocol))
    version = next((v for since, v in REQUEST_VERSIONS if have >= since), None)
    return EpochRequestVersion(
        version, version is not None and version >= 2, version is not None and version >= 1
    )


def validate_position(position_offset: int, answer: EpochEnd, *, has_reset_policy: bool) -> PositionCheck:
    """What a consumer does with the end of its epoch. A lower epoch in the answer is not noticed by itself."""
    if UNDEFINED in answer:
        return PositionCheck(False, "reset_by_policy" if has_reset_policy else "raise_log_truncation", None)
    if answer.end_offset >= position_offset:
        return PositionCheck(True, "none", position_offset)
    action = "move_to_end_offset" if has_reset_policy else "raise_log_truncation"
    return PositionCheck(False, action, answer.end_offset)
