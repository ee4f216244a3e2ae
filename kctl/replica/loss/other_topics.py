"""Whether a copy is of the topic that has the name now.

A topic that was deleted and made again starts empty: what the old one held is no part of the new one. Its id tells
them apart from 2.8 on, its znode between two moments, unless both logs go back to the same batch: then somebody made
only the znodes again, and the logs went on. A broker that was away keeps the old log beside the new one:
then the records at its beginning do, where they are older than the topic, or where both copies have written the first
offset in the same leader epoch, which a leader does twice only where a power failure took all that it had. Format 0
has neither: there it is told by a broker that is no replica any more, and shares nothing with the present log. Equal
ids, and a broker that was in the ISR then, rule an earlier topic out, whatever times producers gave their records.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from kctl.findings import Finding
from kctl.findings import replica as say
from kctl.replica.comparison.pairs import Pair
from kctl.replica.copies.copy import Copy, Moment
from kctl.replica.copies.moments import Znodes
from kctl.replica.copies.replica_log import NO_END, HeldCopy, batches_between, first_segment
from kctl.replica.loss.present_lineage import PresentLeader


def other_identity(present: PresentLeader, copy: Copy, znodes: Mapping[Moment, Znodes]) -> Finding | None:
    """The finding that a copy is of another cluster or topic than the present one, by ids and znodes."""
    first, second = present.copy.replica.log_dir.cluster_id, copy.replica.log_dir.cluster_id
    if first and second and first != second:
        ids = f"{first} and {second}"
        return say.CLUSTERS_MIXED.at(copy.place, partition=copy.partition, ids=ids)
    ids = _other_ids(present, copy, znodes)
    return _other_topic(present, copy, ids) if ids else None


class TopicOrigin(NamedTuple):
    """Whether a copy is of an earlier topic: what shows it, or that nobody can say."""

    finding: Finding | None = None
    is_doubtful: bool = False


OF_THIS_TOPIC = TopicOrigin()
NOBODY_KNOWS = TopicOrigin(is_doubtful=True)


def origin_of(
    present: PresentLeader,
    first: HeldCopy,
    held_copy: HeldCopy,
    pair: Pair,
    znodes: Mapping[Moment, Znodes],
    made_ms: int | None,
) -> TopicOrigin:
    """Which topic a copy is of, by its first records. `first` is the present leader's copy."""
    start = max(first.log.local_log_start_offset, held_copy.log.local_log_start_offset)
    differs = bool(pair.different.spans) and pair.different.spans[0][0] == start
    is_empty = first.lineage.log_end_offset <= start < held_copy.lineage.log_end_offset
    if not (differs or is_empty) or _is_of_this_topic(present, held_copy.copy, znodes):
        return OF_THIS_TOPIC
    written = _written_ms(held_copy.copy, start)
    is_older = bool(made_ms) and written is not None and written < (made_ms or 0)
    epoch = held_copy.lineage.epoch_at(start)
    if differs and start == 0 and epoch is not None and epoch == first.lineage.epoch_at(start):
        if made_ms and written is not None and not is_older:
            return OF_THIS_TOPIC
        why = f"{present.copy.who} and {held_copy.copy.who} hold different records of leader epoch {epoch} at offset 0"
        if is_older or held_copy.copy.moment == present.moment:
            return TopicOrigin(_other_topic(present, held_copy.copy, why))
        why += ", if no power failure took all that there was"
        return TopicOrigin(
            say.TOPIC_RECREATED.at(held_copy.copy.place, partition=held_copy.copy.partition, ids=why)
        )
    if (
        written is None
        and differs
        and start == 0
        and not {held_copy.copy.moment, present.moment} <= znodes.keys()
    ):
        return NOBODY_KNOWS
    if written is None and differs and start == 0 and _is_no_replica(held_copy.copy, znodes):
        why = f"{held_copy.copy.who} holds other records from offset 0 on, and is not a replica of the current topic"
        return TopicOrigin(_other_topic(present, held_copy.copy, why))
    if not is_older or written is None or made_ms is None:
        return OF_THIS_TOPIC
    begin = start if differs else first.log.local_log_start_offset
    now = _written_ms(first.copy, begin) if first.lineage.log_end_offset > begin else None
    if (now is None and differs) or (now is not None and now < made_ms):
        return OF_THIS_TOPIC  # times that producers made up say nothing
    if is_empty and _may_have_lost_all(present, held_copy):
        return NOBODY_KNOWS
    why = f"offset {start} on {held_copy.copy.who} is of {_shown(written)}, and the topic was made at {_shown(made_ms)}"
    return TopicOrigin(_other_topic(present, held_copy.copy, why))


def _is_of_this_topic(present: PresentLeader, copy: Copy, znodes: Mapping[Moment, Znodes]) -> bool:
    """Whether ids say so, or an ISR of the topic that has the copy's broker in it."""
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


def _may_have_lost_all(present: PresentLeader, held_copy: HeldCopy) -> bool:
    """Whether a log without records may be of a leader that came with an empty disk.

    A new topic begins at epoch 0 again; who leads after a loss has a higher epoch than those who led before.
    """
    current = present.current_epoch
    if current is None and present.state is not None:
        current = present.state.leader_epoch
    before = held_copy.lineage.last_epoch if held_copy.lineage.epochs else 0
    return current is None or current > before


def _other_ids(present: PresentLeader, copy: Copy, znodes: Mapping[Moment, Znodes]) -> str:
    """How ids or znodes show that a copy is of another topic of that name; "" where they do not."""
    first, second = present.copy.replica.topic_id, copy.replica.topic_id
    if first and second and first != second:
        return f"{first} on {present.copy.who}, {second} on {copy.who}"
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


def _is_same_log(first: Copy, second: Copy) -> bool:
    """Whether two logs go back to the same batch, so that only the topic's znodes were made again over them.

    The CRC covers the times of magic 1 and 2; records without times may be equal in two topics.
    """
    start = max(first_segment(first), first_segment(second))
    first_batch, second_batch = _first_batch(first, start), _first_batch(second, start)
    return first_batch is not None and first_batch == second_batch


def _first_batch(copy: Copy, start: int) -> tuple[int, ...] | None:
    """Offsets, CRC and time of the first batch from an offset on; None where there is none, or it has no time."""
    for _, batches in batches_between(copy, start, NO_END):
        columns = (batches.first_offset, batches.last_offset, batches.crc, batches.max_timestamp)
        return tuple(int(column[0]) for column in columns) if batches.max_timestamp[0] > 0 else None
    return None


def _other_topic(present: PresentLeader, copy: Copy, ids: str) -> Finding:
    place = copy.place
    if copy.moment == present.moment:
        return say.TOPIC_RECREATED.at(place, partition=copy.partition, ids=ids)
    return say.TOPIC_OF_BEFORE.at(place, partition=copy.partition, moment=copy.moment, ids=ids)


def _is_no_replica(copy: Copy, znodes: Mapping[Moment, Znodes]) -> bool:
    replicas = znodes[copy.moment].replicas.get(copy.partition) if copy.moment in znodes else None
    return replicas is not None and copy.broker_id not in replicas


def _written_ms(copy: Copy, offset: int) -> int | None:
    """The timestamp of the batch that holds an offset, in milliseconds; None where it has none."""
    for _, batches in batches_between(copy, offset, offset + 1):
        stamp = int(batches.max_timestamp[0])
        return stamp if stamp > 0 else None
    return None


def _shown(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
