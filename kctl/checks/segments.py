"""Segments among themselves: order, gaps, what waits to be deleted, and what a start-up makes of damage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from formats.log_dir_files import FileState, FolderKind
from kctl.checks.report import Report
from kctl.checks.segment import ScannedLog
from kctl.findings import Place
from kctl.findings import logs as say
from kctl.log.folder import Segment

if TYPE_CHECKING:
    from kctl.checks.replica import ReplicaTask

Scanned = Sequence[tuple[Segment, ScannedLog]]
PlaceOf = Callable[[str], Place]


def looks_compacted(task: ReplicaTask, scanned: Sequence[ScannedLog]) -> bool:
    """Whether the topic is known to be compacted, or its batches lack offsets as compaction leaves them."""
    if task.is_compacted or any(one.has_short_batches for one in scanned):
        return True
    return task.is_compacted is None and any(one.gaps for one in scanned)


def check_order(report: Report, scanned: Scanned, place_of: PlaceOf, is_compacted: bool) -> None:
    """Each segment begins where the one before it ends, or later where the topic is compacted."""
    end: int | None = None
    for (before, one), (after, _) in pairwise(scanned):
        end = max(end or 0, one.next_offset if one.next_offset is not None else before.base_offset)
        place = place_of(f"{after.base_offset:020d}.log")
        if after.base_offset < end:
            details = {"base_offset": after.base_offset, "before": before.base_offset, "last_offset": end - 1}
            where = replace(place, base_offset=after.base_offset, last_offset=end - 1)
            report.findings.append(say.SEGMENT_OVERLAPS.at(where, severity=None, **details))
        elif after.base_offset > end and one.is_readable:
            where = replace(place, base_offset=end, last_offset=after.base_offset - 1)
            # A damaged end of the segment before hides where it ended.
            type_ = say.SEGMENT_GAP if is_compacted or one.bad_position is not None else say.SEGMENT_MISSING
            report.findings.append(
                type_.at(where, severity=None, from_offset=end, to_offset=after.base_offset)
            )


def check_gaps(report: Report, scanned: Scanned, task: ReplicaTask, place_of: PlaceOf) -> None:
    """Offsets that are missing inside a segment: normal where the topic is or may be compacted."""
    if task.is_compacted is not False or looks_compacted(task, [one for _, one in scanned]):
        return
    for segment, one in scanned:
        for position, start, end in one.gaps:
            place = replace(place_of(f"{segment.base_offset:020d}.log"), position=position, base_offset=start)
            where = replace(place, last_offset=end - 1)
            details = {"from_offset": start, "to_offset": end}
            report.findings.append(say.OFFSETS_MISSING.at(where, severity=None, **details))


def check_start_up(report: Report, scanned: Scanned, task: ReplicaTask, place_of: PlaceOf) -> None:
    """What a broker does about damage at its next start (`K:log/LogLoader.scala @ 3.9.0`, recoverLog)."""
    below = [n for n, (segment, _) in enumerate(scanned) if segment.base_offset <= task.recovery_point]
    first_recovered = below[-1] if below else 0
    is_cut = False
    for number, (segment, one) in enumerate(scanned):
        if one.bad_position is None or is_cut:
            continue
        place = replace(place_of(f"{segment.base_offset:020d}.log"), position=one.bad_position)
        if task.is_clean or number < first_recovered:
            why = (
                "the directory was shut down cleanly"
                if task.is_clean
                else f"it lies below the recovery point {task.recovery_point}"
            )
            report.findings.append(say.START_KEEPS_DAMAGE.at(place, severity=None, why=why))
            continue
        is_cut = True
        behind = [later for _, later in scanned[number + 1 :]]
        offset = one.bad_offset if one.bad_offset is not None else segment.base_offset
        ends = [later.next_offset for later in (one, *behind) if later.next_offset is not None]
        log_end = max([offset, *ends])
        report.findings.append(
            say.RECOVERY_CUTS.at(
                replace(place, base_offset=offset, last_offset=log_end - 1 if log_end > offset else None),
                severity=None,
                offset=offset,
                log_end=log_end,
                batches=one.sound_batches_behind + sum(later.batches for later in behind),
                records=one.sound_records_behind + sum(later.records for later in behind),
            )
        )


def check_tails(report: Report, scanned: Scanned, task: ReplicaTask, place_of: PlaceOf) -> None:
    """A torn tail, or zeros, are what a crash leaves: of the last segment, and without a clean shutdown."""
    if task.kind is not FolderKind.LIVE:
        return
    for number, (segment, one) in enumerate(scanned):
        if one.tail_position is None:
            continue
        is_last = number == len(scanned) - 1
        if is_last and not task.is_clean:
            continue
        type_ = say.TORN_AFTER_CLEAN_SHUTDOWN if is_last else say.SEGMENT_ENDS_TORN
        place = replace(place_of(f"{segment.base_offset:020d}.log"), position=one.tail_position)
        report.findings.append(type_.at(place, severity=None, tail=one.tail_position))


SWAP_SINCE_3_0 = "deletes the files of the offsets that it covers and renames it"


def check_leftover(report: Report, segment: Segment, place: Place) -> None:
    """Say what a file with a suffix behind its name is, once a segment."""
    first = next(iter(segment.files.values()))
    where = replace(place, file=f"{place.file}{first.named.suffix if first.named else ''}{segment.state}")
    if segment.state is FileState.DELETED:
        report.findings.append(say.LEFT_DELETED.at(where))
    elif segment.state is FileState.CLEANED:
        report.findings.append(say.LEFT_CLEANED.at(where, severity=None, base_offset=segment.base_offset))
    elif segment.state is FileState.SWAP:
        report.findings.append(say.LEFT_SWAP.at(where, severity=None, what=SWAP_SINCE_3_0))
