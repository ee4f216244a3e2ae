"""The present state of every remote segment, folded from millions of metadata records without an object for each.

What is kept of a segment are a few numbers in columns, its epochs and its custom metadata in pools. New rows wait
until there are as many as segments known, then both are sorted by segment id, stably, and each segment's steps are
judged by the table of transitions. Only segments with an illegal step are replayed one record at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.message_schema import uuid_text
from formats.remote_log_metadata import (
    Layout,
    PartitionDelete,
    RemoteLogMetadata,
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
    read_remote_log_metadata,
)
from formats.remote_metadata_columns import MetadataColumns, read_metadata_columns
from formats.remote_metadata_lines import same_names, uuid_texts
from kctl.findings import Place, Severity
from kctl.findings import remote as say
from kctl.remote.fold_rows import (
    ADD,
    KNOWN,
    UPDATE,
    Column,
    Rows,
    by_segment,
    joined,
    merged,
    no_rows,
    row_of,
    rows_of,
    taken,
)
from kctl.remote.metadata_log import METADATA_TOPIC, Say, ValueChunk, bad_record
from kctl.remote.states import may_follow

FEWEST_PENDING = 1 << 18
ROWS_AT_ONCE = 1 << 14
_STATES = tuple(SegmentState)
# LEGAL[before, after]
_LEGAL = np.array([[may_follow(a, b) for b in SegmentState] for a in SegmentState])


class RemoteSegment(NamedTuple):
    """A segment as the records leave it, and where in the metadata log they are."""

    metadata: SegmentMetadata
    metadata_partition: int | None
    first_offset: int
    last_offset: int
    finished_offset: int = -1  # of the record that finished the copy; -1: none
    deleting_offset: int = -1  # of the record that started the deletion; -1: none


@dataclass
class Fold:
    """Feed it chunks; `finish`, then iterate over the segments."""

    say: Say
    keep_deleted: bool = False
    partitions: list[TopicIdPartition] = field(default_factory=list)
    deletions: dict[TopicIdPartition, PartitionDelete] = field(default_factory=dict)
    found_in: dict[tuple[int, int | None], int] = field(
        default_factory=dict
    )  # (partition, metadata partition) -> records
    records: int = 0
    slow: int = 0  # rows that the plain reader had to read
    layouts: dict[Layout, int] = field(default_factory=lambda: dict.fromkeys(Layout, 0))
    newest: int = -1  # event timestamp
    until_time: int | None = None  # leave out records with a later event timestamp
    until_offset: int | None = None  # and those behind this offset
    _codes: dict[TopicIdPartition, int] = field(default_factory=dict)
    _known: Rows = field(default_factory=no_rows)
    _pending: list[Rows] = field(default_factory=list)
    _waiting: int = 0

    def add(self, chunk: ValueChunk) -> None:
        """Take in the records of a chunk."""
        self.records += len(chunk.offsets)
        columns = read_metadata_columns(chunk.data, chunk.starts, chunk.sizes)
        which = np.flatnonzero(columns.fast)
        codes, odd = self._partition_codes(chunk.data, columns, which)
        slow = columns.slow if odd is None else np.union1d(columns.slow, which[odd])
        if odd is not None:
            which, codes = which[~odd], codes[~odd]
        fast = rows_of(chunk, columns, which, codes)
        if len(slow):
            fast = self._with_slow(chunk, fast, which, slow)
        self._take(fast)

    def _take(self, rows: Rows) -> None:
        keep = np.ones(len(rows), np.bool_)
        if self.until_time is not None:
            keep &= rows.columns["event_timestamp"] <= self.until_time
        if self.until_offset is not None:
            keep &= rows.columns["offset"] <= self.until_offset
        if not keep.all():
            rows = taken(rows, np.flatnonzero(keep))
        if not len(rows):
            return
        self._count(rows)
        self._pending.append(rows)
        self._waiting += len(rows)
        if self._waiting >= max(FEWEST_PENDING, len(self._known)):
            self._settle()

    def _count(self, rows: Rows) -> None:
        old = int(rows.columns["old_layout"].sum())
        self.layouts[Layout.BEFORE_CUSTOM_METADATA] += old
        self.layouts[Layout.WITH_CUSTOM_METADATA] += len(rows) - old
        self.newest = max(self.newest, int(rows.columns["event_timestamp"].max()))
        pairs = rows.columns["partition"].astype(np.int64) << 32 | (rows.columns["metadata_partition"] + 1)
        for pair, count in zip(*(a.tolist() for a in np.unique(pairs, return_counts=True)), strict=True):
            where = (pair >> 32, None if not pair & 0xFFFFFFFF else (pair & 0xFFFFFFFF) - 1)
            self.found_in[where] = self.found_in.get(where, 0) + count

    # --- partitions -----------------------------------------------------------------------------------

    def code(self, partition: TopicIdPartition) -> int:
        """The index of a partition in `partitions`."""
        if partition not in self._codes:
            self._codes[partition] = len(self.partitions)
            self.partitions.append(partition)
        return self._codes[partition]

    def _partition_codes(
        self, data: NDArray[np.uint8], columns: MetadataColumns, which: Column
    ) -> tuple[Column, Column | None]:
        """Codes of the rows' partitions, and rows whose names are not those of their group."""
        if not len(which):
            return np.empty(0, np.int32), None
        key = columns.topic_id_high[which] * np.uint64(0x9E3779B97F4A7C15)
        key ^= columns.topic_id_low[which] + (columns.partition[which].astype(np.uint64) << np.uint64(1))
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        codes = np.empty(len(first), np.int32)
        for index, row in enumerate(which[first].tolist()):
            at, size = int(columns.name_position[row]), int(columns.name_length[row])
            try:
                name = data[at : at + size].tobytes().decode()
            except UnicodeDecodeError:
                codes[index] = -1
                continue
            topic_id = uuid_text(data[at + size : at + size + 16].tobytes())
            codes[index] = self.code(TopicIdPartition(topic_id, name, int(columns.partition[row])))
        odd = ~same_names(data, columns, which, first, group) | (codes[group] < 0)
        return codes[group], odd if odd.any() else None

    # --- rows for the plain reader --------------------------------------------------------------------

    def _with_slow(self, chunk: ValueChunk, fast: Rows, which: Column, slow: Column) -> Rows:
        parts, places = [fast], [which]
        for row in slow.tolist():
            self.slow += 1
            value, offset = chunk.value(row), int(chunk.offsets[row])
            try:
                if value is None:
                    raise FormatError("the value is null", 0)
                record = read_remote_log_metadata(value)
            except FormatError as error:
                self.say(bad_record(chunk.metadata_partition, offset, error))
                continue
            made = self._row_of(record, chunk.metadata_partition, offset)
            if made is not None:
                parts.append(made)
                places.append(np.array([row]))
        order = np.argsort(np.concatenate(places), kind="stable")
        return taken(joined(parts), order)

    def _row_of(self, record: RemoteLogMetadata, metadata_partition: int | None, offset: int) -> Rows | None:
        if isinstance(record, PartitionDelete):
            late = self.until_time is not None and record.event_timestamp > self.until_time
            if not late and (self.until_offset is None or offset <= self.until_offset):
                self.deletions[record.topic_id_partition] = record
            return None
        if not isinstance(record, SegmentMetadata | SegmentMetadataUpdate):
            error = FormatError("a snapshot entry has no place on the topic", 0)
            self.say(bad_record(metadata_partition, offset, error))
            return None
        return row_of(record, self.code(record.topic_id_partition), metadata_partition, offset)

    # --- folding --------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Fold what waits."""
        self._settle()

    def _settle(self) -> None:
        if not self._pending:
            return
        rows = joined([self._known, *self._pending])
        self._pending, self._waiting = [], 0
        order, first = by_segment(rows)
        self._known = self._folded(rows, order, first)

    def _folded(self, rows: Rows, order: Column, first: Column) -> Rows:
        """One row a segment from rows in the order of their segments."""
        kind, state = rows.columns["kind"][order], rows.columns["state"][order]
        starts = np.flatnonzero(first)
        last = np.append(starts[1:], len(order)) - 1
        group = np.cumsum(first) - 1
        legal = np.empty(len(order), np.bool_)
        legal[1:] = _LEGAL[state[:-1], state[1:]]
        legal[starts] = (kind[starts] != UPDATE) & ((kind[starts] == KNOWN) | (state[starts] == 0))
        inner = ~first
        legal[inner] &= np.where(kind[inner] == ADD, state[inner] == 0, state[inner] != 0)
        # Deleted segments are forgotten: nothing may follow but the same once more.
        fine = np.ones(len(starts), np.bool_)
        fine[group[~legal]] = False
        repeated = np.flatnonzero(inner & (kind == ADD) & legal)
        fine[group[repeated]] = False
        self._say_wiped(rows, order, inner)
        base, final = order[starts[fine]], order[last[fine]]
        kept = merged(rows, base, final)
        for name in ("finished_offset", "deleting_offset"):
            kept.columns[name] = np.maximum.reduceat(rows.columns[name][order], starts)[fine]
        replayed = [
            self._replay(rows, order[starts[g] : last[g] + 1]) for g in np.flatnonzero(~fine).tolist()
        ]
        kept = joined([kept, *(one for one in replayed if one is not None)])
        if not self.keep_deleted:
            kept = taken(kept, np.flatnonzero(kept.columns["state"] != SegmentState.DELETE_SEGMENT_FINISHED))
        return kept

    def _say_wiped(self, rows: Rows, order: Column, inner: Column) -> None:
        length, old = rows.columns["custom_length"][order], rows.columns["old_layout"][order]
        wiped = np.flatnonzero(inner[1:] & (length[:-1] > 0) & (length[1:] < 0) & ~old[1:]) + 1
        for at in wiped.tolist():
            place = self._place(rows, int(order[at]))
            self.say(say.METADATA_CUSTOM_WIPED.at(place, size=int(length[at - 1])))

    def _replay(self, rows: Rows, indexes: Column) -> Rows | None:
        """A segment with an illegal step, as a broker's cache would follow it."""
        current: tuple[int, int] | None = None  # the row its copy stands in, and the row of its last step
        state: SegmentState | None = None
        for index in indexes.tolist():
            kind, after = int(rows.columns["kind"][index]), SegmentState(int(rows.columns["state"][index]))
            # What was deleted is forgotten: its id is as good as new.
            known = None if state is SegmentState.DELETE_SEGMENT_FINISHED else state
            if kind == KNOWN or (kind == ADD and after == 0 and may_follow(known, after)):
                current, state = (index, index), after
            elif kind == UPDATE and current and after != 0 and may_follow(state, after):
                current, state = (current[0], index), after
            elif known is None:
                # A deleted segment's last record once more is a repetition, and harmless.
                mild = Severity.INFO if after == SegmentState.DELETE_SEGMENT_FINISHED else None
                place = self._place(rows, index)
                self.say(say.METADATA_UNKNOWN_SEGMENT.at(place, severity=mild, after=after.name))
            else:
                place = self._place(rows, index)
                self.say(say.METADATA_STATE_BACKWARDS.at(place, before=known.name, after=after.name))
        if current is None:
            return None
        made = merged(rows, np.array([current[0]]), np.array([current[1]]))
        life = indexes[np.flatnonzero(indexes == current[0])[0] :]
        for name in ("finished_offset", "deleting_offset"):
            made.columns[name] = rows.columns[name][life].max(keepdims=True)
        return made

    def _place(self, rows: Rows, index: int) -> Place:
        column = rows.columns
        where = self.partitions[int(column["partition"][index])]
        metadata_partition = int(column["metadata_partition"][index])
        offset = int(column["offset"][index])
        return Place(
            topic=where.topic,
            partition=where.partition,
            broker_id=int(column["broker_id"][index]),
            remote_log_segment_id=_id(column, index),
            file=None if metadata_partition < 0 else f"{METADATA_TOPIC}-{metadata_partition}",
            base_offset=offset if offset >= 0 else None,
            last_offset=offset if offset >= 0 else None,
        )

    # --- what comes out -------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._known)

    @property
    def nbytes(self) -> int:
        """Bytes held for the segments known."""
        known = self._known
        columns = sum(column.nbytes for column in known.columns.values())
        return columns + known.epochs.nbytes + known.epoch_offsets.nbytes + known.custom.nbytes

    def segments(self) -> Iterator[RemoteSegment]:
        """Every segment by topic, partition, start offset and the offset of its first record."""
        column = self._known.columns
        names = [(p.topic, p.topic_id, p.partition) for p in self.partitions]
        rank = np.empty(len(names) + 1, np.int64)
        rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        order = np.lexsort((column["first_offset"], column["start_offset"], rank[column["partition"]]))
        for first in range(0, len(order), ROWS_AT_ONCE):
            yield from self._made(taken(self._known, order[first : first + ROWS_AT_ONCE]))

    def _made(self, rows: Rows) -> Iterator[RemoteSegment]:
        """Some rows as values; columns become lists first, which is several times faster than single items."""
        column = {name: values.tolist() for name, values in rows.columns.items()}
        counts, lengths = rows.columns["epochs_count"], np.maximum(rows.columns["custom_length"], 0)
        epochs_end, custom_end = np.cumsum(counts).tolist(), np.cumsum(lengths).tolist()
        entries = list(zip(rows.epochs.tolist(), rows.epoch_offsets.tolist(), strict=True))
        custom = rows.custom.tobytes()
        ids = _ids(rows.columns["id_high"], rows.columns["id_low"])
        for at, segment_id in enumerate(ids):
            size = column["custom_length"][at]
            end = custom_end[at]
            metadata = SegmentMetadata(
                self.partitions[column["partition"][at]],
                segment_id,
                column["start_offset"][at],
                column["end_offset"][at],
                column["broker_id"][at],
                column["max_timestamp"][at],
                column["event_timestamp"][at],
                tuple(entries[epochs_end[at] - column["epochs_count"][at] : epochs_end[at]]),
                column["size_in_bytes"][at],
                custom[end - size : end] if size >= 0 else None,
                _STATES[column["state"][at]],
                Layout.BEFORE_CUSTOM_METADATA if column["old_layout"][at] else Layout.WITH_CUSTOM_METADATA,
            )
            number = column["metadata_partition"][at]
            yield RemoteSegment(
                metadata,
                None if number < 0 else number,
                column["first_offset"][at],
                column["offset"][at],
                column["finished_offset"][at],
                column["deleting_offset"][at],
            )


def _ids(high: Column, low: Column) -> list[str]:
    """Ids as texts."""
    words = np.empty((len(high), 2), ">u8")
    words[:, 0], words[:, 1] = high, low
    data = np.frombuffer(words.tobytes() + bytes(8), np.uint8)
    texts: list[str] = uuid_texts(data, np.arange(len(high)) * 16).to_pylist()
    return texts


def _id(column: dict[str, Column], index: int) -> str:
    high, low = int(column["id_high"][index]), int(column["id_low"][index])
    return uuid_text((high << 64 | low).to_bytes(16, "big"))
