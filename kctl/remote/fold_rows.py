"""Rows of metadata records and of remote segments: a table of numbers, and pools of what has no fixed size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.message_schema import uuid_bytes
from formats.remote_log_metadata import Layout, SegmentMetadata, SegmentMetadataUpdate, SegmentState
from formats.remote_metadata_columns import MetadataColumns, read_epochs
from kctl.remote.metadata_log import ValueChunk

Column = NDArray[Any]
ADD, UPDATE, KNOWN = 0, 1, 2
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
        ("partition", np.int32),  # index in Fold.partitions
        ("metadata_partition", np.int32),  # -1: not known
        ("broker_id", np.int32),
        ("size_in_bytes", np.int32),
        ("epochs_count", np.int32),
        ("custom_length", np.int32),  # -1 for null
        ("kind", np.uint8),
        ("state", np.int8),
        ("old_layout", np.bool_),
    ],
    align=True,
)
# A row as bytes alone: numpy moves rows of named fields one field at a time, which takes many times as long.
RAW = np.dtype(f"V{ROW.itemsize}")
# What a later record of the segment replaces.
REPLACED = ("offset", "event_timestamp", "broker_id", "state", "metadata_partition", "old_layout")
# What any record of a segment may add: the greatest holds.
MARKS = ("finished_offset", "deleting_offset")
# What stands in the columns of a record as it does in a row.
AS_READ = (
    "kind", "id_high", "id_low", "start_offset", "end_offset", "max_timestamp", "event_timestamp", "broker_id",
    "size_in_bytes", "state", "epochs_count", "custom_length",
)  # fmt: skip


@dataclass(slots=True)
class Rows:
    """Rows of records or of segments (dtype `ROW`); epochs and custom metadata of all of them one after another."""

    table: NDArray[Any]
    epochs: NDArray[np.int32]
    epoch_offsets: NDArray[np.int64]
    custom: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.table.nbytes + self.epochs.nbytes + self.epoch_offsets.nbytes + self.custom.nbytes


def no_rows() -> Rows:
    """Nothing."""
    return Rows(np.empty(0, ROW), np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.uint8))


def ranges(starts: Column, counts: Column) -> Column:
    """Every index of the ranges that begin at `starts`, range after range."""
    counts = np.maximum(counts, 0).astype(np.int64)
    first = np.repeat(starts, counts)
    found: Column = first + np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return found


def _pooled(sizes: Column, which: Column) -> Column:
    """Places in a pool of what some rows have there; `sizes` are those of all rows."""
    chosen = sizes[which]
    if not chosen.any():
        return np.empty(0, np.int64)
    return ranges((np.cumsum(sizes, dtype=np.int64) - sizes)[which], chosen)


def taken(
    rows: Rows, which: Column, epochs_of: Column | None = None, custom_of: Column | None = None
) -> Rows:
    """Some rows; epochs and custom metadata may come from others."""
    counts, lengths = rows.table["epochs_count"], rows.table["custom_length"]
    e = which if epochs_of is None else epochs_of
    c = which if custom_of is None else custom_of
    table = rows.table.view(RAW).take(which).view(ROW)
    if epochs_of is not None:
        table["epochs_count"] = counts[e]
    if custom_of is not None:
        table["custom_length"] = lengths[c]
    epochs = _pooled(counts, e)
    return Rows(
        table,
        rows.epochs[epochs],
        rows.epoch_offsets[epochs],
        rows.custom[_pooled(np.maximum(lengths, 0), c)],
    )


def joined(parts: list[Rows]) -> Rows:
    """The rows of all parts."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.table.view(RAW) for part in parts]).view(ROW),
        np.concatenate([part.epochs for part in parts]),
        np.concatenate([part.epoch_offsets for part in parts]),
        np.concatenate([part.custom for part in parts]),
    )


class Heap:
    """Rows piled up in one table, so that those known and those that wait need not be copied together."""

    def __init__(self) -> None:
        self._table = np.empty(0, RAW)
        self._size = 0
        self._pools = [no_rows()]

    def __len__(self) -> int:
        return self._size

    def add(self, rows: Rows) -> None:
        """Put rows on top."""
        end = self._size + len(rows)
        if end > len(self._table):
            grown = np.empty(end + end // 4, RAW)
            grown[: self._size] = self._table[: self._size]
            self._table = grown
        self._table[self._size : end] = rows.table.view(RAW)
        self._size = end
        self._pools.append(Rows(rows.table[:0], rows.epochs, rows.epoch_offsets, rows.custom))

    def rows(self) -> Rows:
        """All of them; valid until the next change."""
        pools = joined(self._pools)
        return Rows(self._table[: self._size].view(ROW), pools.epochs, pools.epoch_offsets, pools.custom)

    def replace(self, rows: Rows, room: int) -> None:
        """Only these from now on, with room for so many more."""
        self._size, self._pools = 0, []
        if len(self._table) < len(rows) + room:
            self._table = np.empty(0, RAW)  # given back before as much is asked for again
            self._table = np.empty(len(rows) + room, RAW)
        self.add(rows)


def by_segment(table: NDArray[Any]) -> tuple[Column, Column]:
    """The order that brings each segment's rows together, oldest first, and where each segment begins."""
    high, low = np.ascontiguousarray(table["id_high"]), np.ascontiguousarray(table["id_low"])
    count = len(high)
    # The number of its row in the low bits of each hash keeps the order, and tells it after sorting.
    numbers = np.uint64((1 << max(1, (count - 1).bit_length())) - 1)
    keys = (high ^ low * np.uint64(0x9E3779B97F4A7C15)) & ~numbers | np.arange(count, dtype=np.uint64)
    keys.sort()
    order = (keys & numbers).astype(np.int64)
    first = _begins(high, low, order)
    if (first[1:] & ((keys[1:] ^ keys[:-1]) <= numbers)).any():  # two ids of one hash
        order = np.lexsort((low, high))
        first = _begins(high, low, order)
    return order, first


def _begins(high: Column, low: Column, order: Column) -> Column:
    a, b = high[order], low[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return first


def merged(rows: Rows, base: Column, final: Column) -> Rows:
    """Rows `base` with what their last records, rows `final`, replace and add."""
    made = taken(rows, base, custom_of=final)
    changed = np.flatnonzero(base != final)
    last = rows.table.view(RAW).take(final[changed]).view(ROW)
    for name in REPLACED:
        made.table[name][changed] = last[name]
    raise_marks(made, changed, last)
    made.table["kind"] = KNOWN
    return made


def raise_marks(made: Rows, which: Column, by: NDArray[Any]) -> None:
    """Note what other records of segments `which`, one each or several, finished or began to delete."""
    for name in MARKS:
        np.maximum.at(made.table[name], which, by[name])


def rows_of(chunk: ValueChunk, columns: MetadataColumns, which: Column | None, codes: Column) -> Rows:
    """The rows that were read in columns: all, or `which`."""
    chosen: Any = slice(None) if which is None else which
    offsets, state = chunk.offsets[chosen], columns.state[chosen]
    table = np.empty(len(offsets), ROW)
    for name in AS_READ:
        table[name] = getattr(columns, name)[chosen]
    table["partition"] = codes
    table["metadata_partition"] = -1 if chunk.metadata_partition is None else chunk.metadata_partition
    table["first_offset"] = table["offset"] = offsets
    table["finished_offset"] = np.where(state == SegmentState.COPY_SEGMENT_FINISHED, offsets, -1)
    table["deleting_offset"] = np.where(state == SegmentState.DELETE_SEGMENT_STARTED, offsets, -1)
    table["old_layout"] = ~columns.has_custom[chosen]
    counts, lengths = columns.epochs_count[chosen], columns.custom_length[chosen]
    epochs, starts = read_epochs(chunk.data, columns.epochs_position[chosen], counts)
    has_custom = bool((lengths > 0).any())
    held = ranges(columns.custom_position[chosen], lengths) if has_custom else np.empty(0, np.int64)
    return Rows(table, epochs, starts, chunk.data[held])


def row_of(
    record: SegmentMetadata | SegmentMetadataUpdate, code: int, metadata_partition: int | None, offset: int
) -> Rows:
    """The row of one record."""
    raw = uuid_bytes(record.remote_log_segment_id)
    custom = record.custom_metadata
    table = np.zeros(1, ROW)
    row = table[0]
    row["kind"] = int(record.api_key)
    row["id_high"], row["id_low"] = int.from_bytes(raw[:8], "big"), int.from_bytes(raw[8:], "big")
    row["partition"] = code
    row["metadata_partition"] = -1 if metadata_partition is None else metadata_partition
    row["first_offset"] = row["offset"] = offset
    row["finished_offset"] = offset if record.state == SegmentState.COPY_SEGMENT_FINISHED else -1
    row["deleting_offset"] = offset if record.state == SegmentState.DELETE_SEGMENT_STARTED else -1
    row["event_timestamp"], row["broker_id"] = record.event_timestamp, record.broker_id
    row["state"] = int(record.state)
    row["old_layout"] = record.layout is Layout.BEFORE_CUSTOM_METADATA
    row["custom_length"] = -1 if custom is None else len(custom)
    epochs: tuple[tuple[int, int], ...] = ()
    if isinstance(record, SegmentMetadata):
        epochs = record.segment_leader_epochs
        for name in ("start_offset", "end_offset", "max_timestamp", "size_in_bytes"):
            row[name] = getattr(record, name)
        row["epochs_count"] = len(epochs)
    return Rows(
        table,
        np.array([epoch for epoch, _ in epochs], np.int32),
        np.array([start for _, start in epochs], np.int64),
        np.frombuffer(custom or b"", np.uint8),
    )
