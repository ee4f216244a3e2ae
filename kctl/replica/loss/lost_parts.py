"""Which records of each copy the present lineage lacks.

Every copy of every moment is compared with the present leader's, for other records at the same offset and records
beyond its end. Records are not lost if retention removed them (below the log start), if a cleaner may have removed
them, if producers sent them again, or if tails differ only by the order of copying.

A leader that fails has records that no follower has fetched yet. A producer with acks=all whose request was not
answered sends them to the next leader again with their old timestamps: the present log has them at other offsets.
Records without timestamps prove nothing.

What no copy has cannot be a lost part, since nothing shows the records. It becomes a finding instead: damage that no other
copy replaces, offsets in the middle of the present log that no other copy has, and offsets that checkpoints name before or
behind the copies. `kctl/judging/loss.py` turns these findings into a verdict.

Source: clients/src/main/java/org/apache/kafka/clients/producer/internals/Sender.java @ 3.9.0-rc3
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from formats.errors import FormatError
from formats.log.records import iterate_records
from formats.log_dir.file_names import (
    LEADER_EPOCHS,
    FileState,
    FolderKind,
    SegmentFile,
    parse_segment_file,
)
from formats.values import Struct, field, replace
from formats.words import counted
from kctl.copies.aside import held_batches
from kctl.copies.moments import INTERNAL_COMPACTED, Znodes
from kctl.copies.replica_log import MOST_GAPS, NO_END, Holder, ReplicaLog, batches_between
from kctl.copies.spans import Span, common, joined, without
from kctl.evidence.replica_copies import CHECKPOINTS, ByMoment, Copy, Moment
from kctl.findings import Finding, Severity
from kctl.findings import replica as replica_findings
from kctl.model import TopicPartition
from kctl.replica.comparison.pairs import LIMIT, Content, Pair, compare_pairs, content_of, entries
from kctl.replica.loss.other_topics import is_one_life, origin_of, other_identity
from kctl.replica.loss.present_lineage import PresentLeader
from kctl.replication.epochs import loaded
from kctl.scan.pool import Jobs


class LostPart(Struct, frozen=True):
    """Records [from_offset, to_offset) of one copy that the present lineage does not have."""

    holder: Holder
    from_offset: int
    to_offset: int
    is_searched: bool = True
    """Whether a search for records that producers sent again was made."""

    def overlaps(self, start: int, end: int) -> bool:
        return self.from_offset < end and start < self.to_offset

    def covers(self, start: int, end: int) -> bool:
        return self.from_offset <= start and end <= self.to_offset

    @property
    def epoch(self) -> int | None:
        """The leader epoch of the first lost record; None before message format 2."""
        return self.holder.lineage.epoch_at(self.from_offset)


# A tail that no follower has fetched is short, and is sent again soon.
MOST_LOST_RECORDS = 20_000
MOST_SEARCHED = 100_000
MOST_SEARCHED_OF_A_PARTITION = 5 * MOST_SEARCHED  # copies may diverge and agree again many thousands of times
LEAST_SEARCHED = 1000  # the cost of a search itself, in records


class LostParts(Struct):
    """The records that copies of one partition hold and the present lineage lacks."""

    partition: TopicPartition
    present: PresentLeader
    znodes: Mapping[Moment, Znodes]
    holders: list[Holder] = field(default_factory=list)
    parts: list[LostPart] = field(default_factory=list)
    absent: list[tuple[int, int]] = field(default_factory=list)
    """Offsets in the middle of the present log at which it has no record."""
    findings: list[Finding] = field(default_factory=list)
    is_compacted: bool = False
    """Whether a cleaner may have removed records of it."""
    records_to_search: int = MOST_SEARCHED_OF_A_PARTITION
    """How many records may still be searched for those sent again."""
    searched: dict[tuple[int, int, int], list[tuple[int, int]]] = field(default_factory=dict)
    """Results by range and hash of the records: copies of many moments have the same records."""


def find_lost_parts(
    partition: TopicPartition,
    present: PresentLeader,
    by_moment: ByMoment,
    znodes: Mapping[Moment, Znodes],
    *,
    is_compacted: bool | None = None,
    made_ms: int | None = None,
    is_tiered: bool = False,
    aside: Sequence[Copy] = (),
    jobs: Jobs = None,
) -> LostParts:
    """The records that each copy holds and the present leader's lacks; fills in the present lineage.

    `aside` are folders that a broker put aside; those of another topic are left out. `made_ms` is when the topic that has the name now was created, if known. A tiered log whose start its broker has not
    written yet begins with its first epoch: brokers delete epochs below the start.
    """
    lost = LostParts(partition, present, znodes, findings=list(present.findings))
    copies = [*_same_topic(lost, by_moment), *_aside_of_this_topic(lost, aside)]
    logs = [ReplicaLog(copy) for copy in copies]
    pairs = compare_pairs(logs, [(0, index) for index in range(1, len(logs))], jobs)
    lost.holders = [Holder(copy, log, log.lineage()) for copy, log in zip(copies, logs, strict=True)]
    lineage = lost.holders[0].lineage
    present.lineage = lineage
    if is_tiered and present.copy.checkpoint("log_start") is None and present.recorded:
        start = min(lineage.log_start_offset, present.recorded[0][1])
        present.lineage = replace(lineage, log_start_offset=start)
    present.log_end_offset = lineage.log_end_offset
    pairs = _of_this_topic(lost, pairs, made_ms)
    for pair in pairs:
        copy = lost.holders[pair.second].copy
        is_live = copy.replica.kind is FolderKind.LIVE
        if copy.moment == present.moment and is_live and not pair.contradict:
            _extend_present(lost, lost.holders[pair.second])
    compacted = lost.is_compacted = _is_compacted(lost) if is_compacted is None else is_compacted
    for pair in pairs:
        _add_parts(lost, pair, compacted=compacted)
    lost.findings += _damaged_everywhere(lost.holders, compacted=compacted)
    if not compacted:  # else a cleaner may have removed the records
        lost.findings += _missing_everywhere(lost)
    lost.findings += [*_beyond_the_copies(lost), *_before_the_copy(lost)]
    return lost


def _damaged_everywhere(holders: Sequence[Holder], *, compacted: bool) -> Iterator[Finding]:
    """Damage of the present log that no other copy can replace; at the log's end only below the high watermark."""
    present, *others = holders
    high_watermark = present.copy.checkpoint("high_watermark") or 0
    lacking = [_uncovered_offsets(other.log, compacted=True) for other in others] if compacted else []
    for damage in present.log.damage:
        # At the log's end it is an incomplete append, unless some of it was committed.
        start, end = damage.from_offset, high_watermark if damage.to_offset is None else damage.to_offset
        if end <= start:
            continue  # between two batches that follow each other, or not committed
        if compacted:  # a cleaner may have removed what is missing
            is_held = not all(any(common([(start, end)], spans)) for spans in lacking)
        else:
            is_held = any(_has_sound_batches(other.copy, start, end) for other in others)
        if not is_held:
            yield damage.finding(present.copy, "no other copy in the evidence holds them whole")


def _beyond_the_copies(lost: LostParts) -> Iterator[Finding]:
    """High watermarks of the last moment beyond the end of every copy: the log was copied earlier or lost its end."""
    end = lost.present.log_end_offset
    for holder in lost.holders:
        if holder.copy.moment != lost.present.moment:
            continue
        recorded = loaded(holder.copy.recorded_epochs or ())
        for name, recorded_end in (
            (CHECKPOINTS["high_watermark"], holder.copy.checkpoint("high_watermark") or 0),
            (LEADER_EPOCHS, recorded[-1][1] if recorded else 0),
        ):
            if recorded_end > max(end, holder.lineage.log_end_offset):
                place = replace(holder.copy.place, base_offset=end, last_offset=recorded_end - 1)
                details = {"broker_id": holder.copy.broker_id, "end": holder.log.next_offset}
                yield replica_findings.INCOMPLETE_COPY.at(
                    place, severity=_severity_of(holder.copy), checkpoint=name, said=recorded_end, **details
                )


def _before_the_copy(lost: LostParts) -> Iterator[Finding]:
    """Leader epochs that start below the present log: brokers delete them together with the segments."""
    present, topic = lost.holders[0], lost.partition.topic
    recorded = loaded(present.copy.recorded_epochs or ())
    start = lost.present.lineage.log_start_offset if lost.present.lineage else 0
    if any(znodes.is_tiered(topic) for znodes in lost.znodes.values()):
        return  # earlier records are in the tier
    if recorded and recorded[0][1] < start and present.lineage.local_log_start_offset == start:
        place = replace(present.copy.place, base_offset=recorded[0][1], last_offset=start - 1)
        said, left = recorded[0][1], _remains_before(present.copy, recorded[0][1], start)
        yield replica_findings.START_MISSING.at(
            place, broker_id=present.copy.broker_id, said=said, start=start, left=left
        )


def _remains_before(copy: Copy, said: int, start: int) -> str:
    """The clause about indexes of segments below the first log: they stay where single files were removed by hand."""
    indexes = [
        named.base_offset
        for named in _segment_files(copy)
        if named.state is FileState.LIVE and named.suffix.endswith("index")
    ]
    first = min((base for base in indexes if said <= base < start), default=start)
    if first == start:
        return ""
    gone = f". Of [{said}, {first}) no file is left, of" if said < first else ". Of"
    return f"{gone} [{first}, {start}) only indexes"


def _segment_files(copy: Copy) -> Iterator[SegmentFile]:
    """The names of the files of segments in a copy's folder; none where it cannot be listed."""
    try:
        names = os.listdir(copy.folder)
    except OSError:
        return
    yield from filter(None, map(parse_segment_file, names))


def _severity_of(copy: Copy) -> Severity:
    """The severity if a copy contradicts its checkpoints: info if its broker may have been running."""
    return Severity.WARNING if copy.replica.log_dir.is_clean else Severity.INFO


def _missing_everywhere(lost: LostParts) -> Iterator[Finding]:
    """The finding about offsets in the middle of the present log that no copy has, inside of segments or between two.

    There is none if a log looks compacted; nor if a log has gaps inside of segments, unless the configuration or a
    cleaner's checkpoint without an entry says that no cleaner made them. It is an error (HOLE_EVERYWHERE) if the
    configuration says that the topic is not compacted, no log has a gap inside of a segment, as an earlier compaction
    leaves them, and for the ranges that retention did not remove while a directory was copied: they end beyond the
    start of every copy, and no copy has a file there that a broker was about to delete. Else it is an info
    (GAP_EVERYWHERE).
    """
    present, *others = lost.holders
    if any(holder.log.looks_compacted for holder in lost.holders):
        return
    has_gaps = any(holder.log.gaps for holder in lost.holders)
    is_known = any(znodes.is_compacted(lost.partition.topic) is False for znodes in lost.znodes.values())
    of_now = [holder.copy for holder in lost.holders if holder.copy.moment == lost.present.moment]
    if has_gaps and not is_known and not all(copy.was_never_cleaned for copy in of_now):
        return
    file, first = present.copy.place.file, max(map(_checkpointed_start, of_now))
    spans = [(start, end, file) for start, end in present.log.gaps]
    for start, end in present.log.missing_segments:
        spans.append((start, end, "/".join(filter(None, (file, f"{end:020d}.log")))))
    missing = sorted(span for span in spans if span[1] > max(first, present.lineage.log_start_offset))
    lacking = [span[:2] for span in missing]
    for other in others:
        lacking = list(common(lacking, _uncovered_offsets(other.log)))
    # Retention removes segments from the front, in one copy sooner than in another; a broker renames them first.
    begins = max(other.log.local_log_start_offset for other in lost.holders)
    renamed = {
        named.base_offset
        for holder in lost.holders
        if lacking and not holder.copy.replica.log_dir.is_clean
        for named in _segment_files(holder.copy)
        if named.state is FileState.DELETED and named.suffix == ".log"
    }
    certain, doubtful = list[Span](), list[Span]()
    for start, end in lacking:
        is_removed = end <= begins or any(start <= base_offset < end for base_offset in renamed)
        (certain if is_known and not has_gaps and not is_removed else doubtful).append((start, end))
    for found, spans_of_it in (
        (replica_findings.HOLE_EVERYWHERE, certain),
        (replica_findings.GAP_EVERYWHERE, doubtful),
    ):
        for start, end in spans_of_it[:1]:
            behind = missing[bisect_right(missing, start, key=lambda span: span[0]) - 1][2]
            more = f" and {counted(len(spans_of_it) - 1, 'more range')}" if spans_of_it[1:] else ""
            place = replace(present.copy.place, file=behind, base_offset=start, last_offset=end - 1)
            yield found.at(place, broker_id=present.copy.broker_id, start=start, end=end, more=more)


def _checkpointed_start(copy: Copy) -> int:
    """The log start offset by the checkpoints, which brokers write before they delete segments below it."""
    recorded = loaded(copy.recorded_epochs or ())
    return max(copy.checkpoint("log_start") or 0, recorded[0][1] if recorded else 0)


def _uncovered_offsets(log: ReplicaLog, *, compacted: bool = False) -> list[tuple[int, int]]:
    """The offsets that no sound batch covers: outside of the log, damaged, or missing in its middle.

    If `compacted`, what is missing in the middle is left out: a cleaner may have removed it.
    """
    damaged = [(d.from_offset, NO_END if d.to_offset is None else d.to_offset) for d in log.damage]
    outside = [(0, log.local_log_start_offset), (log.next_offset, NO_END)]
    missing = [] if compacted else [*log.missing_segments, *log.gaps]
    if not compacted and len(log.gaps) >= MOST_GAPS:
        missing.append((log.gaps[-1][1], NO_END))  # the rest is unknown
    return joined([*outside, *missing, *damaged])


def _has_sound_batches(copy: Copy, start: int, end: int) -> bool:
    """Whether sound batches of a copy cover [start, end)."""
    held = (
        (first, last + 1)
        for _, batches in batches_between(copy, start, end)
        for first, last in zip(batches.first_offset.tolist(), batches.last_offset.tolist(), strict=True)
    )
    return not without([(start, end)], held)


def _same_topic(lost: LostParts, by_moment: ByMoment) -> list[Copy]:
    """The present copy, then every other copy of the same topic and cluster."""
    present = lost.present.copy
    copies = [present]
    for of_moment in by_moment.values():
        for copy in of_moment.values():
            if copy is present:
                continue
            finding = other_identity(lost.present, copy, lost.znodes)
            if finding is None:
                copies.append(copy)
            elif (finding.place.moment, finding.code) not in {
                (f.place.moment, f.code) for f in lost.findings
            }:
                lost.findings.append(finding)
    return copies


def _aside_of_this_topic(lost: LostParts, aside: Sequence[Copy]) -> Iterator[Copy]:
    """The folders that brokers put aside of the topic that has the name now; a finding for each other one with records.

    A folder to be deleted is of a topic or a replica that somebody gave up; so is one whose topic the metadata log says
    was deleted.
    """
    present = lost.present.copy
    removed = {topic_id for znodes in lost.znodes.values() for topic_id in znodes.removed}
    for copy in aside:
        if is_one_life(present, copy):
            yield copy
            continue
        is_given_up = copy.replica.kind is FolderKind.DELETE or copy.replica.topic_id in removed
        if not is_given_up and (records := held_batches(copy).lacking_in(held_batches(present))):
            lost.findings.append(
                replica_findings.STRAY_RECORDS.at(
                    copy.place,
                    name=copy.folder.name,
                    broker_id=copy.broker_id,
                    records=records,
                    partition=copy.partition,
                )
            )


def _of_this_topic(lost: LostParts, pairs: list[Pair], made_ms: int | None) -> list[Pair]:
    """The pairs whose second copy does not begin with records of an earlier topic of the same name."""
    same_topic = []
    holders = lost.holders[:1]
    for pair in pairs:
        holder = lost.holders[pair.second]
        origin = origin_of(lost.present, holders[0], holder, pair, lost.znodes, made_ms)
        if origin.finding is None:
            pair.second = len(holders)
            same_topic.append(pair)
            holders.append(replace(holder, is_doubtful=origin.is_doubtful))
        else:
            lost.findings.append(origin.finding)
    lost.holders = holders
    return same_topic


def _is_compacted(lost: LostParts) -> bool:
    if lost.partition.topic in INTERNAL_COMPACTED:
        return True
    configured = [znodes.is_compacted(lost.partition.topic) for znodes in lost.znodes.values()]
    if any(is_compacted is not None for is_compacted in configured):
        return any(configured)
    return any(holder.log.looks_compacted for holder in lost.holders)


def _extend_present(lost: LostParts, holder: Holder) -> None:
    """Count the tail of another copy of the same moment as present, if only the order of copying explains it."""
    present, lineage = lost.present, holder.lineage
    while present.log_end_offset < lineage.log_end_offset:
        start, end = present.log_end_offset, _same_lineage_until(present, holder)
        if end <= start:
            return
        if lineage.epoch_at(start) is None:  # only the order of copying suggests that it is no loss
            place = replace(holder.copy.place, base_offset=start, last_offset=end - 1)
            who = holder.copy.broker_id
            lost.findings.append(
                replica_findings.UNDECIDED_TAIL.at(place, broker_id=who, start=start, end=end)
            )
        present.log_end_offset = end


def _same_lineage_until(present: PresentLeader, holder: Holder) -> int:
    """The offset up to which another copy continues the lineage in which the present copy ends."""
    start, end = present.log_end_offset, holder.lineage.log_end_offset
    epoch = holder.lineage.epoch_at(start)
    following = None if epoch is None else present.starts_after(epoch)
    if following is not None:
        return min(end, following)
    is_older = epoch is None or (present.current_epoch or 0) > epoch
    return start if is_older and _cannot_follow(present, holder.copy) else end


def _cannot_follow(present: PresentLeader, copy: Copy) -> bool:
    """Whether a broker cannot be following the present leader: not in the ISR and not registered."""
    if present.state is None or present.live is None:
        return False
    return copy.broker_id not in present.state.isr and copy.broker_id not in present.live


def _add_parts(lost: LostParts, pair: Pair, *, compacted: bool) -> None:
    holder, present = lost.holders[pair.second], lost.present
    assert present.lineage is not None
    start = present.lineage.log_start_offset
    spans = [(first, last) for first, last in pair.different.spans]
    lacking = [(first, last) for first, last in pair.lacking[0].spans]
    opposite = list(_superseded(present, holder, [*lacking, *pair.unmatched.spans]))
    if not compacted and not lost.holders[0].log.damage:
        opposite += lacking
    spans += opposite
    lost.absent = joined([*lost.absent, *opposite])
    first_local = present.lineage.local_log_start_offset or 0
    # Below this offset the present log is in a tier, where only its epochs show what was cut.
    spans += _superseded(
        present, holder, [(max(start, holder.lineage.local_log_start_offset or 0), first_local)]
    )
    tail = max(present.log_end_offset, holder.lineage.local_log_start_offset or 0)
    if holder.lineage.log_end_offset > tail and not _is_tail_present(lost, holder, pair):
        spans.append((tail, holder.lineage.log_end_offset))
    for first, last in joined(spans):
        if last > max(first, start):
            lost.parts += _without_sent_again(lost, LostPart(holder, max(first, start), last))


def _superseded(
    present: PresentLeader, holder: Holder, spans: Iterable[Sequence[int]]
) -> Iterator[tuple[int, int]]:
    """The parts of `spans` in which a copy has an epoch that had ended before these offsets: they were truncated."""
    epochs = holder.lineage.epochs
    ends = [*(start for _, start in epochs[1:]), holder.lineage.log_end_offset]
    for (epoch, start), end in zip(epochs, ends, strict=False):
        following = present.starts_after(epoch)
        if following is None:
            continue
        until = min(end, present.log_end_offset)  # beyond it is the tail
        for first, last in spans:
            if max(first, start, following) < min(last, until):
                yield max(first, start, following), min(last, until)


def _without_sent_again(lost: LostParts, part: LostPart) -> list[LostPart]:
    """A part without the ranges that producers sent again."""
    copy, start, end = part.holder.copy, part.from_offset, part.to_offset
    again = sent_again(lost, copy, start, end)
    if again is None:
        return [replace(part, is_searched=False)]
    for first, last in again:
        place = replace(copy.place, base_offset=first, last_offset=last - 1)
        lost.findings.append(
            replica_findings.SENT_AGAIN.at(place, broker_id=copy.broker_id, start=first, end=last)
        )
    left = without([(start, end)], again)
    return [replace(part, from_offset=first, to_offset=last) for first, last in left]


def _is_tail_present(lost: LostParts, holder: Holder, pair: Pair) -> bool:
    """Whether a tail beyond the present end is no loss: it is of the same leadership, or nothing contradicts that."""
    present, copy = lost.present, holder.copy
    start, end = present.log_end_offset, holder.lineage.log_end_offset
    if pair.contradict:
        return False
    epoch = holder.lineage.epoch_at(start)
    if copy.moment == present.moment:
        if epoch is not None and present.starts_after(epoch) is not None:
            return False
        if _cannot_follow(present, copy):
            return epoch is not None and epoch >= (present.current_epoch or 0)
        place = replace(copy.place, base_offset=start, last_offset=end - 1)
        lost.findings.append(
            replica_findings.UNDECIDED_TAIL.at(place, broker_id=copy.broker_id, start=start, end=end)
        )
        return True
    if _is_same_leadership(lost, copy, epoch):
        place = present.copy.place
        lost.findings.append(
            replica_findings.PRESENT_INCOMPLETE.at(place, partition=lost.partition, end=start, said=end)
        )
        return True
    return False


def _is_same_leadership(lost: LostParts, copy: Copy, epoch: int | None) -> bool:
    """Whether the tail of an earlier copy was written in the present leadership."""
    present, znodes = lost.present, lost.znodes
    topic, moments = lost.partition.topic, {copy.moment, present.moment} & znodes.keys()
    if len({znodes[moment].created.get(topic) for moment in moments if znodes[moment].is_whole}) > 1:
        return False  # recreated znodes count leader epochs anew
    if epoch is not None:
        return present.current_epoch is None or epoch >= present.current_epoch
    before = znodes[copy.moment].state(lost.partition) if copy.moment in znodes else None
    if before is None or present.state is None:
        return False
    return (before.leader, before.leader_epoch) == (present.state.leader, present.state.leader_epoch)


def sent_again(lost: LostParts, copy: Copy, start: int, end: int) -> list[tuple[int, int]] | None:
    """The ranges of [start, end) of one copy whose records the present copy has too, from `start` on.

    None if the search was skipped because earlier searches used up its limit. Transaction markers count as sent again
    if every record around them was.
    """
    contents: dict[int, Content] = {}
    if lost.records_to_search <= 0:
        return None
    for offset, content in _data_records(copy, start, end):
        if content.timestamp <= 0 or len(contents) == MOST_LOST_RECORDS:
            return []
        contents[offset] = content
    key = start, end, hash(tuple(contents.items()))
    if key not in lost.searched:
        lost.searched[key] = _ranges_sent_again(lost, contents, start, end)
    return lost.searched[key]


def _ranges_sent_again(
    lost: LostParts, contents: Mapping[int, Content], start: int, end: int
) -> list[tuple[int, int]]:
    present_counts, searched = _count_in_present(lost.present.copy, start, Counter(contents.values()))
    lost.records_to_search -= max(searched, LEAST_SEARCHED)
    again = []
    for offset, content in contents.items():
        if present_counts[content] > 0:
            present_counts[content] -= 1
            again.append(offset)
    if contents and len(again) == len(contents):
        return [(start, end)]
    return joined([(offset, offset + 1) for offset in again])


def _count_in_present(present: Copy, start: int, counts: Counter[Content]) -> tuple[Counter[Content], int]:
    """How often the present log has each of these records, and how many records were searched."""
    present_counts: Counter[Content] = Counter()
    missing, searched = counts.total(), 0
    for _, content in _data_records(present, start, NO_END):
        if not missing or searched == MOST_SEARCHED:
            break
        searched += 1
        if present_counts[content] < counts[content]:
            present_counts[content] += 1
            missing -= 1
    return present_counts, searched


def _data_records(copy: Copy, start: int, end: int) -> Iterator[tuple[int, Content]]:
    """The data records of [start, end), batch by batch, without control records."""
    for log, batches in batches_between(copy, start, end):
        for entry in entries(log, batches, range(len(batches))):
            if entry.batch is not None and entry.batch.is_control:
                continue
            try:
                for record in iterate_records(entry, limit=LIMIT):
                    if start <= record.offset < end:
                        yield record.offset, content_of(entry.magic, record)
            except FormatError:
                continue
