"""The znodes of a cluster's state: brokers, controller, topics, partition states. Every version of each.

Each value keeps the keys it does not know in `other`; `edit_topic` changes a topic's JSON and leaves every
other key as it is, because a lost `topic_id` or `adding_replicas` is found only at the next failover.

Source: core/src/main/scala/kafka/zk/ZkData.scala @ 1.1.1, 2.4.1, 2.8.2, 3.4.1, 3.9.0-rc3;
kafka/utils/ZkUtils.scala @ 0.8.2.1; kafka/cluster/Broker.scala @ 0.9.0.1, 0.11.0.2
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from formats.errors import FormatError
from formats.values import Struct, field
from formats.znodes.json_text import (
    Json,
    Object,
    encode,
    integer,
    integer_list,
    integers,
    long_text,
    mapping,
    optional_text,
    parse_object,
    parse_value,
    required_long,
    texts,
)

Replicas = tuple[int, ...]
# IPv6 hosts stand in brackets; the host may be empty; a listener's name is upper case by custom only.
ENDPOINT = re.compile(r"^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
TOPIC_ID = re.compile(r"^[A-Za-z0-9_-]{22}$")
RESERVED_TOPIC_IDS = ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ")
NO_LEADER = -1
LEADER_DURING_DELETE = -2


def others(values: Object, *known: str) -> Object:
    """The keys among `values` that are not `known`."""
    return {key: value for key, value in values.items() if key not in known}


class EndPoint(NamedTuple):
    """A listener of a broker, as in `PLAINTEXT://host:9092`."""

    listener: str
    host: str
    port: int
    security_protocol: str | None


class BrokerZnode(Struct, frozen=True, kw_only=True):
    """`/brokers/ids/ID`, versions 1 to 5. `timestamp` is milliseconds; the znode's czxid is the broker epoch."""

    version: int
    host: str | None
    port: int
    endpoints: tuple[EndPoint, ...] = ()
    rack: str | None = None
    timestamp: int | None = None
    jmx_port: int | None = None
    features: Object = field(default_factory=dict)
    other: Object = field(default_factory=dict)


def parse_broker(data: bytes | None) -> BrokerZnode:
    """A broker's registration. Raises FormatError if Kafka could not read it."""
    values = parse_object(data)
    version = integer(values, "version", 1)
    if version < 1:
        raise FormatError(f"version is {version}, and brokers refuse versions below 1", 0)
    protocols = texts(values, "listener_security_protocol_map")
    listed = values.get("endpoints")
    if version >= 2 and not isinstance(listed, list):
        raise FormatError("no list of endpoints; version 2 and later must have one", 0)
    endpoints = (
        tuple(_endpoint(endpoint, protocols) for endpoint in listed) if isinstance(listed, list) else ()
    )
    known = "version host port jmx_port timestamp endpoints rack listener_security_protocol_map features"
    return BrokerZnode(
        version=version,
        host=optional_text(values, "host"),
        port=integer(values, "port", -1),
        endpoints=endpoints,
        rack=optional_text(values, "rack"),
        timestamp=long_text(values, "timestamp"),
        jmx_port=integer(values, "jmx_port", -1),
        features=mapping(values, "features", required=False),
        other=others(values, *known.split()),
    )


def _endpoint(value: Json, protocols: Mapping[str, str]) -> EndPoint:
    match = ENDPOINT.match(value) if isinstance(value, str) else None
    if match is None:
        raise FormatError(f"endpoint {value!r} is not LISTENER://HOST:PORT", 0)
    listener = match[1]
    return EndPoint(listener, match[2], int(match[3]), protocols.get(listener, listener))


class ControllerZnode(Struct, frozen=True, kw_only=True):
    """`/controller`. `kraft_controller_epoch` exists from version 2 on, -1 if no quorum has claimed the cluster."""

    version: int
    broker_id: int
    timestamp: int | None = None
    kraft_controller_epoch: int | None = None
    other: Object = field(default_factory=dict)


def parse_controller(data: bytes | None) -> ControllerZnode:
    """The controller; 0.8.0 wrote a bare number, which is accepted too."""
    value = parse_value(data)
    if isinstance(value, int) and not isinstance(value, bool):
        return ControllerZnode(version=0, broker_id=value)
    values = parse_object(data)
    return ControllerZnode(
        version=integer(values, "version", 1),
        broker_id=integer(values, "brokerid"),
        timestamp=long_text(values, "timestamp"),
        kraft_controller_epoch=integer(values, "kraftControllerEpoch")
        if "kraftControllerEpoch" in values
        else None,
        other=others(values, "version", "brokerid", "timestamp", "kraftControllerEpoch"),
    )


def parse_number(data: bytes | None) -> int:
    """A znode that is a decimal number and no JSON, such as `/controller_epoch`."""
    shown = (data or b"").decode("utf-8", "replace").strip()
    if not re.fullmatch(r"-?[0-9]{1,19}", shown):
        raise FormatError(f"{shown[:40]!r} is not a decimal number", 0)
    return int(shown)


class TopicZnode(Struct, frozen=True, kw_only=True):
    """`/brokers/topics/TOPIC`, versions 1 to 3. `partitions` has adding and removing replicas in it."""

    version: int
    partitions: dict[int, Replicas]
    adding_replicas: dict[int, Replicas] = field(default_factory=dict)
    removing_replicas: dict[int, Replicas] = field(default_factory=dict)
    topic_id: str | None = None
    other: Object = field(default_factory=dict)


def parse_topic(data: bytes | None) -> TopicZnode:
    """A topic's replicas. Raises FormatError if a controller could not read it."""
    values = parse_object(data)
    topic_id = optional_text(values, "topic_id")
    if topic_id is not None and not TOPIC_ID.match(topic_id):
        raise FormatError(f"topic_id {topic_id!r} is not 22 characters of base64", 0)
    known = ("version", "partitions", "adding_replicas", "removing_replicas", "topic_id")
    return TopicZnode(
        version=integer(values, "version", 1),
        partitions=_by_partition(values, "partitions"),
        adding_replicas=_by_partition(values, "adding_replicas"),
        removing_replicas=_by_partition(values, "removing_replicas"),
        topic_id=topic_id,
        other=others(values, *known) if len(values) > len(known) else {},
    )


def _by_partition(values: Object, key: str) -> dict[int, Replicas]:
    replicas_by_partition: dict[int, Replicas] = {}
    for name, replicas in mapping(values, key, required=False).items():
        # int() accepts more than Kafka: no blanks, no underscores, no other digits.
        if not re.fullmatch(r"-?[0-9]{1,10}", name):
            raise FormatError(f"{key} has the partition {name!r}, which is not a number", 0)
        replicas_by_partition[int(name)] = integer_list(replicas, f"{key}.{name}")
    return replicas_by_partition


def format_topic(topic: TopicZnode) -> bytes:
    """The JSON of a topic: adding and removing replicas from version 2 on, the id from version 3 on."""
    values: Object = {"version": topic.version, "partitions": _named(topic.partitions)}
    if topic.version >= 2:
        values["adding_replicas"] = _named(topic.adding_replicas)
        values["removing_replicas"] = _named(topic.removing_replicas)
    if topic.topic_id is not None:
        values["topic_id"] = topic.topic_id
    return encode({**values, **topic.other})


def _named(partitions: Mapping[int, Replicas]) -> Json:
    return {str(partition): list(replicas) for partition, replicas in sorted(partitions.items())}


def edit_topic(data: bytes | None, added: Mapping[int, Replicas]) -> bytes:
    """The same JSON with partitions added: every other key, known or not, stays as it is."""
    values = parse_object(data)
    partitions = mapping(values, "partitions")
    return encode(
        {**values, "partitions": {**partitions, **{str(p): list(r) for p, r in sorted(added.items())}}}
    )


class PartitionStateZnode(NamedTuple):
    """`.../partitions/P/state`. The znode's version is what AlterPartition calls the partition epoch."""

    leader: int
    leader_epoch: int
    isr: Replicas
    controller_epoch: int
    version: int = 1
    leader_recovery_state: int = 0  # 1: the leader was elected uncleanly and is still recovering (3.2+)


def parse_partition_state(data: bytes | None) -> PartitionStateZnode:
    """Leader and ISR. Raises FormatError if a controller could not read it."""
    values = parse_object(data)
    return PartitionStateZnode(
        integer(values, "leader"),
        integer(values, "leader_epoch"),
        integers(values, "isr"),
        integer(values, "controller_epoch"),
        integer(values, "version", 1),
        integer(values, "leader_recovery_state", 0),
    )


class ConfigZnode(Struct, frozen=True, kw_only=True):
    """`/config/TYPE/NAME`: the values set, as text."""

    config: dict[str, str]
    version: int = 1
    other: Object = field(default_factory=dict)


def parse_config(data: bytes | None) -> ConfigZnode:
    """An entity's configuration. Values that are not text raise FormatError: brokers choke on them."""
    values = parse_object(data)
    return ConfigZnode(
        config=texts(values, "config"),
        version=integer(values, "version", 1),
        other=others(values, "version", "config"),
    )


def format_config(config: Mapping[str, str], other: Mapping[str, Json] | None = None) -> bytes:
    """The JSON of a configuration, keys sorted, unknown top-level keys behind it."""
    return encode({"version": 1, "config": dict(sorted(config.items())), **(other or {})})


class ProducerIdBlock(NamedTuple):
    """`/latest_producer_id_block`: the last block of ids, both ends included; a KRaft controller writes broker -1."""

    broker_id: int
    block_start: int
    block_end: int
    other: Object

    @property
    def next_producer_id(self) -> int:
        """The first free id: a KRaft controller writes the block that it will assign next."""
        return self.block_start if self.broker_id == -1 else self.block_end + 1


def parse_producer_id_block(data: bytes | None) -> ProducerIdBlock:
    """The last block of producer ids."""
    values = parse_object(data)
    integer(values, "version", 1)
    return ProducerIdBlock(
        integer(values, "broker"),
        required_long(values, "block_start"),
        required_long(values, "block_end"),
        others(values, "version", "broker", "block_start", "block_end"),
    )


class MigrationZnode(NamedTuple):
    """`/migration`: the progress of a KRaft controller in copying the cluster; all -1 before it has begun."""

    kraft_controller_id: int
    kraft_controller_epoch: int
    kraft_metadata_offset: int
    kraft_metadata_epoch: int
    other: Object


def parse_migration(data: bytes | None) -> MigrationZnode:
    """The migration to KRaft."""
    values = parse_object(data)
    integer(values, "version")
    controller_id, controller_epoch, offset, epoch = (
        integer(values, key) for key in MigrationZnode._fields[:-1]
    )
    other = others(values, "version", *MigrationZnode._fields)
    return MigrationZnode(controller_id, controller_epoch, offset, epoch, other)


def parse_features(data: bytes | None) -> tuple[int, int, Object, Object]:
    """`/feature`: its status (0 disabled, 1 enabled), version, levels by name, and unknown keys."""
    values = parse_object(data)
    status, version = integer(values, "status"), integer(values, "version")
    if status not in (0, 1):
        raise FormatError(f"status is {status}, neither 0 (disabled) nor 1 (enabled)", 0)
    levels = mapping(values, "features", required=False)
    return status, version, levels, others(values, "version", "status", "features")
