"""A partition folder: every file in it, each against the log that it describes."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import pairwise

from formats.log_dir.file_names import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    QUORUM_STATE,
    REMOTE_LOG_SNAPSHOT,
    FileState,
    FolderKind,
)
from formats.values import Struct, field, replace
from kctl.checks import small_files
from kctl.checks.epochs import EpochRuns, check_epochs
from kctl.checks.indexes import IndexedLog, check_transaction_index, open_indexes, say_transactions_missing
from kctl.checks.kraft import check_kraft_snapshot, reaches
from kctl.checks.report import CheckOptions, FileReport, LogFacts, ReplicaTask, Report, Unsettled, judge_twice
from kctl.checks.retention import check_future
from kctl.checks.segments import (
    MOST_GAPS,
    LogPieces,
    OnChunk,
    Scanned,
    ScannedLog,
    check_gaps,
    check_leftover,
    check_order,
    check_start_up,
    check_tails,
    looks_compacted,
    scan_log,
    scan_options,
)
from kctl.checks.snapshots import ProducerWatch, open_snapshot
from kctl.errors import reason_of
from kctl.files import what_it_is
from kctl.findings import FindingType, Place, Severity
from kctl.findings import epochs as epoch_codes
from kctl.findings import evidence as evidence_codes
from kctl.findings import indexes as index_codes
from kctl.findings import logs as codes
from kctl.findings import segments as segment_codes
from kctl.findings import snapshots as snapshot_codes
from kctl.log.folder import Folder, FolderFile, LogSegment, read_folder
from kctl.scan.checks.table import LogChecks
from kctl.scan.producer_state import MOST_ABORTED

TYPES = {
    ".log": "log",
    ".index": "index",
    ".timeindex": "timeindex",
    ".txnindex": "txnindex",
    ".snapshot": "snapshot",
    ".checkpoint": "kraft-snapshot",
    LEADER_EPOCHS: "epochs",
    PARTITION_METADATA: "partition-metadata",
    QUORUM_STATE: "quorum-state",
    REMOTE_LOG_SNAPSHOT: "remote-log-snapshot",
}
# Topics that Kafka itself makes compacted.
COMPACTED = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
KINDS = {
    FolderKind.DELETE: "The broker deletes the replica: its topic was deleted, or the replica was moved away.",
    FolderKind.FUTURE: "The replica is being moved between log directories; it is not complete.",
    FolderKind.STRAY: "Metadata no longer places the replica on this broker; it is kept aside.",
}
LEAVING = (FolderKind.DELETE, FolderKind.STRAY)
# A broker deletes the log of a segment before its indexes, all segments before the snapshots, then what is left in any
# order, and may be killed meanwhile (`LogSegment.deleteIfExists`, `UnifiedLog.delete`, `Utils.delete @ 3.9.0`).
BESIDE_A_LOG = frozenset(
    type_.code
    for subject in (index_codes, epoch_codes, snapshot_codes)
    for type_ in vars(subject).values()
    if isinstance(type_, FindingType)
)
LARGEST_SEGMENT = (1 << 31) - 1
OFFSET_DIGITS = 20


class _Check(Struct, dict=True):
    """One run over a folder."""

    task: ReplicaTask
    options: CheckOptions
    folder: Folder
    on_chunk: OnChunk | None = None
    parts: LogPieces | None = None
    report: Report = field(default_factory=Report)
    checks: LogChecks = field(default_factory=LogChecks)
    scanned: list[tuple[LogSegment, ScannedLog]] = field(default_factory=list)
    unsettled: list[Unsettled] = field(default_factory=list)

    @cached_property
    def next_segment(self) -> dict[int, int]:
        """The base offset of the segment behind each."""
        pairs = pairwise(self.folder.logs)
        return {
            segment.base_offset: next_segment.base_offset
            for segment, next_segment in pairs
            if next_segment.base_offset > segment.base_offset
        }

    @cached_property
    def log_offsets(self) -> list[int]:
        """The base offsets of segments that have a log."""
        return [segment.base_offset for segment in self.folder.logs]

    @cached_property
    def last_log(self) -> LogSegment:
        """The active segment."""
        return self.folder.logs[-1]

    @cached_property
    def has_time_indexes(self) -> bool:
        """Whether the broker writes time indexes."""
        return self.task.has_time_indexes or any(segment.time_index for segment in self.folder.segments)

    def place_of(self, name: str) -> Place:
        """The place of a file of the folder."""
        return self.task.place_of(name)

    def report_of(self, file: FolderFile) -> FileReport:
        """A report for a file."""
        type_ = TYPES.get(file.named.suffix if file.named else file.name, "unknown")
        return self.report.file(self.place_of(shown_name(file)), type_, file.size_in_bytes, self.options)


def shown_name(file: FolderFile) -> str:
    """A file's name as text that can be encoded."""
    return file.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def check_replica(
    task: ReplicaTask,
    options: CheckOptions | None = None,
    on_chunk: OnChunk | None = None,
    *,
    folder: Folder | None = None,
    parts: LogPieces | None = None,
) -> Report:
    """Everything that is wrong in a partition folder. What cannot be read is a finding too.

    `parts` are the logs that other processes have read; `folder` is the listing that these were planned from.
    """
    options = options or CheckOptions()
    try:
        folder = folder or read_folder(task.folder)
    except OSError as error:
        report = Report()
        is_gone = isinstance(error, FileNotFoundError)
        type_ = evidence_codes.VANISHED if is_gone else evidence_codes.UNREADABLE
        report.findings.append(type_.at(task.place, severity=None, reason=reason_of(error)))
        return report
    check = _Check(task, options, folder, on_chunk, parts)
    _check_segments(check)
    _check_leftovers(check)
    _check_others(check)
    check.report.facts.looks_new = (
        check.report.facts.log_end_offset == 0
        and not any(segment.log and segment.log.size_in_bytes for segment in check.folder.logs)
        and not check.folder.snapshots
        and all(finding.severity is Severity.INFO for finding in check.report.all_findings())
    )
    if task.kind in LEAVING:
        for file in check.report.files:
            file.take_as_info(BESIDE_A_LOG)
    if task.kind in KINDS:
        check.report.findings.append(codes.FOLDER_KIND.at(task.place, severity=None, what=KINDS[task.kind]))
    return check.report


def _check_segments(check: _Check) -> None:
    epochs = EpochRuns()
    producers = _open_snapshots(check)
    for segment in check.folder.segments:
        _check_segment(check, segment, epochs, producers)
    report, facts = check.report, _facts(check)
    report.segments, report.facts = len(check.folder.logs), facts
    is_known = bool(check.task.is_compacted)
    compaction = "the topic is compacted" if is_known else "the log shows the signs of a compaction"
    of_leftovers = () if check.task.is_clean else check.folder.leftovers
    leaving = [one.base_offset for one in of_leftovers if one.log and one.state is FileState.DELETED]
    check_order(report, check.scanned, check.place_of, compaction if facts.looks_compacted else "", leaving)
    if check.task.is_compacted is False and not facts.looks_compacted:
        check_gaps(report, check.scanned, check.place_of)
    check_tails(report, check.scanned, check.task, check.place_of)
    check_start_up(report, check.scanned, check.task, check.place_of)
    if check.task.kind is FolderKind.LIVE and not facts.looks_compacted and not _is_internal(check.task):
        report.findings += check_future(check.scanned, check.place_of)
    is_compacted = check.task.is_compacted or any(scanned_log.was_cleaned for _, scanned_log in check.scanned)
    report.findings += check.checks.finish(is_compacted=True if is_compacted else None)
    producers.finish(facts.log_end_offset or 0, check.task.is_clean, facts.is_whole)
    for open_ in (*producers.unsettled, *check.unsettled):
        open_.settle(facts.looks_compacted)
    lacks_snapshots = not check.folder.snapshots and check.task.is_clean
    if lacks_snapshots and producers.replay.producers and check.task.kind is FolderKind.LIVE:
        count = len(producers.replay.producers)
        report.findings.append(
            snapshot_codes.SNAPSHOTS_MISSING.at(check.task.place, severity=None, count=count)
        )
    epoch_file = check.folder.other_files.get(LEADER_EPOCHS)
    if epoch_file:
        check_epochs(check.report_of(epoch_file), epoch_file.path, epochs, check.task, facts)
    elif (
        epochs.runs[epochs.cleared :]
        and check.task.kind is FolderKind.LIVE
        and any(not file.path.name.endswith(".log") for file in check.folder.files())
    ):  # a copy of segments alone, as of a running cluster's log, lacks no more than the rest
        place = check.place_of(LEADER_EPOCHS)
        report.findings.append(epoch_codes.EPOCHS_LOST.at(place, severity=None, epoch=epochs.runs[-1].epoch))


def _is_internal(task: ReplicaTask) -> bool:
    """Whether its topic is compacted or cut by snapshots, whatever the times of its records."""
    return task.place.topic in COMPACTED or task.place.topic == "__cluster_metadata"


def _open_snapshots(check: _Check) -> ProducerWatch:
    files = check.folder.snapshots
    opened = [
        open_snapshot(
            file, check.report_of(file), may_be_unwritten=file is files[-1] and not check.task.is_clean
        )
        for file in files
    ]
    logs = check.folder.logs
    return ProducerWatch(
        snapshots=[snapshot for snapshot in opened if snapshot],
        log_start=logs[0].base_offset if logs else 0,
        began=check.task.log_start_offset,
        is_compacted=bool(check.task.is_compacted),
    )


def _check_segment(check: _Check, segment: LogSegment, epochs: EpochRuns, producers: ProducerWatch) -> None:
    log = segment.log
    if log is None:
        for file in segment.files.values():
            report = check.report_of(file)
            start = segment.base_offset
            behind = bisect_right(check.log_offsets, start)
            end = check.log_offsets[behind] if behind < len(check.log_offsets) else None
            report.say(
                index_codes.INDEX_ORPHANED,
                replace(report.place, base_offset=start, last_offset=None if end is None else end - 1),
                segment=start,
                offsets=f"from {start} on" if end is None else f"[{start}, {end})",
            )
        return
    report = check.report_of(log)
    is_last = segment is check.last_log
    read = check.parts.indexes_of(log.path) if check.parts else None
    indexes = open_indexes(segment, check.report_of, read)
    options = scan_options(
        check.options, report, base_offset=segment.base_offset, is_compacted=check.task.is_compacted
    )
    epochs.place = report.place
    following = check.next_segment.get(segment.base_offset)
    watchers = (epochs, producers)
    scanned = scan_log(
        log, report, options, check.checks, indexes.all(), watchers, check.on_chunk, check.parts, following
    )
    check.scanned.append((segment, scanned))
    producers.is_compacted |= scanned.was_cleaned
    digits = len(log.name.partition(".")[0])
    if digits != OFFSET_DIGITS:
        report.say(codes.SEGMENT_NAME, digits=digits)
    if log.size_in_bytes > LARGEST_SEGMENT:
        report.say(codes.SEGMENT_TOO_LARGE, size=log.size_in_bytes)
    indexed = _indexed(segment, report, scanned, is_last=is_last, is_clean=check.task.is_clean)
    indexes.finish(indexed)
    is_recovered = check.task.is_marked and segment.base_offset >= check.task.recovery_point
    if any(finding.code == segment_codes.OFFSETS_GO_BACK.code for finding in report.findings):
        _say_what_a_start_does(check, segment, report, scanned)
    if check.task.is_fetched:
        return
    # A segment that has batches of older magics only may have a single index by design.
    if indexed.awaits_recovery and is_recovered and scanned.has_new and segment.files.keys() == {".log"}:
        report.say(index_codes.INDEXES_AWAIT_RECOVERY)
        return
    if scanned.is_readable and not indexed.awaits_indexes:
        _say_missing(check, segment, report, scanned)
    aborted = producers.replay.take_aborted()
    if len(aborted) > MOST_ABORTED:
        report.say(index_codes.ABORTED_TRANSACTIONS_MANY, None, most=MOST_ABORTED)
    index, start = segment.transaction_index, producers.log_start
    awaits = is_recovered and not check.task.is_clean and indexed.is_sound

    def judge(report: FileReport, is_known: bool) -> None:
        if index:
            check_transaction_index(
                index, report, aborted, log_start=start, is_known=is_known, awaits_recovery=awaits
            )
        else:
            say_transactions_missing(report, aborted, set(), is_known, awaits_recovery=awaits)

    judged = check.report_of(index) if index else report
    check.unsettled += judge_twice(judged, judge, producers.is_known)


def _say_what_a_start_does(
    check: _Check, segment: LogSegment, report: FileReport, scanned: ScannedLog
) -> None:
    """Report what the next start does with a segment whose offsets go back; its indexes and the shutdown decide it."""
    task = check.task
    if not task.is_marked or task.kind is not FolderKind.LIVE:
        return
    if ".index" not in segment.files:
        report.say(segment_codes.BACK_STOPS_THE_START)
    elif task.is_clean or (scanned.next_offset or 0) <= task.recovery_point:
        below = f"it lies below the recovery point {task.recovery_point}"
        report.say(
            segment_codes.BACK_NOT_READ, why="the directory was shut down cleanly" if task.is_clean else below
        )
    else:
        end = scanned.next_offset if scanned.next_offset is not None else segment.base_offset
        report.say(segment_codes.BACK_EMPTIES, from_offset=segment.base_offset, to_offset=end)


def _indexed(
    segment: LogSegment, report: FileReport, scanned: ScannedLog, *, is_last: bool, is_clean: bool
) -> IndexedLog:
    end = scanned.next_offset if scanned.next_offset is not None else segment.base_offset
    return IndexedLog(
        base_offset=segment.base_offset,
        size_in_bytes=report.size_in_bytes,
        batches=scanned.batches,
        log_end_offset=end,
        is_last=is_last,
        is_clean=is_clean,
        is_sound=scanned.bad_position is None and scanned.is_readable and not scanned.ends_in_outlier,
    )


def _say_missing(check: _Check, segment: LogSegment, report: FileReport, scanned: ScannedLog) -> None:
    # Brokers up to 0.10.0 write no time indexes; every broker that writes magic 2 does.
    has_time = check.has_time_indexes or scanned.has_new
    for suffix in (".index", ".timeindex") if has_time else (".index",):
        if suffix not in segment.files:
            report.say(index_codes.INDEX_MISSING, suffix=suffix)


def _facts(check: _Check) -> LogFacts:
    scanned = check.scanned
    snapshots = {file.named.base_offset for file in check.folder.snapshots if file.named}
    facts = LogFacts(looks_compacted=looks_compacted(check.task, scanned, snapshots))
    kraft_snapshots = (file.named for file in check.folder.kraft_snapshots)
    facts.metadata_snapshots = frozenset(named.base_offset for named in kraft_snapshots if named)
    if scanned:
        facts.first_base_offset = scanned[0][0].base_offset
        facts.segment_bases = frozenset(segment.base_offset for segment, *_ in scanned)
        last_segment, last = scanned[-1]
        if last.is_readable:
            end = last.next_offset
            facts.log_end_offset = last_segment.base_offset if end is None else end
        if last.is_readable and (not last.batches or last.gaps or last.was_cleaned):
            facts.cut_in_gap = frozenset(at for at in snapshots if at > (facts.log_end_offset or 0))
        facts.follows_from = _follows_from(scanned)
        facts.is_whole = all(
            scanned_log.bad_position is None and scanned_log.is_readable for _, scanned_log in scanned
        )
    return facts


def _follows_from(scanned: Scanned) -> int | None:
    """The least offset from which each batch begins where the one before it ended; None where none does."""
    start: int | None = None
    for _, scanned_log in reversed(scanned):
        first, end = scanned_log.first_offset, scanned_log.next_offset
        if first is None or end is None:
            continue
        if start is not None and end != start:
            break
        if scanned_log.outlier_ends or len(scanned_log.gaps) == MOST_GAPS:
            break
        start = max([first, *(gap_end for _, _, gap_end in scanned_log.gaps)])
        if start != first:
            break
    return start


def _check_leftovers(check: _Check) -> None:
    for segment in check.folder.leftovers:
        log = segment.log
        if log:
            report = check.report_of(log)
            indexes = open_indexes(segment, check.report_of)
            options = scan_options(check.options, report, base_offset=segment.base_offset)
            scanned = scan_log(log, report, options, indexes=indexes.all(), parts=check.parts)
            indexes.finish(_indexed(segment, report, scanned, is_last=True, is_clean=False))
        for suffix, file in segment.files.items():
            if suffix not in (".log", ".index", ".timeindex") or not log:
                check.report_of(file)
        check_leftover(check.report, segment, check.place_of(f"{segment.base_offset:020d}"))


def _check_others(check: _Check) -> None:
    folder = check.folder
    for file in folder.kraft_snapshots:
        report = check.report_of(file)
        check_kraft_snapshot(file, report, check.options)
    start = folder.logs[0].base_offset if folder.logs else 0
    if (
        check.task.place.topic == "__cluster_metadata"
        and start
        and not reaches(folder.kraft_snapshots, start)
    ):
        check.report.findings.append(
            codes.KRAFT_SNAPSHOT_MISSING.at(check.task.place, severity=None, log_start=start)
        )
    for file in folder.other_files.values():
        if file.name == LEADER_EPOCHS:
            continue
        report = check.report_of(file)
        if file.name == PARTITION_METADATA:
            check.report.facts.topic_id = small_files.check_partition_metadata(report, file.path)
        elif file.name == QUORUM_STATE:
            small_files.check_quorum_state(report, file.path)
        elif file.name == REMOTE_LOG_SNAPSHOT:
            small_files.check_remote_log_snapshot(report, file.path)
        elif not file.name.endswith(".tmp"):
            report.say(codes.UNKNOWN_FILE)
    for path, mode in folder.odd:
        place = check.place_of(path.name)
        check.report.findings.append(
            evidence_codes.NOT_A_FILE.at(place, severity=None, what=what_it_is(mode))
        )
    for path in folder.links:
        place = check.place_of(path.name)
        details = {"target": "another file", "reason": "segments are read where they lie"}
        check.report.findings.append(evidence_codes.LINK_NOT_FOLLOWED.at(place, severity=None, **details))
    if folder.left_out:
        check.report.findings.append(
            codes.FILES_LEFT_OUT.at(check.task.place, severity=None, count=folder.left_out)
        )
    for path in folder.vanished:
        check.report.findings.append(evidence_codes.VANISHED.at(check.place_of(path.name)))
