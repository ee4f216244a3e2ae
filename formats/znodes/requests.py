"""The znodes of requests: reassignment, preferred election, configuration changes, notifications.

`/admin/reassign_partitions` may hold only `topic`, `partition` and `replicas`: from 2.0 on one key more, and
the controller ignores the request and leaves it for ever.

Source: core/src/main/scala/kafka/zk/ZkData.scala @ 2.8.2 (`ReassignPartitionsZNode`,
`PreferredReplicaElectionZNode`, `ConfigEntityChangeNotificationZNode`); kafka/admin/AdminUtils.scala
@ 0.8.2.1, 0.9.0.1, 0.10.1.1
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from formats.errors import FormatError
from formats.values import Struct
from formats.znodes.json_text import Json, encode, integer, integers, objects, parse_object, parse_value, text

STRICT_KEYS = {"version", "partitions"}, {"topic", "partition", "replicas"}
CHANGE_NAME = re.compile(r"config_change_([0-9]{10})")


class Requested(NamedTuple):
    """A partition in a request; no replicas in an election."""

    topic: str
    partition: int
    replicas: tuple[int, ...] = ()


class RequestZnode(Struct, frozen=True, kw_only=True):
    """A reassignment or an election. `unknown_keys`: keys that the strict reader of 2.0 and later rejects."""

    partitions: tuple[Requested, ...]
    unknown_keys: tuple[str, ...] = ()


def parse_reassignment(data: bytes | None) -> RequestZnode:
    """`/admin/reassign_partitions`. Raises FormatError if no controller could read it."""
    values = parse_object(data)
    rows = objects(values, "partitions")
    partitions = tuple(
        Requested(text(row, "topic"), integer(row, "partition"), integers(row, "replicas")) for row in rows
    )
    unknown = set(values) - STRICT_KEYS[0] | {key for row in rows for key in row} - STRICT_KEYS[1]
    return RequestZnode(partitions=partitions, unknown_keys=tuple(sorted(unknown)))


def format_reassignment(partitions: Iterable[Requested]) -> bytes:
    """The JSON that every controller reads: only topic, partition and replicas."""
    rows: list[Json] = [
        {"topic": partition.topic, "partition": partition.partition, "replicas": list(partition.replicas)}
        for partition in partitions
    ]
    return encode({"version": 1, "partitions": rows})


def parse_election(data: bytes | None) -> RequestZnode:
    """`/admin/preferred_replica_election`."""
    values = parse_object(data)
    rows = objects(values, "partitions")
    partitions = tuple(Requested(text(row, "topic"), integer(row, "partition")) for row in rows)
    return RequestZnode(partitions=partitions)


def format_election(partitions: Iterable[Requested]) -> bytes:
    """The JSON of a preferred election."""
    rows: list[Json] = [
        {"topic": partition.topic, "partition": partition.partition} for partition in partitions
    ]
    return encode({"version": 1, "partitions": rows})


class ConfigChange(NamedTuple):
    """A notification that an entity's configuration changed. Form 0 is that of 0.8, 1 of 0.9, 2 of 0.10.1."""

    form: int
    entity_path: str  # `topics/orders`, `users/alice/clients/app`

    def encode(self) -> bytes:
        """The content of the notification; forms 0 and 1 know fewer kinds of entity."""
        kind, name = self.entity_path.split("/", 1)
        if self.form == 0:
            return encode(name)
        if self.form == 1:
            return encode({"version": 1, "entity_type": kind, "entity_name": name})
        return encode({"version": 2, "entity_path": self.entity_path})


def parse_config_change(data: bytes | None) -> ConfigChange:
    """A child of `/config/changes`, in any of the three forms."""
    value = parse_value(data)
    if isinstance(value, str):
        return ConfigChange(0, f"topics/{value}")
    values = parse_object(data)
    form = integer(values, "version")
    if form == 1:
        return ConfigChange(1, f"{text(values, 'entity_type')}/{text(values, 'entity_name')}")
    if form == 2:
        return ConfigChange(2, text(values, "entity_path"))
    raise FormatError(f"version is {form}, and brokers know 1 and 2", 0)


def duplicates(partitions: Iterable[Requested]) -> Iterator[Requested]:
    """Entries with a broker twice, which a controller moves but never removes from the request."""
    return (partition for partition in partitions if len(set(partition.replicas)) < len(partition.replicas))
