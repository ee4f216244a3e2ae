"""What leaders answer to OffsetsForLeaderEpoch: where an epoch ends in their own records of epochs.

Followers refuse the request (error 6), so that each partition's leader is asked.

Source: KIP-101, KIP-279; core/src/main/scala/kafka/server/ReplicaManager.scala @ 3.9.0
"""

from collections.abc import Iterable
from typing import NamedTuple

from kafka.protocol.consumer.offsets import OffsetForLeaderEpochRequest

from kctl.cluster.state import NO_LEADER, ClusterState
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import Wire, error_name

NOBODY = -2  # a replica id that is no broker's


class LeaderAnswer(NamedTuple):
    """A leader's answer; -1 and -1 for an epoch that it does not know, `error` where it gave none."""

    partition: TopicPartition
    leader: int
    leader_epoch: int
    end_offset: int
    error: str | None = None


def ask_leaders(
    wire: Wire, state: ClusterState, partitions: Iterable[TopicPartition], epoch: int
) -> list[LeaderAnswer]:
    """The answer for each partition, by topic and number; all leaders are asked at once."""
    leaders = {tp: _leader(tp, state) for tp in sorted(set(partitions))}
    by_leader: dict[int, dict[str, list[int]]] = {}
    for tp, leader in leaders.items():
        if leader != NO_LEADER:
            by_leader.setdefault(leader, {}).setdefault(tp.topic, []).append(tp.partition)
    requests = [(leader, _request(topics, epoch)) for leader, topics in by_leader.items()]
    found: dict[TopicPartition, LeaderAnswer] = {}
    for (leader, _), answer in zip(requests, wire.send_all(requests), strict=True):
        if isinstance(answer, KctlError):
            for name, numbers in by_leader[leader].items():
                for p in numbers:
                    tp = TopicPartition(name, p)
                    found[tp] = LeaderAnswer(tp, leader, -1, -1, str(answer))
            continue
        for topic in answer.topics:
            for one in topic.partitions:
                tp = TopicPartition(str(topic.topic), int(one.partition))
                error = error_name(one.error_code) if one.error_code else None
                found[tp] = LeaderAnswer(tp, leader, int(one.leader_epoch), int(one.end_offset), error)
    missing = {True: "it has no leader", False: "the answer leaves it out"}
    return [
        found.get(tp) or LeaderAnswer(tp, leader, -1, -1, missing[leader == NO_LEADER])
        for tp, leader in leaders.items()
    ]


def _leader(tp: TopicPartition, state: ClusterState) -> int:
    found = state.partition_states.get(tp)
    return found.leader if found is not None else NO_LEADER


def _request(topics: dict[str, list[int]], epoch: int) -> OffsetForLeaderEpochRequest:
    kind = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    return OffsetForLeaderEpochRequest(
        replica_id=NOBODY,
        topics=[
            kind(
                topic=name,
                partitions=[
                    kind.OffsetForLeaderPartition(partition=p, current_leader_epoch=-1, leader_epoch=epoch)
                    for p in numbers
                ],
            )
            for name, numbers in topics.items()
        ],
    )
