"""The leader-epoch-checkpoint against the epochs that the batches carry.

An entry need not start at a batch: compaction, retention and tiers take batches away, and a leader may write
nothing. But the first batch at or after an entry has its epoch or a later one, and the last before it an
earlier one (`storage/.../epoch/LeaderEpochFileCache.java @ 3.9.0`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path

import numpy as np

from formats.arrays import Ints, Mask
from formats.log.columns.headers import Headers
from formats.log_dir.checkpoints import EpochEntry, MalformedCheckpoint, assigned_epochs, parse_leader_epochs
from formats.log_dir.file_names import CLEAN_SHUTDOWN, FolderKind
from formats.values import Struct, field, replace
from kctl.checks.report import FileReport, LogFacts, ReplicaTask
from kctl.checks.small_files import read_text, say_malformed
from kctl.findings import NOWHERE, Place, Severity
from kctl.findings import epochs as codes
from kctl.findings.segments import EPOCH_WRONG
from kctl.scan.checks.batches import FAR
from kctl.scan.outliers import MarkedChunk
from kctl.scan.source import Source


class EpochRun(Struct):
    """Consecutive batches of one leader epoch: offsets [base_offset, next_offset)."""

    epoch: int
    base_offset: int
    last_offset: int
    first: Place = NOWHERE  # the batch that it begins with
    batches: int = 0


class EpochRuns(Struct):
    """The leader epochs of a log in the order of its batches."""

    runs: list[EpochRun] = field(default_factory=list)
    place: Place = NOWHERE  # of the file that is being read
    cleared: int = 0
    """How many runs a batch of an older magic follows: a broker that appends one clears the file, so that followers
    truncate to the high watermark (`K:log/UnifiedLog.scala @ 3.9.1`, append; KAFKA-7897)."""

    def feed(self, chunk: MarkedChunk, source: Source | None = None) -> None:
        """The next batches; those of old magic or with a wrong CRC say nothing."""
        headers = chunk.headers
        use = headers.crc_valid & (headers.magic == 2) & (headers.partition_leader_epoch >= 0)
        old = (headers.crc_valid & (headers.magic < 2)).cumsum()
        if use.any():
            self._take(headers, use, old[use])
        if len(old) and old[-1] > (old[use][-1] if use.any() else 0):
            self.cleared = len(self.runs)

    def _take(self, headers: Headers, use: Mask, old: Ints) -> None:
        """The batches in use, with the number of batches of an older magic before each."""
        epoch, base = headers.partition_leader_epoch[use], headers.base_offset[use]
        last = headers.last_offset[use]
        edges = np.flatnonzero(np.diff(epoch) | np.diff(old)) + 1
        rows = np.flatnonzero(use)
        for first, after in zip([0, *edges.tolist()], [*edges.tolist(), len(epoch)], strict=True):
            row = int(rows[first])
            if old[first] > (old[first - 1] if first else 0):
                self.cleared = len(self.runs)
            place = replace(
                self.place,
                position=int(headers.position[row]),
                size_in_bytes=int(headers.size_in_bytes[row]),
                base_offset=int(headers.base_offset[row]),
                last_offset=int(headers.last_offset[row]),
            )
            self._add(
                EpochRun(int(epoch[first]), int(base[first]), int(last[after - 1]), place, after - first)
            )

    def _add(self, run: EpochRun) -> None:
        if len(self.runs) > self.cleared and self.runs[-1].epoch == run.epoch:
            self.runs[-1].last_offset = max(self.runs[-1].last_offset, run.last_offset)
            self.runs[-1].batches += run.batches
        else:
            self.runs.append(run)

    @property
    def entries(self) -> list[EpochEntry]:
        """What a broker that appended this log has written."""
        entries_: list[EpochEntry] = []
        for run in self.runs[self.cleared :]:
            if not entries_ or run.epoch > entries_[-1].epoch:
                entries_.append(EpochEntry(run.epoch, run.base_offset))
        return entries_


def check_epochs(
    report: FileReport, path: Path, runs: EpochRuns, task: ReplicaTask, facts: LogFacts
) -> list[EpochEntry]:
    """The entries of the file; what contradicts the log becomes findings of the report."""
    text = read_text(path, report)
    if text is None:
        return []
    try:
        entries = parse_leader_epochs(text)
        assigned = assigned_epochs(entries)
    except MalformedCheckpoint as error:
        say_malformed(report, error)
        return []
    except ValueError as error:
        say_malformed(report, MalformedCheckpoint(f"negative {error}", 3))
        return []
    if assigned != entries:
        _say_order(report, entries, assigned)
    _check_entries(report, assigned, runs, task, facts)
    return entries


def _say_order(report: FileReport, entries: list[EpochEntry], assigned: list[EpochEntry]) -> None:
    for before, after in pairwise(entries):
        if after.epoch <= before.epoch or after.start_offset <= before.start_offset:
            text = ", ".join(f"{e.epoch}→{e.start_offset}" for e in assigned[:8])
            report.say(
                codes.EPOCHS_NOT_MONOTONIC, epoch=after.epoch, start_offset=after.start_offset, kept=text
            )
            return


def _check_entries(
    report: FileReport, entries: list[EpochEntry], runs: EpochRuns, task: ReplicaTask, facts: LogFacts
) -> None:
    severity = Severity.INFO if task.kind in (FolderKind.DELETE, FolderKind.STRAY) else None
    starts = [entry.start_offset for entry in entries]
    epochs = {entry.epoch: entry for entry in entries}
    first_offset = max(task.log_start_offset, facts.first_base_offset or 0)
    if entries and entries[0].start_offset in facts.metadata_snapshots:
        first_offset = max(
            first_offset, entries[0].start_offset
        )  # no checkpoint has the start of a metadata log
    is_known = task.is_clean and task.is_marked
    log_start = _log_start(report, entries, runs, first_offset, facts.segment_bases, is_known=is_known)
    for number, run in enumerate(runs.runs):
        if run.last_offset < log_start:
            continue  # all epochs below the log's start are one entry with the last of them
        if number < runs.cleared and (not entries or starts[0] > run.last_offset):
            continue  # a recovery adds these entries again only behind the first one of the file
        if run.epoch not in epochs:
            entry = _entry_around(entries, runs.runs, number)
            if entry is not None:
                _say_batch(report, entry, runs.runs, number)
                continue
            where = replace(report.place, base_offset=run.base_offset, last_offset=run.last_offset)
            finding = codes.EPOCH_ENTRY_MISSING
            report.add([finding.at(where, severity=severity, epoch=run.epoch, offset=run.base_offset)])
            continue
        for offset in (max(run.base_offset, log_start), run.last_offset):
            at = bisect_right(starts, offset) - 1
            if at >= 0 and entries[at].epoch == run.epoch:
                continue
            wrong = epochs[run.epoch] if at < 0 or entries[at].epoch < run.epoch else entries[at]
            details = {"epoch": wrong.epoch, "start_offset": wrong.start_offset}
            where = replace(report.place, base_offset=offset)
            finding = codes.EPOCH_ENTRY_WRONG
            report.add([finding.at(where, severity=severity, offset=offset, found=run.epoch, **details)])
            break
    _check_end(report, entries, task, facts)


def _entry_around(entries: list[EpochEntry], runs: list[EpochRun], number: int) -> EpochEntry | None:
    """The entry in whose range a single batch lies that has an epoch without entry; None where the file may be wrong.

    Where the batches around it have the entry's epoch, the batch is wrong and not the file.
    """
    run = runs[number]
    at = bisect_right(entries, run.base_offset, key=lambda entry: entry.start_offset) - 1
    if run.batches > 1 or at < 0:
        return None
    is_near = abs(run.epoch - entries[at].epoch) < FAR
    before, behind = _neighbours(runs, number)
    if entries[at].epoch not in (before, behind):
        begins_here = entries[at].start_offset == run.base_offset  # and no batch has the entry's epoch
        if is_near or not begins_here:
            return None  # the file may as well be wrong
    return None if behind is None and is_near else entries[at]


def _neighbours(runs: list[EpochRun], number: int) -> tuple[int | None, int | None]:
    """The epochs before and behind a run."""
    before = runs[number - 1].epoch if number else None
    return before, runs[number + 1].epoch if number + 1 < len(runs) else None


def _say_batch(report: FileReport, entry: EpochEntry, runs: list[EpochRun], number: int) -> None:
    """The batch is wrong, unless the order of the batches has shown it already."""
    run = runs[number]
    before, behind = _neighbours(runs, number)
    if behind is None or (-1 if before is None else before) <= run.epoch <= behind:
        why = f"leader-epoch-checkpoint has none such, and from offset {entry.start_offset} on it has {entry.epoch}"
        report.add([EPOCH_WRONG.at(run.first, leader_epoch=run.epoch, why=why)])


def _log_start(
    report: FileReport,
    entries: list[EpochEntry],
    runs: EpochRuns,
    known_start: int,
    segment_bases: Collection[int],
    *,
    is_known: bool,
) -> int:
    """The offset from which on entries can be expected.

    The log's start may be known to nobody but the first entry; unless a clean stop has written it (`is_known`), or
    this begins exactly where an epoch begins in the log, as it does when the entries before it were lost. Where a
    segment begins there too, retention may have taken the segments before it, whose files go a minute later. Batches of
    its own epoch below it are no sign: where a broker dies after records were deleted, it knows the start no more.
    """
    if not entries or entries[0].start_offset <= known_start:
        return known_start
    first = entries[0].start_offset
    below = [run for run in runs.runs if run.base_offset < first]
    if not below:
        return known_start
    begins_there = first not in segment_bases and any(run.base_offset == first for run in runs.runs)
    if (begins_there or is_known) and below[-1].epoch != entries[0].epoch:
        return known_start
    report.say(codes.EPOCHS_BEGIN_LATE, start_offset=first, log_start=known_start)
    return first


def _is_of_3_7(task: ReplicaTask) -> bool:
    """Whether the broker that shut down was of 3.7 or later: its marker has content."""
    try:
        return (task.folder.parent / CLEAN_SHUTDOWN).stat().st_size > 0
    except OSError:
        return False


def _check_end(report: FileReport, entries: list[EpochEntry], task: ReplicaTask, facts: LogFacts) -> None:
    end = facts.log_end_offset
    if end is None or not facts.is_whole:
        return
    for entry in entries:
        if entry.start_offset > end:
            # Since 3.8 a truncation is flushed later than the log (KAFKA-15046, KAFKA-16541), and a shutdown drops what the
            # scheduler still has to do.
            severity = None if task.is_clean and not _is_of_3_7(task) else Severity.INFO
            report.add(
                [
                    codes.EPOCH_ENTRY_BEYOND_END.at(
                        report.place,
                        severity=severity,
                        epoch=entry.epoch,
                        start_offset=entry.start_offset,
                        log_end=end,
                    )
                ]
            )
