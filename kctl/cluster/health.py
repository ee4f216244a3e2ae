"""Everything that can be seen to be wrong with a cluster, one check a row.

A check is a row of the table: name, how bad it is when it finds something, what it means, and the function
that lists what it found. A new check is one more row. What only a backend can see (notifications that brokers
choke on, the age of deletion markers) comes from the backend as `Oddity`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kctl.cluster.goals import ids
from kctl.cluster.interface import Oddity
from kctl.cluster.partition_health import health_of
from kctl.cluster.state import NO_LEADER, ClusterState
from kctl.cluster.stuck import explain
from kctl.cluster.throttles import throttles_set
from kctl.cluster.versions import V2_8

ERROR, WARNING, INFO = "error", "warning", "info"
SHOWN = 5
OLD_REQUEST = 10 * 60_000  # milliseconds after which a request is suspicious
OLD_MARKER = 60_000  # and a deletion marker
VOTER_BEHIND = 10_000  # milliseconds after the voter that is furthest


class Seen(NamedTuple):
    """What the checks look at. `now` and ages are milliseconds; `oddities` come from the backend."""

    state: ClusterState
    oddities: Sequence[Oddity]
    now: int
    epoch_growth: int = 0  # of the controller epoch while it was watched


class Check(NamedTuple):
    """A row of the table."""

    name: str
    severity: str
    meaning: str
    find: Callable[[Seen], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Result:
    """What a check found; `good` where it found nothing."""

    check: str
    status: str
    count: int
    meaning: str
    examples: tuple[str, ...]


def check_health(seen: Seen) -> Iterator[Result]:
    """Every check of the table, in its order."""
    for check in CHECKS:
        found = list(check.find(seen))
        status = check.severity if found else "good"
        yield Result(check.name, status, len(found), check.meaning, tuple(found[:SHOWN]))


# --- brokers and controller ---------------------------------------------------------------------------


def _controller(seen: Seen) -> Iterator[str]:
    if seen.state.controller is None or seen.state.controller.broker_id is None:
        yield "there is no controller"
    elif not seen.state.controller.is_kraft and not seen.state.is_alive(seen.state.controller.broker_id):
        yield f"broker {seen.state.controller.broker_id} is controller and not alive"


def _controller_loop(seen: Seen) -> Iterator[str]:
    if seen.epoch_growth > 1:
        yield f"the controller epoch grew by {seen.epoch_growth} while it was watched"


def _quorum(seen: Seen) -> Iterator[str]:
    quorum = seen.state.quorum
    voters = [m for m in quorum.members if m.is_voter] if quorum else []
    newest = max((m.last_caught_up_at or 0 for m in voters), default=0)
    for voter in voters:
        behind = newest - (voter.last_caught_up_at or 0)
        if voter.last_caught_up_at is None or behind > VOTER_BEHIND:
            since = f"{behind // 1000} s behind" if voter.last_caught_up_at else "not heard of"
            yield f"voter {voter.node_id} is {since}"


def _migration(seen: Seen) -> Iterator[str]:
    if seen.state.is_migrating:
        yield "a KRaft quorum has claimed the cluster; what is written to ZooKeeper is overwritten"


def _dead_brokers(seen: Seen) -> Iterator[str]:
    held: dict[int, int] = {}
    for tp in seen.state.partitions():
        for broker in seen.state.replicas(tp) or ():
            if not seen.state.is_alive(broker):
                held[broker] = held.get(broker, 0) + 1
    yield from (f"broker {broker} is not alive and holds {n} replicas" for broker, n in sorted(held.items()))


# --- partitions ---------------------------------------------------------------------------------------


def _offline(seen: Seen) -> Iterator[str]:
    for tp in seen.state.partitions():
        health = health_of(tp, seen.state)
        if health.is_offline:
            leader = "never had a leader" if health.leader is None else "has no live leader"
            eligible = seen.state.eligible_leaders.get(tp)
            hope = f"; it comes back without loss with broker {ids(eligible)}" if eligible else ""
            yield f"{tp} {leader}{hope}"


def _under_min_isr(seen: Seen) -> Iterator[str]:
    for tp in seen.state.partitions():
        health = health_of(tp, seen.state)
        if health.is_under_min_isr and not health.is_offline:
            yield f"{tp} has {len(health.isr)} in the ISR"


def _under_replicated(seen: Seen) -> Iterator[str]:
    for tp in seen.state.partitions():
        health = health_of(tp, seen.state)
        if health.is_under_replicated:
            yield f"{tp} has {len(health.isr)} of {len(health.replicas)} replicas in the ISR"


def _strangers_in_isr(seen: Seen) -> Iterator[str]:
    for tp, found in seen.state.partition_states.items():
        replicas = seen.state.replicas(tp)
        strangers = [b for b in found.isr if replicas is not None and b not in replicas]
        if strangers:
            yield f"{tp}: {strangers} in the ISR and not among the replicas {list(replicas or ())}"


def _dead_in_isr(seen: Seen) -> Iterator[str]:
    for tp, found in seen.state.partition_states.items():
        dead = [b for b in found.isr if not seen.state.is_alive(b)]
        # The last member stays in the ISR for ever: that it is dead makes the partition offline, said elsewhere.
        if dead and len(found.isr) > 1:
            yield f"{tp}: {dead} in the ISR and not alive"


def _future_epoch(seen: Seen) -> Iterator[str]:
    controller = seen.state.controller
    if controller is None or controller.epoch is None:
        return
    for tp, found in seen.state.partition_states.items():
        if found.controller_epoch is not None and found.controller_epoch > controller.epoch:
            yield f"{tp} was written by controller epoch {found.controller_epoch}, the present one is {controller.epoch}"


def _empty_target(seen: Seen) -> Iterator[str]:
    for name, topic in sorted(seen.state.topics.items()):
        for partition, replicas in sorted(topic.partitions.items()):
            if not topic.target_replicas(partition):
                yield f"{name}-{partition} would have no replicas left of {list(replicas)}"
            elif len(set(replicas)) < len(replicas):
                yield f"{name}-{partition} names a broker twice: {list(replicas)}"


def _non_preferred(seen: Seen) -> Iterator[str]:
    for tp in seen.state.partitions():
        health = health_of(tp, seen.state)
        if not health.is_leader_preferred and not health.is_offline:
            yield f"{tp} is led by {health.leader}, preferred is {health.replicas[0] if health.replicas else NO_LEADER}"


# --- topics and configurations ------------------------------------------------------------------------


def _topic_ids(seen: Seen) -> Iterator[str]:
    ids: dict[str, str] = {}
    for name, topic in sorted(seen.state.topics.items()):
        if topic.topic_id is None:
            if seen.state.kafka_version >= V2_8:
                yield f"{name} has no topic id"
        elif topic.topic_id in ids:
            yield f"{name} has the id {topic.topic_id} of {ids[topic.topic_id]}"
        else:
            ids[topic.topic_id] = name


def _gaps(seen: Seen) -> Iterator[str]:
    for name, topic in sorted(seen.state.topics.items()):
        numbers = sorted(topic.partitions)
        if numbers != list(range(len(numbers))):
            yield f"{name} has partitions {numbers[:10]}, with gaps"


def _orphan_configs(seen: Seen) -> Iterator[str]:
    names = set(seen.state.topic_names)
    for kind, name in sorted(seen.state.configs):
        if kind == "topics" and name not in names:
            yield f"{name} is configured and is no topic"


def _idle_throttles(seen: Seen) -> Iterator[str]:
    for one in throttles_set(seen.state):
        if not one.is_used:
            yield f"{one.key} of {one.entity_type.removesuffix('s')} {one.entity_name} is {one.value!r}"


# --- requests -----------------------------------------------------------------------------------------


def _stuck(seen: Seen) -> Iterator[str]:
    yield from explain(seen.state, seen.now)
    for what, request in (("a reassignment", seen.state.reassignment), ("an election", seen.state.election)):
        if request is None:
            continue
        if what == "an election" and request.unreadable:
            yield f"the waiting election cannot be read: {request.unreadable}"
        age = seen.now - request.created_at if request.created_at is not None else 0
        if age > OLD_REQUEST:
            yield f"{what} has been waiting for {age // 60_000} min"


def _moving(seen: Seen) -> Iterator[str]:
    for tp in seen.state.partitions():
        if seen.state.is_reassigning(tp):
            yield f"{tp} is being moved"


def _deletions(seen: Seen) -> Iterator[str]:
    for name in sorted(seen.state.deleting):
        dead = (
            {b for p in seen.state.topics[name].partitions.values() for b in p if not seen.state.is_alive(b)}
            if name in seen.state.topics
            else set()
        )
        if dead:
            yield f"the deletion of {name} waits for brokers {sorted(dead)}, which are not alive"
    yield from _odd("old-deletion")(seen)


def _odd(kind: str) -> Callable[[Seen], Iterator[str]]:
    def find(seen: Seen) -> Iterator[str]:
        for oddity in seen.oddities:
            if oddity.kind == kind and (oddity.age is None or oddity.age > OLD_MARKER):
                yield f"{oddity.place}: {oddity.reason}"

    return find


def _unreadable(seen: Seen) -> Iterator[str]:
    yield from (f"{problem.place}: {problem.reason}" for problem in seen.state.problems)


CHECKS = (
    Check("controller", ERROR, "Somebody must be controller, and alive.", _controller),
    Check(
        "controller-loop",
        ERROR,
        "Controllers follow each other without end; look for why each gives up.",
        _controller_loop,
    ),
    Check(
        "quorum",
        WARNING,
        "Voters of the KRaft quorum that are behind: without a majority nothing can be changed.",
        _quorum,
    ),
    Check("migration", WARNING, "The cluster is under migration to KRaft: kctl only reads.", _migration),
    Check("unreadable", ERROR, "A controller that cannot read this may never start again.", _unreadable),
    Check("dead-brokers", WARNING, "Brokers that hold replicas and are not alive.", _dead_brokers),
    Check("offline", ERROR, "Nobody can read or write these partitions.", _offline),
    Check("under-min-isr", ERROR, "Producers with acks=all are refused.", _under_min_isr),
    Check("under-replicated", WARNING, "A replica is behind or dead.", _under_replicated),
    Check(
        "isr-outside-replicas",
        ERROR,
        "The ISR names brokers that are no replicas (KAFKA-9672).",
        _strangers_in_isr,
    ),
    Check(
        "isr-not-alive",
        WARNING,
        "The ISR names brokers that are not alive; the leader will take them out.",
        _dead_in_isr,
    ),
    Check(
        "future-controller-epoch",
        ERROR,
        "The present controller refuses to touch these partitions.",
        _future_epoch,
    ),
    Check(
        "empty-target",
        ERROR,
        "No replicas left, or a broker twice: repair the topic before a controller moves.",
        _empty_target,
    ),
    Check(
        "topic-ids",
        WARNING,
        "Ids that are missing are made anew by the next controller, and brokers refuse those.",
        _topic_ids,
    ),
    Check("partition-numbers", ERROR, "Partitions must be numbered from 0 without gaps.", _gaps),
    Check("orphan-configs", WARNING, "A topic of that name would get this configuration.", _orphan_configs),
    Check(
        "requests", WARNING, "A reassignment or election that does not end; never delete its znode.", _stuck
    ),
    Check("deletions", WARNING, "A deletion that does not end.", _deletions),
    Check(
        "notifications",
        ERROR,
        "Brokers stop at this notification and see no later configuration change.",
        _odd("notification"),
    ),
    Check(
        "throttles",
        WARNING,
        "Throttles that no running move needs slow followers down; `kctl reassign throttle clear --unused`.",
        _idle_throttles,
    ),
    Check("moving", INFO, "Reassignments under way.", _moving),
    Check("non-preferred-leaders", INFO, "`kctl elect preferred` puts them back.", _non_preferred),
)
