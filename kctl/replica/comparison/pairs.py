"""Pairs of copies compared in one pass: by batch headers, and by records where the bytes differ.

Followers store what the leader sent, so base offset, last offset, epoch and CRC agree batch by batch. The CRC covers
neither base offset, length nor leader epoch. On a compacted topic each broker's cleaner removes and rewrites
batches by itself, so that records are compared instead. A record is its key, value, headers and timestamp; a field
that one side's message format lacks (headers before magic 2, a timestamp in magic 0) is not compared.

Logs are read side by side in windows of offsets. No batch of any log crosses the end of a window, so that batches can
be compared within it; memory is bounded by the chunks that the logs are read in.

Source: clients/src/main/java/org/apache/kafka/common/record/DefaultRecordBatch.java @ 3.9.0-rc3;
clients/src/main/java/org/apache/kafka/common/record/MemoryRecords.java @ 3.9.0-rc3
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from formats.arrays import Ints
from formats.errors import FormatError
from formats.log.log_bytes import LogBytes
from formats.log.record_batch import CODEC_MASK, BatchHeader, Record
from formats.log.records import LogEntry, iterate_records, walk
from formats.values import Struct, field
from kctl.copies.replica_log import NO_BATCHES, ReplicaLog, SoundBatches, joined
from kctl.copies.scanned import shared_scan
from kctl.errors import reason_of
from kctl.scan.pool import Jobs
from kctl.scan.source import opened_source

LIMIT = 256 << 20


class Content(Struct, frozen=True):
    """A record as far as it can be compared; digests instead of bytes keep windows small."""

    magic: int
    body: bytes
    timestamp: int
    headers: bytes


def contents(log: ReplicaLog, batches: SoundBatches, rows: Iterable[int]) -> Iterator[tuple[int, Content]]:
    """The records of these batches with their offsets; a record whose offset does not rise is left out."""
    last = -1
    for entry in entries(log, batches, rows):
        try:
            for record in iterate_records(entry, limit=LIMIT):
                if record.offset > last:
                    last = record.offset
                    yield last, content_of(entry.magic, record)
        except FormatError as error:
            log.problems.append(f"batch at offset {entry.base_offset} cannot be decoded: {error}")


def entries(log: ReplicaLog, batches: SoundBatches, rows: Iterable[int]) -> Iterable[LogEntry]:
    """These batches with their bytes, read again from disk."""
    for segment, of_segment in groupby(rows, lambda row: int(batches.segment[row])):
        path = log.files[segment]
        try:
            with opened_source(path) as source:
                for row in of_segment:
                    position, size = int(batches.position[row]), int(batches.size_in_bytes[row])
                    batch = LogBytes(source, position + size)
                    for item in walk(batch, position=position, check_crc=False):
                        if isinstance(item, LogEntry):
                            yield item
        except OSError as error:
            log.problems.append(f"{path.name} cannot be read again: {reason_of(error)}")
            return


def content_of(magic: int, record: Record) -> Content:
    body = hashlib.blake2b(digest_size=16)
    for part in (record.key, record.value):
        body.update(b"\0" if part is None else b"\1%d " % len(part) + bytes(part))
    headers = (
        hashlib.blake2b(repr(record.headers).encode(), digest_size=8).digest() if record.headers else b""
    )
    return Content(magic, body.digest(), record.timestamp, headers)


def is_same(first: Content, second: Content) -> bool:
    """Whether two records are equal in every field that both message formats have."""
    if first.body != second.body:
        return False
    older = min(first.magic, second.magic)
    if older >= 1 and first.timestamp != second.timestamp:
        return False
    return older < 2 or first.headers == second.headers


class Ranges(Struct):
    """Maximal ranges of offsets, built from pieces in ascending order."""

    spans: list[list[int]] = field(default_factory=list)

    def add(self, start: int, end: int, *, joined_from: int | None = None) -> None:
        """Add [start, end). `joined_from`: no offset between it and `start` is in both logs."""
        last = self.spans[-1] if self.spans else None
        if last and (last[1] >= start or (joined_from is not None and last[1] >= joined_from)):
            last[1] = max(last[1], end)
        else:
            self.spans.append([start, end])

    def add_differences(self, shared: Iterable[tuple[int, Content, Content]]) -> bool:
        """Add the offsets at which the two records differ; return whether there were records and all were equal."""
        after_shared: int | None = None
        is_any, are_same = False, True
        for offset, first, second in shared:
            is_any = True
            if is_same(first, second):
                after_shared = None
                continue
            are_same = False
            self.add(offset, offset + 1, joined_from=after_shared)
            after_shared = offset + 1
        return is_any and are_same


class DifferenceKind(enum.StrEnum):
    """How batches of two replicas differ."""

    BEYOND_END = "beyond_end_of_other"
    OTHER_EPOCH = "different_leader_epoch"
    OTHER_BOUNDARIES = "different_batch_boundaries"
    OTHER_BYTES = "same_epoch_different_bytes"
    HOLE = "hole"
    REMOVED_BY_CLEANER = "removed_by_cleaner"
    REWRITTEN_BY_CLEANER = "rewritten_by_cleaner"


DIVERGED = frozenset(
    {DifferenceKind.OTHER_EPOCH, DifferenceKind.OTHER_BOUNDARIES, DifferenceKind.OTHER_BYTES}
)


class BatchDifference(NamedTuple):
    """Where batches differ: the base offset, and the index of the batch on each side (-1: no batch)."""

    offset: int
    kind: DifferenceKind
    same_payload: bool
    first: int
    second: int


class BatchColumns(Struct, frozen=True):
    """A replica's batches in order of offset, one element a batch."""

    base_offset: Ints
    last_offset: Ints
    leader_epoch: Ints
    crc: Ints
    log_start_offset: int = 0
    next_offset: int | None = None  # where the log ends, if not with the last batch here

    def __len__(self) -> int:
        return len(self.base_offset)

    @property
    def end(self) -> int:
        if self.next_offset is not None:
            return self.next_offset
        return int(self.last_offset[-1]) + 1 if len(self) else self.log_start_offset


def equal_run(first: BatchColumns, second: BatchColumns, i: int = 0, j: int = 0) -> int:
    """How many batches from these two on have equal headers on both sides."""
    total, window = 0, 16
    while True:
        size = min(len(first) - i - total, len(second) - j - total, window)
        if size <= 0:
            return total
        a, b = slice(i + total, i + total + size), slice(j + total, j + total + size)
        same = first.base_offset[a] == second.base_offset[b]
        same &= first.last_offset[a] == second.last_offset[b]
        same &= first.leader_epoch[a] == second.leader_epoch[b]
        same &= first.crc[a] == second.crc[b]
        if not same.all():
            return total + int(np.argmin(same))
        total, window = total + size, window * 4


def batch_differences(
    first: BatchColumns, second: BatchColumns, *, compacted: bool = False
) -> Iterator[BatchDifference]:
    """Every batch that differs between the two sides, by ascending base offset."""
    i, j = 0, 0
    while i < len(first) or j < len(second):
        run = equal_run(first, second, i, j)
        i, j = i + run, j + run
        if i >= len(first) and j >= len(second):
            return
        first_base = int(first.base_offset[i]) if i < len(first) else None
        second_base = int(second.base_offset[j]) if j < len(second) else None
        if first_base is not None and first_base == second_base:
            kind = _same_base(first, second, i, j, compacted)
            if kind is not None:
                yield BatchDifference(first_base, kind, bool(first.crc[i] == second.crc[j]), i, j)
            i, j = i + 1, j + 1
        elif second_base is None or (first_base is not None and first_base < second_base):
            assert first_base is not None
            kind = _one_side(first_base, int(first.last_offset[i]), second, j, compacted)
            if kind is not None:
                yield BatchDifference(first_base, kind, False, i, -1)
            i += 1
        else:
            kind = _one_side(second_base, int(second.last_offset[j]), first, i, compacted)
            if kind is not None:
                yield BatchDifference(second_base, kind, False, -1, j)
            j += 1


def _same_base(
    first: BatchColumns, second: BatchColumns, i: int, j: int, compacted: bool
) -> DifferenceKind | None:
    if first.leader_epoch[i] != second.leader_epoch[j]:
        return DifferenceKind.OTHER_EPOCH
    if first.crc[i] == second.crc[j] and first.last_offset[i] == second.last_offset[j]:
        return None
    return DifferenceKind.REWRITTEN_BY_CLEANER if compacted else DifferenceKind.OTHER_BYTES


def _one_side(base: int, last: int, other: BatchColumns, at: int, compacted: bool) -> DifferenceKind | None:
    """The kind of difference of a batch that only one side has; `at` is the other side's next batch."""
    if last < other.log_start_offset:
        return None
    if base >= other.end:
        return DifferenceKind.BEYOND_END
    before = at > 0 and int(other.last_offset[at - 1]) >= base
    after = at < len(other) and int(other.base_offset[at]) <= last
    if before or after:
        return DifferenceKind.REWRITTEN_BY_CLEANER if compacted else DifferenceKind.OTHER_BOUNDARIES
    return DifferenceKind.REMOVED_BY_CLEANER if compacted else DifferenceKind.HOLE


class _Stream(Struct):
    source: Iterator[SoundBatches]
    batches: SoundBatches = NO_BATCHES
    is_over: bool = False

    def more(self) -> bool:
        """Read one chunk more; False at the end."""
        chunk = next(self.source, None)
        if chunk is None:
            self.is_over = True
            return False
        self.batches = joined([self.batches, chunk])
        return True

    def take(self, end: int | None) -> SoundBatches:
        """Remove and return the batches that end before `end`."""
        count = len(self.batches) if end is None else int(np.searchsorted(self.batches.last_offset, end))
        batches, self.batches = self.batches[:count], self.batches[count:]
        return batches


class BatchWindow(Struct, frozen=True):
    """The batches of each log in one range of offsets, and which logs end in it."""

    batches: tuple[SoundBatches, ...]
    is_over: tuple[bool, ...]


def windows(logs: Sequence[ReplicaLog], jobs: Jobs = None) -> Iterator[BatchWindow]:
    """Windows in order of offset until every log is read; large logs are read by several processes."""
    shared = shared_scan([log.copy for log in logs], jobs)
    streams = [_Stream(log.batches(shared.of(index) if shared else None)) for index, log in enumerate(logs)]
    while True:
        for stream in streams:
            while not len(stream.batches) and not stream.is_over:
                stream.more()
        if all(stream.is_over for stream in streams):
            batches = tuple(stream.take(None) for stream in streams)
            yield BatchWindow(batches, tuple(True for _ in streams))
            return
        end = _window_end(streams)
        if all(not len(s.batches) or int(s.batches.last_offset[0]) >= end for s in streams):
            # A batch crosses every possible end: read the log that is least far.
            open_streams = [s for s in streams if not s.is_over]
            min(open_streams, key=lambda s: int(s.batches.last_offset[-1])).more()
            continue
        batches = tuple(stream.take(end) for stream in streams)
        yield BatchWindow(batches, tuple(s.is_over and not len(s.batches) for s in streams))


def _window_end(streams: Sequence[_Stream]) -> int:
    """The greatest offset up to which every log was read and that cuts no batch in two."""
    end = min(int(s.batches.last_offset[-1]) + 1 for s in streams if not s.is_over)
    while True:
        lowest = end
        for stream in streams:
            at = int(np.searchsorted(stream.batches.last_offset, end))
            if at < len(stream.batches):
                lowest = min(lowest, int(stream.batches.first_offset[at]))
        if lowest == end:
            return end
        end = lowest


NOT_OVER = 1 << 62


class Pair(Struct):
    """Two copies, by index, and how they differ."""

    first: int
    second: int
    different: Ranges = field(default_factory=Ranges)
    same_payload: Ranges = field(default_factory=Ranges)
    other_bytes: int = 0  # batches of different bytes with the same records
    lacking: tuple[Ranges, Ranges] = field(default_factory=lambda: (Ranges(), Ranges()))
    """Offsets in the middle of each log that it lacks and the other one has."""
    unmatched: Ranges = field(default_factory=Ranges)
    """Offsets that only the second log has, opposite a batch of the first: removed by a cleaner, or not decodable."""

    @property
    def contradict(self) -> bool:
        """Whether the two copies diverge: other records, or the same records written in another epoch."""
        return bool(self.different.spans or self.same_payload.spans)


def compare_pairs(
    logs: Sequence[ReplicaLog], indexes: Iterable[tuple[int, int]], jobs: Jobs = None
) -> list[Pair]:
    """Every pair compared in one pass over the logs, by several processes if the logs are large."""
    pairs = [Pair(first, second) for first, second in indexes]
    if len(logs) == 1 and not pairs:
        shared = shared_scan([logs[0].copy], jobs)
        for _ in logs[0].batches(shared.of(0) if shared else None):
            pass  # what is to be known of the log is noted in it
        return pairs
    for window in windows(logs, jobs):
        for pair in pairs:
            _compare(pair, logs, window)
    return pairs


def _compare(pair: Pair, logs: Sequence[ReplicaLog], window: BatchWindow) -> None:
    first, second = window.batches[pair.first], window.batches[pair.second]
    if not len(first) and not len(second):
        return
    if len(first) == len(second) and all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("crc", "last_offset", "leader_epoch", "first_offset")
    ):
        return
    first_log, second_log = logs[pair.first], logs[pair.second]
    start = max(first_log.kept_from, second_log.kept_from)
    sides = (
        _columns(first, first_log, is_over=window.is_over[pair.first]),
        _columns(second, second_log, is_over=window.is_over[pair.second]),
    )
    rows: tuple[list[int], list[int]] = ([], [])
    for difference in batch_differences(*sides):
        _sort(pair, difference, (first, second), rows, start)
    if rows[0] or rows[1]:
        _compare_records(pair, (first_log, second_log), (first, second), rows, start)


def _columns(batches: SoundBatches, log: ReplicaLog, *, is_over: bool) -> BatchColumns:
    return BatchColumns(
        batches.first_offset,
        batches.last_offset,
        batches.leader_epoch,
        batches.crc,
        log.kept_from,
        log.next_offset if is_over else NOT_OVER,
    )


def _sort(
    pair: Pair,
    difference: BatchDifference,
    batches: tuple[SoundBatches, SoundBatches],
    rows: tuple[list[int], list[int]],
    start: int,
) -> None:
    """Note a difference that headers decide; collect the rows of batches whose records must be compared."""
    side = 0 if difference.first >= 0 else 1
    row = difference.first if side == 0 else difference.second
    from_offset, to_offset = int(batches[side].first_offset[row]), int(batches[side].last_offset[row]) + 1
    if to_offset <= start or difference.kind is DifferenceKind.BEYOND_END:
        return
    if difference.kind is DifferenceKind.HOLE:
        pair.lacking[1 - side].add(max(from_offset, start), to_offset)
    elif difference.kind is DifferenceKind.OTHER_EPOCH and difference.same_payload:
        pair.same_payload.add(max(from_offset, start), to_offset)
    else:
        if difference.first >= 0:
            rows[0].append(difference.first)
        if difference.second >= 0:
            rows[1].append(difference.second)


def _compare_records(
    pair: Pair,
    logs: tuple[ReplicaLog, ReplicaLog],
    batches: tuple[SoundBatches, SoundBatches],
    rows: tuple[list[int], list[int]],
    start: int,
) -> None:
    both = zip(entries(logs[0], batches[0], rows[0]), entries(logs[1], batches[1], rows[1]), strict=False)
    if len(rows[0]) == len(rows[1]) and all(_are_recompressed(*twins) for twins in both):
        pair.other_bytes += len(rows[0])
        return
    first, second = (contents(logs[n], batches[n], rows[n]) for n in (0, 1))
    if pair.different.add_differences(_shared(first, second, start, pair.unmatched)):
        pair.other_bytes += max(len(rows[0]), len(rows[1]))


def _shared(
    first: Iterator[tuple[int, Content]], second: Iterator[tuple[int, Content]], start: int, unmatched: Ranges
) -> Iterator[tuple[int, Content, Content]]:
    """The offsets from `start` on that both sides have, with both records; one record of each side in memory.

    Those that only the second holds are added to `unmatched`. Both sides are read to their ends, so that everything
    that cannot be decoded is reported.
    """
    first_record, second_record = next(first, None), next(second, None)
    while first_record is not None or second_record is not None:
        if second_record is None or (first_record is not None and first_record[0] < second_record[0]):
            first_record = next(first, None)
        elif first_record is None or second_record[0] < first_record[0]:
            if second_record[0] >= start:
                unmatched.add(second_record[0], second_record[0] + 1)
            second_record = next(second, None)
        else:
            if first_record[0] >= start:
                yield first_record[0], first_record[1], second_record[1]
            first_record, second_record = next(first, None), next(second, None)


def _are_recompressed(first: LogEntry, second: LogEntry) -> bool:
    """Whether two batches hold the same records and differ only by their compression."""
    first_header, second_header = first.batch, second.batch
    if first_header is None or second_header is None:
        return False
    if _uncompressed(first_header) != _uncompressed(second_header):
        return False
    try:
        return _digest_of(first) == _digest_of(second)
    except FormatError:
        return False  # whoever reads the records reports it


def _uncompressed(header: BatchHeader) -> BatchHeader:
    """The header without the fields that depend on compression and on the leader that wrote it."""
    attributes = header.attributes & ~CODEC_MASK
    return header._replace(batch_length=0, partition_leader_epoch=0, crc=0, attributes=attributes)


def _digest_of(entry: LogEntry) -> bytes:
    body = hashlib.blake2b()
    for piece in entry.body_pieces(LIMIT):
        body.update(piece)
    return body.digest()
