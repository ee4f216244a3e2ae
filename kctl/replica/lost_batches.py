"""The batches of a copy that hold lost records, found anew by their headers."""

from __future__ import annotations

from collections.abc import Iterator

from kctl.log.folder import read_folder
from kctl.replica.copies import Copy
from kctl.replica.replica_log import Batches, ReplicaLog

NO_END = 1 << 62


def batches_between(copy: Copy, start: int, end: int) -> Iterator[tuple[ReplicaLog, Batches]]:
    """The sound batches of a copy that may hold an offset of [start, end), with the log they are of."""
    log = ReplicaLog(copy, skip_below=_segment_of(copy, start))
    for batches in log.batches():
        low = int(batches.last_offset.searchsorted(start))
        high = int(batches.first_offset.searchsorted(end))
        if low < high:
            yield log, batches[low:high]
        if len(batches) and int(batches.last_offset[-1]) >= end:
            return


def _segment_of(copy: Copy, offset: int) -> int:
    """The base offset of the segment that an offset is in."""
    return max((base for base in _bases(copy) if base <= offset), default=0)


def first_segment(copy: Copy) -> int:
    """The base offset of the first segment; 0 where there is none."""
    return min(_bases(copy), default=0)


def _bases(copy: Copy) -> list[int]:
    try:
        return [segment.base_offset for segment in read_folder(copy.folder).logs]
    except OSError:
        return []
