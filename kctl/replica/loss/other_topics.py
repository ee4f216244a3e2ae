"""Whether a copy is of the topic that has the name now, or of an earlier one.

A topic that was deleted and created again starts empty; the records of the old one are not lost from the new one.
They differ by topic id from 2.8 on, and by their znodes between two moments, unless both logs begin with the same
batch: then only the znodes or ids were made again (KAFKA-12835, KAFKA-14190). A broker that was away keeps the old log beside the new one: its first
records tell, if they are older than the topic, or if both copies have the first offset in the same leader epoch,
which happens within one topic only if a power failure took everything. Format 0 has neither epochs nor times: there
a broker that is no replica any more and shares nothing with the present log tells. Equal ids, or an ISR of the topic
with the broker, rule an earlier topic out, whatever timestamps producers gave their records.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from kctl.copies.moments import Znodes
from kctl.copies.replica_log import NO_END, Holder, batches_between, first_segment
from kctl.evidence.replica_copies import Copy, Moment
from kctl.findings import Finding
from kctl.findings import replica as replica_findings
from kctl.replica.comparison.pairs import Pair
from kctl.replica.loss.present_lineage import PresentLeader


def other_identity(present: PresentLeader, copy: Copy, znodes: Mapping[Moment, Znodes]) -> Finding | None:
    """The finding that a copy is of another cluster or topic than the present one, by ids and znodes; None if not."""
    first, second = present.copy.replica.log_dir.cluster_id, copy.replica.log_dir.cluster_id
    if first and second and first != second:
        ids = f"{first} and {second}"
        return replica_findings.CLUSTERS_MIXED.at(copy.place, partition=copy.partition, ids=ids)
    ids = _other_ids(present, copy, znodes)
    return _other_topic(present, copy, ids) if ids else None


class TopicOrigin(NamedTuple):
    """Whether a copy is of an earlier topic: the finding that shows it, or that it cannot be decided."""

    finding: Finding | None = None
    is_doubtful: bool = False


OF_THIS_TOPIC = TopicOrigin()
NOBODY_KNOWS = TopicOrigin(is_doubtful=True)


def origin_of(
    present: PresentLeader,
    first: Holder,
    holder: Holder,
    pair: Pair,
    znodes: Mapping[Moment, Znodes],
    made_ms: int | None,
) -> TopicOrigin:
    """Which topic a copy belongs to, by its first records. `first` is the present leader's copy."""
    copy, start = holder.copy, max(first.log.local_log_start_offset, holder.log.local_log_start_offset)
    differs = bool(pair.different.spans) and pair.different.spans[0][0] == start
    is_empty = first.lineage.log_end_offset <= start < holder.lineage.log_end_offset
    if not (differs or is_empty) or _is_of_this_topic(present, holder.copy, znodes):
        return OF_THIS_TOPIC
    written = _written_ms(holder.copy, start)
    is_older = bool(made_ms) and written is not None and written < (made_ms or 0)
    epoch = holder.lineage.epoch_at(start)
    if differs and start == 0 and epoch is not None and epoch == first.lineage.epoch_at(start):
        if made_ms and written is not None and not is_older:
            return OF_THIS_TOPIC
        why = f"{present.copy.who} and {holder.copy.who} hold different records of leader epoch {epoch} at offset 0"
        if is_older or holder.copy.moment == present.moment:
            return TopicOrigin(_other_topic(present, holder.copy, why))
        why += ", if no power failure took all that there was"
        return TopicOrigin(replica_findings.TOPIC_RECREATED.at(copy.place, partition=copy.partition, ids=why))
    is_undated = written is None and differs and start == 0
    if is_undated and not {copy.moment, present.moment} <= znodes.keys():
        return NOBODY_KNOWS
    if is_undated and _is_no_replica(copy, znodes):
        why = f"{holder.copy.who} holds other records from offset 0 on, and is not a replica of the current topic"
        return TopicOrigin(_other_topic(present, holder.copy, why))
    if not is_older or written is None or made_ms is None:
        return OF_THIS_TOPIC
    begin = start if differs else first.log.local_log_start_offset
    now = _written_ms(first.copy, begin) if first.lineage.log_end_offset > begin else None
    if (now is None and differs) or (now is not None and now < made_ms):
        return OF_THIS_TOPIC  # timestamps from producers prove nothing
    if is_empty and _may_have_lost_all(present, holder):
        return NOBODY_KNOWS
    why = f"offset {start} on {holder.copy.who} is of {_shown(written)}, and the topic was made at {_shown(made_ms)}"
    return TopicOrigin(_other_topic(present, holder.copy, why))


def _is_of_this_topic(present: PresentLeader, copy: Copy, znodes: Mapping[Moment, Znodes]) -> bool:
    """Whether ids, or an ISR of this topic with the copy's broker, prove that the copy is of this topic."""
    first, second = present.copy.replica.topic_id, copy.replica.topic_id
    if first and second:
        return first == second
    now, then = znodes.get(present.moment), znodes.get(copy.moment)
    if now is None or then is None:
        return False
    topic, state = copy.partition.topic, then.states.get(copy.partition)
    created = now.created.get(topic), now.topic_ids.get(topic)
    is_same = topic in now.created and created == (then.created.get(topic), then.topic_ids.get(topic))
    return is_same and state is not None and copy.broker_id in state.isr


def _may_have_lost_all(present: PresentLeader, holder: Holder) -> bool:
    """Whether a log without records may be of a leader that started with an empty disk.

    A new topic begins at epoch 0; a leader after a loss has a higher epoch than the leaders before it.
    """
    current = present.current_epoch
    if current is None and present.state is not None:
        current = present.state.leader_epoch
    before = holder.lineage.last_epoch if holder.lineage.epochs else 0
    return current is None or current > before


def _other_ids(present: PresentLeader, copy: Copy, znodes: Mapping[Moment, Znodes]) -> str:
    """How ids or znodes show that a copy is of another topic of that name; "" if they do not."""
    first, second = present.copy.replica.topic_id, copy.replica.topic_id
    if first and second and first != second:
        is_same = _is_same_log(present.copy, copy)
        return "" if is_same else f"{first} on {present.copy.who}, {second} on {copy.who}"
    created = [
        znodes[moment].created.get(copy.partition.topic)
        for moment in (present.moment, copy.moment)
        if moment in znodes
    ]
    if len(created) == 2 and None not in created and created[0] != created[1]:
        if _is_same_log(present.copy, copy):
            return ""
        return f"created by different transactions at {present.moment!r} and {copy.moment!r}"
    return ""


def is_one_life(first: Copy, second: Copy) -> bool:
    """Whether two folders are of one topic: their ids say so, else their logs begin with the same batch."""
    ids = first.replica.topic_id, second.replica.topic_id
    return (None not in ids and ids[0] == ids[1]) or _is_same_log(first, second)


def _is_same_log(first: Copy, second: Copy) -> bool:
    """Whether two logs begin with the same batch, so that only the topic's znodes or its id were made again.

    The CRC covers timestamps (magic 1 and 2); records without timestamps may be equal in two topics.
    """
    start = max(first_segment(first), first_segment(second))
    first_batch, second_batch = _first_batch(first, start), _first_batch(second, start)
    return first_batch is not None and first_batch == second_batch


def _first_batch(copy: Copy, start: int) -> tuple[int, ...] | None:
    """Offsets, CRC and time of the first batch from an offset on; None without one, or if it has no time."""
    for _, batches in batches_between(copy, start, NO_END):
        columns = (batches.first_offset, batches.last_offset, batches.crc, batches.max_timestamp)
        return tuple(int(column[0]) for column in columns) if batches.max_timestamp[0] > 0 else None
    return None


def _other_topic(present: PresentLeader, copy: Copy, ids: str) -> Finding:
    place = copy.place
    if copy.moment == present.moment:
        return replica_findings.TOPIC_RECREATED.at(place, partition=copy.partition, ids=ids)
    return replica_findings.TOPIC_OF_BEFORE.at(place, partition=copy.partition, moment=copy.moment, ids=ids)


def _is_no_replica(copy: Copy, znodes: Mapping[Moment, Znodes]) -> bool:
    replicas = znodes[copy.moment].replicas.get(copy.partition) if copy.moment in znodes else None
    return replicas is not None and copy.broker_id not in replicas


def _written_ms(copy: Copy, offset: int) -> int | None:
    """The timestamp of the batch that holds an offset, in milliseconds; None without one."""
    for _, batches in batches_between(copy, offset, offset + 1):
        stamp = int(batches.max_timestamp[0])
        return stamp if stamp > 0 else None
    return None


def _shown(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
