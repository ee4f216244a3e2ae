"""Rows of metadata records and of remote segments: columns of numbers, and pools of what has no fixed size."""

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
ROW = {
    "kind": np.uint8,
    "id_high": np.uint64,
    "id_low": np.uint64,
    "partition": np.int32,  # index in Fold.partitions
    "metadata_partition": np.int32,
    "first_offset": np.int64,  # of the record that started the copy
    "offset": np.int64,  # of the last record
    "finished_offset": np.int64,  # of the record that finished the copy; -1: none
    "deleting_offset": np.int64,  # of the record that started the deletion; -1: none
    "start_offset": np.int64,
    "end_offset": np.int64,
    "max_timestamp": np.int64,
    "event_timestamp": np.int64,
    "broker_id": np.int32,
    "size_in_bytes": np.int32,
    "state": np.int8,
    "old_layout": np.bool_,
    "epochs_count": np.int32,
    "custom_length": np.int32,  # -1 for null
}
# What a later record of the segment replaces.
REPLACED = ("offset", "event_timestamp", "broker_id", "state", "metadata_partition", "old_layout")


@dataclass(slots=True)
class Rows:
    """Rows of records or of segments: columns of `ROW`, epochs and custom metadata of all rows one after another."""

    columns: dict[str, Column]
    epochs: NDArray[np.int32]
    epoch_offsets: NDArray[np.int64]
    custom: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.columns["kind"])


def no_rows() -> Rows:
    """Nothing."""
    empty: dict[str, Column] = {name: np.empty(0, dtype) for name, dtype in ROW.items()}
    return Rows(empty, np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.uint8))


def ranges(starts: Column, counts: Column) -> Column:
    """Every index of the ranges that begin at `starts`, range after range."""
    counts = np.maximum(counts, 0).astype(np.int64)
    first = np.repeat(starts, counts)
    found: Column = first + np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return found


def taken(
    rows: Rows, which: Column, epochs_of: Column | None = None, custom_of: Column | None = None
) -> Rows:
    """Some rows; epochs and custom metadata may come from others."""
    counts, lengths = rows.columns["epochs_count"], np.maximum(rows.columns["custom_length"], 0)
    epochs_at, custom_at = np.cumsum(counts) - counts, np.cumsum(lengths) - lengths
    e = which if epochs_of is None else epochs_of
    c = which if custom_of is None else custom_of
    columns = {name: column[which] for name, column in rows.columns.items()}
    columns["epochs_count"], columns["custom_length"] = counts[e], rows.columns["custom_length"][c]
    epochs = ranges(epochs_at[e], counts[e])
    held = rows.custom[ranges(custom_at[c], lengths[c])]
    return Rows(columns, rows.epochs[epochs], rows.epoch_offsets[epochs], held)


def joined(parts: list[Rows]) -> Rows:
    """The rows of all parts."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in ROW}
    return Rows(
        columns,
        np.concatenate([part.epochs for part in parts]),
        np.concatenate([part.epoch_offsets for part in parts]),
        np.concatenate([part.custom for part in parts]),
    )


def by_segment(rows: Rows) -> tuple[Column, Column]:
    """The order that brings each segment's rows together, oldest first, and where each segment begins."""
    high, low = rows.columns["id_high"], rows.columns["id_low"]
    order = np.argsort(high ^ (low * np.uint64(0x9E3779B97F4A7C15)), kind="stable")
    a, b = high[order], low[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    mixed = (high ^ (low * np.uint64(0x9E3779B97F4A7C15)))[order]
    if (first[1:] & (mixed[1:] == mixed[:-1])).any():  # two ids of one hash
        order = np.lexsort((low, high))
        a, b = high[order], low[order]
        first[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return order, first


def merged(rows: Rows, base: Column, final: Column) -> Rows:
    """Rows `base` with what their last records, rows `final`, replace."""
    made = taken(rows, base, custom_of=final)
    for name in REPLACED:
        made.columns[name] = rows.columns[name][final]
    made.columns["kind"] = np.full(len(base), KNOWN, np.uint8)
    return made


def rows_of(chunk: ValueChunk, columns: MetadataColumns, which: Column, codes: Column) -> Rows:
    """The rows that were read in columns."""
    number = -1 if chunk.metadata_partition is None else chunk.metadata_partition
    made: dict[str, Column] = {
        "kind": columns.kind[which],
        "partition": codes,
        "metadata_partition": np.full(len(which), number, np.int32),
        "first_offset": chunk.offsets[which],
        "offset": chunk.offsets[which],
        "finished_offset": np.where(columns.state[which] == 1, chunk.offsets[which], -1),
        "deleting_offset": np.where(columns.state[which] == 2, chunk.offsets[which], -1),
        "old_layout": ~columns.has_custom[which],
        "epochs_count": columns.epochs_count[which].astype(np.int32),
        "custom_length": columns.custom_length[which].astype(np.int32),
    }
    for name in ROW:
        if name not in made:
            made[name] = getattr(columns, name)[which]
    epochs, offsets = read_epochs(chunk.data, columns.epochs_position[which], columns.epochs_count[which])
    held = chunk.data[ranges(columns.custom_position[which], columns.custom_length[which])]
    return Rows(made, epochs, offsets, held)


def row_of(
    record: SegmentMetadata | SegmentMetadataUpdate, code: int, metadata_partition: int | None, offset: int
) -> Rows:
    """One record as a row."""
    raw = uuid_bytes(record.remote_log_segment_id)
    custom = record.custom_metadata
    values: dict[str, Any] = {
        "kind": int(record.api_key),
        "id_high": int.from_bytes(raw[:8], "big"),
        "id_low": int.from_bytes(raw[8:], "big"),
        "partition": code,
        "metadata_partition": -1 if metadata_partition is None else metadata_partition,
        "first_offset": offset,
        "offset": offset,
        "finished_offset": offset if record.state == SegmentState.COPY_SEGMENT_FINISHED else -1,
        "deleting_offset": offset if record.state == SegmentState.DELETE_SEGMENT_STARTED else -1,
        "event_timestamp": record.event_timestamp,
        "broker_id": record.broker_id,
        "state": int(record.state),
        "old_layout": record.layout is Layout.BEFORE_CUSTOM_METADATA,
        "custom_length": -1 if custom is None else len(custom),
    }
    epochs: tuple[tuple[int, int], ...] = ()
    if isinstance(record, SegmentMetadata):
        epochs = record.segment_leader_epochs
        for name in ("start_offset", "end_offset", "max_timestamp", "size_in_bytes"):
            values[name] = getattr(record, name)
        values["epochs_count"] = len(epochs)
    columns: dict[str, Column] = {name: np.array([values.get(name, 0)], dtype) for name, dtype in ROW.items()}
    return Rows(
        columns,
        np.array([epoch for epoch, _ in epochs], np.int32),
        np.array([start for _, start in epochs], np.int64),
        np.frombuffer(custom or b"", np.uint8),
    )
