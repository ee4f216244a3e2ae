"""The znode writes of each intent, computed from a fresh read of everything that they change. Nothing here writes.

Every transaction begins with checks that the controller and its epoch are those that were read: it fails when
another broker has become controller, and when a KRaft quorum has claimed the cluster.

The controller checks nothing of the requests for reassignments and preferred elections, and each wrong entry wedges
it in its own way, so everything is checked here: replicas non-empty, unique, alive; partitions known, with a leader
once elected; no request under way. The request is created and never edited, because only its creation is an event.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from formats.errors import FormatError
from formats.znodes import cluster as znodes
from formats.znodes.requests import (
    ConfigChange,
    Requested,
    format_election,
    format_reassignment,
    parse_reassignment,
)
from kctl.access.users import password_not_kept
from kctl.changes.intents import Several
from kctl.changes.kinds.access import DeleteScram, SetScram
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.elections import ElectPreferred, MoveController
from kctl.changes.kinds.reassignments import Reassign, ReplaceStuckReassignment
from kctl.changes.kinds.throttles import ClearThrottle
from kctl.changes.kinds.topics import AddPartitions, CreateTopic, DeleteTopic
from kctl.cluster import names
from kctl.cluster.intent import Intent, PlainWrite, Write
from kctl.cluster.interface import Conflict, refuse_changed
from kctl.cluster.preflight import check_growth, check_origin, check_preferred, check_target
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.versions import V0_9, V0_10_1, V2_4, V2_8, KafkaVersion
from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition
from kctl.times import utc_text
from kctl.zookeeper.access import iterations_of, read_users
from kctl.zookeeper.acl_writes import alter_acls
from kctl.zookeeper.fresh import FreshZnodes, missing_parents, set_or_create
from kctl.zookeeper.store import LARGEST_REQUEST, Znode, ZnodeStore

T = TypeVar("T")
CHANGES = "/config/changes"
NOTIFICATION = f"{CHANGES}/config_change_"
REASSIGNMENT = "/admin/reassign_partitions"
ELECTION = "/admin/preferred_replica_election"


def guards(fresh: FreshZnodes) -> list[Write]:
    """The checks at the start of every transaction. Raises Refused during a migration to KRaft."""
    controller, epoch, migration = fresh.get("/controller", "/controller_epoch", "/migration")
    refuse_migration(controller, migration)
    return [
        PlainWrite(action="check", target=path, version=node.stat.version, before=node.data)
        for path, node in (("/controller", controller), ("/controller_epoch", epoch))
        if node is not None
    ]


def refuse_migration(controller: Znode | None, migration: Znode | None) -> None:
    """Nothing watches requests in ZooKeeper once a KRaft quorum has claimed the cluster, and it overwrites them."""
    claimed = controller is not None and controller.stat.ephemeral_owner == 0
    if migration is not None or claimed:
        sign = "/migration exists" if migration is not None else "/controller is persistent"
        raise Refused(
            f"the cluster is under migration to KRaft ({sign}); nothing was written",
            "use --bootstrap-server",
        )


# --- topics -------------------------------------------------------------------------------------------


def create_topic(fresh: FreshZnodes, intent: CreateTopic) -> list[Write]:
    """The topic's configuration, as Kafka's tool always writes it, and the topic."""
    topic_path, config_path = f"/brokers/topics/{intent.topic}", f"/config/topics/{intent.topic}"
    topic, config, marker = fresh.get(topic_path, config_path, f"/admin/delete_topics/{intent.topic}")
    if marker is not None:
        raise names.topic_leaving(intent.topic)
    if topic is not None:
        raise names.topic_exists(intent.topic)
    form = 3 if fresh.version >= V2_8 else 2 if fresh.version >= V2_4 else 1
    # No id: a controller of 2.8 and later assigns one, as it does for Kafka's own tool.
    data = znodes.format_topic(znodes.TopicZnode(version=form, partitions=dict(intent.replicas)))
    return [
        set_or_create(config_path, config, znodes.format_config(intent.configs)),
        PlainWrite(action="create", target=topic_path, after=data),
    ]


def topic_paths(name: str) -> tuple[str, str]:
    """The topic, and the marker of its deletion."""
    return f"/brokers/topics/{name}", f"/admin/delete_topics/{name}"


def existing_topic(fresh: FreshZnodes, name: str) -> Znode:
    """The topic's znode. Raises KctlError for an unknown topic, Refused for one that is being deleted."""
    topic, marker = fresh.get(*topic_paths(name))
    if topic is None:
        raise names.unknown_topics([name], fresh.state.topic_names)
    if marker is not None:
        raise names.topic_leaving(name)
    return topic


def delete_topic(fresh: FreshZnodes, intent: DeleteTopic) -> list[Write]:
    """The marker that the controller acts on."""
    topic = existing_topic(fresh, intent.topic)
    return [
        PlainWrite(action="check", target=f"/brokers/topics/{intent.topic}", version=topic.stat.version),
        PlainWrite(action="create", target=f"/admin/delete_topics/{intent.topic}", after=b""),
    ]


def add_partitions(fresh: FreshZnodes, intent: AddPartitions) -> list[Write]:
    """The topic's own JSON with more partitions: every other key stays, known or not."""
    path = f"/brokers/topics/{intent.topic}"
    node = existing_topic(fresh, intent.topic)
    present = parse_existing(path, node, znodes.parse_topic)
    known = fresh.state.topics.get(intent.topic)
    check_growth(
        intent.topic, present.partitions, intent.replicas, None if known is None else known.partitions
    )
    data = znodes.edit_topic(node.data, intent.replicas)
    return [PlainWrite(action="set", target=path, after=data, before=node.data, version=node.stat.version)]


def parse_existing(path: str, node: Znode, parser: Callable[[bytes], T]) -> T:
    """A znode that must be readable, because it is about to be rewritten or its topic moved."""
    try:
        return parser(node.data)
    except FormatError as error:
        raise Refused(
            f"{path} cannot be read ({error.what}); nothing was written", "repair it first"
        ) from error


# --- configurations -----------------------------------------------------------------------------------


def alter_config(fresh: FreshZnodes, intent: AlterConfig) -> list[Write]:
    """The entity's whole configuration, and the notification that brokers look for."""
    return alter_configs(fresh, [intent])


def clear_throttle(fresh: FreshZnodes, intent: ClearThrottle) -> list[Write]:
    """The configurations without a reassignment's throttles, where they are still set."""
    from kctl.changes.kinds.throttles import clearing_changes

    return alter_configs(fresh, clearing_changes(intent, fresh.state))


def alter_configs(fresh: FreshZnodes, intents: Iterable[AlterConfig]) -> list[Write]:
    """Several entities in one transaction; several changes of one entity become one write."""
    merged: dict[tuple[str, str], list[AlterConfig]] = {}
    for intent in intents:
        merged.setdefault((intent.entity_type, intent.entity_name), []).append(intent)
    fresh.get(*(f"/config/{kind}/{name}" for kind, name in merged), "/config/changes")
    fresh.get(*(path for kind, name in merged if kind == "topics" for path in topic_paths(name)))
    writes: list[Write] = []
    made: set[str] = set()
    # A user before the user with a client: its znode is the parent of the other.
    for (kind, name), changes in sorted(merged.items(), key=lambda item: item[0][1].count("/")):
        writes += _one_entity(fresh, kind, name, changes, made)
    return writes


def _one_entity(
    fresh: FreshZnodes, kind: str, name: str, changes: Iterable[AlterConfig], made: set[str]
) -> list[Write]:
    path = f"/config/{kind}/{name}"
    checks: list[Write] = []
    if kind == "topics":
        topic = existing_topic(fresh, name)
        checks.append(
            PlainWrite(action="check", target=f"/brokers/topics/{name}", version=topic.stat.version)
        )
    (node,) = fresh.get(path)
    present = (
        parse_existing(path, node, znodes.parse_config)
        if node and node.data
        else znodes.ConfigZnode(config={})
    )
    values = dict(present.config)
    for change in changes:
        refuse_changed(kind, name, change.before, values)
        for key, value in change.after.items():
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
    write = set_or_create(path, node, znodes.format_config(values, present.other))
    made.add(path)
    parents = [*missing_parents(fresh, path, made), *missing_parents(fresh, NOTIFICATION, made)]
    change_data = ConfigChange(notification_form(fresh.version, kind), f"{kind}/{name}").encode()
    notification = PlainWrite(action="create", target=NOTIFICATION, after=change_data, sequence=True)
    return [*checks, *parents, write, notification]


def several(fresh: FreshZnodes, intent: Several) -> list[Write]:
    """The writes of each in one transaction; configurations together, since they share what is created."""
    configs = [part for part in intent.parts if isinstance(part, AlterConfig)]
    others = [part for part in intent.parts if not isinstance(part, AlterConfig)]
    table = translations()
    return [
        *alter_configs(fresh, configs),
        *(write for part in others for write in table[part.kind](fresh, part)),
    ]


def notification_form(version: KafkaVersion, entity_type: str) -> int:
    """The form (of three) that the oldest broker reads. Raises Refused if it knows no such entity."""
    if version >= V0_10_1:
        return 2
    allowed = ("topics",) if version < V0_9 else ("topics", "clients")
    if entity_type not in allowed:
        raise Refused(
            f"Kafka {version} has no configuration of {entity_type}; nothing was written",
            "check --kafka-version",
        )
    return 0 if version < V0_9 else 1


# --- users --------------------------------------------------------------------------------------------


def set_scram(fresh: FreshZnodes, intent: SetScram) -> list[Write]:
    """Nothing: the password is known only while the command runs that was given it. Raises Refused."""
    raise password_not_kept(intent)


def scram_writes(
    store: ZnodeStore, intent: SetScram, credentials: Mapping[str, str], state: ClusterState
) -> tuple[Write, ...]:
    """The transaction that gives a user credentials, as they stand in znodes. Raises Refused if there are others now."""
    fresh = FreshZnodes(store, state)
    _refuse_other_credentials(
        fresh, intent.user, dict.fromkeys(intent.mechanisms), intent.previous_mechanisms
    )
    change = AlterConfig(
        entity_type="users", entity_name=names.sanitized(intent.user), after=credentials, before={}
    )
    return (*guards(fresh), *alter_configs(fresh, [change]))


def delete_scram(fresh: FreshZnodes, intent: DeleteScram) -> list[Write]:
    """The user's configuration without the credentials."""
    _refuse_other_credentials(fresh, intent.user, intent.mechanisms, intent.mechanisms)
    gone = dict.fromkeys(intent.mechanisms)
    return alter_configs(
        fresh,
        [AlterConfig(entity_type="users", entity_name=names.sanitized(intent.user), after=gone, before={})],
    )


def _refuse_other_credentials(
    fresh: FreshZnodes, user: str, mechanisms: Iterable[str], expected: Mapping[str, int]
) -> None:
    present = read_users(fresh.store, []).get(user, {})
    for mechanism in mechanisms:
        iterations = iterations_of(present.get(mechanism))
        if iterations != expected.get(mechanism):
            raise Conflict(f"{mechanism} of user {user} was changed by somebody else; nothing was written")


# --- the controller -----------------------------------------------------------------------------------


def move_controller(fresh: FreshZnodes, intent: MoveController) -> list[Write]:
    """Delete the ephemeral node of the controller that was read, and nobody else's."""
    controller, migration = fresh.get("/controller", "/migration")
    refuse_migration(controller, migration)
    present = fresh.state.controller
    if controller is None or present is None or present.broker_id != intent.broker_id:
        raise Conflict(f"broker {intent.broker_id} is no longer the controller; nothing was written")
    return [
        PlainWrite(
            action="delete", target="/controller", before=controller.data, version=controller.stat.version
        )
    ]


# --- requests to the controller -----------------------------------------------------------------------

CHECKED_TOPICS = 300  # version checks in one transaction


def reassign(fresh: FreshZnodes, intent: Reassign) -> list[Write]:
    """Throttles, and the request, in one transaction that fails if a topic has changed since it was read."""
    _refuse_under_way(fresh, REASSIGNMENT, "reassignment")
    checks = _check_moves(fresh, intent.targets, intent.origins)
    own = {check.target for check in checks}
    configs = alter_configs(fresh, intent.config_changes)
    # The same version check twice in one transaction is legal but says nothing more.
    configs = [w for w in configs if not (w.action == "check" and w.target in own)]
    return [
        *checks,
        *configs,
        PlainWrite(action="create", target=REASSIGNMENT, after=reassignment_data(intent.targets)),
    ]


def reassignment_data(targets: Mapping[TopicPartition, Replicas]) -> bytes:
    """The request's content: topic, partition and replicas, and nothing else."""
    return format_reassignment(Requested(tp.topic, tp.partition, r) for tp, r in sorted(targets.items()))


def _refuse_under_way(fresh: FreshZnodes, path: str, request: str) -> None:
    (node,) = fresh.get(path)
    if node is not None:
        raise Refused(
            f"another {request} is under way: {path} exists since {utc_text(node.stat.ctime)} "
            f"({len(node.data):,} bytes); nothing was written",
            "wait for it; deleting the znode does not cancel it",
        )


def _check_moves(
    fresh: FreshZnodes, targets: Mapping[TopicPartition, Replicas], origins: Mapping[TopicPartition, Replicas]
) -> list[Write]:
    live = fresh.live_brokers()
    topics: dict[str, tuple[Znode, znodes.TopicZnode]] = {}
    touched = sorted({tp.topic for tp in targets})
    fresh.get(*(path for name in touched for path in topic_paths(name)))
    for name in touched:
        node = existing_topic(fresh, name)
        topics[name] = node, parse_existing(f"/brokers/topics/{name}", node, znodes.parse_topic)
    for tp, target in sorted(targets.items()):
        check_target(tp, target, live.__contains__)
        topic = topics[tp.topic][1]
        present = topic.partitions.get(tp.partition)
        if present is None:
            raise names.unknown_partition(tp, topic.partitions)
        if topic.adding_replicas.get(tp.partition) or topic.removing_replicas.get(tp.partition):
            raise names.being_moved(tp)
        check_origin(tp, present, origins.get(tp))
    _refuse_leaderless(fresh, targets)
    _refuse_oversize(topics, targets)
    checked = list(topics.items())[:CHECKED_TOPICS]
    return [
        PlainWrite(action="check", target=f"/brokers/topics/{name}", version=node.stat.version)
        for name, (node, _) in checked
    ]


def _states(
    fresh: FreshZnodes, partitions: list[TopicPartition]
) -> dict[TopicPartition, znodes.PartitionStateZnode]:
    paths = [f"/brokers/topics/{tp.topic}/partitions/{tp.partition}/state" for tp in partitions]
    states = {}
    for tp, node in zip(partitions, fresh.get(*paths), strict=True):
        if node is not None:
            try:
                states[tp] = znodes.parse_partition_state(node.data)
            except FormatError as error:
                raise Refused(
                    f"the state of {tp} cannot be read ({error.what}); nothing was written", "repair it first"
                ) from error
    return states


def _refuse_leaderless(fresh: FreshZnodes, targets: Mapping[TopicPartition, Replicas]) -> None:
    states = _states(fresh, sorted(targets))
    without = [str(tp) for tp in sorted(targets) if tp not in states]
    if without:
        raise Refused(
            f"{', '.join(without[:5])} never had a leader, and a controller cannot move such a partition; "
            "nothing was written",
            "`kctl cluster health` shows what keeps them from a leader; leave them out of the plan until then",
        )


def _refuse_oversize(
    topics: Mapping[str, tuple[Znode, znodes.TopicZnode]], targets: Mapping[TopicPartition, Replicas]
) -> None:
    """While partitions move, a topic's znode holds old and new replicas, adding and removing ones."""
    by_topic: dict[str, dict[int, Replicas]] = {}
    for tp, target in targets.items():
        by_topic.setdefault(tp.topic, {})[tp.partition] = target
    for name, (_, topic) in topics.items():
        moving = by_topic[name]
        union = {
            p: (*moving.get(p, ()), *(b for b in r if b not in moving.get(p, ())))
            for p, r in topic.partitions.items()
        }
        adding = {p: tuple(b for b in r if b not in topic.partitions[p]) for p, r in moving.items()}
        removing = {p: tuple(b for b in topic.partitions[p] if b not in r) for p, r in moving.items()}
        form = znodes.TopicZnode(
            version=3, partitions=union, adding_replicas=adding, removing_replicas=removing, topic_id="A" * 22
        )
        size = len(znodes.format_topic(form))
        if size > LARGEST_REQUEST:
            raise Refused(
                f"/brokers/topics/{name} would grow to {size:,} bytes while its partitions move, "
                f"above ZooKeeper's limit; nothing was written",
                "move fewer of its partitions at a time",
            )


def elect_preferred(fresh: FreshZnodes, intent: ElectPreferred) -> list[Write]:
    """The election request, with only partitions that can be elected: any other would wedge the controller."""
    _refuse_under_way(fresh, ELECTION, "preferred election")
    live = fresh.live_brokers()
    partitions = sorted(intent.partitions)
    states = _states(fresh, partitions)
    touched = sorted({tp.topic for tp in partitions})
    fresh.get(*(path for name in touched for path in topic_paths(name)))
    topics = {
        name: parse_existing(f"/brokers/topics/{name}", existing_topic(fresh, name), znodes.parse_topic)
        for name in touched
    }
    for tp in partitions:
        replicas = topics[tp.topic].partitions.get(tp.partition)
        if not replicas:
            raise KctlError(
                f"no partition {tp}" if replicas is None else f"{tp} has no replicas",
                "leave it out: `kctl znode get` shows what its topic's znode holds",
            )
        if tp not in states:
            raise Refused(
                f"{tp} never had a leader, and would block the election; nothing was written",
                "leave it out until it has a leader",
            )
        check_preferred(tp, replicas[0], states[tp].isr, live.__contains__)
    data = format_election(Requested(tp.topic, tp.partition) for tp in partitions)
    return [PlainWrite(action="create", target=ELECTION, after=data)]


def replace_stuck_reassignment(fresh: FreshZnodes, intent: ReplaceStuckReassignment) -> list[Write]:
    """Put the origin in the place of a request that never ends, and make another broker controller, at once.

    In one transaction, so that the old controller cannot act in between; the new one reads the request as it
    starts. Refused unless the request is still the stuck one and every broker to go back to is alive.
    """
    node, controller, migration = fresh.get(REASSIGNMENT, "/controller", "/migration")
    refuse_migration(controller, migration)
    if node is None:
        raise Conflict(
            "no reassignment is waiting any more; nothing was written",
            "nothing is left to cancel; `kctl reassign status` shows the moves",
        )
    try:
        waiting = {
            TopicPartition(r.topic, r.partition): r.replicas for r in parse_reassignment(node.data).partitions
        }
    except FormatError:
        waiting = {}
    if waiting != {tp: tuple(r) for tp, r in intent.stuck.items()}:
        raise Conflict(f"{REASSIGNMENT} has changed since the change was planned; nothing was written")
    live = fresh.live_brokers()
    for tp, target in sorted(intent.targets.items()):
        check_target(tp, target, live.__contains__)
    if controller is None:
        raise Refused(
            "there is no active controller to move; nothing was written",
            "wait until a broker is controller; `kctl cluster describe` shows which one is",
        )
    return [
        PlainWrite(action="delete", target=REASSIGNMENT, before=node.data, version=node.stat.version),
        PlainWrite(action="create", target=REASSIGNMENT, after=reassignment_data(intent.targets)),
        PlainWrite(
            action="delete", target="/controller", before=controller.data, version=controller.stat.version
        ),
    ]


Translation = Callable[[FreshZnodes, Any], list[Write]]


def translations() -> Mapping[str, Translation]:
    """The function that translates each kind of intent."""
    return {
        "create-topic": create_topic,
        "delete-topic": delete_topic,
        "add-partitions": add_partitions,
        "alter-config": alter_config,
        "several": several,
        "wait-until": lambda fresh, intent: [],
        "clear-throttle": clear_throttle,
        "move-controller": move_controller,
        "alter-acls": alter_acls,
        "set-scram": set_scram,
        "delete-scram": delete_scram,
        "reassign": reassign,
        "elect-preferred": elect_preferred,
        "replace-stuck-reassignment": replace_stuck_reassignment,
    }


def writes_for(store: ZnodeStore, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
    """The transaction of an intent; see `kctl.cluster.interface.Cluster.writes_for`."""
    fresh = FreshZnodes(store, state)
    translate = translations().get(intent.kind)
    if translate is None:
        raise Refused(f"{intent}: only brokers can do that; nothing was written", "give --bootstrap-server")
    writes = translate(fresh, intent)
    deletes_controller = any(w.action == "delete" and w.target == "/controller" for w in writes)
    first = [w for w in guards(fresh) if not (deletes_controller and w.target == "/controller")]
    return (*first, *writes)
