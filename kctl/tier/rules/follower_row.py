"""What one replica would do under its leader, or as the leader, from evidence: the row of `remote follower`."""

from __future__ import annotations

from collections.abc import Callable

from formats.errors import FormatError
from formats.log_dir.checkpoints import parse_leader_epochs
from formats.messages.remote_log_metadata import SegmentMetadata
from formats.tier.object_names import LOCAL_TIERED_STORAGE, ObjectKind, ObjectLayout
from kctl.errors import KctlError
from kctl.model import Row
from kctl.replication.epochs import Entries, entries_in_range
from kctl.rows.remote import FOLLOWER
from kctl.tier.audit.inventory import take_inventory
from kctl.tier.audit.metadata_checks import effective_log_start
from kctl.tier.rules.fetch import OffsetAnswer
from kctl.tier.rules.follower import FollowerPlan, ReplicaView, follow
from kctl.tier.rules.leader_tasks import copies
from kctl.tier.rules.lookup import object_keys
from kctl.tier.rules.partition_facts import TieredPartition
from kctl.tier.stores import Store

EpochIndex = Callable[[SegmentMetadata], Entries | None]
NOTHING = ReplicaView((), 0, 0, 0)
WORDS = {
    OffsetAnswer.READ_LOCAL: "the leader has the offset locally: it fetches as always",
    OffsetAnswer.OUT_OF_RANGE: "the leader has not the offset at all",
}


def epoch_index(partition: TieredPartition, store: Store | None, layout: ObjectLayout | None) -> EpochIndex:
    """A function that reads the leader epochs stored with a segment; without a store the leader's history gives them."""
    log = partition.local.leader if partition.local else None
    inventory = take_inventory(store.objects(lambda finding: None), layout) if store else None

    def read(segment: SegmentMetadata) -> Entries | None:
        if store is None or inventory is None:
            return entries_in_range(log.epochs, -1, segment.end_offset + 1) if log else None
        objects = inventory.of(segment.topic_id_partition.topic_id, segment.remote_log_segment_id)
        if ObjectKind.LEADER_EPOCHS not in objects.by_kind:
            return None
        try:
            source = store.open(objects.by_kind[ObjectKind.LEADER_EPOCHS][1].key)
            try:
                text = source.read_at(0, source.size).decode("utf-8", "replace")
            finally:
                source.close()
            return tuple((entry.epoch, entry.start_offset) for entry in parse_leader_epochs(text))
        except (OSError, FormatError):
            return None

    return read


def _view(partition: TieredPartition, broker: int) -> ReplicaView | None:
    replicas = partition.local.replicas if partition.local else {}
    return replicas[broker].view() if broker in replicas else None


def as_leader_row(partition: TieredPartition, broker: int) -> Row:
    """What the replica does when it becomes leader: where the log starts, and what it copies first."""
    log = partition.local.replicas.get(broker) if partition.local else None
    if log is None:
        raise KctlError(
            f"broker {broker} has no replica of {_name(partition)} in the evidence", "it cannot lead"
        )
    start = effective_log_start(partition.tier, log)
    plan = copies(partition, log, start)
    first = plan.copies[0] if plan.copies else None
    what = (
        f"it copies its segment [{first.start_offset}, {first.end_offset + 1}) first"
        if first
        else "nothing to copy yet"
    )
    clamped = plan.highest_copied.offset
    return _row(
        partition,
        broker,
        role="leader",
        log_end_offset=log.log_end_offset,
        copies_from=plan.from_offset,
        start_offset=max(start, log.first_base_offset),
        leader_epochs=[list(entry) for entry in log.epochs],
        is_possible=True,
        reason=f"the tier reaches {clamped} in its history, the log starts at {start}: {what}",
    )


def follower_row(
    partition: TieredPartition, broker: int, index: EpochIndex, layout: ObjectLayout | None
) -> Row:
    """What the replica does under the present leader; a broker without a replica starts empty."""
    leader = partition.local.leader if partition.local else None
    if leader is None:
        raise KctlError(
            f"no log of {_name(partition)} is in the evidence", "name the leader's log directory too"
        )
    if leader.broker_id == broker:
        return as_leader_row(partition, broker)
    own = _view(partition, broker) or NOTHING
    start = effective_log_start(partition.tier, leader)
    view = ReplicaView(leader.epochs, start, max(start, leader.first_base_offset), leader.log_end_offset)
    plan = follow(view, own, partition.tier.cache, index)
    built = plan.built
    segment = built.segment if built else None
    snapshot = ObjectKind.PRODUCER_SNAPSHOT
    chosen = layout or LOCAL_TIERED_STORAGE
    keys = dict(zip(chosen.suffixes.values(), object_keys(segment, chosen), strict=True)) if segment else {}
    return _row(
        partition,
        broker,
        role="follower",
        leader=leader.broker_id,
        log_end_offset=own.log_end_offset,
        truncate_to=plan.truncate_to,
        fetch_offset=plan.fetch_offset,
        answer=str(plan.answer),
        scenarios=list(plan.scenarios),
        earliest_local_offset=view.local_log_start_offset,
        target_epoch=built.target.leader_epoch if built else None,
        target_offset=built.target.offset if built else None,
        remote_log_segment_id=segment.remote_log_segment_id if segment else None,
        leader_epochs=[list(e) for e in built.entries] if built and built.entries is not None else None,
        producer_snapshot=keys.get(snapshot),
        start_offset=built.start_offset if built else None,
        is_possible=not (built and (segment is None or built.entries is None)),
        reason=_reason(plan),
    )


def _reason(plan: FollowerPlan) -> str:
    cut = f"its log is cut to {plan.truncate_to}, then " if plan.truncate_to is not None else ""
    built = plan.built
    if built is None:
        return cut + WORDS.get(plan.answer, str(plan.answer))
    target = f"offset {built.target.offset} of epoch {built.target.leader_epoch}"
    if built.segment is None:
        return (
            f"{cut}no remote segment holds {target}: the state cannot be built, and it tries again and again"
        )
    if built.entries is None:
        return f"{cut}the leader epochs stored with the segment that holds {target} cannot be read"
    return f"{cut}the leader has only newer offsets locally: state from the segment with {target}, then local from {built.start_offset}"


def _name(partition: TieredPartition) -> str:
    return f"{partition.tier.where.topic}-{partition.tier.where.partition}"


def _row(partition: TieredPartition, broker: int, **values: object) -> Row:
    where = partition.tier.where
    return FOLLOWER(
        **{"scenarios": [], **values}, topic=where.topic, partition=where.partition, broker_id=broker
    )
