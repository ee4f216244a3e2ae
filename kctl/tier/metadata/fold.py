"""The present state of every remote segment from millions of metadata records, without an object for each record.

Each chunk of records becomes events, sorted by segment id, and a table of transitions judges each step. Only segments
with an illegal step are applied one record at a time, as a broker's cache does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from formats.errors import FormatError
from formats.messages.remote_log_metadata import (
    PartitionDelete,
    RecordLayout,
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
)
from formats.messages.schema import uuid_text
from formats.tier.metadata_columns import (
    COPY,
    UPDATE,
    MetadataColumns,
    columns_of_records,
    read_metadata_columns,
)
from formats.tier.metadata_partitions import PartitionCodes
from formats.values import Struct, field
from kctl.findings import Finding, Place, Severity
from kctl.findings import remote as codes
from kctl.tier.metadata.events import Column, Events
from kctl.tier.metadata.log import METADATA_TOPIC, MetadataLog, Say, ValueChunk, bad_record
from kctl.tier.metadata.partitioner import (
    DEFAULT_PARTITIONS,
    metadata_partition,
    metadata_partition_by_name,
    placing_hash,
)
from kctl.tier.metadata.remote_log_metadata_cache import DELETED, DELETING, FINISHED, may_follow
from kctl.tier.metadata.remote_segments import RemoteSegment, SegmentRows, SegmentTable, in_order, segments_of
from kctl.tier.metadata.selection import NOW, MetadataAsOf

TOGETHER = 1 << 14  # records whose columns fit the processor's cache
MOST_PARTITIONS = 1024  # numbers of metadata partitions to try if the evidence does not have it
# A step is 4 * kind + state. Before a segment's first step comes KNOWN if it is known, else NOTHING.
KNOWN, NOTHING = 2, 12
STEPS = 8  # of both kinds of events
# Where the greatest offset of events of a state is kept, whatever happens to the events.
MARKS = {"finished_offset": FINISHED, "deleting_offset": DELETING}


def _is_plain(before: int, step: int) -> bool:
    """Whether a step is legal. A copy that starts a second time is not."""
    kind, state = divmod(step, 4)
    if before == NOTHING:
        return kind == COPY and state == 0
    return kind == UPDATE and state != 0 and may_follow(SegmentState(before % 4), SegmentState(state))


_PLAIN = np.array([_is_plain(before, step) for before in range(NOTHING + 1) for step in range(STEPS)])


class _SegmentEvents(Struct):
    """The events of a chunk grouped by segment; one item for each segment, except in `order`."""

    order: Column  # the events, those of a segment together, oldest first
    starts: Column  # places in `order`
    ends: Column
    rows: Column  # of the segments; -1: none
    places: Column  # as returned with the rows
    known: Column  # whether the segment is known; a deleted one is not

    @property
    def base(self) -> Column:
        events: Column = self.order[self.starts]
        return events

    @property
    def final(self) -> Column:
        events: Column = self.order[self.ends - 1]
        return events

    def before(self, column: Column, of_known: Column, of_others: int) -> Column:
        """The value before each event in a column of events in this order."""
        before: Column = np.empty_like(column)
        before[1:] = column[:-1]
        before[self.starts] = np.where(self.known, of_known, of_others)
        return before


class Folding(Struct):
    """Applies events chunk by chunk, and reports what is wrong in them."""

    say: Say
    segments: SegmentTable
    partitions: Sequence[TopicIdPartition]
    keep_deleted: bool
    _has_custom: bool = False

    def follow(self, events: Events, chosen: Column | None = None) -> None:
        """Apply all events, or the chosen ones."""
        groups = self._groups(events, *events.by_segment(chosen))
        if not len(groups.order):
            return
        step = events.step[groups.order]
        state = self.segments.table["state"][groups.rows]
        before = groups.before(step, 4 * KNOWN + state, NOTHING)
        odd = np.flatnonzero(~_PLAIN.take(before * np.uint8(STEPS) + step))
        fine = np.ones(len(groups.starts), np.bool_)
        fine[np.searchsorted(groups.starts, odd, "right") - 1] = False
        self._say_wiped(events, groups, fine, before & 3 != DELETED)
        self._plain(events, groups, fine)
        numbers = np.flatnonzero(~fine)
        for number in numbers[np.argsort(events.row[groups.base[numbers]])].tolist():
            self._replay(events, groups, number)

    def _groups(self, events: Events, order: Column, first: Column) -> _SegmentEvents:
        self.segments.make_room(len(order))
        starts = np.flatnonzero(first)
        base = order[starts]
        rows, places = self.segments.find(events.id_high[base], events.id_low[base])
        known = rows >= 0
        if not self.keep_deleted:
            known &= self.segments.table["state"][rows] != DELETED
        return _SegmentEvents(order, starts, np.append(starts[1:], len(order)), rows, places, known)

    def _plain(self, events: Events, groups: _SegmentEvents, fine: Column) -> None:
        """Apply the segments whose steps are all legal."""
        final = groups.final
        if self.keep_deleted:
            stays = fine
        else:  # a deleted segment is not needed any more
            gone = (events.step[final] & 3) == DELETED
            stays = fine & ~gone
            self.segments.table["state"][groups.rows[fine & gone & groups.known]] = DELETED
        rows = np.where(stays, groups.rows, -1)
        new = np.flatnonzero(stays & ~groups.known)
        new = new[np.argsort(groups.base[new])]  # read in the order of the data
        rows[new] = self.segments.begin(events, groups.base[new], groups.rows[new], groups.places[new])
        staying = np.flatnonzero(stays)
        self.segments.replace(events, final[staying], rows[staying])
        self._mark(events, groups.order, groups.starts, rows)

    def _mark(self, events: Events, which: Column, starts: Column, rows: Column) -> None:
        """Note which events finished copies and began deletions, for the segments in `rows`, from each start on."""
        states, offsets = events.step[which] & 3, events.offset(which)
        for name, state in MARKS.items():
            marks = np.maximum.reduceat(np.where(states == state, offsets, -1), starts)
            marked = np.flatnonzero((marks >= 0) & (rows >= 0))
            column = self.segments.table[name]
            column[rows[marked]] = np.maximum(column[rows[marked]], marks[marked])

    def _say_wiped(self, events: Events, groups: _SegmentEvents, fine: Column, is_there: Column) -> None:
        """Report custom metadata that a later record dropped, of segments whose steps are legal."""
        self._has_custom |= bool((events.custom_length > 0).any())
        if not self._has_custom:
            return
        length = events.custom_length[groups.order]
        before = groups.before(length, self.segments.table["custom_length"][groups.rows], -1)
        wiped = (before > 0) & (length < 0) & is_there & np.repeat(fine, groups.ends - groups.starts)
        for at in np.flatnonzero(wiped).tolist():
            self._say_one_wiped(events, int(groups.order[at]), int(before[at]))

    def _say_one_wiped(self, events: Events, index: int, before: int) -> None:
        """Report it for one event; `before` is the bytes of custom metadata that the segment had."""
        if before > 0 and events.custom_length[index] < 0 and events.has_custom[index]:
            self.say(codes.METADATA_CUSTOM_WIPED.at(self._place(events, index), size=before))

    def _replay(self, events: Events, groups: _SegmentEvents, number: int) -> None:
        """Apply a segment with an illegal step record by record, as a broker's cache does."""
        indexes = groups.order[groups.starts[number] : groups.ends[number]]
        row, is_there = int(groups.rows[number]), bool(groups.known[number])
        state = SegmentState(int(self.segments.table["state"][row])) if is_there else None
        custom = int(self.segments.table["custom_length"][row])
        began = last = -1  # the events of its copy and its last step; -1: they were known
        for index in indexes.tolist():
            kind, after = divmod(int(events.step[index]), 4)
            after = SegmentState(after)
            # A deleted segment is forgotten: its id counts as new.
            known = None if state is DELETED else state
            is_copy = kind == COPY and after == 0 and may_follow(known, after)
            if is_copy or (kind == UPDATE and is_there and after != 0 and may_follow(state, after)):
                self._say_one_wiped(events, index, -1 if known is None else custom)
                is_there, began = True, index if is_copy else began
                last, state, custom = index, after, int(events.custom_length[index])
            elif known is None:
                # Repeating a deleted segment's last record is harmless.
                mild = Severity.INFO if after == DELETED else None
                place = self._place(events, index)
                self.say(codes.METADATA_UNKNOWN_SEGMENT.at(place, severity=mild, after=after.name))
            else:
                place = self._place(events, index)
                self.say(codes.METADATA_STATE_BACKWARDS.at(place, before=known.name, after=after.name))
        if state is DELETED and not self.keep_deleted:
            is_there = False
            if groups.known[number]:
                self.segments.table["state"][row] = DELETED
        if not is_there:
            return
        rows = np.array([row])
        if began >= 0:
            rows = self.segments.begin(events, np.array([began]), rows, groups.places[number : number + 1])
            indexes = indexes[np.flatnonzero(indexes == began)[0] :]
        if last >= 0:
            self.segments.replace(events, np.array([last]), rows)
        self._mark(events, indexes, np.zeros(1, np.int64), rows)

    def _place(self, events: Events, index: int) -> Place:
        where = self.partitions[int(events.partition[index])]
        metadata_partition, offset = events.metadata_partition, int(events.offset(np.array([index]))[0])
        id_ = int(events.id_high[index]) << 64 | int(events.id_low[index])
        return Place(
            topic=where.topic,
            partition=where.partition,
            broker_id=int(events.broker_id[index]),
            remote_log_segment_id=uuid_text(id_.to_bytes(16, "big")),
            file=None if metadata_partition is None else f"{METADATA_TOPIC}-{metadata_partition}",
            base_offset=offset if offset >= 0 else None,
            last_offset=offset if offset >= 0 else None,
        )


class Fold(Struct, dict=True):
    """The state of all segments: `add` chunks, then `finish`, then read the segments."""

    say: Say
    keep_deleted: bool = False
    deletions: dict[TopicIdPartition, PartitionDelete] = field(default_factory=dict)
    # (partition, metadata partition) -> records.
    records_in: dict[tuple[int, int | None], int] = field(default_factory=dict)
    records: int = 0
    slow: int = 0  # rows that the plain reader had to read
    layouts: dict[RecordLayout, int] = field(default_factory=lambda: dict.fromkeys(RecordLayout, 0))
    newest: int = -1  # event timestamp
    until_time: int | None = None  # leave out records with a later event timestamp
    until_offset: int | None = None  # and those behind this offset
    _codes: PartitionCodes = field(default_factory=PartitionCodes)

    def __post_init__(self) -> None:
        self._segments = SegmentTable(keep_deleted=self.keep_deleted)
        self._folding = Folding(self.say, self._segments, self.partitions, self.keep_deleted)

    @property
    def partitions(self) -> list[TopicIdPartition]:
        return self._codes.partitions

    def add(self, chunk: ValueChunk) -> None:
        """Apply the records of a chunk."""
        self.records += len(chunk.offsets)
        for first in range(0, len(chunk.offsets), TOGETHER):
            events = self._events(chunk[slice(first, first + TOGETHER)])
            chosen = self._chosen(events)
            self._count(events, chosen)
            self._folding.follow(events, chosen)

    def _events(self, chunk: ValueChunk) -> Events:
        columns, odd = self._codes.coded(read_metadata_columns(chunk.data, chunk.starts, chunk.sizes))
        parts = [*columns, *self._read_singly(chunk, odd.tolist())] if len(odd) else columns
        return Events(parts, chunk.offsets, chunk.metadata_partition)

    def _chosen(self, events: Events) -> Column | None:
        """The events up to the given time or offset; None: all."""
        if self.until_time is None and self.until_offset is None:
            return None
        keep = np.ones(len(events), np.bool_)
        if self.until_time is not None:
            keep &= events.event_timestamp <= self.until_time
        if self.until_offset is not None:
            keep &= events.offset(slice(None)) <= self.until_offset
        return np.flatnonzero(keep)

    def _count(self, events: Events, chosen: Column | None) -> None:
        which = slice(None) if chosen is None else chosen
        numbered = events.partition[which]
        if not len(numbered):
            return
        new = int(events.has_custom[which].sum())
        self.layouts[RecordLayout.BEFORE_CUSTOM_METADATA] += len(numbered) - new
        self.layouts[RecordLayout.WITH_CUSTOM_METADATA] += new
        self.newest = max(self.newest, int(events.event_timestamp[which].max()))
        counts = np.bincount(numbered)
        for code in np.flatnonzero(counts).tolist():
            where = (code, events.metadata_partition)
            self.records_in[where] = self.records_in.get(where, 0) + int(counts[code])

    # --- records for the plain reader -----------------------------------------------------------------

    def _read_singly(self, chunk: ValueChunk, rows: list[int]) -> Iterator[tuple[MetadataColumns, Column]]:
        self.slow += len(rows)
        read: dict[type, list[tuple[int, Any]]] = {SegmentMetadata: [], SegmentMetadataUpdate: []}
        for row, record in chunk.records(self.say, rows):
            offset = int(chunk.offsets[row])
            if type(record) in read:
                read[type(record)].append((row, record))
            elif isinstance(record, PartitionDelete):
                self._delete(record, offset)
            else:
                error = FormatError("a snapshot entry has no place on the topic", 0)
                self.say(bad_record(chunk.metadata_partition, offset, error))
        for pairs in filter(None, read.values()):
            numbers, records = zip(*pairs, strict=True)
            numbered = [self._codes.code(record.topic_id_partition) for record in records]
            yield columns_of_records(records, numbers), np.array(numbered, np.int32)

    def _delete(self, record: PartitionDelete, offset: int) -> None:
        late = self.until_time is not None and record.event_timestamp > self.until_time
        if not late and (self.until_offset is None or offset <= self.until_offset):
            self.deletions[record.topic_id_partition] = record

    # --- what comes out -------------------------------------------------------------------------------

    def finish(self) -> None:
        """Free the memory that is not needed to read the segments."""
        self._segments.tidy()

    def __len__(self) -> int:
        return len(self._segments.rows())

    @property
    def nbytes(self) -> int:
        return self._segments.rows().nbytes

    def runs(self, selected: Column | None = None) -> Iterator[SegmentRows]:
        """The rows of segments, some thousands at a time, in the order of `segments`; `selected` is a mask over partitions."""
        return in_order(self._segments.rows(), self.partitions, selected)

    def segments(self) -> Iterator[RemoteSegment]:
        """Every segment by topic, partition, start offset and offset of its first record."""
        for rows in self.runs():
            yield from segments_of(rows, self.partitions)


def folded(
    chunks: Iterable[ValueChunk], say_: Say, as_of: MetadataAsOf = NOW, *, keep_deleted: bool = False
) -> Fold:
    """The state of all segments now, or at an earlier time or offset."""
    fold = Fold(say_, keep_deleted, until_time=as_of.time)
    for chunk in chunks:
        bounded = as_of.metadata_partition in (None, chunk.metadata_partition)
        fold.until_offset = as_of.offset if bounded else None
        fold.add(chunk)
    fold.finish()
    return fold


# --- of all records -------------------------------------------------------------------------------------


def fold_findings(fold: Fold, log: MetadataLog | None = None) -> Iterator[Finding]:
    """Findings about all records together: two layouts, wrong metadata partitions, two ids of one topic."""
    old, new = (fold.layouts[layout] for layout in sorted(fold.layouts))
    if old and new:
        yield codes.METADATA_LAYOUTS_MIXED.at(old=old, new=new)
    partitions = metadata_partitions(fold, log)
    if partitions is not None:
        yield from _wrong_partitions(fold, partitions)
    ids: dict[str, set[str]] = {}
    for partition in fold.partitions:
        ids.setdefault(partition.topic, set()).add(partition.topic_id)
    for topic, topic_ids in sorted(ids.items()):
        if len(topic_ids) > 1:
            shown = ", ".join(sorted(topic_ids))
            yield codes.TOPIC_IDS_DIFFER.at(Place(topic=topic), count=len(topic_ids), ids=shown)


def metadata_partitions(fold: Fold, log: MetadataLog | None) -> int | None:
    """The number of metadata partitions: from a znode, else derived from the records; None if unknown."""
    if log is not None and log.partitions is not None:
        return log.partitions
    folders = max((number for number in (log.replicas if log else ()) if number is not None), default=-1) + 1
    return _partitions_that_fit(fold, folders)


def _wrong_partitions(fold: Fold, partitions: int) -> Iterator[Finding]:
    for code, number in sorted(fold.records_in, key=str):
        where = fold.partitions[code]
        expected = metadata_partition(where.topic_id, where.partition, partitions)
        if number is None or number == expected:
            continue
        by_name = metadata_partition_by_name(where.topic, where.partition, partitions)
        kip = ", and so does KIP-405's formula for where they are" if by_name == number else ""
        yield codes.METADATA_WRONG_PARTITION.at(
            Place(topic=where.topic, partition=where.partition, file=f"{METADATA_TOPIC}-{number}"),
            found=number,
            partitions=partitions,
            expected=expected,
            kip=kip,
        )


def _partitions_that_fit(fold: Fold, folders: int) -> int | None:
    """The number of metadata partitions that nine of ten records agree with, for evidence without its znode.

    It tries the number of folders, then Kafka's default, then every other number, and last 1, which fits all records of
    partition 0.
    """
    counted = [
        (code, number, count) for (code, number), count in fold.records_in.items() if number is not None
    ]
    if not counted:
        return None
    hashes = {
        code: placing_hash(fold.partitions[code].topic_id, fold.partitions[code].partition)
        for code, _, _ in counted
    }
    hashed = np.array([hashes[code] for code, _, _ in counted])
    numbers = np.array([number for _, number, _ in counted])
    counts = np.array([count for _, _, count in counted])
    first = folders if folders > 1 else DEFAULT_PARTITIONS
    tried: dict[int, None] = dict.fromkeys((first, DEFAULT_PARTITIONS, *range(2, MOST_PARTITIONS), 1))
    for partitions in tried:
        if int(counts[hashed % partitions == numbers].sum()) * 10 >= int(counts.sum()) * 9:
            return partitions
    return None
