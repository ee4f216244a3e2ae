"""Which replicas of a broker go to which of its log directories: chosen, or so that all hold about the same bytes."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from kctl.cluster.disks import ReplicaDirs, places
from kctl.cluster.reassignment.disk_moves import (
    DiskMove,
    check_broker,
    check_log_dirs,
    disk_moves,
    refuse_backend,
    running_copies,
)
from kctl.cluster.reassignment.moves import some
from kctl.cluster.reassignment.plan_files import identity_of
from kctl.cluster.state import ClusterState, Replicas
from kctl.errors import BadValue, Refused
from kctl.model import TopicPartition

EVEN_ENOUGH = 0.05  # of the mean: what two directories may differ by


class DiskLoad(NamedTuple):
    """What a log directory holds before and after a plan; leaders by preference, bytes of replicas."""

    broker_id: int
    log_dir: str
    replicas_before: int
    replicas_after: int
    leaders_before: int
    leaders_after: int
    size_in_bytes_before: int
    size_in_bytes_after: int


class DiskPlan(NamedTuple):
    """Moves between the disks of a broker, and what each of these holds before and after."""

    moves: list[DiskMove]
    loads: list[DiskLoad]

    @property
    def replicas(self) -> dict[TopicPartition, Replicas]:
        """The replicas of each partition, which stay where they are."""
        return {move.partition: move.replicas for move in self.moves}

    @property
    def log_dirs(self) -> ReplicaDirs:
        """Where they go."""
        return {(move.partition, move.broker_id): move.to_log_dir for move in self.moves}

    @property
    def previous_log_dirs(self) -> ReplicaDirs:
        """Where they are."""
        return {(move.partition, move.broker_id): move.from_log_dir or "" for move in self.moves}

    @property
    def identity(self) -> str:
        """See `kctl.cluster.reassignment.plan_files.identity_of`."""
        return identity_of(self.replicas, self.log_dirs)


def plan_balance(state: ClusterState, broker: int, topics: Collection[str] | None = None) -> DiskPlan:
    """The plan that evens out the bytes of a broker's online directories with few moves, of these topics or all.

    The state has the broker's directories with all replicas. Raises Refused where it does not answer, copies already, or
    has no two such directories or a failed one.
    """
    _check(state, broker)
    known = check_broker(broker, state)
    if running := sorted(tp for tp, _ in running_copies(known)):
        raise Refused(
            f"broker {broker} is copying {some(running)} between its disks already",
            "wait for it, or cancel it",
        )
    online = {str(one.path): one for one in known if one.state == "online"}
    if len(online) < 2:
        only = ", ".join(online) or "none"
        raise Refused(
            f"broker {broker} does not have two usable log directories: {only}",
            "`kctl cluster disks` shows their state; replicas are balanced between disks of one broker",
        )
    load = {path: log_dir.size_in_bytes for path, log_dir in online.items()}
    room = {path: log_dir.usable_bytes for path, log_dir in online.items()}
    replicas = [(path, one) for path, log_dir in online.items() for one in log_dir.replicas]
    chosen = {
        one.partition: (path, one.size_in_bytes)
        for path, one in replicas
        if (topics is None or one.partition.topic in topics)
        and broker in (state.replicas(one.partition) or ())
    }
    wanted = _evened(
        {tp: size for tp, (_, size) in chosen.items()}, {tp: p for tp, (p, _) in chosen.items()}, load, room
    )
    return _plan(state, broker, {(tp, broker): path for tp, path in wanted.items()})


def plan_to_log_dir(
    state: ClusterState, broker: int, path: str, topics: Collection[str] | None, partitions: Collection[int]
) -> DiskPlan:
    """The plan that moves the broker's replicas of these topics (None: all) and partitions (none: all) to one directory.

    Raises Refused for a directory that the broker does not have or use, and where nothing there is meant.
    """
    _check(state, broker)
    placed = places(state.log_dirs)
    wanted = {
        (tp, broker): path
        for tp in state.partitions()
        if (topics is None or tp.topic in topics)
        and (not partitions or tp.partition in partitions)
        and broker in (state.replicas(tp) or ())
    }
    check_log_dirs(wanted, state)
    if not wanted:
        raise Refused(
            f"broker {broker} has no such replica",
            f"`kctl cluster disks {broker}` shows its log directories, `kctl topic describe` the replicas",
        )
    return _plan(state, broker, {key: to for key, to in wanted.items() if placed[key].target != to})


def _check(state: ClusterState, broker: int) -> None:
    refuse_backend(state.backend)
    if broker not in state.brokers and not any(
        broker in (state.replicas(tp) or ()) for tp in state.partitions()
    ):
        raise BadValue(f"no broker {broker}", f"there are {', '.join(map(str, sorted(state.brokers)))}")


def _plan(state: ClusterState, broker: int, wanted: ReplicaDirs) -> DiskPlan:
    moves = disk_moves(wanted, state)
    counts: dict[str, Counter[str]] = {}
    for one in state.log_dirs:
        if one.broker_id != broker or one.path is None:
            continue
        for replica in one.replicas:
            tp = replica.partition
            leads = (state.replicas(tp) or (None,))[0] == broker
            after = wanted.get((tp, broker), one.path)
            for path, when in ((one.path, "before"), (after, "after")):
                found = counts.setdefault(path, Counter())
                found[f"replicas_{when}"] += 1
                found[f"leaders_{when}"] += leads
                found[f"size_in_bytes_{when}"] += replica.size_in_bytes
        counts.setdefault(one.path, Counter())
    names = DiskLoad._fields[2:]
    return DiskPlan(
        moves,
        [DiskLoad(broker, path, *(found[name] for name in names)) for path, found in sorted(counts.items())],
    )


def _evened(
    sizes: Mapping[TopicPartition, int],
    now: Mapping[TopicPartition, str],
    load: dict[str, int],
    room: dict[str, int | None],
) -> dict[TopicPartition, str]:
    """Where each replica is in the end: each turn one moves, which brings two directories closest together."""
    enough = EVEN_ENOUGH * sum(load.values()) / len(load)
    placed = {tp: now[tp] for tp in sizes}
    while (best := _best_turn(sizes, placed, load, room, enough)) is not None:
        tp, path = best
        load[placed[tp]] -= sizes[tp]
        load[path] += sizes[tp]
        free = room[path]
        room[path] = None if free is None else free - sizes[tp]
        placed[tp] = path
    return placed


def _best_turn(
    sizes: Mapping[TopicPartition, int],
    placed: Mapping[TopicPartition, str],
    load: Mapping[str, int],
    room: Mapping[str, int | None],
    enough: float,
) -> tuple[TopicPartition, str] | None:
    """From the fullest directory to the emptiest that has room, else from the next; None where nothing helps."""
    order = sorted(load, key=lambda path: (load[path], path))
    for giver in reversed(order):
        for taker in order:
            gap, free = load[giver] - load[taker], room[taker]
            if gap <= enough:
                break
            fitting = [
                (abs(gap / 2 - size), size, tp)
                for tp, size in sizes.items()
                if placed[tp] == giver and 0 < size < gap and (free is None or size <= free)
            ]
            # One that is nearly the whole difference would only change sides, for many bytes.
            fitting = [one for one in fitting if one[0] <= gap / 4 or one[1] < gap / 2] or fitting
            if fitting:
                return min(fitting)[-1], taker
    return None
