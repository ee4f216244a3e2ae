"""A file that was named by itself: what its name or its content says it is, held against what lies beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from formats.log_dir_files import (
    LEADER_EPOCHS,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    QUORUM_STATE,
    parse_partition_folder,
    parse_segment_file,
)
from kctl.checks import small_files
from kctl.checks.directory import offsets_in
from kctl.checks.epochs import EpochRuns, check_epochs
from kctl.checks.indexes import IndexedLog
from kctl.checks.replica import TYPES, ReplicaTask
from kctl.checks.report import CheckOptions, LogFacts, Report
from kctl.checks.segment import open_indexes, scan_log, scan_options
from kctl.findings import Place
from kctl.log.folder import FolderFile, Segment


def check_named_file(path: Path, place: Place, options: CheckOptions) -> Report:
    """What is wrong with one file. One of no known name is taken for a log."""
    found = Report()
    above = parse_partition_folder(path.parent.name)
    if above:
        place = replace(place, topic=above.topic, partition=above.partition)
    size = path.stat().st_size if path.exists() else 0
    file = FolderFile(path, size, parse_segment_file(path.name))
    if path.name in OFFSET_CHECKPOINTS:
        offsets_in(path, found.file(place, "checkpoint", size, options))
    elif path.name == LEADER_EPOCHS:
        report = found.file(place, "epochs", size, options)
        check_epochs(report, path, EpochRuns(), ReplicaTask(path.parent, place), LogFacts())
    elif path.name == PARTITION_METADATA:
        small_files.check_partition_metadata(found.file(place, "partition-metadata", size, options), path)
    elif path.name == QUORUM_STATE:
        small_files.check_quorum_state(found.file(place, "quorum-state", size, options), path)
    elif file.named and file.named.suffix in (".index", ".timeindex"):
        _check_index(found, file, place, options)
    else:
        _check_log(found, file, place, options)
    return found


def _check_log(found: Report, file: FolderFile, place: Place, options: CheckOptions) -> None:
    suffix = file.named.suffix if file.named else ".log"
    report = found.file(place, TYPES.get(suffix, "log"), file.size_in_bytes, options)
    base = file.named.base_offset if file.named and suffix == ".log" else None
    scan_log(file, report, scan_options(options, report, base_offset=base))


def _check_index(found: Report, file: FolderFile, place: Place, options: CheckOptions) -> None:
    """An index is read against the log of the same name beside it, about which nothing is said."""
    assert file.named is not None
    log = file.path.with_name(f"{file.named.base_offset:020d}.log{file.named.state}")
    report = found.file(place, TYPES[file.named.suffix], file.size_in_bytes, options)
    segment = Segment(file.named.base_offset, file.named.state, {file.named.suffix: file})
    indexes = open_indexes(segment, lambda _: report)
    if not log.is_file():
        return
    aside = Report()
    beside = FolderFile(log, log.stat().st_size, parse_segment_file(log.name))
    silent = aside.file(place, "log", beside.size_in_bytes, options)
    scanned = scan_log(
        beside, silent, scan_options(options, silent, base_offset=segment.base_offset), indexes.all()
    )
    end = scanned.next_offset or segment.base_offset
    sound = scanned.bad_position is None and scanned.is_readable
    indexes.finish(
        IndexedLog(segment.base_offset, silent.size_in_bytes, scanned.batches, end, True, False, sound)
    )
