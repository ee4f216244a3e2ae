"""Records deleted from the beginning of partitions: what is deleted, which groups have not read it, and the request.

Source: KIP-107 (DeleteRecords); core/src/main/scala/kafka/server/ReplicaManager.scala @ 3.9.0
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from formats.words import counted
from kctl.changes.kinds.records import DeleteRecords as Deletion
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.names import is_internal, unknown_partition
from kctl.cluster.rights import MissingRight, Right, grant
from kctl.cluster.state import ClusterState
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import TopicPartition
from kctl.operations.topics import require_topic
from kctl.wire.adapter import Leaderless, Wire
from kctl.wire.groups import OFFSETS, read_all_groups, read_offsets, watermarks
from kctl.wire.hidden import why_groups_may_be_hidden
from kctl.wire.protocol.messages import DeleteRecordsRequest
from kctl.wire.reading import read_cluster, read_log_dirs
from kctl.wire.replicas.fetching import EARLIEST, LATEST, list_offsets
from kctl.wire.writes.present import KnownTopic, existing, existing_replicas
from kctl.wire.writes.requests import PartitionRow, Quantifier, Request, RequestItem, WireCluster

ALL = -1  # stands for the high watermark
NOT_LEADER = frozenset({5, 6})  # no leader, or another broker
MOVING, LOOK = 10.0, 0.2  # seconds to wait for moving leaders; between two attempts
NAMED_PARTITIONS = 5  # partitions named in a warning


class RecordDeletion(NamedTuple):
    """The offsets to delete in a partition from `log_start_offset` to `to_offset`, exclusive."""

    partition: TopicPartition
    log_start_offset: int
    to_offset: int
    high_watermark: int
    size_in_bytes: int | None
    unread_by: tuple[str, ...] | None  # None if groups may be hidden
    why: str | None = None

    @property
    def records(self) -> int:
        """The number of offsets."""
        return self.to_offset - self.log_start_offset


def choose_deletions(
    cluster: WireCluster,
    topic: str,
    partitions: Collection[int] = (),
    *,
    to_offset: int | None = None,
    before: int | None = None,
) -> list[RecordDeletion]:
    """The records to delete of each partition (default: all): up to an offset, a time, or what all groups have read.

    Raises KctlError for an unknown partition and for a broker that does not answer, BadValue for an
    offset beyond the high watermark, Refused for topics whose records brokers do not delete.
    """
    state = cluster.read_state([topic, OFFSETS], configs=["topics"])
    known = require_topic(state, topic).partitions
    _refuse_kind(topic, state)
    for number in partitions:
        if number not in known:
            raise unknown_partition(TopicPartition(topic, number), known)
    chosen = [TopicPartition(topic, p) for p in sorted(partitions or known)]
    wire = cluster.wire
    starts = watermarks(wire, chosen, EARLIEST, state)
    ends = watermarks(wire, chosen, LATEST, state)
    times = watermarks(wire, chosen, before, state) if before is not None else {}
    if to_offset is None and before is None and (silent := silent_coordinators(state)):
        raise KctlError(
            f"{counted(silent, 'partition')} of {OFFSETS} {'has' if silent == 1 else 'have'} no leader, so some groups may be missing",
            f"start the brokers that hold {OFFSETS}: `kctl topic describe {OFFSETS}`",
        )
    hidden = why_groups_may_be_hidden(wire, strict=True)
    if hidden and to_offset is None and before is None:
        raise Refused(
            f"what all groups have read is unknown: {hidden}; nothing was written",
            grant([Right("Describe")], wire.principal),
        )
    try:
        read = _offsets_of_groups(wire, set(chosen))
    except MissingRight as error:
        if to_offset is None and before is None:
            raise Refused(
                f"what all groups have read is unknown: {error.message}; nothing was written", error.hint
            ) from None
        read, hidden = {tp: {} for tp in chosen}, error.message
    sizes = {
        replica.partition: replica.size_in_bytes
        for log_dir in read_log_dirs(wire, wire.nodes, {topic: list(known)})
        for replica in log_dir.replicas
        if not replica.is_future
        and (partition_state := state.partition_states.get(replica.partition)) is not None
        and partition_state.leader == log_dir.broker_id
    }
    deletions = []
    for tp in chosen:
        if tp not in starts or tp not in ends:
            raise Leaderless(f"{tp} has no leader, so the start and end of its log are unknown")
        start, end = starts[tp], ends[tp]
        if to_offset is not None:
            target = end if to_offset == ALL else to_offset
            if target > end or target < 0:
                raise BadValue(
                    f"{tp} has records up to {end:,}, and {target:,} is not among them",
                    "give --to-offset in that range",
                )
        elif before is not None:
            target = end if times.get(tp, -1) < 0 else times[tp]
        else:
            target = min(read[tp].values(), default=start)
        target = min(max(target, start), end)
        size = sizes.get(tp)
        share = None if size is None or end <= start else size * (target - start) // (end - start)
        unread = (
            tuple(sorted(g for g, offset in read[tp].items() if offset < target)) if target > start else ()
        )
        is_known = not hidden or target <= start
        deletions.append(
            RecordDeletion(
                tp, start, target, end, share, unread if is_known else None, None if is_known else hidden
            )
        )
    return deletions


def silent_coordinators(state: ClusterState) -> int:
    """The number of partitions of __consumer_offsets without a leader: their groups are not listed."""
    return sum(
        tp.topic == OFFSETS and not state.is_alive(partition_state.leader)
        for tp, partition_state in state.partition_states.items()
    )


def _refuse_kind(topic: str, state: ClusterState) -> None:
    if is_internal(topic):
        raise Refused(
            f"{topic} is Kafka's own: its records cannot be deleted",
            "nothing can be done: brokers need these records",
        )
    if state.config("topics", topic).get("cleanup.policy") == "compact":
        raise Refused(
            f"topic {topic} is compacted, and brokers delete records only with cleanup.policy=delete",
            "set cleanup.policy=compact,delete first, or write tombstones",
        )


def _offsets_of_groups(
    wire: Wire, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, dict[str, int]]:
    """The offset of each group in each partition; 0 if a member has committed nothing."""
    offsets: dict[TopicPartition, dict[str, int]] = {tp: {} for tp in partitions}
    by_topic: dict[str, list[int]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    for group in read_all_groups(wire):
        for member in group.members:
            for tp in member.assignment or ():
                if tp in offsets:
                    offsets[tp][group.group] = 0
        for tp, at in read_offsets(wire, group, by_topic).items():
            if tp in offsets:
                offsets[tp][group.group] = at.offset
    return offsets


def plan_deletion(
    cluster: WireCluster,
    topic: str,
    chosen: Sequence[RecordDeletion],
    forecast: Sequence[Mapping[str, Any]],
    *,
    accepted: bool,
) -> Plan:
    """The plan of deleting what was chosen; `forecast` goes into the journal."""
    deletions = [deletion for deletion in chosen if deletion.records]
    if not deletions:
        return Plan(title=f"delete records of topic {topic}", stages=())
    intent = Deletion(
        topic=topic, to_offsets={deletion.partition.partition: deletion.to_offset for deletion in deletions}
    )
    state = cluster.read_state([topic, OFFSETS])
    warnings = [
        f"{deletion.partition}: {', '.join(deletion.unread_by)} {'has' if len(deletion.unread_by) == 1 else 'have'} not read all of it"
        for deletion in deletions
        if deletion.unread_by
    ]
    more = len(warnings) - NAMED_PARTITIONS
    if why := next((deletion.why for deletion in deletions if deletion.why), None):
        warnings.insert(0, f"which groups have not read them is unknown: {why}")
    if silent := silent_coordinators(state):
        warnings.insert(
            0, f"{counted(silent, 'partition')} of {OFFSETS} without a leader: not every group is known"
        )
    return plan_of(
        [intent],
        cluster,
        state,
        title=f"{intent}: {counted(sum(deletion.records for deletion in deletions), 'offset')}",
        warnings=(
            *warnings[:NAMED_PARTITIONS],
            *([f"and so of {counted(more, 'more partition')}"] if more > 0 else []),
        ),
        details={"forecast": [dict(row) for row in forecast]},
        needs="" if accepted else "--accept-loss",
    )


# --- the request --------------------------------------------------------------------------------------


class ToOffset(PartitionRow, frozen=True):
    """The first offset that a partition keeps."""

    to_offset: int


class DeleteRecords(Request, frozen=True, kw_only=True):
    """The records of partitions up to an offset, to the partitions' leaders.

    The topic's id is all that has to be as it was: below the offsets nothing comes back.
    """

    is_to_be_seen: ClassVar[bool] = True
    expected: KnownTopic
    topic: str
    partitions: tuple[ToOffset, ...]

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        """Send requests to the leaders, again for those that moved. Raises KctlError if one does not answer."""
        remaining = {row.partition: row.to_offset for row in self.partitions}
        end = time.monotonic() + MOVING
        while True:
            codes = _delete(wire, self.topic, remaining)
            moved = {p: remaining[p] for p, code in codes.items() if code in NOT_LEADER}
            for partition, code in codes.items():
                if partition not in moved or time.monotonic() > end:
                    tp = TopicPartition(self.topic, partition)
                    yield RequestItem(str(tp), code, None, *tp)
            if not moved or time.monotonic() > end:
                return
            remaining = moved
            wire.pause(LOOK)

    def refuse_other_state(self, state: ClusterState) -> None:
        self.expected.refuse_other(self.topic, state)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        leaders = _leaders(wire, self.topic)
        replicas = [(leaders[row.partition], row.tp) for row in self.partitions if row.partition in leaders]
        found = list_offsets(wire, replicas, EARLIEST)
        starts = {tp: at for (_, tp), at in found.items() if isinstance(at, int)}
        return of(starts.get(row.tp, -1) >= row.to_offset for row in self.partitions)


def delete_records(fresh: ClusterState, intent: Deletion, _: ClusterState) -> list[Request]:
    """The first offset that each partition keeps."""
    topic = existing(fresh, intent.topic)
    rows = tuple(ToOffset(intent.topic, p, offset) for p, offset in sorted(intent.to_offsets.items()))
    for row in rows:
        existing_replicas(fresh, row.tp)
    expected = KnownTopic(topic_id=topic.topic_id)
    return [
        DeleteRecords(about=f"topic {intent.topic}", topic=intent.topic, partitions=rows, expected=expected)
    ]


def _leaders(wire: Wire, topic: str) -> dict[int, int]:
    states = read_cluster(wire, [topic], recent=True).partition_states
    return {tp.partition: state.leader for tp, state in states.items() if state.leader >= 0}


def _delete(wire: Wire, topic: str, offsets_by_partition: Mapping[int, int]) -> dict[int, int]:
    """The error code of each partition, from its leader."""
    leaders = _leaders(wire, topic)
    by_leader: dict[int, dict[int, int]] = {}
    for partition, offset in offsets_by_partition.items():
        if partition in leaders:
            by_leader.setdefault(leaders[partition], {})[partition] = offset
    kind = DeleteRecordsRequest.DeleteRecordsTopic
    requests = [
        (
            leader,
            DeleteRecordsRequest(
                topics=[
                    kind(
                        name=topic,
                        partitions=[
                            kind.DeleteRecordsPartition(partition_index=p, offset=offset)
                            for p, offset in offsets.items()
                        ],
                    )
                ],
                timeout_ms=int(wire.access.timeout * 1000),
            ),
        )
        for leader, offsets in by_leader.items()
    ]
    codes = dict.fromkeys(offsets_by_partition, min(NOT_LEADER))
    for answer in wire.send_all(requests):
        if isinstance(answer, KctlError):
            raise answer
        codes |= {int(p.partition_index): int(p.error_code) for p in answer.topics[0].partitions}
    return codes
