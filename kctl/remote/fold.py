"""The present state of every remote segment, folded from millions of metadata records without an object for each.

What is kept of a segment is a row of numbers, its epochs and its custom metadata in pools. New rows wait until
there are as many as segments known; then both are folded together (`fold_states`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from formats.errors import FormatError
from formats.remote_log_metadata import (
    Layout,
    PartitionDelete,
    RemoteLogMetadata,
    SegmentMetadata,
    SegmentMetadataUpdate,
    TopicIdPartition,
    read_remote_log_metadata,
)
from formats.remote_metadata_columns import read_metadata_columns
from kctl.remote.fold_partitions import PartitionCodes
from kctl.remote.fold_rows import Column, Heap, Rows, joined, row_of, rows_of, taken
from kctl.remote.fold_states import Folding
from kctl.remote.metadata_log import Say, ValueChunk, bad_record
from kctl.remote.remote_segments import RemoteSegment, in_order, segments_of

FEWEST_PENDING = 1 << 16
TOGETHER = 1 << 13  # records whose columns fit the processor's cache
OF_A_CHUNK = 1 << 15  # records, about


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
    _heap: Heap = field(default_factory=Heap)
    _known: int = 0  # rows of the heap that are folded

    @property
    def partitions(self) -> list[TopicIdPartition]:
        """The partitions that rows name by their place here."""
        return self._codes.partitions

    def add(self, chunk: ValueChunk) -> None:
        """Take in the records of a chunk."""
        self.records += len(chunk.offsets)
        for first in range(0, len(chunk.offsets), TOGETHER):
            self._take(self._rows_of(chunk[slice(first, first + TOGETHER)]))
        # Only now: what a chunk was read into is given back first.
        if len(self._heap) - self._known >= max(FEWEST_PENDING, self._known):
            self.finish()

    def _rows_of(self, chunk: ValueChunk) -> Rows:
        columns = read_metadata_columns(chunk.data, chunk.starts, chunk.sizes)
        which = np.flatnonzero(columns.fast)
        codes, odd = self._codes.of(chunk.data, columns, which)
        slow = columns.slow
        if odd.any():
            slow = np.union1d(slow, which[odd])
            which, codes = which[~odd], codes[~odd]
        if not len(slow):
            return rows_of(chunk, columns, None, codes)
        return self._with_slow(chunk, rows_of(chunk, columns, which, codes), which, slow)

    def _take(self, rows: Rows) -> None:
        keep = np.ones(len(rows), np.bool_)
        if self.until_time is not None:
            keep &= rows.table["event_timestamp"] <= self.until_time
        if self.until_offset is not None:
            keep &= rows.table["offset"] <= self.until_offset
        if not keep.all():
            rows = taken(rows, np.flatnonzero(keep))
        if len(rows):
            self._count(rows)
            self._heap.add(rows)

    def _count(self, rows: Rows) -> None:
        """Count the rows of one chunk, which is of one metadata partition."""
        old = int(rows.table["old_layout"].sum())
        self.layouts[Layout.BEFORE_CUSTOM_METADATA] += old
        self.layouts[Layout.WITH_CUSTOM_METADATA] += len(rows) - old
        self.newest = max(self.newest, int(rows.table["event_timestamp"].max()))
        number = int(rows.table["metadata_partition"][0])
        counts = np.bincount(rows.table["partition"])
        for code in np.flatnonzero(counts).tolist():
            where = (code, None if number < 0 else number)
            self.found_in[where] = self.found_in.get(where, 0) + int(counts[code])

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
        return row_of(record, self._codes.code(record.topic_id_partition), metadata_partition, offset)

    # --- what comes out -------------------------------------------------------------------------------

    def finish(self) -> None:
        """Fold what waits."""
        if len(self._heap) == self._known:
            return
        folding = Folding(self.say, self.partitions, self.keep_deleted)
        known = folding.folded(self._heap.rows())
        self._known = len(known)
        self._heap.replace(known, max(FEWEST_PENDING, self._known) + OF_A_CHUNK)

    def __len__(self) -> int:
        return self._known

    @property
    def nbytes(self) -> int:
        """Bytes held for the segments known."""
        return self._heap.rows().nbytes

    def runs(self, wanted: Column | None = None) -> Iterator[Rows]:
        """Rows of segments, some thousand at a time, in the order of `segments`; of wanted partitions only."""
        return in_order(self._heap.rows(), self.partitions, wanted)

    def segments(self) -> Iterator[RemoteSegment]:
        """Every segment by topic, partition, start offset and the offset of its first record."""
        for rows in self.runs():
            yield from segments_of(rows, self.partitions)
