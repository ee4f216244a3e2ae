"""Topics: plans to create, delete and grow them.

The brokers check nothing of what is written to ZooKeeper: everything that Kafka's own tool of the target
version would refuse is refused here, and what it accepts but would be stuck for ever as well.
"""

from collections.abc import Mapping, Sequence
from random import Random

from formats.values import Struct, field
from formats.words import counted
from kctl.changes.kinds.topics import AddPartitions, CreateTopic, DeleteTopic, why_stuck, without_controller
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.interface import Cluster
from kctl.cluster.names import (
    absent_topics,
    brokers_named,
    check_topic_name,
    is_internal,
    refuse_collision,
    topic_exists,
    topic_leaving,
)
from kctl.cluster.partition_health import too_many_in_sync
from kctl.cluster.placement import Draws, draw, draws_for_added, place_replicas
from kctl.cluster.state import ClusterState, Replicas, Topic
from kctl.cluster.versions import V1_0, KafkaVersion
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import TopicPartition
from kctl.operations.configs import MIN_ISR, check_values


class NewTopic(Struct, frozen=True, kw_only=True):
    """A topic to create: counts, or explicit replicas (the first is preferred)."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    replicas: Mapping[int, Replicas] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    rack_aware: bool = True
    draws: Draws | None = None  # None: drawn at random, as Kafka does
    allow_dead: bool = False  # explicit replicas on brokers that are not alive


def parse_replica_assignment(text: str) -> dict[int, Replicas]:
    """Kafka's form `1:2,2:3,3:1`: partitions by comma, the replicas of each by colon."""
    try:
        assignment = {p: tuple(int(b) for b in part.split(":")) for p, part in enumerate(text.split(","))}
    except ValueError:
        raise BadValue(
            f"{text!r} is not replicas such as 1:2,2:3,3:1",
            "write a list a partition, the broker ids of a list joined by colons",
        ) from None
    return assignment


def plan_creation(cluster: Cluster, new: NewTopic, kafka_version: KafkaVersion | None = None) -> Plan:
    """The plan of creating a topic. Raises BadValue, Refused; see the module."""
    try:
        state = cluster.read_state(
            [new.name], configs=["brokers"], config_keys=[MIN_ISR], kafka_version=kafka_version
        )
    except KctlError:  # a user who may create a topic may not be allowed to read what only a warning needs
        state = cluster.read_state([new.name], kafka_version=kafka_version)
    intent = creation_of(new, state, checks_values=not cluster.can.have_values_checked)
    factor = len(next(iter(intent.replicas.values())))
    title = f"{intent}, replication factor {factor}"
    return plan_of([intent], cluster, state, title=title, warnings=creation_warnings(new, factor, state))


def creation_of(new: NewTopic, state: ClusterState, *, checks_values: bool) -> CreateTopic:
    """What creates a topic in this state; brokers check the values of its configuration by themselves.

    Raises BadValue, Refused; see the module.
    """
    check_topic_name(new.name, state.kafka_version)
    if new.name in state.deleting:
        raise topic_leaving(new.name)
    if new.name in state.topic_names:
        raise topic_exists(new.name)
    refuse_collision(new.name, state.topic_names, state.kafka_version)
    if checks_values:
        check_values("topics", new.configs, state.kafka_version)
    return CreateTopic(topic=new.name, replicas=_replicas_of(new, state), configs=dict(new.configs))


def creation_warnings(new: NewTopic, factor: int, state: ClusterState) -> list[str]:
    """What to say about a topic to be created."""
    return [*without_controller(state), *_few_for_isr(new, factor, state)]


def _replicas_of(new: NewTopic, state: ClusterState) -> Mapping[int, Replicas]:
    if new.replicas is not None:
        check_replicas(new.replicas, state, allow_dead=new.allow_dead)
        return new.replicas
    if new.partitions is None or new.replication_factor is None:
        raise BadValue(
            "a topic needs --partitions and --replication-factor, or --replica-assignment",
            "give both, or the replicas of each partition",
        )
    racks = racks_of(state, aware=new.rack_aware)
    draws = new.draws or draw(max(len(racks), 1), Random())  # a spread, not a secret
    return place_replicas(racks, new.partitions, new.replication_factor, draws)


def racks_of(state: ClusterState, *, aware: bool = True) -> dict[int, str | None]:
    """The brokers that may take replicas, with their racks. Raises Refused if none is alive."""
    racks = {id: state.brokers[id].rack if aware else None for id in state.live_brokers}
    if not racks:
        raise Refused("no broker is alive", "start brokers; `kctl cluster brokers` lists them")
    return racks


def check_replicas(
    replicas: Mapping[int, Replicas],
    state: ClusterState,
    *,
    allow_dead: bool = False,
    factor: int | None = None,
) -> None:
    """Raise BadValue or Refused for replicas that no broker would accept."""
    for partition, ids in sorted(replicas.items()):
        if not ids:
            raise BadValue(f"partition {partition} has no replicas", "name at least one broker for it")
        if len(set(ids)) < len(ids):
            raise BadValue(
                f"partition {partition} has a broker twice: {':'.join(map(str, ids))}",
                "name each broker once",
            )
        if min(ids) < 0:
            raise BadValue(f"{min(ids)} is not a broker id", "broker ids are not negative")
        if len(ids) != (factor or len(replicas[min(replicas)])):
            raise BadValue(
                "all partitions must have the same number of replicas", "name as many brokers for each"
            )
    dead = sorted({id for ids in replicas.values() for id in ids if not state.is_alive(id)})
    if dead and not allow_dead:
        raise Refused(
            f"{brokers_named(dead)} not alive; nothing was written",
            "--allow-dead-brokers uses them anyway",
        )


def _few_for_isr(new: NewTopic, factor: int, state: ClusterState) -> list[str]:
    """A warning of a min ISR above the replication factor, by the topic's own value or that of the brokers."""
    min_isr = new.configs.get(MIN_ISR) or state.topic_value(new.name, None, MIN_ISR)
    is_more = min_isr is not None and min_isr.isdecimal() and int(min_isr) > factor
    return [too_many_in_sync(int(min_isr), factor, state)] if min_isr is not None and is_more else []


# --- growing ------------------------------------------------------------------------------------------


def plan_growth(
    cluster: Cluster,
    name: str,
    partitions: int | None,
    *,
    replicas: Sequence[Replicas] | None = None,
    rack_aware: bool = True,
    kafka_version: KafkaVersion | None = None,
) -> Plan:
    """The plan of more partitions, placed by Kafka's rule of 0.10 and later. `partitions` is the new total."""
    state = cluster.read_state([name], kafka_version=kafka_version)
    intent = growth_of(state, name, partitions, replicas=replicas, rack_aware=rack_aware)
    present = len(state.topics[name].partitions)
    if intent is None:
        return Plan(title=f"topic {name} has {counted(present, 'partition')} already", stages=())
    title = f"{intent}, {present + len(intent.replicas):,} in all"
    return plan_of([intent], cluster, state, title=title, warnings=[*without_controller(state), MOVED_KEYS])


MOVED_KEYS = "records with a key go to other partitions than before"


def growth_of(
    state: ClusterState,
    name: str,
    partitions: int | None,
    *,
    replicas: Sequence[Replicas] | None = None,
    rack_aware: bool = True,
) -> AddPartitions | None:
    """What gives a topic more partitions in this state; None if it has as many. Raises BadValue, Refused, KctlError."""
    topic = require_topic(state, name)
    if is_internal(name):
        raise Refused(
            f"{name} is Kafka's own: its partitions cannot be changed",
            "nothing can be done: brokers place their keys in it by the number of partitions",
        )
    if topic.is_marked_for_deletion:
        raise topic_leaving(name)
    moving = [p for p in sorted(topic.partitions) if state.is_reassigning(TopicPartition(name, p))]
    if moving:
        raise Refused(
            f"partition {moving[0]} of {name} is being reassigned; nothing was written",
            "the controller rewrites the topic as it finishes, and would lose the new partitions",
        )
    present = len(topic.partitions)
    if sorted(topic.partitions) != list(range(present)):
        raise Refused(
            f"the partitions of {name} are not numbered 0 to {present - 1}; nothing was written",
            "`kctl topic describe` shows its partitions",
        )
    total = partitions if partitions is not None else present + len(replicas or ())
    if total == present:
        return None
    if total < present:
        raise BadValue(
            f"topic {name} has {counted(present, 'partition')}, and there cannot be fewer ({total})",
            "create a topic with fewer and copy the records into it",
        )
    return AddPartitions(topic=name, replicas=_added(topic, total, replicas, state, rack_aware))


def _added(
    topic: Topic, total: int, replicas: Sequence[Replicas] | None, state: ClusterState, rack_aware: bool
) -> dict[int, Replicas]:
    present = len(topic.partitions)
    factor = len(topic.origin_replicas(0))
    if replicas is not None:
        if len(replicas) != total - present:
            raise BadValue(
                f"{len(replicas)} lists of replicas for {total - present} new partitions",
                "give one list for each new partition",
            )
        chosen = dict(enumerate(replicas, present))
        check_replicas(chosen, state, factor=factor)
        return chosen
    racks = racks_of(state, aware=rack_aware)
    draws = draws_for_added(racks, topic.origin_replicas(0))
    return place_replicas(racks, total - present, factor, draws, first_partition_id=present)


def require_topic(state: ClusterState, name: str) -> Topic:
    """The topic; raises KctlError if there is none, or if its znode cannot be read."""
    topic = state.topics.get(name)
    if topic is None:
        for problem in state.problems:
            if problem.place.endswith(f"/{name}"):
                raise KctlError(
                    f"topic {name} cannot be read: {problem.reason}",
                    "`kctl cluster health` shows the problem",
                )
        raise absent_topics([name], state)
    return topic


# --- deleting -----------------------------------------------------------------------------------------


def plan_deletion(
    cluster: Cluster, name: str, *, is_enabled: bool = False, kafka_version: KafkaVersion | None = None
) -> Plan:
    """The plan of deleting a topic, with warnings about what would stall it.

    Up to 0.11 deletion is off by default, which cannot be seen; the marker would then wait, and fire when it
    is turned on later: refused unless `is_enabled` says that it is on.
    """
    state = cluster.read_state([name], kafka_version=kafka_version)
    intent = deletion_of(state, name, is_enabled=is_enabled)
    title = f"{intent}, {counted(len(state.topics[name].partitions), 'partition')}, for good"
    return plan_of([intent], cluster, state, title=title, warnings=deletion_warnings(state, name))


def deletion_of(state: ClusterState, name: str, *, is_enabled: bool = False) -> DeleteTopic:
    """What deletes a topic in this state. Raises Refused, KctlError; see `plan_deletion`."""
    if name in state.topic_names and name not in state.topics:
        raise Refused(f"topic {name} cannot be read; nothing was written", "repair its znode first")
    topic = require_topic(state, name)
    if is_internal(name):
        raise Refused(f"{name} is Kafka's own: it cannot be deleted", "nothing can be done: brokers need it")
    if topic.is_marked_for_deletion:
        raise Refused(f"topic {name} is marked for deletion already", "; ".join(why_stuck(state, name)))
    if any(state.is_reassigning(TopicPartition(name, p)) for p in topic.partitions):
        raise Refused(
            f"partitions of {name} are being reassigned; nothing was written", "wait for it, or cancel it"
        )
    if state.kafka_version < V1_0 and not is_enabled:
        raise Refused(
            f"Kafka {state.kafka_version} disables deletion by default, and ZooKeeper does not show the setting: the topic "
            "would be deleted once someone enables it; nothing was written",
            "if all brokers have delete.topic.enable=true, add --deletion-is-enabled",
        )
    return DeleteTopic(topic=name)


def deletion_warnings(state: ClusterState, name: str) -> list[str]:
    """What would make the deletion of a topic wait."""
    return [f"it will wait: {reason}" for reason in why_stuck(state, name)]


# DEL
