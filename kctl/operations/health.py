"""All visible problems of a cluster, one function a check.

A check is a function that yields its findings, with a name, a severity and a meaning. A new check is one
more function; `CHECKS` has them in the order of this file. What only a backend sees (notifications that brokers
choke on, the age of deletion markers) comes from the backend as `Oddity`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from formats.values import Struct
from formats.words import counted
from kctl.changes.kinds.throttles import DISK_RATE, throttles_set
from kctl.cluster.interface import Oddity
from kctl.cluster.moves import ids
from kctl.cluster.partition_health import (
    FILTERS,
    PartitionHealth,
    health_of,
    min_isr,
    too_many_in_sync,
)
from kctl.cluster.state import CONFIGS, CONTROLLER_EPOCH, DELETIONS, MOVES, NO_LEADER, QUORUM, ClusterState
from kctl.cluster.versions import V2_8
from kctl.findings.migration import AFTER_ROLLBACK
from kctl.model import TopicPartition, some
from kctl.operations.kraft.voters import directory_gone
from kctl.operations.reassignment.verification import explain

ERROR, WARNING, INFO = "error", "warning", "info"
SHOWN = 5
OLD_REQUEST = 10 * 60_000  # milliseconds after which a request is suspicious
OLD_MARKER = 60_000  # and a deletion marker
VOTER_BEHIND = 10_000  # milliseconds behind the most advanced voter


class HealthFacts(NamedTuple):
    """What the checks examine. `now` and ages are milliseconds; `oddities` come from the backend."""

    state: ClusterState
    oddities: Sequence[Oddity]
    now: int
    epoch_growth: int = 0  # of the controller epoch while it was watched
    partitions: Sequence[PartitionHealth] = ()  # those that lack something, or their preferred leader


class HealthCheck(NamedTuple):
    """A health check."""

    name: str
    severity: str
    meaning: str
    find: Callable[[HealthFacts], Iterator[str]]


CHECKS: list[HealthCheck] = []
Find = Callable[[HealthFacts], Iterator[str]]


def check(name: str, severity: str, meaning: str) -> Callable[[Find], Find]:
    """Put a function in `CHECKS`."""

    def add(find: Find) -> Find:
        CHECKS.append(HealthCheck(name, severity, meaning, find))
        return find

    return add


class HealthResult(Struct, frozen=True):
    """The result of a check; `good` if it found nothing."""

    check: str
    status: str
    count: int
    meaning: str
    examples: tuple[str, ...]


def check_health(facts: HealthFacts) -> Iterator[HealthResult]:
    """The results of all checks, in their order."""
    all_health = (health_of(tp, facts.state) for tp in facts.state.partitions())
    facts = facts._replace(
        partitions=[health for health in all_health if any(is_so(health) for is_so in FILTERS.values())]
    )
    for name, severity, meaning, find in CHECKS:
        if name in BROKERS_KNOW and not facts.state.can.ask_brokers:
            continue
        examples = list(find(facts))
        status = severity if examples else "good"
        if not examples and (unread := _unread(name, facts.state) or list(_unread_beside(name, facts))):
            status, examples = "unknown", unread
            if name == "unreadable":
                meaning = "This user may not read it, or a broker did not return it."
        yield HealthResult(name, status, len(examples), meaning, tuple(examples[:SHOWN]))


BROKERS_KNOW = frozenset({"group-offsets"})
"""Checks of what ZooKeeper does not have."""

# What a check depends on, by the first words of the place of a problem.
NEEDS = {
    "unreadable": ("",),
    "controller": (QUORUM,),
    "controller-loop": (QUORUM, CONTROLLER_EPOCH),
    "future-controller-epoch": (CONTROLLER_EPOCH,),
    "migration": ("migration",),
    "quorum": (QUORUM,),
    "throttles": (CONFIGS, MOVES),
    "under-min-isr": (CONFIGS,),
    "min-isr-above-replicas": (CONFIGS,),
    "moving": (MOVES,),
    "requests": (MOVES, "election request"),
    "deletions": (DELETIONS,),
    "orphan-configs": ("configurations of topics", "configuration of topic"),
    "failed-disks": (MOVES,),  # log directories take the same right
}
# Checks that say something of every topic.
OVER_TOPICS = frozenset(
    {
        "dead-brokers",
        "empty-target",
        "failed-disks",
        "isr-not-alive",
        "isr-outside-replicas",
        "moving",
        "non-preferred-leaders",
        "offline",
        "partition-numbers",
        "throttles",
        "topic-ids",
        "under-min-isr",
        "under-replicated",
    }
)


def _unread(check: str, state: ClusterState) -> list[str]:
    """What the check needs and could not be read."""
    needs = NEEDS.get(check, ())
    if check == "under-min-isr" and state.knows_min_isr:
        needs = ()
    unread = [
        f"{problem.place}: {problem.reason}"
        for problem in state.all_problems
        if problem.silent_broker is None
        and (state.can.ask_brokers or problem.is_hidden)
        and problem.place.startswith(needs)
    ]
    return [state.hidden, *unread] if state.hidden and check in OVER_TOPICS else unread


def _unread_beside(check: str, facts: HealthFacts) -> Iterator[str]:
    """Why the offsets of groups, or the notifications of brokers, are not known."""
    kind = {"group-offsets": "group-offset-unread", "notifications": "notification-unread"}.get(check)
    yield from (oddity.reason for oddity in facts.oddities if oddity.kind == kind)


def _odd(facts: HealthFacts, kind: str) -> Iterator[str]:
    """The backend's oddities of a kind, deletion markers only if they are old."""
    for oddity in facts.oddities:
        if oddity.kind == kind and (oddity.age is None or oddity.age > OLD_MARKER):
            yield f"{oddity.place}: {oddity.reason}"


@check("controller", ERROR, "Without a live controller no leader is elected, and nothing can be changed.")
def _controller(facts: HealthFacts) -> Iterator[str]:
    if not facts.state.has_controller:
        lost = facts.state.quorum.lost if facts.state.quorum else ""
        yield lost.partition(";")[0] or "there is no controller"
    elif (controller := facts.state.controller) is None or controller.is_kraft:
        return
    elif controller.broker_id is not None and not facts.state.is_alive(controller.broker_id):
        yield f"broker {controller.broker_id} is controller and not alive"


@check("controller-loop", ERROR, "Controllers keep replacing each other; find out why each gives up.")
def _controller_loop(facts: HealthFacts) -> Iterator[str]:
    if facts.epoch_growth > 1:
        yield f"the controller epoch grew by {facts.epoch_growth} while it was watched"


@check(
    "quorum",
    WARNING,
    "Voters of the KRaft quorum lag or do not answer; without a majority nothing can be changed.",
)
def _quorum(facts: HealthFacts) -> Iterator[str]:
    quorum = facts.state.quorum
    voters = [m for m in quorum.members if m.is_voter] if quorum else []
    if quorum and quorum.lost:
        yield from (f"{voter.voter} does not answer" for voter in voters if not voter.is_answering)
        return
    replaced = dict(quorum.replaced_voters) if quorum else {}
    for voter, now in replaced.items():
        number = voter.node_id
        yield f"{directory_gone(voter, now)}; `kctl quorum remove {number}`, then `kctl quorum add {number}`"
    newest = max((m.last_caught_up_at or 0 for m in voters), default=0)
    for voter in voters:
        if voter in replaced:
            continue
        behind = newest - (voter.last_caught_up_at or 0)
        if voter.last_caught_up_at is None or behind > VOTER_BEHIND:
            since = f"{behind // 1000} s behind" if voter.last_caught_up_at else "not heard of"
            yield f"voter {voter.node_id} is {since}"
        elif voter.is_answering is False:
            yield f"voter {voter.node_id} does not answer"


@check("migration", WARNING, "The cluster is under migration to KRaft: kctl only reads.")
def _migration(facts: HealthFacts) -> Iterator[str]:
    if facts.state.is_migrating:
        yield "a KRaft quorum has claimed the cluster; writes to ZooKeeper are overwritten"


@check(
    "migration-rolled-back",
    WARNING,
    "A migration to KRaft was rolled back: a KRaft controller that starts would write its own metadata over ZooKeeper's.",
)
def _rolled_back(facts: HealthFacts) -> Iterator[str]:
    if facts.state.is_rolled_back:
        yield f"a broker is the controller again, and znode /migration is still there: {AFTER_ROLLBACK}"


@check(
    "unreadable",
    ERROR,
    "It cannot be read, and a controller that cannot read it either may not start again.",
)
def _unreadable(facts: HealthFacts) -> Iterator[str]:
    if facts.state.can.ask_brokers:
        return  # brokers read it all the same
    for problem in facts.state.problems:
        if problem.silent_broker is None and not problem.is_hidden:
            yield f"{problem.place}: {problem.reason}"


@check(
    "silent-brokers",
    ERROR,
    "Listed as alive, and kctl has no answer: just killed, hanging, or not to be reached from here.",
)
def _silent_brokers(facts: HealthFacts) -> Iterator[str]:
    silent = {p.silent_broker: p.reason for p in facts.state.problems if p.silent_broker is not None}
    yield from (reason for _, reason in sorted(silent.items()))


@check("failed-disks", ERROR, "Replicas on a failed disk are not alive, although their broker is.")
def _failed_disks(facts: HealthFacts) -> Iterator[str]:
    yield from _odd(facts, "failed-disk")
    # A broker that stops or starts while the cluster is read is alive with offline replicas too.
    failed = {oddity.broker_id for oddity in facts.oddities if oddity.kind == "failed-disk"}
    for broker, partitions in facts.state.on_failed_disks().items():
        if broker in failed:
            yield f"broker {broker} has {counted(len(partitions), 'replica')} on failed disks: {some(partitions)}"


@check("dead-brokers", WARNING, "Brokers that hold replicas and are not alive.")
def _dead_brokers(facts: HealthFacts) -> Iterator[str]:
    dead: dict[int, int] = {}
    for tp in facts.state.partitions():
        for broker in facts.state.replicas(tp) or ():
            if not facts.state.is_alive(broker):
                dead[broker] = dead.get(broker, 0) + 1
    yield from (
        f"broker {broker} is not alive and holds {counted(n, 'replica')}"
        for broker, n in sorted(dead.items())
    )


@check("offline", ERROR, "These partitions cannot be read or written.")
def _offline(facts: HealthFacts) -> Iterator[str]:
    for health in facts.partitions:
        if health.is_offline:
            leader = "never had a leader" if health.leader is None else "has no live leader"
            yield f"{health.partition} {leader}{_hope(facts, health)}"


def _hope(facts: HealthFacts, health: PartitionHealth) -> str:
    """The brokers that can lead the partition again without loss; a broker's return does not repair its failed disk."""
    tp, state = health.partition, facts.state
    eligible = state.eligible_leaders.get(tp, ())
    failed = [b for b in eligible or health.isr if state.is_alive(b) and not state.is_replica_alive(tp, b)]
    if rest := [b for b in eligible if b not in failed]:
        return f"; it comes back without loss with broker {ids(rest)}"
    return f"; broker {ids(failed)} has it on a failed disk" if failed else ""


@check("under-min-isr", ERROR, "Producers with acks=all are refused.")
def _under_min_isr(facts: HealthFacts) -> Iterator[str]:
    for health in facts.partitions:
        if health.is_under_min_isr and not health.is_offline:
            least = min_isr(health.partition.topic, health.leader, facts.state)
            above = len(health.replicas) < least
            why = f": {too_many_in_sync(least, len(health.replicas), facts.state)}" if above else ""
            yield f"{health.partition} has {len(health.isr)} in the ISR{why}"


@check("min-isr-above-replicas", INFO, "`min.insync.replicas` protects these topics less than it says.")
def _min_isr_above_replicas(facts: HealthFacts) -> Iterator[str]:
    for name, topic in sorted(facts.state.topics.items()):
        for number, replicas in sorted(topic.partitions.items()):
            tp = TopicPartition(name, number)
            least = min_isr(name, facts.state.leader(tp), facts.state)
            if replicas and len(replicas) < least:
                yield f"{name}: {too_many_in_sync(least, len(replicas), facts.state)}"
                break


@check("under-replicated", WARNING, "A replica is behind or dead.")
def _under_replicated(facts: HealthFacts) -> Iterator[str]:
    for health in facts.partitions:
        if health.is_under_replicated:
            yield f"{health.partition} has {len(health.isr)} of {counted(len(health.replicas), 'replica')} in the ISR"


@check("isr-outside-replicas", ERROR, "The ISR names brokers that are not replicas (KAFKA-9672).")
def _strangers_in_isr(facts: HealthFacts) -> Iterator[str]:
    for tp, partition_state in facts.state.partition_states.items():
        replicas = facts.state.replicas(tp)
        strangers = [b for b in partition_state.isr if replicas is not None and b not in replicas]
        if strangers:
            yield f"{tp}: {strangers} in the ISR and not among the replicas {list(replicas or ())}"


@check("isr-not-alive", WARNING, "The ISR names replicas that are not alive; they will be taken out.")
def _dead_in_isr(facts: HealthFacts) -> Iterator[str]:
    for tp, partition_state in facts.state.partition_states.items():
        dead = [b for b in partition_state.isr if not facts.state.is_replica_alive(tp, b)]
        # The last member stays in the ISR for ever: if it is dead the partition is offline, which another check reports.
        if dead and len(partition_state.isr) > 1:
            yield f"{tp}: {dead} in the ISR and not alive"


@check("future-controller-epoch", ERROR, "The present controller refuses to touch these partitions.")
def _future_epoch(facts: HealthFacts) -> Iterator[str]:
    controller = facts.state.controller
    if controller is None or controller.epoch is None:
        return
    for tp, partition_state in facts.state.partition_states.items():
        if (
            partition_state.controller_epoch is not None
            and partition_state.controller_epoch > controller.epoch
        ):
            yield f"{tp} was written by controller epoch {partition_state.controller_epoch}, the present one is {controller.epoch}"


@check(
    "empty-target",
    ERROR,
    "No replicas left, or a broker twice: repair the topic before the controller moves.",
)
def _empty_target(facts: HealthFacts) -> Iterator[str]:
    for name, topic in sorted(facts.state.topics.items()):
        for partition, replicas in sorted(topic.partitions.items()):
            if not topic.target_replicas(partition):
                yield f"{name}-{partition} would have no replicas left of {list(replicas)}"
            elif len(set(replicas)) < len(replicas):
                yield f"{name}-{partition} names a broker twice: {list(replicas)}"


IBP = "inter.broker.protocol.version"


def _speaks_older(state: ClusterState) -> bool:
    """Whether controllers give no topic ids yet: by a broker's `inter.broker.protocol.version`, else as no topic has one.

    Source: core:KafkaController.scala @ 2.8.2 (usesTopicId)
    """
    versions = [file[IBP] for file in state.broker_files.values() if IBP in file]
    if not versions:
        return not any(topic.topic_id for topic in state.topics.values())
    numbers = [re.match(r"(\d+)\.(\d+)", version) for version in versions]
    return any(number is not None and (int(number[1]), int(number[2])) < V2_8[:2] for number in numbers)


@check(
    "topic-ids",
    WARNING,
    "Ids that are missing are made anew by the next controller, and brokers refuse those.",
)
def _topic_ids(facts: HealthFacts) -> Iterator[str]:
    names: dict[str, str] = {}  # by topic id
    has_ids = facts.state.kafka_version >= V2_8 and not _speaks_older(facts.state)
    for name, topic in sorted(facts.state.topics.items()):
        if topic.topic_id is None:
            if has_ids:
                yield f"{name} has no topic id"
        elif (first := names.setdefault(topic.topic_id, name)) != name:
            yield f"{name} has the id {topic.topic_id} of {first}"


@check("partition-numbers", ERROR, "Partitions must be numbered from 0 without gaps.")
def _gaps(facts: HealthFacts) -> Iterator[str]:
    for name, topic in sorted(facts.state.topics.items()):
        numbers = sorted(topic.partitions)
        if numbers != list(range(len(numbers))):
            yield f"{name} has partitions {numbers[:10]}, with gaps"


@check("orphan-configs", WARNING, "A topic of that name would get this configuration.")
def _orphan_configs(facts: HealthFacts) -> Iterator[str]:
    names = set(facts.state.topic_names)
    for kind, name in sorted(facts.state.configs):
        if kind == "topics" and name not in names:
            yield f"{name} has a configuration but does not exist"


@check("requests", WARNING, "A reassignment or election that does not end.")
def _stuck(facts: HealthFacts) -> Iterator[str]:
    yield from explain(facts.state, facts.now)
    for kind, request in (
        ("a reassignment", facts.state.reassignment),
        ("an election", facts.state.election),
    ):
        if request is None:
            continue
        if kind == "an election" and request.unreadable:
            yield f"the waiting election cannot be read: {request.unreadable}"
        age = facts.now - request.created_at if request.created_at is not None else 0
        if age > OLD_REQUEST:
            yield f"{kind} has been waiting for {age // 60_000} min; never delete its znode"


@check("deletions", WARNING, "A deletion that does not end.")
def _deletions(facts: HealthFacts) -> Iterator[str]:
    for name in sorted(facts.state.deleting):
        dead = (
            {
                b
                for p in facts.state.topics[name].partitions.values()
                for b in p
                if not facts.state.is_alive(b)
            }
            if name in facts.state.topics
            else set()
        )
        if dead:
            yield f"the deletion of {name} waits for brokers {sorted(dead)}, which are not alive"
    yield from _odd(facts, "old-deletion")


@check("notifications", ERROR, "Brokers stop at this notification and see no later configuration change.")
def _notifications(facts: HealthFacts) -> Iterator[str]:
    yield from _odd(facts, "notification")


@check(
    "throttles",
    WARNING,
    "Throttles that no running move needs slow followers down; `kctl reassign throttle clear --unused`.",
)
def _idle_throttles(facts: HealthFacts) -> Iterator[str]:
    for throttle in throttles_set(facts.state):
        if throttle.is_used is False and throttle.key != DISK_RATE:
            entity = f"{throttle.entity_type.removesuffix('s')} {throttle.entity_name}"
            yield f"{throttle.key} of {entity} is {throttle.value!r}"


@check("moving", INFO, "Reassignments under way.")
def _moving(facts: HealthFacts) -> Iterator[str]:
    for tp in facts.state.partitions():
        if facts.state.is_reassigning(tp):
            yield f"{tp} is being moved"


@check(
    "non-preferred-leaders",
    INFO,
    "`kctl elect preferred` puts back those whose preferred replica is alive and in the ISR.",
)
def _non_preferred(facts: HealthFacts) -> Iterator[str]:
    for health in facts.partitions:
        if not health.is_leader_preferred and not health.is_offline:
            preferred = health.replicas[0] if health.replicas else NO_LEADER
            yield f"{health.partition} is led by {health.leader}, preferred is {preferred}{_why_not(facts, health)}"


def _why_not(facts: HealthFacts, health: PartitionHealth) -> str:
    """Why no election puts the preferred replica back now; empty if one does."""
    preferred = health.replicas[0] if health.replicas else NO_LEADER
    if not facts.state.is_replica_alive(health.partition, preferred):
        return ", which is not alive"
    return "" if preferred in health.isr else ", which is not in the ISR"


@check(
    "group-offsets",
    WARNING,
    "Consumers cannot go on from these offsets; `kctl group describe` shows each group's.",
)
def _group_offsets(facts: HealthFacts) -> Iterator[str]:
    for oddity in facts.oddities:
        if oddity.kind == "group-offset":
            yield oddity.reason
