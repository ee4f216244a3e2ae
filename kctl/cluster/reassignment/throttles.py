"""Throttles of a reassignment: which replicas, on which brokers, and which of them belong to which plan.

What leaves a broker is throttled by the topic's list of leader replicas, what arrives by its list of follower
replicas, both at the broker's own rates. Every broker that holds a moving partition before the move may be
asked for data, every one that is added gets it. Lists are merged with the current ones, never overwritten; a `*`
covers everything and stays.

Source: core/src/main/scala/kafka/admin/ReassignPartitionsCommand.scala @ 2.8.2; KIP-73
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from formats.values import replace
from formats.whole_numbers import whole_number
from kctl.changes.intents import AlterConfig, ClearThrottle
from kctl.cluster.disks import LogDir
from kctl.cluster.interface import Cluster
from kctl.cluster.reassignment.moves import Move
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import V0_10_1, KafkaVersion
from kctl.errors import BadValue
from kctl.model import TopicPartition

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DISK_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"  # of copies between the disks of a broker
LISTS, RATES = (LEADER_REPLICAS, FOLLOWER_REPLICAS), (LEADER_RATE, FOLLOWER_RATE)
BROKER_KEYS = (*RATES, DISK_RATE)
KEYS = (*LISTS, *BROKER_KEYS)


def is_anything_throttled(state: ClusterState) -> bool:
    """Whether a topic that was read has a list of throttled replicas, or a broker a rate."""
    keys = {"topics": LISTS, "brokers": RATES}
    return any(
        key in config.values for (kind, _), config in state.configs.items() for key in keys.get(kind, ())
    )


EVERYTHING = "*"
Lists = dict[str, dict[str, tuple[str, ...]]]  # topic -> key -> PARTITION:BROKER


def check_rate(rate: int, version: KafkaVersion) -> None:
    """Raise BadValue for a rate that stops the move, or a version without throttles."""
    if version < V0_10_1:
        raise BadValue(
            f"Kafka {version} has no throttles; they came with 0.10.1",
            "leave the throttle out, or move in small batches",
        )
    if rate < 1:
        raise BadValue(
            f"a throttle of {rate} bytes a second would stop the move for ever",
            "give a rate that is above what producers write",
        )


def throttled_replicas(moves: Iterable[Move]) -> Lists:
    """The lists of each topic that the moves need; partitions that copy nothing need none."""
    lists: Lists = {}
    for move in moves:
        if not move.adding:
            continue
        topic, partition = move.partition
        keys = lists.setdefault(topic, {LEADER_REPLICAS: (), FOLLOWER_REPLICAS: ()})
        keys[LEADER_REPLICAS] += tuple(f"{partition}:{broker}" for broker in move.origin)
        keys[FOLLOWER_REPLICAS] += tuple(f"{partition}:{broker}" for broker in move.adding)
    return lists


def brokers_of(lists: Lists) -> list[int]:
    """Every broker that a list names."""
    return sorted(
        {int(item.partition(":")[2]) for keys in lists.values() for items in keys.values() for item in items}
    )


def list_changes(lists: Lists, state: ClusterState) -> list[AlterConfig]:
    """The changes that put these replicas on the topics' lists."""
    changes = []
    for topic, keys in sorted(lists.items()):
        present = state.config("topics", topic)
        after = {}
        for key, items in keys.items():
            had = split(present.get(key))
            if EVERYTHING in had:
                continue
            joined = [*had, *(item for item in items if item not in had)]
            if joined != had or key not in present:
                after[key] = ",".join(joined)
        if after:
            changes.append(AlterConfig.of("topics", topic, after, present))
    return changes


def rate_changes(
    brokers: Iterable[int], rate: int, state: ClusterState, rates: Sequence[str] = RATES
) -> list[AlterConfig]:
    """The changes that give these brokers the rate, in and out."""
    changes = []
    for broker in sorted(brokers):
        present = state.config("brokers", str(broker))
        keys = [key for key in rates if present.get(key) != str(rate)]
        if keys:
            changes.append(AlterConfig.of("brokers", str(broker), dict.fromkeys(keys, str(rate)), present))
    return changes


def _rates_of(broker: str, state: ClusterState, rates: Sequence[str] = RATES) -> dict[str, str | None]:
    """A broker's rates as they can be put back: one that it does not tell can only be taken away."""
    present = state.config("brokers", broker)
    return {key: None if state.is_untold(present.get(key)) else present.get(key) for key in rates}


def clearing(lists: Lists, state: ClusterState, copying: Iterable[int] = ()) -> ClearThrottle:
    """What will take the throttles away: as they are added to what is set now. `copying`: between their disks."""
    own: Lists = {}
    for topic, keys in lists.items():
        present = state.config("topics", topic)
        added = {
            key: tuple(item for item in items if item not in split(present.get(key)))
            for key, items in keys.items()
        }
        if any(added.values()):
            own[topic] = added
    rates = {
        str(broker): _rates_of(str(broker), state)
        for broker in brokers_of(lists)
        if state.backend != "admin" or state.is_alive(broker)  # a dead one takes none there
    }
    for broker in sorted(copying):
        rates[str(broker)] = rates.get(str(broker), {}) | _rates_of(str(broker), state, (DISK_RATE,))
    return ClearThrottle(throttled=own, rates=rates)


def clearing_changes(intent: ClearThrottle, state: ClusterState) -> list[AlterConfig]:
    """The configuration changes that clear a throttle, from what is set now."""
    changes = []
    for topic, keys in sorted(intent.throttled.items()):
        if topic not in state.topics:
            continue
        present = state.config("topics", topic)
        after = {}
        for key, items in keys.items():
            had = split(present.get(key))
            left = [item for item in had if item not in items]
            if key in present and (left != had or not had):
                after[key] = ",".join(left) or None
        if after:
            changes.append(AlterConfig.of("topics", topic, after, present))
    busy = brokers_throttled_otherwise(intent, state)
    untold = rates_of_dead(intent, state)
    for broker, wanted in sorted(intent.rates.items(), key=lambda item: int(item[0])):
        present = state.config("brokers", broker)
        differing = {
            k: v
            for k, v in wanted.items()
            if present.get(k) != v and (k == DISK_RATE or int(broker) not in busy)
        }
        if differing and int(broker) not in untold:
            changes.append(AlterConfig.of("brokers", broker, differing, present))
    return changes


def rates_of_dead(intent: ClearThrottle, state: ClusterState) -> dict[int, dict[str, str | None]]:
    """The rates that go from brokers that are not alive, where nobody else tells what is set there.

    A controller of KRaft takes them off without that; through ZooKeeper they are read and written as any other.
    """
    if state.backend != "admin":
        return {}
    busy = brokers_throttled_otherwise(intent, state)
    dead = {int(broker): wanted for broker, wanted in intent.rates.items() if not state.is_alive(int(broker))}
    found = {
        broker: {key: value for key, value in wanted.items() if key == DISK_RATE or broker not in busy}
        for broker, wanted in sorted(dead.items())
    }
    return {broker: wanted for broker, wanted in found.items() if wanted}


def brokers_throttled_otherwise(intent: ClearThrottle, state: ClusterState) -> set[int]:
    """Brokers that other throttled replicas need the rates of."""
    busy: set[int] = set()
    for (kind, topic), config in state.configs.items():
        if kind != "topics":
            continue
        own = intent.throttled.get(topic, {})
        for key in LISTS:
            for item in split(config.values.get(key)):
                if item == EVERYTHING:
                    busy.update(b for b in state.brokers)
                elif item not in own.get(key, ()):
                    broker = whole_number(item.partition(":")[2])
                    busy.update(() if broker is None else (broker,))
    return busy


def left_over(intent: ClearThrottle, state: ClusterState) -> list[str]:
    """What of a throttle is still set, a clause each; empty where it is gone."""
    return [
        f"{key} of {change.entity_type.removesuffix('s')} {change.entity_name}"
        for change in clearing_changes(intent, state)
        for key in change.after
    ]


def not_in_force(changes: Iterable[AlterConfig], state: ClusterState) -> list[str]:
    """What of a throttle that was written does not stand in the configurations now, a clause each."""
    found = []
    for change in changes:
        present = state.config(change.entity_type, change.entity_name)
        for key, value in change.after.items():
            if state.is_untold(present.get(key)) and key in RATES:
                continue
            shown = [item for item in split(value) if item not in split(present.get(key))]
            if value is not None and shown and EVERYTHING not in split(present.get(key)):
                found.append(f"{key} of {change.entity_type.removesuffix('s')} {change.entity_name}")
    return found


def throttle_of_partitions(partitions: Iterable[TopicPartition], state: ClusterState) -> ClearThrottle:
    """Everything on the lists about these partitions: a plan's throttle where no journal tells of it."""
    wanted: dict[str, set[int]] = {}
    for tp in partitions:
        wanted.setdefault(tp.topic, set()).add(tp.partition)
    lists: Lists = {}
    for topic, numbers in wanted.items():
        config = state.config("topics", topic)
        found = {
            key: tuple(item for item in split(config.get(key)) if _partition(item) in numbers)
            for key in LISTS
        }
        if any(found.values()):
            lists[topic] = found
    rates: dict[str, dict[str, str | None]] = {
        str(broker): dict.fromkeys(RATES) for broker in brokers_of(lists)
    }
    return ClearThrottle(throttled=lists, rates=rates)


def _partition(item: str) -> int | None:
    return whole_number(item.partition(":")[0])


def split(value: str | None) -> list[str]:
    """The items of a list as Kafka splits it."""
    return [item.strip() for item in (value or "").split(",") if item.strip()]


class Throttle(NamedTuple):
    """One throttle that is set. `is_used`: a partition on it moves, a broker has throttled replicas, or copies between
    its disks; of these also where nobody tells."""

    entity_type: str
    entity_name: str
    key: str
    value: str
    is_used: bool


def throttles_set(state: ClusterState) -> list[Throttle]:
    """Every throttle of the cluster, whoever set it: topics' lists, then brokers' rates."""
    found = []
    nothing = ClearThrottle(throttled={}, rates={})
    busy = brokers_throttled_otherwise(nothing, state)
    without_copies = _without_copies(state)
    for (kind, name), config in sorted(state.configs.items()):
        for key in LISTS if kind == "topics" else BROKER_KEYS if kind == "brokers" else ():
            value = config.values.get(key)
            if value is None:
                continue
            if kind == "topics":
                items = split(value)
                used = any(
                    (p := _partition(item)) is not None and state.is_reassigning(TopicPartition(name, p))
                    for item in items
                )
            elif key == DISK_RATE:
                used = name not in without_copies
            else:
                used = whole_number(name) in busy
            found.append(Throttle(kind, name, key, value, used))
    return found


def with_slowed_disks(cluster: Cluster, state: ClusterState) -> ClusterState:
    """The state with the log directories of brokers that are to copy slowly between their disks: whether any does."""
    slowed = {
        id
        for (kind, name), config in state.configs.items()
        if kind == "brokers" and (id := whole_number(name)) is not None and DISK_RATE in config.values
    }
    found = cluster.read_log_dirs(slowed) if slowed else None
    return replace(state, log_dirs=tuple(found)) if found else state


def _without_copies(state: ClusterState) -> set[str]:
    """Brokers that tell of all their directories and copy nothing between them."""
    dirs: dict[int, list[LogDir]] = {}
    for one in state.log_dirs:
        dirs.setdefault(one.broker_id, []).append(one)
    return {
        str(broker)
        for broker, of_broker in dirs.items()
        if all(one.path is not None for one in of_broker)
        and not any(replica.is_future for one in of_broker for replica in one.replicas)
    }


def unused_throttles(state: ClusterState) -> ClearThrottle:
    """What takes away every throttle that nothing moving needs; a `*` was set by hand for good and stays."""
    lists: Lists = {}
    rates: dict[str, dict[str, str | None]] = {}
    without_copies = _without_copies(state)
    for (kind, name), config in sorted(state.configs.items()):
        if kind == "topics":
            idle = {
                key: tuple(item for item in split(config.values.get(key)) if _is_idle(name, item, state))
                for key in LISTS
                if key in config.values
            }
            if idle:
                lists[name] = idle
        elif kind == "brokers" and whole_number(name) is not None:
            wanted = BROKER_KEYS if name in without_copies else RATES
            keys: dict[str, str | None] = {key: None for key in wanted if key in config.values}
            if keys:
                rates[name] = keys
    return ClearThrottle(throttled=lists, rates=rates)


def _is_idle(topic: str, item: str, state: ClusterState) -> bool:
    partition = _partition(item)
    return partition is not None and not state.is_reassigning(TopicPartition(topic, partition))
