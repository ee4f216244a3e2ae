"""Replicas that move: to other brokers, and to other disks of theirs."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from formats.whole_numbers import whole_number
from formats.words import counted
from kctl.changes.kinds.codecs import BY_PARTITION, LOG_DIRS
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.throttles import (
    DISK_RATE,
    EVERYTHING,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    not_in_force,
    split,
)
from kctl.cluster.disks import ReplicaDirs, ReplicaPlace, places
from kctl.cluster.intent import Intent, IntentCodec, Waited
from kctl.cluster.moves import ids
from kctl.cluster.names import dead_targets
from kctl.cluster.state import ClusterState, Replicas
from kctl.model import TopicPartition

Targets = Mapping[TopicPartition, Replicas]
ReplicaBytes = Mapping[tuple[TopicPartition, int], int]
CHANGES = IntentCodec(
    lambda value: [change.to_json() for change in value],
    lambda value: tuple(AlterConfig.from_json(row) for row in value),
)


# --- how far moves are ---


def waits_for(tp: TopicPartition, target: Sequence[int], state: ClusterState) -> str:
    """What a move waits for, as a noun."""
    behind, leader = behind_in(tp, target, state), state.leader(tp)
    dead = [b for b in behind if not state.is_alive(b)]
    if not state.has_controller:
        return "a controller"
    if dead:
        return f"broker {ids(dead)}, which is not alive"
    failed = [b for b in behind if not state.is_replica_alive(tp, b)]
    if failed:
        return f"broker {ids(failed)}, whose disk with it has failed"
    if leader is None or not state.is_alive(leader):
        return "a leader to copy from"
    if behind:
        rates = [
            rate_of(b, FOLLOWER_RATE, state) for b in behind if is_named(tp, b, FOLLOWER_REPLICAS, state)
        ]
        if is_named(tp, leader, LEADER_REPLICAS, state):
            rates.append(rate_of(leader, LEADER_RATE, state))
        throttled = min(filter(None, rates), default=0)
        more = f", throttled to {throttled:,} bytes a second" if throttled else ""
        return f"broker {ids(behind)} to join the ISR{more}"
    return "the controller"


def is_named(tp: TopicPartition, broker: int, key: str, state: ClusterState) -> bool:
    """Whether the topic's list of throttled replicas has the replica."""
    named = split(state.config("topics", tp.topic).get(key))
    return EVERYTHING in named or f"{tp.partition}:{broker}" in named


def behind_in(tp: TopicPartition, target: Sequence[int], state: ClusterState) -> list[int]:
    """The brokers of a target that are not in sync."""
    isr = state.isr(tp)
    return [b for b in target if b not in isr]


def rate_of(broker: int, key: str, state: ClusterState) -> int:
    """The rate of a throttle in bytes a second; 0 if there is none."""
    rate = state.config("brokers", str(broker)).get(key) or state.config("brokers", "<default>").get(key, "")
    return whole_number(rate) or 0


def bytes_of(
    tp: TopicPartition,
    target: Replicas,
    is_done: bool,
    state: ClusterState,
    sizes: Mapping[tuple[TopicPartition, int], int] | None,
) -> tuple[int | None, int | None]:
    """Bytes copied and to be copied, from the sizes of folders: the leader's folder counts as complete."""
    if sizes is None:
        return None, None
    partition_state = state.partition_states.get(tp)
    whole = max((sizes.get((tp, b), 0) for b in (state.replicas(tp) or ())), default=0)
    if partition_state is not None and (tp, partition_state.leader) in sizes:
        whole = sizes[tp, partition_state.leader]
    adding = [b for b in target if b not in state.topics[tp.topic].origin_replicas(tp.partition)]
    if is_done or partition_state is None:
        return whole * len(adding), 0
    behind = [b for b in target if b not in partition_state.isr]
    missing = sum(max(whole - sizes.get((tp, b), 0), 0) for b in behind)
    return max(whole * len(behind) - missing, 0), missing


def bytes_left(targets: Targets, state: ClusterState, sizes: Mapping[tuple[TopicPartition, int], int]) -> int:
    """The bytes that the replicas of all targets still have to copy."""
    return sum(
        bytes_of(tp, target, False, state, sizes)[1] or 0
        for tp, target in targets.items()
        if state.replicas(tp) is not None
    )


def reassigned(targets: Targets, state: ClusterState) -> Waited:
    """The progress of a request. The request is read before the topics, so a missing one is really finished."""
    finished, missing, lost = 0, [], []
    waiting = state.reassignment.partitions if state.reassignment else {}
    for tp, target in sorted(targets.items()):
        if (
            state.replicas(tp) == tuple(target)
            and not state.is_reassigning(tp)
            and _is_over(tp, target, state)
        ):
            finished += 1
        elif (why := state.why_unseen(tp.topic)) is not None:
            lost.append(f"{tp} cannot be seen ({why})")
        elif state.replicas(tp) is None:
            lost.append(f"{tp} is gone")
        elif tp in waiting or state.is_reassigning(tp) or _is_on_its_way(tp, target, state):
            missing.append(f"{tp} waits for {waits_for(tp, target, state)}")
        else:
            lost.append(
                f"the controller took {tp} off the list and left it on {list(state.replicas(tp) or ())}"
            )
    failed = "; ".join(lost[:3]) if lost and not missing and state.reassignment is None else ""
    return Waited(finished, len(targets), tuple(missing + lost), failed)


def _is_over(tp: TopicPartition, target: Replicas, state: ClusterState) -> bool:
    """Whether to stop waiting for a move that the controller has ended.

    A cancellation brings no dead replica back. With ZooKeeper the request may end before the move.
    """
    behind = [b for b in target if b not in state.isr(tp)]
    return not behind or (
        state.can.cancel_moves and len(behind) < len(target)
        and not any(state.is_replica_alive(tp, b) for b in behind)
    )  # fmt: skip


def _is_on_its_way(tp: TopicPartition, target: Replicas, state: ClusterState) -> bool:
    """Whether it is in place and not in sync, or still on old and new brokers without the request.

    Until 2.3 the request ends too early (KAFKA-6193); over the Admin protocol the broker that describes the
    topic may be behind the controller, which no longer lists the move.
    """
    replicas = state.replicas(tp) or ()
    return replicas == target or set(target) < set(replicas)


def is_requested(targets: Targets, state: ClusterState) -> bool:
    """Whether the controller has a request to these targets, or has carried it out."""
    waiting = state.reassignment.partitions if state.reassignment else {}
    return all(
        waiting.get(tp) == tuple(target)
        or (tp.topic in state.topics and state.is_reassigning(tp) and _goes_to(state, tp, target))
        or state.replicas(tp) == tuple(target)
        for tp, target in targets.items()
    )


def _goes_to(state: ClusterState, tp: TopicPartition, target: Replicas) -> bool:
    return set(state.topics[tp.topic].target_replicas(tp.partition)) == set(target)


def copy_waits_for(place: ReplicaPlace, path: str, broker: int, state: ClusterState) -> str:
    """What the move of a replica to a directory waits for."""
    if place.future_log_dir is None:
        return f"broker {broker} does not copy it from {place.log_dir} to {path}"
    rate = disk_rate_of(broker, state)
    more = f", throttled to {rate:,} bytes a second" if rate else ""
    return f"broker {broker} copies it from {place.log_dir} to {place.future_log_dir}{more}"


def disk_rate_of(broker: int, state: ClusterState) -> int:
    rate = state.config("brokers", str(broker)).get(DISK_RATE, "")
    return whole_number(rate) or 0


# --- the changes ---


class Reassign(Intent, frozen=True, kw_only=True):
    """Move partitions to their targets; configuration changes (throttles) go in the same transaction.

    Refused unless each partition's replicas are still its origin, in order. Inverse: the same with target and
    origin exchanged, and the configurations put back; refused where a broker of an origin is not alive.
    """

    kind: ClassVar[str] = "reassign"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {
        "targets": BY_PARTITION,
        "origins": BY_PARTITION,
        "config_changes": CHANGES,
    }
    does: ClassVar[str] = "reassign {targets:partition}"
    targets: Mapping[TopicPartition, Replicas]
    origins: Mapping[TopicPartition, Replicas]
    config_changes: tuple[AlterConfig, ...] = ()

    def inverse(self) -> Intent:
        changes = [change.inverse() for change in self.config_changes]
        return Reassign(
            targets=self.origins,
            origins=self.targets,
            config_changes=tuple(change for change in changes if isinstance(change, AlterConfig)),
        )

    @property
    def throttle_changes(self) -> tuple[AlterConfig, ...]:
        return self.config_changes

    def how_far(self, state: ClusterState) -> Waited:
        return reassigned(self.targets, state)

    def is_shown_written(self, state: ClusterState) -> bool:
        return self.how_far(state).is_done or is_requested(self.targets, state)

    def not_in_force(self, read_state: Callable[[], ClusterState]) -> list[str]:
        return not_in_force(self.config_changes, read_state()) if self.config_changes else []

    def bytes_left(self, state: ClusterState, sizes: Callable[[], ReplicaBytes | None]) -> int | None:
        known = sizes()
        return None if known is None else bytes_left(self.targets, state, known)

    @property
    def is_nothing(self) -> bool:
        return self.targets == self.origins

    def refuse_dead(self, state: ClusterState) -> None:
        for tp, replicas in self.targets.items():
            topic = state.topics.get(tp.topic)
            is_moving = topic is not None and topic.is_reassigning(tp.partition)  # what runs is cancelled
            if not is_moving and (
                dead := sorted(broker for broker in replicas if not state.is_alive(broker))
            ):
                raise dead_targets(tp, dead)


class AlterReplicaLogDirs(Intent, frozen=True, kw_only=True):
    """Move replicas to other log directories of their brokers; configuration changes (throttles) go before.

    Refused unless each replica is in its previous directory, or on its way there. One without such is not on the
    broker yet, and comes to be in the right place. Inverse: exchanged, which also ends a copy that is under way.
    """

    kind: ClassVar[str] = "alter-replica-log-dirs"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {
        "log_dirs": LOG_DIRS,
        "previous_log_dirs": LOG_DIRS,
        "config_changes": CHANGES,
    }
    log_dirs: ReplicaDirs
    previous_log_dirs: ReplicaDirs
    config_changes: tuple[AlterConfig, ...] = ()

    def __str__(self) -> str:
        brokers = sorted({broker for _, broker in self.log_dirs})
        named = f"broker{'' if len(brokers) == 1 else 's'} {', '.join(map(str, brokers))}"
        return f"move {counted(len(self.log_dirs), 'replica')} to other disks of {named}"

    def inverse(self) -> Intent:
        log_dirs = {key: self.log_dirs[key] for key in self.previous_log_dirs}
        return AlterReplicaLogDirs(log_dirs=self.previous_log_dirs, previous_log_dirs=log_dirs)

    def topics_concerned(self) -> set[str] | None:
        return {tp.topic for tp, _ in self.log_dirs}

    def brokers_of_disks(self) -> set[int]:
        return {broker for _, broker in self.log_dirs}

    @property
    def throttle_changes(self) -> tuple[AlterConfig, ...]:
        return self.config_changes

    def how_far(self, state: ClusterState) -> Waited:
        """The progress of the copies; replicas that a broker does not have yet are not waited for."""
        placed = places(state.log_dirs)
        states = {(log_dir.broker_id, log_dir.path): log_dir for log_dir in state.log_dirs}
        missing, failed = [], []
        for (tp, broker), path in sorted(self.log_dirs.items()):
            place, silent = placed.get((tp, broker)), states.get((broker, None))
            target = states.get((broker, path))
            if silent is not None:
                missing.append(f"broker {broker} does not report its log directories: {silent.error}")
            elif target is not None and target.state == "failed":
                failed.append(f"log directory {path} of broker {broker} has failed, and {tp} is not in it")
            elif place is None and (tp, broker) in self.previous_log_dirs:
                missing.append(f"broker {broker} reports nothing about {tp}")
            elif place is not None and (place.target != path or place.future_log_dir is not None):
                missing.append(f"{tp}: {copy_waits_for(place, path, broker, state)}")
        done = len(self.log_dirs) - len(missing) - len(failed)
        return Waited(done, len(self.log_dirs), (*missing, *failed), "" if missing else "; ".join(failed[:3]))

    def bytes_left(self, state: ClusterState, sizes: Callable[[], ReplicaBytes | None]) -> int | None:
        placed = places(state.log_dirs)
        return sum(placed[key].bytes_to(path) for key, path in self.log_dirs.items() if key in placed)

    @property
    def is_nothing(self) -> bool:
        return not self.log_dirs


class ReplaceStuckReassignment(Intent, frozen=True, kw_only=True):
    """Take away a waiting reassignment that never ends, put targets in its place and move the controller.

    The one exception to "never delete a waiting request"; only for `reassign cancel --move-controller`.
    `targets` are the origin lists to go back to; `stuck` is what waits now. No inverse.
    """

    kind: ClassVar[str] = "replace-stuck-reassignment"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"targets": BY_PARTITION, "stuck": BY_PARTITION}
    does: ClassVar[str] = "replace the stuck reassignment of {stuck:partition}, moving the controller"
    final: ClassVar[str] = "the move that was stuck can be planned again"
    targets: Mapping[TopicPartition, Replicas]
    stuck: Mapping[TopicPartition, Replicas]
    broker_id: int  # the present controller

    def how_far(self, state: ClusterState) -> Waited:
        return reassigned(self.targets, state)

    def is_shown_written(self, state: ClusterState) -> bool:
        return self.how_far(state).is_done or is_requested(self.targets, state)

    def bytes_left(self, state: ClusterState, sizes: Callable[[], ReplicaBytes | None]) -> int | None:
        known = sizes()
        return None if known is None else bytes_left(self.targets, state, known)
