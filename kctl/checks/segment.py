"""One segment: its log scanned once, with its indexes held against it on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from formats.columns.headers import Headers
from formats.records import Reason
from kctl.checks.edges import Edge
from kctl.checks.indexes import IndexedLog, OffsetIndex, TimeIndex, say_entries_missing
from kctl.checks.offset_index import OffsetIndexCheck
from kctl.checks.outliers import Seen, without_outliers
from kctl.checks.report import CheckOptions, FileReport
from kctl.checks.time_index import TimeIndexCheck
from kctl.errors import reason_of
from kctl.findings import evidence as say
from kctl.findings.logs import BASE_OFFSET_WRONG
from kctl.findings.segments import OFFSETS_GO_BACK
from kctl.log.folder import FolderFile, Segment
from kctl.scan.options import Chunk, ScanOptions
from kctl.scan.pieces import Piece, Pieces
from kctl.scan.segment import SegmentScan
from kctl.scan.source import LocalFile, local_file

HARMLESS = (Reason.TORN_TAIL, Reason.ZEROS)


class Watcher(Protocol):
    """Something that follows the batches of a replica from its first segment to its last."""

    def feed(self, seen: Seen, source: LocalFile) -> None:
        """The next batches and damage, as they lie in the file."""


@dataclass(slots=True)
class ScannedLog:
    """What a scan of a `.log` file came to."""

    first_offset: int | None = None  # of the first batch
    next_offset: int | None = None  # behind the last sound batch
    batches: int = 0
    records: int = 0
    bad_position: int | None = None  # of the first damage that a recovery stops at
    bad_offset: int | None = None  # where a recovery would cut
    sound_batches_behind: int = 0
    sound_records_behind: int = 0
    has_short_batches: bool = False  # batches that hold fewer records than offsets
    has_new: bool = False  # batches of magic 2
    end_position: int = 0  # behind the last sound batch
    tail_position: int | None = None  # where a torn tail or zeros begin that end the file
    is_readable: bool = True
    edge: Edge | None = None  # how it begins and ends, to be stitched with its neighbours
    gaps: list[tuple[int, int, int]] = field(default_factory=list)  # position, offsets [from, to) that lack
    # Behind a batch whose base offset is wrong, the position and the least offset that can follow.
    outlier_ends: dict[int, int] = field(default_factory=dict)
    ends_in_outlier: bool = False


OnChunk = Callable[[FolderFile, Chunk], None]


class Parts(Protocol):
    """Logs that others read."""

    def pieces(self, source: LocalFile, options: ScanOptions) -> Iterable[Piece] | None:
        """The pieces of a log as one scan would give them; None where nobody reads it."""


def scan_log(
    file: FolderFile,
    report: FileReport,
    options: ScanOptions,
    indexes: Sequence[OffsetIndex | TimeIndex] = (),
    watchers: Sequence[Watcher] = (),
    on_chunk: OnChunk | None = None,
    parts: Parts | None = None,
    next_segment: int | None = None,
) -> ScannedLog:
    """Scan a log file into its report; what the indexes and watchers are shown is every batch in order.

    `next_segment` is the base offset of the segment behind it.
    """
    scanned = ScannedLog()
    hints = next((index.hints() for index in indexes if isinstance(index, OffsetIndex)), None)
    report.batches = report.records = 0
    try:
        with local_file(file.path) as source:
            report.size_in_bytes = source.size
            pieces = parts.pieces(source, options) if parts else None
            scan = SegmentScan(source, options, pieces or Pieces(source, options, hints))
            chunks = _examined(scan, file, report, on_chunk)
            for seen in without_outliers(chunks, options.base_offset, next_segment):
                for follower in indexes:
                    follower.feed(seen.headers)
                for watcher in watchers:
                    watcher.feed(seen, source)
                _note(scanned, seen, report, options.base_offset)
            totals, scanned.edge = scan.totals, scan.edge
            _spare_neighbours(scanned, report)
    except FileNotFoundError:
        report.say(say.VANISHED)
        return ScannedLog(is_readable=False)
    except OSError as error:
        report.say(say.UNREADABLE, reason=reason_of(error))
        report.damaged_bytes = report.size_in_bytes
        return ScannedLog(is_readable=False)
    report.batches, report.records = totals.batches, totals.records
    report.base_offset, report.next_offset = totals.base_offset, scanned.next_offset
    report.size_in_bytes = totals.good_bytes + totals.damaged_bytes
    report.damaged_bytes = totals.damaged_bytes
    scanned.batches, scanned.records = totals.batches, totals.records
    scanned.first_offset = totals.base_offset
    return scanned


def _examined(
    scan: SegmentScan, file: FolderFile, report: FileReport, on_chunk: OnChunk | None
) -> Iterator[Chunk]:
    """The chunks of a scan, each seen by whoever wants its records before the next one is read."""
    for chunk in scan:
        if on_chunk:
            on_chunk(file, chunk)
        report.add(chunk.findings)
        yield chunk


def _note(scanned: ScannedLog, seen: Seen, report: FileReport, named: int | None) -> None:
    """Take what is remembered of a log from its next chunk."""
    before = scanned.next_offset
    _note_offsets(scanned, seen, report, named)
    _note_damage(scanned, seen.chunk, before)
    if scanned.bad_position is not None and scanned.bad_offset is None:
        scanned.bad_offset = named


def _note_offsets(scanned: ScannedLog, seen: Seen, report: FileReport, named: int | None) -> None:
    """Gaps, and where the log ends; base offsets that cannot be right are said."""
    raw, headers, before = seen.chunk.headers, seen.headers, scanned.next_offset
    sound = headers if headers.crc_valid.all() else headers[headers.crc_valid]
    if len(sound):
        _note_gaps(scanned, sound, named)
        scanned.next_offset = max(before or 0, int(sound.last_offset.max()) + 1)
        scanned.ends_in_outlier = False
    for row in seen.outliers:
        base, last = int(raw.base_offset[row]), int(raw.last_offset[row])
        position, size = int(raw.position[row]), int(raw.size_in_bytes[row])
        where = replace(report.at(position, size), base_offset=base, last_offset=last)
        report.say(BASE_OFFSET_WRONG, where, base_offset=base)
        earlier = np.flatnonzero(headers.crc_valid[:row])
        end = int(headers.last_offset[earlier[-1]]) + 1 if len(earlier) else before or 0
        if row and base == int(raw.base_offset[row - 1]) and raw.crc[row] == raw.crc[row - 1]:
            continue  # the batch before it once more
        # Its records are there, under whatever offsets: the log does not end before them.
        scanned.outlier_ends[position + size] = end + last - base + 1
        scanned.next_offset = max(scanned.next_offset or 0, end + last - base + 1)
        scanned.ends_in_outlier |= position >= scanned.end_position


def _spare_neighbours(scanned: ScannedLog, report: FileReport) -> None:
    """It is not said of a batch that it goes back where only the one before it has a wrong base offset."""
    ends = scanned.outlier_ends
    if not ends:
        return
    report.findings = [
        finding
        for finding in report.findings
        if finding.code != OFFSETS_GO_BACK.code
        or finding.place.position not in ends
        or (finding.place.base_offset or 0) < ends[finding.place.position]
    ]
    edge, end = scanned.edge, scanned.next_offset
    if edge is not None and end is not None and edge.last_offset is not None:
        edge.last_offset = min(edge.last_offset, end - 1)


def _note_damage(scanned: ScannedLog, chunk: Chunk, before: int | None) -> None:
    """Where the first damage is that a recovery stops at, and what lies behind it."""
    headers, valid = chunk.headers, chunk.headers.crc_valid
    if scanned.bad_position is None and not valid.all():
        row = int(valid.argmin())
        scanned.bad_position = int(headers.position[row])
        scanned.bad_offset = int(headers.last_offset[row - 1]) + 1 if row else before
    if scanned.bad_position is not None:
        behind = valid & (headers.position > scanned.bad_position)
        scanned.sound_batches_behind += int(behind.sum())
        scanned.sound_records_behind += int(headers.records_count[behind].clip(0).sum())
    for damage in chunk.damage:
        if damage.reason in HARMLESS:
            scanned.tail_position = damage.position
        if damage.reason not in HARMLESS and scanned.bad_position is None:
            scanned.bad_position, scanned.bad_offset = damage.position, scanned.next_offset


MOST_GAPS = 100  # more of them say nothing new


def _note_gaps(scanned: ScannedLog, headers: Headers, named: int | None) -> None:
    """Offsets missing between batches, and before the first; and whether batches hold fewer records than offsets."""
    # Of a compressed set of magic 0 or 1 whose records were not read nobody knows where it begins.
    known = headers.records_count >= 0
    short = known & (headers.records_count < headers.last_offset_delta.astype("i8") + 1)
    scanned.has_short_batches |= bool(short.any())
    scanned.has_new |= bool((headers.magic == 2).any())
    first = int(headers.base_offset[0]) if scanned.next_offset is None else scanned.next_offset
    if scanned.next_offset is None and headers.position[0] == 0 and named is not None:
        first = min(first, named)
    ended = np.concatenate(([first], headers.last_offset[:-1] + 1))
    begins = np.concatenate(([scanned.end_position], headers.next_position[:-1])) == headers.position
    for row in np.flatnonzero(known & begins & (headers.base_offset > ended)).tolist():
        if len(scanned.gaps) < MOST_GAPS:
            gap = (int(headers.position[row]), int(ended[row]), int(headers.base_offset[row]))
            scanned.gaps.append(gap)
    scanned.end_position = int(headers.next_position[-1])


@dataclass(slots=True)
class Indexes:
    """The indexes of a segment, opened."""

    offset: OffsetIndex | None = None
    time: TimeIndex | None = None

    def all(self) -> list[OffsetIndex | TimeIndex]:
        """Those that are there."""
        return [index for index in (self.offset, self.time) if index is not None]

    def finish(self, log: IndexedLog) -> None:
        """Say what is wrong with them, now that the log was seen."""
        for index in self.all():
            index.finish(log)
        if self.offset and self.time:
            say_entries_missing(self.offset, self.time, log)


LARGEST_INDEX = 1 << 31


def read_small(path: Path, report: FileReport) -> bytes | None:
    """The bytes of an index, snapshot or checkpoint; None, and a finding, where it cannot be read."""
    try:
        with local_file(path) as source:
            data = source.read_at(0, min(source.size, LARGEST_INDEX))
    except FileNotFoundError:
        report.say(say.VANISHED)
        return None
    except OSError as error:
        report.say(say.UNREADABLE, reason=reason_of(error))
        report.damaged_bytes = report.size_in_bytes
        return None
    report.size_in_bytes = len(data)
    return data


def open_indexes(segment: Segment, report_of: Callable[[FolderFile], FileReport]) -> Indexes:
    """The offset and the time index of a segment, read and ready to be fed."""
    opened = Indexes()
    if segment.index:
        report = report_of(segment.index)
        data = read_small(segment.index.path, report)
        if data is not None:
            opened.offset = OffsetIndex(report, OffsetIndexCheck(data, segment.base_offset))
    if segment.time_index:
        report = report_of(segment.time_index)
        data = read_small(segment.time_index.path, report)
        if data is not None:
            opened.time = TimeIndex(report, TimeIndexCheck(data, segment.base_offset))
    return opened


def scan_options(options: CheckOptions, report: FileReport, **known: object) -> ScanOptions:
    """The options of a scan for one file."""
    return ScanOptions(
        level=options.level,
        place=report.place,
        max_decompressed_bytes=options.max_decompressed_bytes,
        max_findings=options.max_findings,
        **known,  # type: ignore[arg-type]
    )
