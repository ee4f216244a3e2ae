"""Snapshots of the metadata log of KRaft: complete, and reaching up to the log's start.

A snapshot is a segment of its own offsets whose first batch is a control batch with SNAPSHOT_HEADER and whose
last is one with SNAPSHOT_FOOTER (`raft/src/main/java/org/apache/kafka/snapshot/RecordsSnapshotWriter.java @ 3.9.0`).
"""

from __future__ import annotations

from collections.abc import Sequence

from formats.errors import FormatError
from formats.log.control_records import ControlType, read_key
from formats.log.record_batch import CONTROL
from formats.log.records import records_at
from formats.log_dir.file_names import FileState
from kctl.checks.report import CheckOptions, FileReport
from kctl.checks.segments import scan_log, scan_options
from kctl.findings import logs as codes
from kctl.log.folder import FolderFile
from kctl.scan.options import Chunk
from kctl.scan.source import opened_source


def check_kraft_snapshot(file: FolderFile, report: FileReport, options: CheckOptions) -> None:
    """Scan a snapshot; report a missing header or footer."""
    # Position, and whether it is a control batch, of the first and the last batch.
    batches: list[tuple[int, bool]] = []

    def note(_: FolderFile, chunk: Chunk) -> None:
        headers = chunk.headers
        if len(headers):
            control = (headers.attributes & CONTROL) != 0
            ends = [(int(headers.position[row]), bool(control[row])) for row in (0, -1)]
            batches[:] = [(batches or ends)[0], ends[1]]

    scan_log(file, report, scan_options(options, report), on_chunk=note)
    if file.named is not None and file.named.state is not FileState.LIVE:
        return
    if not batches:
        report.say(codes.KRAFT_SNAPSHOT_INCOMPLETE, what="holds nothing")
    elif not _is_control(file, *batches[0], ControlType.SNAPSHOT_HEADER):
        report.say(codes.KRAFT_SNAPSHOT_INCOMPLETE, what="does not begin with a header")
    elif not _is_control(file, *batches[1], ControlType.SNAPSHOT_FOOTER):
        report.say(codes.KRAFT_SNAPSHOT_INCOMPLETE, what="has no footer: its end is missing")


def _is_control(file: FolderFile, position: int, is_control: bool, type_: ControlType) -> bool:
    if not is_control:
        return False
    try:
        with opened_source(file.path) as source:
            records = records_at(source, position)
        return any(read_key(record.key).type == type_ for record in records)
    except (FormatError, OSError):
        return True  # the scan has reported the damage


def reaches(snapshots: Sequence[FolderFile], log_start: int) -> bool:
    """Whether a complete snapshot covers everything before the log's start."""
    live = (file.named for file in snapshots if file.named and file.named.state is FileState.LIVE)
    return any(named.base_offset >= log_start for named in live)
