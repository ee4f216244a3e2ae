"""Which records of each copy the present lineage lacks.

Every copy of every moment is compared with the present leader's: other records at the same offset, and what
lies beyond its end. Left out are what retention took (below the log start), what a cleaner may have taken,
batches that were sent again, and tails that are only the order of copying.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kctl.findings import Finding
from kctl.findings import replica as say
from kctl.model import TopicPartition
from kctl.replica.copies import ByMoment, Copy, Moment
from kctl.replica.lineage import Lineage
from kctl.replica.moments import INTERNAL_COMPACTED, Znodes
from kctl.replica.other_topics import origin_of, other_identity
from kctl.replica.pairs import Pair, compare_pairs
from kctl.replica.present import Present
from kctl.replica.replica_log import ReplicaLog
from kctl.replica.sent_again import sent_again


@dataclass(frozen=True)
class HeldCopy:
    """A copy that was read."""

    copy: Copy
    log: ReplicaLog
    lineage: Lineage
    is_doubtful: bool = False
    """Whether it may be of an earlier topic of that name."""


@dataclass(frozen=True)
class LostPart:
    """Records [from_offset, to_offset) of one copy that the present lineage does not have."""

    held: HeldCopy
    from_offset: int
    to_offset: int

    @property
    def epoch(self) -> int | None:
        """The leader epoch in which the first of them was written; None before message format 2."""
        return self.held.lineage.epoch_at(self.from_offset)


@dataclass
class LostParts:
    """What the copies of one partition hold that the present lineage lacks."""

    partition: TopicPartition
    present: Present
    held: list[HeldCopy] = field(default_factory=list)
    parts: list[LostPart] = field(default_factory=list)
    absent: list[tuple[int, int]] = field(default_factory=list)
    """Offsets in the middle of the present log at which it holds nothing."""
    findings: list[Finding] = field(default_factory=list)


def find_lost_parts(
    partition: TopicPartition,
    present: Present,
    by_moment: ByMoment,
    znodes: Mapping[Moment, Znodes],
    *,
    is_compacted: bool | None = None,
    made_ms: int | None = None,
) -> LostParts:
    """What each copy holds that the present leader's lacks; fills in the present lineage.

    `made_ms` is when the topic that has the name now was created, where something says so.
    """
    found = LostParts(partition, present, findings=list(present.findings))
    copies = _same_topic(found, by_moment, znodes)
    logs = [ReplicaLog(copy) for copy in copies]
    pairs = compare_pairs(logs, [(0, index) for index in range(1, len(logs))])
    found.held = [HeldCopy(c, log, log.lineage()) for c, log in zip(copies, logs, strict=True)]
    present.lineage = found.held[0].lineage
    present.log_end_offset = present.lineage.log_end_offset
    pairs = _of_this_topic(found, pairs, znodes, made_ms)
    for pair in pairs:
        if found.held[pair.second].copy.moment == present.moment and not pair.contradict:
            _extend(found, found.held[pair.second])
    compacted = is_compacted
    if compacted is None:
        compacted = _is_compacted(found, znodes)
    for pair in pairs:
        _add_parts(found, pair, znodes, compacted=compacted)
    return found


def _same_topic(found: LostParts, by_moment: ByMoment, znodes: Mapping[Moment, Znodes]) -> list[Copy]:
    """The present copy, then every other one that is of the same topic and cluster."""
    present = found.present.copy
    copies = [present]
    for of_moment in by_moment.values():
        for copy in of_moment.values():
            if copy is present:
                continue
            finding = other_identity(found.partition, found.present, copy, znodes)
            if finding is None:
                copies.append(copy)
            elif not any(f.place == finding.place and f.code == finding.code for f in found.findings):
                found.findings.append(finding)
    return copies


def _of_this_topic(
    found: LostParts, pairs: list[Pair], znodes: Mapping[Moment, Znodes], made_ms: int | None
) -> list[Pair]:
    """The pairs without those whose second copy shows by its first records that it is of an earlier topic."""
    kept = []
    others = []
    for pair in pairs:
        held = found.held[pair.second]
        first = found.held[0]
        origin = origin_of(found.partition, found.present, first, held, pair, znodes, made_ms)
        if origin.finding is None:
            kept.append(pair)
            found.held[pair.second] = replace(held, is_doubtful=origin.is_doubtful)
        else:
            others.append(held)
            found.findings.append(origin.finding)
    positions = {id(held): index for index, held in enumerate(h for h in found.held if h not in others)}
    for pair in kept:
        pair.second = positions[id(found.held[pair.second])]
    found.held = [held for held in found.held if held not in others]
    return kept


def _is_compacted(found: LostParts, znodes: Mapping[Moment, Znodes]) -> bool:
    if found.partition.topic in INTERNAL_COMPACTED:
        return True
    said = [z.is_compacted(found.partition.topic) for z in znodes.values()]
    known = [one for one in said if one is not None]
    if known:
        return any(known)
    return any(h.log.has_gaps_inside or h.copy.checkpoint("cleaner") is not None for h in found.held)


def _extend(found: LostParts, held: HeldCopy) -> None:
    """Take the tail of another copy of the same moment for present, where only the order of copying differs."""
    present, lineage = found.present, held.lineage
    while present.log_end_offset < lineage.log_end_offset:
        start, end = present.log_end_offset, _same_lineage_until(present, held)
        if end <= start:
            return
        if lineage.epoch_at(start) is None:  # only the order of copying suggests that it is no loss
            place = replace(held.copy.place, base_offset=start, last_offset=end - 1)
            who = held.copy.broker_id
            found.findings.append(say.UNDECIDED_TAIL.at(place, broker_id=who, start=start, end=end))
        present.log_end_offset = end


def _same_lineage_until(present: Present, held: HeldCopy) -> int:
    """How far another copy goes on in the lineage in which the present one ends."""
    start, end = present.log_end_offset, held.lineage.log_end_offset
    epoch = held.lineage.epoch_at(start)
    following = None if epoch is None else present.starts_after(epoch)
    if following is not None:
        return min(end, following)
    is_older = epoch is None or (present.current_epoch or 0) > epoch
    return start if is_older and _is_away(present, held.copy) else end


def _is_away(present: Present, copy: Copy) -> bool:
    """Whether a broker cannot be following the present leader: out of the ISR and not registered."""
    if present.state is None or present.live is None:
        return False
    return copy.broker_id not in present.state.isr and copy.broker_id not in present.live


def _add_parts(found: LostParts, pair: Pair, znodes: Mapping[Moment, Znodes], *, compacted: bool) -> None:
    held, present = found.held[pair.second], found.present
    assert present.lineage is not None
    start = present.lineage.log_start_offset
    spans = [(first, last) for first, last in pair.different.found]
    if not compacted and not found.held[0].log.damage:
        lacking = [(first, last) for first, last in pair.lacking[0].found]
        spans += lacking
        found.absent += [one for one in lacking if one not in found.absent]
    tail = max(present.log_end_offset, held.lineage.local_log_start_offset or 0)
    if held.lineage.log_end_offset > tail and not _is_tail_present(found, held, pair, znodes):
        spans.append((tail, held.lineage.log_end_offset))
    for first, last in _merged(spans):
        if last > max(first, start):
            found.parts += _without_sent_again(found, LostPart(held, max(first, start), last))


def _without_sent_again(found: LostParts, part: LostPart) -> list[LostPart]:
    """What is left of a part without the records that its producers sent again."""
    copy, start, end = part.held.copy, part.from_offset, part.to_offset
    again = sent_again(copy, found.present.copy, start, end)
    left = []
    for first, last in again:
        place = replace(copy.place, base_offset=first, last_offset=last - 1)
        found.findings.append(say.SENT_AGAIN.at(place, broker_id=copy.broker_id, start=first, end=last))
        if start < first:
            left.append(replace(part, from_offset=start, to_offset=first))
        start = last
    return [*left, replace(part, from_offset=start)] if start < end else left


def _is_tail_present(found: LostParts, held: HeldCopy, pair: Pair, znodes: Mapping[Moment, Znodes]) -> bool:
    """Whether a tail beyond the present end is no loss: still the same leadership, or nobody can tell."""
    present, copy = found.present, held.copy
    start, end = present.log_end_offset, held.lineage.log_end_offset
    if pair.contradict:
        return False
    epoch = held.lineage.epoch_at(start)
    if copy.moment == present.moment:
        if epoch is not None and present.starts_after(epoch) is not None:
            return False
        if _is_away(present, copy):
            return epoch is not None and epoch >= (present.current_epoch or 0)
        place = replace(copy.place, base_offset=start, last_offset=end - 1)
        found.findings.append(say.UNDECIDED_TAIL.at(place, broker_id=copy.broker_id, start=start, end=end))
        return True
    if _is_same_leadership(present, copy, epoch, found.partition, znodes):
        found.findings.append(
            say.PRESENT_INCOMPLETE.at(present.copy.place, partition=found.partition, end=start, said=end)
        )
        return True
    return False


def _is_same_leadership(
    present: Present,
    copy: Copy,
    epoch: int | None,
    partition: TopicPartition,
    znodes: Mapping[Moment, Znodes],
) -> bool:
    """Whether an earlier copy's tail was written in the leadership that is present."""
    made = [znodes[m].created.get(partition.topic) for m in (copy.moment, present.moment) if m in znodes]
    if len(set(made)) > 1:
        return False  # znodes that were made again count leader epochs anew
    if epoch is not None:
        current = present.current_epoch
        return current is None or epoch >= current
    before = znodes[copy.moment].state(partition) if copy.moment in znodes else None
    if before is None or present.state is None:
        return False
    return (before.leader, before.leader_epoch) == (present.state.leader, present.state.leader_epoch)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
