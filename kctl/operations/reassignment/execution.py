"""Carry out a reassignment: its stages and its conditions.

A ZooKeeper controller checks nothing in a request and accepts one at a time, so everything is checked here, for
all partitions at once, and a batch is requested only when the one before is done.
"""

from collections.abc import Sequence

from formats.values import Struct, field
from formats.words import counted
from kctl.changes.intents import intent_to_json
from kctl.changes.kinds.reassignments import AlterReplicaLogDirs, Reassign, Targets
from kctl.changes.kinds.throttles import (
    DISK_RATE,
    ClearThrottle,
    brokers_of,
    check_rate,
    clearing,
    list_changes,
    rate_changes,
    throttled_replicas,
)
from kctl.changes.plan import Plan, Stage
from kctl.cluster.disks import ReplicaDirs
from kctl.cluster.intent import Intent
from kctl.cluster.interface import Cluster
from kctl.cluster.moves import Move, Sizes, ids, moves_of, seconds_to_move
from kctl.cluster.names import refuse_hidden
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, Refused
from kctl.model import Json, some
from kctl.operations.configs import MIN_ISR
from kctl.operations.reassignment.disk_moves import DiskMove, check_log_dirs, disk_moves, refuse_disks
from kctl.times import utc_text

NETWORK_RATE = 100 * 1024 * 1024  # bytes a second to estimate an unthrottled move


class Execution(Struct, frozen=True, kw_only=True):
    """A reassignment to carry out. `plan_id` is of the whole file, also if parts of it are done."""

    targets: Targets
    file: str
    plan_id: str
    batches: Sequence[Targets]
    throttle: int | None = None
    sizes: Sizes | None = None
    clear_at_end: bool = True
    log_dirs: ReplicaDirs = field(default_factory=dict)


def plan_execution(cluster: Cluster, execution: Execution, state: ClusterState) -> Plan:
    """The plan of a change that carries a reassignment out; empty if everything is in place.

    `state` must hold the topics of the targets with their configurations, and those of brokers; and the log directories
    of brokers for which the plan names some.
    Raises KctlError for unknown partitions, Refused for all partitions that must not be moved.
    """
    check_targets(execution.targets, state)
    origins = {tp: replicas for tp in execution.targets if (replicas := state.replicas(tp)) is not None}
    moves = list(moves_of(execution.targets, origins, execution.sizes))
    if execution.log_dirs:
        refuse_disks(state.can)
    on_disks = disk_moves(execution.log_dirs, state)
    title = _title(moves, on_disks, execution.file)
    if not moves and not on_disks:
        return Plan(title=title, stages=())
    check_log_dirs(execution.log_dirs, state)
    _refuse_under_way(state, moves)
    if execution.throttle is not None:
        check_rate(execution.throttle, state.kafka_version)
    moving = {move.partition for move in moves}
    batches = [{tp: t for tp, t in batch.items() if tp in moving} for batch in execution.batches]
    stages, clear = _stages(cluster, execution, [b for b in batches if b], origins, moves, on_disks, state)
    details: dict[str, Json] = {"plan": execution.plan_id, "file": execution.file, "batches": len(batches)}
    if clear is not None:
        details["throttle"] = intent_to_json(clear)
        details["rate"] = execution.throttle or 0
    return Plan(
        title=title, stages=stages, warnings=tuple(_warnings(execution, moves, state)), details=details
    )


def _title(moves: Sequence[Move], on_disks: Sequence[DiskMove], file: str) -> str:
    parts = [f"reassign {counted(len(moves), 'partition')}"] if moves or not on_disks else []
    if on_disks:
        parts.append(f"move {counted(len(on_disks), 'replica')} to other disks")
    return f"{' and '.join(parts)} as {file} says"


def _stages(
    cluster: Cluster,
    execution: Execution,
    batches: Sequence[Targets],
    origins: Targets,
    moves: Sequence[Move],
    on_disks: Sequence[DiskMove],
    state: ClusterState,
) -> tuple[tuple[Stage, ...], ClearThrottle | None]:
    """Disks first, then a stage a batch, each with the throttled lists of topics that it changes first; rates in the first.

    A broker gets the directory of a future replica beforehand, and forgets it with a restart.
    """
    lists = throttled_replicas(moves) if execution.throttle is not None else {}
    copying = sorted({move.broker_id for move in on_disks}) if execution.throttle is not None else []
    clear = clearing(lists, state, copying) if lists or copying else None
    rates = rate_changes(brokers_of(lists), execution.throttle or 0, state) if lists else []
    stages = []
    if on_disks:
        disks = AlterReplicaLogDirs(
            log_dirs={(move.partition, move.broker_id): move.to_log_dir for move in on_disks},
            previous_log_dirs={
                (move.partition, move.broker_id): move.from_log_dir for move in on_disks if move.from_log_dir
            },
            config_changes=tuple(rate_changes(copying, execution.throttle or 0, state, (DISK_RATE,))),
        )
        before = disks.inverse()
        stages.append(
            Stage(
                intent=disks,
                writes=cluster.writes_for(disks, state),
                undo=(before,) if clear is None else (clear, before),
            )
        )
    for number, batch in enumerate(batches):
        topics = {tp.topic for tp in batch}
        own = {topic: lists.pop(topic) for topic in sorted(topics & lists.keys())}
        intent = Reassign(
            targets=batch,
            origins={tp: origins[tp] for tp in batch},
            config_changes=(*list_changes(own, state), *(rates if number == 0 else ())),
        )
        back = Reassign(targets=intent.origins, origins=intent.targets)
        undo: tuple[Intent, ...] = (back,) if clear is None else (clear, back)
        writes = cluster.writes_for(intent, state) if number == 0 and not on_disks else ()
        stages.append(Stage(intent=intent, writes=writes, undo=undo))
    to_come = {
        (move.partition, move.broker_id): move.to_log_dir for move in on_disks if not move.from_log_dir
    }
    if to_come:
        stages.append(Stage(intent=AlterReplicaLogDirs(log_dirs=to_come, previous_log_dirs={}), undo=()))
    if clear is not None and execution.clear_at_end:
        stages.append(Stage(intent=clear, undo=()))
    return tuple(stages), clear


# --- conditions -------------------------------------------------------------------------------------


def check_targets(targets: Targets, state: ClusterState) -> None:
    """Raise for all impossible targets: hidden, unknown, being deleted, dead, or never with a leader."""
    refuse_hidden({tp.topic for tp in targets}, state)
    unknown = [tp for tp in sorted(targets) if state.replicas(tp) is None]
    if unknown:
        raise KctlError(f"no partition {some(unknown)}", "was the plan made for another cluster?")
    going = sorted({tp.topic for tp in targets} & state.deleting)
    if going:
        raise Refused(
            f"topics {', '.join(going)} are marked for deletion; nothing was written",
            "wait until they are gone, or take them out of the plan",
        )
    moving = {tp: replicas for tp, replicas in targets.items() if state.replicas(tp) != replicas}
    dead = {b for replicas in moving.values() for b in replicas if not state.is_alive(b)}
    if dead:
        stuck = [tp for tp, replicas in sorted(moving.items()) if dead & set(replicas)]
        raise Refused(
            f"brokers {ids(dead)} are not alive, and the moves of {some(stuck)} would never finish; "
            "nothing was written",
            f"alive are {ids(state.live_brokers)}",
        )
    never_led = [tp for tp in sorted(targets) if tp not in state.partition_states]
    if never_led:
        raise Refused(
            f"{some(never_led)} never had a leader and cannot be moved; nothing was written",
            "take them out of the plan; `kctl cluster health` shows what keeps them from a leader",
        )


def _refuse_under_way(state: ClusterState, moves: Sequence[Move]) -> None:
    moving = [move.partition for move in moves if state.is_reassigning(move.partition)]
    if state.reassignment is not None:
        waiting = sorted(state.reassignment.partitions)
        waiting_partitions = (
            f": {some(waiting)} {'is' if len(waiting) == 1 else 'are'} left in it" if waiting else ""
        )
        since = _moment(state.reassignment.created_at)
        raise Refused(
            f"a reassignment is under way{since}{waiting_partitions}; nothing was written",
            "wait for it (`kctl reassign status` shows what it waits for); deleting its znode does not cancel it",
        )
    if moving:
        raise Refused(
            f"{some(moving)} is already being moved; nothing was written", "wait for it, or cancel it"
        )


def _moment(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    return f" since {utc_text(milliseconds)}"


def _warnings(execution: Execution, moves: Sequence[Move], state: ClusterState) -> list[str]:
    copying = [move for move in moves if move.adding]
    warnings = []
    if copying and execution.throttle is None:
        replicas = sum(len(move.adding) for move in copying)
        estimate = ""
        if execution.sizes is not None:
            seconds = seconds_to_move(copying, NETWORK_RATE)
            estimate = f", about {seconds} s at {NETWORK_RATE // 1024**2} MiB/s a broker"
        warnings.append(
            f"no --throttle: {counted(replicas, 'replica')} of {counted(len(copying), 'partition')} "
            f"are copied as fast as the network allows{estimate}; not covered: {some([m.partition for m in copying])}"
        )
    elif copying and execution.sizes is not None:
        seconds = seconds_to_move(copying, execution.throttle or 1)
        warnings.append(
            f"at {execution.throttle:,} bytes a second the moves take about {seconds:,} s or more"
        )
    shrinking = [move.partition for move in moves if len(move.target) < len(move.origin)]
    if shrinking:
        warnings.append(f"{some(shrinking)} will have fewer replicas than now")
    few = [move.partition for move in moves if len(move.target) < _needed(move.partition.topic, state)]
    if few:
        warnings.append(f"{some(few)} will have fewer replicas than {MIN_ISR}: acks=all never works there")
    leaderless = [
        m.partition for m in moves if not state.is_alive(state.partition_states[m.partition].leader)
    ]
    if leaderless:
        warnings.append(f"{some(leaderless)} has no leader now; its move waits until it has one")
    strays = sorted({b for move in moves for b in move.removing if not state.is_alive(b)})
    if strays:
        warnings.append(f"brokers {ids(strays)} are not alive and will keep folders of what moves off them")
    if not state.has_controller:
        warnings.append("there is no controller; the request waits until there is one")
    return warnings


def _needed(topic: str, state: ClusterState) -> int:
    """The number of in-sync replicas that acks=all needs."""
    value = state.topic_value(topic, None, MIN_ISR) or ""
    return int(value) if value.isdecimal() else 1
