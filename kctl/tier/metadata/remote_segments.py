"""Remote segments as rows of numbers, found by id, with a pool for parts of variable size; and as values.

Their order is by topic, partition, start offset and the offset of the first record.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from formats.messages.remote_log_metadata import RecordLayout, SegmentMetadata, SegmentState, TopicIdPartition
from formats.tier.ids import Ids
from formats.tier.metadata_columns import EPOCH_SIZE, epoch_bytes, read_epochs
from formats.values import Struct
from kctl.tier.metadata.events import Column, Events

ROW = np.dtype(
    [
        ("id_high", np.uint64),
        ("id_low", np.uint64),
        ("first_offset", np.int64),  # of the record that started the copy
        ("offset", np.int64),  # of the last record
        ("finished_offset", np.int64),  # of the record that finished the copy; -1: none
        ("deleting_offset", np.int64),  # of the record that started the deletion; -1: none
        ("start_offset", np.int64),
        ("end_offset", np.int64),
        ("max_timestamp", np.int64),
        ("event_timestamp", np.int64),
        ("epochs_at", np.int64),  # in the pool
        ("custom_at", np.int64),
        ("partition", np.int32),  # index in Fold.partitions
        ("metadata_partition", np.int32),  # -1: not known
        ("broker_id", np.int32),
        ("size_in_bytes", np.int32),
        ("epochs_count", np.int32),
        ("custom_length", np.int32),  # -1 for null
        ("state", np.int8),
        ("old_layout", np.bool_),
    ],
    align=True,
)
# A row as bytes: numpy copies rows of named fields one field at a time, which is many times slower.
RAW = np.dtype(f"V{ROW.itemsize}")
SMALLEST = 1 << 10  # rows of a table
GROWTH = 3  # times the known rows; memory for unused rows costs nothing
FEWEST_POOLED = 1 << 20  # bytes from which on a pool is worth tidying
AT_ONCE = 1 << 13  # rows whose bytes are gathered together


class SegmentRows(Struct):
    """Rows of segments (dtype `ROW`), with the pool that holds their epochs and custom metadata."""

    table: Column
    pool: Column

    def __len__(self) -> int:
        return len(self.table)

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.pool.nbytes


def ranges(starts: Column, counts: Column) -> Column:
    """Every index of the ranges that begin at `starts`, range after range."""
    first = np.repeat(starts, counts)
    indexes: Column = first + np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return indexes


def gathered(data: Column, starts: Column, sizes: Column) -> Column:
    """The bytes of ranges, joined."""
    if not sizes.any():
        return data[:0]
    parts = [data[:0]]
    for low in range(0, len(starts), AT_ONCE):
        rows = slice(low, low + AT_ONCE)
        parts.append(data[ranges(starts[rows], sizes[rows])])
    return np.concatenate(parts)


def rows_at(rows: SegmentRows, which: Column) -> SegmentRows:
    return SegmentRows(rows.table.view(RAW).take(which).view(ROW), rows.pool)


class SegmentTable:
    """The rows of all known segments; deleted ones stay until room is needed."""

    def __init__(self, *, keep_deleted: bool) -> None:
        self._keep_deleted = keep_deleted
        self._raw = np.empty(SMALLEST, RAW)
        self._size = 0
        self._pool = np.empty(0, np.uint8)
        self._pooled, self._most_pooled = 0, FEWEST_POOLED
        self._ids = Ids()

    @property
    def table(self) -> Column:
        """All rows, including unused ones."""
        return self._raw.view(ROW)

    def rows(self) -> SegmentRows:
        """The used rows; valid until the next change."""
        return SegmentRows(self._raw[: self._size].view(ROW), self._pool[: self._pooled])

    def find(self, high: Column, low: Column) -> tuple[Column, Column]:
        """The row of each id (-1: none), and the place of the id that `begin` needs."""
        return self._ids.find(high, low, self.table["id_high"], self.table["id_low"])

    # --- room -----------------------------------------------------------------------------------------

    def make_room(self, count: int) -> None:
        """Make room for so many more segments; rows may move."""
        is_full = self._size + count > len(self._raw) or self._pooled > self._most_pooled
        if is_full or self._ids.room() < count:
            self.tidy(count)

    def tidy(self, room: int = 0) -> None:
        """Drop deleted segments and unused bytes of the pool; make room for so many more segments."""
        if not self._keep_deleted:
            live = self.rows().table["state"] != SegmentState.DELETE_SEGMENT_FINISHED
            count = int(live.sum())
            # The last rows move into the free places.
            self._raw[np.flatnonzero(~live[:count])] = self._raw[count + np.flatnonzero(live[count:])]
            self._size = count
        if 2 * self._size + room > len(self._raw):
            grown = np.empty(GROWTH * (self._size + room), RAW)
            grown[: self._size] = self._raw[: self._size]
            self._raw = grown
        self._tidy_pool()
        self._ids.clear(len(self._raw))
        table = self.rows().table
        self._ids.add(self._ids.first(table["id_high"], table["id_low"]), np.arange(self._size))

    def _tidy_pool(self) -> None:
        table, pool = self.rows().table, self._pool
        counts, lengths = table["epochs_count"].astype(np.int64), np.maximum(table["custom_length"], 0)
        sizes = counts * EPOCH_SIZE
        if int(sizes.sum() + lengths.sum(dtype=np.int64)) < self._pooled:
            self._pool, self._pooled = np.empty(0, np.uint8), 0
            table["epochs_at"] = self._hold(epoch_bytes(pool, table["epochs_at"], counts), sizes)
            table["custom_at"] = self._hold(gathered(pool, table["custom_at"], lengths), lengths)
        self._most_pooled = max(FEWEST_POOLED, GROWTH * self._pooled)

    def _hold(self, data: Column, sizes: Column) -> Column:
        """Append bytes to the pool; return where each part of these sizes begins."""
        start, end = self._pooled, self._pooled + len(data)
        if end > len(self._pool):
            grown = np.empty(2 * end, np.uint8)
            grown[:start] = self._pool[:start]
            self._pool = grown
        self._pool[start:end] = data
        self._pooled = end
        starts: Column = start + np.cumsum(sizes, dtype=np.int64) - sizes
        return starts

    # --- changes --------------------------------------------------------------------------------------

    def begin(self, events: Events, which: Column, rows: Column, places: Column) -> Column:
        """Segments whose copies these events start, in rows that are theirs already or, where -1, in new ones.

        Rows and places are those that `find` returned.
        """
        unknown = rows < 0
        if unknown.any():
            rows = rows.copy()
            rows[unknown] = np.arange(self._size, self._size + int(unknown.sum()))
        table = np.zeros(len(which), ROW)
        table["id_high"], table["id_low"] = events.id_high[which], events.id_low[which]
        table["partition"] = events.partition[which]
        table["first_offset"] = events.offset(which)
        table["finished_offset"] = table["deleting_offset"] = table["custom_length"] = -1
        for columns, at, inside in events.parts(which):
            counts = columns.epochs_count[at]
            epochs = epoch_bytes(columns.data, columns.epochs_position[at], counts)
            table["epochs_at"][inside] = self._hold(epochs, counts * EPOCH_SIZE)
            table["epochs_count"][inside] = counts
            table["size_in_bytes"][inside] = columns.size_in_bytes[at]
            for name in ("start_offset", "end_offset", "max_timestamp"):
                table[name][inside] = columns.column(name)[at]
        self._raw[rows] = table.view(RAW)
        self._size += int(unknown.sum())
        self._ids.add(places[unknown], rows[unknown])
        return rows

    def replace(self, events: Events, which: Column, rows: Column) -> None:
        """Replace in `rows` what the last event of a segment changes."""
        table = self.table
        table["offset"][rows] = events.offset(which)
        table["event_timestamp"][rows] = events.event_timestamp[which]
        table["state"][rows] = events.step[which] & 3
        table["old_layout"][rows] = ~events.has_custom[which]
        number = events.metadata_partition
        table["metadata_partition"][rows] = -1 if number is None else number
        table["broker_id"][rows] = events.broker_id[which]
        lengths = events.custom_length[which]
        table["custom_length"][rows] = lengths
        if (lengths > 0).any():
            for columns, at, inside in events.parts(which):
                sizes = np.maximum(lengths[inside], 0)
                custom = gathered(columns.data, columns.custom_position[at], sizes)
                table["custom_at"][rows[inside]] = self._hold(custom, sizes)


# --- as values ----------------------------------------------------------------------------------------

ROWS_AT_ONCE = 1 << 13
STATES = tuple(SegmentState)
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_ID_CHARACTERS, _PADDED = 22, 24


class RemoteSegment(NamedTuple):
    """The state of a segment after all records, and where these are in the metadata log."""

    metadata: SegmentMetadata
    metadata_partition: int | None
    first_offset: int
    last_offset: int
    finished_offset: int = -1  # of the record that finished the copy; -1: none
    deleting_offset: int = -1  # of the record that started the deletion; -1: none


def in_order(
    rows: SegmentRows, partitions: Sequence[TopicIdPartition], selected: Column | None = None
) -> Iterator[SegmentRows]:
    """The rows in order, some thousands at a time; `selected` is a mask over the partitions."""
    table = rows.table
    names = [(partition.topic, partition.topic_id, partition.partition) for partition in partitions]
    rank = np.empty(len(names) + 1, np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    order = np.lexsort((table["first_offset"], table["start_offset"], rank[table["partition"]]))
    if selected is not None:
        order = order[selected[table["partition"][order]]]
    for first in range(0, len(order), ROWS_AT_ONCE):
        yield rows_at(rows, order[first : first + ROWS_AT_ONCE])


def ids_of(rows: SegmentRows) -> list[str]:
    padded = np.zeros((len(rows), 9), ">u2")
    for column, name in ((0, "id_high"), (4, "id_low")):
        words = np.ascontiguousarray(rows.table[name]).astype(">u8")
        padded[:, column : column + 4] = words.view(">u2").reshape(-1, 4)
    text = binascii.b2a_base64(padded.tobytes(), newline=False).translate(_URL_SAFE).decode("ascii")
    return [text[at : at + _ID_CHARACTERS] for at in range(0, len(text), _PADDED)]


def epochs_of(rows: SegmentRows) -> list[list[list[int]]]:
    """The leader epochs of each row: epoch and first offset."""
    counts = rows.table["epochs_count"].astype(np.int64)
    epochs, offsets = read_epochs(rows.pool, rows.table["epochs_at"], counts)
    pairs = [list(pair) for pair in zip(epochs.tolist(), offsets.tolist(), strict=True)]
    ends = np.cumsum(counts).tolist()
    return [pairs[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]


def custom_of(rows: SegmentRows) -> list[bytes | None]:
    starts, sizes, pool = rows.table["custom_at"].tolist(), rows.table["custom_length"].tolist(), rows.pool
    pairs = zip(starts, sizes, strict=True)
    return [pool[start : start + size].tobytes() if size >= 0 else None for start, size in pairs]


def segments_of(rows: SegmentRows, partitions: Sequence[TopicIdPartition]) -> Iterator[RemoteSegment]:
    """Rows as values. Whole columns become lists first: several times faster than single items."""
    columns: dict[str, list[Any]] = {name: rows.table[name].tolist() for name in rows.table.dtype.names or ()}
    ids, custom = ids_of(rows), custom_of(rows)
    for at, epochs in enumerate(epochs_of(rows)):
        metadata = SegmentMetadata(
            partitions[columns["partition"][at]],
            ids[at],
            columns["start_offset"][at],
            columns["end_offset"][at],
            columns["broker_id"][at],
            columns["max_timestamp"][at],
            columns["event_timestamp"][at],
            tuple((epoch, start) for epoch, start in epochs),
            columns["size_in_bytes"][at],
            custom[at],
            STATES[columns["state"][at]],
            RecordLayout.BEFORE_CUSTOM_METADATA
            if columns["old_layout"][at]
            else RecordLayout.WITH_CUSTOM_METADATA,
        )
        number = columns["metadata_partition"][at]
        yield RemoteSegment(
            metadata,
            None if number < 0 else number,
            columns["first_offset"][at],
            columns["offset"][at],
            columns["finished_offset"][at],
            columns["deleting_offset"][at],
        )
