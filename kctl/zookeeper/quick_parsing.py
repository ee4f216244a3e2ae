"""Znodes of which there are ten thousand, parsed by typed decoders where they are as they should be.

What the quick decoder does not take goes to the parser in `formats`, which is as lenient as Kafka and says
what is wrong: both give the same value for everything that both take.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from formats.znodes import TopicZnode, parse_partition_state, parse_topic
from kctl.cluster.state import PartitionState

T = TypeVar("T")
Parser = Callable[[bytes], T]


class State(msgspec.Struct, gc=False):
    """`.../state`, with the defaults of the slow parser."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    version: int = 1
    leader_recovery_state: int = 0


class Partitions(msgspec.Struct, gc=False):
    """`/brokers/topics/TOPIC` without unknown keys, which the quick decoder could not keep."""

    partitions: dict[str, tuple[int, ...]]
    version: int = 1
    adding_replicas: dict[str, tuple[int, ...]] = {}
    removing_replicas: dict[str, tuple[int, ...]] = {}
    topic_id: str | None = None


STATE: msgspec.json.Decoder[State] = msgspec.json.Decoder(State)
TOPIC: msgspec.json.Decoder[Partitions] = msgspec.json.Decoder(Partitions)


def partition_state(data: bytes, partition_epoch: int) -> PartitionState:
    """Leader and ISR. Raises FormatError."""
    try:
        found: Any = STATE.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = parse_partition_state(data)
    return PartitionState(
        found.leader,
        found.leader_epoch,
        found.isr,
        found.controller_epoch,
        partition_epoch,
        found.leader_recovery_state == 1,
    )


def topic(data: bytes) -> TopicZnode:
    """A topic's replicas, unknown keys left out. Raises FormatError."""
    try:
        found = TOPIC.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return parse_topic(data)
    maps = (found.partitions, found.adding_replicas, found.removing_replicas)
    if (found.topic_id is not None and len(found.topic_id) != 22) or not all(map(_all_numbers, maps)):
        return parse_topic(data)
    return TopicZnode(
        version=found.version,
        partitions={int(p): ids for p, ids in found.partitions.items()},
        adding_replicas={int(p): ids for p, ids in found.adding_replicas.items()},
        removing_replicas={int(p): ids for p, ids in found.removing_replicas.items()},
        topic_id=found.topic_id,
    )


def _all_numbers(partitions: dict[str, tuple[int, ...]]) -> bool:
    return all(name.isascii() and name.isdigit() and len(name) < 10 for name in partitions)
