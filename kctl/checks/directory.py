"""A log directory's checkpoints: each by itself, and against the logs of the partitions that it names.

They are written at different times. Only a high watermark, recovery point or log start above the log's end is wrong: no
order of writes leaves that. Entries without a folder and folders without an entry also occur in healthy directories (`K:log/LogManager.scala`, `K:server/ReplicaManager.scala @ 3.9.0`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from formats.log_dir.checkpoints import MalformedCheckpoint, parse_offset_checkpoint
from formats.log_dir.file_names import BOOTSTRAP_CHECKPOINT, META_PROPERTIES, OFFSET_CHECKPOINTS
from formats.values import Struct, field, replace
from kctl.checks.kraft import check_kraft_snapshot
from kctl.checks.report import CheckOptions, FileReport, LogFacts, Report
from kctl.checks.small_files import read_text, say_malformed
from kctl.evidence.model import LogDir
from kctl.findings import FindingType, Place, Severity
from kctl.findings import directories as codes
from kctl.findings import small_files as small_file_codes
from kctl.log.folder import FolderFile
from kctl.model import TopicPartition

RECOVERY_POINT, HIGH_WATERMARK, LOG_START, CLEANER = OFFSET_CHECKPOINTS

# Which checkpoint may not exceed the end of the log, and what that means.
NOT_ABOVE_END: dict[str, FindingType] = {
    HIGH_WATERMARK: codes.HIGH_WATERMARK_ABOVE_END,
    RECOVERY_POINT: codes.RECOVERY_POINT_ABOVE_END,
    LOG_START: codes.LOG_START_ABOVE_END,
    CLEANER: codes.CLEANER_POINT_ABOVE_END,
}


# Those that move on with the log, and may be ahead of one that was copied before them.
MAY_BE_LATER = {HIGH_WATERMARK: "high watermark", RECOVERY_POINT: "recovery point"}
PERHAPS_LATER = (
    "Unless the broker was running: then the log was copied before the checkpoint; a znode export of the same moment"
    " would tell."
)
PERHAPS_NEW = (
    "Unless the topic was deleted and made anew after the checkpoint was written: then the log is of the new topic;"
    " the broker's log would tell."
)


class Checkpoints(Struct):
    """The offset checkpoints of a log directory by file name, and what is wrong with each file."""

    entries: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    report: Report = field(default_factory=Report)

    def get(self, name: str, partition: TopicPartition) -> int | None:
        """The offset that a checkpoint has for a partition."""
        return self.entries.get(name, {}).get(partition)


def read_checkpoints(log_dir: LogDir, place: Place, options: CheckOptions) -> Checkpoints:
    """The checkpoints of a log directory; files that Kafka would refuse are findings, their entries unknown."""
    checkpoints = Checkpoints()
    # Of a directory of which one folder was given nothing was listed.
    names = log_dir.files or tuple(n for n in OFFSET_CHECKPOINTS if (log_dir.path / n).is_file())
    for name in names:
        path = log_dir.path / name
        where = replace(place, file=_below(place.file, name))
        if name in OFFSET_CHECKPOINTS:
            report = checkpoints.report.file(where, "checkpoint", _size(path), options)
            offsets = offsets_in(path, report)
            # An empty file was never written: it says nothing about any partition, but that none was cleaned.
            if report.size_in_bytes or name == CLEANER:
                checkpoints.entries[name] = offsets
        elif name == BOOTSTRAP_CHECKPOINT:
            file = FolderFile(path, _size(path))
            report = checkpoints.report.file(where, "kraft-snapshot", file.size_in_bytes, options)
            check_kraft_snapshot(file, report, options)
        elif name == META_PROPERTIES:
            checkpoints.report.file(where, "meta-properties", _size(path), options)
    return checkpoints


def _below(folder: str | None, name: str) -> str:
    return name if folder in (None, ".") else f"{folder}/{name}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def offsets_in(path: Path, report: FileReport) -> dict[TopicPartition, int]:
    """The offsets of one checkpoint; a file that Kafka would refuse is a finding, and has none."""
    text = read_text(path, report)
    if text is None:
        return {}
    if not text:
        report.say(small_file_codes.CHECKPOINT_EMPTY)
    try:
        entries = parse_offset_checkpoint(text)
    except MalformedCheckpoint as error:
        say_malformed(report, error)
        return {}
    offsets = [(TopicPartition(topic, partition), offset) for topic, partition, offset in entries]
    for partition, count in Counter(partition for partition, _ in offsets).items():
        if count > 1:
            report.say(small_file_codes.CHECKPOINT_DUPLICATE, partition=str(partition), count=count)
    for partition, offset in offsets:
        if offset < 0 or partition.partition < 0:
            place = report.place.in_partition(partition)
            report.say(small_file_codes.CHECKPOINT_NEGATIVE, place, partition=str(partition), offset=offset)
    return dict(offsets)


def check_directory(
    checkpoints: Checkpoints,
    logs: Mapping[TopicPartition, LogFacts],
    has_run: Callable[[], bool | None] = lambda: None,
    is_clean: bool = False,
) -> None:
    """Hold the checkpoints against the live partitions of the directory; findings go to the files' reports.

    `has_run` says whether the broker ran while the directory was copied, None where nobody knows; `is_clean`
    whether it was shut down before.
    """
    for report in checkpoints.report.files:
        name = (report.place.file or "").rpartition("/")[2]
        for partition, offset in checkpoints.entries.get(name, {}).items():
            facts = logs.get(partition)
            place = report.place.in_partition(partition) if report.has_room else report.place
            if facts is None:
                report.say(codes.CHECKPOINT_WITHOUT_PARTITION, place, partition=str(partition))
            elif facts.log_end_offset is not None and offset > facts.log_end_offset:
                where = replace(place, base_offset=facts.log_end_offset, last_offset=offset - 1)
                is_compacted = facts.looks_compacted or partition in checkpoints.entries.get(CLEANER, {})
                if is_compacted and not is_clean and name in MAY_BE_LATER and offset in facts.cut_in_gap:
                    report.say(
                        codes.CHECKPOINT_IN_GAP, where, partition=str(partition), what=MAY_BE_LATER[name],
                        offset=offset, log_end=facts.log_end_offset,
                    )  # fmt: skip
                    continue
                ran = False if is_clean or name not in MAY_BE_LATER else has_run()
                _say_above_end(report, name, where, ran, str(partition), offset, facts, is_clean=is_clean)
            elif name == RECOVERY_POINT and is_clean and offset < (facts.log_end_offset or 0):
                end = facts.log_end_offset or 0
                where = replace(place, base_offset=offset, last_offset=end - 1)
                follows = facts.is_whole and facts.follows_from is not None and facts.follows_from <= offset
                longer = codes.SHUT_DOWN_POINT_BEHIND if follows else codes.LOG_LONGER_THAN_SHUT_DOWN
                report.say(longer, where, partition=str(partition), offset=offset, log_end=end)
            elif name == LOG_START:
                _check_log_start(checkpoints, report, partition, offset)
            elif name == CLEANER:
                start = max(checkpoints.get(LOG_START, partition) or 0, facts.first_base_offset or 0)
                if 0 <= offset < start:
                    report.say(
                        codes.CLEANER_POINT_BELOW_START,
                        place,
                        partition=str(partition),
                        offset=offset,
                        log_start=start,
                    )


def _say_above_end(
    report: FileReport,
    name: str,
    place: Place,
    ran: bool | None,
    partition: str,
    offset: int,
    facts: LogFacts,
    *,
    is_clean: bool,
) -> None:
    """A checkpoint above the log's end: a loss, or only the order of copying where the broker ran."""
    type_ = codes.CHECKPOINT_COPIED_LATER if ran else NOT_ABOVE_END[name]
    subject = {"what": MAY_BE_LATER[name]} if ran else {}
    finding = type_.at(
        place, severity=None, partition=partition, offset=offset, log_end=facts.log_end_offset, **subject
    )
    unless = [PERHAPS_LATER] * (ran is None) + [PERHAPS_NEW] * (facts.looks_new and not ran and not is_clean)
    if unless:
        message = " ".join([finding.message, *unless])
        finding = replace(finding, severity=Severity.WARNING, message=message)
    report.add([finding])


def _check_log_start(
    checkpoints: Checkpoints, report: FileReport, partition: TopicPartition, offset: int
) -> None:
    high_watermark = checkpoints.get(HIGH_WATERMARK, partition)
    if high_watermark is not None and offset > high_watermark:
        report.say(
            codes.LOG_START_ABOVE_HIGH_WATERMARK,
            report.place.in_partition(partition),
            partition=str(partition),
            offset=offset,
            high_watermark=high_watermark,
        )
