"""Bytes and offsets of replicas, from any broker that has one, with a Fetch that moves no watermark.

From version 11 on a follower answers a consumer's Fetch, up to its own high watermark. A
positive replica id is never sent: a leader would take kctl for that follower.

Source: core/src/main/scala/kafka/server/KafkaApis.scala, ReplicaManager.scala @ 2.4.1, 3.9.0; KIP-392; for
OffsetsForLeaderEpoch KIP-101, KIP-279
"""

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kctl.cluster.requests import needs
from kctl.cluster.rights import MissingRight, missing
from kctl.cluster.state import NO_LEADER, ClusterState
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import BrokerError, NoAnswer, Wire, error_name, parse_id
from kctl.wire.answers.fetch import BytesRequest
from kctl.wire.protocol.messages import ListOffsetsRequest, OffsetForLeaderEpochRequest
from kctl.wire.rights import failure, right_for

CONSUMER, DEBUGGER = -1, -2  # replica ids; the second one gets a log's end, not its watermark
FOLLOWERS_ANSWER = 11  # the first version of Fetch that followers answer
LATEST, EARLIEST, EARLIEST_LOCAL = -1, -2, -4  # timestamps that stand for a place
SINCE = {EARLIEST_LOCAL: 8}  # an older broker would take it for a timestamp
OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION = 1, 3
HEARING, LOOK = 5.0, 0.05  # seconds in which a broker hears of a partition; between two looks
A_ROUND = 32 << 20  # bytes of each broker at once, below what brokers give (fetch.max.bytes, 55 MiB)
OF_ALL = 128 << 20  # bytes of all brokers at once
STARVING = 300.0  # seconds in which a broker may give nothing because a quota is used up, by others too


class FetchPosition(NamedTuple):
    """What to fetch: a replica's bytes from an offset on."""

    node: int
    partition: TopicPartition
    offset: int


class Fetched(NamedTuple):
    """What a replica answered; `data` may end within a batch, and is a view where it can be."""

    data: bytes | memoryview
    high_watermark: int
    log_start_offset: int
    error_code: int = 0

    @property
    def error(self) -> str | None:
        """Kafka's name of the error; None where there was none."""
        return error_name(self.error_code) if self.error_code else None


def first_positions(positions: Iterable[FetchPosition]) -> set[tuple[int, TopicPartition]]:
    """The first replica in each broker's request: whatever the limits are, the broker returns its bytes if it has any."""
    first_by_node: dict[int, TopicPartition] = {}
    for position in positions:
        first_by_node.setdefault(position.node, position.partition)
    return set(first_by_node.items())


def refuse_old(wire: Wire) -> None:
    """Raise KctlError where followers do not serve clients."""
    if (wire.version_of(BytesRequest) or 0) < FOLLOWERS_ANSWER:
        raise KctlError(
            f"brokers of {wire.location} are older than 2.4: their followers do not serve clients",
            "examine copies of their log directories with `kctl replica compare`",
        )


class Fetcher:
    """Fetches from chosen replicas. `topic_ids` are those of the state read before, in Kafka's form."""

    def __init__(self, wire: Wire, topic_ids: Mapping[str, str | None]) -> None:
        refuse_old(wire)
        self._wire = wire
        self._version = wire.version_of(BytesRequest) or 0
        self._ids = {name: parse_id(id) if id else uuid.UUID(int=0) for name, id in topic_ids.items()}
        self._names = {id: name for name, id in self._ids.items()}
        if self._version >= 13 and any(id.int == 0 for id in self._ids.values()):
            self._version = 12  # a topic without an id is asked for by name

    def fetch(self, positions: Sequence[FetchPosition], size: int) -> list[Fetched | KctlError]:
        """The answers in order, with one request to each broker; `size` bytes of each partition.

        A larger batch comes whole. Later partitions may be empty, as the size of an answer is bounded.
        """
        by_node: dict[int, list[FetchPosition]] = {}
        for position in positions:
            by_node.setdefault(position.node, []).append(position)
        answer_by_replica: dict[tuple[int, TopicPartition], Fetched | KctlError] = {}
        most, end = min(A_ROUND, OF_ALL // max(1, len(by_node))), time.monotonic() + STARVING
        while by_node:
            requests = [
                (node, self._request(node_positions, size, most)) for node, node_positions in by_node.items()
            ]
            answers = dict(zip(by_node, self._wire.send_all(requests), strict=True))
            later = [node for node, answer in answers.items() if _is_throttled(answer)]
            if time.monotonic() > end:
                answers.update((node, _starved(node)) for node in later)
                later = []
            for node, node_positions in by_node.items():
                if node not in later:
                    answer_by_replica.update(self._answers(node, node_positions, answers[node]))
            by_node = {node: by_node[node] for node in later}
        missing = BrokerError("the answer does not include it")
        return [answer_by_replica.get((position.node, position.partition), missing) for position in positions]

    def _answers(
        self, node: int, positions: Sequence[FetchPosition], answer: Any
    ) -> dict[tuple[int, TopicPartition], Fetched | KctlError]:
        if not isinstance(answer, KctlError) and answer.error_code:
            answer = failure(self._wire, f"data of broker {node}", "Fetch", answer.error_code)
        if isinstance(answer, KctlError):
            return {(node, position.partition): answer for position in positions}
        answers: dict[tuple[int, TopicPartition], Fetched | KctlError] = {}
        for topic in answer.responses:
            name = str(topic.topic if self._version < 13 else self._names.get(topic.topic_id))
            for partition in topic.partitions:
                data = partition.records if partition.records is not None else b""
                key = node, TopicPartition(name, partition.partition_index)
                if (right := right_for("Fetch", partition.error_code, name)) is not None:
                    answers[key] = MissingRight(right, self._wire.principal, f"topic {name}")
                    continue
                answers[key] = Fetched(
                    data, partition.high_watermark, partition.log_start_offset, partition.error_code
                )
        return answers

    def _request(self, positions: Sequence[FetchPosition], size: int, most: int) -> BytesRequest:
        kind = BytesRequest.FetchTopic
        by_topic: dict[str, list[FetchPosition]] = {}
        for position in positions:
            by_topic.setdefault(position.partition.topic, []).append(position)
        topics = [
            kind(
                topic=name,
                topic_id=self._ids[name],
                partitions=[
                    kind.FetchPartition(
                        partition=position.partition.partition,
                        current_leader_epoch=-1,
                        fetch_offset=position.offset,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=size,
                    )
                    for position in topic_positions
                ],
            )
            for name, topic_positions in by_topic.items()
        ]
        reader: dict[str, object] = (
            {"replica_state": BytesRequest.ReplicaState(replica_id=CONSUMER, replica_epoch=-1)}
            if self._version >= 15
            else {"replica_id": CONSUMER}
        )
        return BytesRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=min(size * len(positions), most),
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=topics,
            forgotten_topics_data=[],
            rack_id="",
            min_version=FOLLOWERS_ANSWER,
            max_version=self._version,
            **reader,
        )


def _is_throttled(answer: Any) -> bool:
    """Whether a broker returned nothing because a quota is used up; the next request waits as long as it says."""
    if isinstance(answer, KctlError):
        return False
    return bool(answer.throttle_time_ms > 0 and not answer.error_code and not answer.responses)


def _starved(node: int) -> NoAnswer:
    return NoAnswer(
        f"broker {node} gives no bytes for {STARVING:.0f} s: a quota of this client or user is used up", node
    )


def list_offsets(
    wire: Wire, replicas: Sequence[tuple[int, TopicPartition]], place: int, *, replica_id: int = DEBUGGER
) -> dict[tuple[int, TopicPartition], int | KctlError]:
    """An offset of each replica (broker and partition): where its log begins or ends, or its high watermark.

    With `DEBUGGER` the end of the log of any replica; with `CONSUMER` the high watermark, of leaders only. A broker
    that does not know a partition yet is asked again for a moment.
    """
    if (wire.version_of(ListOffsetsRequest) or 0) < SINCE.get(place, 0):
        raise KctlError(
            f"the brokers are too old: {needs('finding where the local part of a log begins')}",
            "upgrade the brokers, or examine their disks",
        )
    offsets, end = _offsets(wire, replicas, place, replica_id), time.monotonic() + HEARING
    while (
        late := [replica for replica in replicas if _has_not_heard(offsets[replica])]
    ) and time.monotonic() < end:
        wire.pause(LOOK)
        offsets |= _offsets(wire, late, place, replica_id)
    return offsets


class NoOffset(BrokerError):
    """A broker gives no offset of a partition."""

    def __init__(self, node: int, error_code: int) -> None:
        super().__init__(f"broker {node} answered {error_name(error_code)}")
        self.error_code = error_code


def _has_not_heard(answer: int | KctlError) -> bool:
    return isinstance(answer, NoOffset) and answer.error_code == UNKNOWN_TOPIC_OR_PARTITION


def _offsets(
    wire: Wire, replicas: Sequence[tuple[int, TopicPartition]], place: int, replica_id: int
) -> dict[tuple[int, TopicPartition], int | KctlError]:
    by_node: dict[int, dict[str, list[int]]] = {}
    for node, tp in replicas:
        by_node.setdefault(node, {}).setdefault(tp.topic, []).append(tp.partition)
    kind = ListOffsetsRequest.ListOffsetsTopic
    requests = [
        (
            node,
            ListOffsetsRequest(
                replica_id=replica_id,
                isolation_level=0,
                topics=[
                    kind(
                        name=name,
                        partitions=[
                            kind.ListOffsetsPartition(
                                partition_index=number, current_leader_epoch=-1, timestamp=place
                            )
                            for number in numbers
                        ],
                    )
                    for name, numbers in topics.items()
                ],
            ),
        )
        for node, topics in by_node.items()
    ]
    missing = BrokerError("the answer does not include it")
    offsets: dict[tuple[int, TopicPartition], int | KctlError] = dict.fromkeys(replicas, missing)
    for (node, _), answer in zip(requests, wire.send_all(requests), strict=True):
        if isinstance(answer, KctlError):
            offsets |= {
                (node, TopicPartition(name, partition)): answer
                for name, numbers in by_node[node].items()
                for partition in numbers
            }
            continue
        for topic in answer.topics:
            for partition in topic.partitions:
                name = str(topic.name)
                key = node, TopicPartition(name, partition.partition_index)
                if (right := right_for("ListOffsets", partition.error_code, name)) is not None:
                    offsets[key] = MissingRight(right, wire.principal, f"topic {name}")
                    continue
                offsets[key] = (
                    NoOffset(node, partition.error_code) if partition.error_code else int(partition.offset)
                )
    return offsets


def local_starts(
    wire: Wire, replicas: Sequence[tuple[int, TopicPartition]]
) -> dict[tuple[int, TopicPartition], int | KctlError]:
    """Where each replica's local batches begin; in a tiered topic its log begins earlier."""
    knows = (wire.version_of(ListOffsetsRequest) or 0) >= SINCE[EARLIEST_LOCAL]  # else there are no tiers
    return list_offsets(wire, replicas, EARLIEST_LOCAL if knows else EARLIEST)


NOBODY = -2  # a replica id that is no broker's


class LeaderAnswer(NamedTuple):
    """A leader's answer; -1 and -1 for an epoch that it does not know, `error` if there was none."""

    partition: TopicPartition
    leader: int
    leader_epoch: int
    end_offset: int
    error: str | None = None


def ask_leaders(
    wire: Wire, state: ClusterState, partitions: Iterable[TopicPartition], epoch: int
) -> list[LeaderAnswer]:
    """Where an epoch ends in the leaders' epoch caches, by topic and number; one request to each leader.

    Followers refuse OffsetsForLeaderEpoch (error 6), so that each partition's leader is asked.
    """
    known = ((tp, state.leader(tp)) for tp in sorted(set(partitions)))
    leaders = {tp: NO_LEADER if leader is None else leader for tp, leader in known}
    by_leader: dict[int, dict[str, list[int]]] = {}
    for tp, leader in leaders.items():
        if leader != NO_LEADER:
            by_leader.setdefault(leader, {}).setdefault(tp.topic, []).append(tp.partition)
    requests = [(leader, _request(topics, epoch)) for leader, topics in by_leader.items()]
    answers: dict[TopicPartition, LeaderAnswer] = {}
    for (leader, _), answer in zip(requests, wire.send_all(requests), strict=True):
        if isinstance(answer, KctlError):
            for name, numbers in by_leader[leader].items():
                for number in numbers:
                    tp = TopicPartition(name, number)
                    answers[tp] = LeaderAnswer(tp, leader, -1, -1, answer.message)
            continue
        for topic in answer.topics:
            for partition in topic.partitions:
                tp = TopicPartition(str(topic.topic), int(partition.partition))
                right = right_for("OffsetForLeaderEpoch", partition.error_code, tp.topic)
                error = error_name(partition.error_code) if partition.error_code else None
                error = missing(right, wire.principal) if right else error
                answers[tp] = LeaderAnswer(
                    tp, leader, int(partition.leader_epoch), int(partition.end_offset), error
                )
    unanswered = {True: "it has no leader", False: "the answer does not include it"}
    return [
        answers.get(tp) or LeaderAnswer(tp, leader, -1, -1, unanswered[leader == NO_LEADER])
        for tp, leader in leaders.items()
    ]


def _request(topics: dict[str, list[int]], epoch: int) -> OffsetForLeaderEpochRequest:
    kind = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    return OffsetForLeaderEpochRequest(
        replica_id=NOBODY,
        topics=[
            kind(
                topic=name,
                partitions=[
                    kind.OffsetForLeaderPartition(
                        partition=number, current_leader_epoch=-1, leader_epoch=epoch
                    )
                    for number in numbers
                ],
            )
            for name, numbers in topics.items()
        ],
    )
