"""Which producer snapshots a start reads, deletes and writes; their contents do not matter for that.

Source: core/src/main/scala/kafka/log/{ProducerStateManager,Log,UnifiedLog}.scala @ 0.11.0.1 to 3.9.0-rc3,
storage/src/main/java/org/apache/kafka/storage/internals/log/ProducerStateManager.java @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from formats.errors import FormatError
from formats.log_dir.producer_snapshot import read_snapshot
from formats.values import Struct
from kctl.files import LARGEST_TABLE, read_whole
from kctl.log.folder import first_from
from kctl.log_dir_start.failures import LoadFails
from kctl.log_dir_start.segment import LoadedSegment

ReadSegment = Callable[[LoadedSegment, int], None]


class SnapshotFiles(Struct):
    """The snapshots of a folder by offset: the file that is there, None for one that the start has written."""

    files: dict[int, Path | None]

    def delete(self, offset: int) -> None:
        """Take a snapshot away."""
        self.files.pop(offset, None)

    def latest(self) -> int | None:
        """The highest offset."""
        return max(self.files, default=None)

    def is_corrupt(self, offset: int) -> bool:
        """Whether the broker refuses the snapshot and deletes it."""
        path = self.files[offset]
        if path is None:
            return False
        try:
            read_snapshot(read_whole(path, LARGEST_TABLE))
        except (FormatError, OSError):
            return True
        return False


class ProducerLoader(Struct):
    """What Kafka's ProducerStateManager knows of offsets."""

    snapshots: SnapshotFiles
    last_snapshot: int = 0
    map_end: int = 0

    def take(self) -> None:
        """Write a snapshot, if the state has moved on."""
        if self.map_end > self.last_snapshot:
            self.snapshots.files[self.map_end] = None
            self.last_snapshot = self.map_end

    def truncate_and_reload(self, log_start: int, log_end: int) -> None:
        """Delete snapshots out of range, then load the latest one that is whole."""
        for offset in [o for o in self.snapshots.files if o > log_end or o <= log_start]:
            self.snapshots.delete(offset)
        if log_end == self.map_end:
            self.map_end = max(self.map_end, log_start)
            latest = self.snapshots.latest()
            self.last_snapshot = log_start if latest is None else latest
            return
        while (latest := self.snapshots.latest()) is not None:
            if not self.snapshots.is_corrupt(latest):
                self.last_snapshot = self.map_end = latest
                return
            self.snapshots.delete(latest)
        self.last_snapshot = self.map_end = log_start


class Rebuilding(Struct, frozen=True):
    """How far the state of producers is to be rebuilt, and over which segments."""

    segments: Sequence[LoadedSegment]
    log_start: int
    last_offset: int
    from_clean_shutdown: bool


def rebuild(producers: ProducerLoader, task: Rebuilding, read: ReadSegment, *, takes_at_end: bool) -> None:
    """Bring the state to `last_offset`; `read` is called with each segment that is read and the offset from which on."""
    last = [segment.base_offset for segment in task.segments[-2:]]
    to_snapshot = (*last, task.last_offset)
    if producers.snapshots.latest() is None and task.from_clean_shutdown:
        for offset in to_snapshot:
            producers.map_end = offset
            producers.take()
        return
    is_empty_before = producers.map_end >= task.last_offset
    producers.truncate_and_reload(task.log_start, task.last_offset)
    if task.last_offset > producers.map_end and not is_empty_before:
        for segment in between(task.segments, producers.map_end, task.last_offset):
            start = max(segment.base_offset, producers.map_end, task.log_start)
            producers.map_end = start
            if not takes_at_end or segment.base_offset in to_snapshot:
                producers.take()
            read(segment, start)
    producers.map_end = task.last_offset
    if takes_at_end:
        producers.take()


def load_for_recovery(producers: ProducerLoader, task: Rebuilding, read: ReadSegment) -> None:
    """What recovering a segment up to 1.1 does before: load the latest snapshot, and read the segments behind it."""
    producers.truncate_and_reload(task.log_start, task.last_offset)
    below = [segment.base_offset for segment in task.segments if segment.base_offset <= producers.map_end]
    if below and max(below) > task.last_offset:  # the log start of the checkpoint lies above the log
        raise LoadFails("java.lang.IllegalArgumentException", "inconsistent range", "")
    for segment in between(task.segments, producers.map_end, task.last_offset):
        read(segment, max(segment.base_offset, producers.map_end))
    producers.map_end = task.last_offset


def between(segments: Iterable[LoadedSegment], from_offset: int, to_offset: int) -> list[LoadedSegment]:
    """The segments from the one that holds `from_offset` to the last that begins below `to_offset`."""
    segments = list(segments)
    first = first_from((segment.base_offset for segment in segments), from_offset)
    return [s for s in segments if first <= s.base_offset < to_offset]


def without_strays(offsets: Iterable[int], base_offsets: Sequence[int]) -> set[int]:
    """The snapshots that removing stray ones leaves: those of segments, and the largest other one above them."""
    kept, stray = set(offsets), None
    for offset in sorted(kept):
        if offset not in base_offsets:
            if stray is not None:
                kept.discard(stray)
            stray = offset
    if stray is not None and base_offsets and stray < max(base_offsets):
        kept.discard(stray)
    return kept
