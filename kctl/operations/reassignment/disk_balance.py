"""Plan moves between a broker's log directories: chosen ones, or those that even out the bytes."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from kctl.cluster.disks import ReplicaDirs, places
from kctl.cluster.state import ClusterState, Replicas
from kctl.errors import BadValue, Refused
from kctl.model import TopicPartition, some
from kctl.operations.reassignment.disk_moves import (
    DiskMove,
    check_broker,
    check_log_dirs,
    disk_moves,
    refuse_disks,
    running_copies,
)
from kctl.operations.reassignment.plan_files import identity_of

EVEN_ENOUGH = 0.05  # of the mean: the difference that two directories may have


class DiskLoad(NamedTuple):
    """The contents of a log directory before and after a plan; leaders by preference, bytes of replicas."""

    broker_id: int
    log_dir: str
    replicas_before: int
    replicas_after: int
    leaders_before: int
    leaders_after: int
    size_in_bytes_before: int
    size_in_bytes_after: int


class DiskPlan(NamedTuple):
    """Moves between the disks of a broker, and the contents of each before and after."""

    moves: list[DiskMove]
    loads: list[DiskLoad]

    @property
    def replicas(self) -> dict[TopicPartition, Replicas]:
        """The replicas of each partition, which do not change."""
        return {move.partition: move.replicas for move in self.moves}

    @property
    def log_dirs(self) -> ReplicaDirs:
        """The target directories."""
        return {(move.partition, move.broker_id): move.to_log_dir for move in self.moves}

    @property
    def previous_log_dirs(self) -> ReplicaDirs:
        """The present directories."""
        return {(move.partition, move.broker_id): move.from_log_dir or "" for move in self.moves}

    @property
    def identity(self) -> str:
        """See `kctl.operations.reassignment.plan_files.identity_of`."""
        return identity_of(self.replicas, self.log_dirs)


def plan_balance(state: ClusterState, broker: int, topics: Collection[str] | None = None) -> DiskPlan:
    """The plan that evens out the bytes of a broker's online directories with few moves, of these topics or all.

    The state has the broker's directories with all replicas. Raises Refused if it does not answer, copies already, or
    has no two such directories or a failed one.
    """
    _check(state, broker)
    known = check_broker(broker, state)
    if running := sorted(tp for tp, _ in running_copies(known)):
        raise Refused(
            f"broker {broker} is copying {some(running)} between its disks already",
            "wait for it, or cancel it",
        )
    online = {str(log_dir.path): log_dir for log_dir in known if log_dir.state == "online"}
    if len(online) < 2:
        only = ", ".join(online) or "none"
        raise Refused(
            f"broker {broker} does not have two usable log directories: {only}",
            "`kctl cluster disks` shows their state; replicas are balanced between disks of one broker",
        )
    load = {path: log_dir.size_in_bytes for path, log_dir in online.items()}
    room = {path: log_dir.usable_bytes for path, log_dir in online.items()}
    replicas = [(path, replica) for path, log_dir in online.items() for replica in log_dir.replicas]
    chosen = {
        replica.partition: (path, replica.size_in_bytes)
        for path, replica in replicas
        if (topics is None or replica.partition.topic in topics)
        and broker in (state.replicas(replica.partition) or ())
    }
    chosen_dirs = _evened(
        {tp: size for tp, (_, size) in chosen.items()}, {tp: p for tp, (p, _) in chosen.items()}, load, room
    )
    return _plan(state, broker, {(tp, broker): path for tp, path in chosen_dirs.items()})


def plan_to_log_dir(
    state: ClusterState, broker: int, path: str, topics: Collection[str] | None, partitions: Collection[int]
) -> DiskPlan:
    """The plan that moves the broker's replicas of these topics (None: all) and partitions (none: all) to one directory.

    Raises Refused for a directory that the broker does not have or use, and if no replica matches.
    """
    _check(state, broker)
    placed = places(state.log_dirs)
    chosen_dirs = {
        (tp, broker): path
        for tp in state.partitions()
        if (topics is None or tp.topic in topics)
        and (not partitions or tp.partition in partitions)
        and broker in (state.replicas(tp) or ())
    }
    check_log_dirs(chosen_dirs, state)
    if not chosen_dirs:
        raise Refused(
            f"broker {broker} has no such replica",
            f"`kctl cluster disks {broker}` shows its log directories, `kctl topic describe` the replicas",
        )
    return _plan(state, broker, {key: to for key, to in chosen_dirs.items() if placed[key].target != to})


def _check(state: ClusterState, broker: int) -> None:
    refuse_disks(state.can)
    if broker not in state.brokers and not any(
        broker in (state.replicas(tp) or ()) for tp in state.partitions()
    ):
        raise BadValue(f"no broker {broker}", f"there are {', '.join(map(str, sorted(state.brokers)))}")


def _plan(state: ClusterState, broker: int, log_dirs: ReplicaDirs) -> DiskPlan:
    moves = disk_moves(log_dirs, state)
    counts: dict[str, Counter[str]] = {}
    for log_dir in state.log_dirs:
        if log_dir.broker_id != broker or log_dir.path is None:
            continue
        for replica in log_dir.replicas:
            tp = replica.partition
            leads = (state.replicas(tp) or (None,))[0] == broker
            after = log_dirs.get((tp, broker), log_dir.path)
            for path, when in ((log_dir.path, "before"), (after, "after")):
                disk_counts = counts.setdefault(path, Counter())
                disk_counts[f"replicas_{when}"] += 1
                disk_counts[f"leaders_{when}"] += leads
                disk_counts[f"size_in_bytes_{when}"] += replica.size_in_bytes
        counts.setdefault(log_dir.path, Counter())
    names = DiskLoad._fields[2:]
    return DiskPlan(
        moves,
        [
            DiskLoad(broker, path, *(disk_counts[name] for name in names))
            for path, disk_counts in sorted(counts.items())
        ],
    )


def _evened(
    sizes: Mapping[TopicPartition, int],
    now: Mapping[TopicPartition, str],
    load: dict[str, int],
    room: dict[str, int | None],
) -> dict[TopicPartition, str]:
    """The final directory of each replica: each turn moves one, which brings two directories closest together."""
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
    """The best move from the fullest directory to the emptiest with room, or from the next; None if none helps."""
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
            # A replica of nearly the whole difference would only swap the two, for many bytes.
            fitting = [option for option in fitting if option[0] <= gap / 4 or option[1] < gap / 2] or fitting
            if fitting:
                return min(fitting)[-1], taker
    return None
