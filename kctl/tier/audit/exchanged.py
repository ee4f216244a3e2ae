"""Whether the object of one remote segment holds the log of another: exchanged, or overwritten by it.

A sound log with the right offsets and size may still be another segment's. Its largest timestamp shows it: it differs
from this segment's metadata, and equals that of another segment with the same offsets and size. Since a broker may
use a segment file's time as its largest timestamp, that alone proves nothing: the other segment must hold a log that
is not its own either, or the very same batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from formats.messages.remote_log_metadata import SegmentMetadata
from formats.values import Struct, field
from kctl.findings import Finding
from kctl.findings import remote as codes
from kctl.tier.audit.metadata_checks import place_of
from kctl.tier.audit.segment_tasks import ExaminedSegment

Likeness = tuple[int, int, int, int]  # start and end offset, size, largest timestamp


class _ReadLog(Struct, frozen=True):
    """A segment whose log was read: its largest timestamp, and a hash of its batches."""

    segment: SegmentMetadata
    max_timestamp: int
    content: bytes

    @property
    def is_own(self) -> bool:
        """Whether the log has the largest timestamp of its own metadata."""
        return self.max_timestamp == self.segment.max_timestamp


class Exchanges(Struct):
    """Segments that were read, to find those that hold another one's log."""

    _by_likeness: dict[Likeness, list[_ReadLog]] = field(default_factory=dict)
    _foreign: list[_ReadLog] = field(default_factory=list)

    def add(self, segment: SegmentMetadata, examined: ExaminedSegment) -> None:
        """Add a segment whose log is sound and has the offsets and size of its metadata."""
        if examined.max_timestamp is None or min(examined.max_timestamp, segment.max_timestamp) < 0:
            return
        hashed = blake2b(digest_size=16)
        for column in (*examined.base_offsets, *examined.crcs):
            hashed.update(column.tobytes())
        log = _ReadLog(segment, examined.max_timestamp, hashed.digest())
        self._by_likeness.setdefault(_likeness(segment, segment.max_timestamp), []).append(log)
        if not log.is_own:
            self._foreign.append(log)

    def findings(self) -> Iterator[Finding]:
        """A finding for each segment with the log of another."""
        for foreign in self._foreign:
            alike = self._by_likeness.get(_likeness(foreign.segment, foreign.max_timestamp), ())
            other = next(self._proven(foreign, alike), None)
            if other is not None:
                where = other.segment.topic_id_partition
                yield codes.LOG_EXCHANGED.at(
                    place_of(foreign.segment),
                    found=foreign.max_timestamp,
                    expected=foreign.segment.max_timestamp,
                    other=other.segment.remote_log_segment_id,
                    partition=f"{where.topic}-{where.partition}",
                )

    @staticmethod
    def _proven(foreign: _ReadLog, alike: Iterable[_ReadLog]) -> Iterator[_ReadLog]:
        """Segments whose log it must be. Copies of one range of a partition have the same log by right."""
        for other in alike:
            is_copy = other.segment.topic_id_partition == foreign.segment.topic_id_partition
            is_same = other.content == foreign.content and not is_copy
            if other is not foreign and (is_same or not other.is_own):
                yield other


def _likeness(segment: SegmentMetadata, max_timestamp: int) -> Likeness:
    return segment.start_offset, segment.end_offset, segment.size_in_bytes, max_timestamp
