"""The znode writes of each intent, worked out from a fresh read of everything that they touch.

Every transaction begins with checks that the controller and its epoch are those that were read: it fails when
another broker has become controller, and when a KRaft quorum has claimed the cluster. Nothing here writes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from formats.errors import FormatError
from formats.znode_requests import ConfigChange
from formats.znodes import (
    ConfigZnode,
    TopicZnode,
    edit_topic,
    format_config,
    format_topic,
    parse_config,
    parse_topic,
)
from kctl.changes.intents import (
    AddPartitions,
    AlterConfig,
    ClearThrottle,
    CreateTopic,
    DeleteTopic,
    Intent,
    MoveController,
)
from kctl.changes.plan import Write
from kctl.cluster.interface import Conflict
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import V0_9, V0_10_1, V2_4, V2_8, KafkaVersion
from kctl.errors import KctlError, Refused
from kctl.zookeeper.store import Znode, ZnodeStore, parent_of

CHANGES = "/config/changes"
NOTIFICATION = f"{CHANGES}/config_change_"
REASSIGNMENT = "/admin/reassign_partitions"
ELECTION = "/admin/preferred_replica_election"


@dataclass(frozen=True, slots=True)
class Desk:
    """What a translation works with: the store, what was freshly read from it, and the state of the plan."""

    store: ZnodeStore
    state: ClusterState
    read: dict[str, Znode | None] = field(default_factory=dict)

    @property
    def version(self) -> KafkaVersion:
        """Of the oldest broker."""
        return self.state.kafka_version

    def get(self, *paths: str) -> list[Znode | None]:
        """Znodes as they were when this translation first looked at them, all that are new in one read."""
        new = [path for path in dict.fromkeys(paths) if path not in self.read]
        if new:
            self.read.update(zip(new, self.store.get_many(new), strict=True))
        return [self.read[path] for path in paths]

    def live_brokers(self) -> set[int]:
        """Ids of the brokers that are registered now."""
        return {int(name) for name in self.store.children("/brokers/ids") or () if name.isdigit()}


def guards(desk: Desk) -> list[Write]:
    """Checks that stand first in every transaction. Raises Refused during a migration to KRaft."""
    controller, epoch, migration = desk.get("/controller", "/controller_epoch", "/migration")
    refuse_migration(controller, migration)
    return [
        Write(action="check", target=path, version=node.stat.version, before=node.data)
        for path, node in (("/controller", controller), ("/controller_epoch", epoch))
        if node is not None
    ]


def refuse_migration(controller: Znode | None, migration: Znode | None) -> None:
    """Nothing watches requests in ZooKeeper once a KRaft quorum has claimed the cluster, and it overwrites them."""
    claimed = controller is not None and controller.stat.ephemeral_owner == 0
    if migration is not None or claimed:
        what = "/migration exists" if migration is not None else "/controller is persistent"
        raise Refused(
            f"the cluster is under migration to KRaft ({what}); nothing was written",
            "change it over --bootstrap-server",
        )


def set_or_create(path: str, node: Znode | None, data: bytes) -> Write:
    """The write that gives a znode this content, from whichever state it was read in."""
    if node is None:
        return Write(action="create", target=path, after=data)
    return Write(action="set", target=path, after=data, before=node.data, version=node.stat.version)


# --- topics -------------------------------------------------------------------------------------------


def create_topic(desk: Desk, intent: CreateTopic) -> list[Write]:
    """The topic's configuration, as Kafka's tool always writes it, and the topic."""
    topic_path, config_path = f"/brokers/topics/{intent.topic}", f"/config/topics/{intent.topic}"
    topic, config, marker = desk.get(topic_path, config_path, f"/admin/delete_topics/{intent.topic}")
    if marker is not None:
        raise Refused(f"topic {intent.topic} is marked for deletion", "wait until it is gone")
    if topic is not None:
        raise Refused(f"topic {intent.topic} exists already")
    form = 3 if desk.version >= V2_8 else 2 if desk.version >= V2_4 else 1
    # No id from here: a controller of 2.8 and later gives one, as it does for Kafka's own tool.
    data = format_topic(TopicZnode(version=form, partitions=dict(intent.replicas)))
    return [
        set_or_create(config_path, config, format_config(intent.configs)),
        Write(action="create", target=topic_path, after=data),
    ]


def topic_paths(name: str) -> tuple[str, str]:
    """The topic, and the marker of its deletion."""
    return f"/brokers/topics/{name}", f"/admin/delete_topics/{name}"


def existing_topic(desk: Desk, name: str) -> Znode:
    """The topic's znode. Raises KctlError for an unknown topic, Refused for one that is being deleted."""
    topic, marker = desk.get(*topic_paths(name))
    if topic is None:
        raise KctlError(f"no topic {name}")
    if marker is not None:
        raise Refused(f"topic {name} is marked for deletion; nothing was written")
    return topic


def delete_topic(desk: Desk, intent: DeleteTopic) -> list[Write]:
    """The marker that the controller acts on."""
    topic = existing_topic(desk, intent.topic)
    return [
        Write(action="check", target=f"/brokers/topics/{intent.topic}", version=topic.stat.version),
        Write(action="create", target=f"/admin/delete_topics/{intent.topic}", after=b""),
    ]


def add_partitions(desk: Desk, intent: AddPartitions) -> list[Write]:
    """The topic's own JSON with more partitions: every other key stays, known or not."""
    path = f"/brokers/topics/{intent.topic}"
    node = existing_topic(desk, intent.topic)
    present = parse_existing(path, node)
    known = desk.state.topics.get(intent.topic)
    if known is not None and dict(known.partitions) != present.partitions:
        raise Conflict(f"topic {intent.topic} was changed by somebody else; nothing was written")
    wanted = range(len(present.partitions), len(present.partitions) + len(intent.replicas))
    if sorted(intent.replicas) != list(wanted) or sorted(present.partitions) != list(range(wanted.start)):
        raise Refused(
            f"partitions of {intent.topic} would not be numbered 0 to {wanted.stop - 1} without a gap"
        )
    data = edit_topic(node.data, intent.replicas)
    return [Write(action="set", target=path, after=data, before=node.data, version=node.stat.version)]


def parse_existing(path: str, node: Znode) -> TopicZnode:
    """A topic that must be readable, because it is about to be rewritten or moved."""
    try:
        return parse_topic(node.data)
    except FormatError as error:
        raise Refused(
            f"{path} cannot be read ({error.what}); nothing was written", "repair it first"
        ) from error


# --- configurations -----------------------------------------------------------------------------------


def alter_config(desk: Desk, intent: AlterConfig) -> list[Write]:
    """The entity's whole configuration, and the notification that brokers look for."""
    return alter_configs(desk, [intent])


def clear_throttle(desk: Desk, intent: ClearThrottle) -> list[Write]:
    """The configurations without a reassignment's throttles, as far as they are still there."""
    from kctl.cluster.throttles import clearing_changes

    return alter_configs(desk, clearing_changes(intent, desk.state))


def alter_configs(desk: Desk, intents: Iterable[AlterConfig]) -> list[Write]:
    """Several entities in one transaction; several changes of one entity become one write."""
    merged: dict[tuple[str, str], list[AlterConfig]] = {}
    for intent in intents:
        merged.setdefault((intent.entity_type, intent.entity_name), []).append(intent)
    desk.get(*(f"/config/{kind}/{name}" for kind, name in merged), "/config/changes")
    desk.get(*(path for kind, name in merged if kind == "topics" for path in topic_paths(name)))
    writes: list[Write] = []
    made: set[str] = set()
    for (kind, name), changes in merged.items():
        writes += _one_entity(desk, kind, name, changes, made)
    return writes


def _one_entity(
    desk: Desk, kind: str, name: str, changes: Iterable[AlterConfig], made: set[str]
) -> list[Write]:
    path = f"/config/{kind}/{name}"
    checks: list[Write] = []
    if kind == "topics":
        topic = existing_topic(desk, name)
        checks.append(Write(action="check", target=f"/brokers/topics/{name}", version=topic.stat.version))
    (node,) = desk.get(path)
    present = _parse_config(path, node)
    values = dict(present.config)
    for change in changes:
        for key, expected in change.before.items():
            if values.get(key) != expected:
                raise Conflict(
                    f"{key} of {kind.removesuffix('s')} {name} is {_shown(values.get(key))}, "
                    f"not {_shown(expected)} as it was read; nothing was written"
                )
        for key, value in change.after.items():
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
    write = set_or_create(path, node, format_config(values, present.other))
    parents = [*_missing_parents(desk, path, made), *_missing_parents(desk, NOTIFICATION, made)]
    change_data = ConfigChange(notification_form(desk.version, kind), f"{kind}/{name}").encode()
    notification = Write(action="create", target=NOTIFICATION, after=change_data, sequence=True)
    return [*checks, *parents, write, notification]


def _parse_config(path: str, node: Znode | None) -> ConfigZnode:
    if node is None or not node.data:
        return ConfigZnode(config={})
    try:
        return parse_config(node.data)
    except FormatError as error:
        raise Refused(
            f"{path} cannot be read ({error.what}); nothing was written", "repair it first"
        ) from error


def _missing_parents(desk: Desk, path: str, made: set[str]) -> list[Write]:
    """Creates for the folders above a path that are not there: brokers before 1.1 do not make all of them."""
    missing: list[Write] = []
    parent = parent_of(path)
    while parent not in ("/", "/config") and parent not in made and desk.get(parent)[0] is None:
        made.add(parent)
        missing.insert(0, Write(action="create", target=parent, after=b""))
        parent = parent_of(parent)
    return missing


def notification_form(version: KafkaVersion, entity_type: str) -> int:
    """Which of the three forms the oldest broker reads. Raises Refused where it knows no such entity."""
    if version >= V0_10_1:
        return 2
    allowed = ("topics",) if version < V0_9 else ("topics", "clients")
    if entity_type not in allowed:
        raise Refused(f"Kafka {version} has no configuration of {entity_type}; nothing was written")
    return 0 if version < V0_9 else 1


def _shown(value: str | None) -> str:
    return "not set" if value is None else repr(value)


# --- the controller -----------------------------------------------------------------------------------


def move_controller(desk: Desk, intent: MoveController) -> list[Write]:
    """Delete the ephemeral node of the controller that was read, and nobody else's."""
    controller, migration = desk.get("/controller", "/migration")
    refuse_migration(controller, migration)
    present = desk.state.controller
    if controller is None or present is None or present.broker_id != intent.broker_id:
        raise Conflict(f"broker {intent.broker_id} is not controller any more; nothing was written")
    return [
        Write(action="delete", target="/controller", before=controller.data, version=controller.stat.version)
    ]


Translation = Callable[[Desk, Any], list[Write]]


def translations() -> Mapping[str, Translation]:
    """Which function writes which intent."""
    from kctl.zookeeper.request_writes import elect_preferred, reassign, replace_stuck_reassignment

    return {
        "create-topic": create_topic,
        "delete-topic": delete_topic,
        "add-partitions": add_partitions,
        "alter-config": alter_config,
        "clear-throttle": clear_throttle,
        "move-controller": move_controller,
        "reassign": reassign,
        "elect-preferred": elect_preferred,
        "replace-stuck-reassignment": replace_stuck_reassignment,
    }


def writes_for(store: ZnodeStore, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
    """The transaction of an intent; see `kctl.cluster.interface.Cluster.writes_for`."""
    desk = Desk(store, state)
    writes = translations()[intent.kind](desk, intent)
    deletes_controller = any(w.action == "delete" and w.target == "/controller" for w in writes)
    first = [w for w in guards(desk) if not (deletes_controller and w.target == "/controller")]
    return (*first, *writes)
