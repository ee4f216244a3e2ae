"""The present state of every remote segment, folded from millions of metadata records without an object for each.

Chunk by chunk records become events (`fold_events`), which are followed segment by segment (`fold_states`). What is
kept of a segment is a row of numbers, its epochs and its custom metadata in a pool (`fold_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from formats.errors import FormatError
from formats.remote_log_metadata import (
    Layout,
    PartitionDelete,
    SegmentMetadata,
    SegmentMetadataUpdate,
    TopicIdPartition,
    read_remote_log_metadata,
)
from formats.remote_metadata_columns import MetadataColumns, columns_of_records, read_metadata_columns
from formats.remote_metadata_partitions import PartitionCodes
from kctl.remote.fold_events import Column, Events
from kctl.remote.fold_rows import Rows, Segments
from kctl.remote.fold_states import Folding
from kctl.remote.metadata_log import Say, ValueChunk, bad_record
from kctl.remote.remote_segments import RemoteSegment, in_order, segments_of

TOGETHER = 1 << 14  # records whose columns fit the processor's cache


@dataclass
class Fold:
    """Feed it chunks; `finish`, then iterate over the segments."""

    say: Say
    keep_deleted: bool = False
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
    _codes: PartitionCodes = field(default_factory=PartitionCodes)

    def __post_init__(self) -> None:
        self._segments = Segments(keep_deleted=self.keep_deleted)
        self._folding = Folding(self.say, self._segments, self.partitions, self.keep_deleted)

    @property
    def partitions(self) -> list[TopicIdPartition]:
        """The partitions that rows name by their place here."""
        return self._codes.partitions

    def add(self, chunk: ValueChunk) -> None:
        """Take in the records of a chunk."""
        self.records += len(chunk.offsets)
        for first in range(0, len(chunk.offsets), TOGETHER):
            events = self._events(chunk[slice(first, first + TOGETHER)])
            chosen = self._chosen(events)
            self._count(events, chosen)
            self._folding.follow(events, chosen)

    def _events(self, chunk: ValueChunk) -> Events:
        read = read_metadata_columns(chunk.data, chunk.starts, chunk.sizes)
        parts: list[tuple[MetadataColumns, Column]] = []
        slow = [read.slow]
        for columns in (read.copies, read.updates):
            codes = self._codes.of(columns)
            odd = codes < 0
            if odd.any():
                slow.append(columns.rows[odd])
                columns, codes = columns[~odd], codes[~odd]
            parts.append((columns, codes))
        rows = np.sort(np.concatenate(slow))
        if len(rows):
            parts += self._read_singly(chunk, rows)
        return Events(parts, chunk.offsets, chunk.metadata_partition)

    def _chosen(self, events: Events) -> Column | None:
        """The events that are not too late, where some are."""
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
        codes = events.partition[which]
        if not len(codes):
            return
        new = int(events.has_custom[which].sum())
        self.layouts[Layout.BEFORE_CUSTOM_METADATA] += len(codes) - new
        self.layouts[Layout.WITH_CUSTOM_METADATA] += new
        self.newest = max(self.newest, int(events.event_timestamp[which].max()))
        counts = np.bincount(codes)
        for code in np.flatnonzero(counts).tolist():
            where = (code, events.metadata_partition)
            self.found_in[where] = self.found_in.get(where, 0) + int(counts[code])

    # --- records for the plain reader -----------------------------------------------------------------

    def _read_singly(self, chunk: ValueChunk, rows: Column) -> Iterator[tuple[MetadataColumns, Column]]:
        copies: list[tuple[int, SegmentMetadata]] = []
        updates: list[tuple[int, SegmentMetadataUpdate]] = []
        for row in rows.tolist():
            self.slow += 1
            value, offset = chunk.value(row), int(chunk.offsets[row])
            try:
                if value is None:
                    raise FormatError("the value is null", 0)
                record = read_remote_log_metadata(value)
                if isinstance(record, SegmentMetadata):
                    copies.append((row, record))
                elif isinstance(record, SegmentMetadataUpdate):
                    updates.append((row, record))
                elif isinstance(record, PartitionDelete):
                    self._delete(record, offset)
                else:
                    raise FormatError("a snapshot entry has no place on the topic", 0)
            except FormatError as error:
                self.say(bad_record(chunk.metadata_partition, offset, error))
        for read in (copies, updates):
            if read:
                numbers, records = zip(*read, strict=True)
                codes = [self._codes.code(record.topic_id_partition) for record in records]
                yield columns_of_records(records, numbers), np.array(codes, np.int32)

    def _delete(self, record: PartitionDelete, offset: int) -> None:
        late = self.until_time is not None and record.event_timestamp > self.until_time
        if not late and (self.until_offset is None or offset <= self.until_offset):
            self.deletions[record.topic_id_partition] = record

    # --- what comes out -------------------------------------------------------------------------------

    def finish(self) -> None:
        """Give back what is not needed to look at the segments."""
        self._segments.tidy()

    def __len__(self) -> int:
        return len(self._segments.rows())

    @property
    def nbytes(self) -> int:
        """Bytes held for the segments known."""
        return self._segments.rows().nbytes

    def runs(self, wanted: Column | None = None) -> Iterator[Rows]:
        """Rows of segments, some thousand at a time, in the order of `segments`; of wanted partitions only."""
        return in_order(self._segments.rows(), self.partitions, wanted)

    def segments(self) -> Iterator[RemoteSegment]:
        """Every segment by topic, partition, start offset and the offset of its first record."""
        for rows in self.runs():
            yield from segments_of(rows, self.partitions)
