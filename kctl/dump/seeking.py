"""Where in a segment to begin reading: by its indexes, as far as they are right.

An index only ever saves reading. Where its entry does not lead to a sound batch that starts at or before the
offset, the whole segment is read.

Source: LogSegment.translateOffset and findOffsetByTimestamp in
storage/src/main/java/org/apache/kafka/storage/internals/log/LogSegment.java @ 3.9.0-rc3
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from formats.log.log_bytes import LogBytes
from formats.log.records import LogEntry, walk
from formats.log_dir.index_files import OffsetIndexEntry, TimeIndexEntry, entries_of, used_size
from kctl.dump.file_kinds import base_offset_of, sibling
from kctl.dump.opening import opened, whole
from kctl.dump.selection import DumpSelection
from kctl.errors import KctlError

if TYPE_CHECKING:
    from formats.arrays import Ints

MOST_OF_AN_INDEX = 1 << 25


def first_position(path: str, log: LogBytes, selection: DumpSelection) -> int:
    """The position of a batch; nothing selected lies before it."""
    base_offset = base_offset_of(path)
    if base_offset is None or not Path(path).name.endswith(".log"):
        return 0
    target = selection.from_offset
    if selection.from_time is not None:
        by_time = _offset_by_time(path, base_offset, selection.from_time)
        target = by_time if target is None else max(target, by_time)
    if target is None or target <= base_offset:
        return 0
    position = _position_by_offset(path, target - base_offset)
    first = next(walk(log, position=position), None) if position else None
    return position if isinstance(first, LogEntry) and first.crc_valid and first.base_offset <= target else 0


def likely_positions(path: str) -> Ints:
    """Positions of batches according to the index beside the segment. They are hints: a scan verifies each."""
    from kctl.scan.splits import hints_of  # only columns need numpy

    return hints_of(_index_rows(path, ".index", 8) if path.endswith(".log") else b"")


def _index_rows(path: str, suffix: str, row_size: int) -> bytes:
    index_path = sibling(path, suffix)
    if index_path is None:
        return b""
    try:
        with opened(index_path) as source:
            data = whole(source, MOST_OF_AN_INDEX)
    except KctlError:
        return b""
    return data[: used_size(data, row_size)]


def _position_by_offset(path: str, relative_offset: int) -> int:
    """The position of the last entry at or before an offset, where the index rises up to it; else 0."""
    last = OffsetIndexEntry(-1, -1)
    for entry in entries_of(OffsetIndexEntry, _index_rows(path, ".index", 8)):
        if entry.relative_offset > relative_offset:
            break
        if entry.relative_offset <= last.relative_offset or entry.position <= last.position:
            return 0
        last = entry
    return max(last.position, 0)


def _offset_by_time(path: str, base_offset: int, timestamp: int) -> int:
    """An offset up to which every timestamp is lower, where the time index rises; else the base offset."""
    last: TimeIndexEntry | None = None
    for entry in entries_of(TimeIndexEntry, _index_rows(path, ".timeindex", 12)):
        if entry.timestamp >= timestamp:
            break
        if last and (entry.timestamp <= last.timestamp or entry.relative_offset < last.relative_offset):
            return base_offset
        last = entry
    return base_offset + last.relative_offset if last else base_offset
