"""Decode topics and the replicas of their partitions from large answers: 10,000 partitions in some milliseconds.

An object of each partition would take most of the time. Most partitions of a cluster have the same description except
for their number, so each distinct description is decoded once.

Source: clients/src/main/resources/common/message/MetadataResponse.json @ 4.3.0 (versions 9 to 13)
"""

from base64 import urlsafe_b64encode
from struct import Struct
from typing import Any, NamedTuple

from formats.binary.varint import after_tags, read_unsigned
from kctl.cluster.state import PartitionState, Replicas
from kctl.wire.answers.texts import text
from kctl.wire.protocol.messages import MetadataRequest

QUICK_VERSIONS = range(9, 14)
NO_ID = bytes(16)
Once = dict[bytes, tuple[Replicas, PartitionState]]  # the description of a partition, after its number
OPERATIONS = 4  # bytes of the operations that are allowed


class Node(NamedTuple):
    """A broker that is up."""

    node_id: int
    host: str
    port: int
    rack: str | None


class TopicPlaces(NamedTuple):
    """A topic with the replicas and states of its partitions, by number."""

    name: str | None
    error_code: int
    topic_id: str | None  # Kafka's form
    partitions: dict[int, Replicas]
    states: dict[int, PartitionState]


class Places(NamedTuple):
    """The answer."""

    cluster_id: str | None
    controller_id: int
    brokers: list[Node]
    topics: list[TopicPlaces]
    throttle_time_ms: int = 0


def places(answer: Any) -> Places:
    """The answer of a `PlacesRequest`."""
    if isinstance(answer, Places):
        return answer
    nodes = [Node(b.node_id, b.host, b.port, b.rack) for b in answer.brokers]
    topics = [_without_haste(topic) for topic in answer.topics]
    return Places(answer.cluster_id, answer.controller_id, nodes, topics, answer.throttle_time_ms)


def _without_haste(topic: Any) -> TopicPlaces:
    listed = sorted(topic.partitions, key=lambda p: int(p.partition_index))
    states = {}
    for p in listed:
        epoch = -1 if p.leader_epoch is None else p.leader_epoch
        states[p.partition_index] = PartitionState(
            p.leader_id, epoch, tuple(p.isr_nodes), offline_replicas=tuple(p.offline_replicas or ())
        )
    id = getattr(topic, "topic_id", None)
    return TopicPlaces(
        topic.name,
        topic.error_code,
        kafka_id(id.bytes if id else NO_ID),
        {p.partition_index: tuple(p.replica_nodes) for p in listed},
        states,
    )


def kafka_id(id: bytes) -> str | None:
    """A topic id in Kafka's form; None where the cluster has none."""
    return None if id == NO_ID else urlsafe_b64encode(id).rstrip(b"=").decode()


def decoded(data: bytes, version: int) -> Places:
    """The answer of one of `QUICK_VERSIONS`. Raises ValueError for anything else."""
    try:
        return _answer(data, version)
    except (IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"no answer of version {version}: {error}") from None


def _answer(data: bytes, version: int) -> Places:
    (throttle_time_ms,), at = _numbers(data, 0, 1)
    count, at = read_unsigned(data, at)
    brokers = []
    for _ in range(count - 1):
        (node_id,), at = _numbers(data, at, 1)
        host, at = text(data, at)
        (port,), at = _numbers(data, at, 1)
        rack, at = text(data, at)
        at = after_tags(data, at)
        brokers.append(Node(node_id, host or "", port, rack))
    cluster_id, at = text(data, at)
    (controller_id,), at = _numbers(data, at, 1)
    count, at = read_unsigned(data, at)
    topics: list[TopicPlaces] = []
    once: Once = {}
    for _ in range(count - 1):
        at = _topic(data, at, version, topics, once)
    at += OPERATIONS * (version <= 10) + 2 * (version >= 13)
    if after_tags(data, at) > len(data):
        raise ValueError("the answer is cut off")
    return Places(cluster_id, controller_id, brokers, topics, throttle_time_ms)


def _topic(data: bytes, at: int, version: int, topics: list[TopicPlaces], once: Once) -> int:
    """Append a topic; returns where the next one begins."""
    error_code = int.from_bytes(data[at : at + 2], "big", signed=True)
    name, at = text(data, at + 2)
    id = NO_ID
    if version >= 10:
        id, at = data[at : at + 16], at + 16
    count, at = read_unsigned(data, at + 1)  # behind whether it is internal
    places: dict[int, Replicas] = {}
    states: dict[int, PartitionState] = {}
    for _ in range(count - 1):
        begin = at + 6
        index = int.from_bytes(data[at + 2 : begin], "big", signed=True)
        # Three lists of brokers follow the leader and its epoch. If all are short and have no tags behind them,
        # the description is looked up by its bytes.
        try:
            end = begin + 8
            end += 4 * data[end] - 3
            end += 4 * data[end] - 3
            end += 4 * data[end] - 3
            known = once.get(data[begin : end + 1])
        except IndexError:  # no short list
            known = None
        if known is None:
            known, end = _partition(data, begin, once)
        else:
            end += 1
        places[index], states[index] = known
        at = end
    if list(places) != sorted(places):
        places, states = dict(sorted(places.items())), dict(sorted(states.items()))
    topics.append(TopicPlaces(name, error_code, kafka_id(id), places, states))
    return after_tags(data, at + OPERATIONS)


def _partition(data: bytes, begin: int, once: Once) -> tuple[tuple[Replicas, PartitionState], int]:
    """The description after a partition's number, and where the next one begins; it is remembered by its bytes.

    Only if each size is one byte and at least 1, so that a description with the same bytes has the same sizes.
    """
    (leader, epoch), at = _numbers(data, begin, 2)
    lists, is_short = [], True
    for _ in range(3):
        is_short &= 1 <= data[at] <= 127
        size, at = read_unsigned(data, at)
        ids, at = _numbers(data, at, max(size - 1, 0))
        lists.append(ids)
    known = lists[0], PartitionState(leader, epoch, lists[1], offline_replicas=lists[2])
    if is_short and data[at] == 0:
        once[data[begin : at + 1]] = known
    return known, after_tags(data, at)


def _numbers(data: bytes, at: int, count: int) -> tuple[Replicas, int]:
    """`count` integers of four bytes, and where they end."""
    end = at + 4 * count
    if end > len(data):
        raise ValueError("the answer is cut off")
    return Struct(f">{count}i").unpack_from(data, at), end


class PlacesRequest(MetadataRequest):  # type: ignore[misc]
    """A Metadata request; `places` gives its answer, whoever decoded it."""

    @classmethod
    def answered(cls, data: memoryview, version: int) -> Any:
        """The decoded answer. Raises ValueError if it does not have the form of the version."""
        return decoded(bytes(data), version) if version in QUICK_VERSIONS else super().answered(data, version)
