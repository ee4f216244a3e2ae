"""The metadata log of a KRaft controller as entities, with the offset of each last change.

The history of changes begins after the copy, which is one transaction of the log and ends with the record of the
migration's state: what differs from ZooKeeper and was changed later was copied, and then changed.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from formats.messages.cluster_metadata import (
    ACL_OPERATIONS,
    ACL_PERMISSIONS,
    PATTERN_TYPES,
    RESOURCE_TYPES,
)
from formats.messages.schema import Values
from formats.values import Struct, field
from formats.znodes.security import SCRAM_MECHANISMS
from kctl.errors import KctlError
from kctl.evidence.identity import read_identity
from kctl.internal_topics.cluster_image import (
    MIGRATION_STATES,
    RESOURCES,
    ClusterImage,
    LoggedRecord,
    read_image,
)
from kctl.internal_topics.reading import Unreadable
from kctl.migration.entities import (
    DEFAULT,
    NEXT_PRODUCER_ID,
    PRESENT,
    PRODUCER_IDS,
    Entities,
    Entity,
    acl_entity,
    acl_field,
    config_value,
    partition_entity,
    quota_entity,
    quota_value,
)

Touched = tuple[Entity, str | None]  # an entity, and a field of it or None for all
MIGRATION = MIGRATION_STATES.index("MIGRATION")


class History(Struct):
    """The offset of the last change of each field after the copy; call it after each record."""

    changes: dict[Touched, int] = field(default_factory=dict)
    copied_offset: int | None = None  # None: not copied, or before the log begins
    copied_at: int | None = None  # milliseconds
    _names: dict[str, str] = field(default_factory=dict)  # of topics by id
    _rules: dict[str, Touched] = field(default_factory=dict)  # by id

    def __call__(self, image: ClusterImage, logged: LoggedRecord) -> None:
        offset, record = logged.offset, logged.record
        touched = list(self._touched(record.type, record.values))
        if offset is None:  # of a snapshot, which has no offsets of its own
            return
        if record.type == "ZK_MIGRATION_STATE_RECORD" and image.zk_migration_state == MIGRATION:
            self.copied_offset, self.copied_at = offset, image.timestamp
            self.changes.clear()
        self.changes.update(dict.fromkeys(touched, offset))

    def last(self, entity: Entity, name: str | None) -> int | None:
        """The offset of the last change of a field, of its entity or of its topic."""
        keys: list[Touched] = [(entity, name), (entity, None)]
        if entity.topic is not None:
            keys.append((Entity("topic", entity.topic), None))
        return max((self.changes[key] for key in keys if key in self.changes), default=None)

    def _touched(self, kind: str, values: Values) -> Iterator[Touched]:
        if kind == "TOPIC_RECORD":
            self._names[values["topic_id"]] = values["name"]
            yield Entity("topic", values["name"]), None
        elif kind == "REMOVE_TOPIC_RECORD":
            name = self._names.pop(values["topic_id"], None)
            if name is not None:
                yield Entity("topic", name), None
        elif kind in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            yield from self._of_partition(kind, values)
        elif kind == "CONFIG_RECORD":
            yield config_entity(values["resource_type"], values["resource_name"]), values["name"]
        elif kind == "CLIENT_QUOTA_RECORD":
            yield (
                quota_entity((part["entity_type"], part["entity_name"]) for part in values["entity"]),
                values["key"],
            )
        elif kind in ("USER_SCRAM_CREDENTIAL_RECORD", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"):
            yield Entity("user", values["name"]), mechanism_name(values["mechanism"])
        elif kind == "ACCESS_CONTROL_ENTRY_RECORD":
            self._rules[values["id"]] = rule_of(values)
            yield self._rules[values["id"]]
        elif kind == "REMOVE_ACCESS_CONTROL_ENTRY_RECORD":
            if values["id"] in self._rules:
                yield self._rules.pop(values["id"])
        elif kind in ("DELEGATION_TOKEN_RECORD", "REMOVE_DELEGATION_TOKEN_RECORD"):
            yield Entity("delegation_token", values["token_id"]), None
        elif kind in ("REGISTER_BROKER_RECORD", "UNREGISTER_BROKER_RECORD"):
            yield Entity("broker", str(values["broker_id"])), None
        elif kind == "PRODUCER_IDS_RECORD":
            yield Entity(PRODUCER_IDS, PRODUCER_IDS), NEXT_PRODUCER_ID

    def _of_partition(self, kind: str, values: Values) -> Iterator[Touched]:
        entity = partition_entity(self._names.get(values["topic_id"], ""), values["partition_id"])
        if kind == "PARTITION_RECORD":
            yield entity, None
            return
        for name in ("isr", "replicas", "adding_replicas", "removing_replicas"):
            if values[name] is not None:
                yield entity, name
        if values["leader"] != -2:
            yield entity, "leader"
            yield entity, "leader_epoch"


class KraftSide(Struct):
    """The metadata of a controller."""

    folder: Path
    image: ClusterImage
    history: History
    trouble: list[Unreadable]
    entities: Entities
    cluster_id: str | None  # from `meta.properties` beside the log

    @property
    def state(self) -> str:
        """The state of the migration, one of `MIGRATION_STATES`, else its number."""
        number = self.image.zk_migration_state
        return MIGRATION_STATES[number] if 0 <= number < len(MIGRATION_STATES) else str(number)

    @property
    def is_copied(self) -> bool:
        """Whether the metadata of ZooKeeper has been copied."""
        return self.state in ("MIGRATION", "POST_MIGRATION")

    @property
    def has_whole_history(self) -> bool:
        """Whether every change since the copy is known."""
        return self.history.copied_offset is not None


def read_kraft_side(folders: Iterable[Path]) -> KraftSide:
    """The metadata of the copy that reaches furthest. Raises KctlError if no copy has any."""
    sides, error = list[KraftSide](), None
    for folder in folders:
        history = History()
        try:
            image, trouble = read_image(folder, watch=history, whole_log=True)
            if not image.end_offset:
                raise KctlError(
                    f"{folder}: the log has no records",
                    "name a copy of a controller's __cluster_metadata-0 that was taken while it ran",
                )
        except KctlError as raised:
            error = raised
            continue
        sides.append(
            KraftSide(
                folder, image, history, trouble, entities_of(image), read_identity(folder.parent).cluster_id
            )
        )
    if not sides:
        raise error or KctlError("no metadata log", "name the folder of a controller's __cluster_metadata-0")
    return max(sides, key=lambda side: side.image.end_offset)


def config_entity(resource_type: int, name: str) -> Entity:
    """The entity of a configuration resource."""
    return Entity("config", f"{RESOURCES.get(resource_type, str(resource_type))} {name or DEFAULT}")


def mechanism_name(mechanism: int) -> str:
    """`SCRAM-SHA-256` or `SCRAM-SHA-512`, the number of another."""
    return SCRAM_MECHANISMS.get(mechanism, str(mechanism))


def rule_of(values: Values) -> Touched:
    """The resource of a rule and the rule."""
    entity = acl_entity(
        RESOURCE_TYPES.get(values["resource_type"], str(values["resource_type"])),
        values["resource_name"],
        PATTERN_TYPES.get(values["pattern_type"], str(values["pattern_type"])),
    )
    operation = ACL_OPERATIONS.get(values["operation"], str(values["operation"]))
    permission = ACL_PERMISSIONS.get(values["permission_type"], str(values["permission_type"]))
    return entity, acl_field(values["principal"], values["host"], operation, permission)


def _is_offline(image: ClusterImage, directory: str, broker_id: int) -> bool:
    """Whether a replica is in a log directory that its broker has not registered; ids below 100 are no directories."""
    broker = image.brokers.get(broker_id)
    is_known = broker is None or not broker.log_dirs or directory in broker.log_dirs
    return not is_known and not directory.startswith("A" * 20)


def entities_of(image: ClusterImage) -> Entities:
    """An image as entities."""
    entities: Entities = {}
    for topic_id, topic in image.names.items():
        entities[Entity("topic", topic)] = {"topic_id": topic_id}
        for number, partition in image.partitions.get(topic_id, {}).items():
            entities[partition_entity(topic, number)] = {
                "replicas": partition.replicas,
                "adding_replicas": partition.adding_replicas,
                "removing_replicas": partition.removing_replicas,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "isr": partition.isr,
            }
            if any(
                _is_offline(image, at, id)
                for at, id in zip(partition.directories, partition.replicas, strict=False)
            ):
                entities[partition_entity(topic, number)]["directories"] = partition.directories
    for (kind, name), values in image.configs.items():
        if values:
            entity = Entity("config", f"{kind} {name or DEFAULT}")
            entities[entity] = {key: config_value(key, value) for key, value in values.items()}
    for parts, quotas in image.quotas.items():
        if quotas:
            entities[quota_entity(parts)] = {key: quota_value(value) for key, value in quotas.items()}
    for (user, mechanism), digest in image.scram_users.items():
        entities.setdefault(Entity("user", user), {})[mechanism_name(mechanism)] = digest
    for values in image.acls.values():
        entity, rule = rule_of(values)
        entities.setdefault(entity, {})[str(rule)] = PRESENT
    for token_id, token in image.delegation_tokens.items():
        names = ("owner", "requester", "issue_timestamp", "max_timestamp", "expiration_timestamp")
        entities[Entity("delegation_token", token_id)] = {
            **{name: token[name] for name in names}, "renewers": sorted(token["renewers"]),
        }  # fmt: skip
    for broker_id, broker in image.brokers.items():
        ends = sorted(broker.end_points)
        entities[Entity("broker", str(broker_id))] = {"rack": broker.rack, "end_points": ends}
    if image.next_producer_id:
        entities[Entity(PRODUCER_IDS, PRODUCER_IDS)] = {NEXT_PRODUCER_ID: image.next_producer_id}
    for name, level in image.features.items():
        entities[Entity("feature", name)] = {"finalized_level": level}
    return entities
