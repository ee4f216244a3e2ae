"""Replicas moved to other brokers, and to other log directories of their brokers.

Source: clients/src/main/resources/common/message/{AlterPartitionReassignments,AlterReplicaLogDirs}Request.json @ 4.3.0
(KIP-455, KIP-113)
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, TypeVar

from formats.values import Struct
from formats.whole_numbers import whole_number
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.reassignments import AlterReplicaLogDirs as MoveDisks
from kctl.changes.kinds.reassignments import Reassign
from kctl.cluster import names
from kctl.cluster.disks import places
from kctl.cluster.interface import Conflict
from kctl.cluster.preflight import check_origin, check_target, check_way_back
from kctl.cluster.state import ClusterState, Replicas
from kctl.model import TopicPartition
from kctl.operations.reassignment.disk_moves import check_log_dirs
from kctl.wire.adapter import Wire
from kctl.wire.protocol.messages import AlterPartitionReassignmentsRequest, AlterReplicaLogDirsRequest
from kctl.wire.writes.configs import config_request, is_in_force
from kctl.wire.writes.present import PlacedPartitions, existing_replicas, placed, refuse_moved
from kctl.wire.writes.requests import PartitionRow, ReplicasOf, Request, RequestItem, ask, milliseconds

REPLICA_NOT_AVAILABLE = 9
AnyRow = TypeVar("AnyRow", bound=PartitionRow)


def by_topic(rows: Iterable[AnyRow]) -> dict[str, list[AnyRow]]:
    """The rows of each topic."""
    rows_by_topic: dict[str, list[AnyRow]] = {}
    for row in rows:
        rows_by_topic.setdefault(row.topic, []).append(row)
    return rows_by_topic


class AlterPartitionReassignments(Request, frozen=True, kw_only=True):
    """Moves that begin, or that end."""

    is_to_be_seen: ClassVar[bool] = True
    replaces_earlier: ClassVar[bool] = True
    how_to_look: ClassVar[str] = "`kctl reassign status` shows the moves"
    expected: PlacedPartitions | None = None
    partitions: tuple[ReplicasOf, ...]
    keep_factor: bool | None = None

    @property
    def former_rows(self) -> Sequence[PartitionRow]:
        return self.expected.partitions if self.expected else ()

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = AlterPartitionReassignmentsRequest.ReassignableTopic
        topics = [
            kind(
                name=topic,
                partitions=[
                    kind.ReassignablePartition(
                        partition_index=row.partition,
                        replicas=None if row.replicas is None else list(row.replicas),
                    )
                    for row in rows
                ],
            )
            for topic, rows in by_topic(self.partitions).items()
        ]
        request = AlterPartitionReassignmentsRequest(timeout_ms=milliseconds(wire), topics=topics)
        if self.keep_factor and (wire.version_of(AlterPartitionReassignmentsRequest) or 0) >= 1:
            request.allow_replication_factor_change, request.min_version = False, 1
        answer = ask(wire, request)
        if answer.error_code:
            yield RequestItem("the reassignment", answer.error_code, answer.error_message)
        for topic in answer.responses:
            for partition in topic.partitions:
                tp = TopicPartition(str(topic.name), int(partition.partition_index))
                yield RequestItem(str(tp), partition.error_code, partition.error_message, *tp)

    def needs_rates(self, state: ClusterState) -> bool:
        """With ZooKeeper each broker reads rates by itself, the lists first, and learns the moves from the controller."""
        return state.quorum is None

    def refuse_other_state(self, state: ClusterState) -> None:
        if self.expected is not None:
            refuse_moved(self.expected, state)

    def is_shown(self, state: ClusterState) -> bool:
        return all(_goes_to(row, state) for row in self.partitions)


def _goes_to(row: ReplicasOf, state: ClusterState) -> bool:
    topic = state.topics.get(row.topic)
    if topic is None:
        return False
    is_moving = topic.is_reassigning(row.partition)
    if row.replicas is None:
        return not is_moving
    if is_moving:
        return set(topic.target_replicas(row.partition)) == set(row.replicas)
    return topic.partitions.get(row.partition) == row.replicas


class InLogDir(PartitionRow, frozen=True):
    """The log directory of a replica; None for one that is not on the broker."""

    log_dir: str | None


class KnownLogDirs(Struct, frozen=True):
    """Where the replicas were that a request was computed from."""

    log_dirs: tuple[InLogDir, ...]


class AlterReplicaLogDirs(Request, frozen=True, kw_only=True):
    """The log directories of replicas of a broker. `is_to_come`: of replicas that it does not have yet."""

    expected: KnownLogDirs
    broker_id: int
    partitions: tuple[InLogDir, ...]
    is_to_come: bool = False

    @property
    def former_rows(self) -> Sequence[PartitionRow]:
        return self.expected.log_dirs

    def brokers_of_disks(self) -> Collection[int]:
        return (self.broker_id,)

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = AlterReplicaLogDirsRequest.AlterReplicaLogDir
        by_path: dict[str | None, list[InLogDir]] = {}
        for row in self.partitions:
            by_path.setdefault(row.log_dir, []).append(row)
        dirs = [
            kind(
                path=path,
                topics=[
                    kind.AlterReplicaLogDirTopic(name=topic, partitions=[row.partition for row in rows])
                    for topic, rows in by_topic(of_path).items()
                ],
            )
            for path, of_path in by_path.items()
        ]
        # A broker remembers the log directory of a future replica, and answers that it does not have the replica.
        expected = REPLICA_NOT_AVAILABLE if self.is_to_come else 0
        for topic in ask(wire, AlterReplicaLogDirsRequest(dirs=dirs), self.broker_id).results:
            for partition in topic.partitions:
                tp = TopicPartition(str(topic.topic_name), int(partition.partition_index))
                code = 0 if partition.error_code == expected else partition.error_code
                yield RequestItem(str(tp), code, None, *tp)

    def needs_rates(self, state: ClusterState) -> bool:
        """A broker is asked itself, past the log that brings it the rate."""
        return True

    def refuse_other_state(self, state: ClusterState) -> None:
        present = places(state.log_dirs)
        for row in self.expected.log_dirs:
            place = present.get((row.tp, self.broker_id))
            if (now := place and place.target) != row.log_dir:
                raise Conflict(
                    f"{row.tp} is in {now} of broker {self.broker_id}, not in {row.log_dir} as it was read; "
                    "nothing was written"
                )

    def is_shown(self, state: ClusterState) -> bool:
        """Whether each replica is being moved; the log directory of a future replica is not visible."""
        present = places(state.log_dirs)
        found = [(present.get((row.tp, self.broker_id)), row) for row in self.partitions]
        return self.is_to_come or all(place and place.target == row.log_dir for place, row in found)

    def can_be_told(self, state: ClusterState) -> bool:
        return not self.is_to_come


# --- requests of intents ------------------------------------------------------------------------------


def reassign(fresh: ClusterState, intent: Reassign, _: ClusterState) -> list[Request]:
    """Throttles first, then cancellations of running moves, then the targets."""
    cancelled: dict[TopicPartition, Replicas] = {}
    moved: dict[TopicPartition, Replicas] = {}
    for tp, target in sorted(intent.targets.items()):
        present = existing_replicas(fresh, tp)
        topic = fresh.topics[tp.topic]
        origin = intent.origins.get(tp)
        is_running = topic.is_reassigning(tp.partition)
        goes_back = is_running and set(target) == set(topic.origin_replicas(tp.partition))
        if goes_back:
            check_way_back(tp, target, fresh)
        else:
            check_target(tp, target, fresh.is_alive)
        if is_running:
            running = set(topic.target_replicas(tp.partition))
            if running == set(target):
                continue  # already running, nothing to request
            if origin is None or running != set(origin) or not goes_back:
                raise names.being_moved(tp)
            cancelled[tp] = target
        elif present != target:
            check_origin(tp, present, origin)
            moved[tp] = target
    requests = [
        config_request(fresh, change)
        for change in intent.config_changes
        if _can_take(fresh, change) and not is_in_force(fresh, change)
    ]
    if cancelled:
        ended = AlterPartitionReassignments(
            about=f"cancel {len(cancelled)}",
            expected=placed(fresh, cancelled),
            partitions=tuple(ReplicasOf(*tp, None) for tp in cancelled),
        )
        requests += [ended, ordered("order", cancelled)]
    if moved:
        keep = all(len(fresh.replicas(tp) or ()) == len(target) for tp, target in moved.items())
        requests.append(ordered("move", moved, keep_factor=keep, expected=placed(fresh, moved)))
    return requests


def ordered(
    why: str,
    replicas: Mapping[TopicPartition, Replicas],
    *,
    keep_factor: bool = True,
    expected: PlacedPartitions | None = None,
) -> Request:
    """The request for replicas, in their order. `why` is a word about it."""
    rows = tuple(ReplicasOf(*tp, tuple(ids)) for tp, ids in sorted(replicas.items()))
    return AlterPartitionReassignments(
        about=f"{why} {len(rows)}", partitions=rows, keep_factor=keep_factor, expected=expected
    )


def alter_replica_log_dirs(fresh: ClusterState, intent: MoveDisks, _: ClusterState) -> list[Request]:
    """Throttles first, then a request a broker, with its own request for future replicas."""
    check_log_dirs(intent.log_dirs, fresh)
    present = places(fresh.log_dirs)
    rows: dict[tuple[int, bool], list[tuple[InLogDir, InLogDir]]] = {}
    for (tp, broker), path in sorted(intent.log_dirs.items()):
        place, previous = present.get((tp, broker)), intent.previous_log_dirs.get((tp, broker))
        now = place and place.target
        if now == path:
            continue  # done, or running
        if previous is not None and now != previous:
            raise Conflict(
                f"{tp} is in {now} of broker {broker}, not in {previous} as it was planned; nothing was written"
            )
        rows.setdefault((broker, place is None), []).append((InLogDir(*tp, path), InLogDir(*tp, now)))
    changes = [change for change in intent.config_changes if not is_in_force(fresh, change)]
    requests = [config_request(fresh, change) for change in changes]
    for (broker, is_to_come), of_broker in sorted(rows.items(), key=lambda item: item[0]):
        moves = AlterReplicaLogDirs(
            about=f"broker {broker}",
            expected=KnownLogDirs(tuple(now for _, now in of_broker)),
            broker_id=broker,
            partitions=tuple(row for row, _ in of_broker),
            is_to_come=is_to_come,
        )
        requests.append(moves)
    return requests


def _can_take(state: ClusterState, change: AlterConfig) -> bool:
    """Whether the change can be applied: a dead broker copies nothing, and needs no throttle."""
    return (
        change.entity_type != "brokers"
        or (id := whole_number(change.entity_name)) is None
        or state.is_alive(id)
    )
