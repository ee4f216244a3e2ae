"""Throttles of a reassignment: replicas, brokers, and the plans that they belong to.

Outgoing data is throttled by the topic's list of leader replicas, incoming data by its list of follower
replicas, both at the broker's own rates. Every broker that holds a moving partition before the move may be
asked for data, every one that is added gets it. Lists are merged with the current ones, never overwritten; a `*`
covers everything and stays.

Source: core/src/main/scala/kafka/admin/ReassignPartitionsCommand.scala @ 2.8.2; KIP-73
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from formats.values import replace
from formats.whole_numbers import whole_number
from kctl.changes.kinds.configs import AlterConfig
from kctl.cluster.disks import BrokerLogDir
from kctl.cluster.intent import Intent, IntentCodec, Remainder
from kctl.cluster.interface import Cluster
from kctl.cluster.moves import Move
from kctl.cluster.names import refuse_absent, refuse_hidden
from kctl.cluster.rights import grant
from kctl.cluster.state import MOVES, ClusterState
from kctl.cluster.versions import V0_10_1, KafkaVersion
from kctl.cluster.visibility import with_hidden_topics
from kctl.errors import BadValue, KctlError
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


class ClearThrottle(Intent, frozen=True, kw_only=True):
    """Take a reassignment's throttles away: its replicas off the topics' lists, its rates off the brokers.

    Worked out from what is set then: what others have put on the lists stays, and a broker keeps its rates while
    anything else is throttled there. Doing it twice does no harm, so that it is its own inverse.
    """

    kind: ClassVar[str] = "clear-throttle"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {
        "throttled": IntentCodec(
            lambda value: {topic: {k: list(v) for k, v in keys.items()} for topic, keys in value.items()},
            lambda value: {topic: {k: tuple(v) for k, v in keys.items()} for topic, keys in value.items()},
        ),
        "rates": IntentCodec(lambda value: {broker: dict(keys) for broker, keys in value.items()}, dict),
    }
    ends_throttles: ClassVar[bool] = True
    does: ClassVar[str] = "clear the throttles of {throttled:topic} on {rates:broker}"
    throttled: Mapping[str, Mapping[str, tuple[str, ...]]]  # topic -> key -> PARTITION:BROKER
    rates: Mapping[str, Mapping[str, str | None]]  # broker -> key -> what was set before

    def inverse(self) -> Intent:
        return self

    def topics_concerned(self) -> set[str] | None:
        return None  # a broker keeps its rate while any topic is throttled there

    def config_types(self) -> tuple[str, ...]:
        return ("topics", "brokers")

    def topics_named(self) -> Collection[str]:
        return self.throttled

    def is_shown_written(self, state: ClusterState) -> bool:
        return not not_read(self, state) and not left_over(self, state) and not rates_of_dead(self, state)

    def places_to_look(self) -> list[str]:
        return [f"broker {broker}" for broker in self.rates]

    def remainder(self, state: ClusterState, taken: Collection[str]) -> Remainder:
        """The throttle that is left on brokers that came back, and on topics that were hidden, when it was cleared."""
        # `taken` lacks a broker that died since: it was asked itself, and the controller was not.
        is_more = state.quorum is not None and bool({*map(str, rates_of_dead(self, state))} - set(taken))
        places = [place for place in not_read(self, state) if place.removeprefix("broker ") not in taken]
        return Remainder(left_over(self, state), places, is_more)


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
    """A broker's rates for restoring: one that it does not return can only be deleted."""
    present = state.config("brokers", broker)
    return {key: None if state.is_not_returned(present.get(key)) else present.get(key) for key in rates}


def clearing(lists: Lists, state: ClusterState, copying: Iterable[int] = ()) -> ClearThrottle:
    """The intent that removes throttles being added to the present ones. `copying`: brokers that copy between disks."""
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
        if state.can.keep_configs_of_dead or state.is_alive(broker)  # a dead one accepts none
    }
    for broker in sorted(copying):
        rates[str(broker)] = rates.get(str(broker), {}) | _rates_of(str(broker), state, (DISK_RATE,))
    return ClearThrottle(throttled=own, rates=rates)


def clearing_changes(intent: ClearThrottle, state: ClusterState) -> list[AlterConfig]:
    """The configuration changes that clear a throttle, from the present values."""
    changes = []
    for topic, keys in sorted(intent.throttled.items()):
        if topic not in state.topics:
            continue
        present = state.config("topics", topic)
        after = {}
        for key, items in keys.items():
            had = split(present.get(key))
            remaining = [item for item in had if item not in items]
            if key in present and (remaining != had or not had):
                after[key] = ",".join(remaining) or None
        if after:
            changes.append(AlterConfig.of("topics", topic, after, present))
    busy = brokers_throttled_otherwise(intent, state)
    untold = rates_of_dead(intent, state)
    for broker, rates in sorted(intent.rates.items(), key=lambda item: int(item[0])):
        present = state.config("brokers", broker)
        differing = {
            k: v
            for k, v in rates.items()
            if present.get(k) != v and (k == DISK_RATE or int(broker) not in busy)
        }
        if differing and int(broker) not in untold:
            changes.append(AlterConfig.of("brokers", broker, differing, present))
    return changes


def rates_of_dead(intent: ClearThrottle, state: ClusterState) -> dict[int, dict[str, str | None]]:
    """The rates to remove from dead brokers, whose present values no other broker returns.

    A KRaft controller removes them anyway; through ZooKeeper they are read and written as usual.
    """
    if state.can.keep_configs_of_dead:
        return {}
    busy = brokers_throttled_otherwise(intent, state)
    dead = {int(broker): rates for broker, rates in intent.rates.items() if not state.is_alive(int(broker))}
    changes = {
        broker: {key: value for key, value in rates.items() if key == DISK_RATE or broker not in busy}
        for broker, rates in sorted(dead.items())
    }
    return {broker: rates for broker, rates in changes.items() if rates}


def brokers_throttled_otherwise(intent: ClearThrottle, state: ClusterState) -> set[int]:
    """Brokers whose rates other throttled replicas need."""
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
    """The parts of a throttle that are still set, a clause each."""
    return [
        f"{key} of {change.entity_type.removesuffix('s')} {change.entity_name}"
        for change in clearing_changes(intent, state)
        for key in change.after
    ]


def not_read(intent: ClearThrottle, state: ClusterState) -> list[str]:
    """The brokers and topics that may still have a part of a throttle, since their configuration was not read."""
    if state.can.keep_configs_of_dead:
        return []
    kept = brokers_throttled_otherwise(intent, state)
    brokers = [
        f"broker {b}"
        for b, rates in sorted(intent.rates.items(), key=lambda item: int(item[0]))
        if int(b) not in state.broker_files and (int(b) not in kept or DISK_RATE in rates)
    ]
    topics = [f"topic {t}" for t in sorted(intent.throttled) if state.why_unread("topics", t) is not None]
    return brokers + topics


def brokers_that_cannot_report(state: ClusterState, known: Collection[int] = ()) -> list[int]:
    """The brokers that cannot report their throttle since they are not alive, ascending.

    Before 4.0 brokers list only live ones; the others are those that still have replicas, or throttled ones, and those
    `known` from elsewhere.
    """
    if state.can.keep_configs_of_dead:
        return []
    with_replicas = {id for topic in state.topics.values() for ids in topic.partitions.values() for id in ids}
    throttled = {
        broker
        for (kind, _), config in state.configs.items()
        for key in (LISTS if kind == "topics" else ())
        for item in split(config.values.get(key))
        if (broker := whole_number(item.partition(":")[2])) is not None
    }
    brokers = {*state.brokers, *known} | with_replicas | throttled
    return sorted(id for id in brokers if not state.is_alive(id))


def may_be_left(places: Sequence[str], state: ClusterState) -> KctlError:
    """The error that a throttle may be left where it could not be read, with the rights that are missing."""
    of_places = {f"configuration of {place}" for place in places} | set(places)
    denied = [
        problem for problem in state.problems if problem.right is not None and problem.place in of_places
    ]
    why = "; ".join(dict.fromkeys(problem.reason for problem in denied))
    rights = [problem.right for problem in denied if problem.right is not None]
    return KctlError(
        f"the throttle may be left on {', '.join(places)}, whose configuration cannot be read{why and f' ({why})'}; "
        "nothing was written",
        grant(list(dict.fromkeys(rights)), denied[0].principal)
        if denied
        else "start the brokers, or run it as a user that may describe the topics, and clear the throttle again",
    )


def refuse_unseen(cluster: Cluster, topics: Collection[str] | None, state: ClusterState) -> None:
    """Raise KctlError for topics that this user does not see, or that are not there."""
    seen = with_hidden_topics(cluster, topics or (), state)
    refuse_hidden(topics or (), seen)
    refuse_absent(topics, seen)


def not_in_force(changes: Iterable[AlterConfig], state: ClusterState) -> list[str]:
    """The parts of a written throttle that the configurations do not have now, a clause each."""
    clauses = []
    for change in changes:
        present = state.config(change.entity_type, change.entity_name)
        for key, value in change.after.items():
            is_unread = state.why_unread(change.entity_type, change.entity_name) is not None
            if is_unread or (state.is_not_returned(present.get(key)) and key in RATES):
                continue  # what cannot be read is named when it is cleared
            shown = [item for item in split(value) if item not in split(present.get(key))]
            if value is not None and shown and EVERYTHING not in split(present.get(key)):
                clauses.append(f"{key} of {change.entity_type.removesuffix('s')} {change.entity_name}")
    return clauses


def throttle_of_partitions(partitions: Iterable[TopicPartition], state: ClusterState) -> ClearThrottle:
    """Everything on the lists about these partitions: a plan's throttle without a journal entry."""
    numbers_by_topic: dict[str, set[int]] = {}
    for tp in partitions:
        numbers_by_topic.setdefault(tp.topic, set()).add(tp.partition)
    lists: Lists = {}
    for topic, numbers in numbers_by_topic.items():
        config = state.config("topics", topic)
        throttled = {
            key: tuple(item for item in split(config.get(key)) if _partition(item) in numbers)
            for key in LISTS
        }
        if any(throttled.values()) or state.why_unseen(topic) is not None:
            lists[topic] = throttled
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
    its disks, or that is unknown; None where a hidden topic may use it."""

    entity_type: str
    entity_name: str
    key: str
    value: str
    is_used: bool | None
    why: str | None = None  # is_used is None


def throttles_set(state: ClusterState) -> list[Throttle]:
    """Every throttle of the cluster: topics' lists, then brokers' rates."""
    throttles = []
    nothing = ClearThrottle(throttled={}, rates={})
    busy = brokers_throttled_otherwise(nothing, state)
    without_copies = _without_copies(state)
    moves_unread = state.why_not_read(MOVES)
    hidden = state.hidden or moves_unread
    for (kind, name), config in sorted(state.configs.items()):
        for key in LISTS if kind == "topics" else BROKER_KEYS if kind == "brokers" else ():
            value = config.values.get(key)
            if value is None:
                continue
            used: bool | None
            why = moves_unread if kind == "topics" else None if key == DISK_RATE else hidden
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
            unknown = not used and bool(why)
            throttles.append(Throttle(kind, name, key, value, *((None, why) if unknown else (used, None))))
    return throttles


def with_slowed_disks(cluster: Cluster, state: ClusterState) -> ClusterState:
    """The state with the log directories of brokers that have a rate for copies between disks."""
    slowed = {
        id
        for (kind, name), config in state.configs.items()
        if kind == "brokers" and (id := whole_number(name)) is not None and DISK_RATE in config.values
    }
    log_dirs = cluster.read_log_dirs(slowed) if slowed else None
    return replace(state, log_dirs=tuple(log_dirs)) if log_dirs else state


def _without_copies(state: ClusterState) -> set[str]:
    """Brokers that describe all their directories and copy nothing between them."""
    dirs: dict[int, list[BrokerLogDir]] = {}
    for log_dir in state.log_dirs:
        dirs.setdefault(log_dir.broker_id, []).append(log_dir)
    return {
        str(broker)
        for broker, broker_dirs in dirs.items()
        if all(log_dir.path is not None for log_dir in broker_dirs)
        and not any(replica.is_future for log_dir in broker_dirs for replica in log_dir.replicas)
    }


def unused_throttles(state: ClusterState) -> ClearThrottle:
    """The intent that removes every throttle that no move needs; a `*` was set by hand for good and stays."""
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
            rate_keys = BROKER_KEYS if name in without_copies else RATES
            keys: dict[str, str | None] = {key: None for key in rate_keys if key in config.values}
            if keys:
                rates[name] = keys
    return ClearThrottle(throttled=lists, rates=rates)


def _is_idle(topic: str, item: str, state: ClusterState) -> bool:
    partition = _partition(item)
    return partition is not None and not state.is_reassigning(TopicPartition(topic, partition))
