"""The part of a segment with the rows that a filter selects, so that the rest is neither checked nor decoded.

The offset index says where to begin; an entry counts only if a batch certainly begins at its position and fits its
offset. After that the headers decide. A filter on offsets is exact as long as offsets rise in the file, as in any
file that a broker wrote.
"""

from __future__ import annotations

import numpy as np

from formats.arrays import Ints, Mask
from formats.log.columns.headers import PADDING, Headers, gather
from kctl.scan.options import Level, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import Source
from kctl.scan.splits import Split, is_boundary
from kctl.spark.planning import Filters

HEADER = 61


def indexed_start(
    source: Source, index: bytes, hints: Ints, base_offset: int, from_offset: int | None
) -> int:
    """The position of a batch with no offset from `from_offset` on before it; 0 if the index has none."""
    if from_offset is None or not len(hints):
        return 0
    entries = np.frombuffer(index, ">i4", len(index) // 8 * 2).reshape(-1, 2)
    # An entry has the last offset of what was appended at its position.
    offsets = entries[: len(hints), 0].astype(np.int64) + base_offset
    place = int(np.searchsorted(np.maximum.accumulate(offsets), from_offset, side="right")) - 1
    if place < 0 or not is_boundary(source, hints, place):
        return 0
    at = int(hints[place])
    data = np.frombuffer(source.read_at(at, HEADER).ljust(HEADER + PADDING, b"\0"), np.uint8)
    begins = int(gather(data, np.zeros(1, np.int64)).base_offset[0])
    return at if base_offset <= begins <= from_offset else 0


def part_within(source: Source, split: Split, hints: Ints, filters: Filters) -> Split | None:
    """The part of a split from the first selected batch to the last; None if no batch is selected.

    The whole split if headers do not say: damage, or message sets, whose headers lack the first offset.
    """
    if not filters.has_bounds:
        return split
    hints = hints[(hints >= split.start) & (hints < split.end)]
    options = ScanOptions(level=Level.HEADER, start=split.start, end=split.end)
    first, end = split.end, split.start
    for chunk in scan_segment(source, options, hints=hints):
        if chunk.damage or (chunk.headers.magic < 2).any():
            return split
        rows = np.flatnonzero(_within(chunk.headers, filters))
        if len(rows):
            first = min(first, int(chunk.headers.position[rows[0]]))
            end = int(chunk.headers.next_position[rows[-1]])
    return Split(first, end) if first < end else None


def _within(headers: Headers, filters: Filters) -> Mask:
    """Which batches may hold a selected row; of their times only the largest is certain."""
    keep = np.ones(len(headers), np.bool_)
    if filters.from_offset is not None:
        keep &= headers.last_offset >= filters.from_offset
    if filters.to_offset is not None:
        keep &= headers.base_offset <= filters.to_offset
    if filters.from_time is not None:
        keep &= headers.max_timestamp >= filters.from_time
    if filters.from_epoch is not None:
        keep &= headers.partition_leader_epoch >= filters.from_epoch
    if filters.to_epoch is not None:
        keep &= headers.partition_leader_epoch <= filters.to_epoch
    return keep
