"""Segments as pieces of work: large ones cut, small ones together, without those that filters exclude.

The driver cuts by size and reads nothing. A cut is a number: the executor computes the proven cuts of the segment,
which depend only on the file and its index, and reads the one with this number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from formats.values import Struct, field
from kctl.scan.splits import TARGET, most_splits
from kctl.spark.listing import SegmentRef

MOST_FILES = 2000
"""At most so many small files in one partition: each costs an open and a listing entry."""
MOST_TASKS = 50_000
"""About the most tasks of a job: the driver keeps some kilobytes of each."""
WHOLE_TABLES = frozenset({"findings", "segments"})
"""Tables whose rows are about a whole segment: it is not cut."""


class SegmentCut(NamedTuple):
    """A segment, or one of its cuts."""

    segment: SegmentRef
    number: int
    of: int


class Filters(Struct, frozen=True):
    """The rows that filters select; bounds are inclusive, None is no bound."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    brokers: frozenset[int] | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    from_time: int | None = None
    to_time: int | None = None
    from_epoch: int | None = None
    to_epoch: int | None = None

    @property
    def has_bounds(self) -> bool:
        """Whether there is a bound on offsets, times or epochs."""
        bounds = (
            self.from_offset, self.to_offset, self.from_time, self.to_time, self.from_epoch, self.to_epoch,
        )  # fmt: skip
        return any(bound is not None for bound in bounds)

    def wants(self, segment: SegmentRef) -> bool:
        """Whether any row of a segment may be selected."""
        if self.topics is not None and segment.topic not in self.topics:
            return False
        if self.partitions is not None and segment.partition not in self.partitions:
            return False
        if self.brokers is not None and segment.broker_id not in self.brokers:
            return False
        if self.to_offset is not None and segment.base_offset > self.to_offset:
            return False
        return not (
            self.from_offset is not None
            and segment.next_base_offset is not None
            and segment.next_base_offset <= self.from_offset
        )


class _Bin(Struct):
    pieces: list[SegmentCut] = field(default_factory=list)
    size: int = 0


def plan(
    segments: Iterable[SegmentRef], table: str, filters: Filters, target: int = TARGET
) -> list[list[SegmentCut]]:
    """The cuts of each partition of the job: about `target` bytes each, in the order of the segments.

    For `findings` all segments of a log are in one partition, whatever their size, and bounds exclude none of them:
    some checks compare a batch with all earlier ones, and some findings are known only at the end of the log.
    """
    is_by_log = table == "findings"
    if is_by_log:
        filters = Filters(filters.topics, filters.partitions, filters.brokers)
    bins: list[_Bin] = []
    current = _Bin()
    for segment in segments:
        if not filters.wants(segment):
            continue
        for piece, size in _pieces(
            segment, 1 if table in WHOLE_TABLES else most_splits(segment.size_in_bytes, target), target
        ):
            is_same_log = is_by_log and current.pieces and current.pieces[-1].segment.log == segment.log
            if (
                current.pieces
                and not is_same_log
                and (current.size + size > target + target // 4 or len(current.pieces) >= MOST_FILES)
            ):
                bins.append(current)
                current = _Bin()
            current.pieces.append(piece)
            current.size += size
    if current.pieces:
        bins.append(current)
    return [bin_.pieces for bin_ in bins]


def target_for(segments: Iterable[SegmentRef], target: int) -> int:
    """The bytes of a cut: `target`, or more if the job would have too many tasks for Spark's driver."""
    return max(target, sum(segment.size_in_bytes for segment in segments) // MOST_TASKS)


def _pieces(segment: SegmentRef, count: int, target: int) -> Iterator[tuple[SegmentCut, int]]:
    for number in range(count):
        yield (
            SegmentCut(segment, number, count),
            min(target, segment.size_in_bytes) if count > 1 else segment.size_in_bytes,
        )
