"""Moves between the log directories of one broker: what may be requested, and the progress of copies.

A broker writes the copy beside the present replica, and replaces that when it has caught up. It continues by itself
after a restart, and is cancelled by a request for the present directory. While one of its
directories has failed a broker begins no copy, not even between two others.

Source: KIP-113; core/src/main/scala/kafka/server/ReplicaManager.scala (alterReplicaLogDirs), core/src/main/scala/kafka/log/
LogManager.scala (getOrCreateLog) @ 3.9.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kctl.changes.kinds.reassignments import AlterReplicaLogDirs, copy_waits_for, disk_rate_of
from kctl.cluster.backends import Abilities
from kctl.cluster.disks import BrokerLogDir, ReplicaDirs, ReplicaPlace, places
from kctl.cluster.rights import UNKNOWN_PRINCIPAL, MissingRight, Right
from kctl.cluster.state import ClusterState, Replicas
from kctl.errors import Refused
from kctl.model import TopicPartition, some
from kctl.operations.reassignment.verification import DONE, FAILED, IN_PROGRESS, NOT_STARTED, MoveStatus

if TYPE_CHECKING:
    from kctl.changes.entry import Entry

Key = tuple[TopicPartition, int]


class DiskMove(NamedTuple):
    """A replica that goes to another directory; `from_log_dir` is None for one that its broker is still to get."""

    partition: TopicPartition
    broker_id: int
    replicas: Replicas
    from_log_dir: str | None
    to_log_dir: str
    size_in_bytes: int | None


def disk_moves(log_dirs: ReplicaDirs, state: ClusterState) -> list[DiskMove]:
    """The moves of a plan's directories that are not done, by partition and broker. The state has the directories."""
    placed = places(state.log_dirs)
    moves = []
    for (tp, broker), path in sorted(log_dirs.items()):
        place = placed.get((tp, broker))
        if place is None or place.target != path:
            replicas = state.replicas(tp) or ()
            size = place.size_in_bytes if place else None
            moves.append(DiskMove(tp, broker, replicas, place and place.target, path, size))
    return moves


# --- what must hold -----------------------------------------------------------------------------------


def refuse_disks(can: Abilities) -> None:
    """Raise Refused where replicas cannot be moved between disks."""
    if not can.move_disks:
        raise Refused(
            "only the broker itself, not ZooKeeper, can move replicas between its disks; nothing was written",
            "give --bootstrap-server HOST:PORT (Kafka 1.1 and later, KIP-113)",
        )


def check_broker(broker: int, state: ClusterState) -> list[BrokerLogDir]:
    """The log directories of a broker. Raises Refused where it does not tell them, or one has failed."""
    known = [log_dir for log_dir in state.log_dirs if log_dir.broker_id == broker]
    if any(log_dir.is_denied for log_dir in known):
        raise MissingRight(
            Right("Describe"), state.principal or UNKNOWN_PRINCIPAL, f"log directories of broker {broker}"
        )
    silent = next(
        (log_dir.error for log_dir in known if log_dir.path is None), None if known else "it is not alive"
    )
    if silent is not None:
        raise Refused(
            f"broker {broker} does not report its log directories: {silent}; nothing was written",
            "start the broker, or try again when it answers",
        )
    if failed := [str(log_dir.path) for log_dir in known if log_dir.state == "failed"]:
        raise Refused(
            f"broker {broker} copies nothing between its disks while {', '.join(failed)} has failed; nothing was written",
            "repair it, or take it out of log.dirs, and restart the broker",
        )
    return known


def check_log_dirs(log_dirs: ReplicaDirs, state: ClusterState) -> None:
    """Raise Refused for what a broker would refuse or could not finish; `state` has its directories.

    A copy to be cancelled may be in any directory.
    """
    placed = places(state.log_dirs)
    changes = {key: path for key, path in log_dirs.items() if not _is_there(placed.get(key), path)}
    for broker in sorted({broker for _, broker in changes}):
        own = {key: path for key, path in changes.items() if key[1] == broker}
        _check_broker(broker, own, placed, state)


def _is_there(place: ReplicaPlace | None, path: str) -> bool:
    return place is not None and path in (place.log_dir, place.future_log_dir)


def _check_broker(
    broker: int, changes: ReplicaDirs, placed: Mapping[Key, ReplicaPlace], state: ClusterState
) -> None:
    known = [log_dir for log_dir in state.log_dirs if log_dir.broker_id == broker]
    usable = ", ".join(str(log_dir.path) for log_dir in known if log_dir.state == "online") or "none"
    hint = f"log directories of broker {broker} that can be used: {usable}"
    by_path = {log_dir.path: log_dir for log_dir in known if log_dir.path is not None}
    for path in sorted(set(changes.values())) if by_path else ():
        target = by_path.get(path)
        if target is None:
            raise Refused(f"broker {broker} has no log directory {path}; nothing was written", hint)
        if target.state != "online":
            raise Refused(f"log directory {path} of broker {broker} {_is(target)}; nothing was written", hint)
        size = sum(placed[key].size_in_bytes for key, to in changes.items() if to == path and key in placed)
        if target.usable_bytes is not None and size > target.usable_bytes:
            raise Refused(
                f"log directory {path} of broker {broker} has {target.usable_bytes:,} bytes left, and {size:,} would "
                "be copied there; nothing was written",
                "plan a move to another log directory (`kctl cluster disks` shows what is free), or free space there",
            )
    check_broker(broker, state)
    lost = [tp for tp, _ in changes if broker in (state.replicas(tp) or ()) and (tp, broker) not in placed]
    if lost:
        raise Refused(
            f"broker {broker} reports nothing about {some(sorted(lost))}; nothing was written",
            "plan again when `kctl topic describe` shows no offline replica on it",
        )
    for key in sorted(changes):
        if (place := placed.get(key)) is not None and place.future_log_dir is not None:
            raise Refused(
                f"{key[0]} is being copied from {place.log_dir} to {place.future_log_dir} on broker {broker} already; "
                "nothing was written",
                "wait for it (`kctl reassign status`)",
            )


def _is(log_dir: BrokerLogDir) -> str:
    return "is cordoned" if log_dir.is_cordoned else f"has failed ({log_dir.error})"


# --- status of a plan ---------------------------------------------------------------------------------


def running_copies(log_dirs: Iterable[BrokerLogDir]) -> dict[Key, str]:
    """The directory that each replica is being copied to."""
    return {key: place.future_log_dir for key, place in places(log_dirs).items() if place.future_log_dir}


def replicas_of(keys: Iterable[Key], state: ClusterState) -> dict[TopicPartition, Replicas]:
    """The replicas of the partitions, as they will be after running moves."""
    return {tp: state.topics[tp.topic].target_replicas(tp.partition) for tp, _ in keys if state.replicas(tp)}


def with_disk_moves(
    statuses: Iterable[MoveStatus],
    log_dirs: ReplicaDirs,
    state: ClusterState,
    entries: Iterable[Entry] = (),
    before: Sequence[BrokerLogDir] | None = None,
    seconds: float = 0.0,
) -> list[MoveStatus]:
    """The statuses; partitions with a replica in the wrong directory are not done.

    `before` are the directories `seconds` ago, which gives the rates.
    """
    if not log_dirs:
        return list(statuses)
    placed, earlier = places(state.log_dirs), places(before or ())
    left_by_broker: Counter[int] = Counter()  # bytes that each broker is to copy
    for (tp, broker), path in log_dirs.items():
        if (place := placed.get((tp, broker))) is not None:
            left_by_broker[broker] += place.bytes_to(path)
    requested = _requested(entries, log_dirs)
    by_partition: dict[TopicPartition, list[int]] = {}
    for tp, broker in log_dirs:
        by_partition.setdefault(tp, []).append(broker)
    results = []
    for status in statuses:
        brokers = [
            broker for broker in sorted(by_partition.get(status.partition, ())) if broker in status.replicas
        ]
        if status.state != DONE or not brokers:
            results.append(status)
            continue
        for broker in brokers:
            key = status.partition, broker
            place = placed.get(key)
            verdict, reason = _verdict(place, log_dirs[key], broker, state, was_asked=key in requested)
            if verdict == DONE:
                continue
            status = status._replace(state=verdict, reason=reason)
            if place is not None and place.target == log_dirs[key]:
                status = _measured(
                    status,
                    place,
                    earlier.get(key),
                    seconds,
                    left_by_broker[broker],
                    disk_rate_of(broker, state),
                )
        results.append(status)
    return results


def _verdict(
    place: ReplicaPlace | None, path: str, broker: int, state: ClusterState, *, was_asked: bool
) -> tuple[str, str | None]:
    if place is None:
        return IN_PROGRESS, f"it is unknown in which directory of broker {broker} it is"
    if place.target == path:
        if place.future_log_dir is None:
            return DONE, None
        return IN_PROGRESS, copy_waits_for(place, path, broker, state)
    where = f"it is in {place.log_dir} of broker {broker}, not in {path}"
    return (FAILED, f"it was asked for, and {where}") if was_asked else (NOT_STARTED, where)


def _measured(
    status: MoveStatus,
    place: ReplicaPlace,
    earlier: ReplicaPlace | None,
    seconds: float,
    shared: int,
    throttle: int,
) -> MoveStatus:
    missing = place.bytes_to(place.target)
    rate = None
    if earlier is not None and seconds:
        rate = int(max(place.future_size_in_bytes - earlier.future_size_in_bytes, 0) / seconds)
    time_left = -(-shared // throttle) if throttle else -(-missing // rate) if rate else None
    return status._replace(
        bytes_done=(status.bytes_done or 0) + place.future_size_in_bytes,
        bytes_left=(status.bytes_left or 0) + missing,
        bytes_per_second=None if rate is None else (status.bytes_per_second or 0) + rate,
        seconds_left=time_left,
    )


def _requested(entries: Iterable[Entry], log_dirs: ReplicaDirs) -> set[Key]:
    return {
        key
        for entry in entries
        for stage in entry.stages
        if isinstance(stage.intent, AlterReplicaLogDirs) and stage.state in ("written", "finished")
        for key, path in stage.intent.log_dirs.items()
        if log_dirs.get(key) == path
    }
