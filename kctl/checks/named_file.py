"""A file that was named by itself: what its name or its content says it is, compared with the files next to it."""

from __future__ import annotations

from pathlib import Path

from formats.errors import FormatError
from formats.log_dir.file_names import (
    LEADER_EPOCHS,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    QUORUM_STATE,
    parse_partition_folder,
    parse_segment_file,
)
from formats.log_dir.meta_properties import parse_meta_properties, unwritten_line
from formats.values import replace
from kctl.checks import small_files
from kctl.checks.directory import offsets_in
from kctl.checks.evidence import loose_task, open_directory, task_of
from kctl.checks.replica import TYPES, check_replica
from kctl.checks.report import CheckOptions, FileReport, ReplicaTask, Report
from kctl.checks.segments import LogPieces, scan_log, scan_options
from kctl.checks.small_files import read_small
from kctl.evidence.discover import discover
from kctl.findings import Finding, Place
from kctl.findings.evidence import META_PROPERTIES_BAD, META_PROPERTIES_UNUSUAL
from kctl.log.folder import FolderFile
from kctl.scan.options import Level

# Files that are checked against the log beside them.
ABOUT_A_LOG = (".index", ".timeindex", ".txnindex", ".snapshot")


def is_log(path: Path) -> bool:
    """Whether a file is taken for a log: one of no known name is."""
    named = parse_segment_file(path.name)
    other_names = (*OFFSET_CHECKPOINTS, PARTITION_METADATA, QUORUM_STATE, META_PROPERTIES, LEADER_EPOCHS)
    return path.name not in other_names and not (named and named.suffix in ABOUT_A_LOG)


def whole_place(path: Path, place: Place) -> Place:
    """The place of a file, with the partition that its folder names."""
    above = parse_partition_folder(path.parent.name)
    return replace(place, topic=above.topic, partition=above.partition) if above else place


def check_named_file(
    path: Path, place: Place, options: CheckOptions, parts: LogPieces | None = None
) -> Report:
    """What is wrong with one file; `parts` as in `check_replica`."""
    place = whole_place(path, place)
    named = parse_segment_file(path.name)
    if (named and named.suffix in ABOUT_A_LOG) or path.name == LEADER_EPOCHS:
        return _check_beside(path, place, options)
    report = Report()
    size = path.stat().st_size if path.exists() else 0
    if path.name in OFFSET_CHECKPOINTS:
        offsets_in(path, report.file(place, "checkpoint", size, options))
    elif path.name == PARTITION_METADATA:
        small_files.check_partition_metadata(report.file(place, "partition-metadata", size, options), path)
    elif path.name == QUORUM_STATE:
        small_files.check_quorum_state(report.file(place, "quorum-state", size, options), path)
    elif path.name == META_PROPERTIES:
        _check_meta_properties(report.file(place, "meta-properties", size, options), path)
    else:
        _check_log(report, FolderFile(path, size, named), place, options, parts)
    return report


def _check_log(
    report: Report, file: FolderFile, place: Place, options: CheckOptions, parts: LogPieces | None
) -> None:
    suffix = file.named.suffix if file.named else ".log"
    file_report = report.file(place, TYPES.get(suffix, "log"), file.size_in_bytes, options)
    base = file.named.base_offset if file.named and suffix == ".log" else None
    scan_log(file, file_report, scan_options(options, file_report, base_offset=base), parts=parts)


def _check_meta_properties(report: FileReport, path: Path) -> None:
    data = read_small(path, report)
    if data is None:
        return
    text = data.decode("latin-1")
    try:
        parse_meta_properties(text)
    except FormatError as error:
        report.say(META_PROPERTIES_BAD, reason=str(error))
        report.damaged_bytes = report.size_in_bytes
    else:
        line = unwritten_line(text)
        if line is not None:
            report.say(META_PROPERTIES_UNUSUAL, line=line)


def _check_beside(path: Path, place: Place, options: CheckOptions) -> Report:
    """Check the folder of a file that describes a log, and report only this file."""
    of_the_folder = check_replica(_task_of_folder(path.parent, options), replace(options, level=Level.CRC))
    of_the_file = Report()
    for file in of_the_folder.files:
        if file.place.file == path.name:
            file.place = replace(file.place, file=place.file, evidence=place.evidence, moment=place.moment)
            file.findings = [_moved(finding, file.place) for finding in file.findings]
            of_the_file.files.append(file)
    return of_the_file


def _moved(finding: Finding, place: Place) -> Finding:
    return replace(
        finding, place=replace(finding.place, file=place.file, evidence=place.evidence, moment=place.moment)
    )


def _task_of_folder(folder: Path, options: CheckOptions) -> ReplicaTask:
    evidence = discover([folder])
    for replica in evidence.replicas:
        return task_of(replica, open_directory(replica.log_dir, evidence, options), evidence, options)
    for loose, log_dir in evidence.loose_folders:
        return loose_task(loose, log_dir, evidence)
    return ReplicaTask(folder, Place(file="."))
