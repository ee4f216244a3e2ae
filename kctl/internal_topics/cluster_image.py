"""The state of a KRaft cluster as of an offset of its metadata log: the newest snapshot before it, and the records since.

Source: metadata/src/main/java/org/apache/kafka/image/*Delta.java @ 3.9.0-rc3
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from formats.cluster_metadata import MetadataRecord
from formats.message_schema import Values

# Kinds of configuration resource (clients/.../config/ConfigResource.java @ 3.9.0-rc3).
RESOURCES = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
NO_LEADER_CHANGE = -2
SECRET_WORDS = ("password", "secret", "jaas", "keystore.key", "token")


@dataclass(slots=True)
class PartitionImage:
    """A partition as the controller has it."""

    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)
    eligible_leader_replicas: list[int] = field(default_factory=list)
    leader_recovery_state: int = 0


@dataclass(slots=True)
class BrokerImage:
    """A registered broker."""

    broker_epoch: int
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    end_points: list[str]


@dataclass(slots=True)
class ClusterImage:
    """Everything that the metadata log says up to `end_offset` (exclusive)."""

    end_offset: int = 0
    names: dict[str, str] = field(default_factory=dict)  # topic id to name
    partitions: dict[str, dict[int, PartitionImage]] = field(default_factory=dict)  # by topic id
    configs: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    controllers: list[int] = field(default_factory=list)
    features: dict[str, int] = field(default_factory=dict)
    quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = field(default_factory=dict)
    acls: dict[str, Values] = field(default_factory=dict)
    scram_users: set[tuple[str, int]] = field(default_factory=set)
    next_producer_id: int = 0
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    watch: "Callable[[ClusterImage, MetadataRecord], None] | None" = None
    """Called after each record that counts."""

    def apply(self, records: Iterable[tuple[int, MetadataRecord]]) -> None:
        """Take in records with their offsets; those of an aborted transaction never count (KIP-868)."""
        pending: list[tuple[int, MetadataRecord]] | None = None
        for offset, record in records:
            if record.type == "BEGIN_TRANSACTION_RECORD":
                pending = []
            elif record.type == "END_TRANSACTION_RECORD":
                for held in pending or ():
                    self._take(*held)
                pending = None
            elif record.type == "ABORT_TRANSACTION_RECORD":
                pending = None
            elif pending is not None:
                pending.append((offset, record))
            else:
                self._take(offset, record)

    def _take(self, offset: int, record: MetadataRecord) -> None:
        self.end_offset = max(self.end_offset, offset + 1)
        fold = FOLDS.get(record.type)
        if fold:
            fold(self, record.values)
        elif record.type not in SAYS_NOTHING:
            self.left_out[record.type] = self.left_out.get(record.type, 0) + 1
        if self.watch:
            self.watch(self, record)


def _topic(image: ClusterImage, values: Values) -> None:
    image.names[values["topic_id"]] = values["name"]
    image.partitions[values["topic_id"]] = {}


def _remove_topic(image: ClusterImage, values: Values) -> None:
    name = image.names.pop(values["topic_id"], None)
    image.partitions.pop(values["topic_id"], None)
    image.configs.pop(("topic", name or ""), None)


def _partition(image: ClusterImage, values: Values) -> None:
    image.partitions.setdefault(values["topic_id"], {})[values["partition_id"]] = PartitionImage(
        values["replicas"], values["isr"], values["leader"], values["leader_epoch"], values["partition_epoch"],
        values["adding_replicas"], values["removing_replicas"], values["eligible_leader_replicas"] or [],
        values["leader_recovery_state"],
    )  # fmt: skip


def _partition_change(image: ClusterImage, values: Values) -> None:
    partition = image.partitions.get(values["topic_id"], {}).get(values["partition_id"])
    if partition is None:
        return
    for name in ("replicas", "isr", "adding_replicas", "removing_replicas", "eligible_leader_replicas"):
        if values[name] is not None:
            setattr(partition, name, values[name])
    if values["leader"] != NO_LEADER_CHANGE:
        partition.leader = values["leader"]
        partition.leader_epoch += 1
    if values["leader_recovery_state"] >= 0:
        partition.leader_recovery_state = values["leader_recovery_state"]
    partition.partition_epoch += 1


def _config(image: ClusterImage, values: Values) -> None:
    key = (RESOURCES.get(values["resource_type"], str(values["resource_type"])), values["resource_name"])
    kept = image.configs.setdefault(key, {})
    if values["value"] is None:
        kept.pop(values["name"], None)
    else:
        kept[values["name"]] = values["value"]


def _register_broker(image: ClusterImage, values: Values) -> None:
    ends = [f"{one['name']}://{one['host']}:{one['port']}" for one in values["end_points"]]
    image.brokers[values["broker_id"]] = BrokerImage(
        values["broker_epoch"], values["rack"], values["fenced"], values["in_controlled_shutdown"], ends
    )


def _change_broker(image: ClusterImage, values: Values) -> None:
    broker = image.brokers.get(values["broker_id"])
    if broker:
        broker.fenced = {1: True, -1: False}.get(values["fenced"], broker.fenced)
        broker.in_controlled_shutdown = broker.in_controlled_shutdown or values["in_controlled_shutdown"] == 1


def _fence(fenced: bool) -> "Callable[[ClusterImage, Values], None]":
    def fold(image: ClusterImage, values: Values) -> None:
        if values["id"] in image.brokers:
            image.brokers[values["id"]].fenced = fenced

    return fold


def _unregister_broker(image: ClusterImage, values: Values) -> None:
    image.brokers.pop(values["broker_id"], None)


def _feature(image: ClusterImage, values: Values) -> None:
    if values["feature_level"]:
        image.features[values["name"]] = values["feature_level"]
    else:
        image.features.pop(values["name"], None)


def _quota(image: ClusterImage, values: Values) -> None:
    entity = tuple(sorted((one["entity_type"], one["entity_name"]) for one in values["entity"]))
    kept = image.quotas.setdefault(entity, {})
    if values["remove"]:
        kept.pop(values["key"], None)
    else:
        kept[values["key"]] = values["value"]


def _producer_ids(image: ClusterImage, values: Values) -> None:
    image.next_producer_id = values["next_producer_id"]


def _controller(image: ClusterImage, values: Values) -> None:
    if values["controller_id"] not in image.controllers:
        image.controllers.append(values["controller_id"])


def _scram(image: ClusterImage, values: Values) -> None:
    image.scram_users.add((values["name"], values["mechanism"]))


def _remove_scram(image: ClusterImage, values: Values) -> None:
    image.scram_users.discard((values["name"], values["mechanism"]))


def _acl(image: ClusterImage, values: Values) -> None:
    image.acls[values["id"]] = {key: value for key, value in values.items() if key != "id"}


def _remove_acl(image: ClusterImage, values: Values) -> None:
    image.acls.pop(values["id"], None)


# What each type of record does to the image.
FOLDS: dict[str, Callable[[ClusterImage, Values], None]] = {
    "TOPIC_RECORD": _topic,
    "REMOVE_TOPIC_RECORD": _remove_topic,
    "PARTITION_RECORD": _partition,
    "PARTITION_CHANGE_RECORD": _partition_change,
    "CONFIG_RECORD": _config,
    "REGISTER_BROKER_RECORD": _register_broker,
    "BROKER_REGISTRATION_CHANGE_RECORD": _change_broker,
    "FENCE_BROKER_RECORD": _fence(True),
    "UNFENCE_BROKER_RECORD": _fence(False),
    "UNREGISTER_BROKER_RECORD": _unregister_broker,
    "FEATURE_LEVEL_RECORD": _feature,
    "CLIENT_QUOTA_RECORD": _quota,
    "PRODUCER_IDS_RECORD": _producer_ids,
    "REGISTER_CONTROLLER_RECORD": _controller,
    "USER_SCRAM_CREDENTIAL_RECORD": _scram,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": _remove_scram,
    "ACCESS_CONTROL_ENTRY_RECORD": _acl,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": _remove_acl,
}
SAYS_NOTHING = frozenset(
    {"NO_OP_RECORD", "ZK_MIGRATION_STATE_RECORD", "DELEGATION_TOKEN_RECORD", "REMOVE_DELEGATION_TOKEN_RECORD"}
)


def shown_value(name: str, value: Any) -> str:
    """A configuration's value, a secret one not."""
    return "(hidden)" if any(word in name.lower() for word in SECRET_WORDS) else str(value)
