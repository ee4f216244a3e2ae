"""Moves between the log directories of one broker: what may be asked for, and how far a copy is.

A broker copies the replica beside the present one, which the copy replaces when it has caught up. It goes on by itself
after a restart, and is given up when the broker is asked for the directory in which the replica is. While one of its
directories has failed a broker begins no copy, not even between two others.

Source: KIP-113; core/src/main/scala/kafka/server/ReplicaManager.scala (alterReplicaLogDirs), core/src/main/scala/kafka/log/
LogManager.scala (getOrCreateLog) @ 3.9.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from formats.whole_numbers import whole_number
from kctl.changes.intents import AlterReplicaLogDirs, Intent
from kctl.changes.waiting import Waited
from kctl.cluster.disks import LogDir, Place, ReplicaDirs, places
from kctl.cluster.reassignment.moves import some
from kctl.cluster.reassignment.throttles import DISK_RATE
from kctl.cluster.reassignment.verification import DONE, FAILED, IN_PROGRESS, NOT_STARTED, Standing
from kctl.cluster.state import ClusterState, Replicas
from kctl.errors import Refused
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.changes.entry import Entry

Key = tuple[TopicPartition, int]


class DiskMove(NamedTuple):
    """A replica that goes to another directory; `from_log_dir` is None of one that its broker is still to get."""

    partition: TopicPartition
    broker_id: int
    replicas: Replicas
    from_log_dir: str | None
    to_log_dir: str
    size_in_bytes: int | None


def disk_moves(log_dirs: ReplicaDirs, state: ClusterState) -> list[DiskMove]:
    """What of a plan's directories is not so yet, by partition and broker. The state has the brokers' directories."""
    placed = places(state.log_dirs)
    found = []
    for (tp, broker), path in sorted(log_dirs.items()):
        place = placed.get((tp, broker))
        if place is None or place.target != path:
            replicas = state.replicas(tp) or ()
            size = place.size_in_bytes if place else None
            found.append(DiskMove(tp, broker, replicas, place and place.target, path, size))
    return found


# --- what must hold -----------------------------------------------------------------------------------


def refuse_backend(backend: str) -> None:
    """Raise Refused where brokers cannot be asked."""
    if backend != "admin":
        raise Refused(
            "only the broker itself, not ZooKeeper, can move replicas between its disks; nothing was written",
            "give --bootstrap-server HOST:PORT (Kafka 1.1 and later, KIP-113)",
        )


def check_broker(broker: int, state: ClusterState) -> list[LogDir]:
    """The log directories of a broker. Raises Refused where it does not tell them, or one has failed."""
    known = [one for one in state.log_dirs if one.broker_id == broker]
    silent = next((one.error for one in known if one.path is None), None if known else "it is not alive")
    if silent is not None:
        raise Refused(
            f"broker {broker} does not report its log directories: {silent}; nothing was written",
            "start the broker, or try again when it answers",
        )
    if failed := [str(one.path) for one in known if one.state == "failed"]:
        raise Refused(
            f"broker {broker} copies nothing between its disks while {', '.join(failed)} has failed; nothing was written",
            "repair it, or take it out of log.dirs, and restart the broker",
        )
    return known


def check_log_dirs(log_dirs: ReplicaDirs, state: ClusterState) -> None:
    """Raise Refused for what a broker would not do, or could not end; `state` has its directories.

    A copy that is to be given up may be anywhere.
    """
    placed = places(state.log_dirs)
    wanted = {key: path for key, path in log_dirs.items() if not _is_there(placed.get(key), path)}
    for broker in sorted({broker for _, broker in wanted}):
        own = {key: path for key, path in wanted.items() if key[1] == broker}
        _check_broker(broker, own, placed, state)


def _is_there(place: Place | None, path: str) -> bool:
    return place is not None and path in (place.log_dir, place.future_log_dir)


def _check_broker(broker: int, wanted: ReplicaDirs, placed: Mapping[Key, Place], state: ClusterState) -> None:
    known = [one for one in state.log_dirs if one.broker_id == broker]
    usable = ", ".join(str(one.path) for one in known if one.state == "online") or "none"
    hint = f"log directories of broker {broker} that can be used: {usable}"
    by_path = {one.path: one for one in known if one.path is not None}
    for path in sorted(set(wanted.values())) if by_path else ():
        target = by_path.get(path)
        if target is None:
            raise Refused(f"broker {broker} has no log directory {path}; nothing was written", hint)
        if target.state != "online":
            raise Refused(f"log directory {path} of broker {broker} {_is(target)}; nothing was written", hint)
        size = sum(placed[key].size_in_bytes for key, to in wanted.items() if to == path and key in placed)
        if target.usable_bytes is not None and size > target.usable_bytes:
            raise Refused(
                f"log directory {path} of broker {broker} has {target.usable_bytes:,} bytes left, and {size:,} would "
                "be copied there; nothing was written",
                "plan a move to another log directory (`kctl cluster disks` shows what is free), or free space there",
            )
    check_broker(broker, state)
    lost = [tp for tp, _ in wanted if broker in (state.replicas(tp) or ()) and (tp, broker) not in placed]
    if lost:
        raise Refused(
            f"broker {broker} reports nothing about {some(sorted(lost))}; nothing was written",
            "plan again when `kctl topic describe` shows no offline replica on it",
        )
    for key in sorted(wanted):
        if (place := placed.get(key)) is not None and place.future_log_dir is not None:
            raise Refused(
                f"{key[0]} is being copied from {place.log_dir} to {place.future_log_dir} on broker {broker} already; "
                "nothing was written",
                "wait for it (`kctl reassign status`)",
            )


def _is(log_dir: LogDir) -> str:
    return "is cordoned" if log_dir.is_cordoned else f"has failed ({log_dir.error})"


# --- when it is done ----------------------------------------------------------------------------------


def moved(intent: Intent, state: ClusterState) -> Waited:
    """How far the copies are; what a broker does not have yet is not waited for."""
    assert isinstance(intent, AlterReplicaLogDirs)
    placed = places(state.log_dirs)
    states = {(one.broker_id, one.path): one for one in state.log_dirs}
    missing, failed = [], []
    for (tp, broker), path in sorted(intent.log_dirs.items()):
        place, silent = placed.get((tp, broker)), states.get((broker, None))
        target = states.get((broker, path))
        if silent is not None:
            missing.append(f"broker {broker} does not report its log directories: {silent.error}")
        elif target is not None and target.state == "failed":
            failed.append(f"log directory {path} of broker {broker} has failed, and {tp} is not in it")
        elif place is None and (tp, broker) in intent.previous_log_dirs:
            missing.append(f"broker {broker} reports nothing about {tp}")
        elif place is not None and (place.target != path or place.future_log_dir is not None):
            missing.append(f"{tp}: {waits_for(place, path, broker, state)}")
    done = len(intent.log_dirs) - len(missing) - len(failed)
    return Waited(done, len(intent.log_dirs), (*missing, *failed), "" if missing else "; ".join(failed[:3]))


def waits_for(place: Place, path: str, broker: int, state: ClusterState) -> str:
    """What a replica waits for that is to be in a directory."""
    if place.future_log_dir is None:
        return f"broker {broker} does not copy it from {place.log_dir} to {path}"
    rate = _rate_of(broker, state)
    more = f", throttled to {rate:,} bytes a second" if rate else ""
    return f"broker {broker} copies it from {place.log_dir} to {place.future_log_dir}{more}"


def _rate_of(broker: int, state: ClusterState) -> int:
    rate = state.config("brokers", str(broker)).get(DISK_RATE, "")
    return whole_number(rate) or 0


# --- where a plan stands ------------------------------------------------------------------------------


def running_copies(log_dirs: Iterable[LogDir]) -> dict[Key, str]:
    """The directory that each replica is being copied to."""
    return {key: place.future_log_dir for key, place in places(log_dirs).items() if place.future_log_dir}


def replicas_of(keys: Iterable[Key], state: ClusterState) -> dict[TopicPartition, Replicas]:
    """The replicas of the partitions, as they will be when nothing more is asked for."""
    return {tp: state.topics[tp.topic].target_replicas(tp.partition) for tp, _ in keys if state.replicas(tp)}


def with_disk_moves(
    standings: Iterable[Standing],
    wanted: ReplicaDirs,
    state: ClusterState,
    entries: Iterable[Entry] = (),
    before: Sequence[LogDir] | None = None,
    seconds: float = 0.0,
) -> list[Standing]:
    """The standings, those of replicas that are in the wrong directory not done.

    `before` is how the directories were so many seconds ago, which gives the rates.
    """
    if not wanted:
        return list(standings)
    placed, earlier = places(state.log_dirs), places(before or ())
    left: Counter[int] = Counter()  # bytes that each broker is to copy
    for (tp, broker), path in wanted.items():
        if (place := placed.get((tp, broker))) is not None:
            left[broker] += place.bytes_to(path)
    asked = _asked_for(entries, wanted)
    by_partition: dict[TopicPartition, list[int]] = {}
    for tp, broker in wanted:
        by_partition.setdefault(tp, []).append(broker)
    found = []
    for one in standings:
        brokers = [b for b in sorted(by_partition.get(one.partition, ())) if b in one.replicas]
        if one.state != DONE or not brokers:
            found.append(one)
            continue
        for broker in brokers:
            key = one.partition, broker
            place = placed.get(key)
            verdict, reason = _verdict(place, wanted[key], broker, state, was_asked=key in asked)
            if verdict == DONE:
                continue
            one = one._replace(state=verdict, reason=reason)
            if place is not None and place.target == wanted[key]:
                one = _measured(one, place, earlier.get(key), seconds, left[broker], _rate_of(broker, state))
        found.append(one)
    return found


def _verdict(
    place: Place | None, path: str, broker: int, state: ClusterState, *, was_asked: bool
) -> tuple[str, str | None]:
    if place is None:
        return IN_PROGRESS, f"it is unknown in which directory of broker {broker} it is"
    if place.target == path:
        if place.future_log_dir is None:
            return DONE, None
        return IN_PROGRESS, waits_for(place, path, broker, state)
    where = f"it is in {place.log_dir} of broker {broker}, not in {path}"
    return (FAILED, f"it was asked for, and {where}") if was_asked else (NOT_STARTED, where)


def _measured(
    one: Standing, place: Place, earlier: Place | None, seconds: float, shared: int, throttle: int
) -> Standing:
    left = place.bytes_to(place.target)
    rate = None
    if earlier is not None and seconds:
        rate = int(max(place.future_size_in_bytes - earlier.future_size_in_bytes, 0) / seconds)
    time_left = -(-shared // throttle) if throttle else -(-left // rate) if rate else None
    return one._replace(
        bytes_done=(one.bytes_done or 0) + place.future_size_in_bytes,
        bytes_left=(one.bytes_left or 0) + left,
        bytes_per_second=None if rate is None else (one.bytes_per_second or 0) + rate,
        seconds_left=time_left,
    )


def _asked_for(entries: Iterable[Entry], wanted: ReplicaDirs) -> set[Key]:
    return {
        key
        for entry in entries
        for stage in entry.stages
        if isinstance(stage.intent, AlterReplicaLogDirs) and stage.state in ("written", "finished")
        for key, path in stage.intent.log_dirs.items()
        if wanted.get(key) == path
    }
