"""The segments of a log: each scanned once, with its indexes compared with it on the way; then among themselves.

Among themselves means their order, gaps between them, what waits to be deleted, and what a start-up makes of damage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from formats.log.columns.headers import Headers
from formats.log.record_batch import DELETE_HORIZON, TIMESTAMP_TYPE
from formats.log.records import DamageReason
from formats.log_dir.file_names import FileState, FolderKind
from formats.values import Struct, field, replace
from formats.words import counted
from kctl.checks.digests import opened_digested
from kctl.checks.indexes import OffsetIndex, ReadIndexes, TimeIndex
from kctl.checks.report import CheckOptions, FileReport, ReplicaTask, Report
from kctl.checks.small_files import say_missing
from kctl.errors import reason_of
from kctl.findings import Place, Severity
from kctl.findings import evidence as evidence_codes
from kctl.findings import logs as codes
from kctl.findings.segments import OFFSETS_GO_BACK, TORN_TAIL, TRAILING_ZEROS
from kctl.log.folder import FolderFile, LogSegment, first_from
from kctl.scan.checks.table import LogChecks
from kctl.scan.options import Chunk, ScanOptions
from kctl.scan.outliers import HIGHEST_OFFSET, MarkedChunk, without_outliers
from kctl.scan.pieces import PieceScan, ScannedPiece
from kctl.scan.segment import SegmentScan
from kctl.scan.source import Source, foreign_in
from kctl.stores.objects import Replaced

HARMLESS = (DamageReason.TORN_TAIL, DamageReason.ZEROS)
ENDS = (TORN_TAIL.code, TRAILING_ZEROS.code)
INDEXES = (".index", ".timeindex")


class Watcher(Protocol):
    """A check that is given the batches of a replica in order, from its first segment to its last."""

    def feed(self, chunk: MarkedChunk, source: Source) -> None:
        """The next batches and damage, as they lie in the file."""


class LatestTime(NamedTuple):
    """The batch with the largest timestamp."""

    time_ms: int
    base_offset: int
    last_offset: int
    position: int
    size_in_bytes: int


class ScannedLog(Struct):
    """The result of scanning a `.log` file."""

    first_offset: int | None = None  # of the first batch
    next_offset: int | None = None  # behind the sound batch that reaches furthest
    ended: int = 0  # behind the sound batch that came last
    last: tuple[int, int] | None = None  # base offset and CRC of the batch that came last
    last_end: int | None = None  # behind that batch
    batches: int = 0
    records: int = 0
    bad_position: int | None = None  # of the first damage that a recovery stops at
    bad_offset: int | None = None  # where a recovery would cut
    sound_batches_behind: int = 0
    sound_records_behind: int = 0
    was_cleaned: bool = (
        False  # a batch holds fewer records than offsets, or when the cleaner drops its tombstones
    )
    has_new: bool = False  # batches of magic 2
    end_position: int = 0  # behind the last sound batch
    tail_position: int | None = None  # where a torn tail or zeros begin that end the file
    is_readable: bool = True
    gaps: list[tuple[int, int, int]] = field(default_factory=list)  # position, offsets [from, to) that lack
    # Behind a batch whose base offset is wrong, the position and the least offset that can follow.
    outlier_ends: dict[int, int] = field(default_factory=dict)
    ends_in_outlier: bool = False
    latest: LatestTime | None = None  # of the batches whose timestamps producers set


OnChunk = Callable[[FolderFile, Chunk], None]


class LogPieces(Protocol):
    """Logs that other processes read."""

    def pieces(self, path: Path, source: Source, options: ScanOptions) -> Iterable[ScannedPiece] | None:
        """The pieces of a log as one scan would return them; None if no process reads it."""

    def source_of(self, path: Path) -> Source | None:
        """The bytes of a log, if they are in memory; whoever asks closes it."""

    def digest_of(self, path: Path) -> str | None:
        """The digest of a log, if a process has made it."""

    def indexes_of(self, path: Path) -> ReadIndexes | None:
        """The indexes beside a log, if they were read and compared with it."""


def scan_log(
    file: FolderFile,
    report: FileReport,
    options: ScanOptions,
    checks: LogChecks | None = None,
    indexes: Sequence[OffsetIndex | TimeIndex] = (),
    watchers: Sequence[Watcher] = (),
    on_chunk: OnChunk | None = None,
    parts: LogPieces | None = None,
    next_segment: int | None = None,
) -> ScannedLog:
    """Scan a log file into its report; the indexes and watchers are fed every batch in order.

    `checks` are those of the log that the file is a segment of; None if it is checked alone. `next_segment` is the base
    offset of the segment behind it.
    """
    report.batches = report.records = 0
    note = partial(on_chunk, file) if on_chunk else None
    if parts and report.digest:
        report.digest.value = parts.digest_of(file.path)
    try:
        in_memory = parts.source_of(file.path) if parts else None
        with opened_digested(file.path, report.digest, in_memory) as source:
            report.size_in_bytes = source.size
            foreign = foreign_in(source)
            if foreign is not None:
                report.say(
                    evidence_codes.OF_ANOTHER_SYSTEM, what=foreign.what, system=foreign.system, more=""
                )
                return ScannedLog(is_readable=False)
            pieces = parts.pieces(file.path, source, options) if parts else None
            if pieces is None:
                hints = next((index.hints() for index in indexes if isinstance(index, OffsetIndex)), None)
                pieces = PieceScan(source, options, hints)
            scan = SegmentScan(source, options, pieces, checks)
            return follow_scan(scan, report, indexes, watchers, note, next_segment)
    except FileNotFoundError:
        say_missing(report, file.path)
        return ScannedLog(is_readable=False)
    except OSError as error:
        if isinstance(error, Replaced):  # the findings may be about the old object or the new one
            report.findings.clear()
        report.say(evidence_codes.UNREADABLE, reason=reason_of(error))
        report.damaged_bytes = report.size_in_bytes
        return ScannedLog(is_readable=False)


def follow_scan(
    scan: SegmentScan,
    report: FileReport,
    indexes: Sequence[OffsetIndex | TimeIndex] = (),
    watchers: Sequence[Watcher] = (),
    on_chunk: Callable[[Chunk], None] | None = None,
    next_segment: int | None = None,
) -> ScannedLog:
    """Run the scan of a segment into its report; indexes and watchers are fed every batch in order."""
    scanned, totals, named = ScannedLog(), scan.totals, scan.options.base_offset
    for marked in without_outliers(_examined(scan, report, on_chunk), named, next_segment):
        for follower in indexes:
            follower.feed(marked.headers)
        for watcher in watchers:
            watcher.feed(marked, scan.source)
        _note(scanned, marked, report, named)
    _spare_neighbours(scanned, report, scan.checks)
    report.totals, report.batches, report.records = totals, totals.batches, totals.records
    report.base_offset = named if totals.base_offset is None else totals.base_offset
    report.next_offset = scanned.next_offset
    report.size_in_bytes = totals.good_bytes + totals.damaged_bytes
    report.damaged_bytes = totals.damaged_bytes
    scanned.batches, scanned.records = totals.batches, totals.records
    scanned.first_offset = totals.base_offset
    return scanned


def _examined(
    scan: SegmentScan, report: FileReport, on_chunk: Callable[[Chunk], None] | None
) -> Iterator[Chunk]:
    """The chunks of a scan; `on_chunk` is called with each before the next one is read."""
    for chunk in scan:
        if on_chunk:
            on_chunk(chunk)
        report.add(chunk.findings)
        yield chunk


def _note(scanned: ScannedLog, marked: MarkedChunk, report: FileReport, named: int | None) -> None:
    """Update the scanned log with its next chunk."""
    before = scanned.last_end
    _note_offsets(scanned, marked, report, named)
    _note_damage(scanned, marked.chunk, before)
    if scanned.bad_position is not None and scanned.bad_offset is None:
        scanned.bad_offset = named


def _note_offsets(scanned: ScannedLog, marked: MarkedChunk, report: FileReport, named: int | None) -> None:
    """Note gaps and the end of the log; report base offsets that cannot be right."""
    raw, headers, before = marked.chunk.headers, marked.headers, scanned.next_offset
    sound = headers if headers.crc_valid.all() else headers[headers.crc_valid]
    if len(sound):
        _note_gaps(scanned, sound, named)
        _note_latest(scanned, sound)
        scanned.next_offset = max(before or 0, int(sound.last_offset.max()) + 1)
        scanned.ends_in_outlier = False
    for row in marked.outliers:
        base, last = int(raw.base_offset[row]), int(raw.last_offset[row])
        position, size = int(raw.position[row]), int(raw.size_in_bytes[row])
        where = replace(report.at(position, size), base_offset=base, last_offset=last)
        report.say(codes.BASE_OFFSET_WRONG, where, base_offset=base)
        earlier = np.flatnonzero(headers.crc_valid[:row])
        end = int(headers.last_offset[earlier[-1]]) + 1 if len(earlier) else max(scanned.ended, named or 0)
        if _identity(raw, row) == (_identity(raw, row - 1) if row else scanned.last):
            continue  # the batch before it once more
        # The records exist although their offsets are wrong, so the log ends behind them.
        reached = min(end + max(last - base, 0), HIGHEST_OFFSET) + 1
        scanned.outlier_ends[position + size] = reached
        scanned.next_offset = max(scanned.next_offset or 0, reached)
        scanned.ends_in_outlier |= position >= scanned.end_position
    if len(sound):
        scanned.ended = int(sound.last_offset[-1]) + 1
    if len(raw):
        scanned.last, scanned.last_end = _identity(raw, -1), int(raw.last_offset[-1]) + 1


def _note_latest(scanned: ScannedLog, headers: Headers) -> None:
    """Note the largest timestamp that a producer set."""
    times = np.where(headers.attributes & TIMESTAMP_TYPE, -1, headers.max_timestamp)
    row = int(times.argmax())
    if times[row] > (scanned.latest.time_ms if scanned.latest else 0):
        scanned.latest = LatestTime(
            int(times[row]),
            int(headers.base_offset[row]),
            int(headers.last_offset[row]),
            int(headers.position[row]),
            int(headers.size_in_bytes[row]),
        )


def _identity(headers: Headers, row: int) -> tuple[int, int]:
    return int(headers.base_offset[row]), int(headers.crc[row])


def _spare_neighbours(scanned: ScannedLog, report: FileReport, checks: LogChecks) -> None:
    """Drop findings of offsets that go back only because the base offset before is wrong."""
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
    if scanned.next_offset is not None:
        checks.end_segment_at(scanned.next_offset)


def _note_damage(scanned: ScannedLog, chunk: Chunk, before: int | None) -> None:
    """Note the first damage that a recovery stops at, and the sound batches behind it."""
    headers, valid = chunk.headers, chunk.headers.crc_valid

    def cut(position: int, row: int) -> None:
        scanned.bad_position = position
        scanned.bad_offset = int(headers.last_offset[row - 1]) + 1 if row else before

    if scanned.bad_position is None and not valid.all():
        row = int(valid.argmin())
        cut(int(headers.position[row]), row)
    if scanned.bad_position is not None:
        behind = valid & (headers.position > scanned.bad_position)
        scanned.sound_batches_behind += int(behind.sum())
        scanned.sound_records_behind += int(headers.records_count[behind].clip(0).sum())
    for damage in chunk.damage:
        if damage.reason in HARMLESS:
            scanned.tail_position = damage.position
        if damage.reason not in HARMLESS and scanned.bad_position is None:
            cut(damage.position, int((headers.position < damage.position).sum()))


MOST_GAPS = 100  # more of them say nothing new


def _note_gaps(scanned: ScannedLog, headers: Headers, named: int | None) -> None:
    """Offsets missing between batches, and before the first; and whether a batch shows that a cleaner wrote it."""
    # Where a compressed set of magic 0 or 1 begins is unknown unless its records were read.
    is_known = headers.records_count >= 0
    short = is_known & (headers.records_count < headers.last_offset_delta.astype("i8") + 1)
    dated = (headers.magic == 2) & ((headers.attributes & DELETE_HORIZON) != 0)
    scanned.was_cleaned |= bool((short | dated).any())
    scanned.has_new |= bool((headers.magic == 2).any())
    first = int(headers.base_offset[0]) if scanned.next_offset is None else scanned.next_offset
    if scanned.next_offset is None and headers.position[0] == 0 and named is not None:
        first = min(first, named)
    ended = np.concatenate(([first], headers.last_offset[:-1] + 1))
    begins = np.concatenate(([scanned.end_position], headers.next_position[:-1])) == headers.position
    for row in np.flatnonzero(is_known & begins & (headers.base_offset > ended)).tolist():
        if len(scanned.gaps) < MOST_GAPS:
            gap = (int(headers.position[row]), int(ended[row]), int(headers.base_offset[row]))
            scanned.gaps.append(gap)
    scanned.end_position = int(headers.next_position[-1])


def scan_options(options: CheckOptions, report: FileReport, **log_facts: Any) -> ScanOptions:
    """The options of a scan for one file; `log_facts` are further fields of `ScanOptions`."""
    return ScanOptions(
        level=options.level,
        place=report.place,
        max_decompressed_bytes=options.max_decompressed_bytes,
        max_findings=options.max_findings,
        **log_facts,
    )


# --- segments among themselves ------------------------------------------------------------------------

Scanned = Sequence[tuple[LogSegment, ScannedLog]]
PlaceOf = Callable[[str], Place]


GAPS_OF_A_CLEANER = 3  # a wrong base offset, or a batch cut out, makes one


def looks_compacted(task: ReplicaTask, scanned: Scanned, snapshots: Container[int] = frozenset()) -> bool:
    """Whether the topic is known to be compacted, or its log lacks offsets as a cleaner leaves it.

    A checkpoint of the cleaner without an entry does not tell: a replica that was fetched from a cleaned one has none
    yet, and the entry goes when the topic is no longer compacted (`K:log/LogCleanerManager.scala @ 3.9.1`).
    `snapshots` are the offsets of producer snapshots.
    """
    if task.is_compacted or any(scanned_log.was_cleaned for _, scanned_log in scanned):
        return True
    gaps = sum(len(scanned_log.gaps) for _, scanned_log in scanned)
    emptied = [number for number, (segment, _) in enumerate(scanned[:-1]) if _was_emptied(segment, task)]
    if len(emptied) > 1 or 0 in emptied or (emptied and gaps):
        return True
    if gaps:
        return gaps >= (1 if task.is_compacted is None else GAPS_OF_A_CLEANER)
    return _has_gaps_between_all(scanned, snapshots)


def _was_emptied(segment: LogSegment, task: ReplicaTask) -> bool:
    """Whether a cleaner left nothing of it: no batch, and no entry of an index (`S:LogSegment.java @ 3.9.1`).

    A segment that held batches when it was rolled has at least one entry of time. A file system may lose all files
    that were not flushed when the power failed: those from the recovery point on.
    """
    if any(file.size_in_bytes for suffix, file in segment.files.items() if suffix in (".log", *INDEXES)):
        return False
    was_flushed = task.is_clean or not task.recovery_point or segment.base_offset < task.recovery_point
    return was_flushed and segment.index is not None


def _has_gaps_between_all(scanned: Scanned, snapshots: Container[int]) -> bool:
    """Whether gaps can lie between segments alone, since none holds two batches, and several do.

    A follower names a segment after the first offset that it appends to it, and that of a compacted topic need not
    follow the one before (`K:log/UnifiedLog.scala @ 3.9.1`, maybeRoll). Where a segment began, a snapshot was taken.
    """
    if any(scanned_log.batches > 1 or scanned_log.bad_position is not None for _, scanned_log in scanned):
        return False
    ends = [
        (scanned_log.next_offset, after.base_offset) for (_, scanned_log), (after, _) in pairwise(scanned)
    ]
    gaps = [end for end, base in ends if end is not None and end < base]
    return len(gaps) > 1 and not any(end in snapshots for end in gaps)


def check_order(
    report: Report,
    scanned: Scanned,
    place_of: PlaceOf,
    explanation: str = "",
    leaving: Collection[int] = (),
) -> None:
    """Each segment begins where the one before it ends, or later where something explains it.

    `leaving` are the base offsets of segments that a broker was about to delete while the folder was copied. It renames
    the first ones first, but these may have been copied before.
    """
    end: int | None = None
    for (before, scanned_log), (after, _) in pairwise(scanned):
        end = max(
            end or 0, scanned_log.next_offset if scanned_log.next_offset is not None else before.base_offset
        )
        place = place_of(f"{after.base_offset:020d}.log")
        if after.base_offset < end:
            details = {"base_offset": after.base_offset, "before": before.base_offset, "last_offset": end - 1}
            where = replace(place, base_offset=after.base_offset, last_offset=end - 1)
            report.findings.append(codes.SEGMENT_OVERLAPS.at(where, severity=None, **details))
        elif after.base_offset > end and scanned_log.is_readable:
            where = replace(place, base_offset=end, last_offset=after.base_offset - 1)
            is_hidden = scanned_log.bad_position is not None
            why = explanation or ("damage hides where the segment before ends" if is_hidden else "")
            if any(end <= base_offset < after.base_offset for base_offset in leaving):
                why = why or "a broker was about to delete the segment there"
            details = {"from_offset": end, "to_offset": after.base_offset}
            finding = (
                codes.SEGMENT_GAP.at(where, severity=None, **details, why=why)
                if why
                else codes.SEGMENT_MISSING.at(where, severity=None, **details)
            )
            report.findings.append(finding)


def check_gaps(report: Report, scanned: Scanned, place_of: PlaceOf) -> None:
    """Offsets that are missing inside a segment of a topic that nothing shows to be compacted."""
    for segment, scanned_log in scanned:
        for position, start, end in scanned_log.gaps:
            place = replace(place_of(f"{segment.base_offset:020d}.log"), position=position, base_offset=start)
            where = replace(place, last_offset=end - 1)
            details = {"from_offset": start, "to_offset": end}
            report.findings.append(codes.OFFSETS_MISSING.at(where, severity=None, **details))


def check_start_up(report: Report, scanned: Scanned, task: ReplicaTask, place_of: PlaceOf) -> None:
    """Report what a broker does about damage at its next start (`K:log/LogLoader.scala @ 3.9.0`, recoverLog)."""
    if all(scanned_log.bad_position is None for _, scanned_log in scanned):
        return
    first_recovered = first_from((segment.base_offset for segment, _ in scanned), task.recovery_point)
    is_cut = False
    for number, (segment, scanned_log) in enumerate(scanned):
        if scanned_log.bad_position is None or is_cut:
            continue
        place = replace(place_of(f"{segment.base_offset:020d}.log"), position=scanned_log.bad_position)
        if task.is_clean or segment.base_offset < first_recovered:
            why = (
                "the directory was shut down cleanly"
                if task.is_clean
                else f"it lies below the recovery point {task.recovery_point}"
            )
            report.findings.append(codes.START_KEEPS_DAMAGE.at(place, severity=None, why=why))
            continue
        is_cut = True
        behind = [later for _, later in scanned[number + 1 :]]
        offset = scanned_log.bad_offset if scanned_log.bad_offset is not None else segment.base_offset
        ends = [later.next_offset for later in (scanned_log, *behind) if later.next_offset is not None]
        log_end = max([offset, *ends])
        batches = scanned_log.sound_batches_behind + sum(later.batches for later in behind)
        records = scanned_log.sound_records_behind + sum(later.records for later in behind)
        deleted = f"everything after it, up to offset {log_end}: {counted(batches, 'sound batch', 'sound batches')} with {counted(records, 'record')}"
        if not batches:
            deleted = f"the bytes from position {scanned_log.bad_position} on, which hold no sound batch"
        where = replace(place, base_offset=offset, last_offset=log_end - 1 if log_end > offset else None)
        severity = None if batches else Severity.WARNING
        report.findings.append(
            codes.RECOVERY_CUTS.at(where, severity=severity, offset=offset, deleted=deleted)
        )


def check_tails(report: Report, scanned: Scanned, task: ReplicaTask, place_of: PlaceOf) -> None:
    """Report a torn tail or zeros at the end of a segment where no crash explains them.

    A crash explains them in the last segment, if the broker was not shut down cleanly. Anywhere else the finding made here
    replaces the scan's own.
    """
    if task.kind is not FolderKind.LIVE:
        return
    for number, (segment, scanned_log) in enumerate(scanned):
        if scanned_log.tail_position is None:
            continue
        is_last = number == len(scanned) - 1
        if is_last and not task.is_clean:
            continue
        type_ = codes.TORN_AFTER_CLEAN_SHUTDOWN if is_last else codes.SEGMENT_ENDS_TORN
        where = place_of(segment.log.name if segment.log else f"{segment.base_offset:020d}.log")
        for file in report.files:
            if file.place.file == where.file:
                file.findings = [finding for finding in file.findings if finding.code not in ENDS]
        place = replace(where, position=scanned_log.tail_position)
        report.findings.append(type_.at(place, severity=None, tail=scanned_log.tail_position))


SWAP_SINCE_3_0 = "deletes the files of the offsets that it covers and renames it"


def check_leftover(report: Report, segment: LogSegment, place: Place) -> None:
    """Report a segment whose files have a suffix behind their names."""
    first = next(iter(segment.files.values()))
    where = replace(place, file=f"{place.file}{first.named.suffix if first.named else ''}{segment.state}")
    if segment.state is FileState.DELETED:
        report.findings.append(codes.LEFT_DELETED.at(where))
    elif segment.state is FileState.CLEANED:
        report.findings.append(codes.LEFT_CLEANED.at(where, severity=None, base_offset=segment.base_offset))
    elif segment.state is FileState.SWAP:
        report.findings.append(codes.LEFT_SWAP.at(where, severity=None, what=SWAP_SINCE_3_0))
