"""The rest of the znodes with JSON in them: features, migration, producer ids, notifications, tokens, ACLs, old consumers.

Each is a value that keeps the keys it does not know in `other`, and goes back to the JSON that Kafka writes.

Source: core/src/main/scala/kafka/zk/ZkData.scala @ 1.1.1, 2.0.1, 2.8.2, 3.4.1, 3.9.0-rc3;
kafka/utils/ZkUtils.scala @ 0.8.2.1
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from formats.errors import FormatError
from formats.znode_json import (
    Json,
    Object,
    encode,
    integer,
    long_text,
    mapping,
    objects,
    optional_text,
    parse_object,
    text,
)
from formats.znodes import others


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIdZnode:
    """`/cluster/id`. Its version is text, unlike everywhere else."""

    id: str
    version: str = "1"
    other: Object = field(default_factory=dict)

    def encode(self) -> bytes:
        """As the first broker writes it."""
        return encode({"version": self.version, "id": self.id, **self.other})


def parse_cluster_id(data: bytes | None) -> ClusterIdZnode:
    """The cluster's id."""
    values = parse_object(data)
    version = values.get("version", "1")
    return ClusterIdZnode(id=text(values, "id"), version=str(version), other=others(values, "id", "version"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureZnode:
    """`/feature` (2.7 and later). `status` 0: disabled, 1: enabled."""

    version: int
    status: int
    features: Object
    other: Object = field(default_factory=dict)

    def encode(self) -> bytes:
        """As the controller writes it."""
        return encode(
            {"version": self.version, "status": self.status, "features": self.features, **self.other}
        )


def parse_feature(data: bytes | None) -> FeatureZnode:
    """The finalised features."""
    values = parse_object(data)
    status = integer(values, "status")
    if status not in (0, 1):
        raise FormatError(f"status is {status}, neither 0 (disabled) nor 1 (enabled)", 0)
    return FeatureZnode(
        version=integer(values, "version"),
        status=status,
        features=mapping(values, "features", required=False),
        other=others(values, "version", "status", "features"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationZnode:
    """`/migration` (3.4 and later): how far a KRaft quorum has copied the cluster."""

    version: int
    kraft_controller_id: int
    kraft_controller_epoch: int
    kraft_metadata_offset: int  # above 0 once the first copy is complete
    kraft_metadata_epoch: int
    other: Object = field(default_factory=dict)

    def encode(self) -> bytes:
        """As the KRaft controller writes it."""
        names = MIGRATION_KEYS
        return encode({**{name: getattr(self, name) for name in names}, **self.other})


MIGRATION_KEYS = (
    "version",
    "kraft_controller_id",
    "kraft_controller_epoch",
    "kraft_metadata_offset",
    "kraft_metadata_epoch",
)


def parse_migration(data: bytes | None) -> MigrationZnode:
    """The state of the migration."""
    values = parse_object(data)
    numbers = {name: integer(values, name) for name in MIGRATION_KEYS}
    return MigrationZnode(**numbers, other=others(values, *MIGRATION_KEYS))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdBlockZnode:
    """`/latest_producer_id_block`: the producer ids [block_start, block_end] that a broker has taken."""

    broker: int
    block_start: int
    block_end: int
    version: int = 1
    other: Object = field(default_factory=dict)

    def encode(self) -> bytes:
        """As the broker writes it: the numbers as text."""
        values: Object = {"version": self.version, "broker": self.broker}
        return encode(
            {**values, "block_start": str(self.block_start), "block_end": str(self.block_end), **self.other}
        )


def parse_producer_id_block(data: bytes | None) -> ProducerIdBlockZnode:
    """The latest block."""
    values = parse_object(data)
    return ProducerIdBlockZnode(
        broker=integer(values, "broker"),
        block_start=_required(long_text(values, "block_start"), "block_start"),
        block_end=_required(long_text(values, "block_end"), "block_end"),
        version=integer(values, "version", 1),
        other=others(values, "version", "broker", "block_start", "block_end"),
    )


def _required(value: int | None, key: str) -> int:
    if value is None:
        raise FormatError(f"no key {key!r} (a number written as text)", 0)
    return value


class LogDirEventZnode(NamedTuple):
    """A child of `/log_dir_event_notification`: a broker has lost a log directory (event 1)."""

    broker: int
    event: int
    version: int = 1

    def encode(self) -> bytes:
        """As the broker writes it."""
        return encode({"version": self.version, "broker": self.broker, "event": self.event})


def parse_log_dir_event(data: bytes | None) -> LogDirEventZnode:
    """Which broker."""
    values = parse_object(data)
    return LogDirEventZnode(
        integer(values, "broker"), integer(values, "event"), integer(values, "version", 1)
    )


class AclEntry(NamedTuple):
    """One rule of an ACL."""

    principal: str
    permission_type: str
    operation: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AclZnode:
    """`/kafka-acl/TYPE/NAME` and `/kafka-acl-extended/prefixed/TYPE/NAME`."""

    acls: tuple[AclEntry, ...]
    version: int = 1
    other: Object = field(default_factory=dict)

    def encode(self) -> bytes:
        """As the authorizer writes it."""
        rows: list[Json] = [
            {
                "principal": a.principal,
                "permissionType": a.permission_type,
                "operation": a.operation,
                "host": a.host,
            }
            for a in self.acls
        ]
        return encode({"version": self.version, "acls": rows, **self.other})


def parse_acl(data: bytes | None) -> AclZnode:
    """The rules of a resource."""
    values = parse_object(data)
    rows = objects(values, "acls")
    keys = ("principal", "permissionType", "operation", "host")
    return AclZnode(
        acls=tuple(AclEntry(*(text(row, key) for key in keys)) for row in rows),
        version=integer(values, "version", 1),
        other=others(values, "version", "acls"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerZnode:
    """`/consumers/GROUP/ids/ID`: an old consumer and what it subscribes to, streams by topic or pattern."""

    subscription: dict[str, int]
    pattern: str  # static, white_list or black_list
    timestamp: int | None = None  # milliseconds
    version: int = 1
    other: Object = field(default_factory=dict)

    def encode(self) -> bytes:
        """As the consumer writes it."""
        values: Object = {
            "version": self.version,
            "subscription": dict(self.subscription),
            "pattern": self.pattern,
        }
        if self.timestamp is not None:
            values["timestamp"] = str(self.timestamp)
        return encode({**values, **self.other})


def parse_consumer(data: bytes | None) -> ConsumerZnode:
    """An old consumer's registration."""
    values = parse_object(data)
    streams = mapping(values, "subscription")
    return ConsumerZnode(
        subscription={topic: integer(streams, topic) for topic in streams},
        pattern=optional_text(values, "pattern") or "static",
        timestamp=long_text(values, "timestamp"),
        version=integer(values, "version", 1),
        other=others(values, "version", "subscription", "pattern", "timestamp"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokenZnode:
    """`/delegation_token/tokens/ID` (1.1 and later); times are milliseconds. The secret itself is not stored."""

    owner: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int
    token_id: str
    version: int = 1
    other: Object = field(default_factory=dict)


TOKEN_KEYS = ("version", "owner", "renewers", "issueTimestamp", "maxTimestamp", "expiryTimestamp", "tokenId")


def parse_delegation_token(data: bytes | None) -> DelegationTokenZnode:
    """A delegation token."""
    values = parse_object(data)
    renewers = values.get("renewers") or []
    if not isinstance(renewers, list):
        raise FormatError("renewers is not a list", 0)
    times = [_required(long_text(values, key), key) for key in TOKEN_KEYS[3:6]]
    return DelegationTokenZnode(
        owner=text(values, "owner"),
        renewers=tuple(map(str, renewers)),
        issue_timestamp=times[0],
        max_timestamp=times[1],
        expiry_timestamp=times[2],
        token_id=text(values, "tokenId"),
        version=integer(values, "version", 1),
        other=others(values, *TOKEN_KEYS),
    )
