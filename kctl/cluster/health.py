"""Everything that can be seen to be wrong with a cluster, one function a check.

A check is a function that lists what it found, with its name, how bad that is, and what it means. A new check is one
more function; `CHECKS` has them in the order of this file. What only a backend can see (notifications that brokers
choke on, the age of deletion markers) comes from the backend as `Oddity`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from formats.values import Struct
from kctl.changes.intents import counted
from kctl.cluster.interface import Oddity
from kctl.cluster.partition_health import FILTERS, PartitionHealth, health_of
from kctl.cluster.reassignment.moves import ids, some
from kctl.cluster.reassignment.throttles import DISK_RATE, throttles_set
from kctl.cluster.reassignment.verification import explain
from kctl.cluster.state import NO_LEADER, ClusterState
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
    partitions: Sequence[PartitionHealth] = ()  # those that lack something, or their preferred leader


class Check(NamedTuple):
    """A check and what it is about."""

    name: str
    severity: str
    meaning: str
    find: Callable[[Seen], Iterator[str]]


CHECKS: list[Check] = []
Find = Callable[[Seen], Iterator[str]]


def check(name: str, severity: str, meaning: str) -> Callable[[Find], Find]:
    """Put a function in `CHECKS`."""

    def add(find: Find) -> Find:
        CHECKS.append(Check(name, severity, meaning, find))
        return find

    return add


class HealthResult(Struct, frozen=True):
    """What a check found; `good` where it found nothing."""

    check: str
    status: str
    count: int
    meaning: str
    examples: tuple[str, ...]


def check_health(seen: Seen) -> Iterator[HealthResult]:
    """The results of all checks, in their order."""
    all_of_them = (health_of(tp, seen.state) for tp in seen.state.partitions())
    seen = seen._replace(
        partitions=[one for one in all_of_them if any(is_so(one) for is_so in FILTERS.values())]
    )
    for name, severity, meaning, find in CHECKS:
        found = list(find(seen))
        yield HealthResult(name, severity if found else "good", len(found), meaning, tuple(found[:SHOWN]))


def _odd(seen: Seen, kind: str) -> Iterator[str]:
    """What the backend found of a kind, deletion markers only once they are old."""
    for oddity in seen.oddities:
        if oddity.kind == kind and (oddity.age is None or oddity.age > OLD_MARKER):
            yield f"{oddity.place}: {oddity.reason}"


@check("controller", ERROR, "Without a live controller no leader is elected, and nothing can be changed.")
def _controller(seen: Seen) -> Iterator[str]:
    if seen.state.controller is None or seen.state.controller.broker_id is None:
        lost = seen.state.quorum.lost if seen.state.quorum else ""
        yield lost.partition(";")[0] or "there is no controller"
    elif not seen.state.controller.is_kraft and not seen.state.is_alive(seen.state.controller.broker_id):
        yield f"broker {seen.state.controller.broker_id} is controller and not alive"


@check("controller-loop", ERROR, "Controllers keep replacing each other; find out why each gives up.")
def _controller_loop(seen: Seen) -> Iterator[str]:
    if seen.epoch_growth > 1:
        yield f"the controller epoch grew by {seen.epoch_growth} while it was watched"


@check(
    "quorum",
    WARNING,
    "Voters of the KRaft quorum lag; without a majority nothing can be changed.",
)
def _quorum(seen: Seen) -> Iterator[str]:
    quorum = seen.state.quorum
    voters = [m for m in quorum.members if m.is_voter] if quorum else []
    if quorum and quorum.lost:
        yield from (f"{voter.voter} does not answer" for voter in voters if not voter.is_answering)
        return
    newest = max((m.last_caught_up_at or 0 for m in voters), default=0)
    for voter in voters:
        behind = newest - (voter.last_caught_up_at or 0)
        if voter.last_caught_up_at is None or behind > VOTER_BEHIND:
            since = f"{behind // 1000} s behind" if voter.last_caught_up_at else "not heard of"
            yield f"voter {voter.node_id} is {since}"


@check("migration", WARNING, "The cluster is under migration to KRaft: kctl only reads.")
def _migration(seen: Seen) -> Iterator[str]:
    if seen.state.is_migrating:
        yield "a KRaft quorum has claimed the cluster; writes to ZooKeeper are overwritten"


@check(
    "unreadable",
    ERROR,
    "It cannot be read, and a controller that cannot read it either may not start again.",
)
def _unreadable(seen: Seen) -> Iterator[str]:
    for problem in seen.state.problems:
        if problem.silent_broker is None:
            yield f"{problem.place}: {problem.reason}"


@check(
    "silent-brokers",
    ERROR,
    "Listed as alive, and kctl has no answer: just killed, hanging, or not to be reached from here.",
)
def _silent_brokers(seen: Seen) -> Iterator[str]:
    silent = {p.silent_broker: p.reason for p in seen.state.problems if p.silent_broker is not None}
    yield from (reason for _, reason in sorted(silent.items()))


@check("failed-disks", ERROR, "Replicas on a failed disk are not alive, although their broker is.")
def _failed_disks(seen: Seen) -> Iterator[str]:
    yield from _odd(seen, "failed-disk")
    # A broker that stops or starts while the cluster is read is alive with offline replicas too.
    failed = {oddity.broker_id for oddity in seen.oddities if oddity.kind == "failed-disk"}
    for broker, partitions in seen.state.on_failed_disks().items():
        if broker in failed:
            yield f"broker {broker} has {counted(len(partitions), 'replica')} on failed disks: {some(partitions)}"


@check("dead-brokers", WARNING, "Brokers that hold replicas and are not alive.")
def _dead_brokers(seen: Seen) -> Iterator[str]:
    held: dict[int, int] = {}
    for tp in seen.state.partitions():
        for broker in seen.state.replicas(tp) or ():
            if not seen.state.is_alive(broker):
                held[broker] = held.get(broker, 0) + 1
    yield from (f"broker {broker} is not alive and holds {n} replicas" for broker, n in sorted(held.items()))


@check("offline", ERROR, "These partitions cannot be read or written.")
def _offline(seen: Seen) -> Iterator[str]:
    for health in seen.partitions:
        if health.is_offline:
            leader = "never had a leader" if health.leader is None else "has no live leader"
            yield f"{health.partition} {leader}{_hope(seen, health)}"


def _hope(seen: Seen, health: PartitionHealth) -> str:
    """Who can lead a partition again without loss, once it is back; a broker alone does not bring a disk back."""
    tp, state = health.partition, seen.state
    eligible = state.eligible_leaders.get(tp, ())
    failed = [b for b in eligible or health.isr if state.is_alive(b) and not state.is_replica_alive(tp, b)]
    if rest := [b for b in eligible if b not in failed]:
        return f"; it comes back without loss with broker {ids(rest)}"
    return f"; broker {ids(failed)} has it on a failed disk" if failed else ""


@check("under-min-isr", ERROR, "Producers with acks=all are refused.")
def _under_min_isr(seen: Seen) -> Iterator[str]:
    for health in seen.partitions:
        if health.is_under_min_isr and not health.is_offline:
            yield f"{health.partition} has {len(health.isr)} in the ISR"


@check("under-replicated", WARNING, "A replica is behind or dead.")
def _under_replicated(seen: Seen) -> Iterator[str]:
    for health in seen.partitions:
        if health.is_under_replicated:
            yield f"{health.partition} has {len(health.isr)} of {len(health.replicas)} replicas in the ISR"


@check("isr-outside-replicas", ERROR, "The ISR names brokers that are not replicas (KAFKA-9672).")
def _strangers_in_isr(seen: Seen) -> Iterator[str]:
    for tp, found in seen.state.partition_states.items():
        replicas = seen.state.replicas(tp)
        strangers = [b for b in found.isr if replicas is not None and b not in replicas]
        if strangers:
            yield f"{tp}: {strangers} in the ISR and not among the replicas {list(replicas or ())}"


@check("isr-not-alive", WARNING, "The ISR names replicas that are not alive; they will be taken out.")
def _dead_in_isr(seen: Seen) -> Iterator[str]:
    for tp, found in seen.state.partition_states.items():
        dead = [b for b in found.isr if not seen.state.is_replica_alive(tp, b)]
        # The last member stays in the ISR for ever: that it is dead makes the partition offline, said elsewhere.
        if dead and len(found.isr) > 1:
            yield f"{tp}: {dead} in the ISR and not alive"


@check("future-controller-epoch", ERROR, "The present controller refuses to touch these partitions.")
def _future_epoch(seen: Seen) -> Iterator[str]:
    controller = seen.state.controller
    if controller is None or controller.epoch is None:
        return
    for tp, found in seen.state.partition_states.items():
        if found.controller_epoch is not None and found.controller_epoch > controller.epoch:
            yield f"{tp} was written by controller epoch {found.controller_epoch}, the present one is {controller.epoch}"


@check(
    "empty-target",
    ERROR,
    "No replicas left, or a broker twice: repair the topic before the controller moves.",
)
def _empty_target(seen: Seen) -> Iterator[str]:
    for name, topic in sorted(seen.state.topics.items()):
        for partition, replicas in sorted(topic.partitions.items()):
            if not topic.target_replicas(partition):
                yield f"{name}-{partition} would have no replicas left of {list(replicas)}"
            elif len(set(replicas)) < len(replicas):
                yield f"{name}-{partition} names a broker twice: {list(replicas)}"


@check(
    "topic-ids",
    WARNING,
    "Ids that are missing are made anew by the next controller, and brokers refuse those.",
)
def _topic_ids(seen: Seen) -> Iterator[str]:
    names: dict[str, str] = {}  # by topic id
    for name, topic in sorted(seen.state.topics.items()):
        if topic.topic_id is None:
            if seen.state.kafka_version >= V2_8:
                yield f"{name} has no topic id"
        elif (first := names.setdefault(topic.topic_id, name)) != name:
            yield f"{name} has the id {topic.topic_id} of {first}"


@check("partition-numbers", ERROR, "Partitions must be numbered from 0 without gaps.")
def _gaps(seen: Seen) -> Iterator[str]:
    for name, topic in sorted(seen.state.topics.items()):
        numbers = sorted(topic.partitions)
        if numbers != list(range(len(numbers))):
            yield f"{name} has partitions {numbers[:10]}, with gaps"


@check("orphan-configs", WARNING, "A topic of that name would get this configuration.")
def _orphan_configs(seen: Seen) -> Iterator[str]:
    names = set(seen.state.topic_names)
    for kind, name in sorted(seen.state.configs):
        if kind == "topics" and name not in names:
            yield f"{name} has a configuration but does not exist"


@check("requests", WARNING, "A reassignment or election that does not end.")
def _stuck(seen: Seen) -> Iterator[str]:
    yield from explain(seen.state, seen.now)
    for what, request in (("a reassignment", seen.state.reassignment), ("an election", seen.state.election)):
        if request is None:
            continue
        if what == "an election" and request.unreadable:
            yield f"the waiting election cannot be read: {request.unreadable}"
        age = seen.now - request.created_at if request.created_at is not None else 0
        if age > OLD_REQUEST:
            yield f"{what} has been waiting for {age // 60_000} min; never delete its znode"


@check("deletions", WARNING, "A deletion that does not end.")
def _deletions(seen: Seen) -> Iterator[str]:
    for name in sorted(seen.state.deleting):
        dead = (
            {b for p in seen.state.topics[name].partitions.values() for b in p if not seen.state.is_alive(b)}
            if name in seen.state.topics
            else set()
        )
        if dead:
            yield f"the deletion of {name} waits for brokers {sorted(dead)}, which are not alive"
    yield from _odd(seen, "old-deletion")


@check("notifications", ERROR, "Brokers stop at this notification and see no later configuration change.")
def _notifications(seen: Seen) -> Iterator[str]:
    yield from _odd(seen, "notification")


@check(
    "throttles",
    WARNING,
    "Throttles that no running move needs slow followers down; `kctl reassign throttle clear --unused`.",
)
def _idle_throttles(seen: Seen) -> Iterator[str]:
    for throttle in throttles_set(seen.state):
        if not throttle.is_used and throttle.key != DISK_RATE:
            entity = f"{throttle.entity_type.removesuffix('s')} {throttle.entity_name}"
            yield f"{throttle.key} of {entity} is {throttle.value!r}"


@check("moving", INFO, "Reassignments under way.")
def _moving(seen: Seen) -> Iterator[str]:
    for tp in seen.state.partitions():
        if seen.state.is_reassigning(tp):
            yield f"{tp} is being moved"


@check("non-preferred-leaders", INFO, "`kctl elect preferred` puts them back.")
def _non_preferred(seen: Seen) -> Iterator[str]:
    for health in seen.partitions:
        if not health.is_leader_preferred and not health.is_offline:
            yield f"{health.partition} is led by {health.leader}, preferred is {health.replicas[0] if health.replicas else NO_LEADER}"
